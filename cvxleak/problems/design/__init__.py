"""Mechanism design: the channel of least leakage, or of least distortion, that budgets allow."""

from cvxleak.problems.design.calibration import Calibration, calibrate
from cvxleak.problems.design.curve import DesignCurve, design_curve
from cvxleak.problems.design.designed import Design, Round
from cvxleak.problems.design.distortion import MinDistortion, min_distortion
from cvxleak.problems.design.fixed_prior import DesignForPrior, design_for_prior
from cvxleak.problems.design.leakage import MinLeakage, min_leakage

__all__ = [
    "Calibration",
    "Design",
    "DesignCurve",
    "DesignForPrior",
    "MinDistortion",
    "MinLeakage",
    "Round",
    "calibrate",
    "design_curve",
    "design_for_prior",
    "min_distortion",
    "min_leakage",
]
