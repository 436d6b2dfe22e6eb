"""Maximal leakage to adversaries for whom the records are independent.

Where each distribution lies in a known polytope, the maximum is over finitely many cases. Under a
floor on the sum of the entropies, the lower bound comes from a local search, and the upper bound is
the smaller of two proved ones (`cvxleak.audit.product_search`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cvxleak.audit.product_priors import IndependentAdversary, ProductPriors, entropy, near, refused
from cvxleak.audit.product_search import in_case, local_search, most_of
from cvxleak.audit.record_leakage import SHANNON, TOLERANCE, RecordLeakage
from cvxleak.audit.worst_adversary.audit import floor_of
from cvxleak.core.clock import Clock, Stop
from cvxleak.core.errors import SolveInterrupted, ValidationError
from cvxleak.core.numbers import to_json
from cvxleak.core.validation import Array, generator, in_order, short
from cvxleak.kernel.numbers import lower, precision, upper
from cvxleak.kernel.reading import pack
from cvxleak.model import Gain, Mechanism, Prior
from cvxleak.model.gain import Form
from cvxleak.model.gain_form import GainForm
from cvxleak.model.known_laws import KNOWN, in_runs, known_laws
from cvxleak.model.space import TABLE_LIMIT
from cvxleak.problem import Bound, Gap, Problem, Stopped
from cvxleak.problem.candidates import candidate_weights, law_violations, positive_part
from cvxleak.problem.problem import Found, Once, Toward

__all__ = ["ProductLeakage", "product_leakage"]

Candidate = IndependentAdversary | Sequence[Prior | ArrayLike]

CASES = "all cases with others at vertices, because the leakage is convex in their distributions"
CONTEXTS = "local search from below, all contexts from above, because no audit is below them"
AUDIT = "local search from below, an audit of all priors from above, because no context is below it"


@dataclass(frozen=True, eq=False)
class ProductLeakage(Problem):
    """Maximize I(X_i;Y) over records i and over a class of product priors.

    With `gain`, another gain takes the place of the mutual information.

    DALENIUS Definition 5 for adversaries whose priors have independent records. Either each
    record's distribution lies in a given polytope, or H(X) >= b.

    Parameters
    ----------
    mechanism : Mechanism
        With a floor b > 0, at most 2^22 datasets times outputs; otherwise thousands of records of
        an additive query.
    entropy_floor : float, optional
        b, in nats, from 0 to log|X|. 0 if left out.
    records : int, optional
        The attacked record; the one that leaks most if left out.
    laws : array_like or sequence of array_like, optional
        Each record's distribution, that of record i included, is any mixture of these: an array of
        shape (V, k) for all records, or one such array per record. A distribution may be a `Prior`
        or a mapping; a single one is the distribution of every record.
    least_probability : float, optional
        alpha, from 0 to 1/k: each record other than i takes each of its k values with at least this
        probability; the distribution of record i is arbitrary.
    record_floor : float, optional
        h, in nats, from 0 to log 2: each record other than i is binary and has H(X_j) >= h; the
        distribution of record i is arbitrary.
    gain, form
        The value of a belief to the adversary, and the quantity that is bounded, as for
        `RecordLeakage`. The gain must be the maximum of a few linear functions: `Guess`,
        `GuessInTries`, a `GainMatrix`, or a user-defined gain with `rows`.

    Raises
    ------
    ValidationError
        Arguments of the wrong kind; more than one of `laws`, `least_probability`, `record_floor`
        and a positive `entropy_floor`; too many datasets, totals or cases; a gain that this problem
        does not support; form "factor" of a gain that is not positive; form "posterior" where the
        distribution of record i is arbitrary (the value of record i may then be known beforehand).
    InfeasibleError
        b above log|X|, or h above log 2.

    Notes
    -----
    For fixed distributions of record i and of all others but one, I(X_i;Y) is convex in the
    distribution of that one. So with distributions in polytopes the maximum over the other records
    is attained with all of them at vertices. Records with equal contributions to the query's total
    are interchangeable: for a count of n binary records, each with p_j in [alpha, 1 - alpha], there
    are n cases, and in each a concave maximum over p_i. Without constraints the worst adversary
    knows the other records, as in differential privacy. This differs from `RecordLeakage` at floor
    0, where the adversary's knowledge of the others may depend on record i.

    For a gain, the rise and the factor are also largest with the others' distributions at vertices,
    and with the distribution of record i among finitely many: those at which the best action
    without the output changes, on the faces of its polytope. For `Guess` and an arbitrary
    distribution these are the uniform distributions on subsets of the values.

    With a floor b > 0 the class is not a product of sets. The largest capacity of q(.|., z) is an
    upper bound, and so is the leakage without independence (`RecordLeakage`); the lower bound is
    the best value that a local search finds. Both are proved, but the gap need not close: the
    status is then BRACKETED.

    The bound's `witness` is an `IndependentAdversary`. The option `rng` of `solve` seeds the random
    starts of the local search. A time limit does not interrupt the capacities of contexts, nor the
    steps named at `RecordLeakage`.

    A candidate for `check` is an `IndependentAdversary`, or a distribution for each record. If
    neither it nor the problem names a record, the one that leaks most counts. Its value is computed
    from the positive parts of the distributions, each divided by its sum.

    Examples
    --------
    >>> from cvxleak.mechanisms import binary_symmetric
    >>> from cvxleak.model import Mechanism
    >>> from cvxleak.audit import ProductLeakage
    >>> from cvxleak.queries import parity
    >>> mechanism = Mechanism(parity(3), binary_symmetric(0.1))
    >>> print(ProductLeakage(mechanism, 0.6).solve())
    leakage to product priors: 0.36806... to 0.36806... nats (CERTIFIED)
    >>> print(ProductLeakage(mechanism, least_probability=0.1).solve())
    leakage to product priors: 0.13750... to 0.13750... nats (CERTIFIED)
    """

    kind = "product-leakage"
    name = "leakage to product priors"
    maximize = True
    tolerance = TOLERANCE
    information = ("entropy_floor", "record_floor")

    mechanism: Mechanism
    entropy_floor: float = 0.0
    records: int | Sequence[int] | None = None
    laws: Any = field(default=None, kw_only=True)
    least_probability: float | None = field(default=None, kw_only=True)
    record_floor: float | None = field(default=None, kw_only=True)
    gain: Gain = field(default=SHANNON, kw_only=True)
    form: Form = field(default="rise", kw_only=True)

    def __post_init__(self) -> None:
        # The same question about all priors refuses most of what is wrong.
        whole = self._of_all_priors
        if len(whole.records or ()) > 1:
            raise ValidationError(
                f"records: found {whole.records}; a single record is needed, since independent "
                "records are attacked one at a time"
            )
        space, floor = self.mechanism.space, whole.entropy_floor
        given = {name: getattr(self, name) for name in KNOWN if getattr(self, name) is not None}
        names = [*given, *(["entropy_floor"] if floor else [])]
        if len(names) > 1:
            raise ValidationError(f"{names[0]}: found {', '.join(names[1:])} beside it; give one")
        self._hold(**{name: known_laws(space, name, value) for name, value in given.items()})
        self._hold(entropy_floor=floor, records=whole.records, gain=whole.gain, form=whole.form)
        if not self.told.is_leakage:
            self._check_gain()
        outputs = len(self.mechanism.channel.outputs)
        if not floor:
            _ = self._priors  # too many cases are refused
        elif space.size * outputs > TABLE_LIMIT:
            raise ValidationError(
                f"mechanism: found {short(space.size)} datasets and {outputs} outputs; product "
                f"priors under a floor are searched on at most {TABLE_LIMIT} probabilities"
            )

    def _check_gain(self) -> None:
        self._hold(name=f"{self.told.name}, product priors", unit=self.told.unit)
        if self.form == "posterior" and self.laws is None and not self.entropy_floor:
            raise ValidationError(
                "form: found 'posterior' with no constraint on the attacked record: an "
                "adversary who already knows its value has the largest gain; give laws or an "
                "entropy_floor, or use 'rise' or 'factor'"
            )
        more = (
            "; of independent records the gains of at most a thousand actions are bounded (Guess, "
            "GuessInTries, GainMatrix), and the rise of Shannon's; RecordLeakage bounds more"
        )
        with refused(f"gain: found {short(self.gain)} ({self.form})", more):
            _ = self._priors.corners

    @property
    def told(self) -> GainForm:
        """The gain in its form, as the prover takes it."""
        return GainForm(self.gain, self.form)

    @property
    def attacked(self) -> tuple[int, ...]:
        """The records over which the maximum is taken."""
        every = range(self.mechanism.space.records)
        return tuple(every) if self.records is None else self.mechanism.space.group(self.records)

    @cached_property
    def _priors(self) -> ProductPriors:
        record = None if self.records is None else self.attacked[0]
        problem = {"record": record, **self._known, **self.told.to_dict()}
        return ProductPriors(self.mechanism, problem, self.record_floor)

    @property
    def _known(self) -> dict[str, Any]:
        """What is known of the distributions, as a certificate says it."""
        if self.entropy_floor:
            return {"entropy_floor": floor_of(self._of_all_priors)}
        if self.laws is not None:
            return {"laws": {"vertices": in_runs(self.mechanism.space, self.laws)}}
        name = "least_probability" if self.record_floor is None else "record_floor"
        return {"laws": {name: to_json(getattr(self, name) or 0.0)}}

    @cached_property
    def _of_all_priors(self) -> RecordLeakage:
        """The same question about priors that need not be products."""
        parts = self.mechanism, self.entropy_floor, self.records
        return RecordLeakage(*parts, gain=self.gain, form=self.form)

    def _search(self, *, rng: int | np.random.Generator | None = 0) -> Once:
        random = generator(rng)
        return Once(lambda gap, clock: self._run(gap, clock, random))

    def _run(self, gap: Gap, clock: Clock, rng: np.random.Generator) -> tuple[Found, Stopped]:
        """Go through the cases, and prove both bounds; a floor leaves other priors, too."""
        priors, statement, floored = self._priors, self._priors.statement, self.entropy_floor > 0
        above: dict[str, Any] = {"rule": "contexts" if floored else "corners", **priors.least}
        with precision():
            cases = [most_of(priors, i, clock) for i in priors.audited]
            if self.told.is_leakage:
                above["inputs"] = [pack(one.weights, "<f8") for one in cases]
            if floored:
                whole, stop = self._of_all_priors, Stop(clock)
                found = [local_search(whole, priors, one, rng, stop) for one in cases]
            else:
                found = [in_case(priors, one) for one in cases]
            cut_short = clock.late
            _, record, weights = max(found, key=lambda one: one[0])
            adversary, below = priors.at(record, weights)
            least, most = lower(statement.lower(below)), upper(statement.upper(above))
        method = CONTEXTS if floored else CASES
        stopped = Stopped.at_limit(clock) if cut_short else Stopped.ROUNDING
        if floored and not gap.closed(least, most):
            try:
                audit = self._of_all_priors.solve(tol=gap.tol, **clock.limits)
            except SolveInterrupted as error:
                audit = error.bound
            stopped = audit.stats["stopped"]
            if stopped is Stopped.TOLERANCE:  # others leak more than who takes records apart
                stopped = Stopped.at_limit(clock) if cut_short else Stopped.NO_PROGRESS
            if audit.certificate is not None and audit.upper < most:
                groups = audit.certificate.proof["groups"]
                most, above, method = audit.upper, {"rule": "audit", "groups": groups}, AUDIT
        parts = (statement.problem, below, above)
        return Found(least, most, adversary, parts, stats={"method": method}), stopped

    def _measure(self, candidate: Candidate) -> tuple[float, dict[str, float]]:
        given, laws, (value, record) = self._read(candidate)
        off = [law_violations(weights) for weights in given]
        missed = {name: max(one[name] for one in off) for name in off[0]}
        if self.entropy_floor:
            missed["entropy is at least the floor"] = max(self.entropy_floor - entropy(laws), 0.0)
        else:
            apart = [away for _, away in near(self._priors.people, record, laws)]
            missed["distributions are in their polytopes"] = max(apart)
        return value, missed

    def _toward(self, candidate: Candidate, bound: Bound) -> Toward:
        _, laws, (_, record) = self._read(candidate)
        weights = [own for own, _ in near(self._priors.inside, record, laws)]

        def at(share: float) -> tuple[Any, dict[str, Any]]:
            mixed = [(1 - share) * own + share / len(own) for own in weights]
            return self._priors.at(record, [own.tolist() for own in mixed])

        return at

    def _read(self, candidate: Any) -> tuple[list[Array], list[Array], tuple[float, int]]:
        """Return a candidate's weights as given, as distributions, and what leaks most there."""
        space, records = self.mechanism.space, self.attacked
        if isinstance(candidate, IndependentAdversary):
            if candidate.mechanism != self.mechanism or candidate.records[0] not in records:
                raise ValidationError(
                    "candidate: found an adversary of another mechanism or record"
                )
            candidate, records = candidate.laws, candidate.records
        each = in_order(candidate, "candidate")
        if len(each) != space.records:
            raise ValidationError(
                f"candidate: found {len(each)} distributions; one for each of {space.records} "
                "records is needed"
            )
        given = [
            candidate_weights(law, len(values), values, "value of the record")
            for law, values in zip(each, space.alphabets, strict=True)
        ]
        laws = [positive_part(law) for law in given]
        return given, laws, self._priors.worst(records, laws)


def product_leakage(
    mechanism: Mechanism,
    entropy_floor: float = 0.0,
    records: int | Sequence[int] | None = None,
    *,
    laws: Any = None,
    least_probability: float | None = None,
    record_floor: float | None = None,
    gain: Gain = SHANNON,
    form: Form = "rise",
    **options: Any,
) -> Bound:
    """Return the leakage to adversaries with independent records: `ProductLeakage(...).solve(...)`.

    For an exact count of n records with least probability alpha, n times the leakage about a record
    approaches 1 / (8 alpha (1 - alpha)).

    Examples
    --------
    >>> from cvxleak.mechanisms import binary_symmetric
    >>> from cvxleak.model import Mechanism
    >>> from cvxleak.audit import product_leakage
    >>> from cvxleak.queries import parity
    >>> print(product_leakage(Mechanism(parity(2), binary_symmetric(0.1)), entropy_floor=0.0))
    leakage to product priors: 0.36806... to 0.36806... nats (CERTIFIED)

    How much a rounded count helps to guess a record, if each other one is uncertain:

    >>> from cvxleak.mechanisms import random_rounding
    >>> from cvxleak.model import Guess
    >>> from cvxleak.queries import count
    >>> rounded = Mechanism(count(20), random_rounding(20, base=3))
    >>> print(product_leakage(rounded, least_probability=0.1, gain=Guess()))
    increase in the chance of guessing correctly, product priors: 0.1282... to 0.1282... probabil...
    """
    known = {"laws": laws, "least_probability": least_probability, "record_floor": record_floor}
    problem = ProductLeakage(mechanism, entropy_floor, records, gain=gain, form=form, **known)
    return problem.solve(**options)
