"""What a published table tells about a person, against Bayes' rule on everything published."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from cvxleak.core import ValidationError
from cvxleak.model import (
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    Prior,
    Rounded,
    Uniform,
)
from cvxleak.tables import PerturbationTable, RandomRounding, Table, TableRelease, realized_leakage
from cvxleak.tables.noise import log_likelihood


@pytest.mark.parametrize("outside", [False, True])
def test_beliefs_are_those_of_bayes_on_the_whole_law(outside):
    rng = np.random.default_rng(5)
    for _ in range(5):
        counts = rng.integers(1, 5, (2, 2))
        people = int(counts.sum()) + 2 * outside
        variables = {"a": ["x", "y"], "b": [0, 1]}
        table = Table(variables, people, counts=counts, outside=outside)
        release = TableRelease(table, RandomRounding(3))
        law = release.law(table.in_cells)
        published = list(law)[rng.integers(len(law))]
        prior = rng.dirichlet(np.ones(len(table.alphabet)))
        found = realized_leakage(release, published, prior)
        steps = [*np.eye(4, dtype=int), *[np.zeros(4, dtype=int)] * outside]
        for a, step in enumerate(steps):
            others = table.in_cells - step
            likelihoods = [float(release.law(others + e).get(published, 0)) for e in steps]
            belief = prior * likelihoods / (prior @ likelihoods)
            assert found.posterior[a] == pytest.approx(belief, abs=1e-12)
            assert found.information[a] == pytest.approx(math.log(belief[a] / prior[a]))
            assert found.pml[a] == pytest.approx(math.log((belief / prior).max()))
    assert found.to_frame().shape == (4 + outside, 10)


def test_numbers_that_are_exact_tell_everything():
    table = Table({"x": ["a", "b", "c"]}, counts=[2, 0, 1])
    found = realized_leakage(TableRelease(table, RandomRounding(1)), [2, 0, 1, 3])
    assert found.pml[[0, 2]] == pytest.approx(math.log(3))
    assert np.isnan(found.pml[1])


def test_labels_of_priors_and_published_numbers_are_heeded():
    table = Table({"x": ["a", "b"]}, counts=[2, 1])
    release = TableRelease(table, RandomRounding(3))
    prior = Prior([0.2, 0.8], [("b",), ("a",)])
    one = realized_leakage(release, {"total": 3, "b": 0, "a": 3}, prior)
    other = realized_leakage(release, [3, 0, 3], [0.8, 0.2])
    assert one == other


def test_densities_are_known_up_to_what_no_count_changes():
    def ratios(noise, published, counts):
        logs = np.array([log_likelihood(noise, published, c) for c in counts])
        return logs[1:] - logs[0]

    at = [3, 4, 6]
    gaussian = norm.logpdf(4.3, loc=at, scale=1.5)
    assert ratios(Gaussian(1.5), 4.3, at) == pytest.approx(gaussian[1:] - gaussian[0])
    assert ratios(Laplace(2), 4.5, at) == pytest.approx([0.5, 0.0])
    assert ratios(DiscreteLaplace(2), 4, at) == pytest.approx([0.5, -0.5])
    edges = norm.cdf([1.5, 2.5], loc=np.array(at)[:, None], scale=2)
    masses = np.log(np.diff(edges)[:, 0])
    assert ratios(Rounded(Gaussian(2)), 2, at) == pytest.approx(masses[1:] - masses[0])
    assert ratios(DiscreteGaussian(2), 4, at) == pytest.approx([1 / 8, -3 / 8])
    assert log_likelihood(DiscreteGaussian(2), 4.5, 3) == -math.inf
    assert log_likelihood(Rounded(Gaussian(2)), 2.5, 3) == -math.inf
    assert log_likelihood(Uniform(1), 4.5, 3) == -math.inf
    assert log_likelihood(Uniform(2), 4.5, 3) == log_likelihood(Uniform(2), 4.5, 4)


def test_gaussian_tables_tell_what_bayes_says():
    table = Table({"x": ["a", "b"]}, counts=[5, 3], margins=False)
    found = realized_leakage(TableRelease(table, Gaussian(1)), [5.5, 2.5])
    # One person more in a and one less in b moves the log-likelihood by this.
    step = norm.logpdf([5.5, 2.5], [5, 3]).sum() - norm.logpdf([5.5, 2.5], [4, 4]).sum()
    assert found.posterior[0, 0] == pytest.approx(1 / (1 + math.exp(-step)))


def test_what_is_all_but_certain_is_no_nan():
    table = Table({"x": ["a", "b"]}, counts=[5, 3], margins=False)
    prior = [0.999, 0.001]
    found = realized_leakage(TableRelease(table, Gaussian(0.02)), [4.0, 4.0], prior)
    assert found.posterior.tolist() == [[0.0, 1.0], [0.0, 1.0]]
    assert found.pml == pytest.approx([math.log(1000)] * 2)


def test_what_does_not_fit_is_named(tmp_path):
    table = Table({"x": ["a", "b"]}, counts=[2, 1])
    release = TableRelease(table, RandomRounding(3))
    with pytest.raises(ValidationError, match="true counts of the table cannot give"):
        realized_leakage(release, [6, 0, 3])
    with pytest.raises(ValidationError, match=r"prior: gives \('b',\) no probability"):
        realized_leakage(release, [3, 0, 3], [1.0, 0.0])
    with pytest.raises(ValidationError, match="prior"):
        realized_leakage(release, [3, 0, 3], [0.5, 0.25, 0.25])
    with pytest.raises(ValidationError, match="true counts"):
        realized_leakage(TableRelease(Table({"x": ["a", "b"]}, 3), RandomRounding(3)), [3, 0, 3])
    path = tmp_path / "ptable.csv"
    path.write_text("i,j,p\n1,0,1/2\n1,2,1/2\n")
    with pytest.raises(ValidationError, match="true counts of the table cannot give"):
        realized_leakage(TableRelease(table, PerturbationTable(path)), [2, 0, 7])
    apart = TableRelease(table, PerturbationTable(path, summed_keys=False))
    assert realized_leakage(apart, [1, 0, 2]).pml.max() > 0
