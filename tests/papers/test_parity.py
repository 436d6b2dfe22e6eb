"""The closed forms behind the figures, against audits, brute force and their limits."""

import math

import numpy as np
import pytest
from scipy.special import entr

from cvxleak.audit import record_leakage
from cvxleak.core.errors import InfeasibleError, ValidationError
from cvxleak.papers.gallery.dalenius import remaining_range
from cvxleak.papers.gallery.parity import noisy_parity, parity_leakage

LOG2 = math.log(2)


@pytest.mark.parametrize(("n", "flip"), [(2, 0.05), (2, 0.8), (3, 0.3), (3, 0.8), (5, 0.3)])
def test_the_closed_form_is_in_the_proved_bracket(n, flip):
    for share in (0.0, 0.4, 0.9, 0.97, 1.0):
        floor = share * n * LOG2
        bound = record_leakage(noisy_parity(n, flip), floor)
        assert bound.lower - 1e-9 <= parity_leakage(n, flip, floor) <= bound.upper + 1e-9


def test_the_ends_of_the_closed_form():
    assert parity_leakage(4, 0.1, 0) == parity_leakage(4, 0.1, 3 * LOG2)
    assert parity_leakage(4, 0.1, 3 * LOG2 + 1e-6) < parity_leakage(4, 0.1, 0)
    assert parity_leakage(4, 0.1, 4 * LOG2) == pytest.approx(0, abs=1e-12)
    with pytest.raises(InfeasibleError, match=r"entropy_floor: found 3"):
        parity_leakage(4, 0.1, 3.0)
    with pytest.raises(ValidationError, match="n: "):
        parity_leakage(1, 0.1, 0.0)
    with pytest.raises(ValidationError, match="flip: "):
        parity_leakage(3, 1.1, 0.0)


def test_the_range_that_is_left_is_an_adversary_s():
    records, ones = 21, 3
    # The first bit fair; k ones among the others if it is 0, k zeros if it is 1; at random.
    arrangements = math.comb(records - 1, ones)
    law = np.full(2 * arrangements, 0.5 / arrangements)
    entropy = float(entr(law).sum())
    low, high = ones / records, (1 + records - 1 - ones) / records
    assert remaining_range(records, entropy) == pytest.approx(high - low, abs=1e-9)
    assert remaining_range(1e6, 100.0) > remaining_range(1e6, 1000.0)
