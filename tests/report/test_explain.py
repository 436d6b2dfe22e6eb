"""What a mechanism's privacy means: each number against a closed form or another way."""

import math

import pytest

from cvxleak import Mechanism, Prior, verify
from cvxleak.audit import product_leakage
from cvxleak.core.errors import InfeasibleError, ValidationError
from cvxleak.mechanisms import random_rounding, randomized_response, truncated_geometric
from cvxleak.model import Guess, RecordSpace
from cvxleak.model.noise import Gaussian
from cvxleak.queries import count, from_table
from cvxleak.report import Report, explain
from cvxleak.report.frequencies import of_people
from cvxleak.report.guessing import guess_rise


def local(k: int = 3, epsilon: float = 1.0) -> Mechanism:
    return Mechanism.from_channel(RecordSpace([range(k)]), randomized_response(k, epsilon))


@pytest.fixture(scope="module")
def report() -> Report:
    return explain(local(), prior=Prior([0.5, 0.3, 0.2]), epsilons=[0.5], orders=[2], tries=9)


def one(report: Report, name: str, **about: object) -> float:
    (found,) = [
        q
        for q in report.named(name)
        if all(getattr(q, key) == value for key, value in about.items())
    ]
    assert found.meaning.endswith(".")
    assert found.upper - found.lower <= 1e-3 * abs(found.upper) + 1e-12
    return found.upper


def test_randomized_response(report: Report):
    e = math.e
    p, r = e / (e + 2), 1 / (e + 2)
    assert one(report, "record DP epsilon") == pytest.approx(1)
    assert one(report, "Bayes factor") == pytest.approx(e)
    assert one(report, "record DP delta", epsilon=0.5) == pytest.approx(p - math.exp(0.5) * r)
    moment = p**2 / r + r**2 / p + r
    assert one(report, "Rényi DP epsilon", alpha=2.0) == pytest.approx(math.log(moment))
    assert one(report, "zCDP rho") == pytest.approx(p - r, rel=1e-3)  # of order 1
    assert one(report, "membership advantage") == pytest.approx(p - r)
    assert one(report, "hits of the best test", false_alarm=0.1) == pytest.approx(0.1 * e)
    assert [q.tries for q in report.named("guess, others known")] == [1, 2]
    assert one(report, "guess without the output", tries=2) == pytest.approx(2 / 3)
    assert one(report, "guess, others known", tries=1) == pytest.approx(p)
    assert one(report, "guess, others known", tries=2) == pytest.approx(p + r)
    # There is one record, so that nobody knows another, and any law of it counts.
    free = one(report, "record leakage", entropy_floor=0.0)
    assert one(report, "leakage to independent beliefs") == pytest.approx(free, rel=1e-3)
    assert one(report, "prior guess") == 0.5
    assert report.facts["hits"][10] == pytest.approx([0.1, 0.1 * e])


def test_certificates_hold(report: Report):
    kinds = {certificate.kind for certificate in report.certificates()}
    assert {"renyi-dp", "zcdp", "dp-profile", "gaussian-dp", "record-leakage"} <= kinds
    assert all(verify(certificate).passed for certificate in report.certificates())


def test_others_known_is_the_worst_of_what_independent_people_know():
    mechanism = Mechanism(count(5), truncated_geometric(5, 0.8))
    report = explain(mechanism, [3.0], unit="bits")
    rows = mechanism.channel.matrix
    pairs = [zip(rows[i], rows[i + 1], strict=True) for i in range(5)]
    best = max(sum(max(a, b) for a, b in pair) / 2 for pair in pairs)
    assert one(report, "guess, others known") == pytest.approx(best)
    assert one(report, "membership advantage") == pytest.approx(2 * best - 1)
    assert one(report, "record DP epsilon") == pytest.approx(0.8 / math.log(2))
    # A quarter, half and three quarters of it.
    shares = [q.epsilon for q in report.named("record DP delta")]
    assert shares == pytest.approx([share * 0.8 / math.log(2) for share in (0.25, 0.5, 0.75)])
    assert report.named("record leakage")[1].entropy_floor == 3.0


def test_guesses_by_independent_people_are_about_what_they_know():
    mechanism = Mechanism(count(4), truncated_geometric(4, 0.8))
    free, unsure = (
        one(explain(mechanism, independent=known), "gain to independent beliefs")
        for known in ({}, {"least_probability": 0.3})
    )
    known = one(explain(mechanism), "guess, others known")
    assert free == pytest.approx(known - 0.5)
    assert unsure == pytest.approx(
        product_leakage(mechanism, least_probability=0.3, gain=Guess()).upper
    )
    assert unsure < free - 0.01


def test_nobody_knows_the_others_where_there_are_none(report: Report):
    alone = [q.meaning for q in report.quantities if q.name.endswith("advantage")]
    alone += [q.meaning for q in report.named("guess, others known")]
    assert not any("knows all" in meaning for meaning in alone)
    several = explain(Mechanism(count(2), truncated_geometric(2, 0.8)))
    assert "knows all other records" in several.named("membership advantage")[0].meaning


def test_complete_disclosure():
    tells = Mechanism(from_table(RecordSpace.binary(1), [0, 1]), [[1, 0], [0, 1]])
    report = explain(tells)
    for name in ("record DP epsilon", "zCDP rho", "Gaussian DP mu", "Bayes factor"):
        (found,) = report.named(name)
        assert (found.lower, found.upper) == (math.inf, math.inf)
        assert found.to_dict()["upper"] == "inf"
    assert one(report, "membership advantage") == 1
    assert [q.epsilon for q in report.named("record DP delta")] == [0.1, 0.5, 1.0, 2.0]
    assert {q.upper for q in report.named("record DP delta")} == {1.0}


def test_guesses_under_a_floor_are_as_close_as_the_tolerance():
    rounded = explain(Mechanism(count(4), random_rounding(4, base=3)), [2.4], epsilons=[1])
    # The maxima over all strategies, enumerated; Fano's inequality would allow a larger rise.
    chance = one(rounded, "guess chance", entropy_floor=2.4)
    rise = one(rounded, "guess rise", entropy_floor=2.4)
    assert 0.907819 <= chance <= 0.907821 + 1e-4 * chance
    assert 0.358568 <= rise <= 0.358570 + 1e-4 * rise
    leakage = one(rounded, "record leakage", entropy_floor=2.4)
    assert rise < guess_rise(leakage, 2).fano - 0.01


def test_frequencies():
    assert of_people(0.29, math.ceil) == "29 of 100"
    assert of_people(0.2901, math.ceil) == "30 of 100"
    assert of_people(0.9999) == "9,999 of 10,000"
    assert of_people(0.0) == "0 of 100"
    assert of_people(1 - 1e-12) == "more than 999,999 of 1,000,000"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"orders": [1]}, "orders: found 1"),
        ({"epsilons": [-1]}, "epsilons: found -1"),
        ({"false_alarms": [2]}, "false_alarms: found 2"),
        ({"tries": 0}, "tries: found 0"),
        ({"prior": Prior([0.5, 0.5])}, "prior: its outcomes"),
    ],
)
def test_bad_arguments(options, message):
    with pytest.raises(ValidationError, match=message):
        explain(local(), **options)


def test_noise_without_a_channel_and_floors_out_of_reach():
    with pytest.raises(ValidationError, match="mechanism: its output is a number"):
        explain(Mechanism(count(2), Gaussian(1.0)))
    with pytest.raises(InfeasibleError, match="entropy_floor: found 9"):
        explain(local(), [9])
