"""The worst adversary with independent records: a local search below, two proved bounds above."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from flint import arb
from scipy.optimize import minimize
from scipy.special import entr, rel_entr

from cvxleak.audit.record_leakage import TOLERANCE, RecordLeakage
from cvxleak.core.clock import Clock
from cvxleak.core.errors import InfeasibleError, SolveInterrupted, ValidationError
from cvxleak.core.validation import Array, generator, instance, real_number, short
from cvxleak.core.value import Value
from cvxleak.exact import balls
from cvxleak.exact.packing import pack
from cvxleak.measures import mutual_information
from cvxleak.model import Mechanism, Prior
from cvxleak.problem.bound import Bound, Stopped
from cvxleak.problem.interrupts import interruptible
from cvxleak.problem.problem import TIME_LIMIT
from cvxleak.proofs import Certificate
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
    record : int
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
    >>> round(IndependentAdversary(mechanism, 0, ((0.5, 0.5), (1.0, 0.0))).leakage, 4)
    0.1308
    """

    mechanism: Mechanism
    record: int
    laws: tuple[tuple[float, ...], ...]

    @property
    def leakage(self) -> float:
        """I(X_i;Y) under this prior, in nats (floating point)."""
        channel = _channel(_rows(self.mechanism), [np.array(p) for p in self.laws], self.record)
        return float(mutual_information(np.array(self.laws[self.record]), channel))

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


@dataclass(frozen=True)
class ProductLeakage:
    """The problem max over records i and over product priors with H(X) >= b of I(X_i;Y).

    DALENIUS Definition 5 for the class of adversaries to whom the records are independent.

    Parameters
    ----------
    mechanism : Mechanism
        On at most 2^16 datasets.
    entropy_floor : float
        b, in nats, from 0 to log|X|.
    record : int, optional
        One record; the worst of all if left out.

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

    mechanism: Mechanism
    entropy_floor: float
    record: int | None = None

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
        if self.record is not None:
            space.group(self.record)
        object.__setattr__(self, "entropy_floor", floor)

    @interruptible
    def solve(
        self,
        *,
        tol: float = TOLERANCE,
        time_limit: float | None = TIME_LIMIT,
        rng: int | np.random.Generator | None = 0,
    ) -> Bound:
        """Return a bracket of the leakage, in nats.

        Parameters
        ----------
        tol : float
            Relative gap below which the bracket counts as CERTIFIED.
        time_limit : float or None
            Seconds for local search and audit, in this order. What is computed before, the
            capacities of contexts, may overrun, and so may the steps named at
            `RecordLeakage.solve`.
        rng : int, numpy.random.Generator or None
            Random starts of the local search.

        Returns
        -------
        Bound
            `witness` is an `IndependentAdversary`.

        Raises
        ------
        ValidationError
            An option out of range.
        """
        real_number(tol, "tol", 0.0, 1.0, open_high=True)
        clock = Clock(time_limit)
        mechanism, random = self.mechanism, generator(rng)
        with balls.precision():
            most = sum(balls.round_down(arb(n).log()) for n in mechanism.space.shape)
        floor = min(self.entropy_floor, max(most - 1e-12, 0.0))
        audited = (
            [group[0] for group in mechanism.groups(1)] if self.record is None else [self.record]
        )
        contexts = [_capacities(mechanism, i) for i in audited]
        found = [
            _search(mechanism, i, floor, lines, random, clock)
            for i, lines in zip(audited, contexts, strict=True)
        ]
        record, laws = max(
            zip(audited, found, strict=True), key=lambda one: _value(mechanism, *one)
        )
        content = {
            "mechanism": mechanism.to_dict(),
            "entropy_floor": floor,
            "record": self.record,
        }
        written = [law.tolist() for law in laws]
        proof: dict[str, Any] = {"contexts": None, "audit": None}
        if all(one is not None for one in contexts):
            proof["contexts"] = [pack(one[0]) for one in contexts if one is not None]
        with balls.precision():
            lower = prover.prove_lower(mechanism, floor, record, written)
            _, upper = prover.prove(content, {"record": record, "laws": written}, proof)
        late = clock.late  # then the local search was cut short
        stopped = Stopped.TOLERANCE
        if upper - lower > tol * upper:
            problem = RecordLeakage(mechanism, floor, self.record)
            try:
                audit = problem.solve(tol=tol, time_limit=clock.limit, rng=random)
            except SolveInterrupted as error:
                audit = error.bound
            stopped = audit.stats["stopped"]
            if audit.upper < upper and audit.certificate is not None:
                parts = audit.certificate
                proof["audit"] = {"witness": parts.witness, "proof": parts.proof}
                upper = audit.upper
            if stopped is Stopped.TOLERANCE and upper - lower > tol * upper:
                # Others leak more than who takes records apart.
                stopped = Stopped.TIME_LIMIT if late else Stopped.NO_PROGRESS
        certificate = Certificate(
            "product-leakage", content, lower, upper, {"record": record, "laws": written}, proof
        )
        witness = IndependentAdversary(mechanism, record, tuple(tuple(law) for law in written))
        bound = Bound.proved(
            "leakage to product priors",
            lower,
            upper,
            tol=tol,
            witness=witness,
            certificate=certificate,
            stats={"seconds": clock.seconds, "stopped": stopped},
        )
        if stopped is Stopped.INTERRUPTED:
            raise SolveInterrupted(bound)
        return bound


def product_leakage(
    mechanism: Mechanism, entropy_floor: float, record: int | None = None, **options: Any
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
    return ProductLeakage(mechanism, entropy_floor, record).solve(**options)


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
    clock: Clock,
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
        if clock.late:
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
        if not clock.late:
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
