"""Audits and capacities of random mechanisms, degenerate ones included, against search by force.

The search knows nothing of the audit: it draws priors, mixes in the uniform one as far as the floor
needs, and climbs by random steps. What it attains must lie below every proved upper end.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import entr

from cvxleak.audit import RecordLeakage
from cvxleak.capacities import Capacity
from cvxleak.measures import lumped_entropy, lumped_information
from cvxleak.model import Lumped, Mechanism, RecordSpace
from cvxleak.problem.bound import Bound, Status
from cvxleak.proofs import verify
from cvxleak.queries import count, modular_sum, pair_sum
from tests.fuzzing import many

TOL = 1e-3
# Repeated are those that a mistake is likelier to show in.
STYLES = (*("dirichlet", "sparse", "tiny") * 3, "certain", "equal", "near")
SHAPES = (
    (1,),
    (3,),
    (1, 2),
    (2, 1, 2),
    *((2,), (2, 2), (3, 2), (2, 2, 2), (2, 3, 2), (2,) * 4) * 2,
)
OUTPUTS = (1, 2, 2, 3, 3, 3, 4, 4)
SHARES = st.one_of(
    st.sampled_from([0.0, 1.0, 1 - 1e-9, 1 - 1e-4, 1e-9]),
    *[st.integers(1, 999).map(lambda thousandths: thousandths / 1000)] * 4,
)
SEEDS = st.integers(0, 2**32 - 1)
ENTROPY_ROUNDING = 1e-14


def random_rows(rng: np.random.Generator, style: str, size: int, outputs: int) -> np.ndarray:
    rows = rng.dirichlet(np.full(outputs, 0.7), size=size)
    if style == "sparse":
        rows = rows * (rng.random(rows.shape) < 0.5)
        rows[np.arange(size), rng.integers(outputs, size=size)] += 0.1
    elif style == "certain":
        rows = np.eye(outputs)[rng.integers(outputs, size=size)]
    elif style == "equal":
        rows = rows[rng.integers(min(2, size), size=size)]
    elif style == "tiny":
        rows = rows * 10.0 ** -rng.integers(0, 300, size=rows.shape)
        rows[np.arange(size), rng.integers(outputs, size=size)] += 1.0
    elif style == "near":
        rows = rows[:1] + 1e-7 * rows
    return rows / rows.sum(axis=1, keepdims=True)


@st.composite
def channels(draw: st.DrawFn) -> Mechanism:
    """A mechanism on its whole record space."""
    shape, style = draw(st.sampled_from(SHAPES)), draw(st.sampled_from(STYLES))
    rng, outputs = np.random.default_rng(draw(SEEDS)), draw(st.sampled_from(OUTPUTS))
    rows = random_rows(rng, style, math.prod(shape), outputs)
    return Mechanism.from_channel(RecordSpace([range(n) for n in shape]), rows)


@st.composite
def sums(draw: st.DrawFn) -> Mechanism:
    """A mechanism about a sum over binary records."""
    n = draw(st.sampled_from((1, 2, 2, 3, 3, 4, 5, 6)))
    query = draw(st.sampled_from([count(n), modular_sum(n, 2), modular_sum(n, 3), pair_sum(n)]))
    rng, style = np.random.default_rng(draw(SEEDS)), draw(st.sampled_from(STYLES))
    return Mechanism(
        query, random_rows(rng, style, len(query.values), draw(st.sampled_from(OUTPUTS)))
    )


def values_and_entropies(weights: np.ndarray, lumped: Lumped) -> tuple[np.ndarray, np.ndarray]:
    """I(A;Y) and H(X) of lumped priors, shape (S, N), in plain NumPy."""
    cells = weights[:, :, None] * lumped.rows
    joint = np.add.reduceat(cells, lumped.starts, axis=1)
    own, output = joint.sum(axis=2), joint.sum(axis=1)
    information = entr(own).sum(axis=1) + entr(output).sum(axis=1) - entr(joint).sum(axis=(1, 2))
    return information, entr(weights).sum(axis=1) + weights @ lumped.log_multiplicity


def feasible(weights: np.ndarray, lumped: Lumped, floor: float) -> np.ndarray:
    """Mix in the uniform prior, by bisection, until the floor is met."""
    low, high = np.zeros(len(weights)), np.ones(len(weights))
    uniform = lumped.uniform()
    good = values_and_entropies(weights, lumped)[1] >= floor
    for _ in range(30):
        middle = (low + high) / 2
        mixed = (1 - middle)[:, None] * weights + middle[:, None] * uniform
        enough = values_and_entropies(mixed, lumped)[1] >= floor
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    share = np.where(good, 0.0, high)
    return (1 - share)[:, None] * weights + share[:, None] * uniform


def forced(lumped: Lumped, floor: float, rng: np.random.Generator) -> float:
    """The best of many priors, then of many random steps from the best few."""
    size = len(lumped.multiplicities)
    # Near log|X| a nat of doubt costs 10^4 nats and more of leakage: what rounding adds to an
    # entropy has to be paid for.
    floor += ENTROPY_ROUNDING * (1 + floor)
    drawn = [rng.dirichlet(np.full(size, a), size=100) for a in (0.05, 0.3, 1.0)]
    # One context for each value: the optimum without a floor is of this kind.
    places = [
        rng.integers(first, last, size=100)
        for first, last in zip(lumped.starts, [*lumped.starts[1:], size], strict=True)
    ]
    corner = np.zeros((100, size))
    masses = rng.dirichlet(np.ones(len(places)), size=100)
    for a, place in enumerate(places):
        corner[np.arange(100), place] = masses[:, a]
    weights = feasible(np.concatenate([*drawn, corner]), lumped, floor)
    for step in 0.5 ** np.arange(1, 25):
        values = values_and_entropies(weights, lumped)[0]
        best = weights[np.argsort(values)[-8:]]
        moved = np.repeat(best, 12, axis=0)
        moved = moved * np.exp(step * rng.standard_normal(moved.shape)) + 0.1 * step**2 * (
            rng.random(moved.shape) < 0.1
        )
        moved = feasible(moved / moved.sum(axis=1, keepdims=True), lumped, floor)
        weights = np.concatenate([best, moved])
    values, entropies = values_and_entropies(weights, lumped)
    # The uniform prior meets every floor. Sums that cancel leave some 1e-16 of rounding.
    least = float(values_and_entropies(lumped.uniform()[None], lumped)[0][0])
    return max(float(values[entropies >= floor].max(initial=least)), 0.0)


def check_bracket(problem: RecordLeakage, bound: Bound, attained: float) -> None:
    assert 0 <= bound.lower <= bound.upper
    assert attained <= bound.upper + 1e-12
    answer = verify(bound.certificate)
    assert answer.passed, answer.reason
    witness = bound.witness
    assert lumped_entropy(witness.weights, witness.lumped) >= problem.entropy_floor - 1e-9
    leakage = lumped_information(witness.weights, witness.lumped)
    assert leakage == pytest.approx(bound.lower, rel=1e-9, abs=1e-9)
    if bound.status is Status.CERTIFIED:
        assert bound.upper - bound.lower <= max(TOL * bound.upper, 1e-7)


def check_audit(mechanism: Mechanism, share: float, seed: int) -> None:
    """One audit, its refinement, and what it says when there is no time."""
    rng = np.random.default_rng(seed)
    records = mechanism.space.records
    size = int(rng.integers(1, min(records, 2) + 1))
    floor = share * mechanism.space.max_entropy
    problem = RecordLeakage(mechanism, floor, size=size)
    attained = max(
        forced(mechanism.lumped(group if size > 1 else group[0]), floor, rng)
        for group in mechanism.groups(size)
    )
    hurried = problem.solve(tol=TOL, time_limit=0.0, rng=0)
    check_bracket(problem, hurried, attained)
    bound = problem.solve(tol=TOL, time_limit=1.0, rng=int(rng.integers(2**31)))
    check_bracket(problem, bound, attained)
    assert bound.lower <= hurried.upper + 1e-12
    assert hurried.lower <= bound.upper + 1e-12
    if rng.random() < 0.25:
        finer = bound.refine(TOL / 10, 1.0)
        check_bracket(problem, finer, attained)
        assert finer.lower >= bound.lower - 1e-12
        assert finer.upper <= bound.upper + 1e-12


def check_capacity(mechanism: Mechanism, seed: int) -> None:
    matrix = mechanism.to_channel().matrix
    bound = Capacity(matrix).solve()
    answer = verify(bound.certificate)
    assert answer.passed, answer.reason
    assert 0 <= bound.lower <= bound.upper
    laws = np.random.default_rng(seed).dirichlet(np.full(len(matrix), 0.5), size=1000)
    values = entr(laws @ matrix).sum(axis=1) - laws @ entr(matrix).sum(axis=1)
    assert values.max() <= bound.upper + 1e-12
    assert bound.upper <= math.log(min(matrix.shape)) + 1e-9
    assert bound.upper - bound.lower <= 1e-7


def test_a_value_that_the_worst_adversary_rules_out():
    # The fuzz found it: the middle row is a mixture of the others, so its value gets no weight.
    mechanism = Mechanism.from_channel(RecordSpace([range(3)]), [[1, 0], [0.25, 0.75], [0, 1]])
    check_audit(mechanism, 0.0, 0)


def test_a_search_by_force_does_not_live_on_rounding():
    # The fuzz found it: a billionth below log|X| the search won 1e-12 nats by rounding.
    rows = [[0.12483824, 0.87516176], [0.0760526, 0.9239474], [0.99823202, 0.00176798]]
    check_audit(Mechanism.from_channel(RecordSpace([range(3)]), rows), 1 - 1e-9, 0)


@given(st.one_of(channels(), sums()), SHARES, SEEDS)
@many(25)
def test_some_audits(mechanism: Mechanism, share: float, seed: int):
    check_audit(mechanism, share, seed)


@given(st.one_of(channels(), sums()), SEEDS)
@many(50)
def test_some_capacities(mechanism: Mechanism, seed: int):
    check_capacity(mechanism, seed)


@pytest.mark.slow
@given(channels(), SHARES, SEEDS)
@many(3000)
def test_many_audits_of_channels(mechanism: Mechanism, share: float, seed: int):
    check_audit(mechanism, share, seed)


@pytest.mark.slow
@given(sums(), SHARES, SEEDS)
@many(3000)
def test_many_audits_of_sums(mechanism: Mechanism, share: float, seed: int):
    check_audit(mechanism, share, seed)


@pytest.mark.slow
@given(st.one_of(channels(), sums()), SEEDS)
@many(3000)
def test_many_capacities(mechanism: Mechanism, seed: int):
    check_capacity(mechanism, seed)
