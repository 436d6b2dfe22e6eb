"""Certificate kinds ``min-leakage`` and ``min-distortion``: designed channels, both bounds proved.

A channel has one row for each value of a statistic of the dataset. The statistic is such that
nothing is lost by this (`cvxleak.proofs.bounds.design_rows`), or it is the query, if the problem
says that the mechanism sees nothing else.

problem: {"query": f, "rows", "distortion": d(f, y), "sources": distributions, "objective": {"size":
k, 0 for the whole dataset}, "entropy_floor": b or null, "priors": distributions or null, "budget":
D or L, or null for none, "own": half-spaces for the user's own constraints}. An affine constraint
is stored as its own half-space, any other convex one as supporting half-spaces
(`cvxleak.proofs.bounds.user_rows`). The lower bound is valid for all channels in the half-spaces.

witness: {"channel"}, and "further" with the values of further variables of "own". It meets the
budget in exact arithmetic. If it is not shown to meet the "own" half-spaces as well, no upper bound
is proved.

proof: {"leakage", "cuts", "sources", "own"} and perhaps "balance". The witness's leakage is bounded

- for adversaries with H(X) >= b by the term of an audit's upper end (`cvxleak.kernel.leakage`);
- for the whole dataset by lam log sum_r m_r exp(D(q_r || t) / lam) - lam b, which follows from
  I(X;Y) <= sum_r w_r D(q_r || t) and H(X) >= b; for lam = 0 by max_r D(q_r || t);
- for given priors by its value;
- by 0 if all rows are the same;
- for a mixture by convexity, from what is proved of its parts (`design_mixtures`).

The lower bound: each cut names an adversary, either a group of records and the mass w on its cells
(value a, row r), or one of the given priors. For any distribution phi(a|y),

    I(q) >= sum_{a,r,y} w_{a,r} q_{r,y} log(phi(a|y) / pi_a),

because the difference is sum_y s_y D(rho_y || phi_y). With multipliers theta of the cuts and beta
of the sources P_k, a linear function of q therefore bounds the Lagrangian from below. The least
value of this function over row-stochastic q is sum_r min_y of its coefficients. For the least
leakage, sum theta = 1, and beta_k (E_k - D) is added; for the least distortion, sum beta = 1, and
theta_j (I_j - L) is added. The multipliers of the "own" half-spaces subtract what they prove to be
non-negative.

If nothing may leak, L = 0, and b < log|X|, all rows of a channel within the budget are the same,
and the least value is min_y sum_r. To see this, take a group of records with at least two values,
and one of its values, a. All distributions near the uniform one are adversaries, so the
distribution of the other records given a can be varied with the rest fixed. The output's
distribution given any other value then does not change. Since nothing leaks, the output's
distribution given a is equal to it and does not change either. Hence q(.|x) is the same for all x
with the value a, and so for all x. For the whole dataset the uniform distribution alone suffices.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

from flint import arb, fmpq, fmpz

from cvxleak.core.errors import CertificateError
from cvxleak.core.numbers import as_written, same_numbers
from cvxleak.core.validation import Array
from cvxleak.kernel.budget import charge
from cvxleak.kernel.leakage import RecordLeakage
from cvxleak.kernel.lemmas import divergence
from cvxleak.kernel.numbers import RefusedError, dot, least, precision, soft
from cvxleak.kernel.numbers import lower as float_below
from cvxleak.kernel.numbers import upper as float_above
from cvxleak.model import Channel, Distortion, Mechanism, Query
from cvxleak.model._groups import kinds_of_groups
from cvxleak.proofs import reading
from cvxleak.proofs.bounds.design_mixtures import mixture_above
from cvxleak.proofs.bounds.design_rows import Law, Rows
from cvxleak.proofs.bounds.entropy_floor import check_doubt
from cvxleak.proofs.bounds.user_rows import missed, priced, read_own, witness_extras
from cvxleak.proofs.exact import ball, mutual_information, normalized, normalized_rows, rational
from cvxleak.proofs.format import plain

__all__ = [
    "Statement",
    "about",
    "exact_distortions",
    "forces_constants",
    "leakage_of_priors",
    "most_values",
    "prove_min_distortion",
    "prove_min_leakage",
    "total_above",
]

KEYS = {
    "query",
    "rows",
    "distortion",
    "sources",
    "objective",
    "entropy_floor",
    "priors",
    "budget",
    "own",
}

PROOF = {"leakage", "cuts", "sources", "own"}

Ball = Any
Matrix = list[list[Ball]]

BELOW = arb(1) - arb(2) ** -40
"""A floor counts as below log|X| if it is below this times log|X|: more than rounding explains."""


def prove_min_leakage(
    problem: Mapping[str, Any], witness: Mapping[str, Any], proof: Mapping[str, Any]
) -> tuple[float, float, str]:
    """Return bounds on the least leakage, in nats, and the reason if the upper one is missing."""
    statement = Statement(problem)
    channel = statement.channel(witness)
    missing = missed(statement.own, normalized_rows(channel.matrix.tolist()), witness)
    reading.parts(proof, PROOF, "the proof", may={"balance"})
    if statement.budget is not None:
        budget = rational(statement.budget)
        if any(cost > budget for cost in statement.distortions(channel)):
            raise CertificateError("the channel's distortion is above the budget")
    upper = statement.leakage_above(channel, proof["leakage"])
    return statement.dual(proof, leakage=True), math.inf if missing else upper, missing


def prove_min_distortion(
    problem: Mapping[str, Any], witness: Mapping[str, Any], proof: Mapping[str, Any]
) -> tuple[float, float, str]:
    """Return bounds on the least distortion, and the reason if the upper one is missing."""
    statement = Statement(problem)
    channel = statement.channel(witness)
    missing = missed(statement.own, normalized_rows(channel.matrix.tolist()), witness)
    reading.parts(proof, PROOF, "the proof", may={"balance"})
    if statement.budget is None:
        raise CertificateError("the problem has no budget")
    if not statement.leakage_above(channel, proof["leakage"]) <= statement.budget:
        raise CertificateError("the channel's leakage is not proved to be within the budget")
    upper = float_above(max(statement.distortions(channel)))
    return statement.dual(proof, leakage=False), math.inf if missing else upper, missing


def about(problem: Mapping[str, Any]) -> str:
    """Say what a problem that was proved is about."""
    size = problem["objective"]["size"]
    who = {0: "the whole dataset", 1: "the worst record"}.get(
        size, f"the worst group of {size} records"
    )
    if problem["priors"] is None:
        floor = reading.number(problem["entropy_floor"], "the entropy floor")
        whom = f"adversaries with at least {floor:.12g} nats of uncertainty"
    else:
        whom = f"{len(problem['priors'])} given priors"
    seen = "channels of the query" if problem["rows"]["form"] == "query" else "channels of the data"
    own = ", with the user's own constraints" if problem["own"] else ""
    return f"{seen}, leakage about {who} to {whom}{own}"


class Statement:
    """A design problem as a certificate states it."""

    def __init__(self, problem: Mapping[str, Any]) -> None:
        reading.parts(problem, KEYS, "the problem")
        _charge_records(problem)
        query = Query.from_dict(problem["query"])
        reading.parts(problem["objective"], {"size"}, "the objective")
        self.size = reading.count(problem["objective"]["size"], "the size")
        if self.size > query.space.records:
            raise CertificateError(f"the space has no groups of {self.size} records")
        self.sources = _laws(problem["sources"], query)
        self.priors = None if problem["priors"] is None else _laws(problem["priors"], query)
        given = [*self.sources, *(self.priors or [])]
        self.rows = Rows.from_dict(problem["rows"], query, given, self.size == 0)
        cost = Distortion.from_dict(problem["distortion"])
        if cost.inputs != query.values:
            raise CertificateError("the distortion must have the values of the query")
        self.cost = cost.matrix[self.rows.values]
        floor = problem["entropy_floor"]
        if (floor is None) is (self.priors is None):
            raise CertificateError("the adversaries must be stated exactly once")
        self.floor = None if floor is None else reading.number(floor, "the entropy floor")
        budget = problem["budget"]
        self.budget = None if budget is None else reading.number(budget, "the budget")
        self.own = read_own(problem["own"], *self.cost.shape)

    def channel(self, witness: Mapping[str, Any]) -> Channel:
        """Return the witness, one row per value of the rows' query."""
        reading.parts(witness, {"channel"}, "the witness", may=witness_extras())
        channel = Channel.from_dict(witness["channel"])
        if channel.shape != self.cost.shape:
            raise CertificateError(
                f"the channel has shape {channel.shape}; the problem needs {self.cost.shape}"
            )
        return channel

    def distortions(self, channel: Channel) -> list[fmpq]:
        """Return the exact expected distortion under each source."""
        masses = [self.rows.masses(law) for law in self.sources]
        return exact_distortions(masses, self.cost.tolist(), channel.matrix)

    def leakage_above(self, channel: Channel, proof: Any) -> float:
        """Return a float above the leakage of a channel."""
        matrix = channel.matrix
        if all(same_numbers(row, matrix[0]) for row in matrix):
            return 0.0
        if isinstance(proof, Mapping) and "parts" in proof:
            return self._mixture_above(channel, proof)
        if self.priors is not None:
            return leakage_of_priors(self.rows, self.priors, self.size, channel)
        floor = self.floor
        if floor is None:
            raise CertificateError("the adversaries are not stated")
        if self.size == 0:
            reading.parts(proof, {"output", "multiplier"}, "the leakage's proof")
            output = reading.numbers(proof["output"], "the output", matrix.shape[1])
            multiplier = reading.number(proof["multiplier"], "the multiplier")
            return total_above(self.rows.sizes, channel, floor, output, multiplier)
        problem = {
            "mechanism": Mechanism(self.rows.query, channel.matrix).to_dict(),
            "entropy_floor": floor,
            "size": self.size,
            "records": None,
        }
        try:
            return float_above(RecordLeakage.read(plain(problem)).upper(proof))
        except RefusedError as error:
            raise CertificateError(
                f"the leakage's proof: {error}; if the file is of an earlier release, make it again"
            ) from error

    def _mixture_above(self, channel: Channel, proof: Mapping[str, Any]) -> float:
        parts = reading.parts(proof, {"parts"}, "the leakage's proof")["parts"]
        if not isinstance(parts, list):
            raise CertificateError("parts: expected a list")
        found = []
        for part in parts:
            reading.parts(part, {"share", "channel", "leakage"}, "a part")
            if isinstance(part["leakage"], Mapping) and "parts" in part["leakage"]:
                raise CertificateError("a part of a mixture must not be a mixture")
            share = reading.number(part["share"], "a share")
            one = self.channel({"channel": part["channel"]})
            found.append((share, one, self.leakage_above(one, part["leakage"])))
        return mixture_above(channel, found, self.secrets)

    @property
    def secrets(self) -> int:
        """The largest number of values that the attacked secret can have."""
        return most_values(self.rows, self.size)

    @property
    def constant(self) -> bool:
        """Whether only channels of constant output meet the leakage budget."""
        return self.budget == 0 and forces_constants(self.rows, self.size, self.floor)

    def dual(self, proof: Mapping[str, Any], *, leakage: bool) -> float:
        """Return a float below the optimal value, from the cuts and the multipliers."""
        rows, outputs = self.cost.shape
        if not isinstance(proof["cuts"], list):
            raise CertificateError("cuts: expected a list")
        slopes = [self._slopes(cut, outputs) for cut in proof["cuts"]]
        if leakage and not slopes:
            return 0.0
        theta = _multipliers([cut["multiplier"] for cut in proof["cuts"]], len(slopes), leakage)
        beta = _multipliers(proof["sources"], len(self.sources), not leakage)
        cells, value = priced(self.own, proof)
        total: Matrix = [[arb(0)] * outputs for _ in range(rows)]
        for share, slope in zip(theta, slopes, strict=True):
            if not share == 0:
                _add(total, share, slope)
        for share, law in zip(beta, self.sources, strict=True):
            if not share == 0:
                masses = [share * arb(mass) for mass in self.rows.masses(law)]
                for r, mass in enumerate(masses):
                    if not mass == 0:
                        into = total[r]
                        for y, d in enumerate(self.cost[r].tolist()):
                            into[y] += mass * ball(d)
        for r, y, amount in cells:
            total[r][y] -= amount
        if not leakage and self.constant:
            total = [[sum(column, arb(0)) for column in zip(*total, strict=True)]]
        for row in total:
            value += least(row)
        spent = beta if leakage else theta
        if self.budget is None:
            if any(not share == 0 for share in spent):
                raise CertificateError(
                    "there are multipliers for a budget that the problem does not have"
                )
        else:
            value -= sum(spent, arb(0)) * ball(self.budget)
        return max(float_below(value), 0.0)

    def _slopes(self, cut: Any, outputs: int) -> Matrix:
        """Return the coefficients of one cut's linear minorant."""
        priors = self.priors
        which = "weights" if priors is None else "prior"
        reading.parts(cut, {"records", which, "posterior", "multiplier"}, "a cut")
        (group,) = reading.groups([cut["records"]], "a cut's records")
        if len(group) != self.size:
            raise CertificateError(
                f"a cut has a group of {len(group)} records; the problem has groups of {self.size}"
            )
        cells = self.rows.cells(group)
        if priors is not None:
            place = reading.count(cut["prior"], "a cut's prior")
            if place >= len(priors):
                raise CertificateError(f"the problem has no prior {place}")
            masses = [arb(mass) for mass in self.rows.masses(priors[place], group)]
        else:
            masses = normalized(reading.numbers(cut["weights"], "an adversary", len(cells)))
            check_doubt(masses, [m for _, _, m in cells], self.floor, "an adversary")
        return _minorant(cells, masses, cut["posterior"], len(self.rows.sizes), outputs)


def exact_distortions(
    sources: Sequence[Sequence[fmpq]], cost: Sequence[Sequence[float]], matrix: Array
) -> list[fmpq]:
    """Return the exact expected distortion of a channel under each source, a mass for each row."""
    price = []
    for row, costs in zip(normalized_rows(matrix.tolist()), cost, strict=True):
        total = fmpq(0)
        for q, d in zip(row, costs, strict=True):
            if q != 0 and d != 0:
                total += q * rational(d)
        price.append(total)
    return [dot(masses, price) for masses in sources]


def leakage_of_priors(rows: Rows, priors: Sequence[Law], size: int, channel: Channel) -> float:
    """Return a float above the largest leakage about a group of `size` records to given priors."""
    matrix = [normalized(row) for row in channel.matrix.tolist()]
    worst = 0.0
    for law in priors:
        for group in attacked_groups(rows, size, law):
            cells = rows.cells(group)
            charge("ball operations", len(cells) * len(matrix[0]) // 8)
            joint: Matrix = [[arb(0)] * len(matrix[0]) for _ in range(1 + cells[-1][0])]
            for (a, r, _), mass in zip(cells, rows.masses(law, group), strict=True):
                if mass != 0:
                    _add_row(joint[a], arb(mass), matrix[r])
            worst = max(worst, float_above(mutual_information(joint)))
    return worst


def attacked_groups(rows: Rows, size: int, law: Law) -> list[tuple[int, ...]]:
    """Return the groups of records that a prior has to be evaluated for.

    Records that can be exchanged without changing a dataset's row leak equally, and then f does not
    change either, nor does a prior that is uniform or depends on f alone. It is not enough that f
    is symmetric in them: the channel may not be.
    """
    if size == 0:
        return [()]
    if law.on == "datasets":
        return list(combinations(range(rows.statistic.space.records), size))
    return kinds_of_groups(rows.query.exchangeable(), size)


def most_values(rows: Rows, size: int) -> int:
    """Return the most values that a group of `size` records can have; 0 means the dataset."""
    space = rows.statistic.space
    return math.prod(sorted(space.shape)[-size:]) if size else space.size


def forces_constants(rows: Rows, size: int, floor: float | None) -> bool:
    """Whether a channel that leaks nothing about groups of `size` records has a constant output.

    It does if the floor is well below log|X|. A float next to log|X| may stand for log|X| itself,
    where the uniform distribution is the only adversary.

    Examples
    --------
    >>> import math
    >>> from cvxleak.proofs.design import forces_constants
    >>> from cvxleak.proofs.bounds.design_rows import Rows
    >>> from cvxleak.queries import parity
    >>> rows = Rows(parity(3), parity(3), "query")
    >>> [forces_constants(rows, 1, floor) for floor in (None, 2.0, math.log(8))]
    [False, True, False]
    """
    if floor is None:
        return False
    with precision():
        most = arb(fmpz(rows.statistic.space.size)).log()
        return bool(ball(floor) < (most if size == 0 else most * BELOW))


def total_above(
    sizes: Sequence[int], channel: Channel, floor: float, output: Sequence[float], multiplier: float
) -> float:
    """Return a float above max I(X;Y) over H(X) >= floor; any `output` and `multiplier` will do."""
    if not multiplier >= 0:
        raise CertificateError("the multiplier is negative")
    logs = [share.log() for share in normalized(output)]
    divergences = [divergence(normalized(row), logs) for row in channel.matrix.tolist()]
    if not all(found.is_finite() for found in divergences):
        raise CertificateError("the output distribution gives probability 0 to an output")
    lam = ball(multiplier)
    terms = [x + lam * arb(fmpz(m)).log() for x, m in zip(divergences, sizes, strict=True)]
    # Above log|X| there are no adversaries, and no leakage is below 0.
    return max(float_above(soft(terms, lam) - lam * ball(floor)), 0.0)


def _minorant(
    cells: Sequence[tuple[int, int, int]],
    masses: Sequence[Ball],
    posterior: Any,
    rows: int,
    outputs: int,
) -> Matrix:
    """Return the coefficients sum_a w_{a,r} log(phi(a|y) / pi_a)."""
    values = 1 + cells[-1][0]
    if not isinstance(posterior, list) or len(posterior) != values:
        raise CertificateError(f"a posterior must have {values} rows")
    table = [reading.numbers(row, "a posterior", outputs) for row in posterior]
    logs: list[list[Any]] = [[None] * outputs for _ in range(values)]
    for y, column in enumerate(zip(*table, strict=True)):
        for a, share in enumerate(normalized(column)):
            logs[a][y] = share.log() if share > 0 else None
    marginal = [arb(0)] * values
    for (a, _, _), mass in zip(cells, masses, strict=True):
        marginal[a] += mass
    result: Matrix = [[arb(0)] * outputs for _ in range(rows)]
    for (a, r, _), mass in zip(cells, masses, strict=True):
        if mass == 0:
            continue
        if None in logs[a]:
            raise CertificateError(
                "a posterior is 0 at a value that the adversary considers possible"
            )
        log_pi = marginal[a].log()
        into = result[r]
        for y, log_phi in enumerate(logs[a]):
            into[y] += mass * (log_phi - log_pi)
    return result


def _charge_records(data: Any) -> None:
    """Count the records of a stored query, and the fractions of whatever has a matrix.

    A run stands for as many copies of its item as it says. Anything that is not a run is left for
    the reader to complain about.
    """
    for key, value in data.items() if isinstance(data, Mapping) else ():
        if key in ("alphabets", "contributions") and isinstance(value, Sequence):
            runs = [run for run in value if isinstance(run, Sequence) and len(run) == 2]
            copies = sum(run[1] * max(_size(run[0]), 2) for run in runs if type(run[1]) is int)
            charge("records' values", max(copies, 0))
        elif key == "matrix" and isinstance(value, list):
            for row in value:
                _charge_written(row)
        else:
            _charge_records(value)


def _charge_written(row: Any) -> None:
    if isinstance(row, list) and any(isinstance(value, str) for value in row):
        try:
            numbers = [as_written(value) for value in row]
        except (TypeError, ValueError, OverflowError):
            return
        reading.charge_fractions([x for x in numbers if math.isfinite(x)])


def _size(item: Any) -> int:
    """Return how many numbers and texts an item of a run holds."""
    return sum(map(_size, item)) if isinstance(item, list) else 1


def _laws(values: Any, query: Query) -> list[Law]:
    if not isinstance(values, list) or not values:
        raise CertificateError("expected a list of distributions")
    return [Law.from_dict(value, query) for value in values]


def _multipliers(values: Any, size: int, shares: bool) -> list[Ball]:
    """Return non-negative multipliers as balls, divided by their sum if they are shares."""
    given = reading.numbers(values, "the multipliers", size)
    if any(value < 0 for value in given):
        raise CertificateError("a multiplier is negative")
    return normalized(given) if shares else [ball(value) for value in given]


def _add(total: Matrix, share: Ball, matrix: Matrix) -> None:
    for into, row in zip(total, matrix, strict=True):
        _add_row(into, share, row)


def _add_row(into: list[Ball], share: Ball, row: Sequence[Ball]) -> None:
    for y, entry in enumerate(row):
        into[y] += share * entry
