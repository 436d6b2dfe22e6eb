"""`Problem`: the base class of all problems; a family adds only what is specific to a problem."""

from __future__ import annotations

import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, ClassVar, Protocol, Self

from cvxleak.core.clock import WORK_LIMIT, Clock, Stop
from cvxleak.core.errors import (
    CertificateError,
    CvxleakError,
    SolveInterrupted,
    ValidationError,
)
from cvxleak.core.numbers import as_written
from cvxleak.core.validation import Array, instance
from cvxleak.core.value import Value
from cvxleak.kernel.numbers import precision
from cvxleak.problem.bound import Bound, Status, Stopped, converted
from cvxleak.problem.candidates import plain
from cvxleak.problem.check import Check, feasibility_tolerance
from cvxleak.problem.gap import Gap
from cvxleak.problem.interrupts import Interrupts
from cvxleak.problem.threads import one_thread
from cvxleak.proofs import Certificate
from cvxleak.proofs.checker import PROVERS

__all__ = ["Found", "Problem", "Search", "Toward", "mixtures"]


REMEDIES = {
    "unit": '; a bound is converted by bound.to("bits")',
    "units": '; a bound is converted by bound.to("bits")',
}
"""What to do instead, for options that people look for."""

SHARPER = 4
"""How often the tolerance of a search is halved, because it has counted on digits that the proof
does not have."""


@dataclass(frozen=True)
class Found:
    """What a search has at hand: a candidate, and what proves both bounds.

    Attributes
    ----------
    lower, upper : float
        As the checker proves them from the three parts below.
    witness : object
        The candidate, as the user gets it.
    parts : tuple of three mappings
        What the certificate holds of the problem, of the witness and of the proof.
    prices : mapping
        Derivatives of the value in the budgets, by the name of the argument.
    stats : mapping
        Whatever else there is to say of the way.
    feasible : bool
        Whether the witness meets all that was asked for.
    about : mapping
        What the certificate's ends are about (`Certificate.about`); an end that it leaves out is
        not claimed. Empty if both are claimed of the problem.
    attained : float, optional
        Of a set of channels: what some rows within it attain. The search closes the gap to it.
    """

    lower: float
    upper: float
    witness: Any
    parts: tuple[Mapping[str, Any], Mapping[str, Any], Mapping[str, Any]]
    prices: Mapping[str, float] = field(default_factory=dict)
    stats: Mapping[str, Any] = field(default_factory=dict)
    feasible: bool = True
    about: Mapping[str, str] = field(default_factory=dict)
    attained: float | None = None

    @property
    def searched(self) -> tuple[float, float]:
        """The ends whose gap the search closes."""
        return self.lower if self.attained is None else self.attained, self.upper

    @property
    def width(self) -> float:
        """The gap that the search closes."""
        lower, upper = self.searched
        return upper - lower


Toward = Callable[[float], tuple[Any, Mapping[str, Any]]]
"""From a share s in [0, 1] to the point (1 - s) candidate + s center of a feasible set, the center
inside of it: as the user gets it, and as a certificate holds it."""

WITNESS = 1e-6
"""Part of the scale by which a witness may differ from the attained end of its bound, at least."""

ROUNDING = 1e-13
"""What a sum of probabilities may be off by in floats."""

FURTHER = 1e-9
"""What constraints of the user's may be missed by, while a repaired candidate is sought."""

STEPS = (0.0, 1e-15, 1e-13, 1e-11, 1e-9, 1e-7, 1e-5, 1e-3)
"""How far beyond the border in floats a repaired candidate goes in turn, until it is proved."""


def mixtures(
    point: Array,
    center: Array,
    witness: Callable[[Array], Any],
    stored: Callable[[Array], Mapping[str, Any]],
) -> Toward:
    """Return the way from a point to a center, by what makes the witness and its stored form."""

    def at(share: float) -> tuple[Any, Mapping[str, Any]]:
        mixed = (1 - share) * point + share * center
        return witness(mixed), stored(mixed)

    return at


class Search(Protocol):
    """A search that can be cut short, and that goes on where it stopped."""

    def advance(self, gap: Gap, stop: Stop) -> Stopped:
        """Work until the gap is closed, `stop()` says so or nothing is left to do; say which."""
        ...

    def found(self, gap: Gap) -> Found:
        """Return the best candidate so far, with what proves both bounds."""
        ...

    def proof_seconds(self) -> float:
        """Return about how long `found` would take."""
        ...


class Once:
    """The search of a problem that one program solves; to go on is to solve it more sharply."""

    def __init__(self, run: Callable[[Gap, Clock], tuple[Found, Stopped]]) -> None:
        self._run = run
        self._found: Found | None = None

    def advance(self, gap: Gap, stop: Stop) -> Stopped:
        """Solve the program, unless what was found before is sharp enough."""
        if self._found is not None and gap.closed(*self._found.searched):
            return Stopped.TOLERANCE
        found, stopped = self._run(gap, stop.clock)
        before = self._found
        if before is None or found.width <= before.width:
            self._found = found
        return stopped

    def found(self, gap: Gap) -> Found:
        """Return the sharper of the results so far."""
        if self._found is None:  # interrupted
            self._found = self._run(gap, Clock(0.0))[0]
        return self._found

    def proof_seconds(self) -> float:
        """Return 0: the program says itself what time it has."""
        return 0.0


class Problem(Value, ABC):
    """A problem: frozen, equal by content, and solved with both bounds proved.

    A subclass is a frozen dataclass of the problem's data. It defines the search (`_search`), the
    value of a candidate (`_measure`), and the attributes below, on the class or, where they depend
    on the data, in the constructor. The base class handles the options that all problems take,
    limits, Ctrl-C, the certificate, the `Bound`, its refinement (`Bound.refine`), and the checking
    of candidates.

    Attributes
    ----------
    kind : str
        Of the certificate.
    name : str
        Of the quantity, in results.
    unit : str
        ``"nats"``, ``"bits"`` (the search and the certificate then have nats), ``"distortion"``,
        ``"probability"``, ``"utility"``, ``"gain"`` or ``"times"``.
    maximize : bool
        Whether the problem is a maximization, whose witness attains the lower bound.
    tolerance : float
        `tol` of `solve`, if it is left out.
    information : tuple of str
        Which of the data are amounts of information, in nats; a spec may give them in bits.
    convex : bool
        Whether every local optimum is global (problems that are convex, or quasi-convex, in their
        candidates).
    accuracy : float
        Accuracy of a candidate's value, relative to itself or to `scale`: rounding alone, unless
        the value takes a search.

    Examples
    --------
    >>> from cvxleak.capacities import Capacity
    >>> from cvxleak.problem import Problem
    >>> problem = Capacity([[0.9, 0.1], [0.1, 0.9]])
    >>> isinstance(problem, Problem), problem.name, problem.unit, problem.maximize
    (True, 'capacity', 'nats', True)
    >>> check = problem.check([0.4, 0.6], bound=problem.solve())
    >>> check.feasible, round(check.shortfall[0], 6)
    (True, 0.012855)
    """

    kind: str
    name: str
    unit: str = "nats"
    maximize: bool
    tolerance: float
    information: ClassVar[tuple[str, ...]] = ()
    convex: ClassVar[bool] = False
    accuracy: ClassVar[float] = 1e-12

    @property
    def meaning(self) -> str:
        """The sentence by which a report explains the value; by default the first of the class."""
        return inspect.cleandoc(type(self).__doc__ or "").split("\n\n", 1)[0].replace("\n", " ")

    @property
    def scale(self) -> float:
        """What counts as 1 for `Gap`."""
        return 1.0

    @classmethod
    def constructor(cls) -> Callable[..., Self]:
        """Return what takes the data as users give them: the class, unless it says otherwise."""
        return cls

    @classmethod
    def in_nats(cls, data: Mapping[str, Any], unit: str) -> dict[str, Any]:
        """Return arguments of the constructor, of which `information` was in `unit`, in nats.

        What is no number stays as it is: the constructor refuses it.
        """
        found = dict(data)
        for name in found.keys() & {*cls.information}:
            with suppress(TypeError, ValueError, OverflowError):
                found[name] = converted(as_written(found[name]), unit)
        return found

    def solve(
        self,
        *,
        tol: float | None = None,
        time_limit: float | None = None,
        work_limit: float | None = WORK_LIMIT,
        **options: Any,
    ) -> Bound:
        """Return a lower and an upper bound on the optimal value, both proved.

        Parameters
        ----------
        tol : float, optional
            The gap to reach: upper - lower <= max(tol |upper|, min(tol, 1e-7) scale), where the
            scale is one nat, a probability of 1, or the largest distortion or utility.
            `tolerance` if left out.
        time_limit : float, optional
            Seconds after which the bounds reached are returned (status BRACKETED). Steps that
            cannot be interrupted, and the proof of what was found, may overrun. The limit affects
            nothing but when the search ends: if it is not reached, the result is the same on any
            machine.
        work_limit : float or None
            Multiplications after which the bounds reached are returned; the default, 10^10, takes
            some ten seconds of an ordinary machine. They are counted by the search and not
            measured, so that it ends at the same place on any machine. None: no limit.
        **options
            Options of the particular problem; see its class.

        Returns
        -------
        Bound
            One bound is attained by `witness`, the other is proved by `certificate`.

        Raises
        ------
        ValidationError
            An option out of range.
        InfeasibleError
            Nothing meets the constraints.
        SolverError
            A solver failed.
        TypeError
            An option that the problem does not have.

        Notes
        -----
        Ctrl-C raises `cvxleak.core.SolveInterrupted`, a KeyboardInterrupt whose ``bound`` holds the
        proved bounds reached so far. A second Ctrl-C aborts their proof with a plain
        KeyboardInterrupt.
        """
        self._check_options(options)
        return self.go_on(lambda: self._search(**options), tol, time_limit, work_limit)

    def _check_options(self, options: Mapping[str, Any]) -> None:
        """Refuse an option that the problem does not have by the names of those that it has."""
        parameters = inspect.signature(self._search).parameters.values()
        known = ["tol", "time_limit", "work_limit", *(parameter.name for parameter in parameters)]
        stated = inspect.signature(type(self)).parameters  # what the problem is about
        for name in options:
            if name not in known:
                near = get_close_matches(name, [*known, *stated], 1)
                hint = f"; do you mean {near[0]!r}?" if near else ""
                if name in stated:
                    hint = f"; it is part of the problem: {type(self).__name__}(..., {name}=...)"
                raise TypeError(
                    f"{type(self).__name__} has no option {name!r}; it has "
                    + ", ".join(map(repr, known))
                    + REMEDIES.get(name, hint)
                )

    def check(self, candidate: Any, *, bound: Bound | None = None, **options: Any) -> Check:
        """Compare a candidate that was found by other means with the proved bounds.

        Parameters
        ----------
        candidate : object
            An object of the same kind as the problem's witness, or a NumPy, PyTorch or JAX array of
            that shape. It need not be feasible: the result says by how much it violates each
            constraint. In single precision (float32) a violation of 1e-6 is tolerated, in double
            precision 1e-9.
        bound : Bound, optional
            An earlier result of `solve`; computed with `options` if left out.

        Raises
        ------
        ValidationError
            A candidate of another shape, or with entries that are not finite.
        """
        point = plain(candidate)
        return self._compared(point, self._measure(point), bound, options)

    def _compared(
        self,
        point: Any,
        measured: tuple[float, Mapping[str, float]],
        bound: Bound | None,
        options: Mapping[str, Any],
    ) -> Check:
        """Return a point's value and violations next to the proved bounds."""
        found = self.solve(**options) if bound is None else self.own_bound(bound)
        unit, tolerance = self._information_unit, feasibility_tolerance(point)
        return Check(*measured, found.to(unit), self.maximize, tolerance)

    def own_bound(self, bound: Bound) -> Bound:
        """Return a bound after checking, by its witness, that it belongs to this problem.

        Raises
        ------
        ValidationError
            Not a bound, one of another kind of problem, or one whose witness has another value
            here than the bound says.

        Examples
        --------
        >>> from cvxleak.capacities import Capacity
        >>> clean = Capacity([[1.0, 0.0], [0.0, 1.0]]).solve()
        >>> Capacity([[0.9, 0.1], [0.1, 0.9]]).own_bound(clean)
        Traceback (most recent call last):
        cvxleak.core.errors.ValidationError: bound: found one of another problem: ...
        """
        found = instance(bound, Bound, "bound")
        certificate = found.certificate
        if certificate is not None and certificate.kind != self.kind:
            raise ValidationError(
                f"bound: found a certificate of {certificate.kind!r}; {self.kind!r} is needed"
            )
        if found.witness is None:
            return found
        own = found.to(self._information_unit)
        attained = own.lower if self.maximize else own.upper
        try:
            value = self._measure(found.witness)[0]
        except ValidationError as error:
            raise ValidationError(f"bound: found one of another problem: {error}") from error
        size = max(self.scale, abs(value)) if math.isfinite(value) else 0.0
        # Of a set of channels, or of an output that is cut into cells: anywhere within.
        if own.attained is not None or "cells" in found.stats:
            attained = min(max(value, own.lower), own.upper)
        if value != attained and not abs(value - attained) <= max(WITNESS, self.tolerance) * size:
            raise ValidationError(
                f"bound: found one of another problem: the value of its witness is {attained:.9g} "
                f"there, and {value:.9g} here"
            )
        return found

    def repair(self, candidate: Any, *, bound: Bound | None = None, **options: Any) -> Bound:
        """Return a bound whose witness is a feasible point near a candidate, with its value proved.

        A candidate that violates constraints is moved along a straight line towards an interior
        point until the checker accepts it as feasible; a feasible one is kept, unless its value is
        infinite. The result combines the value attained at this point with the proved bound on the
        optimum; it is CERTIFIED if the point is optimal within the tolerance. The point need not be
        the nearest feasible one. If no point on the line can be proved feasible, the result has the
        witness of `bound`.

        Parameters
        ----------
        candidate, bound, **options
            As for `check`.

        Raises
        ------
        ValidationError
            As for `check`, or a bound of another kind of problem.

        Examples
        --------
        >>> from cvxleak.audit import RecordLeakage
        >>> from cvxleak.mechanisms import binary_symmetric
        >>> from cvxleak.model import Mechanism
        >>> from cvxleak.queries import parity
        >>> problem = RecordLeakage(Mechanism(parity(2), binary_symmetric(0.1)), 0.6, 0)
        >>> found = problem.repair([0.6, 0.0, 0.4, 0.0], bound=problem.solve())
        >>> round(found.lower, 4), round(found.upper, 4), problem.check(found.witness).feasible
        (0.3552, 0.3681, True)
        """
        solved = self.solve(**options) if bound is None else self.own_bound(bound)
        solved, old = solved.to("nats"), solved.certificate
        if old is None:
            raise ValidationError(f"bound: found no certificate; one of {self.kind!r} is needed")
        found = self._near(plain(candidate), solved)
        lower, upper = found.lower, found.upper
        if self.maximize:
            upper = solved.upper
        else:
            lower = solved.lower
        closed = found.feasible and Gap(self.tolerance, self.scale).closed(lower, upper)
        return Bound(
            self.name,
            lower,
            upper,
            Status.CERTIFIED if closed else Status.BRACKETED,
            solved.unit,
            found.witness,
            self._certificate(found, lower, upper, old.unit),
            stats={
                "method": "the candidate, moved towards a feasible point as little as it takes, "
                "because it misses what was asked for; the other end is that of the bound"
            },
        ).to(self._information_unit)

    def _near(self, candidate: Any, bound: Bound) -> Found:
        """Return a feasible point near a candidate, proved by what proves `bound`."""
        certificate = bound.certificate
        assert certificate is not None
        prove, toward = PROVERS[self.kind].prove, self._toward(candidate, bound)

        def met(share: float) -> bool:
            violations = self._measure(toward(share)[0])[1]
            # What further variables of the user's are worth, a solver finds: less sharply.
            return all(
                missed <= (FURTHER if name.startswith("constraints[") else ROUNDING)
                for name, missed in violations.items()
            )

        outside, inside = 0.0, 1.0
        if met(0.0):
            inside = 0.0
        while inside - outside > 1e-15 * inside:
            middle = (outside + inside) / 2
            if not outside < middle < inside:
                break
            outside, inside = (outside, middle) if met(middle) else (middle, inside)
        for step in (*STEPS, 1.0):
            witness, stored = toward(min(inside + step, 1.0))
            try:
                with precision():
                    ends = prove(certificate.problem, stored, certificate.proof)
            except CertificateError:
                continue
            attained = ends[0] if self.maximize else ends[1]
            if abs(attained) < float("inf"):
                parts = (certificate.problem, stored, certificate.proof)
                return Found(*ends[:2], witness, parts, about=certificate.about)
        parts = (certificate.problem, certificate.witness, certificate.proof)
        return Found(bound.lower, bound.upper, bound.witness, parts, about=certificate.about)

    @abstractmethod
    def _toward(self, candidate: Any, bound: Bound) -> Toward:
        """Return the way from a candidate to a point inside the feasible set."""

    @abstractmethod
    def _search(self, *args: Any, **options: Any) -> Search:
        """Return the search; its options are those of `solve`."""

    @abstractmethod
    def _measure(self, candidate: Any) -> tuple[float, dict[str, float]]:
        """Return the value of a candidate, and how far it is from each constraint."""

    @property
    def _information_unit(self) -> str:
        """The unit of results that are information."""
        return "bits" if self.unit == "bits" else "nats"

    def _certificate(self, found: Found, lower: float, upper: float, unit: str) -> Certificate:
        problem, witness, proof = found.parts
        claimed = set(found.about) or {"lower", "upper"}
        return Certificate(
            self.kind,
            problem,
            lower if "lower" in claimed else None,
            upper if "upper" in claimed else None,
            witness,
            proof,
            unit=unit,
            about=found.about,
        )

    def go_on(
        self,
        begin: Callable[[], Search],
        tol: float | None,
        time_limit: float | None,
        work_limit: float | None = None,
        *,
        spent: float = 0.0,
    ) -> Bound:
        """Continue a search of this problem from its current state and return the bound it reaches.

        For searches that share their time; `spent` is the time in seconds that this one has used.
        """
        gap = Gap(self.tolerance if tol is None else tol, self.scale)
        aim, clock = gap, None
        search: Search | None = None
        with one_thread(), Interrupts() as interrupts:
            while True:
                try:
                    interrupts.protected = False
                    clock = clock or Clock(time_limit, work_limit)
                    search = begin() if search is None else search
                    stopped = search.advance(aim, Stop(clock, search.proof_seconds))
                except KeyboardInterrupt:
                    stopped = Stopped.INTERRUPTED
                interrupts.protected = True
                try:
                    search = begin() if search is None else search
                    found = search.found(gap)
                except CvxleakError as error:
                    if stopped is Stopped.INTERRUPTED:
                        raise SolveInterrupted from error
                    raise
                if interrupts.seen:
                    stopped = Stopped.INTERRUPTED
                near = gap.closed(*found.searched)
                if near or stopped is not Stopped.TOLERANCE:
                    break
                if aim.tol <= gap.tol / 2**SHARPER:
                    stopped = Stopped.ROUNDING
                    break
                aim = Gap(aim.tol / 2, gap.scale)
        seconds = spent if clock is None else spent + clock.seconds
        closed = near and found.feasible
        if closed and stopped is not Stopped.INTERRUPTED:
            stopped = Stopped.TOLERANCE
        unit = "nats" if self.unit == "bits" else self.unit
        bound = Bound(
            self.name,
            found.lower,
            found.upper,
            Status.CERTIFIED if closed else Status.BRACKETED,
            unit,
            found.witness,
            self._certificate(found, found.lower, found.upper, unit),
            found.prices,
            {"seconds": seconds, "stopped": stopped, **found.stats},
            lambda tol, time, work: self.go_on(lambda: search, tol, time, work, spent=seconds),
            found.attained,
        ).to(self._information_unit)
        if stopped is Stopped.INTERRUPTED:
            raise SolveInterrupted(bound)
        return bound
