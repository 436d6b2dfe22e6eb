"""What the largest gain of any adversary means, in a sentence for readers of reports."""

from __future__ import annotations

from cvxleak.model.gain_form import GainForm

__all__ = ["meaning_of"]

UNITS = {
    "probability": " The unit is a probability, not an amount of information.",
    "gain": " The unit is that of the gain, not an amount of information.",
}


def meaning_of(told: GainForm, subject: str, who: str) -> str:
    """Return the sentence that explains a gain in its form, for a record and some adversaries.

    Examples
    --------
    >>> from cvxleak.audit.meaning import meaning_of
    >>> from cvxleak.model import Guess
    >>> from cvxleak.model.gain_form import GainForm
    >>> meaning_of(GainForm(Guess(), "rise"), "record 2", "any adversary").partition(": ")[2]
    'the most by which seeing the output raises the chance of guessing correctly. The unit is a ...
    """
    name = told.gain.name
    what = {
        "posterior": f"the largest {name} after seeing the output",
        "rise": f"the most by which seeing the output raises the {name}",
        "factor": f"the largest factor by which seeing the output multiplies the {name}",
    }[told.form]
    return f"About {subject}, for {who}: {what}.{UNITS.get(told.unit, '')}"
