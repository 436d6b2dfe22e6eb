"""What may be known of an adversary: tables, labels, and lumping that keeps it exact."""

from __future__ import annotations

import math
import pickle
from itertools import product

import numpy as np
import pytest
from scipy.optimize import linprog

from cvxleak.core.errors import InfeasibleError, ValidationError
from cvxleak.mechanisms import binary_symmetric, truncated_geometric
from cvxleak.model import (
    AdditiveQuery,
    Expectation,
    Knowledge,
    KnownMarginals,
    Mechanism,
    Prior,
    RecordSpace,
    RelativeEntropyBall,
)
from cvxleak.model.knowledge.binding import as_knowledge, exchangeable
from cvxleak.model.knowledge.violations import (
    expand,
    lump,
    violations_of_prior,
    violations_of_weights,
)
from cvxleak.model.restricted import restrict
from cvxleak.queries import count, parity

THREE = Mechanism(parity(3), binary_symmetric(0.1))
SUM = AdditiveQuery(RecordSpace.binary(3), [(0, 1)] * 3)

KINDS = [
    Expectation(lambda x, y: x * y, records=(0, 2), at_most=0.2),
    Expectation([0.0, 1.0, 4.0, 9.0], query=SUM, equals=1.5),
    Expectation({0: 0.0, 1: 1.0}, at_least=0.3),
    KnownMarginals([0.8, 0.2]),
    KnownMarginals([0.8, 0.2], records=[1, 2]),
    RelativeEntropyBall(0.1, laws=[0.7, 0.3]),
    RelativeEntropyBall(0.1, laws=[[0.7, 0.3], [0.5, 0.5], [0.7, 0.3]]),
    RelativeEntropyBall(0.2, prior=np.arange(1, 9) / 36),
]


@pytest.mark.parametrize("given", KINDS, ids=range(len(KINDS)))
@pytest.mark.parametrize("records", [0, (0, 1)])
def test_lumping_keeps_entropy_and_all_that_is_known(given, records):
    known = as_knowledge(given, THREE.query)
    view = restrict(THREE, records, known)
    rng = np.random.default_rng(0)
    w = rng.dirichlet(np.ones(len(view.lumped.rows)))
    prior = expand(view, w)
    p = prior.probabilities.reshape(2, 2, 2)
    assert lump(view, prior) == pytest.approx(w)
    # The two ways to say by how much it is missed: of the full prior, and of the weights.
    of_prior = violations_of_prior(known, THREE.query, p)
    of_weights = violations_of_weights(view, w, known)
    if isinstance(given, KnownMarginals):
        assert max(of_weights.values()) > 1e-3
    else:
        assert of_prior == pytest.approx(of_weights, abs=1e-12)
    assert sum(view.lumped.multiplicities) == 8


def test_marginals_of_records_that_can_be_swapped_are_met_one_by_one():
    mechanism = Mechanism(count(5), truncated_geometric(5, 1.0))
    known = as_knowledge(KnownMarginals([0.75, 0.25]), mechanism.query)
    view = restrict(mechanism, 0, known)
    rows = np.array([one.coefficients for one in view.equations])
    sides = np.array([float(one.side) for one in view.equations])
    cost = np.random.default_rng(0).normal(size=rows.shape[1])
    rows, sides = np.vstack([rows, np.ones(len(cost))]), np.append(sides, 1.0)
    w = linprog(cost, A_eq=rows, b_eq=sides, bounds=(0, 1)).x
    p = expand(view, w)
    assert violations_of_prior(known, mechanism.query, p.probabilities.reshape((2,) * 5)) == {
        "records have their known distributions": pytest.approx(0.0, abs=1e-6)
    }


def test_groups_are_exact_counts_of_datasets_that_agree():
    given = [KINDS[0], RelativeEntropyBall(0.1, laws=[0.7, 0.3])]
    view = restrict(THREE, 1, as_knowledge(given, THREE.query))
    expected: dict[tuple, int] = {}
    for x in product((0, 1), repeat=3):
        key = (x[1], sum(x) % 2, x[0] * x[2], sum(x))
        expected[key] = expected.get(key, 0) + 1
    assert sorted(view.lumped.multiplicities) == sorted(expected.values())


def test_thousands_of_records():
    mechanism = Mechanism(parity(2000), binary_symmetric(0.1))
    known = as_knowledge(KnownMarginals([0.9, 0.1]), mechanism.query)
    view = restrict(mechanism, 0, known)
    assert sum(view.lumped.multiplicities) == 2**2000
    assert mechanism.groups(1, exchangeable(mechanism.query, known)) == [(0,)]


def test_what_is_known_tells_records_apart():
    for given, parts in [
        (KINDS[0], [[0], [1], [2]]),
        (KINDS[3], [[0, 1, 2]]),
        (KINDS[4], [[0], [1, 2]]),
        (KINDS[6], [[0, 2], [1]]),
        (KINDS[7], [[0], [1], [2]]),
    ]:
        assert exchangeable(THREE.query, as_knowledge(given, THREE.query)) == parts


def test_datasets_that_the_reference_excludes_are_left_out():
    ball = RelativeEntropyBall(0.5, laws=[[1.0, 0.0], [0.5, 0.5], [0.5, 0.5]])
    view = restrict(THREE, 0, as_knowledge(ball, THREE.query))
    assert view.lumped.values == (0,)
    assert sum(view.lumped.multiplicities) == 4
    p = np.full((2, 2, 2), 1 / 8)
    bound = ball.bind(THREE.query)
    assert violations_of_prior([bound], THREE.query, p) == {bound.statement: math.inf}
    none = [
        ball,
        RelativeEntropyBall(0.5, laws=[[0.0, 1.0], [0.5, 0.5], [0.5, 0.5]]),
    ]
    with pytest.raises(InfeasibleError, match="every dataset"):
        restrict(THREE, 0, as_knowledge(none, THREE.query))


@pytest.mark.parametrize("given", KINDS, ids=range(len(KINDS)))
def test_files_and_pickles(given):
    bound = given.bind(THREE.query)
    again = Knowledge.from_dict(bound.to_dict()).bind(THREE.query)
    assert again.to_dict() == bound.to_dict()
    assert again == bound
    assert pickle.loads(pickle.dumps(bound)) == bound


@pytest.mark.parametrize(
    ("make", "argument"),
    [
        (lambda: Expectation([1.0]), "at_most"),
        (lambda: Expectation([1.0], at_least=1.0, at_most=0.0), "at_least"),
        (lambda: Expectation([1.0], at_least=1.0, equals=0.0), "equals"),
        (lambda: Expectation([1.0], records=0, query=SUM, equals=0.0), "query"),
        (lambda: Expectation([1.0], query="f", equals=0.0), "query"),
        (lambda: Expectation([1.0, 2.0, 3.0], equals=1.0).bind(SUM), "feature"),
        (lambda: Expectation({0: 1.0}, equals=1.0).bind(SUM), "feature"),
        (lambda: Expectation(lambda v: math.inf, equals=1.0).bind(SUM), "feature"),
        (lambda: Expectation(lambda v: sum(v), equals=1.0).bind(SUM), "feature"),
        (lambda: Expectation([1.0, 2.0], records=5, equals=1.0).bind(SUM), "records"),
        (lambda: Expectation(sum, records=range(30), equals=1.0).bind(count(30)), "records"),
        (lambda: Expectation(abs, query=count(2), equals=1.0).bind(SUM), "query"),
        (lambda: KnownMarginals([0.5, 0.3, 0.2]).bind(SUM), "law"),
        (lambda: RelativeEntropyBall(0.1), "prior"),
        (lambda: RelativeEntropyBall(-0.1, laws=[0.5, 0.5]), "radius"),
        (lambda: RelativeEntropyBall(0.1, laws=[[0.5, 0.5]] * 2).bind(SUM), "laws"),
        (lambda: RelativeEntropyBall(0.1, laws=[]).bind(SUM), "laws"),
        (lambda: RelativeEntropyBall(0.1, laws=0.5).bind(SUM), "laws"),
        (lambda: RelativeEntropyBall(0.1, laws={0.2, 0.8}).bind(SUM), "laws"),
        (lambda: RelativeEntropyBall(0.1, prior=[0.5, 0.5]).bind(SUM), "prior"),
        (lambda: as_knowledge([0.5], SUM), "adversaries"),
        (lambda: Knowledge.from_dict({"kind": "nonsense"}), "data"),
    ],
)
def test_wrong_arguments(make, argument):
    with pytest.raises(ValidationError) as caught:
        make()
    assert caught.value.argument == argument


def test_records_with_other_alphabets():
    mechanism = Mechanism.from_channel(RecordSpace([(0, 1), (0, 1, 2)]), [[0.5, 0.5]] * 6)
    with pytest.raises(ValidationError, match="alphabets"):
        KnownMarginals([0.5, 0.5]).bind(mechanism.query)
    law = Prior([0.2, 0.3, 0.5], [2, 1, 0])
    bound = KnownMarginals(law, records=1).bind(mechanism.query)
    assert bound.law.tolist() == [0.5, 0.3, 0.2]


def test_too_many_joint_values():
    mechanism = Mechanism(count(30), truncated_geometric(30, 1.0))
    known = as_knowledge(
        [Expectation(lambda *x: sum(x), records=range(16), at_most=3.0)], mechanism.query
    )
    with pytest.raises(ValidationError, match="one by one") as caught:
        restrict(mechanism, 20, known)
    assert caught.value.argument == "adversaries"
