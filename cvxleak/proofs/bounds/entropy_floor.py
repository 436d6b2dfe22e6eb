"""That an adversary of a design's cut is at least as uncertain as the floor says."""

from __future__ import annotations

from collections.abc import Sequence

from flint import arb, fmpz

from cvxleak.core.errors import CertificateError
from cvxleak.kernel.numbers import dot
from cvxleak.proofs.exact import ball, entropy

__all__ = ["check_doubt"]


def check_doubt(
    weights: Sequence[arb], multiplicities: Sequence[int], floor: float | None, who: str
) -> None:
    """Raise unless F(w) = H(w) + sum w log m of lumped weights is proved to reach the floor."""
    logs = [arb(fmpz(m)).log() for m in multiplicities]
    doubt = entropy(weights) + dot(weights, logs)
    if floor is None or not doubt >= ball(floor):
        raise CertificateError(
            f"{who} has entropy {float(doubt.mid())!r}, below the floor {floor!r}"
        )
