import dataclasses
import math

import numpy as np
import pytest

from cvxleak.audit import record_leakage
from cvxleak.core.clock import Clock
from cvxleak.core.errors import InfeasibleError, SolveInterrupted
from cvxleak.design import MinDistortion, MinLeakage, master, min_distortion, min_leakage
from cvxleak.design import adversary_oracle as adversaries
from cvxleak.design.learned import Learned
from cvxleak.design.run import Options
from cvxleak.design.search import DesignSearch
from cvxleak.model import Distortion
from cvxleak.problem import Gap, Status, Stopped
from cvxleak.proofs import verify
from cvxleak.queries import count, parity

WRONG = Distortion.hamming([0, 1])


def check(bound, tol=1e-3):
    assert bound.status is Status.CERTIFIED
    assert bound.upper - bound.lower <= max(tol * bound.upper, 1e-7)
    answer = verify(bound.certificate)
    assert answer.passed, answer.reason
    assert bound.unit == "distortion"
    return bound.witness


@pytest.mark.parametrize(("leakage", "budget"), [(0.435088, 0.05), (0.327610, 0.1), (0.17332, 0.2)])
def test_it_is_the_inverse_of_least_leakage(leakage, budget):
    bound = min_distortion(parity(3), distortion=WRONG, budget=leakage, entropy_floor=1.5)
    check(bound)
    assert bound.lower - 2e-5 <= budget <= bound.upper + 2e-5


@pytest.mark.parametrize("flip", [0.05, 0.2, 0.4])
def test_two_bits_without_doubt(flip):
    # LEAKAGE Fig. 7: the binary symmetric channel is optimal.
    budget = math.log(2) + flip * math.log(flip) + (1 - flip) * math.log(1 - flip)
    bound = min_distortion(parity(2), distortion=WRONG, budget=budget, entropy_floor=0.0)
    check(bound)
    assert bound.lower - 1e-9 <= flip <= bound.upper + 1e-9


def test_the_witness_is_within_the_leakage_budget():
    bound = min_distortion(
        count(2), distortion=Distortion.absolute(range(3)), budget=0.2, entropy_floor=0.9
    )
    design = check(bound)
    assert record_leakage(design.mechanism, 0.9, tol=1e-6).lower <= 0.2
    assert design.leakage <= 0.2
    back = min_leakage(
        count(2), distortion=Distortion.absolute(range(3)), budget=bound.upper, entropy_floor=0.9
    )
    assert back.lower <= 0.2
    assert back.upper >= 0.2 - 2e-3


def test_nothing_may_leak():
    bound = min_distortion(parity(3), distortion=WRONG, budget=0.0, entropy_floor=1.5, tol=1e-4)
    design = check(bound)
    assert bound.upper == 0.5
    assert design.leakage == 0.0


def test_a_large_budget_costs_nothing():
    bound = min_distortion(parity(3), distortion=WRONG, budget=1.0, entropy_floor=1.5)
    check(bound)
    assert (bound.lower, bound.upper) == (0.0, 0.0)


def test_a_coarse_output_costs_at_least_its_rounding():
    rounded = Distortion.absolute(range(4), [0, 3])
    bound = min_distortion(count(3), distortion=rounded, budget=1.0, entropy_floor=1.0)
    check(bound)
    assert bound.upper == 0.75


def test_the_worst_of_several_sources_counts():
    arguments = {"distortion": WRONG, "budget": 0.2, "entropy_floor": 1.5}
    sources = [[0.3, 0.7], [0.6, 0.4]]
    together = min_distortion(parity(3), sources=sources, **arguments)
    check(together)
    each = [min_distortion(parity(3), source=source, **arguments) for source in sources]
    assert max(bound.lower for bound in each) <= together.upper


@pytest.mark.parametrize("objective", ["group", "total"])
def test_other_objectives(objective):
    bound = min_distortion(
        parity(2), distortion=WRONG, budget=0.2, entropy_floor=0.9, objective=objective, size=2
    )
    check(bound)


def test_known_priors():
    prior = [0.4, 0.1, 0.1, 0.4]
    bound = min_distortion(
        parity(2), distortion=WRONG, budget=0.05, priors=[[0.9, 0, 0, 0.1], prior]
    )
    check(bound)


@pytest.mark.parametrize(
    "rule",
    [
        lambda Q: Q[0, 0] >= 0.95,
        lambda Q: [Q[0, 0] >= 0.85, Q[1, 1] >= 0.6],
    ],
)
def test_own_constraints(rule):
    bound = min_distortion(
        parity(3), distortion=WRONG, budget=0.2, entropy_floor=1.5, constraints=rule, rows="orbits"
    )
    design = check(bound)
    assert design.user_violation < 1e-7
    free = min_distortion(parity(3), distortion=WRONG, budget=0.2, entropy_floor=1.5)
    assert bound.upper >= free.lower


def test_constraints_that_leak_too_much_name_the_least():
    def rule(Q):
        return [Q[0, 0] >= 0.85, Q[1, 1] >= 0.8]

    with pytest.raises(InfeasibleError, match=r"between 0\.20"):
        min_distortion(
            parity(3),
            distortion=WRONG,
            budget=0.1,
            entropy_floor=1.5,
            constraints=rule,
            rows="orbits",
        )


def test_alternation_is_honest():
    problem = MinDistortion(parity(3), distortion=WRONG, budget=0.2, entropy_floor=1.5)
    sharp, bound = problem.solve(), problem.solve(strategy="alternate")
    assert bound.lower <= sharp.upper
    assert bound.upper >= sharp.lower
    assert verify(bound.certificate).passed


def test_check_judges_a_candidate():
    problem = MinDistortion(parity(2), distortion=WRONG, budget=0.2, entropy_floor=0.0)
    bound = problem.solve()
    quiet = problem.check([[0.7, 0.3], [0.3, 0.7]], bound=bound)
    assert quiet.feasible
    assert quiet.value == pytest.approx(0.3)
    assert quiet.shortfall[0] > 0.05
    loud = problem.check(np.eye(2), bound=bound)
    assert not loud.feasible


@pytest.mark.parametrize("budget", [0.0, 1e-6])
def test_next_to_nothing_may_leak(budget):
    """The optimum has the slope of a square root there: masters approach the budget in steps."""
    errors = Distortion.absolute(range(5))
    bound = min_distortion(count(4), distortion=errors, budget=budget, entropy_floor=1.0)
    assert bound.status is Status.CERTIFIED
    assert verify(bound.certificate).passed
    assert bound.lower <= 0.75
    assert bound.upper == (0.75 if budget == 0 else pytest.approx(0.75, rel=1e-3))


def test_an_end_that_is_attained_comes_early():
    """Whatever an audit proves is an upper end, by a mixture with a constant."""
    errors = Distortion.absolute(range(9))
    bound = min_distortion(
        count(8), distortion=errors, budget=0.2, entropy_floor=3.0, tol=0.2, time_limit=None
    )
    assert bound.status is Status.CERTIFIED
    assert bound.witness.leakage <= 0.2
    assert verify(bound.certificate).passed


def test_an_interrupt_of_an_audit_ends_the_search(monkeypatch):
    """The search must not go on after the audit in which Ctrl-C was pressed."""
    solved = []

    def interrupted(self, *options, **limits):
        bound = run(self, *options, **limits)
        solved.append(bound)
        stats = dict(bound.stats) | {"stopped": Stopped.INTERRUPTED}
        raise SolveInterrupted(dataclasses.replace(bound, stats=stats))

    run = adversaries.RecordLeakage.go_on
    monkeypatch.setattr(adversaries.RecordLeakage, "go_on", interrupted)
    with pytest.raises(SolveInterrupted) as caught:
        MinLeakage(parity(3), distortion=WRONG, budget=0.1, entropy_floor=1.5).solve(tol=1e-6)
    bound = caught.value.bound
    assert bound.stats["stopped"] is Stopped.INTERRUPTED
    assert len(solved) == 1
    assert verify(bound.certificate).passed


@pytest.mark.parametrize("unit", [1e-9, 1e7])
def test_the_unit_of_the_distortion_does_not_matter(unit):
    wrong = np.array([[0.0, 1.0], [1.0, 0.0]])
    one, other = (
        min_distortion(parity(3), distortion=d, budget=0.2, entropy_floor=1.5, time_limit=None)
        for d in (wrong, unit * wrong)
    )
    # A gap of 1e-7 nats is closed; one of 1e-7 is not where the largest distortion is 1e-9.
    assert other.status is Status.CERTIFIED
    assert other.gap <= 1e-3 * other.upper
    assert other.lower <= unit * one.upper * (1 + 1e-9)
    assert other.upper >= unit * one.lower * (1 - 1e-9)
    assert verify(other.certificate).passed
    assert other.shadow_prices["budget"] == pytest.approx(
        unit * one.shadow_prices["budget"], rel=0.05
    )


@pytest.mark.parametrize(
    ("floor", "options"),
    [
        (0.5, {}),
        (2.0, {"objective": "group", "size": 2}),
        (math.log(8), {"objective": "total"}),
        (1.0, {"sources": [[0.1, 0.2, 0.3, 0.4], [0.4, 0.4, 0.1, 0.1]]}),
        (1.0, {"sources": [[0.7, 0.1, 0.1, 0.1], [0.1, 0.1, 0.1, 0.7]]}),
    ],
)
def test_nothing_may_leak_and_only_a_constant_leaks_nothing(floor, options):
    absolute = Distortion.absolute(range(4))
    bound = min_distortion(
        count(3), distortion=absolute, budget=0.0, entropy_floor=floor, tol=1e-6, **options
    )
    design = check(bound, 1e-6)
    assert design.leakage == 0.0
    laws = np.array(options.get("sources", [[1 / 8, 3 / 8, 3 / 8, 1 / 8]]))
    grid = np.linspace(0, 1, 101)
    mixed = [
        max(laws @ absolute.matrix @ (s * np.eye(4)[y] + (1 - s) * np.eye(4)[z]))
        for y in range(4)
        for z in range(4)
        for s in grid
    ]
    assert bound.upper <= min(mixed) + 1e-9
    assert bound.upper >= min(mixed) - 0.02


def test_the_even_adversary_alone_does_not_ask_for_a_constant():
    # Parity hides each record from who believes nothing: told as it is, it leaks nothing.
    bound = min_distortion(parity(3), distortion=WRONG, budget=0.0, entropy_floor=math.log(8))
    assert bound.lower < 0.01


def test_given_priors_have_another_solver_if_the_first_is_stuck(monkeypatch):
    monkeypatch.setattr(master, "STEPS", 2)
    options = {"distortion": WRONG, "budget": 0.01, "priors": [[0.6, 0.1, 0.1, 0.2]]}
    problem = MinDistortion(parity(2), **options)
    search = DesignSearch(Learned(problem.data, problem.goal, 0), 0.01, Options())
    first = search.run(Gap(1e-3), Clock())
    assert first.go_on(Gap(1e-3), Clock()) is Stopped.NO_PROGRESS
    check(problem.solve())
