"""Certificates of releases: tampering, hostile content, and a value in fifty digits."""

import base64
import copy
import zlib
from decimal import Decimal, localcontext

import numpy as np
import pytest

from cvxleak.core.errors import CertificateError
from cvxleak.kernel.numbers import precision
from cvxleak.kernel.reading import pack
from cvxleak.proofs import verify
from cvxleak.proofs.bounds.release_law import floats
from cvxleak.proofs.bounds.simplex_cells import slopes_of_cells
from cvxleak.proofs.release import prove_distortion, prove_information
from cvxleak.release import release_lagrangian, release_problem
from tests.proofs.tampering import changed, numbers, rebuilt

TABLE_1 = np.array([[[0.024, 0.228], [0.063, 0.203]], [[0.203, 0.013], [0.228, 0.038]]])


def problems():
    rng = np.random.default_rng(0)
    joint = rng.dirichlet(np.ones(24)).reshape(2, 2, 2, 3)
    return {
        "budgets": release_problem(TABLE_1, 0.05, 0.1).solve(tol=1e-9),
        "least": release_problem(TABLE_1, 0.0, 0.1).solve(tol=1e-9),
        "prices": release_lagrangian(TABLE_1, 0.2, 0.1).solve(tol=1e-9),
        "coalitions": release_problem(joint, 0.1, coalitions={(0,): 0.2, (1,): 0.3}).solve(
            tol=1e-9
        ),
        "information": release_problem(TABLE_1, 0.2, 0.3, "information", outputs=3).solve(
            tol=1e-4, restarts=1, rng=0
        ),
    }


@pytest.fixture(scope="module")
def certificates():
    return {name: bound.certificate for name, bound in problems().items()}


NAMES = ["budgets", "least", "prices", "coalitions", "information"]


@pytest.mark.parametrize("name", NAMES)
def test_certificate_passes_and_survives_a_file(certificates, name, tmp_path):
    certificates[name].save(tmp_path / "release.json")
    answer = verify(tmp_path / "release.json")
    assert answer.passed, answer.reason
    assert "coalitions" in answer.about


@pytest.mark.parametrize("name", NAMES)
def test_any_changed_number_fails_the_hash(certificates, name):
    content = certificates[name].to_dict()
    for path in numbers({key: content[key] for key in ("problem", "witness", "proof", "claim")}):
        tampered = changed(content, path, lambda x: x + 1)
        assert not verify(tampered).passed, path


@pytest.mark.parametrize("name", ["budgets", "prices"])
def test_changed_numbers_change_what_is_proved(certificates, name):
    # A number may be changed without harm where it counts to second order or not at all; what may
    # never happen is that the claim stands although the true value, solved anew, lies outside.
    content = certificates[name].to_dict()
    for part in ("problem", "witness", "proof"):
        for path in numbers(content[part], (part,)):
            for change in (lambda x: 1.05 * x + 1e-2, lambda x: 0.9 * x, lambda x: -x - 1e-2):
                tampered = changed(content, path, change)
                if tampered == content:
                    continue
                answer = verify(rebuilt(tampered))
                if part == "problem" or path[-1] == "price":
                    assert not answer.passed, path
                elif part == "proof":
                    assert answer.lower < certificates[name].lower or not answer.passed, path
                else:
                    assert not answer.passed, path


@pytest.mark.parametrize("name", NAMES)
def test_no_multipliers_whatever_prove_too_much(certificates, name):
    # Random proofs for a fixed witness: lower ends stay below the attained value, upper ends above.
    certificate = certificates[name]
    rng = np.random.default_rng(1)
    prove = prove_information if certificate.kind == "release-information" else prove_distortion
    attained = certificate.lower if name == "information" else certificate.upper
    for scale in (0.01, 0.3, 3.0):
        proof = copy.deepcopy(dict(certificate.proof))
        for parts in proof["coalitions"]:
            if parts["multiplier"] > 0:
                parts["multiplier"] *= float(np.exp(scale * rng.normal()))
            if parts["reference"] is not None:
                array = floats(parts["reference"], 3, "it")
                parts["reference"] = pack(array + scale * rng.normal(size=array.shape), "<f8")
        with precision():
            lower, upper = prove(certificate.problem, certificate.witness, proof)
        if name == "information":
            assert upper >= attained
        else:
            assert lower <= attained + 1e-12


@pytest.mark.parametrize("name", NAMES)
def test_a_tighter_claim_fails(certificates, name):
    content = certificates[name].to_dict()
    for end, shift in (("lower", 1e-9), ("upper", -1e-9)):
        assert not verify(rebuilt(changed(content, ("claim", end), lambda x: x + shift))).passed  # noqa: B023
        assert verify(rebuilt(changed(content, ("claim", end), lambda x: x - shift))).passed  # noqa: B023


def packed_bomb():
    data = base64.b64encode(zlib.compress(b"\0" * 8)).decode()
    return {"dtype": "<f8", "shape": [10**6, 10**6, 10**6], "data": data}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("problem", "joint"), packed_bomb()),
        (("problem", "joint"), pack(np.full((2, 2, 2), np.nan), "<f8")),
        (("problem", "joint"), pack(-TABLE_1, "<f8")),
        (("problem", "joint"), pack(np.zeros((2, 2, 2)), "<f8")),
        (("problem", "joint"), pack(TABLE_1, "<f4")),
        (("problem", "joint"), TABLE_1[0].tolist()),
        (("problem", "distortion"), pack(np.eye(3), "<f8")),
        (("problem", "distortion"), pack(-np.eye(2), "<f8")),
        (("problem", "coalitions"), []),
        (("problem", "coalitions"), None),
        (("problem", "coalitions", 0, "classes"), [0]),
        (("problem", "coalitions", 0, "classes"), [0, 2]),
        (("problem", "coalitions", 0, "classes"), [0, True]),
        (("problem", "coalitions", 0, "price"), -1.0),
        (("problem", "coalitions", 0, "budget"), "most"),
        (("problem", "coalitions", 0, "budget"), True),
        (("problem", "coalitions", 0, "budget"), "least"),
        (("problem", "coalitions", 0, "extra"), 1),
        (("witness", "kernel"), pack(np.ones((2, 2, 3)), "<f8")),
        (("witness", "kernel"), pack(np.zeros((2, 2, 2)), "<f8")),
        (("witness", "kernel"), pack(np.broadcast_to(np.eye(2), (2, 2, 2)), "<f8")),
        (("proof", "coalitions"), []),
        (("proof", "coalitions", 0, "multiplier"), -1.0),
        (("proof", "coalitions", 0, "reference"), None),
        (("proof", "coalitions", 0, "reference"), pack(np.zeros((2, 2, 2)), "<f8")),
        (("proof", "coalitions", 0, "reference"), pack(np.full((1, 2, 2), 1e300), "<f8")),
        (("proof", "extra"), 1),
    ],
)
def test_malformed_parts_fail_with_a_reason(certificates, path, value):
    content = copy.deepcopy(certificates["budgets"].to_dict())
    node = content
    for key in path[:-1]:
        node = node[key]
    node[path[-1]] = value
    answer = verify(rebuilt(content))
    assert not answer.passed
    assert answer.reason


def test_a_multiplier_needs_a_budget(certificates):
    content = copy.deepcopy(certificates["prices"].to_dict())
    content["proof"]["coalitions"][0]["multiplier"] = 0.5
    assert "has no budget" in verify(rebuilt(content)).reason


def test_kernels_without_room_are_made_independent_exactly():
    certificate = release_problem(TABLE_1, 0.0, 0.1).solve().certificate
    kernel = floats(certificate.witness["kernel"], 3, "it")
    spoiled = kernel.copy()
    spoiled[0, 0] = spoiled[0, 0][::-1]  # far from independent
    with precision():
        ends = prove_distortion(
            certificate.problem, {"kernel": pack(kernel, "<f8")}, certificate.proof
        )
        other = prove_distortion(certificate.problem, certificate.witness, certificate.proof)
        assert ends == other
        try:
            _, upper = prove_distortion(
                certificate.problem, {"kernel": pack(spoiled, "<f8")}, certificate.proof
            )
        except CertificateError:
            return
    # What counts is the value of the corrected kernel, which is feasible and so not below.
    assert upper >= certificate.lower


def test_cells_have_to_cover():
    one = {"edges": [[]], "cuts": [], "slopes": [[0.0, 0.0]]}
    assert slopes_of_cells(one, 2) == [[0.0, 0.0]]
    half = [0.0, -float(np.log(4)) + 1e-12]  # -H at (1/2, 1/2) is -log 2
    two = {"edges": [[0, 1], [], []], "cuts": [0.5], "slopes": [half, half[::-1]]}
    assert slopes_of_cells(two, 2) == two["slopes"]
    for spoiled in (
        one | {"slopes": [[0.0, -1e-9]]},
        one | {"slopes": []},
        one | {"edges": []},
        one | {"edges": [[], []]},
        two | {"cuts": [0.4]},
        two | {"cuts": [0.0]},
        two | {"cuts": [0.5, 0.5]},
        two | {"edges": [[0, 0], [], []]},
        two | {"edges": [[0, 2], [], []]},
        two | {"edges": [[0, 1], []]},
        two | {"slopes": [half, half]},
    ):
        with precision(), pytest.raises(CertificateError):
            slopes_of_cells(spoiled, 2)


def test_both_ends_agree_with_decimal_arithmetic(certificates):
    certificate = certificates["budgets"]
    R = Z = X = Y = range(2)
    kernel = floats(certificate.witness["kernel"], 3, "it")
    with localcontext(prec=50):
        total = sum(map(Decimal, TABLE_1.ravel().tolist()))
        p = {(r, z, x): Decimal(float(TABLE_1[r, z, x])) / total for r in R for z in Z for x in X}
        k = {
            (z, x, y): Decimal(float(kernel[z, x, y])) / sum(map(Decimal, kernel[z, x].tolist()))
            for z in Z for x in X for y in Y
        }  # fmt: skip
        upper = sum(p[r, z, x] * k[z, x, y] for r in R for z in Z for x in X for y in Y if r != y)
        pzx = {(z, x): sum(p[r, z, x] for r in R) for z in Z for x in X}
        px = [sum(pzx[z, x] for z in Z) for x in X]
        known = sum(
            pzx[z, x] * (pzx[z, x] / (px[x] * sum(pzx[z, v] for v in X))).ln() for z in Z for x in X
        )
        lower = Decimal(0)
        gradient = {
            (z, x, y): sum(p[r, z, x] for r in R if r != y) for z in Z for x in X for y in Y
        }
        for c, (classes, budget) in enumerate([([0, 0], 0.05), ([0, 1], 0.1)]):
            parts = certificate.proof["coalitions"][c]
            mu, g = Decimal(parts["multiplier"]), floats(parts["reference"], 3, "it")
            lower -= mu * (Decimal(budget) - (known if c else 0))
            for s in set(classes):
                psx = [sum(pzx[z, x] for z in Z if classes[z] == s) for x in X]
                for y in Y:
                    mean = sum(psx[x] * Decimal(float(g[s, x, y])).exp() for x in X) / sum(psx)
                    for z in Z:
                        if classes[z] == s:
                            for x in X:
                                value = Decimal(float(g[s, x, y])) - mean.ln()
                                gradient[z, x, y] += pzx[z, x] * mu * value
        lower += sum(min(gradient[z, x, y] for y in Y) for z in Z for x in X)
        assert Decimal(certificate.lower) < lower < Decimal(certificate.lower) + Decimal("1e-15")
        assert Decimal(certificate.upper) - Decimal("1e-15") < upper < Decimal(certificate.upper)
