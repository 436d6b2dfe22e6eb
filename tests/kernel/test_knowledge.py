"""What is known about adversaries: limits against enumerated datasets, and who is one of them."""

import json
import math
from collections import Counter
from itertools import product

import numpy as np
import pytest
from flint import fmpq

from cvxleak.kernel.leakage import RecordLeakage, check_adversary
from cvxleak.kernel.numbers import RefusedError, law, precision


@pytest.fixture(autouse=True)
def _in_balls():
    with precision():
        yield


def count_of(n, modulus=None):
    """Return the count of n bits as a query."""
    totals = range(n + 1 if modulus is None else modulus)
    return {
        "kind": "additive",
        "space": {"alphabets": [[[0, 1], n]]},
        "contributions": [[[[0], [1]], n]],
        "totals": [[t] for t in totals],
        "values": list(totals),
        "modulus": modulus,
    }


def problem(query, rows, adversaries, floor=0, records=None):
    return {
        "mechanism": {"query": query, "channel": {"matrix": rows}},
        "entropy_floor": floor,
        "size": 1,
        "records": records,
        "adversaries": adversaries,
    }


def mean(values, records=None, query=None, least=None, most=None):
    return {
        "kind": "expectation",
        "values": values,
        "records": records,
        "query": query,
        "at_least": least,
        "at_most": most,
        "name": "c",
    }


def marginals(p, records):
    return {"kind": "marginals", "law": p, "records": records}


def near(radius, laws=None, prior=None):
    return {"kind": "relative-entropy", "radius": radius, "prior": prior, "laws": laws}


def geometric(n):
    rows = np.exp(-abs(np.subtract.outer(np.arange(n), np.arange(n))))
    return [[round(x, 6) for x in row] for row in (rows / rows.sum(1, keepdims=True)).tolist()]


def exact_rows(n):
    rows = [[f"{1 + (i == j)}/{n + 1}" for j in range(n)] for i in range(n)]
    return rows


def groups_of(view):
    """Return how many contexts there are of each value, row and coefficients of the limits."""
    found = Counter()
    for a, own in enumerate(view.of):
        for g in own:
            c = tuple(str(x.c[g]) for x in view.limits if x.share == 0)
            found[a, view.rows[g].key, c] += view.counts[g]
    return found


LAW = [fmpq(4, 5), fmpq(1, 5)]


def test_groups_and_limits_are_those_of_all_datasets():
    # Records 0 and 2 have a known distribution, one of four sums is bounded, and so is a product.
    known = [
        marginals([0.8, 0.2], [0, 2]),
        mean([0, 1, 2, 3, 5], most="1.5"),
        mean([0, 0, 0, 1], records=[1, 2], least=0.1, most=0.3),
        mean([1, 0], query=count_of(4, 2), most=0.6),
    ]
    rows = exact_rows(5)
    for record in range(4):
        statement = RecordLeakage.read(problem(count_of(4), rows, known, records=[[record]]))
        (view,) = statement.views
        expected = Counter()
        for x in product((0, 1), repeat=4):
            c = [0, 1, 2, 3, 5][sum(x)]
            both = x[1] * x[2]
            others = [x[i] for i in (0, 2) if i != record]
            own = [x[record]] if record in (0, 2) else []
            # In the order of the records that are alike; record 2 is also in the product.
            ones = [*own, *others] if record == 0 else [*others, *own]
            counted = [t for one in ones for t in (one, -one)]
            limits = (*counted, c, both, -both, 1 - sum(x) % 2)
            key = tuple(fmpq(*map(int, str(t).split("/"))) for t in rows[sum(x)])
            expected[x[record], key, tuple(map(str, limits))] += 1
        found = groups_of(view)
        assert found == expected
        bounds = [str(limit.bound) for limit in view.limits]
        assert bounds == ["1/5", "-1/5"] * 2 + ["3/2", "3/10", "-1/10", "3/5"]


def test_alike_records_are_counted_together_and_the_audited_one_apart():
    known = [marginals([0.8, 0.2], [0, 1, 2, 4])]
    statement = RecordLeakage.read(problem(count_of(6), exact_rows(7), known))
    assert statement.groups == [(0,), (1,)]  # a named record, and one that is not
    named, other = statement.views
    assert [str(limit.bound) for limit in named.limits] == ["3/5", "-3/5", "1/5", "-1/5"]
    assert [str(limit.bound) for limit in other.limits] == ["4/5", "-4/5"]
    assert sum(named.counts) == sum(other.counts) == 64
    # Contexts: 0 to 3 of three named ones, and of two others.
    assert len(named.rows) == 2 * 4 * 3


def test_reference_probabilities_are_those_of_all_datasets():
    laws = [[0.5, 0.5], [0.7, 0.3], [0.7, 0.3], [1, 0]]
    known = [near(0.3, laws=[[one, 1] for one in laws])]
    statement = RecordLeakage.read(problem(count_of(4), exact_rows(5), known, records=[[1]]))
    (view,) = statement.views
    (limit,) = view.limits
    assert sum(view.counts) == 8  # datasets with a 1 in the last record are left out
    expected = Counter()
    for x in product((0, 1), repeat=4):
        p = math.prod(one[v] for one, v in zip(laws, x, strict=True))
        if p:
            expected[x[1], sum(x), round(-math.log(p), 9)] += 1
    found = Counter()
    for a, own in enumerate(view.of):
        for g in own:
            (place,) = view.within[g]
            found[a, place, round(float(limit.c[g].mid()), 9)] += view.counts[g]
    assert found == expected
    assert limit.bound == fmpq(3, 10)
    assert limit.share == 1


def test_a_table_excludes_datasets_too():
    query = {
        "kind": "table",
        "space": {"alphabets": [[[0, 1], 1], [[0, 1, 2], 1]]},
        "table": [0, 1, 2, 3, 4, 5],
        "values": [0, 1, 2, 3, 4, 5],
    }
    prior = [0.3, 0, 0.2, 0.1, 0.2, 0.2]
    known = [near(0.1, prior=prior)]
    statement = RecordLeakage.read(problem(query, exact_rows(6), known, records=[[0]]))
    (view,) = statement.views
    assert view.counts == [1] * 5
    costs = sorted(float(x.mid()) for x in view.limits[0].c)
    assert costs == pytest.approx(sorted(-math.log(p) for p in prior if p))


def test_values_and_contexts_of_no_probability_are_left_out():
    known = [marginals([1, 0], [1]), mean([0, 1, 2, 3, 4], most=0)]
    with pytest.raises(RefusedError, match="excludes every dataset"):
        # The count is 0, so that record 0 has the value 0: not half the time.
        RecordLeakage.read(problem(count_of(4), exact_rows(5), [*known, marginals([0, 1], [0])]))
    statement = RecordLeakage.read(problem(count_of(4), exact_rows(5), known, records=[[0]]))
    (view,) = statement.views
    assert view.k == 1
    assert view.counts == [1]
    known = [marginals([0, 1], [0, 1])]
    statement = RecordLeakage.read(problem(count_of(4), exact_rows(5), known, records=[[2]]))
    assert sum(statement.views[0].counts) == 4


def test_equations_are_met_exactly_or_not_at_all():
    known = [marginals([0.9, 0.1], [0])]
    statement = RecordLeakage.read(problem(count_of(1), [[1, 0], [0, 1]], known))
    point = {"rule": "point", "group": 0}
    found = statement.lower({**point, "weights": ["9/10", "1/10"]})
    assert float(found) == pytest.approx(-0.9 * math.log(0.9) - 0.1 * math.log(0.1))
    for weights in (
        ["8/10", "2/10"],
        [0.9, 0.1],
        ["899999999999999999999/1000000000000000000000", 1],
    ):
        with pytest.raises(RefusedError):
            statement.lower({**point, "weights": weights})


@pytest.mark.parametrize("radius", [0, 1e-9])
def test_the_reference_itself_is_in_its_ball(radius):
    known = [near(radius, laws=[[["0.7", "0.3"], 3]])]
    statement = RecordLeakage.read(problem(count_of(3), geometric(4), known))
    (view,) = statement.views
    p0 = view.limits[0].center(view.counts)
    assert sum(p0) == 1
    check_adversary(view, p0)
    moved = [p0[0] + fmpq(1, 100), p0[1] - fmpq(1, 100), *p0[2:]]
    with pytest.raises(RefusedError):
        check_adversary(view, moved)


def test_balls_hold_what_is_near_enough():
    known = [near(0.1, laws=[[[0.5, 0.5], 2]])]
    statement = RecordLeakage.read(problem(count_of(2), exact_rows(3), known))
    (view,) = statement.views
    for share, inside in ((0.5, True), (0.6, True), (0.8, False), (1, False)):
        one = [1 - fmpq(*float(share).as_integer_ratio()), fmpq(*float(share).as_integer_ratio())]
        places = [next(iter(within)) for within in view.within]
        w = [one[a] * one[places[g] - a] for a, own in enumerate(view.of) for g in own]
        away = 2 * (math.log(2) + sum(p * math.log(p) for p in (share, 1 - share) if p))
        assert (away <= 0.1) is inside
        if inside:
            check_adversary(view, w)
        else:
            with pytest.raises(RefusedError):
                check_adversary(view, w)


QUARTER, EIGHTH = ("3/4", "1/4"), ("7/8", "1/8")
CLASSES = {
    "at most": (mean([0, 1], most="1/4"), [QUARTER, EIGHTH, (1, 0)], [("5/8", "3/8")]),
    "at least": (mean([0, 1], least="1/4"), [QUARTER, (0, 1)], [EIGHTH]),
    "near": (near("1/8", laws=[[QUARTER, 1]]), [QUARTER, EIGHTH], [("1/4", "3/4"), (0, 1)]),
}


@pytest.mark.parametrize("name", CLASSES)
def test_who_is_in_a_class(name):
    known, inside, outside = json.loads(json.dumps(CLASSES[name]))
    (view,) = RecordLeakage.read(problem(count_of(1), exact_rows(2), [known])).views
    for weights in inside:
        check_adversary(view, law(weights))
    for weights in outside:
        with pytest.raises(RefusedError, match="violates a limit"):
            check_adversary(view, law(weights))


def test_doubt_counts_the_datasets_of_a_group():
    # Of one of four groups, each of four datasets: log 4 of floor, and 2 log 2 from the uniform.
    one = [fmpq(1), *[fmpq(0)] * 3]
    for floor, radius, inside in (
        (math.log(4) - 1e-9, 9, True),
        (math.log(4) + 1e-9, 9, False),
        (0, 2 * math.log(2) + 1e-9, True),
        (0, 2 * math.log(2) - 1e-9, False),
    ):
        known = [near(radius, laws=[[[0.5, 0.5], 4]])]
        (view,) = RecordLeakage.read(problem(count_of(4, 2), exact_rows(2), known, floor)).views
        if inside:
            check_adversary(view, one)
        else:
            with pytest.raises(RefusedError):
                check_adversary(view, one)


def share_of(t):
    return {"rule": "share", "t": t, "values": [{"rule": "vertices"}] * 2}


def test_groups_are_the_same_only_if_their_constraints_are():
    known = [mean([0, 1], records=[0], most=0.25)]
    statement = RecordLeakage.read(problem(count_of(2), exact_rows(3), known))
    assert statement.groups == [(0,), (1,)]
    close = {"rule": "close", "multiplier": 0, "limits": [0], "of": share_of([1, 1, 1])}
    statement.upper({"rule": "max", "groups": [[close]] * 2})
    with pytest.raises(RefusedError, match="not the same"):
        statement.upper({"rule": "max", "groups": [[close], 0]})
    alike = [marginals([0.75, 0.25], [0, 1])]
    assert len(RecordLeakage.read(problem(count_of(2), exact_rows(3), alike)).views) == 1


def test_a_member_attains_the_least_over_all_of_a_set():
    low, high = [[0.7, 0.2], [0.2, 0.7]], [[0.8, 0.3], [0.3, 0.8]]
    told = problem(count_of(1), [], [marginals([0.25, 0.75], [0])])
    told["mechanism"] = {"query": count_of(1), "channel_set": {"lower": low, "upper": high}}
    joint = np.array([[0.25 * 0.75, 0.25 * 0.25], [0.75 * 0.25, 0.75 * 0.75]])
    phi = joint / joint.sum(axis=0)
    point = {"rule": "point", "group": 0, "weights": ["1/4", "3/4"], "posteriors": phi.tolist()}
    # Each row is at the end of its box where what it tells is least.
    expected = -0.25 * math.log(0.25) - 0.75 * math.log(0.75)
    for mass, cost, most in zip((0.25, 0.75), np.log(phi), high, strict=True):
        rows = ([most[0], 1 - most[0]], [1 - most[1], most[1]])
        expected += mass * min(np.dot(row, cost) for row in rows)
    assert float(RecordLeakage.read(told).lower(point)) == pytest.approx(expected, abs=1e-9)
    for wrong in (
        {"weights": ["1/2", "1/2"]},
        {"posteriors": [[1, 1]]},
        {"posteriors": [[0, 1]] * 2},
        {"posteriors": [[2, 1], [-1, 0]]},
    ):
        with pytest.raises(RefusedError):
            RecordLeakage.read(told).lower({**point, **wrong})
    with pytest.raises(RefusedError, match="reach the floor"):
        RecordLeakage.read({**told, "entropy_floor": 0.6}).lower(point)


@pytest.mark.parametrize("seed", range(4))
def test_no_member_is_above_what_multipliers_prove(seed):
    rng = np.random.default_rng(seed)
    known = [
        marginals([0.7, 0.3], [0, 1]),
        near(0.4, laws=[[[0.6, 0.4], 3]]),
        mean([0, 1, 2, 3], most=1.4),
    ]
    statement = RecordLeakage.read(problem(count_of(3), geometric(4), known))
    for place, view in enumerate(statement.views):
        tried = 0
        for _ in range(40):
            # A mixture of a product law and one in which all records agree.
            s = fmpq(int(rng.integers(0, 60)), 100)
            w = _mixed(view, statement, place, s)
            try:
                check_adversary(view, w)
            except RefusedError:
                continue
            weights = [f"{x.p}/{x.q}" for x in w]
            below = statement.lower({"rule": "point", "group": place, "weights": weights})
            groups = [
                [
                    {
                        "rule": "close",
                        "multiplier": float(rng.uniform(0, 1)),
                        "limits": rng.uniform(0, 1, len(other.limits)).tolist(),
                        "of": share_of(rng.dirichlet(np.ones(4)).tolist()),
                    }
                ]
                for other in statement.views
            ]
            assert not below > statement.upper({"rule": "max", "groups": groups})
            tried += 1
        assert tried


def _mixed(view, statement, place, s):
    p = law(["0.7", "0.3"])
    chances = Counter()
    record = 0 if place == 0 else 2
    for x in product((0, 1), repeat=3):
        apart = p[x[0]] * p[x[1]] * p[x[2]]
        joint = p[x[0]] if x[0] == x[1] == x[2] else fmpq(0)
        chances[x[record], sum(x), _counted(x, record)] += (1 - s) * apart + s * joint
    labels = zip(view.labels, view.within, strict=True)
    found = [(label[0][1][0], next(iter(places))) for label, places in labels]
    return [chances[a, found[g][1], found[g][0]] for a, own in enumerate(view.of) for g in own]


def _counted(x, record):
    """Return how many of the records 0 and 1, the audited one aside, are 1."""
    return sum(x[i] for i in (0, 1) if i != record)


OF_THREES = {
    **count_of(6),
    "space": {"alphabets": [[[0, 1, 2], 3]]},
    "contributions": [[[[0], [1], [2]], 3]],
}


@pytest.mark.parametrize(
    "wrong",
    [
        [{"kind": "rumor"}],
        [marginals([0.5, 0.5], [])],
        [marginals([0.5, 0.5], [0, 0])],
        [marginals([0.5, 0.5], [9])],
        [marginals([0.5, 0.25, 0.25], [0])],
        [marginals([-1, 2], [0])],
        [{**marginals([0.5, 0.5], [0]), "weight": 1}],
        [mean([0, 1], most=1)],
        [mean([0, 1, 2, 3], records=[0, 1], query=count_of(3), most=1)],
        [mean([0, 1, 2], query=count_of(2), most=1)],
        [mean([0, 1, "inf", 3], most=1)],
        [mean([0, 1, 2, 3])],
        [{**mean([0, 1, 2, 3], most=1), "name": ["c"]}],
        [near(-1, laws=[[[0.5, 0.5], 3]])],
        [near(1, laws=[[[0.5, 0.5], 2]])],
        [near(1, laws=[[[0.5, 0.25, 0.25], 3]])],
        [near(1, laws=[[[0.5, 0.5], 3]], prior=[0.125] * 8)],
        [near(1, prior=[0.25] * 4)],
        [marginals([0.5], [0])],
        [{**mean([0, 1, 2, 3], most=1), "weight": 1}],
        [{**near(1, laws=[[[0.5, 0.5], 3]]), "weight": 1}],
        [near(1, laws=[[[1], 3]])],
        [mean(OF_THREES["values"], query=OF_THREES, most=1)],
        {},
        [],
        [[]],
    ],
)
def test_what_is_not_known_is_refused(wrong):
    with pytest.raises(RefusedError):
        RecordLeakage.read(problem(count_of(3), geometric(4), wrong))


def test_marginals_are_about_the_records_that_are_named():
    query = {
        "kind": "table",
        "space": {"alphabets": [[[0, 1, 2], 1], [[0, 1], 1]]},
        "table": [0, 1, 0, 1, 1, 0],
        "values": [0, 1],
    }
    rows = [[0.75, 0.25], [0.25, 0.75]]
    for law_, record, other in (([0.5, 0.5], 1, 0), ([0.5, 0.25, 0.25], 0, 1)):
        RecordLeakage.read(problem(query, rows, [marginals(law_, [record])]))
        with pytest.raises(RefusedError, match="a law of another length"):
            RecordLeakage.read(problem(query, rows, [marginals(law_, [other])]))


def test_a_mean_that_no_dataset_has_excludes_no_context():
    for known in (mean([0, 1, 2, 3], most=-1), mean([0, 1, 2, 3], least=4)):
        (view,) = RecordLeakage.read(problem(count_of(3), geometric(4), [known])).views
        assert sum(view.counts) == 8
        w = [fmpq(m, 8) for m in view.counts]
        with precision(), pytest.raises(RefusedError, match="violates a limit"):
            check_adversary(view, w)


def test_many_alike_records_are_counted_by_polynomials():
    known = [marginals([0.9, 0.1], list(range(400)))]
    statement = RecordLeakage.read(problem(count_of(400), [[1]] * 401, known))
    (view,) = statement.views
    assert sum(view.counts) == 2**400
    assert len(view.rows) == 800
