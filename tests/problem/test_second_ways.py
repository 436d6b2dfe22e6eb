"""Every problem against ways that share nothing with its search; docs/second_ways.md lists them."""

import itertools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq, linprog
from scipy.special import entr

from cvxleak import Bound
from cvxleak.iterative import (
    blahut_arimoto,
    blahut_rate_distortion,
    information_saddle,
    joint_blahut_arimoto,
    release_search,
)
from tests.problem.test_contract import JOINT, LAW, PROBLEMS, ROUNDED
from tests.reference import LOG2, information

PAGE = Path(__file__).parents[2] / "docs" / "second_ways.md"


def convex(problem: Any) -> float:
    return problem.to_cvxpy().solve()


def level(problem: Any, below: Callable[[float], bool]) -> float:
    """The level up to which `below` holds for the value of the problem's program, by bisection."""
    low, high = 0.0, 5.0
    for _ in range(40):
        middle = (low + high) / 2
        if below(problem.to_cvxpy(middle).solve(solver="HIGHS")):
            low = middle
        else:
            high = middle
    return low


def rate_distortion(problem: Any) -> float:
    """Blahut's iteration at the slope at which it spends the budget, found by bisection."""
    low, high = 0.0, 50.0
    for _ in range(50):
        slope = (low + high) / 2
        point = blahut_rate_distortion(LAW, 1 - np.eye(3), slope).point
        if np.array(LAW) @ (1 - np.diag(point.channel)) > 0.2:
            low = slope
        else:
            high = slope
    return information(np.array(LAW)[:, None] * point.channel)


def every_product(problem: Any) -> float:
    """The largest leakage of one record over a fine grid of three independent binary records."""
    matrix = problem.mechanism.to_channel().matrix.reshape(2, 2, 2, -1)
    grid = np.linspace(0, 1, 41)
    laws = np.array([1 - grid, grid]).T
    doubts = entr(laws).sum(axis=1)
    places = np.array(list(itertools.product(range(41), repeat=3)))
    places = places[doubts[places].sum(axis=1) >= problem.entropy_floor]
    best = 0.0
    for record in range(3):
        own, *others = laws[places[:, [record, *range(record), *range(record + 1, 3)]].T]
        rows = np.einsum("abcy,nb,nc->nay", np.moveaxis(matrix, record, 0), *others, optimize=True)
        best = max(best, information(own[:, :, None] * rows).max())
    return best


def every_bounded_product(problem: Any) -> float:
    """The largest leakage of the first of three exchangeable binary records over a grid."""
    own, ends = (0.0, 1.0), (0.2, 0.8)
    if problem.laws is not None:
        own = ends = (0.2, 0.7)
    if problem.record_floor is not None:
        doubt = problem.record_floor
        least = brentq(lambda p: entr([p, 1 - p]).sum() - doubt, 0.0, 0.5)
        ends = (least, 1 - least)
    matrix = problem.mechanism.to_channel().matrix.reshape(2, 2, 2, -1)
    laws, others = (
        np.array([1 - grid, grid]).T for grid in (np.linspace(*own, 401), np.linspace(*ends, 7))
    )
    pairs = itertools.product(others, repeat=2)
    channels = [np.einsum("abcy,b,c->ay", matrix, *pair) for pair in pairs]
    return max(information(laws[:, :, None] * rows).max() for rows in channels)


def designs(problem: Any) -> tuple[np.ndarray, np.ndarray]:
    """Costs of a grid of channels, and what each leaks of a bit of two to a grid of adversaries."""
    parts, grid = 24, np.linspace(0, 0.5, 51)
    places = [c for c in itertools.product(range(parts + 1), repeat=4) if sum(c) == parts]
    laws = np.array(places) / parts
    laws = laws[entr(laws).sum(axis=1) >= problem.entropy_floor].reshape(-1, 2, 2)
    flips = np.array(list(itertools.product(grid, repeat=2)))
    outputs = [np.array([[1 - p, p], [q, 1 - q]])[[[0, 1], [1, 0]]] for p, q in flips]
    # Both bits are alike, and the adversaries of one are those of the other.
    leaks = [information(np.einsum("nab,aby->nay", laws, rows)).max() for rows in outputs]
    return flips.mean(axis=1), np.array(leaks)


def least_leak(problem: Any) -> float:
    costs, leaks = designs(problem)
    return leaks[costs <= problem.budget + 1e-9].min()


def least_cost(problem: Any) -> float:
    costs, leaks = designs(problem)
    return costs[leaks <= problem.budget].min()


def renyi(problem: Any) -> float:
    """Sibson's I_alpha over a grid of input laws."""
    a = problem.alpha
    masses = (
        ((np.array([1 - p, p]) @ problem.channel.matrix**a) ** (1 / a)).sum()
        for p in np.linspace(0, 1, 20_001)
    )
    return a / (a - 1) * math.log(max(masses))


def every_posterior(problem: Any) -> float:
    """The best mixture of posteriors of (Z, X) on a grid, by one linear program; in bits."""
    joint, parts = np.array(JOINT), 20
    law = joint.sum(axis=0)
    cells = [c for c in itertools.product(range(parts + 1), repeat=4) if sum(c) == parts]
    grid = np.array(cells).reshape(-1, 2, 2) / parts
    of_r = np.einsum("rzx,izx->ir", joint / law, grid)
    left = entr(grid).sum(axis=(1, 2)) - entr(grid.sum(axis=2)).sum(axis=1)  # H(X|Z)
    about_x = entr(law.sum(axis=0)).sum()
    found = linprog(
        entr(of_r).sum(axis=1),
        [about_x - entr(grid.sum(axis=1)).sum(axis=1), about_x - left],
        np.array([0.3, 0.3]) * LOG2,
        grid.reshape(-1, 4).T,
        law.ravel(),
    )
    return (entr(joint.sum(axis=(1, 2))).sum() - found.fun) / LOG2


Way = Callable[[Any], float]
# Problem and kind of way: how, and how near.
WAYS: dict[tuple[str, str], tuple[Way, float]] = {
    ("capacity", "CVXPY"): (convex, 1e-5),
    ("capacity", "iteration"): (lambda p: blahut_arimoto(p.channel).value, 1e-7),
    ("Rényi capacity", "brute force"): (renyi, 1e-6),
    ("failure probability", "CVXPY"): (convex, 1e-6),
    ("PML envelope", "CVXPY"): (lambda p: level(p, lambda v: v >= p.delta - 1e-9), 1e-6),
    ("PML mechanism", "CVXPY"): (convex, 1e-6),
    ("record leakage", "iteration"): (
        lambda p: joint_blahut_arimoto(ROUNDED.lumped(0), 1.0).value,
        1e-4,
    ),
    ("product leakage", "brute force"): (every_product, 5e-3),
    ("independent records", "brute force"): (every_bounded_product, 1e-5),
    ("independent records of an entropy", "brute force"): (every_bounded_product, 1e-5),
    ("independent records of known distributions", "brute force"): (every_bounded_product, 1e-5),
    ("least leakage", "brute force"): (least_leak, 1e-3),
    ("least distortion", "brute force"): (least_cost, 6e-3),
    ("design for a prior", "CVXPY"): (convex, 1e-5),
    ("design for a prior", "iteration"): (rate_distortion, 1e-5),
    ("least epsilon", "CVXPY"): (lambda p: level(p, lambda v: v > p.budget + 1e-9), 1e-6),
    ("least distortion at epsilon", "CVXPY"): (convex, 1e-5),
    ("least information", "CVXPY"): (convex, 1e-5),
    ("least information", "iteration"): (
        lambda p: information_saddle([[LAW]], 1 - np.eye(3), 0.25).value,
        1e-6,
    ),
    ("release distortion", "CVXPY"): (convex, 1e-5),
    ("release distortion", "iteration"): (
        lambda p: release_search(JOINT, 0.05, 0.1).value,
        1e-5,
    ),
    ("release information", "brute force"): (every_posterior, 2e-3),
}


def listed() -> set[tuple[str, str]]:
    """The entries of the page's table."""
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line[:1] == "|"]
    head, _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)
    return {
        (row[0], kind) for row in rows for kind, cell in zip(head[1:], row[1:], strict=True) if cell
    }


@pytest.fixture(scope="module")
def solved() -> Callable[[str], Bound]:
    bounds: dict[str, Bound] = {}

    def solve(name: str) -> Bound:
        if name not in bounds:
            bounds[name] = PROBLEMS[name]().solve()
        return bounds[name]

    return solve


@pytest.mark.parametrize(
    ("name", "kind"), list(WAYS), ids=[f"{name}, {kind}" for name, kind in WAYS]
)
def test_the_second_way_agrees(name: str, kind: str, solved: Callable[[str], Bound]):
    way, near = WAYS[name, kind]
    bound = solved(name)
    value = way(PROBLEMS[name]())
    assert bound.lower - near <= value <= bound.upper + near


def test_the_page_lists_what_is_compared():
    assert listed() == WAYS.keys()
    assert {name for name, _ in WAYS} == PROBLEMS.keys()
