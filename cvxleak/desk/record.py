"""`Record`: one release as the ledger stores it, read back strictly."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from typing import Any

from cvxleak.core.errors import CertificateError, CvxleakError, ValidationError
from cvxleak.desk.answers import Release
from cvxleak.desk.budgets import party_name
from cvxleak.desk.history import Entry
from cvxleak.desk.kernels import GRID, Kernel
from cvxleak.kernel.reading import pack
from cvxleak.model import Channel, Distortion
from cvxleak.proofs import reading

__all__ = ["Record", "identical"]


def identical(one: Any, other: Any) -> bool:
    """Whether two pieces of JSON are written alike, where 1 is neither 1.0 nor true."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


@dataclass(frozen=True)
class Record:
    """A release: the party, its request and budgets, the kernel, and the output.

    Attributes
    ----------
    number : int
        Its place in the ledger, from 1.
    party : str
    request : Channel
        p(r|x).
    distortion : Distortion
        d(r, rhat), on the labels of R.
    epsilon, delta : float
        The budgets, in nats.
    kernel : array, shape (seen, |X|, |R|)
        p(rhat | seen, x) times `GRID`.
    looks : bool
        Whether the kernel depends on the party's own earlier outputs.
    expected_distortion : tuple of float
        Lower and upper bound on the least one, both proved; the kernel has the upper one.
    copy_of : int or None
        The earlier release that it repeats.
    output : int
        The column that was drawn.
    """

    number: int
    party: str
    request: Channel
    distortion: Distortion
    epsilon: float
    delta: float
    kernel: Kernel
    looks: bool
    expected_distortion: tuple[float, float]
    copy_of: int | None
    output: int

    def to_dict(self) -> dict[str, Any]:
        """Return the record as plain data, without its number."""
        packed = {
            "request": self.request.to_dict(),
            "distortion": self.distortion.to_dict(),
            "kernel": pack(self.kernel, "<i4"),
            "expected_distortion": list(self.expected_distortion),
        }
        return {name: packed.get(name, getattr(self, name)) for name in self._keys()}

    @classmethod
    def from_dict(cls, number: int, content: Any) -> Record:
        """Return the record that `to_dict` wrote.

        Raises
        ------
        ValidationError
            Anything else: a part that is missing, has another type, or does not fit the others.
        """
        try:
            return cls._read(number, content)
        except (CvxleakError, KeyError, TypeError, ValueError, RecursionError) as error:
            detail = error.detail if isinstance(error, CvxleakError) else repr(error)
            raise ValidationError(f"path: release {number} is damaged: {detail:.200}") from error

    @classmethod
    def _keys(cls) -> list[str]:
        return [field.name for field in fields(cls) if field.name != "number"]

    @classmethod
    def _read(cls, number: int, content: Any) -> Record:
        reading.parts(content, {*cls._keys()}, "a row")
        request = Channel.from_dict(content["request"])
        distortion = Distortion.from_dict(content["distortion"])
        for part, name in ((request, "request"), (distortion, "distortion")):
            if not identical(part.to_dict(), content[name]):
                raise CertificateError(f"the {name} is not as it was recorded")
        if not distortion.inputs == distortion.outputs == request.outputs:
            raise CertificateError("the distortion and the request must have the same values")
        width = len(request.outputs)
        shape = (None, len(request.inputs), width)
        kernel = reading.unpack(content["kernel"], "the kernel", "i", shape)
        if (kernel < 0).any() or (kernel.sum(axis=2) != GRID).any():
            raise CertificateError("the kernel's rows are not probabilities")
        looks, source = content["looks"], content["copy_of"]
        if not isinstance(looks, bool):
            raise CertificateError("looks is neither true nor false")
        if source is not None and reading.count(source, "copy_of", 1) >= number:
            raise CertificateError("copy_of must be the number of an earlier release")
        output = reading.count(content["output"], "the output")
        if output >= width:
            raise CertificateError(f"found output {output}; the request has {width} outputs")
        lower, upper = reading.numbers(content["expected_distortion"], "expected_distortion", 2)
        return cls(
            number,
            party_name(content["party"], "party"),
            request,
            distortion,
            reading.number(content["epsilon"], "epsilon"),
            reading.number(content["delta"], "delta"),
            kernel,
            looks,
            (lower, upper),
            source,
            output,
        )

    @property
    def entry(self) -> Entry:
        """The release in the form that a history takes."""
        return Entry(self.party, self.kernel.tolist(), self.output, self.looks)

    @property
    def release(self) -> Release:
        """The release in the form that the desk returns."""
        return Release(
            self.number,
            self.party,
            self.request.outputs[self.output],
            self.expected_distortion,
            self.epsilon,
            self.delta,
            self.copy_of,
        )
