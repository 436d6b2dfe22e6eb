"""Audits of other gains than Shannon's: against all strategies, closed forms, and themselves."""

import math
from itertools import pairwise, product

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp, xlogy

from cvxleak import Mechanism, Prior, Status, verify
from cvxleak.audit import (
    Adversary,
    RecordLeakage,
    group_leakage,
    leakage_curve,
    record_leakage,
)
from cvxleak.core.errors import SolveInterrupted, ValidationError
from cvxleak.measures import arimoto_information, gain_leakage, multiplicative_bayes_capacity
from cvxleak.mechanisms import binary_symmetric, random_rounding, randomized_response
from cvxleak.model import (
    AdditiveQuery,
    Arimoto,
    ChannelSet,
    Gain,
    GainMatrix,
    Gaussian,
    Gini,
    Guess,
    GuessInTries,
    RecordSpace,
    Shannon,
)
from cvxleak.model.gain import FORMS
from cvxleak.model.knowledge import Expectation
from cvxleak.queries import count, parity

ROUNDED = Mechanism(count(4), random_rounding(4, base=3))
GAMBLE = GainMatrix([[1, -2], [-2, "3/4"], [0, 0]])


def joint_of(adversary):
    lumped = adversary.lumped
    return np.add.reduceat(adversary.weights[:, None] * lumped.rows, lumped.starts, axis=0)


def over_strategies(lumped, floor, actions, times):
    """Return the maximum over all strategies, each by its dual (the actions as they are)."""
    log_m, best = lumped.log_multiplicity, -math.inf
    for strategy in product(actions, repeat=lumped.rows.shape[1]):
        gains = np.array(strategy)[:, lumped.value_index].T
        earned = (lumped.rows * gains).sum(axis=1)

        def dual(x, earned=earned):
            lam = np.exp(np.clip(x[0], -14, 20))
            theta = np.exp(x[1:] - logsumexp(x[1:])) if times else np.zeros(len(actions))
            c = earned - times * (theta @ actions)[lumped.value_index]
            return lam * logsumexp(c / lam + log_m) - lam * floor

        start = np.zeros(1 + (len(actions) if times else 0))
        tolerances = {"xatol": 1e-8, "fatol": 1e-10, "maxiter": 5000}
        best = max(best, minimize(dual, start, method="Nelder-Mead", options=tolerances).fun)
    return best


@pytest.mark.parametrize(
    ("floor", "form", "value"),
    [
        (2.4, "posterior", 0.907820),
        (2.7, "posterior", 0.756512),
        (2.4, "rise", 0.358569),
        (2.7, "rise", 0.243675),
    ],
)
def test_guesses_of_a_rounded_count_of_four(floor, form, value):
    # Found by going through all strategies, one maximum of a concave function each.
    bound = record_leakage(ROUNDED, floor, gain=Guess(), form=form, tol=1e-6)
    assert bound.status is Status.CERTIFIED
    assert verify(bound.certificate).passed
    assert bound.lower - 1e-6 <= value <= bound.upper + 1e-6


@pytest.mark.parametrize(("gain", "k", "tries"), [(Guess(), 65, 1), (GuessInTries(3), 13, 3)])
def test_factors_of_guesses_among_many_values(gain, k, tries):
    query = AdditiveQuery(RecordSpace([range(k)]), [range(k)])
    mechanism = Mechanism(query, randomized_response(k, 1.0))
    bound = record_leakage(mechanism, math.log(k), gain=gain, form="factor", time_limit=0.1)
    # Only the uniform belief has so much entropy: tries / k before, the likeliest inputs after.
    after = (math.e + tries - 1) / (math.e + k - 1)
    assert bound.lower == pytest.approx(after * k / tries)
    assert bound.lower <= bound.upper <= k / tries * (1 + 1e-12)
    assert verify(bound.certificate).passed


@pytest.mark.parametrize("gain", [Guess(), GuessInTries(2), GainMatrix([[2, -1, 0], [0, 1, 0.3]])])
@pytest.mark.parametrize("form", ["posterior", "rise"])
def test_all_strategies_of_three_values(gain, form):
    query = AdditiveQuery(RecordSpace([(0, 1, 2)] * 2), [(0, 1, 2)] * 2)
    rows = np.random.default_rng(8).dirichlet(np.full(2, 0.5), size=5)
    mechanism, floor = Mechanism(query, rows), 1.7
    bound = record_leakage(mechanism, floor, gain=gain, form=form)
    actions = np.asarray(gain.rows(3), float)
    best = over_strategies(mechanism.lumped(0), floor, actions, float(form == "rise"))
    assert bound.status is Status.CERTIFIED
    # Nelder and Mead end above the minimum, by little.
    assert bound.lower - 1e-7 <= best
    assert bound.upper >= best - 1e-4


@pytest.mark.parametrize(
    "gain",
    [Guess(), GuessInTries(1), Gini(), Arimoto(2), Arimoto(math.inf), GAMBLE, Shannon()],
    ids=str,
)
@pytest.mark.parametrize("form", ["posterior", "rise", "factor"])
def test_the_witness_attains_the_lower_end_and_random_priors_do_not_pass_the_upper(gain, form):
    if form == "factor" and gain in (GAMBLE, Shannon()):
        with pytest.raises(ValidationError, match="not known to be positive"):
            RecordLeakage(ROUNDED, 2.0, gain=gain, form=form)
        return
    problem = RecordLeakage(ROUNDED, 2.0, gain=gain, form=form)
    bound = problem.solve(tol=1e-3)
    assert bound.status is Status.CERTIFIED
    assert verify(bound.certificate).passed
    check = problem.check(bound.witness, bound=bound)
    assert check.feasible
    assert abs(check.value - bound.lower) < 1e-9
    rng, lumped = np.random.default_rng(1), ROUNDED.lumped(0)
    for law in rng.dirichlet(np.full(len(lumped.rows), 2.0), size=30):
        mixed = 0.5 * law + 0.5 * lumped.uniform()
        judged = problem.check(mixed, 0, lumped=True, bound=bound)
        assert judged.value <= bound.upper + 1e-9 or not judged.feasible


def test_candidates_may_exclude_a_value():
    problem = RecordLeakage(ROUNDED, 0.0, gain=GAMBLE, form="posterior")
    lumped = ROUNDED.lumped(0)
    certain = np.where(lumped.value_index == 1, lumped.uniform(), 0.0)
    # Who knows that the record is 1 takes the second action.
    found = problem.check(certain / certain.sum(), 0, lumped=True, bound=problem.solve(tol=1e-3))
    assert found.value == pytest.approx(0.75, abs=1e-12)


def test_of_shannon_the_engine_gives_the_leakage():
    # -H(A|Y) is at most 0, and the leakage is the rise, which has a search of its own.
    posterior = record_leakage(ROUNDED, 2.7, gain=Shannon(), form="posterior", tol=1e-6)
    joint = joint_of(posterior.witness)
    conditional = xlogy(joint, joint / joint.sum(axis=0)).sum()
    assert abs(conditional - posterior.lower) < 1e-9
    leakage = record_leakage(ROUNDED, 2.7)
    assert leakage.unit == "nats"
    assert leakage.upper <= posterior.upper + math.log(2)


def test_without_a_floor_a_factor_is_the_bayes_capacity_of_the_best_two_contexts():
    q = [[0.6, 0.3, 0.1], [0.5, 0.2, 0.3], [0.1, 0.2, 0.7]]
    mechanism = Mechanism(count(2), q)
    # Of two people, the other one is known: totals 0 or 1 for a no, 1 or 2 for a yes.
    best = max(multiplicative_bayes_capacity([q[i], q[j]]) for i in (0, 1) for j in (1, 2))
    bound = record_leakage(mechanism, 0.0, gain=Guess(), form="factor")
    assert bound.unit == "times"
    assert bound.lower <= best + 1e-9 <= bound.upper + 2e-9
    assert bound.upper - bound.lower < 2e-4


@pytest.mark.parametrize("alpha", [1.5, 4.0])
def test_the_factor_of_a_norm_is_arimotos_information(alpha):
    bound = record_leakage(ROUNDED, 2.7, gain=Arimoto(alpha), form="factor")
    joint = joint_of(bound.witness)
    law = joint.sum(axis=1)
    information = arimoto_information(joint / law[:, None], law, alpha)
    assert information == pytest.approx(alpha / (alpha - 1) * math.log(bound.lower), abs=1e-7)


def test_more_doubt_never_helps_and_less_noise_never_hurts():
    upper = math.inf
    for floor in (1.0, 2.0, 2.4, 2.7, 2.77):
        bound = record_leakage(ROUNDED, floor, gain=Guess())
        assert bound.lower <= upper + 1e-9
        upper = bound.upper
    assert upper < 0.2
    for flip in (0.4, 0.3, 0.1):
        noisy = Mechanism(parity(3), binary_symmetric(flip))
        bound = record_leakage(noisy, 1.0, gain=Guess())
        # Somebody who knows the others' parity is right with probability 1 - flip.
        assert bound.lower <= 0.5 - flip + 1e-12 <= bound.upper + 1e-9


@pytest.mark.parametrize("form", ["posterior", "rise", "factor"])
def test_a_curve_is_its_floors(form):
    floors = [0.0, 0.5, 1.0, 2.4, 2.7]
    curve = leakage_curve(ROUNDED, floors, gain=Guess(), form=form)
    assert all(low >= high for low, high in pairwise(curve.lower))
    assert all(low >= high for low, high in pairwise(curve.upper))
    assert not all(curve.solved)  # 0 and 1 settle what is between them
    for floor, bound in zip(floors, curve.bounds, strict=True):
        single = record_leakage(ROUNDED, floor, gain=Guess(), form=form)
        assert bound.status is Status.CERTIFIED
        assert bound.unit == single.unit == bound.certificate.unit
        assert bound.lower <= single.upper
        assert single.lower <= bound.upper
        assert verify(bound.certificate).passed
    assert str(curve).startswith(curve.bounds[0].name)


def test_a_curve_that_is_interrupted_has_proved_ends(monkeypatch):
    def interrupted(self, start, tol, time_limit, work_limit):
        found = go_on(self, start, tol, 0.0, work_limit)
        if time_limit is None:
            raise SolveInterrupted(found)
        return found

    go_on = RecordLeakage.go_on
    monkeypatch.setattr(RecordLeakage, "go_on", interrupted)
    with pytest.raises(SolveInterrupted) as caught:
        leakage_curve(ROUNDED, [0.0, 1.0, 2.7], gain=Guess(), time_limit=None)
    curve = caught.value.bound
    assert curve.solved == (True, False, True)
    assert (curve.lower <= [0.5, 0.5, 0.2437]).all()
    assert (curve.upper >= [0.5, 0.5, 0.2436]).all()


def test_groups_of_records_and_many_floors_of_a_count_of_twenty():
    rounded = Mechanism(count(20), random_rounding(20, base=3))
    for floor in (4.0, 13.2, 13.6):
        for form in ("posterior", "rise"):
            bound = record_leakage(rounded, floor, gain=Guess(), form=form)
            assert bound.status is Status.CERTIFIED
            assert bound.stats["nodes"] < 1000
    pair = group_leakage(ROUNDED, 2.5, 2, gain=Guess())
    single = record_leakage(ROUNDED, 2.5, gain=Guess())
    assert pair.status is Status.CERTIFIED
    # To be right about both at once is harder.
    assert pair.upper < single.lower


def test_every_member_of_a_set_of_channels_is_between_its_ends():
    center = random_rounding(4, base=3)
    wide = np.where(center.matrix > 0, 0.01, 0.0) * (center.matrix < 1)
    channels = ChannelSet(
        np.maximum(center.matrix - wide, 0),
        np.minimum(center.matrix + wide, 1),
        inputs=center.inputs,
    )
    whole = record_leakage(Mechanism(count(4), channels), 2.5, gain=Guess())
    assert verify(whole.certificate).passed
    assert whole.set_width > 0
    rng = np.random.default_rng(3)
    for _ in range(2):
        rows = np.clip(center.matrix + wide * rng.uniform(-0.9, 0.9, center.shape), 0, 1)
        rows = rows / rows.sum(axis=1, keepdims=True)
        assert ((rows >= channels.lower) & (rows <= channels.upper)).all()
        bound = record_leakage(Mechanism(count(4), rows), 2.5, gain=Guess())
        assert whole.lower <= bound.upper
        assert bound.lower <= whole.upper


def test_what_is_known_of_the_adversary_counts():
    few = Expectation(lambda *data: sum(data), at_most=1.0)
    free = record_leakage(ROUNDED, 1.5, gain=Guess())
    known = record_leakage(ROUNDED, 1.5, gain=Guess(), adversaries=few)
    assert known.status is Status.CERTIFIED
    assert verify(known.certificate).passed
    assert known.upper <= free.upper + 1e-9
    problem = RecordLeakage(ROUNDED, 1.5, adversaries=few, gain=Guess())
    assert problem.check(known.witness, bound=known).feasible


def test_a_bracket_holds_however_early_the_search_ends():
    full = record_leakage(ROUNDED, 2.4, gain=Guess())
    early = record_leakage(ROUNDED, 2.4, gain=Guess(), time_limit=0.0)
    assert early.lower <= full.lower + 1e-9
    assert full.upper <= early.upper + 1e-9
    assert verify(early.certificate).passed
    late = early.refine(1e-4)
    assert late.status is Status.CERTIFIED

    def interrupt(lower, upper, nodes):
        raise KeyboardInterrupt

    with pytest.raises(SolveInterrupted) as interrupted:
        record_leakage(ROUNDED, 2.4, gain=Guess(), progress=interrupt)
    stopped = interrupted.value.bound
    assert stopped.lower <= full.upper
    assert full.lower <= stopped.upper


@pytest.mark.parametrize(
    ("k", "tries"), [(3, 1), *(pytest.param(4, n, marks=pytest.mark.slow) for n in (1, 2, 3))]
)
def test_one_record_of_several_values_without_a_floor(k, tries):
    # The best prior is uniform on one of the subsets of the values.
    everybody = AdditiveQuery(RecordSpace([range(k)]), [range(k)])
    channel = randomized_response(k, 1.0)
    gain = GuessInTries(tries)
    subsets = [np.flatnonzero([s >> a & 1 for a in range(k)]) for s in range(1, 2**k)]
    laws = [np.isin(range(k), own) / len(own) for own in subsets]
    best = max(gain_leakage(channel, law, gain) for law in laws)
    bound = record_leakage(Mechanism(everybody, channel), 0.0, gain=gain)
    assert bound.status is Status.CERTIFIED
    assert bound.lower - 1e-9 <= best <= bound.upper + 1e-9
    assert verify(bound.certificate).passed


class Own(Gain):
    """A gain of one's own, with the values of a function and perhaps with rows."""

    def __init__(self, function, table=None):
        self._function, self._table = function, table

    def value(self, laws):
        return self._function(np.asarray(laws))

    def tangent(self, laws):
        return np.zeros_like(laws)

    def rows(self, k):
        return self._table


def largest(laws):
    return laws.max(axis=-1)


def test_a_gain_of_ones_own_with_rows_is_that_gain_matrix():
    bound = record_leakage(ROUNDED, 2.4, gain=Own(largest, np.eye(2)))
    guess = record_leakage(ROUNDED, 2.4, gain=Guess())
    assert bound.status is Status.CERTIFIED
    assert abs(bound.lower - guess.lower) < 1e-4
    assert verify(bound.certificate).passed
    assert bound.certificate.problem["gain"]["kind"] == "matrix"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gain": Own(lambda laws: laws.max(axis=-1) ** 2)}, "whose tangent at the distribution"),
        ({"gain": Own(lambda laws: 0.5)}, "gain: found Own.*, one for each distribution"),
        ({"gain": Own(lambda laws: laws.min(axis=-1))}, "not convex: halfway between"),
        ({"gain": Own(largest, np.eye(2) / 2)}, "not the largest of its rows"),
        ({"gain": Own(largest, np.eye(3))}, "2 columns"),
        ({"gain": "guess"}, "expected a Gain"),
        ({"gain": Guess(), "form": "ratio"}, "form: found 'ratio'"),
        ({"gain": GainMatrix([[1, 2, 3]])}, "2 columns"),
        ({"gain": GAMBLE, "form": "factor"}, "not known to be positive"),
    ],
)
def test_bad_gains_are_refused(options, message):
    with pytest.raises(ValidationError, match=message):
        RecordLeakage(ROUNDED, 1.0, **options)


class Brier(Gain):
    """Gini's gain, as somebody writes it who knows nothing of measures."""

    def value(self, laws):
        return (laws**2).sum(axis=-1)

    def tangent(self, laws):
        return 2 * laws


@pytest.mark.parametrize("form", FORMS)
def test_a_gain_of_ones_own_without_rows_is_refused_because_no_certificate_can_hold_it(form):
    for make in (
        lambda: RecordLeakage(ROUNDED, 2.4, gain=Brier(), form=form),
        lambda: leakage_curve(ROUNDED, [1.0, 2.4], gain=Brier(), form=form),
    ):
        with pytest.raises(ValidationError, match="no certificate can hold: it has no `rows`"):
            make()


class Best(Gain):
    """The best guess, with rows for every number of values."""

    def value(self, laws):
        return laws.max(axis=-1)

    def tangent(self, laws):
        return np.eye(laws.shape[-1])[laws.argmax(axis=-1)]

    def rows(self, k):
        return np.eye(k)


def test_a_gain_of_ones_own_needs_a_record_where_records_differ_in_size():
    mixed = AdditiveQuery(RecordSpace([(0, 1), (0, 1, 2)]), [(0, 1), (0, 1, 2)])
    mechanism = Mechanism(mixed, randomized_response(4, 1.0))
    with pytest.raises(ValidationError, match="so name one record"):
        RecordLeakage(mechanism, 1.2, gain=Best())
    own, known = (record_leakage(mechanism, 1.2, 1, gain=g, tol=1e-2) for g in (Best(), Guess()))
    assert verify(own.certificate).passed
    # The same bounds, but for the tolerance of both searches.
    assert max(own.lower, known.lower) <= min(own.upper, known.upper)
    with pytest.raises(ValidationError, match=r"gain.rows\(3\): found shape \(2, 2\)"):
        RecordLeakage(mechanism, 1.2, gain=Own(largest, np.eye(2)))


def test_gains_come_in_any_unit():
    one, large = (
        record_leakage(ROUNDED, 1.0, gain=GainMatrix(unit * np.eye(2)), tol=1e-3)
        for unit in (1.0, 2.0**70)
    )
    assert large.lower / 2.0**70 == pytest.approx(one.lower, rel=1e-3)
    assert large.upper / 2.0**70 == pytest.approx(one.upper, rel=1e-3)


def test_a_matrix_is_about_the_joint_values_of_a_group_of_different_records():
    mixed = AdditiveQuery(RecordSpace([(0, 1), (0, 1, 2)]), [(0, 1), (0, 1, 2)])
    mechanism = Mechanism(mixed, randomized_response(4, 1.0))
    same, known = (
        RecordLeakage(mechanism, 1.2, size=2, gain=gain).solve(work_limit=1e7)
        for gain in (GainMatrix(np.eye(6)), Guess())
    )
    assert (same.lower, same.upper) == pytest.approx((known.lower, known.upper), rel=1e-6)


def test_of_a_real_output_only_the_leakage_is_bounded():
    with pytest.raises(ValidationError, match="real-valued output"):
        RecordLeakage(Mechanism(count(3), Gaussian(1.0)), 1.0, gain=Guess())


def test_the_value_of_a_prior_is_the_measure_s():
    problem = RecordLeakage(ROUNDED, 0.0, gain=Gini())
    prior = Prior(np.full(16, 1 / 16))
    value = problem.check(prior, 0, bound=problem.solve(tol=0.1)).value
    joint = joint_of(Adversary(ROUNDED, (0,), ROUNDED.lumped(0).uniform()))
    law = joint.sum(axis=1)
    assert value == pytest.approx(gain_leakage(joint / law[:, None], law, Gini()))
