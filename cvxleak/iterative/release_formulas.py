"""The formulas of SEQUENTIAL, section IV, as they are printed: (5) to (9), and the derivatives."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import entr, xlogy

from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import Array, frozen_array, instance, one_of, probability_rows
from cvxleak.iterative.release_data import ReleaseData, multipliers
from cvxleak.model import Distortion

__all__ = ["ReleaseLaws", "release_functional", "release_gradients", "release_update"]

Utility = Literal["distortion", "information"]


class ReleaseLaws(NamedTuple):
    """The distributions that Algorithms 1 and 2 of SEQUENTIAL update in turn with p(r̂|z,x).

    Attributes
    ----------
    q_1 : array_like, shape (outputs,)
        p(r̂), by (6).
    q_2 : array_like, shape (Z, X, outputs)
        p(z|r̂,x), by (7).
    q_3 : array_like, shape (Z, outputs)
        p(r̂|z), by (8).
    q_4 : array_like, shape (R, outputs), optional
        p(r|r̂), if an information is the utility (Algorithm 2); None for a distortion (Algorithm 1).

    Examples
    --------
    >>> from cvxleak.iterative import ReleaseLaws
    >>> joint, kernel = [[[0.45, 0.05]], [[0.05, 0.45]]], [[[1.0, 0.0], [0.5, 0.5]]]
    >>> ReleaseLaws.of(joint, kernel).q_1
    array([0.75, 0.25])
    >>> ReleaseLaws.of(joint, kernel, "information").q_4.round(3)
    array([[0.633, 0.1  ],
           [0.367, 0.9  ]])
    """

    q_1: ArrayLike
    q_2: ArrayLike
    q_3: ArrayLike
    q_4: ArrayLike | None = None

    @classmethod
    def of(
        cls, joint: ArrayLike, kernel: ArrayLike, utility: Utility = "distortion"
    ) -> ReleaseLaws:
        """Return those of a kernel; conditions of probability zero get uniform distributions."""
        one_of(utility, ("distortion", "information"), "utility")
        data, rows = _kernel(joint, kernel)
        both = data.joint.sum(axis=0)[:, :, None] * rows
        return cls(
            both.sum(axis=(0, 1)),
            _given(both, 0),
            _given(both.sum(axis=1), 1),
            None
            if utility == "distortion"
            else _given(np.einsum("rzx,zxq->rq", data.joint, rows), 0),
        )


def release_update(
    joint: ArrayLike,
    laws: ReleaseLaws,
    mu_1: float,
    mu_2: float,
    *,
    distortion: Distortion | ArrayLike | None = None,
) -> Array:
    """Return the kernel p(r̂|z,x) that minimizes `release_functional` for given q.

    p(r̂|z,x) = ( q_1(r̂)^mu_1 q_2(z|r̂,x)^mu_1 q_3(r̂|z)^mu_2 e^-cost )^(1/(mu_1+mu_2)) / eta(z,x),
    where the cost is E[d(R,r̂)|z,x], or with a q_4 D( p(r|z,x) || q_4(r|r̂) ).

    Parameters
    ----------
    joint : array_like, shape (R, Z, X)
        The distribution p(r,z,x).
    laws : ReleaseLaws
        Any q_1, q_2, q_3, and for an information q_4: they need not belong to a kernel.
    mu_1, mu_2 : float
        Multipliers >= 0 per nat, not both zero.
    distortion : Distortion or array_like, shape (R, outputs), optional
        d(r, r̂); Hamming if left out. Not used with a q_4.

    Returns
    -------
    array, shape (Z, X, outputs)

    Raises
    ------
    ValidationError
        Not a joint distribution, arguments that do not match it, or no multiplier above zero.

    Notes
    -----
    SEQUENTIAL (5), Algorithm 1, lines 5 and 6 (the exponent of q_2 in line 5 corrected), and
    Algorithm 2, lines 6 and 7. By Proposition 1 a kernel without zeros that is the update of its
    own q is optimal for a distortion; for an information it is stationary. (Zeros stay: every
    constant release is its own update.) The methods that `distortion_blahut_arimoto` and
    `information_blahut_arimoto` carry out in logarithms are this and `ReleaseLaws.of` in turn; to
    start them from a q, pass its update as ``start``.

    Examples
    --------
    Ten iterations of Algorithm 1 from uniform q, with the paper's multipliers 0.1 per bit:

    >>> import numpy as np
    >>> from cvxleak.iterative import ReleaseLaws, release_update
    >>> joint = [[[0.024, 0.228], [0.063, 0.203]], [[0.203, 0.013], [0.228, 0.038]]]
    >>> laws = ReleaseLaws(np.full(2, 0.5), np.full((2, 2, 2), 0.5), np.full((2, 2), 0.5))
    >>> mu = 0.1 / np.log(2)
    >>> for _ in range(10):
    ...     kernel = release_update(joint, laws, mu, mu)
    ...     laws = ReleaseLaws.of(joint, kernel)
    >>> kernel[:, :, 0].round(3)
    array([[0.041, 0.975],
           [0.143, 0.887]])
    """
    q_1, q_2, q_3, cost = _costs(joint, laws, distortion)
    prices = multipliers(mu_1, mu_2)
    if sum(prices) == 0:
        raise ValidationError("mu_1: found 0.0, and mu_2 too; one of them must be above zero")
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = prices[0] * (np.log(q_1) + np.log(q_2)) if prices[0] else np.zeros(q_2.shape)
        if prices[1]:
            logs = logs + prices[1] * np.log(q_3)[:, None, :]
        logs = (logs - cost) / sum(prices)
    top = logs.max(axis=2, keepdims=True)
    return _given(np.exp(logs - np.where(top > -np.inf, top, 0.0)), 2)


def release_functional(
    joint: ArrayLike,
    kernel: ArrayLike,
    laws: ReleaseLaws,
    mu_1: float,
    mu_2: float,
    *,
    distortion: Distortion | ArrayLike | None = None,
) -> float:
    """Return f(p; q_1; q_2; q_3), in which p(r̂|z,x) and the q are independent variables.

    f = E[ cost + log( p^(mu_1+mu_2) / (q_1^mu_1 q_2^mu_1 q_3^mu_2) ) ] + theta >= g(p), with
    equality where the q are those of p, `ReleaseLaws.of`. There g is E d(R̂,R) + mu_1 I(R̂;X) +
    mu_2 I(R̂,Z;X), and with a q_4 -I(R̂;R) in place of the distortion.

    Parameters
    ----------
    kernel : array_like, shape (Z, X, outputs)
        p(r̂|z,x).
    joint, laws, mu_1, mu_2, distortion
        As in `release_update`; both multipliers may be zero here.

    Raises
    ------
    ValidationError
        Not a joint distribution, or arguments that do not match it.

    Notes
    -----
    SEQUENTIAL Lemma 1, (9), and Theorem 1: the minimum of g is that of f over p and all q.
    theta = (mu_1 + mu_2) I(Z;X) - mu_1 H(Z), for an information less I(R;Z,X), does not depend on
    the kernel. The constants -mu_1 epsilon and -mu_2 delta of (4) are left out.

    Examples
    --------
    >>> from cvxleak.iterative import ReleaseLaws, release_functional
    >>> joint, kernel = [[[0.45, 0.05]], [[0.05, 0.45]]], [[[0.8, 0.2], [0.2, 0.8]]]
    >>> own, other = ReleaseLaws.of(joint, kernel), ReleaseLaws.of(joint, [[[1, 0], [0.5, 0.5]]])
    >>> round(release_functional(joint, kernel, own, 0.1, 0.0), 6)
    0.279274
    >>> round(release_functional(joint, kernel, other, 0.1, 0.0), 6)
    0.293659
    """
    q_1, q_2, q_3, cost = _costs(joint, laws, distortion)
    data, rows = _kernel(joint, kernel)
    one, two = multipliers(mu_1, mu_2)
    law = data.joint.sum(axis=0)
    both = law[:, :, None] * rows
    terms = both * np.where(both > 0, cost, 0.0) + (one + two) * xlogy(both, rows)
    if one:
        terms = terms - one * (xlogy(both, q_1) + xlogy(both, q_2))
    if two:
        terms = terms - two * xlogy(both, q_3[:, None, :])
    earlier = float(entr(law.sum(axis=0)).sum() + entr(law.sum(axis=1)).sum() - entr(law).sum())
    theta = (one + two) * earlier - one * float(entr(law.sum(axis=1)).sum())
    if laws.q_4 is not None:
        request = data.joint.sum(axis=(1, 2))
        theta -= float(entr(request).sum() + entr(law).sum() - entr(data.joint).sum())
    return float(terms.sum()) + theta


def release_gradients(
    joint: ArrayLike, kernel: ArrayLike, *, distortion: Distortion | ArrayLike | None = None
) -> tuple[Array, Array, Array]:
    """Return the derivatives of E d(R̂,R), I(R̂;X) and I(R̂,Z;X) in p(r̂|z,x).

    They are p(z,x) times E[d(R,r̂)|z,x], log( p(r̂|x) / p(r̂) ) and log( p(r̂,z|x) / p(r̂,z) ).

    Parameters
    ----------
    joint, kernel, distortion
        As in `release_functional`.

    Returns
    -------
    tuple of array, each of shape (Z, X, outputs)
        Zero where p(z,x) is; -inf where p(r̂|x) or p(r̂,z|x) is zero and p(r̂) or p(r̂,z) is not.

    Raises
    ------
    ValidationError
        Not a joint distribution, or arguments that do not match it.

    Notes
    -----
    SEQUENTIAL, section IV-A, between Proposition 1 and (6).

    Examples
    --------
    >>> from cvxleak.iterative import release_gradients
    >>> joint, kernel = [[[0.45, 0.05]], [[0.05, 0.45]]], [[[0.8, 0.2], [0.2, 0.8]]]
    >>> release_gradients(joint, kernel)[1].round(3)
    array([[[ 0.235, -0.458],
            [-0.458,  0.235]]])
    """
    data, rows = _kernel(joint, kernel, distortion)
    law = data.joint.sum(axis=0)[:, :, None]
    both = law * rows
    pairs = [
        (both.sum(axis=0), both.sum(axis=(0, 1)) * law.sum(axis=0)),
        (both, both.sum(axis=1, keepdims=True) * law.sum(axis=0)),
    ]
    ratios = []
    for joint_law, independent in pairs:
        with np.errstate(divide="ignore"):
            ratio = np.log(joint_law / np.where(independent > 0, independent, 1.0))
        # Where p(z,x) is zero the logarithm may be infinite, and counts for nothing.
        ratios.append(law * np.where((law > 0) & (independent > 0), ratio, 0.0))
    return law * _by_pair(data, data.cost), *ratios


def _kernel(
    joint: ArrayLike, kernel: ArrayLike, distortion: Distortion | ArrayLike | None = None
) -> tuple[ReleaseData, Array]:
    rows = frozen_array(kernel, "kernel", 3)
    probability_rows(rows.reshape(-1, max(rows.shape[2], 1)), "kernel", 2)
    data = ReleaseData.of(joint, distortion, rows.shape[2])
    if rows.shape[:2] != data.joint.shape[1:]:
        raise ValidationError(
            f"kernel: found shape {rows.shape}; its first axes must be {data.joint.shape[1:]}"
        )
    return data, rows


def _costs(
    joint: ArrayLike, laws: ReleaseLaws, distortion: Distortion | ArrayLike | None
) -> tuple[Array, Array, Array, Array]:
    """Return q_1, q_2 and q_3, checked, and the cost of each (z, x) and r̂."""
    instance(laws, ReleaseLaws, "laws")
    q_1 = frozen_array(laws.q_1, "laws", 1)
    data = ReleaseData.of(joint, distortion, len(q_1))
    requests, earlier, datasets = data.joint.shape
    law = data.joint.sum(axis=0)[:, :, None]
    given = np.moveaxis(data.joint, 0, 2) / np.where(law > 0, law, 1.0)
    shapes = {"q_2": (earlier, datasets), "q_3": (earlier,), "q_4": (requests,)}
    parts = {"q_2": laws.q_2, "q_3": laws.q_3, "q_4": laws.q_4}
    found = {}
    for name, part in parts.items():
        if part is None:
            continue
        shape = (*shapes[name], len(q_1))
        found[name] = frozen_array(part, "laws", len(shape))
        if found[name].shape != shape or found[name].min() < 0:
            raise ValidationError(
                f"laws: found {name} of shape {found[name].shape}; probabilities of shape {shape} "
                "are needed"
            )
    if "q_4" not in found:
        return q_1, found["q_2"], found["q_3"], _by_pair(data, data.cost)
    with np.errstate(divide="ignore"):
        logs = np.log(found["q_4"])
    crossed = np.where(given[..., None] > 0, given[..., None] * -logs, 0.0).sum(axis=2)
    return q_1, found["q_2"], found["q_3"], crossed - entr(given).sum(axis=2)[:, :, None]


def _by_pair(data: ReleaseData, rows: Array) -> Array:
    """Return values of the pairs (z, x) of positive probability as an array, zero elsewhere."""
    values = np.zeros((*data.terms.shape, rows.shape[1]))
    values[data.terms.z, data.terms.x] = rows
    return values


def _given(both: Array, axis: int) -> Array:
    total = both.sum(axis=axis, keepdims=True)
    return np.where(total > 0, both / np.where(total > 0, total, 1.0), 1 / both.shape[axis])
