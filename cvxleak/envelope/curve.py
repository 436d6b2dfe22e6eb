"""The whole PML envelope: lower and upper bounds at all delta, at nodes and between them.

Between two levels t_b < t_a without a jump, let symbols of masses s^a_x and s^b_x solve the program
at both levels, and mu^a, mu^b with prices nu^a, nu^b its dual, and tau = (t_a - t) / (t_a - t_b).

- The mixture (1 - lam) u^a + lam u^b reaches the level t if every symbol does:
  (1 - lam) s^a_x (t_a - t) >= lam s^b_x (t - t_b). So with lam = tau / (tau + kappa (1 - tau)) and
  kappa = max_x s^b_x / s^a_x its mass is attained. Symbols that share no output may be mixed
  apart, each group with its own kappa and lam.
- With 1 / mu_x linear in t between them, 1 + mu_x (r_xy - t) is (1 - sig) times its value at
  t_a plus sig times that at t_b, sig = tau / (tau + theta (1 - tau)), theta = mu^b_x / mu^a_x. So
  the price of an output is at most (1 - sig) nu^a + sig nu^b, with a theta at which all inputs keep
  below that (`_theta`), and the mass at most the sum of these prices.

lam is convex in kappa and sig concave in 1 / theta: so by Jensen's inequality the mean of kappa and
the harmonic mean of theta, weighted by the growth of the mass, give bounds for the sums. Prices
that fall, by W- in all, while others rise by W+, are taken along: where 1 / theta is u for those
that rise and v <= u for the rest, W+ sig(u) - W- sig(v) <= (W+ - W-) sig(w) for every tau, with w
the larger one of (W+ u - W- v) / (W+ - W-) and (W+ - W-) / (W+ / u - W- / v): over a common
denominator the difference is a quadratic of tau / (1 - tau) without negative coefficients.

Both bounds are hyperbolas. At equal mass, their levels differ by at most
(t_a - t_b) (sqrt kappa - sqrt theta) / (sqrt kappa + sqrt theta). They are equal where all symbols
grow in proportion, as for randomized response.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from cvxleak.core.clock import WORK_LIMIT, Clock
from cvxleak.core.validation import Array, real_number
from cvxleak.envelope.program import Program, Vertex
from cvxleak.envelope.search import largest_level
from cvxleak.envelope.statement import Data
from cvxleak.measures.pointwise import probabilities_in
from cvxleak.measures.privacy import TIE
from cvxleak.model import Channel, Prior
from cvxleak.problem.bound import Status

__all__ = ["EnvelopeCurve", "envelope_curve"]

CLOSE = 1e-12
"""Relative distance at which two jumps are taken for one."""

SPECK = 1e-20
"""Masses that differ by no more than this count as equal."""


@dataclass(frozen=True)
class EnvelopeCurve:
    """A lower and an upper bound on eps_c(delta) for all delta.

    Attributes
    ----------
    levels : array, shape (nodes, 2)
        Levels t = e^epsilon of the nodes, from the highest down: the smaller and the larger one of
        a jump, equal up to rounding.
    reached : array, shape (nodes, 2)
        The failure probability attained at the level and just above it; they differ at jumps.
    possible : array, shape (nodes, 2)
        Upper bounds on the same.
    growth : array, shape (nodes - 1, 2)
        kappa and theta of the intervals between the nodes.
    tol : float
        The requested gap, in nats.
    stats : dict
        Seconds, pivots and the number of levels at which the program was solved.

    Examples
    --------
    >>> from cvxleak.envelope import envelope_curve
    >>> curve = envelope_curve([0.3, 0.7], [[0.8, 0.2], [0.3, 0.7]])
    >>> lower, upper = curve.at([0.0, 0.3, 0.6, 1.0])
    >>> lower.round(6), bool(curve.gap <= 1e-6)
    (array([0.575364, 0.575364, 0.35364 , 0.241162]), True)
    """

    levels: Array
    reached: Array
    possible: Array
    growth: Array
    tol: float
    stats: dict[str, float]

    def at(self, delta: ArrayLike) -> tuple[Array, Array]:
        """Return a lower and an upper bound on eps_c(delta) for each delta, in nats.

        Ties are treated as in `PMLEnvelope`. The bounds hold up to the rounding of double
        precision; `pml_envelope` proves them in exact arithmetic at a single delta.

        Parameters
        ----------
        delta : float or array_like
            In [0, 1].

        Raises
        ------
        ValidationError
            A delta out of range.
        """
        mass = probabilities_in(delta, "delta") * (1 - TIE)
        lower = self._level(mass * (1 + 1e-13), self.reached, self.growth[:, 0])
        upper = self._level(mass * (1 - 1e-13), self.possible, self.growth[:, 1])
        lower = np.maximum(np.log(lower) * (1 - 1e-14), 0.0)
        return lower, np.maximum(np.log(upper) + 1e-12, lower)

    @property
    def gap(self) -> float:
        """The largest gap between the two bounds, over all delta, in nats.

        Between nodes, e to the power of each bound is a hyperbola in delta, or constant. So the gap
        is largest at a node of either bound, or where both have the same slope.
        """
        scale = (1 - TIE) * np.array([1 + 1e-13, 1 - 1e-13])
        nodes = np.concatenate([self.reached.ravel() / scale[0], self.possible.ravel() / scale[1]])
        nodes = np.unique(np.clip(np.append(nodes, [0.0, 1.0]), 0.0, 1.0))
        middle = (nodes[1:] + nodes[:-1]) / 2
        # One over the root of the slopes, c + e delta: they are equal where these are.
        pairs = ((self.reached, self.growth[:, 0]), (self.possible, self.growth[:, 1]))
        (c, e), (other_c, other_e) = (
            self._steepness(middle, factor, masses, growth)
            for factor, (masses, growth) in zip(scale, pairs, strict=True)
        )
        with np.errstate(all="ignore"):
            equal = (other_c - c) / (e - other_e)
        equal = np.where((equal > nodes[:-1]) & (equal < nodes[1:]), equal, middle)
        # A distance of the logarithms is at most that of the levels over the smaller level.
        lower, upper = np.exp(self.at([np.nextafter(nodes[:-1], 1.0), equal, nodes[1:]]))
        return float(np.max((upper - lower).max(axis=0) / lower[-1])) + 2e-12

    @property
    def status(self) -> Status:
        """CERTIFIED if `gap` is within `tol`, BRACKETED otherwise.

        As for `at`, it holds up to rounding: the curve has no certificate.
        """
        return Status.CERTIFIED if self.gap <= self.tol else Status.BRACKETED

    def __repr__(self) -> str:
        return f"EnvelopeCurve({len(self.levels)} nodes, gap {self.gap:.1e} nats)"

    def _repr_html_(self) -> str:
        from cvxleak.core.notebook import html_table

        lower, upper = self.at(delta := self._nodes())
        rows = zip(delta, lower, upper, strict=True)
        return html_table(repr(self), ("delta", "lower (nats)", "upper (nats)"), rows)

    def to_frame(self) -> Any:
        """Return both bounds at the nodes as a pandas DataFrame (needs pandas).

        One row for each endpoint of an interval, with `delta`, `lower` and `upper` in nats.
        """
        import pandas as pd

        lower, upper = self.at(delta := self._nodes())
        return pd.DataFrame({"delta": delta, "lower": lower, "upper": upper})

    @property
    def plateaus(self) -> Array:
        """Intervals (start, end) of delta on which the envelope is constant, highest level first.

        The failure probability jumps at these levels; the envelope is continuous.
        """
        flat = self.reached[:, 0] > self.possible[:, 1]
        flat[0] = True
        starts = np.where(np.arange(len(flat)) == 0, 0.0, self.possible[:, 1])
        return np.stack([starts, self.reached[:, 0]], axis=1)[flat]

    def _nodes(self) -> Array:
        """Return the deltas at which a stretch ends."""
        return np.unique(np.clip(np.append(self.reached.ravel(), [0.0, 1.0]), 0.0, 1.0))

    def _level(self, mass: Array, masses: Array, growth: Array) -> Array:
        at = masses[:, 0]
        node, before, inside, factor, rise = self._stretch(mass, masses, growth)
        share = np.clip((mass - at[before]) / rise, 0.0, 1.0)
        tau = factor * share / (1 - share + factor * share)
        top, bottom = self.levels[before, 0], self.levels[node, 1]
        return np.where(inside, top - tau * (top - bottom), self.levels[node, 0])

    def _stretch(self, mass: Array, masses: Array, growth: Array) -> tuple[Any, ...]:
        """Return for each mass the nodes at its two sides and what is between them."""
        at, above = masses.T
        node = np.minimum(np.searchsorted(at, mass), len(at) - 1)
        before = np.maximum(node - 1, 0)
        inside = (node > 0) & (mass < above[node]) & (mass > at[before])
        steps = np.append(growth, 1.0)
        factor = np.minimum(steps[np.minimum(before, len(steps) - 1)], 1e300)
        rise = np.where(above[node] > at[before], above[node] - at[before], 1.0)
        return node, before, inside, factor, rise

    def _steepness(
        self, delta: Array, scale: float, masses: Array, growth: Array
    ) -> tuple[Array, Array]:
        """Return c and e with (c + e delta)^-2 the slope around each delta; nan if it is 0."""
        node, before, inside, factor, rise = self._stretch(delta * scale, masses, growth)
        width = self.levels[before, 0] - self.levels[node, 1]
        with np.errstate(all="ignore"):
            root = np.where(inside, np.sqrt(width * factor * scale / rise), np.nan)
            start, bend = masses[before, 0], (factor - 1) / rise
            return (1 - bend * start) / root, bend * scale / root


def envelope_curve(
    prior: Prior | ArrayLike,
    channel: Channel | ArrayLike,
    *,
    tol: float = 1e-6,
    time_limit: float | None = None,
    work_limit: float | None = WORK_LIMIT,
) -> EnvelopeCurve:
    """Bound the PML envelope at all delta at once, within `tol` everywhere.

    Parameters
    ----------
    prior : Prior or array_like, shape (k,)
        The distribution of the input. Inputs of probability zero do not count.
    channel : Channel or array_like, shape (k, m)
        The rows q(y|x).
    tol : float
        Largest gap at any delta, in nats; at least 1e-10.
    time_limit : float, optional
        Seconds after which no more nodes are added. Both bounds hold in that case, too; `gap` gives
        the distance between them.
    work_limit : float or None
        The same for counted work, as for `PMLEnvelope.solve`.

    Raises
    ------
    ValidationError
        If the prior and the channel do not match, or a number is out of range.

    See Also
    --------
    cvxleak.envelope.response_envelope_pieces : Exact breakpoints for randomized response.

    Examples
    --------
    >>> from cvxleak.mechanisms import randomized_response
    >>> from cvxleak.envelope import envelope_curve
    >>> curve = envelope_curve([0.2, 0.3, 0.5], randomized_response(3, 1.0))
    >>> curve.plateaus.round(4)  # where it is constant
    array([[0.    , 0.2848],
           [0.3424, 0.658 ],
           [0.894 , 1.    ]])
    """
    accuracy = real_number(tol, "tol", 1e-10)
    clock = Clock(time_limit, work_limit)
    program = Data(prior, channel).program
    builder = _Builder(program, accuracy * 0.9, clock)
    nodes, growth = builder.run()
    return EnvelopeCurve(
        np.array([[node.at.level, node.above.level] for node in nodes]),
        _monotone([[node.at.value, node.above.value] for node in nodes]),
        _monotone([[node.at.bound, node.above.bound] for node in nodes]),
        np.array(growth).reshape(-1, 2),
        accuracy,
        {
            "seconds": clock.seconds,
            "levels": builder.solved,
            "pivots": program.pivots,
        },
    )


@dataclass(frozen=True)
class _Node:
    """A level with what is possible at it and just above it."""

    at: Vertex
    above: Vertex


class _Builder:
    """Adds nodes from the top down until every stretch is narrow enough."""

    def __init__(self, program: Program, tol: float, clock: Clock) -> None:
        self.program, self.tol, self.clock = program, tol, clock
        self.solved = 0

    def run(self) -> tuple[list[_Node], list[tuple[float, float]]]:
        last = largest_level(self.program, 1 - TIE, self.clock).below
        starts = self._jumps(last.level)
        if not starts or starts[-1].at.level > last.level * (1 + CLOSE):
            starts.append(_Node(last, last))
        nodes, growth = [starts[0]], []
        for start in starts[1:]:
            waiting = [start]
            while waiting:
                end = waiting.pop()
                found = self._growth(nodes[-1].at, end.above)
                if found is None:
                    vertex = self._solve((nodes[-1].at.level + end.above.level) / 2)
                    waiting += [end, _Node(vertex, vertex)]
                else:
                    nodes.append(end)
                    growth.append(found)
        return nodes, growth

    def _jumps(self, last: float) -> list[_Node]:
        """Return the nodes at the jumps down to the last level."""
        jumps = np.unique(self.program.jumps)[::-1]
        jumps = jumps[jumps > last * (1 - 10 * CLOSE)]
        if not len(jumps):
            return []
        groups = np.split(jumps, np.flatnonzero(-np.diff(jumps) > CLOSE * jumps[1:]) + 1)
        return [
            # A symbol that only just reaches the level would not survive rounding.
            _Node(
                self._solve(float(group[-1]) * (1 - 2e-13)),
                self._solve(float(group[0]), strict=True),
            )
            for group in groups
        ]

    def _solve(self, level: float, *, strict: bool = False) -> Vertex:
        self.solved += 1
        return self.program.solve(level, strict=strict, clock=self.clock)

    def _may_split(self, width: float, rise: float) -> bool:
        # Where less mass than the program can tell from none is at stake, nodes would not help.
        return width > 1e-13 and rise > SPECK and not self.clock.late

    def _growth(self, top: Vertex, bottom: Vertex) -> tuple[float, float] | None:
        """Return kappa and theta of a stretch, or None if it is to be split.

        kappa is at least the growth of all masses: in each group the largest ratio is at least the
        group's, and the mean of these, weighted by b (R - 1), is at least that weighted by b, for b
        the mass of a group before and R its growth (Chebyshev's sum inequality). Where that is too
        much already, kappa is not needed. Where all symbols in one group will do, neither are the
        groups.
        """
        width, wanted = top.level - bottom.level, self.tol * bottom.level
        split = self._may_split(width, bottom.bound - top.value)
        theta = self._theta(top, bottom)
        if split and top.value > 0 and _apart(width, bottom.value / top.value, theta) > wanted:
            return None
        before, after = (
            np.bincount(v.inputs, v.masses, minlength=len(self.program.ratios)).astype(np.float64)
            for v in (top, bottom)
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(after > 0, after / before, 0.0)
        kappa = max(float(ratio.max()), 1e-300)
        if _apart(width, kappa, theta) + _unsure(top, bottom) > wanted:
            kappa = self._kappa(top, bottom, ratio, after - before)
        apart = min(_apart(width, kappa, theta) + _unsure(top, bottom), width)
        return None if split and apart > wanted else (kappa, theta)

    def _kappa(self, top: Vertex, bottom: Vertex, ratio: Array, change: Array) -> float:
        """Return the mean of max s^b_x / s^a_x over groups of symbols that share no output."""
        n, m = self.program.ratios.shape
        inputs = np.concatenate([top.inputs, bottom.inputs])
        outputs = n + np.concatenate([top.outputs, bottom.outputs])
        starts = np.zeros(n + m + 1, dtype=np.intp)
        np.cumsum(np.bincount(inputs, minlength=n + m), out=starts[1:])
        columns = outputs[np.argsort(inputs, kind="stable")]
        links = csr_array((np.ones(len(inputs)), columns, starts), shape=(n + m, n + m))
        group = connected_components(links, directed=False)[1][:n]
        largest = np.zeros(n + m)
        np.maximum.at(largest, group, ratio)
        gain = np.zeros(n + m)
        np.add.at(gain, group, change)
        return _mean(gain, largest, float(ratio.max(initial=0.0)))

    def _theta(self, top: Vertex, bottom: Vertex) -> float:
        """Return a mean of mu^b_x / mu^a_x over outputs and the inputs that set their prices.

        At an output whose price changes by D let 1 + mu_x (r_xy - t) be short of the price by a at
        the top and by b at the bottom. It keeps below the mixture of the two prices with theta at
        most theta_x (D + a) / (D - b), for D > 0, and at least theta_x (|D| - a) / (|D| + b), for
        D < 0.
        """
        able = self.program.jumps >= top.level
        ratios = self.program.ratios if able.all() else self.program.ratios[able]
        ends = [_multipliers(ratios, vertex, able) for vertex in (top, bottom)]
        if not ends[1].min(initial=np.inf) > 0:
            return 1e-300
        with np.errstate(all="ignore"):
            theta = np.where(ends[0] > 0, ends[1] / ends[0], np.inf)[:, None]
            rise = bottom.prices - top.prices
            short_a, short_b = (
                np.maximum(vertex.prices - 1 - mu[:, None] * (ratios - vertex.level), 0.0)
                for mu, vertex in zip(ends, (top, bottom), strict=True)
            )
            up, down = rise > 0, rise < 0
            size = np.abs(rise)
            least = theta * (size + short_a) / np.maximum(size - short_b, 0.0)
            most = theta * np.maximum(size - short_a, 0.0) / (size + short_b)
            weights = self.program.output * size
            above, below = float(weights[up].sum()), float(weights[down].sum())
            u = float(weights[up] @ (1 / least[:, up].min(axis=0))) / above if above else 0.0
            if not below:
                return 1 / max(u, 1e-300)
            v = min(1 / np.float64(np.nan_to_num(most[:, down], nan=np.inf).max()), u)
            gain = np.float64(above - below)
            mixed = max((above * u - below * v) / gain, gain / (above / u - below / v))
        # Without a mixture, the mass is at most that at the bottom.
        return 1 / mixed if 0 < v and gain > 0 and above / u > below / v else 1e-300


def _mean(gains: Array, values: Array, worst: float) -> float:
    """Return the mean of values, weighted by gains; the worst value if a gain is negative."""
    total = float(gains.sum())
    if total <= 0 or gains.min() < -1e-13 * total:
        return max(worst, 1e-300)
    used = gains > 0
    return max(float(gains[used] @ values[used]) / float(gains[used].sum()), 1e-300)


def _multipliers(ratios: Array, vertex: Vertex, able: NDArray[np.bool_]) -> Array:
    """Return multipliers at the vertex's prices: its own, but in the middle where they are free."""
    found = vertex.multipliers[able]
    free = np.flatnonzero(np.bincount(vertex.inputs, minlength=len(able))[able] == 0)
    open_ = ratios[free]
    middle = (_least_multipliers(open_, vertex) + _most_multipliers(open_, vertex)) / 2
    found[free] = np.where(np.isfinite(middle), middle, found[free])
    return found


def _least_multipliers(ratios: Array, vertex: Vertex) -> Array:
    """Return the least mu_x with 1 + mu_x (r_xy - t) <= nu_y at every output."""
    short = vertex.level - ratios
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(short > 0, np.maximum(1 - vertex.prices, 0.0) / short, 0.0).max(axis=1)


def _most_multipliers(ratios: Array, vertex: Vertex) -> Array:
    """Return the largest mu_x with 1 + mu_x (r_xy - t) <= nu_y at every output."""
    excess = ratios - vertex.level
    with np.errstate(divide="ignore", invalid="ignore"):
        most = np.where(excess > 0, np.maximum(vertex.prices - 1, 0.0) / excess, np.inf)
    return most.min(axis=1)


def _apart(width: float, kappa: float, theta: float) -> float:
    if math.isinf(kappa):
        return width
    return width * max(1 - 2 * math.sqrt(theta) / (math.sqrt(kappa) + math.sqrt(theta)), 0.0)


def _unsure(top: Vertex, bottom: Vertex) -> float:
    """Return how far gaps at the nodes shift the level, which falls as 1 / mass at the most."""
    open_ = [(v.bound - v.value) / max(v.value, 1e-300) for v in (top, bottom)]
    return top.level * max(*open_, 0.0)


def _monotone(masses: list[list[float]]) -> Array:
    """Return masses that do not fall from node to node, at it after above it."""
    order: NDArray[np.float64] = np.maximum.accumulate(np.array(masses)[:, ::-1].ravel())
    order[-1] = max(order[-1], 1 - TIE)
    return order.reshape(-1, 2)[:, ::-1]
