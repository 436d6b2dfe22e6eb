"""`check_claim`: prove or refute a mechanism's stated differential privacy."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from html import escape
from typing import Any, NamedTuple

from numpy.typing import ArrayLike

from cvxleak.core.clock import WORK_LIMIT, Clock
from cvxleak.core.errors import ValidationError
from cvxleak.core.numbers import at_most, fraction
from cvxleak.core.validation import in_order, privacy_level, real_number, short
from cvxleak.core.value import preview
from cvxleak.differential_privacy.claim_search import (
    Compared,
    Distinguished,
    Pair,
    covers,
    rows_compared,
    worst,
)
from cvxleak.model import Channel, Mechanism, Prior
from cvxleak.problem import Bound
from cvxleak.problem.problem import ROUNDING

__all__ = ["ClaimCheck", "Distinction", "check_claim"]

SIMPLE = 1000
"""Largest denominator of a ratio that is worth writing down exactly: 3, or 4/3, of the tests."""

PARAMETERS = {"dp-profile": "delta", "gaussian-dp": "mu", "renyi-dp": "epsilon", "zcdp": "rho"}
"""What is bounded by each kind of certificate."""

TOLERANCE = 1e-3
"""Relative gap of a parameter that is searched for; zCDP claims of the bank close to 1e-6."""

METHOD = (
    "the worst pair of inputs, because a claim about a single channel is decided by finitely many "
    "pairs"
)


@dataclass(frozen=True)
class Distinction:
    """Two output distributions that must be hard to distinguish, and what distinguishes them best.

    Attributes
    ----------
    first, second : hashable
        The inputs, or values of the query, whose output distributions are P and R.
    outputs : tuple of hashable
        The event that distinguishes them; for a divergence, the output that contributes most to it.
    order : float or None
        The order alpha of the divergence; inf where one output's probabilities are compared.

    Examples
    --------
    >>> from cvxleak.differential_privacy import check_claim
    >>> check_claim([[0.75, 0.25], [0.25, 0.75]], epsilon=1).violation
    Distinction(first=0, second=1, outputs=(0,), order=inf)
    """

    first: Any
    second: Any
    outputs: tuple[Any, ...]
    order: float | None = None

    def __str__(self) -> str:
        order = ""
        if self.order is not None and math.isfinite(self.order):
            near = f"1 + {self.order - 1:.1e}"
            order = f" at order {near if self.order < 1.001 else f'{self.order:.4f}'}"
        return f"{self.first!r} against {self.second!r}{order}, output {preview(self.outputs)}"


@dataclass(frozen=True)
class ClaimCheck:
    """The outcome of checking a privacy claim.

    Attributes
    ----------
    claim : str
        The claim in words.
    stated : float
        The claimed value of the parameter.
    bound : Bound
        Lower and upper bound on the least parameter for which the claim is true: `lower` is
        attained by the witness, a `Distinction`, and `upper` is proved by the certificate. Where
        floats around the least epsilon do not decide, it is about the least delta at the claimed
        epsilon, which is 0 exactly if the claim is true.
    remedy : str
        What to write instead, where only the last digits of floats decide.

    Examples
    --------
    >>> from cvxleak.differential_privacy import check_claim
    >>> answer = check_claim([[0.75, 0.25], [0.25, 0.75]], zcdp=0.55)
    >>> print(answer)
    PASS: 0.55-zCDP; rho is 0.549306 to 0.549307 nats
    >>> answer.passed, answer.bound.certificate.kind
    (True, 'zcdp')
    """

    claim: str
    stated: float
    bound: Bound
    remedy: str = ""

    @property
    def verdict(self) -> str:
        """``"PASS"`` if the claim is proved, ``"FAIL"`` if it is refuted, ``"OPEN"`` if neither.

        The claim is taken as written, without a tolerance.
        """
        if at_most(self.bound.upper, self.stated):
            return "PASS"
        return "OPEN" if at_most(self.bound.lower, self.stated) else "FAIL"

    @property
    def passed(self) -> bool:
        """Whether the claim is proved."""
        return self.verdict == "PASS"

    @property
    def violation(self) -> Distinction | None:
        """The counterexample that refutes the claim, or None."""
        return self.bound.witness if self.verdict == "FAIL" else None

    def __repr__(self) -> str:
        return f"ClaimCheck({self})"

    def _repr_html_(self) -> str:
        return f"<p>{escape(str(self))}</p>{self.bound._repr_html_()}"

    def __str__(self) -> str:
        bound = self.bound
        text = f"{self.verdict}: {self.claim}; {bound.name} is {_ends(bound, self.stated)}"
        if self.violation is not None:
            text = f"{text}: {self.violation}"
        return f"{text}; {self.remedy}" if self.remedy and not self.passed else text


class _Claim(NamedTuple):
    """A claim in words, its parameter, and the kind of certificate that decides it.

    `search` says how well it distinguishes two distributions, `written` how a user states it. Where
    only the last digits of floats decide, `exact` does, if there is one.
    """

    text: str
    stated: float
    kind: str
    written: str
    search: Callable[[Pair], Distinguished]
    level: Mapping[str, Any] = {}
    odds: Fraction | None = None
    exact: _Claim | None = None


def check_claim(
    first: Mechanism | Channel | Prior | ArrayLike,
    second: Channel | Prior | ArrayLike | None = None,
    *,
    epsilon: float | str | None = None,
    ratio: float | Fraction | str | None = None,
    delta: float | None = None,
    zcdp: float | None = None,
    renyi: tuple[float, float] | None = None,
    gdp: float | None = None,
) -> ClaimCheck:
    """Prove or refute a mechanism's stated differential privacy.

    Let P and R be the output distributions of two inputs that must be hard to distinguish, in
    either order.

    ==================  =====================================================================
    claim               says that, for each such pair,
    ==================  =====================================================================
    epsilon             P(S) <= e^epsilon R(S) for all events S
    epsilon and delta   P(S) <= e^epsilon R(S) + delta for all events S
    zcdp                D_alpha(P || R) <= zcdp alpha for all orders alpha > 1
    renyi               D_alpha(P || R) <= epsilon, renyi being (alpha, epsilon)
    gdp                 telling P from R is no easier than N(0, 1) from N(gdp, 1)
    ==================  =====================================================================

    Parameters
    ----------
    first : Mechanism, Channel, Prior or array_like
        For a mechanism, the claim is about all pairs of datasets that differ in one record. For a
        channel, it is about all pairs of inputs (local privacy). With `second`, it is about the
        pairs described there.
    second : Channel, Prior or array_like, optional
        Output distributions to compare with those of `first`, row by row; a single one may be a
        vector. For example, a program's outputs with and without one person.
    epsilon : float or str, optional
        In nats, at least 0. The text "log(3)" stands for that number exactly.
    ratio : float, Fraction or str, optional
        e^epsilon in place of epsilon, at least 1 and exact: ``ratio=3`` is ``epsilon="log(3)"``.
    delta : float, optional
        A probability, 0 if left out; only with `epsilon` or `ratio`.
    zcdp : float, optional
        rho, in nats.
    renyi : tuple of float, optional
        The order alpha, more than 1, and epsilon in nats.
    gdp : float, optional
        mu, in standard deviations.

    Returns
    -------
    ClaimCheck
        PASS with a certificate for `cvxleak.verify`; FAIL with a counterexample, which anyone can
        recompute; or OPEN, if a least rho, mu or delta, or an epsilon of finite order, is too close
        to the claimed one to decide. A claim of epsilon alone is always decided.

    Raises
    ------
    ValidationError
        No claim, or more than one; numbers out of range; distributions of different sizes or
        labels; a mechanism whose channel is not known exactly.

    See Also
    --------
    cvxleak.samples.dp_violation : The same for a program that can only be sampled.

    Notes
    -----
    Probabilities and the claim are taken as written. A channel whose rows differ by a factor of e^1
    up to floating-point rounding may have an epsilon of 1.0000000000000002; it then fails the claim
    epsilon = 1, and the answer says by how little, and what to write instead. The mechanisms of
    `cvxleak.mechanisms` are rounded towards privacy and pass their own epsilon. Exact probabilities
    ("3/4") and an exact epsilon ("log(3)") are compared exactly.

    Bun and Steinke (2016) define zCDP, Mironov (2017) Rényi differential privacy, Dong, Roth and Su
    (2022) Gaussian differential privacy. "Certificates" in the documentation derives both bounds.

    Examples
    --------
    Warner's randomized response, exactly and as floats:

    >>> from cvxleak.differential_privacy import check_claim
    >>> print(check_claim([["3/4", "1/4"], ["1/4", "3/4"]], epsilon="log(3)"))
    PASS: log(3)-DP; delta is 0
    >>> print(check_claim([["3/4", "1/4"], ["1/4", "3/4"]], epsilon=1.0986))
    FAIL: 1.0986-DP; epsilon is 1.09861 nats: 0 against 1, output [0]

    A noisy maximum: the candidate with most votes, by the exponential mechanism at epsilon = 1, for
    which 1/8-zCDP is stated. A program that forgets the 2 in its denominator spends four times as
    much:

    >>> from cvxleak.mechanisms import exponential
    >>> from cvxleak.model import AdditiveQuery, Mechanism, RecordSpace
    >>> one = [(1, 0, 0), (0, 1, 0), (0, 0, 1)]
    >>> votes = AdditiveQuery(RecordSpace([range(3)] * 4), [one] * 4)
    >>> right, wrong = (
    ...     Mechanism(votes, exponential(votes.values, 1, sensitivity, votes.values))
    ...     for sensitivity in (1, 0.5)
    ... )
    >>> print(check_claim(right, zcdp=0.125))
    PASS: 0.125-zCDP; rho is 0.103165 nats
    >>> print(check_claim(wrong, zcdp=0.125))
    FAIL: 0.125-zCDP; rho is 0.424741 nats: (0, 2, 2) against (0, 3, 1) at order 1.4738, output [2]
    """
    given = {"epsilon": epsilon, "ratio": ratio, "zcdp": zcdp, "renyi": renyi, "gdp": gdp}
    claim = _claim({name: x for name, x in given.items() if x is not None}, delta)
    compared = rows_compared(first, second)
    answer = _answer(claim, compared)
    upper_end, stated = answer.bound.upper, claim.stated
    near = abs(upper_end - stated) <= ROUNDING * (1 + stated)
    remedy = "" if not near or answer.passed else _remedy(claim, upper_end)
    if claim.exact is not None and (answer.verdict == "OPEN" or (near and claim.odds)):
        answer = _answer(claim.exact, compared)
    return replace(answer, remedy=remedy)


def _answer(claim: _Claim, compared: Compared) -> ClaimCheck:
    """Return what is claimed, and bounds on its parameter."""
    matrix, pairs, labels, outputs = compared
    clock = Clock(work_limit=WORK_LIMIT)
    ways = [*pairs, *((v, u) for u, v in pairs)]
    laws = [Pair(matrix[u], matrix[v]) for u, v in ways]
    orders = covers(laws, claim.stated, clock) if claim.kind == "zcdp" else []
    each = [claim.search(one) for one in laws]
    place = worst(each)
    (u, v), found = ways[place], each[place]
    problem = {"matrix": matrix.tolist(), "pairs": [list(pair) for pair in pairs], **claim.level}
    below: dict[str, Any] = {"rule": "pair", "pair": [u, v]}
    above: dict[str, Any] = {"rule": "pairs"}
    if claim.kind == "zcdp":
        both = zip(orders[: len(pairs)], orders[len(pairs) :], strict=True)
        below["order"], above = found.order, {"rule": "orders", "orders": list(map(list, both))}
    elif claim.kind == "gaussian-dp":
        below["outputs"] = found.outputs
    outcomes = tuple(outputs[y] for y in found.outputs)
    bound = Bound.of_terms(
        PARAMETERS[claim.kind],
        claim.kind,
        problem,
        below,
        above,
        tol=TOLERANCE,
        witness=Distinction(labels[u], labels[v], outcomes, found.order),
        stats={"method": METHOD, "seconds": clock.seconds},
    )
    return ClaimCheck(claim.text, claim.stated, bound)


def _remedy(claim: _Claim, upper_end: float) -> str:
    """Say what to write instead, where only the last digits of floats decide."""
    excess = float(fraction(upper_end) - fraction(claim.stated))
    instead = claim.written.format(repr(upper_end))
    text = f"it holds up to {excess:.0e}, the rounding of your numbers; write {instead}"
    odds = Fraction(math.exp(min(upper_end, 700.0))).limit_denominator(SIMPLE)
    if claim.exact is None or not abs(math.log(odds) - upper_end) <= ROUNDING:
        return text
    return f'{text}, or exact numbers: probabilities such as "3/4" and epsilon="log({odds})"'


# Claims ----------------------------------------------------------------------------------------


def _claim(given: Mapping[str, Any], delta: float | None) -> _Claim:
    """Return the one claim that is made."""
    if {"epsilon", "ratio"} <= set(given):
        raise ValidationError("ratio: found epsilon as well; ratio is e^epsilon, in its place")
    if len(given) != 1:
        found = " and ".join(given) or "no claim"
        raise ValidationError(
            f"epsilon: found {found}; exactly one of epsilon (with delta), zcdp, renyi and gdp "
            "is needed"
        )
    ((name, value),) = given.items()
    if name in ("epsilon", "ratio"):
        return _of_epsilon(name, value, delta)
    if delta is not None:
        raise ValidationError(
            f"delta: found {short(delta)} without epsilon; it is only allowed together with epsilon"
        )
    if name == "renyi":
        return _of_order(value)
    x = real_number(value, name, 0.0, open_high=True)
    if name == "zcdp":
        return _Claim(f"{x:.10g}-zCDP", x, "zcdp", "zcdp={}", Pair.rate)
    return _Claim(f"{x:.10g}-Gaussian DP", x, "gaussian-dp", "gdp={}", Pair.shift)


def _of_epsilon(name: str, value: Any, delta: float | None) -> _Claim:
    """Return the claim of an epsilon, with a delta or alone; e^epsilon may be an exact number."""
    if name == "ratio":
        value = f"log({fraction(real_number(value, name, 1.0, open_high=True))})"
    epsilon, odds = privacy_level(value, name, open_high=True)
    text = f"{epsilon:.10g}" if odds is None else f"log({odds})"
    allowed = 0.0 if delta is None else real_number(delta, "delta", 0.0, 1.0)
    if allowed == 0:
        return _without_delta(f"{text}-DP", epsilon, odds)
    level, text = {"epsilon": epsilon if odds is None else text}, f"({text}, {allowed:.10g})-DP"
    search = partial(Pair.event, epsilon=epsilon)
    return _Claim(text, allowed, "dp-profile", "delta={}", search, level)


def _of_order(value: Any) -> _Claim:
    """Return a claim of Rényi differential privacy."""
    both = in_order(value, "renyi")
    if len(both) != 2:
        raise ValidationError(f"renyi: found {short(value)}; (alpha, epsilon) is needed")
    alpha = real_number(both[0], "renyi", 1.0, open_low=True)
    epsilon = real_number(both[1], "renyi", 0.0, open_high=True)
    text = f"({alpha:.10g}, {epsilon:.10g})-Rényi DP"
    if math.isinf(alpha):
        return _without_delta(text, epsilon)
    written, search = f"renyi=({alpha!r}, {{}})", partial(Pair.divergence, order=alpha)
    return _Claim(text, epsilon, "renyi-dp", written, search, {"alpha": alpha})


def _without_delta(text: str, epsilon: float, odds: Fraction | None = None) -> _Claim:
    """Return the claim of an epsilon alone: the least delta at it is 0 exactly if it is true."""
    search = partial(Pair.divergence, order=math.inf)
    same, level = (f"{epsilon!r}-DP", epsilon) if odds is None else (text, f"log({odds})")
    exact = _Claim(same, 0.0, "dp-profile", "", search, {"epsilon": level})
    return _Claim(text, epsilon, "renyi-dp", "epsilon={}", search, {"alpha": "inf"}, odds, exact)


def _ends(bound: Bound, stated: float) -> str:
    """Return both bounds, with as many digits as it takes to see on which side of `stated` each is.

    So a claim of 1 is not said to fail because "epsilon is 1".
    """
    ends, texts = (bound.lower, bound.upper), ["", ""]
    for digits in range(6, 18):
        texts = [f"{end:.{digits}g}" for end in ends]
        if [float(text) <= stated for text in texts] == [end <= stated for end in ends]:
            break
    shown = " to ".join(dict.fromkeys(texts))
    return shown if bound.unit == "probability" else f"{shown} {bound.unit}"
