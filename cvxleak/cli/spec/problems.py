"""[problem]: any problem, by its name and data."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import ConfigDict

from cvxleak.cli.spec.section import Section

__all__ = ["Problem"]


class Problem(Section):
    """A problem of the registry; its other keys are the arguments of its class."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True)

    kind: str
    unit: Literal["nats", "bits"] | None = None

    def data(self) -> dict[str, Any]:
        """Return the keys that are arguments."""
        return dict(self.__pydantic_extra__ or {})
