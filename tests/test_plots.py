"""What the pictures hold; how they look was looked at."""

import math
import sys

import numpy as np
import pytest
from matplotlib.figure import Figure

from cvxleak import Channel, Mechanism, Prior, capacity, record_leakage
from cvxleak.audit import LeakageCurve, leakage_curve
from cvxleak.capacities import Capacity
from cvxleak.core.errors import ValidationError
from cvxleak.design import MinLeakage, design_curve
from cvxleak.envelope import envelope_curve, pml_envelope
from cvxleak.measures import record_trade_off
from cvxleak.mechanisms import binary_symmetric, truncated_geometric
from cvxleak.plots import (
    plot_adversary,
    plot_bracket,
    plot_channel,
    plot_convergence,
    plot_curve,
    plot_envelope,
    plot_guesses,
    plot_posterior,
    plot_prior,
    plot_sources,
    plot_sweep,
    plot_trade_off,
)
from cvxleak.problem import verify_iterates
from cvxleak.queries import count, parity
from cvxleak.sources import SourceSet
from cvxleak.sweeps import Sweep, SweepRow, sweep

PARITY = Mechanism(parity(2), binary_symmetric(0.1))


def ends(axes):
    """Return (x, upper, lower) as drawn."""
    upper, lower = axes.lines
    np.testing.assert_array_equal(upper.get_xdata(), lower.get_xdata())
    return upper.get_xdata(), upper.get_ydata(), lower.get_ydata()


def drawn(axes):
    """Return the numbers behind a heat map, once it has been rendered."""
    axes.figure.savefig("/dev/null", format="png")
    return np.asarray(axes.images[0].get_array())


def test_a_bracket_shows_both_ends_and_what_is_between():
    ax = Figure().subplots()
    assert plot_bracket([0, 1], [1, 2], [1.5, 2.5], ax=ax, label="two", color="k") is ax
    x, upper, lower = ends(ax)
    assert (x.tolist(), upper.tolist(), lower.tolist()) == ([0, 1], [1.5, 2.5], [1, 2])
    (shade,) = ax.collections
    vertices = shade.get_paths()[0].vertices
    assert {tuple(v) for v in vertices} >= {(0, 1), (0, 1.5), (1, 2), (1, 2.5)}
    assert plot_bracket([1], [1], [1]).lines
    with pytest.raises(ValidationError, match="lower, upper: found shapes"):
        plot_bracket([0, 1], [1], [1, 2])


def test_a_falling_function_is_shaded_by_steps_between_its_points():
    ax = plot_bracket([0, 1, 3], [0.9, 0.5, 0.1], [1.0, 0.6, 0.2], falling=True)
    (shade,) = ax.collections
    (path,) = shade.get_paths()
    inside = [(0.5, 0.95), (0.5, 0.55), (2, 0.15), (2, 0.55)]
    outside = [(0.5, 1.05), (0.5, 0.45), (2, 0.05), (2, 0.65)]
    assert [path.contains_point(point) for point in inside] == [True] * 4
    assert [path.contains_point(point) for point in outside] == [False] * 4
    upper, lower = ax.lines
    assert (upper.get_drawstyle(), lower.get_drawstyle()) == ("steps-post", "steps-pre")
    assert upper.get_marker() == lower.get_marker() == "."
    left, right = ax.get_xlim()
    assert left < 0 < 3 < right


def test_a_design_curve_is_drawn_against_its_budgets():
    problem = MinLeakage(parity(2), distortion=1 - np.eye(2), budget=0.1, entropy_floor=0.5)
    curve = design_curve(problem, [0.1, 0.2, 0.5], tol=1e-2)
    ax = plot_curve(curve)
    x, upper, lower = ends(ax)
    assert x.tolist() == [0.1, 0.2, 0.5]
    assert (upper.tolist(), lower.tolist()) == (curve.upper.tolist(), curve.lower.tolist())
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("budget", f"{curve.bounds[0].name} (nats)")
    assert ax.lines[0].get_drawstyle() == "steps-post"
    with pytest.raises(ValidationError, match="curve: expected"):
        plot_curve([1, 2])  # pyright: ignore[reportArgumentType]


def test_an_envelope_lies_between_its_bounds():
    prior, channel = [0.3, 0.7], [[0.8, 0.2], [0.3, 0.7]]
    ax = plot_envelope(envelope_curve(prior, channel), prior, channel, unit="bits")
    high, low, *bounds = ax.lines
    delta = np.asarray(high.get_xdata(), float)
    upper, lower = (np.asarray(line.get_ydata(), float) for line in (high, low))
    for line in bounds:
        values, label = np.asarray(line.get_ydata(), float), str(line.get_label())
        if "upper" in label:
            assert np.all(values >= lower - 1e-9)
        else:
            assert np.all(values <= upper + 1e-9)
    assert len(bounds) == 4
    proved = pml_envelope(prior, channel, 0.3).to("bits")
    assert np.interp(0.3, delta, upper) == pytest.approx(proved.upper, abs=1e-5)


def test_points_are_marked_while_they_are_few():
    few, many = (
        plot_bracket(range(n), [1.0] * n, [1.0] * n).lines[0].get_marker() for n in (5, 100)
    )
    assert (few, many) == (".", "")


def test_a_flat_line_is_inside_the_picture():
    curve = leakage_curve(PARITY, [0.0, 0.3], tol=1e-3)
    bottom, top = plot_curve(curve).get_ylim()
    assert bottom == 0
    assert top > 1.01 * curve.upper.max()


def test_a_second_bracket_does_not_cut_off_the_first():
    ax = plot_bracket([0, 10], [1, 1], [2, 2])
    before = ax.get_xlim()
    assert plot_bracket([4, 5], [1, 1], [2, 2], ax=ax).get_xlim() == before


def test_a_curve():
    curve = leakage_curve(PARITY, [0.0, 1.0, 1.3], tol=1e-3)
    x, upper, lower = ends(plot_curve(curve))
    assert x.tolist() == [0.0, 1.0, 1.3]
    np.testing.assert_array_equal(upper, curve.upper)
    np.testing.assert_array_equal(lower, curve.lower)
    bits = plot_curve(curve.to("bits"))
    # The floors stay in nats when the leakage is in bits.
    assert "nats" in bits.get_xlabel()
    assert "bits" in bits.get_ylabel()
    with pytest.raises(ValidationError, match="curve"):
        plot_curve([1, 2])


def test_guesses_before_and_after_along_the_floor():
    curve = leakage_curve(PARITY, [0.0, 1.0, 1.3], tol=1e-3)
    axes = plot_guesses(curve)
    pairs = [bound.witness.guess() for bound in curve.bounds]
    before, after = ([float(x) for x in line.get_ydata()] for line in axes.lines)
    assert list(zip(before, after, strict=True)) == pairs
    assert axes.lines[0].get_xdata() == pytest.approx([0.0, 1.0, 1.3])
    assert [text.get_text()[:6] for text in axes.get_legend().get_texts()] == ["before", "after "]
    with pytest.raises(ValidationError, match="curve: expected a LeakageCurve"):
        plot_guesses(curve.bounds)
    nobody = LeakageCurve((0.0,), (capacity(PARITY.channel),), (True,), 0.0)
    with pytest.raises(ValidationError, match="curve: witness: expected a"):
        plot_guesses(nobody)


def test_a_sweep():
    results = sweep(lambda flip: capacity(binary_symmetric(flip)), {"flip": [0.5, 0.1]})
    x, upper, _ = ends(plot_sweep(results, "flip"))
    assert x.tolist() == [0.1, 0.5]
    assert upper[0] == results.rows[1].upper
    nothing = SweepRow({"flip": 0.2}, math.nan, math.nan, "", "INFEASIBLE", 0.0, "no")
    assert len(ends(plot_sweep(Sweep((*results.rows, nothing)), "flip"))[0]) == 2
    for coordinate, rows, found in (
        ("flop", results.rows, "coordinate: found 'flop'"),
        ("flip", (nothing,), "results: no point has a bound"),
        ("flip", (SweepRow({"flip": "a"}, 0, 0, "", "COMPUTED", 0),), "not numbers"),
    ):
        with pytest.raises(ValidationError, match=found):
            plot_sweep(Sweep(rows), coordinate)


def test_a_sweep_over_two_coordinates_has_a_curve_for_each_value_of_the_second():
    surface = sweep(lambda a, b: a + b, {"a": [2, 1], "b": [3, 4]})
    axes = plot_sweep(surface, "a")
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["b = 3", "b = 4"]
    uppers = [line.get_ydata().tolist() for line in axes.lines[::2]]
    assert uppers == [[4, 5], [5, 6]]
    assert len({line.get_color() for line in axes.lines}) == 2


def test_a_channel():
    axes = plot_channel(Channel([[0.9, 0.1], [0.25, 0.75]], ["no", "yes"], ["n", "y"]))
    assert drawn(axes).tolist() == [[0.9, 0.1], [0.25, 0.75]]
    assert [text.get_text() for text in axes.texts] == ["0.9", "0.1", "0.25", "0.75"]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["no", "yes"]
    large = plot_channel(truncated_geometric(60, 0.5))
    assert drawn(large).shape == (61, 61)
    assert len(large.get_xticks()) <= 24
    assert not large.texts
    # Without numbers, a scale says what the colors mean.
    assert [ax.get_ylabel() for ax in large.figure.axes if ax is not large] == ["probability"]
    assert axes.figure.axes == [axes]


def test_a_prior():
    axes = plot_prior(Prior([0.2, 0.8], [("a", 1), "a label that goes on and on"]))
    assert [bar.get_height() for bar in axes.patches] == [0.2, 0.8]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["a, 1", "a label that go…"]
    axes.figure.savefig("/dev/null", format="png")


def test_the_posterior_of_the_worst_adversary():
    adversary = record_leakage(PARITY, entropy_floor=0.0).witness
    axes = plot_posterior(adversary)
    beliefs = drawn(axes)
    np.testing.assert_allclose(beliefs.sum(axis=0), 1.0)
    np.testing.assert_allclose(beliefs[:, 0], 0.5, atol=1e-6)
    np.testing.assert_allclose(beliefs[:, 1:].max(axis=0), 0.9, atol=1e-6)
    assert [label.get_text() for label in axes.get_xticklabels()] == ["before", "0", "1"]


def test_the_belief_of_the_worst_adversary():
    mechanism = Mechanism(count(3), truncated_geometric(3, 1.0))
    adversary = record_leakage(mechanism, entropy_floor=1.5).witness
    axes = plot_adversary(adversary)
    assert [label.get_text() for label in axes.get_xticklabels()] == ["0", "1", "2", "3"]
    zero, one = ([bar.get_height() for bar in group] for group in axes.containers)
    law = adversary.expand()
    for held, heights in ((0, zero), (1, one)):
        for total, height in enumerate(heights):
            mass = sum(
                law[x] for x in law.labels if x[adversary.records[0]] == held and sum(x) == total
            )
            assert height == pytest.approx(mass, abs=1e-9)
    assert [bar.get_y() for bar in axes.containers[1]] == pytest.approx(zero)
    assert axes.get_ylim()[1] > max(np.add(zero, one))
    with pytest.raises(ValidationError, match="adversary"):
        plot_adversary([0.5, 0.5])


def test_labels_are_no_formulas():
    axes = plot_prior(Prior([0.2, 0.8], ["$5", "$x^$"]))
    axes.figure.savefig("/dev/null", format="png")
    channel = Channel([[1.0, 0.0], [0.0, 1.0]], ["$a^", "b$"], ["$", "$$"])
    drawn(plot_channel(channel))


def test_without_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.axes", None)
    with pytest.raises(ValidationError, match=r"pip install 'cvxleak\[plot\]'"):
        plot_prior(Prior([1.0]))


def test_source_sets_in_the_triangle():
    single = SourceSet([[0.5, 0.3, 0.2], [0.2, 0.5, 0.3]])
    assert not plot_sources(single).patches
    # A hull has its corners only, in their order; the fourth law is inside.
    corners = [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]]
    (patch,) = plot_sources(SourceSet.hull([*corners, [0.3, 0.4, 0.3]])).patches
    drawn = {tuple(place) for place in patch.get_xy().round(6)}
    assert len(drawn) == 3
    # A box of this kind is a hexagon; its area is what a triangle's is without its corners.
    (patch,) = plot_sources(SourceSet.box([0.0] * 3, [0.5, 0.75, 1.0])).patches
    x, y = patch.get_xy().T
    area = abs(np.dot(x, np.roll(y, 1)) - np.dot(y, np.roll(x, 1))) / 2
    assert area == pytest.approx(np.sqrt(0.75) / 2 * (1 - 0.5**2 - 0.25**2))
    both = plot_sources(single | SourceSet.box([0.4, 0.2, 0.1], [0.6, 0.4, 0.3]))
    assert len(both.patches) == 1
    with pytest.raises(ValidationError, match="found 2 outcomes"):
        plot_sources(SourceSet([[0.5, 0.5]]))


def test_the_convergence_of_an_iteration():
    problem = Capacity([[0.9, 0.1], [0.2, 0.8]])
    report = verify_iterates(problem, [[0.2, 0.8], [0.3, 0.8], [0.5, 0.5]])
    axes = plot_convergence(report)
    assert axes.get_yscale() == "log"
    most = [check.shortfall[1] for check in report.checks]
    np.testing.assert_allclose(axes.lines[0].get_ydata(), most)
    assert list(axes.lines[1].get_xdata()) == [1]  # the one that is no law
    assert "nats" in axes.get_ylabel()


def test_hits_against_false_alarms():
    axes = plot_trade_off(PARITY.channel, label="flip .1")
    diagonal, line = axes.lines
    x, y = line.get_xdata(), line.get_ydata()
    assert y == pytest.approx(1 - record_trade_off(PARITY.channel, x))
    assert float(np.interp(0.1, x, y)) == pytest.approx(0.9)
    assert (y >= x - 1e-12).all()
    assert list(diagonal.get_ydata()) == [0, 1]
    assert axes.get_ylabel() == "hits"


def test_pyplot_knows_what_is_drawn():
    from matplotlib import pyplot

    first = plot_bracket([0, 1], [1, 2], [1, 2])
    assert pyplot.gcf() is first.figure
    assert plot_bracket([0, 1], [1, 2], [1, 2]) is not first  # nothing is drawn over it
    _, (left, right) = pyplot.subplots(1, 2)
    assert plot_channel(PARITY.channel) is right  # the current axes, which are empty
    assert plot_channel(PARITY.channel) not in (left, right)
    before = pyplot.get_fignums()
    assert plot_channel(PARITY.channel, ax=left) is left
    assert plot_bracket([0, 1], [1, 2], [1, 2], ax=Figure().subplots()).figure is not pyplot.gcf()
    assert pyplot.get_fignums() == before
