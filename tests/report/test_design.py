"""What the report on a design says, compared with the problem itself and with closed forms."""

import math

import pytest

from cvxleak.core.errors import InfeasibleError, ValidationError
from cvxleak.design import MinDistortion, MinLeakage
from cvxleak.proofs import verify
from cvxleak.queries import parity
from cvxleak.report import Progress, Report, design_report

WRONG = [[0, 1], [1, 0]]


def one(report: Report, name: str):
    (quantity,) = report.named(name)
    assert quantity.lower <= quantity.upper
    return quantity


def entropy(p: float) -> float:
    return -p * math.log(p) - (1 - p) * math.log(1 - p)


def test_least_leakage():
    # b = 0: log 2 - h(D), with the derivative log(D / (1 - D)).
    report = design_report(
        MinLeakage(parity(2), distortion=WRONG, budget=0.1, entropy_floor=0.0), tol=1e-5
    )
    found = one(report, "least leakage")
    exact = math.log(2) - entropy(0.1)
    assert found.lower - 1e-9 <= exact <= found.upper + 1e-9
    assert verify(found.certificate).passed
    leaks = one(report, "leakage of the design")
    assert leaks.status == "BOUND"
    assert leaks.upper == pytest.approx(exact, abs=1e-5)
    assert leaks.lower == pytest.approx(exact, abs=1e-4)
    assert one(report, "distortion of the design").upper <= 0.1
    price = one(report, "price of the budget")
    assert price.upper == pytest.approx(math.log(0.1 / 0.9), rel=1e-2)
    assert price.unit == "nats/d"
    assert report.channel is not None
    assert report.channel.shape == (2, 2)
    assert report.facts["binding"] == ["distortion", "leakage about record 0"]
    assert (report.facts["rows"], report.facts["budget"]) == (2, 0.1)
    assert not report.interrupted


def test_least_distortion_in_bits():
    budget = math.log(2) - entropy(0.1)
    report = design_report(
        MinDistortion(parity(2), distortion=WRONG, budget=budget, entropy_floor=0.0), unit="bits"
    )
    found = one(report, "least distortion")
    assert found.unit == "distortion"
    assert found.lower - 1e-9 <= 0.1 <= found.upper + 1e-9
    assert report.facts["budget"] == pytest.approx(budget / math.log(2))
    assert one(report, "leakage of the design").upper <= budget / math.log(2) * (1 + 1e-9)
    price = one(report, "price of the budget")
    assert price.upper == pytest.approx(math.log(2) / math.log(0.1 / 0.9), rel=2e-2)
    assert price.unit == "d/bits"
    assert one(report, "price of the floor").unit == "d/bits"


def test_given_priors_have_no_price_of_the_floor():
    report = design_report(
        MinLeakage(parity(2), distortion=WRONG, budget=0.1, priors=[[0.25] * 4, [0.4, 0.1] * 2])
    )
    assert not report.named("price of the floor")
    assert report.facts["entropy_floor"] is None


def test_groups_and_the_whole():
    free = {"distortion": WRONG, "budget": 0.1, "entropy_floor": 0.0}
    group = design_report(MinLeakage(parity(2), objective="group", size=2, **free))
    assert (group.facts["objective"], group.facts["group_size"]) == ("group", 2)
    total = design_report(MinLeakage(parity(2), objective="total", **free))
    exact = math.log(2) - entropy(0.1)
    for report in (group, total):
        assert one(report, "least leakage").upper == pytest.approx(exact, abs=1e-3)
        assert one(report, "leakage of the design").lower == pytest.approx(exact, abs=1e-2)


def test_nothing_to_leak():
    report = design_report(MinLeakage(parity(2), distortion=WRONG, budget=0.5, entropy_floor=0.0))
    assert one(report, "least leakage").upper == 0
    assert one(report, "leakage of the design").upper == 0


def test_ctrl_c_leaves_a_bracket():
    class Impatient(Progress):
        def begin(self, what: str) -> None:
            self.what = what

    problem = MinLeakage(parity(3), distortion=WRONG, budget=0.1, entropy_floor=1.5)
    progress = Impatient()
    quick = design_report(problem, time_limit=0.0, progress=progress)
    assert progress.what == "design"
    patient = design_report(problem, tol=1e-4)
    assert one(quick, "least leakage").lower <= one(patient, "least leakage").upper
    assert one(patient, "least leakage").lower <= one(quick, "least leakage").upper
    assert verify(one(quick, "least leakage").certificate).passed


def test_bad_arguments():
    problem = MinLeakage(parity(2), distortion=WRONG, budget=0.1, entropy_floor=0.0)
    for options, message in (
        ({"unit": "bytes"}, "unit: found"),
        ({"tol": -1}, "tol: found -1"),
        ({"time_limit": -1}, "time_limit: found -1"),
    ):
        with pytest.raises(ValidationError, match=message):
            design_report(problem, **options)
    with pytest.raises(ValidationError, match="problem: expected MinLeakage or MinDistortion"):
        design_report("parity")  # pyright: ignore[reportArgumentType]
    dear = MinLeakage(parity(2), distortion=[[1, 2], [2, 1]], budget=0.5, entropy_floor=0.0)
    with pytest.raises(InfeasibleError, match="budget"):
        design_report(dear)
