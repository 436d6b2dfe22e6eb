"""`Spec`: all tables of SPEC.toml together. A command says itself which of them it needs."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from cvxleak.cli.spec.audits import Adversary, Audit
from cvxleak.cli.spec.designs import Design
from cvxleak.cli.spec.desks import Desk
from cvxleak.cli.spec.distortions import Cost
from cvxleak.cli.spec.envelopes import Envelope
from cvxleak.cli.spec.local_dp import LocalDP
from cvxleak.cli.spec.mechanisms import Mechanism
from cvxleak.cli.spec.priors import Source
from cvxleak.cli.spec.problems import Problem
from cvxleak.cli.spec.queries import Query, Space
from cvxleak.cli.spec.section import Section
from cvxleak.cli.spec.sources import Sources

__all__ = ["Spec"]


class Spec(Section):
    """SPEC.toml, version 1.

    One spec may serve several commands: a table that a command does not look at is checked
    against the schema and otherwise left alone.
    """

    version: Literal[1]
    title: str | None = None
    query: Annotated[Query, Field(discriminator="kind")] | None = None
    space: Space | None = None
    mechanism: Annotated[Mechanism, Field(discriminator="kind")] | None = None
    adversary: Adversary = Adversary()
    audit: Audit = Audit()
    prior: Source | None = None
    sources: Annotated[Sources, Field(discriminator="kind")] | None = None
    distortion: Annotated[Cost, Field(discriminator="kind")] | None = None
    envelope: Envelope = Envelope()
    local_dp: LocalDP | None = None
    design: Design | None = None
    desk: Desk | None = None
    problem: Problem | None = None

    @model_validator(mode="after")
    def _one_space(self) -> Spec:
        if self.query is not None and self.space is not None:
            raise ValueError("either [query] or [space] is needed, and not both")
        return self
