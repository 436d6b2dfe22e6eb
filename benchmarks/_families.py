"""The problem families that are compared, and the programs that compete in each.

A family has cases of growing size. Every program gets the same case and returns a value of the
problem; cvxleak returns a bracket, and what a program is off by is its value less the attained end.
A program is named by what it is: a solver's name alone is that solver under plain CVXPY.
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import cvxpy as cp
import numpy as np

from benchmarks import (
    _guesses,
    _tables,
    audit,
    capacity,
    design_for_prior,
    envelope,
    local_dp,
    qif,
)
from benchmarks._audit_cases import Case
from cvxleak.audit import record_leakage
from cvxleak.capacities import capacity as certified_capacity
from cvxleak.design import MinLeakage
from cvxleak.envelope import PMLMechanism, optimal_pml_mechanism, pml_envelope
from cvxleak.iterative import (
    alternating_design,
    alternating_leakage,
    distortion_blahut_arimoto,
    joint_blahut_arimoto,
)
from cvxleak.local_dp import MinInformation, folding_bounds, min_information, min_local_dp
from cvxleak.measures import (
    event_envelope,
    expected_distortion,
    max_information,
    posterior_gain_vulnerability,
)
from cvxleak.measures import mutual_information as information
from cvxleak.mechanisms import random_rounding
from cvxleak.model import Distortion, Gaussian, Guess, Mechanism
from cvxleak.problem.bound import Bound
from cvxleak.queries import count
from cvxleak.refinement import refinement_gap
from cvxleak.relaxations.audit import TimeSharingRelaxation
from cvxleak.release import ReleaseProblem, release_lagrangian
from cvxleak.sources import SourceSet
from cvxleak.tables import TableRelease, table_privacy

OURS = "cvxleak"
CONIC = ("CLARABEL", "ECOS", "SCS")
LINEAR = ("HIGHS", *CONIC)

Value = float | tuple[float, float]
Program = Callable[[Any, float], Value]
"""From a case and seconds that a program may take by itself to a value, or to a bracket."""


@dataclass(frozen=True)
class Family:
    """A kind of problem, in sizes."""

    title: str
    case: str
    """What the case of size n is."""
    attained: str
    """Which end of cvxleak's bracket is attained: "lower" for a maximum, "upper" for a minimum."""
    sizes: tuple[int, ...]
    make: Callable[[int], Any]
    programs: Mapping[str, Program]
    close: float
    """A value that is off by more is marked."""
    relative: bool = False
    """Whether `close` is relative to the value."""


def ends(bound: Bound) -> tuple[float, float]:
    return bound.lower, bound.upper


def missing(name: str) -> str | None:
    """Return why a program cannot run here, or None."""
    words = name.replace(",", " ").split()
    modules = {
        "SCIP": "pyscipopt",
        "qif": "qif",
        "dit": "dit",
        "dp_accounting": "dp_accounting",
    }
    if words[0] in modules and importlib.util.find_spec(modules[words[0]]) is None:
        return f"{name}: {modules[words[0]]} is not installed"
    if words[0] in LINEAR and words[0] not in cp.installed_solvers():
        return f"{name}: CVXPY finds no {words[0]} here"
    return None


def capacities() -> Family:
    def by(name: str) -> Program:
        def program(channel: Any, limit: float) -> float:
            p = np.maximum(capacity.METHODS[name](channel, math.inf), 0.0)
            return information(channel, p / p.sum())

        return program

    tight = {"CLARABEL": "CLARABEL, tol 1e-12", "ECOS": "ECOS, tol 1e-12", "SCS": "SCS, eps 1e-9"}
    return Family(
        "Shannon capacity",
        "n inputs, n outputs, rows drawn from Dirichlet(1)",
        "lower",
        (10, 20, 40, 80, 160),
        capacity.dirichlet_channel,
        {
            OURS: lambda channel, limit: ends(certified_capacity(channel)),
            "Blahut–Arimoto": by("Blahut–Arimoto"),
            "qif": by("qif"),
            "dit": by("dit"),
            **{solver: by(name) for solver, name in tight.items()},
        },
        1e-9,
    )


def rounded_count(n: int, share: float) -> Case:
    mechanism = Mechanism(count(n), random_rounding(n, 3))
    return Case(f"n = {n}", mechanism, share * mechanism.space.max_entropy)


def audits() -> Family:
    def scip(cut: bool) -> Program:
        def program(case: Case, limit: float) -> tuple[float, float]:
            run = audit.with_scip(case, limit, cut)
            if run.note:
                raise RuntimeError(run.note)
            if not run.closed:
                raise RuntimeError("out of time")
            return run.lower, run.upper

        return program

    def relaxed(solver: str) -> Program:
        return lambda case, limit: TimeSharingRelaxation(case.lumped, case.floor, 16).solve(
            solver=solver
        )

    return Family(
        "Audit of a record",
        "a count of n people rounded at random to base 3, entropy floor 0.9 n log 2",
        "lower",
        (4, 6, 8, 10, 12),
        lambda n: rounded_count(n, 0.9),
        {
            OURS: lambda c, limit: ends(record_leakage(c.mechanism, c.floor, 0, time_limit=None)),
            "SCIP": scip(False),
            "SCIP with cut": scip(True),
            "LEAKAGE Algorithm 1": lambda c, limit: alternating_leakage(c.mechanism, c.floor).value,
            "joint step, 30 starts": lambda c, limit: joint_blahut_arimoto(c.lumped, c.floor).value,
            **{f"{solver}, relaxation": relaxed(solver) for solver in ("CLARABEL", "SCS")},
        },
        2e-4,
        relative=True,
    )


def designs() -> Family:
    def make(n: int) -> MinLeakage:
        b = 0.5 * n * math.log(2)
        d = Distortion.absolute(range(n + 1))
        return MinLeakage(count(n), distortion=d, budget=0.5, entropy_floor=b)

    def cutting(**options: Any) -> Program:
        return lambda problem, limit: ends(problem.solve(tol=1e-2, time_limit=None, **options))

    def alternating(problem: MinLeakage, limit: float) -> float:
        n = len(problem.distortion.outputs) - 1
        values = np.indices((2,) * n).sum(axis=0)
        run = alternating_design(
            np.full(values.shape, 0.5**n),
            np.abs(values[..., None] - np.arange(n + 1)),
            0.5,
            0.5 * n * math.log(2),
            adversary="joint",
            starts=10,
            max_penalties=30,
            decrease="variance",
        )
        return run.value

    return Family(
        "Least leakage for a distortion budget",
        "a count of n people, entropy floor 0.5 n log 2, mean absolute error at most 0.5",
        "upper",
        (3, 4, 5, 6),
        make,
        {
            OURS: cutting(),
            "LEAKAGE Algorithm 6": alternating,
            **{f"{solver} as master": cutting(solver=solver) for solver in CONIC},
        },
        2e-2,
        relative=True,
    )


def rate_distortion() -> Family:
    def by(name: str) -> Program:
        def program(case: design_for_prior.Case, limit: float) -> float:
            q = np.maximum(design_for_prior.METHODS[name](case).channel, 0.0)
            q /= q.sum(axis=1, keepdims=True)
            return information(q, case.p) + case.slope * expected_distortion(q, case.p, case.d)

        return program

    def ours(case: design_for_prior.Case, limit: float) -> tuple[float, float]:
        found = design_for_prior.design_for_prior(case.p, case.d, slope=case.slope)
        return ends(found)

    return Family(
        "Design for a known prior (rate-distortion)",
        "n inputs, n outputs, Dirichlet(1) prior, uniform distortions, at a slope",
        "upper",
        (10, 20, 40, 80, 160),
        design_for_prior.Case.of,
        {
            OURS: ours,
            "Blahut": by("Blahut"),
            **{f"{solver}, dual form": by(f"{solver}, dual form") for solver in CONIC},
            **{f"{solver}, textbook": by(f"{solver}, textbook") for solver in CONIC},
        },
        1e-7,
    )


def envelopes() -> Family:
    delta = 0.5

    def bisection(solver: str) -> Program:
        def program(case: Any, limit: float) -> float:
            prior, rows = case
            top = float(np.exp(max_information(rows, prior)))
            peer = envelope.Peer(prior, rows, solver)
            return peer.envelope(delta, top, newton=False)

        return program

    return Family(
        "PML envelope",
        "n inputs, n outputs, rows drawn from Dirichlet(1), uniform prior, delta = 0.5",
        "lower",
        (10, 20, 40, 80, 160),
        envelope.channel,
        {
            OURS: lambda case, limit: ends(pml_envelope(*case, delta)),
            "ENVELOPE Algorithm 1": lambda case, limit: float(
                event_envelope(case[1], case[0], delta)
            ),
            **{f"{solver}, bisection": bisection(solver) for solver in LINEAR},
        },
        1e-6,
    )


def pml_designs() -> Family:
    def make(n: int) -> PMLMechanism:
        prior = np.random.default_rng(n).dirichlet(np.full(n, 5.0))
        return PMLMechanism(prior, np.eye(n), 1.0)

    def conic(solver: str) -> Program:
        return lambda problem, limit: float(problem.to_cvxpy().solve(solver=solver))

    return Family(
        "Most useful mechanism under PML",
        "n values, published correctly as often as possible, epsilon = 1, Dirichlet(5) prior",
        "lower",
        (10, 20, 40, 80, 160),
        make,
        {
            OURS: lambda problem, limit: ends(
                optimal_pml_mechanism(problem.prior, problem.utility, problem.epsilon)
            ),
            **{solver: conic(solver) for solver in LINEAR},
        },
        1e-6,
    )


def local_dp_families() -> Family:
    budget = 0.8

    def bisection(solver: str) -> Program:
        def program(sources: Any, limit: float) -> float:
            value, _, _ = local_dp.peer(sources, budget, solver, limit)
            if math.isnan(value):
                raise RuntimeError("failed or out of time")
            return value

        return program

    return Family(
        "Least epsilon of local differential privacy",
        "n values, five distributions drawn from Dirichlet(1), Hamming distortion 0.8",
        "upper",
        (10, 20, 40, 80, 160),
        local_dp.dirichlet,
        {
            OURS: lambda sources, limit: ends(min_local_dp(SourceSet(sources), budget)),
            "HAMMING Theorem 3": lambda sources, limit: folding_bounds(sources, budget).upper,
            **{f"{solver}, bisection": bisection(solver) for solver in LINEAR},
        },
        1e-6,
    )


def informations() -> Family:
    def make(n: int) -> MinInformation:
        return MinInformation(local_dp.dirichlet(n, 3), 0.3)

    def conic(solver: str) -> Program:
        return lambda problem, limit: float(problem.to_cvxpy().solve(solver=solver))

    return Family(
        "Least information for a set of sources",
        "n values, three distributions drawn from Dirichlet(1), Hamming distortion 0.3",
        "upper",
        (4, 8, 16, 32),
        make,
        {
            OURS: lambda problem, limit: ends(min_information(problem.sources, problem.budget)),
            **{solver: conic(solver) for solver in CONIC},
        },
        1e-6,
    )


def releases() -> Family:
    def make(n: int) -> ReleaseProblem:
        joint = np.random.default_rng(n).dirichlet(np.ones(64 * n)).reshape(4, n, 16)
        return release_lagrangian(joint, 0.5, 0.5)

    def conic(solver: str) -> Program:
        return lambda problem, limit: float(problem.to_cvxpy().solve(solver=solver))

    def algorithm_1(problem: ReleaseProblem, limit: float) -> float:
        return distortion_blahut_arimoto(problem.joint.array, 0.5, 0.5).value

    return Family(
        "Release under collusion",
        "4 requests, n histories, 16 datasets, both multipliers 0.5",
        "upper",
        (4, 8, 16, 32, 64),
        make,
        {
            OURS: lambda problem, limit: ends(problem.solve(time_limit=None)),
            "SEQUENTIAL Algorithm 1": algorithm_1,
            **{solver: conic(solver) for solver in CONIC},
        },
        1e-6,
    )


def vulnerabilities() -> Family:
    def theirs(case: Any, limit: float) -> float:
        import qif as program

        prior, channel, gain = case
        return float(program.measure.g_vuln.posterior(gain, prior, channel))

    def ours(case: Any, limit: float) -> tuple[float, float]:
        prior, channel, gain = case
        value = posterior_gain_vulnerability(channel, prior, gain)
        return value, value

    return Family(
        "Posterior g-vulnerability",
        "n inputs, n outputs and the prior drawn from Dirichlet(1), n actions",
        "lower",
        (8, 32, 128, 512),
        qif.dirichlet_case,
        {OURS: ours, "qif": theirs},
        1e-12,
    )


def refinements() -> Family:
    def make(n: int) -> Any:
        first, _, other = qif.sixteenths(n)
        return np.full(n, Fraction(1, n), dtype=object), first, other

    return Family(
        "Refinement gap",
        "n inputs, n outputs, entries that are sixteenths, uniform prior",
        "lower",
        (4, 8, 16),
        make,
        {
            OURS: lambda case, limit: ends(refinement_gap(*case)),
            "qif, exact": lambda case, limit: qif.metric(*case),
            "qif, in floats": lambda case, limit: qif.metric(*(x.astype(float) for x in case)),
        },
        1e-9,
    )


def guesses() -> Family:
    def ours(case: Case, limit: float) -> tuple[float, float]:
        options = {"gain": Guess(), "form": "posterior", "tol": _guesses.GAP, "time_limit": None}
        return ends(record_leakage(case.mechanism, case.floor, 0, **options))

    def every_guess(solver: str) -> Program:
        return lambda case, limit: _guesses.with_cvxpy(case, solver)

    return Family(
        "Worst adversary's chance of a right guess",
        "a count of n people rounded at random to base 3, entropy floor 0.95 n log 2",
        "lower",
        (6, 10, 14, 18, 22),
        lambda n: rounded_count(n, 0.95),
        {
            OURS: ours,
            "SCIP": _guesses.with_scip,
            **{f"{solver}, every guess": every_guess(solver) for solver in CONIC},
        },
        2e-4,
        relative=True,
    )


def real_outputs() -> Family:
    def ours(case: Case, limit: float) -> tuple[float, float]:
        return ends(record_leakage(case.mechanism, case.floor, 0, tol=1e-3, time_limit=None))

    def make(n: int) -> Case:
        mechanism = Mechanism(count(n), Gaussian(2))
        return Case(f"n = {n}", mechanism, 0.9 * mechanism.space.max_entropy)

    def on_a_grid(case: Case, limit: float) -> float:
        """Clamp the output to six standard deviations around the counts, in cells of 0.1."""
        n = len(case.mechanism.query.values) - 1
        edges = np.arange(-12, n + 12.05, 0.1)
        lumped = Mechanism(count(n), Gaussian(2).channel(range(n + 1), edges)).lumped(0)
        return joint_blahut_arimoto(lumped, case.floor).value

    return Family(
        "Audit of a real output",
        "a count of n people with Gaussian noise of standard deviation 2, "
        "entropy floor 0.9 n log 2",
        "lower",
        (2, 3, 4, 5, 6),
        make,
        {OURS: ours, "joint step, cells of 0.1": on_a_grid},
        1e-3,
        relative=True,
    )


def tables() -> Family:
    def ours(release: TableRelease, limit: float) -> tuple[float, float]:
        return ends(table_privacy(release, this_table=True).profile(_tables.EPSILON))

    return Family(
        "Privacy profile of a whole table",
        "an n by n table with margins, all numbers rounded at random to base 5: the largest delta "
        "at epsilon 0.5 over all moves of one person",
        "lower",
        (3, 5, 8, 12, 20),
        _tables.release,
        {OURS: ours, "dp_accounting": _tables.with_dp_accounting},
        1e-3,
        relative=True,
    )


FAMILIES: dict[str, Callable[[], Family]] = {
    "capacity": capacities,
    "audit": audits,
    "guess": guesses,
    "real-output": real_outputs,
    "design": designs,
    "rate-distortion": rate_distortion,
    "envelope": envelopes,
    "pml-mechanism": pml_designs,
    "local-dp": local_dp_families,
    "information": informations,
    "release": releases,
    "table": tables,
    "vulnerability": vulnerabilities,
    "refinement": refinements,
}
