"""Kinds ``fixed-prior-leakage``, ``fixed-prior-distortion``: designs for known priors.

problem: "distortion" d (n rows, one per input), "sources" (distributions p_j of the input under
which the distortion counts), "minimize", and what that needs:

- "information" (leakage): minimize max_k I_k subject to E_j d <= "budget" for all j;
- "sum" (leakage): minimize max_k I_k + "slope" max_j E_j d;
- "distortion" (distortion): minimize max_j E_j d subject to I_k <= "budget" for all k;

Further parts of the problem:

- "own": half-spaces for the user's own constraints. An affine one is stored as its own half-space,
  any other convex one as supporting half-spaces (`cvxleak.proofs.bounds.user_rows`). The lower
  bound is valid for all channels in the half-spaces.
- "secrets": either distributions of the input (I_k = I(X;Y)) or joint distributions P_k(a, x) of a
  secret and the input (I_k = I(A_k;Y)).
- "privacy", for "distortion" only and in place of the secrets: "local-dp", "pml" or
  "maximal-leakage" at "budget" epsilon, and the "prior" that the last two refer to.

witness: {"channel": rows}, and "further" with the values of further variables of "own". Its value
is the upper bound. It must meet the budget, exactly or in ball arithmetic. If it is not shown to be
in the "own" half-spaces, no upper bound is proved.

proof: {"weights": w_k, "prices": mu_j, "reference": matrix, "own": gamma_i}, or {"prices",
"penalty": matrix, "own"}; either may have "balance". Lower bound, for any reference, with G_k the
gradient of I_k there:

    sum_x min_y ( sum_k w_k G_k(x,y) + sum_j mu_j p_j(x) d(x,y) ) - (w or mu, as fits) budget,

since I_k is convex and homogeneous of degree one in the channel, so I_k(q) >= <G_k, q>.

In place of "reference" the proof may have "posteriors", distributions phi_k(a|y) of each secret for
every output. Then G_k(x,y) = sum_a P_k(a,x) log( phi_k(a|y) / pi_k(a) ). If phi_k are the
posteriors of a channel, this is its gradient; any others give a smaller linear function, by Gibbs'
inequality. With a single distribution p of the input and the reference e^{-s d(x,y)} alpha_x, the
bound is the dual of Blahut (1972) and Csiszár (1974): sum_x p_x log alpha_x - log max_y sum_x p_x
alpha_x e^{-s d(x,y)} - s D. For "privacy" the penalty prices the constraints; see `penalized`.

All distributions and rows are meant as written (`cvxleak.core.numbers`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from flint import arb, fmpq

from cvxleak.core.errors import CertificateError
from cvxleak.kernel.numbers import dot, largest, least, total, xlogx
from cvxleak.kernel.numbers import lower as float_below
from cvxleak.kernel.numbers import upper as float_above
from cvxleak.proofs.bounds.user_rows import OwnRow, missed, priced, read_own, witness_extras
from cvxleak.proofs.exact import (
    ball,
    entropy,
    exp_below,
    mutual_information,
    normalized,
    normalized_rows,
    rational,
)
from cvxleak.proofs.reading import number, numbers, parts

__all__ = ["PRIVACY", "about", "bracket", "prove_distortion", "prove_leakage"]

PRIVACY = ("local-dp", "pml", "maximal-leakage")
"""Constraints that may take the place of the secrets."""

Balls = list[list[arb]]


def prove_leakage(
    problem: Mapping[str, Any], witness: Mapping[str, Any], proof: Mapping[str, Any]
) -> tuple[float, float, str]:
    """Return bounds on the least leakage, or sum, in nats; the reason if the upper is missing."""
    return _prove(problem, witness, proof, ("information", "sum"))


def prove_distortion(
    problem: Mapping[str, Any], witness: Mapping[str, Any], proof: Mapping[str, Any]
) -> tuple[float, float, str]:
    """Return bounds on the least distortion; the reason if the upper one is missing."""
    return _prove(problem, witness, proof, ("distortion",))


def bracket(
    problem: Mapping[str, Any], witness: Mapping[str, Any], proof: Mapping[str, Any]
) -> tuple[float, float]:
    """Return both bounds, without asking whether the witness meets the user's constraints."""
    statement, channel = _read(problem, witness, ("information", "sum", "distortion"))
    return max(statement.lower(proof), 0.0), statement.upper(channel)


def about(problem: Mapping[str, Any]) -> str:
    """Return a short description of a claim's subject."""
    n, m = len(problem["distortion"]), len(problem["distortion"][0])
    goal = {
        "information": "least leakage",
        "sum": "least leakage and distortion",
        "distortion": "least distortion",
    }[problem["minimize"]]
    own = ", with the user's own constraints" if problem["own"] else ""
    return f"{goal} of channels with {n} inputs and {m} outputs, to known priors{own}"


def _prove(
    problem: Mapping[str, Any],
    witness: Mapping[str, Any],
    proof: Mapping[str, Any],
    goals: tuple[str, ...],
) -> tuple[float, float, str]:
    statement, channel = _read(problem, witness, goals)
    upper = statement.upper(channel)
    missing = missed(statement.own, normalized_rows(channel), witness)
    return max(statement.lower(proof), 0.0), math.inf if missing else upper, missing


def _read(
    problem: Mapping[str, Any], witness: Mapping[str, Any], goals: tuple[str, ...]
) -> tuple[_Statement, list[list[float]]]:
    statement = _Statement.read(problem, goals)
    parts(witness, {"channel"}, "the witness", may=witness_extras())
    return statement, _matrix(witness["channel"], "the channel", *statement.shape)


@dataclass(frozen=True)
class _Statement:
    """The problem, read and normalized."""

    distortion: list[list[float]]
    sources: list[list[float]]
    minimize: str
    number: float  # the budget, or the slope
    secrets: list[Balls]
    total: bool
    privacy: str | None
    prior: list[float]
    own: list[OwnRow]

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.distortion), len(self.distortion[0])

    @cached_property
    def costs(self) -> Balls:
        """The distortions as balls."""
        return [[ball(entry) for entry in row] for row in self.distortion]

    @classmethod
    def read(cls, problem: Mapping[str, Any], goals: tuple[str, ...]) -> _Statement:
        goal = problem.get("minimize") if isinstance(problem, Mapping) else None
        if goal not in goals:
            raise CertificateError(f"minimize: found {goal!r:.40}")
        amount = "slope" if goal == "sum" else "budget"
        private = goal == "distortion" and "privacy" in problem
        keys = {"distortion", "sources", "minimize", "own", amount}
        keys |= {"privacy"} if private else {"secrets"}
        has_prior = private and problem["privacy"] != "local-dp"
        parts(problem, keys | ({"prior"} if has_prior else set()), "the problem")
        d = _matrix(problem["distortion"], "the distortion")
        n = len(d)
        sources = _matrix(problem["sources"], "the sources", None, n)
        budget = number(problem[amount], amount)
        if budget < 0 or any(entry < 0 for row in d for entry in row):
            raise CertificateError("distortions, budget and slope must not be negative")
        for law in sources:
            normalized(law)
        own = read_own(problem["own"], n, len(d[0]))
        secrets, total, prior = [], False, []
        if private:
            if problem["privacy"] not in PRIVACY:
                raise CertificateError(f"privacy: found {problem['privacy']!r:.40}")
            if has_prior:
                prior = numbers(problem["prior"], "the prior", n)
                normalized(prior)
        else:
            secrets, total = _secrets(problem["secrets"], n)
        return cls(d, sources, goal, budget, secrets, total, problem.get("privacy"), prior, own)

    def upper(self, channel: list[list[float]]) -> float:
        """Return the witness's value, rounded up; the witness must meet the budget."""
        m = self.shape[1]
        rows = [normalized(row) for row in channel]
        spent = [dot(row, costs) for row, costs in zip(rows, self.costs, strict=True)]
        distortions = [dot(normalized(law), spent) for law in self.sources]
        if self.privacy is not None:
            self._check_privacy(channel)
            return float_above(largest(distortions))
        constant = all(row == channel[0] for row in channel)
        leaks = (
            [arb(0)]
            if constant
            else [_information(table, rows, m, self.total) for table in self.secrets]
        )
        if self.minimize == "distortion":
            if not all(leak <= ball(self.number) for leak in leaks):
                raise CertificateError("the witness leaks more than the budget")
            return float_above(largest(distortions))
        if self.minimize == "information":
            if not all(e <= ball(self.number) for e in distortions) and not self._exactly_met(
                channel
            ):
                raise CertificateError("the witness's distortion is above the budget")
            return max(float_above(largest(leaks)), 0.0) if not constant else 0.0
        return float_above(largest(leaks) + ball(self.number) * largest(distortions))

    def lower(self, proof: Mapping[str, Any]) -> float:
        """Return the dual bound, rounded down."""
        n, m = self.shape
        tangents = "posteriors" if "posteriors" in proof else "reference"
        wanted = {"prices", "penalty"} if self.privacy else {"prices", "weights", tangents}
        parts(proof, wanted | {"own"}, "the proof", may={"balance"})
        prices = _shares(proof["prices"], "the prices", len(self.sources))
        weights = _shares(proof.get("weights", []), "the weights", len(self.secrets))
        offset = arb(0)
        if self.minimize == "information":
            weights = _scaled(weights, arb(1))
            offset = total(prices) * ball(self.number)
        else:
            one = arb(1) if self.minimize == "distortion" else ball(self.number)
            prices = _scaled(prices, one)
            if self.minimize == "sum":
                weights = _scaled(weights, arb(1))
            else:
                offset = total(weights) * ball(self.number)
        laws = [normalized(law) for law in self.sources]
        charge = [
            sum((mu * law[x] for mu, law in zip(prices, laws, strict=True)), arb(0))
            for x in range(n)
        ]
        cost = [[charge[x] * entry for entry in row] for x, row in enumerate(self.costs)]
        if self.privacy is not None:
            penalty = _matrix(proof["penalty"], "the penalty", n, m)
            offset = self.penalized(cost, penalty)
        elif tangents == "posteriors":
            given = proof["posteriors"]
            if not isinstance(given, list) or len(given) != len(self.secrets):
                raise CertificateError("the posteriors: expected a matrix for each secret")
            for weight, table, posteriors in zip(weights, self.secrets, given, strict=True):
                rows = _matrix(posteriors, "the posteriors", n if self.total else len(table), m)
                _add_posteriors(cost, weight, table, rows, self.total)
        else:
            reference = _matrix(proof["reference"], "the reference", n, m)
            if any(entry < 0 for row in reference for entry in row):
                raise CertificateError("the reference must not be negative")
            for weight, table in zip(weights, self.secrets, strict=True):
                if self.total:
                    _add_law_gradient(cost, weight, table[0], reference)
                else:
                    _add_table_gradient(cost, weight, table, reference)
        cells, value = priced(self.own, proof)
        for x, y, amount in cells:
            cost[x][y] -= amount
        value -= offset
        for row in cost:
            value += least(row)
        return float_below(value)

    def penalized(self, cost: Balls, penalty: list[list[float]]) -> arb:
        """Add the priced constraints to the costs; return what is subtracted from the bound.

        - local-dp: t_y <= q_xy <= e^eps t_y with t_y in [0, 1]. A penalty u of either sign prices
          the right inequality where it is positive and the left one where it is negative. The
          factor of t_y is then sum u^- - e^eps sum u^+; its negative part is subtracted.
        - pml: q_xy <= e^eps r_y on the prior's support; v >= 0 there.
        - maximal-leakage: q_xy <= t_y on the support, and sum_y t_y <= e^eps; v >= 0 there, and
          max_y sum_x v_xy prices the sum.
        """
        n, m = self.shape
        factor = ball(self.number).exp()
        for x, row in enumerate(penalty):
            if self.privacy == "local-dp":
                continue
            if any(entry < 0 for entry in row) or (self.prior[x] == 0 and any(row)):
                raise CertificateError("the penalty must be >= 0, and 0 where the prior is")
        columns = [[ball(row[y]) for row in penalty] for y in range(m)]
        for x in range(n):
            for y in range(m):
                cost[x][y] += columns[y][x]
        if self.privacy == "local-dp":
            offset = arb(0)
            for column in columns:
                up = sum((u for u in column if u > 0), arb(0))
                down = sum((-u for u in column if u < 0), arb(0))
                offset += (factor * up - down).max(arb(0))
            return offset
        totals = [total(column) for column in columns]
        if self.privacy == "maximal-leakage":
            return largest(totals) * factor
        prior = normalized(self.prior)
        for x in range(n):
            for y in range(m):
                cost[x][y] -= factor * prior[x] * totals[y]
        return arb(0)

    def _check_privacy(self, channel: list[list[float]]) -> None:
        rows = normalized_rows(channel)
        factor = exp_below(self.number)
        if self.privacy == "local-dp":
            met = all(max(column) <= factor * min(column) for column in zip(*rows, strict=True))
        else:
            weights = normalized_rows([self.prior])[0]
            seen = [x for x, weight in enumerate(weights) if weight > 0]
            peaks = [max(rows[x][y] for x in seen) for y in range(self.shape[1])]
            if self.privacy == "maximal-leakage":
                met = sum(peaks, fmpq(0)) <= factor
            else:
                output = [dot(weights, column) for column in zip(*rows, strict=True)]
                met = all(q <= factor * r for q, r in zip(peaks, output, strict=True))
        if not met:
            raise CertificateError(f"the witness is not {self.privacy} at the budget")

    def _exactly_met(self, channel: list[list[float]]) -> bool:
        """Whether E_j d <= budget in exact arithmetic: balls cannot decide equality."""
        rows = normalized_rows(channel)
        costs = [[rational(entry) for entry in row] for row in self.distortion]
        spent = [dot(row, cost) for row, cost in zip(rows, costs, strict=True)]
        limit = rational(self.number)
        laws = normalized_rows(self.sources)
        return all(dot(law, spent) <= limit for law in laws)


def _secrets(given: Any, n: int) -> tuple[list[Balls], bool]:
    if (
        not isinstance(given, list)
        or not given
        or not all(isinstance(table, list) and table for table in given)
    ):
        raise CertificateError("the secrets: expected a list of distributions or of tables")
    whole = not isinstance(given[0][0], list)
    result = []
    for table in given:
        rows = [numbers(table, "a secret", n)] if whole else _matrix(table, "a secret", None, n)
        flat = normalized([entry for row in rows for entry in row])
        result.append([flat[i : i + n] for i in range(0, len(flat), n)])
    return result, whole


def _information(table: Balls, rows: Balls, m: int, whole: bool) -> arb:
    """Return I(A;Y), summed so that no precision is lost where it is small."""
    if whole:
        output = [arb(0)] * m
        value = arb(0)
        for p, row in zip(table[0], rows, strict=True):
            if p == 0:
                continue
            for y, q in enumerate(row):
                if not q == 0:
                    output[y] += p * q
                    value += p * xlogx(q)
        return value + entropy(output)
    joint = [[dot(line, column) for column in zip(*rows, strict=True)] for line in table]
    return mutual_information(joint)


def _add_law_gradient(cost: Balls, weight: arb, law: list[arb], reference: Any) -> None:
    """Add w p(x) log( ref(x,y) / r(y) ), r = sum_x p(x) ref(x,y); nothing where r is 0."""
    for y in range(len(cost[0])):
        column = [ball(row[y]) for row in reference]
        output = dot(law, column)
        if output == 0:
            continue
        log_output = output.log()
        for x, p in enumerate(law):
            if not p == 0:
                log_entry = column[x].log() if column[x] > 0 else arb.neg_inf()
                cost[x][y] += weight * p * (log_entry - log_output)


def _add_table_gradient(cost: Balls, weight: arb, table: Balls, reference: Any) -> None:
    """Add w sum_a P(a,x) log( s(a,y) / (pi(a) r(y)) ); nothing where r is 0."""
    used = [line for line in table if not all(entry == 0 for entry in line)]
    log_prior = [total(line).log() for line in used]
    for y in range(len(cost[0])):
        column = [ball(row[y]) for row in reference]
        joint = [dot(line, column) for line in used]
        output = total(joint)
        if output == 0:
            continue
        log_output = output.log()
        for line, s, log_pi in zip(used, joint, log_prior, strict=True):
            slope = weight * ((s.log() if s > 0 else arb.neg_inf()) - log_pi - log_output)
            for x, share in enumerate(line):
                if not share == 0:
                    cost[x][y] += share * slope


def _add_posteriors(
    cost: Balls, weight: arb, table: Balls, posteriors: list[list[float]], whole: bool
) -> None:
    """Add w sum_a P(a,x) log( phi(a|y) / pi(a) ); each column of phi is divided by its sum."""
    prior = table[0] if whole else [total(line) for line in table]
    for y in range(len(cost[0])):
        column = normalized([row[y] for row in posteriors])
        for a, (phi, pi) in enumerate(zip(column, prior, strict=True)):
            if pi == 0:
                continue
            slope = weight * ((phi.log() if phi > 0 else arb.neg_inf()) - pi.log())
            if whole:
                cost[a][y] += pi * slope
                continue
            for x, share in enumerate(table[a]):
                if not share == 0:
                    cost[x][y] += share * slope


def _matrix(
    values: Any, name: str, rows: int | None = None, columns: int | None = None
) -> list[list[float]]:
    if not isinstance(values, list) or not values or (rows is not None and len(values) != rows):
        raise CertificateError(f"{name}: expected a list of {rows or 'at least one'} rows")
    first = numbers(values[0], name, columns)
    if not first:
        raise CertificateError(f"{name}: expected rows that are not empty")
    return [first, *(numbers(row, name, len(first)) for row in values[1:])]


def _shares(values: Any, name: str, size: int) -> list[arb]:
    given = numbers(values, name, size)
    if any(value < 0 for value in given):
        raise CertificateError(f"{name} must not be negative")
    return [ball(value) for value in given]


def _scaled(shares: list[arb], mass: arb) -> list[arb]:
    """Scale multipliers to a sum."""
    found = total(shares)
    if mass == 0:
        return [arb(0) for _ in shares]
    if not found > 0:
        raise CertificateError("the multipliers are all zero")
    return [share * mass / found for share in shares]
