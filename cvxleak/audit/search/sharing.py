"""`SharingSearch`: the time-sharing bound, whose hard part is one small problem for each value.

For an adversary w let v_a be its distribution on the contexts given the value a, and r_a = v_a R_a
that of the output. For every distribution t of the output I(w) <= sum_a pi_a D(r_a || t), so for
every lam >= 0

    I(w) <= lam log sum_a exp(phi_a / lam) - lam b,
    phi_a = max_v D(v R_a || t) + lam (H(v) + <v, log m_a>).

The values are coupled by lam and t alone. Minimized over both the bound is the largest I(A,V;Y) of
adversaries who draw a V besides, under the floor on average: it is sharp where no V helps, which is
the rule near log|X| and for groups of records.

A maximum phi_a is bounded in one of three ways. The rows bring distributions closer together,
D(v R_a || v0 R_a) <= eta D(v || v0) with an eta < 1 (`cvxleak.kernel.lemmas`), so
eta H(v) - H(v R_a) is concave, and for lam >= eta (near log|X| above all, or with much noise) the
tangent at any distribution v0 gives, with r0 = v0 R_a,

    phi_a <= max_v <v, R_a log(r0 / t)> + eta D(v || v0) + lam (H(v) + <v, log m_a>),

which is sharp at the maximizer. Below, branch and bound: with h_y(r) = r log(r / t_y) and
r_y in [l_y, u_y], for every nu

    phi_a <= lam log sum_g m_{a,g} exp(<R_{a,g}, nu> / lam)
             + sum_y max(h_y(l_y) - nu_y l_y, h_y(u_y) - nu_y u_y),

since a convex function is largest at an endpoint; or over boxes of v (`law_boxes`), if v has fewer
numbers than r_a. In floating point everything is relative to the uniform prior, as in
`cvxleak.audit.search.cell_dual`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import rel_entr

from cvxleak.audit.search.intervals import Cut, kept_apart
from cvxleak.audit.search.law_boxes import LawBoxes, fits_boxes
from cvxleak.audit.search.means import entropy_surplus, log_mean_exp, tilted
from cvxleak.audit.search.systems import solved
from cvxleak.audit.search.value_tree import SMALLEST, ValueTree
from cvxleak.core.validation import Array
from cvxleak.core.work import spend
from cvxleak.exact.packing import pack
from cvxleak.model import Lumped
from cvxleak.solvers.best_first import Bounded

__all__ = ["SharingSearch", "SharingTree"]

BATCH_SIZE = 1 << 22
"""About how many numbers the largest array of a batch may have."""

NEWTON_STEPS = 25

LEAST_LAM, MOST_LAM = 1e-6, 1e9


@dataclass(frozen=True)
class NuLeaf:
    """nu, and what it proves about phi_a - lam log(number of datasets with the value a)."""

    bound: float
    nu: Array


class SharingTree(ValueTree[NuLeaf]):
    """Upper bounds on max_v D(v R || t) - lam D(v || s), for one value of the record.

    A region is an array of the endpoints of one interval per output, shape (|Y|, 2).
    """

    def _root(self) -> tuple[Array, NuLeaf]:
        groups, outputs = self._rows.shape
        self.batch = int(np.clip(BATCH_SIZE // (groups * outputs + outputs**2), 1, 512))
        # A hair wider than the rows: rounding must not matter for what a certificate recomputes.
        least, most = self._rows.min(axis=0), self._rows.max(axis=0)
        ends = np.stack([least * (1 - 1e-12), most * (1 + 1e-12)], axis=1)
        nu = self._slopes(self.law)
        return ends, NuLeaf(float(self._values(ends[None], nu[None])[0]), nu)

    def encoded(self, outputs: Sequence[Sequence[int]], dtype: str) -> dict[str, Any]:
        """Return the tree as `cvxleak.audit.old_terms` reads it."""
        tree, leaves = self._cuts_and_nodes()
        return tree | {"leaves": pack(np.array([leaf.nu for leaf in leaves]), dtype)}

    def _renewed(self, regions: list[Array], leaves: list[NuLeaf]) -> list[NuLeaf]:
        nu = np.stack([leaf.nu for leaf in leaves])
        bounds = self._values(np.stack(regions), nu)
        return [NuLeaf(float(bound), one) for bound, one in zip(bounds, nu, strict=True)]

    def _ends(self, ends: Array, nu: Array) -> Array:
        """Return h(r) - nu r at both bounds."""
        return rel_entr(ends, self._t[:, None]) - nu[..., None] * ends

    def _values(self, ends: Array, nu: Array) -> Array:
        smooth = self._lam * log_mean_exp(nu @ self._rows.T / self._lam, self._log_shares)
        # An allowance for rounding: of the exponents, and of the sum.
        size = 1 + self._lam + np.abs(nu).sum(axis=1)
        rounding = 16 * np.finfo(float).eps * len(self._t) * size
        return smooth + self._ends(ends, nu).max(axis=2).sum(axis=1) + rounding

    def _bound(
        self,
        regions: Sequence[Array],
        leaves: Sequence[NuLeaf],
        threshold: float,
        accuracies: Sequence[float],
        stop: Callable[[], bool],
    ) -> list[Bounded[NuLeaf, Cut]]:
        ends = np.stack(regions)
        found, bounds, laws = self._minimize(
            ends, np.stack([leaf.nu for leaf in leaves]), np.array(accuracies), threshold, stop
        )
        splits = self._branch(ends, laws @ self._rows)
        return [
            Bounded(NuLeaf(float(bound), nu), split, law)
            for bound, nu, split, law in zip(bounds, found, splits, laws, strict=True)
        ]

    def _minimize(
        self,
        ends: Array,
        nu: Array,
        accuracies: Array,
        threshold: float,
        stop: Callable[[], bool],
    ) -> tuple[Array, Array, Array]:
        """Return good nu for each node, their bounds, and the distributions that maximize the rest.

        Newton's method; the maxima over two endpoints are smoothed, less and less.
        """
        outputs = len(self._t)
        best, bounds = nu.copy(), self._values(ends, nu)
        last = accuracies / outputs
        blur = np.maximum(last, 0.1 * np.maximum(bounds - threshold, accuracies) / outputs)
        width = ends[..., 1] - ends[..., 0]
        value, law, share = self._smooth(ends, nu, blur)
        for _ in range(NEWTON_STEPS):
            spend(1e6 + len(nu) * (outputs**3 + len(self._rows) * outputs**2))
            means = law @ self._rows
            gradient = means - (ends[..., 0] + share * width)
            hessian = np.matmul((law[..., None] * self._rows).swapaxes(1, 2), self._rows)
            hessian -= means[..., :, None] * means[..., None, :]
            hessian /= self._lam
            diagonal = np.arange(outputs)
            bend = share * (1 - share) * width**2 / blur[:, None]
            hessian[:, diagonal, diagonal] += bend
            trace = np.trace(hessian, axis1=1, axis2=2)
            hessian[:, diagonal, diagonal] += (1e-9 * trace + 1e-12)[:, None]
            step = -solved(hessian, gradient[..., None])
            slope = (gradient * step).sum(axis=1)
            length = np.minimum(1.0, 20.0 / np.maximum(np.abs(step).max(axis=1), 1e-300))
            trial, bad = nu, np.ones(len(nu), dtype=bool)
            for _ in range(12):
                trial = nu + length[:, None] * step
                new = self._smooth(ends, trial, blur)
                bad = ~(new[0] <= value + 1e-4 * length * slope + 1e-14)
                if not bad.any():
                    break
                length[bad] *= 0.3
            nu = np.where(bad[:, None], nu, trial)
            proved = self._values(ends, nu)
            better = proved < bounds
            best[better], bounds[better] = nu[better], proved[better]
            settled = bad | (-slope < 0.5 * outputs * blur)
            done = (bounds <= threshold) | (settled & (blur <= last))
            if done.all() or stop():
                break
            blur = np.where(settled, np.maximum(last, blur / 6), blur)
            value, law, share = self._smooth(ends, nu, blur)
        return best, bounds, self._smooth(ends, best, blur)[1]

    def _smooth(self, ends: Array, nu: Array, blur: Array) -> tuple[Array, Array, Array]:
        """Return the smoothed bound, the maximizers, and the shares of the upper endpoints."""
        total, law = tilted(nu @ self._rows.T / self._lam, self._log_shares)
        at_ends = self._ends(ends, nu) / blur[:, None, None]
        smooth = np.logaddexp(at_ends[..., 0], at_ends[..., 1])
        value = self._lam * total + blur * smooth.sum(axis=1)
        return value, law, np.exp(at_ends[..., 1] - smooth)

    def _branch(self, ends: Array, means: Array) -> list[Cut]:
        """Return the branching rule: the output, for each node, whose chord is farthest off."""
        low, high = ends[..., 0], ends[..., 1]
        width = high - low
        where = kept_apart(means, low, high)
        heights = rel_entr(ends, self._t[:, None])
        share = (where - low) / np.where(width > 0, width, 1.0)
        chord = (1 - share) * heights[..., 0] + share * heights[..., 1]
        gain = chord - rel_entr(where, self._t) + 1e-12 * width
        y = gain.argmax(axis=1)
        return [(int(i), float(where[b, i])) for b, i in enumerate(y)]


class SharingSearch:
    """The bound at the lam and the output distribution of an adversary who is (nearly) the worst.

    It runs like a `BestFirst`, with a tree for each value. `attained` is what it cannot get below.
    The trees start from those of `like`, a search for the same problem at another floor; what they
    are of is chosen for each value, unless `trees` says it.
    """

    kind = "sharing"

    def __init__(
        self,
        lumped: Lumped,
        entropy_floor: float,
        weights: Array,
        multiplier: float,
        like: SharingSearch | None = None,
        trees: type[ValueTree[Any]] | None = None,
    ) -> None:
        self.lam = float(np.clip(multiplier, LEAST_LAM, MOST_LAM))
        rows = lumped.rows / lumped.rows.sum(axis=1, keepdims=True)
        self.output = np.maximum(weights @ rows, SMALLEST)
        self.output /= self.output.sum()
        log_shares, self._log_values = lumped.log_shares
        self._surplus = entropy_surplus(lumped, entropy_floor)
        self._values: list[ValueTree[Any]] = []
        # The least bound by a tangent so far, and the distribution that it touches at.
        self._tangents: list[tuple[float, Array]] = []
        # Whether all trees are of boxes, whose nodes take little time.
        self.by_boxes, self.by_blocks = True, trees is not None
        for a in range(len(lumped.values)):
            groups = lumped.value_index == a
            mass = float(weights[groups].sum())
            law = weights[groups] / mass if mass > 0 else np.exp(log_shares[groups])
            tree = None if like is None else like._values[a]
            kind = trees or (LawBoxes if fits_boxes(rows[groups]) else SharingTree)
            value = kind(rows[groups], log_shares[groups], self.output, self.lam, law, tree)
            self.by_boxes = self.by_boxes and kind is not SharingTree
            self._values.append(value)
            self._tangents.append((np.inf, np.empty(0)))
            self._touch(a)

    @property
    def upper(self) -> float:
        """The bound as it stands."""
        return self._total(self._uppers())

    @property
    def attained(self) -> float:
        """No tree can bring `upper` below this."""
        return self._total([value.attained for value in self._values])

    @property
    def nodes(self) -> int:
        """Number of nodes bounded so far."""
        return sum(value.nodes for value in self._values)

    @property
    def leaves(self) -> int:
        """Number of leaves that a certificate would hold."""
        return sum(value.leaves for value in self._values)

    def run(
        self,
        threshold: Callable[[], float],
        *,
        resolution: float,
        stop: Callable[[], bool],
        on_weights: Callable[[Array], None],
        node_limit: int | None = None,
    ) -> None:
        """Bound and split until `upper <= threshold()`, `stop()`, or the node limit.

        What the trees find are distributions for single values; they are not handed to
        `on_weights`.
        """
        limit = np.inf if node_limit is None else node_limit
        while self.upper > threshold() and not stop() and self.nodes < limit:
            # phi_a + x for all values adds x to the bound.
            spare = max(0.9 * (threshold() - self.attained), 0.3 * resolution)
            worst = int(np.argmax(self._excess()))
            if self._mirror(worst):
                continue
            value, left = self._values[worst], self._excess()[worst]
            if left <= spare:
                return
            batches = 0

            def climb(laws: Array, value: ValueTree[Any] = value) -> None:
                nonlocal batches
                batches += 1
                if batches & (batches - 1) == 0:
                    value.climb(laws[:8])

            value.run(
                lambda value=value, spare=spare: value.attained + spare,
                resolution=resolution,
                stop=stop,
                on_weights=climb,
                node_limit=None if node_limit is None else value.nodes + node_limit - self.nodes,
            )
            self._touch(worst)

    def encoded(self, outputs: Sequence[Sequence[int]], dtype: str) -> dict[str, Any]:
        """Return the bound as `cvxleak.audit.old_terms` reads it."""
        values = []
        for value, (tangent, law) in zip(self._values, self._tangents, strict=True):
            if tangent <= value.upper:
                values.append({"law": pack(np.maximum(law, SMALLEST))})
            else:
                values.append(value.encoded(outputs, dtype))
        return {
            "outputs": [list(group) for group in outputs],
            "multiplier": self.lam,
            "output": pack(self.output),
            "values": values,
        }

    def _mirror(self, a: int) -> bool:
        """Take the tree of another value that got further, if a symmetry moves one to the other."""
        excess = self._excess()
        for other in np.argsort(excess).tolist():
            if excess[other] >= excess[a]:
                break
            image = self._values[a].image(self._values[other])
            if image is not None and image.upper < self._values[a].upper:
                self._values[a] = image
                return True
        return False

    def _touch(self, a: int) -> None:
        """Try the tangent at the best distribution known for a value."""
        value = self._values[a]
        if self.lam >= value.contraction and value.law is not self._tangents[a][1]:
            tangent = value.tangent()
            if tangent < self._tangents[a][0]:
                self._tangents[a] = tangent, value.law

    def _uppers(self) -> list[float]:
        return [min(v.upper, t) for v, (t, _) in zip(self._values, self._tangents, strict=True)]

    def _excess(self) -> list[float]:
        uppers = self._uppers()
        return [upper - v.attained for v, upper in zip(self._values, uppers, strict=True)]

    def _total(self, phi: Sequence[float]) -> float:
        x = np.array(phi) / self.lam
        return float(self.lam * (log_mean_exp(x, self._log_values) + self._surplus))
