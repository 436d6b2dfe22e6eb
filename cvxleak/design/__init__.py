"""Mechanism design: the channel of least leakage, or of least distortion, within budgets."""

from cvxleak.design.alternation import Alternation, Opponent
from cvxleak.design.calibration import Calibration, calibrate
from cvxleak.design.curve import DesignCurve, design_curve
from cvxleak.design.designed import Design, Round
from cvxleak.design.distortion import MinDistortion, min_distortion
from cvxleak.design.fixed_prior import DesignForPrior, design_for_prior
from cvxleak.design.leakage import MinLeakage, min_leakage

__all__ = [
    "Alternation",
    "Calibration",
    "Design",
    "DesignCurve",
    "DesignForPrior",
    "MinDistortion",
    "MinLeakage",
    "Opponent",
    "Round",
    "calibrate",
    "design_curve",
    "design_for_prior",
    "min_distortion",
    "min_leakage",
]
