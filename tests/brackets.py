"""No two certificates of one problem may both pass with brackets that do not meet.

`Brackets` remembers the largest lower end and the least upper end that were shown for each problem.
`tests/conftest.py` gives it all that a test session proves: every end that `verify` finds proved,
whoever wrote the certificate, and every claim of a bound that the library makes. The session fails
if the ends of a problem cross. This costs a hash for each certificate and no second check of it.
"""

import hashlib
import json
import math

from cvxleak.proofs import Certificate, Verification

__all__ = ["Brackets"]


class Brackets:
    """The ends that were shown for each problem."""

    def __init__(self) -> None:
        self._ends: dict[tuple[int, str, str], tuple[float, float]] = {}

    def __len__(self) -> int:
        return len(self._ends)

    def verified(self, answer: Verification) -> None:
        """Take what a check has proved, end by end."""
        if answer.certificate is not None:
            for name, end in answer.ends.items():
                # In version 1 half-spaces have no room in the lower end: claims are all it says.
                exact = answer.certificate.schema_version > 1
                value = getattr(answer if exact else answer.certificate, name)
                if end.proved:
                    self._take(answer.certificate, name, value)

    def claimed(self, certificate: Certificate) -> None:
        """Take what the library claims."""
        for name in certificate.about:
            self._take(certificate, name, getattr(certificate, name))

    def crossed(self) -> list[str]:
        """Return the problems whose ends do not meet."""
        return [
            f"{kind}, version {version}: {lower!r} to {upper!r}"
            for (version, kind, _), (lower, upper) in self._ends.items()
            if lower > upper
        ]

    def _take(self, certificate: Certificate, name: str, value: float) -> None:
        text = json.dumps(certificate.problem, sort_keys=True, default=repr)
        digest = hashlib.sha256(text.encode()).hexdigest()
        key = (certificate.schema_version, certificate.kind, digest)
        lower, upper = self._ends.get(key, (-math.inf, math.inf))
        if name == "lower":
            self._ends[key] = max(lower, value), upper
        else:
            self._ends[key] = lower, min(upper, value)
