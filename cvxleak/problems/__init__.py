"""The named problems: each a frozen statement with `solve` and `check`."""

from cvxleak.problems.check import Check

__all__ = ["Check"]
