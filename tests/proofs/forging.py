"""What the tests with forged certificates share: honest parts, tampered with in one place.

Honest parts are written by hand, with numbers that floats hold exactly, so that nothing is searched
for and the mutants of the checker (`tests/mutation`) are told from it in milliseconds.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import flint
import pytest
from flint import arb

from cvxleak.core.errors import CertificateError, CvxleakError
from cvxleak.kernel.numbers import precision
from cvxleak.proofs.checker import PROVERS

Path = tuple[Any, ...]


class Parts(NamedTuple):
    """What a prover is given, under the kind that chooses it."""

    kind: str
    problem: dict[str, Any]
    witness: dict[str, Any]
    proof: dict[str, Any]


def ends(parts: Parts) -> tuple[float, float]:
    """Return what these parts prove."""
    with precision():
        lower, upper, *missing = PROVERS[parts.kind].prove(
            parts.problem, parts.witness, parts.proof
        )
    if missing and missing[0]:
        raise CertificateError(missing[0])
    return lower, upper


def tampered(parts: Parts, changes: Mapping[Path, Any]) -> Parts:
    """Return the parts with some of them replaced; a function is given what stands there."""
    result = Parts(parts.kind, *map(_copied, parts[1:]))
    for path, value in changes.items():
        part: Any = result._asdict()
        for key in path[:-1]:
            part = part[key]
        part[path[-1]] = value(part[path[-1]]) if callable(value) else _copied(value)
    return result


def _copied(value: Any) -> Any:
    # Not `copy.deepcopy`: what stands in two places is to be changed in one of them.
    if isinstance(value, dict):
        return {key: _copied(part) for key, part in value.items()}
    return [_copied(part) for part in value] if isinstance(value, list) else value


def refused(parts: Parts, changes: Mapping[Path, Any], reason: str) -> None:
    """Make sure that the parts are refused once they are changed, for this reason."""
    with pytest.raises(CvxleakError, match=reason):
        ends(tampered(parts, changes))


def encloses(parts: Parts, truth: Callable[[], arb] | float, width: float = 1e-12) -> None:
    """Make sure that the parts prove ends on either side of the truth, rounded outwards."""
    lower, upper = ends(parts)
    with flint.ctx.workprec(300):
        exact = arb(truth() if callable(truth) else truth)
        assert arb(lower) < exact if exact > 0 else lower == 0
        assert exact < arb(upper) if exact > 0 else upper == 0
    assert upper - lower <= width


def numbers(value: Any, path: Path) -> Iterator[Path]:
    """Return where the numbers are."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from numbers(part, (*path, key))
    elif isinstance(value, list):
        for i, part in enumerate(value):
            yield from numbers(part, (*path, i))
    elif type(value) in (int, float):
        yield path


CHANGES: list[Callable[[float], float]] = [
    lambda v: -v,
    lambda v: v + 1,
    lambda v: v - 1,
    lambda v: 2 * v,
    lambda v: v * 1.001,
    lambda v: v * 0.999,
    lambda v: type(v)(0),
    lambda v: v + 1000,
]


def proves_nothing_false(
    parts: Parts, least: float, most: float, *, where: tuple[str, ...] = ("witness", "proof")
) -> None:
    """Make sure that no other number in the witness or the proof proves what is not true.

    The truth is between `least` and `most`, up to 1e-9.
    """
    for part in where:
        for path in numbers(getattr(parts, part), (part,)):
            for change in CHANGES:
                try:
                    lower, upper = ends(tampered(parts, {path: change}))
                except (CvxleakError, ValueError, ArithmeticError):
                    continue
                assert not math.isnan(lower), path
                assert not math.isnan(upper), path
                assert lower <= most + 1e-9, path
                assert upper >= least - 1e-9, path
