"""`Section`: what every table of a spec has in common, and labels as TOML has them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, PlainValidator, model_validator
from pydantic_core import PydanticCustomError

from cvxleak.core.errors import ValidationError
from cvxleak.core.numbers import as_written
from cvxleak.core.tables import is_header, read_table

__all__ = ["Floor", "Label", "Number", "Percent", "Section", "Tagged", "is_bare", "numbers"]


def _tagged(value: Any) -> Any:
    if not isinstance(value, str | dict):
        raise ValueError(f"expected text, or a table with the key kind; found {value!r:.40}")
    return value


def _label(value: Any) -> Any:
    if not isinstance(value, (bool, int, float, str)):
        raise ValueError(f"a label is text, a number, true or false, not {value!r:.40}")
    return value


def _number(value: Any) -> float:
    try:
        found = as_written(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise PydanticCustomError("float_type", "expected a number") from error
    if not math.isfinite(found):
        raise PydanticCustomError("finite_number", "the number is not finite")
    return found


class Percent(float):
    """A share of the largest entropy, that of the uniform prior, in percent as text: "90%"."""

    @classmethod
    def read(cls, value: Any) -> Any:
        """Return text that ends in % as a share from 0 to 1, and anything else as it is.

        Raises
        ------
        ValidationError
            No number before the sign, or one beyond 100.
        """
        if not (isinstance(value, str) and value.rstrip().endswith("%")):
            return value
        try:
            percent = as_written(value.rstrip()[:-1])
        except (TypeError, ValueError, OverflowError):
            percent = math.nan
        if not 0 <= percent <= 100:
            raise ValidationError(f'found {value!r:.40}; a share is from "0%" to "100%"')
        return cls(percent / 100)


def _floor(value: Any) -> float:
    try:
        found = Percent.read(value)
    except ValidationError as error:
        raise ValueError(str(error)) from error
    return found if isinstance(found, Percent) else _number(found)


Floor = Annotated[float, PlainValidator(_floor)]
"""An entropy floor: a number as written, or a `Percent` of the largest entropy."""

Number = Annotated[float, PlainValidator(_number)]
"""A number as written: a number of TOML, or text such as "1/3"."""

Tagged = Annotated[Any, AfterValidator(_tagged)]
"""What has a kind: its name as text, or a table with the key `kind` and what belongs to it."""

Label = Annotated[Any, AfterValidator(_label)]
"""A name of an input, an output or a value: text, a number, true or false."""


class Section(BaseModel):
    """A table of the spec: no key that is not in the schema, no type turned into another."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    either: ClassVar[tuple[str, ...]] = ()
    """Keys of which a table has exactly one."""

    @model_validator(mode="after")
    def _one_of_them(self) -> Self:
        if self.either and sum(getattr(self, key) is not None for key in self.either) != 1:
            raise ValueError(f"either {' or '.join(self.either)} is needed, and not both")
        return self


def numbers(labels: Iterable[Any]) -> list[float]:
    """Return labels that are numbers, or say which one is none."""
    found = list(labels)
    for label in found:
        if isinstance(label, bool) or not isinstance(label, (int, float)):
            raise ValidationError(f"values that are numbers are needed; found {label!r}")
    return found


def is_bare(path: Path) -> bool:
    """Whether a CSV file has no labels: its very first cell is a number."""
    return not is_header(read_table(path)[0], 1, path)
