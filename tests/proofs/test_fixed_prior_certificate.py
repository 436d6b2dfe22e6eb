"""Certificates of designs for known priors: closed forms, tampering, and the fast enclosure."""

import copy
import math
from pathlib import Path

import numpy as np
import pytest

from cvxleak.core.errors import CertificateError
from cvxleak.design.fixed_prior import design_for_prior
from cvxleak.design.fixed_prior_bounds import (
    distortions_above,
    dual_below,
    information_above,
)
from cvxleak.kernel.numbers import precision
from cvxleak.proofs import Certificate, verify
from cvxleak.proofs.fixed_prior import prove_distortion, prove_leakage

HAMMING = [[0.0, 1.0], [1.0, 0.0]]

TABLES = Path(__file__).parent / "stored" / "tables_of_records.json"
"""A claim about the records of a dataset, for two priors: nothing makes this form any more."""


def fair_bit():
    """R(0.25) of a fair bit, with a channel and multipliers written by hand."""
    problem = {
        "distortion": HAMMING,
        "sources": [[0.5, 0.5]],
        "secrets": [[0.5, 0.5]],
        "minimize": "information",
        "budget": 0.25,
        "own": [],
    }
    flip = [[0.75, 0.25], [0.25, 0.75]]
    proof = {"weights": [1.0], "prices": [math.log(3)], "reference": flip, "own": []}
    return problem, {"channel": flip}, proof


def proved(problem, witness, proof):
    prove = prove_distortion if problem["minimize"] == "distortion" else prove_leakage
    with precision():
        return prove(problem, witness, proof)[:2]


def test_a_fair_bit_written_by_hand():
    lower, upper = proved(*fair_bit())
    truth = math.log(2) + 0.25 * math.log(0.25) + 0.75 * math.log(0.75)
    assert lower <= truth <= upper
    assert upper - lower < 1e-15


def examples():
    rng = np.random.default_rng(0)
    p, other = rng.dirichlet(np.ones(4), size=2)
    d = rng.random((4, 3))
    low, high = p @ d.min(axis=1), (p @ d).min()
    budget = 0.6 * low + 0.4 * high
    own = {"constraints": lambda Q: Q[0, 0] >= 0.4}
    bounds = {
        "total": design_for_prior(p, d, budget),
        "two priors": design_for_prior([p, other], d, 0.35),
        "inverse": design_for_prior(p, d, 0.02, minimize="distortion"),
        "slope": design_for_prior([p, other], d, slope=2.0),
        "local_dp": design_for_prior(p, d, 1.0, measure="local_dp"),
        "pml": design_for_prior(p, d, 1.0, measure="pml"),
        "maximal_leakage": design_for_prior(p, d, 0.4, measure="maximal_leakage"),
        "own": design_for_prior(p, d, budget, **own),
    }
    return {"records": Certificate.load(TABLES)} | {
        name: bound.certificate for name, bound in bounds.items()
    }


EXAMPLES = examples()


@pytest.mark.parametrize("name", EXAMPLES)
def test_what_is_solved_passes_the_checker(name, tmp_path):
    certificate = EXAMPLES[name]
    assert certificate.upper - certificate.lower < 1e-6
    certificate.save(tmp_path / "claim.json")
    answer = verify(tmp_path / "claim.json")
    assert answer.passed, answer.reason
    assert "least" in answer.about


def rebuilt(certificate, part, change):
    content = {
        "problem": copy.deepcopy(dict(certificate.problem)),
        "witness": copy.deepcopy(dict(certificate.witness)),
        "proof": copy.deepcopy(dict(certificate.proof)),
    }
    change(content[part])
    return Certificate(
        certificate.kind,
        content["problem"],
        certificate.lower,
        certificate.upper,
        content["witness"],
        content["proof"],
        unit=certificate.unit,
    )


def numbers_in(value, path=()):
    if isinstance(value, float):
        yield path
    elif isinstance(value, list | dict):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, part in items:
            yield from numbers_in(part, (*path, key))


def edit(path, function):
    def change(tree):
        for key in path[:-1]:
            tree = tree[key]
        tree[path[-1]] = function(tree[path[-1]])

    return change


@pytest.mark.parametrize("name", EXAMPLES)
def test_no_tampered_number_proves_a_tighter_claim(name):
    """Change numbers one at a time: what then still passes must be the same claim or a true one.

    Numbers of the witness and the proof: the ends that are proved never become better than the
    solver's, which are within 1e-7 of the optimum. Numbers of the problem: the claim, kept as it
    was, must fail for changes that make it false.
    """
    certificate = EXAMPLES[name]
    rng = np.random.default_rng(1)
    slack = 1e-6 * (1 + certificate.upper)
    for part in ("witness", "proof"):
        paths = list(numbers_in(getattr(certificate, part)))
        for place in rng.permutation(len(paths))[:12]:
            for function in (lambda x: 1.5 * x + 0.1, lambda x: 0.0, lambda x: -x - 1.0):
                changed = rebuilt(certificate, part, edit(paths[place], function))
                try:
                    lower, upper = proved(changed.problem, changed.witness, changed.proof)
                except CertificateError:
                    continue
                assert lower <= certificate.upper + slack
                assert upper >= certificate.lower - slack


@pytest.mark.parametrize("name", ["total", "two priors", "records", "inverse", "maximal_leakage"])
def test_a_tighter_budget_falsifies_the_claim(name):
    certificate = EXAMPLES[name]
    tighter = rebuilt(certificate, "problem", lambda tree: tree.update(budget=tree["budget"] * 0.9))
    assert not verify(tighter).passed


@pytest.mark.parametrize("name", EXAMPLES)
def test_claims_beyond_the_proof_fail(name):
    certificate = EXAMPLES[name]
    parts = (certificate.problem, certificate.witness, certificate.proof)
    gap = 1e-4 * (1 + certificate.upper)
    for lower, upper in (
        (certificate.lower + gap, certificate.upper + 2 * gap),
        (certificate.lower - 2 * gap, certificate.upper - gap),
    ):
        problem, witness, proof = parts
        claim = Certificate(
            certificate.kind, problem, lower, upper, witness, proof, unit=certificate.unit
        )
        assert not verify(claim).passed


@pytest.mark.parametrize(
    ("part", "change"),
    [
        ("problem", lambda t: t.update(minimize="distortion")),
        ("problem", lambda t: t.update(minimize="nothing")),
        ("problem", lambda t: t.update(extra=1.0)),
        ("problem", lambda t: t.pop("own")),
        ("problem", lambda t: t.update(budget=-0.1)),
        ("problem", lambda t: t.update(budget=math.inf)),
        ("problem", lambda t: t.update(secrets=[])),
        ("problem", lambda t: t.update(secrets=[[0.5, 0.5, 0.0]])),
        ("problem", lambda t: t.update(secrets=[[0.5, -0.5]])),
        ("problem", lambda t: t.update(sources=[[0.0, 0.0]])),
        ("problem", lambda t: t.update(distortion=[[0.0, -1.0], [1.0, 0.0]])),
        ("problem", lambda t: t.update(distortion=[[0.0, 1.0], [1.0]])),
        ("problem", lambda t: t.update(own=[{"entries": HAMMING}])),
        ("witness", lambda t: t.update(channel=[[1.0, 0.0]])),
        ("witness", lambda t: t.update(channel=[[1.5, -0.5], [0.25, 0.75]])),
        ("witness", lambda t: t.update(channel=[["1", 0.0], [0.25, 0.75]])),
        ("proof", lambda t: t.update(weights=[0.0])),
        ("proof", lambda t: t.update(weights=[1.0, 1.0])),
        ("proof", lambda t: t.update(prices=[-1.0])),
        ("proof", lambda t: t.update(reference=[[-1.0, 1.0], [1.0, 1.0]])),
        ("proof", lambda t: t.update(own=[1.0])),
        ("proof", lambda t: t.pop("reference")),
        ("proof", lambda t: t.update(reference=True)),
    ],
)
def test_malformed_parts_are_refused(part, change):
    problem, witness, proof = fair_bit()
    content = {"problem": problem, "witness": witness, "proof": proof}
    change(content[part])
    with pytest.raises(CertificateError):
        with precision():
            prove_leakage(content["problem"], content["witness"], content["proof"])


def test_a_distortion_that_equals_the_budget_is_decided_exactly():
    problem, witness, proof = fair_bit()
    proved(problem, witness, proof)
    witness["channel"] = [[0.75, math.nextafter(0.25, 1)], [0.25, 0.75]]
    with pytest.raises(CertificateError, match="above the budget"):
        proved(problem, witness, proof)


def test_an_output_that_does_not_look_leaks_exactly_nothing():
    problem, witness, proof = fair_bit()
    problem["budget"] = 0.5
    witness["channel"] = [[0.3, 0.6], [0.3, 0.6]]
    proof["prices"] = [0.0]
    assert proved(problem, witness, proof)[1] == 0.0


def test_references_without_support_prove_nothing():
    problem, witness, proof = fair_bit()
    proof["reference"] = [[1.0, 0.0], [0.0, 1.0]]
    assert proved(problem, witness, proof)[0] == 0.0
    proof["reference"] = [[0.0, 0.0], [0.0, 0.0]]
    assert proved(problem, witness, proof)[0] == 0.0


@pytest.mark.parametrize("seed", range(20))
def test_the_fast_ends_never_claim_more_than_ball_arithmetic(seed):
    rng = np.random.default_rng(seed)
    n, m, k = rng.integers(2, 9, 3)
    spread = 10.0 ** rng.integers(-2, 2)
    sources = rng.dirichlet(np.full(n, spread), size=2)
    laws = rng.dirichlet(np.full(n, spread), size=k)
    d = rng.random((n, m)) * 10.0 ** rng.integers(-5, 6)
    channel = rng.dirichlet(np.full(m, spread), size=n)
    reference = rng.random((n, m)) ** 20 + 1e-200
    weights, slope = rng.random(k), float(rng.random())
    prices = rng.dirichlet(np.ones(2)) * slope
    weights /= weights.sum()
    problem = {
        "distortion": d.tolist(),
        "sources": sources.tolist(),
        "secrets": laws.tolist(),
        "minimize": "information",
        "budget": float(10 * d.max()),
        "own": [],
    }
    proof = {
        "weights": weights.tolist(),
        "prices": prices.tolist(),
        "reference": reference.tolist(),
        "own": [],
    }
    exact_lower, exact_upper = proved(problem, {"channel": channel.tolist()}, proof)
    upper = information_above(laws, channel).max()
    assert exact_upper <= upper * (1 + 1e-15) + 1e-300
    assert upper - exact_upper < 1e-10
    below = dual_below(laws, sources, d, reference, weights, prices)
    offset = prices.sum() * 10 * d.max()
    if exact_lower > 0:
        assert below - offset <= exact_lower + 1e-13 * (1 + abs(offset))
    spent = distortions_above(sources, channel, d)
    exact = (sources / sources.sum(axis=1, keepdims=True)) @ (channel * d).sum(axis=1)
    assert (spent >= exact).all()
