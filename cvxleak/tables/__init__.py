"""Tables of counts: from people to cells and margins, with the noise of each published number."""

from cvxleak.tables.noise import CountNoise, PerturbationTable, RandomRounding
from cvxleak.tables.release import TableRelease
from cvxleak.tables.table import TOTAL, Table

__all__ = [
    "TOTAL",
    "CountNoise",
    "PerturbationTable",
    "RandomRounding",
    "Table",
    "TableRelease",
]
