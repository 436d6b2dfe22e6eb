"""The worst adversary with independent records: a local search below, two proved bounds above."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from flint import arb
from numpy.typing import ArrayLike
from scipy.optimize import minimize
from scipy.special import entr, rel_entr

from cvxleak.audit.record_leakage import TOLERANCE, RecordLeakage
from cvxleak.audit.search.audit import Audit
from cvxleak.core.clock import Stop
from cvxleak.core.errors import InfeasibleError, ValidationError
from cvxleak.core.validation import Array, generator, in_order, instance, real_number, short
from cvxleak.core.value import Value
from cvxleak.exact import balls
from cvxleak.exact.packing import pack
from cvxleak.measures import mutual_information
from cvxleak.model import Mechanism, Prior
from cvxleak.problem import Bound, Gap, Problem, Stopped
from cvxleak.problem.candidates import candidate_weights, law_violations, positive_part
from cvxleak.problem.problem import Found, Toward, mixtures
from cvxleak.proofs import product_leakage as prover

__all__ = ["IndependentAdversary", "ProductLeakage", "product_leakage"]

STARTS = 12
ITERATIONS = 300
TABLE_LIMIT = 1 << 22
"""Most probabilities in the rows of all datasets."""

LINES_LIMIT = 1 << 14
"""Most contexts whose capacities are bounded one by one."""


@dataclass(frozen=True, eq=False)
class IndependentAdversary(Value):
    """A product prior: a law for each record.

    Attributes
    ----------
    mechanism : Mechanism
    records : tuple of one int
        The record that is attacked.
    laws : tuple of tuples of float
        p_j for each record j.

    Examples
    --------
    >>> from cvxleak.mechanisms import binary_symmetric
    >>> from cvxleak.model import Mechanism
    >>> from cvxleak.audit import IndependentAdversary
    >>> from cvxleak.queries import parity
    >>> mechanism = Mechanism(parity(2), binary_symmetric(0.25))
    >>> round(IndependentAdversary(mechanism, (0,), ((0.5, 0.5), (1.0, 0.0))).leakage, 4)
    0.1308
    """

    mechanism: Mechanism
    records: tuple[int]
    laws: tuple[tuple[float, ...], ...]

    @property
    def leakage(self) -> float:
        """I(X_i;Y) under this prior, in nats (floating point)."""
        (record,) = self.records
        channel = _channel(_rows(self.mechanism), [np.array(p) for p in self.laws], record)
        return float(mutual_information(np.array(self.laws[record]), channel))

    @property
    def entropy(self) -> float:
        """H(X) = sum_j H(X_j), in nats (floating point)."""
        return float(sum(entr(law).sum() for law in self.laws))

    def expand(self) -> Prior:
        """Return the prior on full datasets."""
        result = np.ones(())
        for law in self.laws:
            result = np.multiply.outer(result, np.array(law))
        return Prior(result.ravel() / result.sum(), self.mechanism.space.datasets())


@dataclass(frozen=True, eq=False)
class ProductLeakage(Problem):
    """The problem max over records i and over product priors with H(X) >= b of I(X_i;Y).

    DALENIUS Definition 5 for the class of adversaries to whom the records are independent.

    Parameters
    ----------
    mechanism : Mechanism
        On at most 2^16 datasets.
    entropy_floor : float
        b, in nats, from 0 to log|X|.
    records : int, optional
        The record that is attacked, one at a time; the worst of all if left out.

    Raises
    ------
    ValidationError
        Arguments of the wrong kind, or too many datasets.
    InfeasibleError
        b above log|X|.

    Notes
    -----
    The class is not convex. For the law of record i and of all others but one, I(X_i;Y) is convex
    in the law of that one; so without a floor the others may be taken to be known, and the leakage
    is max_z of the capacity of q(.|., z), exactly. With a floor this is an upper end, and so is the
    leakage without independence (`RecordLeakage`); the lower end is the best of a local search. The
    bracket is proved, but nothing makes it close: where it does not, it is BRACKETED.

    The bound's `witness` is an `IndependentAdversary`. The option `rng` of `solve` is for the
    random starts of the local search. What a time limit does not leave out: the capacities of
    contexts, and the steps named at `RecordLeakage`.

    A candidate for `check` is an `IndependentAdversary`, or a law for each record; without a record
    of its own or of the problem, the worst counts. Its value is that of the laws' positive parts,
    each divided by its sum.

    Examples
    --------
    >>> from cvxleak.mechanisms import binary_symmetric
    >>> from cvxleak.model import Mechanism
    >>> from cvxleak.audit import ProductLeakage
    >>> from cvxleak.queries import parity
    >>> mechanism = Mechanism(parity(3), binary_symmetric(0.1))
    >>> print(ProductLeakage(mechanism, 0.6).solve())
    leakage to product priors: 0.36806... to 0.36806... nats (CERTIFIED)
    """

    kind = "product-leakage"
    name = "leakage to product priors"
    maximize = True
    tolerance = TOLERANCE
    information = ("entropy_floor",)

    mechanism: Mechanism
    entropy_floor: float
    records: int | Sequence[int] | None = None

    def __post_init__(self) -> None:
        mechanism = instance(self.mechanism, Mechanism, "mechanism")
        space = mechanism.space
        floor = real_number(self.entropy_floor, "entropy_floor", 0.0)
        if floor > space.max_entropy * (1 + 1e-12):
            raise InfeasibleError(
                f"entropy_floor: found {floor!r} nats; no prior has more than log|X| = "
                f"{space.max_entropy!r} nats"
            )
        cells = space.size * len(mechanism.outputs)
        if space.size > prover.SIZE_LIMIT or cells > TABLE_LIMIT:
            raise ValidationError(
                f"mechanism: found {short(space.size)} datasets and {len(mechanism.outputs)} "
                f"outputs; product priors are searched on at most {prover.SIZE_LIMIT} datasets "
                f"and {TABLE_LIMIT} probabilities"
            )
        if self.records is not None:
            records = space.group(self.records)
            if len(records) > 1:
                raise ValidationError(
                    f"records: found {records}; independent records are attacked one at a time"
                )
            object.__setattr__(self, "records", records)
        object.__setattr__(self, "entropy_floor", floor)

    @property
    def attacked(self) -> tuple[int, ...]:
        """The records of which the worst counts."""
        space = self.mechanism.space
        return tuple(range(space.records)) if self.records is None else space.group(self.records)

    def _search(self, *, rng: int | np.random.Generator | None = 0) -> _Search:
        return _Search(self, generator(rng))

    def _measure(
        self, candidate: IndependentAdversary | Sequence[Prior | ArrayLike]
    ) -> tuple[float, dict[str, float]]:
        space, records = self.mechanism.space, self.attacked
        given: Any = candidate
        if isinstance(given, IndependentAdversary):
            if given.mechanism != self.mechanism or given.records[0] not in records:
                raise ValidationError("candidate: found an adversary of another problem")
            given, records = given.laws, given.records
        given = in_order(given, "candidate")
        if len(given) != space.records:
            raise ValidationError(
                f"candidate: found {len(given)} laws; one for each of {space.records} records is "
                "needed"
            )
        weights = [
            candidate_weights(law, len(values), values, "value of the record")
            for law, values in zip(given, space.alphabets, strict=True)
        ]
        laws, off = [positive_part(law) for law in weights], [law_violations(w) for w in weights]
        short_of = max(self.entropy_floor - float(sum(entr(law).sum() for law in laws)), 0.0)
        return max(_value(self.mechanism, i, laws) for i in records), {
            **{name: max(one[name] for one in off) for name in off[0]},
            "entropy is at least the floor": short_of,
        }

    def _toward(
        self, candidate: IndependentAdversary | Sequence[Prior | ArrayLike], bound: Bound
    ) -> Toward:
        given: Any = candidate
        records = self.attacked
        if isinstance(given, IndependentAdversary):
            given, records = given.laws, given.records
        laws = [
            positive_part(candidate_weights(law, len(values), values, "value of the record"))
            for law, values in zip(given, self.mechanism.space.alphabets, strict=True)
        ]
        record = max(records, key=lambda i: _value(self.mechanism, i, laws))
        ends = np.cumsum(self.mechanism.space.shape)[:-1]

        def parts(point: Array) -> list[list[float]]:
            return [law.tolist() for law in np.split(point, ends)]

        return mixtures(
            np.concatenate(laws),
            np.concatenate([np.full(n, 1 / n) for n in self.mechanism.space.shape]),
            lambda p: IndependentAdversary(self.mechanism, (record,), tuple(map(tuple, parts(p)))),
            lambda p: {"record": record, "laws": parts(p)},
        )


class _Search:
    """The local search from below, then the capacities of contexts and an audit from above."""

    def __init__(self, problem: ProductLeakage, rng: np.random.Generator) -> None:
        self._problem, self._rng = problem, rng
        mechanism = self._mechanism = problem.mechanism
        with balls.precision():
            most = sum(balls.round_down(arb(n).log()) for n in mechanism.space.shape)
        self._floor = min(problem.entropy_floor, max(most - 1e-12, 0.0))
        attacked = mechanism.groups(1) if problem.records is None else [problem.attacked]
        self._audited = [group[0] for group in attacked]
        self._contexts: list[tuple[Array, Array, list[Any]] | None] | None = None
        self._best: tuple[int, list[Array]] | None = None
        self._searched = False  # to the end
        self._audit: Audit | None = None
        self._proved: tuple[float, float, dict[str, Any]] | None = None

    def advance(self, gap: Gap, stop: Stop) -> Stopped:
        """Look for laws, and audit the mechanism if the capacities of contexts do not do."""
        if not self._searched:
            self._look(stop)
        lower, upper, _ = self._without_audit()
        if gap.closed(lower, upper):
            return Stopped.TOLERANCE
        if self._audit is None:
            problem = RecordLeakage(self._mechanism, self._floor, self._problem.records)
            self._audit = Audit(problem, self._rng)
        stopped = self._audit.advance(gap, stop)
        if stopped is not Stopped.TOLERANCE or gap.closed(lower, min(upper, self._audit.upper)):
            return stopped
        # Others leak more than who takes records apart.
        return Stopped.NO_PROGRESS if self._searched else Stopped.TIME_LIMIT

    def found(self, gap: Gap) -> Found:
        """Return the best laws so far, with what proves both ends."""
        record, laws = self._laws
        written = [law.tolist() for law in laws]
        lower, upper, proof = self._without_audit()
        if self._audit is not None:
            audited = self._audit.found(gap)
            if audited.upper < upper:
                _, witness, proved = audited.parts
                proof = {**proof, "audit": {"witness": witness, "proof": proved}}
                upper = audited.upper
        witness = IndependentAdversary(self._mechanism, (record,), tuple(map(tuple, written)))
        return Found(
            lower, upper, witness, (self._content, {"record": record, "laws": written}, proof)
        )

    def proof_seconds(self) -> float:
        """Return about how long the proof of the audit will take."""
        return 0.0 if self._audit is None else self._audit.proof_seconds()

    @property
    def _content(self) -> dict[str, Any]:
        """What a certificate says of the problem."""
        chosen = None if self._problem.records is None else self._problem.attacked[0]
        mechanism = self._mechanism.to_dict()
        return {"mechanism": mechanism, "entropy_floor": self._floor, "record": chosen}

    @property
    def _lines(self) -> list[tuple[Array, Array, list[Any]] | None]:
        if self._contexts is None:
            self._contexts = [_capacities(self._mechanism, i) for i in self._audited]
        return self._contexts

    @property
    def _laws(self) -> tuple[int, list[Array]]:
        if self._best is None:  # interrupted
            self._look(lambda: True)
        assert self._best is not None
        return self._best

    def _look(self, stop: Callable[[], bool]) -> None:
        """Run the local searches, and take the best laws if they leak more than those known."""
        found = [
            (i, _search(self._mechanism, i, self._floor, lines, self._rng, stop))
            for i, lines in zip(self._audited, self._lines, strict=True)
        ]
        known = [] if self._best is None else [self._best]
        self._best = max(known + found, key=lambda one: _value(self._mechanism, *one))
        self._searched, self._proved = not stop(), None

    def _without_audit(self) -> tuple[float, float, dict[str, Any]]:
        """Return the ends that the laws and the capacities of contexts prove, and the proof."""
        record, laws = self._laws
        if self._proved is None:
            witness = {"record": record, "laws": [law.tolist() for law in laws]}
            proof: dict[str, Any] = {"contexts": None, "audit": None}
            if all(one is not None for one in self._lines):
                proof["contexts"] = [pack(one[0]) for one in self._lines if one is not None]
            with balls.precision():
                self._proved = *prover.prove(self._content, witness, proof), proof
        return self._proved


def product_leakage(
    mechanism: Mechanism,
    entropy_floor: float,
    records: int | Sequence[int] | None = None,
    **options: Any,
) -> Bound:
    """Return the leakage to adversaries with independent records: `ProductLeakage(...).solve(...)`.

    Examples
    --------
    >>> from cvxleak.mechanisms import binary_symmetric
    >>> from cvxleak.model import Mechanism
    >>> from cvxleak.audit import product_leakage
    >>> from cvxleak.queries import parity
    >>> print(product_leakage(Mechanism(parity(2), binary_symmetric(0.1)), entropy_floor=0.0))
    leakage to product priors: 0.36806... to 0.36806... nats (CERTIFIED)
    """
    return ProductLeakage(mechanism, entropy_floor, records).solve(**options)


def _rows(mechanism: Mechanism) -> Array:
    return mechanism.channel.matrix[mechanism.query.table()]


def _channel(rows: Array, laws: list[Array], record: int) -> Array:
    """Return p(y | x_i), the other records drawn from their laws."""
    result = np.moveaxis(rows, record, 0)
    others = [law for j, law in enumerate(laws) if j != record]
    for law in others:
        # The second axis goes, and the next record's takes its place.
        result = np.tensordot(result, law, axes=(1, 0))
    return result


def _value(mechanism: Mechanism, record: int, laws: list[Array]) -> float:
    return _information(laws[record], _channel(_rows(mechanism), laws, record))


def _information(pi: Array, channel: Array) -> float:
    return float(pi @ rel_entr(channel, pi @ channel).sum(axis=1))


def _capacities(mechanism: Mechanism, record: int) -> tuple[Array, Array, list[Any]] | None:
    """Return an input law and an attained value for every context of the others."""
    lines = mechanism.query.lines(record)
    if len(lines) > LINES_LIMIT:
        return None
    rows = mechanism.channel.matrix[np.array(lines)]
    rows = np.where(rows < 1e-200, 0.0, rows)  # half of the least float is 0, and its log -inf
    pi = np.full(rows.shape[:2], 1 / rows.shape[1])
    for _ in range(500):
        output = np.einsum("ca,cay->cy", pi, rows)
        divergences = rel_entr(rows, output[:, None]).sum(axis=2)
        pi = pi * np.exp(divergences - divergences.max(axis=1, keepdims=True))
        pi = np.maximum(pi / pi.sum(axis=1, keepdims=True), 1e-15)
        pi /= pi.sum(axis=1, keepdims=True)
    output = np.einsum("ca,cay->cy", pi, rows)
    values = (pi * rel_entr(rows, output[:, None]).sum(axis=2)).sum(axis=1)
    return pi, values, list(lines)


class _LateError(Exception):
    """The time limit was reached inside of a local search."""


def _search(
    mechanism: Mechanism,
    record: int,
    floor: float,
    contexts: tuple[Array, Array, list[Any]] | None,
    rng: np.random.Generator,
    stop: Callable[[], bool],
) -> list[Array]:
    """Return the best product prior found, one that meets the floor."""
    shape, rows = mechanism.space.shape, _rows(mechanism)
    ends = np.cumsum(shape)
    starts = []
    if contexts is not None:
        inputs, values, lines = contexts
        table = np.moveaxis(mechanism.query.table(), record, 0).reshape(shape[record], -1)
        for place in np.argsort(-values)[:3]:
            # A context that shows this line, with the record's best law.
            where = int(np.flatnonzero((table.T == np.array(lines[place])).all(axis=1))[0])
            others = [n for j, n in enumerate(shape) if j != record]
            at: list[Any] = list(np.unravel_index(where, others)) if others else []
            at.insert(record, 0)
            laws = [np.eye(n)[int(k)] for n, k in zip(shape, at, strict=True)]
            laws[record] = inputs[place]
            starts.append(laws)
    while len(starts) < STARTS:
        starts.append([rng.dirichlet(np.full(n, 0.5)) for n in shape])

    def split(z: Array) -> list[Array]:
        laws = [np.maximum(part, 0.0) + 1e-12 for part in np.split(z, ends[:-1])]
        return [law / law.sum() for law in laws]

    def objective(z: Array) -> float:
        if stop():
            raise _LateError
        return -_information(split(z)[record], _channel(rows, split(z), record))

    rules = [
        {"type": "eq", "fun": lambda z: np.array([p.sum() for p in np.split(z, ends[:-1])]) - 1},
        {"type": "ineq", "fun": lambda z: sum(entr(p).sum() for p in split(z)) - floor},
    ]
    uniform = [np.full(n, 1 / n) for n in shape]
    best, most = uniform, _information(uniform[record], _channel(rows, uniform, record))
    for laws in starts:
        candidates = [laws]
        if not stop():
            with suppress(_LateError):
                run: Any = minimize(
                    objective,
                    np.concatenate(laws),
                    method="SLSQP",
                    bounds=[(0.0, 1.0)] * int(ends[-1]),
                    constraints=rules,
                    options={"maxiter": ITERATIONS},
                )
                candidates.append(split(np.where(np.isfinite(run.x), run.x, 0.0)))
        for candidate in candidates:
            met = _met(candidate, uniform, floor)
            value = _information(met[record], _channel(rows, met, record))
            if value > most:
                best, most = met, value
    return best


def _met(laws: list[Array], uniform: list[Array], floor: float) -> list[Array]:
    """Return the first laws with enough entropy on the way to the uniform ones."""

    def mixed(share: float) -> list[Array]:
        return [(1 - share) * p + share * u for p, u in zip(laws, uniform, strict=True)]

    target = floor + 1e-13 * (1 + floor) if floor else -1.0
    if sum(entr(p).sum() for p in laws) >= target:
        return laws
    low, high = 0.0, 1.0
    for _ in range(60):
        share = (low + high) / 2
        if sum(entr(p).sum() for p in mixed(share)) >= target:
            high = share
        else:
            low = share
    return mixed(high)
