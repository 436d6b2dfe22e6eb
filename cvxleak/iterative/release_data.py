"""The data of the iterative methods for a release: a joint distribution, and the costs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import Array, check_cells, frozen_array, real_number, whole_number
from cvxleak.iterative.release_terms import ReleaseTerms
from cvxleak.model import Distortion

__all__ = ["ReleaseData", "information_loss", "multipliers"]

SUM_TOLERANCE = 1e-9
RULED_OUT = 1e6


@dataclass(frozen=True)
class ReleaseData:
    """A joint distribution p(r,z,x), its two coalitions, and the distortion of each output."""

    joint: Array
    terms: ReleaseTerms
    request: Array
    """p(r|z,x) of each row, shape (rows, R)."""
    cost: Array
    """E[ d(R,r̂) | z, x ] of each row, shape (rows, outputs)."""

    @classmethod
    def of(
        cls, joint: ArrayLike, distortion: Distortion | ArrayLike | None, outputs: int | None
    ) -> ReleaseData:
        """Check the arguments of a method: a distribution of shape (R, Z, X), a matrix d(r, r̂)."""
        law = frozen_array(joint, "joint", 3)
        if law.size == 0 or law.min() < 0 or not abs(law.sum() - 1) <= SUM_TOLERANCE:
            raise ValidationError(
                f"joint: found shape {law.shape} and sum {float(law.sum())!r}; a distribution of "
                f"shape (requests, earlier outputs, datasets) sums to 1 within {SUM_TOLERANCE}"
            )
        law = law / law.sum()
        requests, earlier, _ = law.shape
        if distortion is None:
            count = requests if outputs is None else whole_number(outputs, "outputs", 1)
            check_cells(law[0].size, count, "outputs")
            matrix = 1.0 - np.eye(requests, count)
        else:
            given = distortion if isinstance(distortion, Distortion) else Distortion(distortion)
            matrix = given.matrix
            if matrix.shape[0] != requests or outputs not in (None, matrix.shape[1]):
                raise ValidationError(
                    f"distortion: found shape {matrix.shape}; "
                    f"({requests}, {'outputs' if outputs is None else outputs}) is needed"
                )
        terms = ReleaseTerms(
            law.sum(axis=0), [np.zeros(earlier, dtype=np.intp), np.arange(earlier)]
        )
        request = np.moveaxis(law, 0, 2)[terms.z, terms.x]
        request = request / request.sum(axis=1, keepdims=True)
        return cls(law, terms, request, request @ matrix)

    def start(self, kernel: ArrayLike | None, rng: np.random.Generator | None = None) -> Array:
        """Return the logarithms of a start's rows: uniform if none is given, or random."""
        shape = self.cost.shape
        if kernel is None:
            if rng is None:
                return np.full(shape, -np.log(shape[1]))
            return np.log(np.maximum(rng.dirichlet(np.ones(shape[1]), size=shape[0]), 1e-300))
        rows = frozen_array(kernel, "start", 3)
        if rows.shape != (*self.terms.shape, shape[1]):
            raise ValidationError(
                f"start: found shape {rows.shape}; {(*self.terms.shape, shape[1])} is needed"
            )
        rows = self.terms.rows(rows)
        if rows.min() < 0 or not np.allclose(rows.sum(axis=1), 1, atol=SUM_TOLERANCE, rtol=0):
            raise ValidationError("start: every row p(.|z,x) must be a distribution")
        with np.errstate(divide="ignore"):
            return np.log(rows)


def information_loss(data: ReleaseData, log_kernel: Array) -> Array:
    """Return -E[ log q_4(R|r̂) / p(R) | z, x ] of each row and output; q_4 is that of R given r̂.

    It is Algorithm 2's divergence D( p(r|z,x) || q_4(r|r̂) ) up to a constant of the row, and its
    mean is -I(R̂;R).
    """
    with np.errstate(divide="ignore"):
        log_request = np.log(data.request)
    log_joint = log_kernel[:, :, None] + (data.terms.log_weights + log_request)[:, None, :]
    log_both = _log_sum(log_joint, 0)
    log_output = _log_sum(log_both, 1)[:, None]
    # Where r rules r̂ out the cost is infinite; a large number is as good, and has products.
    with np.errstate(invalid="ignore"):
        log_posterior = np.nan_to_num(log_both - log_output, nan=-RULED_OUT, neginf=-RULED_OUT)
    marginal = data.terms.weights @ data.request
    log_prior = np.log(np.where(marginal > 0, marginal, 1.0))
    return -(data.request @ (log_posterior - log_prior).T)


def _log_sum(values: Array, axis: int) -> Array:
    top = values.max(axis=axis, keepdims=True)
    top = np.where(top == -np.inf, 0.0, top)
    with np.errstate(divide="ignore"):
        return np.log(np.exp(values - top).sum(axis=axis)) + top.squeeze(axis)


def multipliers(mu_1: float, mu_2: float) -> tuple[float, float]:
    """Check two multipliers."""
    return (
        real_number(mu_1, "mu_1", 0.0, open_high=True),
        real_number(mu_2, "mu_2", 0.0, open_high=True),
    )
