"""What audits at other entropy floors say of the leakage at one floor."""

from __future__ import annotations

from collections.abc import Sequence

from cvxleak.core.errors import CertificateError
from cvxleak.problem import Bound
from cvxleak.proofs import Certificate

__all__ = ["tightened"]


def tightened(found: Sequence[Bound], place: int, floor: float, tol: float) -> Bound:
    """Return the bounds at a floor: the best witness from above, the best proof from below.

    `found` holds the bounds at increasing floors, of audits that differ in the floor only, and
    `place` is that of this floor. An adversary above one floor is above all lower ones; so a
    witness counts for the floors below its own, and a proof for those above.
    """
    here = found[place]
    low = min(reversed(found[: place + 1]), key=lambda bound: bound.upper)
    high = max(found[place:], key=lambda bound: bound.lower)
    if low is high:
        return low
    proof, witness = _certificate(low), _certificate(high)
    return Bound.proved(
        low.name,
        high.lower,
        low.upper,
        tol=tol,
        unit=low.unit,
        witness=high.witness,
        certificate=Certificate(
            proof.kind,
            {**proof.problem, "entropy_floor": min(floor, witness.problem["entropy_floor"])},
            high.lower,
            low.upper,
            witness.witness,
            proof.proof,
            unit=proof.unit,
        ),
        shadow_prices=here.shadow_prices,
        stats=here.stats,
        resume=here._resume,
    )


def _certificate(bound: Bound) -> Certificate:
    if bound.certificate is None:
        raise CertificateError(f"{bound.name}: found a bound without a certificate; solve it anew")
    return bound.certificate
