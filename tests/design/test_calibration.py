"""What `calibrate` is given."""

import pytest

from cvxleak.core.errors import ValidationError
from cvxleak.design import calibrate
from cvxleak.mechanisms import binary_symmetric
from cvxleak.model import Mechanism
from cvxleak.proofs import verify
from cvxleak.queries import parity


def flipped(flip):
    return Mechanism(parity(2), binary_symmetric(flip))


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"time_limit": -1.0}, "time_limit"),
        ({"time_limit": "long"}, "time_limit"),
        ({"resolution": 0.0}, "resolution"),
        ({"size": 3}, "size"),
        ({"tol": "x"}, "tol"),
    ],
)
def test_bad_options_are_named(options, named):
    with pytest.raises(ValidationError, match=named):
        calibrate(flipped, (0.0, 0.5), leakage=0.2, entropy_floor=0.5, **options)


def test_no_time_leaves_a_parameter_that_is_proved():
    found = calibrate(flipped, (0.0, 0.5), leakage=0.2, entropy_floor=0.5, time_limit=0.0)
    assert found.bound.upper <= 0.2
    assert found.parameter == 0.5


def test_a_failing_family_is_named():
    with pytest.raises(ValidationError, match=r"family: it failed at 0\.5"):
        calibrate(lambda flip: [][1], (0.0, 0.5), leakage=0.2, entropy_floor=0.5)


def test_noise_that_hides_everything_leaks_nothing():
    # Rows that are the same leak exactly 0, not what rounding makes of it.
    found = calibrate(flipped, (0.0, 0.5), leakage=0.0, entropy_floor=0.5)
    assert found.parameter == 0.5
    assert found.bound.upper == 0.0
    assert verify(found.bound.certificate).passed
