"""Independent records: brute force over the distributions, channels from below, forged terms."""

import itertools
import json
import math

import numpy as np
import pytest
from flint import arb, arb_poly, fmpq

from cvxleak.audit import ProductLeakage as Search
from cvxleak.kernel import cases, independent
from cvxleak.kernel.cases import Channels, gained, leaked, simplex
from cvxleak.kernel.gains import Table
from cvxleak.kernel.independent import ProductLeakage, corners
from cvxleak.kernel.numbers import RefusedError, lower, precision, upper
from cvxleak.kernel.reading import pack
from cvxleak.kernel.space import Space
from cvxleak.mechanisms import binary_symmetric, truncated_geometric
from cvxleak.model import AdditiveQuery, ChannelSet, Mechanism, RecordSpace
from cvxleak.proofs import verify
from cvxleak.queries import count, from_function, from_table, modular_sum, parity

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
    bound = search.solve(tol=1e-3)
    answer = verify(bound.certificate)
    assert answer.passed
    assert (answer.lower, answer.upper) == (bound.lower, bound.upper)
    return bound.lower, bound.upper


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


def problem(mechanism=GEOMETRIC, **known):
    given = {"mechanism": mechanism.to_dict(), "record": None, **known}
    return json.loads(json.dumps(given))


FLOOR = {"least_probability": 0.1}


def by_cases(rows, **more):
    return {"rule": "corners", "inputs": [pack(rows, "<f8")], **more}


EVEN = [[0.5, 0.5]] * 3


def test_any_input_distribution_bounds():
    with precision():
        statement = ProductLeakage.read(problem(laws=FLOOR))
        tight, other, loose = (
            upper(statement.upper(by_cases([row] * 3)))
            for row in ([0.5, 0.5], [0.25, 0.25], [0.9, 0.1])
        )
        # No more than all of a record is told.
        told = problem(mechanism=Mechanism(count(3), np.eye(4)), laws=FLOOR)
        most = upper(ProductLeakage.read(told).upper(by_cases([[1e-9, 1.0]] * 3)))
        assert arb(2).log() < arb(most) < 0.69314718056
    assert 0 < tight < loose
    assert tight < other


BOXES = Mechanism(count(3), ChannelSet([[0.4, 0.4]] * 4, [[0.6, 0.6]] * 4))
FORGED = [
    ({"laws": FLOOR}, by_cases([[0.5, 0.5]] * 2), "3 cases need a row each"),
    ({"laws": FLOOR}, by_cases([[0.5, 0.5]] * 4), "3 cases need a row each"),
    ({"laws": FLOOR}, by_cases([[0.5, 0.25, 0.25]] * 3), "shape"),
    ({"laws": FLOOR}, by_cases([[-0.5, 0.5]] * 3), "from 0 to 1"),
    ({"laws": FLOOR}, by_cases([[0.5, 0.5], [0.5, 0.5], [0.5, 1.5]]), "from 0 to 1"),
    ({"laws": FLOOR}, by_cases([[0.5, 0.5], [math.nan, 0.5], [0.5, 0.5]]), "not finite"),
    ({"laws": FLOOR}, by_cases([[0.5, 0.5], [0.0, 0.0], [0.5, 0.5]]), "probability 0"),
    ({"laws": FLOOR}, {"rule": "corners", "inputs": []}, "0 entries, where 1"),
    ({"laws": FLOOR}, {"rule": "corners", "inputs": {"0": 1}}, "expected a list"),
    ({"laws": FLOOR}, {"rule": "corners"}, "without inputs"),
    ({"laws": FLOOR}, by_cases(EVEN, note=1), "it has no note"),
    ({"laws": FLOOR}, by_cases(EVEN, least=0.2), "only there"),
    ({"laws": FLOOR}, {"rule": "audit", "groups": []}, "a floor on the sum"),
    ({"laws": FLOOR}, {"rule": "contexts", "inputs": []}, "no such rule"),
    ({"laws": FLOOR}, [], "with its rule"),
    ({"entropy_floor": 1.0}, by_cases(EVEN), "no such rule"),
    ({"entropy_floor": 1.0}, {"rule": "contexts", "inputs": [pack(EVEN[:2], "<f8")]}, "3 cases"),
    ({"entropy_floor": 1.0}, {"rule": "audit", "groups": [], "note": 1}, "it has no note"),
    ({"laws": {"record_floor": 0.5}}, by_cases(EVEN), "least: needed"),
    ({"laws": {"record_floor": 0.5}}, by_cases(EVEN, least=0.3), "wrong side"),
    ({"laws": {"record_floor": 0.5}}, by_cases(EVEN, least=0.9), "from 0 to 1/2"),
    ({"laws": {"record_floor": 0.5}}, by_cases(EVEN, least=-0.1), "from 0 to 1/2"),
    ({"laws": {"record_floor": 0.5}}, by_cases(EVEN, least=None), "expected a number"),
    ({"laws": {"least_probability": 0.6}}, {}, "least: a probability"),
    ({"laws": {"least_probability": -0.1}}, {}, "least: a probability"),
    ({"laws": {"least_probability": None}}, {}, "expected a number"),
    ({"laws": {"unknown": 1}}, {}, "what is known"),
    ({"laws": {}}, {}, "what is known"),
    ({"laws": 1}, {}, "what is known"),
    ({"laws": None}, {}, "what is known"),
    ({"laws": ["least_probability"]}, {}, "what is known"),
    ({"laws": {**FLOOR, "record_floor": 1}}, {}, "what is known"),
    ({"laws": {"vertices": [[[[0.5, 0.5]], 2]]}}, {}, "different numbers"),
    ({"laws": {"vertices": [[[[0.5, 0.5]], 4]]}}, {}, "different numbers"),
    ({"laws": {"vertices": [[[[0.5, 0.5]], 2]] * 2}}, {}, "different numbers"),
    ({"laws": {"vertices": [[[[0.5, 0.5, 0]], 3]]}}, {}, "3 entries, where 2"),
    ({"laws": {"vertices": [[[[1.5, -0.5]], 3]]}}, {}, "negative"),
    ({"laws": {"vertices": [[[], 3]]}}, {}, "no vertex"),
    ({"laws": {"vertices": [[None, 3]]}}, {}, "vertices: expected a list"),
    ({"laws": {"vertices": [[[[1, "1e-300"]], 3]]}}, {}, "no float holds"),
    ({"laws": {"vertices": [[{"0": [0.5, 0.5]}, 3]]}}, {}, "expected a list"),
    ({"laws": FLOOR, "gain": {"kind": "guess"}}, {}, "come together"),
    ({"laws": FLOOR, "form": "rise"}, {}, "come together"),
    ({"laws": FLOOR, "gain": {"kind": "guess"}, "form": "most"}, {}, "no such form"),
    ({"laws": FLOOR, "entropy_floor": 0.0}, {}, "it has no entropy_floor"),
    ({"laws": FLOOR, "note": 1}, {}, "it has no note"),
    ({"laws": FLOOR, "record": 3}, {}, "record: found 3"),
    ({"laws": FLOOR, "record": -1}, {}, "record: found -1"),
    ({"entropy_floor": True}, {}, "expected a number"),
    ({"laws": FLOOR, "mechanism": BOXES}, {}, "a set of channels"),
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
        ({"entropy_floor": 2.0}, {**POINT, "weights": [[[0.5, 0.5], 2]]}, "different numbers"),
        ({"entropy_floor": 2.0, "record": 1}, POINT, "not audited"),
        ({"entropy_floor": 2.0}, {**POINT, "record": 3}, "record: found 3"),
        ({"laws": {"record_floor": 0.5}}, {**POINT, "least": 0.1}, "wrong side"),
        ({"laws": {"record_floor": 0.5}}, POINT, "least: needed"),
        ({"laws": FLOOR}, {**POINT, "least": 0.2}, "only there"),
        ({"laws": FLOOR}, {**POINT, "note": 1}, "it has no note"),
        ({"laws": FLOOR}, {**POINT, "weights": [[[0.5, 0.5], 4]]}, "different numbers"),
        (
            {"laws": FLOOR},
            {**POINT, "weights": [[[0.5, 0.5], 2]] * 2},
            "different numbers",
        ),
        ({"laws": FLOOR}, {**POINT, "weights": [[[1.5, -0.5], 3]]}, "negative"),
        ({"laws": FLOOR}, {**POINT, "weights": [[[0.5, 0.5, 0.0], 3]]}, "3 entries, where 2"),
        ({"laws": FLOOR}, {**POINT, "weights": {"0": 1}}, "expected a list"),
    ],
)
def test_forged_lower_ends_are_refused(known, term, message):
    with precision(), pytest.raises(RefusedError, match=message):
        ProductLeakage.read(problem(**known)).lower(term)


@pytest.mark.parametrize("wrong", [None, 5, [], "laws"])
def test_a_problem_is_an_object(wrong):
    with pytest.raises(RefusedError, match="expected an object"):
        ProductLeakage.read(wrong)


def test_ends_of_what_is_known_are_part_of_it():
    with precision():
        # Nothing is doubted, and nothing has to be; both probabilities are 1/2 or more.
        sure = {**POINT, "weights": [[[1, 0], 3]]}
        assert ProductLeakage.read(problem(entropy_floor=0)).lower(sure) == 0
        half = ProductLeakage.read(problem(laws={"least_probability": 0.5}))
        assert 0 < upper(half.upper(by_cases(EVEN[:1]))) < math.log(2)
        none = ProductLeakage.read(problem(laws={"record_floor": 0}))
        assert none.lower({**sure, "least": 0}) == 0
        assert 0 < upper(none.upper(by_cases(EVEN, least=0))) < math.log(2)
        most = ProductLeakage.read(problem(laws={"record_floor": 0.7}))
        assert upper(most.upper(by_cases(EVEN[:1], least=0.5))) == upper(
            half.upper(by_cases(EVEN[:1]))
        )


def test_a_total_without_a_value_leads_to_no_output():
    # The file does not say what the value of a count of 3 is.
    query = {**GEOMETRIC.query.to_dict(), "totals": [[0], [1], [2]], "values": [0, 1, 2]}
    channel = {"inputs": [0, 1, 2], "matrix": [[0.5, 0.5], [0, 1], [1, 0]]}
    known = problem(laws=FLOOR) | {"mechanism": {"query": query, "channel": channel}}
    with precision():
        statement = ProductLeakage.read(known)
        assert statement.channels.places.tolist() == [0, 1, 2, -1]
        with pytest.raises(RefusedError, match="a total without a value"):
            statement.lower(POINT)
        rows = np.concatenate(list(statement.blocks(statement.people(), 0)))
    # With both of the others at (.1, .9), x_0 = 1 leads to 3 with probability .81.
    assert rows.sum(axis=2).min() == pytest.approx(0.19)


def test_each_block_of_cases_has_its_own_inputs(monkeypatch):
    table = [[0.5, 0.5], [0.3, 0.7], [0.6, 0.4]]
    with precision():
        statement = ProductLeakage.read(problem(laws=FLOOR))
        found = upper(statement.upper(by_cases(table)))
        monkeypatch.setattr(cases, "BLOCK", 1)
        assert upper(statement.upper(by_cases(table))) == pytest.approx(found, rel=1e-12)


def test_a_witness_attains_what_is_proved():
    with precision():
        statement = ProductLeakage.read(problem(entropy_floor=2.0))
        found = lower(statement.lower(POINT))
    assert found == pytest.approx(leakage(GEOMETRIC, 0, [[0.5, 0.5]] * 3), abs=1e-12)


def test_an_attacked_record_may_have_any_distribution():
    known = {"mechanism": Mechanism(parity(2), binary_symmetric(0.25)), "laws": FLOOR}
    sure, even = [1.0, 0.0], [0.5, 0.5]
    with precision():
        statement = ProductLeakage.read(problem(**{**known, "laws": {"least_probability": 0.25}}))
        ends = [
            lower(statement.lower({"rule": "point", "record": i, "weights": weights}))
            for i, weights in (
                (0, [[sure, 2]]),
                (0, [[even, 1], [sure, 1]]),
                (1, [[sure, 1], [even, 1]]),
            )
        ]
    off = 0.25 + 0.25 / 2
    assert ends[0] == 0
    assert ends[1:] == pytest.approx(
        [math.log(2) + off * math.log(off) + (1 - off) * math.log(1 - off)] * 2
    )


def test_an_interval_of_probabilities_for_a_record_floor():
    with precision():
        statement = ProductLeakage.read(problem(laws={"record_floor": 0.5}))
        ends = [upper(statement.upper(by_cases(EVEN, least=x))) for x in (0.0, 0.1, 0.199)]
        given = {**POINT, "weights": [[[0.5, 0.5], 1], [[1.0, 0.0], 2]]}
        values = [lower(statement.lower({**given, "least": x})) for x in (0.2, 0.3, 0.45)]
    assert ends == sorted(ends, reverse=True)
    assert values[2] < values[0] < ends[2]


@pytest.mark.parametrize("sizes", [(2, 3), (2, 1)])
def test_a_record_floor_is_for_two_values(sizes):
    query = from_table(RecordSpace([range(k) for k in sizes]), np.arange(math.prod(sizes)) % 2)
    known = {"mechanism": Mechanism(query, np.eye(2)), "laws": {"record_floor": 0.5}}
    with precision(), pytest.raises(RefusedError, match="records with two values"):
        ProductLeakage.read(problem(**known)).upper(by_cases(EVEN, least=0.1))


def test_the_worst_of_records_that_differ_counts():
    for first, table in ((0, [[0, 0], [1, 1]]), (1, [[0, 1], [0, 1]])):
        mechanism = Mechanism(from_table(RecordSpace.binary(2), table), np.eye(2))
        low, high = proved(Search(mechanism, least_probability=0.25))
        assert low <= math.log(2) <= high
        statement = ProductLeakage.read(problem(mechanism=mechanism, laws=FLOOR))
        assert statement.audited(statement.people()) == [0, 1]
        one = {"rule": "corners", "inputs": [pack([[0.5, 0.5]] * 2, "<f8")]}
        with precision(), pytest.raises(RefusedError, match="1 entries, where 2"):
            statement.upper(one)
        ends = [proved(Search(mechanism, least_probability=0.25, records=i))[1] for i in (0, 1)]
        assert ends[first] == high
        assert ends[1 - first] < 1e-12


# Channels from below -----------------------------------------------------------------------------

SPACE = RecordSpace([(0, 1, 2), (0, 1), (0, 1, 2)])
PARTS = [[(0, 2), (4, 0), (8, 2)], [(0, 0), (4, 4)], [(0, 2), (4, 0), (8, 2)]]
MANY = [[[0.5, 0.25, 0.25], [0.0, 1.0, 0.0], [0.25, 0.0, 0.75]], [[0.25, 0.75]]]
HULLS = {"vertices": [[MANY[0], 1], [MANY[1], 1], [MANY[0], 1]]}
QUERIES = {
    "count": (count(5), {"least_probability": 0.25}),
    "known": (count(6), {"least_probability": 0.0}),
    "digits": (AdditiveQuery(SPACE, PARTS), HULLS),
    "remainders": (AdditiveQuery(SPACE, PARTS, modulus=6), HULLS),
    "from 4 on": (AdditiveQuery(SPACE, [[(x + 4, y + 1) for x, y in own] for own in PARTS]), HULLS),
    "table": (from_table(SPACE, np.arange(18).reshape(3, 2, 3) % 5), HULLS),
    "constant": (AdditiveQuery(RecordSpace.binary(2), [(0, 0)] * 2), {"least_probability": 0.0}),
}


def noisy(query):
    return Mechanism(query, np.random.default_rng(4).dirichlet(np.ones(3), len(query.values)))


def brute_force(mechanism, record, laws):
    """The rows of a record's channel, the others' distributions being known."""
    rows = np.moveaxis(mechanism.to_channel().matrix.reshape(*mechanism.space.shape, -1), record, 0)
    for j, law in enumerate(laws):
        if j != record:
            rows = np.tensordot(rows, np.array([float(x.p) / float(x.q) for x in law]), (1, 0))
    return rows


def cases_of(statement, people, record):
    """Yield the others' distributions in each case."""
    others = statement.others(people, record)
    ways = [cases.compositions(one.records, len(one.vertices)) for one in others]
    for numbers in itertools.product(*ways):
        laws = [None] * len(people)
        for one, counts in zip(others, numbers, strict=True):
            alike = [
                i
                for i, person in enumerate(people)
                if i != record
                and (person.contributions, person.vertices) == (one.contributions, one.vertices)
            ]
            at = itertools.chain(*([v] * n for v, n in enumerate(counts)))
            for i, v in zip(alike, at, strict=True):
                laws[i] = one.vertices[v]
        yield laws


@pytest.mark.parametrize(("query", "laws"), QUERIES.values(), ids=QUERIES)
@pytest.mark.parametrize("block", [1, 1 << 18])
def test_rows_are_those_of_every_case(query, laws, block, monkeypatch):
    monkeypatch.setattr(cases, "BLOCK", block)
    mechanism = noisy(query)
    with precision():
        statement = ProductLeakage.read(problem(mechanism=mechanism, laws=laws))
        people = statement.people()
        for record in range(len(people)):
            found = np.concatenate(list(statement.blocks(people, record)))
            each = list(cases_of(statement, people, record))
            assert len(found) == len(each) == statement.cases(people, record)
            for rows, known in zip(found, each, strict=True):
                truth = brute_force(mechanism, record, known)
                assert rows == pytest.approx(truth, abs=1e-13)
                assert (rows.sum(axis=1) <= 1).all()
            others = [
                (person.contributions, law, 1)
                for i, (person, law) in enumerate(zip(people, each[-1], strict=True))
                if i != record
            ]
            exact = statement.channels.exactly(people[record].contributions, others)
            assert np.array([[float(x) for x in row] for row in exact]) == pytest.approx(truth)


@pytest.mark.parametrize(("query", "laws"), QUERIES.values(), ids=QUERIES)
def test_contexts_are_what_the_others_leave_of_the_query(query, laws):
    mechanism = noisy(query)
    with precision():
        statement = ProductLeakage.read(problem(mechanism=mechanism, entropy_floor=0.0))
        for i, person in enumerate(statement.people()):
            assert statement.contexts(person.contributions) == mechanism.query.lines(i)


def test_rows_are_not_above_the_truth_in_balls():
    n = 300
    with precision():
        statement = ProductLeakage.read(
            problem(mechanism=Mechanism(count(n), np.eye(n + 1)), laws={"least_probability": 0.3})
        )
        found = np.concatenate(list(statement.blocks(statement.people(), 0)))
        low, high = (arb_poly([arb(fmpq(x, 10)) for x in p]) for p in ((7, 3), (3, 7)))
        for k in (0, 1, 77, 150, 299):
            exact = low**k * high ** (n - 1 - k)
            for a, y in itertools.product((0, 1), range(n + 1)):
                truth = exact[y - a] if y >= a else arb(0)
                assert found[k, a, y] <= truth or found[k, a, y] == 0
                assert found[k, a, y] >= truth * (1 - 1e-9) - 1e-25


def test_small_entries_are_dropped():
    tiny = cases.LEAST
    rows = [[1.0, 4 * tiny], [1.0, tiny / 2]]
    with precision():
        statement = ProductLeakage.read(problem(mechanism=Mechanism(count(1), rows), laws=FLOOR))
        ((found,),) = statement.blocks(statement.people(), 0)
    assert found == pytest.approx(np.array([[1.0, 4 * tiny], [1.0, 0.0]]), rel=1e-12, abs=0)
    given = np.array([cases.TINY / 2, cases.TINY, cases.TINY / 2, 0.5, cases.TINY / 2])
    law = cases._trimmed(3, given)
    assert (law.start, law.weights.tolist()) == (4, [cases.TINY, 0.0, 0.5])
    assert cases._trimmed(3, given[:1]).weights.tolist() == [0.0]


@pytest.mark.parametrize("size", [3, 33])
def test_sums_of_two_totals(size):
    short, long = np.zeros(size), np.random.default_rng(0).random(40)
    short[[0, -1]] = 0.25, 0.75
    one, other = cases._Totals(2, long), cases._Totals(3, short)
    for pair in ((one, other), (other, one)):
        found, truth = cases._times(*pair), np.convolve(long, short)
        assert found.start == 5
        assert (found.weights <= truth).all()
        assert found.weights == pytest.approx(truth, rel=1e-14)


def test_totals_are_counted_in_units(monkeypatch):
    mechanism = noisy(AdditiveQuery(SPACE, PARTS))
    statement = ProductLeakage.read(problem(mechanism=mechanism, laws=HULLS))
    # Sums are multiples of 4 up to 20, and of 2 up to 8.
    monkeypatch.setattr(cases, "LONGEST", 30)
    assert Channels(statement.space, statement.rows).totals == 30
    monkeypatch.setattr(cases, "LONGEST", 29)
    with pytest.raises(RefusedError, match="found 30 totals"):
        Channels(statement.space, statement.rows)
    monkeypatch.setattr(cases, "LONGEST", 30)
    moved = AdditiveQuery(SPACE, [[(x + 1, y + 1) for x, y in own] for own in PARTS])
    other = ProductLeakage.read(problem(mechanism=noisy(moved), laws=HULLS))
    assert Channels(other.space, other.rows).totals == 30


def test_cases_are_as_many_as_are_gone_through(monkeypatch):
    statement = ProductLeakage.read(problem(mechanism=noisy(count(6)), laws=FLOOR))
    people = statement.people()
    monkeypatch.setattr(independent, "MOST_CASES", 6)
    assert statement.cases(people, 0) == 6
    monkeypatch.setattr(independent, "MOST_CASES", 5)
    with pytest.raises(RefusedError, match="found 6 cases"):
        statement.cases(people, 0)


def test_one_of_the_records_that_are_alike_is_attacked():
    def audited(mechanism, **known):
        statement = ProductLeakage.read(problem(mechanism=mechanism, **known))
        return statement.audited(statement.people())

    assert audited(noisy(count(3)), laws=FLOOR) == [0]
    assert audited(noisy(count(3)), laws=FLOOR, record=1) == [1]
    assert audited(noisy(AdditiveQuery(SPACE, PARTS)), laws=HULLS) == [0, 1]
    one, other = [[0.5, 0.5]], [[0.25, 0.75]]
    laws = {"vertices": [[one, 1], [other, 1], [one, 1]]}
    assert audited(noisy(count(3)), laws=laws) == [0, 1]


# What a case is worth ----------------------------------------------------------------------------


def of_laws(rows, laws):
    """I(p, rows) of some distributions p, for rows that sum to 1."""
    joint = laws[:, :, None] * rows
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = joint * np.log(rows / (laws @ rows)[:, None])
    return np.where(joint > 0, terms, 0.0).sum(axis=(1, 2))


def exactly(rows):
    return [tuple(fmpq(*float(x).as_integer_ratio()) for x in row) for row in rows]


@pytest.mark.parametrize("missing", [0.0, 1e-3, 0.2])
def test_the_leakage_of_a_case_is_below_its_bound(missing):
    rng = np.random.default_rng(7)
    truth = rng.dirichlet(np.full(9, 0.2), (20, 4))
    rows = truth * (1 - missing * rng.random((20, 4, 9)))
    own = np.round(rng.dirichlet(np.ones(4), 3), 3)
    own[:, -1] = 1 - own[:, :-1].sum(axis=1)
    mixed = rng.dirichlet(np.ones(3), 4000)
    with precision():
        found = leaked(rows, rng.dirichlet(np.ones(3), 20), exactly(own))
    for bound, channel in zip(found, truth, strict=True):
        assert of_laws(channel, mixed @ own).max() <= bound


def test_a_bound_is_tight_at_the_best_input():
    rows = np.array([[[0.75, 0.25], [0.25, 0.75]]])
    with precision():
        (found,) = leaked(rows, np.array([[0.5, 0.5]]), simplex(2))
    truth = math.log(2) + 0.75 * math.log(0.75) + 0.25 * math.log(0.25)
    assert truth <= found <= truth + 1e-14


def test_what_is_dropped_may_tell_the_rest():
    # A tenth of each row is missing: it may tell everything.
    rows = np.array([[[0.9], [0.9]]])
    with precision():
        (found,) = leaked(rows, np.array([[0.5, 0.5]]), simplex(2))
    assert 0.1 * math.log(2) <= found <= 0.1 * math.log(2) + 1e-14


def test_outputs_that_the_input_misses():
    rows = np.array([[[0.5, 0.5, 0.0], [0.0, 0.5, 0.5]]])
    with precision():
        assert leaked(rows, np.array([[1.0, 0.0]]), simplex(2)).tolist() == [math.inf]
        # Nobody has the second value.
        (found,) = leaked(rows, np.array([[1.0]]), simplex(2)[:1])
        assert 0 <= found < 1e-14


@pytest.mark.parametrize(("times", "truth"), [(0, 0.8), (1, 0.3), (None, 1.6)])
def test_a_gain_of_a_case_is_below_its_bound(times, truth):
    guess = Table(simplex(2))
    rows = np.array([[[0.75, 0.05, 0.2], [0.05, 0.65, 0.3]]])  # .75 + .65 + .3 = 1.7, half of it
    rows[0, 1] = 0.05, 0.75, 0.2
    half = [fmpq(1, 2)] * 2
    truth = {0: 0.85, 1: 0.35, None: 1.7}[times]
    with precision():
        (found,) = gained(rows, half, guess, times)
        assert truth <= found <= truth + 1e-13
        # What is missing may be guessed right.
        (more,) = gained(rows[:, :, :2], half, guess, times)
    assert more >= truth


def test_gains_that_no_float_holds_are_not_bounded():
    large = Table(((fmpq(10**308), fmpq(0)), (fmpq(0), fmpq(10**308))))
    with precision():
        found = gained(np.array([[[1.0], [1.0]]] * 2), [fmpq(1, 2)] * 2, large, 0)
    assert (found == np.inf).all()


def test_gains_below_0_of_what_is_missing_add_nothing():
    loss = Table(((fmpq(-1), fmpq(0)), (fmpq(0), fmpq(-1))))
    with precision():
        (found,) = gained(np.array([[[0.5], [0.5]]]), [fmpq(1, 2)] * 2, loss, 0)
    assert -0.25 <= found <= -0.25 + 1e-14


def test_corners_of_guesses_are_uniform_on_some_values():
    found = {tuple(x) for x, _ in corners(Table(simplex(3)), simplex(3))}
    uniform = {
        tuple(fmpq(c, sum(chosen)) for c in chosen)
        for chosen in itertools.product((0, 1), repeat=3)
        if sum(chosen)
    }
    assert found == uniform
    one = Table((tuple([fmpq(1)] * 3),) * 2)
    assert [tuple(p) for _, p in corners(one, simplex(3))] == list(simplex(3))


def test_no_distribution_beats_the_corners():
    rng = np.random.default_rng(5)
    for k, actions in ((2, 5), (3, 4), (4, 3), (4, 6)):
        table, rows = rng.normal(size=(actions, k)), rng.dirichlet(np.ones(3), k)
        hull = rng.dirichlet(np.ones(k), 4)
        drawn = rng.dirichlet(np.full(4, 0.5), 20000) @ hull
        after = np.einsum("wk,lk,ky->lyw", table, drawn, rows).max(axis=2).sum(axis=1)
        rises = after - (drawn @ table.T).max(axis=1)
        gain = Table(tuple(exactly(table)))
        laws = [law for _, law in corners(gain, exactly(hull))]
        with precision():
            for values, times in ((after, 0), (rises, 1)):
                best = max(gained(rows[None], law, gain, times)[0] for law in laws)
                assert best - 0.1 <= values.max() <= best + 1e-12


def test_corners_are_distributions_where_actions_tie_outside_of_them(monkeypatch):
    # The three tie on a line, which gives no corner; two of them tie where one weight is negative.
    table = [[1, 0, 0.5], [0, 1, 0.5], [0.5, 0.5, 0.5], [0.25, 0.25, 2]]
    found = corners(Table(tuple(exactly(table))), simplex(3))
    assert (fmpq(1, 2), fmpq(1, 2), fmpq(0)) in {tuple(x) for x, _ in found}
    assert all(sum(p) == 1 and min(p) >= 0 for _, p in found)
    # Sets of one value have one best action each, and the set of both has two.
    monkeypatch.setattr(independent, "MOST_SYSTEMS", 3)
    assert len(corners(Table(simplex(2)), simplex(2))) == 3
    # Every set of vertices counts, even if no actions tie on it.
    with pytest.raises(RefusedError, match="more than 3 systems"):
        corners(Table(((fmpq(1), fmpq(0), fmpq(0)),)), simplex(3))
    monkeypatch.setattr(independent, "MOST_SYSTEMS", 2)
    with pytest.raises(RefusedError, match="more than 2 systems"):
        corners(Table(simplex(2)), simplex(2))


# Gains -------------------------------------------------------------------------------------------

PARITY = Mechanism(parity(2), binary_symmetric(0.25))
HALF = {"rule": "point", "record": 0, "weights": [[[0.5, 0.5], 1], [[1.0, 0.0], 1]]}
LEAST = {"laws": {"least_probability": 0.25}}
GUESSES = {
    "rise": (LEAST, "rise", 0.125),
    "factor": (LEAST, "factor", 1.25),
    "posterior": (
        {"laws": {"vertices": [[[[0.25, 0.75], [0.5, 0.5]], 2]]}},
        "posterior",
        0.75,
    ),
    "floor": ({"entropy_floor": 0.5}, "rise", 0.25),
    "floor, factor": ({"entropy_floor": 0.5}, "factor", 1.5),
}


def guessed(known, form, **more):
    return problem(
        **{
            "mechanism": PARITY,
            "record": 0,
            "gain": {"kind": "guess"},
            "form": form,
            **known,
            **more,
        }
    )


@pytest.mark.parametrize(("known", "form", "truth"), GUESSES.values(), ids=GUESSES)
def test_a_gain_of_independent_records(known, form, truth):
    point = {**HALF, "weights": [[[1.0, 0.0], 2]]} if form == "posterior" else HALF
    rule = "contexts" if "entropy_floor" in known else "corners"
    with precision():
        statement = ProductLeakage.read(guessed(known, form))
        low, high = lower(statement.lower(point)), upper(statement.upper({"rule": rule}))
    assert truth - 1e-12 < low <= truth <= high < truth + 1e-12


@pytest.mark.parametrize(
    ("gain", "form", "message"),
    [
        ({"kind": "gini"}, "rise", "few linear functions"),
        ({"kind": "shannon"}, "posterior", "few linear functions"),
        ({"kind": "matrix", "table": [[1.0, 0.0, 0.0]]}, "rise", "where 2 are needed"),
        ({"kind": "matrix", "table": [[1.0, 0.0]]}, "factor", "may be 0 or less"),
        ({"kind": "matrix", "table": [[1.0, -1.0]]}, "factor", "may be 0 or less"),
        ({"kind": "matrix", "table": [[1.7e308, 0.0]]}, "rise", "too large"),
    ],
)
@pytest.mark.parametrize("known", [LEAST, {"entropy_floor": 0.5}])
def test_gains_that_no_rule_proves_are_refused(known, gain, form, message):
    rule = "contexts" if "entropy_floor" in known else "corners"
    with precision(), pytest.raises(RefusedError, match=message):
        ProductLeakage.read(guessed(known, form, gain=gain)).upper({"rule": rule})


def test_a_gain_has_no_inputs():
    with precision(), pytest.raises(RefusedError, match="it has no inputs"):
        ProductLeakage.read(guessed(LEAST, "rise")).upper(by_cases(EVEN[:2]))


def test_an_audit_is_about_the_same_gain():
    known = {"entropy_floor": 1.125}
    closed = {"rule": "audit", "groups": [[{"rule": "choices", "inputs": pack(EVEN[:1], "<f8")}]]}
    with precision(), pytest.raises(RefusedError, match="information"):
        ProductLeakage.read(guessed(known, "rise")).upper(closed)


def test_the_worst_of_records_and_cases_of_a_gain():
    told = Mechanism(from_table(RecordSpace.binary(2), [[0, 0], [1, 1]]), np.eye(2))
    # Of a record whose sum with the other one is 1 or 2 nothing is told.
    sums = Mechanism(count(2), [[0.75, 0.25], [0.25, 0.75], [0.25, 0.75]])
    for mechanism, truth in ((told, 0.5), (sums, 0.25)):
        for known, rule in (
            ({"laws": {"least_probability": 0}}, "corners"),
            ({"entropy_floor": 0}, "contexts"),
        ):
            given = guessed(known, "rise", mechanism=mechanism, record=None)
            with precision():
                high = upper(ProductLeakage.read(given).upper({"rule": rule}))
            assert truth <= high < truth + 1e-12


def test_what_a_certificate_says_that_it_is_about():
    for known, says in (
        (
            {"least_probability": 0.25},
            "each value of each other record has a probability of at least 0.25",
        ),
        ({"record_floor": 0.5}, "each other record's entropy in nats is at least 0.5"),
        ({"laws": [[0.25, 0.75], [0.5, 0.5]]}, "whose distributions are mixtures of given ones"),
        ({"entropy_floor": 0.5}, "product priors with an entropy of at least 0.5 nats"),
    ):
        for record, who in ((None, "the worst record"), (0, "record 0")):
            answer = verify(Search(PARITY, records=record, **known).solve().certificate)
            assert answer.about.startswith(who + ", product priors")
            assert answer.about.endswith(says)


def test_numbers_of_cases_and_totals_without_end_are_refused():
    # Written out, they might have more digits than Python prints.
    laws = {"vertices": [[[[str(i), str(300 - i)] for i in range(1, 300)], 300]]}
    statement = ProductLeakage.read(problem(mechanism=noisy(count(300)), laws=laws, record=0))
    with pytest.raises(RefusedError, match="found very many cases"):
        statement.cases(statement.people(), 0)
    zero, units = (0,) * 300, np.eye(300, dtype=int).tolist()
    wide = Space(tuple(((zero, tuple(one)), 1) for one in units), zero, {zero: 0}, (0,))
    with pytest.raises(RefusedError, match="found very many totals"):
        Channels(wide, {})


def test_contexts_of_a_floor_on_the_sum_are_not_cases():
    statement = ProductLeakage.read(
        problem(mechanism=Mechanism(parity(3), binary_symmetric(0.1)), entropy_floor=1.0)
    )
    # The others' parity is 0 or 1, and they are at three pairs of vertices.
    assert statement.cases(statement.people(), 0) == 2
