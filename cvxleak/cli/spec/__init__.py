"""The schema of SPEC.toml. docs/specs.md documents it; the tests compare the two."""

from cvxleak.cli.spec.distortions import Cost, DistortionMatrix
from cvxleak.cli.spec.mechanisms import Mechanism, Setting
from cvxleak.cli.spec.queries import Query, Space
from cvxleak.cli.spec.section import Section
from cvxleak.cli.spec.sources import Box, Laws, Polytope, Sample, Sources
from cvxleak.cli.spec.spec import (
    Adversary,
    Audit,
    Design,
    Desk,
    Envelope,
    LocalDP,
    Problem,
    Source,
    Spec,
)

__all__ = [
    "Adversary",
    "Audit",
    "Box",
    "Cost",
    "Design",
    "Desk",
    "DistortionMatrix",
    "Envelope",
    "Laws",
    "LocalDP",
    "Mechanism",
    "Polytope",
    "Problem",
    "Query",
    "Sample",
    "Section",
    "Setting",
    "Source",
    "Sources",
    "Space",
    "Spec",
]
