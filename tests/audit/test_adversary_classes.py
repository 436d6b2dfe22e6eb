"""The audit of adversaries of whom more is known: brute force, closed forms, proofs, refusals."""

from __future__ import annotations

import copy
import math
from itertools import product

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import entr

from cvxleak.audit import RecordLeakage, balance, group_leakage, record_leakage
from cvxleak.core.errors import CertificateError, CvxleakError, InfeasibleError
from cvxleak.kernel.numbers import precision
from cvxleak.measures import lumped_information
from cvxleak.mechanisms import binary_symmetric, random_rounding
from cvxleak.model import Expectation, KnownMarginals, Mechanism, RecordSpace, RelativeEntropyBall
from cvxleak.model.knowledge.violations import center, function_values, violations_of_prior
from cvxleak.model.restricted import restrict
from cvxleak.problem.bound import Status
from cvxleak.proofs import Certificate, verify
from cvxleak.proofs.checker import PROVERS
from cvxleak.queries import count, parity
from tests.reference import information

LOG2 = math.log(2)


def h(p: float) -> float:
    return float(entr([p, 1 - p]).sum())


def random_mechanism(seed: int) -> Mechanism:
    rows = np.random.default_rng(seed).dirichlet(np.ones(3), size=6)
    return Mechanism.from_channel(RecordSpace([(0, 1), (0, 1, 2)]), rows)


def both(x: int, y: int) -> float:
    return float(x == 1 and y > 0)


REFERENCE = np.array([0.3, 0.1, 0.2, 0.1, 0.2, 0.1])

NEVER = Expectation(both, records=(0, 1), at_most=0)

CLASSES = {
    "inequality": Expectation(both, records=(0, 1), at_most=0.15),
    "two sides": Expectation(both, records=(0, 1), at_least=0.1, at_most=0.2),
    "equation": Expectation(both, records=(0, 1), equals=0.4),
    "marginal": KnownMarginals([0.3, 0.7], records=0),
    "other's marginal": KnownMarginals([0.2, 0.3, 0.5], records=1),
    "ball": RelativeEntropyBall(0.15, prior=REFERENCE),
    "product ball": RelativeEntropyBall(0.2, laws=[[0.5, 0.5], [0.5, 0.25, 0.25]]),
}


def violation(given, mechanism: Mechanism, p: np.ndarray) -> float:
    known = given.bind(mechanism.query)
    return max(
        violations_of_prior([known], mechanism.query, p.reshape(mechanism.space.shape)).values()
    )


def brute_force(mechanism: Mechanism, given, floor: float, seed: int) -> float:
    """Best of SLSQP runs on full priors, which know nothing of lumping."""
    known = given.bind(mechanism.query)
    lumped, rows = mechanism.lumped(0), mechanism.channel.matrix
    rng = np.random.default_rng(seed)

    def law(p):
        return np.maximum(p, 1e-300) / np.maximum(p, 1e-300).sum()

    def rules():
        yield {"type": "eq", "fun": lambda p: p.sum() - 1}
        yield {"type": "ineq", "fun": lambda p: entr(law(p)).sum() - floor}
        if isinstance(known, Expectation):
            c = function_values(known, mechanism.query).ravel()
            if known.at_least == known.at_most:
                yield {"type": "eq", "fun": lambda p: c @ p - known.at_most}
            else:
                yield {"type": "ineq", "fun": lambda p: known.at_most - c @ p}
                if known.at_least is not None:
                    yield {"type": "ineq", "fun": lambda p: c @ p - known.at_least}
        elif isinstance(known, KnownMarginals):
            axis = known.records[0]
            target = np.asarray(known.law)
            yield {
                "type": "eq",
                "fun": lambda p: (p.reshape(2, 3).sum(axis=1 - axis) - target)[:-1],
            }
        else:
            p0 = center(known, mechanism.query).ravel()
            yield {
                "type": "ineq",
                "fun": lambda p: known.radius - (law(p) * np.log(law(p) / p0)).sum(),
            }

    best = 0.0
    for _ in range(12):
        run = minimize(
            lambda p: -information((law(p)[:, None] * rows).reshape(2, 3, -1).sum(axis=1)),
            rng.dirichlet(np.ones(6)),
            method="SLSQP",
            bounds=[(0, 1)] * 6,
            constraints=list(rules()),
            options={"maxiter": 300},
        )
        p = law(run.x)
        if violation(given, mechanism, p) < 1e-6 and entr(p).sum() > floor - 1e-6:
            best = max(best, lumped_information(mechanism.lump(0, p), lumped))
    return best


@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize("floor", [0.0, 1.3])
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_brute_force_lies_inside_and_the_certificate_passes(name, floor, seed, tmp_path):
    given = CLASSES[name]
    mechanism = random_mechanism(seed)
    bound = record_leakage(mechanism, floor, 0, adversaries=given, tol=1e-3)
    assert bound.status is Status.CERTIFIED
    best = brute_force(mechanism, given, floor, seed)
    # A local method, which may miss the best by a little.
    assert 0.98 * bound.lower <= best <= bound.upper + 2e-5
    # The witness is what it is said to be: written out, in the class and above the floor.
    prior = bound.witness.expand()
    p = prior.probabilities
    assert violation(given, mechanism, p) <= 1e-9
    assert entr(p).sum() >= floor - 1e-9
    value = lumped_information(mechanism.lump(0, p), mechanism.lumped(0))
    assert value == pytest.approx(bound.lower, abs=1e-9)
    bound.certificate.save(tmp_path / "file.json")
    assert verify(tmp_path / "file.json").passed


@pytest.mark.parametrize("n", [3, 12, 300])
def test_known_marginals_of_parity(n):
    """The others' parity can be known for sure, so what is left is the record's own law."""
    bound = record_leakage(
        Mechanism(parity(n), binary_symmetric(0.1)),
        0.0,
        adversaries=KnownMarginals([0.9, 0.1]),
        tol=1e-2,
    )
    assert bound.status is Status.CERTIFIED
    truth = h(0.9 * 0.1 + 0.1 * 0.9) - h(0.1)
    assert bound.lower == pytest.approx(truth, abs=1e-4)
    assert bound.lower <= truth + 1e-12
    assert bound.upper >= truth - 1e-12


def test_a_ball_around_the_uniform_prior_is_an_entropy_floor():
    """D(p || uniform) = log|X| - H(p)."""
    mechanism = Mechanism(count(4), random_rounding(4, 3))
    floor = 1.9
    ball = RelativeEntropyBall(4 * LOG2 - floor, laws=[0.5, 0.5])
    plain = record_leakage(mechanism, floor, tol=1e-3)
    within = record_leakage(mechanism, 0.0, adversaries=ball, tol=1e-3)
    assert within.lower <= plain.upper + 1e-9
    assert plain.lower <= within.upper + 1e-9
    assert within.status is Status.CERTIFIED


def test_a_ball_of_radius_zero_is_its_reference():
    mechanism = Mechanism(parity(2), binary_symmetric(0.2))
    p0 = np.array([0.4, 0.1, 0.2, 0.3])
    bound = record_leakage(mechanism, 0.0, 0, adversaries=RelativeEntropyBall(0.0, prior=p0))
    truth = lumped_information(mechanism.lump(0, p0), mechanism.lumped(0))
    assert bound.lower == pytest.approx(truth, abs=1e-12)
    assert bound.upper == pytest.approx(truth, abs=1e-4)


def test_knowledge_can_only_lower_the_leakage_and_more_of_it_more_so():
    mechanism = random_mechanism(3)
    every = [
        CLASSES["inequality"],
        RelativeEntropyBall(0.5, laws=[[0.5, 0.5], [0.5, 0.25, 0.25]]),
        CLASSES["other's marginal"],
    ]
    before = record_leakage(mechanism, 0.5, 0, tol=1e-3).upper
    for size in (1, 2, 3):
        known = every[:size]
        bound = record_leakage(mechanism, 0.5, 0, adversaries=known, tol=1e-3)
        assert bound.lower <= before + 1e-12
        before = bound.upper
        for one in known:
            assert violation(one, mechanism, bound.witness.expand().probabilities) <= 1e-9


@pytest.mark.slow
def test_the_same_knowledge_twice_is_that_knowledge():
    """An equation that is there twice has multipliers that cancel each other in several ways."""
    mechanism = random_mechanism(0)
    known = CLASSES["marginal"]
    near = RelativeEntropyBall(1e-3, prior=REFERENCE / REFERENCE.sum())
    law = REFERENCE.reshape(2, 3).sum(axis=1)
    for one, more in ((known, []), (KnownMarginals(law, records=0), [near])):
        once = record_leakage(mechanism, 1.2, 1, adversaries=[one, *more], tol=1e-3)
        twice = record_leakage(mechanism, 1.2, 1, adversaries=[one, *more, one], tol=1e-3)
        assert twice.status is Status.CERTIFIED
        assert twice.lower <= once.upper
        assert once.lower <= twice.upper


@pytest.mark.parametrize(
    "known",
    [
        KnownMarginals([1.0, 0.0], records=0),
        KnownMarginals([0.0, 1.0]),
        Expectation(lambda x: x, records=0, at_most=0.0),
        Expectation(lambda x: -2 * x, records=0, at_most=-2.0),
        Expectation(lambda v: v, equals=0.0),
        Expectation(lambda v: v, equals=6.0),
        [Expectation(lambda v: v, at_most=2.0), Expectation(lambda x, y: x + y, (1, 2), equals=2)],
    ],
)
def test_datasets_that_a_constraint_excludes_are_left_out(known, tmp_path):
    """These classes determine the audited record or the output: nothing is left to bound."""
    mechanism = Mechanism(count(6), random_rounding(6, 3))
    bound = record_leakage(mechanism, 0.0, 0, adversaries=known)
    assert bound.stats["nodes"] == 0
    assert 0.0 == bound.lower <= bound.upper < 1e-30
    prior = bound.witness.expand().probabilities
    for one in [known] if not isinstance(known, list) else known:
        assert violation(one, mechanism, prior) <= 1e-15
    bound.certificate.save(tmp_path / "file.json")
    assert verify(tmp_path / "file.json").passed


def test_zeros_of_a_law_leave_the_leakage_of_the_smaller_alphabet():
    """A value that has no probability might as well not be there, wherever it stands."""
    rows = np.random.default_rng(7).dirichlet(np.ones(3), size=(2, 3))
    for value in range(3):
        others = [u for u in range(3) if u != value]
        law = np.insert([0.3, 0.7], value, 0.0)
        whole = Mechanism.from_channel(RecordSpace([(0, 1), (0, 1, 2)]), rows.reshape(6, 3))
        small = Mechanism.from_channel(RecordSpace([(0, 1), (0, 1)]), rows[:, others].reshape(4, 3))
        record = value % 2
        one = record_leakage(whole, 0.6, record, adversaries=KnownMarginals(law, records=1))
        other = record_leakage(
            small, 0.6, record, adversaries=KnownMarginals([0.3, 0.7], records=1)
        )
        assert one.lower == pytest.approx(other.lower, rel=2e-4)
        assert one.upper == pytest.approx(other.upper, rel=2e-4)


def test_a_floor_that_leaves_one_prior_needs_no_search():
    mechanism = Mechanism(parity(3), binary_symmetric(0.1))
    bound = record_leakage(mechanism, 3 * LOG2, 0, adversaries=KnownMarginals([0.5, 0.5]))
    assert bound.status is Status.CERTIFIED
    np.testing.assert_allclose(bound.witness.expand().probabilities, 1 / 8, atol=1e-6)


def test_the_search_does_not_leave_the_class_for_a_larger_leakage():
    """The best prior has three datasets; steps with hardly any entropy added end far outside."""
    zeros = [0.018, 0.2685, 0.3217, 0.9986, 0.0, 0.0002, 0.5917, 1.0]
    mechanism = Mechanism.from_channel(
        RecordSpace.binary(3), np.column_stack([zeros, 1 - np.array(zeros)])
    )
    skewed = Expectation([0, 0, -1, 1, -1, 0, 2, 0], (0, 1, 2), equals=0.21659)
    bound = record_leakage(mechanism, 0.8288, 0, adversaries=skewed, tol=1e-3)
    assert bound.status is Status.CERTIFIED
    p = np.zeros(8)
    p[[3, 4, 5]] = 0.5, 0.28341, 0.21659
    assert violation(skewed, mechanism, p) < 1e-12
    assert entr(p).sum() > 0.8288
    assert bound.lower >= lumped_information(mechanism.lump(0, p), mechanism.lumped(0))


def test_constraints_that_say_the_same():
    """An inequality that equations imply to the last digit, and equations that rounding parts."""
    mechanism = random_mechanism(5)
    rare = KnownMarginals([0.9, 0.1], records=0)
    implied = [rare, Expectation(lambda x: x, records=0, at_most=0.1)]
    once = record_leakage(mechanism, 1.2, 0, adversaries=rare, tol=1e-3)
    twice = record_leakage(mechanism, 1.2, 0, adversaries=implied, tol=1e-3)
    assert twice.status is Status.CERTIFIED
    assert twice.lower <= once.upper
    assert once.lower <= twice.upper
    # 0.1 is a tenth in both.
    agreed = [rare, Expectation(lambda x: x, records=0, equals=0.1)]
    same = record_leakage(mechanism, 1.2, 0, adversaries=agreed, tol=1e-3)
    assert same.lower <= once.upper
    assert once.lower <= same.upper
    # Sixteen digits are no third, and a law that is divided by its sum is.
    parted = [
        KnownMarginals([2 / 3, 1 / 3], records=0),
        Expectation(lambda x: x, records=0, equals=0.3333333333333333),
    ]
    with pytest.raises(InfeasibleError, match="up to rounding"):
        record_leakage(mechanism, 1.2, 0, adversaries=parted)
    apart = [rare, Expectation(lambda x: x, records=0, at_least=0.1 - 1e-12, at_most=0.1 + 1e-12)]
    third = record_leakage(mechanism, 1.2, 0, adversaries=apart, tol=1e-3)
    assert third.lower <= once.upper
    assert once.lower <= third.upper


def test_a_tiny_ball_whose_center_misses_an_equation_by_rounding():
    mechanism = Mechanism(parity(2), binary_symmetric(0.1))
    center, c = np.array([0.1, 0.2, 0.3, 0.4]), [1.0, 2.0, 3.0, 22 / 3]
    mean = Expectation(c, records=(0, 1), equals=float(center @ c))
    exact = record_leakage(
        mechanism, 0.0, adversaries=RelativeEntropyBall(0.0, prior=center), tol=1e-3
    )
    near = [RelativeEntropyBall(1e-12, prior=center), mean]
    bound = record_leakage(mechanism, 0.0, adversaries=near, tol=1e-3)
    assert bound.status is Status.CERTIFIED
    assert bound.lower == pytest.approx(exact.lower, abs=1e-5)
    # Nobody but the center is in a ball without room.
    with pytest.raises(InfeasibleError, match=r"up to rounding.*from its reference"):
        record_leakage(
            mechanism, 0.0, adversaries=[RelativeEntropyBall(0.0, prior=center), mean], tol=1e-3
        )


@pytest.mark.parametrize(
    "scale",
    [2.0**-100, 2.0**300, *(pytest.param(2.0**n, marks=pytest.mark.slow) for n in (-40, 60))],
)
def test_the_unit_of_an_expectation_does_not_matter(scale):
    mechanism = Mechanism(parity(2), binary_symmetric(0.1))
    c = np.array([1.0, -1.0, 0.0, 0.5])
    plain, scaled = (
        record_leakage(
            mechanism,
            0.4,
            adversaries=Expectation(unit * c, records=(0, 1), equals=unit * 0.125),
            tol=1e-3,
        )
        for unit in (1.0, scale)
    )
    assert scaled.status is Status.CERTIFIED
    assert scaled.lower == pytest.approx(plain.lower, rel=2e-3)


def test_coefficients_whose_differences_overflow_are_compared_exactly():
    mechanism = Mechanism(parity(2), binary_symmetric(0.1))
    c = [1e308, -1e308, 0.0, 0.0]
    known = [
        Expectation(c, records=(0, 1), equals=0.0),
        Expectation(c, records=(0, 1), at_most=0.0),
    ]
    view = restrict(mechanism, 0, [one.bind(mechanism.query) for one in known])
    assert (len(view.equations), len(view.inequalities)) == (1, 0)


@pytest.mark.slow
def test_all_records_and_groups_and_the_balance():
    mechanism = random_mechanism(4)
    known = CLASSES["ball"]
    worst = record_leakage(mechanism, 0.0, adversaries=known, tol=1e-2)
    each = [record_leakage(mechanism, 0.0, i, adversaries=known, tol=1e-2) for i in (0, 1)]
    assert worst.upper >= max(bound.lower for bound in each)
    assert worst.lower <= max(bound.upper for bound in each)
    pair = group_leakage(mechanism, 0.0, 2, adversaries=known, tol=1e-2)
    assert pair.upper >= worst.lower
    gap = balance(mechanism, 1.6, adversaries=known, tol=1e-2)
    under = record_leakage(mechanism, 1.6, adversaries=known, tol=1e-2)
    assert gap.lower <= worst.upper - under.lower + 1e-9
    assert gap.upper >= 0
    parts = gap.certificate.problem, gap.certificate.witness, gap.certificate.proof
    with precision():
        lower, upper = PROVERS["balance"].prove(*parts)
    assert lower >= gap.lower - 1e-15
    assert upper <= gap.upper + 1e-15


@pytest.mark.parametrize(
    ("known", "floor", "message"),
    [
        (Expectation(both, records=(0, 1), at_least=1.5), 0.0, r"at least 0\.5"),
        (
            [
                Expectation(both, records=(0, 1), at_least=0.8),
                Expectation(both, records=(0, 1), at_most=0.6),
            ],
            0.0,
            r"at least 0\.1",
        ),
        (KnownMarginals([0.9, 0.1], records=0), 1.6, r"has more than 1\.42369"),
        (RelativeEntropyBall(0.01, prior=REFERENCE), 1.79, "at least 0"),
        ([CLASSES["equation"], RelativeEntropyBall(1e-3, prior=REFERENCE)], 0.0, "at least 0"),
        # Datasets are left out: too many for the floor, or all of them.
        (NEVER, 1.5, r"has more than 1\.386"),
        ([NEVER, Expectation(both, records=(0, 1), at_least=1)], 0.0, "excludes every dataset"),
        (
            [RelativeEntropyBall(1.0, prior=np.eye(6)[x]) for x in (0, 1)],
            0.0,
            "excludes every dataset",
        ),
    ],
)
def test_empty_classes_are_refused_with_the_number(known, floor, message):
    with pytest.raises(InfeasibleError, match=message):
        record_leakage(random_mechanism(0), floor, adversaries=known)


def test_check_says_what_a_candidate_misses():
    mechanism = random_mechanism(1)
    problem = RecordLeakage(
        mechanism,
        1.2,
        0,
        adversaries=[
            Expectation(both, records=(0, 1), at_most=0.15, name="the rare event"),
            RelativeEntropyBall(0.1, prior=REFERENCE),
        ],
    )
    bound = problem.solve(tol=1e-2)
    check = problem.check(np.array([0.1, 0.1, 0.1, 0.1, 0.3, 0.3]), bound=bound)
    assert check.violations["the rare event is within its bounds"] == pytest.approx(0.45)
    assert check.violations["relative entropy is at most the radius"] > 0.1
    assert check.violations["entropy is at least the floor"] == 0.0
    assert not check.feasible
    assert problem.check(bound.witness.expand(), bound=bound).feasible
    lumped = problem.check(bound.witness.weights, 0, lumped=True, bound=bound)
    assert lumped.feasible
    assert lumped.value == pytest.approx(bound.lower, abs=1e-9)


def test_check_keeps_the_worst_of_two_that_are_called_the_same():
    mechanism = random_mechanism(1)
    known = [KnownMarginals([0.3, 0.7], records=0), KnownMarginals([0.2, 0.3, 0.5], records=1)]
    problem = RecordLeakage(mechanism, 0.0, 0, adversaries=known)
    bound = problem.solve(tol=1e-2)
    met = np.outer([0.3, 0.7], [0.2, 0.3, 0.5])
    assert problem.check(met.ravel(), bound=bound).feasible
    for off in (np.outer([0.9, 0.1], [0.2, 0.3, 0.5]), np.outer([0.3, 0.7], [0.8, 0.1, 0.1])):
        check = problem.check(off.ravel(), bound=bound)
        assert check.violations["records have their known distributions"] == pytest.approx(0.6)
    # Lumped weights say the same, and a class that the groups of contexts guarantee is there too.
    sure = RecordLeakage(mechanism, 0.0, 0, adversaries=KnownMarginals([1.0, 0.0], records=0))
    found = sure.solve()
    assert sure.check(found.witness.weights, 0, lumped=True, bound=found).violations == {
        "weights are non-negative": 0.0,
        "weights sum to 1": 0.0,
        "entropy is at least the floor": 0.0,
        "records have their known distributions": 0.0,
    }
    near = [RelativeEntropyBall(0.01, prior=REFERENCE), RelativeEntropyBall(9.0, prior=REFERENCE)]
    for balls in (near, near[::-1]):
        view = RecordLeakage(mechanism, 0.0, 0, adversaries=balls)
        bound = view.solve(tol=1e-1)
        weights = np.zeros(len(bound.witness.weights))
        weights[0] = 1.0
        check = view.check(weights, 0, lumped=True, bound=bound)
        assert check.violations["relative entropy is at most the radius"] > 1.0


def numbers_in(data, path=()):
    if isinstance(data, dict):
        for key, value in data.items():
            yield from numbers_in(value, (*path, key))
    elif isinstance(data, list):
        for place, value in enumerate(data):
            yield from numbers_in(value, (*path, place))
    elif isinstance(data, (int, float)) and not isinstance(data, bool):
        yield path, data


def changed(data, path, value):
    copied = copy.deepcopy(data)
    into = copied
    for key in path[:-1]:
        into = into[key]
    into[path[-1]] = value
    return copied


@pytest.fixture(scope="module")
def certificates() -> list[Certificate]:
    mechanism = random_mechanism(2)
    return [
        record_leakage(mechanism, 1.2, 0, adversaries=known, tol=1e-3).certificate
        for known in (
            CLASSES["equation"],
            [CLASSES["two sides"], CLASSES["product ball"]],
            [CLASSES["other's marginal"], CLASSES["ball"]],
        )
    ]


def prove(problem, witness, proof):
    with precision():
        return PROVERS["record-leakage"].prove(problem, witness, proof)


def test_another_class_is_not_proved(certificates):
    """A tighter class than the one of the witness, or a wider one than that of the proof."""
    free = RecordLeakage(random_mechanism(2), 1.2, 0).solve(tol=1e-2)
    for certificate in certificates:
        problem, witness, proof = certificate.problem, certificate.witness, certificate.proof
        assert prove(problem, witness, proof) == (certificate.lower, certificate.upper)
        adversaries = problem["adversaries"]
        for path, value in numbers_in(adversaries):
            for factor in (0.8, 1.3):
                other = {**problem, "adversaries": changed(adversaries, path, value * factor)}
                try:
                    lower, upper = prove(other, witness, proof)
                except CvxleakError:
                    continue
                # What passes all the same has to be true of that class too.
                assert lower <= free.upper
                assert upper >= lower


def test_a_witness_outside_the_class_fails(certificates):
    for certificate in certificates:
        weights = certificate.witness["weights"]
        for place, text in product(range(len(weights)), ("1/2", "0", "1e-3", "-1/8", "1/0", "x")):
            if weights[place] == text:
                continue
            witness = {**certificate.witness, "weights": [*weights]}
            witness["weights"][place] = text
            with pytest.raises(CertificateError):
                prove(certificate.problem, witness, certificate.proof)


def test_multipliers_of_limits_are_needed_and_checked(certificates):
    for certificate in certificates:
        without = {k: v for k, v in certificate.problem.items() if k != "adversaries"}
        with pytest.raises(CvxleakError):
            prove(without, certificate.witness, certificate.proof)
        empty = {**certificate.problem, "adversaries": []}
        with pytest.raises(CertificateError, match="not empty"):
            prove(empty, certificate.witness, certificate.proof)


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("at_most", True),
        ("at_most", "two fifths"),
        ("values", [0, 0, 0, True, 1, 1]),
        ("kind", "other"),
    ],
)
def test_parts_are_read_strictly(certificates, part, value):
    certificate = certificates[0]
    one = {**certificate.problem["adversaries"][0], part: value}
    with pytest.raises(CvxleakError):
        prove({**certificate.problem, "adversaries": [one]}, certificate.witness, certificate.proof)
