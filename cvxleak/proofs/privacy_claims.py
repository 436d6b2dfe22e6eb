"""Certificate kinds ``renyi-dp``, ``zcdp``, ``dp-profile`` and ``gaussian-dp``: privacy parameters.

A claim is about the least parameter for which all of the listed pairs of rows satisfy the privacy
definition; P and R are the rows of a pair, in either order. docs/certificates.md derives both
bounds. Rows are distributions as written (`cvxleak.core.numbers`), here with exact rational
probabilities.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any

from flint import arb, fmpq

from cvxleak.core.errors import CertificateError
from cvxleak.exact import balls, limits, reading
from cvxleak.exact.rationals import (
    float_above,
    float_below,
    from_text,
    normalized_rows,
    rational,
)

__all__ = [
    "about",
    "prove_gaussian",
    "prove_profile",
    "prove_renyi",
    "prove_zcdp",
]

Parts = Mapping[str, Any]
Law = Sequence[fmpq]
Pair = tuple[int, int]

LOGARITHM = re.compile(r"log\((\d+(?:/\d+)?)\)", re.ASCII)

LONGEST = 4_000
"""Most characters of the number whose logarithm an epsilon is."""

TERM = 4
"""Steps that are counted for each output whenever two distributions are compared."""


def prove_renyi(problem: Parts, witness: Parts, proof: Parts) -> tuple[float, float]:
    """Return proved bounds on the largest divergence of order alpha, in nats."""
    rows, pairs = _read(problem, "alpha")
    alpha = problem["alpha"]
    order = math.inf if alpha == "inf" else reading.number(alpha, "alpha")
    if not (order == math.inf or rational(order) > 1):
        raise CertificateError("alpha must be greater than 1")
    return _direct(rows, pairs, witness, proof, lambda p, r: _Laws(p, r).divergence(order))


def prove_profile(problem: Parts, witness: Parts, proof: Parts) -> tuple[float, float]:
    """Return proved bounds on the least delta at an epsilon."""
    rows, pairs = _read(problem, "epsilon")
    factor = _odds(problem["epsilon"])

    def delta(p: Law, r: Law) -> arb | fmpq:
        gains = [(x, y) for x, y in zip(p, r, strict=True) if not x - factor * y <= 0]
        if isinstance(factor, fmpq):
            return sum((x - factor * y for x, y in gains), fmpq(0))
        if not any(y for _, y in gains):  # no e^epsilon is left, so it is exact
            return sum((x for x, _ in gains), fmpq(0))
        return balls.total((x - factor * y).max(arb(0)) for x, y in gains)

    return _direct(rows, pairs, witness, proof, delta)


def prove_gaussian(problem: Parts, witness: Parts, proof: Parts) -> tuple[float, float]:
    """Return proved bounds on the least mu, in standard deviations."""
    rows, pairs = _read(problem)
    u, v = _pair(reading.parts(witness, {"pair", "outputs"}, "the witness"), pairs)
    reading.parts(proof, set(), "the proof")
    width = len(rows[u])
    (event,) = reading.groups([witness["outputs"]], "the outputs")
    if len(set(event)) < len(event) or any(y >= width for y in event):
        raise CertificateError("the outputs: expected distinct outputs of the channel")
    lower = _shift(*(sum((row[y] for y in event), fmpq(0)) for row in (rows[u], rows[v])))
    upper = balls.largest(_mu(rows[u], rows[v]) for u, v in pairs)
    return _rounded(lower, upper)


def prove_zcdp(problem: Parts, witness: Parts, proof: Parts) -> tuple[float, float]:
    """Return proved bounds on the least rho, in nats."""
    rows, pairs = _read(problem)
    u, v = _pair(reading.parts(witness, {"pair", "order"}, "the witness"), pairs)
    reading.parts(proof, {"orders"}, "the proof", optional={"levels"})
    (order,) = _orders([witness["order"]])
    lower = _Laws(rows[u], rows[v]).divergence(order) / arb(rational(order))
    if "levels" in proof:
        return _rounded(lower, _rho_of_all(rows, pairs, proof["levels"], _orders(proof["orders"])))
    stored = proof["orders"]
    if not isinstance(stored, list) or len(stored) != len(pairs):
        raise CertificateError("the orders: expected two lists for each pair")
    found = []
    for (one, other), both in zip(pairs, stored, strict=True):
        if not isinstance(both, list) or len(both) != 2:
            raise CertificateError("the orders: expected two lists for each pair")
        for p, r, orders in ((one, other, both[0]), (other, one, both[1])):
            found.append(_rho(_Laws(rows[p], rows[r]), _orders(orders)))
    upper = balls.largest(found)
    return _rounded(lower, upper)


def about(problem: Parts) -> str:
    """Say what a problem that a prover has read is about."""
    rows, pairs = problem["matrix"], problem["pairs"]
    level = "".join(f"{key} {problem[key]}, " for key in ("alpha", "epsilon") if key in problem)
    return f"{level}{len(pairs)} pairs of distributions on {len(rows[0])} outputs"


def _odds(epsilon: Any) -> arb | fmpq:
    """Return e^epsilon: exactly if epsilon is 0, or the logarithm of a fraction as text."""
    if isinstance(epsilon, str) and (found := LOGARITHM.fullmatch(epsilon)):
        odds = from_text(found[1], LONGEST)
        if odds < 1:
            raise CertificateError("epsilon must not be negative")
        return odds
    level = reading.number(epsilon, "epsilon")
    if level < 0:
        raise CertificateError("epsilon must not be negative")
    return balls.number(level).exp() if level else fmpq(1)


class _Laws:
    """Two distributions, P and R, and the logarithms of their probabilities where P has any."""

    def __init__(self, p: Law, r: Law) -> None:
        self.equal = list(p) == list(r)
        self.pairs = [(x, y) for x, y in zip(p, r, strict=True) if x]
        self.apart = any(not y for _, y in self.pairs)
        self._logs: list[tuple[arb, arb]] = []

    def divergence(self, order: float) -> arb:
        """Return D_alpha(P || R) for an order above 1."""
        if self.equal:
            return arb(0)
        if self.apart:
            return arb.pos_inf()
        if math.isinf(order):
            return arb(max(x / y for x, y in self.pairs)).log()
        limits.charge("steps", TERM * len(self.pairs), "a divergence")
        self._logs = self._logs or [(arb(x).log(), arb(y).log()) for x, y in self.pairs]
        alpha = arb(rational(order))
        rest = 1 - alpha
        return -balls.log_sum_exp([alpha * a + rest * b for a, b in self._logs]) / rest


def _rho(laws: _Laws, orders: Sequence[float]) -> arb:
    """Return an upper bound on D_alpha / alpha over all orders above 1."""
    most = laws.divergence(math.inf)
    return _between(orders, [laws.divergence(order) for order in orders], most)


def _between(orders: Sequence[float], divergences: Sequence[arb], most: arb) -> arb:
    """Return an upper bound on D_alpha / alpha from bounds on D at some orders and at infinity."""
    if not orders:
        return most
    exact = [rational(order) for order in orders]
    ratios = [d / arb(a) for d, a in zip(divergences, exact, strict=True)]
    found = [ratios[0] * arb(exact[0]), most / arb(exact[-1])]
    for (a, one), (b, other) in pairwise(zip(exact, ratios, strict=True)):
        found.append(one.max(other) * arb(1 + (b - a) ** 2 / (4 * a * (a - 1))))
    return balls.largest(found)


def _rho_of_all(
    rows: Sequence[Law], pairs: Sequence[Pair], stored: Any, orders: Sequence[float]
) -> arb:
    """Return what `_rho` returns, for all pairs at once, by their profiles at levels of P / R.

    With h(l) = sum_y max(P(y) - l R(y), 0), and f above t^alpha the function that is equal to it at
    the levels l_0 = 0 < l_1 < ... and linear between them, with slopes s_0 <= s_1 <= ...,

        exp((alpha - 1) D_alpha) <= sum_y R(y) f(P(y) / R(y)) = s_0 + sum_j (s_j - s_{j-1}) h(l_j)

    if no P / R is above the last level. The right-hand side increases with h, so the largest h over
    all pairs bounds all of them.
    """
    levels = [fmpq(0), *map(rational, reading.numbers(stored, "the levels"))]
    if len(levels) < 2 or not all(a < b for a, b in pairwise(levels)):
        raise CertificateError("the levels must be increasing and greater than 0")
    limits.charge("steps", 2 * TERM * len(pairs) * len(rows[0]), "profiles of distributions")
    limits.charge("steps", TERM * len(levels) * len(orders), "divergences of a profile")
    points = [arb(level) for level in levels]
    known = [[(x, arb(x)) for x in row] for row in rows]
    profiles = [
        _profile(known[p], known[r], levels, points)
        for pair in pairs
        for p, r in (pair, pair[::-1])
    ]
    highest = [balls.largest(heights) for heights in zip(*profiles, strict=True)]
    logs = [point.log() for point in points[1:]]
    divergences = []
    for order in orders:
        alpha = arb(rational(order))
        powers = [arb(0), *((alpha * log).exp() for log in logs)]
        slopes = [
            (power - before) / (here - there)
            for (before, power), (there, here) in zip(
                pairwise(powers), pairwise(points), strict=True
            )
        ]
        rises = [after - before for before, after in pairwise(slopes)]
        divergences.append((slopes[0] + balls.dot(rises, highest)).log() / (alpha - 1))
    return _between(orders, divergences, logs[-1])


def _profile(
    p: Sequence[tuple[fmpq, arb]],
    r: Sequence[tuple[fmpq, arb]],
    levels: Sequence[fmpq],
    points: Sequence[arb],
) -> list[arb]:
    """Return h at the levels between the first and the last one."""
    under, beside = [arb(0)] * len(levels), [arb(0)] * len(levels)
    for (x, x_ball), (y, y_ball) in zip(p, r, strict=True):
        if not x:
            continue
        ratio = x_ball / y_ball
        place = bisect_right(points, ratio)
        if not ratio >= points[place - 1]:  # too near to a level for balls
            place = bisect_right(levels, x / y) if y else len(levels)
        if place == len(levels) and x > levels[-1] * y:
            raise CertificateError("the highest level is below a ratio of probabilities")
        under[place - 1] += x_ball
        beside[place - 1] += y_ball
    tails = list(
        zip(accumulate(reversed(under)), accumulate(reversed(beside)), points[::-1], strict=True)
    )
    return [own - level * other for own, other, level in tails[-2:0:-1]]


def _mu(p: Law, r: Law) -> arb:
    """Return the largest shift of the sets of outputs with the largest likelihood ratios."""
    limits.charge("steps", TERM * len(p), "a trade-off curve")
    seen = [(x, y) for x, y in zip(p, r, strict=True) if x]
    alone = [(x, y) for x, y in seen if not y]
    others = sorted((pair for pair in seen if pair[1]), key=_likelihood_ratio, reverse=True)
    found, under, beside = [arb(0)], fmpq(0), fmpq(0)
    for x, y in alone + others:
        under, beside = under + x, beside + y
        found.append(_shift(under, beside))
    return balls.largest(found)


def _likelihood_ratio(pair: tuple[fmpq, fmpq]) -> Any:
    return pair[0] / pair[1]


def _shift(under: fmpq, beside: fmpq) -> arb:
    """Return the difference of Phi^-1 of a set's two probabilities; 0 if both are 0 or both 1."""
    if under <= beside:
        return arb(0)
    if under == 1 or beside == 0:
        return arb.pos_inf()
    return _quantile(under) - _quantile(beside)


def _quantile(mass: fmpq) -> arb:
    """Return Phi^-1 of a probability, computed near 1 from its complement."""
    if 2 * mass > 1:
        return -_quantile(1 - mass)
    return -arb(2).sqrt() * arb(2 * mass).erfcinv()


def _direct(
    rows: Sequence[Law],
    pairs: Sequence[Pair],
    witness: Parts,
    proof: Parts,
    value: Callable[[Law, Law], arb | fmpq],
) -> tuple[float, float]:
    """Return the bounds on a maximum over pairs that is computed by evaluating each pair."""
    u, v = _pair(reading.parts(witness, {"pair"}, "the witness"), pairs)
    reading.parts(proof, set(), "the proof")
    limits.charge("steps", 2 * TERM * len(pairs) * len(rows[0]), "pairs of distributions")
    both = [*pairs, *((v, u) for u, v in pairs)]
    uppers = [value(rows[p], rows[r]) for p, r in both]
    lower = value(rows[u], rows[v])
    exact = [one for one in uppers if isinstance(one, fmpq)]
    rest = [one for one in uppers if isinstance(one, arb)]
    upper = float_above(max(exact)) if exact else 0.0
    if rest:
        upper = max(upper, _rounded(arb(0), balls.largest(rest))[1])
    if isinstance(lower, fmpq):
        return float_below(lower), upper
    return _rounded(lower, arb(0))[0], upper


def _rounded(lower: arb, upper: arb) -> tuple[float, float]:
    """Return the bounds as floats; if the value is exactly infinite, both are."""
    low = math.inf if lower == arb.pos_inf() else max(balls.round_down(lower), 0.0)
    return low, max(balls.round_up(upper), 0.0)


def _read(problem: Parts, *level: str) -> tuple[list[list[fmpq]], list[Pair]]:
    """Return the rows, exactly, and the pairs that are compared."""
    data = reading.parts(problem, {"matrix", "pairs", *level}, "the problem")
    if not isinstance(data["matrix"], list) or not data["matrix"]:
        raise CertificateError("the matrix is not a list of rows")
    width = len(reading.numbers(data["matrix"][0], "a row of the matrix"))
    rows = normalized_rows(
        reading.numbers(row, "a row of the matrix", width) for row in data["matrix"]
    )
    pairs = reading.groups(data["pairs"], "the pairs")
    if not pairs:
        raise CertificateError("the pairs: expected at least one")
    return rows, [_of_rows(pair, len(rows)) for pair in pairs]


def _of_rows(pair: Sequence[int], rows: int) -> Pair:
    if len(pair) != 2 or max(pair) >= rows:
        raise CertificateError("the pairs: each must name two rows of the matrix")
    return pair[0], pair[1]


def _pair(witness: Parts, pairs: Iterable[Pair]) -> Pair:
    """Return the witness's pair, which must be one that is compared."""
    (pair,) = reading.groups([witness["pair"]], "the pair")
    if not {tuple(pair), tuple(pair[::-1])} & set(pairs):
        raise CertificateError("the witness: its pair is not one of the compared pairs")
    return pair[0], pair[1]


def _orders(values: Any) -> list[float]:
    """Return orders in increasing order, all above 1."""
    orders = reading.numbers(values, "the orders")
    exact = [fmpq(1), *map(rational, orders)]
    if not all(a < b for a, b in pairwise(exact)):
        raise CertificateError("the orders must be increasing and greater than 1")
    return orders
