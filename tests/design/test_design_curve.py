import copy
import json
from functools import partial

import numpy as np
import pytest

from cvxleak.audit import record_leakage
from cvxleak.core.errors import CertificateError, InfeasibleError, ValidationError
from cvxleak.design import MinDistortion, MinLeakage, calibrate, design_curve
from cvxleak.design.learned import Learned
from cvxleak.design.run import Options
from cvxleak.mechanisms import binary_symmetric
from cvxleak.model import Distortion, Mechanism
from cvxleak.problem.bound import Status
from cvxleak.proofs import verify
from cvxleak.proofs.design import prove_min_leakage
from cvxleak.queries import parity

WRONG = Distortion.hamming([0, 1])


def test_a_curve_is_convex_and_each_point_is_certified():
    problem = MinLeakage(parity(3), distortion=WRONG, budget=0.1, entropy_floor=1.5)
    curve = design_curve(problem, np.linspace(0.5, 0.05, 6), tol=1e-4)
    assert curve.budgets == tuple(sorted(curve.budgets))
    assert all(verify(bound.certificate).passed for bound in curve.bounds)
    assert (np.diff(curve.upper) < 0).all()
    assert (np.diff(curve.upper, 2) > -1e-4).all()
    assert curve.upper[-1] == 0.0
    alone = problem.solve(tol=1e-4)
    middle = design_curve(problem, [0.05, 0.1], tol=1e-4).bounds[1]
    assert alone.lower <= middle.upper
    assert middle.lower <= alone.upper


def test_later_points_need_fewer_rounds():
    problem = MinLeakage(parity(3), distortion=WRONG, budget=0.1, entropy_floor=1.5)
    rounds = [b.stats["rounds"] for b in design_curve(problem, [0.1, 0.12, 0.14]).bounds]
    assert max(rounds[1:]) < rounds[0]


def test_a_curve_of_least_distortion():
    problem = MinDistortion(parity(2), distortion=WRONG, budget=0.1, entropy_floor=0.0)
    curve = design_curve(problem, [0.0, 0.1, 0.3])
    assert (np.diff(curve.upper) < 0).all()
    assert len(curve.to_frame()) == 3


def test_bad_curves_are_named():
    problem = MinLeakage(parity(2), distortion=WRONG, budget=0.1, entropy_floor=0.0)
    with pytest.raises(ValidationError, match="budgets"):
        design_curve(problem, [])
    with pytest.raises(ValidationError, match="problem"):
        design_curve(parity(2), [0.1])  # pyright: ignore


def flipped(p):
    return Mechanism(parity(3), binary_symmetric(p))


def test_calibrated_noise_meets_the_target_and_less_does_not():
    found = calibrate(flipped, (0.0, 0.5), leakage=0.2, entropy_floor=1.5, resolution=1e-3)
    assert found.bound.upper <= 0.2
    assert found.gap <= 1e-3
    assert found.rejected < found.parameter
    assert found.rejected_bound.upper > 0.2
    assert record_leakage(flipped(found.parameter - 2e-3), 1.5).lower > 0.2


def test_calibration_of_a_whole_number():
    found = calibrate(lambda k: flipped(k / 20), (0, 10), leakage=0.2, entropy_floor=1.5)
    assert isinstance(found.parameter, int)
    assert found.rejected == found.parameter - 1
    reverse = calibrate(lambda k: flipped(0.5 - k / 20), (10, 0), leakage=0.2, entropy_floor=1.5)
    assert reverse.parameter == 10 - found.parameter


def test_calibration_at_the_ends():
    found = calibrate(flipped, (0.3, 0.5), leakage=0.6, entropy_floor=1.5)
    assert (found.parameter, found.rejected) == (0.3, None)
    with pytest.raises(InfeasibleError, match="leakage"):
        calibrate(flipped, (0.0, 0.1), leakage=0.1, entropy_floor=1.0)
    with pytest.raises(ValidationError, match="between"):
        calibrate(flipped, 0.3, leakage=0.1, entropy_floor=1.0)  # pyright: ignore


def test_a_search_keeps_its_adversaries():
    problem = MinLeakage(parity(3), distortion=WRONG, budget=0.1, entropy_floor=1.5)
    learned = Learned(problem.data, problem.goal, 0)
    assert len(learned.known) == 0
    begin = partial(problem.search, learned, Options())
    first = problem.go_on(begin, 1e-4, None)
    assert len(learned.known) > 0
    again = problem.go_on(begin, 1e-4, None)
    assert again.stats["rounds"] < first.stats["rounds"]


@pytest.mark.slow
def test_every_point_of_a_curve_is_proved_by_itself():
    problem = MinLeakage(parity(3), distortion=WRONG, budget=0.1, entropy_floor=1.5)
    curve = design_curve(problem, np.linspace(0.1, 0.2, 9), tol=0.02)
    for bound, budget in zip(curve.bounds, curve.budgets, strict=True):
        assert bound.status is Status.CERTIFIED
        answer = verify(bound.certificate)
        assert answer.passed, answer.reason
        assert bound.witness.distortion <= budget
        assert record_leakage(bound.witness.mechanism, 1.5, tol=1e-4).lower <= bound.upper


@pytest.mark.slow
def test_every_point_of_a_curve_of_distortions_is_proved_by_itself():
    problem = MinDistortion(parity(3), distortion=WRONG, budget=0.1, entropy_floor=1.5)
    curve = design_curve(problem, np.linspace(0.1, 0.2, 9), tol=0.02)
    for bound, budget in zip(curve.bounds, curve.budgets, strict=True):
        assert bound.status is Status.CERTIFIED
        assert verify(bound.certificate).passed
        assert bound.witness.leakage <= budget
    # The curves are inverses of each other: what leaks L at least costs D, and the reverse.
    least = MinLeakage(parity(3), distortion=WRONG, budget=curve.upper[3], entropy_floor=1.5).solve(
        tol=1e-3
    )
    assert least.lower <= curve.budgets[3]


def test_a_mixture_whose_share_is_tampered_with_proves_nothing():
    given = {"distortion": WRONG, "entropy_floor": 1.5}
    least = MinLeakage(parity(3), budget=0.5, **given).solve(tol=0.02).certificate
    # The witness of least distortion is a channel mixed with a constant one.
    bound = MinDistortion(parity(3), budget=0.05, **given).solve(tol=0.05)
    told = bound.certificate
    proof = dict(least.proof) | {"leakage": told.proof["leakage"]}
    content, witness, proof = (
        json.loads(json.dumps(x)) for x in (least.problem, told.witness, proof)
    )
    proved = prove_min_leakage(content, witness, proof)[1]
    assert proved == pytest.approx(bound.witness.leakage, rel=1e-9)
    for change in (0.9, 1.1):
        wrong = copy.deepcopy(proof)
        wrong["leakage"]["parts"][0]["share"] *= change
        try:
            upper = prove_min_leakage(content, witness, wrong)[1]
        except CertificateError:
            continue
        assert upper > proved
    wrong = copy.deepcopy(proof)
    wrong["leakage"]["parts"][0]["leakage"] = proof["leakage"]
    with pytest.raises(CertificateError, match="must not be a mixture"):
        prove_min_leakage(content, witness, wrong)
