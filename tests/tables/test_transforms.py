"""One outcome of numbers whose keys are sums, against their exact joint distribution."""

import itertools
import math

import numpy as np
import pytest

from cvxleak.core import SolveInterrupted, ValidationError
from cvxleak.tables import PerturbationTable, Table, TableRelease, keys, realized_leakage
from cvxleak.tables.keys import joint_law
from cvxleak.tables.parts import Parts
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
    parts = None
    if len(table.variables) == 2:
        parts = Parts.of([tuple(map(int, cell)) for cell in table.cells])
    return Linkage([*keyed.values()], size, counts, own, places, parts), own, peopled


def bounds_of(linkage, peopled):
    """Bounds on P(y) by the cells of a person before and after; all of them hold."""
    found = {}
    for some in linkage.bounds(peopled):
        for move, (low, high) in some.items():
            least, most = found.get(move, (0.0, 1.0))
            found[move] = max(least, math.exp(low)), min(most, math.exp(high))
    return found


def increasing(folder, size):
    """A perturbation table that increases with the key, as offices draw them."""
    rng, lines = np.random.default_rng(size), []
    for count in range(1, 4):
        values = np.sort(rng.choice([-1, 0, 0, 1], size))
        lines += [f"{count},{key},{value}" for key, value in enumerate(values)]
    path = folder / f"increasing{size}.csv"
    path.write_text("\n".join(["pcv,ckey,pvalue", *lines]))
    return PerturbationTable(path, cycle=2)


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
def test_one_outcome_is_that_of_the_exact_joint_law(
    shape, size, hidden, outside, tmp_path, monkeypatch
):
    rng, noise = np.random.default_rng(len(shape) + size), with_keys(tmp_path, size)
    for turn in range(3):
        counts = rng.integers(0, 4, shape)
        counts.flat[0] += 1
        zeros = [(0, shape[1] - 1)] if len(shape) == 2 and turn == 2 else []
        for zero in zeros:
            counts[zero] = 0
        variables = {name: range(s) for name, s in zip("abc", shape, strict=False)}
        people = int(counts.sum()) + 2 * outside
        table = Table(variables, people, counts=counts, outside=outside, zeros=zeros)
        some = {label: None if j in hidden else noise for j, label in enumerate(table.numbers)}
        release = TableRelease(table, some)
        found, own, peopled = linkage_of(release, published_of(release, rng))
        bounds = [bounds_of(found, peopled)]
        with monkeypatch.context() as changed:
            changed.setattr("cvxleak.tables.transforms.STATES", 0)
            if len(shape) == 2:
                bounds.append(bounds_of(found, peopled))
                changed.setattr("cvxleak.tables.frequencies.WORK", 1 << 14)
                changed.setattr("cvxleak.tables.frequencies.RATIOS", (1.2, 4.0))
                bounds.append(bounds_of(found, peopled))
        for a, c in itertools.product(peopled, range(len(table.alphabet))):
            moved = [*table.in_cells.tolist(), 0]
            moved[a] -= 1
            moved[c] += 1
            law = joint_law([*release.keyed.values()], moved[: len(table.cells)], own)
            exact = float(next(iter(law.values()), 0))
            for width, ends in zip((2e-10, 1e-6, 1.0), bounds, strict=False):
                low, high = ends[a, c]
                assert low <= exact <= high
                assert high - low <= width * max(exact, 1e-3)


def test_low_frequencies_bound_the_exact_value(tmp_path, monkeypatch):
    rng, noise = np.random.default_rng(2), increasing(tmp_path, 32)
    counts = rng.poisson(12, (4, 3))
    release = TableRelease(Table({"a": range(4), "b": range(3)}, counts=counts), noise)
    linkage, _, peopled = linkage_of(release, published_of(release, rng))
    exact, gaps = bounds_of(linkage, peopled[:2]), []
    monkeypatch.setattr("cvxleak.tables.transforms.STATES", 0)
    for work in (1 << 20, 1 << 22, 1 << 24):
        monkeypatch.setattr("cvxleak.tables.frequencies.WORK", work)
        found = bounds_of(linkage, peopled[:2])
        assert found.keys() == exact.keys()
        for move, (low, high) in found.items():
            assert low <= exact[move][1]
            assert high >= exact[move][0]
        gaps.append(sum(high - low for low, high in found.values()))
    assert gaps[0] > 3 * gaps[1] > 9 * gaps[2] > 0
    assert gaps[2] < 0.1 * sum(high for _, high in exact.values())


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
            total += bounds_of(own, peopled[:1])[0, 0][1]
        assert total == pytest.approx(bounds_of(one, [0])[0, 0][1])


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
    table = Table({"a": range(10), "b": range(15)}, counts=np.full((10, 15), 9))
    release = TableRelease(table, noise)
    published = published_of(release, np.random.default_rng(0))
    with pytest.raises(ValidationError, match=r"256\^10 states, 256 keys for each of 10 sums"):
        realized_leakage(release, published)


def test_what_rounding_hides_is_between_bounds(tmp_path, monkeypatch):
    release = TableRelease(
        Table({"a": range(2), "b": range(2)}, counts=[[3, 4], [5, 6]]), with_keys(tmp_path, 5)
    )
    published = published_of(release, np.random.default_rng(0))
    exact = realized_leakage(release, published)
    monkeypatch.setattr(keys, "WORK", 0)
    monkeypatch.setattr("cvxleak.tables.transforms.ROUNDING", 1e-4)
    found = realized_leakage(release, published)
    for one in ("information", "pml"):
        assert (getattr(found, f"{one}_lower") < getattr(exact, one)).all()
        assert (getattr(exact, one) <= getattr(found, one)).all()
    assert (found.lower <= exact.posterior).all()
    assert (exact.posterior <= found.upper).all()
    assert " to " in found._repr_html_()


def test_what_is_not_reached_may_be_anything(tmp_path, monkeypatch):
    rng, noise = np.random.default_rng(0), increasing(tmp_path, 16)
    counts = rng.poisson(9, (2, 3))
    release = TableRelease(Table({"a": range(2), "b": range(3)}, counts=counts), noise)
    published = published_of(release, rng)
    exact = realized_leakage(release, published)
    monkeypatch.setattr(keys, "WORK", 0)
    monkeypatch.setattr("cvxleak.tables.transforms.STATES", 0)
    found = realized_leakage(release, published, time_limit=0.0)
    assert found.pml == pytest.approx(math.log(6))
    assert (found.pml_lower == 0).all()
    told = []
    found = realized_leakage(release, published, progress=lambda *ends: told.append(ends))
    assert found.posterior == pytest.approx(exact.posterior, abs=1e-5)
    assert told[0][:2] == (0.0, pytest.approx(math.log(6)))
    assert told[-1][:2] == pytest.approx((exact.pml.max(), exact.pml.max()), abs=1e-4)

    def pressed(_low, _high, done):
        if done:
            raise KeyboardInterrupt

    with pytest.raises(SolveInterrupted) as caught:
        realized_leakage(release, published, progress=pressed)
    reached = caught.value.bound
    assert (reached.pml_lower <= exact.pml).all()
    assert (exact.pml <= reached.pml).all()
