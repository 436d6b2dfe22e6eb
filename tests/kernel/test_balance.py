"""Balance: the difference of two claims of record leakage."""

import json
import math

import pytest

from cvxleak.kernel.balance import Balance
from cvxleak.kernel.leakage import RecordLeakage
from cvxleak.kernel.numbers import RefusedError, lower, precision, upper
from cvxleak.mechanisms import binary_symmetric
from cvxleak.model import Mechanism
from cvxleak.queries import parity

PROBLEM = json.loads(
    json.dumps(
        {
            "mechanism": Mechanism(parity(3), binary_symmetric(0.1)).to_dict(),
            "entropy_floor": 2.0,
            "size": 1,
            "records": None,
        }
    )
)


def above(multiplier, t=(0.5, 0.5)):
    share = {"rule": "share", "t": list(t), "values": [{"rule": "vertices"}] * 2}
    close = {"rule": "close", "multiplier": multiplier, "limits": [], "of": share}
    return {"rule": "max", "groups": [[close]]}


def below(weights):
    return {"rule": "point", "group": 0, "weights": weights}


FREE, EVEN, UNEVEN = [0.5, 0, 0, 0.5], [0.25] * 4, [0.32, 0.18, 0.18, 0.32]


def difference(one, other):
    return {"rule": "difference", "capacity": one, "leakage": other}


def test_both_ends_are_differences():
    with precision():
        statement = Balance.read(PROBLEM)
        low = lower(statement.lower(difference(below(FREE), above(0.3))))
        high = upper(statement.upper(difference(above(0), below(UNEVEN))))
        ends = [RecordLeakage.read({**PROBLEM, "entropy_floor": floor}) for floor in (0, 2.0)]
        free = lower(ends[0].lower(below(FREE))), upper(ends[0].upper(above(0)))
        bound = lower(ends[1].lower(below(UNEVEN))), upper(ends[1].upper(above(0.3)))
    assert bound[0] > 0.01
    assert low == pytest.approx(max(free[0] - bound[1], 0), abs=1e-15)
    assert high == pytest.approx(free[1] - bound[0], abs=1e-15)
    truth = math.log(2) + 0.9 * math.log(0.9) + 0.1 * math.log(0.1)
    # L(0) is the capacity.
    assert low <= truth - bound[0]
    assert high >= truth - bound[1]


def test_no_balance_is_below_0():
    with precision():
        statement = Balance.read(PROBLEM)
        assert lower(statement.lower(difference(below(EVEN), above(0)))) == 0


@pytest.mark.parametrize(
    ("term", "message"),
    [
        ({"rule": "difference", "capacity": above(0)}, "without leakage"),
        ({**difference(above(0), below(EVEN)), "rule": "max"}, "no such rule"),
        (difference(above(0), below(FREE)), "reach the floor"),
        (difference(below(FREE), below(EVEN)), "an upper end"),
    ],
)
def test_forged_ends_are_refused(term, message):
    with precision(), pytest.raises(RefusedError, match=message):
        Balance.read(PROBLEM).upper(term)


def test_a_lower_end_has_both_terms_and_no_more():
    with precision():
        statement, term = Balance.read(PROBLEM), difference(below(FREE), above(0.3))
        for forged in ({**term, "rule": "max"}, {**term, "more": 1}):
            with pytest.raises(RefusedError):
                statement.lower(forged)


def test_without_a_floor_nothing_is_kept():
    with precision():
        statement = Balance.read({**PROBLEM, "entropy_floor": 0})
        assert lower(statement.lower(difference(below(FREE), above(0)))) == 0


def test_a_floor_below_0_is_refused():
    with precision(), pytest.raises(RefusedError, match="below 0"):
        Balance.read({**PROBLEM, "entropy_floor": -1})
