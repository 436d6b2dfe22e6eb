"""Statements of the five papers that are wrong, or weaker than provable; each with its check."""

from cvxleak.papers.gallery.errata import (
    dalenius,
    envelope,
    hamming,
    leakage,
    leakage_numbers,
    sequential,
)
from cvxleak.papers.gallery.errata.erratum import Erratum

__all__ = ["ERRATA", "Erratum"]

ERRATA: dict[str, Erratum] = {
    entry.where: entry
    for paper in (leakage, leakage_numbers, envelope, hamming, dalenius, sequential)
    for entry in paper.ERRATA
}
"""By the paper's short name and the place, in the papers' order."""
