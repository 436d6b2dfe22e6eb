r"""Outputs that are not from a finite set, cut into cells: f(X) + Z, or bounded densities.

Let C be the cell that Y is in, R(c|v) = P(C = c | f(X) = v), and A a part of X. Then

    I(A;C) <= I(A;Y) = I(A;C) + sum_c P(c) I(A;Y|C=c).

So what a witness attains with any cells is a lower end. From above, P(c) I(A;Y|C=c) is at most

- P(c) log k, k the number of A's values, and
- sum_v P(v, c) D(f_v(.|c) || r_c) for any distribution r_c in the cell, by I(A;Y|C=c) <=
  I(f(X);Y|C=c) and TANGENT.

For each cell ONE of the two is taken for all values v: the sum of the smaller ones would be no
bound. Both are linear in the distribution w of the groups of contexts, so that I(A;Y) <= I(A;C) +
<w, extra>. Here is what D(f_v(.|c) || r_c) is at most.

**Densities.** Let log f_v(.|c) and log r_c be concave, and their difference have no slope steeper
than s in the cell, an interval of length h. Then D <= s^2 h^2 / (2 pi^2). *Proof.* With f_v for
f_v(.|c), g = log f_v / r_c and f_t in proportion to f_v^t r_c^(1-t), psi(t) = log of the integral
of f_v^t r_c^(1-t) has psi(0) = psi(1) = 0, psi' = E_t[g], psi'' = Var_t(g), so D = psi'(1) is the
integral over t from 0 to 1 of t psi''(t) = t Var_t(g), by parts. f_t is log-concave, so (Payne and
Weinberger, 1960) Var_t(g) <= (h/pi)^2 E_t[g'^2] <= (s h/pi)^2; g may have a kink. The inequality is
about densities: it is false on a lattice.

- Gaussian: log f_v(y) = -y^2 / 2 sigma^2 + v y / sigma^2 + const. With r_c of the same form and a
  number t_c in place of v, s = |v - t_c| / sigma^2.
- Laplace: log f_v has slope 1/b below v and -1/b above. With r_c of slope t_c / b, s = |1 - t_c| /
  b or |-1 - t_c| / b, and the larger of the two where v is inside the cell.

A cell without an end has h infinite. There D = 0 if s = 0, but r_c has to be a distribution: it is
f_v(.|c) then, for which s = 0 is needed of every v.

**Steps.** Uniform noise: D = 0 in cells inside of which no support ends: f_v(.|c) is uniform there,
or there is no mass. Whole numbers, and multiples of a base to which a sum is rounded: edges
are halfway between two outputs, so that the cell is a function of the output; D = 0 in cells with
one output. If the noise (before it is rounded) is in proportion to e^(-|z|/b), then D = 0 in cells
beyond all values, where f_v(.|c) does not depend on v. D = 0 if only one value is possible.

**Bounded densities.** The probabilities of cells are in given intervals, and log f_v - g varies by
at most d_v in the cell, for one g. Then Var_t(log f_v/r_c) <= d_v^2 / 4 for r_c in proportion to
e^g (Popoviciu, 1935), and D <= d_v^2 / 8.

All is in the noise's own unit: y stands for (y - origin) / unit. The unit is sigma, b, the half
width, or the base; 1 in whole numbers. The origin is the least value; of rounded noise, the largest
multiple of the base that is not above it. In it, floats tell apart what they would not elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar

from flint import arb, fmpq

from cvxleak.kernel.budget import charge
from cvxleak.kernel.numbers import added, ball, dot, largest, need, rational
from cvxleak.kernel.reading import chosen, fractions, items, parts
from cvxleak.kernel.space import Space, label
from cvxleak.kernel.view import Row, View, read_channel

__all__ = ["Bounded", "Cells", "Noise", "Output", "read_output"]

PARAMETERS = {
    "gaussian": "sigma",
    "laplace": "scale",
    "uniform": "half_width",
    "discrete-laplace": "scale",
    "discrete-gaussian": "sigma",
}
"""The parameter of each kind of noise."""

WHOLE = ("discrete-laplace", "discrete-gaussian")
"""Noise in whole numbers."""

FAR = 14
"""Standard deviations of discrete Gaussian noise that are summed term by term; P < 1e-42 beyond."""

HALF = fmpq(1, 2)

Costs = Sequence[Sequence[arb] | None]
"""For each cell, for each value, a bound above D(f_v(.|c) || r_c); None if nothing is known."""


@dataclass(frozen=True)
class Cells:
    """Rows of cells by the place of the query's value, and what the place in a cell tells."""

    rows: Sequence[Row]
    costs: Costs

    def of(self, view: View) -> View:
        """Return a view of the cells alone."""
        return replace(view, rows=[self.rows[place] for place in _places(view)])

    def priced(self, view: View) -> View:
        """Return a view of the cells, and what the place in a cell tells as `extra`."""
        charge("ball operations", 4 * len(self.costs) * len(view.rows))
        cells, most = self.of(view), arb(view.k).log()
        chosen = []
        for c, known in enumerate(self.costs):
            costs = [most] * len(view.rows)
            if known is not None:
                own = [known[place] for place in _places(view)]
                masses = [row.lo[c] for row in cells.rows]
                pairs = [(m * x, m * most) for m, x in zip(masses, own, strict=True)]
                if largest(x for x, _ in pairs) < largest(x for _, x in pairs):
                    costs = own
            chosen.append(costs)
        extra = [dot(r.lo, x) for r, x in zip(cells.rows, zip(*chosen, strict=True), strict=True)]
        return replace(cells, extra=extra)


def _places(view: View) -> list[int]:
    return [min(places) for places in view.within]


@dataclass(frozen=True)
class Noise:
    """f(X) + Z, in the noise's own unit.

    Attributes
    ----------
    kind : str
        What Z is, before it is rounded.
    width : fmpq
        Its parameter.
    rounded : bool
        Whether the sum is rounded to a whole number.
    places : sequence of fmpq
        The query's values.
    """

    kind: str
    width: fmpq
    rounded: bool
    places: Sequence[fmpq]
    lower: ClassVar[frozenset[str]] = frozenset({"edges"})
    _last: list[Any] = field(default_factory=list, compare=False)

    @property
    def upper(self) -> frozenset[str]:
        """The keys by which an upper end says its cells: edges, and references of densities."""
        return self.lower | {"references"} if self.smooth else self.lower

    @property
    def smooth(self) -> bool:
        """Whether the slopes of log-densities count."""
        return self.kind in SLOPES and not self.rounded

    @property
    def blank(self) -> Mapping[int, Row]:
        """Rows without entries, which tell values apart.

        As where rows are written, they are in the order of their entries: the largest value first.
        """
        return {i: Row([], key=(-v,)) for i, v in enumerate(self.places)}

    def cells(self, data: Mapping[str, Any]) -> Cells:
        """Return the cells between edges, in order; the first and the last one have no end."""
        edges = fractions(data["edges"], "edges")
        need(all(a < b for a, b in pairwise(edges)), "the edges of the cells do not increase")
        if self.kind in WHOLE or self.rounded:
            need(all((2 * e).q == 1 != e.q for e in edges), "an edge halfway between two outputs")
        ends = list(pairwise([None, *edges, None]))
        charge("ball operations", 8 * len(self.places) * len(ends))
        references = [fmpq(0)] * len(ends)
        if "references" in data:
            references = fractions(data["references"], "references", len(ends))
        costs = [self._cost(*cell, t) for cell, t in zip(ends, references, strict=True)]
        if self._last[:1] != [edges]:  # both ends of a file mostly have the same cells
            rows = [Row(self.masses([e - v for e in edges]), key=(-v,)) for v in self.places]
            self._last[:] = [edges, rows]
        return Cells(self._last[1], costs)

    def masses(self, edges: Sequence[fmpq]) -> list[arb]:
        """Return P(Z is in the cell) for the cells between edges; for whole numbers k + 1/2.

        From the tails beyond the edges: those on one side lose nothing in a difference.
        """
        if not edges:
            return [arb(1)]
        tails = [(e, self._tail(abs(e))) for e in edges]
        (first, below), (last, above) = tails[0], tails[-1]
        found: list[Any] = [below if first <= 0 else 1 - below]
        for (lo, left), (hi, right) in pairwise(tails):
            apart = lo < 0 < hi
            found.append(1 - left - right if apart else left - right if lo >= 0 else right - left)
        found.append(above if last >= 0 else 1 - above)
        return [ball(x).max(arb(0)) for x in found]

    def below(self, z: fmpq) -> Any:
        """Return P(Z < z); for whole numbers at z = k + 1/2."""
        return self._tail(-z) if z <= 0 else 1 - self._tail(z)

    def _tail(self, z: fmpq) -> Any:
        """Return P(Z > z) for z >= 0."""
        return TAILS[self.kind](self, z)

    @cached_property
    def sums(self) -> list[arb]:
        """Of discrete Gaussian noise P(Z >= k); the last one is of all numbers from there on."""
        need(self.width <= 10_000, "discrete Gaussian noise that is too wide")
        far = FAR * int(self.width.ceil())
        charge("ball operations", 8 * far)
        sigma = ball(self.width)
        terms = [(-(arb(k) ** 2) / (2 * sigma**2)).exp() for k in range(far + 1)]
        # From there on, each term is less than `ratio` times the one before.
        ratio = (-far / sigma**2).exp()
        found = [arb(0).union(terms[-1] / (1 - ratio))]
        for term in reversed(terms[:-1]):
            found.append(found[-1] + term)
        whole = 2 * found[-1] - terms[0]
        return [x / whole for x in reversed(found)]

    def _cost(self, lo: fmpq | None, hi: fmpq | None, t: fmpq) -> Sequence[arb] | None:
        """Return for each value a bound above D(f_v(.|c) || r_c); None if nothing is known."""
        nothing = [arb(0)] * len(self.places)
        if len(set(self.places)) == 1:
            return nothing
        if self.smooth:
            return self._slopes(lo, hi, t)
        if self.kind in ("laplace", "discrete-laplace"):
            inside = HALF if self.kind in WHOLE else 0
            above = lo is not None and lo + inside >= max(self.places)
            if above or (hi is not None and hi - inside <= min(self.places)):
                return nothing
        if lo is None or hi is None:
            return None
        if self.kind == "uniform" and not self.rounded:
            ends = (v + side for v in self.places for side in (-self.width, self.width))
            return None if any(lo < end < hi for end in ends) else nothing
        alone = (self.kind in WHOLE or self.rounded) and hi - lo <= 1
        return nothing if alone else None

    def _slopes(self, lo: fmpq | None, hi: fmpq | None, t: fmpq) -> Sequence[arb] | None:
        """Return s^2 h^2 / (2 pi^2), in a unit of which the parameter makes one."""
        slopes = [SLOPES[self.kind](v, lo, hi, t) for v in self.places]
        if not any(slopes):
            return [arb(0)] * len(slopes)
        if lo is None or hi is None:
            return None
        return [ball((s * (hi - lo)) ** 2 / 2) / arb.pi() ** 2 for s in slopes]


def _slope_of_laplace(v: fmpq, lo: fmpq | None, hi: fmpq | None, t: fmpq) -> fmpq:
    # Below v log f_v has slope 1/b, and -1/b above.
    below = abs(1 - t) if lo is None or lo < v else fmpq(0)
    return max(below, abs(-1 - t)) if hi is None or v < hi else below


TAILS: dict[str, Callable[[Noise, fmpq], Any]] = {
    "gaussian": lambda noise, z: (ball(z / noise.width) / arb(2).sqrt()).erfc() / 2,
    "laplace": lambda noise, z: ball(-z / noise.width).exp() / 2,
    "uniform": lambda noise, z: max((1 - z / noise.width) / 2, fmpq(0)),
    "discrete-laplace": lambda noise, z: (
        ball(-(z + HALF) / noise.width).exp() / (1 + ball(-1 / noise.width).exp())
    ),
    "discrete-gaussian": lambda noise, z: noise.sums[min(int((z + HALF).p), len(noise.sums) - 1)],
}
"""P(Z > z) for z >= 0, for each kind of noise."""

SLOPES: dict[str, Callable[[fmpq, fmpq | None, fmpq | None, fmpq], fmpq]] = {
    "gaussian": lambda v, _lo, _hi, t: abs(v - t),
    "laplace": _slope_of_laplace,
}
"""s of a value in the cell from lo to hi with reference t; of a kind without, no cell is priced."""


@dataclass(frozen=True)
class Bounded:
    """Bounded densities, whose cells are part of the problem: each row in balls."""

    given: Cells

    upper: ClassVar[frozenset[str]] = frozenset()
    lower: ClassVar[frozenset[str]] = frozenset()

    @property
    def blank(self) -> Mapping[int, Row]:
        """Rows by the place: rows within equal bounds may differ."""
        return {i: Row([], key=row.key) for i, row in enumerate(self.given.rows)}

    def cells(self, data: Mapping[str, Any]) -> Cells:
        """Return the cells, which are given."""
        return self.given


Output = Noise | Bounded


# Reading -----------------------------------------------------------------------------------------


def read_output(data: Any, space: Space) -> Output:
    """Return a problem's output that is not from a finite set, for the values of a query."""
    if isinstance(data, Mapping) and data.get("kind") == "bounded-density":
        return _read_bounded(data, space.labels)
    numbers = [rational(v) for v in space.values]
    if not isinstance(data, Mapping) or data.get("kind") != "rounded":
        kind, width = _read_noise(data)
        whole = kind in WHOLE
        need(not whole or all(v.q == 1 for v in numbers), "noise in whole numbers, on others")
        unit = fmpq(1) if whole else width
        places = [(v - min(numbers)) / unit for v in numbers]
        return Noise(kind, width / unit, False, places)
    parts(data, {"kind", "noise", "base"}, "rounded noise")
    kind, width = _read_noise(data["noise"])
    base = rational(data["base"])
    need(kind not in WHOLE and base > 0, "rounded noise: no density, or no positive base")
    origin = (min(numbers) / base).floor() * base
    return Noise(kind, width / base, True, [(v - origin) / base for v in numbers])


def _read_noise(data: Any) -> tuple[str, fmpq]:
    kind = chosen(data, "noise", PARAMETERS)
    name = PARAMETERS[kind]
    width = rational(parts(data, {"kind", name}, "noise")[name])
    need(width > 0, f"noise: {name} is not positive")
    return kind, width


def _read_bounded(data: Mapping[str, Any], labels: Sequence[str]) -> Bounded:
    parts(data, {"kind", "masses", "oscillation"}, "bounded densities")
    masses = parts(data["masses"], {"lower", "upper", "inputs"}, "masses", {"outputs"})
    inputs = list(map(label, items(masses["inputs"], "inputs")))
    need(inputs == list(labels), "masses: the inputs are the values of the query, in order")
    written: Any = [box.key for box in read_channel(masses, len(labels), set(masses))]
    rows, cells = [], 0
    for lo, hi in written:
        need(added(lo) <= 1 <= added(hi), "masses without a law")
        mass, cells = [ball(a).union(ball(b)) for a, b in zip(lo, hi, strict=True)], len(lo)
        rows.append(Row(mass, key=(*lo, len(rows))))
    table = items(data["oscillation"], "oscillation", len(labels))
    moves = [items(row, "oscillation", cells) for row in table]
    costs: list[Sequence[arb] | None] = []
    for column in zip(*moves, strict=True):
        known = [None if d == "inf" else rational(d) for d in column]
        need(all(d is None or d >= 0 for d in known), "a negative oscillation")
        costs.append(None if None in known else [ball(d * d / 8) for d in known if d is not None])
    return Bounded(Cells(rows, costs))
