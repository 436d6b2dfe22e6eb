"""Certified global search for the worst adversary: posterior cells, law slabs, choices."""

from cvxleak.audit.search.cell_search import CellSearch
from cvxleak.audit.search.choices import Choices, bound_choices
from cvxleak.audit.search.coarse import Coarse, coarsen
from cvxleak.audit.search.floors_search import FloorsSearch
from cvxleak.audit.search.law_search import LawSearch
from cvxleak.audit.search.sharing import SharingSearch
from cvxleak.audit.search.symmetries import find_symmetries
from cvxleak.audit.search.whole_dataset import WholeDataset, bound_by_dataset
from cvxleak.capacities.outputs import merge_outputs
from cvxleak.solvers.best_first import BestFirst

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
