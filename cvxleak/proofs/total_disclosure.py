"""Certificate kind ``total-disclosure``: the largest entropy floor with full disclosure.

The claim is about the largest b for which a prior with H(X) >= b has I(X_I;Y) = log k, for one of
the audited groups of records I, with k values: each value has probability 1/k, and the output
determines the value. So each output belongs to at most one value, and value a has contexts only in
the groups S_a all of whose outputs belong to it. With M_a the number of these contexts,

    b = max log k + (1/k) sum_a log M_a

over all ways to assign the outputs to values, since H(X | X_I = a) is at most log M_a. The
mechanism is as written (`cvxleak.core.numbers`); numbers of contexts are exact.

problem: {"mechanism", "size": k, "records": list of groups, or null for all groups of k records}.

witness: {"records": group, "values": for each output the number of the value that it belongs to}.
The lower bound is log k + (1/k) sum_a log M_a, rounded down.

proof: {"groups": [{"records": group, "tree": nodes in preorder}]}. A node is an output (its place),
with a child for each value that it may belong to, or a leaf: a list of multipliers lam_a > 0.
At a leaf, each group of contexts that is left is spread evenly over its outputs; D_ya is what the
groups of value a put on output y. Since sum_a lam_a M_a <= sum_y max_a lam_a D_ya = U, where the
maximum is over the values to which y may belong, and the geometric mean is below the arithmetic,

    b <= log U - (1/k) sum_a log lam_a.

A leaf where some value has no context left has no such prior. Everything except logarithms is
rational arithmetic.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from flint import arb, fmpq, fmpz

from cvxleak.core.errors import CertificateError
from cvxleak.core.numbers import fraction
from cvxleak.exact import balls, reading
from cvxleak.exact.limits import charge
from cvxleak.exact.rationals import rational
from cvxleak.model import ChannelSet, Lumped, Mechanism, RealOutput
from cvxleak.proofs.record_leakage import (
    check_entry,
    read_entries,
    read_statement,
    view_of,
)

__all__ = ["about", "outputs_of", "prove"]

Parts = Mapping[str, Any]


def prove(problem: Parts, witness: Parts, proof: Parts) -> tuple[float, float]:
    """Return proved lower and upper bounds on the floor, in nats."""
    reading.parts(problem, {"mechanism", "size", "records"}, "the problem")
    mechanism, _, groups, _ = read_statement({**problem, "entropy_floor": 0.0})
    if isinstance(mechanism.noise, ChannelSet | RealOutput):
        raise CertificateError("total disclosure needs a single channel with finitely many outputs")
    upper = -math.inf
    for group, entry in zip(groups, read_entries(proof, groups), strict=True):
        check_entry(entry, group, {"tree"})
        upper = max(upper, _above(_seen_from(mechanism, group), entry.get("tree")))
    reading.parts(witness, {"records", "values"}, "the witness")
    given = tuple(reading.groups([witness["records"]], "the witness's records")[0])
    if given not in groups:
        raise CertificateError(f"the witness is about {given}, which is not audited")
    return _below(_seen_from(mechanism, given), witness["values"]), upper


def about(problem: Parts) -> str:
    """Say what a problem that `prove` has read is about."""
    size, records = problem["size"], problem["records"]
    who = f"{size} records" if size > 1 else "a record"
    return f"total disclosure of {who}" + ("" if records is None else f" of {len(records)} groups")


def outputs_of(lumped: Lumped) -> list[list[int]]:
    """Return, for each group of contexts, the outputs that it can have."""
    # The nearest float of an exact probability may be 0.
    return [
        [y for y, q in enumerate(row) if q > 0 or fraction(q) > 0] for row in lumped.rows.tolist()
    ]


def _seen_from(mechanism: Mechanism, group: tuple[int, ...]) -> Lumped:
    return view_of(mechanism, group, ())[0]


def _below(lumped: Lumped, values: Any) -> float:
    """Return a float below the largest entropy of a prior that a choice of values discloses."""
    k = len(lumped.values)
    if not isinstance(values, list) or len(values) != lumped.rows.shape[1]:
        raise CertificateError(f"the witness: expected {lumped.rows.shape[1]} values")
    owner = [reading.count(a, "a value of the witness") for a in values]
    counts = [fmpz(0)] * k
    for outputs, a, m in _groups(lumped):
        if all(owner[y] == a for y in outputs):
            counts[a] += m
    if not all(counts):
        raise CertificateError("the witness: no context's outputs all belong to one of the values")
    return balls.round_down(arb(k).log() + balls.total(arb(m).log() for m in counts) / k)


def _above(lumped: Lumped, tree: Any) -> float:
    """Return a float above the floor, by the leaves of a tree."""
    if not isinstance(tree, list):
        raise CertificateError("a tree: expected a list of nodes")
    k, groups = len(lumped.values), list(_groups(lumped))
    everyone = [frozenset(range(k))] * lumped.rows.shape[1]
    upper, waiting = -math.inf, [everyone]
    for node in tree:
        if not waiting:
            raise CertificateError("a tree has nodes after its last leaf")
        allowed = waiting.pop()
        if isinstance(node, list):
            charge("steps", sum(len(outputs) for outputs, _, _ in groups), "the leaf of a tree")
            upper = max(upper, _at_leaf(groups, allowed, reading.numbers(node, "a leaf", k)))
            continue
        place = reading.count(node, "an output of a tree")
        if not place < len(allowed):
            raise CertificateError(f"an output of a tree: found {place} of {len(allowed)}")
        charge("steps", k * len(allowed), "a node of a tree")
        for a in sorted(allowed[place], reverse=True):
            waiting.append([*allowed[:place], frozenset([a]), *allowed[place + 1 :]])
    if waiting:
        raise CertificateError("the nodes of a tree end before its last leaf")
    return upper


def _at_leaf(
    groups: Sequence[tuple[list[int], int, fmpz]],
    allowed: Sequence[frozenset[int]],
    multipliers: Sequence[float],
) -> float:
    lam = [rational(x) for x in multipliers]
    if not all(x > 0 for x in lam):
        raise CertificateError("a leaf: the multipliers must be positive")
    shares = [dict.fromkeys(values, fmpq(0)) for values in allowed]
    left = set()
    for outputs, a, m in groups:
        if all(a in allowed[y] for y in outputs):
            left.add(a)
            for y in outputs:
                shares[y][a] += fmpq(m) / len(outputs)
    if len(left) < len(lam):
        return -math.inf
    most = [max(lam[a] * share for a, share in of.items()) for of in shares]
    total = sum(most, fmpq(0))
    logs = balls.total(arb(x).log() for x in lam)
    return balls.round_up(arb(total).log() - logs / len(lam))


def _groups(lumped: Lumped) -> Iterator[tuple[list[int], int, fmpz]]:
    """Yield the outputs, the value and the number of contexts of each group."""
    values = lumped.value_index.tolist()
    for outputs, a, m in zip(outputs_of(lumped), values, lumped.multiplicities, strict=True):
        yield outputs, a, fmpz(m)
