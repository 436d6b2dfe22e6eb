import itertools
import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cvxleak.core.errors import ValidationError
from cvxleak.measures import (
    f_divergence,
    local_dp_epsilon,
    privacy_profile,
    record_dp_epsilon,
    renyi_divergence,
    renyi_dp_epsilon,
    row_divergence,
    zcdp_rho,
)
from cvxleak.measures.divergences import DIVERGENCES
from cvxleak.model import AdditiveQuery, Mechanism, Prior, RecordSpace
from tests.measures.test_laws import TOL, channels, few, laws

ORDERS = (0.3, 0.5, 1.0, 1.5, 2.0, 7.0, math.inf)


def by_definition(p, r, divergence):
    """The f-divergence of two laws, term by term, with f and its slope at infinity."""
    generators = {
        "relative-entropy": (lambda t: t * math.log(t) if t else 0.0, math.inf),
        "total-variation": (lambda t: abs(t - 1) / 2, 0.5),
        "chi-square": (lambda t: (t - 1) ** 2, math.inf),
        "squared-hellinger": (lambda t: 1 - math.sqrt(t), 0.0),
    }
    f, slope = generators[divergence]
    return sum(b * f(a / b) if b else (slope * a if a else 0.0) for a, b in zip(p, r, strict=True))


@pytest.mark.parametrize("divergence", DIVERGENCES)
@few
@given(data=st.data())
def test_f_divergences_are_what_their_generators_say(divergence, data):
    p, r = data.draw(laws(4)), data.draw(laws(4))
    found = f_divergence(p, r, divergence)
    assert found == pytest.approx(by_definition(p, r, divergence), abs=1e-12)


@pytest.mark.parametrize("alpha", ORDERS)
@few
@given(data=st.data())
def test_renyi_divergence_in_many_digits(alpha, data):
    p, r = data.draw(laws(4)), data.draw(laws(4))
    pairs = [(a, b) for a, b in zip(p, r, strict=True) if a > 0]
    if (any(b == 0 for _, b in pairs) and alpha >= 1) or not any(b for _, b in pairs):
        truth = math.inf
    elif alpha == 1:
        truth = sum(a * math.log(a / b) for a, b in pairs)
    elif alpha == math.inf:
        truth = max(math.log(a / b) for a, b in pairs)
    else:
        with mpmath.workdps(40):
            total = sum(
                mpmath.mpf(a) ** alpha * mpmath.mpf(b) ** (1 - alpha) for a, b in pairs if b
            )
            truth = float(mpmath.log(total) / (alpha - 1))
    assert renyi_divergence(p, r, alpha) == pytest.approx(truth, abs=1e-12)


def test_orders_that_other_divergences_know():
    rng = np.random.default_rng(0)
    for p, r in rng.dirichlet(np.ones(4), size=(20, 2)):
        hellinger, square = (f_divergence(p, r, d) for d in ("squared-hellinger", "chi-square"))
        assert renyi_divergence(p, r, 0.5) == pytest.approx(-2 * math.log(1 - hellinger))
        assert renyi_divergence(p, r, 2) == pytest.approx(math.log(1 + square))
        assert renyi_divergence(p, r, 1) == pytest.approx(f_divergence(p, r, "relative-entropy"))
        by_order = [renyi_divergence(p, r, alpha) for alpha in ORDERS]
        assert by_order == sorted(by_order)


@few
@given(data=st.data())
def test_post_processing_never_raises_a_divergence_of_rows(data):
    q = data.draw(channels())
    after = q.then(data.draw(channels(inputs=q.shape[1])))
    for divergence in DIVERGENCES:
        assert row_divergence(after, divergence) <= row_divergence(q, divergence) + 1e-9
    for alpha in ORDERS:
        assert renyi_dp_epsilon(after, alpha) <= renyi_dp_epsilon(q, alpha) + 1e-9
    # The grid rounds up by 0.1 percent.
    assert zcdp_rho(after) <= 1.001 * zcdp_rho(q) + 1e-9


@few
@given(channels())
def test_what_the_rows_have_in_common_with_other_measures(q):
    epsilon = local_dp_epsilon(q)
    assert renyi_dp_epsilon(q, math.inf) == pytest.approx(epsilon)
    assert row_divergence(q, "total-variation") == pytest.approx(privacy_profile(q, 0.0), abs=TOL)
    assert zcdp_rho(q) <= 1.001 * epsilon**2 / 2 + TOL


def test_zcdp_holds_at_all_orders_and_is_nearly_least():
    rng = np.random.default_rng(3)
    for k, m, weight in [(2, 2, 1.0), (3, 4, 1.0), (2, 3, 0.05), (4, 3, 30.0), (2, 2, 1e4)]:
        q = rng.dirichlet(np.full(m, weight), size=k) + 1e-9
        q /= q.sum(axis=1, keepdims=True)
        rho = zcdp_rho(q)
        orders = 1 + np.geomspace(1e-3, 1e5, 4001)
        ratios = [renyi_dp_epsilon(q, a) / a for a in orders[::10]]
        near = orders[max(int(np.argmax(ratios)) * 10 - 10, 0) :][:21]
        largest = max(*ratios, *(renyi_dp_epsilon(q, a) / a for a in near))
        assert largest * (1 - 1e-12) <= rho <= 1.0021 * largest


def test_neighbors_are_compared_and_nobody_else():
    count = AdditiveQuery(RecordSpace.binary(3), [(0, 1)] * 3)
    q = np.random.default_rng(5).dirichlet(np.ones(3), size=4)
    mechanism = Mechanism(count, q)
    near = [(u, v) for u, v in itertools.permutations(range(4), 2) if abs(u - v) == 1]
    whole = mechanism.to_channel().matrix
    for divergence in DIVERGENCES:
        truth = max(f_divergence(q[u], q[v], divergence) for u, v in near)
        assert row_divergence(q, divergence, query=count) == pytest.approx(truth)
        assert row_divergence(whole, divergence, query=count.space) == pytest.approx(truth)
    truth = max(renyi_divergence(q[u], q[v], 2.5) for u, v in near)
    assert renyi_dp_epsilon(q, 2.5, query=count) == pytest.approx(truth)
    assert renyi_dp_epsilon(q, math.inf, query=count) == pytest.approx(record_dp_epsilon(mechanism))
    assert zcdp_rho(q, query=count) < zcdp_rho(q)


def test_no_pair_no_divergence():
    for measure in (
        lambda q: row_divergence(q, "chi-square"),
        lambda q: renyi_dp_epsilon(q, 2),
        zcdp_rho,
    ):
        assert measure([[0.2, 0.8]]) == 0.0
        assert measure([[0.2, 0.8]] * 2) == pytest.approx(0.0, abs=1e-15)
        assert measure(np.eye(2)) == math.inf


def test_priors_are_matched_by_label():
    p, r = Prior([0.2, 0.8], ["a", "b"]), Prior([0.7, 0.3], ["b", "a"])
    assert f_divergence(p, r, "total-variation") == pytest.approx(0.1)
    assert renyi_divergence(p, r, 2) == pytest.approx(math.log(0.04 / 0.3 + 0.64 / 0.7))


HALVES = [0.5, 0.5]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: f_divergence(HALVES, HALVES, "kl"), "divergence: found 'kl'; allowed: 'chi-sq"),
        (lambda: f_divergence(HALVES, [1.0], "chi-square"), "reference: found 1 outcome; 2 are"),
        (lambda: f_divergence([0.5], HALVES, "chi-square"), "prior: sums to 0.5"),
        (lambda: renyi_divergence(HALVES, HALVES, 0), "alpha: found 0"),
        (lambda: renyi_dp_epsilon(np.eye(2), -1), "alpha: found -1"),
        (
            lambda: row_divergence(np.eye(2), "chi-square", query=3),
            "query: expected a Query or a Rec",
        ),  # pyright: ignore[reportArgumentType]
        (
            lambda: zcdp_rho(np.eye(3), query=RecordSpace.binary(1)),
            "channel: found 3 rows; the space",
        ),
    ],
)
def test_bad_arguments_are_refused(call, message):
    with pytest.raises(ValidationError, match=message):
        call()
