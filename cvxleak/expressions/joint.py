"""Joint distributions of a secret and the output, affine in the variables; their equivocation."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import cvxpy as cp
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array
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

SMALLEST = 1e-12
"""Least number that cells are divided by."""


class Joint(NamedTuple):
    """The joint distribution s of a secret A and the output Y, and perhaps of a known secret G.

    Information is the divergence of s from p(a) p(y), cell by cell with `cp.kl_div`: the cells sum
    to the same as those of `cp.rel_entr`, and are not negative, which gives the sum its sign. It is
    not H(A) - H(A|Y), which has the same value: there the cells of an improbable value are small,
    and for a prior from 1 to e^-12 conic solvers give up on it from some 30 x 30 cells on.
    """

    cells: cp.Expression
    law: cp.Expression
    """The distribution of A, or of A and G."""
    possible: NDArray[np.bool_]
    """The cells that are not known to be zero: a cone on a cell that always is has no interior."""
    apart: cp.Expression | None
    """p(a) p(y), or p(a|g) p(g,y), with the same output, if the distribution of A is fixed."""
    known: int = 1
    """How many values the secret G has: rows are pairs (a, g), g fastest."""

    @property
    def output(self) -> cp.Expression:
        """The distribution of the output, or of G and the output; shape (known, outputs)."""
        rows = self.cells.shape[0]
        collect = csr_array((np.ones(rows), (np.arange(rows) % self.known, np.arange(rows))))
        return collect @ self.cells

    @property
    def entropy(self) -> cp.Expression:
        """H(A), or H(A|G), for a fixed distribution of A."""
        return derived(self.law, partial(_entropy, known=self.known))

    def information(self) -> cp.Expression:
        """Return I(A;Y), or I(A;Y|G), for a fixed distribution of A."""
        assert self.apart is not None
        seen = support(self.law)
        cells, apart = self.cells[seen], self.apart[seen]
        if not is_known(self.law):
            return cp.kl_div(cells, apart).sum()
        # kl_div(x, y) = c kl_div(x / c, y / c): solvers do best with conditional probabilities.
        size = np.maximum(value(self.law)[seen], SMALLEST)
        scale = diags_array(1 / size)
        return size @ cp.kl_div(scale @ cells, scale @ apart).sum(axis=1)

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
    apart = derived(p, _squares, (k, k)) @ q if is_fixed(p) else None
    return Joint(cells, p, seen, apart)


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
    k, m = cells.shape
    return Joint(cells, p, _possible(p, m), cp.outer(p, np.ones(k)) @ cells)


def record_joint(prior: Law, query: Query, channel: Rows, records: int | Sequence[int]) -> Joint:
    """Return the joint distribution of a record (or group of records) and the output."""
    q = matched_query(query, channel)
    law = _record_law(prior, query, records)
    return _of_records(law, q)


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
    return _of_records(law, q, len(query.space.values(known)))


def _of_records(law: cp.Expression, q: cp.Expression, known: int = 1) -> Joint:
    own = law.sum(axis=1)
    apart = derived(law, partial(_separated, known=known), law.shape) @ q
    return Joint(law @ q, own, _possible(own, q.shape[1]), apart, known)


def _possible(p: cp.Expression, outputs: int) -> NDArray[np.bool_]:
    cells = np.zeros((p.shape[0], outputs), dtype=bool)
    cells[support(p)] = True
    return cells


def _entropy(own: Array, known: int) -> float:
    table = own.reshape(-1, known)
    return max(0.0, float(entr(table).sum() - entr(table.sum(axis=0)).sum()))


def _squares(p: Array) -> Array:
    return np.outer(p, p)


def _within(own: Array, known: int) -> Array:
    """Return p(a|g) of a distribution p(a, g)."""
    table = own.reshape(-1, known)
    total = table.sum(axis=0)
    return np.divide(table, total, out=np.zeros_like(table), where=total > 0).ravel()


def _separated(law: Array, known: int) -> Array:
    """Return p(a|g) P(g, v) of P(a, g, v): A and the query's value v are independent given G."""
    shared = law.reshape(-1, known, law.shape[1]).sum(axis=0)
    within = _within(law.sum(axis=1), known)
    return within[:, None] * shared[np.arange(len(law)) % known]


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
