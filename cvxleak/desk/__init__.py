"""The release desk: answers requests of several parties within budgets, and keeps the ledger."""

from cvxleak.desk.answers import DeskReport, DeskVerification, Exposure, Release
from cvxleak.desk.release_desk import ReleaseDesk

__all__ = ["DeskReport", "DeskVerification", "Exposure", "Release", "ReleaseDesk"]
