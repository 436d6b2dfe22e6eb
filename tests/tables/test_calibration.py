"""The least noise of a table: proved to meet the target, and the next one does not."""

import pytest

from cvxleak.core import ValidationError
from cvxleak.core.errors import InfeasibleError, SolveInterrupted
from cvxleak.model import DiscreteLaplace, Gaussian
from cvxleak.tables import RandomRounding, Table, TableRelease, calibrate_table, table_privacy

TABLE = Table({"a": ["x", "y"], "b": [0, 1]}, people=50)


def laplace(scale: float) -> TableRelease:
    return TableRelease(TABLE, DiscreteLaplace(scale))


def test_the_next_scale_does_not_meet_the_target():
    found = calibrate_table(laplace, (1, 30), epsilon=0.5, delta=0.01)
    assert found.bound.upper <= 0.01 < found.rejected_bound.lower
    assert found.parameter == found.rejected + 1
    assert found.mechanism == laplace(found.parameter)
    assert table_privacy(found.mechanism).profile(0.5).upper == found.bound.upper


def test_gaussian_noise_has_its_closed_form():
    def gaussian(sigma: float) -> TableRelease:
        return TableRelease(TABLE, Gaussian(sigma))

    # Two cells and four margins: rho = 6 / 2 sigma^2.
    found = calibrate_table(gaussian, (1.0, 50.0), zcdp=0.03)
    assert found.parameter == pytest.approx(10, abs=0.01)
    assert found.bound.upper <= 0.03


def test_a_target_that_a_base_meets_exactly_is_met():
    def rounded(base: int) -> TableRelease:
        return TableRelease(Table({"a": ["x", "y"]}, 2, margins=False), RandomRounding(base))

    # 0, 2 people against 1, 1: a base is published for nobody with probability 1 / base.
    for base in (10, 20):
        assert calibrate_table(rounded, (2, 40), epsilon=1.0, delta=1 / base).parameter == base


def test_what_cannot_be_met_is_said():
    def rounded(base: int) -> TableRelease:
        return TableRelease(TABLE, RandomRounding(base))

    with pytest.raises(InfeasibleError, match=r"delta: found 0\.1; the most noise, 5, is between"):
        calibrate_table(rounded, (1, 5), epsilon=1.0, delta=0.1)
    for target in ({}, {"epsilon": 1.0}, {"epsilon": 1.0, "delta": 0.1, "zcdp": 1.0}):
        with pytest.raises(ValidationError, match="epsilon: either"):
            calibrate_table(rounded, (1, 5), **target)
    with pytest.raises(ValidationError, match="family: expected a TableRelease"):
        calibrate_table(lambda _: TABLE, (1, 5), zcdp=1.0)


def test_a_range_the_wrong_way_round_is_said():
    with pytest.raises(ValidationError, match=r"between: found \(20, 1\).* met at 20 and not at 1"):
        calibrate_table(laplace, (20, 1), epsilon=1.0, delta=0.02)


def test_progress_narrows_to_what_is_returned():
    told = []
    found = calibrate_table(
        laplace, (1, 30), epsilon=0.5, delta=0.01, progress=lambda *now: told.append(now)
    )
    assert told[0] == (1, 30, 2)
    assert [tried for *_, tried in told] == list(range(2, len(told) + 2))
    assert all(quiet <= found.rejected < found.parameter <= noisy for quiet, noisy, _ in told)


def test_ctrl_c_before_both_ends_leaves_nothing():
    def pressed(scale: float) -> TableRelease:
        raise KeyboardInterrupt

    with pytest.raises(SolveInterrupted) as found:
        calibrate_table(pressed, (1, 30), epsilon=0.5, delta=0.01)
    assert found.value.bound is None
