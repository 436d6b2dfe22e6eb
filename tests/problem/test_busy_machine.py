"""A busy machine gives the same answers; what a time limit cuts short does little after it."""

import itertools

import numpy as np
import pytest

from cvxleak.design import design_for_prior, min_distortion, min_leakage
from cvxleak.envelope import envelope_curve, failure_probability, pml_envelope
from cvxleak.local_dp import (
    least_distortion,
    min_distortion_local_dp,
    min_information,
    min_local_dp,
)
from cvxleak.problem.bound import Status, Stopped
from cvxleak.proofs import verify
from cvxleak.queries import count, parity
from cvxleak.release import release_problem

WRONG = [[0, 1], [1, 0]]
STEPS = np.abs(np.subtract.outer(range(4), range(4))).astype(float)
LAWS = [[0.5, 0.2, 0.2, 0.1], [0.3, 0.4, 0.2, 0.1]]
ROWS = np.random.default_rng(1).dirichlet(np.ones(5), size=4)
JOINT = np.random.default_rng(2).dirichlet(np.ones(12)).reshape(2, 2, 3)


FLOOR = {"entropy_floor": 1.5, "tol": 1e-3}
LATE = {
    "least leakage": lambda **o: min_leakage(parity(3), distortion=WRONG, budget=0.1, **FLOOR, **o),
    "least distortion": lambda **o: min_distortion(
        count(3), distortion=STEPS, budget=0.2, **(FLOOR | {"tol": 1e-2}), **o
    ),
    "own constraints": lambda **o: min_leakage(
        parity(2),
        distortion=WRONG,
        budget=0.1,
        constraints=[lambda q: q[0, 0] >= 0.7],
        **(FLOOR | {"entropy_floor": 0.7}),
        **o,
    ),
    "given priors": lambda **o: min_leakage(
        parity(2), distortion=WRONG, budget=0.1, priors=[[0.4, 0.3, 0.2, 0.1]], **o
    ),
    "fixed prior": lambda **o: design_for_prior(LAWS[0], STEPS, 0.4, **o),
    "fixed priors": lambda **o: design_for_prior(LAWS, STEPS, 0.4, **o),
    "local-DP distortion": lambda **o: min_distortion_local_dp(LAWS, 1.0, STEPS, **o),
    "local-DP distortion, Hamming": lambda **o: min_distortion_local_dp(LAWS, 1.0, **o),
    "local-DP distortion, delta": lambda **o: min_distortion_local_dp(
        LAWS, 1.0, STEPS, delta=0.1, **o
    ),
    "local-DP epsilon": lambda **o: min_local_dp(LAWS, 0.4, STEPS, **o),
    "local-DP epsilon, Hamming": lambda **o: min_local_dp(LAWS, 0.3, **o),
    "local-DP epsilon, delta": lambda **o: min_local_dp(LAWS, 0.4, STEPS, delta=0.1, **o),
    "information": lambda **o: min_information(LAWS, 0.4, STEPS, **o),
    "PML envelope": lambda **o: pml_envelope(LAWS[0], ROWS, 0.3, **o),
    "failure probability": lambda **o: failure_probability(LAWS[0], ROWS, 0.5, **o),
    "release": lambda **o: release_problem(JOINT, 0.2, 0.3).solve(**o),
}


def told(bound):
    """What an answer says, but for the seconds that it took."""
    witness = bound.witness
    matrix = getattr(getattr(witness, "channel", witness), "matrix", witness)
    rounds = [(r.lower, r.upper, r.cuts) for r in getattr(witness, "rounds", ())]
    counts = {
        key: value
        for key, value in bound.stats.items()
        if isinstance(value, (int, Stopped)) or key == "work"
    }
    return bound.lower, bound.upper, np.asarray(matrix).tolist(), rounds, counts


@pytest.mark.parametrize("name", LATE)
def test_the_same_answer_on_a_busy_machine(name, monkeypatch):
    """Ten seconds pass whenever the clock is read, and the limit is not reached."""
    plain = told(LATE[name](time_limit=None))
    ticks = itertools.count(0.0, 10.0)
    for clock in ("monotonic", "perf_counter"):
        monkeypatch.setattr(f"time.{clock}", lambda: next(ticks))
    assert told(LATE[name](time_limit=1e9)) == plain


def test_the_same_curve_on_a_busy_machine(monkeypatch):
    plain = envelope_curve(LAWS[0], ROWS)
    ticks = itertools.count(0.0, 10.0)
    for clock in ("monotonic", "perf_counter"):
        monkeypatch.setattr(f"time.{clock}", lambda: next(ticks))
    busy = envelope_curve(LAWS[0], ROWS, time_limit=1e9)
    for delta in (0.1, 0.3, 0.7):
        assert np.array_equal(busy.at(delta), plain.at(delta))


@pytest.mark.parametrize("name", LATE)
def test_no_time_at_all_still_gives_a_bracket(name):
    late, full = LATE[name](time_limit=0.0), LATE[name](time_limit=None)
    assert late.lower <= full.upper
    assert full.lower <= late.upper
    assert verify(late.certificate).passed
    assert isinstance(late.stats["stopped"], Stopped)
    if late.status is Status.BRACKETED:
        assert late.stats["stopped"] is Stopped.TIME_LIMIT


def test_one_constant_output_is_proved_when_time_is_up(monkeypatch):
    calls = itertools.count()
    prove = least_distortion.prove_distortion

    def counted(*args):
        next(calls)
        return prove(*args)

    monkeypatch.setattr(least_distortion, "prove_distortion", counted)
    rng = np.random.default_rng(0)
    laws, costs = rng.dirichlet(np.ones(20), size=2), rng.random((20, 20))
    bound = min_distortion_local_dp(laws, 1.0, costs, time_limit=0.0)
    constants = (laws @ costs).max(axis=0)
    assert bound.upper == pytest.approx(constants.min())
    assert next(calls) <= 2
