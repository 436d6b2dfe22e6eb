"""Certified global search for the worst adversary: posterior cells, law slabs, choices."""

from cvxleak.branch_and_bound.choices import Choices, bound_choices
from cvxleak.branch_and_bound.law_search import LawSearch, LawTree
from cvxleak.branch_and_bound.outputs import merge_outputs
from cvxleak.branch_and_bound.search import CellSearch, CellTree

__all__ = [
    "CellSearch",
    "CellTree",
    "Choices",
    "LawSearch",
    "LawTree",
    "bound_choices",
    "merge_outputs",
]
