"""Channels of least leakage among those useful for every source of a set (HAMMING)."""

from cvxleak.local_dp.channel_sets import EpsilonOfSet, local_dp_epsilon_of_set
from cvxleak.local_dp.classification import Classification, classify
from cvxleak.local_dp.folding import (
    FoldedSets,
    FoldingBounds,
    class_three_distortions,
    class_three_leakage,
    fold,
    folding_bounds,
    folding_program,
)
from cvxleak.local_dp.least_distortion import MinDistortionLocalDP, min_distortion_local_dp
from cvxleak.local_dp.least_epsilon import MinLocalDP, min_local_dp
from cvxleak.local_dp.least_information import MinInformation, min_information
from cvxleak.local_dp.structure import CriticalPair, colors, critical_pairs, is_staircase
from cvxleak.local_dp.theorems import (
    class_one_information,
    class_one_leakage,
    class_two_distortions,
    class_two_leakage,
    class_two_mechanism,
    class_two_program,
    distortion_thresholds,
    one_law_leakage,
)

__all__ = [
    "Classification",
    "CriticalPair",
    "EpsilonOfSet",
    "FoldedSets",
    "FoldingBounds",
    "MinDistortionLocalDP",
    "MinInformation",
    "MinLocalDP",
    "class_one_information",
    "class_one_leakage",
    "class_three_distortions",
    "class_three_leakage",
    "class_two_distortions",
    "class_two_leakage",
    "class_two_mechanism",
    "class_two_program",
    "classify",
    "colors",
    "critical_pairs",
    "distortion_thresholds",
    "fold",
    "folding_bounds",
    "folding_program",
    "is_staircase",
    "local_dp_epsilon_of_set",
    "min_distortion_local_dp",
    "min_information",
    "min_local_dp",
    "one_law_leakage",
]
