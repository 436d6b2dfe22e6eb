"""Which datasets may share a row of a designed channel, and exact distributions on such rows.

A design looks for a channel q(y|x) on the datasets. Three things determine the optimum: the
expected distortion under the sources, the leakage, and the set of adversaries H(X) >= b. Let g
permute the records and relabel their values, so that x -> gx permutes the datasets. This permutes
the adversaries among themselves, and I(X_i;Y) of one is I(X_g(i);Y) of its image, so the largest
leakage L is the same for q and for q(.|gx). If the sources and d(f(.), y) are invariant under g, so
is the distortion. L is a supremum of functions I(X_i;Y) that are convex in q, hence convex: the
average of q(.|gx) over a group of such g leaks no more than q, costs the same, and is constant on
the group's orbits. So one row per orbit is enough (the paper LEAKAGE has one row per query value).

For the leakage about the whole dataset, I(X;Y), g may be any permutation of the datasets that
leaves the sources and d(f(.), y) unchanged. The orbits are then the classes of datasets on which
all of these agree.

A `Rows` is a query g whose values name the rows, with the reason why datasets may share a row:

- "query": the user asks for a channel that sees f(x) only, which restricts the problem;
- "types": g says how often each value occurs in each class of records that can be exchanged without
  changing f; for distributions that depend on f(x) only;
- "orbits": generators of the group are listed, and g's fibers are its orbits;
- "classes": the classes above, for I(X;Y).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from flint import fmpq
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from cvxleak.core.errors import CertificateError
from cvxleak.kernel.budget import charge
from cvxleak.model import AdditiveQuery, Query, RecordSpace
from cvxleak.model.joint import joint_query
from cvxleak.proofs import reading
from cvxleak.proofs.exact import normalized_rows

__all__ = ["Cell", "Generator", "Law", "Rows", "image", "orbits", "types_query"]

Generator = tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]
"""(permutation, relabelings).

Record permutation[i] of gx has value relabelings[i][a] if x_i has value number a.
"""

Cell = tuple[int, int, int]
"""(a, r, m): m datasets have the secret's value number a and row r."""

FORMS = ("query", "types", "orbits", "classes")


@dataclass(frozen=True)
class Law:
    """A distribution on the datasets: uniform on all, or inside each fiber of f, or stated in full.

    Attributes
    ----------
    on : str
        "uniform", "values" or "datasets".
    weights : tuple of float
        Meant as written; empty for "uniform".
    """

    on: str
    weights: tuple[float, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the distribution as plain lists."""
        return {"on": self.on, "weights": list(self.weights)}

    @classmethod
    def from_dict(cls, data: Any, query: Query) -> Law:
        """Return the distribution that `to_dict` wrote, checked against the query."""
        reading.parts(data, {"on", "weights"}, "a distribution")
        sizes = {"uniform": 0, "values": len(query.values), "datasets": query.space.size}
        if not isinstance(data["on"], str) or data["on"] not in sizes:
            raise CertificateError(
                f"a distribution is on {data['on']!r:.40}; allowed: {sorted(sizes)}"
            )
        weights = reading.numbers(data["weights"], "a distribution", sizes[data["on"]])
        return cls(data["on"], tuple(weights))

    @property
    def levels(self) -> NDArray[np.intp]:
        """A number for each weight, the same only for weights that are equal as written."""
        known: dict[float, int] = {}
        found = [known.setdefault(weight, len(known)) for weight in self.weights]
        return np.array(found, dtype=np.intp)

    @cached_property
    def shares(self) -> list[fmpq]:
        """The distribution that the weights are."""
        return normalized_rows([self.weights])[0]


@dataclass(frozen=True)
class Rows:
    """Rows of a designed channel: the values of `query`, and why they may be shared.

    Attributes
    ----------
    statistic : Query
        f, which the distortion is about.
    query : Query
        g: datasets with the same value share a row.
    form : str
        See the module.
    generators : tuple of Generator
        For "orbits".
    """

    statistic: Query
    query: Query
    form: str
    generators: tuple[Generator, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return what a certificate stores; g is included only if it does not follow from f."""
        stored: dict[str, Any] = {"form": self.form}
        if self.form in ("orbits", "classes"):
            stored["query"] = self.query.to_dict()
            stored["generators"] = [[list(p), [list(s) for s in r]] for p, r in self.generators]
        return stored

    @classmethod
    def from_dict(cls, data: Any, statistic: Query, laws: Sequence[Law], total: bool) -> Rows:
        """Return the rows that `to_dict` wrote, with a proof that nothing is lost by them.

        Raises
        ------
        CertificateError
            Malformed, or the rows are coarser than the symmetry proves.
        """
        form = data.get("form") if isinstance(data, Mapping) else None
        if form in ("query", "types"):
            reading.parts(data, {"form"}, "the rows")
            if form == "types" and any(law.on == "datasets" for law in laws):
                raise CertificateError("rows by type need distributions that depend on f(x) only")
            g = statistic if form == "query" else types_query(statistic)
            return cls(statistic, g, form)
        if form not in FORMS:
            raise CertificateError(f"rows of the form {form!r:.40}; allowed: {FORMS}")
        reading.parts(data, {"form", "query", "generators"}, "the rows")
        rows = cls(statistic, Query.from_dict(data["query"]), form, _generators(data["generators"]))
        if rows.query.space != statistic.space:
            raise CertificateError("the rows and the query must have the same space")
        for law in laws:
            rows.check_constant(law)
        if form == "classes":
            if not total:
                raise CertificateError("rows by class are for the leakage of the whole dataset")
        else:
            found = orbits(statistic.space, rows.generators)
            joined = rows.query.table().ravel()
            if len(set(zip(found.tolist(), joined.tolist(), strict=True))) != found.max() + 1 or (
                joined.max() != found.max()
            ):
                raise CertificateError("the rows are not the orbits of the listed symmetries")
        return rows

    @cached_property
    def values(self) -> list[int]:
        """For each row the index of its value of f.

        Raises
        ------
        CertificateError
            f is not constant on a row.
        """
        if self.query == self.statistic:
            return list(range(len(self.statistic.values)))
        place = {value: k for k, value in enumerate(self.statistic.values)}
        index = {value: k for k, value in enumerate(self.query.values)}
        found = [-1] * len(index)
        pairs: tuple[Any, ...] = joint_query(self.statistic, self.query).values
        for f, g in pairs:
            if found[index[g]] >= 0:
                raise CertificateError("the query must be constant on each row")
            found[index[g]] = place[f]
        return found

    def cells(self, group: Sequence[int]) -> list[Cell]:
        """Return how many datasets there are for each value of the group and each row.

        An empty group stands for the whole dataset, whose secret is the row itself.
        """
        if not group:
            return [(r, r, m) for r, m in enumerate(self.sizes)]
        fibers = self.query.fibers(tuple(group))
        return [(a, r, m) for a, fiber in enumerate(fibers) for r, m in sorted(fiber.items())]

    @cached_property
    def sizes(self) -> list[int]:
        """Number of datasets of each row."""
        counts = [0] * len(self.query.values)
        for fiber in self.query.fibers((0,)):
            for r, m in fiber.items():
                counts[r] += m
        return counts

    def masses(self, law: Law, group: Sequence[int] = ()) -> list[fmpq]:
        """Return the exact probability of each of `cells(group)`."""
        cells = self.cells(group)
        if law.on == "uniform":
            return [fmpq(m, self.statistic.space.size) for _, _, m in cells]
        if law.on == "values":
            totals = [0] * len(self.statistic.values)
            for m, v in zip(self.sizes, self.values, strict=True):
                totals[v] += m
            return [
                law.shares[self.values[r]] * fmpq(m, totals[self.values[r]]) for _, r, m in cells
            ]
        rows = self.query.table().ravel().tolist()
        secret = self.statistic.space.value_index(tuple(group)).tolist() if group else rows
        found: dict[tuple[int, int], fmpq] = {}
        for a, r, share in zip(secret, rows, law.shares, strict=True):
            found[a, r] = found.get((a, r), fmpq(0)) + share
        return [found[a, r] for a, r, _ in cells]

    def check_constant(self, law: Law) -> None:
        """Raise unless a distribution gives all datasets of a row the same weight."""
        if law.on == "datasets":
            rows, levels = self.query.table().ravel(), law.levels
            first = np.unique(rows, return_index=True)[1]
            if not np.array_equal(levels, levels[first][rows]):
                raise CertificateError(
                    "a distribution must give equal probabilities to datasets that share a row"
                )


def types_query(query: Query) -> Query:
    """Return the query that counts each value in each class of records exchangeable under f.

    It is f itself if f distinguishes all of these counts.

    Examples
    --------
    >>> from cvxleak.proofs.bounds.design_rows import types_query
    >>> from cvxleak.model import AdditiveQuery, RecordSpace
    >>> parity = AdditiveQuery(RecordSpace.binary(3), [(0, 1)] * 3, modulus=2)
    >>> types_query(parity).values
    (0, 1, 2, 3)
    """
    classes = query.exchangeable()
    sizes = [len(query.space.alphabets[part[0]]) for part in classes]
    count = math.prod(
        math.comb(len(part) + k - 1, k - 1) for part, k in zip(classes, sizes, strict=True)
    )
    if count == len(query.values):
        return query
    width = max(sum(k - 1 for k in sizes), 1)
    charge("ball operations", 2 * sum(sizes) * width)
    contributions: list[Any] = [None] * query.space.records
    offset = 0
    for part, k in zip(classes, sizes, strict=True):
        units = np.zeros((k, width), dtype=int)
        units[np.arange(1, k), offset + np.arange(k - 1)] = 1
        offset += k - 1
        row = [tuple(unit) if width > 1 else unit[0] for unit in units.tolist()]
        for i in part:
            contributions[i] = row
    return AdditiveQuery(query.space, contributions)


def image(space: RecordSpace, generator: Generator) -> NDArray[np.intp]:
    """Return the index of gx for each dataset x, in product order.

    Raises
    ------
    CertificateError
        Not a permutation of the records with a relabeling of each onto the other's alphabet.
    """
    permutation, relabelings = generator
    if sorted(permutation) != list(range(space.records)) or len(relabelings) != space.records:
        raise CertificateError("a symmetry does not permute the records")
    axes = np.indices(space.shape, sparse=True)
    moved: list[Any] = [None] * space.records
    for i, (target, relabeling) in enumerate(zip(permutation, relabelings, strict=True)):
        if len(relabeling) != space.shape[i] or sorted(relabeling) != list(
            range(space.shape[target])
        ):
            raise CertificateError("a symmetry does not relabel the values of a record one to one")
        moved[target] = np.array(relabeling)[axes[i]]
    return np.broadcast_to(np.ravel_multi_index(moved, space.shape), space.shape).ravel()


def orbits(space: RecordSpace, generators: Sequence[Generator]) -> NDArray[np.intp]:
    """Return the number of each dataset's orbit under the group that the generators generate.

    Examples
    --------
    >>> from cvxleak.proofs.bounds.design_rows import orbits
    >>> from cvxleak.model import RecordSpace
    >>> swap = ((1, 0), ((0, 1), (0, 1)))
    >>> orbits(RecordSpace.binary(2), [swap]).tolist()
    [0, 1, 1, 2]
    """
    charge("ball operations", 4 * space.size * (1 + len(generators)))
    here = np.arange(space.size)
    start = np.tile(here, len(generators) + 1)
    end = np.concatenate([here, *(image(space, generator) for generator in generators)])
    graph = coo_array((np.ones(len(start)), (start, end)), shape=(space.size, space.size))
    return connected_components(graph, directed=False)[1].astype(np.intp)


def _generators(values: Any) -> tuple[Generator, ...]:
    if not isinstance(values, list) or not all(
        isinstance(pair, list) and len(pair) == 2 for pair in values
    ):
        raise CertificateError("the symmetries are not a list of pairs")
    result = []
    for permutation, relabelings in values:
        (places,) = reading.groups([permutation], "a symmetry")
        tables = reading.groups(relabelings, "a symmetry")
        result.append((tuple(places), tuple(tuple(table) for table in tables)))
    return tuple(result)
