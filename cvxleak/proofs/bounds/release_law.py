"""The joint distribution of request, earlier outputs and dataset, in ball arithmetic."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from flint import arb
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from cvxleak.core.errors import CertificateError, ValidationError
from cvxleak.core.validation import frozen_array
from cvxleak.kernel.numbers import dot, total
from cvxleak.proofs import reading
from cvxleak.proofs.exact import ball, entropy, mutual_information, normalized

__all__ = ["LEAST", "Ball", "ReleaseLaw", "common_classes", "floats"]

LEAST = "least"
"""The budget I(S;X) of a coalition: a release must not add to what it knows."""

SIZE_LIMIT = 1 << 21
"""Most numbers in one part of a check: about ten seconds, and a hundred megabytes."""

Ball = Any
Rows = Sequence[Sequence[Ball]]


def floats(packed: Any, axes: int, name: str) -> NDArray[np.float64]:
    """Return a packed array of finite floats with `axes` axes and at most `SIZE_LIMIT` entries."""
    array = reading.unpack(packed, name, "f", [None] * axes)
    if packed["dtype"] != "<f8" or not 0 < array.size <= SIZE_LIMIT:
        raise CertificateError(f"{name}: found {packed['dtype']} of shape {array.shape}")
    return array


def written(values: Any, axes: int, name: str) -> NDArray[np.float64]:
    """Return an array of a problem's numbers: packed, or lists of numbers as written."""
    if not isinstance(values, list):
        return floats(values, axes, name)

    def listed(part: Any, depth: int) -> Any:
        if depth == 1:
            return reading.numbers(part, name)
        if not isinstance(part, list):
            raise CertificateError(f"{name}: expected lists of {axes} axes")
        return [listed(one, depth - 1) for one in part]

    try:
        array = frozen_array(listed(values, axes), name, axes)
    except ValidationError as error:
        raise CertificateError(str(error)) from error
    if not 0 < array.size <= SIZE_LIMIT:
        raise CertificateError(f"{name}: found shape {array.shape}")
    return array


class Watcher:
    """A coalition: its class of every z, and its price and budget."""

    def __init__(self, parts: Any, earlier: int) -> None:
        reading.parts(parts, {"classes", "price", "budget"}, "a coalition")
        classes = reading.groups([parts["classes"]], "the classes of a coalition")[0]
        if len(classes) != earlier or set(classes) != set(range(len(set(classes)))):
            raise CertificateError("the classes of a coalition are 0, 1, ..., one for each z")
        self.classes = tuple(classes)
        self.price = reading.number(parts["price"], "a price")
        if self.price < 0:
            raise CertificateError("a price is negative")
        budget = parts["budget"]
        self.least = budget == LEAST
        self.budget: float | None = None
        if not self.least and budget is not None:
            self.budget = reading.number(budget, "a budget")


class ReleaseLaw:
    """p(r,z,x), by rows (z, x) of positive probability.

    Attributes
    ----------
    requests, earlier, datasets : int
        How many values R, Z and X have.
    rows : list of (z, x)
    given : list of lists of arb
        p(r,z,x), by row and r.
    weights : list of arb
        p(z,x), by row.
    watchers : list of Watcher
        The coalitions.
    """

    def __init__(self, joint: Any, coalitions: Any) -> None:
        law = written(joint, 3, "the joint distribution")
        if law.min() < 0:
            raise CertificateError("the joint distribution has a negative entry")
        self.requests, self.earlier, self.datasets = law.shape
        chances = np.array(normalized(law.ravel()), dtype=object).reshape(law.shape)
        self.rows = [(int(z), int(x)) for z, x in np.argwhere(law.sum(axis=0) > 0)]
        self.given = [chances[:, z, x].tolist() for z, x in self.rows]
        self.weights = [total(given) for given in self.given]
        if not isinstance(coalitions, list) or len(coalitions) * self.earlier > SIZE_LIMIT:
            raise CertificateError("the coalitions are not a list, or there are too many")
        self.watchers = [Watcher(parts, self.earlier) for parts in coalitions]
        self._x = [x for _, x in self.rows]
        self._log_x = entropy_of(sums(self._x, self.weights))

    def classes(self, watcher: Watcher) -> list[int]:
        """Return the coalition's class of each row."""
        return [watcher.classes[z] for z, _ in self.rows]

    def pairs(self, watcher: Watcher) -> list[tuple[int, int]]:
        """Return (s, x) of each row."""
        return [(watcher.classes[z], x) for z, x in self.rows]

    def mean_costs(self, distortion: Rows) -> list[list[Ball]]:
        """Return p(z,x) E[ d(R,j) | z, x ] for each row and output j."""
        columns = list(zip(*distortion, strict=True))
        self.allow(len(self.rows) * len(columns) * self.requests)
        return [[dot(given, column) for column in columns] for given in self.given]

    def allow(self, size: int) -> None:
        """Raise if the check would take too long."""
        if size > SIZE_LIMIT:
            raise CertificateError(
                f"the problem has {size} numbers; at most {SIZE_LIMIT} are allowed"
            )

    def kernel(self, witness: Mapping[str, Any], outputs: int) -> list[list[Ball]]:
        """Return the rows of the witness; raise if they are not shown to meet all budgets."""
        reading.parts(witness, {"kernel"}, "the witness")
        array = floats(witness["kernel"], 3, "the kernel")
        if array.shape != (self.earlier, self.datasets, outputs):
            raise CertificateError("the kernel does not fit the joint distribution")
        self.allow(len(self.rows) * outputs * (1 + len(self.watchers)))
        stored = [array[z, x] for z, x in self.rows]
        told = self._told()
        first = np.unique(told, return_index=True)[1]
        if np.array_equal(stored, np.take(stored, first[told], axis=0)):
            laws = [normalized(stored[place]) for place in first]
            kernel = [laws[s] for s in told]
        else:
            kernel = self._independent([normalized(row) for row in stored])
        for watcher in self.watchers:
            if watcher.budget is not None:
                if not self.leakage(watcher, kernel) <= ball(watcher.budget):
                    raise CertificateError("the kernel does not meet a budget")
        return kernel

    def _told(self) -> NDArray[np.intp]:
        """Return for each row what all coalitions without room know of z; 0 if there are none.

        A release that depends on this alone reveals nothing to them.
        """
        least = np.array(sorted(self._least()), dtype=np.intp).reshape(-1, len(self.rows))
        return common_classes(least)

    def _least(self) -> dict[tuple[int, ...], Watcher]:
        """Return the coalitions without room, by their classes; without those that know X."""
        return {
            tuple(self.classes(watcher)): watcher
            for watcher in self.watchers
            if watcher.least and len(set(self.pairs(watcher))) > len(set(self.classes(watcher)))
        }

    def _independent(self, kernel: list[list[Ball]]) -> list[list[Ball]]:
        """Return k + p(r̂|s) - p(r̂|s,x) for a coalition without room.

        Its rows are distributions as well, and R̂ and X are independent given s under it. For
        several such coalitions there is no such formula, and only a release that depends on what
        all of them know is accepted.
        """
        least = self._least()
        if not least:
            return kernel
        if len(least) > 1:
            raise CertificateError(
                "if several coalitions have their least budgets, the release must depend only on "
                "what all of them know"
            )
        (watcher,) = least.values()
        pairs, classes = self.pairs(watcher), self.classes(watcher)
        by_pair, by_class = sums(pairs, self.weights), sums(classes, self.weights)
        several = {pair for pair, size in sums(pairs, [1] * len(pairs)).items() if size > 1}
        columns = []
        for shares in zip(*kernel, strict=True):
            joint = [weight * share for weight, share in zip(self.weights, shares, strict=True)]
            given_pair, given_class = sums(pairs, joint), sums(classes, joint)
            column = []
            for share, pair, s in zip(shares, pairs, classes, strict=True):
                changed = given_class[s] / by_class[s]
                if pair in several:
                    changed += share - given_pair[pair] / by_pair[pair]
                if not changed >= 0:
                    raise CertificateError("the kernel cannot be made independent of the dataset")
                column.append(changed)
            columns.append(column)
        return [list(row) for row in zip(*columns, strict=True)]

    def leakage(self, watcher: Watcher, kernel: Rows) -> Ball:
        """Return I(R̂,S;X)."""
        pairs, classes = self.pairs(watcher), self.classes(watcher)
        information = self._log_x
        for shares in zip(*kernel, strict=True):
            joint = [weight * share for weight, share in zip(self.weights, shares, strict=True)]
            information += entropy_of(sums(classes, joint)) - entropy_of(sums(pairs, joint))
        return information

    def known(self, watcher: Watcher) -> Ball:
        """Return I(S;X), what the coalition knows before the release."""
        return self.leakage(watcher, [[arb(1)]] * len(self.rows))

    def room(self, watcher: Watcher) -> Ball:
        """Return the budget less I(S;X), for a coalition that has one."""
        return arb(0) if watcher.budget is None else ball(watcher.budget) - self.known(watcher)

    def paid(self, kernel: Rows) -> Ball:
        """Return sum_c price_c I(R̂,S_c;X)."""
        priced = [watcher for watcher in self.watchers if watcher.price > 0]
        return total([ball(w.price) * self.leakage(w, kernel) for w in priced])

    def request_information(self, kernel: Rows) -> Ball:
        """Return I(R̂;R)."""
        joint = [
            [dot(shares, chances) for chances in zip(*self.given, strict=True)]
            for shares in zip(*kernel, strict=True)
        ]
        return mutual_information(joint)

    def request_entropy(self, watcher: Watcher | None = None) -> Ball:
        """Return H(R), or H(R|S) for a coalition."""
        s = [0] * len(self.rows) if watcher is None else self.classes(watcher)
        return self._conditional(s)

    def request_noise(self, watcher: Watcher | None = None) -> Ball:
        """Return H(R|X,Z), or H(R|X,S) for a coalition."""
        return self._conditional(self.rows if watcher is None else self.pairs(watcher))

    def _conditional(self, keys: Sequence[Hashable]) -> Ball:
        result = -entropy_of(sums(keys, self.weights))
        for chances in zip(*self.given, strict=True):
            result += entropy_of(sums(keys, chances))
        return result


def common_classes(partitions: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the finest common coarsening of some partitions of the rows, shape (rows,).

    Two rows are in one class if a chain of rows joins them in which neighbors are in one class of
    some partition. With no partition there is one class.

    Parameters
    ----------
    partitions : integer array, shape (partitions, rows)
    """
    rows = partitions.shape[1]
    if len(partitions) == 0:
        return np.zeros(rows, dtype=np.intp)
    nodes, known = [], rows
    for classes in partitions:
        nodes.append(known + classes)
        known += int(classes.max()) + 1
    ends = np.tile(np.arange(rows), len(partitions)), np.concatenate(nodes)
    links = csr_array((np.ones(len(ends[0])), ends), shape=(known, known))
    found = connected_components(links, directed=False)[1][:rows]
    return np.unique(found, return_inverse=True)[1]


def sums(keys: Iterable[Hashable], values: Iterable[Ball]) -> dict[Any, Ball]:
    """Return the sum of the values of each key."""
    result: dict[Any, Ball] = {}
    for key, value in zip(keys, values, strict=True):
        result[key] = result[key] + value if key in result else value
    return result


def entropy_of(parts: Mapping[Any, Ball]) -> Ball:
    """Return -sum x log x."""
    return entropy(parts.values())
