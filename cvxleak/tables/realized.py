"""`realized_leakage`: the leakage of a published table about each person in it."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cvxleak.core.clock import WORK_LIMIT, Clock, Progress, check_progress
from cvxleak.core.errors import SolveInterrupted, ValidationError
from cvxleak.core.notebook import html_table
from cvxleak.core.validation import Array, instance, read_only
from cvxleak.core.value import Value
from cvxleak.core.wording import counted
from cvxleak.model import Prior, as_prior
from cvxleak.tables.arguments import Cell, places_of
from cvxleak.tables.keys import fits, joint_law, keys_of
from cvxleak.tables.parts import Parts
from cvxleak.tables.release import TableRelease
from cvxleak.tables.transforms import Bounds, Linkage

__all__ = ["RealizedLeakage", "realized_leakage"]

SLACK = 1e-9
"""More than rounding adds to a posterior probability, relative to it."""


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
        published table and the cells of all others; NaN for cells without people. Where `lower`
        and `upper` differ, an estimate between them.
    lower, upper : ndarray, shape (k, k)
        Bounds of each posterior probability, both proved. They differ where keys link the numbers
        of a table that is too large for its exact distribution.

    Examples
    --------
    >>> from cvxleak.tables import RandomRounding, Table, TableRelease, realized_leakage
    >>> table = Table({"answer": ["no", "yes"]}, counts=[3, 1])
    >>> found = realized_leakage(TableRelease(table, RandomRounding(3)), [3, 3, 3])
    >>> found
    RealizedLeakage(4 people in 2 cells, at most 0.693147 nats about one if all others are known)
    >>> found.posterior.round(3)
    array([[0.429, 0.571],
           [0.   , 1.   ]])
    """

    cells: tuple[Hashable, ...]
    people: tuple[int, ...]
    prior: Array
    posterior: Array
    lower: Array
    upper: Array

    @cached_property
    def information(self) -> Array:
        """The information density i(a; y) = log P(a | y) / P(a) of a person of each cell, in nats.

        The upper bound, where there are two. NaN for cells without people.
        """
        return read_only(np.diag(self._densities(self.upper)))

    @cached_property
    def information_lower(self) -> Array:
        """The lower bound of `information`."""
        return read_only(np.diag(self._densities(self.lower)))

    @cached_property
    def pml(self) -> Array:
        """The pointwise maximal leakage log max_c P(c | y) / P(c) about each, in nats.

        Its exponential is the largest factor by which the output increases any adversary's gain.
        The upper bound, where there are two. NaN for cells without people.
        """
        return read_only(np.maximum(self._densities(self.upper).max(axis=1), 0.0))

    @cached_property
    def pml_lower(self) -> Array:
        """The lower bound of `pml`."""
        return read_only(np.maximum(self._densities(self.lower).max(axis=1), 0.0))

    def _densities(self, posterior: Array) -> Array:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.log(np.where(self.prior > 0, posterior / self.prior, 0.0))

    def to_frame(self) -> Any:
        """Return a line for each cell as a pandas DataFrame (needs pandas)."""
        import pandas as pd

        columns = {
            "cell": self.cells,
            "people": self.people,
            "prior": self.prior,
            "posterior": np.diag(self.posterior),
            "posterior_lower": np.diag(self.lower),
            "posterior_upper": np.diag(self.upper),
            "information_lower": self.information_lower,
            "information": self.information,
            "pml_lower": self.pml_lower,
            "pml": self.pml,
        }
        return pd.DataFrame(columns)

    def __repr__(self) -> str:
        least, most = (f"{np.nanmax(pml):.6g}" for pml in (self.pml_lower, self.pml))
        count = sum(self.people)
        who = f"{count} {'person' if count == 1 else 'people'}"
        ends = f"at most {most}" if least == most else f"at most {least} to {most}"
        return (
            f"RealizedLeakage({who} in {counted(len(self.cells), 'cell')}, "
            f"{ends} nats about one if all others are known)"
        )

    def _repr_html_(self) -> str:
        """Return a line for each cell."""
        head = ["cell", "people", "before", "after", "information", "PML"]
        columns = (
            (self.prior, self.prior),
            (np.diag(self.lower), np.diag(self.upper)),
            (self.information_lower, self.information),
            (self.pml_lower, self.pml),
        )
        shown = [list(map(_between, *map(np.ndarray.tolist, ends))) for ends in columns]
        rows = zip(map(_text, self.cells), self.people, *shown, strict=True)
        return html_table(repr(self), head, rows)


def _between(low: float, high: float) -> float | str:
    ends = f"{low:.4g}", f"{high:.4g}"
    return high if ends[0] == ends[1] else " to ".join(ends)


def _text(cell: Hashable) -> str:
    return "/".join(map(str, cell)) if isinstance(cell, tuple) else str(cell)


def _linked(
    release: TableRelease, published: Sequence[int], people: Sequence[int]
) -> Iterator[Bounds]:
    """Yield bounds on log P(y) of the numbers whose keys are sums, with one person moved."""
    numbers, counts = [*release.keyed.values()], release.table.in_cells.tolist()
    peopled, places = [place for place, count in enumerate(people) if count], range(len(people))
    keys = keys_of(numbers)
    laws = len(peopled) * len(people)
    exact = fits(numbers, [count + 1 for count in counts], laws, one_outcome=True)
    if keys is not None and not exact:
        variables = release.table.variables
        parts = Parts.of([places_of(cell, variables, "table") for cell in release.table.cells])
        yield from Linkage(numbers, keys, counts, published, len(people), parts).bounds(peopled)
        return
    for source, target in product(peopled, places):
        moved = [*counts, 0]
        moved[source] -= 1
        moved[target] += 1
        found = -math.inf
        for p in joint_law(numbers, moved[: len(counts)], published, laws).values():
            found = math.log(p.numerator) - math.log(p.denominator)
        yield {(source, target): (found, found)}


def _beliefs(bounds: Array, true: int) -> Array:
    """Return an estimate and bounds of a posterior, from bounds of log P(c) P(y | c) by the cell c.

    Raises
    ------
    ValidationError
        The true counts cannot give what was published.
    """
    low, high = bounds
    if high[true] == -math.inf:
        raise ValidationError(
            "published: found values that the true counts of the table cannot give"
        )
    if (low == high).all():
        weights = np.exp(high - high.max())
        return np.array([weights / weights.sum()] * 3)
    # What is possible is not rounded down to 0.
    tops = np.where(high > -math.inf, np.maximum(high - high.max(), -700.0), -math.inf)
    least, most = np.exp(np.minimum(low - high.max(), tops)), np.exp(tops)
    middle = (least + most) / (least + most).sum()
    others = ~np.eye(len(low), dtype=bool)
    with np.errstate(invalid="ignore"):
        lower = least / (least + others @ most) * (1 - SLACK)
        upper = np.minimum(most / (most + others @ least) * (1 + SLACK), 1.0)
    return np.array([middle, np.where(least > 0, lower, 0.0), np.where(most > 0, upper, 0.0)])


def _most(posterior: Array, prior: Array) -> float:
    """Return the pointwise maximal leakage of a posterior, or of a bound of it."""
    return math.log(max(float((posterior[prior > 0] / prior[prior > 0]).max()), 1.0))


def realized_leakage(
    release: TableRelease,
    published: Any,
    prior: Prior | Mapping[Cell, float] | ArrayLike | None = None,
    *,
    time_limit: float | None = None,
    work_limit: float | None = WORK_LIMIT,
    progress: Progress | None = None,
) -> RealizedLeakage:
    r"""Return the posterior of a person of each cell, given the published table.

    The adversary knows the cells of all others and has a prior P on the cell of the person. With N
    the counts of the others and e_c the counts of one person in cell c,

    .. math:: P(c \mid y) \propto P(c)\, \Pr\{y \mid N + e_c\},

    which is a product over the numbers that contain c if noise is independent; if keys link
    numbers, their joint distribution is used. The result also has the information density of
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
    time_limit, work_limit : float or None
        Seconds, and multiplications (`Problem.solve`), after which bounds are no longer improved if
        keys link numbers: probabilities that were not reached are between 0 and 1. So it is after
        Ctrl-C, which raises `cvxleak.core.SolveInterrupted` with the bounds reached.
    progress : callable, optional
        Called as progress(lower, upper, steps so far) with bounds of the largest pointwise maximal
        leakage, if keys link numbers.

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
    SolveInterrupted
        After Ctrl-C, if keys link numbers: has the result reached.

    Notes
    -----
    If K keys link the numbers of a table of two variables with all margins, exact work grows as K^m
    for the m values of the smaller variable, and K^m may be at most 2^24. Beyond that, low
    frequencies of the keys' distribution are summed and the others are bounded
    (:doc:`/theory/tables`), which takes up to half a minute for 256 keys. Then `lower` and `upper`
    differ: little for 4 by 5 cells with large counts, much where several cells of a row and a
    column are empty, and 5 by 5 cells have bounds that tell little.

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
    check_progress(progress)
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
    with np.errstate(divide="ignore"):
        alone = np.repeat(np.log(law.probabilities)[None], len(labels), axis=0)
    contains = np.zeros((len(labels), len(values)), dtype=int)
    for number, places in enumerate(asked.sums):
        contains[list(places), number] = 1
    single = np.array([number not in asked.keyed for number in range(len(values))])
    near = asked.log_likelihoods(values)
    occupied = np.flatnonzero(people).tolist()
    for a in occupied:
        moved = contains - contains[a] + 1
        alone[a] += near[moved, np.arange(len(values))][:, single].sum(axis=1)
    bounds, stopped = np.array([alone, alone]), False
    if asked.linked:
        bounds[0] = -math.inf  # the probability of the linked numbers is between 0 and 1
        rarest = law.probabilities[law.probabilities > 0].min()
        ends = {a: [0.0, -math.log(rarest)] for a in occupied}
        clock = Clock(time_limit, work_limit)
        try:
            steps = _linked(asked, [values[place] for place in asked.keyed], people)
            for done, found in enumerate(steps):
                for move, logs in found.items():
                    bounds[:, *move] = alone[move] + logs
                if progress is not None:
                    for a in {a for a, _ in found}:
                        both = _beliefs(bounds[:, a], a)[1:]
                        ends[a] = [_most(one, law.probabilities) for one in both]
                    least, most = map(max, zip(*ends.values(), strict=True))
                    progress(least, most, done)
                if clock.late:
                    break
        except KeyboardInterrupt:
            stopped = True
    beliefs = np.full((3, len(labels), len(labels)), math.nan)
    for a in occupied:
        beliefs[:, a] = _beliefs(bounds[:, a], a)
    posterior, lower, upper = map(read_only, beliefs)
    found = RealizedLeakage(labels, tuple(people), law.probabilities, posterior, lower, upper)
    if stopped:
        raise SolveInterrupted(found)
    return found
