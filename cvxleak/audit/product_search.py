"""The search for the worst product prior under a floor on the sum of the entropies.

The lower bound comes from a local search. The upper bound is the capacity of the record's channel
with the other records known, or an audit of all priors.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
from flint import arb
from scipy.optimize import minimize
from scipy.special import entr, rel_entr

from cvxleak.audit.cases import law_value
from cvxleak.audit.record_leakage import RecordLeakage
from cvxleak.audit.search.audit import Audit, Reporter
from cvxleak.audit.search.cell_audit import CellAudit
from cvxleak.core.clock import Stop
from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import Array
from cvxleak.core.work import spend
from cvxleak.exact import balls
from cvxleak.exact.packing import pack
from cvxleak.model import Mechanism
from cvxleak.model.gain_form import GainForm
from cvxleak.problem import Gap, Stopped
from cvxleak.problem.problem import Found
from cvxleak.proofs import product_leakage as prover
from cvxleak.proofs.bounds.independent import Rows, simplex
from cvxleak.proofs.bounds.independent_gains import actions_of, corners, gain_ends, laws_of

__all__ = ["ProductSearch", "value_of"]

STARTS = 12
ITERATIONS = 300

LINES_LIMIT = 1 << 14
"""Most contexts whose capacities are bounded one by one."""


class ProductSearch:
    """The local search from below, then the capacities of contexts and an audit from above.

    Parameters
    ----------
    problem : RecordLeakage
        The same question about all priors.
    adversary : callable
        (record, distributions) -> the witness.
    rng : numpy.random.Generator
    """

    def __init__(
        self,
        problem: RecordLeakage,
        adversary: Callable[[int, list[Array]], Any],
        rng: np.random.Generator,
    ) -> None:
        self._problem, self._adversary, self._rng = problem, adversary, rng
        self._told = problem.told
        mechanism = self._mechanism = problem.mechanism
        with balls.precision():
            most = sum(balls.round_down(arb(n).log()) for n in mechanism.space.shape)
        self._floor = min(problem.entropy_floor, max(most - 1e-12, 0.0))
        attacked = mechanism.groups(1) if problem.records is None else [problem.records]
        self._audited = [group[0] for group in attacked]
        self._contexts: list[tuple[Array, Array, list[Any]] | None] | None = None
        self._best: tuple[int, list[Array]] | None = None
        self._searched = False  # to the end
        self._audit: Audit | CellAudit | None = None
        self._proved: tuple[float, float, dict[str, Any]] | None = None

    def advance(self, gap: Gap, stop: Stop) -> Stopped:
        """Look for distributions; audit the mechanism if the capacities are not enough."""
        if not self._searched:
            self._look(stop)
        lower, upper, _ = self._without_audit()
        if gap.closed(lower, upper):
            return Stopped.TOLERANCE
        if self._audit is None:
            asked = self._problem
            problem = RecordLeakage(
                self._mechanism, self._floor, asked.records, gain=asked.gain, form=asked.form
            )
            leakage = self._told.is_leakage
            self._audit = (Audit if leakage else CellAudit)(problem, self._rng, Reporter())
        stopped = self._audit.advance(gap, stop)
        if stopped is not Stopped.TOLERANCE or gap.closed(lower, min(upper, self._audit.upper)):
            return stopped
        # Others leak more than who takes records apart.
        return Stopped.NO_PROGRESS if self._searched else Stopped.at_limit(stop.clock)

    def found(self, gap: Gap) -> Found:
        """Return the best distributions so far, with what proves both bounds."""
        record, laws = self._laws
        written = [law.tolist() for law in laws]
        lower, upper, proof = self._without_audit()
        if self._audit is not None:
            searched = self._audit
            audited = searched.entries() if isinstance(searched, Audit) else searched.found(gap)
            if audited.upper < upper:
                assert audited.parts is not None  # only of a gain that no certificate can hold
                _, witness, proved = audited.parts
                proof = {**proof, "audit": {"witness": witness, "proof": proved}}
                upper = audited.upper
        witness = self._adversary(record, laws)
        parts = (self._content, {"record": record, "laws": written}, proof)
        above = "the capacity of the record's channel if the other records are known"
        if "audit" in proof:
            above = "an audit of all adversaries with this entropy"
        method = (
            "local search from below, because the leakage is not concave in the distributions; "
            f"from above {above}, because it is the lower of two bounds"
        )
        return Found(lower, upper, witness, parts, stats={"method": method})

    def proof_seconds(self) -> float:
        """Return about how long the proof of the audit will take."""
        return 0.0 if self._audit is None else self._audit.proof_seconds()

    @property
    def _content(self) -> dict[str, Any]:
        """What a certificate says of the problem."""
        chosen = None if self._problem.records is None else self._problem.records[0]
        mechanism = self._mechanism.to_dict()
        content = {"mechanism": mechanism, "entropy_floor": self._floor, "record": chosen}
        return {**content, **self._told.to_dict()}

    @property
    def _lines(self) -> list[tuple[Array, Array, list[Any]] | None]:
        if self._contexts is None:
            self._contexts = [
                _capacities(self._mechanism, i)
                if self._told.is_leakage
                else _gains(self._mechanism, i, self._told)
                for i in self._audited
            ]
        return self._contexts

    @property
    def _laws(self) -> tuple[int, list[Array]]:
        if self._best is None:  # interrupted
            self._look(lambda: True)
        assert self._best is not None
        return self._best

    def _look(self, stop: Callable[[], bool]) -> None:
        """Run the local searches; keep the best result if it leaks more than those known."""
        found = [
            (i, _search(self._mechanism, i, self._floor, lines, self._rng, stop, self._told))
            for i, lines in zip(self._audited, self._lines, strict=True)
        ]
        known = [] if self._best is None else [self._best]
        self._best = max(known + found, key=lambda one: value_of(self._mechanism, *one, self._told))
        self._searched, self._proved = not stop(), None

    def _without_audit(self) -> tuple[float, float, dict[str, Any]]:
        """Return the bounds by the distributions and the contexts' capacities, and the proof."""
        record, laws = self._laws
        if self._proved is None:
            witness = {"record": record, "laws": [law.tolist() for law in laws]}
            proof: dict[str, Any] = {"contexts": None, "audit": None}
            lines = [one for one in self._lines if one is not None]
            if len(lines) == len(self._lines):
                packed = [pack(one[0]) for one in lines]
                proof["contexts"] = packed if self._told.is_leakage else prover.CORNERS
            with balls.precision():
                ends = prover.prove(self._content, witness, proof)
            self._proved = *ends, proof
        return self._proved


def _rows(mechanism: Mechanism) -> Array:
    return mechanism.channel.matrix[mechanism.query.table()]


def _channel(rows: Array, laws: list[Array], record: int) -> Array:
    """Return p(y | x_i), the other records drawn from their distributions."""
    result = np.moveaxis(rows, record, 0)
    others = [law for j, law in enumerate(laws) if j != record]
    for law in others:
        # The second axis goes, and the next record's takes its place.
        result = np.tensordot(result, law, axes=(1, 0))
    return result


def value_of(mechanism: Mechanism, record: int, laws: list[Array], told: GainForm) -> float:
    """Return the leakage or gain about a record under a product prior, in floats."""
    return _told(laws[record], _channel(_rows(mechanism), laws, record), told)


def _told(pi: Array, channel: Array, told: GainForm) -> float:
    if told.is_leakage:
        return float(pi @ rel_entr(channel, pi @ channel).sum(axis=1))
    return law_value(pi, channel / channel.sum(axis=1, keepdims=True), told)


def _gains(
    mechanism: Mechanism, record: int, told: GainForm
) -> tuple[Array, Array, list[Any]] | None:
    """Return the best distribution and what it gains for every context of the others."""
    lines, size = mechanism.query.lines(record), mechanism.space.shape[record]
    if len(lines) > LINES_LIMIT:
        return None
    try:
        actions, whole = actions_of(told.gain, size), simplex(size)
        laws = laws_of(corners(actions, whole), whole)
    except ValidationError:
        return None
    found = []
    for line in lines:
        rows = Rows(mechanism.channel.matrix[list(line)][None], 1.0)
        values = gain_ends(rows, laws, 1, actions, told.form)[0][0]
        found.append((laws[values.argmax()], values.max()))
    inputs, values = zip(*found, strict=True)
    return np.array(inputs), np.array(values), list(lines)


def _capacities(mechanism: Mechanism, record: int) -> tuple[Array, Array, list[Any]] | None:
    """Return an input distribution and an attained value for every context of the others."""
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
    told: GainForm,
) -> list[Array]:
    """Return the best product prior found, one that meets the floor."""
    shape, rows = mechanism.space.shape, _rows(mechanism)
    ends = np.cumsum(shape)
    starts = []
    if contexts is not None:
        inputs, values, lines = contexts
        table = np.moveaxis(mechanism.query.table(), record, 0).reshape(shape[record], -1)
        for place in np.argsort(-values)[:3]:
            # A context that shows this line, with the record's best distribution.
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
        spend(10 * rows.size)
        return -_told(split(z)[record], _channel(rows, split(z), record), told)

    rules = [
        {"type": "eq", "fun": lambda z: np.array([p.sum() for p in np.split(z, ends[:-1])]) - 1},
        {"type": "ineq", "fun": lambda z: sum(entr(p).sum() for p in split(z)) - floor},
    ]
    uniform = [np.full(n, 1 / n) for n in shape]
    best, most = uniform, _told(uniform[record], _channel(rows, uniform, record), told)
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
            value = _told(met[record], _channel(rows, met, record), told)
            if value > most:
                best, most = met, value
    return best


def _met(laws: list[Array], uniform: list[Array], floor: float) -> list[Array]:
    """Return the first distributions with enough entropy on the way to the uniform ones."""

    def mixed(share: float) -> list[Array]:
        return [(1 - share) * p + share * u for p, u in zip(laws, uniform, strict=True)]

    target = floor + 1e-13 * (1 + floor)
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
