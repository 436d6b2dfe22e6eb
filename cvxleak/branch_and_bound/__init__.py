"""Certified global search for the worst adversary: posterior cells, law slabs, choices."""

from cvxleak.branch_and_bound.best_first import BestFirst
from cvxleak.branch_and_bound.cell_search import CellSearch
from cvxleak.branch_and_bound.choices import Choices, bound_choices
from cvxleak.branch_and_bound.coarse import Coarse, coarsen
from cvxleak.branch_and_bound.floors_search import FloorsSearch
from cvxleak.branch_and_bound.law_search import LawSearch
from cvxleak.branch_and_bound.outputs import merge_outputs
from cvxleak.branch_and_bound.sharing import SharingSearch
from cvxleak.branch_and_bound.symmetries import find_symmetries
from cvxleak.branch_and_bound.whole_dataset import WholeDataset, bound_by_dataset

__all__ = [
    "BestFirst",
    "CellSearch",
    "Choices",
    "Coarse",
    "FloorsSearch",
    "LawSearch",
    "SharingSearch",
    "WholeDataset",
    "bound_by_dataset",
    "bound_choices",
    "coarsen",
    "find_symmetries",
    "merge_outputs",
]
