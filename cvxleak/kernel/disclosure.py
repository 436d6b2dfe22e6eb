r"""Claims of kind ``total-disclosure``: the largest entropy floor with full disclosure of a record.

The problem is {"mechanism", "size", "records"}, as for ``record-leakage``. The claim is about the
largest b for which some adversary with H(X) >= b has I(A;Y) = log k, for one of the audited groups
A of records, which has k values.

DISCLOSURE. I(A;Y) = log k if and only if A is uniform and each output that occurs belongs to one
value. Then the value a has contexts only in those groups all of whose outputs belong to a; if M_a
is their number, H(X) <= log k + (1/k) sum_a log M_a, with equality for the uniform distribution on
them. So b is the largest of these numbers over all ways to give each output to a value, with all
M_a > 0; without such a way, total disclosure never occurs.

The term of the lower end is {"rule": "owners", "group", "values": the value of each output}, that
of the upper end {"rule": "max", "groups": a tree for each audited group}. A tree is a list of nodes
in preorder: the number of an output, with a child for each value that it may belong to, or a leaf,
a list of k numbers lambda_a > 0. In a leaf spread the contexts of each group that is left evenly
over its outputs; D_ya is what value a puts on output y. As y belongs to one value,

    sum_a lambda_a M_a <= U = sum_y max_a lambda_a D_ya, over the values a that y may belong to,

and (1/k) sum_a log(lambda_a M_a) <= log(U / k), because the logarithm is concave (TANGENT). So
b <= log U - (1/k) sum_a log lambda_a. A leaf in which some value has no context left is empty.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from flint import arb, fmpq, fmpz

from cvxleak.kernel.budget import charge
from cvxleak.kernel.leakage import audited_groups, read_mechanism
from cvxleak.kernel.numbers import largest, need, total
from cvxleak.kernel.reading import count, end_term, fractions, items, parts
from cvxleak.kernel.terms import Leaf
from cvxleak.kernel.view import View, view_of

__all__ = ["TotalDisclosure"]

Groups = Sequence[tuple[list[int], int, fmpz]]
"""The outputs, the value and the number of contexts of each group."""


@dataclass(frozen=True)
class TotalDisclosure:
    """A view of each audited group."""

    views: Sequence[View]

    @classmethod
    def read(cls, problem: Any) -> TotalDisclosure:
        """Return the statement of a file."""
        parts(problem, {"mechanism", "size", "records"}, "the problem")
        space, rows = read_mechanism(problem["mechanism"])
        need(all(row.hi is None for row in rows.values()), "a set of channels")
        groups = audited_groups(space, problem)
        return cls([view_of(space.contexts(group), rows, 0) for group in groups])

    def upper(self, data: Any, leaf: Leaf | None = None) -> arb:
        """Return the largest bound of a leaf of the trees."""
        trees = items(end_term(data, "max", {"groups"}, "an upper end")["groups"], "groups")
        need(len(trees) == len(self.views), "a tree for each audited group is needed")
        pairs = zip(self.views, trees, strict=True)
        found = [x for view, tree in pairs for x in _leaves(view, items(tree, "a tree"))]
        need(found, "all leaves are empty: total disclosure never occurs")
        return largest(found)

    def lower(self, data: Any) -> arb:
        """Return the entropy of the adversary to whom the file's choice of values discloses."""
        end_term(data, "owners", {"group", "values"}, "a lower end")
        view = self.views[count(data["group"], "group", below=len(self.views))]
        values = items(data["values"], "values", view.n)
        owners = [count(a, "values", below=view.k) for a in values]
        counts = [fmpz(0)] * view.k
        for outputs, a, m in _groups(view):
            if all(owners[y] == a for y in outputs):
                counts[a] += m
        need(all(counts), "a value without contexts whose outputs all belong to it")
        return arb(view.k).log() + total(arb(m).log() for m in counts) / view.k


def _groups(view: View) -> Groups:
    value = {g: a for a, own in enumerate(view.of) for g in own}
    return [
        ([y for y, q in enumerate(row.lo) if not q == 0], value[g], fmpz(m))
        for g, (row, m) in enumerate(zip(view.rows, view.counts, strict=True))
    ]


def _leaves(view: View, tree: Sequence[Any]) -> list[arb]:
    """Return the bounds of the leaves that are not empty."""
    groups, found = _groups(view), []
    waiting = [[frozenset(range(view.k))] * view.n]
    for node in tree:
        need(waiting, "a tree has nodes after its last leaf")
        allowed = waiting.pop()
        if isinstance(node, list):
            charge("ball operations", sum(len(outputs) for outputs, _, _ in groups))
            found += _at_leaf(groups, allowed, fractions(node, "a leaf", view.k))
            continue
        y = count(node, "an output of a tree", below=view.n)
        charge("ball operations", view.k * view.n)
        for a in sorted(allowed[y], reverse=True):
            waiting.append([*allowed[:y], frozenset([a]), *allowed[y + 1 :]])
    need(not waiting, "the nodes of a tree end before its last leaf")
    return found


def _at_leaf(
    groups: Groups, allowed: Sequence[frozenset[int]], weights: Sequence[fmpq]
) -> list[arb]:
    """Return the bound of a leaf (DISCLOSURE), or nothing if it is empty."""
    need(all(x > 0 for x in weights), "a leaf: the multipliers must be positive")
    spread = [dict.fromkeys(values, fmpq(0)) for values in allowed]
    left = set()
    for outputs, a, m in groups:
        if all(a in allowed[y] for y in outputs):
            left.add(a)
            for y in outputs:
                spread[y][a] += fmpq(m) / len(outputs)
    if len(left) < len(weights):
        return []
    most = sum((max(weights[a] * x for a, x in own.items()) for own in spread), fmpq(0))
    return [arb(most).log() - total(arb(x).log() for x in weights) / len(weights)]
