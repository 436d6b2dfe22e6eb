"""Reading SPEC.toml: one readable line, with the key's path, for each thing that is wrong."""

from __future__ import annotations

import difflib
import tomllib
import types
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic import ValidationError as SchemaError

from cvxleak.cli.spec import Spec
from cvxleak.core.errors import ValidationError
from cvxleak.core.numbers import as_written

__all__ = ["check_spec", "is_list", "models_of", "read_number", "read_toml"]

EXPECTED = {
    "int_type": "an integer",
    "bool_type": "true or false",
    "float_type": "a number",
    "string_type": "text",
    "list_type": "a list",
    "dict_type": "a table",
    "model_type": "a table",
    "model_attributes_type": "a table",
}


def read_toml(data: bytes, name: str) -> dict[str, Any]:
    """Return what is in the bytes of a TOML file."""
    try:
        return tomllib.loads(data.decode("utf-8-sig"), parse_float=read_number)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        remedy = (
            "; cvxleak capacity takes a CSV file of a channel, and cvxleak audit --samples, "
            "--microdata or --published one of data"
            if name.lower().endswith(".csv")
            else "; docs/specs.md describes what a spec has"
        )
        raise ValidationError(f"{name}: not a TOML file: {error}{remedy}") from error
    except OverflowError as error:
        raise ValidationError(f"{name}: a number in it is too large for a float") from error


def read_number(text: str) -> float:
    """Return a number of TOML as written."""
    return as_written(text.replace("_", ""))


def check_spec(content: Mapping[str, Any], name: str) -> Spec:
    """Return the spec with this content, or say a line for each thing that is wrong."""
    version = content.get("version")
    if type(version) is int and version != 1:
        raise ValidationError(f"{name}: version: found {version}; this cvxleak reads version 1")
    try:
        return Spec.model_validate(content)
    except SchemaError as error:
        lines = list(dict.fromkeys(_line(dict(detail)) for detail in error.errors()))
        raise ValidationError("\n".join(f"{name}: {line}" for line in lines)) from error


def is_list(section: str, key: str) -> bool:
    """Whether the schema wants a list for a key."""
    field = Spec.model_fields.get(section)
    models = [] if field is None else models_of(field.annotation)
    kinds = [model.model_fields[key].annotation for model in models if key in model.model_fields]
    return any(list in (get_origin(kind), *map(get_origin, get_args(kind))) for kind in kinds)


def _line(error: dict[str, Any]) -> str:
    """Return what is wrong, as path: problem."""
    models, path = _walk(error["loc"])
    kind, context, found = error["type"], error.get("ctx", {}), error["input"]
    if kind == "missing":
        message = "is missing; write version = 1" if path == ["version"] else "is missing"
    elif kind == "extra_forbidden":
        known = [key for model in models for key in model.model_fields]
        message = f"unknown key; {_choice(path[-1], known)}"
        if path == ["table", "noise"]:
            message = "unknown key; the noise of each number is the section [mechanism]"
    elif kind == "union_tag_invalid":
        path = [*path, "kind"]
        tags = context["expected_tags"].replace("'", "").split(", ")
        message = f"found {found.get('kind')!r}; {_choice(found.get('kind'), tags)}"
    elif kind == "union_tag_not_found":
        message = "the key kind is missing"
    elif kind == "literal_error":
        message = f"found {found!r}; allowed: {context['expected'].replace(chr(39), '')}"
    elif kind == "finite_number":
        message = f"found {found!r}; it must be finite"
    elif kind == "too_short":
        message = "the list must not be empty"
    elif kind == "value_error":
        message = str(context["error"])
    elif kind in EXPECTED:
        message = f"expected {EXPECTED[kind]}, found {found!r:.60}"
    else:
        message = f"{error['msg']}, found {found!r:.60}"
    where = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return f"{where.removeprefix('.')}: {message}" if where else message


def _walk(location: Sequence[int | str]) -> tuple[list[type[BaseModel]], list[int | str]]:
    """Return the models at the place of an error, and its path without the tags of unions."""
    models: list[type[BaseModel]] = [Spec]
    path: list[int | str] = []
    for part in location:
        if len(models) > 1 and part in {_tag(model) for model in models}:
            # First, because a tag may also be the name of a key.
            models = [model for model in models if _tag(model) == part]
            continue
        if isinstance(part, str) and ("[" in part or "(" in part):
            continue  # the schema library's name for one of several types
        path.append(part)
        fields = [model.model_fields[part] for model in models if part in model.model_fields]
        models = [model for field in fields for model in models_of(field.annotation)] or models
    return models, path


def models_of(annotation: Any) -> list[type[BaseModel]]:
    """Return the models that a value with this annotation may have."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return models_of(get_args(annotation)[0])
    if origin in (Union, types.UnionType):
        return [model for part in get_args(annotation) for model in models_of(part)]
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return []


def _tag(model: type[BaseModel]) -> str | None:
    field = model.model_fields.get("kind")
    return None if field is None else get_args(field.annotation)[0]


def _choice(found: Any, known: list[str]) -> str:
    near = difflib.get_close_matches(str(found), known, n=1)
    return f"did you mean {near[0]}?" if near else f"known: {', '.join(known)}"
