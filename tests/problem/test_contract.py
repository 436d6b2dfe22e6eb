"""The contract that every problem meets, whatever its family."""

import pickle
import signal
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from cvxleak import Bound, Mechanism, Status, Stopped, release_problem, verify
from cvxleak.audit import Adversary, IndependentAdversary, ProductLeakage, RecordLeakage
from cvxleak.capacities import Capacity, RenyiCapacity
from cvxleak.core import SolveInterrupted, ValidationError
from cvxleak.design import DesignForPrior, MinDistortion, MinLeakage
from cvxleak.envelope import FailureProbability, PMLEnvelope, PMLMechanism
from cvxleak.local_dp import MinDistortionLocalDP, MinInformation, MinLocalDP
from cvxleak.mechanisms import binary_symmetric, random_rounding
from cvxleak.problem import Problem
from cvxleak.queries import count, parity

LAW = [0.5, 0.3, 0.2]
CHANNEL = [[0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0.1, 0.1, 0.8]]
JOINT = [[[0.024, 0.228], [0.063, 0.203]], [[0.203, 0.013], [0.228, 0.038]]]
ROUNDED = Mechanism(count(3), random_rounding(3, base=3))
DESIGN: dict[str, Any] = {"distortion": 1 - np.eye(2), "budget": 0.2, "entropy_floor": 0.5}

PROBLEMS: dict[str, Callable[[], Any]] = {
    "capacity": lambda: Capacity([[0.9, 0.1], [0.3, 0.7]]),
    "Rényi capacity": lambda: RenyiCapacity([[0.9, 0.1], [0.3, 0.7]], 2.0),
    "failure probability": lambda: FailureProbability(LAW, CHANNEL, 0.4),
    "PML envelope": lambda: PMLEnvelope(LAW, CHANNEL, 0.1),
    "PML mechanism": lambda: PMLMechanism(LAW, np.eye(3), 0.4),
    "record leakage": lambda: RecordLeakage(ROUNDED, 1.0),
    "product leakage": lambda: ProductLeakage(Mechanism(parity(3), binary_symmetric(0.1)), 0.6),
    "independent records": lambda: ProductLeakage(ROUNDED, least_probability=0.2),
    "independent records of an entropy": lambda: ProductLeakage(ROUNDED, record_floor=0.4),
    "independent records of known distributions": lambda: ProductLeakage(
        ROUNDED, laws=[[0.3, 0.7], [0.8, 0.2]]
    ),
    "least leakage": lambda: MinLeakage(parity(2), **DESIGN),
    "least distortion": lambda: MinDistortion(parity(2), **DESIGN),
    "design for a prior": lambda: DesignForPrior(LAW, 1 - np.eye(3), 0.2),
    "least epsilon": lambda: MinLocalDP([LAW], 0.25),
    "least distortion at epsilon": lambda: MinDistortionLocalDP([LAW], 1.5),
    "least information": lambda: MinInformation([LAW], 0.25),
    "release distortion": lambda: release_problem(JOINT, 0.05, 0.1),
    "release information": lambda: release_problem(JOINT, 0.3, 0.3, "information", unit="bits"),
}
"""One of each, small."""


@pytest.fixture(params=sorted(PROBLEMS), scope="module")
def make(request: pytest.FixtureRequest) -> Callable[[], Any]:
    return PROBLEMS[request.param]


@pytest.fixture(scope="module")
def bound(make: Callable[[], Any]) -> Bound:
    return make().solve()


def test_problems_are_values(make: Callable[[], Any]):
    problem, same = make(), make()
    assert isinstance(problem, Problem)
    assert problem == same
    assert hash(problem) == hash(same)
    again = pickle.loads(pickle.dumps(problem))
    assert again == problem
    assert "object at 0x" not in repr(problem)


def test_it_says_what_it_is(make: Callable[[], Any]):
    problem = make()
    assert problem.name
    assert problem.unit
    assert problem.tolerance > 0
    assert isinstance(problem.maximize, bool)


def test_the_bracket_is_proved_and_closed(make: Callable[[], Any], bound: Bound):
    problem = make()
    assert (bound.name, bound.unit) == (problem.name, problem.unit)
    assert bound.status is Status.CERTIFIED
    assert isinstance(bound.stats["stopped"], Stopped)
    assert bound.stats["seconds"] >= 0
    assert ", because " in bound.stats["method"]
    assert "\n" not in bound.stats["method"]
    assert bound.certificate is not None
    assert bound.certificate.kind == problem.kind
    answer = verify(bound.certificate)
    assert answer.passed, answer.reason
    proved = bound.to("nats")
    assert proved.lower <= answer.lower <= answer.upper <= proved.upper


def test_tol_has_one_meaning(make: Callable[[], Any]):
    problem = make()
    for tol in (1e-2, 1e-5):
        found = problem.solve(tol=tol)
        allowed = max(tol * abs(found.upper), min(tol, 1e-7) * problem.scale)
        assert (found.status is Status.CERTIFIED) is (found.gap <= allowed)
    for wrong in (-1.0, 1.0, float("nan"), "much"):
        with pytest.raises(ValidationError, match="tol"):
            problem.solve(tol=wrong)


def test_no_time_is_enough_for_a_bracket(make: Callable[[], Any], bound: Bound):
    late = make().solve(time_limit=0.0)
    assert late.lower <= bound.upper
    assert bound.lower <= late.upper
    assert late.certificate is not None
    assert verify(late.certificate).passed
    if late.status is Status.BRACKETED:
        assert late.stats["stopped"] is Stopped.TIME_LIMIT
    with pytest.raises(ValidationError, match="time_limit"):
        make().solve(time_limit=-1.0)


def test_a_search_ends_at_its_limit_of_work(make: Callable[[], Any], bound: Bound):
    early = make().solve(work_limit=0.0)
    assert early.lower <= bound.upper
    assert bound.lower <= early.upper
    assert verify(early.certificate).passed
    if early.status is Status.BRACKETED:
        assert early.stats["stopped"] is Stopped.WORK_LIMIT
    with pytest.raises(ValidationError, match="work_limit"):
        make().solve(work_limit=-1.0)


def test_refining_goes_on(make: Callable[[], Any], bound: Bound):
    late = make().solve(time_limit=0.0)
    finer = late.refine(1e-6)
    assert finer.status is Status.CERTIFIED
    assert late.lower <= finer.lower <= finer.upper <= late.upper
    again = finer.refine(1e-2)
    assert (again.lower, again.upper) == (finer.lower, finer.upper)


def test_its_own_witness_is_feasible_and_attains_its_end(make: Callable[[], Any], bound: Bound):
    problem = make()
    check = problem.check(bound.witness, bound=bound)
    assert check.feasible, str(check)
    assert check.maximize is problem.maximize
    attained = bound.lower if problem.maximize else bound.upper
    assert check.value == pytest.approx(attained, abs=1e-7 * problem.scale)
    assert problem.check(bound.witness).bound == bound


def array_of(witness: Any) -> Any:
    """Return the numbers of a witness, as somebody else's solver would have them."""
    if isinstance(witness, IndependentAdversary):
        return [np.array(law) for law in witness.laws]
    if isinstance(witness, Adversary):
        return witness.expand().probabilities
    channel = getattr(witness, "channel", witness)
    return np.array(getattr(channel, "matrix", getattr(channel, "probabilities", channel)))


def test_a_candidate_is_repaired_and_proved(make: Callable[[], Any], bound: Bound):
    problem, rng = make(), np.random.default_rng(1)
    same = problem.repair(bound.witness, bound=bound)
    assert same.status is Status.CERTIFIED
    assert (same.lower, same.upper) == pytest.approx((bound.lower, bound.upper), abs=1e-9)
    given = array_of(bound.witness)
    for noise in (1e-9, 0.05):
        if isinstance(given, list):
            moved: Any = [law + noise * rng.random(len(law)) for law in given]
        else:
            moved = given + noise * rng.random(given.shape)
        found = problem.repair(moved, bound=bound)
        check = problem.check(found.witness, bound=bound)
        attained = found.lower if problem.maximize else found.upper
        assert check.feasible, str(check)
        assert check.value == pytest.approx(attained, abs=1e-6 * problem.scale)
        assert found.gap >= bound.gap - 1e-12 or found.status is Status.CERTIFIED
        answer = verify(found.certificate)
        assert answer.passed, answer.reason
        if noise < 1e-6:  # repaired by no more than it was moved
            end = bound.lower if problem.maximize else bound.upper
            assert attained == pytest.approx(end, abs=1e-3 * problem.scale)
    with pytest.raises(ValidationError, match="candidate"):
        problem.repair("none", bound=bound)


def test_ctrl_c_before_the_search_still_gives_a_bracket(make: Callable[[], Any], monkeypatch):
    problem = make()
    begin = type(problem)._search
    begun = []

    def pressed(self: Problem, **options: Any) -> Any:
        begun.append(self)
        if len(begun) == 1:
            signal.raise_signal(signal.SIGINT)
        return begin(self, **options)

    monkeypatch.setattr(type(problem), "_search", pressed)
    with pytest.raises(SolveInterrupted) as caught:
        problem.solve()
    reached = caught.value.bound
    assert reached is not None
    assert reached.stats["stopped"] is Stopped.INTERRUPTED
    assert verify(reached.certificate).passed


def test_options_that_it_does_not_have_are_refused(make: Callable[[], Any]):
    with pytest.raises(TypeError):
        make().solve(no_such_option=1)


def test_it_has_a_row_in_a_table(bound: Bound):
    pytest.importorskip("pandas")
    frame = bound.to_frame()
    assert list(frame["lower"]) == [bound.lower]
    assert list(frame["status"]) == [bound.status.name]
