import math

import numpy as np
import pytest

from cvxleak.audit import record_leakage
from cvxleak.core.clock import Clock
from cvxleak.design import MinDistortion, MinLeakage
from cvxleak.design.conic import Conic
from cvxleak.design.cuts import Cuts
from cvxleak.design.fallback_channels import FallbackChannels
from cvxleak.design.learned import Learned
from cvxleak.design.run import Options
from cvxleak.design.search import WithoutFloor
from cvxleak.measures import lumped_entropy
from cvxleak.model import Distortion, Mechanism
from cvxleak.problem import Gap, Status
from cvxleak.proofs import verify
from cvxleak.queries import count, parity

SHARP = (math.inf, math.inf)
"""No bracket of the floor's own: to half the tolerance."""


def least_leakage(n, budget, floor):
    return MinLeakage(
        count(n),
        distortion=Distortion.absolute(range(n + 1)),
        budget=budget,
        entropy_floor=floor,
    )


def learned_of(problem):
    return Learned(problem.data, problem.goal, 0)


def without_floor(learned, budget):
    data = learned.data
    conic = Conic(data.costs.price.shape, None, None, {})
    fallbacks = FallbackChannels(data, learned.goal, budget, conic)
    return WithoutFloor(learned.without_floor, fallbacks, conic, Options(), Gap(1e-3), Clock())


def aside(problem, ends=SHARP):
    learned = learned_of(problem)
    run = without_floor(learned, problem.budget)
    assert run.find(ends, math.inf)
    return learned, run


def test_the_channel_that_is_found_is_the_best_without_a_floor():
    problem = least_leakage(6, 0.5, 2.0)
    _, run = aside(problem)
    truth = least_leakage(6, 0.5, 0.0).solve(tol=1e-4)
    assert truth.lower <= run.candidate.worst * (1 + 1e-9)
    assert run.candidate.worst <= truth.upper * (1 + 2e-3)
    channel = problem.data.channel(run.candidate.matrix)
    # What it leaks is no guess: an audit proves the same.
    query = problem.data.rows.query
    audit = record_leakage(Mechanism(query, channel.matrix), 0.0, tol=1e-6)
    assert audit.upper == pytest.approx(run.candidate.worst, rel=1e-5)


def test_least_distortion_without_a_floor():
    distortion = Distortion.absolute(range(5))
    given = {"distortion": distortion, "budget": 0.2}
    problem = MinDistortion(count(4), entropy_floor=1.0, **given)
    _, run = aside(problem)
    truth = MinDistortion(count(4), entropy_floor=0.0, **given).solve(tol=1e-4)
    assert truth.lower * (1 - 1e-9) <= run.candidate.worth <= truth.upper * (1 + 2e-3)


def test_it_ends_when_its_channels_are_of_no_use():
    problem = least_leakage(6, 0.5, 3.5)
    _, useful = aside(problem)
    _, useless = aside(problem, (0.0, 0.5 * useful.candidate.worst))
    assert useless.lower.value > 0.5 * useful.candidate.worst
    assert len(useless.rounds) < len(useful.rounds)


def test_it_goes_on_where_its_work_was_done():
    problem = least_leakage(6, 0.5, 2.0)
    run = without_floor(learned_of(problem), 0.5)
    assert not run.find(SHARP, 0.0)
    assert not run.rounds
    assert run.find(SHARP, math.inf)
    rounds = len(run.rounds)
    assert run.find(SHARP, math.inf)
    assert len(run.rounds) == rounds + 1


def test_its_adversaries_are_moved_to_the_floor():
    floor = 3.9
    problem = least_leakage(6, 0.5, floor)
    learned, run = aside(problem)
    lumped = learned.oracle.lumped((0,), None)
    doubts = []
    for cut in run.learned.known:
        doubts.append(lumped_entropy(cut.weights, lumped))
        moved = learned.oracle.moved(cut)
        assert lumped_entropy(moved.weights, lumped) >= floor - 1e-12
        assert moved.joint.sum() == pytest.approx(1.0)
    assert min(doubts) < floor


def test_where_there_is_nothing_to_look_for():
    distortion = Distortion.hamming([0, 1])
    given = {"distortion": distortion, "budget": 0.1}
    without = MinLeakage(parity(3), entropy_floor=0.0, **given)
    total = MinLeakage(parity(3), entropy_floor=1.0, objective="total", **given)
    listed = MinLeakage(parity(3), priors=[np.full(8, 1 / 8)], **given)
    for problem in (without, total, listed):
        assert learned_of(problem).without_floor is None
    assert learned_of(least_leakage(100, 2.0, 30.0)).without_floor is None


def test_a_large_count_is_certified_by_a_channel_that_is_easy_to_audit():
    bound = least_leakage(12, 0.9, 5.2).solve(tol=1e-2, time_limit=None)
    assert bound.status is Status.CERTIFIED
    assert verify(bound.certificate).passed
    assert bound.upper - bound.lower <= 1e-2 * bound.upper


def test_cuts_are_dropped_when_they_do_not_count():
    problem = least_leakage(4, 0.5, 1.5)
    oracle = learned_of(problem).oracle
    rng = np.random.default_rng(0)
    made = [oracle._cut((0,), w) for w in rng.dirichlet(np.ones(8), size=120)]
    cuts = Cuts(made)
    assert len(cuts.near(made[3], 1e-9)) == 1
    assert len(cuts.near(made[3], 3.0)) == 120
    theta = np.where(np.arange(120) < 10, 1.0, 0.0)
    cuts.used(theta)
    cuts.drop(2)
    assert len(cuts) == 120  # idle once only
    cuts.used(theta[::-1].copy())
    cuts.drop(2)
    assert len(cuts) == 20
    assert {id(cut) for cut in cuts.by_use[:10]} == {id(cut) for cut in made[-10:]}
