"""A mixture of audited channels leaks what convexity says, and no forged one passes."""

import copy
import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cvxleak.audit import record_leakage
from cvxleak.core.errors import CertificateError
from cvxleak.design import min_distortion
from cvxleak.design.feasible import blended
from cvxleak.model import Channel, Distortion, Mechanism
from cvxleak.proofs import verify
from cvxleak.proofs.bounds.design_mixtures import mixture_above
from cvxleak.proofs.design import prove_min_distortion
from cvxleak.queries import count


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 10**6), st.integers(1, 3), st.booleans())
def test_a_blend_is_no_less_than_its_parts(seed, many, constant):
    rng = np.random.default_rng(seed)
    parts = [rng.dirichlet(np.full(4, 0.3), size=3) for _ in range(many)]
    shares = rng.dirichlet(np.ones(many + constant))[:many]
    law = rng.dirichlet(np.full(4, 0.3)) if constant else None
    found = blended(list(zip(shares.tolist(), parts, strict=True)), law)
    assert found is not None
    matrix, proved = found
    assert (np.array(matrix).sum(axis=1) == 1).all()
    assert proved == pytest.approx(shares, rel=1e-12)
    uppers = rng.uniform(0, 0.6, many)
    told = [(s, Channel(p), u) for s, p, u in zip(proved, parts, uppers.tolist(), strict=True)]
    above = mixture_above(Channel(matrix), told, 2)
    assert 0 < above - np.array(proved) @ uppers < 1e-11


def test_convexity_holds_for_audits():
    people, floor = count(3), 1.5
    one = np.eye(4)
    other = np.full((4, 4), 0.1) + 0.6 * np.eye(4)[::-1]
    found = blended([(0.4, one), (0.3, other)], np.array([0.0, 0.5, 0.5, 0.0]))
    assert found is not None
    matrix, shares = found
    uppers = [record_leakage(Mechanism(people, q), floor).upper for q in (one, other)]
    told = [(s, Channel(q), u) for s, q, u in zip(shares, (one, other), uppers, strict=True)]
    leaks = record_leakage(Mechanism(people, matrix), floor)
    assert leaks.lower <= mixture_above(Channel(matrix), told, 2)


@pytest.mark.parametrize(
    ("share", "part"),
    [(0.0, np.eye(2)), (-0.5, np.eye(2)), (0.8, np.eye(2)), (0.5, np.eye(3))],
)
def test_shares_that_do_not_fit_are_refused(share, part):
    half = Channel([[0.75, 0.25], [0.25, 0.75]])
    assert mixture_above(half, [(0.5, Channel(np.eye(2)), 0.6)], 2) == pytest.approx(0.3)
    with pytest.raises(CertificateError):
        mixture_above(half, [(share, Channel(part), 0.0)], 2)


def test_what_is_left_over_counts_in_full():
    """Without parts nothing is known but the common part of the rows."""
    channel = Channel([[0.75, 0.25], [0.25, 0.75]])
    assert mixture_above(channel, [], 2) == pytest.approx(0.5 * np.log(2))


@pytest.fixture(scope="module")
def mixture():
    # Whether a channel has to be mixed with a constant one to meet a budget, the start decides.
    for budget in (0.2, 0.15, 0.25, 0.1, 0.3):
        distortion = Distortion.absolute(range(5))
        bound = min_distortion(
            count(4), distortion=distortion, budget=budget, entropy_floor=1.5, tol=0.02
        )
        if "parts" in bound.certificate.proof["leakage"]:
            break
    assert "parts" in bound.certificate.proof["leakage"]
    return bound.certificate


def test_a_mixture_is_verified(mixture):
    assert verify(mixture).passed


def halve_the_leakage(proof):
    proof["parts"][0]["share"] *= 0.5


def more_of_a_part(proof):
    proof["parts"][0]["share"] *= 1.01


def another_channel(proof):
    matrix = proof["parts"][0]["channel"]["matrix"]
    matrix[0] = [0.2] * 5


def no_parts(proof):
    proof["parts"] = []


def a_constant_part(proof):
    matrix = proof["parts"][0]["channel"]["matrix"]
    proof["parts"][0]["channel"]["matrix"] = [matrix[2]] * 5


def nested(proof):
    proof["parts"] = [dict(proof["parts"][0], leakage=copy.deepcopy(proof))]


def one_more_key(proof):
    proof["witness"] = {}


def infinite(proof):
    proof["parts"][0]["share"] = float("inf")


FORGERIES = [
    halve_the_leakage,
    more_of_a_part,
    another_channel,
    no_parts,
    a_constant_part,
    nested,
    one_more_key,
    infinite,
]


@pytest.mark.parametrize("forge", FORGERIES)
def test_a_forged_mixture_fails(mixture, forge):
    proof = copy.deepcopy(mixture.proof)
    forge(proof["leakage"])
    with pytest.raises(CertificateError):
        prove_min_distortion(mixture.problem, mixture.witness, proof)
    assert not verify(dataclasses.replace(mixture, proof=proof)).passed


def test_a_witness_that_is_less_noisy_fails(mixture):
    matrix = 0.99 * np.array(mixture.witness["channel"]["matrix"]) + 0.01 * np.eye(5)
    witness = {"channel": dict(mixture.witness["channel"], matrix=matrix.tolist())}
    with pytest.raises(CertificateError):
        prove_min_distortion(mixture.problem, witness, mixture.proof)
