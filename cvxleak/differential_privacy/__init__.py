"""Proofs and counterexamples of a mechanism's stated differential privacy."""

from cvxleak.differential_privacy.claims import ClaimCheck, Distinction, check_claim

__all__ = ["ClaimCheck", "Distinction", "check_claim"]
