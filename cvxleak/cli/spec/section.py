"""`Section`: what every table of a spec has in common, and labels as TOML has them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict

__all__ = ["Label", "Section"]


def _label(value: Any) -> Any:
    if not isinstance(value, (bool, int, float, str)):
        raise ValueError(f"a label is text, a number, true or false, not {value!r:.40}")
    return value


Label = Annotated[Any, AfterValidator(_label)]


class Section(BaseModel):
    """A table of the spec: no key that is not in the schema, no type turned into another."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
