"""The queries on binary records against enumeration, and at n = 10,000 against binomials."""

import pickle
from collections import Counter
from itertools import combinations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cvxleak.core.errors import ValidationError
from cvxleak.model import AdditiveQuery, Mechanism, Query
from cvxleak.queries import count, modular_sum, pair_sum, parity


def pairs(x):
    return sum(a * b for a, b in combinations(x, 2))


DEFINITIONS = [
    (count, sum),
    (parity, lambda x: sum(x) % 2),
    (lambda n: modular_sum(n, 3), lambda x: sum(x) % 3),
    (lambda n: modular_sum(n, 5), lambda x: sum(x) % 5),
    (lambda n: modular_sum(n, 1), lambda x: 0),
    (pair_sum, pairs),
]


def brute_force_sensitivity(n, function):
    return max(
        abs(function((*x[:i], 0, *x[i + 1 :])) - function((*x[:i], 1, *x[i + 1 :])))
        for x in product((0, 1), repeat=n)
        for i in range(n)
    )


@pytest.mark.parametrize("n", [1, 2, 3, 6])
@pytest.mark.parametrize(("build", "function"), DEFINITIONS)
def test_values_fibers_and_sensitivity_are_those_of_the_definition(n, build, function):
    query = build(n)
    datasets = list(product((0, 1), repeat=n))
    assert [query(x) for x in datasets] == [function(x) for x in datasets]
    assert query.values == tuple(sorted({function(x) for x in datasets}))
    for record in range(n):
        for value, fiber in zip((0, 1), query.fibers([record]), strict=True):
            seen = Counter(function(x) for x in datasets if x[record] == value)
            assert {query.values[v]: c for v, c in fiber.items()} == dict(seen)
    assert query.sensitivity == brute_force_sensitivity(n, function)


@given(st.integers(1, 40), st.integers(1, 40))
@settings(max_examples=60)
def test_documented_sensitivities(n, m):
    assert count(n).sensitivity == 1
    assert parity(n).sensitivity == 1
    assert pair_sum(n).sensitivity == n - 1
    query = modular_sum(n, m)
    assert query.values == tuple(range(min(m - 1, n) + 1))
    assert query.sensitivity == (m - 1 if n >= m else 1)
    assert query.cyclic_sensitivity(m) == min(1, m - 1)


def test_all_records_are_exchangeable():
    for build, _ in DEFINITIONS:
        assert build(4).exchangeable() == [[0, 1, 2, 3]]


def test_ten_thousand_records():
    n = 10_000
    row = [1]
    for k in range(n - 1):
        row.append(row[-1] * (n - 1 - k) // (k + 1))
    assert count(n).fibers([0])[1] == {k + 1: ways for k, ways in enumerate(row)}
    mechanism = Mechanism(modular_sum(n, 3), [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]])
    thirds = [sum(row[r::3]) for r in range(3)]
    assert sorted(mechanism.lumped(7).multiplicities) == sorted(2 * thirds)
    assert pair_sum(n).sensitivity == n - 1
    assert pair_sum(n).values[-1] == n * (n - 1) // 2


def test_is_an_additive_query_that_survives_pickle_and_json():
    for build, _ in DEFINITIONS:
        query = build(5)
        assert isinstance(query, AdditiveQuery)
        assert pickle.loads(pickle.dumps(query)) == query
        assert Query.from_dict(query.to_dict()) == query
    assert parity(5) == modular_sum(5, 2)


@pytest.mark.parametrize("build", [count, parity, pair_sum, lambda n: modular_sum(n, 2)])
@pytest.mark.parametrize("n", [0, -1, 2.0, True, "3", None])
def test_a_number_of_records_that_is_none(build, n):
    with pytest.raises(ValidationError, match=r"^n: "):
        build(n)


@pytest.mark.parametrize("m", [0, -2, 1.5, None])
def test_a_modulus_that_is_none(m):
    with pytest.raises(ValidationError, match=r"^modulus: "):
        modular_sum(3, m)
