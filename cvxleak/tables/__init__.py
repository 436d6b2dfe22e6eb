"""Tables of counts: from people to cells and margins, with the noise of each published number."""

from cvxleak.tables.noise import CountNoise, PerturbationTable, RandomRounding
from cvxleak.tables.possible import PossibleCounts, possible_counts
from cvxleak.tables.realized import RealizedLeakage, realized_leakage
from cvxleak.tables.release import TableRelease
from cvxleak.tables.table import TOTAL, Table

__all__ = [
    "TOTAL",
    "CountNoise",
    "PerturbationTable",
    "PossibleCounts",
    "RandomRounding",
    "RealizedLeakage",
    "Table",
    "TableRelease",
    "possible_counts",
    "realized_leakage",
]
