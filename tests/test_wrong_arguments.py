"""Whatever is given to a public function, what comes out is a result or a `CvxleakError`."""

import importlib
import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cvxleak
from cvxleak import Bound, Status, iterative, model, sources
from cvxleak.capacities import Capacity
from cvxleak.core.errors import CvxleakError, ValidationError
from cvxleak.design import MinLeakage
from cvxleak.local_dp import MinLocalDP
from cvxleak.measures import multiplicative_bayes_capacity
from cvxleak.mechanisms import (
    FrequencyEstimate,
    binary_symmetric,
    random_rounding,
    randomized_response,
    truncated_geometric,
)
from cvxleak.model import ChannelSet, Distortion, Mechanism, Prior, RecordSpace, TableQuery
from cvxleak.problem import Check
from cvxleak.proofs import Certificate
from cvxleak.queries import count, parity
from cvxleak.refinement import Refinement, refines
from cvxleak.report import audit_report
from cvxleak.sources import SourceSet
from cvxleak.tables import RandomRounding, Table, TableRelease

PACKAGES = (
    "mechanisms",
    "measures",
    "queries",
    "expressions",
    "constraints",
    "iterative",
    "audit",
    "capacities",
    "design",
    "differential_privacy",
    "envelope",
    "local_dp",
    "refinement",
    "release",
    "report",
    "samples",
    "tables",
    "model",
    "proofs",
    "problem",
)
GEOMETRIC = truncated_geometric(3, 1.0)
MECHANISM = Mechanism(count(3), GEOMETRIC)
LUMPED = MECHANISM.lumped(0)
SPACE = RecordSpace.binary(2)
FREE, BOUND = (cvxleak.record_leakage(MECHANISM, b) for b in (0.0, 1.0))
CERTIFICATE = cvxleak.capacity(GEOMETRIC).certificate
assert CERTIFICATE is not None
FOUR = np.ones(4) / 4
HALVES = [0.5, 0.5]
ERROR = 1.0 - np.eye(2)
RELEASE = np.array([[[0.45, 0.05]], [[0.05, 0.45]]])
ANSWER = np.array([[[0.8, 0.2], [0.2, 0.8]]])
LAWS = iterative.ReleaseLaws.of(RELEASE, ANSWER)
ROUNDED = TableRelease(Table({"x": ["a", "b"]}, counts=[3, 1]), RandomRounding(3))
PTABLE = Path(__file__).parents[1] / "examples" / "ptable.csv"
DESIGN = {
    "query": parity(2),
    "distortion": ERROR,
    "budget": 0.2,
    "entropy_floor": 0.5,
    "time_limit": 1.0,
}
SMALL = MinLeakage(parity(2), distortion=ERROR, budget=0.2, entropy_floor=0.5)

FITTING: dict[str, Any] = {
    "alpha": 2.0,
    "allowed": np.ones((4, 4), dtype=bool),
    "balance": 0.1,
    "balances": [0.1, 0.1],
    "base": 3,
    "bound": BOUND,
    "budget": 0.5,
    "candidate": FOUR,
    "categories": 2,
    "capacities": [0.1, 0.2],
    "capacity": 0.5,
    "channel": GEOMETRIC,
    "channels": [GEOMETRIC, GEOMETRIC],
    "channel_set": ChannelSet(GEOMETRIC.matrix, GEOMETRIC.matrix),
    "conditional": np.ones((2, 4)) / 4,
    "counts": [5, 6, 7, 8],
    "delta": 0.1,
    "distortion": np.ones((4, 4)),
    "distortion_budget": 0.2,
    "distribution": HALVES,
    "divergence": "total-variation",
    "entropy_floor": 1.0,
    "entropy_floors": [0.5],
    "epsilon": 0.2,
    "epsilons": [0.1, 0.1],
    "event": [1, 0.5, 0, 0],
    "first": GEOMETRIC,
    "false_alarms": [0.1, 0.5],
    "flip": 0.2,
    "floored_capacity": 0.1,
    "free": FREE,
    "function": sum,
    "gain": np.eye(4),
    "given": 1,
    "group_sizes": [1],
    "joint": np.ones((4, 4)) / 16,
    "k": 3,
    "m": 2,
    "law": HALVES,
    "leakage": 0.3,
    "lumped": LUMPED,
    "marginal": HALVES,
    "measure": multiplicative_bayes_capacity,
    "mechanism": MECHANISM,
    "mechanisms": (MECHANISM, MECHANISM),
    "modulus": 3,
    "mu_1": 0.3,
    "mu_2": 0.3,
    "n": 3,
    "other": GEOMETRIC,
    "outputs": [0, 1, 2],
    "peak": 1.0,
    "penalty": 1.0,
    "prior": FOUR,
    "priors": [FOUR],
    "problem": Capacity(GEOMETRIC),
    "query": MECHANISM.query,
    "records": 0,
    "reference": HALVES,
    "releases": 2,
    "rho": 0.5,
    "rows": np.ones((2, 4, 3)) / 3,
    "scale": 1.0,
    "scores": np.zeros((3, 3)),
    "second": [GEOMETRIC] * 4,
    "secrets": [FOUR],
    "sensitivity": 1.0,
    "size": 2,
    "source": FOUR,
    "sources": [HALVES],
    "space": MECHANISM.space,
    "subject": GEOMETRIC,
    "symmetries": [([1, 0, 2, 3], [0, 1, 2, 3])],
    "table": list(range(8)),
    "target": 0.3,
    "tol": 1e-6,
    "unit": "bits",
    "utility": np.eye(4),
    "values": 2,
    "variance": 1.0,
    "vector": [1.0, 2.0],
    "weights": LUMPED.uniform(),
}
"""What fits an argument of this name, wherever it fits."""

# What fits where the name alone does not say it.
OWN: dict[str, dict[str, Any]] = {
    "proofs.read_certificates": {"path": "no such file"},
    "proofs.save_certificates": {"certificates": [CERTIFICATE], "path": "file"},
    "proofs.verify": {"certificate": CERTIFICATE},
    "iterative.adaptive_penalty": {"distortion": np.eye(4)},
    "iterative.alternating_design": {
        "source": np.ones((2, 2)) / 4,
        "distortion": ERROR[[[0, 1], [1, 0]]],
        "entropy_floor": 0.0,
        "max_iterations": 2,
    },
    "iterative.blahut_rate_distortion": {"slope": 1.0},
    "iterative.distortion_blahut_arimoto": {"joint": RELEASE, "max_iterations": 100},
    "iterative.exponentiated_gradient": {"channel": GEOMETRIC.matrix},
    "iterative.information_blahut_arimoto": {
        "joint": RELEASE,
        "restarts": 2,
        "max_iterations": 100,
    },
    "iterative.information_saddle": {"parts": [[HALVES]], "distortion": ERROR, "budget": 0.2},
    "iterative.mirror_prox": {
        "secrets": [HALVES],
        "sources": [HALVES],
        "distortion": ERROR,
        "slope": 1.0,
        "tol": 1e-2,
    },
    "iterative.penalized_objective": {"channel": GEOMETRIC.matrix},
    "iterative.multiplier_grid": {
        "joint": RELEASE,
        "mu_1": [0.3],
        "mu_2": [0.3],
        "max_iterations": 100,
    },
    "iterative.release_functional": {"joint": RELEASE, "kernel": ANSWER, "laws": LAWS},
    "iterative.release_gradients": {"joint": RELEASE, "kernel": ANSWER},
    "iterative.release_update": {"joint": RELEASE, "laws": LAWS},
    "iterative.release_search": {"joint": RELEASE, "delta": 0.3, "max_rounds": 3},
    "constraints.pufferfish": {"pairs": [([1, 0, 0, 0], [0, 1, 0, 0])]},
    "envelope.adaptive_composition": {"releases": [GEOMETRIC]},
    "envelope.adaptive_composition_bound": {"releases": [GEOMETRIC]},
    "envelope.deterministic_form": {"post_processing": GEOMETRIC},
    "envelope.quantile_attack": {"share": 0.1},
    "envelope.response_attack": {"epsilon": 1.0, "delta": 0.9},
    "local_dp.class_three_distortions": {
        "sources": [[0.5, 0.3, 0.2]],
        "folding": [(0, 1, 2)],
    },
    "local_dp.class_three_leakage": {"sources": [[0.5, 0.3, 0.2]], "folding": [(0, 1, 2)]},
    "measures.membership_epsilon": {"events": [[1, 0, 0, 0]]},
    "measures.pufferfish_epsilon": {"pairs": [([1, 0, 0, 0], [0, 1, 0, 0])]},
    "local_dp.class_two_distortions": {"sources": [[0.5, 0.3, 0.2]]},
    "local_dp.class_two_program": {"sources": [[0.5, 0.3, 0.2]]},
    "local_dp.class_two_leakage": {"sources": [[0.5, 0.3, 0.2]]},
    "local_dp.class_two_mechanism": {"distortions": [0.25, 0.25, 1.0], "removed": 1},
    "local_dp.distortion_thresholds": {"sources": [[0.5, 0.3, 0.2]]},
    "local_dp.one_law_leakage": {"prior": [0.5, 0.3, 0.2], "budget": 0.2},
    "measures.conditional_mutual_information": {"joint": np.ones((2, 2, 2)) / 8},
    "envelope.four_level_prior": {"k": 4, "rho": 0.2},
    "measures.group_chain_rule": {"first": 0, "second": 1},
    "envelope.output_count_bound": {"outputs": 3},
    "problem.problem_class": {"name": "capacity"},
    "problem.verify_iterates": {"problem": Capacity(GEOMETRIC), "iterates": FOUR},
    "mechanisms.random_rounding": {"up": [0.5, 0.5]},
    "mechanisms.randomize": {"column": [0, 1]},
    "mechanisms.rank_exponential": {"distortion": np.array([[0, 1, 2], [1, 0, 2], [2, 1, 0]])},
    "mechanisms.column_symmetric_bound": {"subject": randomized_response(3, 1.0)},
    "model.as_gain": {"k": 4},
    "model.gain_from_dict": {"data": {"kind": "gini"}},
    "model.as_prior": {"size": 4},
    "differential_privacy.check_claim": {"first": MECHANISM, "epsilon": 1.0, "delta": 0.1},
    "audit.total_disclosure": {"mechanism": Mechanism(count(3), random_rounding(3, 2))},
    "release.any_of": {"names": ["a", "b", "c"]},
    "design.calibrate": {
        "family": lambda p: Mechanism(parity(2), binary_symmetric(p)),
        "between": (0.1, 0.4),
        "leakage": 0.1,
        "resolution": 0.1,
    },
    "design.design_curve": {"problem": SMALL, "budgets": [0.2]},
    "design.design_for_prior": {"distortion": 1.0 - np.eye(4), "budget": 0.3},
    "design.min_distortion": DESIGN,
    "design.min_leakage": DESIGN,
    "release.release_lagrangian": {"joint": RELEASE},
    "release.release_problem": {"joint": RELEASE, "epsilon": 0.1, "delta": 0.1},
    "release.release_sequence": {
        "prior": HALVES,
        "requests": [binary_symmetric(0.1)],
        "epsilon": [0.1],
        "delta": [0.1],
    },
    "release.release_strategy": {
        "prior": HALVES,
        "requests": [binary_symmetric(0.1)],
        "epsilon": [0.1],
        "delta": [0.1],
    },
    "release.release_surface": {"joint": RELEASE, "epsilon": [0.1], "delta": [0.1]},
    "report.check_targets": {"records": [0]},
    "queries.crosstab": {"rows": 2, "columns": 2},
    "report.table_report": {"release": ROUNDED},
    "report.samples_report": {"samples": ([0, 0, 1, 1], [0, 1, 1, 1])},
    "tables.calibrate_table": {
        "family": lambda base: TableRelease(ROUNDED.table, RandomRounding(base)),
        "between": (1, 3),
        "epsilon": 0.5,
        "delta": 1.0,
    },
    "tables.possible_counts": {"release": ROUNDED, "published": [3, 0, 3]},
    "tables.table_leakage": {"release": ROUNDED, "least_probability": 0.1},
    "tables.table_privacy": {"release": ROUNDED, "move": ("a", "b")},
    "tables.realized_leakage": {"release": ROUNDED, "published": [3, 0, 3], "prior": HALVES},
    "samples.audit_samples": {"samples": ([0, 0, 1, 1], [0, 1, 1, 1]), "time_limit": 1.0},
    "samples.channels_from_counts": {"counts": [[5, 6], [7, 8]], "confidence": 0.9},
    "samples.dp_violation": {"channels": ChannelSet(GEOMETRIC.matrix, GEOMETRIC.matrix)},
    "samples.read_samples": {"samples": ([0, 0, 1, 1], [0, 1, 1, 1])},
    "samples.sample_mechanism": {"f": lambda x: x, "inputs": [0, 1], "draws": 3},
    "tables.estimate_counts": {"published": [3, 6], "noise": RandomRounding(3)},
    "report.design_report": {"problem": SMALL},
    "report.local_dp_report": {"problem": MinLocalDP([[0.7, 0.3]], 0.2)},
    "report.envelope_report": {"delta": [0.1]},
    "report.audit_report": {"epsilons": [0.5], "outputs": []},
    "report.html_page": {"report": audit_report(Mechanism(parity(2), binary_symmetric(0.2)))},
}

# The constructors, and what fits their arguments.
CONSTRUCTORS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "Arimoto": (model.Arimoto, {"alpha": 2.0}),
    "AdditiveQuery": (model.AdditiveQuery, {"space": SPACE, "contributions": [(0, 1)] * 2}),
    "Bound": (Bound, {"name": "x", "lower": 0.1, "upper": 0.2, "status": Status.CERTIFIED}),
    "Certificate": (
        Certificate,
        {name: getattr(CERTIFICATE, name) for name in Certificate.__dataclass_fields__},
    ),
    "Channel": (model.Channel, {"matrix": np.eye(2)}),
    "Check": (Check, {"value": 0.5, "violations": {"x": 0.0}, "bound": BOUND, "maximize": True}),
    "Distortion": (Distortion, {"matrix": np.eye(2)}),
    "Expectation": (model.Expectation, {"feature": [0, 1], "equals": 0.5}),
    "FrequencyEstimate": (
        FrequencyEstimate,
        {"labels": (0, 1), "frequencies": HALVES, "covariance": np.eye(2), "respondents": 10},
    ),
    "IterativeResult": (
        iterative.IterativeResult,
        {"value": 0.1, "point": None, "iterations": 2, "stopped": "x", "history": {"x": [1.0]}},
    ),
    "GainMatrix": (model.GainMatrix, {"table": np.eye(2)}),
    "GuessInTries": (model.GuessInTries, {"tries": 2}),
    "KnownMarginals": (model.KnownMarginals, {"law": HALVES}),
    "Limits": (model.Limits, {"coefficients": np.ones((1, 4)), "bounds": [1.0]}),
    "Lumped": (
        model.Lumped,
        {name: getattr(LUMPED, name) for name in model.Lumped.__dataclass_fields__},
    ),
    "Mechanism": (Mechanism, {"query": count(3), "channel": GEOMETRIC}),
    "Polytope": (sources.Polytope, {"lower": [0, 0], "upper": [1, 1]}),
    "Prior": (Prior, {"probabilities": HALVES}),
    "RecordSpace": (RecordSpace, {"alphabets": [(0, 1)]}),
    "Refinement": (
        Refinement,
        {
            name: getattr(refines(np.eye(2), np.eye(2)), name)
            for name in ("channel", "other", "processing", "prior", "gain")
        },
    ),
    "RelativeEntropyBall": (model.RelativeEntropyBall, {"radius": 0.1, "prior": HALVES}),
    "SourceSet": (SourceSet, {"laws": [HALVES]}),
    "TableQuery": (TableQuery, {"space": SPACE, "places": [0, 1, 0, 1], "values": [0, 1]}),
}

# Objects, and what fits the arguments of their methods.
METHODS: dict[str, tuple[object, dict[str, dict[str, Any]]]] = {
    "Bound": (BOUND, {"to": {"unit": "bits"}, "refine": {"tol": 1e-3}}),
    "Channel": (
        GEOMETRIC,
        {
            "then": {"channel": GEOMETRIC},
            "product": {"channel": GEOMETRIC},
            "visible_choice": {"channel": GEOMETRIC, "chance": 0.5},
            "hidden_choice": {"channel": GEOMETRIC, "chance": 0.5},
            "reduced": {},
            "output": {"prior": FOUR},
            "posterior": {"prior": FOUR},
            "sample": {"label": 0, "size": 2, "rng": 0},
            "row": {"label": 0},
            "select": {"inputs": [0], "outputs": [0, 1, 2, 3]},
            "from_solver": {"matrix": GEOMETRIC.matrix, "tol": 1e-6},
            "from_pandas": {"frame": GEOMETRIC.to_pandas()},
            "from_dict": {"data": GEOMETRIC.to_dict()},
            "from_csv": {"path": "no such file"},
            "from_json": {"path": "no such file"},
        },
    ),
    "Distortion": (
        Distortion,
        {
            "absolute": {"inputs": [0, 1], "outputs": [0, 1]},
            "squared": {"inputs": [0, 1], "outputs": [0, 1]},
            "hamming": {"inputs": [0, 1], "outputs": [0, 1]},
        },
    ),
    "Mechanism": (
        MECHANISM,
        {
            "from_channel": {"space": SPACE, "channel": GEOMETRIC},
            "from_ptable": {"path": PTABLE, "query": 2, "cycle": 1},
            "then": {"channel": GEOMETRIC},
            "product": {"mechanism": MECHANISM},
            "lumped": {"records": 0},
            "groups": {"size": 1},
            "expand": {"records": 0, "weights": LUMPED.uniform()},
            "lump": {"records": 0, "prior": np.ones(8) / 8},
            "sample": {"dataset": (0, 1, 0), "rng": 0},
            "from_dict": {"data": MECHANISM.to_dict()},
        },
    ),
    "Prior": (
        Prior(HALVES),
        {
            "uniform": {"labels": 2},
            "from_counts": {"counts": {"a": 1}},
            "from_pandas": {"series": Prior(HALVES).to_pandas()},
            "from_dict": {"data": Prior(HALVES).to_dict()},
            "from_csv": {"path": "no such file"},
        },
    ),
    "Query": (
        count(3),
        {
            "__call__": {"dataset": (0, 1, 0)},
            "fibers": {"records": 0},
            "lines": {"record": 0},
            "cyclic_sensitivity": {"modulus": 3},
            "from_dict": {"data": count(3).to_dict()},
        },
    ),
    "RecordSpace": (
        SPACE,
        {
            "binary": {"n": 3},
            "group": {"records": [0]},
            "indices": {"dataset": (0, 1)},
            "values": {"records": [0, 1]},
            "value_index": {"records": [0]},
            "law": {"prior": FOUR},
            "from_dict": {"data": SPACE.to_dict()},
        },
    ),
    "SourceSet": (
        SourceSet([HALVES]),
        {
            "box": {"lower": [0, 0], "upper": [1, 1]},
            "hull": {"laws": [HALVES]},
        },
    ),
    "TableQuery": (
        TableQuery(SPACE, [0, 1, 1, 2], [0, 1, 2]),
        {"__call__": {"dataset": (0, 1)}, "fibers": {"records": 0}, "lines": {"record": 0}},
    ),
}
WRONG = (
    "x",
    "",
    b"x",
    None,
    float("nan"),
    float("inf"),
    -1,
    1.5,
    2**62,
    10**40,
    10**400,
    [],
    (),
    {},
    {"a": 1},
    {"a": {}},
    {1, 2},
    [[]],
    [[1, 2], [3]],
    [None, "x"],
    [0.5, 0.6],
    [np.inf],
    object(),
    np.array([]),
    np.array(1.0),
    np.ones((2, 3)),
    np.zeros((2, 2, 2)),
    np.array([[np.nan, 1], [1, 0]]),
    np.array(["a"]),
    True,
    1j,
    GEOMETRIC,
    MECHANISM,
    LUMPED,
    Prior.uniform(5),
    RecordSpace.binary(2),
    lambda x: 1 / 0,
    Exception,
)


def functions() -> list[Any]:
    found = []
    for package in PACKAGES:
        module = importlib.import_module(f"cvxleak.{package}")
        for name in module.__all__:
            function = getattr(module, name)
            if callable(function) and not inspect.isclass(function):
                key = f"{package}.{name}"
                found.append(pytest.param(function, fitting(key, function), id=key))
    return found


def fitting(key: str, function: Callable[..., Any]) -> dict[str, Any]:
    """Return arguments that fit: those needed, and others for which a fitting one is known."""
    own = OWN.get(key, {})
    parameters = inspect.signature(function).parameters.values()
    needed = [p.name for p in parameters if p.default is p.empty and p.kind is not p.VAR_KEYWORD]
    arguments = {name: FITTING.get(name) for name in needed} | own
    whole = {"mechanism", "query", "space", "mechanisms"} & set(needed)
    if whole and "prior" in needed:
        arguments["prior"] = np.ones(8) / 8
    return arguments


def methods() -> list[Any]:
    return [
        pytest.param(getattr(thing, name), given, id=f"{kind}.{name}")
        for kind, (thing, cases) in METHODS.items()
        for name, given in cases.items()
    ]


def constructors() -> list[Any]:
    def shown(kind: Callable[..., Any]) -> Callable[..., Any]:
        def make(**arguments: Any) -> str:
            made = kind(**arguments)
            return f"{made} {made!r}"

        make.__signature__ = inspect.signature(kind)  # pyright: ignore[reportFunctionMemberAccess]
        return make

    return [
        pytest.param(shown(kind), given, id=name) for name, (kind, given) in CONSTRUCTORS.items()
    ]


def call(function: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
    parameters = inspect.signature(function).parameters
    by_place = [n for n, p in parameters.items() if p.kind is p.POSITIONAL_ONLY and n in arguments]
    return function(
        *(arguments[name] for name in by_place),
        **{name: value for name, value in arguments.items() if name not in by_place},
    )


def survives(function: Callable[..., Any], arguments: Mapping[str, Any]) -> str | None:
    """Return what came out that should not have."""
    try:
        call(function, arguments)
    except CvxleakError:
        return None
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:200]
    return None


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Where a path that is tried may become a file."""
    monkeypatch.chdir(tmp_path)


# Their caps on iterations may be as large as one likes: only what they need is tried.
SEARCHES = tuple(
    f"cvxleak.{room}"
    for room in (
        "iterative papers audit capacities design envelope local_dp problem release report samples "
        "tables"
    ).split()
)
CASES = functions() + methods() + constructors()


@pytest.mark.parametrize(("function", "arguments"), CASES)
def test_what_fits_fits(function: Callable[..., Any], arguments: dict[str, Any]):
    # Otherwise the test below would not get past the argument that is wrong anyway.
    if arguments.get("path") != "no such file":
        call(function, arguments)


@pytest.mark.parametrize(("function", "arguments"), CASES)
def test_only_errors_of_ours(function: Callable[..., Any], arguments: dict[str, Any]):
    complaints = []
    searches = getattr(function, "__module__", "").startswith(SEARCHES)
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            continue
        if searches and parameter.default is not parameter.empty:
            continue
        for wrong in WRONG:
            what = survives(function, arguments | {name: wrong})
            if what is not None:
                complaints.append(f"{name} = {wrong!r:.60}: {what}")
    assert not complaints, "\n".join(complaints)


@pytest.mark.parametrize("rng", ["x", -1, 1.5, True, [], object()])
def test_a_seed_that_is_none(rng: object):
    for attempt in (
        lambda: GEOMETRIC.sample(0, rng=rng),  # pyright: ignore[reportArgumentType]
        lambda: iterative.joint_blahut_arimoto(LUMPED, 1.0, rng=rng),  # pyright: ignore[reportArgumentType]
        lambda: iterative.alternating_leakage(MECHANISM, 1.0, start="random", rng=rng),  # pyright: ignore[reportArgumentType]
        lambda: SMALL.solve(rng=rng),  # pyright: ignore[reportArgumentType]
        lambda: cvxleak.leakage_curve(MECHANISM, [1.0], rng=rng),  # pyright: ignore[reportArgumentType]
    ):
        with pytest.raises(ValidationError, match=r"^rng: "):
            attempt()
