import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cvxleak.core.errors import ValidationError
from cvxleak.measures import guessing_entropy, posterior_guessing_entropy
from tests.measures.test_laws import TOL, channels, few, pairs


def best_order(p):
    """The least expected number of guesses over all orders of guessing."""
    return min(
        sum(i * p[x] for i, x in enumerate(order, 1))
        for order in itertools.permutations(range(len(p)))
    )


@few
@given(pair=pairs())
def test_no_order_of_guesses_is_better(pair):
    p, q = pair
    assert guessing_entropy(p) == pytest.approx(best_order(p))
    after = sum(best_order(p * column) for column in q.matrix.T)
    assert posterior_guessing_entropy(q, p) == pytest.approx(after)


@few
@given(data=st.data())
def test_outputs_save_guesses_and_processing_costs_some(data):
    p, q = data.draw(pairs())
    less = q.then(data.draw(channels(inputs=q.shape[1])))
    after = posterior_guessing_entropy(q, p)
    assert 1 - TOL <= after <= posterior_guessing_entropy(less, p) + TOL
    assert posterior_guessing_entropy(less, p) <= guessing_entropy(p) + TOL
    assert posterior_guessing_entropy(q.reduced(), p) == pytest.approx(after)


def test_known_values():
    assert guessing_entropy(np.full(10, 0.1)) == pytest.approx(5.5)
    assert posterior_guessing_entropy([[0.8, 0.2], [0.3, 0.7]], [0.75, 0.25]) == pytest.approx(
        1.225
    )
    assert posterior_guessing_entropy(np.eye(4), np.full(4, 0.25)) == 1
    assert posterior_guessing_entropy([[1.0], [1.0]], [0.3, 0.7]) == guessing_entropy([0.3, 0.7])


def test_refuses_what_does_not_fit():
    with pytest.raises(ValidationError, match="prior"):
        guessing_entropy([0.5, 0.6])
    with pytest.raises(ValidationError, match="prior"):
        posterior_guessing_entropy(np.eye(2), [1.0])
