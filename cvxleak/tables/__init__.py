"""Tables of counts: cells and margins, with the noise of each published number."""

from cvxleak.tables.arguments import TOTAL
from cvxleak.tables.calibration import calibrate_table
from cvxleak.tables.cases import TableMove
from cvxleak.tables.deterministic import RoundToNearest, SuppressBelow
from cvxleak.tables.estimate import CountEstimate, estimate_counts
from cvxleak.tables.independent import TableAdversary, TableLeakage, table_leakage
from cvxleak.tables.noise import SUPPRESSED, CountNoise, PerturbationTable, RandomRounding
from cvxleak.tables.possible import PossibleCounts, possible_counts
from cvxleak.tables.privacy import TablePrivacy, TradeOffEnds, table_privacy
from cvxleak.tables.realized import RealizedLeakage, realized_leakage
from cvxleak.tables.release import TableRelease
from cvxleak.tables.table import Table

__all__ = [
    "SUPPRESSED",
    "TOTAL",
    "CountEstimate",
    "CountNoise",
    "PerturbationTable",
    "PossibleCounts",
    "RandomRounding",
    "RealizedLeakage",
    "RoundToNearest",
    "SuppressBelow",
    "Table",
    "TableAdversary",
    "TableLeakage",
    "TableMove",
    "TablePrivacy",
    "TableRelease",
    "TradeOffEnds",
    "calibrate_table",
    "estimate_counts",
    "possible_counts",
    "realized_leakage",
    "table_leakage",
    "table_privacy",
]
