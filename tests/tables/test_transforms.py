"""One outcome of numbers whose keys are sums, against their exact joint law."""

import itertools
import math

import numpy as np
import pytest

from cvxleak.core import ValidationError
from cvxleak.tables import Table, TableRelease, keys, realized_leakage
from cvxleak.tables.keys import joint_law
from cvxleak.tables.transforms import Linkage
from tests.tables.test_keys import with_keys


def published_of(release, rng):
    """What is published with keys drawn at random."""
    counts = release.table.in_cells.tolist()
    own = [int(rng.integers(1 << 20)) if count else 0 for count in counts]
    found = []
    for (_, noise), places in zip(release.noise, release.sums, strict=True):
        key = sum(own[place] for place in places) % noise.table.keys
        steps = noise.steps(sum(counts[place] for place in places))
        found.append(next(y for end, y in steps if end * noise.table.keys > key))
    return found


def linkage_of(release, published):
    """The linked numbers of a release, and the places of its table with people."""
    table = release.table
    counts, places = table.in_cells.tolist(), len(table.alphabet)
    people = [*counts, table.people - sum(counts)][:places]
    keyed = release.keyed
    own = [published[place] for place in keyed]
    size = next(iter(keyed.values())).noise.table.keys
    peopled = [place for place, count in enumerate(people) if count]
    return Linkage([*keyed.values()], size, counts, own, places), own, peopled


@pytest.mark.parametrize(
    ("shape", "size", "hidden"),
    [
        ((4,), 6, ()),
        ((2, 2), 5, ()),
        ((2, 3), 4, (1, 8)),
        ((3, 3), 3, ()),
        ((3, 3), 3, (2, 15)),
        ((3, 2), 3, (8, 9, 10)),
        ((2, 2, 2), 2, ()),
        ((2, 2, 2), 3, tuple(range(8, 20))),
    ],
)
@pytest.mark.parametrize("outside", [False, True])
def test_one_outcome_is_that_of_the_exact_joint_law(shape, size, hidden, outside, tmp_path):
    rng, noise = np.random.default_rng(len(shape) + size), with_keys(tmp_path, size)
    for _ in range(3):
        counts = rng.integers(0, 4, shape)
        counts.flat[0] += 1
        variables = {name: range(s) for name, s in zip("abc", shape, strict=False)}
        table = Table(variables, int(counts.sum()) + 2 * outside, counts=counts, outside=outside)
        some = {label: None if j in hidden else noise for j, label in enumerate(table.numbers)}
        release = TableRelease(table, some)
        found, own, peopled = linkage_of(release, published_of(release, rng))
        logs, doubts = found.log_likelihoods(peopled)
        for a, c in itertools.product(peopled, range(len(table.alphabet))):
            moved = [*table.in_cells.tolist(), 0]
            moved[a] -= 1
            moved[c] += 1
            law = joint_law([*release.keyed.values()], moved[: len(table.cells)], own)
            exact = float(next(iter(law.values()), 0))
            assert abs(math.exp(logs[a, c]) - exact) <= math.exp(doubts[a, c])
            assert math.exp(doubts[a, c]) <= 1e-10 * max(exact, 1e-3)


def test_probabilities_add_up_in_larger_tables(tmp_path):
    rng, noise = np.random.default_rng(3), with_keys(tmp_path, 8)
    counts = rng.poisson(12, (4, 5))
    table = Table({"a": range(4), "b": range(5)}, counts=counts)
    release = TableRelease(table, noise)
    published = published_of(release, rng)
    for hidden in ((0, "total"), ("total", 2), ("total", "total"), (1, 1)):
        place = release.numbers.index(hidden)
        rest = TableRelease(
            table, {label: noise if label != hidden else None for label in table.numbers}
        )
        one, _, _ = linkage_of(rest, [*published[:place], *published[place + 1 :]])
        total = 0.0
        for y in noise.law(release.true[place]):
            own, _, peopled = linkage_of(release, [*published[:place], y, *published[place + 1 :]])
            total += math.exp(own.log_likelihoods(peopled[:1])[0][0, 0])
        assert total == pytest.approx(math.exp(one.log_likelihoods([0])[0][0, 0]))


def test_posteriors_are_the_same_either_way(tmp_path, monkeypatch):
    rng, noise = np.random.default_rng(9), with_keys(tmp_path, 4)
    counts, variables = rng.poisson(4, (2, 3)), {"a": range(2), "b": range(3)}
    for beside in (0, 2):
        people = int(counts.sum()) + beside
        table = Table(variables, people, counts=counts, outside=beside > 0)
        release = TableRelease(table, noise)
        published = published_of(release, rng)
        exact = realized_leakage(release, published)
        with monkeypatch.context() as changed:
            changed.setattr(keys, "WORK", 0)
            found = realized_leakage(release, published)
        assert found.posterior == pytest.approx(exact.posterior, abs=1e-9, nan_ok=True)


def test_what_is_too_much_says_how_much(tmp_path):
    noise = with_keys(tmp_path, 256)
    table = Table({"a": range(4), "b": range(5)}, counts=np.full((4, 5), 9))
    release = TableRelease(table, noise)
    published = published_of(release, np.random.default_rng(0))
    with pytest.raises(ValidationError, match=r"256\^4 states, 256 keys for each of 4 sums"):
        realized_leakage(release, published)


def test_what_rounding_hides_is_refused(tmp_path, monkeypatch):
    release = TableRelease(
        Table({"a": range(2), "b": range(2)}, counts=[[3, 4], [5, 6]]), with_keys(tmp_path, 5)
    )
    published = published_of(release, np.random.default_rng(0))
    monkeypatch.setattr(keys, "WORK", 0)
    monkeypatch.setattr("cvxleak.tables.transforms.ROUNDING", 1e-6)
    with pytest.raises(ValidationError, match="rounding errors hide it"):
        realized_leakage(release, published)
