"""Envelope certificates: tampering fails, and hostile ones prove nothing false."""

import math
from fractions import Fraction

import numpy as np
import pytest

from cvxleak.core.errors import CertificateError
from cvxleak.envelope import failure_probability, optimal_pml_mechanism, pml_envelope
from cvxleak.kernel.numbers import precision
from cvxleak.proofs import verify
from cvxleak.proofs.envelope import prove_envelope, prove_failure_probability
from cvxleak.proofs.pml_mechanism import prove as prove_mechanism
from tests.proofs.tampering import changed, numbers, rebuilt

RNG = np.random.default_rng(8)
PRIOR = RNG.dirichlet(np.ones(4))
ROWS = RNG.dirichlet(np.ones(5), size=4)
UTILITY = RNG.normal(size=(4, 4))


@pytest.fixture(
    scope="module",
    params=["failure", "strict failure", "envelope", "mechanism"],
)
def certificate(request):
    match request.param:
        case "failure":
            return failure_probability(PRIOR, ROWS, 0.5, strict=False).certificate
        case "strict failure":
            return failure_probability(PRIOR, ROWS, 0.5).certificate
        case "envelope":
            return pml_envelope(PRIOR, ROWS, 0.4).certificate
    return optimal_pml_mechanism(PRIOR, UTILITY, 0.3).certificate


def test_passes_and_says_what_it_is_about(certificate, tmp_path):
    certificate.save(tmp_path / "file.json")
    answer = verify(tmp_path / "file.json")
    assert answer.passed
    assert answer.about
    assert (answer.lower, answer.upper) == (certificate.lower, certificate.upper)


def test_any_changed_number_fails_by_its_hash(certificate):
    content = certificate.to_dict()
    for path in numbers(content):
        assert not verify(changed(content, path, lambda x: x + 1)).passed


def test_a_tighter_claim_fails(certificate):
    content = certificate.to_dict()
    for key, outward in (("lower", math.inf), ("upper", -math.inf)):
        tampered = changed(content, ("claim", key), lambda x, to=outward: math.nextafter(x, to))
        assert not verify(rebuilt(tampered)).passed


@pytest.mark.parametrize("part", ["witness", "proof", "problem"])
def test_a_large_change_of_any_number_that_counts_fails(certificate, part):
    """With the hash recomputed: the proof itself notices."""
    content = certificate.to_dict()
    paths = [
        path for path in numbers(content[part], (part,)) if path[1] not in ("inputs", "outputs")
    ]
    assert paths
    failed = tried = 0
    for path in paths:
        for factor in (0.9, 1.1):
            tampered = changed(content, path, lambda x, f=factor: f * x)
            if tampered != content:
                tried += 1
                failed += not verify(rebuilt(tampered)).passed
    # A multiplier may have slack, and a probability may matter one way only; most do matter.
    assert failed >= 0.4 * tried > 0


def test_parts_are_read_strictly(certificate):
    content = certificate.to_dict()
    for part in ("problem", "witness", "proof"):
        assert not verify(rebuilt(changed(content, (part,), lambda x: x | {"more": 1}))).passed
        for key in content[part]:
            short = {k: v for k, v in content[part].items() if k != key}
            assert not verify(rebuilt(content | {part: short})).passed
            for junk in (None, "text", [], [[]], 1, -1.0):
                assert not verify(
                    rebuilt(changed(content, (part, key), lambda x, j=junk: j))
                ).passed


def exact_value(prior, rows, weights, level):
    """Return the mass of symbols that reach the level, in exact rationals."""
    p = [Fraction(float(x)) for x in prior]
    p = [x / sum(p) for x in p]
    q = [[Fraction(float(v)) for v in row] for row in rows]
    q = [[v / sum(row) for v in row] for row in q]
    output = [sum(a * row[y] for a, row in zip(p, q, strict=True)) for y in range(len(q[0]))]
    total = Fraction(0)
    for x, shares in weights.items():
        gain = sum(Fraction(w) * q[x][y] for y, w in shares)
        mass = sum(Fraction(w) * output[y] for y, w in shares)
        if gain > level * mass:
            total += mass
    return total


def test_any_witness_and_any_multipliers_prove_something_true():
    rng = np.random.default_rng(5)
    for _ in range(60):
        n, m = rng.integers(2, 5, size=2)
        prior, rows = rng.dirichlet(np.ones(n)), rng.dirichlet(np.ones(m), size=n)
        shares = rng.dirichlet(np.ones(n + 1), size=m)[:, :n]
        xs, ys = np.divmod(np.arange(n * m), m)
        witness = {
            "inputs": xs.tolist(),
            "outputs": ys.tolist(),
            "weights": shares[ys, xs].tolist(),
        }
        epsilon = float(rng.uniform(0.01, 1))
        problem = {"prior": prior.tolist(), "matrix": rows.tolist()}
        proof = {"multipliers": rng.exponential(size=n).tolist()}
        with precision():
            lower, upper = prove_failure_probability(
                problem | {"epsilon": epsilon, "strict": True}, witness, proof
            )
        truth = failure_probability(prior, rows, epsilon, tie=0.0)
        assert lower <= truth.upper
        assert upper >= truth.lower
        weights = {x: [(y, float(shares[y, x])) for y in range(m)] for x in range(n)}
        level = Fraction(math.exp(epsilon))
        assert lower == pytest.approx(float(exact_value(prior, rows, weights, level)), abs=1e-15)
        delta = float(rng.random())
        level = float(rng.uniform(1, 3))
        with precision():
            lower, upper = prove_envelope(
                problem | {"delta": delta}, witness, proof | {"level": level}
            )
        truth = pml_envelope(prior, rows, delta, tie=0.0)
        assert lower <= truth.upper
        assert upper >= truth.lower


def test_hostile_parts_are_refused():
    problem = {"prior": [0.5, 0.5], "matrix": [[1.0, 0.0], [0.0, 1.0]], "delta": 0.5}
    empty = {"inputs": [], "outputs": [], "weights": []}
    proof = {"multipliers": [1.0, 1.0], "level": 3.0}

    def prove(problem=problem, witness=empty, proof=proof):
        with precision():
            return prove_envelope(problem, witness, proof)

    assert prove() == (0.0, pytest.approx(math.log(3)))
    for weights in ([0.6, 0.6], [-0.1, 0.5], [math.nan, 0.1], [1e300, 0.1]):
        witness = {"inputs": [0, 1], "outputs": [0, 0], "weights": weights}
        with pytest.raises(CertificateError):
            prove(witness=witness)
    for x, y in ((2, 0), (-1, 0), (0, 2), (0, -1), (0.5, 0), (True, 0)):
        with pytest.raises(CertificateError):
            prove(witness={"inputs": [x], "outputs": [y], "weights": [0.5]})
    for multipliers in ([-1.0, 1.0], [1.0], [math.inf, 1.0]):
        with pytest.raises(CertificateError):
            prove(proof=proof | {"multipliers": multipliers})
    for part in (
        {"prior": [1.0]},
        {"prior": [0.0, 0.0]},
        {"matrix": [[1.0, 0.0], [0.0, 0.0]]},
        {"matrix": [[1.0], [0.0, 1.0]]},
        {"delta": 1.5},
    ):
        with pytest.raises(CertificateError):
            prove(problem=problem | part)
    # An input that cannot occur has no symbol.
    with pytest.raises(CertificateError):
        prove(
            problem=problem | {"prior": [1.0, 0.0]},
            witness={"inputs": [1], "outputs": [1], "weights": [0.5]},
        )


def test_extreme_numbers_do_not_blow_up():
    problem = {"prior": [5e-324, 1e308], "matrix": [[5e-324, 1.0], [1.0, 1e300]]}
    empty = {"inputs": [], "outputs": [], "weights": []}
    multipliers = {"multipliers": [1e308, 5e-324]}
    with precision():
        for epsilon in (1e-300, 700.0, 1999.0, 1e308):
            lower, upper = prove_failure_probability(
                problem | {"epsilon": epsilon, "strict": True}, empty, multipliers
            )
            assert lower == 0
            assert 0 <= upper <= 1


def test_a_mechanism_that_leaks_too_much_is_refused():
    problem = {"prior": [0.5, 0.5], "utility": [[1.0, 0.0], [0.0, 1.0]], "epsilon": 0.5}
    zeros = {"multipliers": [[0.0, 0.0], [0.0, 0.0]]}
    with precision():
        with pytest.raises(CertificateError, match="leaks more"):
            prove_mechanism(problem, {"matrix": [[0.9, 0.1], [0.1, 0.9]]}, zeros)
        assert prove_mechanism(problem, {"matrix": [[0.7, 0.3], [0.3, 0.7]]}, zeros) == (
            pytest.approx(0.7),
            pytest.approx(1.0),
        )
        with pytest.raises(CertificateError, match="negative"):
            prove_mechanism(
                problem,
                {"matrix": [[0.5, 0.5], [0.5, 0.5]]},
                {"multipliers": [[-1.0, 0.0], [0.0, 0.0]]},
            )
