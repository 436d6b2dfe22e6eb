"""Channels that are useful for every source of a set and leak as little as possible (HAMMING)."""

from cvxleak.problems.local_dp.least_distortion import (
    MinDistortionLocalDP,
    min_distortion_local_dp,
)
from cvxleak.problems.local_dp.least_epsilon import MinLocalDP, min_local_dp
from cvxleak.problems.local_dp.least_information import MinInformation, min_information

__all__ = [
    "MinDistortionLocalDP",
    "MinInformation",
    "MinLocalDP",
    "min_distortion_local_dp",
    "min_information",
    "min_local_dp",
]
