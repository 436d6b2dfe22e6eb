from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cvxleak.core.errors import ValidationError
from cvxleak.measures import gain_vulnerability, posterior_gain_vulnerability
from cvxleak.model import Channel, Prior
from cvxleak.refinement import refinement_gap, refines
from tests.refinement.test_comparison import channels, composed, few


def test_a_number_that_another_program_states():
    """The last test of libqif's `add_metric`, exactly."""
    prior = "62/100 3/100 35/100".split()
    first = [
        row.split() for row in ("1/10 2/5 1/10 2/5", "1/5 1/5 3/10 3/10", "1/2 1/10 1/10 3/10")
    ]
    second = [row.split() for row in ("1/5 11/50 29/50", "1/5 2/5 2/5", "7/20 2/5 1/4")]
    found = refinement_gap(prior, first, second)
    assert found.lower == found.upper == Fraction(18643, 2220000)


@few
@given(data=st.data())
def test_both_ends_meet_and_the_gain_attains_them(data):
    k = data.draw(st.integers(1, 3))
    first, second = data.draw(channels(k)), data.draw(channels(k))
    weights = data.draw(st.lists(st.integers(0, 3), min_size=k, max_size=k).filter(any))
    prior = Prior([f"{w}/{sum(weights)}" for w in weights])
    found = refinement_gap(prior, first, second)
    assert found.lower == found.upper
    earned = [posterior_gain_vulnerability(q, prior, found.gain) for q in (first, second)]
    assert earned[1] - earned[0] == pytest.approx(float(found.lower), abs=1e-12)
    assert found.gain.table.max() <= 1
    assert gain_vulnerability(prior, found.gain) >= 0
    if all(weights):
        assert (found.upper == 0) == bool(refines(first, second))
    less = composed(second, data.draw(channels(second.shape[1])))
    assert refinement_gap(prior, first, less).upper <= found.upper


def test_gains_from_0_to_1_are_among_them():
    rng = np.random.default_rng(3)
    first, second = rng.dirichlet(np.ones(3), size=4), rng.dirichlet(np.ones(3), size=4)
    proof = refines(first, second)
    assert proof.lower > 0
    assert refinement_gap(proof.prior, first, second).lower >= proof.lower


def test_known_gaps():
    assert refinement_gap([0.5, 0.5], np.ones((2, 1)), np.eye(2)).upper == 1
    assert refinement_gap([1, 0], np.ones((2, 1)), np.eye(2)).upper == 0
    named = Channel(np.eye(2), outputs=["no", "yes"])
    assert refinement_gap([0.5, 0.5], named, named).gain.actions == (("no",), ("yes",), ())


def test_refuses_what_does_not_fit():
    with pytest.raises(ValidationError, match="prior: found 3 outcomes; 2 are needed"):
        refinement_gap([0.2, 0.3, 0.5], np.eye(2), np.eye(2))
    with pytest.raises(ValidationError, match="other: found 3 inputs"):
        refinement_gap([0.5, 0.5], np.eye(2), np.eye(3))
