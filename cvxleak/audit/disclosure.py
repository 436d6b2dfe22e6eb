"""`total_disclosure`: up to how much uncertainty a record can be disclosed completely."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cvxleak.audit.adversary import Adversary
from cvxleak.core.clock import WORK_LIMIT, Clock
from cvxleak.core.errors import InfeasibleError, SolverError, ValidationError
from cvxleak.core.numbers import fraction
from cvxleak.core.validation import Array, instance
from cvxleak.core.work import spend
from cvxleak.kernel.leakage import RecordLeakage
from cvxleak.kernel.numbers import precision
from cvxleak.model import ChannelSet, Lumped, Mechanism, RealOutput
from cvxleak.problem import Bound, Gap, Stopped
from cvxleak.proofs import Certificate
from cvxleak.proofs.checker import PROVERS
from cvxleak.proofs.format import plain

__all__ = ["total_disclosure"]

Mask = NDArray[np.bool_]

RESPONSES = 60
"""Steps towards the evenest fractional sharing of the outputs, at a node.

Of counts of up to 200 and tables of 12 people, 20 to 120 gave the same numbers of nodes.
"""


def total_disclosure(
    mechanism: Mechanism,
    records: int | Sequence[int] | None = None,
    *,
    tol: float = 1e-6,
    time_limit: float | None = None,
    work_limit: float | None = WORK_LIMIT,
) -> Bound:
    """Bound the entropy floor up to which an adversary can learn a record completely.

    For a record (or group of records) I of k values it is the largest b for which a prior with
    H(X) >= b has I(X_I;Y) = log k: a value that was as likely as any other before is certain after.
    Up to b the leakage is at its largest, and beyond b every adversary is left with some
    uncertainty. Each output then belongs to one value at most. With M_a the number of contexts of
    value a whose outputs are all its own,

        b = log k + (1/k) max sum_a log M_a

    over all ways to give the outputs to values. A branch and bound over outputs finds it.

    Parameters
    ----------
    mechanism : Mechanism
        With finitely many outputs, and one channel.
    records : int or sequence of int, optional
        The record, or group of records; if left out, the most exposed of all records.
    tol : float
        Relative gap to reach.
    time_limit : float, optional
        Seconds; no limit if None.

    Returns
    -------
    Bound
        In nats. The witness is an `Adversary` with this entropy, to whom the record is disclosed;
        the certificate has the kind ``total-disclosure``.

    Raises
    ------
    ValidationError
        Real outputs, or a set of channels.
    InfeasibleError
        No adversary learns the record completely, as under local differential privacy.
    SolverError
        Neither an adversary nor a proof that there is none was found within the time limit.

    Notes
    -----
    The plateau of L(b) (DALENIUS Section 4) ends here if the record can be disclosed completely.

    Examples
    --------
    Up to 12.95 of 13.86 nats, a count of 20 people that is rounded to base 3 can disclose a record:

    >>> from cvxleak import Mechanism
    >>> from cvxleak.audit import total_disclosure
    >>> from cvxleak.mechanisms import random_rounding
    >>> from cvxleak.queries import count
    >>> bound = total_disclosure(Mechanism(count(20), random_rounding(20, base=3)))
    >>> print(bound)
    total disclosure: 12.952... to 12.952... nats (CERTIFIED)
    >>> bound.witness.guess()
    (0.5, 1.0)
    """
    instance(mechanism, Mechanism, "mechanism")
    if isinstance(mechanism.noise, ChannelSet | RealOutput):
        raise ValidationError(
            "mechanism: found a set of channels or real outputs; one channel with finitely many "
            "outputs is needed"
        )
    clock, gap = Clock(time_limit, work_limit), Gap(tol)
    group = None if records is None else mechanism.space.group(records)
    searches = [
        _Search(one, mechanism.lumped(one))
        for one in (mechanism.groups(1) if group is None else [group])
    ]
    best = max(searches, key=lambda search: search.lower)
    while not gap.closed(best.lower, _upper(searches)) and not clock.late:
        if not max(searches, key=lambda search: search.upper).step():
            break
        best = max(searches, key=lambda search: search.lower)
    if best.values is None:
        if _upper(searches) == -math.inf:
            raise InfeasibleError(
                "mechanism: no adversary learns the record completely; some uncertainty is left "
                "whatever is known of the others"
            )
        raise SolverError(
            "mechanism: found no adversary who learns the record completely, and no proof that "
            f"there is none: {Stopped.at_limit(clock).value}; raise it"
        )
    problem = {
        "mechanism": mechanism.to_dict(),
        "size": 1 if group is None else len(group),
        "records": None if group is None else [list(group)],
    }
    low, high, below, above = _proved(plain(problem), searches, best)
    closed = gap.closed(low, high)
    return Bound.proved(
        "total disclosure",
        low,
        high,
        tol=gap.tol,
        witness=Adversary(mechanism, best.group, best.weights()),
        certificate=Certificate("total-disclosure", problem, low, high, below, above),
        stats={
            "method": "branch and bound on which outputs belong to which value, because these sets "
            "are finitely many",
            "nodes": sum(search.size for search in searches),
            "seconds": clock.seconds,
            "stopped": Stopped.TOLERANCE if closed else Stopped.at_limit(clock),
        },
    )


def _proved(
    problem: dict[str, Any], searches: Sequence[_Search], best: _Search
) -> tuple[float, float, dict[str, Any], dict[str, Any]]:
    """Return the bounds that are proved, and the terms of both ends."""
    assert best.values is not None
    with precision():
        whole = RecordLeakage.read({**problem, "entropy_floor": 0})
        # The kernel knows groups by the kinds of their records.
        kinds = {
            id(search): tuple(sorted(map(whole.space.run_of, search.group))) for search in searches
        }
        trees = {kinds[id(search)]: list(search.nodes()) for search in searches}
        place = whole.groups.index(kinds[id(best)])
        below = {"rule": "owners", "group": place, "values": best.values.tolist()}
        above = {"rule": "max", "groups": [trees[group] for group in whole.groups]}
        low, high, *_ = PROVERS["total-disclosure"].prove(problem, below, above)
    return low, high, below, above


def outputs_of(lumped: Lumped) -> list[list[int]]:
    """Return, for each group of contexts, the outputs that it can have."""
    # The nearest float of an exact probability may be 0.
    return [
        [y for y, q in enumerate(row) if q > 0 or fraction(q) > 0] for row in lumped.rows.tolist()
    ]


def _upper(searches: Sequence[_Search]) -> float:
    return max(search.upper for search in searches)


@dataclass
class _Node:
    """Which outputs may belong to which values, and how the node goes on."""

    allowed: Mask
    multipliers: Array
    output: int | None = None
    children: list[_Node] = field(default_factory=list)


class _Search:
    """Branch and bound over the outputs, for one group of records.

    Numbers of contexts are divided by the largest, and so are within the range of floats.
    """

    def __init__(self, group: tuple[int, ...], lumped: Lumped) -> None:
        self.group, self._lumped = group, lumped
        self._k, self._values = len(lumped.values), lumped.value_index
        self._can: Mask = np.zeros(lumped.rows.shape, dtype=bool)
        for place, outputs in enumerate(outputs_of(lumped)):
            self._can[place, outputs] = True
        logs = lumped.log_multiplicity
        self._counts = np.exp(logs - logs.max())
        self._scale = math.log(self._k) + logs.max()
        self._spread = self._can / self._can.sum(axis=1, keepdims=True) * self._counts[:, None]
        self._of_value = np.eye(self._k)[self._values].T
        self.size, self.lower = 0, -math.inf
        self.values: NDArray[np.intp] | None = None
        self._open: list[tuple[float, int, _Node]] = []
        self._order = count()
        self._root = self._add(np.ones((self._can.shape[1], self._k), dtype=bool))

    @property
    def upper(self) -> float:
        """No prior of a larger entropy discloses the group."""
        return max(-self._open[0][0] if self._open else -math.inf, self.lower)

    def step(self) -> bool:
        """Give one output to each value in turn; False if there is none left to give."""
        if not self._open:
            return False
        _, _, node = heapq.heappop(self._open)
        free = node.allowed.sum(axis=1) > 1
        if not free.any():
            return False
        # The output on which the contexts that are left lay most.
        weight = self._spread[self._left(node.allowed)].sum(axis=0)
        node.output = int(np.where(free, weight, -1.0).argmax())
        for a in np.flatnonzero(node.allowed[node.output]):
            allowed = node.allowed.copy()
            allowed[node.output] = np.arange(self._k) == a
            node.children.append(self._add(allowed))
        return True

    def weights(self) -> Array:
        """Return the lumped prior of the best choice: even on the values, and on their contexts."""
        assert self.values is not None
        own = self._left(np.eye(self._k, dtype=bool)[self.values]) * self._counts
        return own / (self._k * (self._of_value @ own)[self._values])

    def nodes(self) -> Iterator[Any]:
        """Yield the tree's nodes in preorder, as a certificate holds them."""
        waiting = [self._root]
        while waiting:
            node = waiting.pop()
            yield node.multipliers.tolist() if node.output is None else node.output
            waiting += reversed(node.children)

    def _add(self, allowed: Mask) -> _Node:
        """Return a new node, once it is bounded and its fractional sharing has been rounded."""
        self.size += 1
        spend(RESPONSES * (1e5 + 20 * allowed.size))
        bound, multipliers, shares = self._bound(allowed)
        node = _Node(allowed, multipliers)
        if shares is not None:
            self._try(shares.argmax(axis=1))
        if bound > self.lower:
            heapq.heappush(self._open, (-bound, next(self._order), node))
        return node

    def _bound(self, allowed: Mask) -> tuple[float, Array, Array | None]:
        """Return an upper bound at a node, its multipliers and a fractional sharing of the outputs.

        max sum_a log sum_y z_ya D_ya over the sharings z is a market in which values with equal
        means buy outputs; proportional responses approach its prices.
        """
        held = np.zeros(allowed.shape)
        left = self._left(allowed)
        np.add.at(held.T, self._values[left], self._spread[left])
        best, multipliers = math.inf, np.ones(self._k)
        if not held.any(axis=0).all():
            return -math.inf, multipliers, None
        even = allowed / allowed.sum(axis=1, keepdims=True)
        shares = even
        for _ in range(RESPONSES):
            prices = 1 / (shares * held).sum(axis=0)
            worth = held * prices
            # Only ratios count: the scale is that of floats.
            bound = math.log(worth.max(axis=1).sum()) - np.log(prices).mean()
            if bound < best:
                best, multipliers = bound, prices / prices.max()
            shares = shares * np.sqrt(worth)
            total = shares.sum(axis=1, keepdims=True)
            shares = np.divide(shares, total, out=even.copy(), where=total > 0)
        return best + self._scale - math.log(self._k), multipliers, shares

    def _left(self, allowed: Mask) -> Mask:
        """Which groups of contexts have all of their outputs among those of their value."""
        return np.all(~self._can | allowed[:, self._values].T, axis=1)

    def _try(self, values: NDArray[np.intp]) -> None:
        """Take a way to give the outputs to values, improved one output at a time."""
        wrong = (self._can & (values[None, :] != self._values[:, None])).sum(axis=1)
        held = self._of_value @ ((wrong == 0) * self._counts)
        changed = True
        while changed:
            changed = False
            for y in np.argsort(-self._spread.sum(axis=0)):
                seen, now = np.flatnonzero(self._can[:, y]), values[y]
                of, bad = self._values[seen], wrong[seen]
                for a in range(self._k):
                    gains = seen[(of == a) & (bad == 1)]
                    losses = seen[(of == now) & (bad == 0)]
                    if a == now or not (len(gains) or not len(losses)):
                        continue
                    new = held.copy()
                    new[a] += self._counts[gains].sum()
                    new[now] -= self._counts[losses].sum()
                    if self._floor(new) > self._floor(held) + 1e-12:
                        wrong[seen[of == now]] += 1
                        wrong[seen[of == a]] -= 1
                        values = values.copy()
                        values[y], now, held, changed = a, a, new, True
                        bad = wrong[seen]
        if self._floor(held) > self.lower:
            self.lower, self.values = self._floor(held), values

    def _floor(self, held: Array) -> float:
        if not (held > 0).all():
            return -math.inf
        return self._scale + float(np.log(held).mean())
