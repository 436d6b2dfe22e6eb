"""Random adversary classes that hold a known prior, against a search that knows only the class."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import entr, rel_entr

from cvxleak.audit import RecordLeakage
from cvxleak.core.errors import InfeasibleError
from cvxleak.model import Expectation, Knowledge, KnownMarginals, Mechanism, RecordSpace
from cvxleak.model import RelativeEntropyBall as Ball
from cvxleak.model.knowledge.violations import violations_of_prior
from cvxleak.problem.bound import Status
from cvxleak.proofs import verify
from tests.fuzzing import many

SHAPES = ((2, 2), (2, 3), (3, 2), (2, 2, 2))
KINDS = ("at most", "between", "equals", "marginal", "ball", "product ball")


def information(p: np.ndarray, rows: np.ndarray, record: int) -> float:
    joint = np.moveaxis(p[..., None] * rows, record, 0)
    joint = joint.reshape(p.shape[record], -1, rows.shape[-1]).sum(axis=1)
    return float(rel_entr(joint, np.outer(joint.sum(axis=1), joint.sum(axis=0))).sum())


def knowledge(rng: np.random.Generator, kind: str, held: np.ndarray) -> Knowledge:
    """Return something that is so of the prior `held`."""
    shape, slack = held.shape, float(rng.choice([1e-3, 0.05, 0.3]))
    if kind == "marginal":
        record = int(rng.integers(len(shape)))
        others = tuple(j for j in range(len(shape)) if j != record)
        return KnownMarginals(held.sum(axis=others), records=record)
    if kind == "ball":
        reference = rng.dirichlet(np.ones(held.size))
        return Ball(float(rel_entr(held.ravel(), reference).sum()) + slack, prior=reference)
    if kind == "product ball":
        laws = [rng.dirichlet(np.ones(k)) for k in shape]
        reference = np.ones(())
        for law in laws:
            reference = np.multiply.outer(reference, law)
        return Ball(float(rel_entr(held, reference).sum()) + slack, laws=laws)
    c = rng.integers(-2, 3, size=shape).astype(float)
    mean = float((c * held).sum())
    ends = {"at most": (None, mean + slack), "between": (mean - slack, mean + slack)}
    low, high = ends.get(kind, (mean, mean))
    return Expectation(c.ravel(), range(len(shape)), at_least=low, at_most=high)


def missed(known: list[Knowledge], mechanism: Mechanism, p: np.ndarray) -> float:
    each = (violations_of_prior([one.bind(mechanism.query)], mechanism.query, p) for one in known)
    return max(max(one.values()) for one in each)


def search(known, mechanism: Mechanism, rows, record: int, floor: float, held, rng) -> float:
    """Return the most that priors leak which SLSQP finds, and which miss the class by next to 0."""

    def law(z: np.ndarray) -> np.ndarray:
        z = np.maximum(z, 1e-15)
        return (z / z.sum()).reshape(held.shape)

    def room(z: np.ndarray) -> list[float]:
        # A little outwards: an equation has no inside.
        return [1e-9 - missed([one], mechanism, law(z)) for one in known]

    rules = [
        {"type": "eq", "fun": lambda z: z.sum() - 1},
        {"type": "ineq", "fun": room},
        {"type": "ineq", "fun": lambda z: entr(law(z)).sum() - floor},
    ]
    best = information(held, rows, record)
    for _ in range(3):
        run = minimize(
            lambda z: -information(law(z), rows, record),
            0.7 * held.ravel() + 0.3 * rng.dirichlet(np.ones(held.size)),
            method="SLSQP",
            bounds=[(0, 1)] * held.size,
            constraints=rules,
            options={"maxiter": 60},
        )
        p = law(np.where(np.isfinite(run.x), run.x, 0.0))
        if missed(known, mechanism, p) <= 1e-7 and entr(p).sum() >= floor - 1e-7:
            best = max(best, information(p, rows, record))
    return best


def judge(seed: int, shape: tuple[int, ...], kinds: list[str], share: float, tmp_path) -> None:
    rng = np.random.default_rng(seed)
    outputs = int(rng.integers(2, 4))
    rows = rng.dirichlet(np.full(outputs, 0.6), size=shape)
    if rng.random() < 0.3:
        rows = np.where(rng.random(rows.shape) < 0.3, 0.0, rows) + 1e-3 * (rng.random() < 0.5)
        rows[..., 0] += rows.sum(axis=-1) == 0
        rows /= rows.sum(axis=-1, keepdims=True)
    space = RecordSpace([tuple(range(k)) for k in shape])
    mechanism = Mechanism.from_channel(space, rows.reshape(-1, outputs))
    held = rng.dirichlet(np.ones(space.size)).reshape(shape)
    known = [knowledge(rng, kind, held) for kind in kinds]
    record, floor = int(rng.integers(len(shape))), share * float(entr(held).sum())
    problem = RecordLeakage(mechanism, floor, record, adversaries=known)
    try:
        bound = problem.solve(tol=1e-2, time_limit=10.0)
    except InfeasibleError as error:
        if "up to rounding" not in str(error):
            raise
        return
    best = search(known, mechanism, rows, record, floor, held, rng)
    assert bound.lower <= bound.upper
    assert best <= bound.upper + 1e-5
    if bound.status is Status.CERTIFIED:
        assert best <= bound.lower / (1 - 1e-2) + 1e-5
    prior = bound.witness.expand().probabilities.reshape(shape)
    assert missed(known, mechanism, prior) <= 1e-9
    assert entr(prior).sum() >= floor - 1e-9
    assert abs(information(prior, rows, record) - bound.lower) <= 1e-9
    bound.certificate.save(tmp_path / "file.json")
    assert verify(tmp_path / "file.json").passed


CASES = given(
    seed=st.integers(0, 2**32 - 1),
    shape=st.sampled_from(SHAPES),
    kinds=st.lists(st.sampled_from(KINDS), min_size=1, max_size=2, unique=True),
    share=st.sampled_from([0.0, 0.5, 0.9, 0.999]),
)


@many(6)
@CASES
def test_random_classes(tmp_path, seed, shape, kinds, share):
    judge(seed, shape, kinds, share, tmp_path)


@pytest.mark.slow
@many(400)
@CASES
def test_many_random_classes(tmp_path, seed, shape, kinds, share):
    judge(seed, shape, kinds, share, tmp_path)
