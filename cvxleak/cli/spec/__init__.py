"""The schema of SPEC.toml. docs/specs.md documents it; the tests compare the two."""

from cvxleak.cli.spec.audits import Adversary, Audit
from cvxleak.cli.spec.designs import Design
from cvxleak.cli.spec.desks import Desk
from cvxleak.cli.spec.distortions import Absolute, Cost, DistortionMatrix, Hamming, Squared
from cvxleak.cli.spec.envelopes import Envelope
from cvxleak.cli.spec.local_dp import LocalDP
from cvxleak.cli.spec.mechanisms import (
    BinarySymmetric,
    Constant,
    DiscretizedGaussian,
    DiscretizedLaplace,
    Exponential,
    GeneralizedSymmetric,
    Identity,
    LaplaceThreshold,
    Matrix,
    Noise,
    PmlExtremal,
    RandomizedResponse,
    RandomRounding,
    RankExponential,
    TruncatedGeometric,
)
from cvxleak.cli.spec.priors import Source
from cvxleak.cli.spec.problems import Problem
from cvxleak.cli.spec.queries import Count, ModularSum, PairSum, Parity, Query, Space, Table
from cvxleak.cli.spec.section import Section
from cvxleak.cli.spec.sources import Box, Laws, Polytope, Sample, Sources
from cvxleak.cli.spec.spec import Spec

__all__ = [
    "Absolute",
    "Adversary",
    "Audit",
    "BinarySymmetric",
    "Box",
    "Constant",
    "Cost",
    "Count",
    "Design",
    "Desk",
    "DiscretizedGaussian",
    "DiscretizedLaplace",
    "DistortionMatrix",
    "Envelope",
    "Exponential",
    "GeneralizedSymmetric",
    "Hamming",
    "Identity",
    "LaplaceThreshold",
    "Laws",
    "LocalDP",
    "Matrix",
    "ModularSum",
    "Noise",
    "PairSum",
    "Parity",
    "PmlExtremal",
    "Polytope",
    "Problem",
    "Query",
    "RandomRounding",
    "RandomizedResponse",
    "RankExponential",
    "Sample",
    "Section",
    "Source",
    "Sources",
    "Space",
    "Spec",
    "Squared",
    "Table",
    "TruncatedGeometric",
]
