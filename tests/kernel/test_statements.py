"""Statements against brute force: views and witnesses of small problems, dataset by dataset."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from cvxleak.kernel.leakage import RecordLeakage
from cvxleak.kernel.numbers import RefusedError, lower, precision, upper

GAINS: list[Any] = [None, {"kind": "guess"}, {"kind": "tries", "tries": 2}, {"kind": "gini"}]
GAINS += [{"kind": "arimoto", "alpha": 2.5}, {"kind": "arimoto", "alpha": "infinity"}]


@pytest.fixture(autouse=True)
def _precise() -> Iterator[None]:
    with precision():
        yield


class Problem:
    """A random problem, and what it says of each dataset."""

    def __init__(self, rng: np.random.Generator, *, boxes: bool = False) -> None:
        self.rng = rng
        self.datasets: dict[tuple[int, ...], str] = {}
        query = self._table() if rng.random() < 0.3 else self._sum()
        names = list(dict.fromkeys(self.datasets.values()))
        self.rows = self._rows(len(names))
        order = rng.permutation(len(names)).tolist()
        self.row_of = dict(zip(names, self.rows, strict=True))
        channel: dict[str, Any] = {"inputs": [names[i] for i in order]}
        key = "channel_set" if boxes else "channel"
        if boxes:
            ends = {end: [[clip(x + d) for x in row] for row in self.rows] for end, d in ENDS}
            channel |= {end: [table[i] for i in order] for end, table in ends.items()}
        else:
            channel["matrix"] = [[str(x) for x in self.rows[i]] for i in order]
        n = len(next(iter(self.datasets)))
        size = int(rng.integers(1, min(n, 2) + 1))
        self.group = rng.choice(n, size, replace=False).tolist()
        self.data: dict[str, Any] = {
            "mechanism": {"query": query, key: channel},
            "entropy_floor": 0,
            "size": size,
            "records": [self.group],
        }

    def _sum(self) -> dict[str, Any]:
        rng = self.rng
        width, modulus = int(rng.integers(1, 3)), [None, 2, 3][int(rng.integers(3))]
        runs = []
        for _ in range(int(rng.integers(1, 3))):
            k = int(rng.integers(1, 4))
            runs.append((k, rng.integers(-2, 3, (k, width)).tolist(), int(rng.integers(1, 3))))
        records = [own for _, own, n in runs for _ in range(n)]
        totals = {}
        for x in product(*(range(len(own)) for own in records)):
            found = np.sum([own[a] for a, own in zip(x, records, strict=True)], axis=0)
            total = tuple((found if modulus is None else found % modulus).tolist())
            totals.setdefault(total, f"v{rng.integers(4)}")
            self.datasets[x] = totals[total]
        # The alphabets are told in runs of their own.
        alphabets = [[[f"a{i}" for i in range(len(own))], 1] for own in records]
        return {
            "kind": "additive",
            "space": {"alphabets": alphabets},
            "contributions": [[own, n] for _, own, n in runs],
            "totals": [list(t) for t in totals],
            "values": list(totals.values()),
            "modulus": modulus,
        }

    def _table(self) -> dict[str, Any]:
        rng = self.rng
        sizes = rng.integers(1, 4, int(rng.integers(1, 4))).tolist()
        everything = list(product(*map(range, sizes)))
        table = rng.integers(4, size=len(everything))
        values = np.unique(table).tolist()
        table = [values.index(v) for v in table.tolist()]
        self.datasets = {x: f"v{v}" for x, v in zip(everything, table, strict=True)}
        return {
            "kind": "table",
            "space": {"alphabets": [[list(range(k)), 1] for k in sizes]},
            "table": table,
            "values": [f"v{i}" for i in range(len(values))],
        }

    def _rows(self, count: int) -> list[list[Fraction]]:
        rng, n = self.rng, int(self.rng.integers(1, 4))
        found: list[list[Fraction]] = []
        for _ in range(count):
            if found and rng.random() < 0.3:
                found.append(found[0])
                continue
            weights = rng.integers(0, 5, n)
            weights[int(rng.integers(n))] += 1
            found.append([Fraction(int(x), int(weights.sum())) for x in weights])
        return found

    def value_of(self, dataset: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(dataset[i] for i in self.group)

    def values(self) -> list[tuple[int, ...]]:
        return sorted({self.value_of(x) for x in self.datasets})


ENDS = (("lower", Fraction(-1, 10)), ("upper", Fraction(1, 10)))


def clip(x: Fraction) -> str:
    return str(min(max(x, Fraction(0)), Fraction(1)))


def spread(problem: Problem, view: Any, w: Any, keys: Any) -> dict[tuple[int, ...], float]:
    """Return the distribution on datasets that is even on each group of the view."""
    where = {}
    for a, own in enumerate(view.of):
        for g in own:
            where[a, view.rows[g].key] = g
    values = problem.values()
    group = {
        x: where[values.index(problem.value_of(x)), keys(v)] for x, v in problem.datasets.items()
    }
    counts = Counter(group.values())
    assert [counts[g] for g in range(len(w))] == list(view.counts)
    return {x: w[g] / counts[g] for x, g in group.items()}


def gain_of(gain: Any, s: Any) -> float:
    """Return G of a measure, from its definition."""
    mass = float(s.sum())
    if mass == 0:
        return 0.0
    rho = s / mass
    if gain is None:
        return mass * float(sum(x * np.log(x) for x in rho if x > 0))
    if gain["kind"] == "gini":
        return mass * float((rho**2).sum())
    if gain["kind"] == "arimoto" and gain["alpha"] != "infinity":
        return mass * float((rho ** gain["alpha"]).sum() ** (1 / gain["alpha"]))
    return mass * float(np.sort(rho)[::-1][: gain.get("tries", 1)].sum())


def leakage(problem: Problem, p: Any, row_of: Any, gain: Any, form: str) -> float:
    """Return J of a distribution on datasets, from its definition."""
    values = problem.values()
    n = len(problem.rows[0])
    joint = np.zeros((len(values), n))
    for x, weight in p.items():
        joint[values.index(problem.value_of(x))] += weight * np.array(
            row_of(problem.datasets[x]), float
        )
    seen = sum(gain_of(gain, joint[:, y]) for y in range(n))
    before = gain_of(gain, joint.sum(1))
    return {"posterior": seen, "rise": seen - before, "factor": seen / before if before else 0.0}[
        form
    ]


def entropy(p: Any) -> float:
    return -float(sum(x * np.log(x) for x in p.values() if x > 0))


@pytest.mark.parametrize(
    "seeds", [range(40), pytest.param(range(40, 2000), marks=pytest.mark.slow)]
)
def test_witnesses_attain_what_their_datasets_do(seeds: range) -> None:
    for seed in seeds:
        _compare_with_datasets(seed)


def _compare_with_datasets(seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = Problem(rng)
    gain = GAINS[int(rng.integers(len(GAINS)))]
    form = "rise" if gain is None else ["posterior", "rise", "factor"][int(rng.integers(3))]
    data = problem.data if gain is None else problem.data | {"gain": gain, "form": form}
    view = RecordLeakage.read(data).views[0]
    w = rng.integers(0, 6, len(view.rows)) + (rng.random() < 0.5)
    w[int(rng.integers(len(w)))] += 1
    p = spread(problem, view, w / w.sum(), lambda v: tuple(map(_fmpq, problem.row_of[v])))
    weights = {"rule": "point", "group": 0, "weights": w.tolist()}
    h = entropy(p)
    below, above = data | {"entropy_floor": h - 1e-9}, data | {"entropy_floor": h + 1e-9}
    found = lower(RecordLeakage.read(below).lower(weights))
    truth = leakage(problem, p, lambda v: problem.row_of[v], gain, form)
    assert found == pytest.approx(truth, abs=1e-9)
    with pytest.raises(RefusedError):
        RecordLeakage.read(above).lower(weights)


def _fmpq(x: Fraction) -> Any:
    from flint import fmpq

    return fmpq(x.numerator, x.denominator)


@pytest.mark.parametrize("seeds", [range(20), pytest.param(range(20, 500), marks=pytest.mark.slow)])
def test_witnesses_of_a_set_attain_at_most_what_its_channels_do(seeds: range) -> None:
    for seed in seeds:
        _compare_with_channels(seed)


def _compare_with_channels(seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = Problem(rng, boxes=True)
    gain = GAINS[int(rng.integers(len(GAINS)))]
    form = "rise" if gain is None else ["posterior", "rise", "factor"][int(rng.integers(3))]
    data = problem.data if gain is None else problem.data | {"gain": gain, "form": form}
    statement = RecordLeakage.read(data)
    view = statement.views[0]
    w = rng.integers(1, 6, len(view.rows)).tolist()

    def key(v: str) -> Any:
        ends = [[Fraction(clip(x + d)) for x in problem.row_of[v]] for _, d in ENDS]
        return tuple(tuple(map(_fmpq, own)) for own in ends)

    p = spread(problem, view, np.array(w) / sum(w), key)
    n = len(problem.rows[0])
    phi = rng.integers(1, 5, (view.k, n)).tolist()
    found = lower(statement.lower({"rule": "point", "group": 0, "weights": w, "posteriors": phi}))
    for _ in range(20):
        chosen = {v: _in_box(rng, np.array(row, float)) for v, row in problem.row_of.items()}
        assert found <= leakage(problem, p, chosen.__getitem__, gain, form) + 1e-9


def _in_box(rng: np.random.Generator, row: Any) -> Any:
    """Return a distribution within a tenth of a row."""
    i, j = rng.integers(len(row), size=2)
    step = min(0.1, 1 - row[i], row[j]) * rng.choice([0, 0.5, 1])
    moved = row.copy()
    moved[i] += step
    moved[j] -= step
    return moved


@pytest.mark.parametrize("seed", range(12))
def test_groups_are_of_all_kinds_and_the_same_only_if_they_are(seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = Problem(rng)
    data = problem.data | {"records": None}
    statement = RecordLeakage.read(data)
    listed = RecordLeakage.read(data | {"records": _all_groups(problem)})
    facts = {(tuple(r.key for r in v.rows), tuple(v.counts)) for v in statement.views}
    assert facts == {(tuple(r.key for r in v.rows), tuple(v.counts)) for v in listed.views}
    close = {"rule": "close", "multiplier": 0, "limits": [], "of": {"rule": "alphabet"}}
    for place in range(1, len(statement.views)):
        one, other = statement.views[place], statement.views[0]
        same = ([r.key for r in one.rows], one.counts) == (
            [r.key for r in other.rows],
            other.counts,
        )
        entries: list[Any] = [[close]] * len(statement.views)
        entries[place] = 0
        if same:
            upper(statement.upper({"rule": "max", "groups": entries}))
        else:
            with pytest.raises(RefusedError, match="not the same"):
                statement.upper({"rule": "max", "groups": entries})


def _all_groups(problem: Problem) -> list[list[int]]:
    n, size = len(next(iter(problem.datasets))), problem.data["size"]
    return [list(x) for x in product(range(n), repeat=size) if list(x) == sorted(set(x))]


ROWS = [[0.75, 0.25], [0.5, 0.5], [0.25, 0.75]]
SPACE = {"alphabets": [[[0, 1], 2]]}
CHANNEL = {"inputs": [0, 1, 2], "outputs": [0, 1], "matrix": ROWS}
SUM = {"kind": "additive", "space": SPACE, "contributions": [[[[0], [1]], 2]]}
SUM |= {"totals": [[0], [1], [2]], "values": [0, 1, 2], "modulus": None}
TABLE = {"kind": "table", "space": SPACE, "table": [0, 1, 1, 2], "values": [0, 1, 2]}


def stated(query: Any, path: tuple[Any, ...] = (), value: Any = None) -> RecordLeakage:
    """Read a statement with one part of the mechanism replaced."""
    mechanism = {"query": query, "channel": CHANNEL}
    data = {"mechanism": mechanism, "entropy_floor": 0, "size": 1, "records": None}
    data = json.loads(json.dumps(data))
    at: Any = data["mechanism"]
    for key in path[:-1]:
        at = at[key]
    if path:
        at[path[-1]] = value
    return RecordLeakage.read(data)


MATRIX = ("channel", "matrix")
QUERY = ("query",)
OF_BOTH: list[tuple[tuple[Any, ...], Any]] = [
    ((*MATRIX, 0, 0), 0.76),
    ((*MATRIX, 1), [0.5, 0.49]),
    ((*MATRIX, 2), [-0.25, 1.25]),
    ((*MATRIX, 2), [1.25, -0.25]),
    ((*MATRIX, 2), [True, False]),
    (MATRIX, []),
    (MATRIX, [[], [], []]),
    (MATRIX, ROWS[:2]),
    (MATRIX, [*ROWS, [0.5, 0.5]]),
    (("note",), 1),
    (("channel", "note"), 1),
    (("channel", "inputs"), [0, 1]),
    ((*QUERY, "note"), 1),
    ((*QUERY, "space", "note"), 1),
    ((*QUERY, "kind"), ["additive"]),
    ((*QUERY, "kind"), "sum"),
    ((*QUERY, "space", "alphabets"), []),
    ((*QUERY, "space", "alphabets"), [[[], 2]]),
    ((*QUERY, "space", "alphabets"), [[[0, 1]]]),
    ((*QUERY, "space", "alphabets"), [[[0, 1], 2, 1]]),
    ((*QUERY, "space", "alphabets"), [[[0, 1], True], [[0, 1], 1]]),
    ((*QUERY, "space", "alphabets"), [3]),
    ((*QUERY, "space", "alphabets"), [[[0, 1], 1 << 20], [[0], 1]]),
    ((*QUERY, "values"), [0, 1]),
    ((*QUERY, "values"), [0, 1, 3]),
]
OF_SUMS = [
    ((*QUERY, "totals"), [[0], [1]]),
    ((*QUERY, "totals"), [[0], [1], [2], [3]]),
    ((*QUERY, "totals"), [[0], [1], [3]]),
    ((*QUERY, "contributions"), [[[[0], [1]], 1]]),
    ((*QUERY, "contributions"), [[[[0], [1]]]]),
    ((*QUERY, "contributions"), [[[[0], [1]], 2, 2]]),
    ((*QUERY, "contributions"), [7]),
    ((*QUERY, "contributions"), [[[[0], [1], [2]], 2]]),
    ((*QUERY, "contributions"), [[[[0]], 2]]),
    ((*QUERY, "contributions"), [[[[0], [1, 0]], 2]]),
    ((*QUERY, "contributions"), [[[[], []], 2]]),
    ((*QUERY, "modulus"), 3.5),
]
OF_TABLES: list[tuple[tuple[Any, ...], Any]] = [
    ((*QUERY, "table"), [0, 1, 1, 3]),
    ((*QUERY, "table"), [0, 1, 1, 1]),
    ((*QUERY, "table"), [0, -1, 1, 2]),
    ((*QUERY, "table"), [[0, 1], [1, 2]]),
    ((*QUERY, "table"), [0, 1, 2, 1, 2, 0]),
    ((*QUERY, "table"), [0.0, 1.0, 1.0, 2.0]),
    ((*QUERY, "table"), [False, True, True, 2]),
    ((*QUERY, "space", "alphabets"), [[[0, 1], 70]]),
    ((*QUERY, "space", "alphabets"), [[list(range(3000)), 2]]),
]


@pytest.mark.parametrize(
    ("query", "path", "value"),
    [(query, *one) for query in (SUM, TABLE) for one in OF_BOTH]
    + [(SUM, *one) for one in OF_SUMS]
    + [(TABLE, *one) for one in OF_TABLES],
)
def test_what_states_nothing_is_refused(query: Any, path: Any, value: Any) -> None:
    assert len(stated(query).views) == (1 if query is SUM else 2)
    with pytest.raises(RefusedError):
        stated(query, path, value)


IN_TURN = {
    "kind": "additive",
    "space": {"alphabets": [[[0, 1], 3]]},
    "contributions": [[[[0], [1]], 1], [[[0], [2]], 1], [[[0], [1]], 1]],
    "totals": [[0], [1], [2], [3], [4]],
    "values": [0, 1, 2, 3, 4],
    "modulus": None,
}
"""Records 0 and 2 are alike, and record 1 is between them."""


def test_the_values_of_a_group_are_in_the_order_of_its_records():
    # Only the total 1 has output 1: then x_1 = 0. Certain of (x_1, x_2) = (0, 1) are 1 in 2.
    matrix = [[1, 0], [0, 1], [1, 0], [1, 0], [1, 0]]
    gain = {"kind": "matrix", "table": [[0, 1, -1, 0], [0, 0, 0, 0]]}
    problem = {
        "mechanism": {"query": IN_TURN, "channel": {"matrix": matrix}},
        "entropy_floor": 0,
        "size": 2,
        "gain": gain,
        "form": "posterior",
    }

    def rows(records):
        read = RecordLeakage.read({**problem, "records": records})
        return [[[row.lo[0] for row in view.rows] for view in read.views], read.groups]

    # Of (x_1, x_2) the total is x_0 + 0, 1, 2, 3; of (x_2, x_1) it is x_0 + 0, 2, 1, 3.
    first, other = [[0, 1, 0, 1, 1, 1]], [[0, 1, 1, 0, 1, 1]]
    assert rows([[1, 2]]) == [first, [(1, 0)]]
    assert rows([[1, 0]]) == [first, [(1, 0)]]
    assert rows([[2, 1]]) == [other, [(0, 1)]]
    # Without a list: each order in which the kinds of records follow one another.
    assert rows(None)[1] == [(0, 0), (0, 1), (1, 0)]
    del problem["gain"], problem["form"]
    assert rows(None)[1] == [(0, 0), (0, 1)]
