"""The PML-extremal mechanism: every output leaks exactly epsilon, under its own prior."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cvxleak.core.errors import ValidationError
from cvxleak.measures import pml
from cvxleak.mechanisms import pml_extremal
from cvxleak.model import Prior

PRIORS = st.lists(st.integers(1, 50), min_size=2, max_size=8).map(
    lambda counts: Prior.from_counts(dict(enumerate(counts)))
)


@given(PRIORS, st.floats(0.001, 0.999))
def test_every_output_leaks_exactly_epsilon(prior, share):
    p = prior.probabilities
    epsilon = -share * math.log1p(-p.min())
    matrix = pml_extremal(prior, epsilon).matrix
    output = p @ matrix
    assert output == pytest.approx(p, abs=1e-14)
    leakage = np.log((matrix / output).max(axis=0))
    assert leakage == pytest.approx(epsilon, abs=1e-12)
    assert pml(pml_extremal(prior, epsilon), prior) == pytest.approx(epsilon, abs=1e-12)
    assert np.diag(matrix) == pytest.approx(1 - math.exp(epsilon) * (1 - p), abs=1e-14)


def test_labels_are_those_of_the_prior():
    channel = pml_extremal(Prior([0.5, 0.5], ["no", "yes"]), 0.2)
    assert channel.inputs == channel.outputs == ("no", "yes")


@given(PRIORS)
def test_the_admissible_range_is_open_at_both_ends(prior):
    limit = -math.log1p(-prior.probabilities.min())
    pml_extremal(prior, limit * (1 - 1e-12))
    for epsilon in (0.0, -0.1, limit, limit + 0.1, math.nan):
        with pytest.raises(ValidationError, match=r"^epsilon: .*\(0, "):
            pml_extremal(prior, epsilon)
