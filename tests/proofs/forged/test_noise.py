"""Forged certificates of additive noise: each bound against its formula, each guard."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from flint import arb
from scipy import stats
from scipy.special import rel_entr, xlogy

from cvxleak.core.errors import CertificateError
from cvxleak.exact.balls import normalized, precision
from cvxleak.exact.packing import pack, unpack
from cvxleak.model import (
    AdditiveQuery,
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    Mechanism,
    RecordSpace,
    Rounded,
    Uniform,
)
from cvxleak.proofs import record_leakage
from cvxleak.proofs.bounds import noise as bounds
from cvxleak.queries import count
from tests.proofs.forging import Parts, ends, proves_nothing_false, refused, tampered

INF = math.inf
LOG_2 = math.log(2)
VALUES = tuple(map(Fraction, range(3)))

pytestmark = pytest.mark.usefixtures("balls_of_the_checker")


def masses_of(noise, edges, values=VALUES):
    return bounds.cell_masses(noise, values, bounds.read_edges(noise, edges[1:-1]))


def excess(noise, edges, references=None, values=VALUES, size=2):
    read = bounds.read_edges(noise, edges[1:-1])
    references = [0.0] * (len(edges) - 1) if references is None else references
    masses = bounds.cell_masses(noise, values, read)
    costs = bounds.costs_of_cells(noise, values, read, references)
    return float(bounds.excess_of_cells(masses, costs, size))


def test_masses_are_those_of_the_law():
    edges = [-INF, -4.3, -0.7, 0.4, 1.6, 2.2, 9.1, INF]
    k = np.arange(-400, 401)
    weights = np.exp(-(k**2) / (2 * 1.7**2))
    discrete = stats.rv_discrete(values=(k, weights / weights.sum()))
    for noise, law in (
        (Gaussian(1.7), stats.norm(scale=1.7)),
        (Rounded(Gaussian(1.7), 0.6), stats.norm(scale=1.7)),
        (Laplace(0.7), stats.laplace(scale=0.7)),
        (Uniform(1.3), stats.uniform(-1.3, 2.6)),
        (DiscreteLaplace(2.5), stats.dlaplace(0.4)),
        (DiscreteGaussian(1.7), discrete),
    ):
        own = [-INF, -3.3, -0.9, 0.3, 1.5, 2.1, 8.7, INF] if isinstance(noise, Rounded) else edges
        expected = np.diff([law.cdf(np.array(own) - v) for v in range(3)], axis=1)
        found = masses_of(noise, own)
        assert np.array([[float(x) for x in row] for row in found]) == pytest.approx(
            expected, abs=1e-12
        )
        for row in found:
            assert arb(1).overlaps(sum(row, arb(0)))
            assert all(x.rad() < 1e-30 for x in row)


def test_discrete_gaussian_masses_hold_what_is_far_out():
    # The last term that is summed up is the 14th for sigma = 1, and the 420th for 30.
    for sigma, ks in ((1, [12, 13, 14, 15]), (30, [0, 419, 420, 421])):
        with precision(300):
            law = [(arb(-k * k) / (2 * sigma**2)).exp() for k in range(60 * sigma)]
            whole = 2 * sum(law, arb(0)) - law[0]
            above = [sum(law[k + 1 :], arb(0)) / whole for k in ks]
            inner = [k + 0.5 for k in ks]
            edges = [-INF, *(-edge for edge in reversed(inner)), *inner, INF]
            found = masses_of(DiscreteGaussian(sigma), edges, [Fraction(0)])[0]
            halves = [a - b for a, b in pairwise(above)]
            exact = [above[-1], *halves[::-1], 1 - 2 * above[0], *halves, above[-1]]
            for ball, mass in zip(found, exact, strict=True):
                assert ball.overlaps(mass)
                assert abs(ball - mass) < 1e-40
    assert len(masses_of(DiscreteGaussian(10_000), [-INF, 0.5, INF])) == 3


def gaussian_excess(edges, references, sigma, size=2):
    rows = np.diff(stats.norm.cdf((np.array(edges)[None] - np.arange(3)[:, None]) / sigma), axis=1)
    total = np.zeros(3)
    for j, t in enumerate(references):
        width = edges[j + 1] - edges[j]
        cost = ((np.arange(3) - t) * width / (math.pi * sigma**2)) ** 2 / 2
        most = np.full(3, math.log(size))
        found = rows[:, j] * (most if not math.isfinite(width) else cost)
        total += found if found.max() < (rows[:, j] * most).max() else rows[:, j] * most
    return total.max()


def test_excess_of_gaussian_noise_is_its_formula():
    rng = np.random.default_rng(0)
    for size in (2, 5):
        for _ in range(10):
            edges = [-INF, *np.sort(rng.uniform(-2, 4, 6)).round(3).tolist(), INF]
            references = rng.uniform(-1, 3, 7).round(3).tolist()
            expected = gaussian_excess(edges, references, 0.8, size)
            assert excess(Gaussian(0.8), edges, references, size=size) == pytest.approx(expected)


def test_excess_of_laplace_noise_is_its_formula():
    noise = Laplace(2)
    # Beyond the values the tilts of all are 1, or all -1.
    assert excess(noise, [-INF, 0, 2, INF], [1, 0, -1]) == pytest.approx(
        max(stats.laplace.cdf(2 - v, scale=2) - stats.laplace.cdf(-v, scale=2) for v in range(3))
        * (2 / (2 * math.pi)) ** 2
        / 2
    )
    assert excess(noise, [-INF, -1, 0, INF], [1, 1, -1]) == pytest.approx(
        max(stats.laplace.sf(-v, scale=2) for v in range(3)) * LOG_2
    )
    assert excess(noise, [-INF, 0, INF], [1, 0.5]) == pytest.approx(
        max(stats.laplace.sf(-v, scale=2) for v in range(3)) * LOG_2
    )
    assert excess(noise, [-INF, 1, INF], [1, -1]) == pytest.approx(
        max(stats.laplace.cdf(1 - v, scale=2) + stats.laplace.sf(1 - v, scale=2) for v in range(3))
        * LOG_2
    )
    # To the left of v the slope is 1 - t, to the right -1 - t, around it the larger of the two.
    for low, high, t in ((0.0, 0.75, 0.5), (0.5, 1.5, 0.25), (0.5, 1.5, -0.25), (1.0, 2.0, -0.5)):
        edges = sorted({0.0, low, high, 2.0})
        references = [t if edge == low else 0.0 for edge in edges[:-1]]
        found = excess(noise, [-INF, *edges, INF], [1.0, *references, -1.0])
        assert found == pytest.approx(laplace_excess(edges, references, 2))


def laplace_excess(edges, references, scale):
    """Of bounded cells; the two others have a cost of 0."""
    total = np.zeros(3)
    for v in range(3):
        for low, high, t in zip(edges[:-1], edges[1:], references, strict=True):
            ends = stats.laplace.cdf(np.array([low, high]) - v, scale=scale)
            left, right = abs(1 - t), abs(-1 - t)
            slope = left if high <= v else right if low >= v else max(left, right)
            total[v] += (ends[1] - ends[0]) * (slope * (high - low) / (math.pi * scale)) ** 2 / 2
    return total.max()


def test_cells_that_tell_all_cost_nothing():
    assert excess(Uniform(0.7), [-INF, -0.7, 0.3, 0.7, 1.3, 1.7, 2.7, INF]) == 0
    assert excess(Uniform(0.7), [-INF, -0.7, 0.3, 0.7, 1.3, 2.7, INF]) == pytest.approx(LOG_2)
    assert excess(Uniform(0.7), [-INF, 0.3, 0.7, 1.3, 1.7, 2.7, INF]) == pytest.approx(LOG_2 / 1.4)
    assert excess(Uniform(0.7), [-INF, -0.7, 0.7, 1.3, 1.7, 2.7, INF]) == pytest.approx(LOG_2)
    assert excess(DiscreteLaplace(2), [-INF, 0.5, 1.5, INF]) == 0
    assert excess(DiscreteLaplace(2), [-INF, 0.9, 1.1, INF]) == 0
    sf = stats.dlaplace(0.5).sf
    assert excess(DiscreteLaplace(2), [-INF, 0.5, INF]) == pytest.approx(LOG_2 * sf(-2))
    assert excess(DiscreteLaplace(2), [-INF, 1.5, INF]) == pytest.approx(LOG_2 * sf(-2))
    assert excess(DiscreteLaplace(2), [-INF, -0.5, 0.5, 2.5, INF]) == pytest.approx(
        LOG_2 * (sf(-1) - sf(1))
    )
    found = masses_of(DiscreteGaussian(1), [-INF, 0.5, 1.5, INF])
    assert excess(DiscreteGaussian(1), [-INF, 0.5, 1.5, INF]) == pytest.approx(
        LOG_2 * max(float(row[0] + row[2]) for row in found)
    )
    rounded = Rounded(Laplace(2), 2)
    assert excess(rounded, [-INF, -1, 1, 3, INF]) == 0
    assert excess(rounded, [-INF, -1, 3, INF]) == pytest.approx(
        LOG_2 * (stats.laplace.cdf(2, scale=2) - stats.laplace.cdf(-2, scale=2))
    )
    assert excess(rounded, [-INF, 1, 3, INF]) > 0.1
    assert excess(rounded, [-INF, -1, 1, INF]) > 0.1
    tails = [stats.norm.cdf(-1 - v) + stats.norm.sf(3 - v) for v in range(3)]
    assert excess(Rounded(Gaussian(1), 2), [-INF, -1, 1, 3, INF]) == pytest.approx(
        LOG_2 * max(tails)
    )
    assert excess(Rounded(Uniform(1), 2), [-INF, -1, 1, 3, INF]) == 0


def density(noise, z):
    if isinstance(noise, Gaussian):
        return stats.norm.pdf(z, scale=noise.sigma)
    return stats.laplace.pdf(z, scale=noise.scale)


@pytest.mark.parametrize("noise", [Gaussian(0.8), Laplace(0.6)])
def test_the_place_in_a_cell_tells_no_more_than_the_excess(noise):
    rng = np.random.default_rng(1)
    for size in (0.02, 0.3, 2.0):
        cells = noise.cells(range(3), size)
        bound = excess(noise, cells.edges.tolist(), cells.references.tolist(), size=3)
        y = np.linspace(-12, 14, 26_001)
        place = np.searchsorted(cells.edges, y) - 1
        for law in rng.dirichlet(np.full(3, 0.5), 6):
            joint = law[:, None] * density(noise, y[None] - np.arange(3)[:, None])
            joint /= joint.sum()
            real = rel_entr(joint, law[:, None] * joint.sum(axis=0)).sum()
            cut = np.array([np.bincount(place, row, len(cells.references)) for row in joint])
            coarse = rel_entr(cut, law[:, None] * cut.sum(axis=0)).sum()
            assert -1e-9 <= real - coarse <= bound + 1e-6


def test_slack_is_that_of_the_distance():
    one = [[arb(0.5), arb(0.5)], [arb(0.25), arb(0.75)]]
    other = [[arb(0.5), arb(0.5)], [arb(0.5), arb(0.5)]]
    assert float(bounds.distance_to(one, other)) == 0.25
    expected = 0.25 * math.log(3) - xlogy(0.25, 0.25) - xlogy(0.75, 0.75)
    assert float(bounds.slack_of_distance(arb(0.25), 3)) == pytest.approx(expected)
    assert float(bounds.slack_of_distance(arb(0.5), 3)) == pytest.approx(math.log(3))
    assert float(bounds.slack_of_distance(arb(0), 3)) == 0
    # The upper end of the ball counts.
    assert float(bounds.slack_of_distance(arb(0.1, 0.15), 3)) == pytest.approx(expected, rel=1e-6)
    rng = np.random.default_rng(2)
    for _ in range(200):
        law = rng.dirichlet([1, 1])
        rows = rng.dirichlet([1, 1, 1], 2)
        near = 0.9 * rows + 0.1 * rng.dirichlet([1, 1, 1], 2)
        eta = np.abs(rows - near).sum(axis=1).max() / 2
        values = [rel_entr(q, law @ r).sum() for r in (rows, near) for q in r]
        gap = abs(law @ values[:2] - law @ values[2:])
        assert gap <= float(bounds.slack_of_distance(arb(eta), 2))


EDGES = [-INF, -2.0, -0.5, 0.5, 1.5, 3.0, INF]
REFERENCES = [0.5, 0.0, 0.0, 0.5, 1.0, 0.5]


def audit(floor=0.0, edges=EDGES, references=REFERENCES, **changes):
    """The count of one with noise of 0.5; edges and references are stored in this unit."""
    noise = Gaussian(0.5)
    rows = noise.masses(range(2), np.array(edges))
    t = rows.mean(axis=0)
    proof = {
        "groups": [
            {
                "records": [0],
                "dataset": {
                    "multipliers": pack(np.array([0.0, 1.0])),
                    "output": pack(t / t.sum()),
                },
            }
        ],
        "edges": pack(np.array(edges[1:-1]) / 0.5),
        "references": pack(np.array(references) / 0.5),
        "channel": pack(rows),
        **changes,
    }
    mechanism = Mechanism(count(1), noise).to_dict()
    problem = {"mechanism": mechanism, "entropy_floor": floor, "size": 1, "records": None}
    witness = {"records": [0], "weights": [0.5, 0.5]}
    return Parts("record-leakage", problem, witness, proof)


def truth():
    y = np.linspace(-6, 7, 40_001)
    rows = stats.norm.pdf(y[None] - np.arange(2)[:, None], scale=0.5)
    return rel_entr(rows, rows.mean(axis=0)).sum() / 2 * (y[1] - y[0])


def test_an_honest_certificate_proves_both_ends():
    assert record_leakage.about(audit().problem).endswith("; for the number with its noise")
    lower, upper = ends(audit())
    assert lower <= truth() <= upper
    rows = Gaussian(0.5).masses(range(2), np.array(EDGES))
    cells = rel_entr(rows, rows.mean(axis=0)).sum() / 2
    assert lower == pytest.approx(cells, abs=1e-12)
    more = gaussian_excess_of_two(EDGES, REFERENCES)
    assert upper == pytest.approx(cells + more, abs=1e-9)


def gaussian_excess_of_two(edges, references):
    read = bounds.read_edges(Gaussian(0.5), edges[1:-1])
    values = VALUES[:2]
    masses = bounds.cell_masses(Gaussian(0.5), values, read)
    costs = bounds.costs_of_cells(Gaussian(0.5), values, read, references)
    return float(bounds.excess_of_cells(masses, costs, 2))


def test_a_channel_that_is_off_widens_both_ends():
    rows = Gaussian(0.5).masses(range(2), np.array(EDGES))
    off = rows.copy()
    off[:, 1] += 0.01
    off[:, 2] -= 0.01
    parts = tampered(audit(), {("proof", "channel"): pack(off)})
    lower, upper = ends(parts)
    eta = bounds.distance_to(
        masses_of(Gaussian(0.5), EDGES, VALUES[:2]), [normalized(row) for row in off]
    )
    slack = float(bounds.slack_of_distance(eta, 2))
    value = rel_entr(off, off.mean(axis=0)).sum() / 2
    assert 0.05 < slack < 0.1
    assert lower == pytest.approx(value - slack, abs=1e-9)
    dataset = rel_entr(off, rows.mean(axis=0)).sum(axis=1).max()
    more = gaussian_excess_of_two(EDGES, REFERENCES)
    assert upper == pytest.approx(dataset + slack + more, abs=1e-9)
    mechanism = Mechanism(count(1), Gaussian(0.5))
    nothing = record_leakage.Cells(mechanism, arb(0), arb(0), arb(2).log())
    lower, upper = nothing.widened(0.5, 0.5)
    assert lower < 0.5 < upper
    assert LOG_2 <= nothing.widened(0.5, 0.7)[1] < LOG_2 + 1e-12
    assert nothing._replace(slack=arb(1)).widened(0.5, 0.5)[0] == 0
    swapped = tampered(audit(), {("proof", "channel"): pack(rows[:, ::-1].copy())})
    assert ends(swapped)[0] <= truth()


def test_the_record_with_most_values_counts():
    query = AdditiveQuery(RecordSpace([range(2), range(3)]), [(0, 1), (0, 1, 2)])
    mechanism = Mechanism(query, Rounded(Gaussian(1), 2))
    cells = {
        "edges": pack(np.array([0.5])),  # in bases
        "references": pack(np.zeros(2)),
        "channel": pack(mechanism.noise.masses(query.values, np.array([-INF, 1.0, INF]))),
    }
    read = record_leakage.read_cells(mechanism, [(0,), (1,)], cells)
    assert float(read.excess) == pytest.approx(math.log(3), abs=0.01)
    assert float(read.most) == pytest.approx(math.log(3))


def test_a_witness_about_no_record_is_refused():
    refused(audit(), {("witness", "records"): [99]}, "the witness is about|records: found 99")
    refused(audit(), {("problem", "records"): [[99]]}, "records: found 99")


def test_one_value_alone_tells_nothing():
    for noise in (Gaussian(1), Laplace(1), Uniform(1), DiscreteGaussian(1), Rounded(Gaussian(1))):
        assert excess(noise, [-INF, 0.5, INF], values=VALUES[1:2]) == 0
        assert excess(noise, [-INF, 0.5, INF], values=VALUES[1:3]) > 0


def test_geometric_noise_that_is_next_to_none_has_masses():
    assert excess(DiscreteLaplace(1e-300), [-INF, 0.5, 1.5, INF]) == 0
    for row, expected in zip(
        masses_of(DiscreteLaplace(1e-300), [-INF, 0.5, 1.5, INF]), np.eye(3), strict=True
    ):
        assert [float(x) for x in row] == pytest.approx(expected.tolist(), abs=1e-30)


def whole(noise, edges):
    """The count of one with noise in whole numbers."""
    rows = noise.masses(range(2), np.array([-INF, *edges, INF]))
    t = rows.mean(axis=0)
    parts = audit()
    entry = {"multipliers": pack(np.array([0.0, 1.0])), "output": pack(t / t.sum())}
    return tampered(
        parts,
        {
            ("problem", "mechanism"): Mechanism(count(1), noise).to_dict(),
            ("proof", "groups"): [{"records": [0], "dataset": entry}],
            ("proof", "edges"): pack(np.array(edges)),
            ("proof", "references"): pack(np.zeros(len(edges) + 1)),
            ("proof", "channel"): pack(rows),
        },
    )


def test_forged_certificates_of_discrete_gaussian_noise():
    k = np.arange(-40, 42)
    law = np.array([np.exp(-((k - v) ** 2) / 2 / 1.5**2) for v in range(2)])
    law /= law.sum(axis=1, keepdims=True)
    exact = rel_entr(law, law.mean(axis=0)).sum() / 2
    parts = whole(DiscreteGaussian(1.5), [j + 0.5 for j in range(-9, 10)])
    lower, upper = ends(parts)
    assert exact - 1e-8 <= lower <= exact <= upper <= exact + 1e-8
    proves_nothing_false(parts, exact, exact)
    # Two outputs in a cell, or the two outermost ones early: what that hides is paid for.
    for edges in ([-1.5, 0.5, 2.5], [0.5], []):
        coarse = ends(whole(DiscreteGaussian(1.5), edges))
        assert coarse[0] <= exact <= coarse[1]
    refused(
        parts,
        {("proof", "edges"): lambda old: _moved(old, 0.5)},
        "an edge of a cell must not be an",
    )
    refused(parts, {("problem", "mechanism", "noise", "sigma"): 0}, "sigma: found 0")
    refused(parts, {("problem", "mechanism", "noise", "sigma"): 20_000}, "sigma: found 20000")
    # Of other noise, the channel is far off, and the bracket wide.
    other = tampered(parts, {("problem", "mechanism", "noise", "sigma"): 3.0})
    assert ends(other)[1] == pytest.approx(LOG_2)


def _moved(packed, by):
    return pack(unpack(packed) + by)


def test_no_other_number_proves_what_is_not_true():
    proves_nothing_false(audit(), truth(), truth())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({("proof", "edges"): pack(np.array([math.nan, *EDGES[2:-1]]))}, "an edge of a cell is no"),
        ({("proof", "edges"): pack(np.array([*EDGES[1:-2], INF]))}, "an edge of a cell is no"),
        (
            {("proof", "edges"): pack(np.array([*EDGES[1:-2], 1.5]))},
            "the edges of the cells do not",
        ),
        ({("proof", "edges"): pack(np.array(EDGES[1:-2]))}, "shape"),
        ({("proof", "references"): pack(np.array([*REFERENCES[:-1], INF]))}, "reference is no"),
        ({("proof", "references"): pack(np.array(REFERENCES[:-1]))}, "shape"),
        ({("proof", "channel"): pack(np.full((2, 5), 0.2))}, "shape"),
        ({("proof", "more"): 1}, "more"),
    ],
)
def test_what_does_not_fit_is_refused(changes, message):
    refused(audit(), changes, message)


def test_a_cell_may_not_say_more_than_the_output():
    for noise, edges, message in (
        (Rounded(Gaussian(0.5), 2), [-1.0, 1.0, 2.0], "not halfway between two outputs"),
        (Rounded(Gaussian(0.5), 2), [0.5], "not halfway between two outputs"),
        (Rounded(Gaussian(0.5), 2), [1.5], "not halfway between two outputs"),
        (DiscreteLaplace(1), [0.5, 1.0], "an edge of a cell must not be an output"),
    ):
        with pytest.raises(CertificateError, match=message):
            bounds.read_edges(noise, edges)
    assert bounds.read_edges(Rounded(Gaussian(0.5), 2), [-1.0, 1.0, 3.0]) == [None, -1, 1, 3, None]
    assert bounds.read_edges(Gaussian(0.5), []) == [None, None]
