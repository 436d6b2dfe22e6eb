"""Samples: what can be said, with a stated confidence, of a mechanism that was only tried out."""

from cvxleak.samples.counts import channels_from_counts

__all__ = ["channels_from_counts"]
