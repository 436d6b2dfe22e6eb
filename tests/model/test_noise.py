"""Additive noise with real outputs: its cells against SciPy's laws, and what is refused."""

import json
import pickle
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from cvxleak.core import ValidationError
from cvxleak.model import (
    AdditiveNoise,
    AdditiveQuery,
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    Mechanism,
    RecordSpace,
    Rounded,
    TableQuery,
    Uniform,
)
from cvxleak.queries import count

KINDS = [
    Gaussian(1.5),
    Laplace(0.7),
    Uniform(1.25),
    DiscreteGaussian(1.5),
    DiscreteLaplace(2),
    Rounded(Gaussian(1.5), 2),
    Rounded(Laplace(0.7), 0.5),
    Rounded(Uniform(1.25)),
]


@pytest.mark.parametrize("noise", KINDS, ids=repr)
def test_noise_is_a_value(noise):
    mechanism = Mechanism(count(2), noise)
    for one in (
        pickle.loads(pickle.dumps(mechanism)),
        Mechanism.from_dict(json.loads(json.dumps(mechanism.to_dict()))),
    ):
        assert one == mechanism
        assert hash(one) == hash(mechanism)
    assert AdditiveNoise.from_dict(noise.to_dict()) == noise
    assert mechanism != Mechanism(count(2), Gaussian(1.25))
    assert repr(noise) in repr(mechanism)


def test_numbers_are_read_as_written():
    assert Gaussian("3/2") == Gaussian(1.5)
    assert Gaussian("3/2").sigma == 1.5
    assert Gaussian(1).numbers([0.5, 2]) == (Fraction(1, 2), 2)
    assert DiscreteLaplace(1).numbers([0, 2.0]) == (0, 2)


@pytest.mark.parametrize(
    ("noise", "law"),
    [
        (Gaussian(1.5), stats.norm(scale=1.5)),
        (Laplace(0.7), stats.laplace(scale=0.7)),
        (Uniform(1.25), stats.uniform(-1.25, 2.5)),
        (DiscreteLaplace(2), stats.dlaplace(0.5)),
    ],
)
def test_masses_of_cells_are_those_of_the_law(noise, law):
    edges = np.array([-np.inf, -3.5, -0.5, 0.25, 1.5, 2.5, np.inf])
    expected = np.diff([law.cdf(edges - v) for v in range(3)], axis=1)
    assert noise.masses(range(3), edges) == pytest.approx(expected, abs=1e-12)


def test_discrete_gaussian_noise_has_the_law_of_its_name():
    k = np.arange(-60, 61)
    law = np.exp(-(k**2) / (2 * 2.25))
    edges = np.concatenate([[-np.inf], k[:-1] + 0.5, [np.inf]])
    assert DiscreteGaussian(1.5).masses([0], edges)[0] == pytest.approx(law / law.sum(), abs=1e-15)


def test_far_masses_keep_their_digits():
    edges = np.array([-np.inf, -20.0, 20.0, np.inf])
    row = Gaussian(1).masses([0], edges)[0]
    assert row[[0, 2]] == pytest.approx(stats.norm.sf(20), rel=1e-12, abs=0)


@pytest.mark.parametrize(
    ("noise", "edges"),
    [
        (Uniform(0.3), [-0.3, 0.3, 0.7, 1.3, 1.7, 2.3]),
        (DiscreteLaplace(2), [0.5, 1.5]),
        (Rounded(Uniform(0.5), 2), [-1, 1, 3]),
        (Rounded(Laplace(0.7), 1), [-0.5, 0.5, 1.5, 2.5]),
    ],
)
def test_noise_that_is_told_apart_by_few_cells_has_these(noise, edges):
    assert noise.cells(range(3), 1e-3).edges.tolist() == [-np.inf, *edges, np.inf]


def test_cells_are_as_fine_as_it_takes_and_finest_where_it_pays():
    noise = Gaussian(2)
    widths = np.diff(noise.cells(range(6), 1e-4).edges)[1:-1]
    assert 90 < len(widths) < 120
    assert widths[0] > 3 * widths[len(widths) // 2]
    assert len(noise.cells(range(6), 1e-6).edges) == pytest.approx(10 * len(widths), rel=0.1)
    assert noise.cells([3], 1e-6).references.tolist() == [3]  # one value: nothing is told
    assert len(Gaussian(0.4).cells(range(100), 1e-12).edges) >= 2**14


def test_noise_that_is_small_beside_the_range_is_cut_between_the_values():
    edges = Gaussian(0.05).cells(range(100), 1e-3).edges[1:-1]
    assert 100 < len(edges) < 2000
    for value in range(99):
        assert ((edges > value + 0.2) & (edges < value + 0.8)).any()


def test_a_coarser_output_has_a_channel():
    channel = Gaussian(2).channel([0, 1], [0.5])
    assert channel.outputs == ("(-inf, 0.5)", "(0.5, inf)")
    p = stats.norm.cdf(0.25)
    assert channel.matrix == pytest.approx(np.array([[p, 1 - p], [1 - p, p]]))
    for edges in ([1, 0], [0, 0], [0, -np.inf, 1]):
        with pytest.raises(ValidationError, match="edges: expected increasing"):
            Gaussian(2).channel([0, 1], edges)
    assert Gaussian(2).channel([0, 1], [-np.inf, 0.5, np.inf]) == channel


@pytest.mark.parametrize(
    ("noise", "edges", "message"),
    [
        (Gaussian(2), [0, np.nan], "edges: found nan"),
        (Gaussian(2), [0, "x"], "edges: expected a number"),
        (Gaussian(2), 3, "edges: expected a sequence"),
        (DiscreteLaplace(2), [0.5, 1], "edges: found 1.0, an output; an edge is between whole"),
        (Rounded(Gaussian(1), 0.1), [0.05, 0.1], "edges: found 0.1; an edge is halfway between"),
    ],
)
def test_edges_that_say_more_than_the_output_are_refused(noise, edges, message):
    with pytest.raises(ValidationError, match=message):
        noise.channel([0, 1], edges)


def test_edges_of_rounded_noise_are_meant_to_be_halfway():
    third = Rounded(Gaussian(1), "1/3")
    exact = third.channel([0, 1], ["-1/6", "1/6", "1/2"])
    floats = third.channel([0, 1], [-1 / 6, 1 / 6, 0.5])
    assert (exact.matrix == floats.matrix).all()
    assert (Rounded(Gaussian(1), 0.1).channel([0], [0.05 + 0.1 * k for k in range(9)])).shape[
        1
    ] == 10


def test_numbers_far_from_zero_are_as_good_as_others():
    half = Fraction(1, 2)
    near, far = (Gaussian(2).channel([at, at + 1], [at + half]) for at in (0, 10**16))
    assert far.matrix.tolist() == near.matrix.tolist()


@pytest.mark.parametrize("noise", KINDS, ids=repr)
def test_in_its_own_unit_noise_tells_the_same(noise):
    values = ["1/3", 2, 3.5] if not noise.whole else [7, 9, 12]
    own, places, origin, unit = noise.standard(values)
    assert [origin + unit * place for place in places] == list(noise.numbers(values))
    assert 0 <= min(places) < 1
    edges = own.cells(places, 1e-2).edges
    shifted = [float(origin + unit * Fraction(edge)) for edge in edges[1:-1]]
    found = noise.channel(values, shifted).matrix
    assert own.masses(places, edges) == pytest.approx(found, abs=1e-9)


def test_ends_of_uniform_noise_are_edges_also_where_no_float_is_one():
    noise, places, _, unit = Uniform("1/7").standard(["1/3", 1])
    assert (unit, noise) == (Fraction(1, 21), Uniform(3))
    assert noise.cells(places, 1e-3).edges.tolist() == [-np.inf, -3, 3, 11, 17, np.inf]
    edges = Uniform("1/7").cells([0, 1], 1e-3).edges[1:-1]
    assert [Fraction(edge) < Fraction(1, 7) for edge in edges[2:4]] == [True, False]
    assert edges[3] == np.nextafter(edges[2], 1)
    # No unit of which floats tell enough multiples apart:
    noise, _, _, unit = Uniform(1).standard(["1/9999999967", "2/9999999943"])
    assert (unit, noise) == (1, Uniform(1))


def test_as_much_as_floats_tell_apart_is_allowed():
    assert Gaussian(1).standard([0, 10**15]).places == (0, 10**15)
    assert Gaussian("1000000000000000").standard([0, 1]).places == (0, Fraction(1, 10**15))
    assert Rounded(Gaussian(1), 10**15).standard([0]).noise == Rounded(Gaussian(1e-15))
    assert Rounded(Gaussian(10**15), 1).standard([0]).noise == Rounded(Gaussian(1e15))
    assert DiscreteGaussian(10_000).sigma == 10_000


def test_outputs_far_from_all_values_are_one_cell():
    for noise in (
        DiscreteLaplace(1),
        DiscreteGaussian(1),
        Rounded(Laplace(1)),
        Rounded(Uniform(3)),
    ):
        edges = noise.cells([0, 1, 10**6], 1e-3).edges[1:-1]
        assert 5 < len(edges) < 60
        assert ((edges > 30) & (edges < 10**6 - 30)).sum() == 0
        assert noise.masses([0, 10**6], edges=np.array([-np.inf, 60.5, np.inf])).round(
            9
        ).tolist() == [
            [1, 0],
            [0, 1],
        ]
    # Where they would be too many, fewer are told apart.
    assert len(DiscreteGaussian(3000).cells([0, 1], 1e-9).edges) < 2**14


def test_cells_may_be_few():
    for noise in KINDS:
        cells = noise.cells(range(100), 1e-3, 20)
        assert 10 <= len(cells.references) <= 20
        assert cells.masses.shape == (100, len(cells.references))


def test_a_mechanism_with_a_real_output_has_no_channel():
    mechanism = Mechanism(count(2), Gaussian(2))
    for refused in (
        lambda: mechanism.channel,
        lambda: mechanism.outputs,
        lambda: mechanism.lumped(0),
        lambda: mechanism.product(mechanism),
        lambda: mechanism.sample([0, 1]),
        mechanism.to_channel,
    ):
        with pytest.raises(ValidationError, match="number with gaussian noise"):
            refused()
    nominal = mechanism.nominal
    assert nominal.query == mechanism.query
    assert nominal.nominal is nominal
    assert nominal.channel.matrix.sum(axis=1) == pytest.approx(1)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Gaussian(0), r"sigma: found 0; it must be in \(0, inf\)"),
        (lambda: Gaussian(np.inf), "sigma: found inf"),
        (lambda: Laplace(-1), "scale: found -1"),
        (lambda: DiscreteLaplace(np.inf), "scale: found inf"),
        (lambda: Uniform("wide"), "half_width: expected a number"),
        (lambda: Rounded(Gaussian(1), 0), "base: found 0"),
        (lambda: Rounded(DiscreteLaplace(1)), "noise: expected Gaussian, Laplace or Uniform"),
        (lambda: AdditiveNoise.from_dict({"kind": "cauchy"}), "found the kind 'cauchy'; allowed"),
        (lambda: AdditiveNoise.from_dict({"kind": ["gaussian"]}), "found the kind .'gaussian'."),
        (lambda: AdditiveNoise.from_dict({"kind": "gaussian", "scale": 1}), "scale"),
        (
            lambda: Mechanism.from_dict(
                {**Mechanism(count(1), Gaussian(1)).to_dict(), "channel": None}
            ),
            "channel",
        ),
        (lambda: DiscreteGaussian(10_001), r"sigma: found 10001; it must be in \(0, 10000\]"),
        (lambda: DiscreteLaplace(1e16), "scale: found 1e\\+16"),
        (
            lambda: DiscreteGaussian(9999).cells([0, 1], 1e-3),
            "sigma: on these values 32898 outputs have to be told apart; at most 16384 can be",
        ),
        (
            lambda: Rounded(Gaussian(1), 1e-5).cells([0, 1], 1e-3),
            "base: on these values 428973 outputs have to be told apart",
        ),
        (
            lambda: Mechanism(count(2), Rounded(Gaussian(1), 1e-5)),
            "base: on these values 528973 outputs have to be told apart",
        ),
        (
            lambda: Gaussian(1e-200).standard([0, 1]),
            r"query: found values 1 apart; beside Gaussian\(sigma=1e-200\) they may be from 1e-215",
        ),
        (lambda: Laplace(1e17).standard([0, 1]), "query: found values 1 apart; beside Laplace"),
        (lambda: DiscreteLaplace(1).standard([0, 10**400]), "found the value about 10.400"),
        (lambda: Uniform(1).standard([0, 1e300]), "query: found values about 10.300 apart"),
        (
            lambda: Rounded(Gaussian(1), 1e-30).standard([0, 1e-30]),
            "base: found 1e-30 beside Gaussian.*at most 1e[+]15 times the other",
        ),
    ],
)
def test_bad_noise_is_refused(make, message):
    with pytest.raises(ValidationError, match=message):
        make()


def test_queries_without_numbers_are_refused():
    space = RecordSpace.binary(1)
    with pytest.raises(ValidationError, match="found the value 'a'; noise is added to numbers"):
        Mechanism(TableQuery(space, [0, 1], ["a", "b"]), Gaussian(1))
    with pytest.raises(ValidationError, match=r"found the value 0\.5; DiscreteLaplace is noise in"):
        Mechanism(TableQuery(space, [0, 1], [0.5, 1]), DiscreteLaplace(1))
    with pytest.raises(ValidationError, match="found the value inf; noise is added to numbers"):
        Mechanism(TableQuery(space, [0, 1], [0, np.inf]), Gaussian(1))
    with pytest.raises(ValidationError, match=r"found the value True; .* to numbers, say 1$"):
        Mechanism(TableQuery(space, [0, 1], [True, False]), Gaussian(1))
    pairs = AdditiveQuery(space, [[(0, 0), (1, 2)]])
    with pytest.raises(ValidationError, match="noise is added to numbers"):
        Mechanism(pairs, Gaussian(1))
