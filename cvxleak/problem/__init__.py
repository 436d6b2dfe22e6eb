"""What all problems share: the base class, bounds, and the checking of candidates."""

from cvxleak.problem.bound import Bound, Status, Stopped
from cvxleak.problem.check import Check
from cvxleak.problem.gap import Gap
from cvxleak.problem.iterates import IterateReport, Iterates, verify_iterates
from cvxleak.problem.problem import Problem
from cvxleak.problem.registry import PROBLEMS, problem_class

__all__ = [
    "PROBLEMS",
    "Bound",
    "Check",
    "Gap",
    "IterateReport",
    "Iterates",
    "Problem",
    "Status",
    "Stopped",
    "problem_class",
    "verify_iterates",
]
