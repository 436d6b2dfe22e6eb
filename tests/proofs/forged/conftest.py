"""Balls in these tests are narrower than those of the checker, so that its rounding shows.

Tests of functions that do not set the precision themselves use `balls_of_the_checker`.
"""

import flint
import pytest

from cvxleak.kernel.numbers import precision


@pytest.fixture(autouse=True)
def _narrow_balls():
    with flint.ctx.workprec(300):
        yield


@pytest.fixture
def balls_of_the_checker(_narrow_balls):
    with precision():
        yield
