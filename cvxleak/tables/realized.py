"""`realized_leakage`: the leakage of a published table about each person in it."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cvxleak.core.errors import ValidationError
from cvxleak.core.notebook import html_table
from cvxleak.core.validation import Array, instance, read_only
from cvxleak.core.value import Value
from cvxleak.model import Prior, as_prior
from cvxleak.tables.arguments import Cell
from cvxleak.tables.keys import fits, joint_law, keys_of
from cvxleak.tables.release import TableRelease
from cvxleak.tables.transforms import Linkage

__all__ = ["RealizedLeakage", "realized_leakage"]

PRECISION = 1e-8
"""Largest error of posterior probabilities; for the true cell, relative to its own."""


@dataclass(frozen=True, eq=False, repr=False)
class RealizedLeakage(Value):
    """The leakage of a published table about a person of each cell, all others being known.

    Attributes
    ----------
    cells : tuple
        Labels of the values of a record: the cells, and "outside" if there is any.
    people : tuple of int
        The number of people in each cell.
    prior : ndarray, shape (k,)
        The prior distribution of a person's cell.
    posterior : ndarray, shape (k, k)
        Row a is the posterior distribution of the cell of a person who is in cell a, given the
        published table and the cells of all others; NaN for cells without people.

    Examples
    --------
    >>> from cvxleak.tables import RandomRounding, Table, TableRelease, realized_leakage
    >>> table = Table({"answer": ["no", "yes"]}, counts=[3, 1])
    >>> found = realized_leakage(TableRelease(table, RandomRounding(3)), [3, 3, 3])
    >>> found
    RealizedLeakage(4 people in 2 cells, at most 0.693147 nats about one of them)
    >>> found.posterior.round(3)
    array([[0.429, 0.571],
           [0.   , 1.   ]])
    """

    cells: tuple[Hashable, ...]
    people: tuple[int, ...]
    prior: Array
    posterior: Array

    @cached_property
    def information(self) -> Array:
        """The information density i(a; y) = log P(a | y) / P(a) of a person of each cell, in nats.

        NaN for cells without people.
        """
        with np.errstate(divide="ignore"):
            return read_only(np.log(np.diag(self.posterior)) - np.log(self.prior))

    @cached_property
    def pml(self) -> Array:
        """The pointwise maximal leakage log max_c P(c | y) / P(c) about each, in nats.

        Its exponential is the largest factor by which the output increases any adversary's gain.
        NaN for cells without people.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = np.where(self.prior > 0, self.posterior / self.prior, 0.0)
        return read_only(np.log(ratios.max(axis=1)))

    def to_frame(self) -> Any:
        """Return a line for each cell as a pandas DataFrame (needs pandas)."""
        import pandas as pd

        columns = {
            "cell": self.cells,
            "people": self.people,
            "prior": self.prior,
            "posterior": np.diag(self.posterior),
            "information": self.information,
            "pml": self.pml,
        }
        return pd.DataFrame(columns)

    def __repr__(self) -> str:
        most = float(np.nanmax(self.pml))
        count = sum(self.people)
        who = f"{count} {'person' if count == 1 else 'people'}"
        return (
            f"RealizedLeakage({who} in {len(self.cells)} cells, at most {most:.6g} nats about one "
            "of them)"
        )

    def _repr_html_(self) -> str:
        """Return a line for each cell."""
        head = ["cell", "people", "before", "after", "information", "PML"]
        columns = (self.prior, np.diag(self.posterior), self.information, self.pml)
        rows = zip(
            map(_text, self.cells), self.people, *map(np.ndarray.tolist, columns), strict=True
        )
        return html_table(repr(self), head, rows)


def _text(cell: Hashable) -> str:
    return "/".join(map(str, cell)) if isinstance(cell, tuple) else str(cell)


def _linked(
    release: TableRelease, published: Sequence[int], people: Sequence[int]
) -> tuple[Array, Array]:
    """Return log P(y) of the numbers whose keys are sums, with one person moved.

    And the logarithm of a bound on the error of P(y).
    """
    numbers, counts = [*release.keyed.values()], release.table.in_cells.tolist()
    peopled, places = [place for place, count in enumerate(people) if count], range(len(people))
    keys = keys_of(numbers)
    laws = len(peopled) * len(people)
    exact = fits(numbers, [count + 1 for count in counts], laws, one_outcome=True)
    if keys is not None and not exact:
        return Linkage(numbers, keys, counts, published, len(people)).log_likelihoods(peopled)
    logs = np.full((len(people), len(people)), -math.inf)
    for source, target in product(peopled, places):
        moved = [*counts, 0]
        moved[source] -= 1
        moved[target] += 1
        for p in joint_law(numbers, moved[: len(counts)], published, laws).values():
            logs[source, target] = math.log(p.numerator) - math.log(p.denominator)
    return logs, np.full_like(logs, -math.inf)


def realized_leakage(
    release: TableRelease,
    published: Any,
    prior: Prior | Mapping[Cell, float] | ArrayLike | None = None,
) -> RealizedLeakage:
    r"""Return the posterior of a person of each cell, given the published table.

    The adversary knows the cells of all others and has a prior P on the cell of the person. With N
    the counts of the others and e_c the counts of one person in cell c,

    .. math:: P(c \mid y) \propto P(c)\, \Pr\{y \mid N + e_c\},

    which is a product over the numbers that contain c if noise is independent; if keys link
    numbers, their exact joint distribution is used. The result also has the information density of
    the true cell and the pointwise maximal leakage.

    Parameters
    ----------
    release : TableRelease
        The release; its table must have counts.
    published : sequence, mapping, Series, DataFrame, or path of a CSV file
        The published value of each of `release.numbers`, in their order or by label; frames and
        files as `Table.from_counts` reads them.
    prior : Prior, mapping, Series or array_like, optional
        On `release.table.alphabet`, by label or in that order; uniform if left out.

    Returns
    -------
    RealizedLeakage
        In nats.

    Raises
    ------
    ValidationError
        A table without counts, published values that these counts cannot produce, a prior under
        which an occupied cell has probability zero, or noise linked by keys in a table that is too
        large.

    Notes
    -----
    If K keys link the numbers of a table of two variables with all margins, the work grows as K^m
    for the m values of the smaller variable, and K^m may be at most 2^24 (:doc:`/theory/tables`).
    If exact rational numbers take too long, probabilities are off by at most 1e-8.

    References
    ----------
    Pointwise maximal leakage: S. Saeidian, G. Cervia, T. J. Oechtering, M. Skoglund, Pointwise
    maximal leakage, IEEE Transactions on Information Theory 69, 2023.

    Examples
    --------
    >>> from cvxleak.tables import RandomRounding, Table, TableRelease, realized_leakage
    >>> table = Table({"sex": ["f", "m"], "answer": ["no", "yes"]}, counts=[[7, 1], [6, 4]])
    >>> release = TableRelease(table, RandomRounding(3))
    >>> published = [6, 0, 6, 3, 9, 9, 12, 6, 18]
    >>> found = realized_leakage(release, published, [0.4, 0.1, 0.3, 0.2])
    >>> print(found.information.round(3), found.pml.round(3))
    [0.317 1.464 0.085 0.49 ] [0.841 1.464 0.608 1.013]
    """
    asked = instance(release, TableRelease, "release")
    table = asked.table
    values = asked.as_published(published)
    counts = table.in_cells
    people = [*counts.tolist(), table.people - int(counts.sum())][: len(table.alphabet)]
    labels = table.alphabet
    law = as_prior(
        [1 / len(labels)] * len(labels) if prior is None else prior, len(labels), "prior", labels
    )
    for cell, count, p in zip(labels, people, law.probabilities, strict=True):
        if count and not p:
            raise ValidationError(f"prior: gives {cell!r} no probability, where somebody is")
    posterior = np.full((len(labels), len(labels)), math.nan)
    contains = np.zeros((len(labels), len(values)), dtype=int)
    for number, places in enumerate(asked.sums):
        contains[list(places), number] = 1
    alone = np.array([number not in asked.keyed for number in range(len(values))])
    near = asked.log_likelihoods(values)
    linked, doubt = np.zeros((len(labels), 1)), np.full((len(labels), 1), -math.inf)
    if asked.linked:
        linked, doubt = _linked(asked, [values[place] for place in asked.keyed], people)
    for a in np.flatnonzero(people).tolist():
        moved = contains - contains[a] + 1
        logs = near[moved, np.arange(len(values))][:, alone].sum(axis=1)
        logs, unsure = logs + linked[a], logs + doubt[a]
        if logs[a] == -math.inf:
            raise ValidationError(
                "published: found values that the true counts of the table cannot give"
            )
        with np.errstate(divide="ignore"):
            chances = np.log(law.probabilities)
        logs, unsure = logs + chances, unsure + chances
        weights, off = np.exp(logs - logs.max()), np.exp(unsure - logs.max())
        if off.sum() > PRECISION * weights.sum() or off[a] > PRECISION * weights[a]:
            raise ValidationError(
                "published: found values that keys link, and of so little probability given the "
                "true counts of the table that rounding errors hide it"
            )
        posterior[a] = weights / weights.sum()
    return RealizedLeakage(labels, tuple(people), law.probabilities, read_only(posterior))
