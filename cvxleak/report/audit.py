"""`audit_report`: every measure that applies to a mechanism, each with its ends and a sentence."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

from cvxleak.core.clock import WORK_LIMIT
from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import in_order, label_tuple, real_number
from cvxleak.model import (
    Channel,
    Distortion,
    Gain,
    Knowledge,
    Mechanism,
    Prior,
    RealOutput,
)
from cvxleak.model.gain import Form
from cvxleak.model.gain_form import GainForm
from cvxleak.model.prior import named_law
from cvxleak.problem.bound import unit_scale
from cvxleak.report import names
from cvxleak.report import sentences as say
from cvxleak.report.curves import leakage_points
from cvxleak.report.formulas import (
    computed,
    distortions,
    posteriors,
    profile,
    under_prior,
    whole_dataset,
)
from cvxleak.report.progress import Progress, as_progress, solved
from cvxleak.report.quantity import Quantity, Report
from cvxleak.report.searches import Searches
from cvxleak.report.targets import Target, check_floors, check_targets

__all__ = ["audit_report", "capacity_report", "independent_leakage"]


def audit_report(
    mechanism: Mechanism,
    entropy_floors: Sequence[float] = (0.0,),
    *,
    unit: str = "nats",
    prior: Prior | Mapping[Any, Any] | None = None,
    distortion: Distortion | str | None = None,
    records: Sequence[int] | None = None,
    group_sizes: Sequence[int] = (1,),
    epsilons: Sequence[float] = (),
    outputs: Sequence[Hashable] = (),
    adversaries: Knowledge | None = None,
    independent: Mapping[str, Any] | None = None,
    gain: Gain | None = None,
    form: Form = "rise",
    curves: bool = False,
    tol: float | None = None,
    time_limit: float | None = None,
    work_limit: float | None = WORK_LIMIT,
    progress: Progress | None = None,
) -> Report:
    """Return the report of an audit: every measure that applies to one output of a mechanism.

    Parameters
    ----------
    mechanism : Mechanism
    entropy_floors : sequence of float
        Least entropies of the adversaries' beliefs about the dataset, in `unit`. The floor 0, all
        adversaries, is always among them for single records.
    unit : {"nats", "bits"}
        Unit of the floors and of every information quantity in the report.
    prior : Prior or mapping, optional
        Distribution of the one record of a local mechanism, labeled by its values: adds what this
        source tells.
    distortion : Distortion or str, optional
        Cost of an output for a value of the query: adds its expectations. ``"hamming"``,
        ``"absolute"`` and ``"squared"`` are those between the values and the outputs.
    records : sequence of int, optional
        Records to audit one by one; the worst of all records if left out.
    group_sizes : sequence of int
        For each size, the worst group of so many records is audited (the record itself for 1).
        Only with `records` left out.
    epsilons : sequence of float
        Adds the least delta of (epsilon, delta)-differential privacy for each of these, in nats
        whatever the unit: e^epsilon is a factor.
    outputs : sequence of hashable
        Adds the probability of each value of the record once one of these was the output. Only
        with `prior`.
    adversaries : Knowledge, optional
        What else is known of the beliefs of which `entropy_floors` are least entropies.
    independent : mapping, optional
        Adds the leakage to people who believe the records to be independent: the arguments of
        `cvxleak.audit.ProductLeakage` that say what is known of each distribution; none of them if
        it is empty. Also the largest `gain` to such people, if it is the maximum of a few linear
        functions; with form "posterior" only under `laws`.
    gain, form : Gain, str
        Adds the largest one in this form at every floor, as for `RecordLeakage`, if it is not there
        anyway: the chance of a guess and its rise are.
    curves : bool
        Whether ``facts["curves"]`` is to have the leakage at many floors between those asked for,
        as a picture needs them: rows of floor, lower and upper bound, neither of which rises.
    tol : float, optional
        Relative gap that each search for a leakage aims at; that of `RecordLeakage` if left out.
    time_limit : float or None
        Seconds for all these searches together; what is not closed then is reported BRACKETED.
    work_limit : float or None
        As for `Problem.solve`, for each search.
    progress : Progress, optional
        Is told about progress, and may interrupt.

    Returns
    -------
    Report

    Raises
    ------
    ValidationError
        Arguments of the wrong kind, or that do not go together.
    InfeasibleError
        A floor above log|X|.

    Examples
    --------
    >>> from cvxleak.mechanisms import randomized_response
    >>> from cvxleak.model import Mechanism
    >>> from cvxleak.queries import parity
    >>> from cvxleak.report import audit_report
    >>> report = audit_report(Mechanism(parity(4), randomized_response(2, 1.0)), [2.5])
    >>> leakage = report.named("record leakage")[1]
    >>> leakage.entropy_floor, round(leakage.upper, 3), leakage.status
    (2.5, 0.054, 'CERTIFIED')
    """
    from cvxleak.audit import RecordLeakage
    from cvxleak.capacities import Capacity

    law = named_law(prior)
    progress = as_progress(progress)
    targets = check_targets(mechanism, records, group_sizes)
    floors = check_floors(mechanism, entropy_floors, unit)
    given = in_order(epsilons, "epsilons")
    levels = sorted({real_number(level, "epsilons", 0.0, open_high=True) for level in given})
    shown = label_tuple(outputs, len(in_order(outputs, "outputs")), "outputs")
    if shown and law is None:
        raise ValidationError("outputs: what they say of the record needs its prior")
    if gain is not None:
        for target in targets:  # or it says what is wrong with the gain
            RecordLeakage(mechanism, 0.0, target.record, target.size, gain=gain, form=form)
    # What is quick comes first, so that nothing wrong shows up after a minute of search.
    noise = mechanism.noise
    if not isinstance(noise, Channel):
        asked = {"prior": law, "distortion": distortion, "epsilons": levels or None}
        for name, value in {**asked, "independent": independent}.items():
            if value is not None:
                raise ValidationError(
                    f"{name}: needs a mechanism whose channel is known; this one is {mechanism!r}"
                )
    told = None if gain is None else GainForm(gain, form)
    limits: dict[str, Any] = {"tol": tol, "time_limit": time_limit, "work_limit": work_limit}
    others, apart = [], []
    if not isinstance(noise, RealOutput):
        bound = solved(progress, names.CAPACITY, Capacity(noise).solve)
        meaning = say.CAPACITY + say.of_set(bound.set_width, unit)
        others.append(Quantity.of_bound(names.CAPACITY, bound, unit, meaning))
    if independent is not None:
        apart = list(
            independent_leakage(mechanism, targets, independent, unit, limits, progress, told)
        )
    if isinstance(noise, Channel):
        others += computed(whole_dataset(mechanism), unit, progress)
        others += profile(mechanism, levels, unit)
    if law is not None:
        others += under_prior(mechanism, law, unit, progress)
        others += posteriors(mechanism, law, shown)
    if distortion is not None:
        others += computed(distortions(mechanism, distortion, law), unit, progress)
    searches = Searches(mechanism, unit, limits, progress, adversaries, told)
    found = list(searches.run(targets, floors))
    facts: dict[str, Any] = {
        "records": mechanism.space.records,
        "query_values": len(mechanism.query.values),
        "outputs": None if isinstance(noise, RealOutput) else len(noise.outputs),
        "max_entropy": mechanism.space.max_entropy / unit_scale(unit),
    }
    if curves:
        facts["curves"] = [
            leakage_points(
                mechanism,
                target,
                found,
                unit,
                time_limit,
                progress,
                adversaries,
            )
            for target in targets
        ]
    return Report(unit, (*found, *apart, *others), facts, progress.interrupted)


def independent_leakage(
    mechanism: Mechanism,
    targets: Sequence[Target],
    known: Mapping[str, Any],
    unit: str,
    limits: Mapping[str, Any],
    progress: Progress,
    told: GainForm | None = None,
) -> Iterator[Quantity]:
    """Yield the leakage to independent beliefs about each single record that is asked for.

    Also what is told by another gain, where that is bounded for such beliefs.
    """
    from cvxleak.audit import ProductLeakage

    for target in targets:
        if target.size == 1:
            problem = ProductLeakage(mechanism, records=target.record, **known)
            what = names.INDEPENDENT_LEAKAGE
            bound = solved(progress, what, problem.solve, **limits)
            meaning = say.independent(target.subject, known)
            yield Quantity.of_bound(what, bound, unit, meaning, record=bound.witness.records[0])
            if told is None or told.is_leakage:
                continue
            try:
                problem = ProductLeakage(
                    mechanism, records=target.record, gain=told.gain, form=told.form, **known
                )
            except ValidationError:  # a gain of many actions, or what is known beforehand
                continue
            what = names.INDEPENDENT_GAIN
            bound = solved(progress, what, problem.solve, **limits)
            meaning = told.meaning(target.subject, say.who_independent(known))
            yield Quantity.of_bound(what, bound, unit, meaning, record=bound.witness.records[0])


def capacity_report(
    channel: Channel,
    *,
    unit: str = "nats",
    tol: float | None = None,
    time_limit: float | None = None,
    work_limit: float = WORK_LIMIT,
    progress: Progress | None = None,
) -> Report:
    """Return the capacity of a channel as a report.

    Parameters
    ----------
    channel : Channel
    unit : {"nats", "bits"}
    tol, time_limit, work_limit : float, optional
        As for `Problem.solve`.
    progress : Progress, optional
        Is told about progress.

    Returns
    -------
    Report

    Examples
    --------
    >>> from cvxleak.mechanisms import binary_symmetric
    >>> from cvxleak.report import capacity_report
    >>> (found,) = capacity_report(binary_symmetric(0.1), unit="bits").quantities
    >>> round(found.lower, 6), found.unit
    (0.531004, 'bits')
    """
    from cvxleak.capacities import Capacity

    progress = as_progress(progress)
    limits = {"tol": tol, "time_limit": time_limit, "work_limit": work_limit}
    bound = solved(progress, names.CAPACITY, Capacity(channel).solve, **limits)
    found = Quantity.of_bound(names.CAPACITY, bound, unit, say.CHANNEL_CAPACITY)
    facts = {"inputs": len(channel.inputs), "outputs": len(channel.outputs)}
    return Report(unit, (found,), facts, progress.interrupted)
