"""Joint distributions of a secret and the output, affine in the variables; their equivocation."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import cvxpy as cp
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import entr

from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import Array, plain_array
from cvxleak.core.wording import counted
from cvxleak.expressions.arguments import (
    Law,
    Rows,
    dataset_law,
    derived,
    is_fixed,
    is_known,
    law_expression,
    matched,
    matched_query,
    support,
    table_expression,
    value,
)
from cvxleak.model import Prior, Query


class Joint(NamedTuple):
    """The joint distribution s of a secret A and the output Y.

    Information is H(A) - H(A|Y) everywhere, and not the divergence of the rows from the output
    distribution: that has the same value, but conic solvers give up on it from some 60 x 60 cells
    on, and H(A) can be a Parameter of its own, which makes the whole DPP in the distribution of A.

    `possible` marks the cells that are not known to be zero: a cone on a cell that is always zero
    would have no interior.
    """

    cells: cp.Expression
    law: cp.Expression
    """The distribution of A, or of A and G."""
    possible: NDArray[np.bool_]
    entropy: cp.Expression | None
    """H(A), or H(A|G), if the distribution of A is fixed."""
    known: int = 1
    """How many values a second secret G has, which is known: rows are pairs (a, g), g fastest."""

    @property
    def output(self) -> cp.Expression:
        """The distribution of the output, or of G and the output; shape (known, outputs)."""
        rows = self.cells.shape[0]
        collect = csr_array((np.ones(rows), (np.arange(rows) % self.known, np.arange(rows))))
        return collect @ self.cells

    def negative_equivocation(self, output: cp.Expression) -> cp.Expression:
        """Return -H(A|Y) = sum s(a,y) log( s(a,y) / p(y) ), with p(y) taken from `output`."""
        a, y = np.nonzero(self.possible)
        return cp.rel_entr(self.cells[a, y], output[a % self.known, y]).sum()


def input_joint(prior: Law, channel: Rows) -> Joint:
    """Return p(x) q(y|x)."""
    p, q = matched(prior, channel)
    k, m = q.shape
    seen = _possible(p, m)
    if is_known(q):
        seen &= value(q) > 0
    cells = cp.multiply(cp.reshape(p, (k, 1), order="C") @ np.ones((1, m)), q)
    return Joint(cells, p, seen, _entropy(p) if is_fixed(p) else None)


def stated_joint(prior: Law, joint: Law) -> Joint:
    """Return a joint distribution that is the variable itself, with that of its rows."""
    p = law_expression(prior)
    if not is_fixed(p):
        raise ValidationError(
            "prior: found variables; in the joint form it must be data or a Parameter"
        )
    cells = table_expression(joint, "joint")
    if cells.shape[0] != p.shape[0]:
        raise ValidationError(
            f"joint: found {counted(cells.shape[0], 'row')}; "
            f"the prior has {counted(p.shape[0], 'outcome')}"
        )
    return Joint(cells, p, _possible(p, cells.shape[1]), _entropy(p))


def record_joint(prior: Law, query: Query, channel: Rows, records: int | Sequence[int]) -> Joint:
    """Return the joint distribution of a record (or group of records) and the output."""
    q = matched_query(query, channel)
    law = _record_law(prior, query, records)
    own = law.sum(axis=1)
    return Joint(law @ q, own, _possible(own, q.shape[1]), _entropy(own))


def conditional_joint(
    prior: Law,
    query: Query,
    channel: Rows,
    records: int | Sequence[int],
    given: int | Sequence[int],
) -> Joint:
    """Return the joint distribution of a group of records and the output, given other records."""
    q = matched_query(query, channel)
    asked, known = query.space.group(records), query.space.group(given)
    if set(asked) & set(known):
        raise ValidationError(f"given: found {given!r}; it must not overlap records {records!r}")
    law = _record_law(prior, query, asked + known)
    own, size = law.sum(axis=1), len(query.space.values(known))
    entropy = derived(own, partial(_conditional_shannon, known=size))
    return Joint(law @ q, own, _possible(own, q.shape[1]), entropy, size)


def _possible(p: cp.Expression, outputs: int) -> NDArray[np.bool_]:
    cells = np.zeros((p.shape[0], outputs), dtype=bool)
    cells[support(p)] = True
    return cells


def _entropy(p: cp.Expression) -> cp.Expression:
    return derived(p, _shannon)


def _shannon(p: Array) -> float:
    return float(entr(p).sum())


def _conditional_shannon(p: Array, known: int) -> float:
    return max(0.0, _shannon(p) - _shannon(p.reshape(-1, known).sum(axis=0)))


def _record_law(prior: Law, query: Query, records: int | Sequence[int]) -> cp.Expression:
    """Return P(X_I = a, f(X) = v), shape (values of X_I, values of f)."""
    space = query.space
    shape = len(space.values(records)), len(query.values)
    if _axes(prior) == 2:
        law = table_expression(prior, "prior")
        if law.shape != shape:
            raise ValidationError(
                f"prior: found shape {law.shape}; the joint distribution of the record and the "
                f"query's value has shape {shape}"
            )
        _check_fixed(law)
        return law
    p = dataset_law(prior, space)
    _check_fixed(p)
    code = space.value_index(records) * shape[1] + query.table().ravel()
    cells = code, np.arange(space.size)
    collect = csr_array((np.ones(space.size), cells), shape=(shape[0] * shape[1], space.size))
    if is_known(p):
        return cp.Constant((collect @ value(p)).reshape(shape))
    return cp.reshape(collect @ p, shape, order="C")


def _check_fixed(p: cp.Expression) -> None:
    if not is_fixed(p):
        raise ValidationError(
            "prior: found variables; a record's information is not concave in the "
            "distribution of the dataset, so the prior must be data or a Parameter"
        )


def _axes(prior: Law) -> int:
    if isinstance(prior, Prior):
        return 1
    if isinstance(prior, cp.Expression):
        return prior.ndim
    return plain_array(prior, "prior").ndim
