"""What a report says, compared with the measures themselves."""

import math
import re

import numpy as np
import pytest

from cvxleak import measures
from cvxleak.audit import record_leakage
from cvxleak.core.errors import InfeasibleError, ValidationError
from cvxleak.mechanisms import binary_symmetric, identity, random_rounding, randomized_response
from cvxleak.model import (
    AdditiveNoise,
    Channel,
    ChannelSet,
    Distortion,
    Gaussian,
    Mechanism,
    Prior,
    RecordSpace,
)
from cvxleak.proofs import verify
from cvxleak.queries import count, from_function, parity
from cvxleak.report import (
    Progress,
    Report,
    audit_report,
    capacity_report,
    html_page,
    names,
)


def one(report: Report, name: str):
    (quantity,) = report.named(name)
    assert quantity.lower <= quantity.upper
    return quantity


@pytest.fixture(scope="module")
def rounding() -> Mechanism:
    return Mechanism(count(6), random_rounding(6, 3))


@pytest.fixture(scope="module")
def rounded(rounding: Mechanism) -> Report:
    return audit_report(rounding, [3.9])


def test_leakage_and_balance(rounding: Mechanism):
    report = audit_report(rounding, [3.9, 2.0])
    leakages = report.named("record leakage")
    assert [q.entropy_floor for q in leakages] == [0.0, 2.0, 3.9]
    for quantity in leakages:
        bound = record_leakage(rounding, quantity.entropy_floor)
        assert quantity.lower <= bound.upper
        assert bound.lower <= quantity.upper
        assert quantity.status == "CERTIFIED"
        assert quantity.record == 0
        assert verify(quantity.certificate).passed
    for quantity, leakage in zip(report.named("balance"), leakages[1:], strict=True):
        assert quantity.entropy_floor == leakage.entropy_floor
        assert quantity.lower <= leakages[0].upper - leakage.lower <= quantity.upper + 1e-12
        assert quantity.lower >= 0
        checked = verify(quantity.certificate)
        assert (checked.passed, quantity.certificate.kind) == (True, "balance")
        assert quantity.lower <= checked.lower <= checked.upper <= quantity.upper
    kinds = [one.kind for one in report.certificates()]
    # A leakage and two guesses at each floor.
    of_floor = ["record-leakage"] * 3
    assert kinds == [*of_floor, *of_floor, "balance", *of_floor, "balance", "capacity"]


def test_sentences_say_how_much(rounded: Report):
    whole, part = rounded.named("record leakage")
    assert whole.meaning.startswith("Discloses one person's record completely")
    assert part.meaning.startswith("Tells part of one person's record")
    assert f"{math.log(2):.6f} nats" in part.meaning
    nothing = audit_report(Mechanism(parity(3), binary_symmetric(0.5))).named("record leakage")
    assert nothing[0].meaning.startswith("Tells nothing")


def test_guesses(rounded: Report):
    for floor in (0.0, 3.9):
        here = {q.name: q for q in rounded.quantities if q.entropy_floor == floor}
        rise = here["guess after"].lower - here["guess before"].lower
        assert 0.5 <= here["guess before"].lower <= 1
        most, chance = here["guess rise"], here["guess chance"]
        assert max(rise, 0) - 1e-9 <= most.lower <= most.upper <= 0.5 + 1e-9
        assert here["guess after"].lower - 1e-9 <= chance.lower <= chance.upper <= 1 + 1e-9
        assert most.status == chance.status == "CERTIFIED"
        for quantity in (most, chance):
            assert verify(quantity.certificate).passed


def test_measures_of_the_whole():
    mechanism = Mechanism(count(3), [[0.7, 0.2, 0.1], [0.3, 0.4, 0.3], [0.2, 0.4, 0.4], [0, 0, 1]])
    report = audit_report(mechanism)
    channel = mechanism.channel
    expected = {
        "maximal leakage": measures.maximal_leakage(channel.matrix, Prior.uniform(4)),
        "record DP epsilon": measures.record_dp_epsilon(mechanism),
        "local DP epsilon": measures.local_dp_epsilon(channel),
    }
    for name, value in expected.items():
        quantity = one(report, name)
        assert quantity.lower == quantity.upper == value
        assert quantity.status == "COMPUTED"
    assert one(report, "record DP epsilon").upper == math.inf
    assert "more likely by any factor" in one(report, "record DP epsilon").meaning
    assert one(report, "capacity").upper >= report.named("record leakage")[0].lower
    assert verify(one(report, "capacity").certificate).passed


def test_record_dp_speaks_of_independent_records_too():
    # The largest max-information over product priors is the same number: it gets no line.
    mechanism = Mechanism(parity(3), randomized_response(2, 1.0))
    quantity = one(audit_report(mechanism), "record DP epsilon")
    assert quantity.upper == pytest.approx(measures.product_max_information(mechanism))
    assert (
        "by at most 2.719; for an adversary who believes that the records are" in quantity.meaning
    )


def test_local_mechanism_under_its_prior():
    space = RecordSpace([("a", "b", "c")])
    channel = Channel(randomized_response(3, 1.0).matrix, "abc", "abc")
    mechanism = Mechanism.from_channel(space, channel)
    prior = Prior([0.5, 0.3, 0.2], "abc")
    shuffled = Prior([0.2, 0.5, 0.3], "cab")
    for given in (prior, shuffled):
        report = audit_report(mechanism, prior=given, distortion=Distortion.hamming("abc"))
        expected = {
            "mutual information": measures.mutual_information(channel, prior),
            "max-information": measures.max_information(channel, prior),
            "prior guess": 0.5,
            "posterior guess": measures.posterior_bayes_vulnerability(channel, prior),
            "expected distortion": 1 - channel.matrix[0, 0],
            "worst-case distortion": 1 - channel.matrix[0, 0],
            "record DP epsilon": 1.0,
        }
        for name, value in expected.items():
            assert one(report, name).upper == pytest.approx(value, rel=1e-12), name
        leakages = measures.pml(channel, prior)
        found = report.named("pointwise maximal leakage")
        assert [q.outcome for q in found] == ["a", "b", "c"]
        np.testing.assert_allclose([q.upper for q in found], leakages, rtol=1e-12)


def test_prior_through_a_query():
    # The query merges two values of the record; the law of its value is what the distortion sees.
    query = from_function(RecordSpace([(0, 1, 2)]), lambda x: min(x[0], 1))
    mechanism = Mechanism(query, [[1.0, 0.0], [0.5, 0.5]])
    report = audit_report(
        mechanism, prior=Prior([0.5, 0.3, 0.2]), distortion=Distortion.hamming([0, 1])
    )
    assert one(report, "expected distortion").upper == pytest.approx(0.25)


def test_outputs_that_never_occur_have_no_line():
    mechanism = Mechanism.from_channel(RecordSpace.binary(1), [[0.5, 0.5, 0.0], [0.2, 0.8, 0.0]])
    report = audit_report(mechanism, prior=Prior([0.5, 0.5]))
    assert [q.outcome for q in report.named("pointwise maximal leakage")] == [0, 1]


def test_distortion_over_equally_likely_datasets(rounding: Mechanism):
    distortion = Distortion.absolute(range(7), rounding.outputs)
    report = audit_report(rounding, distortion=distortion)
    uniform = np.full(64, 1 / 64)
    exact = measures.mechanism_distortion(rounding, uniform, distortion)
    assert one(report, "expected distortion").upper == pytest.approx(exact)
    assert one(report, "worst-case distortion").upper == pytest.approx(4 / 3)


def test_bits_are_nats_in_other_words(rounding: Mechanism):
    nats = audit_report(rounding, [3.9])
    bits = audit_report(rounding, [3.9 / math.log(2)], unit="bits")
    assert bits.facts["max_entropy"] == pytest.approx(6)
    for one_nats, one_bits in zip(nats.quantities, bits.quantities, strict=True):
        assert one_nats.name == one_bits.name
        if one_nats.unit == "nats":
            assert one_bits.unit == "bits"
            assert one_bits.upper * math.log(2) == pytest.approx(one_nats.upper, abs=1e-4)
        else:
            assert one_bits.upper == pytest.approx(one_nats.upper, abs=1e-3)
    assert bits.named("record leakage")[1].entropy_floor == pytest.approx(3.9 / math.log(2))


def test_records_one_by_one():
    # Only the first record is released.
    query = from_function(RecordSpace.binary(2), lambda x: x[0])
    report = audit_report(Mechanism(query, identity(2)), records=[1, 0])
    first, second = report.named("record leakage")
    assert (first.record, second.record) == (0, 1)
    assert first.lower == pytest.approx(math.log(2))
    assert "record 0" in first.meaning
    # A correlated adversary learns about the other record as well.
    assert second.lower == pytest.approx(math.log(2))
    balances = audit_report(Mechanism(query, identity(2)), [1.2], records=[1]).named("balance")
    assert [q.record for q in balances] == [1]


def test_groups():
    report = audit_report(Mechanism(count(3), identity(4)), group_sizes=[2, 1])
    (group,) = report.named("group leakage")
    assert group.record == (0, 1)
    assert group.lower == pytest.approx(math.log(4))
    assert "group of 2 records" in group.meaning
    assert len(report.named("record leakage")) == 1
    assert {q.record for q in report.named("guess rise")} == {0, (0, 1)}


def test_full_disclosure_at_the_largest_entropy():
    report = audit_report(Mechanism(count(1), identity(2)), [1.0], unit="bits")
    assert report.named("record leakage")[1].upper == pytest.approx(1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"records": [2]}, "records: found 2"),
        ({"records": [0], "group_sizes": [2]}, "not both"),
        ({"group_sizes": [3]}, "group_sizes: found 3"),
        ({"group_sizes": [0]}, "group_sizes: found 0"),
        ({"prior": Prior([0.5, 0.5])}, "prior: .* 2 records"),
        ({"distortion": Distortion.hamming(["x"])}, "distortion: "),
        ({"unit": "bytes"}, "unit: found 'bytes'"),
    ],
)
def test_bad_arguments(options: dict, message: str):
    with pytest.raises(ValidationError, match=message):
        audit_report(Mechanism(count(2), identity(3)), **options)


def test_privacy_profile():
    mechanism = Mechanism(count(4), random_rounding(4, 3))
    report = audit_report(mechanism, unit="bits", epsilons=[1, "1/2", 1])
    found = report.named("record DP delta")
    assert [q.epsilon for q in found] == pytest.approx([0.5 / math.log(2), 1 / math.log(2)])
    for quantity, epsilon in zip(found, (0.5, 1.0), strict=True):
        assert quantity.upper == measures.record_privacy_profile(mechanism, epsilon)
        assert quantity.unit == "probability"
        assert quantity.to_dict()["epsilon"] == quantity.epsilon
    assert not audit_report(mechanism).named("record DP delta")


def test_what_one_output_says():
    # 1/2 and 1/4 of the counts 0 and 1 are published as 1, and none of the count 2.
    channel = Channel([[0.5, 0.5, 0], [0.25, 0.25, 0.5], [0, 0, 1]], [0, 1, 2], [0, 1, 2])
    mechanism = Mechanism.from_channel(RecordSpace([(0, 1, 2, 3)]), [*channel.matrix, [0, 0, 1]])
    prior = Prior([0.25, 0.5, 0.25, 0.0], range(4))
    found = audit_report(mechanism, prior=prior, outputs=[1]).named("posterior probability")
    assert [(q.outcome, q.value, q.upper) for q in found] == [(1, 0, 0.5), (1, 1, 0.5), (1, 2, 0)]
    assert "is 0 with probability 50.0 %; it was 25.0 % before" in found[0].meaning
    assert found[2].meaning == "The output 1 rules out that the record is 2."
    assert found[2].to_dict()["value"] == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"outputs": [5]}, r"outputs: found 5; .* under the prior are \[0\]"),
        ({"outputs": [1]}, r"outputs: found 1; .* under the prior are \[0\]"),
        ({"outputs": [0, 0]}, "outputs: found 0 and 0"),
        ({"outputs": 0}, "outputs: expected a sequence"),
        ({"outputs": [0], "prior": None}, "outputs: .* needs its prior"),
        ({"epsilons": [-1]}, "epsilons: found -1"),
        ({"epsilons": [math.inf]}, "epsilons: found inf"),
        ({"epsilons": 1}, "epsilons: expected a sequence"),
    ],
)
def test_bad_epsilons_and_outputs(options: dict, message: str):
    mechanism = Mechanism(count(1), identity(2))
    with pytest.raises(ValidationError, match=f"^{message}"):
        audit_report(mechanism, **{"prior": Prior([1, 0]), **options})


def test_a_real_output_has_its_leakage_alone():
    mechanism = Mechanism(count(3), Gaussian(2))
    report = audit_report(mechanism, [1.4], unit="bits", tol=1e-3)
    assert report.facts["outputs"] is None
    assert {q.name for q in report.quantities} == {
        names.RECORD_LEAKAGE,
        names.GUESS_BEFORE,
        names.GUESS_AFTER,
        names.RISE,
        names.BALANCE,
    }
    for quantity in report.named(names.RECORD_LEAKAGE):
        assert quantity.meaning.endswith("neither rounded nor clamped.")


def test_a_set_of_channels_says_what_it_leaves_open():
    printed = ChannelSet.from_printed([[0.67, 0.33], [0.5, 0.5], [0.33, 0.66]], 2)
    report = audit_report(Mechanism(count(2), printed), [1.0], tol=1e-2)
    leakages = report.named(names.RECORD_LEAKAGE)
    for quantity in [*leakages, *report.named(names.CAPACITY)]:
        assert quantity.status == "CERTIFIED"
        assert "The bounds hold for every channel in the set; 0.003" in quantity.meaning
        assert quantity.set_width == pytest.approx(0.0035, abs=5e-4)
        assert quantity.to_dict()["set_width"] == quantity.set_width
    assert len(leakages) == 2
    assert not report.named(names.BALANCE)
    assert html_page(report, ["set"]).count("The bounds hold for every channel in the set") >= 1


@pytest.mark.parametrize("noise", [Gaussian(1), ChannelSet([[0, 0.9]] * 2, [[0.1, 1]] * 2)])
@pytest.mark.parametrize(
    "asked",
    [
        {"prior": Prior([0.5, 0.5])},
        {"distortion": Distortion([[0, 1], [1, 0]])},
        {"epsilons": [1.0]},
        {"independent": {}},
    ],
)
def test_what_needs_a_channel_is_refused(noise: AdditiveNoise | ChannelSet, asked: dict):
    message = f"{next(iter(asked))}: needs a mechanism whose channel is known"
    with pytest.raises(ValidationError, match=message):
        audit_report(Mechanism(count(1), noise), **asked)


def test_prior_with_other_labels():
    mechanism = Mechanism(count(1), identity(2))
    with pytest.raises(ValidationError, match="they must be the values of the record"):
        audit_report(mechanism, prior=Prior([0.5, 0.5], ["no", "yes"]))


def test_too_much_doubt():
    mechanism = Mechanism(count(2), identity(3))
    with pytest.raises(InfeasibleError, match=r"than 2\.000000 bits"):
        audit_report(mechanism, [2.5], unit="bits")
    for floor in (-1.0, math.nan, math.inf):
        with pytest.raises((ValidationError, InfeasibleError), match="entropy_floor"):
            audit_report(mechanism, [floor])


class Listening(Progress):
    """Notes what each bracket is of, and in which unit."""

    def __init__(self) -> None:
        self.units: dict[str, str] = {}
        self.what = ""

    def begin(self, what: str) -> None:
        self.what = what

    def update(self, lower: float, upper: float, nodes: int) -> None:
        self.units[self.what] = self.unit


def test_progress_says_what_each_bracket_is_of_and_in_which_unit(rounding: Mechanism):
    heard = Listening()
    audit_report(rounding, [3.9], curves=True, progress=heard)
    assert heard.units["leakage at entropy floor 3.9 nats"] == "nats"
    for of in ("chance of guessing correctly after seeing the output", "increase in the chance"):
        units = {unit for what, unit in heard.units.items() if what.startswith(of)}
        assert units == {"probability"}
    assert any(re.match(r"leakage at one of \d+ entropy floors, ", what) for what in heard.units)


class Impatient(Progress):
    """Interrupts the first search, and takes notes."""

    def __init__(self) -> None:
        self.steps: list[str] = []

    def begin(self, what: str) -> None:
        self.steps.append(what)

    def update(self, lower: float, upper: float, nodes: int) -> None:
        self.interrupted = True
        raise KeyboardInterrupt


def test_interrupt_leaves_brackets_that_hold(rounding: Mechanism):
    progress = Impatient()
    report = audit_report(rounding, [3.9, 4.0], progress=progress)
    patient = audit_report(rounding, [3.9, 4.0])
    assert report.interrupted
    assert not patient.interrupted
    assert "leakage at entropy floor 4 nats" in progress.steps
    open_ones = [q for q in report.named("record leakage") if q.status == "BRACKETED"]
    assert open_ones
    for quick, exact in zip(
        report.named("record leakage"), patient.named("record leakage"), strict=True
    ):
        assert quick.lower <= exact.upper
        assert exact.lower <= quick.upper
        assert verify(quick.certificate).passed
    assert report.named("balance")[0].status == "BRACKETED"


def test_no_time_at_all(rounding: Mechanism):
    report = audit_report(rounding, [3.9], time_limit=0.0)
    assert report.named("record leakage")[1].status == "BRACKETED"


def test_capacity_report():
    report = capacity_report(binary_symmetric(0.1), unit="bits")
    quantity = one(report, "capacity")
    assert quantity.lower == pytest.approx(0.5310044, abs=1e-7)
    assert verify(quantity.certificate).passed
    assert report.facts == {"inputs": 2, "outputs": 2}


def test_json_has_no_infinity():
    report = audit_report(Mechanism(count(1), identity(2)))
    data = report.to_dict()
    (epsilon,) = [q for q in data["quantities"] if q["name"] == "record DP epsilon"]
    assert epsilon["upper"] == "inf"
    assert float(epsilon["upper"]) == math.inf
