"""Maximal leakage about a record or group under H(X) >= b: lower and upper bound, both proved."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cvxleak import measures
from cvxleak.audit.adversary import Adversary
from cvxleak.audit.worst_adversary.audit import Audit, Reporter
from cvxleak.audit.worst_adversary.objective import Objective
from cvxleak.audit.worst_adversary.witness import joint, listed, points_of
from cvxleak.core.clock import Progress
from cvxleak.core.errors import InfeasibleError, ValidationError
from cvxleak.core.validation import Array, instance, one_of, real_number, short, whole_number
from cvxleak.model import Gain, Lumped, Mechanism, Prior, RealOutput, Shannon
from cvxleak.model.gain import FORMS, Form, gain_instance
from cvxleak.model.gain_form import GainForm
from cvxleak.model.knowledge import Knowledge
from cvxleak.model.knowledge.binding import as_knowledge, exchangeable
from cvxleak.model.knowledge.violations import lump, violations_of_prior, violations_of_weights
from cvxleak.model.own_gain import provable_gain
from cvxleak.model.restricted import restrict
from cvxleak.problem import Bound, Check, Problem
from cvxleak.problem.candidates import (
    candidate_weights,
    law_violations,
    plain,
    positive_part,
    real_numbers,
)
from cvxleak.problem.problem import Toward, mixtures

__all__ = ["RecordLeakage", "group_leakage", "record_leakage"]

TOLERANCE = 1e-4
"""Relative gap that is asked for if none is, as of most problems of the bank."""

PAIRS = 1 << 22
"""Most joint values of all audited groups of records together, times the values of the query."""

SHANNON = Shannon()


@dataclass(frozen=True, eq=False)
class RecordLeakage(Problem):
    """L(b) = max of I(X_I;Y) over groups I of k records and over priors with H(X) >= b.

    LEAKAGE Problem 1 and DALENIUS Definitions 5 and 10 for k = 1 (individual channel capacity
    C_1^b), DALENIUS Definition 15 for more (group channel capacity C_k^b).

    Parameters
    ----------
    mechanism : Mechanism
        The query and its noise channel. If the channel is only known to lie in a `ChannelSet`,
        every channel of the set leaks at least `lower` and none leaks more than `upper`. CERTIFIED
        then refers to the gap that the search can close, between ``bound.attained`` and `upper`;
        the rest is the uncertainty of the set, ``bound.set_width``. With a `RealOutput` both bounds
        are about the real-valued output; ``stats["cells"]`` is the number of cells into which the
        audit partitions it.
    entropy_floor : float
        b, in nats, from 0 to log|X|: the adversary's least uncertainty about the whole dataset.
    records : int or sequence of int, optional
        One record, or one group of records. If left out, the maximum over all records (or groups of
        `size`); records that can be swapped without changing the query are computed once.
    size : int
        Number k of records in a group.
    adversaries : Knowledge or iterable of Knowledge, optional
        Further constraints on the adversaries' priors: an `Expectation`, `KnownMarginals`, a
        `RelativeEntropyBall`, or several of these. All priors above the floor if left out.
    gain : Gain
        The value of a belief to the adversary: `Shannon` (minus the entropy), `Guess`,
        `GuessInTries`, a `GainMatrix`, `Gini`, `Arimoto`, or a user-defined `Gain` with `rows`,
        which is audited as the `GainMatrix` of these rows.
    form : str
        The quantity that is bounded. With rho_y the posterior given y and pi the prior of the
        record(s): ``"posterior"``, sum_y P(y) G(rho_y); ``"rise"``, the same minus G(pi), which is
        I(X_I;Y) for Shannon's gain; or ``"factor"``, the ratio of the two, if G is positive.

    Raises
    ------
    ValidationError
        Arguments of the wrong kind; a user-defined gain without `rows`, that is not convex, or
        whose methods do not return what `Gain` specifies; form "factor" of a gain that is not
        positive; for real outputs, a gain other than Shannon's.
    InfeasibleError
        b above log|X|; the message gives the maximum. From `solve`: no prior was found that
        satisfies `adversaries` and has entropy at least b.

    Notes
    -----
    Gains: Alvim, Chatzikokolakis, Palamidessi and Smith, "Measuring information leakage using
    generalized gain functions", CSF 2012; the largest gain over all adversaries above a floor is
    bounded like the leakage, by cells of the posteriors.

    The bound's `lower` is the leakage to the `witness`, an `Adversary`; `upper` is proved for every
    adversary in the class. ``shadow_prices["entropy_floor"]`` estimates dL/db, and
    ``stats["method"]`` says what bounds it from above. ``stats["nodes"]`` counts the nodes of all
    branch-and-bound trees, and ``stats["work"]`` multiplications. Where the cheap bounds are not
    enough, ``stats["time_sharing"]`` is an estimate of what any bound by log-ratios is at least; if
    that is above the tolerance, only the tree of posterior cells can close the gap.

    Options of `solve`, beside those of every problem:

    - rng, int, numpy.random.Generator or None: random starts of the local search; the same seed
      gives the same answer.
    - verbose: print a line per second.
    - progress: called as progress(lower, upper, nodes) after every batch of nodes.

    A time limit does not interrupt the following: lumping the contexts of one group of records, one
    prior and its proof, and the certificate, which together take less than half a microsecond per
    probability of the mechanism (some 3 s for the 13.5 million of a count of 6366 records); one
    step of the local search; and one Newton step of a tree, at most a few seconds.

    Examples
    --------
    >>> from cvxleak.audit import RecordLeakage
    >>> from cvxleak.model import AdditiveQuery, Mechanism, RecordSpace
    >>> parity = AdditiveQuery(RecordSpace.binary(4), [(0, 1)] * 4, modulus=2)
    >>> mechanism = Mechanism(parity, [[0.7, 0.3], [0.3, 0.7]])
    >>> print(RecordLeakage(mechanism, entropy_floor=2.5).solve())
    record leakage: 0.0400... to 0.0400... nats (CERTIFIED)
    """

    kind = "record-leakage"
    maximize = True
    tolerance = TOLERANCE
    information = ("entropy_floor",)

    mechanism: Mechanism
    entropy_floor: float
    records: tuple[int, ...] | None
    size: int
    adversaries: tuple[Knowledge, ...]
    gain: Gain
    form: Form

    def __init__(
        self,
        mechanism: Mechanism,
        entropy_floor: float,
        records: int | Sequence[int] | None = None,
        size: int = 1,
        adversaries: Knowledge | Iterable[Knowledge] | None = None,
        gain: Gain = SHANNON,
        form: Form = "rise",
    ) -> None:
        space = instance(mechanism, Mechanism, "mechanism").space
        floor, most = real_number(entropy_floor, "entropy_floor", 0.0), space.max_entropy
        if floor > most * (1 + 1e-12):
            raise InfeasibleError(
                f"entropy_floor: found {floor!r} nats; no prior on {short(space.size)} datasets "
                f"has more than log|X| = {most!r} nats"
            )
        group = None if records is None else space.group(records)
        size = whole_number(size if group is None else len(group), "size", 1, space.records)
        self._hold(
            mechanism=mechanism,
            entropy_floor=floor,
            records=group,
            size=size,
            adversaries=as_knowledge(adversaries, mechanism.query),
            gain=gain_instance(gain),
            form=one_of(form, FORMS, "form"),
            name="record leakage" if size == 1 else f"leakage about {size} records",
        )
        if not self.told.is_leakage:
            self._hold(name=self.told.name)
            self._check_gain()
            self._hold(unit=self.told.unit)

    @property
    def told(self) -> GainForm:
        """The gain in its form, as the prover takes it."""
        return GainForm(self.gain, self.form)

    @property
    def meaning(self) -> str:
        """The sentence by which a report explains the value."""
        if self.told.is_leakage:
            return super().meaning
        subject = "one person's record" if self.size == 1 else f"a group of {self.size} records"
        if self.records is not None:
            subject = " and ".join(f"record {i}" for i in self.records)
        return self.told.meaning(subject, "any adversary with at least this much uncertainty")

    def check_sizes(self) -> list[int]:
        """Return how many joint values audited groups have; refuse more than can be listed."""
        query, shape, group = self.mechanism.query, self.mechanism.space.shape, self.records
        query.check_fibers(group or sorted(range(len(shape)), key=shape.__getitem__)[-self.size :])
        alike = exchangeable(query, self.adversaries)
        groups = [group] if group else self.mechanism.groups(self.size, alike)
        sizes = [math.prod(shape[i] for i in one) for one in groups]
        if sum(sizes) * len(query.values) > PAIRS:
            raise ValidationError(
                f"records: found none; there are {len(groups)} kinds of groups of {self.size} "
                f"records with {sum(sizes)} joint values, and the query has {len(query.values)}; "
                f"at most {PAIRS} pairs can be audited together, so name one group"
            )
        return sorted(set(sizes))

    def _check_gain(self) -> None:
        if isinstance(self.mechanism.noise, RealOutput):
            raise ValidationError(
                f"gain: found {self.gain!r} ({self.form}) for a real-valued output, for which "
                "only the rise of Shannon's gain is supported; audit rounded noise, or noise on "
                "a grid"
            )
        sizes = self.check_sizes()
        self._hold(gain=provable_gain(self.gain, *sizes))
        for k in sizes:
            if self.form == "factor" and not Objective.of(self.told, k, 1.0).least(k)[0] > 0:
                raise ValidationError(
                    f"form: found 'factor' for {self.gain!r}, which is not known to be positive "
                    "for all priors; use 'rise' or 'posterior'"
                )

    def _search(
        self,
        *,
        rng: int | np.random.Generator | None = 0,
        verbose: bool = False,
        progress: Progress | None = None,
    ) -> Audit:
        return Audit(self, rng, Reporter(verbose, progress))

    def check(
        self,
        candidate: Adversary | Prior | ArrayLike,
        records: int | Sequence[int] | None = None,
        *,
        lumped: bool = False,
        bound: Bound | None = None,
        **options: Any,
    ) -> Check:
        """Compare a prior that was found by other means with the proved bounds.

        Parameters
        ----------
        candidate : Adversary, Prior or array_like
            An adversary of this mechanism, or a prior on the datasets: a `Prior` labeled by
            datasets, or weights in product order. It may violate constraints: the result says
            which, and by how much.
        records : int or sequence of int, optional
            The record (or group) to evaluate, one of those that the problem covers. If left out,
            the problem's own record, or else the one that leaks most.
        lumped : bool
            Whether the candidate is given as weights on the groups of ``mechanism.lumped(records)``
            (on the finer groups that `adversaries` need, if any).
        bound : Bound, optional
            An earlier result of `solve`; computed with `options` if left out.

        Raises
        ------
        ValidationError
            The wrong number of weights, weights that are not finite or all zero, lumped weights
            without a record, or records that the problem does not cover.
        """
        point = plain(candidate)
        return self._compared(point, self._measure(point, records, lumped), bound, options)

    def _measure(
        self,
        candidate: Adversary | Prior | ArrayLike,
        records: int | Sequence[int] | None = None,
        lumped: bool = False,
    ) -> tuple[float, dict[str, float]]:
        if isinstance(candidate, Adversary):
            if candidate.mechanism != self.mechanism or candidate.adversaries != self.adversaries:
                raise ValidationError("candidate: found an Adversary of another mechanism")
            candidate, records, lumped = candidate.weights, candidate.records, True
        group = self.records if records is None else self.mechanism.space.group(records)
        if group is not None and (len(group) != self.size or self.records not in (None, group)):
            # Its leakage could be above the bounds, which are of something else.
            about = f"{self.size} of them" if self.records is None else f"{self.records}"
            raise ValidationError(f"records: found {group}; the problem is about {about}")
        if not lumped:
            p = self._weights(candidate)
            law = positive_part(p)
            value, uncertainty = self._most(law, group)[0], measures.entropy(law)
            shaped = law.reshape(self.mechanism.space.shape)
            missed = violations_of_prior(self.adversaries, self.mechanism.query, shaped)
        elif group is None:
            raise ValidationError(
                "records: found none; lumped weights belong to one record or group, which "
                "must be named"
            )
        else:
            view = restrict(self.mechanism, group, self.adversaries)
            p = candidate_weights(candidate, len(view.lumped.rows), None, "group of contexts")
            law = positive_part(p)
            value = self._value(law, view.lumped)
            uncertainty = measures.lumped_entropy(law, view.lumped)
            missed = violations_of_weights(view, law, self.adversaries)
        short_of = {"entropy is at least the floor": max(self.entropy_floor - uncertainty, 0.0)}
        return value, law_violations(p) | short_of | missed

    def _value(self, weights: Array, lumped: Lumped) -> float:
        """Return what a lumped prior comes to."""
        if self.told.is_leakage:
            return measures.lumped_information(weights, lumped)
        law, rows = np.add.reduceat(weights, lumped.starts), joint(weights, lumped)
        # Of a value without mass any row does; a gain matrix has a column for it all the same.
        empty = law == 0
        rows[empty], mass = lumped.rows[lumped.starts[empty]], np.where(empty, 1.0, law)
        return measures.gain_leakage(rows / mass[:, None], law, self.gain, form=self.form)

    def _most(self, law: Array, group: tuple[int, ...] | None) -> tuple[float, tuple[int, ...]]:
        """Return what a full prior comes to at most, over all groups if none is given, and where.

        It need not respect the symmetry of the query.
        """
        mechanism = self.mechanism.nominal
        every = combinations(range(mechanism.space.records), self.size)
        found = (
            (self._value(mechanism.lump(one, law), mechanism.lumped(one)), one)
            for one in (every if group is None else [group])
        )
        return max(found, key=lambda one: one[0])

    def _weights(self, candidate: Any) -> Array:
        """Return a candidate's weights on the datasets, in product order."""
        space = self.mechanism.space
        named = isinstance(candidate, Prior) or hasattr(candidate, "reindex")
        if not named:
            candidate = real_numbers(candidate)
            if candidate.shape == space.shape:  # one axis for each record
                candidate = candidate.ravel()
        labels = tuple(space.datasets()) if named and len(candidate) == space.size else None
        return candidate_weights(candidate, space.size, labels, "dataset")

    def _toward(self, candidate: Adversary | Prior | ArrayLike, bound: Bound) -> Toward:
        if isinstance(candidate, Adversary):
            self._measure(candidate)  # or it is of another problem
            start = candidate
            if (order := listed(bound, start.records)) != start.records:
                raise ValidationError(
                    f"candidate: found an Adversary of records {start.records}; the certificate "
                    f"lists them as {order}"
                )
        else:
            law = positive_part(self._weights(candidate))
            group = listed(bound, self._most(law, self.records)[1])
            weights = lump(restrict(self.mechanism, group, self.adversaries), law)
            start = Adversary(self.mechanism, group, weights, self.adversaries)
        center, worst = start.lumped.uniform(), bound.witness
        if self.adversaries:  # what is inside a class its search knows; a point of it will do
            center = worst.weights if worst.records == start.records else start.weights
        stored = points_of(bound, start.records)
        return mixtures(start.weights, center, lambda w: replace(start, weights=w), stored)


def record_leakage(
    mechanism: Mechanism,
    entropy_floor: float,
    records: int | Sequence[int] | None = None,
    *,
    adversaries: Knowledge | Iterable[Knowledge] | None = None,
    gain: Gain = SHANNON,
    form: Form = "rise",
    **options: Any,
) -> Bound:
    """Bound the maximal leakage about a record under H(X) >= b: `RecordLeakage(...).solve(...)`.

    Parameters
    ----------
    mechanism : Mechanism
    entropy_floor : float
        b, in nats.
    records : int or sequence of int, optional
        One record, or one group of records; the record that leaks most if left out.
    adversaries, gain, form, **options
        As for `RecordLeakage`. The search uses no external solver, so `solver` and `solver_options`
        are not among them; like any other unknown name they raise a TypeError.

    Examples
    --------
    >>> from cvxleak.audit import record_leakage
    >>> from cvxleak.model import AdditiveQuery, Mechanism, RecordSpace
    >>> parity = AdditiveQuery(RecordSpace.binary(3), [(0, 1)] * 3, modulus=2)
    >>> bound = record_leakage(Mechanism(parity, [[0.9, 0.1], [0.1, 0.9]]), entropy_floor=1.0)
    >>> print(bound)
    record leakage: 0.3680642 to 0.3680642 nats (CERTIFIED)

    An adversary has at least 2.7 nats of uncertainty about four records, whose count is rounded at
    random to a multiple of 3. How much better can it guess a record?

    >>> from cvxleak import Guess, Mechanism
    >>> from cvxleak.mechanisms import random_rounding
    >>> from cvxleak.queries import count
    >>> rounded = Mechanism(count(4), random_rounding(4, base=3))
    >>> print(record_leakage(rounded, 2.7, gain=Guess()))
    increase in the chance of guessing correctly: 0.2436... to 0.2436... probability (CERTIFIED)
    """
    problem = RecordLeakage(mechanism, entropy_floor, records, 1, adversaries, gain, form)
    return problem.solve(**options)


def group_leakage(
    mechanism: Mechanism,
    entropy_floor: float,
    size: int,
    *,
    adversaries: Knowledge | Iterable[Knowledge] | None = None,
    gain: Gain = SHANNON,
    form: Form = "rise",
    **options: Any,
) -> Bound:
    """Bound C_k^b, the maximal leakage about a group of `size` records (DALENIUS Definition 15).

    Examples
    --------
    >>> from cvxleak.audit import group_leakage
    >>> from cvxleak.model import AdditiveQuery, Mechanism, RecordSpace
    >>> count = AdditiveQuery(RecordSpace.binary(2), [(0, 1)] * 2)
    >>> identity = Mechanism(count, [[1, 0, 0], [0, 1, 0], [0, 0, 1]])
    >>> print(group_leakage(identity, entropy_floor=0.0, size=2))
    leakage about 2 records: 1.098612 to 1.098612 nats (CERTIFIED)
    """
    problem = RecordLeakage(mechanism, entropy_floor, None, size, adversaries, gain, form)
    return problem.solve(**options)
