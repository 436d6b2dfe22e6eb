"""`audit_samples`: leakage and privacy of a mechanism that can only be sampled, with confidence."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from cvxleak.audit import record_leakage
from cvxleak.capacities import capacity
from cvxleak.core.clock import WORK_LIMIT, Clock, check_progress
from cvxleak.core.errors import SolveInterrupted, ValidationError
from cvxleak.core.validation import Array, generator, instance, short
from cvxleak.core.value import preview
from cvxleak.core.wording import counted, rounded
from cvxleak.model import ChannelSet, Knowledge, Mechanism, Query, RecordSpace, TableQuery
from cvxleak.problem import Bound
from cvxleak.samples.columns import Columns, columns_between, columns_listed, columns_seen
from cvxleak.samples.counts import channels_from_counts, read_confidence
from cvxleak.samples.reading import Samples, read_samples
from cvxleak.samples.violation import DPViolation, dp_violation

__all__ = ["SampleAudit", "audit_samples"]

SHARE = 0.1
"""Part of the draws that chooses the columns."""

TOLERANCE = 1e-2
"""Part of the capacity that its search may leave open, if not said otherwise; draws leave more."""

MORE = 4
"""How many times the draws are looked at to see how the width falls."""


@dataclass(frozen=True, eq=False)
class SampleAudit:
    """The audit of a mechanism from draws, with a confidence level.

    With probability at least `confidence` over the draws, all of the following hold simultaneously:
    the channel from secrets to columns is in `channels`, the leakage is between `lower` and
    `upper`, and every result of `violation` is correct.

    Attributes
    ----------
    bound : Bound
        Bounds on the leakage of the columns. Its certificate covers all of `channels`; that the
        true channel is among them is a statistical statement, which no certificate proves.
    lower, upper : float
        Bounds on the leakage, in nats. `lower` holds for the output itself, since columns cannot
        leak more than the output (data processing). So does `upper`, unless `binned`.
    columns : Columns
        The columns into which outputs were sorted: ``columns.place(output)`` is the number of a
        column.
    search : float
        The part of `upper` - `lower` that a longer search could close; the rest is due to the
        limited number of draws.
    channels : ChannelSet
    counts : array, shape (secrets, columns)
        The counts from which `channels` is computed.
    confidence : float
    draws : int
        Number of draws, of all secrets together.
    choosing : int
        Number of draws that were used to choose the columns; they are not in `counts`.
    pairs : tuple of pairs of secrets or None
        The pairs that `violation` examines; None stands for all pairs.

    Examples
    --------
    >>> from cvxleak.samples import audit_samples
    >>> truth = {"x": [0] * 1000 + [1] * 1000, "y": [0] * 900 + [1] * 220 + [0] * 880}
    >>> audit = audit_samples(truth, outputs=[0, 1])
    >>> audit.counts.astype(int).tolist()
    [[900, 100], [880, 120]]
    >>> audit.lower, round(audit.upper, 4), audit.more_draws
    (0.0, 0.0054, 4100)
    """

    bound: Bound
    lower: float
    upper: float
    columns: Columns
    search: float
    channels: ChannelSet
    counts: Array
    confidence: float
    draws: int
    choosing: int
    pairs: tuple[tuple[Hashable, Hashable], ...] | None

    @property
    def binned(self) -> bool:
        """Whether `upper` holds for the columns only, because a column holds several outputs."""
        return self.columns.merged

    @cached_property
    def more_draws(self) -> int | None:
        """Approximate number of further draws that would halve the width; None if no number would.

        Extrapolated from the width of the capacity's bounds with `MORE` times the counts.
        """
        now, then = (
            capacity(channels, tol=TOLERANCE).gap
            for channels in (
                self.channels,
                channels_from_counts(MORE * self.counts, self.confidence),
            )
        )
        if not 0 < then < 0.99 * now:
            return None
        more = self.draws * (2 ** (math.log(MORE) / math.log(now / then)) - 1)
        return int(round(more, 1 - math.floor(math.log10(more))))

    @property
    def about(self) -> str:
        """What the bounds refer to, in words."""
        if not self.binned:
            return "Both bounds hold for the output itself."
        columns = len(self.channels.outputs)
        return (
            "The lower bound holds for the output itself, "
            f"the upper one for its {counted(columns, 'column')}."
        )

    def violation(self, delta: float = 0.0, pairs: Any = None) -> DPViolation:
        """Return the (epsilon, delta) of differential privacy that the draws rule out.

        Parameters
        ----------
        delta : float
            From 0 to 1.
        pairs : iterable of pairs of secrets, optional
            The pairs that must be hard to distinguish; `self.pairs` if left out.

        Raises
        ------
        ValidationError
            As for `cvxleak.samples.dp_violation`.
        """
        return dp_violation(self.channels, delta, self.pairs if pairs is None else pairs)

    def __repr__(self) -> str:
        return f"SampleAudit({str(self).splitlines()[0]})"

    def _repr_html_(self) -> str:
        from cvxleak.core.notebook import html_table

        caption, *lines = str(self).splitlines()
        return html_table(caption, (), ([line] for line in lines))

    def __str__(self) -> str:
        secrets, columns = self.counts.shape
        chose = f"{self.choosing} of them chose the columns" if self.choosing else "all of them"
        open_by = self.upper - self.lower - self.search
        more = "" if self.more_draws is None else f" (about {self.more_draws} more would halve it)"
        return "\n".join(
            [
                f"{self.bound.name}: {rounded(self.lower)} to {rounded(self.upper, up=True)} nats "
                f"with {100 * self.confidence:g} % confidence",
                f"{counted(self.draws, 'draw')} of {counted(secrets, 'secret')}, "
                f"sorted into {counted(columns, 'column')}; {chose}",
                f"gap: {open_by:.2g} from the number of draws{more}, "
                f"{self.search:.2g} from the search",
                self.about,
                str(self.violation()),
            ]
        )


def audit_samples(
    samples: Any,
    secret: str = "x",
    output: str = "y",
    *,
    entropy_floor: float | None = None,
    query: Query | None = None,
    adversaries: Knowledge | Iterable[Knowledge] | None = None,
    confidence: float = 0.95,
    outputs: Iterable[Hashable] | None = None,
    bins: int | Iterable[float] | None = None,
    rng: int | np.random.Generator = 0,
    tol: float | None = None,
    time_limit: float | None = None,
    work_limit: float | None = WORK_LIMIT,
    progress: Callable[[float, float, int], None] | None = None,
) -> SampleAudit:
    """Audit a mechanism from draws: pairs of a secret and an output.

    Parameters
    ----------
    samples : pandas.DataFrame, mapping, path of a CSV file, pair of arrays, or Samples
        One row, or entry, per draw (`read_samples`).
    secret, output : str
        The columns' names.
    entropy_floor : float, optional
        The adversary's least uncertainty, in nats, about the record (or, with a query, about the
        dataset). If it is left out, together with `query` and `adversaries`, the audit is of the
        capacity.
    query : Query, optional
        A query whose values are the secrets: the audit is of the leakage about a record of its
        datasets. Values without draws may have any output distribution.
    adversaries : Knowledge or iterable of Knowledge, optional
        Further constraints on the adversary's prior, as for `record_leakage`.
    confidence : float
        Confidence level, strictly between 0 and 1.
    outputs : iterable of hashable, optional
        All outputs that can occur, if they are known beforehand. If left out, a tenth of the draws
        is used to choose the columns into which the outputs of the others are sorted.
    bins : int or increasing numbers, optional
        Largest number of columns to choose, or the ends of intervals, fixed beforehand.
    rng : int or numpy.random.Generator
        Seed or generator that selects this tenth. Trying several and reporting the best invalidates
        the confidence.
    tol : float, optional
        As for `Problem.solve`; 0.01 for the capacity and 0.0001 for record leakage if left out.
    time_limit, work_limit, progress
        As for `record_leakage`.

    Returns
    -------
    SampleAudit

    Raises
    ------
    ValidationError
        Empty cells, unknown columns, a single secret or one that appears only once, a secret that
        is not a value of the query, an output that is not listed, or a confidence out of range.
    InfeasibleError
        A floor above the largest entropy.
    SolveInterrupted
        At Ctrl-C; its `bound` is the `SampleAudit` reached so far.

    Notes
    -----
    Assumptions: given the secrets, the draws are independent, each from the output distribution of
    its secret, and the number of draws does not depend on their outcomes (no sampling until
    something is found). The columns are fixed before the counts are examined, by the tenth of each
    secret's draws that `rng` selects; one column holds all outputs that do not occur in this tenth.
    The intervals of all probabilities hold simultaneously (`channels_from_counts`), and so does
    everything derived from them.

    If each column is a single output, `upper` is the upper bound of the columns plus log k times
    the largest probability of an output without a column, where k is the number of values of the
    secret (or of the record): such an output leaks at most log k. Secrets that were not sampled
    could only raise the leakage: `lower` holds with them, `upper` only without them.

    Examples
    --------
    >>> import numpy as np
    >>> from cvxleak.samples import audit_samples
    >>> rng = np.random.default_rng(1)
    >>> secrets = np.repeat(["member", "outsider"], 20000)
    >>> seconds = rng.gamma(2.0, 1.0, 40000) + 0.5 * (secrets == "member")
    >>> print(audit_samples((secrets, seconds)))
    capacity: 0.0...
    """
    check_progress(progress)
    level = read_confidence(confidence)
    if outputs is not None and bins is not None:
        raise ValidationError("bins: outputs are given, which are columns of their own")
    draws = read_samples(samples, secret, output)
    rows = _secrets(draws, query)
    columns, counted = _split(draws, rows, outputs, bins, generator(rng))
    table = np.zeros((len(rows), len(columns.labels)))
    for (x, y), many in counted.items():
        table[x, y] = many
    channels = channels_from_counts(table, level, inputs=rows, outputs=columns.labels)

    clock, size, interrupted = Clock(time_limit, work_limit), len(rows), False
    bound = most = capacity(channels, tol=TOLERANCE if tol is None else tol)
    if query is not None or entropy_floor is not None or adversaries is not None:
        asked = query if query is not None else _one_record(rows)
        size = max(map(len, asked.space.alphabets))
        options: dict[str, Any] = {"tol": tol, "progress": progress, **clock.limits}
        options["adversaries"] = adversaries
        floor = 0.0 if entropy_floor is None else entropy_floor
        try:
            bound = record_leakage(Mechanism(asked, channels), floor, **options)
        except SolveInterrupted as error:
            bound, interrupted = error.bound, True
    hiding = columns.others and not columns.merged
    unseen = float(channels.upper[:, -1].max()) if hiding else 0.0
    allowance = math.nextafter(unseen * math.log(size), math.inf)
    upper = min(bound.upper, most.upper)
    search = max(upper - (bound.lower if bound.attained is None else bound.attained), 0.0)
    known = math.nextafter(math.log(size), math.inf)
    audit = SampleAudit(
        bound,
        max(bound.lower, 0.0),
        min(math.nextafter(upper + allowance, math.inf), known),
        columns,
        search,
        channels,
        table,
        level,
        len(draws),
        len(draws) - int(table.sum()),
        None if query is None else _neighbors(query),
    )
    if interrupted:
        raise SolveInterrupted(audit)
    return audit


def _secrets(draws: Samples, query: Query | None) -> tuple[Hashable, ...]:
    """Return the secrets, or say what is wrong with them."""
    found = Counter(draws.secrets)
    if query is not None:
        values = instance(query, Query, "query").values
        strange = [label for label in found if label not in values]
        if strange:
            raise ValidationError(
                f"secret: found {short(strange[0])}; the query's values are {preview(values)}"
            )
        return values
    once = [label for label, many in found.items() if many == 1]
    if once:
        more = len(once) - 1
        others = f", as {'does' if more == 1 else 'do'} {counted(more, 'other')}" if more else ""
        raise ValidationError(
            f"secret: {short(once[0])} appears once{others}; every secret "
            "needs at least 2 draws (are the columns the right way round?)"
        )
    if len(found) == 1:
        raise ValidationError(f"secret: found only {short(next(iter(found)))}; two are needed")
    return draws.distinct


def _split(
    draws: Samples,
    rows: tuple[Hashable, ...],
    outputs: Iterable[Hashable] | None,
    bins: int | Iterable[float] | None,
    rng: np.random.Generator,
) -> tuple[Columns, Counter[tuple[int, int]]]:
    """Return the columns, and how often each was drawn by those draws that did not choose them."""
    place = {label: x for x, label in enumerate(rows)}
    secrets = np.array([place[label] for label in draws.secrets])
    chooses = np.zeros(len(draws), dtype=bool)
    if outputs is not None:
        columns = columns_listed(outputs)
    elif isinstance(bins, Iterable):
        columns = columns_between(bins)
    else:
        shuffled = rng.permutation(len(draws))
        for x in range(len(rows)):
            own = shuffled[secrets[shuffled] == x]
            chooses[own[: math.ceil(SHARE * len(own))]] = True
        part = np.flatnonzero(chooses)
        seen = [draws.outputs[draw] for draw in part]
        rest = max((len(draws) - len(part)) / len(np.unique(secrets)), 1.0)
        columns = columns_seen(seen, secrets[part].tolist(), bins, rest)
    kept = np.flatnonzero(~chooses)
    places = [columns.place(draws.outputs[draw]) for draw in kept]
    return columns, Counter(zip(secrets[kept].tolist(), places, strict=True))


def _one_record(secrets: tuple[Hashable, ...]) -> TableQuery:
    return TableQuery(RecordSpace([secrets]), np.arange(len(secrets)), secrets)


def _neighbors(query: Query) -> tuple[tuple[Hashable, Hashable], ...]:
    values = query.values
    return tuple((values[u], values[v]) for u, v in sorted(query.neighbor_pairs()))
