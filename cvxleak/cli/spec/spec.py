"""The tables of SPEC.toml that have one form, and `Spec`: all tables together.

A command says itself which of them it needs. What can be of several kinds has a module of its own.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import ConfigDict, Field, model_validator

from cvxleak.cli.spec.distortions import Cost
from cvxleak.cli.spec.mechanisms import Mechanism
from cvxleak.cli.spec.queries import Query, Space
from cvxleak.cli.spec.section import Floor, Label, Number, Section, Tagged
from cvxleak.cli.spec.sources import Sources
from cvxleak.cli.spec.tables import CountTable

__all__ = [
    "Adversary",
    "Audit",
    "Design",
    "Desk",
    "Envelope",
    "Explain",
    "LocalDP",
    "Problem",
    "Source",
    "Spec",
]


KNOWLEDGE = {
    "independent": ("least_probability", "record_floor", "laws"),
    "marginals": ("law", "records"),
    "expectation": ("values", "records", "at_least", "at_most", "equals"),
    "relative-entropy": ("radius", "laws", "prior"),
}
"""The keys of [adversary] that each kind of knowledge has."""


class Adversary(Section):
    """[adversary]: least entropies of the adversaries' beliefs, and what else is known of them."""

    entropy_floors: list[Floor] = Field(default=[0.0], min_length=1)
    unit: Literal["nats", "bits"] | None = None
    kind: Literal["independent", "marginals", "expectation", "relative-entropy"] | None = None
    least_probability: Number | None = None
    record_floor: Number | None = None
    laws: list[list[Number]] | list[list[list[Number]]] | None = None
    law: list[Number] | None = None
    records: list[int] | None = Field(default=None, min_length=1)
    values: list[Number] | None = None
    at_least: Number | None = None
    at_most: Number | None = None
    equals: Number | None = None
    radius: Number | None = None
    prior: list[Number] | None = None

    def known(self) -> dict[str, Any]:
        """Return the keys that are of its kind."""
        names = KNOWLEDGE.get(self.kind or "", ())
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}

    @model_validator(mode="after")
    def _of_a_kind(self) -> Adversary:
        for name in dict.fromkeys(name for names in KNOWLEDGE.values() for name in names):
            if name not in KNOWLEDGE.get(self.kind or "", ()) and getattr(self, name) is not None:
                kinds = [f'"{kind}"' for kind, names in KNOWLEDGE.items() if name in names]
                raise ValueError(f"{name} is for kind = {' or '.join(kinds)}")
        return self


class Audit(Section):
    """[audit]: whose leakage is asked for, the worst record's if nothing is said, and what else."""

    records: list[int] | None = Field(default=None, min_length=1)
    group_sizes: list[int] = Field(default=[1], min_length=1)
    epsilons: list[Number] = Field(default=[])
    outputs: list[Label] = Field(default=[])
    gain: Tagged | None = None
    form: Literal["posterior", "rise", "factor"] | None = None

    @model_validator(mode="after")
    def _form_of_a_gain(self) -> Audit:
        if self.form is not None and self.gain is None:
            raise ValueError("form is for a gain, which is missing")
        return self


class Explain(Section):
    """[explain]: at which levels, orders and errors `explain` says what privacy means."""

    epsilons: list[Number] | None = None
    orders: list[Number] | None = None
    false_alarms: list[Number] | None = None
    tries: int | None = None


class Source(Section):
    """[prior]: the distribution of a local mechanism's one record, as counts or frequencies."""

    either: ClassVar[tuple[str, ...]] = ("counts", "file")

    counts: dict[str, Number] | None = None
    file: str | None = None
    source: str | None = None


class Envelope(Section):
    """[envelope]: where the PML envelope, and its inverse, are wanted."""

    delta: list[Number] = Field(default=[])
    epsilon: list[Number] = Field(default=[])
    unit: Literal["nats", "bits"] | None = None


class LocalDP(Section):
    """[local_dp]: a budget of distortion under the worst source, or one of privacy."""

    either: ClassVar[tuple[str, ...]] = ("distortion_budget", "epsilon")

    distortion_budget: Number | None = None
    epsilon: Number | None = None
    delta: Number = 0.0
    unit: Literal["nats", "bits"] | None = None


class Design(Section):
    """[design]: what is minimized, within which budget, and against whom."""

    minimize: Literal["leakage", "distortion"]
    budget: Number
    entropy_floor: Floor | None = None
    unit: Literal["nats", "bits"] | None = None
    objective: Literal["record", "group", "total"] = "record"
    size: int = 1
    outputs: list[Label] | None = Field(default=None, min_length=1)
    sources: list[list[Number]] | None = Field(default=None, min_length=1)
    priors: list[list[Number]] | None = Field(default=None, min_length=1)
    rows: Literal["auto", "orbits", "datasets", "query"] = "auto"


class Coalition(Section):
    """Parties who may pool what they got, and what they may learn together."""

    parties: list[str] = Field(min_length=2)
    budget: Number


class Desk(Section):
    """[desk]: what each party, all parties together, and some coalitions may learn."""

    epsilon: Number | dict[str, Number]
    delta: Number
    unit: Literal["nats", "bits"] | None = None
    mode: Literal["ex_ante", "realized"] = "ex_ante"
    coalitions: list[Coalition] = Field(default=[])


class Problem(Section):
    """[problem]: one of the registry; its other keys are the arguments of its class."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True)

    kind: str
    unit: Literal["nats", "bits"] | None = None

    def data(self) -> dict[str, Any]:
        """Return the keys that are arguments."""
        return dict(self.__pydantic_extra__ or {})


class Spec(Section):
    """SPEC.toml, version 1.

    One spec may serve several commands: a table that a command does not look at is checked
    against the schema and otherwise left alone.
    """

    version: Literal[1]
    title: str | None = None
    query: Annotated[Query, Field(discriminator="kind")] | None = None
    space: Space | None = None
    table: CountTable | None = None
    mechanism: Annotated[Mechanism, Field(discriminator="kind")] | None = None
    adversary: Adversary = Adversary()
    audit: Audit = Audit()
    explain: Explain = Explain()
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
        stated = [name for name in ("query", "space", "table") if getattr(self, name) is not None]
        if len(stated) > 1:
            names = " and ".join(f"[{name}]" for name in stated)
            raise ValueError(f"either [query], [space] or [table] is needed; found {names}")
        return self
