"""What the quantities of a report are called, and what they are counted in but nats and bits.

The names are part of the JSON format: docs/cli.md says what each stands for. A name once released
keeps its meaning.
"""

from __future__ import annotations

__all__ = [
    "ALL",
    "BALANCE",
    "BUDGET_PRICE",
    "CAPACITY",
    "DESIGN_DISTORTION",
    "DESIGN_LEAKAGE",
    "DISTORTION",
    "ENVELOPE",
    "EVENT_ENVELOPE",
    "EXPECTED_DISTORTION",
    "FAILURE",
    "FAILURE_OR_EQUAL",
    "FANO",
    "FLOOR_PRICE",
    "GROUP_LEAKAGE",
    "GUESS_AFTER",
    "GUESS_BEFORE",
    "LEAST_DISTORTION",
    "LEAST_EPSILON",
    "LEAST_LEAKAGE",
    "LEAST_WORST_DISTORTION",
    "LOCAL_DP",
    "MAXIMAL_LEAKAGE",
    "MAX_INFORMATION",
    "MUTUAL_INFORMATION",
    "PINSKER",
    "PML",
    "PML_QUANTILE",
    "POSTERIOR_GUESS",
    "PRIOR_GUESS",
    "PROBABILITY",
    "RECORD_DP",
    "RECORD_LEAKAGE",
    "RELEASED_FAILURE",
    "RELEASED_FAILURE_OR_EQUAL",
    "RESPONSE_DISTORTION",
    "RESPONSE_EPSILON",
    "TAIL_AVERAGE",
    "THEOREM_3",
    "WORST_CASE_DISTORTION",
    "WORST_SOURCE_DISTORTION",
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
ENVELOPE = "PML envelope"
PML_QUANTILE = "PML quantile"
EVENT_ENVELOPE = "event envelope"
THEOREM_3 = "Theorem 3 bound"
TAIL_AVERAGE = "tail average bound"
FAILURE = "failure probability"
FAILURE_OR_EQUAL = "failure probability, or equal"
RELEASED_FAILURE = "released failure probability"
RELEASED_FAILURE_OR_EQUAL = "released failure probability, or equal"
LEAST_EPSILON = "least local DP epsilon"
LEAST_WORST_DISTORTION = "least worst-case distortion"
RESPONSE_EPSILON = "k-RR epsilon"
RESPONSE_DISTORTION = "k-RR distortion"
WORST_SOURCE_DISTORTION = "worst-source distortion"
LEAST_LEAKAGE = "least leakage"
LEAST_DISTORTION = "least distortion"
DESIGN_LEAKAGE = "leakage of the design"
DESIGN_DISTORTION = "distortion of the design"
BUDGET_PRICE = "price of the budget"
FLOOR_PRICE = "price of the doubt"

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
    ENVELOPE,
    PML_QUANTILE,
    EVENT_ENVELOPE,
    THEOREM_3,
    TAIL_AVERAGE,
    FAILURE,
    FAILURE_OR_EQUAL,
    RELEASED_FAILURE,
    RELEASED_FAILURE_OR_EQUAL,
    LEAST_EPSILON,
    LEAST_WORST_DISTORTION,
    RESPONSE_EPSILON,
    RESPONSE_DISTORTION,
    WORST_SOURCE_DISTORTION,
    LEAST_LEAKAGE,
    LEAST_DISTORTION,
    DESIGN_LEAKAGE,
    DESIGN_DISTORTION,
    BUDGET_PRICE,
    FLOOR_PRICE,
)
"""Every name, in the order of the documentation."""

PROBABILITY = "probability"
DISTORTION = "distortion"
