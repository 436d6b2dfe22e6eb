"""Real-valued outputs: additive noise, and densities that are known within bounds."""

from cvxleak.model.noise.additive import AdditiveNoise
from cvxleak.model.noise.density import BoundedDensity
from cvxleak.model.noise.real_output import RealOutput
from cvxleak.model.noise.smooth import Gaussian, Laplace
from cvxleak.model.noise.stepped import DiscreteGaussian, DiscreteLaplace, Rounded, Uniform

__all__ = [
    "AdditiveNoise",
    "BoundedDensity",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Gaussian",
    "Laplace",
    "RealOutput",
    "Rounded",
    "Uniform",
]
