import itertools

import numpy as np
import pytest

from cvxleak.core.errors import ValidationError
from cvxleak.measures import expected_distortion, mechanism_distortion, worst_case_distortion
from cvxleak.model import AdditiveQuery, Channel, Distortion, Mechanism, Prior, RecordSpace


def test_by_the_definition():
    rng = np.random.default_rng(0)
    p, q = rng.dirichlet(np.ones(3)), rng.dirichlet(np.ones(4), size=3)
    d = rng.random((3, 4))
    expected = sum(p[x] * q[x, y] * d[x, y] for x, y in itertools.product(range(3), range(4)))
    assert expected_distortion(q, p, d) == pytest.approx(expected)
    assert expected_distortion(q, p, Distortion(d)) == pytest.approx(expected)


def test_labels_are_matched_by_name():
    channel = Channel([[0.75, 0.25], [0.5, 0.5]], inputs=[0, 3], outputs=[3, 0])
    prior = [0.5, 0.5]
    wide = Distortion.absolute(range(5), [0, 1, 2, 3])
    assert expected_distortion(channel, prior, wide) == pytest.approx(0.5 * 2.25 + 0.5 * 1.5)
    # An array has no names: position counts.
    assert expected_distortion(channel, prior, 1 - np.eye(2)) == pytest.approx(
        0.5 * 0.25 + 0.5 * 0.5
    )
    with pytest.raises(ValidationError, match=r"inputs.*lack.*3"):
        expected_distortion(channel, prior, Distortion.absolute([0, 1], [0, 3]))
    with pytest.raises(ValidationError, match=r"outputs.*lack.*3"):
        expected_distortion(channel, prior, Distortion.absolute([0, 3], [0, 1]))
    with pytest.raises(ValidationError, match="distortion: found shape"):
        expected_distortion(channel, prior, np.ones((2, 3)))


def test_a_prior_is_matched_to_the_distortion_where_the_channel_has_no_labels():
    rows = [[0.9, 0.1], [0.3, 0.7]]
    d = Distortion([[0, 1], [3, 0]], ["a", "b"])
    for p in (Prior([0.2, 0.8], ["a", "b"]), Prior([0.8, 0.2], ["b", "a"]), [0.2, 0.8]):
        assert expected_distortion(rows, p, d) == pytest.approx(0.2 * 0.1 + 0.8 * 0.9)
    with pytest.raises(ValidationError, match="prior: its labels"):
        expected_distortion(rows, Prior([0.2, 0.8], ["a", "c"]), d)
    with pytest.raises(ValidationError, match=r"distortion: found shape \(3, 3\)"):
        expected_distortion(rows, [0.2, 0.8], Distortion.hamming(range(3)))


def test_parity_through_a_flip(flip):
    # LEAKAGE section 7.2: the distortion is the flip probability, whatever the prior.
    prior = np.random.default_rng(1).dirichlet(np.ones(8))
    hamming = Distortion.hamming([0, 1])
    assert mechanism_distortion(flip(3, 0.3), prior, hamming) == pytest.approx(0.3)


def test_mechanism_by_brute_force(small):
    rng = np.random.default_rng(2)
    query = small.mechanism.query
    d = rng.random((len(query.values), small.rows.shape[1]))
    named = Distortion(d, query.values, small.mechanism.outputs)
    for prior in small.priors:
        expected = sum(
            p * row @ d[query.values.index(query(x))]
            for x, p, row in zip(small.datasets, prior, small.rows, strict=True)
        )
        assert mechanism_distortion(small.mechanism, prior, d) == pytest.approx(expected)
        assert mechanism_distortion(small.mechanism, prior, named) == pytest.approx(expected)


def test_rows_in_another_order_than_the_query():
    count = AdditiveQuery(RecordSpace.binary(1), [(0, 1)])
    swapped = Channel([[0.0, 1.0], [0.75, 0.25]], inputs=[1, 0])
    mechanism = Mechanism(count, swapped)
    distance = Distortion.absolute([0, 1])
    assert mechanism_distortion(mechanism, [1.0, 0.0], distance) == 0.25
    assert mechanism_distortion(mechanism, [0.0, 1.0], distance) == 0.0


def test_worst_case_is_linear_in_the_source():
    rng = np.random.default_rng(3)
    q, d = rng.dirichlet(np.ones(3), size=3), rng.random((3, 3))
    sources = rng.dirichlet(np.ones(3), size=4)
    worst = worst_case_distortion(q, sources, d)
    assert worst == max(expected_distortion(q, p, d) for p in sources)
    mixtures = rng.dirichlet(np.ones(4), size=20) @ sources
    assert worst_case_distortion(q, mixtures, d) <= worst + 1e-12
    with pytest.raises(ValidationError, match="priors"):
        worst_case_distortion(q, [], d)
