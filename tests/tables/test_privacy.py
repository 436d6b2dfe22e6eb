"""What a whole table tells of one person's cell, against the distribution of what is published."""

import functools
import itertools
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm

from cvxleak import Stopped, measures
from cvxleak.core import ValidationError
from cvxleak.core.errors import SolveInterrupted
from cvxleak.model import DiscreteLaplace, Gaussian, Laplace, Rounded
from cvxleak.tables import (
    PerturbationTable,
    RandomRounding,
    Table,
    TablePrivacy,
    TableRelease,
    calibrate_table,
    table_privacy,
)
from cvxleak.tables.alike import unlike_pairs
from cvxleak.tables.losses import Book
from cvxleak.tables.moves import Moves
from cvxleak.tables.shapes import Shape

PTABLE = Path(__file__).parents[2] / "examples" / "ptable.csv"
LEVELS = (0.0, 0.3, 1.0, 2.5)


def hockey_stick(release: TableRelease, before: np.ndarray, after: np.ndarray, epsilon: float):
    """The largest P(S) - e^epsilon R(S), from all outcomes, in both orders."""
    laws = [release.law(before), release.law(after)]
    outcomes = set(laws[0]) | set(laws[1])
    rows = np.array([[float(law.get(y, 0)) for y in outcomes] for law in laws])
    c = math.exp(epsilon)
    return max(np.maximum(rows[i] - c * rows[1 - i], 0).sum() for i in (0, 1))


def moves(table: Table, counts: np.ndarray):
    """Every pair of tables in which one person is in two cells."""
    steps = [*np.eye(len(table.cells), dtype=int)]
    if table.outside:
        steps.append(np.zeros(len(table.cells), dtype=int))
    inside = [*counts, table.people - counts.sum()]
    for a, b in itertools.permutations(range(len(steps)), 2):
        if inside[a]:
            yield counts, counts - steps[a] + steps[b]


def every_count(table: Table):
    for counts in itertools.product(range(table.people + 1), repeat=len(table.cells)):
        total = sum(counts)
        if total == table.people or (table.outside and total < table.people):
            yield np.array(counts)


@pytest.mark.parametrize(
    ("noise", "outside"),
    [
        (RandomRounding(3), False),
        (RandomRounding(3), True),
        (PerturbationTable(PTABLE, summed_keys=False), False),
        pytest.param(PerturbationTable(PTABLE, summed_keys=False), True, marks=pytest.mark.slow),
    ],
)
def test_bounds_are_those_of_all_outcomes(noise, outside):
    table = Table({"x": ["a", "b", "c"]}, 5, counts=[3, 1, 1 - outside], outside=outside)
    release = TableRelease(table, noise)
    here = table_privacy(release, this_table=True)
    anywhere = table_privacy(release)
    for epsilon in LEVELS:
        pairs = moves(table, table.in_cells)
        truth = max(hockey_stick(release, *pair, epsilon) for pair in pairs)
        bound = here.profile(epsilon)
        assert bound.lower - 1e-12 <= truth <= bound.upper + 1e-12
        assert bound.upper - bound.lower < 1e-9
        # It is enough to go through counts with these rests, but here all of them are.
        worst = max(
            hockey_stick(release, *pair, epsilon)
            for counts in every_count(table)
            for pair in moves(table, counts)
        )
        bound = anywhere.profile(epsilon)
        assert bound.lower - 1e-12 <= worst <= bound.upper + 1e-12
        assert bound.upper - bound.lower < 1e-9
        if bound.witness is not None:
            move = bound.witness
            steps = [table.place_of(cell) for cell in (move.source, move.target)]
            change = np.array([(i == steps[1]) - (i == steps[0]) for i in range(3)])
            counts = np.array(move.counts)
            found = hockey_stick(release, counts, counts + change, epsilon)
            assert found == pytest.approx(bound.lower, abs=1e-12)


def test_two_variables_change_cells_and_margins():
    table = Table({"a": ["x", "y"], "b": [0, 1]}, counts=[[2, 1], [1, 0]])
    release = TableRelease(table, RandomRounding(2))
    for move in ((("x", 0), ("x", 1)), (("x", 0), ("y", 1))):
        places = [table.place_of(cell) for cell in move]
        step = np.array([(i == places[1]) - (i == places[0]) for i in range(4)])
        privacy = table_privacy(release, move, this_table=True)
        for epsilon in LEVELS:
            truth = hockey_stick(release, table.in_cells, table.in_cells + step, epsilon)
            assert privacy.profile(epsilon).lower == pytest.approx(truth, abs=1e-12)
            assert privacy.profile(epsilon).upper == pytest.approx(truth, abs=1e-12)


def test_moves_that_are_left_out_are_like_one_that_is_kept():
    rng = np.random.default_rng(0)
    noises = [RandomRounding(3), RandomRounding(2), Gaussian(2), None]
    some_left_out = 0
    for size in [(4,), (3, 2), (3, 3), (2, 2, 2), (3, 2, 2)] * 3:
        axes = {name: range(length) for name, length in zip("xyz", size, strict=False)}
        labels = [*itertools.product(*axes.values())]
        zeros = [label for label in labels if rng.random() < 0.15]
        table = Table(axes, 50, zeros=zeros, margins=len(size) > 1, outside=rng.random() < 0.3)
        names = [name for name, _ in TableRelease(table, RandomRounding(3)).noise]
        drawn = np.minimum(rng.geometric(0.8, len(names)), 4) - 1
        noise = dict(zip(names, (noises[place] for place in drawn), strict=True))
        moves = Moves(TableRelease(table, noise), None, False, Book())
        pairs = [*itertools.combinations(range(len(moves.within)), 2)]
        kept = [*unlike_pairs(moves.within, moves.kinds)]
        some_left_out += len(kept) < len(pairs)
        # Shapes with the same key have the same cases.
        assert {Shape(moves, *pair).key for pair in kept} == {
            Shape(moves, *pair).key for pair in pairs
        }
    assert some_left_out > 4


def test_gaussian_numbers_add_up():
    table = Table({"a": ["x", "y"], "b": [0, 1]}, people=1000)
    privacy = table_privacy(TableRelease(table, Gaussian(3)))
    mu = math.sqrt(6) / 3  # two cells and four margins
    for epsilon in LEVELS:
        delta = norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(
            -mu / 2 - epsilon / mu
        )
        bound = privacy.profile(epsilon)
        assert bound.lower <= delta + 1e-12
        assert bound.upper >= delta - 1e-12
        assert bound.upper - bound.lower < 1e-6
    # rho is mu^2 / 2, exactly.
    assert Fraction(privacy.zcdp().lower) <= Fraction(1, 3) <= Fraction(privacy.zcdp().upper)
    assert privacy.zcdp().upper == pytest.approx(1 / 3)


@pytest.mark.parametrize("noise", [DiscreteLaplace(2), Laplace(2), Rounded(Gaussian(2), 1)])
def test_other_noise_is_between_its_ends(noise):
    table = Table({"x": ["a", "b"]}, people=9, margins=False)
    privacy = table_privacy(TableRelease(table, noise))
    edges = np.arange(-60, 61) + 0.5
    if isinstance(noise, Laplace):
        edges = np.arange(-300, 301) / 10
    rows = noise.channel([0, 1], edges).matrix
    pair = np.array([np.outer(rows[0], rows[1]).ravel(), np.outer(rows[1], rows[0]).ravel()])
    for epsilon in LEVELS:
        # Cells of the output tell no more than the output.
        delta = np.maximum(pair[0] - math.exp(epsilon) * pair[1], 0).sum()
        bound = privacy.profile(epsilon)
        assert delta <= bound.upper + 1e-9
        assert bound.lower <= delta + 2e-3
        assert bound.upper - bound.lower < 2e-3


def test_trade_off_curves_are_those_of_the_worst_test():
    table = Table({"x": ["a", "b"]}, counts=[2, 1])
    release = TableRelease(table, RandomRounding(3))
    rates = np.linspace(0, 1, 21)
    pairs = [release.law(counts) for counts in ([2, 1], [1, 2])]
    outcomes = sorted(set(pairs[0]) | set(pairs[1]))
    p, r = ([float(law.get(y, 0)) for y in outcomes] for law in pairs)
    truth = np.minimum(measures.trade_off(p, r, rates), measures.trade_off(r, p, rates))
    ends = table_privacy(release, (("a",), ("b",)), this_table=True).trade_off(rates)
    assert (ends.lower <= truth + 1e-9).all()
    # The largest convex curve below both.
    assert (ends.upper <= truth + 1e-9).all()
    assert (ends.upper - ends.lower < 1e-3).all()


def test_a_rounded_table_has_no_zcdp_and_keys_are_not_independent():
    table = Table({"x": ["a", "b"]}, people=5)
    assert table_privacy(TableRelease(table, RandomRounding(3))).zcdp().upper == math.inf
    release = TableRelease(table, RandomRounding(3))
    for move, match in [
        ([("a",)], "two cells are needed"),
        ([("a",), ("a",)], "twice"),
        ([("a",), ("c",)], "move: found"),
    ]:
        with pytest.raises(ValidationError, match=match):
            table_privacy(release, move)
    with pytest.raises(ValidationError, match="true counts"):
        table_privacy(release, this_table=True)
    with pytest.raises(ValidationError, match="epsilon"):
        table_privacy(release).profile(-1)
    with pytest.raises(ValidationError, match="false_alarms"):
        table_privacy(release).trade_off([2.0])
    empty = TableRelease(Table({"x": ["a", "b"]}, counts=[3, 0]), RandomRounding(3))
    with pytest.raises(ValidationError, match="nobody is in"):
        table_privacy(empty, (("b",), ("a",)), this_table=True)


def test_trade_off_curves_are_narrow_at_each_rate():
    rates = np.array([1e-9, 1e-4, 0.01, 0.2, 0.5, 0.9])
    for sigma in (0.5, 1, 3):
        table = Table({"x": range(2)}, people=9, margins=False)
        ends = table_privacy(TableRelease(table, Gaussian(sigma))).trade_off(rates)
        truth = norm.cdf(norm.isf(rates) - math.sqrt(2) / sigma)
        assert (ends.lower <= truth + 1e-11).all()
        assert (truth <= ends.upper + 1e-11).all()
        assert (ends.upper - ends.lower <= 1.01e-3 * ends.upper + 1e-8).all()


def test_levels_closer_than_floats_leave_a_trade_off_curve(tmp_path):
    # Halving the distance to 0 ends at levels e whose e^e is the same float.
    noise = [-1] * 56 + [0] * 143 + [1] * 57
    lines = [*(f"0,{key},0" for key in range(256)), *(f"1,{k},{x}" for k, x in enumerate(noise))]
    (tmp_path / "ptable.csv").write_text("\n".join(["pcv,ckey,pvalue", *lines]))
    table = Table({"r": range(2), "c": range(3)}, counts=[[0, 3, 0], [3, 3, 3]])
    release = TableRelease(table, PerturbationTable(tmp_path / "ptable.csv", cycle=1))
    privacy = table_privacy(release, ((1, 0), (1, 2)), this_table=True)
    ends = privacy.trade_off([0.1])
    assert 0.2405 < ends.lower[0] <= ends.upper[0] < 0.2475
    assert ends.upper[0] >= 1 - privacy.profile(0.0).upper - 0.1


@pytest.mark.parametrize("bends", [True, False])
def test_trade_off_curves_of_both_orders_are_their_hull(bends, monkeypatch):
    if not bends:
        monkeypatch.setattr("cvxleak.tables.privacy.MOST_KNOTS", -1)
    rng = np.random.default_rng(4)
    rates = np.array([0, 1e-6, 0.003, 0.05, 0.21, 0.5, 0.8, 1])
    for _ in range(8):
        counts, base = rng.integers(1, 6, 3), int(rng.integers(2, 6))
        noise = RandomRounding(base, up=np.sort(rng.random(base - 1)).tolist())
        release = TableRelease(Table({"x": range(3)}, counts=counts), noise)
        laws = [release.law(counts), release.law(counts + np.array([-1, 1, 0]))]
        p, r = (np.array([float(law.get(y, 0)) for y in {**laws[0], **laws[1]}]) for law in laws)
        # The corners of both curves; f is the lower hull of them.
        corners = []
        for one, other in ((p, r), (r, p)):
            order = np.argsort(-one / np.maximum(other, 1e-300))
            hits = np.concatenate([[0], np.cumsum(one[order])])
            corners += [*zip(np.concatenate([[0], np.cumsum(other[order])]), 1 - hits, strict=True)]
        x, y = np.array(corners).T
        start, end = np.meshgrid(np.arange(len(x)), np.arange(len(x)))
        truth = []
        for rate in np.minimum(rates, x.max()):
            low, high = (one[(x[start] <= rate) & (rate <= x[end])] for one in (start, end))
            share = (rate - x[low]) / np.maximum(x[high] - x[low], 1e-300)
            truth.append((y[low] + (y[high] - y[low]) * share).min())
        privacy = table_privacy(release, ((0,), (1,)), this_table=True)
        ends = privacy.trade_off(rates)
        assert (ends.lower <= np.array(truth) + 1e-11).all()
        assert (np.array(truth) <= ends.upper + 1e-11).all()
        assert (ends.upper - ends.lower <= 1.01e-3 * ends.upper + 1e-8).all()


@pytest.mark.parametrize("after", [0, 1])
def test_ctrl_c_leaves_bounds_that_hold(monkeypatch, after):
    table = Table({"x": range(3)}, counts=[4, 1, 3])
    asked = TableRelease(table, RandomRounding(3, up=(0.2, 0.7))), ((0,), (1,))
    truth = table_privacy(*asked, this_table=True).profile(0.2)
    looked, of = [0], TablePrivacy._of

    def pressed(self, place):
        looked[0] += 1
        if looked[0] > after:
            raise KeyboardInterrupt
        return of(self, place)

    monkeypatch.setattr(TablePrivacy, "_of", pressed)
    privacy = table_privacy(*asked, this_table=True)
    with pytest.raises(SolveInterrupted) as found:
        privacy.profile(0.2)
    bound = found.value.bound
    assert bound.lower <= truth.lower <= truth.upper <= bound.upper <= 1
    assert bound.stats["stopped"] is Stopped.INTERRUPTED
    assert (bound.witness is not None) == (bound.lower > 0)
    with pytest.raises(SolveInterrupted):
        privacy.trade_off([0.1])
    monkeypatch.setattr(TablePrivacy, "_of", of)
    late = table_privacy(*asked, this_table=True).profile(0.2, time_limit=0.0)
    assert late.lower <= truth.lower <= truth.upper <= late.upper
    assert privacy.profile(0.2).upper == truth.upper


def linked(folder):
    path = folder / "keys.csv"
    rows = [f"{c},{k},{v}" for c in (1, 2, 3) for k, v in enumerate((-1, 0, 0, 1))]
    path.write_text("\n".join(["pcv,ckey,pvalue", *rows]))
    table = Table({"x": range(3)}, counts=[2, 1, 3])
    return TableRelease(table, PerturbationTable(path, cycle=1))


@pytest.mark.parametrize("keyed", [True, False])
@pytest.mark.parametrize("moves", [0, 2, 4])
def test_moves_that_are_left_count_as_if_they_told_all(tmp_path, monkeypatch, keyed, moves):
    release = linked(tmp_path)
    if not keyed:
        release = TableRelease(release.table, RandomRounding(3, up=(0.2, 0.7)))
    asked = functools.partial(table_privacy, release, this_table=True)
    whole, rates = asked(), [0.0, 0.1, 0.5]
    truth, curve, rho = whole.profile(0.2), whole.trade_off(rates), whole.zcdp()

    def press(lower, upper, seen):
        if seen >= moves:
            raise KeyboardInterrupt

    def interrupted(solve):
        with pytest.raises(SolveInterrupted) as found:
            solve()
        return found.value.bound

    if keyed:
        privacy = interrupted(lambda: asked(progress=press))
    else:
        privacy = asked()
        interrupted(lambda: privacy.profile(0.2, progress=press))
    assert (privacy.profile(0.2, time_limit=0.0).lower > 0) == (moves > 0)
    for late in (
        privacy.profile(0.2, time_limit=0.0),
        interrupted(lambda: privacy.profile(0.2, progress=press)),
    ):
        assert late.lower <= truth.lower <= truth.upper < late.upper == 1
        assert (late.lower > 0) == (late.witness is not None)
    assert late.stats["stopped"] is Stopped.INTERRUPTED
    for ends in (
        privacy.trade_off(rates, time_limit=0.0),
        interrupted(lambda: privacy.trade_off(rates, progress=press)),
    ):
        assert not ends.lower.any()  # nothing is ruled out
        assert (curve.upper <= ends.upper).all()
        assert (ends.upper <= 1 - np.array(rates)).all()
    for late in (privacy.zcdp(time_limit=0.0), interrupted(lambda: privacy.zcdp(progress=press))):
        assert late.lower <= rho.lower <= rho.upper <= late.upper == math.inf
    assert privacy.profile(0.2) == truth
    assert privacy.profile(0.2).stats["cases"] == truth.stats["cases"]
    assert (privacy.trade_off(rates).upper == curve.upper).all()
    assert privacy.zcdp() == rho


def test_the_time_limit_ends_before_a_move(tmp_path):
    privacy = table_privacy(linked(tmp_path), this_table=True, time_limit=0.0)
    late = privacy.profile(0.2, time_limit=0.0)
    assert (late.lower, late.upper, late.stats["stopped"]) == (0, 1, Stopped.TIME_LIMIT)
    assert privacy.profile(0.2) == table_privacy(linked(tmp_path), this_table=True).profile(0.2)


def test_ctrl_c_leaves_the_calibration_reached():
    table, tried = Table({"x": ["a", "b"]}, people=50), []

    def noisy(scale):
        tried.append(scale)
        if len(tried) == 5:
            raise KeyboardInterrupt
        return TableRelease(table, DiscreteLaplace(scale))

    with pytest.raises(SolveInterrupted) as found:
        calibrate_table(noisy, (1, 100), epsilon=1.0, delta=1e-6)
    assert found.value.bound.bound.upper <= 1e-6
    assert found.value.bound.parameter in tried


def test_progress_holds_the_trade_off_curve():
    told, table = [], Table({"x": range(3)}, counts=[4, 1, 3])
    privacy = table_privacy(TableRelease(table, RandomRounding(3, up=(0.2, 0.7))))
    ends = privacy.trade_off([0.3], progress=lambda *now: told.append(now))
    brackets = [(lower, upper) for lower, upper, _ in told if (lower, upper) != (0, 1)]
    assert brackets
    assert all(low <= ends.lower[0] + 1e-12 for low, _ in brackets)
    assert all(ends.upper[0] <= high + 1e-12 for _, high in brackets)

    def press(lower, upper, seen):
        if (lower, upper) == brackets[0]:
            raise KeyboardInterrupt

    with pytest.raises(SolveInterrupted) as found:
        privacy.trade_off([0.3], progress=press)
    assert (found.value.bound.lower[0], found.value.bound.upper[0]) == brackets[0]


def test_progress_holds_the_profile():
    told = []
    privacy = table_privacy(TableRelease(Table({"x": range(3)}, people=9), RandomRounding(3)))
    bound = privacy.profile(0.2, progress=lambda *now: told.append(now))
    assert all(lower <= bound.lower <= bound.upper <= upper for lower, upper, _ in told)
    assert len(told) > bound.stats["cases"] > 2

    def press(lower, upper, seen):
        if seen == 3:
            raise KeyboardInterrupt

    with pytest.raises(SolveInterrupted) as found:
        privacy.profile(0.2, progress=press)
    assert found.value.bound.lower <= bound.lower <= bound.upper <= found.value.bound.upper
