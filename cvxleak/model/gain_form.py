"""`GainForm`: a gain and the form in which a leakage is told, and how a certificate holds both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cvxleak.core.errors import CertificateError, ValidationError
from cvxleak.model.gain import FORMS, Form, Gain, Shannon, gain_from_dict

__all__ = ["LEAKAGE", "GainForm"]

UNITS = {
    "probability": " The unit is a probability, not an amount of information.",
    "gain": " The unit is that of the gain, not an amount of information.",
}
"""What a unit is not."""


@dataclass(frozen=True)
class GainForm:
    """A gain, and the form in which a channel's effect on it is measured."""

    gain: Gain
    form: Form

    @property
    def is_leakage(self) -> bool:
        """Whether it is I(A;Y)."""
        return isinstance(self.gain, Shannon) and self.form == "rise"

    @property
    def name(self) -> str:
        """Its name in tables and messages."""
        return {
            "posterior": f"{self.gain.name} after seeing the output",
            "rise": f"increase in the {self.gain.name}",
            "factor": f"factor by which the {self.gain.name} grows",
        }[self.form]

    @property
    def unit(self) -> str:
        """Its unit."""
        return "times" if self.form == "factor" else self.gain.unit

    def meaning(self, subject: str, who: str) -> str:
        """Return the sentence that explains it to readers, for a record and some adversaries.

        Examples
        --------
        >>> from cvxleak.model import Guess
        >>> from cvxleak.model.gain_form import GainForm
        >>> GainForm(Guess(), "rise").meaning("record 2", "any adversary").partition(": ")[2]
        'the most by which seeing the output raises the chance of guessing correctly. ...
        """
        name = self.gain.name
        what = {
            "posterior": f"the largest {name} after seeing the output",
            "rise": f"the most by which seeing the output raises the {name}",
            "factor": f"the largest factor by which seeing the output multiplies the {name}",
        }[self.form]
        return f"About {subject}, for {who}: {what}.{UNITS.get(self.unit, '')}"

    def to_dict(self) -> dict[str, Any]:
        """Return the entries of a certificate: none, if it is I(A;Y)."""
        return {} if self.is_leakage else {"gain": self.gain.to_dict(), "form": self.form}

    @classmethod
    def read(cls, problem: Mapping[str, Any]) -> GainForm:
        """Return the one that a certificate's problem names."""
        if "gain" not in problem and "form" not in problem:
            return LEAKAGE
        try:
            found = cls(gain_from_dict(problem["gain"]), problem["form"])
        except (KeyError, TypeError, ValueError, ValidationError) as error:
            raise CertificateError(f"the gain cannot be read: {error}") from error
        if found.form not in FORMS:
            raise CertificateError(f"form: found {found.form!r:.40}; allowed: {FORMS}")
        if found.is_leakage:
            raise CertificateError("the gain is that of the kind without a gain")
        return found


LEAKAGE = GainForm(Shannon(), "rise")
"""The mutual information I(A;Y)."""
