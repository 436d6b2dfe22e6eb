"""What the quantities of a report are called, and what they are counted in but nats and bits.

The names are part of the JSON format: docs/cli.md says what each stands for. A name once released
keeps its meaning.
"""

from __future__ import annotations

__all__ = [
    "ALL",
    "BALANCE",
    "CAPACITY",
    "DISTORTION",
    "EXPECTED_DISTORTION",
    "FANO",
    "GROUP_LEAKAGE",
    "GUESS_AFTER",
    "GUESS_BEFORE",
    "LOCAL_DP",
    "MAXIMAL_LEAKAGE",
    "MAX_INFORMATION",
    "MUTUAL_INFORMATION",
    "PINSKER",
    "PML",
    "POSTERIOR_GUESS",
    "PRIOR_GUESS",
    "PROBABILITY",
    "RECORD_DP",
    "RECORD_LEAKAGE",
    "WORST_CASE_DISTORTION",
]

RECORD_LEAKAGE = "record leakage"
GROUP_LEAKAGE = "group leakage"
GUESS_BEFORE = "guess before"
GUESS_AFTER = "guess after"
FANO = "guess rise, Fano bound"
PINSKER = "guess rise, Pinsker bound"
BALANCE = "balance"
CAPACITY = "capacity"
MAXIMAL_LEAKAGE = "maximal leakage"
RECORD_DP = "record DP epsilon"
LOCAL_DP = "local DP epsilon"
MUTUAL_INFORMATION = "mutual information"
MAX_INFORMATION = "max-information"
PRIOR_GUESS = "prior guess"
POSTERIOR_GUESS = "posterior guess"
PML = "pointwise maximal leakage"
WORST_CASE_DISTORTION = "worst-case distortion"
EXPECTED_DISTORTION = "expected distortion"

ALL = (
    RECORD_LEAKAGE,
    GROUP_LEAKAGE,
    GUESS_BEFORE,
    GUESS_AFTER,
    FANO,
    PINSKER,
    BALANCE,
    CAPACITY,
    MAXIMAL_LEAKAGE,
    RECORD_DP,
    LOCAL_DP,
    MUTUAL_INFORMATION,
    MAX_INFORMATION,
    PRIOR_GUESS,
    POSTERIOR_GUESS,
    PML,
    WORST_CASE_DISTORTION,
    EXPECTED_DISTORTION,
)
"""Every name, in the order of the documentation."""

PROBABILITY = "probability"
DISTORTION = "distortion"
