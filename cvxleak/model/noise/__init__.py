"""Additive noise whose outputs are real numbers, or all whole numbers: Y = f(X) + Z."""

from cvxleak.model.noise.additive import AdditiveNoise
from cvxleak.model.noise.smooth import Gaussian, Laplace
from cvxleak.model.noise.stepped import DiscreteGaussian, DiscreteLaplace, Rounded, Uniform

__all__ = [
    "AdditiveNoise",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Gaussian",
    "Laplace",
    "Rounded",
    "Uniform",
]
