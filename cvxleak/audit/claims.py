"""`check_claim`: prove or refute a mechanism's stated differential privacy."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from html import escape
from itertools import combinations
from time import perf_counter
from typing import Any, NamedTuple

from flint import fmpq
from numpy.typing import ArrayLike

from cvxleak.audit.claim_search import (
    Found,
    Laws,
    worst_for_divergence,
    worst_for_event,
    worst_for_shift,
    worst_for_zcdp,
)
from cvxleak.core.errors import ValidationError
from cvxleak.core.numbers import exact_law, fraction, stacked
from cvxleak.core.validation import dimensions, in_order, privacy_level, real_number, short
from cvxleak.core.value import preview
from cvxleak.exact.balls import precision
from cvxleak.exact.rationals import log_above, log_below
from cvxleak.model import Channel, Mechanism, Prior, as_channel
from cvxleak.model.prior import named_law
from cvxleak.problem import Bound
from cvxleak.proofs import Certificate
from cvxleak.proofs.checker import PROVERS

__all__ = ["ClaimCheck", "Distinction", "check_claim"]

ROUNDING = 1e-13
"""Relative differences that rounding makes, of parameters and of ratios of probabilities."""

SIMPLE = 1000
"""Largest denominator of a ratio that is worth writing down exactly."""

TOLERANCE = 1e-3
"""Relative gap between the bounds of a parameter that is searched for; the others have none."""


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
    >>> from cvxleak.audit import check_claim
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
            beyond = self.order - 1
            order = (
                f" at order {self.order:.4f}" if beyond > 1e-3 else f" at order 1 + {beyond:.1e}"
            )
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
    >>> from cvxleak.audit import check_claim
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
        if _at_most(self.bound.upper, self.stated):
            return "PASS"
        return "OPEN" if _at_most(self.bound.lower, self.stated) else "FAIL"

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


class _Asked(NamedTuple):
    """A claim: in words, its parameter, the kind of certificate, and more parts of its problem."""

    claim: str
    stated: float
    kind: str
    name: str
    level: Mapping[str, Any]
    odds: Fraction | None = None


Compared = tuple[Any, list[tuple[int, int]], Sequence[Hashable], Sequence[Hashable]]


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

    >>> from cvxleak.audit import check_claim
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
    asked = _asked(_level(epsilon, ratio), delta, zcdp, renyi, gdp)
    compared = _compared(first, second)
    answer = _answer(asked, compared)
    remedy = _remedy(asked, answer, compared[0])
    if asked.level.get("alpha") == "inf" and not _decided(asked, answer.bound):
        answer = _answer(_at_level(asked), compared)
    return replace(answer, remedy=remedy)


def _answer(asked: _Asked, compared: Compared) -> ClaimCheck:
    """Return what is claimed, and bounds on its parameter."""
    matrix, pairs, labels, outputs = compared
    begun = perf_counter()
    laws = [Laws(matrix[u], matrix[v]) for u, v in pairs]
    found = _worst(asked, laws + [one.flipped for one in laws])
    u, v = [*pairs, *((v, u) for u, v in pairs)][found.place]
    problem = {"matrix": matrix.tolist(), "pairs": [list(pair) for pair in pairs], **asked.level}
    below: dict[str, Any] = {"rule": "pair", "pair": [u, v]}
    above: dict[str, Any] = {"rule": "pairs"}
    if found.orders is not None:
        below["order"] = found.order
        both = zip(found.orders[: len(pairs)], found.orders[len(pairs) :], strict=True)
        above = {"rule": "orders", "orders": [list(one) for one in both]}
    elif asked.kind == "gaussian-dp":
        below["outputs"] = found.outputs
    prover = PROVERS[asked.kind]
    with precision():
        lower, upper, *_ = prover.prove(problem, below, above)
    parts = (asked.kind, problem, lower, upper, below, above)
    bound = Bound.proved(
        asked.name,
        lower,
        upper,
        tol=TOLERANCE,
        unit=prover.unit_of(problem),
        witness=Distinction(
            labels[u], labels[v], tuple(outputs[y] for y in found.outputs), found.order
        ),
        certificate=Certificate(*parts, unit=prover.unit_of(problem)),
        stats={
            "method": "the worst pair of inputs, because a claim about a single channel is decided "
            "by finitely many pairs",
            "seconds": perf_counter() - begun,
        },
    )
    return ClaimCheck(asked.claim, asked.stated, bound)


def _worst(asked: _Asked, laws: Sequence[Laws]) -> Found:
    """Return which of the distributions are distinguished best, and how."""
    if asked.kind == "zcdp":
        return worst_for_zcdp(laws, asked.stated)
    if asked.kind == "dp-profile" and asked.stated == 0:
        return worst_for_divergence(laws, math.inf)
    if asked.kind == "renyi-dp":
        return worst_for_divergence(laws, float(asked.level["alpha"]))
    if asked.kind == "dp-profile":
        return worst_for_event(laws, privacy_level(asked.level["epsilon"], "epsilon")[0])
    return worst_for_shift(laws)


def _decided(asked: _Asked, bound: Bound) -> bool:
    """Whether bounds on the least epsilon, which are floats, prove or refute the claim."""
    stated = asked.stated
    low, high = stated, stated
    if asked.odds is not None:
        odds = fmpq(asked.odds.numerator, asked.odds.denominator)
        low, high = log_below(odds), log_above(odds)
    return _at_most(bound.upper, low) or not _at_most(bound.lower, high)


def _at_level(asked: _Asked) -> _Asked:
    """Return the same claim as one about the least delta at its epsilon."""
    level = f"log({asked.odds})" if asked.odds is not None else asked.stated
    claim = asked.claim if asked.odds is not None else f"{asked.stated!r}-DP"
    return _Asked(claim, 0.0, "dp-profile", "delta", {"epsilon": level})


def _remedy(asked: _Asked, answer: ClaimCheck, matrix: Any) -> str:
    """Say what to write instead, where only the last digits of floats decide."""
    bound, stated = answer.bound, asked.stated
    if _at_most(bound.upper, stated) or not bound.upper - stated <= ROUNDING * (1 + stated):
        return ""
    excess = float(fraction(bound.upper) - fraction(stated))
    keyword = {"rho": "zcdp", "mu": "gdp"}.get(bound.name, bound.name)
    value = repr(bound.upper)
    if asked.level.get("alpha", "inf") != "inf":
        keyword, value = "renyi", f"({asked.level['alpha']!r}, {value})"
    text = f"it holds up to {excess:.0e}, the rounding of your numbers; write {keyword}={value}"
    odds = _near_odds(bound, matrix) if asked.level.get("alpha") == "inf" else None
    if odds is None:
        return text
    return f'{text}, or exact numbers: probabilities such as "3/4" and epsilon="log({odds})"'


def _near_odds(bound: Bound, matrix: Any) -> Fraction | None:
    """Return the simple fraction next to the largest ratio of probabilities, if there is one."""
    assert bound.certificate is not None
    p, r = (exact_law(matrix[x]) for x in bound.certificate.witness["pair"])
    odds = max(x / y for x, y in zip(p, r, strict=True) if y)
    simple = odds.limit_denominator(SIMPLE)
    return simple if abs(odds / simple - 1) <= ROUNDING else None


Level = tuple[str, float, Fraction | None]


def _level(epsilon: Any, ratio: Any) -> Level | None:
    """Return the keyword of a claimed epsilon, the epsilon, and e^epsilon if that is exact."""
    if ratio is None:
        return (
            None
            if epsilon is None
            else ("epsilon", *privacy_level(epsilon, "epsilon", open_high=True))
        )
    if epsilon is not None:
        raise ValidationError("ratio: found epsilon as well; ratio is e^epsilon, in its place")
    odds = fraction(real_number(ratio, "ratio", 1.0, open_high=True))
    return "ratio", privacy_level(f"log({odds})", "ratio")[0], odds


def _asked(
    epsilon: Level | None,
    delta: float | None,
    zcdp: float | None,
    renyi: tuple[float, float] | None,
    gdp: float | None,
) -> _Asked:
    """Return the one claim that is made."""
    made = {"zcdp": zcdp, "renyi": renyi, "gdp": gdp}
    named = [epsilon[0]] if epsilon is not None else []
    named += [name for name, value in made.items() if value is not None]
    if len(named) != 1:
        found = " and ".join(named) or "no claim"
        raise ValidationError(
            f"epsilon: found {found}; exactly one of epsilon (with delta), zcdp, renyi and gdp "
            "is needed"
        )
    if delta is not None and epsilon is None:
        raise ValidationError(
            f"delta: found {short(delta)} without epsilon; it is only allowed together with epsilon"
        )
    if epsilon is not None:
        _, level, odds = epsilon
        text = f"{level:.10g}" if odds is None else f"log({odds})"
        allowed = 0.0 if delta is None else real_number(delta, "delta", 0.0, 1.0)
        if allowed == 0:
            return _Asked(f"{text}-DP", level, "renyi-dp", "epsilon", {"alpha": "inf"}, odds)
        claim = f"({text}, {allowed:.10g})-DP"
        return _Asked(
            claim, allowed, "dp-profile", "delta", {"epsilon": level if odds is None else text}
        )
    if zcdp is not None:
        rho = real_number(zcdp, "zcdp", 0.0, open_high=True)
        return _Asked(f"{rho:.10g}-zCDP", rho, "zcdp", "rho", {})
    if gdp is not None:
        mu = real_number(gdp, "gdp", 0.0, open_high=True)
        return _Asked(f"{mu:.10g}-Gaussian DP", mu, "gaussian-dp", "mu", {})
    both = in_order(renyi, "renyi")  # pyright: ignore[reportArgumentType]
    if len(both) != 2:
        raise ValidationError(f"renyi: found {short(renyi)}; (alpha, epsilon) is needed")
    alpha = real_number(both[0], "renyi", 1.0, open_low=True)
    level = real_number(both[1], "renyi", 0.0, open_high=True)
    claim = f"({alpha:.10g}, {level:.10g})-Rényi DP"
    stored = "inf" if math.isinf(alpha) else alpha
    return _Asked(claim, level, "renyi-dp", "epsilon", {"alpha": stored})


def _compared(
    first: Mechanism | Channel | Prior | ArrayLike, second: Channel | Prior | ArrayLike | None
) -> Compared:
    """Return the rows, the pairs of them that are compared, and the labels."""
    if second is not None:
        return _row_by_row(first, second)
    if isinstance(first, Mechanism):
        channel, pairs = first.channel, sorted(first.query.neighbor_pairs())
    else:
        channel = _as_rows(first, "first")
        pairs = list(combinations(range(len(channel.inputs)), 2))
    if not pairs:
        raise ValidationError(
            "first: found no two inputs to compare; at least two inputs, or `second`, are needed"
        )
    return channel.matrix, pairs, channel.inputs, channel.outputs


def _row_by_row(first: Any, second: Any) -> Compared:
    """Return the rows of two channels, those of equal place as pairs."""
    if isinstance(first, Mechanism):
        raise ValidationError(
            "second: found one in addition to a Mechanism, which defines its own pairs of "
            "datasets; leave out second"
        )
    one, other = _as_rows(first, "first"), _as_rows(second, "second")
    if one.shape != other.shape or one.outputs != other.outputs:
        raise ValidationError(
            f"second: found {short(second)} with outputs {preview(other.outputs)}; it needs as "
            f"many rows as first, and the same outputs, {preview(one.outputs)}"
        )
    k = len(one.inputs)
    alone = k == 1
    labels = ["first"] * k if alone else [("first", x) for x in one.inputs]
    labels += ["second"] * k if alone else [("second", x) for x in other.inputs]
    matrix = stacked([one.matrix, other.matrix])
    return matrix, [(i, k + i) for i in range(k)], labels, one.outputs


def _as_rows(given: Any, name: str) -> Channel:
    """Return a channel; one distribution is a channel with one row."""
    given = given if hasattr(given, "columns") else named_law(given)
    if isinstance(given, Prior):
        return Channel(given.probabilities[None], outputs=given.labels)
    if (
        not isinstance(given, Channel)
        and not hasattr(given, "iloc")
        and dimensions(given, name) == 1
    ):
        given = [given]
    return as_channel(given, name)


def _at_most(one: float, other: float) -> bool:
    if not (math.isfinite(one) and math.isfinite(other)):
        return one <= other
    return fraction(one) <= fraction(other)


def _ends(bound: Bound, stated: float) -> str:
    """Return both bounds, with as many digits as it takes to see on which side of `stated` each is.

    So a claim of 1 is not said to fail because "epsilon is 1".
    """

    def shown(digits: int) -> list[str]:
        return [f"{end:.{digits}g}" for end in (bound.lower, bound.upper)]

    texts = next(
        (
            shown(digits)
            for digits in range(6, 17)
            if all(
                (float(text) <= stated) == (end <= stated)
                for text, end in zip(shown(digits), (bound.lower, bound.upper), strict=True)
            )
        ),
        shown(17),
    )
    ends = " to ".join(dict.fromkeys(texts))
    return ends if bound.unit == "probability" else f"{ends} {bound.unit}"
