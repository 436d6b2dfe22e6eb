"""Audits of real outputs: against integrals, closed forms, fine grids and exact channels."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.integrate import quad
from scipy.special import entr, rel_entr

from cvxleak import Mechanism, leakage_curve, record_leakage, verify
from cvxleak.audit import RecordLeakage, balance, group_leakage, product_leakage
from cvxleak.audit.worst_adversary import real_outputs
from cvxleak.audit.worst_adversary.audit import content_of
from cvxleak.audit.worst_adversary.real_outputs import RealCells
from cvxleak.core import ValidationError
from cvxleak.core.clock import Clock, Stop
from cvxleak.core.errors import SolveInterrupted
from cvxleak.kernel import leakage
from cvxleak.kernel.numbers import precision
from cvxleak.mechanisms import gaussian_peak_capacity, truncated_geometric
from cvxleak.model import (
    DiscreteGaussian,
    DiscreteLaplace,
    Expectation,
    Gaussian,
    KnownMarginals,
    Laplace,
    RecordSpace,
    Rounded,
    TableQuery,
    Uniform,
)
from cvxleak.problem import Gap, Status, Stopped
from cvxleak.queries import count

KINDS = [
    Gaussian(1.5),
    Laplace(1.2),
    Uniform(2.25),
    DiscreteGaussian(1.5),
    DiscreteLaplace(1.2),
    Rounded(Gaussian(1.5), 2),
    Rounded(Laplace(1.2), 1.5),
]


def of_values(values, noise):
    """The mechanism that shows one record's value with noise."""
    space = RecordSpace([[float(v) for v in values]])
    return Mechanism(TableQuery(space, range(len(values)), list(map(float, values))), noise)


def informed(density, low, high):
    """I(X;Y) of two equally likely inputs 0 and 1, by quadrature."""

    def integrand(y):
        p, q = density(y), density(y - 1)
        return entr((p + q) / 2) - (entr(p) + entr(q)) / 2

    kinks = [x for x in (0.0, 1.0) if low < x < high]
    return quad(integrand, low, high, points=kinks, epsabs=1e-12, limit=200)[0]


@pytest.mark.parametrize(
    ("noise", "law", "reach"),
    [
        (Gaussian(0.8), stats.norm(scale=0.8), 12),
        (Laplace(0.7), stats.laplace(scale=0.7), 30),
    ],
)
def test_two_values_are_the_integral(noise, law, reach):
    exact = informed(law.pdf, -reach, reach + 1)
    bound = record_leakage(of_values([0, 1], noise), 0.0, tol=1e-5)
    assert bound.status is Status.CERTIFIED
    assert bound.lower - 1e-10 <= exact <= bound.upper + 1e-10


def test_laplace_noise_has_its_closed_form():
    # Beyond 0 and 1 the likelihoods have the ratio e^(1/b); in between it goes from one to the
    # other, and integrates to what is left here.
    b = 0.7
    e = math.exp(-1 / b)
    outside = (1 + e) / 2 * (math.log(2) - stats.entropy([1 / (1 + e), e / (1 + e)]))
    r = np.linspace(-1, 1, 200_001) / b
    inside = np.trapezoid(np.exp(-1 / (2 * b)) / b * np.cosh(r / 2) / 2 * _gain(r), r / 2 * b)
    bound = record_leakage(of_values([0, 1], Laplace(b)), 0.0, tol=1e-5)
    assert bound.lower - 1e-7 <= outside + inside <= bound.upper + 1e-7


def _gain(r):
    """log 2 - H of the posterior, for a log-likelihood ratio r."""
    p = 1 / (1 + np.exp(r))
    return math.log(2) - entr(p) - entr(1 - p)


@pytest.mark.parametrize(("peak", "points"), [(1.5, 2), (2.5, 41)])
def test_no_input_is_above_the_capacity_under_a_peak_constraint(peak, points):
    values = np.linspace(-peak, peak, points)
    most = gaussian_peak_capacity(peak, 1.0)
    bound = record_leakage(of_values(values, Gaussian(1)), 0.0, tol=1e-3)
    assert bound.lower <= most.upper
    # Two points are best up to 1.67; three of the 41 are close to it beyond.
    assert bound.upper >= most.lower * (1 - 1e-4)
    assert bound.upper <= most.upper * (1 + 2e-3)


@pytest.mark.parametrize("noise", KINDS, ids=repr)
def test_a_fine_grid_tells_less(noise):
    mechanism = Mechanism(count(3), noise)
    bound = record_leakage(mechanism, 1.2, tol=1e-3)
    assert bound.status is Status.CERTIFIED
    assert verify(bound.certificate).passed
    edges = np.linspace(-4.25, 7.25, 24)
    if isinstance(noise, Rounded):
        edges = noise.base * (np.arange(-3, 6) + 0.5)
    grid = Mechanism(count(3), noise.channel(range(4), edges))
    below = record_leakage(grid, 1.2, tol=1e-3)
    assert below.lower <= bound.upper
    assert below.upper >= 0.97 * bound.lower
    # The witness, too, tells more by the real output.
    assert bound.witness.leakage == pytest.approx(bound.lower, rel=1e-3)
    assert bound.witness.entropy >= 1.2 - 1e-9


def law_of(noise, y):
    """The density, or the probabilities, of the output of each count up to 2 at some points."""
    z = y[None] - np.arange(3)[:, None]
    base = getattr(noise, "base", None)
    if isinstance(noise, DiscreteGaussian):
        rows = np.exp(-((z / noise.sigma) ** 2) / 2)
        return rows / rows.sum(axis=1, keepdims=True)
    if isinstance(noise, DiscreteLaplace):
        return stats.dlaplace.pmf(z, 1 / noise.scale)
    inner = noise if base is None else noise.noise
    law = {
        Gaussian: lambda: stats.norm(scale=inner.sigma),
        Laplace: lambda: stats.laplace(scale=inner.scale),
        Uniform: lambda: stats.uniform(-inner.half_width, 2 * inner.half_width),
    }[type(inner)]()
    return law.pdf(z) if base is None else law.cdf(z + base / 2) - law.cdf(z - base / 2)


@pytest.mark.parametrize("noise", [*KINDS, Rounded(Uniform(1.2), 0.5)], ids=repr)
def test_no_prior_tells_more_by_its_density(noise):
    mechanism = Mechanism(count(2), noise)
    if noise.whole or isinstance(noise, Rounded):
        step = getattr(noise, "base", 1)
        rows = law_of(noise, np.arange(-20 // step, 22 // step + 1) * step)
    else:  # by the midpoints of steps that kinks and jumps are between
        rows = law_of(noise, np.arange(-19.995, 22, 0.01)) * 0.01
    rows = rows[[0, 1, 1, 2]]  # of the datasets 00, 01, 10, 11
    rng = np.random.default_rng(0)
    for group, size in (([[0, 1], [2, 3]], 1), ([[0], [1], [2], [3]], 2)):
        bound = group_leakage(mechanism, 0.9, size, tol=1e-3)

        def told(prior, group=group):
            joint = np.array([prior[part] @ rows[part] for part in group])
            return rel_entr(joint, joint.sum(axis=1)[:, None] * joint.sum(axis=0)).sum()

        priors = rng.dirichlet(np.full(4, 0.6), 300)
        priors = priors[entr(priors).sum(axis=1) >= 0.9]
        assert len(priors) > 50
        assert max(map(told, priors)) <= bound.upper + 1e-6
        worst = bound.witness.expand().probabilities
        assert told(worst) == pytest.approx(bound.lower, rel=2e-3)
        assert entr(worst).sum() >= 0.9 - 1e-9


def test_geometric_noise_is_its_truncation():
    noise = Mechanism(count(4), DiscreteLaplace(2))
    truncated = Mechanism(count(4), truncated_geometric(4, epsilon=0.5))
    for floor in (0.0, 1.5):
        one, other = (record_leakage(m, floor, tol=1e-4) for m in (noise, truncated))
        assert one.stats["cells"] == 5
        # The truncated one is rounded towards privacy.
        assert max(one.lower, other.lower) <= (1 + 1e-12) * min(one.upper, other.upper)


def test_clamping_hides_something_of_gaussian_noise():
    noise = Gaussian(2)
    clamped = record_leakage(Mechanism(count(3), noise.channel(range(4), [0, 1, 2, 3])), 1.4)
    assert record_leakage(Mechanism(count(3), noise), 1.4, tol=1e-3).lower > 1.02 * clamped.upper


def test_the_bracket_gets_as_narrow_as_is_asked_for():
    problem = RecordLeakage(Mechanism(count(3), Gaussian(1)), 1.4)
    coarse = problem.solve(tol=1e-2)
    fine = coarse.refine(3e-4)
    assert fine.status is Status.CERTIFIED
    assert coarse.lower <= fine.lower + 1e-12 <= fine.upper <= coarse.upper
    assert fine.stats["cells"] > 4 * coarse.stats["cells"]
    assert problem.solve(tol=1e-2) == coarse
    assert (
        0.40382 < fine.lower < 0.4039 < fine.upper < 0.40398
    )  # count of 3, sigma 1, 1.4 nats of doubt


@pytest.mark.parametrize("noise", KINDS, ids=repr)
def test_one_value_tells_nothing(noise):
    bound = record_leakage(of_values([3], noise), 0.0)
    assert (bound.lower, bound.upper) == (0, 0)
    assert verify(bound.certificate).passed


@given(
    st.lists(st.fractions(-3, 3, max_denominator=40), min_size=2, max_size=5, unique=True),
    st.fractions("1/9", 3, max_denominator=30),
    st.sampled_from([Laplace, Uniform, lambda w: Rounded(Laplace(w), "1/3"), Gaussian]),
)
@settings(max_examples=40)
def test_fractions_are_cut_as_well_as_decimals(values, width, kind):
    mechanism = of_fractions(values, kind(str(width)))
    with precision():
        statement = leakage.RecordLeakage.read(content_of(RecordLeakage(mechanism, 0.0)))
    cells = RealCells(mechanism, statement)
    cells.finer(1e-3, Stop(Clock()))
    assert cells.lost < 1.2e-3


def of_fractions(values, noise):
    space = RecordSpace([list(map(str, values))])
    return Mechanism(TableQuery(space, range(len(values)), list(map(str, values))), noise)


@pytest.mark.parametrize(
    ("values", "noise"),
    [
        (["2/9", "4/9", "6/9"], Laplace(1)),
        (["1/3", "2/3", 1], Uniform(math.pi)),
        ([0, 1, 3], Rounded(Gaussian(1), "1/3")),
        ([0, 1, 3], Rounded(Laplace(1), math.pi)),
        ([10**16, 10**16 + 1, 10**16 + 3], Gaussian(1)),
        ([0, 1, 10**6], DiscreteGaussian(1)),
        ([0, 1, 2], DiscreteLaplace(1e-300)),
        ([0, 1, 3], Gaussian(3e-15)),
        ([0, 1, 3], Laplace(1e14)),
    ],
)
def test_numbers_that_no_float_is_close_like_others(values, noise):
    space = RecordSpace([range(3)])
    mechanism = Mechanism(TableQuery(space, range(3), values), noise)
    bound = record_leakage(mechanism, 0.0, tol=1e-2)
    assert bound.status is Status.CERTIFIED
    assert verify(bound.certificate).passed


def test_leakage_does_not_depend_on_unit_or_origin():
    one, other = (
        record_leakage(of_fractions(values, noise), 0.0, tol=1e-4)
        for values, noise in (
            ([0, 1, 3], Rounded(Gaussian(1), 2)),
            ([Fraction(100), Fraction(301, 3), Fraction(101)], Rounded(Gaussian("1/3"), "2/3")),
        )
    )
    assert (one.lower, one.upper) == pytest.approx((other.lower, other.upper), rel=1e-9)


def test_many_cells_begin_with_few(monkeypatch):
    monkeypatch.setattr(real_outputs, "FIRST", 40)
    problem = RecordLeakage(Mechanism(count(3), Gaussian(1)), 1.4)
    bound = problem.solve(time_limit=0.0)
    assert bound.stats["cells"] <= 40 / 4
    assert 0 < bound.lower < bound.upper < 0.7
    assert problem.solve(tol=1e-2).stats["cells"] > 20
    # What there is no time for is not begun.
    monkeypatch.setattr(real_outputs, "BALL_SECONDS", 1.0)
    cut = problem.solve(tol=1e-2, time_limit=50.0)
    assert cut.stats["cells"] == bound.stats["cells"]
    assert cut.stats["stopped"] is Stopped.TIME_LIMIT


def test_what_cells_on_the_way_proved_stands():
    problem = RecordLeakage(Mechanism(count(2), Gaussian(1)), 1.0)
    search = problem._search()
    search.advance(Gap(1e-2), Stop(Clock()))
    known = search.found(Gap(1e-2)).upper
    search.advance(Gap(1e-4), Stop(Clock(1e-9)))
    search._real.finer(1e-3, Stop(Clock()))
    search._searches = search._made([search._searches])  # and no time to audit them
    assert search.upper > known
    assert search.found(Gap(1e-2)).upper == known


def test_cells_that_are_more_but_no_better_are_left():
    mechanism = Mechanism(count(2), Gaussian(1))
    with precision():
        statement = leakage.RecordLeakage.read(content_of(RecordLeakage(mechanism, 1.0)))
    cells = RealCells(mechanism, statement)
    views, cut, cells.lost = cells.views, cells.cut, 0.0
    assert not cells.finer(1e-3, Stop(Clock()))
    assert cells.views is views
    assert cells.cut is cut


def test_a_bracket_that_had_no_time_is_wide_and_holds():
    bound = record_leakage(Mechanism(count(5), Gaussian(1)), 2.0, time_limit=0.0)
    assert bound.status is Status.BRACKETED
    assert bound.stats["stopped"] is Stopped.TIME_LIMIT
    assert 0 < bound.lower < bound.upper < 0.8
    assert verify(bound.certificate).passed


def test_nobody_learns_more_than_the_record():
    bound = record_leakage(Mechanism(count(30), Gaussian(0.4)), 1.0, tol=1e-3)
    assert bound.status is Status.CERTIFIED
    assert math.log(2) <= bound.upper < math.log(2) + 1e-12


def test_curves_groups_and_what_is_known_of_adversaries():
    mechanism = Mechanism(count(3), Gaussian(1.5))
    curve = leakage_curve(mechanism, [0.0, 1.0, 2.0], tol=1e-2)
    assert (np.diff(curve.upper) < 0).all()
    pairs = group_leakage(mechanism, 1.0, 2, tol=1e-2)
    assert pairs.lower > curve.lower[1]
    small = Mechanism(count(2), Gaussian(1.5))
    free = record_leakage(small, 0.5, tol=1e-2)
    rare = KnownMarginals([0.8, 0.2])
    known = record_leakage(small, 0.5, adversaries=rare, tol=1e-2)
    assert known.upper < free.lower
    assert known.witness.expand().probabilities.reshape(2, 2).sum(axis=1) == pytest.approx(
        [0.8, 0.2]
    )
    few = Expectation(lambda total: total, at_most=0.4)
    assert record_leakage(small, 0.5, adversaries=few, tol=1e-2).upper < free.lower


def test_candidates_are_measured_by_the_real_output():
    problem = RecordLeakage(Mechanism(count(2), Gaussian(1)), 1.0)
    for tol in (1e-2, 1e-3):
        bound = problem.solve(tol=tol)
        own = problem.check(bound.witness, bound=bound)
        assert own.feasible
        assert bound.lower <= own.value <= bound.upper
    uniform = problem.check(np.full(4, 0.25), bound=bound)
    assert uniform.value < own.value
    assert problem.repair(np.full(4, 0.25)).certificate is not None


def test_what_needs_a_channel_says_so():
    mechanism = Mechanism(count(2), Gaussian(1))
    with pytest.raises(ValidationError, match="number with gaussian noise"):
        product_leakage(mechanism)


@pytest.mark.parametrize("noise", [Gaussian(1), DiscreteLaplace(2)], ids=repr)
def test_balance_is_the_difference_of_two_audits(noise):
    mechanism = Mechanism(count(3), noise)
    found = balance(mechanism, 1.8, tol=1e-2)
    free, bound = (record_leakage(mechanism, b, tol=1e-5) for b in (0.0, 1.8))
    assert found.status is Status.CERTIFIED
    assert found.lower <= free.upper - bound.lower
    assert found.upper >= free.lower - bound.upper
    assert verify(found.certificate).passed
    assert found.witness[1].entropy >= 1.8 - 1e-9
    quick = balance(mechanism, 1.8, tol=1e-9, time_limit=0.0)
    assert quick.status is Status.BRACKETED
    assert quick.lower <= found.upper
    assert quick.upper >= found.lower


def test_ctrl_c_leaves_a_bracket_of_the_balance():
    calls = []

    def interrupt(*_):
        calls.append(1)
        raise KeyboardInterrupt

    with pytest.raises(SolveInterrupted) as caught:
        balance(Mechanism(count(3), Gaussian(1)), 1.8, tol=1e-4, progress=interrupt)
    assert calls
    assert caught.value.bound.name == "balance"
    assert caught.value.bound.lower <= caught.value.bound.upper < math.inf


def test_ctrl_c_leaves_a_bracket(monkeypatch):
    problem = RecordLeakage(Mechanism(count(5), Gaussian(1)), 2.0)

    def interrupt(*_):
        raise KeyboardInterrupt

    with pytest.raises(SolveInterrupted) as caught:
        problem.solve(tol=1e-3, progress=interrupt)
    assert 0 < caught.value.bound.lower < caught.value.bound.upper


def test_known_marginals_leave_few_cells_to_a_count_with_noise():
    # Log-ratio cells are made around the maximizers of time sharing, which have to be sharp.
    mechanism, rare = Mechanism(count(5), Gaussian(2)), KnownMarginals([0.9, 0.1])
    bound = record_leakage(mechanism, 1.0, adversaries=rare, tol=1e-2, work_limit=2e9)
    assert bound.status is Status.CERTIFIED
    assert verify(bound.certificate).passed
