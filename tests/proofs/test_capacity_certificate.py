"""Capacity certificates: the fast enclosure against the checker, and tampering against both."""

import json
import math
from decimal import Decimal, localcontext

import numpy as np
import pytest

from cvxleak.capacities import capacity
from cvxleak.capacities.enclosure import Enclosure
from cvxleak.exact import balls
from cvxleak.model import Channel, Prior
from cvxleak.proofs import verify
from cvxleak.proofs.capacity import prove
from tests.proofs.tampering import changed, numbers, rebuilt


def normalized(matrix):
    return matrix / matrix.sum(axis=1, keepdims=True)


def proved(channel, p, t):
    with balls.precision():
        return prove(
            {"matrix": channel.matrix.tolist()}, {"input": p.tolist()}, {"output": t.tolist()}
        )


def random_channel(rng, kind):
    n, m = rng.integers(1, 12, size=2)
    if kind == "dense":
        return rng.dirichlet(np.ones(m), size=n)
    if kind == "sparse":
        mask = rng.random((n, m)) < 0.4
        mask[np.arange(n), rng.integers(0, m, n)] = True
        return normalized(mask * rng.random((n, m)))
    if kind == "tiny":
        return normalized(np.exp(-600 * rng.random((n, m))))
    if kind == "subnormal":
        return normalized(np.exp(-745 * rng.random((n, m))))
    if kind == "nearly useless":
        return normalized(rng.random((1, m)) + 1e-9 * rng.random((n, m)))
    if kind == "nearly noiseless":
        return normalized(np.eye(n, m) + 10 ** rng.uniform(-18, -8) * rng.random((n, m)))
    # Row sums off 1 by all that a Channel allows.
    return rng.dirichlet(np.ones(m), size=n) * (1 + rng.uniform(-9e-10, 9e-10, size=(n, 1)))


KINDS = [
    "dense",
    "sparse",
    "tiny",
    "subnormal",
    "nearly useless",
    "nearly noiseless",
    "off the simplex",
]


@pytest.mark.parametrize("kind", KINDS)
def test_enclosure_never_claims_more_than_the_checker_proves(kind):
    rng = np.random.default_rng(KINDS.index(kind))
    for _ in range(40):
        channel = Channel(random_channel(rng, kind))
        p = rng.dirichlet(np.full(channel.shape[0], rng.choice([0.01, 0.3, 1.0, 30.0])))
        p[p < 1e-200] = 0.0
        image = np.maximum(p @ normalized(channel.matrix), 1e-200)
        image /= image.sum()
        noisy = normalized(image * (1 + 1e-6 * rng.random((1, len(image)))))[0]
        unrelated = rng.dirichlet(np.ones(len(image)))
        for t in (image, noisy, unrelated):
            claimed = Enclosure(channel).ends(Prior(p), Prior(t))
            lower, upper = proved(channel, p, t)
            assert claimed[0] <= lower
            assert upper <= claimed[1]
            # It has to say something, too. (Far from the image, the lower end loses D(t' || t).)
            assert claimed[1] - upper <= 1e-14 * (40 + upper)
            if t is not unrelated:
                assert lower - claimed[0] <= 1e-11


def test_enclosure_of_a_large_channel_is_narrow():
    rng = np.random.default_rng(3)
    channel = Channel(rng.dirichlet(np.ones(400), size=150))
    p = rng.dirichlet(np.ones(150))
    t = p @ channel.matrix
    claimed = Enclosure(channel).ends(Prior(p), Prior(t))
    lower, upper = proved(channel, p, t)
    assert lower - 3e-12 < claimed[0] <= lower
    assert upper <= claimed[1] < upper + 3e-12


def test_an_output_law_that_misses_an_output_proves_nothing():
    channel = Channel([[0.5, 0.5], [0.0, 1.0]])
    p, t = np.array([0.0, 1.0]), np.array([0.0, 1.0])
    assert Enclosure(channel).ends(Prior(p), Prior(t)) == (0.0, math.inf)
    assert proved(channel, p, t)[1] == math.inf


def test_both_agree_with_decimal_arithmetic():
    channel = Channel([[0.9, 0.1], [0.25, 0.75]])
    p = np.array([0.4, 0.6])
    with localcontext(prec=50):
        rows = [[Decimal(q) / sum(map(Decimal, row)) for q in row] for row in channel.matrix]
        law = [Decimal(x) / sum(map(Decimal, p)) for x in p]
        t = [sum(x * row[y] for x, row in zip(law, rows, strict=True)) for y in range(2)]
        divergences = [sum(q * (q / s).ln() for q, s in zip(row, t, strict=True)) for row in rows]
        exact = float(sum(x * d for x, d in zip(law, divergences, strict=True)))
        most = float(max(divergences))
    output = p @ channel.matrix
    for lower, upper in (
        proved(channel, p, output),
        Enclosure(channel).ends(Prior(p), Prior(output)),
    ):
        assert exact - 1e-13 < lower < exact
        assert most < upper < most + 1e-13


@pytest.fixture(scope="module")
def certificate():
    rng = np.random.default_rng(4)
    return capacity(rng.dirichlet(np.ones(4), size=3), tol=1e-12).certificate


def test_certificate_passes_and_survives_a_file(certificate, tmp_path):
    certificate.save(tmp_path / "capacity.json")
    assert verify(certificate).passed
    assert verify(tmp_path / "capacity.json").passed


def test_any_changed_number_fails(certificate):
    content = certificate.to_dict()
    paths = list(numbers(content))
    assert len(paths) >= 12 + 3 + 4 + 2
    for path in paths:
        for change in (lambda x: x + 1, lambda x: -x, lambda x: x * (1 + 1e-15) + 1e-300):
            tampered = changed(content, path, change)
            if tampered != content:
                assert not verify(tampered).passed


def test_changed_numbers_fail_even_with_a_hash_that_fits(certificate):
    content = json.loads(json.dumps(certificate.to_dict()))
    for part in ("problem", "witness", "proof"):
        for path in numbers(content[part], (part,)):
            # A law in proportion is the same law, so scale single entries only.
            for change in (lambda x: x * 1.01 + 1e-3, lambda x: x * 0.99, lambda x: -x - 1e-3):
                assert not verify(rebuilt(changed(content, path, change))).passed, path
    for end, shift in (("lower", 1e-9), ("upper", -1e-9)):
        assert not verify(rebuilt(changed(content, ("claim", end), lambda x: x + shift))).passed  # noqa: B023


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("witness", {"input": [1.0, 0.0]}),
        ("witness", {"input": []}),
        ("witness", {"input": [0.0, 0.0, 0.0]}),
        ("witness", {"input": "abc"}),
        ("witness", {}),
        ("proof", {"output": [0.5, 0.5]}),
        ("proof", {"output": [1.0, 0.0, 0.0, 0.0]}),
        ("proof", {"output": None}),
        ("problem", {"matrix": []}),
        ("problem", {"matrix": [[1.0], [1.0], [1.0]]}),
        ("problem", {"matrix": [[1.0, 0, 0, 0], [1.0, 0, 0], [1.0, 0, 0, 0]]}),
        ("problem", {"matrix": [[math.nan, 0, 0, 1], [1.0, 0, 0, 0], [1.0, 0, 0, 0]]}),
        ("problem", {}),
    ],
)
def test_malformed_parts_fail_with_a_reason(certificate, part, value):
    content = certificate.to_dict()
    content[part] = value
    answer = verify(rebuilt(content))
    assert not answer.passed
    assert answer.reason


def test_wider_claims_are_fine(certificate):
    content = certificate.to_dict()
    content["claim"]["lower"] -= 0.1
    content["claim"]["upper"] += 0.1
    assert verify(rebuilt(content)).passed
