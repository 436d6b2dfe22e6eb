"""Borders that floats cannot decide: jumps, least budgets, ties, epsilons next to 0."""

import math
from dataclasses import replace

import numpy as np
import pytest
from flint import fmpq

from cvxleak import verify
from cvxleak.core.errors import InfeasibleError, ValidationError
from cvxleak.local_dp import (
    MinInformation,
    class_two_distortions,
    class_two_leakage,
    class_two_mechanism,
    classify,
    min_distortion_local_dp,
    min_information,
    min_local_dp,
)
from cvxleak.problem.bound import Status
from cvxleak.proofs import Certificate
from cvxleak.proofs.exact import normalized_rows, rational
from cvxleak.proofs.local_dp import released_ratio
from cvxleak.sources import SourceSet

STEPS = np.abs(np.subtract.outer(range(4), range(4))).astype(float)
HAMMING = 1 - np.eye(3)
DEAR = np.array([[0.1, 1, 2], [1, 0.2, 1], [2, 1, 0.3]])


def certified(bound, gap=1e-9):
    assert bound.status is Status.CERTIFIED
    assert bound.gap <= gap
    answer = verify(bound.certificate)
    assert answer.passed, answer.reason
    return bound


def exact_distortion(law, rows, d):
    """Return the distortion of stored rows under a stored law, exactly."""
    (p,), Q = normalized_rows([law]), normalized_rows(rows)
    return sum(
        p[x] * Q[x][y] * rational(float(d[x][y])) for x in range(len(p)) for y in range(len(Q[x]))
    )


@pytest.mark.parametrize(
    ("law", "budget", "value"),
    [
        # k-ary randomized response, log (k - 1)(1 - D)/D, up to D = (k - 1) min P.
        ([1e-9, 0.001, 0.998999999], 1e-9, math.log(2 * (1 - 1e-9) / 1e-9)),
        ([0.5, 0.5], 1e-300, 300 * math.log(10)),
        ([0.5, 0.3, 0.2], 1e-12, math.log(2e12)),
        # Outcomes that never occur need no output: binary randomized response between the others.
        ([0, 0.3, 0.7], 1e-9, math.log(1e9)),
        # A constant output has exactly this distortion.
        ([0.7, 0.2, 0.1], 0.3, 0.0),
        ([0.57, 0.42, 0.01], 0.43, 0.0),
        ([0.39, 0.39, 0.22], 0.61, 0.0),
        # Next to a jump the optimum is the limit: outputs of distortions (0, 1, 1).
        ([0.7, 0.2, 0.1], 0.29999999999999993, math.log(3.5)),
        ([0.57, 0.42, 0.01], 0.42999999999999994, math.log(0.57 / 0.42)),
    ],
)
def test_hamming(law, budget, value):
    # What the last outcome may add is of the order of the first's probability.
    bound = certified(min_local_dp([law], budget))
    assert bound.upper == pytest.approx(value, rel=2e-4, abs=1e-9)


def test_a_probability_of_a_billionth_is_bracketed():
    # 1e-6 > 2 x 1e-9, so better than symmetric.
    bound = min_local_dp([[1e-9, 0.001, 0.998999999]], 1e-6)
    assert verify(bound.certificate).passed
    # Best is binary randomized response between the others, with the budget that the first leaves.
    rest = (1e-6 - 1e-9) / (1 - 1e-9)
    best = math.log((1 - rest) / rest)
    assert bound.lower <= best + 1e-12
    assert best - 1e-12 <= bound.upper <= math.log(2 * (1 - 1e-6) / 1e-6) + 1e-8
    assert exact_distortion(
        [1e-9, 0.001, 0.998999999], bound.certificate.witness["channel"], HAMMING
    ) <= rational(1e-6)


@pytest.mark.parametrize("law", [[0.7, 0.2, 0.1], [0.57, 0.42, 0.01], [0.6, 0.25, 0.15]])
@pytest.mark.parametrize("ulps", [-2, -1, 0, 1, 2])
def test_the_jump_is_where_the_rationals_have_it(law, ulps):
    budget = 1 - law[0]
    budget += ulps * math.ulp(budget)
    (p,) = normalized_rows([law])
    jumps = 1 - p[0] > rational(budget)
    for d in (None, 3 * HAMMING):
        scale = 1 if d is None else 3
        meant = budget * scale
        if d is not None:
            jumps = 3 * (1 - p[0]) > rational(meant)
        bound = certified(min_local_dp([law], meant, d))
        assert (bound.lower > 0.3) == jumps
        assert bound.upper == pytest.approx(math.log(p[0] / p[1]) if jumps else 0.0, abs=1e-9)


@pytest.mark.parametrize(
    ("law", "budget", "scale", "ratio"),
    [
        ([0.25, 0.65, 0.1], 3 * 0.35, 3, 3.0),
        ([0.9, 0.05, 0.05], 1 - 0.85, 1, None),
        ([0.05, 0.9, 0.05], 1 - 0.9, 1, 19.0),
    ],
)
def test_budgets_that_python_computes(law, budget, scale, ratio):
    """Just below what a constant output costs, as 3 * 0.35 is less than 1.05, or just above."""
    d = scale * STEPS[:3, :3]
    bound = certified(min_local_dp([law], budget, d))
    value = 0.0 if ratio is None else math.log(ratio)
    assert bound.upper == pytest.approx(value, abs=1e-9)


def test_ties_that_rounding_breaks():
    # 1 - P(0) of the two differ in the last digit in floats; as written both are .3.
    laws = [[0.7, 0.2, 0.1], [0.7, 0.15, 0.15]]
    assert certified(min_local_dp(laws, 0.3)).upper == 0
    bound = certified(min_local_dp(laws, math.nextafter(0.3, 0)))
    assert bound.upper == pytest.approx(math.log(0.7 / 0.15), abs=1e-9)


def test_an_output_that_just_fits_a_mixture():
    laws = [[0.5, 0.3, 0.1, 0.1], [0.1, 0.2, 0.4, 0.3]]
    bound = certified(min_local_dp(laws, 0.92, STEPS))
    assert bound.upper == pytest.approx(math.log(1.5), abs=1e-9)


def test_the_least_distortion_itself():
    for law, budget in (([0.7, 0.2, 0.1], 0.14), (["1/3", "1/3", "1/3"], "1/5")):
        bound = min_local_dp([law], budget, DEAR)
        assert bound.lower == bound.upper == math.inf
        assert verify(bound.certificate).passed


@pytest.mark.parametrize("ulps", [1, 2, 5, 1000, 10**6])
def test_just_above_the_least_distortion(ulps):
    law = [0.7, 0.2, 0.1]
    (p,) = normalized_rows([law])
    least = sum(a * rational(b) for a, b in zip(p, DEAR.min(axis=1).tolist(), strict=True))
    budget = 0.14 + ulps * math.ulp(0.14)
    room = rational(budget) - least
    assert room > 0
    bound = min_local_dp([law], budget, DEAR)
    assert verify(bound.certificate).passed
    # Q(y|x) = e^-epsilon off the diagonal, for epsilon towards infinity.
    dearer = p[0] * rational(2.8) + p[1] * rational(1.6) + p[2] * rational(2.4)
    assert bound.lower <= math.log(float(dearer / room)) <= bound.upper
    assert 20 < bound.lower <= bound.upper < math.inf
    certified(min_information([law], budget, DEAR), 1e-7)


@pytest.mark.parametrize("ulps", [1, 2, 100])
def test_below_the_least_distortion(ulps):
    budget = 0.14 - ulps * math.ulp(0.14)
    for problem in (min_local_dp, min_information):
        with pytest.raises(InfeasibleError, match=r"distortion is 0\.14$") as error:
            problem([[0.7, 0.2, 0.1]], budget, DEAR)
        least = float(str(error.value).split()[-1])
        assert problem([[0.7, 0.2, 0.1]], least, DEAR).upper > 0


@pytest.mark.parametrize("d", [None, [[0, 1, 1], [1, 0, 1]]])
def test_infinity_is_proved_too(d, tmp_path):
    bound = min_local_dp([[0.5, 0.5]], 0.0, d)
    assert bound.lower == bound.upper == math.inf
    path = tmp_path / "infinite.json"
    bound.certificate.save(path)
    answer = verify(path)
    assert answer.passed
    assert (answer.lower, answer.upper) == (math.inf, math.inf)
    assert Certificate.load(path) == bound.certificate
    # The same claim where a finite epsilon is enough.
    content = bound.certificate
    for budget in (1e-300, 0.1):
        forged = replace(content, problem={**content.problem, "budget": budget})
        assert not verify(forged).passed


def test_infinite_only_where_it_is():
    assert min_local_dp([[0.5, 0.5]], 0.0).lower == math.inf
    assert min_local_dp([[0.5, 0.5]], 0.0, [[0, 1, 1], [1, 0, 1]]).lower == math.inf
    assert certified(min_local_dp([[0.5, 0.5]], 0.0, [[0, 1, 0], [1, 0, 0]])).upper == 0
    # The only law that is tight never has the second outcome.
    d = [[1, 2.0], [3, 1]]
    bound = certified(min_local_dp([[1.0, 0.0], [0.6, 0.4]], 1.0, [[1, 2.0], [1, 0.5]]))
    assert bound.upper == 0
    assert min_local_dp([[0.5, 0.5]], 1.0, d).lower == math.inf


@pytest.mark.parametrize("epsilon", [0.49, 0.492, 0.4925, 0.493, 1e-6, 1e-9, 1e-12, 1e-15, 1e-300])
def test_least_distortion_where_a_constant_is_best(epsilon):
    bound = certified(min_distortion_local_dp([[0.7, 0.2, 0.1], [0.6, 0.3, 0.1]], epsilon), 1e-8)
    assert bound.upper == pytest.approx(0.4, abs=1e-8)


def test_least_distortion_next_to_epsilon_zero():
    laws = [[2 / 3, 1 / 6, 1 / 6, 0], [1 / 3, 1 / 3, 1 / 6, 1 / 6]]
    certified(min_distortion_local_dp(laws, 1e-9), 1e-8)
    bound = min_distortion_local_dp(laws, 1.0, time_limit=0.0)
    assert (bound.lower, bound.upper) <= (0.0, 1.0)
    assert verify(bound.certificate).passed


def test_time_limits_still_bracket():
    laws = [[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]]
    good = min_information(laws, 0.3)
    rough = min_information(laws, 0.3, time_limit=0.0)
    assert rough.lower <= good.upper
    assert rough.upper >= good.lower
    assert verify(rough.certificate).passed
    assert min_information(laws, 0.3, time_limit=60.0).gap < 1e-7
    assert min_distortion_local_dp(laws, 1.0, time_limit=60.0).gap < 1e-8
    for value in (-1.0, "soon"):
        with pytest.raises(ValidationError, match="time_limit"):
            MinInformation(laws, 0.3).solve(time_limit=value)


def test_a_uniform_output_is_exact_thirds():
    bound = certified(min_local_dp([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25]], 2 / 3 + 1e-16))
    assert bound.upper == 0
    rows = normalized_rows(bound.certificate.witness["channel"])
    assert released_ratio(rows, fmpq(0)) == 1


def test_many_ties_are_not_all_listed():
    found = classify([[1 / 12] * 12], cap=10)
    assert (found.kind, found.folding) == ("I", None)
    tied = [[0.4] + [0.05] * 12]
    assert classify(tied).kind == "II"
    assert classify(tied).folding is None
    value = min_local_dp(tied, 0.2).upper
    assert class_two_leakage(tied, 0.2) == pytest.approx(value, abs=1e-7)
    assert class_two_distortions(tied, 0.2)[0] == pytest.approx(value, abs=1e-7)


def test_a_distortion_of_one_and_a_little():
    matrix = class_two_mechanism([0.25, 0.25, 1 + 2e-16])
    assert matrix == pytest.approx(class_two_mechanism([0.25, 0.25, 1.0]))
    assert matrix.min() >= 0
    with pytest.raises(ValidationError, match="distortions"):
        class_two_mechanism([0.25, 0.25, 1 + 1e-9])


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("budget", [0.3, 0.55])
def test_both_programs_agree(seed, budget):
    """Twice the Hamming distortion is for the program of any distortion."""
    P = np.random.default_rng(seed).dirichlet(np.ones(4), size=3)
    for sources in (SourceSet(P), SourceSet.hull(P), SourceSet.box(P.min(axis=0), P.max(axis=0))):
        bound = certified(min_local_dp(sources, budget))
        other = certified(min_local_dp(sources, 2 * budget, 2 * (1 - np.eye(4))))
        assert bound.upper == pytest.approx(other.upper, abs=1e-9)


@pytest.mark.parametrize("top", [68, 57, 90, 55])
@pytest.mark.parametrize("box", [False, True])
def test_just_below_a_border_that_python_computes(top, box):
    """1 - .68 is less than .32 in floats: the limit from below, with outputs 0 and 1 alone."""
    rest = (100 - top) / 200
    budget = 1 - top / 100
    budget = min(budget, math.nextafter((100 - top) / 100, 0))
    law = [top / 100, rest, rest]
    sources = SourceSet.box(law, law) if box else [law]
    bound = certified(min_local_dp(sources, budget))
    assert bound.upper == pytest.approx(math.log(top / 100 / rest), abs=1e-8)


@pytest.mark.parametrize(
    ("law", "budget", "d"),
    [
        (
            [0.8892912889252917, 0.11070871107288452, 1.8237594401165827e-12],
            0.07128076379667449,
            [[0.01178433, 0.59728912], [0.5491985308302156, 0.7439735], [0.86154056, 0.466055318]],
        ),
        ([0.25, 0.5, 0.25 - 1e-15, 1e-15], 0.5, [[1, 1, 2], [1, 1, 0], [3, 0, 0], [2, 2, 2]]),
    ],
)
def test_outcomes_that_hardly_occur(law, budget, d):
    """Least entries of zero in floats are no error."""
    bound = min_local_dp([np.array(law) / sum(law)], budget, d)
    assert 0 <= bound.lower <= bound.upper
    assert verify(bound.certificate).passed


def test_budget_to_spare_that_floats_do_not_see():
    laws = [
        [2.132333345240689e-10, 4.497364566971734e-10, 0.9999999990214437, 3.155865005649225e-10],
        [1.0, 0.0, 0.0, 0.0],
        [2.361145904654108e-10, 0.9999999988683179, 6.548082326962022e-10, 2.407590970926354e-10],
    ]
    for budget in (2 / 3 + 1e-9, 2 / 3 + 1e-10, 0.6666666667284828):
        assert min_local_dp(laws, budget).lower <= 1e-8


@pytest.mark.parametrize(
    ("budget", "delta"), [(6e-6, 1e-6), (6e-6, 0.5), (4e-8, 0.1), (1e-12, 1e-6), (1e-12, 0.5)]
)
def test_small_budgets_with_delta(delta, budget):
    """For two inputs e^epsilon = (1 - Q(1|0) - delta) / Q(0|1), and Q(1|0) + Q(0|1) = 2 D."""
    bound = min_local_dp([[0.5, 0.5]], budget, delta=delta)
    assert verify(bound.certificate).passed
    assert bound.lower <= math.log((1 - budget - delta) / budget) + 1e-12
    assert math.log((1 - budget - delta) / budget) <= bound.upper < 30
    assert bound.gap < 1e-3 or budget < 1e-9


def test_a_uniform_law_inside_of_the_hull_is_no_border():
    rng = np.random.default_rng(3)
    for size in (2, 3, 4):
        laws = rng.dirichlet(np.ones(size), size=3 * size)
        laws = np.vstack([laws, laws[:, ::-1], np.roll(laws, 1, axis=1)])
        found = classify(laws)
        assert found.kind == "I"
        assert found.exact
        assert classify(SourceSet.box([0.0] * size, [0.9] * size)).exact
    mixed = SourceSet.box([0.0] * 3, [0.3, 1.0, 1.0]) | SourceSet([[0.75, 0.125, 0.125]])
    assert classify(mixed).kind == "I"
    assert classify(mixed).exact
    # The uniform law is next to the hull, or at its border up to rounding.
    assert not classify([[0.9, 0.1, 0.0], [0.0, 0.1, 0.9], [0.1, 0.8, 0.1]][:1] * 2).kind == "I"
    assert not classify([[1 / 3 + 1e-12, 1 / 3 - 1e-12, 1 / 3]]).exact


def test_a_mixture_under_which_an_output_just_meets_the_budget():
    laws = [
        [0.362804770743674, 0.007216297639471713, 0.6299789316168543],
        [3.504995798341512e-05, 0.012820746126006453, 0.9871442039160101],
    ]
    bound = certified(min_local_dp(laws, 0.37002106838314536))
    assert bound.upper == pytest.approx(0.5518215090042, abs=1e-9)


def test_a_polytope_without_room():
    d = [
        [7.619327350314289, 6.124160440971337],
        [3.0069145398640504, 6.9450734678314605],
        [9.774613319453318, 2.369698479222291],
    ]
    face = SourceSet.polytope([[-0.1, -0.4, -0.4]], [-0.4])
    bound = certified(min_local_dp(face, 4.9627979073067525, d))
    corners = min_local_dp([[0, 1, 0], [0, 0, 1]], 4.9627979073067525, d)
    assert bound.upper == pytest.approx(corners.upper, abs=1e-7)


def test_an_equality_at_a_budget_far_from_any_border():
    """The first deficit of the budget is not enough here: rounding in the program is larger."""
    d = [[9.35, 9.237, 3.273, 9.889], [1.877, 8.233, 1.573, 4.051], [0.735, 8.58, 8.288, 1.398]]
    segment = SourceSet.polytope([[-0.1, -0.4, -0.4], [0.1, 0.4, 0.4]], [-0.3, 0.3])
    bound = certified(min_local_dp(segment, 3.844, d))
    ends = certified(min_local_dp([[1 / 3, 2 / 3, 0], [1 / 3, 0, 2 / 3]], 3.844, d))
    assert bound.upper == pytest.approx(ends.upper, abs=1e-7)
