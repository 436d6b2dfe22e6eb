"""The figures, tables and numbers of the five papers, computed again and compared.

An item returns pairs (computed, printed). They agree to a tolerance, or an entry of `ERRATA` says
why they do not.
"""

from cvxleak.papers.gallery.errata import ERRATA, Erratum
from cvxleak.papers.gallery.item import Item, Pair, Reproduction
from cvxleak.papers.gallery.registry import ITEMS, reproduce

__all__ = ["ERRATA", "ITEMS", "Erratum", "Item", "Pair", "Reproduction", "reproduce"]
