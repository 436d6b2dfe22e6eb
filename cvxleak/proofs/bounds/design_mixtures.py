"""An upper bound on the leakage of a mixture of audited channels, by convexity.

Leakage is a supremum of convex functions of the channel, and zero if the output ignores the data.
Let a channel P be at least s_1 Q_1 + ... + s_k Q_k, entry by entry. The rest, R = P - sum_i s_i
Q_i, contains a constant output of mass t = sum_y min_r R(r, y), which is the same for all rows. So

    L(P) <= sum_i s_i L(Q_i) + (1 - sum_i s_i - t) log|A|,

with A the secret: P is a mixture of the Q_i, a constant output and one more channel, which leaks at
most H(A) <= log|A|. All numbers are rational, so there is no rounding here. The last term comes
from the rounding of P itself, and is tiny.
"""

from __future__ import annotations

from collections.abc import Sequence

from flint import arb, fmpq, fmpz

from cvxleak.core.errors import CertificateError
from cvxleak.kernel.numbers import upper as float_above
from cvxleak.model import Channel
from cvxleak.proofs.exact import normalized_rows, rational

__all__ = ["mixture_above"]


def mixture_above(
    channel: Channel, parts: Sequence[tuple[float, Channel, float]], values: int
) -> float:
    """Return a float above the leakage of a channel about a secret of at most `values` values.

    Parameters
    ----------
    channel : Channel
        P.
    parts : sequence of (s_i, Q_i, u_i)
        u_i is at least the leakage of Q_i.
    values : int
        |A|.

    Raises
    ------
    CertificateError
        A share that is not positive, another shape, or an entry of P that is too small.

    Examples
    --------
    >>> from cvxleak.proofs.bounds.design_mixtures import mixture_above
    >>> from cvxleak.model import Channel
    >>> told = Channel([[1, 0], [0, 1]])
    >>> round(mixture_above(Channel([[0.75, 0.25], [0.25, 0.75]]), [(0.5, told, 0.6)], 2), 12)
    0.3
    """
    rest = normalized_rows(channel.matrix.tolist())
    left, total = fmpq(1), arb(0)
    for share, part, upper in parts:
        weight = rational(share)
        if not weight > 0:
            raise CertificateError("the share of a part must be positive")
        if part.shape != channel.shape:
            raise CertificateError(f"a part has shape {part.shape}; {channel.shape} is needed")
        left -= weight
        total += arb(weight) * upper
        for into, row in zip(rest, normalized_rows(part.matrix.tolist()), strict=True):
            for y, entry in enumerate(row):
                into[y] -= weight * entry
    if any(entry < 0 for row in rest for entry in row):
        raise CertificateError("the channel has an entry below that of the mixture of its parts")
    for column in zip(*rest, strict=True):
        left -= min(column)
    return float_above(total + arb(left) * arb(fmpz(values)).log())
