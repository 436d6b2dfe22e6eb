"""A spec at many points: which number is swept, and how one point is solved."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

from cvxleak.cli.problems import TABLES, problem_of
from cvxleak.cli.reading import read_number
from cvxleak.cli.spec_file import SpecFile
from cvxleak.core.errors import ValidationError
from cvxleak.core.numbers import to_json
from cvxleak.problem.bound import Bound

__all__ = [
    "SpecPoint",
    "choose_number",
    "curve_key",
    "files_of",
    "points_of",
    "read_grid",
    "sweep_title",
]

Point = Mapping[str, Any]

CURVES = {"record-leakage": "entropy_floor", "min-leakage": "budget", "min-distortion": "budget"}
"""The argument of a problem along which all points can be solved at once."""


def read_grid(over: Sequence[str]) -> dict[str, list[Any]]:
    """Return the values of each key in texts such as ``mechanism.epsilon=0.5,1,2``.

    The values are read as TOML has them; what is no TOML is text.

    Raises
    ------
    ValidationError
        A text without a key or without values, a key that comes twice, or lists as values.
    """
    grid: dict[str, list[Any]] = {}
    for text in over:
        key, found, values = text.partition("=")
        key = key.strip()
        if not found or not key or not values.strip():
            raise ValidationError(f"--over: found {text!r}; section.key=value,value,... is needed")
        if key in grid:
            raise ValidationError(f"--over: {key} is there twice")
        try:
            grid[key] = tomllib.loads(f"values = [{values}]", parse_float=read_number)["values"]
        except tomllib.TOMLDecodeError:
            grid[key] = [value.strip() for value in values.split(",")]
        # JSON has no infinity, and text is read as the number that it is.
        grid[key] = [str(x) if isinstance(x, float) and math.isinf(x) else x for x in grid[key]]
        if not all(isinstance(value, (bool, int, float, str)) for value in grid[key]):
            raise ValidationError(f"--over: {key}: numbers, text, true or false are needed")
    return grid


def points_of(spec_file: SpecFile, grid: Mapping[str, Sequence[Any]]) -> list[SpecFile]:
    """Return the spec at every point, each checked against the schema."""
    return [
        spec_file.having(dict(zip(grid, values, strict=True)))
        for values in itertools.product(*grid.values())
    ]


def choose_number(spec_file: SpecFile) -> str:
    """Return which command's number a spec is about, by its sections.

    Raises
    ------
    ValidationError
        More than one.
    """
    spec = spec_file.spec
    found = [
        name
        for name, there in (
            ("envelope", bool(spec.envelope.delta or spec.envelope.epsilon)),
            ("local-dp", spec.local_dp is not None),
            ("design", spec.design is not None),
            ("solve", spec.problem is not None),
        )
        if there
    ]
    if len(found) > 1:
        raise ValidationError(f"{spec_file.path}: --of {' or '.join(found)} is needed")
    return found[0] if found else "audit"


def curve_key(spec_file: SpecFile, number: str) -> str | None:
    """Return the key along which all points of a number can be solved at once, if there is one."""
    if number == "solve" and spec_file.spec.problem is not None:
        name = CURVES.get(spec_file.spec.problem.kind)
        return name and f"problem.{name}"
    return {"audit": "adversary.entropy_floors", "design": "design.budget"}.get(number)


def files_of(points: Sequence[SpecFile]) -> dict[str, str]:
    """Return the hash of each file that the spec names at some point."""
    files: dict[str, str] = {}
    for point in points:
        point.look_up_files()
        files |= point.files
    return files


def sweep_title(points: Sequence[SpecFile], number: str, units: str, tol: float | None) -> str:
    """Return what a file of results is about: equal for equal specs, files and options only."""
    identity = points[0].identity() | {"files": files_of(points)}
    identity |= {"of": number, "units": units, "tol": tol}
    digest = hashlib.sha256(json.dumps(to_json(identity), sort_keys=True).encode()).hexdigest()
    return f"{points[0].name}, {number}, {digest}"


class SpecPoint:
    """Solves a spec with some of its keys changed; it travels to other processes.

    Parameters
    ----------
    spec_file : SpecFile
    number : str
        One of `cvxleak.cli.problems.TABLES`.
    units : str
    limits : mapping
        ``tol``, and ``time_limit`` and ``work_limit`` of a point.
    along : str, optional
        The key that `curve_key` names, if it comes with a tuple of values; one bound for each is
        returned.
    """

    def __init__(
        self,
        spec_file: SpecFile,
        number: str,
        units: str,
        limits: Mapping[str, Any],
        along: str | None = None,
    ) -> None:
        self.spec_file, self.number, self.units, self.along = spec_file, number, units, along
        self.options = dict(limits)

    def __call__(self, **point: Any) -> Bound | list[Bound]:
        """Return the bound at a point, in the units asked for; along a curve a list of them."""
        if self.along is None:
            return self._one(point)
        values = point[self.along]
        if len(values) == 1:
            return [self._one(point | {self.along: values[0]})]
        spec_file = self.spec_file.having(point | {self.along: values[0]})
        order = sorted(values)
        found = dict(zip(order, self._curve(spec_file, order), strict=True))
        return [found[value].to(self.units) for value in values]

    def _one(self, point: Point) -> Bound:
        changes = dict(point)
        if "envelope.epsilon" in point:
            changes.setdefault("envelope.delta", [])
        spec_file = self.spec_file.having(changes)
        problem = problem_of(self.number, spec_file, self.units)
        with spec_file.at(TABLES[self.number], naming=self.number != "audit"):
            return problem.solve(**self.options).to(self.units)

    def _curve(self, spec_file: SpecFile, values: Sequence[float]) -> Sequence[Bound]:
        """Return a bound for each value, of a spec that has the first one."""
        from cvxleak.audit import leakage_curve
        from cvxleak.design import design_curve

        assert self.along is not None
        problem = problem_of(self.number, spec_file, self.units)
        section, _, key = self.along.partition(".")
        name = "budget" if key == "budget" else "entropy_floor"
        unit = getattr(spec_file.spec, section).unit or self.units
        nats = [problem.in_nats({name: value}, unit)[name] for value in values]
        seconds = self.options["time_limit"]
        options = {
            "tol": problem.tolerance if self.options["tol"] is None else self.options["tol"],
            "time_limit": None if seconds is None else len(values) * seconds,
            "work_limit": self.options["work_limit"],
        }
        if name == "budget":
            return design_curve(problem, nats, **options).bounds
        if problem.size != 1:
            raise ValidationError(f"size: found {problem.size}; a curve is about one record")
        known = problem.adversaries or None
        options["adversaries"] = known
        return leakage_curve(problem.mechanism, nats, problem.records, **options).bounds
