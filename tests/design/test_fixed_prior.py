import pickle

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cvxleak.constraints import local_dp, mi_budget
from cvxleak.core.errors import InfeasibleError, ValidationError
from cvxleak.design.fixed_prior import DesignForPrior, design_for_prior
from cvxleak.measures import (
    expected_distortion,
    local_dp_epsilon,
    maximal_leakage,
    mutual_information,
)
from cvxleak.model import Channel, Distortion, Prior
from cvxleak.problem.bound import Status, Stopped
from cvxleak.proofs import verify


def h(p):
    return -p * np.log(p) - (1 - p) * np.log(1 - p)


HAMMING = Distortion.hamming([0, 1])


def test_the_rate_distortion_function_of_a_bit_both_ways():
    bound = design_for_prior([0.3, 0.7], HAMMING, 0.1)
    truth = h(0.3) - h(0.1)
    assert bound.status is Status.CERTIFIED
    assert bound.lower <= truth <= bound.upper
    assert bound.gap <= 1e-8
    assert bound.shadow_prices["budget"] == pytest.approx(-np.log(9), rel=1e-6)
    back = design_for_prior([0.3, 0.7], HAMMING, truth, minimize="distortion")
    assert back.lower <= 0.1 <= back.upper + 1e-12
    assert back.shadow_prices["budget"] == pytest.approx(-1 / np.log(9), rel=1e-6)
    both = design_for_prior([0.3, 0.7], HAMMING, slope=np.log(9))
    assert both.lower <= truth + 0.1 * np.log(9) <= both.upper + 1e-12
    assert both.shadow_prices["slope"] == pytest.approx(0.1, abs=1e-6)


@settings(deadline=None, max_examples=15)
@given(st.integers(0, 10**6))
def test_the_witness_is_feasible_and_the_ends_are_in_order(seed):
    rng = np.random.default_rng(seed)
    n, m = (int(size) for size in rng.integers(2, 8, 2))
    p = Prior(rng.dirichlet(np.ones(n)))
    d = Distortion(np.round(rng.random((n, m)), 2))
    low, high = p.probabilities @ d.matrix.min(axis=1), (p.probabilities @ d.matrix).min()
    budget = float(low + rng.uniform(0.01, 1.2) * (high - low))
    if budget <= low:
        return
    bound = design_for_prior(p, d, budget)
    assert bound.status is Status.CERTIFIED
    assert expected_distortion(bound.witness, p, d) <= budget * (1 + 1e-14)
    assert mutual_information(bound.witness, p) <= bound.upper + 1e-12
    assert verify(bound.certificate).passed


def test_two_hundred_symbols_to_a_proved_1e_8():
    rng = np.random.default_rng(0)
    p, d = rng.dirichlet(np.ones(200)), rng.random((200, 200))
    budget = float(0.5 * (p @ d.min(axis=1)) + 0.5 * (p @ d).min())
    bound = design_for_prior(p, d, budget)
    assert bound.gap <= 1e-8
    assert verify(bound.certificate).passed


def test_derivatives_are_those_of_the_value():
    rng = np.random.default_rng(2)
    priors = rng.dirichlet(np.ones(5), size=2)
    d, step = rng.random((5, 4)), 1e-4
    for options, at in (
        ({}, 0.4),
        ({"minimize": "distortion"}, 0.05),
        ({"measure": "local_dp"}, 1.0),
    ):
        middle, up, down = (
            design_for_prior(priors, d, at + shift, tol=1e-10, **options)
            for shift in (0.0, step, -step)
        )
        slope = (up.upper - down.upper) / (2 * step)
        assert middle.shadow_prices["budget"] == pytest.approx(slope, abs=1e-3)


def test_the_least_distortion_is_named_and_can_be_asked_for():
    d = Distortion([[0.1, 0.7, 0.4], [0.9, 0.3, 0.3]])
    with pytest.raises(InfeasibleError, match=r"least feasible distortion is 0\.2") as caught:
        design_for_prior([0.5, 0.5], d, 0.19)
    least = float(str(caught.value).rsplit(" ", 1)[1])
    bound = design_for_prior([0.5, 0.5], d, least)
    assert bound.gap < 1e-8
    # The nearest outputs tell the two inputs apart.
    assert bound.upper == pytest.approx(np.log(2), abs=1e-9)
    # More than all information is no constraint: the least distortion, exactly.
    free = design_for_prior([0.5, 0.5], d, 1.0, minimize="distortion")
    assert free.upper == pytest.approx(0.2, abs=1e-15)
    assert free.gap < 1e-15


@pytest.mark.parametrize("budget", [0.5, 0.6, 10.0])
def test_a_large_budget_gives_exactly_nothing_and_a_constant_output(budget):
    bound = design_for_prior([0.5, 0.5], HAMMING, budget)
    assert (bound.lower, bound.upper) == (0.0, 0.0)
    assert (bound.witness.matrix == bound.witness.matrix[0]).all()
    assert verify(bound.certificate).passed


@pytest.mark.parametrize("budget", [0.0, 1e-6, 0.2])
def test_the_unit_of_the_distortion_does_not_matter(budget):
    p, d = [0.3, 0.7], np.array([[0.0, 1.0, 0.4], [1.0, 0.0, 0.4]])
    large = design_for_prior(p, d, budget, minimize="distortion")
    small = design_for_prior(p, 1e-9 * d, budget, minimize="distortion")
    assert small.upper == pytest.approx(1e-9 * large.upper, rel=1e-7)
    assert small.certificate is not None


def test_several_sources_count_by_the_worst():
    sources = [[0.9, 0.1], [0.1, 0.9]]
    bound = design_for_prior([0.5, 0.5], HAMMING, 0.2, source=sources)
    for source in sources:
        assert expected_distortion(bound.witness, source, HAMMING) <= 0.2 * (1 + 1e-14)
    # By symmetry the best flips either bit with probability 0.2.
    assert bound.upper == pytest.approx(np.log(2) - h(0.2), abs=1e-7)
    constant = design_for_prior([0.5, 0.5], HAMMING, 0.500001, source=sources)
    assert constant.upper == 0.0


def test_privacy_measures_against_their_own_numbers():
    rng = np.random.default_rng(4)
    n = 5
    d = Distortion.hamming(range(n))
    uniform = np.full(n, 1 / n)
    bound = design_for_prior(uniform, d, 1.0, measure="local_dp")
    # k-ary randomized response (HAMMING Theorem 1).
    assert bound.lower <= (n - 1) / (n - 1 + np.e) <= bound.upper
    assert local_dp_epsilon(bound.witness) <= 1.0
    p = rng.dirichlet(np.ones(n))
    bound = design_for_prior(p, d, 0.7, measure="maximal_leakage")
    assert maximal_leakage(bound.witness, p) <= 0.7 + 1e-15
    bound = design_for_prior(p, d, 0.7, measure="pml")
    output = p @ bound.witness.matrix
    ratio = bound.witness.matrix[:, output > 0] / output[output > 0]
    assert np.log(ratio.max()) <= 0.7 + 1e-15
    for measure in ("local_dp", "pml", "maximal_leakage"):
        design = DesignForPrior(p, d, 0.7, measure=measure)
        bound = design.solve()
        assert bound.gap < 1e-9
        assert design.to_cvxpy().solve(solver="CLARABEL") == pytest.approx(bound.upper, abs=1e-6)
        nothing = design_for_prior(p, d, 0.0, measure=measure)
        assert nothing.upper == pytest.approx(1 - p.max(), abs=1e-12)
        assert verify(nothing.certificate).passed


def test_own_constraints_bind_and_are_met():
    rng = np.random.default_rng(0)
    p, d = rng.dirichlet(np.ones(6)), Distortion.absolute(range(6))
    free = design_for_prior(p, d, 0.9)
    rules = [lambda Q: local_dp(Q, 3.0), lambda Q: cp.abs(Q @ np.arange(6) - np.arange(6)) <= 1.5]
    design = DesignForPrior(p, d, 0.9, constraints=rules)
    bound = design.solve()
    assert bound.lower > free.upper - 1e-6
    assert bound.gap < 1e-6
    assert verify(bound.certificate).passed
    assert "own" in verify(bound.certificate).about
    check = design.check(bound.witness, bound=bound)
    assert check.feasible
    assert set(check.violations) >= {"constraints[0]", "constraints[1]"}
    assert local_dp_epsilon(bound.witness) <= 3.0 + 1e-8
    assert not design.check(free.witness, bound=bound).feasible


@pytest.mark.parametrize(
    "options", [{"budget": 0.9}, {"budget": 0.3, "minimize": "distortion"}, {"slope": 0.5}]
)
def test_own_constraints_that_say_nothing_change_nothing(options):
    rng = np.random.default_rng(1)
    p, d = rng.dirichlet(np.ones(5)), Distortion.absolute(range(5))
    free = design_for_prior(p, d, **options)
    same = design_for_prior(p, d, constraints=lambda Q: Q[0, 0] >= 0, **options)
    assert same.lower <= free.upper
    assert free.lower <= same.upper
    assert same.gap < 1e-6


def test_a_second_adversary_as_a_constraint_of_ones_own():
    p, other = [0.2, 0.3, 0.5], [1 / 3] * 3
    d = Distortion.absolute(range(3))
    limit = 0.05
    bound = design_for_prior(p, d, 0.6, constraints=lambda Q: mi_budget(Q, other, limit))
    free = design_for_prior(p, d, 0.6)
    if mutual_information(free.witness, other) > limit:
        assert bound.lower >= free.lower
    assert mutual_information(bound.witness, other) <= limit + 1e-7
    assert bound.gap < 1e-6


def test_impossible_own_constraints():
    p, d = [0.5, 0.5], HAMMING
    with pytest.raises(InfeasibleError, match="no channel meets them"):
        design_for_prior(p, d, 0.1, constraints=lambda Q: Q[0, 0] >= 2)
    with pytest.raises(InfeasibleError, match=r"least feasible distortion .* about 0\.2689"):
        design_for_prior(p, d, 0.1, constraints=lambda Q: local_dp(Q, 1.0))


def test_check_finds_what_is_wrong_with_a_candidate():
    design = DesignForPrior([0.5, 0.5], HAMMING, 0.1)
    bound = design.solve()
    good = design.check([[0.9, 0.1], [0.1, 0.9]], bound=bound)
    assert good.feasible
    assert good.value == pytest.approx(bound.upper)
    assert not design.check([[0.8, 0.2], [0.2, 0.8]], bound=bound).feasible
    assert not design.check([[0.9, 0.2], [0.1, 0.9]], bound=bound).feasible
    assert not design.check([[1.1, -0.1], [0.1, 0.9]], bound=bound).feasible
    reordered = Channel([[0.1, 0.9], [0.9, 0.1]], inputs=[1, 0])
    assert design.check(reordered, bound=bound).feasible
    with pytest.raises(ValidationError, match="candidate"):
        design.check([[1.0, 0.0]], bound=bound)


def test_labels_are_matched():
    prior = Prior([0.3, 0.7], ["yes", "no"])
    d = Distortion([[0.0, 1.0], [2.0, 0.0]], ["no", "yes"], ["keep", "drop"])
    bound = design_for_prior(prior, d, 0.2)
    plain = design_for_prior([0.7, 0.3], d.matrix, 0.2)
    assert bound.upper == plain.upper
    assert bound.witness.inputs == ("no", "yes")
    assert bound.witness.outputs == ("keep", "drop")


def test_a_bound_can_be_refined_and_pickled():
    rng = np.random.default_rng(0)
    p, d = rng.dirichlet(np.ones(8)), rng.random((8, 8))
    budget = float(0.5 * (p @ d.min(axis=1)) + 0.5 * (p @ d).min())
    rough = design_for_prior(p, d, budget, tol=1e-2)
    fine = rough.refine(1e-11)
    assert fine.gap <= 1e-11 < rough.gap
    assert pickle.loads(pickle.dumps(fine)).upper == fine.upper
    stopped = design_for_prior(p, d, budget, time_limit=0.0)
    assert stopped.status is Status.BRACKETED
    assert stopped.lower <= fine.upper
    assert fine.lower <= stopped.upper


@pytest.mark.parametrize(
    ("arguments", "options", "words"),
    [
        (([0.5, 0.5], HAMMING), {}, "budget: exactly one"),
        (([0.5, 0.5], HAMMING, 0.1), {"slope": 1.0}, "budget: exactly one"),
        (([0.5, 0.5], HAMMING, -0.1), {}, "budget"),
        (([0.5, 0.5], HAMMING, 0.1), {"measure": "none"}, "measure"),
        (([0.5, 0.5], HAMMING, 0.1), {"minimize": "none"}, "minimize"),
        (([0.5, 0.5], HAMMING, 0.1), {"measure": "pml", "minimize": "leakage"}, "measure"),
        (([[0.5, 0.5], [1, 0]], HAMMING, 0.1), {"measure": "pml"}, "takes one"),
        (([0.5, 0.3, 0.2], HAMMING, 0.1), {}, "prior"),
        (([], HAMMING, 0.1), {}, "prior"),
        (([0.5, 0.5], HAMMING, 0.1), {"source": [0.5]}, "source"),
        (([0.5, 0.5], HAMMING, 0.1), {"constraints": [3]}, r"constraints\[0\]"),
        (([0.5, 0.5], [[0.0, np.inf], [0.0, 1.0]], 0.1), {}, "distortions are finite"),
    ],
)
def test_bad_arguments(arguments, options, words):
    with pytest.raises(ValidationError, match=words):
        design_for_prior(*arguments, **options)


def first_entry(Q):
    return Q[0, 0] >= 0.5


def test_own_constraints_are_pickled_where_that_is_possible():
    design = DesignForPrior([0.5, 0.5], HAMMING, 0.1, constraints=[first_entry])
    again = pickle.loads(pickle.dumps(design))
    assert again == design
    assert hash(again) == hash(design)
    other = DesignForPrior([0.5, 0.5], HAMMING, 0.1, constraints=[first_entry, lambda Q: Q >= 0])
    assert other != design
    with pytest.raises(pickle.PicklingError, match=r"^constraints\[1\]: it cannot be pickled"):
        pickle.dumps(other)


@pytest.mark.parametrize(
    "options",
    [
        {"budget": 0.3},
        {"slope": 0.5},
        {"budget": 0.2, "minimize": "distortion"},
        {"budget": 1.0, "measure": "local_dp"},
    ],
)
def test_own_constraints_when_no_time_is_left(options):
    design = DesignForPrior([0.4, 0.6], HAMMING, constraints=first_entry, **options)
    late, full = design.solve(time_limit=0.0), design.solve()
    assert late.status is Status.BRACKETED
    assert late.stats["stopped"] is Stopped.TIME_LIMIT
    assert late.lower <= full.upper
    assert full.lower <= late.upper
    assert verify(late.certificate).passed
    assert late.witness.matrix[0, 0] >= 0.5
