"""The schema of SPEC.toml. docs/specs.md documents it; the tests compare the two."""

from cvxleak.cli.spec.audits import Adversary, Audit
from cvxleak.cli.spec.designs import Design
from cvxleak.cli.spec.desks import Desk
from cvxleak.cli.spec.distortions import Cost, DistortionMatrix
from cvxleak.cli.spec.envelopes import Envelope
from cvxleak.cli.spec.local_dp import LocalDP
from cvxleak.cli.spec.mechanisms import Mechanism, Setting
from cvxleak.cli.spec.priors import Source
from cvxleak.cli.spec.problems import Problem
from cvxleak.cli.spec.queries import Query, Space
from cvxleak.cli.spec.section import Section
from cvxleak.cli.spec.sources import Box, Laws, Polytope, Sample, Sources
from cvxleak.cli.spec.spec import Spec

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
