import math
import pickle
from fractions import Fraction

import cvxpy as cp
import numpy as np
import pytest

from cvxleak.audit import record_leakage
from cvxleak.constraints import local_dp
from cvxleak.core.errors import InfeasibleError, ValidationError
from cvxleak.design import MinDistortion, MinLeakage, min_leakage
from cvxleak.measures import mechanism_distortion, mutual_information, record_information
from cvxleak.model import AdditiveQuery, Channel, Distortion, Mechanism, Prior, RecordSpace
from cvxleak.problem.bound import Status
from cvxleak.proofs import verify
from cvxleak.proofs.bounds.design_rows import image, orbits
from cvxleak.queries import count, parity

WRONG = Distortion.hamming([0, 1])


def binary_entropy(p):
    return -p * math.log(p) - (1 - p) * math.log(1 - p)


def check(bound, tol):
    """Return the witness of a certified bound whose certificate holds."""
    assert bound.status is Status.CERTIFIED
    assert bound.upper - bound.lower <= max(tol * bound.upper, 1e-7)
    answer = verify(bound.certificate)
    assert answer.passed, answer.reason
    return bound.witness


@pytest.mark.parametrize(
    ("floor", "budget", "value"),
    [
        (1.5, 0.1, 0.327610),
        (1.9, 0.2, 0.06192),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in [
                (1.5, 0.05, 0.435088),
                (1.5, 0.2, 0.17332),
                (1.9, 0.05, 0.14342),
                (1.9, 0.1, 0.11204),
            ]
        ),
    ],
)
def test_parity_of_three_has_the_values_of_the_prototype(floor, budget, value):
    bound = min_leakage(parity(3), distortion=WRONG, budget=budget, entropy_floor=floor, tol=1e-5)
    check(bound, 1e-5)
    assert bound.lower - 1e-5 <= value <= bound.upper + 1e-5


@pytest.mark.parametrize("budget", [0.02, 0.1, 0.3])
def test_parity_without_doubt_is_the_rate_distortion_function(budget):
    bound = min_leakage(parity(2), distortion=WRONG, budget=budget, entropy_floor=0.0, tol=1e-5)
    check(bound, 1e-5)
    truth = math.log(2) - binary_entropy(budget)
    assert bound.lower <= truth + 1e-12
    assert bound.upper >= truth - 1e-12


def test_the_witness_is_feasible_and_audited():
    bound = min_leakage(
        count(3), distortion=Distortion.absolute(range(4)), budget=0.4, entropy_floor=1.2, tol=1e-2
    )
    design = check(bound, 1e-2)
    matrix = design.channel.matrix
    assert all(sum(map(Fraction, row)) == 1 for row in matrix.tolist())
    spent = mechanism_distortion(design.mechanism, np.full(8, 1 / 8), Distortion.absolute(range(4)))
    assert spent <= 0.4 + 1e-12
    audit = record_leakage(design.mechanism, 1.2)
    assert bound.lower <= audit.upper
    assert audit.lower <= bound.upper
    assert design.rounds[-1].upper == bound.upper


def test_a_budget_for_a_constant_leaks_exactly_nothing():
    bound = min_leakage(parity(3), distortion=WRONG, budget=0.5, entropy_floor=1.0)
    design = check(bound, 0.0)
    assert (bound.lower, bound.upper) == (0.0, 0.0)
    assert (design.channel.matrix == design.channel.matrix[0]).all()


def test_an_infeasible_budget_names_the_least():
    rounded = Distortion.absolute(range(4), [0, 3])
    with pytest.raises(InfeasibleError, match=r"0\.75"):
        min_leakage(count(3), distortion=rounded, budget=0.7, entropy_floor=1.0)
    # One channel is left, which shows a bit. From one start in ten or so the search ends early.
    bounds = [
        min_leakage(count(3), distortion=rounded, budget=0.75, entropy_floor=1.0, rng=seed)
        for seed in range(3)
    ]
    assert all(bound.lower <= math.log(2) <= bound.upper + 1e-12 for bound in bounds)
    assert all(bound.witness.distortion == 0.75 for bound in bounds)
    assert check(min(bounds, key=lambda bound: bound.gap), 1e-3).distortion == 0.75


def test_no_budget_at_all_is_the_leakage_of_the_query():
    bound = min_leakage(parity(3), distortion=WRONG, budget=0.0, entropy_floor=1.5)
    design = check(bound, 1e-3)
    np.testing.assert_array_equal(design.channel.matrix, np.eye(2))
    audit = record_leakage(Mechanism(parity(3), np.eye(2)), 1.5)
    assert abs(audit.upper - bound.upper) < 1e-3


def test_rows_that_see_more_than_the_query_can_leak_less():
    query = AdditiveQuery(RecordSpace.binary(3), [(0, 1)] * 3, modulus=3)
    arguments = {
        "distortion": Distortion.absolute(query.values),
        "budget": 0.3,
        "entropy_floor": 1.5,
        "tol": 1e-2,
    }
    free = min_leakage(query, **arguments)
    restricted = min_leakage(query, rows="query", **arguments)
    check(free, 1e-2)
    check(restricted, 1e-2)
    assert free.witness.channel.shape == (4, 3)
    assert free.upper < restricted.lower
    assert free.upper == pytest.approx(0.2, abs=2e-3)
    assert restricted.upper == pytest.approx(0.221, abs=2e-3)


@pytest.mark.parametrize("objective", ["record", "total"])
def test_sharing_rows_loses_nothing(objective):
    arguments = {
        "distortion": Distortion.absolute(range(3)),
        "budget": 0.2,
        "entropy_floor": 0.8,
        "objective": objective,
    }
    shared = min_leakage(count(2), **arguments)
    unshared = min_leakage(count(2), rows="datasets", **arguments)
    assert check(shared, 1e-3).channel.shape == (3, 3)
    assert check(unshared, 1e-3).channel.shape == (4, 3)
    assert shared.lower <= unshared.upper
    assert unshared.lower <= shared.upper


def test_a_source_that_breaks_the_symmetry_gets_more_rows():
    source = [0.1, 0.1, 0.1, 0.1, 0.15, 0.15, 0.15, 0.15]
    design = check(
        min_leakage(parity(3), distortion=WRONG, budget=0.1, entropy_floor=1.5, source=source), 1e-3
    )
    assert design.channel.shape == (4, 2)
    np.testing.assert_allclose(
        np.asarray(source)[:, None] * design.mechanism.to_channel().matrix @ np.ones(2),
        source,
    )


def test_a_family_of_sources_costs_at_least_as_much_as_each():
    arguments = {"distortion": WRONG, "budget": 0.1, "entropy_floor": 1.5}
    sources = [[0.3, 0.7], [0.6, 0.4]]
    together = min_leakage(parity(3), sources=sources, **arguments)
    check(together, 1e-3)
    for source in sources:
        assert min_leakage(parity(3), source=source, **arguments).lower <= together.upper
    matrix = together.witness.channel.matrix
    errors = np.array([matrix[0, 1], matrix[1, 0]])
    assert (np.array(sources) @ errors <= 0.1).all()


def test_a_law_on_the_values_is_spread_evenly():
    on_values = min_leakage(
        count(2), distortion=Distortion.absolute(range(3)), budget=0.2, entropy_floor=1.0,
        source=Prior([0.25, 0.5, 0.25], [0, 1, 2]),
    )  # fmt: skip
    uniform = min_leakage(
        count(2), distortion=Distortion.absolute(range(3)), budget=0.2, entropy_floor=1.0
    )
    assert on_values.lower == pytest.approx(uniform.lower, abs=1e-9)


def test_known_priors_of_the_whole_dataset_are_rate_distortion():
    bound = min_leakage(
        parity(3), distortion=WRONG, budget=0.1, priors=[[0.5, 0.5]], objective="total", tol=1e-7
    )
    check(bound, 1e-7)
    assert bound.upper == pytest.approx(math.log(2) - binary_entropy(0.1), abs=2e-7)


def test_known_priors_against_the_measures_and_a_program_written_by_hand():
    priors = np.random.default_rng(3).dirichlet(np.full(8, 0.5), size=3)
    bound = min_leakage(parity(3), distortion=WRONG, budget=0.1, priors=priors, tol=1e-8)
    witness = check(bound, 1e-8)
    worst = max(record_information(witness.mechanism, p, i) for p in priors for i in range(3))
    assert worst == pytest.approx(bound.upper, abs=1e-9)
    # One row per dataset, for each prior and record its joint law with the output.
    q = cp.Variable((8, 2), nonneg=True)
    costs = WRONG.matrix[parity(3).table().ravel()] / 8
    level, rules = cp.Variable(), [cp.sum(q, axis=1) == 1, cp.sum(cp.multiply(costs, q)) <= 0.1]
    for prior in priors:
        for record in range(3):
            value = parity(3).space.value_index(record)
            joint = np.where(value == np.arange(2)[:, None], prior, 0.0)
            products = joint.sum(axis=1)[:, None] @ cp.reshape(prior @ q, (1, 2), order="C")
            rules.append(cp.sum(cp.rel_entr(joint @ q, products)) <= level)
    program = cp.Problem(cp.Minimize(level), rules)
    assert program.solve(solver="CLARABEL") == pytest.approx(bound.upper, abs=1e-6)


def test_an_adversary_who_knows_the_rest_makes_a_record_as_open_as_the_parity():
    knows = [[0.5, 0, 0.5, 0], [0, 0.5, 0, 0.5], [0.5, 0.5, 0, 0], [0, 0, 0.5, 0.5]]
    bound = min_leakage(parity(2), distortion=WRONG, budget=0.1, priors=knows, tol=1e-8)
    check(bound, 1e-8)
    assert bound.upper == pytest.approx(math.log(2) - binary_entropy(0.1), abs=1e-8)


def test_known_priors_are_part_of_the_floor():
    prior = np.array([0.3, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1])
    entropy = -(prior * np.log(prior)).sum()
    arguments = {"distortion": WRONG, "budget": 0.1}
    known = min_leakage(parity(3), priors=[prior], **arguments)
    check(known, 1e-3)
    worst = min_leakage(parity(3), entropy_floor=float(entropy) - 1e-9, **arguments)
    assert known.lower <= worst.upper


def test_more_is_attacked_more_is_learned():
    arguments = {"distortion": Distortion.absolute(range(3)), "budget": 0.3, "entropy_floor": 0.9}
    one = min_leakage(count(2), **arguments)
    pair = min_leakage(count(2), objective="group", size=2, **arguments)
    total = min_leakage(count(2), objective="total", **arguments)
    for bound in (one, pair, total):
        check(bound, 1e-3)
    assert one.lower <= pair.upper
    # Two records are the whole dataset.
    assert pair.lower <= total.upper
    assert total.lower <= pair.upper


def test_the_total_leakage_is_that_of_the_worst_prior():
    bound = min_leakage(
        parity(2), distortion=WRONG, budget=0.1, entropy_floor=1.0, objective="total"
    )
    design = check(bound, 1e-3)
    joint = design.worst.joint
    found = mutual_information(design.channel, joint.sum(axis=0))
    assert found == pytest.approx(bound.upper, rel=1e-3)


@pytest.mark.parametrize("solver", ["CLARABEL", "ECOS", "SCS"])
def test_solvers_agree(solver):
    cp = pytest.importorskip("cvxpy")
    if solver not in cp.installed_solvers():
        pytest.skip(f"{solver} is not installed")
    arguments = {"distortion": WRONG, "budget": 0.1, "entropy_floor": 1.5}
    bound = min_leakage(parity(3), solver=solver, **arguments)
    check(bound, 1e-3)
    assert bound.lower <= 0.3276105
    assert bound.upper >= 0.3276104


def test_alternation_is_honest():
    problem = MinLeakage(
        count(2), distortion=Distortion.absolute(range(3)), budget=0.2, entropy_floor=0.7
    )
    sharp = problem.solve()
    bound = problem.solve(strategy="alternate")
    assert bound.lower <= sharp.upper
    assert bound.upper >= sharp.lower
    assert verify(bound.certificate).passed
    assert bound.stats["cuts"] == 1
    if bound.status is Status.BRACKETED:
        assert bound.stats["cycled"]


def test_own_constraints_are_met_and_cost():
    arguments = {"distortion": WRONG, "budget": 0.1, "entropy_floor": 1.5, "rows": "orbits"}
    free = min_leakage(parity(3), **arguments)
    bound = min_leakage(parity(3), constraints=lambda Q: Q[0, 0] >= 0.95, **arguments)
    design = check(bound, 1e-3)
    assert design.user_violation <= 1e-8
    assert design.channel.matrix[0, 0] >= 0.95 - 1e-8
    assert bound.lower > free.upper
    assert "user's own" in verify(bound.certificate).about


def test_a_set_of_the_library_is_an_own_constraint():
    bound = min_leakage(
        parity(3), distortion=WRONG, budget=0.3, entropy_floor=1.5, rows="query",
        constraints=lambda Q: local_dp(Q, 1.0),
    )  # fmt: skip
    matrix = check(bound, 1e-3).channel.matrix
    assert (matrix <= np.e * matrix[::-1] + 1e-7).all()


def test_own_constraints_that_cannot_be_met():
    arguments = {"distortion": WRONG, "budget": 0.1, "entropy_floor": 1.5, "rows": "orbits"}
    with pytest.raises(InfeasibleError, match="budget"):
        min_leakage(parity(3), constraints=lambda Q: Q[0, 1] >= 0.85, **arguments)
    with pytest.raises(InfeasibleError, match="constraints"):
        min_leakage(parity(3), constraints=lambda Q: Q[0, 1] >= 1.5, **arguments)


def test_own_constraints_get_a_row_per_dataset():
    shapes = []

    def rule(Q):
        shapes.append(Q.shape)
        return Q[0, 0] >= 0.95

    arguments = {"distortion": WRONG, "budget": 0.1, "entropy_floor": 0.9}
    check(min_leakage(parity(2), constraints=rule, **arguments), 1e-3)
    assert set(shapes) == {(4, 2)}
    with pytest.raises(ValidationError, match="rows"):
        MinLeakage(parity(10), constraints=rule, **arguments)


def test_shadow_prices_are_slopes():
    values = {}
    for floor, budget in [(1.5, 0.1), (1.5, 0.102), (1.505, 0.1)]:
        bound = min_leakage(
            parity(3), distortion=WRONG, budget=budget, entropy_floor=floor, tol=1e-6
        )
        values[floor, budget] = bound
    here = values[1.5, 0.1]
    in_budget = (values[1.5, 0.102].upper - here.upper) / 0.002
    in_floor = (values[1.505, 0.1].upper - here.upper) / 0.005
    assert here.shadow_prices["budget"] == pytest.approx(in_budget, rel=0.02)
    assert here.shadow_prices["entropy_floor"] == pytest.approx(in_floor, rel=0.02)


def test_refine_goes_on():
    bound = min_leakage(parity(3), distortion=WRONG, budget=0.1, entropy_floor=1.5, tol=1e-2)
    sharper = bound.refine(1e-5)
    check(sharper, 1e-5)
    assert bound.lower <= sharper.lower
    assert sharper.upper <= bound.upper


def test_time_that_is_over_leaves_a_valid_bracket():
    bound = min_leakage(
        count(4),
        distortion=Distortion.absolute(range(5)),
        budget=0.5,
        entropy_floor=1.5,
        time_limit=0.0,
    )
    assert bound.status is Status.BRACKETED
    assert verify(bound.certificate).passed


def test_check_judges_a_candidate():
    problem = MinLeakage(parity(2), distortion=WRONG, budget=0.1, entropy_floor=0.0)
    bound = problem.solve()
    flip = problem.check([[0.9, 0.1], [0.1, 0.9]], bound=bound)
    assert flip.feasible
    assert abs(flip.shortfall[0]) < 1e-3
    poor = problem.check(Channel([[1.0, 0.0], [0.0, 1.0]], [0, 1], [0, 1]), bound=bound)
    assert poor.feasible
    assert poor.value == pytest.approx(math.log(2))
    off = problem.check([[0.8, 0.3], [0.3, 0.8]], bound=bound)
    assert not off.feasible
    assert off.violations["rows sum to 1"] == pytest.approx(0.1)
    assert off.violations["distortion is within the budget"] > 0.1
    with pytest.raises(ValidationError, match="candidate"):
        problem.check([[1.0, 0.0]])
    with pytest.raises(ValidationError, match="bound"):
        problem.check([[0.9, 0.1], [0.1, 0.9]], bound=0.3)  # pyright: ignore


def test_a_candidate_may_have_a_row_for_each_dataset():
    problem = MinLeakage(parity(2), distortion=WRONG, budget=0.6, entropy_floor=0.0)
    bound = problem.solve()
    assert problem.data.rows.query.values == (0, 1)
    apart = np.array([[0.9, 0.1], [0.9, 0.1], [0.1, 0.9], [0.1, 0.9]])  # tells the first bit
    found = problem.check(apart, bound=bound)
    assert found.feasible
    assert found.value == pytest.approx(0.368064, abs=1e-5)  # log 2 - h(0.1)
    datasets = tuple(parity(2).space.datasets())
    assert problem.check(Channel(apart, datasets, (0, 1)), bound=bound).value == found.value
    alike = np.array([[0.9, 0.1], [0.2, 0.8], [0.2, 0.8], [0.9, 0.1]])
    short = problem.check([[0.9, 0.1], [0.2, 0.8]], bound=bound)
    assert problem.check(alike, bound=bound).value == short.value
    narrow = MinLeakage(parity(2), distortion=WRONG, budget=0.6, entropy_floor=0.0, rows="query")
    with pytest.raises(ValidationError, match="different rows for datasets"):
        narrow.check(apart, bound=bound)


def test_a_candidate_mechanism_is_read_by_its_own_query():
    # The values 0 and 1 of the count are not those of the parity.
    problem = MinLeakage(parity(2), distortion=WRONG, budget=1.0, entropy_floor=0.0)
    bound = problem.solve()
    channel = Channel([[0.5, 0.5], [0.5, 0.5], [1.0, 0.0]], (0, 1, 2), (0, 1))
    found = problem.check(Mechanism(count(2), channel), bound=bound)
    assert found.value > 0.1
    with pytest.raises(ValidationError, match="another record space"):
        problem.check(Mechanism(count(3), np.full((4, 2), 0.5)), bound=bound)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"budget": -0.1}, "budget"),
        ({"objective": "everything"}, "objective"),
        ({"rows": "few"}, "rows"),
        ({"priors": [[0.5, 0.5]]}, "entropy_floor"),
        ({"source": [0.2, 0.3, 0.5]}, "source"),
        ({"source": [0.5, 0.5], "sources": [[0.5, 0.5]]}, "sources"),
        ({"sources": []}, "sources"),
        ({"distortion": [[0, 1]]}, "distortion"),
        ({"outputs": ["a"], "distortion": [[0, 1], [1, 0]]}, "outputs"),
        ({"constraints": 3}, "constraints"),
    ],
)
def test_bad_arguments_are_named(arguments, name):
    given = {"distortion": WRONG, "budget": 0.1, "entropy_floor": 1.0} | arguments
    with pytest.raises(ValidationError, match=f"^{name}"):
        MinLeakage(parity(3), **given)


def test_a_floor_above_the_maximum_is_infeasible():
    with pytest.raises(InfeasibleError, match="entropy_floor"):
        MinLeakage(parity(3), distortion=WRONG, budget=0.1, entropy_floor=3.0)


def test_large_spaces_have_one_row_per_type():
    problem = MinLeakage(parity(20), distortion=WRONG, budget=0.1, entropy_floor=10.0)
    assert len(problem.data.rows.query.values) == 21
    problem = MinLeakage(
        count(300), distortion=Distortion.absolute(range(301)), budget=1, entropy_floor=9
    )
    assert problem.data.rows.query == count(300)


def test_orbits_of_even_flips_are_parities():
    space = RecordSpace.binary(3)
    flips = ((0, 1, 2), ((1, 0), (1, 0), (0, 1))), ((0, 1, 2), ((0, 1), (1, 0), (1, 0)))
    found = orbits(space, flips)
    table = parity(3).table().ravel()
    assert len({*zip(found.tolist(), table.tolist(), strict=True)}) == 2
    assert sorted(image(space, flips[0]).tolist()) == list(range(8))


@pytest.mark.parametrize("budget", [0.0, 1e-12, 1e-9])
def test_a_budget_that_is_next_to_the_least(budget):
    wrong = Distortion.hamming([0, 1])
    bound = min_leakage(
        parity(2), distortion=wrong, budget=budget, entropy_floor=0.0, tol=1e-4, time_limit=None
    )
    exact = math.log(2) - (-budget * math.log(budget) if budget else 0.0) - budget
    assert bound.status is Status.CERTIFIED
    assert bound.lower <= exact + 1e-12
    assert bound.upper >= exact - 1e-12
    assert verify(bound.certificate).passed
    if budget == 0:
        # The derivative of log 2 - h(D) at 0, and nothing depends on the floor.
        assert bound.shadow_prices["budget"] == -math.inf
        assert math.copysign(1.0, bound.shadow_prices["entropy_floor"]) == 1.0


def first_entry(Q):
    return Q[0, 0] >= 0.5


@pytest.mark.parametrize("kind", [MinLeakage, MinDistortion])
def test_design_problems_are_values(kind):
    def make(**options):
        given = {"distortion": WRONG, "budget": 0.2, "entropy_floor": 0.5} | options
        return kind(parity(2), **given)

    problem = make(constraints=first_entry)
    bound = problem.solve()
    assert problem == make(constraints=first_entry)
    assert hash(problem) == hash(make(constraints=first_entry))
    assert pickle.loads(pickle.dumps(problem)) == problem
    assert "object at 0x" not in repr(make())
    for other in ({}, {"budget": 0.3}, {"entropy_floor": 0.6}, {"constraints": lambda Q: Q >= 0}):
        assert make(**other) != problem
    check = problem.check(bound.witness, bound=bound)
    assert check.feasible, str(check)
    assert check.value == pytest.approx(bound.upper, abs=1e-7)
    with pytest.raises(pickle.PicklingError, match=r"^constraints\[1\]: it cannot be pickled"):
        pickle.dumps(make(constraints=[first_entry, lambda Q: Q >= 0]))
