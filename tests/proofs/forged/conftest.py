"""Balls in these tests are narrower than those of the checker, so that its rounding shows."""

import pytest

from cvxleak.exact.balls import precision


@pytest.fixture(autouse=True)
def _narrow_balls():
    with precision(300):
        yield
