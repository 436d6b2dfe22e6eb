"""`Curve`: what curves of bounds share."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any, Self, cast

import numpy as np

from cvxleak.core.errors import CertificateError
from cvxleak.core.validation import Array
from cvxleak.problem.bound import BOUND_HEAD, Bound, bound_row
from cvxleak.proofs import Certificate
from cvxleak.proofs.bundle import save_certificates

__all__ = ["Curve", "certificate_of"]


class Curve(ABC):
    """Lower and upper bounds at increasing places of an axis; subclasses are dataclasses.

    Attributes
    ----------
    bounds : tuple of Bound
        One for each place.
    """

    bounds: tuple[Bound, ...]

    @property
    @abstractmethod
    def _axis(self) -> tuple[str, tuple[float, ...]]:
        """The name of the axis, and the places on it."""

    @property
    def lower(self) -> Array:
        """The lower bounds."""
        return np.array([bound.lower for bound in self.bounds])

    @property
    def upper(self) -> Array:
        """The upper bounds."""
        return np.array([bound.upper for bound in self.bounds])

    def to(self, unit: str) -> Self:
        """Return the same curve in ``"nats"`` or ``"bits"``; the axis stays as it is."""
        bounds = tuple(bound.to(unit) for bound in self.bounds)
        return replace(cast(Any, self), bounds=bounds)

    def to_frame(self) -> Any:
        """Return one row for each place as a pandas DataFrame (needs pandas)."""
        import pandas as pd

        frame = pd.concat([bound.to_frame() for bound in self.bounds], ignore_index=True)
        name, places = self._axis
        frame.insert(0, name, places)
        return frame

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the certificates of all places to one file, which `verify` reads.

        Raises
        ------
        CertificateError
            A bound has no certificate.
        ValidationError
            The file cannot be written.
        """
        save_certificates(list(map(certificate_of, self.bounds)), path)

    def __repr__(self) -> str:
        name, places = self._axis
        ends = f", from {places[0]:.6g} to {places[-1]:.6g}" if places else ""
        return f"{type(self).__name__}({len(places)} {name.replace('_', ' ')}s{ends})"

    def _repr_html_(self) -> str:
        from cvxleak.core.notebook import html_table

        name, places = self._axis
        rows = ((x, *bound_row(bound)) for x, bound in zip(places, self.bounds, strict=True))
        return html_table("", (name.replace("_", " "), *BOUND_HEAD), rows)


def certificate_of(bound: Bound) -> Certificate:
    """Return the certificate of a bound, which has to have one."""
    if bound.certificate is None:
        raise CertificateError(f"{bound.name}: found a bound without a certificate; solve it anew")
    return bound.certificate
