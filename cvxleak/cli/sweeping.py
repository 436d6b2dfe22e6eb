"""A spec at many points: which number is swept, and how one point is solved."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import tomllib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cvxleak.cli.reading import read_number
from cvxleak.cli.spec_file import Given
from cvxleak.core.errors import ValidationError
from cvxleak.core.numbers import to_json
from cvxleak.problem.bound import Bound, converted

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "CURVES",
    "NUMBERS",
    "SpecPoint",
    "choose_number",
    "files_of",
    "points_of",
    "read_grid",
    "sweep_title",
]

Point = Mapping[str, Any]

NUMBERS = {"audit": 1e-4, "envelope": 1e-9, "local-dp": 1e-9, "design": 1e-3, "solve": None}
"""What can be swept, with the tolerance if none is given, as in the command of that name."""

CURVES = {"audit": "adversary.entropy_floors", "design": "design.budget"}
"""The key along which all points of a number can be solved at once."""


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


def points_of(given: Given, grid: Mapping[str, Sequence[Any]]) -> list[Given]:
    """Return the spec at every point, each checked against the schema."""
    return [
        given.having(dict(zip(grid, values, strict=True)))
        for values in itertools.product(*grid.values())
    ]


def choose_number(given: Given) -> str:
    """Return which command's number a spec is about, by its sections.

    Raises
    ------
    ValidationError
        More than one.
    """
    spec = given.spec
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
        raise ValidationError(f"{given.path}: --of {' or '.join(found)} is needed")
    return found[0] if found else "audit"


def files_of(points: Sequence[Given]) -> dict[str, str]:
    """Return the hash of each file that the spec names at some point."""
    files: dict[str, str] = {}
    for point in points:
        point.look_up_files()
        files |= point.files
    return files


def sweep_title(points: Sequence[Given], number: str, units: str, tol: float | None) -> str:
    """Return what a file of results is about: equal for equal specs, files and options only."""
    identity = points[0].identity() | {"files": files_of(points)}
    identity |= {"of": number, "units": units, "tol": tol}
    digest = hashlib.sha256(json.dumps(to_json(identity), sort_keys=True).encode()).hexdigest()
    return f"{points[0].name}, {number}, {digest}"


class SpecPoint:
    """Solves a spec with some of its keys changed; it travels to other processes.

    Parameters
    ----------
    given : Given
    number : str
        One of `NUMBERS`.
    units : str
    tol : float
    time_limit : float
        Seconds for a point.
    along : str, optional
        The key of `CURVES` that comes with a tuple of values; one bound for each is returned.
    """

    def __init__(
        self,
        given: Given,
        number: str,
        units: str,
        tol: float | None,
        time_limit: float,
        along: str | None = None,
    ) -> None:
        self.given, self.number, self.units, self.along = given, number, units, along
        self.options: dict[str, Any] = {"tol": tol, "time_limit": time_limit}

    def __call__(self, **point: Any) -> Bound | list[Bound]:
        """Return the bound at a point, in the units asked for; along a curve a list of them."""
        if self.along is None:
            return self._one(point)
        values = point[self.along]
        if len(values) == 1:
            return [self._one(point | {self.along: values[0]})]
        given = self.given.having(point | {self.along: values[0]})
        order = sorted(values)
        curve = self._leakages if self.number == "audit" else self._designs
        bounds = curve(given, order, {**self.options, "time_limit": self._seconds(len(order))})
        found = dict(zip(order, bounds, strict=True))
        return [found[value].to(self.units) for value in values]

    def _seconds(self, points: int) -> float:
        return points * self.options["time_limit"]

    def _one(self, point: Point) -> Bound:
        changes = dict(point)
        if "envelope.epsilon" in point:
            changes.setdefault("envelope.delta", [])
        given = self.given.having(changes)
        solve: Callable[[Given], Bound] = getattr(self, f"_{self.number.replace('-', '_')}")
        return solve(given).to(self.units)

    def _audit(self, given: Given) -> Bound:
        from cvxleak.audit import RecordLeakage
        from cvxleak.cli.building import build_task

        task = build_task(given)
        known, asked = given.spec.adversary, given.spec.audit
        floor = _only(known.entropy_floors, "adversary.entropy_floors")
        size = _only(asked.group_sizes, "audit.group_sizes")
        record = _record(given)
        with given.at("adversary.entropy_floors", naming=False):
            nats = converted(floor, known.unit or self.units)
            problem = RecordLeakage(task.mechanism, nats, record, size)
        return problem.solve(**self.options)

    def _leakages(
        self, given: Given, floors: Sequence[float], options: dict[str, Any]
    ) -> Sequence[Bound]:
        from cvxleak.audit import leakage_curve
        from cvxleak.cli.building import build_task

        size = _only(given.spec.audit.group_sizes, "audit.group_sizes")
        if size != 1:
            raise ValidationError(f"audit.group_sizes: found {size}; a curve is about one record")
        task = build_task(given)
        unit = given.spec.adversary.unit or self.units
        nats = [converted(floor, unit) for floor in floors]
        return leakage_curve(task.mechanism, nats, _record(given), **options).bounds

    def _designs(
        self, given: Given, budgets: Sequence[float], options: dict[str, Any]
    ) -> Sequence[Bound]:
        from cvxleak.cli.statements import design_problem
        from cvxleak.design import design_curve

        problem = design_problem(given, self.units)
        wanted = given.spec.design
        assert wanted is not None
        unit = wanted.unit or self.units if wanted.minimize == "distortion" else "nats"
        nats = [converted(budget, unit) for budget in budgets]
        return design_curve(problem, nats, **options).bounds

    def _envelope(self, given: Given) -> Bound:
        from cvxleak.cli.building import build_local
        from cvxleak.envelope import failure_probability, pml_envelope

        prior, channel = build_local(given, "envelope")
        asked = given.spec.envelope
        with given.at("envelope"):
            if asked.epsilon and not asked.delta:
                level = _only(asked.epsilon, "envelope.epsilon")
                nats = converted(level, asked.unit or self.units)
                return failure_probability(prior, channel, nats, **self.options)
            delta = _only(asked.delta, "envelope.delta")
            return pml_envelope(prior, channel, delta, **self.options)

    def _local_dp(self, given: Given) -> Bound:
        from cvxleak.cli.statements import local_dp_arguments
        from cvxleak.local_dp import min_distortion_local_dp, min_local_dp

        arguments = local_dp_arguments(given, self.units)
        epsilon, budget = arguments.pop("epsilon"), arguments.pop("budget")
        with given.at("local_dp"):
            if budget is None:
                nats = converted(epsilon, self.units)
                return min_distortion_local_dp(epsilon=nats, **arguments, **self.options)
            return min_local_dp(budget=budget, **arguments, **self.options)

    def _solve(self, given: Given) -> Bound:
        from cvxleak.cli.problems import build_problem

        problem = build_problem(given, self.units)
        with given.at("problem"):
            return problem.solve(**self.options)

    def _design(self, given: Given) -> Bound:
        from cvxleak.cli.statements import design_problem

        problem = design_problem(given, self.units)
        with given.at("design"):
            return problem.solve(**self.options)


def _record(given: Given) -> int | None:
    records = given.spec.audit.records
    return None if records is None else _only(records, "audit.records")


def _only(values: Sequence[Any], key: str) -> Any:
    if len(values) != 1:
        raise ValidationError(f"{key}: found {len(values)} values; a point of a sweep has one")
    return values[0]
