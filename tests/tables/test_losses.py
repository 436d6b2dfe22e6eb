"""The losses of published numbers: exact, on grids, beside Gaussian noise, and worse than all."""

import math
from fractions import Fraction
from functools import cache
from itertools import permutations, product
from pathlib import Path

import numpy as np
import pytest
from flint import fmpq
from scipy.signal import fftconvolve
from scipy.stats import norm

from cvxleak.core.errors import ValidationError
from cvxleak.differential_privacy import check_claim
from cvxleak.model import DiscreteGaussian, DiscreteLaplace, Gaussian, Laplace, Rounded, Uniform
from cvxleak.tables import (
    PerturbationTable,
    RandomRounding,
    Table,
    TableRelease,
    shapes,
    table_privacy,
)
from cvxleak.tables.grid import on_grid
from cvxleak.tables.losses import (
    Book,
    Change,
    Losses,
    Ratios,
    _product,
    _real_cells,
    dominating,
)

PTABLE = PerturbationTable(Path(__file__).parents[2] / "examples" / "ptable.csv", summed_keys=False)
LEVELS = (0.0, 0.3, 1.0, 3.0)
PAIR = Table({"x": ["a", "b"]}, counts=[4, 5], margins=False)


def delta(p, r, epsilon):
    """Return the largest P(S) - e^epsilon R(S) of two laws in floats, in either order."""
    c = math.exp(epsilon)
    return max(np.maximum(p - c * r, 0).sum(), np.maximum(r - c * p, 0).sum())


def laws(release, *tables):
    """Return the joint laws of all that is published, in floats."""
    found = [np.ones(1) for _ in tables]
    for (_, noise), places in zip(release.noise, release.sums, strict=True):
        own = [noise.law(sum(counts[place] for place in places)) for counts in tables]
        outputs = sorted(set().union(*own))
        rows = [np.array([float(law.get(y, 0)) for y in outputs]) for law in own]
        found = [np.outer(law, row).ravel() for law, row in zip(found, rows, strict=True)]
    return found


@cache
def worst_of(release, epsilon, all_counts):
    worst = 0.0
    for counts in all_counts:
        inside = [*counts, release.table.people - sum(counts)]
        for source, target in permutations(range(len(release.table.alphabet)), 2):
            if inside[source]:
                after = list(inside)
                after[source] -= 1
                after[target] += 1
                worst = max(worst, delta(*laws(release, counts, after[: len(counts)]), epsilon))
    return worst


@pytest.mark.parametrize(
    "table",
    [
        Table({"x": ["a", "b"], "y": [0, 1]}, 3, margins=[["x"]]),
        Table({"x": ["a", "b"], "y": [0, 1]}, 3, zeros=[("b", 0)]),
        Table({"x": ["a", "b", "c"]}, 3),
    ],
    ids=repr,
)
@pytest.mark.parametrize("noise", [RandomRounding(3, up=(0.25, 0.5)), PTABLE], ids=repr)
@pytest.mark.parametrize("route", ["tables", "free", "dominating"])
def test_every_route_holds_the_worst_of_all_tables(table, noise, route, monkeypatch):
    if route != "tables":
        monkeypatch.setattr(shapes, "TABLES", 0)
    if route == "dominating":
        monkeypatch.setattr(shapes, "CASES", 0)
    release = TableRelease(table, noise)
    privacy = table_privacy(release)
    size = len(table.cells)
    tables = [t for t in product(range(table.people + 1), repeat=size) if sum(t) == table.people]
    for epsilon in (0.0, 0.5):
        truth = worst_of(release, epsilon, tuple(tables))
        bound = privacy.profile(epsilon)
        assert bound.lower - 1e-12 <= truth <= bound.upper + 1e-12
        if route == "tables":
            assert bound.gap < 1e-12
        if bound.witness is not None:
            assert bound.witness.counts in tables
            assert worst_of(release, epsilon, (bound.witness.counts,)) >= bound.lower - 1e-12


def test_grids_hold_the_exact_profile():
    book = Book()
    changes = [
        Change(PTABLE, 1, 1),
        Change(PTABLE, 3, -1),
        Change(RandomRounding(3), 7, -1),
        Change(RandomRounding(5), 7, 1),
    ]
    exact, coarse = book.losses(changes), book.coarse(changes)
    for epsilon in (-1.0, *LEVELS):
        low, high = exact.delta(epsilon)
        least, most = coarse.delta(epsilon)
        assert least <= low <= high <= most
        assert most - least < 0.02


@pytest.mark.parametrize("gaussian", [False, True], ids=["alone", "gaussian"])
@pytest.mark.parametrize("seed", range(4))
def test_finer_grids_hold_the_exact_profile_and_are_closer(seed, gaussian):
    rng, book = np.random.default_rng(seed), Book()
    changes = []
    for place in range(4):
        p, r = (dict(enumerate(map(int, rng.integers(1, 40, 9)))) for _ in "pr")
        if seed % 2:
            p[9] = 1 + place  # R excludes it
        laws = [{y: Fraction(mass, sum(law.values())) for y, mass in law.items()} for law in (p, r)]
        changes.append(book.enter(RandomRounding(3), place, Ratios.of_laws(*laws)))
    exact = Losses(_product(map(book.ratios, changes)), fmpq(gaussian))
    cells = [book.cells(change) for change in changes]
    grids = [on_grid(cells, fmpq(gaussian), size) for size in (1 << 6, 1 << 9, 1 << 12)]
    for epsilon in (-1.0, *LEVELS):
        low, high = exact.delta(epsilon)
        ends = [grid.delta(epsilon) for grid in grids]
        assert all(least <= high and low <= most for least, most in ends)
        least, most = ends[2]
        assert most - least < 2e-3


def test_a_dominating_pair_has_the_largest_profile():
    ratios = [
        Ratios.of_laws(RandomRounding(5).law(count), RandomRounding(5).law(count - 1))
        for count in range(1, 6)
    ]
    worst = dominating(ratios)
    assert sum(worst.masses.values()) + worst.alone == 1
    for c in {*worst.masses, *(c for one in ratios for c in one.masses)}:
        for near in (c, c / 3, 2 * c, c + 7):
            assert worst.at(near) == max(one.at(near) for one in ratios)


def test_numbers_with_gaussian_noise_and_with_rounding():
    release = TableRelease(PAIR, {("a",): RandomRounding(3), ("b",): Gaussian(2)})
    privacy = table_privacy(release, ("a", "b"), this_table=True)
    edges = np.concatenate([[-np.inf], np.linspace(-20, 30, 20001), [np.inf]])
    cells = [np.diff(norm.cdf(edges, mean, 2)) for mean in (5, 6)]
    rounded = [RandomRounding(3).law(count) for count in (4, 3)]
    outputs = sorted(set().union(*rounded))
    p, r = (
        np.outer([float(law.get(y, 0)) for y in outputs], cell).ravel()
        for law, cell in zip(rounded, cells, strict=True)
    )
    for epsilon in LEVELS:
        bound = privacy.profile(epsilon)
        found = delta(p, r, epsilon)
        assert found - 1e-12 <= bound.upper
        assert bound.lower - 1e-5 <= found
        assert bound.gap < 1e-12


@pytest.mark.parametrize(
    ("noise", "gap"),
    [
        (DiscreteLaplace(2), 1e-4),
        (DiscreteGaussian(1.5), 1e-4),
        (Laplace(2), 1e-2),
        (Rounded(Gaussian(1.5), 1), 1e-3),
        (Rounded(Laplace(2), 2), 1e-4),
        (Rounded(Uniform(1.5), 1), 1e-4),
        (Uniform(2), 1e-12),
    ],
    ids=repr,
)
def test_real_outputs_are_between_two_ends(noise, gap):
    privacy = table_privacy(TableRelease(PAIR, noise), ("a", "b"), this_table=True)
    step = 1 if noise.whole else getattr(noise, "base", 1 / 16)
    outputs_between = noise.whole or isinstance(noise, Rounded)
    edges = np.arange(-60, 70, step) - (step / 2 if outputs_between else 0)
    rows = noise.masses((4, 3, 5, 6), np.concatenate([[-np.inf], edges, [np.inf]]))
    p, r = np.outer(rows[0], rows[2]).ravel(), np.outer(rows[1], rows[3]).ravel()
    for epsilon in (0.0, 0.4):
        bound, found = privacy.profile(epsilon), delta(p, r, epsilon)
        assert bound.lower - gap <= found <= bound.upper + 1e-9
        assert bound.gap <= gap


def test_zcdp_of_exact_laws_is_that_of_the_joint_law():
    table = Table({"x": ["a", "b"]}, counts=[5, 4], margins=False)
    release = TableRelease(table, RandomRounding(3))  # 5 and 4 are rounded to the same multiples
    bound = table_privacy(release, ("a", "b"), this_table=True).zcdp()
    truth = check_claim(*laws(release, [5, 4], [4, 5]), zcdp=0).bound
    assert bound.lower <= truth.upper + 1e-9
    assert truth.lower - 1e-9 <= bound.upper
    assert bound.gap < 1e-3


def test_zcdp_of_noise_that_is_added():
    e, rho = 0.5, table_privacy(TableRelease(PAIR, DiscreteLaplace(2))).zcdp()
    assert rho.lower <= 2 * e * math.tanh(e / 2) <= rho.upper
    for alpha in (1.01, 2, 5, 50):
        renyi = math.log(math.cosh((alpha - 0.5) * e) / math.cosh(e / 2)) / (alpha - 1)
        assert 2 * renyi / alpha <= rho.upper
    for noise in (Laplace(2), DiscreteGaussian(2), Rounded(Gaussian(2), 1)):
        rho = table_privacy(TableRelease(PAIR, noise)).zcdp()
        rows = noise.masses((0, 1), np.concatenate([[-np.inf], np.arange(-20, 22) - 0.5, [np.inf]]))
        for alpha in (1.01, 2, 5):
            renyi = math.log((rows[0] ** alpha * rows[1] ** (1 - alpha)).sum()) / (alpha - 1)
            assert 2 * renyi / alpha <= rho.upper + 1e-9
        assert rho.lower <= rho.upper


def test_cells_that_are_not_published_tell_nothing():
    table = Table({"x": ["a", "b", "c"]}, counts=[1, 1, 1], margins=False)
    noise = {("a",): RandomRounding(3), ("b",): None, ("c",): None}
    privacy = table_privacy(TableRelease(table, noise), ("b", "c"), this_table=True)
    assert privacy.profile(0).upper == 0
    assert privacy.zcdp().upper == 0
    ends = privacy.trade_off([0.25])
    assert ends.lower == pytest.approx([0.75])
    assert ends.upper == pytest.approx([0.75])


def test_large_bases_have_a_table_that_attains_the_bound():
    table = Table({"x": range(3), "y": range(3)}, people=1000)
    bound = table_privacy(TableRelease(table, RandomRounding(100))).profile(0.5)
    truth = 1 - 0.99**6  # each of six numbers tells all with probability 1/100
    assert bound.lower == pytest.approx(truth, abs=1e-12)
    assert bound.upper == pytest.approx(truth, abs=1e-12)


def rounded(value, sigma, base):
    """Return the law of the nearest multiple of the base to a noisy value, in floats."""
    edges = np.concatenate([[-np.inf], (np.arange(-10, 120) + 0.5) * base, [np.inf]])
    return np.diff(norm.cdf(edges, value, sigma))


def of_product(pairs, epsilon, step=1e-4):
    """Return H_c of independent numbers, from their losses rounded to a grid, in floats."""
    law, start = np.ones(1), 0
    for p, r in pairs:
        p, r = p[(p > 1e-14) & (r > 1e-14)], r[(p > 1e-14) & (r > 1e-14)]
        places = np.rint(np.log(p / r) / step).astype(int)
        own = np.bincount(places - places.min(), weights=p)
        law, start = np.maximum(fftconvolve(law, own), 0), start + places.min()
    return float(np.maximum(-np.expm1(epsilon - (start + np.arange(len(law))) * step), 0) @ law)


def test_laws_above_rounded_noise_hold_fourteen_numbers(monkeypatch):
    noise, book = Rounded(Gaussian(8), 10), Book()
    for value, by in product((1, 4, 9), (-1, 1)):
        p, r = rounded(value, 8, 10), rounded(value + by, 8, 10)
        above = book.above(Change(noise, value, by))
        for c in (0.5, 0.9, 1.0, 1.05, 1.3):
            truth = np.maximum(p - c * r, 0).sum()
            assert truth - 1e-12 <= float(above.at(fmpq(*c.as_integer_ratio()))) < truth + 1e-6
    # Of three variables somebody who moves to other categories of all changes 14 numbers.
    table = Table({name: [0, 1] for name in "xyz"}, people=1000)
    release, asked, above = TableRelease(table, noise), [], Book.above
    monkeypatch.setattr(Book, "above", lambda *args: asked.append(args) or above(*args))
    bound = table_privacy(release, ((0, 0, 0), (1, 1, 1))).profile(0.5)
    assert asked
    rng = np.random.default_rng(3)
    others = [rng.multinomial(999, [1 / 8] * 8) + np.eye(8, dtype=int)[0] for _ in range(5)]
    for counts in (bound.witness.counts, *others):
        pairs = []
        for places in release.sums:
            if (0 in places) != (7 in places):
                value, by = sum(counts[place] for place in places), -1 if 0 in places else 1
                pairs.append((rounded(value, 8, 10), rounded(value + by, 8, 10)))
        assert len(pairs) == 14
        truth = of_product(pairs, 0.5)
        assert truth <= bound.upper + 1e-4
        if counts is bound.witness.counts:
            assert truth == pytest.approx(bound.lower, abs=1e-4)
    assert bound.lower > 0.03


def test_a_density_without_cells_of_its_own_is_no_lattice():
    with pytest.raises(ValidationError, match=r"Gaussian.*whose losses are not known"):
        _real_cells(Change(Gaussian(1.0), 0, 1))
