"""The search for the worst adversary: one loop over the rules of the proof kernel.

An audit is the problem max I(A;Y) (or of another gain) over the adversaries w of a group of records
with F(w) >= b (`cvxleak.model.Lumped`). `audit.Audit` works on the group with the largest upper
bound until the gap is closed, and `loop.GroupSearch` is the search for one group. Nothing here is
trusted: each upper end is a term of the kernel, and each lower end an adversary; what counts is
what the kernel concludes from them.

**From below** there is `ascent`: steps that never lose, from directed and random starts, and from
the maximizers of nodes. `adversary_class` moves what is found into the class of adversaries.

**From above**, by the rule of the kernel:

===================== =================== ==========================================================
rule                  made by             why it holds
===================== =================== ==========================================================
`alphabet`            `loop`              I(A;Y) <= H(A)
`choices`             `choices`           the capacities of all choices of one group per value
`share`, vertices     `tangent`           I(A;Y) <= I(X;Y)
`share`, contraction  `tangent`           time sharing at a multiplier with which it is concave
`share`, `ratio`      `log_ratio_cells`   time sharing; for each value a tree of boxes of log-ratios
`cells`               `posterior_cells`   a tree of cells of the posteriors; `dual` bounds a node
===================== =================== ==========================================================

Cells may be of a problem with outputs merged at a price (`merged_outputs`). Other gains and sets of
channels have posterior cells alone (`objective` says what is maximized). `real_outputs` cuts a real
output into cells.

Where time sharing does not reach what closes the gap, both trees are grown: each gets work in
proportion to what is between the bound and the least that it can prove.

**The branching rules.** Both trees are a `cvxleak.solvers.BestFirst`, which splits the leaf with
the largest bound. Posterior cells: `posterior_cells.branch`, which output's cell is cut, and on
which edge where. `log_ratio_cells.LogRatioTree._bound`: across the functional, or the residual of a
group, with which log-ratios vary most. Any rule is sound: a certificate holds the cuts that were
made, and the kernel replays them.
"""

__all__: list[str] = []
