"""The search for the worst product prior under a floor on the sum of the entropies.

The lower bound comes from a local search. The upper bound is the capacity of the record's channel
with the other records known, or an audit of all priors.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import entr, rel_entr

from cvxleak.audit.cases import floats, law_value, statement_of
from cvxleak.audit.old_terms import upper_term
from cvxleak.audit.record_leakage import RecordLeakage
from cvxleak.audit.search.audit import Audit, Reporter
from cvxleak.audit.search.cell_audit import CellAudit
from cvxleak.core.clock import Stop
from cvxleak.core.validation import Array
from cvxleak.core.work import spend
from cvxleak.kernel import leakage
from cvxleak.kernel.cases import gained
from cvxleak.kernel.independent import ProductLeakage, corners
from cvxleak.kernel.numbers import RefusedError, lower, precision, upper
from cvxleak.kernel.reading import pack
from cvxleak.model import Mechanism
from cvxleak.model.gain_form import GainForm
from cvxleak.problem import Gap, Stopped
from cvxleak.problem.problem import Found

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
        most = sum(map(math.log, mechanism.space.shape))
        self._floor = min(problem.entropy_floor, max(most - 1e-12, 0.0))
        chosen = None if problem.records is None else problem.records[0]
        self._statement = statement_of(
            {
                "mechanism": mechanism.to_dict(),
                "entropy_floor": self._floor,
                "record": chosen,
                **self._told.to_dict(),
            }
        )
        self._audited = self._statement.audited(self._statement.people())
        self._contexts: list[tuple[Array, Array, list[Any]] | None] | None = None
        self._best: tuple[int, list[Array]] | None = None
        self._searched = False  # to the end
        self._audit: Audit | CellAudit | None = None
        self._proved: tuple[float, float, dict[str, Any], dict[str, Any]] | None = None

    def advance(self, gap: Gap, stop: Stop) -> Stopped:
        """Look for distributions; audit the mechanism if the capacities are not enough."""
        if not self._searched:
            self._look(stop)
        below, above, *_ = self._without_audit()
        if gap.closed(below, above):
            return Stopped.TOLERANCE
        if self._audit is None:
            asked = self._problem
            problem = RecordLeakage(
                self._mechanism, self._floor, asked.records, gain=asked.gain, form=asked.form
            )
            kind = Audit if self._told.is_leakage else CellAudit
            self._audit = kind(problem, self._rng, Reporter())
        stopped = self._audit.advance(gap, stop)
        if stopped is not Stopped.TOLERANCE or gap.closed(below, min(above, self._audit.upper)):
            return stopped
        # Others leak more than who takes records apart.
        return Stopped.NO_PROGRESS if self._searched else Stopped.at_limit(stop.clock)

    def found(self, gap: Gap) -> Found:
        """Return the best distributions so far, with what proves both bounds."""
        least, most, point, term = self._without_audit()
        above = "the capacity of the record's channel if the other records are known"
        if self._audit is not None:
            audited = self._audit.found(gap)
            if audited.upper < most:
                term, most = _audit(audited.parts[2]), audited.upper
                above = "an audit of all adversaries with this entropy"
        parts = (self._statement.problem, point, term)
        method = (
            "local search from below, because the leakage is not concave in the distributions; "
            f"from above {above}, because it is the lower of two bounds"
        )
        witness = self._adversary(*self._laws)
        return Found(least, most, witness, parts, stats={"method": method})

    def proof_seconds(self) -> float:
        """Return about how long the proof of the audit will take."""
        return 0.0 if self._audit is None else self._audit.proof_seconds()

    @property
    def _lines(self) -> list[tuple[Array, Array, list[Any]] | None]:
        if self._contexts is None:
            self._contexts = [
                _capacities(self._statement, i)
                if self._told.is_leakage
                else _gains(self._statement, i)
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

    def _without_audit(self) -> tuple[float, float, dict[str, Any], dict[str, Any]]:
        """Return the bounds by the distributions and the contexts' capacities, and their terms."""
        record, laws = self._laws
        if self._proved is None:
            runs = [[law.tolist(), 1] for law in laws]
            below = {"rule": "point", "record": record, "weights": runs}
            lines = [one for one in self._lines if one is not None]
            with precision():
                if len(lines) < len(self._lines):
                    above = self._ceiling()
                elif self._told.is_leakage:
                    packed = [pack(inputs, "<f8") for inputs, *_ in lines]
                    above = {"rule": "contexts", "inputs": packed}
                else:
                    above = {"rule": "contexts"}
                ends = lower(self._statement.lower(below)), upper(self._statement.upper(above))
            self._proved = *ends, below, above
        return self._proved

    def _ceiling(self) -> dict[str, Any]:
        """Return the term of what no adversary is above."""
        whole = self._statement.audit
        return _audit(upper_term(leakage.RecordLeakage.read(whole), whole, {"groups": []}))


def _audit(term: Any) -> dict[str, Any]:
    """Return the term of an upper end by that of an audit of all adversaries."""
    return {"rule": "audit", "groups": term["groups"]}


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


def _gains(statement: ProductLeakage, record: int) -> tuple[Array, Array, list[Any]] | None:
    """Return the best distribution and what it gains for every context of the others."""
    with precision():
        people = statement.people()
        gain = statement.gain(len(people[record].own))
        lines = statement.contexts(people[record].contributions)
        if len(lines) > LINES_LIMIT:
            return None
        (rows,) = statement.blocks(people, record)
        try:
            laws = [law for _, law in corners(gain, people[record].own)]
        except RefusedError:
            return None
        values = np.array([gained(rows, law, gain, statement.times) for law in laws])
    return floats(laws)[values.argmax(axis=0)], values.max(axis=0), lines


def _capacities(statement: ProductLeakage, record: int) -> tuple[Array, Array, list[Any]] | None:
    """Return an input distribution and an attained value for every context of the others."""
    with precision():
        people = statement.people()
        lines = statement.contexts(people[record].contributions)
        if len(lines) > LINES_LIMIT:
            return None
        (rows,) = statement.blocks(people, record)
    pi = np.full(rows.shape[:2], 1 / rows.shape[1])
    for _ in range(500):
        output = np.einsum("ca,cay->cy", pi, rows)
        divergences = rel_entr(rows, output[:, None]).sum(axis=2)
        pi = pi * np.exp(divergences - divergences.max(axis=1, keepdims=True))
        pi = np.maximum(pi / pi.sum(axis=1, keepdims=True), 1e-15)
        pi /= pi.sum(axis=1, keepdims=True)
    output = np.einsum("ca,cay->cy", pi, rows)
    values = (pi * rel_entr(rows, output[:, None]).sum(axis=2)).sum(axis=1)
    return pi, values, lines


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
