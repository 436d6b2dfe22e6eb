"""`total_disclosure`: up to how much uncertainty a record can be disclosed completely."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cvxleak.audit.adversary import Adversary
from cvxleak.core.clock import WORK_LIMIT, Clock
from cvxleak.core.errors import InfeasibleError, SolverError, ValidationError
from cvxleak.core.validation import Array, instance
from cvxleak.core.work import spend
from cvxleak.kernel.disclosure import TotalDisclosure
from cvxleak.kernel.numbers import lower, precision, upper
from cvxleak.kernel.view import View
from cvxleak.model import ChannelSet, Mechanism, RealOutput
from cvxleak.problem import Bound, Gap, Stopped
from cvxleak.proofs import Certificate
from cvxleak.proofs.format import plain

__all__ = ["total_disclosure"]

Mask = NDArray[np.bool_]
Owners = NDArray[np.intp]

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
    problem = {
        "mechanism": mechanism.to_dict(),
        "size": 1 if group is None else len(group),
        "records": None if group is None else [list(group)],
    }
    with precision():
        statement = TotalDisclosure.read(plain(problem))
        trees = [_Tree(view) for view in statement.views]
        best = _searched(trees, gap, clock)
        below = {"rule": "owners", "group": best, "values": trees[best].owners.tolist()}
        above = {"rule": "max", "groups": [list(tree.nodes()) for tree in trees]}
        low, high = lower(statement.lower(below)), upper(statement.upper(above))
    groups = mechanism.groups(1) if group is None else [group]  # in the order of the views
    closed = gap.closed(low, high)
    return Bound.proved(
        "total disclosure",
        low,
        high,
        tol=gap.tol,
        witness=Adversary(mechanism, groups[best], trees[best].weights()),
        certificate=Certificate("total-disclosure", problem, low, high, below, above),
        stats={
            "method": "branch and bound on which outputs belong to which value, because these sets "
            "are finitely many",
            "nodes": sum(tree.size for tree in trees),
            "seconds": clock.seconds,
            "stopped": Stopped.TOLERANCE if closed else Stopped.at_limit(clock),
        },
    )


def _searched(trees: Sequence[_Tree], gap: Gap, clock: Clock) -> int:
    """Split nodes until the gap is closed or a limit is reached; return the best group's place."""
    while True:
        lowest, highest = (max(getattr(tree, end) for tree in trees) for end in ("lower", "upper"))
        if gap.closed(lowest, highest) or clock.late:
            break
        max(trees, key=lambda tree: tree.upper).split()
    if highest == -math.inf:
        raise InfeasibleError(
            "mechanism: no adversary learns the record completely; some uncertainty is left "
            "whatever is known of the others"
        )
    if lowest == -math.inf:
        raise SolverError(
            "mechanism: found no adversary who learns the record completely, and no proof that "
            f"there is none: {Stopped.at_limit(clock).value}; raise it"
        )
    return max(range(len(trees)), key=lambda place: trees[place].lower)


@dataclass
class _Node:
    """Which outputs may belong to which values, and how the tree goes on."""

    allowed: Mask
    multipliers: Array
    output: int | None = None
    children: list[_Node] = field(default_factory=list)


class _Tree:
    """Branch and bound over the outputs, for one group of records.

    Numbers of contexts are divided by the largest, and so are within the range of floats.
    """

    def __init__(self, view: View) -> None:
        self._k = view.k
        self._values = np.repeat(np.arange(view.k), list(map(len, view.of)))
        self._can: Mask = np.array([[not x == 0 for x in row.lo] for row in view.rows])
        logs = np.array([math.log(m) for m in view.counts])
        self._counts = np.exp(logs - logs.max())
        self._scale = math.log(view.k) + logs.max()
        self._spread = self._can / self._can.sum(axis=1, keepdims=True) * self._counts[:, None]
        self.size, self.lower = 0, -math.inf
        self.owners: Owners = np.zeros(view.n, dtype=np.intp)
        self._open: list[tuple[float, int, _Node]] = []
        self._root = self._add(np.ones((view.n, view.k), dtype=bool))

    @property
    def upper(self) -> float:
        """No prior of a larger entropy discloses the group."""
        return max(-self._open[0][0] if self._open else -math.inf, self.lower)

    def split(self) -> None:
        """Give one output of the node with the largest bound to each value in turn."""
        _, _, node = heapq.heappop(self._open)
        # The output on which the contexts that are left lay most.
        weight = self._spread[self._left(node.allowed)].sum(axis=0)
        node.output = int(np.where(node.allowed.sum(axis=1) > 1, weight, -1.0).argmax())
        for a in np.flatnonzero(node.allowed[node.output]):
            allowed = node.allowed.copy()
            allowed[node.output] = np.arange(self._k) == a
            node.children.append(self._add(allowed))

    def weights(self) -> Array:
        """Return the lumped prior of the best choice: even on the values, and on their contexts."""
        own = self._left(np.eye(self._k, dtype=bool)[self.owners]) * self._counts
        return own / (self._k * self._by_value(own)[self._values])

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
        owners = shares.argmax(axis=1)
        held = self._by_value(self._left(np.eye(self._k, dtype=bool)[owners]) * self._counts)
        with np.errstate(divide="ignore"):
            attained = self._scale + float(np.log(held).mean())
        if attained > self.lower:
            self.lower, self.owners = attained, owners
        if bound > self.lower and (allowed.sum(axis=1) > 1).any():
            heapq.heappush(self._open, (-bound, self.size, node))
        return node

    def _bound(self, allowed: Mask) -> tuple[float, Array, Array]:
        """Return an upper bound at a node, its multipliers and a fractional sharing of the outputs.

        max sum_a log sum_y z_ya D_ya over the sharings z is a market in which values with equal
        means buy outputs; proportional responses approach its prices.
        """
        held = np.zeros(allowed.shape)
        left = self._left(allowed)
        np.add.at(held.T, self._values[left], self._spread[left])
        shares = even = allowed / allowed.sum(axis=1, keepdims=True)
        best, multipliers = math.inf, np.ones(self._k)
        if not held.any(axis=0).all():
            return -math.inf, multipliers, shares
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

    def _by_value(self, weights: Array) -> Array:
        """Return the sum of the weights of each value's groups."""
        return np.bincount(self._values, weights, self._k).astype(float)
