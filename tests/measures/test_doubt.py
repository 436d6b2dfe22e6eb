"""The entropy floor that DALENIUS Remark 3 suggests."""

import pytest

from cvxleak.core.errors import ValidationError
from cvxleak.measures import suggested_floor


def test_the_suggested_floor_is_the_remark_s_arithmetic():
    floor = suggested_floor(1000, k=4, known=0.2, share=0.5)
    assert (floor.whole, floor.unknown, floor.floor, floor.margin) == (2000, 1600, 800, 800)
    assert suggested_floor(10, known=1.0).floor == 0
    for bad in (
        {"n": 0},
        {"n": 10**400},
        {"k": 1},
        {"known": 1.1},
        {"share": -0.1},
    ):
        with pytest.raises(ValidationError, match=next(iter(bad))):
            suggested_floor(**{"n": 10, **bad})


def test_the_netflix_example():
    netflix = suggested_floor(100_480_507)
    assert [round(x) for x in (netflix.whole, netflix.unknown, netflix.floor, netflix.margin)] == [
        100_480_507,
        90_432_456,
        67_824_342,
        22_608_114,
    ]
