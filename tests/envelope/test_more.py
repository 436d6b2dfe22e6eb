"""The curve, repeated releases, and the best mechanism under epsilon-PML."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from cvxleak.core.errors import ValidationError
from cvxleak.envelope import (
    FailureProbability,
    PMLEnvelope,
    PMLMechanism,
    composition_bound,
    envelope_curve,
    envelope_upper_bound,
    optimal_pml_mechanism,
    pml_envelope,
    release_types,
    repeated_releases,
    response_envelope,
)
from cvxleak.measures import (
    max_information,
    maximal_leakage,
    mutual_information,
    pml_failure_probability,
    psi_1,
    psi_2,
)
from cvxleak.mechanisms import pml_extremal, randomized_response
from cvxleak.model import Channel
from cvxleak.problem.bound import Status
from cvxleak.proofs import verify


@pytest.mark.parametrize("seed", range(4))
def test_curve_holds_everywhere_and_is_narrow(seed):
    rng = np.random.default_rng(seed)
    n, m = rng.integers(2, 7, size=2)
    prior, rows = rng.dirichlet(np.ones(n)), rng.dirichlet(np.ones(m), size=n)
    curve = envelope_curve(prior, rows, tol=1e-5)
    assert curve.gap <= 1e-5
    delta = np.concatenate([[0.0, 1.0], rng.random(25), curve.plateaus.ravel().clip(0, 1)])
    lower, upper = curve.at(delta)
    assert (upper - lower <= curve.gap + 1e-11).all()
    for d, low, high in zip(delta, lower, upper, strict=True):
        exact = pml_envelope(prior, rows, float(d))
        assert low <= exact.upper + 1e-9
        assert high >= exact.lower - 1e-9
    order = np.linspace(0, 1, 2001)
    for end in curve.at(order):
        assert (np.diff(end) <= 1e-9).all()


@pytest.mark.parametrize("k", [2, 3, 6])
def test_curve_of_randomized_response_is_sharp(k):
    rng = np.random.default_rng(k)
    prior = rng.dirichlet(np.ones(k))
    curve = envelope_curve(prior, randomized_response(k, 1.0))
    delta = np.linspace(0, 1, 301)
    lower, upper = curve.at(delta)
    exact = response_envelope(prior, 1.0, delta)
    assert (lower <= exact + 1e-9).all()
    assert (upper >= exact - 1e-9).all()
    assert (upper - lower).max() <= 1e-6


def test_curve_without_variation_and_without_time():
    curve = envelope_curve([0.2, 0.3, 0.5], pml_extremal([0.2, 0.3, 0.5], 0.1))
    lower, upper = curve.at([0.0, 0.5, 1.0])
    assert lower == pytest.approx(0.1, abs=1e-9)
    assert upper == pytest.approx(0.1, abs=1e-9)
    assert envelope_curve([0.5, 0.5], [[0.5, 0.5]] * 2).at(0.5)[1] < 1e-9
    rng = np.random.default_rng(1)
    prior, rows = np.full(8, 1 / 8), rng.dirichlet(np.ones(8), size=8)
    hasty = envelope_curve(prior, rows, time_limit=0.0)
    for delta in (0.1, 0.6):
        exact = pml_envelope(prior, rows, delta)
        lower, upper = hasty.at(delta)
        assert lower <= exact.upper + 1e-9
        assert exact.lower <= upper + 1e-9
    assert float(upper - lower) <= hasty.gap + 1e-9
    with pytest.raises(ValidationError, match="tol"):
        envelope_curve(prior, rows, tol=0.0)
    with pytest.raises(ValidationError, match="delta"):
        hasty.at(2.0)


def sequences(channel, releases):
    """Return the channel to the sequence of outputs, without types."""
    result = channel
    for _ in range(releases - 1):
        result = result.product(channel)
    return result


@pytest.mark.parametrize("releases", [1, 2, 4])
def test_types_leak_what_sequences_leak(releases):
    rng = np.random.default_rng(releases)
    prior = rng.dirichlet(np.ones(3))
    channel = Channel(rng.dirichlet(np.ones(3), size=3))
    for delta in (0.01, 0.2, 0.8):
        types = repeated_releases(prior, channel, releases, delta)
        whole = pml_envelope(prior, sequences(channel, releases), delta)
        assert types.lower == pytest.approx(whole.lower, abs=1e-8)
        assert types.upper <= composition_bound(prior, [channel] * releases, delta) + 1e-9


def test_types_are_counted_and_refused():
    types = release_types([[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]], 4)
    assert len(types.outputs) == math.comb(6, 2)
    law = dict(zip(types.outputs, types.matrix[0], strict=True))
    for counts in ((4, 0, 0), (1, 1, 2)):
        ways = sum(
            tuple(sequence.count(y) for y in range(3)) == counts
            for sequence in product(range(3), repeat=4)
        )
        chance = ways * np.prod(np.power([0.5, 0.3, 0.2], counts))
        assert law[counts] == pytest.approx(chance, rel=1e-12)
    # Proportional outputs are merged first.
    assert len(release_types([[0.25, 0.25, 0.5], [0.4, 0.4, 0.2]], 9).outputs) == 10
    with pytest.raises(ValidationError, match="makes 176851 types of 4 outputs"):
        release_types(randomized_response(4, 1.0), 100)
    with pytest.raises(ValidationError, match="releases"):
        release_types(np.eye(2), 0)


def test_leakage_of_many_releases_tends_to_that_of_the_secret():
    prior = [0.2, 0.3, 0.5]
    bound = repeated_releases(prior, randomized_response(3, 1.0), 200, 0.1)
    assert bound.gap < 1e-9
    secret = pml_envelope(prior, np.eye(3), 0.1)
    assert bound.upper <= secret.upper + 1e-9
    assert bound.lower > secret.lower - 0.05


@pytest.mark.parametrize("seed", range(6))
def test_best_mechanism(seed):
    rng = np.random.default_rng(seed)
    n, m = rng.integers(2, 6, size=2)
    prior, utility = rng.dirichlet(np.ones(n)), rng.normal(size=(n, m))
    if seed == 0:
        prior[0] = 0.0
        prior /= prior.sum()
    statement = PMLMechanism(prior, utility, rng.uniform(0.05, 1))
    bound = statement.solve()
    assert bound.gap < 1e-8
    assert verify(bound.certificate).passed
    assert bound.lower == pytest.approx(statement.to_cvxpy().solve(solver="HIGHS"), abs=1e-7)
    assert max_information(bound.witness, prior) <= statement.epsilon + 1e-12
    check = statement.check(bound.witness, bound=bound)
    assert check.feasible
    assert abs(check.shortfall[0]) < 1e-8
    # The envelope of what leaks epsilon at most is epsilon at most.
    assert pml_envelope(prior, bound.witness, 0.2).upper <= statement.epsilon + 1e-9


@pytest.mark.parametrize("epsilon", [0.02, 0.1, 0.2])
def test_extremal_mechanism_is_optimal_for_its_tangent(epsilon):
    prior = np.array([0.2, 0.3, 0.5])
    mechanism = pml_extremal(prior, epsilon)
    utility = np.log(mechanism.matrix / prior)
    bound = optimal_pml_mechanism(prior, utility, epsilon)
    assert bound.upper == pytest.approx(mutual_information(mechanism, prior), abs=1e-9)


@pytest.mark.parametrize(
    ("epsilon_r", "best"), [(0.25, 0.5), (0.5, 0.552), (1.0, 0.7175), (2.0, 0.804)]
)
def test_randomized_response_at_an_equal_envelope_is_no_better(epsilon_r, best):
    """The table of the page on the envelope of randomized response."""
    prior = np.array([0.2, 0.3, 0.5])
    response = randomized_response(3, epsilon_r)
    level = pml_envelope(prior, response, 0.5).lower
    bound = optimal_pml_mechanism(prior, np.eye(3), level)
    assert bound.lower == pytest.approx(best, abs=6e-5)
    assert bound.lower > float(prior @ np.diag(response.matrix)) + 0.01
    assert pml_envelope(prior, bound.witness, 0.5).upper <= level + 1e-9


def test_mechanism_without_leakage_and_without_a_bound():
    prior, utility = [0.3, 0.7], [[1.0, 0.0], [0.0, 1.0]]
    none = optimal_pml_mechanism(prior, utility, 0.0)
    assert none.lower == pytest.approx(0.7)
    assert none.upper == pytest.approx(0.7)
    assert optimal_pml_mechanism(prior, utility, 5.0).lower == pytest.approx(1.0)
    check = PMLMechanism(prior, utility, 0.1).check(np.eye(2))
    assert not check.feasible
    for arguments, name in (
        ((prior, [[1.0, 0.0]], 0.1), "prior"),
        ((prior, [[1.0], [math.inf]], 0.1), "utility"),
        ((prior, utility, -1.0), "epsilon"),
        ((prior, utility, 0.1, ["a"]), "outputs"),
    ):
        with pytest.raises(ValidationError, match=name):
            PMLMechanism(*arguments)
    with pytest.raises(ValidationError, match="candidate"):
        PMLMechanism(prior, utility, 0.1).check(np.eye(3))


def test_maximal_leakage_of_types_bounds_the_envelope():
    prior, channel = [0.5, 0.5], randomized_response(2, 0.5)
    types = release_types(channel, 20)
    assert maximal_leakage(types, prior) < 20 * maximal_leakage(channel, prior)
    assert repeated_releases(prior, channel, 20, 0.1).upper <= envelope_upper_bound(
        prior, types, 0.1
    )


@pytest.mark.parametrize("epsilon", [34.6, 700.0, 1000.0])
def test_mechanism_under_a_bound_beyond_all_leakages(epsilon):
    for prior in ([0.2, 0.3, 0.5], [1e-13, 0.3, 0.7 - 1e-13]):
        bound = optimal_pml_mechanism(prior, np.eye(3), epsilon)
        assert bound.gap < 1e-9
        assert bound.lower == pytest.approx(1)
        assert verify(bound.certificate).passed


def test_candidates_with_foreign_labels_are_refused():
    channel = Channel([[0.8, 0.2], [0.3, 0.7]], ["x", "y"], ["up", "down"])
    statement = PMLEnvelope([0.3, 0.7], channel, 0.6)
    swapped = Channel([[0.0, 1.0], [1.0, 0.0]], ["down", "up"])
    assert statement.check(swapped).value == pytest.approx(statement.check(np.eye(2)).value)
    with pytest.raises(ValidationError, match="candidate"):
        statement.check(Channel(np.eye(2)))


def test_strict_may_come_from_numpy():
    statement = FailureProbability([0.3, 0.7], [[0.8, 0.2], [0.3, 0.7]], 0.4, strict=np.bool_(True))
    assert statement.strict is True
    assert verify(statement.solve().certificate).passed


@pytest.mark.parametrize("releases", [10, 1000, 10_000])
def test_accuracy_of_types(releases):
    rows = [[0.75, 0.25], [0.1, 0.9]]
    types = release_types(rows, releases)
    for c in (0, releases // 10, releases // 2, releases):
        ways = math.comb(releases, c)
        for x, (a, b) in enumerate(rows):
            exact = ways * Fraction(a) ** c * Fraction(b) ** (releases - c)
            found = types.matrix[x, types.outputs.index((c, releases - c))]
            if exact > 1e-290:
                error = 1e-14 + 1e-15 * releases * math.log(releases)
                assert float(Fraction(float(found)) / exact) == pytest.approx(1, rel=error)


@pytest.mark.parametrize("seed", range(6))
def test_coarse_curve_holds_between_its_nodes(seed: int) -> None:
    """Where prices fall while others rise as well; a coarse bracket hides nothing."""
    rng = np.random.default_rng(seed)
    n, m = rng.integers(8, 20, size=2)
    prior, rows = rng.dirichlet(np.ones(n)), rng.dirichlet(np.full(m, 0.5), size=n)
    curve = envelope_curve(prior, rows, tol=[0.1, 0.01, 1e-3][seed % 3])
    assert curve.gap <= curve.tol
    for delta in rng.random(12).tolist():
        bound, (lower, upper) = pml_envelope(prior, rows, delta), curve.at(delta)
        assert lower - 1e-11 <= bound.upper
        assert upper + 1e-11 >= bound.lower


@pytest.mark.parametrize("size", [20, 50])
def test_interior_points_and_simplex_agree(size: int, monkeypatch) -> None:
    utility, prior = np.random.default_rng(0).random((size, size)), np.full(size, 1 / size)
    ends = []
    for large in (0, 10**9):
        monkeypatch.setattr("cvxleak.envelope.optimal.LARGE", large)
        bound = optimal_pml_mechanism(prior, utility, 1.0)
        assert bound.gap < 1e-10
        assert verify(bound.certificate).passed
        ends.append(bound.lower)
    assert ends[0] == pytest.approx(ends[1], abs=1e-10)


def test_masses_far_below_the_smallest_that_a_solver_sees() -> None:
    """The first output tells the first input, but with 1e-300 only."""
    prior, rows = [0.5, 0.5], [[1e-300, 1.0], [0.0, 1.0]]
    curve = envelope_curve(prior, rows)
    assert curve.status is Status.CERTIFIED
    assert curve.stats["levels"] < 100
    # Output 0 has mass 5e-301; topped up to delta it is at level 1 + 5e-301 / delta.
    for delta, exact in ((0.0, 2), (1e-300, 1.5), (1e-299, 1.05), (1e-20, 1), (1e-3, 1), (1, 1)):
        bound = pml_envelope(prior, rows, delta)
        assert bound.status is Status.CERTIFIED
        assert verify(bound.certificate).passed
        lower, upper = curve.at(delta)
        for low, high, slack in ((bound.lower, bound.upper, 1e-10), (lower, upper, 1e-6)):
            assert low <= math.log(exact) + 1e-11
            assert high >= math.log(exact) - 1e-11
            assert high - low <= slack


def test_curve_of_a_channel_with_entries_of_many_sizes() -> None:
    """The solver's tolerance exceeds the masses near the top; halving would not end."""
    prior = [0.9994361438603012, 0.00011566332236018062, 0.0004481928173386896]
    rows = [
        [0.001369161, 7.818280041e-13, 0.21133618, 0.784034785, 2.78628e-05, 0.003232011],
        [3.967243426e-14, 9.4245957e-05, 0.000711949, 0.999189095, 1.14016e-06, 3.57068e-06],
        [0.002765688, 5.473494918e-08, 5.13722e-06, 2.0848549e-07, 0.054164893, 0.943064018],
    ]
    rows /= np.sum(rows, axis=1, keepdims=True)
    curve = envelope_curve(prior, rows)
    assert curve.status is Status.CERTIFIED
    for delta in np.geomspace(1e-14, 1, 15).tolist():
        bound, (lower, upper) = pml_envelope(prior, rows, delta), curve.at(delta)
        assert bound.gap < 1e-8
        assert lower - 1e-11 <= bound.upper
        assert upper + 1e-11 >= bound.lower


def test_a_symbol_of_tiny_mass_is_topped_up() -> None:
    """An erasure channel; its rarest input has probability 1e-12."""
    rows = np.hstack([np.eye(3) * 0.35, np.full((3, 1), 0.65)])
    prior, delta = [0.3, 0.7 - 1e-12, 1e-12], 6.3e-13
    bound = pml_envelope(prior, rows, delta)
    own = 0.35e-12  # all of output 2 is at level 1e12, all others at 0 or, the last one, at 1
    assert bound.gap < 1e-9
    assert bound.lower == pytest.approx(math.log((own * 1e12 + (delta - own)) / delta), abs=1e-9)
    assert verify(bound.certificate).passed


@pytest.mark.parametrize("delta", [1 - 1e-16, 1.0])
@pytest.mark.parametrize("seed", range(5))
def test_without_ties_all_outputs_are_used_up_at_one(seed: int, delta: float) -> None:
    rng = np.random.default_rng(seed)
    prior, rows = [0.0, 0.4, 0.6], rng.dirichlet(np.ones(4), size=3)
    bound, tied = pml_envelope(prior, rows, delta, tie=0.0), pml_envelope(prior, rows, delta)
    assert bound.gap < 1e-9
    assert bound.upper == pytest.approx(tied.upper, abs=1e-10)
    assert verify(bound.certificate).passed
    assert (bound.witness.matrix[:, -1] == 0).all()  # nothing is left over


@pytest.mark.parametrize("strict", [True, False])
def test_nothing_leaks_infinitely_much(strict: bool) -> None:
    prior, rows = [0.3, 0.7], [[0.8, 0.2, 0], [0.3, 0.7, 0]]
    statement = FailureProbability(prior, rows, math.inf, strict=strict)
    bound = statement.solve()
    assert (bound.lower, bound.upper) == (0, 0)
    assert verify(bound.certificate).passed
    assert statement.to_cvxpy().solve(solver="HIGHS") == pytest.approx(0, abs=1e-9)
    assert pml_failure_probability(rows, prior, math.inf, strict=strict) == 0
    assert psi_1(rows, prior, math.inf) == psi_2(rows, prior, math.inf) == 0


def test_curve_keeps_its_promise_when_time_runs_out() -> None:
    """A stretch that is not split any more has its own growth, not a bound of it."""
    rng = np.random.default_rng(3)
    prior, rows = np.full(6, 1 / 6), rng.dirichlet(np.ones(6), size=6)
    exact = envelope_curve(prior, rows)
    delta = np.linspace(0.0, 1.0, 201)
    for limit in (0.0, 1e-3, 1e-2):
        lower, upper = envelope_curve(prior, rows, time_limit=limit).at(delta)
        assert (lower <= exact.at(delta)[1] + 1e-9).all()
        assert (upper >= exact.at(delta)[0] - 1e-9).all()
