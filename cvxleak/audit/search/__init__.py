r"""How an audit is found and proved: a local search below, several bounds above.

An audit is the problem max I(A;Y) over lumped priors w with F(w) >= b (`cvxleak.model.Lumped`).

**The loop.** `audit.Audit` lumps one class of groups of records after the other, and works on the
class with the largest upper bound until the gap is closed. What it knows of a class is an
`audited_group.AuditedGroup`: `prepare` finds the bounds without a tree, `advance` gives each tree a
turn, `_bounds` lists all upper bounds by name, and `upper` is the least of them. `proved` has the
checker, `cvxleak.proofs.record_leakage.prove_upper`, prove that one.

**Where the lower bound comes from.** Each candidate goes through `Audit._offer`, which makes it
meet the floor and evaluates it. Candidates are where the joint Blahut–Arimoto steps end
(`Audit._climb`, from random starts and from relaxed maximizers of nodes), adversaries with one
context group per value (`choices`, `witnesses.one_group_per_value`), and those found where outputs
are merged (`witnesses.through_fewer_outputs`). With more known of the adversary than the floor,
`adversary_domain.Domain` takes the place of the steps: it looks within the class of adversaries, by
`limited`, and moves what it finds into the class. `Audit._prove_lower` has the checker prove the
best one.

**Where the upper bound comes from.** The name is that of the bound's key in a certificate.

=========== ================================ ===================================================
name        made by                          why it holds
=========== ================================ ===================================================
`alphabet`  ``AuditedGroup``                 I(A;Y) <= log k
`choices`   ``choices.bound_choices``        the capacities of all choices of one group per value
`dataset`   ``whole_dataset``, by            I(A;Y) <= (1 - q) H(A) + q I(X;Y)
            ``slab_dual`` where it is small
`cells`     ``cell_search.CellSearch``       a tree of cells of the posteriors; ``cell_dual``
                                             bounds a node
`slabs`     ``slab_search.SlabSearch``       a tree of slabs of the contexts' distributions;
                                             ``slab_dual`` bounds a node
`sharing`   ``sharing.SharingSearch``        time sharing; for each value a tree bounds phi_a, of
                                             intervals of the output's probabilities, or of boxes of
                                             the contexts' distribution (``law_boxes``) where that
                                             has fewer numbers; or by ``tangents``, at a multiplier
                                             for which no tree is needed, or below it with trees of
                                             boxes of the masses of blocks of contexts
                                             (``law_blocks``)
=========== ================================ ===================================================

All trees are a `cvxleak.solvers.BestFirst`, which has the loop of branch and bound for one floor;
`SharingSearch.run` only picks the value whose tree that loop works on next. Which trees a problem
gets is decided in `AuditedGroup._new_searches`, and in `_turn` how many nodes each bounds before
the next one has its turn. Cells may be of a problem with outputs merged at a price (`coarse`); of
cells that a symmetry of the problem (`symmetries`) moves onto one another only one is kept.

**The branching rules.** Cells: `cell_search.branch`, for `FloorsSearch` too, which output's cell
is cut, and on which edge where. Slabs: `SlabSearch._branch`. Time sharing: `SharingTree._branch`,
`LawBoxes._branch` and `LawBlocks._branch`.
Any rule is sound: a certificate holds the cuts that were made, and its checker replays them. Slabs
and intervals are one kind of region, in `intervals`.

**Other gains, and sets of channels** have bounds of posterior cells alone, by
`cell_audit.CellAudit`: `objective` says what is maximized, `cell_dual` is the same for all, and
`tangent_steps` climbs from below.

**Many floors at once.** `audited_floors.AuditedFloors` serves the curve over floors: the local
search of all floors is one (`climb_at_floors`, beside it), and so is the tree of cells
(`floors_search`); what of the tree each floor needs, `floors_proof` finds and proves. `turns`
shares the time of several audits, `node_work` that of the searches of one.

**Numerics.** `means` has logarithms of means of exponentials without cancellation, `systems` the
linear systems and the step lengths of interior-point methods, `slabs` the vertices of slabs,
`simplex_boxes` the largest distributions of boxes.
"""

from cvxleak.audit.search.cell_search import CellSearch
from cvxleak.audit.search.choices import Choices, bound_choices
from cvxleak.audit.search.coarse import Coarse, coarsen
from cvxleak.audit.search.floors_search import FloorsSearch
from cvxleak.audit.search.sharing import SharingSearch
from cvxleak.audit.search.slab_search import SlabSearch
from cvxleak.audit.search.symmetries import find_symmetries
from cvxleak.audit.search.whole_dataset import WholeDataset, bound_by_dataset

__all__ = [
    "CellSearch",
    "Choices",
    "Coarse",
    "FloorsSearch",
    "SharingSearch",
    "SlabSearch",
    "WholeDataset",
    "bound_by_dataset",
    "bound_choices",
    "coarsen",
    "find_symmetries",
]
