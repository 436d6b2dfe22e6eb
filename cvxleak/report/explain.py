"""`explain`: the privacy of one mechanism in the terms of each community, side by side."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from cvxleak import measures
from cvxleak.core.clock import WORK_LIMIT
from cvxleak.core.validation import in_order, real_number, whole_number
from cvxleak.model import Guess, GuessInTries, Mechanism, Prior
from cvxleak.model.gain_form import GainForm
from cvxleak.model.prior import named_law
from cvxleak.problem.bound import converted, unit_scale
from cvxleak.report import frequencies as say
from cvxleak.report import names
from cvxleak.report.audit import independent_leakage
from cvxleak.report.formulas import posteriors, under_prior
from cvxleak.report.progress import Progress, as_progress
from cvxleak.report.quantity import Quantity, Report
from cvxleak.report.searches import Searches
from cvxleak.report.sentences import record_delta, record_dp
from cvxleak.report.targets import check_floors, check_targets

__all__ = ["explain"]

SHARES = (0.25, 0.5, 0.75)
"""Of a mechanism's epsilon: where its delta is asked for, if nothing is said."""

EPSILONS = (0.1, 0.5, 1.0, 2.0)
"""The same where its epsilon is infinite."""

ORDERS = (2.0, 4.0, 8.0, 16.0, 32.0)
FALSE_ALARMS = (0.01, 0.05, 0.1, 0.5)
TRIES = 3

LARGEST = 700.0
"""Nats from where on a factor is too large for a float."""

CURVE = 101
"""At how many false alarms, evenly apart, the report has the whole curve of hits."""


def explain(
    mechanism: Mechanism,
    entropy_floors: Sequence[float] = (0.0,),
    *,
    unit: str = "nats",
    prior: Prior | Mapping[Any, Any] | None = None,
    epsilons: Sequence[float] | None = None,
    orders: Sequence[float] = ORDERS,
    false_alarms: Sequence[float] = FALSE_ALARMS,
    tries: int = TRIES,
    independent: Mapping[str, Any] | None = None,
    tol: float | None = None,
    time_limit: float | None = None,
    work_limit: float | None = WORK_LIMIT,
    progress: Progress | None = None,
) -> Report:
    """Return what a mechanism's privacy means, in the terms of several communities side by side.

    Of two datasets that differ in one record: epsilon, delta, Rényi divergences, rho of zCDP, mu of
    Gaussian differential privacy, the hits and false alarms of the best tests (the trade-off curve
    of f-differential privacy), membership advantage and Bayes factor. Of one record: the chance to
    guess it, in one try and in several, and the information that leaks to people to whom the
    records are independent, to adversaries with uncertainty about the dataset, and to those who
    know a prior.

    Parameters
    ----------
    mechanism : Mechanism
    entropy_floors : sequence of float
        Least entropies of the adversaries' beliefs about the dataset, in `unit`; 0 is among them.
    unit : {"nats", "bits"}
        Unit of the floors and of every information quantity in the report.
    prior : Prior or mapping, optional
        Distribution of the one record of a local mechanism, labeled by its values.
    epsilons : sequence of float
        Where the least delta is wanted, in nats whatever the unit. If left out, a quarter, half and
        three quarters of the mechanism's epsilon, or 0.1, 0.5, 1 and 2 where that is infinite.
    orders : sequence of float
        Orders of Rényi divergences, more than 1.
    false_alarms : sequence of float
        Shares of wrong accusations at which the hits of the best test are wanted.
    tries : int
        Largest number of guesses of an adversary.
    independent : mapping, optional
        What is known of the distributions of independent records, as for `audit_report`; nothing if
        left out. If given, the report also has the most by which the output helps to guess a
        record.
    tol, time_limit, work_limit, progress
        As for `audit_report`.

    Returns
    -------
    Report
        What is proved has a certificate. ``facts["hits"]`` is the whole curve of hits against
        false alarms, 0, 0.01, ..., 1.

    Raises
    ------
    ValidationError
        Arguments of the wrong kind, or a mechanism whose channel is not known exactly.
    InfeasibleError
        A floor above log|X|.

    Examples
    --------
    >>> from cvxleak import Mechanism
    >>> from cvxleak.mechanisms import truncated_geometric
    >>> from cvxleak.queries import count
    >>> from cvxleak.report import explain
    >>> report = explain(Mechanism(count(20), truncated_geometric(20, 0.1)))
    >>> for name in ("record DP epsilon", "zCDP rho", "membership advantage"):
    ...     (found,) = report.named(name)
    ...     print(f"{name}: {found.upper:.4f} {found.unit}, {found.status}")
    record DP epsilon: 0.1000 nats, CERTIFIED
    zCDP rho: 0.0050 nats, CERTIFIED
    membership advantage: 0.0500 probability, CERTIFIED
    """
    law = named_law(prior)
    progress = as_progress(progress)
    targets = check_targets(mechanism, None, [1])
    floors = check_floors(mechanism, entropy_floors, unit)
    alphas = _numbers(orders, "orders", 1.0, math.inf, open_low=True)
    alarms = _numbers(false_alarms, "false_alarms", 0.0, 1.0)
    most = whole_number(tries, "tries", 1)
    channel = mechanism.channel  # known exactly, or this says what else there is
    epsilon = measures.record_dp_epsilon(mechanism)
    if epsilons is None:
        epsilons = [share * epsilon for share in SHARES] if math.isfinite(epsilon) else EPSILONS
    levels = _numbers(epsilons, "epsilons", 0.0, math.inf, open_high=True)
    found = [
        *_neighbors(mechanism, levels, alphas, unit, progress),
        *_tests(mechanism, epsilon, alarms),
        *_guesses(mechanism, most),
    ]
    known = {} if independent is None else independent
    guess = None if independent is None else GainForm(Guess(), "rise")
    limits: dict[str, Any] = {"tol": tol, "time_limit": time_limit, "work_limit": work_limit}
    found += independent_leakage(mechanism, targets, known, unit, limits, progress, guess)
    if law is not None:
        found += under_prior(mechanism, law, unit, progress)
        found += posteriors(mechanism, law, ())
    found += Searches(mechanism, unit, limits, progress).run(targets, floors)
    rates = np.linspace(0, 1, CURVE)
    hits = 1 - measures.record_trade_off(mechanism, rates)
    facts = {
        "records": mechanism.space.records,
        "query_values": len(mechanism.query.values),
        "outputs": len(channel.outputs),
        "max_entropy": mechanism.space.max_entropy / unit_scale(unit),
        "hits": [[float(rate), float(hit)] for rate, hit in zip(rates, hits, strict=True)],
    }
    return Report(unit, tuple(found), facts, progress.interrupted)


def _neighbors(
    mechanism: Mechanism,
    epsilons: Sequence[float],
    orders: Sequence[float],
    unit: str,
    progress: Progress,
) -> Iterator[Quantity]:
    """Yield the parameters of differential privacy, each proved."""
    from cvxleak.differential_privacy import check_claim

    def proved(name: str, meaning: Any, /, about: Mapping[str, Any], **claim: Any) -> Quantity:
        progress.begin(name)
        try:
            # The claimed value does not matter: the parameter is bounded on both sides anyway.
            bound = check_claim(mechanism, **claim).bound
        finally:
            progress.end()
        return Quantity.of_bound(name, bound, unit, meaning(bound.upper), **about)

    yield proved(names.RECORD_DP, record_dp, {}, epsilon=0)
    for level in epsilons:
        about = {"epsilon": converted(level, "nats", unit)}
        yield proved(
            names.RECORD_DELTA,
            lambda delta, level=level: record_delta(level, delta),
            about,
            epsilon=level,
            delta=1,
        )
    for order in orders:
        meaning = say.renyi(order)
        yield proved(names.RENYI_DP, lambda _, m=meaning: m, {"alpha": order}, renyi=(order, 0))
    yield proved(names.ZCDP, lambda _: say.zcdp(), {}, zcdp=0)
    yield proved(names.GAUSSIAN_DP, say.gaussian, {}, gdp=0)
    records = mechanism.space.records
    yield proved(
        names.ADVANTAGE, lambda distance: say.advantage(distance, records), {}, epsilon=0, delta=1
    )


def _tests(mechanism: Mechanism, epsilon: float, alarms: Sequence[float]) -> Iterator[Quantity]:
    """Yield what tests for one record come to: odds, and hits against false alarms."""
    factor = math.exp(epsilon) if epsilon < LARGEST else math.inf
    yield Quantity.computed(names.BAYES_FACTOR, factor, names.FACTOR, say.bayes_factor(factor))
    hits = 1 - measures.record_trade_off(mechanism, alarms)
    for alarm, hit in zip(alarms, hits.tolist(), strict=True):
        meaning = say.hits(alarm, hit)
        yield Quantity.computed(names.HITS, hit, names.PROBABILITY, meaning, false_alarm=alarm)


def _guesses(mechanism: Mechanism, tries: int) -> Iterator[Quantity]:
    """Yield the chance to guess a record of even odds, all the others being known."""
    query, rows = mechanism.query, mechanism.channel.matrix
    for number in range(1, tries + 1):
        start, found = time.monotonic(), []
        for record in (part[0] for part in query.exchangeable()):
            k = mechanism.space.shape[record]
            if number < k:
                uniform, gain = np.full(k, 1 / k), GuessInTries(number)
                found += [
                    (measures.posterior_gain_vulnerability(rows[list(line)], uniform, gain), k)
                    for line in query.lines(record)
                ]
        if not found:
            return
        chance, k = max(found)
        about = {"tries": number, "seconds": time.monotonic() - start}
        for name, value, meaning in (
            (names.BLIND_GUESS, number / k, say.guess_before(k, number)),
            (
                names.INFORMED_GUESS,
                chance,
                say.guess_after(chance, number, mechanism.space.records),
            ),
        ):
            yield Quantity.computed(name, value, names.PROBABILITY, meaning, **about)


def _numbers(
    values: Sequence[float], name: str, low: float, high: float, **ends: bool
) -> list[float]:
    given = in_order(values, name)
    return sorted({real_number(value, name, low, high, **ends) for value in given})
