"""What the largest gain of any adversary means, in a sentence for readers of reports."""

from __future__ import annotations

from cvxleak.proofs.bounds.gains import GainForm

__all__ = ["meaning_of"]

UNITS = {
    "probability": " A probability, no amount of information.",
    "gain": " In the unit of the gain, no amount of information.",
}


def meaning_of(told: GainForm, subject: str, who: str) -> str:
    """Return the sentence for a gain in its form, about somebody's record, for some adversaries.

    Examples
    --------
    >>> from cvxleak.audit.meaning import meaning_of
    >>> from cvxleak.model import Guess
    >>> from cvxleak.proofs.bounds.gains import GainForm
    >>> meaning_of(GainForm(Guess(), "rise"), "record 2", "anybody").partition(": ")[2]
    'the most by which seeing the output raises the chance of guessing correctly. A probability, ...
    """
    name = told.gain.name
    what = {
        "posterior": f"the largest {name} after seeing the output",
        "rise": f"the most by which seeing the output raises the {name}",
        "factor": f"the largest factor by which seeing the output multiplies the {name}",
    }[told.form]
    return f"About {subject}, for {who}: {what}.{UNITS.get(told.unit, '')}"
