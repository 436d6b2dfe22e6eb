"""Cells of real outputs: probabilities against SciPy's, and costs against finer cells."""

import json
import math
from itertools import pairwise

import numpy as np
import pytest
from flint import arb
from scipy import stats
from scipy.special import rel_entr

from cvxleak.kernel import claims
from cvxleak.kernel.leakage import RecordLeakage, gain_of
from cvxleak.kernel.noise import SLOPES, Bounded, Noise, read_output
from cvxleak.kernel.numbers import RefusedError, lower, precision, rational, upper
from cvxleak.kernel.reading import pack
from cvxleak.kernel.space import Space

assert claims.LOADED

CEILING = {"rule": "close", "multiplier": 0, "limits": [], "of": {"rule": "alphabet"}}


@pytest.fixture(autouse=True)
def _in_balls():
    with precision():
        yield


def one_record(values, noise):
    """Return the problem of one record whose value is published with noise."""
    n = len(values)
    query = {
        "kind": "table",
        "space": {"alphabets": [[list(range(n)), 1]]},
        "table": list(range(n)),
        "values": list(values),
    }
    mechanism = {"query": query, "noise": noise}
    return {"mechanism": mechanism, "entropy_floor": 0, "size": 1, "records": None}


def output_of(values, noise):
    return read_output(noise, Space((), (0,), {}, tuple(values)))


def discrete_gaussian(sigma):
    k = np.arange(-300, 301)
    law = np.exp(-(k**2) / (2 * sigma**2))
    cumulated = np.cumsum(law / law.sum())
    return lambda z: cumulated[math.floor(z) + 300]


LAWS = {
    "gaussian": ({"kind": "gaussian", "sigma": 0.7}, stats.norm(scale=0.7).cdf, 0.7),
    "laplace": ({"kind": "laplace", "scale": 0.7}, stats.laplace(scale=0.7).cdf, 0.7),
    "uniform": ({"kind": "uniform", "half_width": 2.5}, stats.uniform(-2.5, 5).cdf, 2.5),
    "discrete-laplace": ({"kind": "discrete-laplace", "scale": 2}, stats.dlaplace(0.5).cdf, 1),
    "discrete-gaussian": (
        {"kind": "discrete-gaussian", "sigma": 2},
        discrete_gaussian(2),
        1,
    ),
    "rounded": (
        {"kind": "rounded", "noise": {"kind": "gaussian", "sigma": 0.7}, "base": 0.5},
        stats.norm(scale=0.7).cdf,
        0.5,
    ),
}


@pytest.mark.parametrize("name", LAWS)
def test_probabilities_of_cells_are_those_of_scipy(name):
    data, cumulated, unit = LAWS[name]
    values = [7, 8, 11]
    output = output_of(values, data)
    edges = [-2.5, -0.5, 0.5, 1.5, 4.5, 7.5]
    term = {"edges": edges, "references": [0] * 7}
    rows = output.cells({key: term[key] for key in output.upper}).rows
    for v, row in zip(values, rows, strict=True):
        real = np.array([7 + e * unit - v for e in edges])
        expected = np.diff([0, *map(cumulated, real), 1])
        assert [float(x.mid()) for x in row.lo] == pytest.approx(expected, abs=1e-13)
        assert abs(sum(row.lo, arb(0)) - 1) < 1e-30


def test_probabilities_far_from_the_value_keep_their_digits():
    for data, tail in (
        ({"kind": "gaussian", "sigma": 1}, stats.norm.sf),
        ({"kind": "laplace", "scale": 1}, stats.laplace.sf),
    ):
        cells = output_of([0, 1], data).cells({"edges": [-30, 30], "references": [0, 0, 0]})
        for cell in (0, 2):
            assert float(cells.rows[0].lo[cell]) == pytest.approx(tail(30), rel=1e-12)


def test_discrete_gaussian_probabilities_hold_what_is_far_out():
    # The last term that is summed is the 14th for sigma = 1, the 420th for 30.
    for sigma, ks in ((1, [12, 13, 14, 15]), (30, [0, 419, 420, 421])):
        with precision():
            law = [(arb(-k * k) / (2 * sigma**2)).exp() for k in range(60 * sigma)]
            whole = 2 * sum(law, arb(0)) - law[0]
            above = [sum(law[k + 1 :], arb(0)) / whole for k in ks]
            output = output_of([0], {"kind": "discrete-gaussian", "sigma": sigma})
            for k, exact in zip(ks, above, strict=True):
                row = output.cells({"edges": [k + 0.5]}).rows[0].lo
                assert row[1].overlaps(exact)
                assert row[0].overlaps(1 - exact)
                assert abs(row[1] - exact) < 1e-34
    for sigma, fits in ((10_000, True), (10_001, False)):
        output = output_of([0], {"kind": "discrete-gaussian", "sigma": sigma})
        if fits:
            assert len(output.cells({"edges": [0.5]}).rows[0].lo) == 2
        else:
            with pytest.raises(RefusedError, match="too wide"):
                output.cells({"edges": [0.5]})


def costs_of(noise, edges, references=None, values=(0, 1, 2)):
    """Return the costs as floats, in the unit of the noise; None where nothing is known."""
    output = output_of(values, noise)
    term = {"edges": edges, "references": references or [0] * (len(edges) + 1)}
    found = output.cells({key: term[key] for key in output.upper}).costs
    return [None if own is None else [float(x.mid()) for x in own] for own in found]


def test_costs_of_densities_are_their_formula():
    # In the unit of the noise; the values are 0, 2, 4 in it.
    edges, references = [-1, 0.5, 3, 6], [0, 0.25, -1, 2.5, 0]
    found = costs_of({"kind": "gaussian", "sigma": 0.5}, edges, references)
    assert (found[0], found[-1]) == (None, None)
    for (lo, hi), t, own in zip(pairwise(edges), references[1:-1], found[1:-1], strict=True):
        assert own == pytest.approx([((v - t) * (hi - lo) / math.pi) ** 2 / 2 for v in (0, 2, 4)])
    references = [1, 0.25, -0.5, 0.5, -1]
    found = costs_of({"kind": "laplace", "scale": 0.5}, edges, references)
    assert (found[0], found[-1]) == ([0, 0, 0], [0, 0, 0])
    for (lo, hi), t, own in zip(pairwise(edges), references[1:-1], found[1:-1], strict=True):
        # To the left of v the slope is 1 - t, to the right -1 - t, around it the larger one.
        left, right = abs(1 - t), abs(-1 - t)
        slopes = [left if hi <= v else right if lo >= v else max(left, right) for v in (0, 2, 4)]
        assert own == pytest.approx([(s * (hi - lo) / math.pi) ** 2 / 2 for s in slopes])
    # A tail that is not all on one side of the values, and of another slope than theirs.
    assert costs_of({"kind": "laplace", "scale": 1}, [0.5, 2], [1, 0, -1])[0] is None
    assert costs_of({"kind": "laplace", "scale": 1}, [0, 2], [0.5, 0, -1])[0] is None


@pytest.mark.parametrize(
    ("noise", "edges", "known"),
    [
        ({"kind": "uniform", "half_width": "7/10"}, "-7/10 3/10 7/10 13/10 17/10 27/10", "nyyyyyn"),
        ({"kind": "uniform", "half_width": "7/10"}, "-7/10 3/10 7/10 13/10 27/10", "nyyynn"),
        ({"kind": "uniform", "half_width": "7/10"}, "-7/10 7/10 13/10 17/10 27/10", "nnyyyn"),
        ({"kind": "discrete-laplace", "scale": 2}, "1/2 3/2", "yyy"),
        ({"kind": "discrete-laplace", "scale": 2}, "1/2", "yn"),
        ({"kind": "discrete-laplace", "scale": 2}, "3/2", "ny"),
        ({"kind": "discrete-laplace", "scale": 2}, "-1/2 1/2 5/2", "yyny"),
        ({"kind": "discrete-gaussian", "sigma": 1}, "1/2 3/2", "nyn"),
    ],
)
def test_cells_that_tell_all_cost_nothing(noise, edges, known):
    unit = 1 if "half_width" not in noise else 10 / 7
    written = [str(rational(e) * (rational("10/7") if unit != 1 else 1)) for e in edges.split()]
    found = costs_of(noise, written)
    assert "".join("n" if own is None else "y" for own in found) == known
    assert all(own is None or own == [0, 0, 0] for own in found)


def test_the_ends_of_uniform_noise_are_exact():
    output = output_of([0, "1/3"], {"kind": "uniform", "half_width": "1/7"})
    edges = [-1, 1, "4/3", "10/3"]  # the unit is 1/7, where 1/3 is 7/3
    cells = output.cells({"edges": edges})
    assert cells.costs[1] == cells.costs[3] == [0, 0]
    assert [x == 1 for x in (cells.rows[0].lo[1], cells.rows[1].lo[3])] == [True, True]
    assert output.cells({"edges": [-1, 0.5, 2]}).costs[2] is None


KINDS = [
    {"kind": "gaussian", "sigma": 0.8},
    {"kind": "laplace", "scale": 0.6},
    {"kind": "uniform", "half_width": 1.25},
    {"kind": "discrete-laplace", "scale": 1.5},
    {"kind": "discrete-gaussian", "sigma": 1.25},
    {"kind": "rounded", "noise": {"kind": "laplace", "scale": 0.9}, "base": 0.5},
    {"kind": "rounded", "noise": {"kind": "uniform", "half_width": 0.9}, "base": 1},
]


def attained(statement, weights, edges):
    """Return J of a distribution, from the cells alone."""
    term = {"rule": "point", "group": 0, "edges": edges, "weights": weights}
    return statement.lower(term)


@pytest.mark.parametrize("noise", KINDS, ids=lambda noise: json.dumps(noise))
@pytest.mark.parametrize("seed", range(6))
def test_coarse_cells_with_their_price_are_above_fine_ones(noise, seed):
    rng = np.random.default_rng(seed)
    values = [0, *(1 + rng.choice(6, rng.integers(1, 4), replace=False)).tolist()]
    statement = RecordLeakage.read(one_record(values, noise))
    lattice = statement.output.rounded or statement.output.kind.startswith("discrete")
    fine = np.arange(-60, 140) / 2 + 0.25
    coarse = np.sort(rng.uniform(-3, 12, rng.integers(1, 9)))
    if lattice:
        fine = np.arange(-30, 60) + 0.5
        coarse = np.unique(np.floor(coarse) + 0.5)
    term = {"edges": coarse.tolist(), "references": rng.uniform(-1, 8, len(coarse) + 1).tolist()}
    (view,) = statement.priced({key: term[key] for key in statement.output.upper})
    for concentration in (0.2, 1, 30):
        w = rng.dirichlet(np.full(len(values), concentration)).tolist()
        below = attained(statement, w, fine.tolist())
        law = [arb(x) / sum(map(arb, w), arb(0)) for x in w]
        above = gain_of(view, law) + sum(
            (p * x for p, x in zip(law, view.extra, strict=True)), arb(0)
        )
        assert lower(below) <= upper(above) + 1e-15


def test_one_cost_is_taken_for_all_values_of_a_cell():
    # The smaller of the two for each value would give .3743 and .5955 in these two.
    bit = RecordLeakage.read(one_record([0, 1], {"kind": "gaussian", "sigma": 0.1}))
    far = RecordLeakage.read(one_record([0, 12], {"kind": "laplace", "scale": 1}))
    for statement, term in (
        (bit, {"edges": [-100, 100], "references": [0, 10, 0]}),
        (far, {"edges": [12], "references": [1, -1]}),
    ):
        (view,) = statement.priced(term)
        half = [arb(1) / 2, arb(1) / 2]
        above = gain_of(view, half) + (view.extra[0] + view.extra[1]) / 2
        fine = attained(statement, [1, 1], (np.arange(-200, 200) / 8).tolist())
        assert lower(fine) > 0.689
        assert above > fine


def test_no_density_no_payne_weinberger():
    # Two points with slopes of 1 and -1: D = .462, above the .203 that a density would have.
    for noise in ({"kind": "discrete-laplace", "scale": 1}, KINDS[5], KINDS[4]):
        cells = output_of([0, 1], noise).cells({"edges": [-1.5, 1.5]})
        assert cells.costs[1] is None


def test_cells_beyond_all_values_of_a_geometric_law_tell_nothing():
    for noise in ({"kind": "discrete-laplace", "scale": 1}, {"kind": "laplace", "scale": 1}):
        term = {"edges": [0.5, 2.5], "references": [1, 0, -1]}
        output = output_of([0, 3], noise)
        costs = output.cells({key: term[key] for key in output.upper}).costs
        beyond = noise["kind"] == "discrete-laplace"
        assert [cost == [0, 0] for cost in (costs[0], costs[2])] == [beyond] * 2
    output = output_of([0, 3], {"kind": "laplace", "scale": 1})
    costs = output.cells({"edges": [0, 3], "references": [1, 0, -1]}).costs
    assert costs[0] == costs[2] == [0, 0]
    assert costs[1][0] > 0


def test_one_value_alone_tells_nothing():
    for noise in KINDS:
        assert costs_of(noise, [0.5], values=[1]) == [[0]] * 2
        assert None in costs_of(noise, [0.5], values=[1, 3])


def test_geometric_noise_that_is_next_to_none_has_probabilities():
    output = output_of([0, 1, 2], {"kind": "discrete-laplace", "scale": 1e-300})
    rows = output.cells({"edges": [0.5, 1.5]}).rows
    assert np.array([[float(x.mid()) for x in row.lo] for row in rows]) == pytest.approx(np.eye(3))


def test_what_a_cell_hides_is_at_most_the_entropy_of_the_record():
    query = {
        "kind": "additive",
        "space": {"alphabets": [[[0, 1], 1], [[0, 1, 2], 1]]},
        "contributions": [[[[0], [1]], 1], [[[0], [1], [2]], 1]],
        "totals": [[0], [1], [2], [3]],
        "values": [0, 1, 2, 3],
        "modulus": None,
    }
    mechanism = {"query": query, "noise": {"kind": "gaussian", "sigma": 0.01}}
    statement = RecordLeakage.read(one_record([0], {}) | {"mechanism": mechanism})
    views = statement.priced({"edges": [], "references": [0]})
    assert [float(view.extra[0].mid()) for view in views] == pytest.approx(
        list(map(math.log, (2, 3)))
    )


@pytest.mark.parametrize(
    ("noise", "edges"),
    [
        ({"kind": "gaussian", "sigma": 1}, ["nan"]),
        ({"kind": "gaussian", "sigma": 1}, [math.inf]),
        ({"kind": "gaussian", "sigma": 1}, [True]),
        ({"kind": "gaussian", "sigma": 1}, [1, 0]),
        ({"kind": "gaussian", "sigma": 1}, [1, 1]),
        ({"kind": "discrete-laplace", "scale": 1}, [1]),
        ({"kind": "discrete-laplace", "scale": 1}, [0.25]),
        ({"kind": "discrete-laplace", "scale": 1}, [0.5, 2]),
        (KINDS[5], [0.25]),
    ],
)
def test_edges_that_are_none_are_refused(noise, edges):
    output = output_of([0, 1], noise)
    term = {"edges": edges, "references": [0] * (len(edges) + 1)}
    with pytest.raises(RefusedError):
        output.cells({key: term[key] for key in output.upper})


@pytest.mark.parametrize(
    "noise",
    [
        {"kind": "gaussian", "sigma": 0},
        {"kind": "gaussian", "sigma": -1},
        {"kind": "gaussian", "sigma": "inf"},
        {"kind": "gaussian", "scale": 1},
        {"kind": "cauchy", "scale": 1},
        {"kind": ["gaussian"], "sigma": 1},
        {"kind": "rounded", "noise": {"kind": "discrete-laplace", "scale": 1}, "base": 1},
        {"kind": "rounded", "noise": {"kind": "laplace", "scale": 1}, "base": 0},
        {"kind": "rounded", "noise": {"kind": "laplace", "scale": 1}, "base": 1, "more": 1},
        {"kind": "gaussian", "sigma": 1, "more": 1},
        [],
    ],
)
def test_noise_that_is_none_is_refused(noise):
    with pytest.raises(RefusedError):
        RecordLeakage.read(one_record([0, 1], noise))


@pytest.mark.parametrize("values", [[True, 0], ["a", 0], [[0], [1]], [0.5, 1]])
def test_values_without_a_place_are_refused(values):
    with pytest.raises(RefusedError):
        RecordLeakage.read(one_record(values, {"kind": "discrete-laplace", "scale": 1}))


def test_ends_say_their_cells_and_nothing_else():
    statement = RecordLeakage.read(one_record([0, 1], {"kind": "gaussian", "sigma": 1}))
    cut = {"edges": [0.5], "references": [0.5, 0.5]}
    term = {"rule": "max", "groups": [[CEILING]], **cut}
    assert 0 <= upper(statement.upper(term)) - math.log(2) < 1e-12
    for wrong in (
        {"rule": "max", "groups": [[CEILING]]},
        {**term, "channel": []},
        {**term, "references": [0]},
        {**term, "references": [0.5, math.inf]},
        {**term, "groups": [[{"rule": "equal"}]]},
    ):
        with pytest.raises(RefusedError):
            statement.upper(wrong)
    with pytest.raises(RefusedError):
        statement.lower({"rule": "point", "group": 0, "weights": [1, 1], **cut})
    problem = one_record([0, 1], {"kind": "gaussian", "sigma": 1})
    with pytest.raises(RefusedError, match="not finite"):
        RecordLeakage.read(problem | {"gain": {"kind": "guess"}, "form": "rise"})


def test_choices_are_about_the_cells_and_pay_for_the_place_in_them():
    statement = RecordLeakage.read(one_record([0, 1], {"kind": "gaussian", "sigma": 1}))
    edges = (np.arange(-60, 70) / 10).tolist()
    inputs = {"rule": "choices", "inputs": pack([[0.5, 0.5]], "<f8")}
    term = {"rule": "max", "edges": edges, "references": [0.5] * 131, "groups": [[inputs]]}
    above = upper(statement.upper(term))
    below = lower(attained(statement, [1, 1], edges))
    assert below <= above <= below + 1e-3


def bounded(width, moves):
    edges = np.arange(-6, 8, 0.25)
    p = np.diff([[0, *stats.norm.cdf(edges - v), 1] for v in range(2)])
    masses = {
        "lower": np.maximum(p - width, 0).tolist(),
        "upper": (p + width).tolist(),
        "inputs": [0, 1],
    }
    return {"kind": "bounded-density", "masses": masses, "oscillation": [moves] * 2}, p


def test_bounded_densities_are_above_and_below_what_they_bound():
    data, p = bounded(1e-9, ["inf", *[0.5] * 55, "inf"])
    statement = RecordLeakage.read(one_record([0, 1], data))
    assert isinstance(statement.output, Bounded)
    (view,) = statement.priced({})
    half = [arb(1) / 2, arb(1) / 2]
    s = p.mean(axis=0)
    exact = sum(stats.entropy(row, s) for row in p) / 2
    found = statement.lower({"rule": "point", "group": 0, "weights": [1, 1]})
    assert lower(found) <= exact <= upper(found)
    extra = float(((view.extra[0] + view.extra[1]) / 2).mid())
    assert extra == pytest.approx(0.5**2 / 8, rel=1e-3)
    assert gain_of(view, half) > 0
    for wrong in (
        {**data, "oscillation": [[-1] * 57] * 2},
        {**data, "oscillation": [[1] * 57, [-1] * 57]},
        {**data, "more": 1},
        {**data, "masses": {**data["masses"], "inputs": [1, 0]}},
        {**data, "masses": {**data["masses"], "upper": data["masses"]["lower"]}},
    ):
        with pytest.raises(RefusedError):
            RecordLeakage.read(one_record([0, 1], wrong))


def test_masses_are_those_of_a_law():
    def read(low, high):
        masses = {"lower": [low] * 2, "upper": [high] * 2, "inputs": [0, 1]}
        data = {"kind": "bounded-density", "masses": masses, "oscillation": [[0, 1]] * 2}
        return RecordLeakage.read(one_record([0, 1], data))

    law = ["0.25", "0.75"]
    (view,) = read(law, law).priced({})
    assert [float(x.mid()) for x in view.extra] == pytest.approx([0.75 / 8] * 2)
    read(law, ["0.5", "0.75"])
    read(["0.25", "0.5"], law)
    # Rows of a channel would be scaled by so little, but masses are no such rows.
    for low, high in ((["0.2500001", "0.75"], [1, 1]), ([0, 0], ["0.2499999", "0.75"])):
        with pytest.raises(RefusedError, match="without a law"):
            read(low, high)


@pytest.mark.parametrize("name", LAWS)
def test_cells_on_one_side_of_the_value(name):
    data, cumulated, unit = LAWS[name]
    noise = output_of([0, 0], data)
    for edges in ([1.5, 2.5], [-2.5, -1.5], [-1.5, 1.5]):
        ends = [0, *(cumulated(e * unit) for e in edges), 1]
        masses = noise.masses([rational(e) for e in edges])
        assert [float(x.mid()) for x in masses] == pytest.approx(np.diff(ends), abs=1e-9)
        below = [float(noise.below(rational(e)).mid()) for e in edges] if name != "uniform" else []
        assert below == pytest.approx(ends[1:-1][: len(below)], abs=1e-9)


def test_a_group_of_contexts_is_of_one_value_and_the_largest_is_first():
    statement = RecordLeakage.read(one_record([0, 2, 1], {"kind": "gaussian", "sigma": 1}))
    (view,) = statement.views
    assert [list(within) for within in view.within] == [[0], [1], [2]]
    query = {"kind": "table", "space": {"alphabets": [[[0], 1], [[0, 1, 2], 1]]}}
    query |= {"table": [0, 1, 2], "values": [0, 2, 1]}
    mechanism = {"query": query, "noise": {"kind": "gaussian", "sigma": 1}}
    (view, _) = RecordLeakage.read(one_record([0], {}) | {"mechanism": mechanism}).views
    assert [list(within) for within in view.within] == [[1], [2], [0]]


def test_one_output_alone_tells_nothing_but_a_narrow_cell_of_a_density_might(monkeypatch):
    cell = {"edges": [0.5, 1.5]}
    rounded = {"kind": "rounded", "noise": {"kind": "gaussian", "sigma": 1}, "base": 1}
    for data in (rounded, {"kind": "discrete-gaussian", "sigma": 1}):
        ends = output_of([0, 1], data).cells(cell).costs
        assert ends[0] is ends[2] is None
        assert ends[1] == [0, 0]
    monkeypatch.delitem(SLOPES, "gaussian")
    assert output_of([0, 1], {"kind": "gaussian", "sigma": 1}).cells(cell).costs == [None] * 3


def test_the_place_in_a_cell_of_bounded_densities_tells_no_more_than_it_costs():
    rng = np.random.default_rng(0)
    for _ in range(20):
        # Any densities on 3 cells of 40 points that vary by so much around a common one.
        moved = rng.uniform(0, 2, (4, 3, 1)) * rng.uniform(-0.5, 0.5, (4, 3, 40))
        density = np.exp(rng.normal(size=(3, 40)) + moved)
        density /= density.sum(axis=(1, 2), keepdims=True)
        p = density.sum(axis=2)
        masses = {"lower": np.maximum(p - 1e-12, 0).tolist(), "upper": (p + 1e-12).tolist()}
        data = {"kind": "bounded-density", "masses": masses | {"inputs": [0, 1, 2, 3]}}
        data["oscillation"] = (np.ptp(moved, axis=2) + 1e-12).tolist()
        (view,) = RecordLeakage.read(one_record([0, 1, 2, 3], data)).priced({})
        law = rng.dirichlet(np.ones(4))
        told = [law @ rel_entr(f, law @ f).sum(axis=1) for f in (density.reshape(4, -1), p)]
        places = [next(iter(within)) for within in view.within]
        costs = [float(x.mid()) for x in view.extra]
        assert told[0] - told[1] <= law[places] @ costs + 1e-9 < 0.5


def test_places_are_exact_where_floats_are_not():
    output = output_of([10**17, 10**17 + 1], {"kind": "gaussian", "sigma": "1/3"})
    assert isinstance(output, Noise)
    assert list(output.places) == [rational(0), rational(3)]
    output = output_of(["0.1", "0.7"], {"kind": "rounded", "noise": KINDS[0], "base": "1/3"})
    assert isinstance(output, Noise)
    assert [str(v) for v in output.places] == ["3/10", "21/10"]
    assert str(output.width) == "12/5"
    assert all(a < b for a, b in pairwise(output.places))
