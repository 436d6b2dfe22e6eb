"""`Many` against balls: for each operation, the exact value is inside of what it returns.

Inputs are ordinary, extreme and at the boundaries of the rules: radii of 0, subnormal, just below
and above 1/4, as large as the number, infinite and NaN; numbers of all sizes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flint
import numpy as np
import pytest
from flint import arb, fmpq

from cvxleak.kernel import many
from cvxleak.kernel.gains import power
from cvxleak.kernel.many import Many, stacked
from cvxleak.kernel.numbers import RefusedError, precision, soft, xlogx

SPECIAL = [0.0, 5e-324, 2.0**-1022, 2.0**-1000, 1e-300, 1e-30, 0.25, 1 / np.e, 0.5, 1.0, 698.99]
SPECIAL += [699.0, 699.01, 700.0, 745.0, 2.0**53, 1e150, 2.0**900, 1e300, 1.7e308]
RADII = [0.0, 0.0, 0.0, 5e-324, 2.0**-1000, 1e-16, 1e-9, 0.2499999, 0.25, 1.0, 1000.0, 1e300]
SHARES = [-1.0, 1.0, 0.0, 0.5, -0.5, 0.96875]


@pytest.fixture(autouse=True)
def _exactly() -> Any:
    """Compute the truth with 500 bits, and warn of no overflow."""
    before, flint.ctx.prec = flint.ctx.prec, 500
    with np.errstate(all="ignore"):
        yield
    flint.ctx.prec = before


class Drawn:
    """Float balls with a number in each."""

    def __init__(self, rng: np.random.Generator, size: int, *, signed: bool = True) -> None:
        kinds = rng.integers(4, size=size)
        m = rng.uniform(0, 2, size)
        m = np.where(kinds == 1, 10.0 ** rng.uniform(-320, 308, size), m)
        m = np.where(kinds == 2, rng.choice(SPECIAL, size), m)
        m = np.where(kinds == 3, rng.uniform(0, 750, size), m)
        if signed:
            m = m * rng.choice([-1.0, 1.0], size)
        near = np.abs(m) * 10.0 ** rng.uniform(-17, 0.5, size)
        r = np.where(rng.random(size) < 0.5, rng.choice(RADII, size), near)
        self.ball = Many(m, r)
        share = rng.choice(SHARES, size)
        self.truth = [arb(a) + arb(s) * arb(b) for a, s, b in zip(m, share, r, strict=True)]


def outside(found: Many, truth: Any) -> list[int]:
    """Return where a number is certainly not in what was found."""
    size = len(truth)
    fine = np.broadcast_to(found.certain(), size)
    m, r = np.broadcast_to(found.m, size), np.broadcast_to(found.r, size)
    places = np.flatnonzero(fine).tolist()
    return [
        i
        for i in places
        if truth[i] is not None and bool(abs(truth[i] - arb(float(m[i]))) > arb(float(r[i])))
    ]


def _logarithm(x: arb) -> arb | None:
    return x.log() if x > 0 else None


def _x_log_x(x: arb) -> arb | None:
    return xlogx(x) if x >= 0 else None


def _power(x: arb) -> arb | None:
    return power(x, fmpq(3, 7)) if x >= 0 else None


def _quotient(x: arb, y: arb) -> arb | None:
    return None if y == 0 else x / y


UNARY: dict[str, tuple[Callable[[Many], Many], Callable[[arb], arb | None], bool]] = {
    "neg": (lambda a: -a, lambda x: -x, True),
    "exp": (lambda a: a.exp(), lambda x: x.exp(), True),
    "log": (lambda a: a.log(), _logarithm, True),
    "xlogx": (lambda a: a.xlogx(), _x_log_x, False),
    "power": (lambda a: a.power(arb(3) / 7), _power, False),
    "positive": (lambda a: a.max(0.0), lambda x: x.max(arb(0)), True),
}
BINARY: dict[str, tuple[Callable[[Many, Many], Many], Callable[[arb, arb], arb | None]]] = {
    "add": (lambda a, b: a + b, lambda x, y: x + y),
    "sub": (lambda a, b: a - b, lambda x, y: x - y),
    "mul": (lambda a, b: a * b, lambda x, y: x * y),
    "div": (lambda a, b: a / b, _quotient),
    "max": (lambda a, b: a.max(b), lambda x, y: x.max(y)),
}
SIZES = [3_000, pytest.param(100_000, marks=pytest.mark.slow)]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one_number_hold_the_truth(name: str, size: int) -> None:
    many_of, ball_of, signed = UNARY[name]
    x = Drawn(np.random.default_rng(1), size, signed=signed)
    assert outside(many_of(x.ball), [ball_of(t) for t in x.truth]) == []


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", BINARY)
def test_functions_of_two_numbers_hold_the_truth(name: str, size: int) -> None:
    many_of, ball_of = BINARY[name]
    rng = np.random.default_rng(2)
    x, y = Drawn(rng, size), Drawn(rng, size)
    truth = [ball_of(a, b) for a, b in zip(x.truth, y.truth, strict=True)]
    assert outside(many_of(x.ball, y.ball), truth) == []


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("terms", [1, 2, 7])
def test_inner_products_hold_the_truth(terms: int, size: int) -> None:
    rng = np.random.default_rng(terms)
    x, y = ([Drawn(rng, size // terms) for _ in range(terms)] for _ in range(2))
    found = stacked([a.ball for a in x]).inner(stacked([a.ball for a in y]), 0)
    truths = zip(*(a.truth for a in x), *(a.truth for a in y), strict=True)
    truth = [
        sum((p * q for p, q in zip(t[:terms], t[terms:], strict=True)), arb(0)) for t in truths
    ]
    assert outside(found, truth) == []


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("terms", [2, 4])
def test_soft_maxima_hold_the_truth(terms: int, size: int) -> None:
    rng = np.random.default_rng(terms)
    scale = Drawn(rng, size // terms)
    x = [Drawn(rng, size // terms) for _ in range(terms)]
    found = scale.ball.soft([a.ball for a in x])
    truth = [
        soft(list(values), s) if s >= 0 else None
        for s, *values in zip(scale.truth, *(a.truth for a in x), strict=True)
    ]
    assert outside(found, truth) == []
    # Ordinary terms and scales that are 0, tiny, or may be either side of 0.
    tiny = Many(rng.choice([0.0, -1e-9, 1e-9, 1e-320, -0.5, 1e-3], size // terms), 0.0)
    tiny.r = np.where(tiny.m < 0, -tiny.m, 0.0) + rng.choice([0.0, 1e-9, 0.01], size // terms)
    near = [Many(rng.uniform(-1, 1, size // terms)) for _ in range(terms)]
    found = tiny.soft(near)
    for share in (0.0, 0.5, 1.0):
        at = [max(m + share * r, 0.0) for m, r in zip(tiny.m, tiny.r, strict=True)]
        lists = zip(*(a.m for a in near), strict=True)
        truth = [soft([arb(v) for v in own], arb(s)) for own, s in zip(lists, at, strict=True)]
        assert outside(found, truth) == []
    assert found.certain()[tiny.m != 1e-320].all()


UNKNOWN = [Many(0.5, np.inf), Many(0.5, np.nan), Many(np.nan, 0.0), Many(-1000.0, np.inf)]
UNKNOWN += [Many(-1000.0, np.nan), Many.of(np.inf), Many(0.0, np.nan), Many(0.0, np.inf)]


@pytest.mark.parametrize("x", UNKNOWN, ids=lambda x: f"{x.m}+-{x.r}")
def test_what_is_not_known_is_never_known_again(x: Many) -> None:
    one = Many(np.array([1.0, 0.0, 1e300, 1e-300]))
    found = [op(x) for op, _, _ in UNARY.values()]
    for op, _ in BINARY.values():
        found += [op(x, one), op(one, x)]
    found += [stacked([x, one]).inner(stacked([one, one]), 0), x.soft([one, one])]
    found += [stacked([one]).inner(x, 0)]
    found += [one.soft([one, x]), one.soft([x, one])]
    names = [
        *UNARY,
        *(f"{n} {i}" for n in BINARY for i in (0, 1)),
        *"dot dot soft soft soft".split(),
    ]
    known = [n for n, y in zip(names, found, strict=True) if np.any(y.certain())]
    assert known == []
    assert not x.is_zero()


def test_what_is_not_known_has_an_infinite_radius() -> None:
    whole = Many(np.array([1.0]), np.array([0.5]))
    found = [
        Many.of(np.inf),
        Many.of(np.array([np.inf]))[0],
        Many.of(arb(2) ** 901),
        Many(1.0) / Many(np.array([0.0]), np.array([1.0])),
        Many(np.array([-1.0])).log(),
        Many(np.array([700.0])).exp(),
    ]
    assert [float(np.max(x.r)) for x in found] == [np.inf] * len(found)
    assert whole.upper() > 1.5
    # So the larger of two is not known, either.
    assert not any(np.any(x.max(whole * 1e3).certain()) for x in found[:3])


@pytest.mark.parametrize("rest", [[1e308], [1e308, -1e308], [1e308, -1e308, -1e308]])
def test_sums_beyond_floats_are_not_known(rest: list[float]) -> None:
    x = np.array([[1e308, *rest]])
    squares = Many(np.array([[1e155, 1.0]])).matmul(np.array([[1e155], [1.0]]))
    for found in (Many(x).inner(1.0), Many(x).matmul(np.ones((x.shape[1], 1))), squares):
        known = np.isfinite(found.m)
        assert not (~known & np.isfinite(found.r)).any()
        # 1 / x, or e^-x, would be known otherwise.
        assert not ((1.0 / found).certain() & ~known).any()
        assert not ((-found).exp().certain() & ~known).any()
    assert not squares.certain().any()


def test_radii_of_products_of_matrices_count_the_terms() -> None:
    found = Many(np.ones((2, 1, 50))).matmul(np.ones((50, 3)))
    assert (found.r >= 52 * 2.0**-53 * 50).all()


@pytest.mark.parametrize("terms", [1, 50])
def test_products_of_matrices_hold_those_of_both_ends(terms: int) -> None:
    one = Many(np.full((1, terms), 2.0), np.full((1, terms), 1.0))
    found = one.matmul(Many(np.full((terms, 1), 3.0), np.full((terms, 1), 2.0)))
    assert (found.m + found.r >= terms * 3.0 * 5.0).all()


@pytest.mark.parametrize("radius", [0.3, 1000.0, np.inf, np.nan])
def test_exponentials_far_below_keep_their_radius(radius: float) -> None:
    # exp(-1000 +- 1000) may be 1.
    assert not Many(-1000.0, radius).exp().certain()


def test_domains_are_checked() -> None:
    assert not Many(1.0, 1.0).log().certain()
    assert not Many(-1.0, 0.0).xlogx().certain()
    assert not Many(-1.0, 0.0).power(arb(2)).certain()
    assert not (Many(1.0) / Many(1e-5, 1e-5)).certain()
    assert not (Many(1.0) / Many(0.0)).certain()


def test_zero_stays_zero_where_terms_are_left_out() -> None:
    for zero in (Many.of(0), Many.of(fmpq(0)), Many.of(arb(0)), Many.of(0.0)):
        assert zero.is_zero()
        assert zero.xlogx().is_zero()
        assert zero.power(arb(2)).is_zero()
    assert not Many(np.array([0.0, 1.0])).is_zero()
    assert not (Many(0.0, 1e-300)).is_zero()


def test_ordinary_numbers_stay_precise() -> None:
    rng = np.random.default_rng(0)
    x, y = Many(rng.uniform(0.01, 2, 1000)), Many(rng.uniform(0.01, 2, 1000), 1e-15)
    found = [op(y) for op, _, _ in UNARY.values()] + [op(x, y) for op, _ in BINARY.values()]
    found += [stacked([x] * 9).inner(stacked([y] * 9), 0), y.soft([x, y, x - 3])]
    assert max(float(np.max(z.r)) for z in found) < 1e-11


@pytest.mark.parametrize(
    "value", [fmpq(1, 3), fmpq(-2, 7), 10**30 + 1, arb(2).log(), fmpq(1, 10**40)]
)
def test_numbers_that_are_no_floats_enter_through_a_ball(value: Any) -> None:
    found = Many.of(value)
    assert found.r > 0
    assert outside(found, [arb(value)]) == []


@pytest.mark.parametrize("value", [arb(10) ** 400, arb.nan(), arb("inf"), arb(0, 10) ** 400])
def test_numbers_beyond_floats_are_not_known(value: arb) -> None:
    assert not Many.of(value).certain()


@pytest.mark.parametrize("size", [20_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_logarithms_and_exponentials_are_as_exact_as_they_say(size: int) -> None:
    rng = np.random.default_rng(7)
    cells = 0.5 + np.arange(513) / 1024
    edges = np.concatenate([cells, np.nextafter(cells, 0), 1 + np.arange(-9, 9) * 2.0**-52])
    x = np.concatenate([edges, rng.uniform(0.4, 2.2, size), 2.0 ** rng.uniform(-1000, 900, size)])
    for value, found in zip(x.tolist(), many._log(x).tolist(), strict=True):
        truth, e = arb(value).log(), abs(np.frexp(value)[1])
        allowed = 2.8 + 1.2 * arb(int(e)) + abs(truth)
        assert not abs(truth - arb(found)) > allowed * many.U, value
        assert not allowed > 4 * (1 + abs(truth)), value
    x = np.concatenate([np.arange(-700.0, 701.0), rng.uniform(-700, 700, size)])
    x = np.concatenate([x, rng.uniform(-1, 1, size), (np.arange(-999, 999) + 0.5) * np.log(2)])
    x = x[np.abs(x) <= 700]
    for value, found in zip(x.tolist(), many._exp(x).tolist(), strict=True):
        truth = arb(value).exp()
        assert not abs(truth - arb(found)) > (100 + 3 * abs(arb(value))) * many.U * truth, value


def test_a_scale_that_is_certainly_negative_is_refused_in_balls() -> None:
    with precision(), pytest.raises(RefusedError, match="negative"):
        soft([arb(1), arb(2)], arb(-1))


@pytest.mark.parametrize("e", [0, 1, -3])
def test_logarithms_at_the_ends_of_the_table_are_off_by_what_its_proof_says(e: int) -> None:
    ends = 0.5 + np.arange(513) / 1024
    m = np.concatenate([ends[:-1], np.nextafter(ends[1:], 0)])
    cell = (m * 1024).astype(int) - 512
    assert np.abs(m * many._INVERSES[cell] - 1).max() < 2**-9.9
    x = np.ldexp(m, e)
    for value, found in zip(x.tolist(), many._log(x).tolist(), strict=True):
        truth = arb(value).log()
        assert abs(arb(found) - truth) <= (2.8 + 1.2 * abs(e) + abs(truth)) * arb(2) ** -53
