"""Each rule on random terms: what it concludes against points sampled from what it speaks of.

Terms are drawn from the rules' signatures, so a new rule is tested without a word here. Of cells
each leaf is judged by itself, in balls and in float balls.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from flint import arb

from cvxleak.kernel.covers import Cells, PosteriorCells
from cvxleak.kernel.majorants import Majorant
from cvxleak.kernel.numbers import RefusedError, ball, precision, upper
from cvxleak.kernel.terms import RULES, Leaf, Shape, read_term
from cvxleak.kernel.values import OneValue
from cvxleak.kernel.view import Row, View
from tests.kernel.random_terms import ELSEWHERE, Drawer, laws, random_view, with_limits

SLACK = 1e-9
"""What the floats of this file may be off by."""


@pytest.fixture(autouse=True)
def _precise() -> Iterator[None]:
    with precision(), np.errstate(all="ignore"):
        yield


def floats(values: Any) -> Any:
    return np.array([float(arb(x).mid()) for x in values])


def xlogx(x: Any) -> Any:
    return np.where(x > 0, x * np.log(np.where(x > 0, x, 1.0)), 0.0)


def rows_in_boxes(given: Sequence[Row], rng: np.random.Generator, count: int) -> Any:
    """Return channels, each with rows inside of the boxes of a set."""
    lo = np.array([floats(row.lo) for row in given])
    if given[0].hi is None:
        return np.broadcast_to(lo, (count, *lo.shape))
    hi = np.array([floats(row.hi or row.lo) for row in given])
    room = (1 - lo.sum(1)) / (hi - lo).sum(1)
    middle = lo + room[:, None] * (hi - lo)
    i, j = rng.permutation(lo.shape[1])[:2]
    step = np.minimum(hi[:, i] - middle[:, i], middle[:, j] - lo[:, j])
    step = step * rng.choice([0.0, 0.5, 1.0], (count, 1))
    rows = np.repeat(middle[None], count, 0)
    rows[:, :, i] += step
    rows[:, :, j] -= step
    return rows


class Sampled:
    """Random adversaries of a view, with J, the posteriors and the laws of each value."""

    def __init__(self, view: View, rng: np.random.Generator, count: int) -> None:
        w = laws(rng, len(view.rows), count)
        entropy = -xlogx(w).sum(1) + w @ floats(view.logs)
        fine = entropy >= float(view.floor.mid()) + 1e-12
        for limit in view.limits:
            most = float(limit.bound.mid()) + float(limit.share.mid()) * entropy
            fine &= w @ floats(limit.c) <= most - 1e-12
        self.w = w = w[fine]
        self.rng, self.rows = rng, rows_in_boxes(view.rows, rng, len(w))
        self.joint = np.stack(
            [np.einsum("wg,wgy->wy", w[:, own], self.rows[:, own]) for own in view.of], axis=2
        )
        self.prior = np.stack([w[:, own].sum(1) for own in view.of], axis=1)
        seen = sum(self._gain(view, self.joint[:, y]) for y in range(view.n))
        before = self._gain(view, self.prior)
        self.j = seen / before if view.times is None else seen - view.times * before

    @staticmethod
    def _gain(view: View, measure: Any) -> Any:
        """Return G, from its definition."""
        mass = measure.sum(1)
        name = type(view.gain).__name__
        if name == "Shannon":
            return xlogx(measure).sum(1) - xlogx(mass)
        if name == "Gini":
            return np.where(mass > 0, (measure**2).sum(1) / np.where(mass > 0, mass, 1), 0)
        if name == "Arimoto":
            order = float(view.gain.alpha.p) / float(view.gain.alpha.q)  # type: ignore[attr-defined]
            return (measure**order).sum(1) ** (1 / order)
        table = np.array([[float(x.p) / float(x.q) for x in own] for own in view.gain.linear])
        return (measure @ table.T).max(1)


def check_bound(found: Any, attained: Any, what: str) -> int:
    """Fail if a bound is below something attained; return how many it was compared with."""
    if len(attained) and found is not None:
        assert upper(found) + SLACK >= attained.max(), what
    return len(attained)


def bounds_of_leaves(cover: PosteriorCells, subject: View) -> list[tuple[Any, arb | None]]:
    """Return each leaf's vertices and bound; None where it is refused or bounds nothing."""
    cells, found = Cells(cover, subject), []
    for i in range(len(cover.leaves)):
        try:
            bound = cells.in_balls(i)
        except RefusedError:
            bound = None
        if bound is not None and not bound.is_finite():
            bound = None
        check_floats(cells, i, bound)
        found.append((cells.vertices(i), bound))
    return found


def check_floats(cells: Cells, i: int, bound: Any) -> None:
    """Fail if a float ball of a leaf and its ball have no point in common."""
    try:
        many = cells.in_floats(np.array([i, i]))
    except RefusedError:
        return
    m, r = float(np.ravel(many.m)[0]), float(np.ravel(many.r)[0])
    if np.isfinite(m) and np.isfinite(r):
        assert bound is not None, "floats bound what balls do not"
        assert not abs(arb(m) - bound) > arb(r) + arb("1e-12"), "floats and balls"


def inside(vertices: Any, sampled: Any) -> Any:
    """Return which sampled adversaries a leaf is about."""
    fine = np.ones(len(sampled.w), bool)
    for y, cell in enumerate(np.moveaxis(vertices.m, -1, 0)):
        at = np.linalg.solve(cell, sampled.joint[:, y].T).T
        fine &= (at >= -1e-12).all(1)
    return fine


def check_b_term(term: Any, view: View, sampled: Any) -> int:
    """Compare a B-term's bound, or that of each leaf, with what adversaries attain."""
    if isinstance(term, PosteriorCells):
        found = 0
        for vertices, bound in bounds_of_leaves(term, view):
            at = sampled.j[inside(vertices, sampled)]
            found += check_bound(bound, at, str(term))
        return found
    return check_bound(term.evaluate(view, Leaf()), sampled.j, str(term))


def check_majorant(term: Any, view: View, sampled: Any) -> int:
    """Compare J with a majorant whose V-terms are left out: psi is computed."""
    found: Majorant = term.evaluate(view, Leaf())
    bound = float(arb(found.kappa).mid()) * -xlogx(sampled.prior).sum(1) + sampled.w @ floats(
        found.c
    )
    if found.sharing is not None:
        log_t, q = floats(found.sharing.log_t), float(arb(found.sharing.q).mid())
        rows = sampled.rows  # or outputs that are merged
        if view.exact:
            rows = rows_in_boxes(found.sharing.rows, sampled.rng, len(sampled.w))
        for own in view.of:
            mass = sampled.w[:, own].sum(1)
            r = np.einsum("wg,wgy->wy", sampled.w[:, own], rows[:, own])
            r = r / np.where(mass > 0, mass, 1)[:, None]
            used = np.where(r > 0, xlogx(r) - r * log_t, 0).sum(1)
            bound = bound + q * mass * used
    fine = np.isfinite(bound)
    assert (bound[fine] + SLACK >= sampled.j[fine]).all(), str(term)
    return int(fine.sum())


def random_value(rng: np.random.Generator, view: View, a: int) -> OneValue:
    """Return the groups of a value with a random base, L and t."""
    t = [ball(float(x)) for x in rng.dirichlet(np.ones(view.n)).round(6) + 1e-6]
    mass = sum(t, arb(0))
    return OneValue(
        [view.rows[g] for g in view.of[a]],
        [ball(float(x)) for x in rng.normal(size=len(view.of[a])).round(3)],
        ball(float(rng.choice([0, 1e-9, 0.125, 0.5, 1, 2]))),
        [(x / mass).log() for x in t],
    )


def check_v_term(term: Any, one: OneValue, v: Any, rng: np.random.Generator) -> int:
    """Compare a V-term's bound with the value at distributions."""
    rows, log_t = rows_in_boxes(one.rows, rng, len(v)), floats(one.log_t)
    r = np.einsum("vg,vgy->vy", v, rows)
    value = (xlogx(r) - r * log_t).sum(1) + v @ floats(one.base)
    value = value - float(one.scale.mid()) * xlogx(v).sum(1)
    return check_bound(term.evaluate(one, Leaf()), value, str(term))


def attempt(check: Any, *args: Any) -> int:
    try:
        return check(*args)
    except RefusedError:
        return 0


SIZES = [(25, 2_000), pytest.param(250, 100_000, marks=pytest.mark.slow)]
STATED = [name for name, cls in RULES.items() if cls.gives in ("B", "J")]
OF_VALUES = [name for name, cls in RULES.items() if cls.gives == "V"]
INSIDE = {"chord", "prior", *ELSEWHERE}
"""Rules that are tested as templates of cells alone, or elsewhere."""


def of_kind(rng: np.random.Generator, rule: str) -> View:
    """Return a view on which a rule may be used."""
    # Of a gain J-terms end inside of cells alone.
    gain = rule in ("factor", "equal") or (rule == "cells" and rng.random() < 0.5)
    boxes = not gain and rule in ("share", "cells", "close", "alphabet") and rng.random() < 0.4
    view = random_view(rng, gain=gain, boxes=boxes)
    if rule == "equal":  # rows that are drawn are not
        view = replace(view, rows=[view.rows[0]] * len(view.rows))
    return replace(view, times=None) if rule == "factor" else view


@pytest.mark.parametrize(("terms", "points"), SIZES)
@pytest.mark.parametrize("rule", [r for r in STATED if r not in INSIDE])
def test_bounds_and_majorants_are_above_what_adversaries_attain(
    rule: str, terms: int, points: int
) -> None:
    rng = np.random.default_rng(sum(map(ord, rule)))
    seen: Counter[str] = Counter()
    for _ in range(2 * terms if rule == "factor" else terms):
        view = of_kind(rng, rule)
        if rule == "close" and rng.random() < 0.5:
            view = with_limits(view, rng)
        judgement, shape = RULES[rule].gives, Shape(view)
        try:
            term = read_term(Drawer(rng).term(judgement, shape, rule), judgement, shape)
        except RefusedError:
            continue
        sampled: Any = Sampled(view, rng, points)
        sampled.of = view.of
        check = check_b_term if judgement == "B" else check_majorant
        seen["compared"] += attempt(check, term, view, sampled)
        seen["terms"] += 1
    assert seen["terms"] > 0
    assert seen["compared"] > 0


@pytest.mark.parametrize(("terms", "points"), SIZES)
@pytest.mark.parametrize("rule", [r for r in OF_VALUES if r not in INSIDE])
def test_bounds_of_one_value_are_above_its_distributions(
    rule: str, terms: int, points: int
) -> None:
    rng = np.random.default_rng(sum(map(ord, rule)))
    compared = 0
    for _ in range(terms):
        view = random_view(rng, boxes=rule == "vertices" and rng.random() < 0.5)
        a = int(rng.integers(view.k))
        shape = replace(Shape(view), value=a)
        try:
            term = read_term(Drawer(rng).term("V", shape, rule), "V", shape)
        except RefusedError:
            continue
        one = random_value(rng, view, a)
        compared += attempt(check_v_term, term, one, laws(rng, len(one.rows), points), rng)
    assert compared > 0
