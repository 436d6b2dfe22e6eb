"""Independent records: brute force over the distributions, today's bounds, forged terms."""

import itertools
import json
import math

import numpy as np
import pytest

from cvxleak.audit import ProductLeakage as Search
from cvxleak.audit.old_terms_claims import terms_of
from cvxleak.kernel.independent import ProductLeakage
from cvxleak.kernel.numbers import RefusedError, lower, precision, upper
from cvxleak.kernel.reading import pack
from cvxleak.mechanisms import binary_symmetric, truncated_geometric
from cvxleak.model import Mechanism, RecordSpace
from cvxleak.queries import count, from_function, modular_sum, parity

GEOMETRIC = Mechanism(count(3), truncated_geometric(3, 1.0))
MIXED = Mechanism(
    from_function(RecordSpace([range(2), range(3), range(2)]), lambda x: x[0] + x[1] * x[2]),
    [[0.7, 0.2, 0.1], [0.2, 0.6, 0.2], [0.1, 0.3, 0.6], [0.25, 0.25, 0.5]],
)


def leakage(mechanism, record, laws):
    """I(X_i;Y) of a product prior, by all datasets."""
    shape, table = mechanism.space.shape, mechanism.query.table()
    joint = np.zeros((shape[record], mechanism.channel.shape[1]))
    for x in itertools.product(*map(range, shape)):
        weight = math.prod(law[a] for law, a in zip(laws, x, strict=True))
        joint[x[record]] += weight * mechanism.channel.matrix[table[x]]
    s, p = joint.sum(axis=0), joint.sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.nansum(joint * np.log(joint / np.outer(p, s))))


def proved(search):
    certificate = search.solve(tol=1e-3).certificate
    parts = json.loads(json.dumps([certificate.problem, certificate.witness, certificate.proof]))
    below, above = terms_of("product-leakage", *parts)
    with precision():
        statement = ProductLeakage.read(parts[0])
        low, high = lower(statement.lower(below)), upper(statement.upper(above))
    assert certificate.lower - 1e-9 <= low <= high <= certificate.upper + 1e-12
    return low, high


@pytest.mark.parametrize(
    "mechanism", [GEOMETRIC, MIXED, Mechanism(parity(3), binary_symmetric(0.1))]
)
def test_least_probabilities(mechanism):
    low, high = proved(Search(mechanism, least_probability=0.1))
    rng = np.random.default_rng(3)
    for _ in range(200):
        record = int(rng.integers(len(mechanism.space.shape)))
        laws = [
            rng.dirichlet(np.ones(k)) * (1 if j == record else 1 - 0.1 * k)
            + (0 if j == record else 0.1)
            for j, k in enumerate(mechanism.space.shape)
        ]
        assert leakage(mechanism, record, laws) <= high
    assert low > 0


def test_mixtures_of_given_distributions():
    given = [[[0.9, 0.1], [0.3, 0.7]], [[0.5, 0.5]], [[0.2, 0.8], [0.6, 0.4]]]
    low, high = proved(Search(GEOMETRIC, laws=[np.array(one) for one in given]))
    rng = np.random.default_rng(4)
    most = 0.0
    for _ in range(300):
        laws = [rng.dirichlet(np.ones(len(one))) @ np.array(one) for one in given]
        most = max(most, *(leakage(GEOMETRIC, i, laws) for i in range(3)))
    assert most <= high
    assert low <= high


def test_a_floor_for_each_record():
    low, high = proved(Search(GEOMETRIC, record_floor=0.5))
    assert 0 < low <= high
    rng = np.random.default_rng(5)
    for _ in range(300):
        laws = rng.uniform(0.2, 0.8, 3)  # h(.2) = .5004
        laws = [[1 - p, p] for p in laws]
        laws[0] = rng.dirichlet([1, 1]).tolist()
        assert leakage(GEOMETRIC, 0, laws) <= high


@pytest.mark.parametrize("floor", [0.0, 1.0])
def test_a_floor_on_the_sum(floor):
    mechanism = Mechanism(modular_sum(3, 3), [[0.6, 0.2, 0.2], [0.2, 0.6, 0.2], [0.2, 0.2, 0.6]])
    low, high = proved(Search(mechanism, floor))
    assert 0 < low <= high
    low, high = proved(Search(MIXED, floor, records=1))
    assert 0 < low <= high


def problem(**known):
    given = {"mechanism": GEOMETRIC.to_dict(), "record": None, **known}
    return json.loads(json.dumps(given))


FLOOR = {"least_probability": 0.1}


def corners(rows, **more):
    return {"rule": "corners", "inputs": [pack(rows, "<f8")], **more}


def test_any_input_distribution_bounds():
    with precision():
        statement = ProductLeakage.read(problem(laws=FLOOR))
        tight = upper(statement.upper(corners([[0.5, 0.5]] * 3)))
        loose = upper(statement.upper(corners([[0.9, 0.1]] * 3)))
    assert 0 < tight <= loose <= math.nextafter(math.log(2), 1)


FORGED = [
    ({"laws": FLOOR}, corners([[0.5, 0.5]] * 2), "3 cases need a row each"),
    ({"laws": FLOOR}, corners([[0.5, 0.5]] * 4), "3 cases need a row each"),
    ({"laws": FLOOR}, corners([[0.5, 0.25, 0.25]] * 3), "shape"),
    ({"laws": FLOOR}, corners([[-1.0, 2.0]] * 3), "negative"),
    ({"laws": FLOOR}, corners([[0.0, 0.0]] * 3), "sum of 0"),
    ({"laws": FLOOR}, {"rule": "corners", "inputs": []}, "0 entries, where 1"),
    ({"laws": FLOOR}, corners([[0.5, 0.5]] * 3, least=0.2), "only there"),
    ({"laws": FLOOR}, {"rule": "audit", "groups": []}, "a floor on the sum"),
    ({"laws": FLOOR}, {"rule": "contexts", "inputs": []}, "no such rule"),
    ({"entropy_floor": 1.0}, corners([[0.5, 0.5]] * 3), "no such rule"),
    ({"laws": {"record_floor": 0.5}}, corners([[0.5, 0.5]] * 3), "least: needed"),
    ({"laws": {"record_floor": 0.5}}, corners([[0.5, 0.5]] * 3, least=0.3), "wrong side"),
    ({"laws": {"record_floor": 0.5}}, corners([[0.5, 0.5]] * 3, least=0.9), "from 0 to 1/2"),
    ({"laws": {"least_probability": 0.6}}, {}, "least: a probability"),
    ({"laws": {"least_probability": -0.1}}, {}, "least: a probability"),
    ({"laws": {"unknown": 1}}, {}, "what is known"),
    ({"laws": 1}, {}, "what is known"),
    ({"laws": {**FLOOR, "record_floor": 1}}, {}, "what is known"),
    ({"laws": {"vertices": [[[[0.5, 0.5]], 2]]}}, {}, "3 records are needed"),
    ({"laws": {"vertices": [[[[0.5, 0.5, 0]], 3]]}}, {}, "3 entries, where 2"),
    ({"laws": {"vertices": [[[], 3]]}}, {}, "no vertex"),
    ({"laws": FLOOR, "gain": {"kind": "guess"}}, {}, "it has no gain"),
    ({"laws": FLOOR, "record": 3}, {}, "record: found 3"),
]


@pytest.mark.parametrize(("known", "term", "message"), FORGED)
def test_forged_upper_ends_are_refused(known, term, message):
    with precision(), pytest.raises(RefusedError, match=message):
        ProductLeakage.read(problem(**known)).upper(term)


POINT = {"rule": "point", "record": 0, "weights": [[[0.5, 0.5], 3]]}


@pytest.mark.parametrize(
    ("known", "term", "message"),
    [
        ({"entropy_floor": 2.0}, {**POINT, "weights": [[[0.9, 0.1], 3]]}, "reach the floor"),
        ({"entropy_floor": 2.0}, {**POINT, "weights": [[[0.5, 0.5], 2]]}, "3 records"),
        ({"entropy_floor": 2.0, "record": 1}, POINT, "not audited"),
        ({"entropy_floor": 2.0}, {**POINT, "record": 3}, "record: found 3"),
        ({"laws": {"record_floor": 0.5}}, {**POINT, "least": 0.1}, "wrong side"),
        ({"laws": {"record_floor": 0.5}}, POINT, "least: needed"),
    ],
)
def test_forged_lower_ends_are_refused(known, term, message):
    with precision(), pytest.raises(RefusedError, match=message):
        ProductLeakage.read(problem(**known)).lower(term)


def test_a_witness_attains_what_is_proved():
    with precision():
        statement = ProductLeakage.read(problem(entropy_floor=2.0))
        found = lower(statement.lower(POINT))
    assert found == pytest.approx(leakage(GEOMETRIC, 0, [[0.5, 0.5]] * 3), abs=1e-12)
