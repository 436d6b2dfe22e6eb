"""The named problems: each a frozen statement with `solve` and `check`."""

from cvxleak.problems.adversary import Adversary
from cvxleak.problems.channel_capacity import Capacity, capacity
from cvxleak.problems.check import Check
from cvxleak.problems.curve import LeakageCurve, leakage_curve
from cvxleak.problems.leakage import (
    RecordLeakage,
    balance,
    balance_of,
    group_leakage,
    record_leakage,
)

__all__ = [
    "Adversary",
    "Capacity",
    "Check",
    "LeakageCurve",
    "RecordLeakage",
    "balance",
    "balance_of",
    "capacity",
    "group_leakage",
    "leakage_curve",
    "record_leakage",
]
