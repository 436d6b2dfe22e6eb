"""The alternating method: its steps can be replaced, and its results are judged by the bracket."""

from collections.abc import Sequence

import cvxpy as cp
import numpy as np
import pytest

from cvxleak import verify
from cvxleak.core import ValidationError
from cvxleak.design import Alternation, MinDistortion, MinLeakage, Opponent
from cvxleak.model import Distortion
from cvxleak.problem import verify_iterates
from cvxleak.queries import count, parity


@pytest.fixture(scope="module")
def problem() -> MinLeakage:
    return MinLeakage(
        count(2), distortion=Distortion.absolute(range(3)), budget=0.4, entropy_floor=1.0
    )


@pytest.fixture(scope="module")
def bound(problem):
    return problem.solve(tol=1e-4)


class Forgetful(Alternation):
    """A master that knows the last adversary only."""

    def master_step(self, opponents: Sequence[Opponent]) -> np.ndarray:
        return super().master_step(opponents[-1:])


@pytest.mark.slow
def test_a_master_that_remembers_ends_at_the_optimum(problem, bound):
    run = Alternation(problem).run()
    report = verify_iterates(problem, run.history["channel"][1:], bound=bound)
    assert report.optimal, str(report)
    assert bound.lower - 1e-6 <= run.value <= bound.upper * (1 + 1e-3)
    assert verify(report.repaired.certificate).passed


def test_a_master_that_forgets_falls_short_and_is_told_so(problem, bound):
    run = Forgetful(problem).run(max_iterations=8)
    report = verify_iterates(problem, run.history["channel"][1:], bound=bound)
    assert not report.optimal
    assert report.last.shortfall[0] > 1e-3
    assert report.first_setback is not None


def test_least_distortion():
    problem = MinDistortion(
        parity(2), distortion=Distortion.hamming([0, 1]), budget=0.1, entropy_floor=0.5
    )
    run = Alternation(problem).run()
    assert verify_iterates(problem, run.point).optimal
    assert run.history["leakage"][-1] <= 0.1 + 1e-6


def test_constraints_of_the_user_are_part_of_the_master():
    problem = MinLeakage(
        count(2),
        distortion=Distortion.absolute(range(3)),
        budget=0.4,
        entropy_floor=1.0,
        constraints=lambda q: [[q[0, 0] == q[2, 2]], cp.norm(q[1] - q[2], 1) <= 0.5],
    )
    q = Alternation(problem).run(max_iterations=5).point
    assert q[0, 0] == pytest.approx(q[2, 2], abs=1e-6)
    assert np.abs(q[1] - q[2]).sum() <= 0.5 + 1e-6


def test_a_stopping_rule_and_an_adversary_of_ones_own(problem):
    class Once(Alternation):
        def adversary_step(self, channel):
            return Opponent(np.full(4, 0.25), 0, 0.0)

        def stop(self, channels, values):
            return len(channels) == 2

    run = Once(problem).run()
    assert run.iterations == 1
    assert run.stopped == "the stopping rule is met"
    assert len(run.history["objective"]) == 2


def test_what_it_cannot_do_is_refused(problem):
    with pytest.raises(ValidationError, match="problem"):
        Alternation(
            MinLeakage(count(2), distortion=problem.distortion, budget=0.4, priors=[[0.25] * 4])
        )
    with pytest.raises(ValidationError, match="starts"):
        Alternation(problem, starts=0)
