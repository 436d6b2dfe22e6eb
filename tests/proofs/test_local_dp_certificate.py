"""Certificates about source sets: every number matters, and hostile proofs prove nothing false."""

import copy
import math
from fractions import Fraction

import numpy as np
import pytest
from flint import fmpq
from hypothesis import given, settings
from hypothesis import strategies as st

from cvxleak.core.errors import CertificateError
from cvxleak.kernel.numbers import precision
from cvxleak.local_dp import min_distortion_local_dp, min_information, min_local_dp
from cvxleak.measures import privacy_profile
from cvxleak.proofs import verify
from cvxleak.proofs.checker import PROVERS
from cvxleak.proofs.exact import normalized_rows
from cvxleak.proofs.local_dp import prove, prove_distortion, released_ratio
from cvxleak.sources import SourceSet
from tests.proofs.tampering import changed

TWO = [[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]]
BOX = SourceSet.box([0.4, 0.2, 0.1], [0.6, 0.4, 0.3])
STEPS = [[0, 1, 2], [1, 0, 1], [2, 1, 0]]

BOUNDS = {
    "pure": lambda: min_local_dp(TWO, 0.3),
    "polytope": lambda: min_local_dp(BOX, 0.25, STEPS),
    "approximate": lambda: min_local_dp(TWO, 0.3, delta=0.05),
    "converse": lambda: min_distortion_local_dp(TWO, 1.2),
    "approximate converse": lambda: min_distortion_local_dp(BOX, 1.2, delta=0.05),
    "information": lambda: min_information(TWO, 0.3),
    "information of a hull": lambda: min_information(SourceSet.hull(TWO), 0.3),
    "information of a box": lambda: min_information(BOX, 0.3),
}


def certificate(name):
    return BOUNDS[name]().certificate.to_dict()


def holds(content):
    """Whether the parts, whatever the hash, prove the claim."""
    prover = PROVERS[content["kind"]].prove
    try:
        with precision():
            lower, upper = prover(content["problem"], content["witness"], content["proof"])
    except CertificateError:
        return False
    claim = content["claim"]
    return lower >= float(claim["lower"]) and upper <= float(claim["upper"])


def places(value, path=()):
    if isinstance(value, dict):
        for key, part in value.items():
            yield from places(part, (*path, key))
    elif isinstance(value, list):
        for i, part in enumerate(value):
            yield from places(part, (*path, i))
    else:
        yield path


@pytest.mark.parametrize("name", BOUNDS)
def test_intact(name):
    content = certificate(name)
    assert holds(content)
    assert verify(content).passed


@pytest.mark.parametrize("name", BOUNDS)
def test_wrong_kinds_of_values_fail(name):
    content = certificate(name)
    for part in ("problem", "witness", "proof"):
        for path in places(content[part], (part,)):
            for change in (lambda v: True, lambda v: [v], lambda v: {"a": v}):
                assert not holds(changed(content, path, change)), path


@pytest.mark.parametrize("name", BOUNDS)
def test_missing_and_additional_parts_fail(name):
    content = certificate(name)
    for part in ("problem", "witness", "proof"):
        for key in list(content[part]):
            less = copy.deepcopy(content)
            del less[part][key]
            assert not holds(less), key
        more = copy.deepcopy(content)
        more[part]["more"] = 1.0
        assert not holds(more)


@pytest.mark.parametrize(
    ("sources", "distortion"),
    [(TWO, None), (SourceSet.box([0.1] * 3, [0.8] * 3), None), (TWO, [[0, 1], [0, 0], [1, 0]])],
)
def test_comparisons_at_an_infinite_epsilon(sources, distortion):
    """No finite epsilon at the least distortion; whatever else the numbers claim is refused."""
    bound = min_local_dp(sources, 0.0, distortion, delta=0.25)
    assert bound.lower == bound.upper == math.inf
    content = bound.certificate.to_dict()
    assert verify(content).passed
    assert content["proof"]["level"] == "inf"
    for path, value in [
        (("problem", "budget"), 1e-300),
        (("problem", "budget"), 0.01),
        (("problem", "delta"), 1.0),
        (("proof", "level"), 2.0),
        (("proof", "level"), 0.5),
        (("proof", "level"), "Infinity"),
    ]:
        assert not holds(changed(content, path, lambda v, to=value: to)), path
    for i, entry in enumerate(content["proof"]["comparisons"]):
        for y, v in enumerate(entry["multipliers"]):
            path = ("proof", "comparisons", i, "multipliers", y)
            assert not holds(changed(content, path, lambda v: v + 10.0))
            assert v >= 0
    # With a channel that gives the dear outputs no more than delta, it is 0.
    assert min_local_dp(sources, 0.0, distortion, delta=1.0).upper == 0


@pytest.mark.parametrize("name", ["pure", "converse"])
def test_every_number_of_a_tight_proof_matters(name):
    content = certificate(name)
    for part in ("witness", "proof"):
        for path in places(content[part], (part,)):
            if path[1] == "mixture":
                continue
            # A larger entry of the channel, a larger or a smaller potential (one is a fraction).
            for factor in (1.001, 0.999):
                moved = changed(
                    content, path, lambda v, f=factor: float(Fraction(v)) * f + (f - 1) * 0.1
                )
                assert not holds(moved)


@pytest.mark.parametrize("name", BOUNDS)
def test_a_better_claim_fails(name):
    content = certificate(name)
    for key, sign in (("lower", 1), ("upper", -1)):
        better = copy.deepcopy(content)
        better["claim"][key] += sign * 1e-4
        assert not holds(better)


@pytest.mark.parametrize("name", BOUNDS)
def test_another_problem_fails(name):
    content = certificate(name)
    end = "epsilon" if "epsilon" in content["problem"] else "budget"
    for factor in (0.9, 1.1):
        assert not holds(changed(content, ("problem", end), lambda v, f=factor: v * f))


def test_a_law_outside_of_its_polytope_fails():
    content = certificate("polytope")
    path = ("proof", "mixture", "members", 0, "law")
    for law in (
        ["1/3", "1/3", "1/3"],
        ["1/2", "1/2", "0"],
        ["0.5", "0.3", "0.2"],
        ["1/0", "1", "0"],
    ):
        assert not holds(changed(content, path, lambda v, law=law: law))


@settings(max_examples=60)
@given(st.integers(0, 10_000))
def test_random_proofs_never_prove_too_much(seed):
    rng = np.random.default_rng(seed)
    bound = min_local_dp(TWO, 0.3)
    content = bound.certificate
    law = rng.dirichlet(np.ones(2) * 0.5)
    v = rng.normal(0.1, 0.2, size=3) * rng.integers(0, 2, size=3)
    proof = {"mixture": {"weights": law.tolist(), "members": []}, "potentials": v.tolist()}
    try:
        assert prove(content.problem, content.witness, proof)[0] <= bound.upper
    except CertificateError:
        pass
    converse = min_distortion_local_dp(TWO, 1.2)
    try:
        parts = converse.certificate
        assert prove_distortion(parts.problem, parts.witness, proof)[0] <= converse.upper
    except CertificateError:
        pass


def test_a_column_without_any_cost_proves_nothing():
    # Potentials equal to the costs of the constant first output: epsilon 0 is possible.
    problem = {
        "sources": SourceSet([[0.5, 0.5]]).parts_to_list(),
        "distortion": [[0.5, 1.0], [0.5, 1.0]],
        "delta": 0.0,
        "budget": 0.5,
    }
    witness = {"channel": [[1.0, 0.0], [1.0, 0.0]], "supports": []}
    proof = {"mixture": {"weights": [1.0], "members": []}, "potentials": [0.25, 0.25]}
    assert prove(problem, witness, proof) == (0.0, 0.0)


@settings(max_examples=40)
@given(st.integers(0, 10_000))
def test_released_ratio_is_where_the_profile_meets_delta(seed):
    rng = np.random.default_rng(seed)
    rows = rng.dirichlet(np.ones(4) * 0.7, size=3)
    exact = [[fmpq(*float(q).as_integer_ratio()) for q in row] for row in rows]
    delta = fmpq(1, int(rng.integers(2, 40)))
    ratio = released_ratio(exact, delta)
    assert ratio is not None
    epsilon = math.log(float(ratio))
    size = float(delta)
    assert privacy_profile(rows, epsilon) <= size + 1e-12
    if epsilon > 0:
        assert privacy_profile(rows, epsilon * (1 - 1e-6)) >= size - 1e-9


def test_zero_beside_a_positive_entry():
    assert released_ratio([[fmpq(1), fmpq(0)], [fmpq(1, 2), fmpq(1, 2)]], fmpq(0)) is None
    assert released_ratio([[fmpq(1), fmpq(0)], [fmpq(1, 2), fmpq(1, 2)]], fmpq(1, 4)) is None
    assert released_ratio([[fmpq(1), fmpq(0)], [fmpq(1, 2), fmpq(1, 2)]], fmpq(1, 2)) == 1


def jump():
    """Return a proof that needs rational numbers: D next to 1 - p, so that epsilon jumps."""
    budget = Fraction(3, 10) - Fraction(1, 10**17)
    return min_local_dp([[0.7, 0.2, 0.1]], budget).certificate.to_dict()


def test_fractions_are_read_strictly():
    content = jump()
    assert holds(content)
    assert any(isinstance(v, str) for v in content["proof"]["potentials"])
    for path in [("proof", "potentials", 1), ("proof", "mixture", "weights", 0)]:
        for text in ("0.2", "1/0", "1e-1", "", "--1", "1/-2", "+1", "\u0661", "nan", " 1", "1/2/3"):
            assert not holds(changed(content, path, lambda v, text=text: text)), (path, text)
    for factor in (fmpq(999999, 1000000), fmpq(1000001, 1000000)):
        for i in (1, 2):
            path = ("proof", "potentials", i)
            more = changed(
                content, path, lambda v, f=factor: str(fmpq(*map(int, v.split("/"))) * f)
            )
            assert not holds(more)


def test_potentials_beyond_the_budget_pass_over_columns_without_cost():
    # v_x = p_x d(x, 0) for a constant output 0 that costs more than the budget, exactly.
    content = jump()
    (p,) = normalized_rows([[0.7, 0.2, 0.1]])
    proof = {
        "mixture": {"weights": [1.0], "members": []},
        "potentials": ["0", str(p[1]), str(p[2])],
    }
    lower, _ = prove(content["problem"], content["witness"], proof)
    assert lower == pytest.approx(math.log(p[0] / p[1]), abs=1e-12)
    # At the budget itself the same potentials prove nothing.
    just = dict(content["problem"], budget=0.25)
    just["sources"] = SourceSet([[0.75, 0.15, 0.1]]).parts_to_list()
    (q,) = normalized_rows([[0.75, 0.15, 0.1]])
    rest = {**proof, "potentials": ["0", str(q[1]), str(fmpq(1, 4) - q[1])]}
    flat = {"channel": [[1.0, 0.0, 0.0]] * 3, "supports": []}
    if 1 - q[0] <= fmpq(1, 4):
        assert prove(just, flat, rest)[0] == 0.0


@pytest.mark.parametrize("kind", ["epsilon", "distortion", "information"])
def test_empty_polytopes_are_refused(kind):
    make = {
        "epsilon": lambda s: min_local_dp(s, 0.3),
        "distortion": lambda s: min_distortion_local_dp(s, 1.0),
        "information": lambda s: min_information(s, 0.3),
    }[kind]
    crossed = [
        ("lower", [0.7, 0.2, 0.1], "a lower bound is above"),
        ("lower", [0.6, 0.4, 0.3], "no distribution meets"),
        ("upper", [0.4, 0.2, 0.1], "no distribution meets"),
    ]
    content = make(BOX).certificate.to_dict()
    prover = PROVERS[content["kind"]].prove
    for key, bounds, text in crossed:
        path = ("problem", "sources", 0, "polytopes", 0, key)
        bad = changed(content, path, lambda v, bounds=bounds: bounds)
        with pytest.raises(CertificateError, match=text), precision():
            prover(bad["problem"], bad["witness"], bad["proof"])
    # Beside further inequalities a member shows that there is one.
    order = SourceSet.polytope([[-1, 1, 0], [0, -1, 1]], [0.0, 0.0])
    content = make(order).certificate.to_dict()
    assert holds(content)
    path = ("witness", "supports", 0, "member")
    for member in (None, ["1/3", "1/3", "1/4"], ["1/4", "1/4", "1/2"], ["2", "-1", "0"]):
        assert not holds(changed(content, path, lambda v, member=member: member))
    empty = changed(
        content, ("problem", "sources", 0, "polytopes", 0, "bound"), lambda v: [-2.0, -2.0]
    )
    assert not holds(empty)
