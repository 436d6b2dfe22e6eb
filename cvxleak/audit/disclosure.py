"""`total_disclosure`: up to how much uncertainty a record can be disclosed completely."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cvxleak.audit.adversary import Adversary
from cvxleak.core.clock import WORK_LIMIT, Clock
from cvxleak.core.errors import InfeasibleError, SolverError, ValidationError
from cvxleak.core.validation import Array, instance
from cvxleak.core.work import spend
from cvxleak.kernel.disclosure import TotalDisclosure
from cvxleak.kernel.numbers import precision
from cvxleak.kernel.view import View
from cvxleak.model import ChannelSet, Mechanism, RealOutput
from cvxleak.problem import Bound, Gap, Stopped
from cvxleak.proofs.format import plain

__all__ = ["total_disclosure"]

Mask = NDArray[np.bool_]


def total_disclosure(
    mechanism: Mechanism,
    records: int | Sequence[int] | None = None,
    *,
    tol: float = 1e-9,
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
        Neither an adversary nor a proof that there is none was found within the limits.

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
    # In the order of the statement's views.
    groups = mechanism.groups(1) if records is None else [mechanism.space.group(records)]
    problem = {
        "mechanism": mechanism.to_dict(),
        "size": len(groups[0]),
        "records": None if records is None else [list(groups[0])],
    }
    with precision():
        statement = TotalDisclosure.read(plain(problem))
    trees = [_Tree(view) for view in statement.views]
    while True:
        best, widest = (max(trees, key=attrgetter(end)) for end in ("lower", "upper"))
        if (closed := gap.closed(best.lower, widest.upper)) or clock.late:
            break
        widest.split()
    stopped = Stopped.TOLERANCE if closed else Stopped.at_limit(clock)
    if widest.upper == -math.inf:
        raise InfeasibleError(
            "mechanism: no adversary learns the record completely; some uncertainty is left "
            "whatever is known of the others"
        )
    if best.lower == -math.inf:
        raise SolverError(
            "mechanism: found no adversary who learns the record completely, and no proof that "
            f"there is none: {stopped.value}; raise it"
        )
    place = trees.index(best)
    return Bound.of_terms(
        "total disclosure",
        "total-disclosure",
        problem,
        {"rule": "owners", "group": place, "values": best.owners.tolist()},
        {"rule": "max", "groups": [tree.nodes() for tree in trees]},
        statement=statement,
        tol=gap.tol,
        witness=Adversary(mechanism, groups[place], best.weights()),
        stats={
            "method": "branch and bound on which outputs belong to which value, because these sets "
            "are finitely many",
            "nodes": sum(len(tree.nodes()) for tree in trees),
            "seconds": clock.seconds,
            "stopped": stopped,
        },
    )


class _Tree:
    """Branch and bound over the outputs, for one group of records.

    Numbers of contexts are divided by the largest, and so are within the range of floats.
    """

    def __init__(self, view: View) -> None:
        self._value = np.repeat(np.eye(view.k), list(map(len, view.of)), axis=0)
        self._can: Mask = np.array([[not x == 0 for x in row.lo] for row in view.rows])
        logs = np.array([math.log(m) for m in view.counts])
        self._counts = np.exp(logs - logs.max())
        self._scale = math.log(view.k) + logs.max()
        self._spread = self._can / self._can.sum(axis=1, keepdims=True) * self._counts[:, None]
        self.lower, self.owners = -math.inf, np.zeros(view.n, dtype=np.intp)
        # What a certificate holds of each node, by the values that the outputs were given so far.
        self._nodes: dict[tuple[int, ...], Any] = {}
        self._open: list[tuple[float, int, tuple[int, ...], Mask]] = []
        self._add((), np.ones((view.n, view.k), dtype=bool))

    @property
    def upper(self) -> float:
        """No prior of a larger entropy discloses the group."""
        return max(-self._open[0][0] if self._open else -math.inf, self.lower)

    def split(self) -> None:
        """Give one output of the node with the largest bound to each value in turn."""
        *_, place, allowed = heapq.heappop(self._open)
        # The output on which the contexts that are left lay most.
        weight = self._left(allowed) @ self._spread
        output = int(np.where(allowed.sum(axis=1) > 1, weight, -1.0).argmax())
        self._nodes[place] = output
        for a in np.flatnonzero(allowed[output]).tolist():
            part = allowed.copy()
            part[output] = np.arange(part.shape[1]) == a
            self._add((*place, a), part)

    def weights(self) -> Array:
        """Return the lumped prior of the best choice: even on the values, and on their contexts."""
        own, of_value = self._kept(self.owners)
        return own / (len(of_value) * (self._value @ of_value))

    def nodes(self) -> list[Any]:
        """Return the tree's nodes in preorder, as a certificate holds them."""
        return [self._nodes[place] for place in sorted(self._nodes)]

    def _add(self, place: tuple[int, ...], allowed: Mask) -> None:
        """Bound a node, and give each output to the value that it is worth most to.

        The largest sum_a log sum_y z_ya D_ya over fractional sharings z is the equilibrium of a
        market in which values with equal means buy outputs. At the prices of the evenest sharing
        the bound is sharp enough: with those of twenty steps towards the equilibrium there are up
        to half as many nodes in all, and each takes longer.
        """
        spend(1e5 + 20 * allowed.size)
        held = (self._left(allowed)[:, None] * self._spread).T @ self._value
        bought = (held / allowed.sum(axis=1, keepdims=True)).sum(axis=0)
        if not bought.all():  # a value has no context left
            self._nodes[place] = [1.0] * len(bought)
            return
        worth = held / bought
        bound = (
            self._scale + math.log(worth.max(axis=1).sum() / len(bought)) + np.log(bought).mean()
        )
        self._nodes[place] = (bought.min() / bought).tolist()
        owners = worth.argmax(axis=1)
        with np.errstate(divide="ignore"):
            attained = self._scale + float(np.log(self._kept(owners)[1]).mean())
        if attained > self.lower:
            self.lower, self.owners = attained, owners
        if bound > self.lower and (allowed.sum(axis=1) > 1).any():
            heapq.heappush(self._open, (-bound, len(self._nodes), place, allowed))

    def _kept(self, owners: NDArray[np.intp]) -> tuple[Array, Array]:
        """Return the weights of groups whose outputs are all their value's, and those of values."""
        kept = self._left(np.eye(self._value.shape[1], dtype=bool)[owners]) * self._counts
        return kept, kept @ self._value

    def _left(self, allowed: Mask) -> Mask:
        """Which groups of contexts have all of their outputs among those of their value."""
        return np.all(~self._can | (self._value @ allowed.T > 0), axis=1)
