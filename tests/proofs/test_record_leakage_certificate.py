"""The checker against tampering: of the file, and of numbers with the hash made to match."""

from __future__ import annotations

import base64
import copy
import json
import math
import zlib

import numpy as np
import pytest
from cvxleak.proofs.bounds.trees import DEPTH_LIMIT, unpack_tree
from cvxleak.proofs.bounds.whole_dataset import dataset_bound
from hypothesis import given, settings
from hypothesis import strategies as st

from cvxleak.audit import balance, group_leakage, record_leakage
from cvxleak.core.errors import CertificateError
from cvxleak.exact.balls import precision
from cvxleak.exact.packing import pack, unpack
from cvxleak.measures import lumped_entropy, lumped_information
from cvxleak.mechanisms import truncated_geometric
from cvxleak.model import AdditiveQuery, Channel, Limits, Mechanism, RecordSpace
from cvxleak.problem.bound import Status
from cvxleak.proofs import Certificate, verify
from cvxleak.queries import count


def mechanism() -> Mechanism:
    query = AdditiveQuery(RecordSpace.binary(4), [(0, 1)] * 4, modulus=3)
    return Mechanism(query, [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]])


@pytest.fixture(scope="module")
def certificate() -> Certificate:
    """A certificate with a tree of cells."""
    found = record_leakage(mechanism(), 2.3, tol=1e-3).certificate
    assert found is not None
    assert "cells" in found.proof["groups"][0]
    return found


def leaves_of(data):
    """Paths to every number and text inside the JSON document."""
    stack = [((), data)]
    while stack:
        path, node = stack.pop()
        if isinstance(node, dict):
            stack += [((*path, key), value) for key, value in node.items()]
        elif isinstance(node, list):
            stack += [((*path, place), value) for place, value in enumerate(node)]
        else:
            yield path, node


def with_change(data, path, value):
    changed = copy.deepcopy(data)
    into = changed
    for key in path[:-1]:
        into = into[key]
    into[path[-1]] = value
    return changed


def rehashed(certificate: Certificate, **changes) -> Certificate:
    """The certificate with parts replaced and a hash that fits again."""
    parts = {
        name: copy.deepcopy(getattr(certificate, name))
        for name in ("kind", "problem", "lower", "upper", "witness", "proof", "versions")
    }
    return Certificate(**(parts | changes))


def test_saved_certificate_passes(certificate, tmp_path):
    path = tmp_path / "certificate.json"
    certificate.save(path)
    answer = verify(path)
    assert answer.passed, answer.reason
    assert answer.lower >= certificate.lower
    assert answer.upper <= certificate.upper
    assert Certificate.load(path) == certificate


def test_every_changed_leaf_of_the_file_fails(certificate):
    data = json.loads(json.dumps(certificate.to_dict()))
    assert verify(data).passed
    seen = 0
    for path, value in leaves_of(data):
        if isinstance(value, bool) or value is None:
            other = 1
        elif isinstance(value, int):
            other = value + 1
        elif isinstance(value, float):
            other = math.nextafter(value, math.inf)
        else:
            other = value[:-1] + ("A" if value[-1:] != "A" else "B")
        assert not verify(with_change(data, path, other)).passed, path
        seen += 1
    assert seen > 40


def test_missing_and_extra_keys_fail(certificate):
    data = json.loads(json.dumps(certificate.to_dict()))
    for key in data:
        assert not verify({k: v for k, v in data.items() if k != key}).passed, key
    assert not verify({**data, "note": "trust me"}).passed


def test_claims_beyond_the_proof_fail(certificate):
    tighter = rehashed(certificate, upper=certificate.upper - 1e-9)
    assert "upper bound" in verify(tighter).reason
    higher = rehashed(certificate, lower=certificate.lower + 1e-9)
    assert "lower bound" in verify(higher).reason
    looser = rehashed(certificate, upper=certificate.upper + 1e-3)
    assert verify(looser).passed


def test_lower_floor_invalidates_the_upper_end(certificate):
    problem = {**certificate.problem, "entropy_floor": 2.0}
    assert not verify(rehashed(certificate, problem=problem)).passed


def test_higher_floor_invalidates_the_witness(certificate):
    problem = {**certificate.problem, "entropy_floor": 2.5}
    assert "below the floor" in verify(rehashed(certificate, problem=problem)).reason


def test_less_noise_invalidates_the_upper_end(certificate):
    problem = copy.deepcopy(dict(certificate.problem))
    problem["mechanism"]["channel"]["matrix"] = [[0.9, 0.05, 0.05], [0.05, 0.9, 0.05],
                                                 [0.05, 0.05, 0.9]]  # fmt: skip
    assert not verify(rehashed(certificate, problem=problem)).passed


def cells_with(certificate: Certificate, **changes) -> Certificate:
    proof = copy.deepcopy(dict(certificate.proof))
    proof["groups"][0]["cells"].update(changes)
    return rehashed(certificate, proof=proof)


def test_each_leaf_and_multiplier_matters(certificate):
    cells = certificate.proof["groups"][0]["cells"]
    leaves = unpack(cells["leaves"]).copy()
    rng = np.random.default_rng(0)
    failed = 0
    for place in rng.choice(len(leaves), size=20, replace=False):
        # Zeroed multipliers are still a valid bound, but of this leaf a much weaker one.
        changed = leaves.copy()
        changed[place] = 0
        failed += not verify(cells_with(certificate, leaves=pack(changed, "<f4"))).passed
    assert failed == 20
    negative = leaves.copy()
    negative[0, 1] = -1e-3
    answer = verify(cells_with(certificate, leaves=pack(negative, "<f4")))
    assert "negative" in answer.reason
    infinite = leaves.copy()
    infinite[0, 1] = np.inf
    assert not verify(cells_with(certificate, leaves=pack(infinite, "<f4"))).passed


def test_leaving_out_or_adding_a_leaf_fails(certificate):
    cells = certificate.proof["groups"][0]["cells"]
    leaves = unpack(cells["leaves"])
    splits = unpack(cells["splits"])
    cuts = unpack(cells["cuts"])
    assert not verify(cells_with(certificate, leaves=pack(leaves[:-1], "<f4"))).passed
    assert not verify(
        cells_with(certificate, splits=pack(splits[:-1], "<i4"), leaves=pack(leaves[:-1], "<f4"))
    ).passed
    more = np.vstack([leaves, leaves[-1:]])
    assert not verify(cells_with(certificate, leaves=pack(more, "<f4"))).passed
    longer = np.vstack([splits, splits[-1:]])
    assert not verify(
        cells_with(certificate, splits=pack(longer, "<i4"), leaves=pack(more, "<f4"))
    ).passed
    for bad in (0.0, 1.0, -0.5, np.nan):
        changed = cuts.copy()
        changed[0] = bad
        assert not verify(cells_with(certificate, cuts=pack(changed))).passed
    moved = cuts.copy()
    moved[0] = 0.5 * moved[0]
    assert not verify(cells_with(certificate, cuts=pack(moved))).passed
    for column, value in [(0, 7), (1, 5), (2, -1)]:
        changed = splits.copy()
        changed[0, column] = value
        assert not verify(cells_with(certificate, splits=pack(changed, "<i4"))).passed
    same = splits.copy()
    same[0, 2] = same[0, 1]
    assert not verify(cells_with(certificate, splits=pack(same, "<i4"))).passed


def test_merging_outputs_that_differ_fails(certificate):
    assert not verify(cells_with(certificate, outputs=[[0, 1], [2]])).passed
    assert not verify(cells_with(certificate, outputs=[[0], [1]])).passed
    assert not verify(cells_with(certificate, outputs=[[0], [1], [1]])).passed


def test_witness_has_to_fit(certificate):
    weights = list(certificate.witness["weights"])
    for changed in (weights[:-1], [*weights, 0.0], [-w for w in weights], [0.0] * len(weights)):
        witness = {**certificate.witness, "weights": changed}
        assert not verify(rehashed(certificate, witness=witness)).passed
    assert not verify(rehashed(certificate, witness={**certificate.witness, "records": [9]})).passed
    # Another record of the same class is as good.
    assert verify(rehashed(certificate, witness={**certificate.witness, "records": [2]})).passed


def test_every_group_of_records_has_to_be_bounded():
    rows = np.random.default_rng(0).dirichlet(np.ones(3), size=8)
    found = record_leakage(Mechanism.from_channel(RecordSpace.binary(3), rows), 1.5, tol=1e-2)
    certificate = found.certificate
    groups = certificate.proof["groups"]
    assert len(groups) == 3
    assert verify(certificate).passed
    assert not verify(rehashed(certificate, proof={"groups": groups[:2]})).passed
    borrowed = {"groups": [groups[0], {"same_as": 0}, groups[2]]}
    assert "not equivalent" in verify(rehashed(certificate, proof=borrowed)).reason
    ahead = {"groups": [{"same_as": 0}, *groups[1:]]}
    assert not verify(rehashed(certificate, proof=ahead)).passed


def test_records_that_see_the_same_share_a_proof():
    # f = x1 xor x2 with different alphabets' labels: not swappable, yet the same numbers.
    space = RecordSpace([(0, 1), ("no", "yes")])
    found = record_leakage(
        Mechanism.from_channel(space, [[0.9, 0.1], [0.1, 0.9], [0.1, 0.9], [0.9, 0.1]]), 1.0
    )
    assert {"same_as": 0} in found.certificate.proof["groups"]
    assert verify(found.certificate).passed


def test_choices_are_checked():
    query = AdditiveQuery(RecordSpace.binary(4), [(0, 1)] * 4, modulus=2)
    found = record_leakage(Mechanism(query, [[0.7, 0.3], [0.3, 0.7]]), 1.0)
    certificate = found.certificate
    entry = certificate.proof["groups"][0]
    inputs = unpack(entry["choices"])
    assert inputs.shape == (4, 2)
    for changed in (inputs[:-1], inputs * [[0.5, 1.5]], np.eye(2)[[0, 0, 0, 0]], -inputs):
        proof = {"groups": [{**entry, "choices": pack(changed)}]}
        assert not verify(rehashed(certificate, proof=proof)).passed
    # With no proof at all the bound is the size of the alphabet, log 2.
    bare = rehashed(certificate, proof={"groups": [{"records": [0]}]})
    assert verify(bare).upper == pytest.approx(math.log(2))
    assert not verify(bare).passed


def test_near_proportional_outputs_are_merged_at_a_price():
    base = np.random.default_rng(1).dirichlet(np.ones(2), size=4)
    # Splitting each output 0.3 : 0.7 gives columns that are proportional only up to rounding.
    split = Channel(base).then(Channel([[0.3, 0.7, 0.0, 0.0], [0.0, 0.0, 0.3, 0.7]]))
    plain = record_leakage(Mechanism.from_channel(RecordSpace.binary(2), base), 0.9)
    found = record_leakage(Mechanism.from_channel(RecordSpace.binary(2), split), 0.9)
    assert found.upper == pytest.approx(plain.upper, rel=2e-4)
    for entry in found.certificate.proof["groups"]:
        part = entry.get("cells") or entry["sharing"]
        assert len(part["outputs"]) == 2
    assert verify(found.certificate).passed


def test_balance_certificate_is_checked():
    certificate = balance(mechanism(), 2.3, tol=1e-3).certificate
    assert verify(certificate).passed
    assert not verify(rehashed(certificate, lower=certificate.lower + 1e-9)).passed
    assert not verify(rehashed(certificate, upper=certificate.upper - 1e-9)).passed
    proof = {"capacity": certificate.proof["leakage"], "leakage": certificate.proof["capacity"]}
    assert not verify(rehashed(certificate, proof=proof)).passed


def test_unknown_kinds_versions_and_files(certificate, tmp_path):
    assert "unknown kind" in verify(rehashed(certificate, kind="trust-me")).reason
    data = certificate.to_dict()
    assert "schema version" in verify({**data, "schema_version": 99}).reason
    assert "not a cvxleak certificate" in verify({"format": "other"}).reason
    assert "cannot read" in verify(tmp_path / "missing.json").reason
    broken = tmp_path / "broken.json"
    broken.write_text('{"format": "cvxleak-cert')
    assert "cannot read" in verify(broken).reason
    broken.write_text("[1, 2]")
    assert not verify(broken).passed


def test_packing_round_trips_and_refuses_nonsense():
    array = np.array([[0.1, 1e-300], [np.pi, -0.0]])
    assert np.array_equal(unpack(pack(array)), array)
    assert unpack(pack(np.zeros((0, 3)))).shape == (0, 3)
    packed = pack(array)
    for change in (
        {"dtype": "<c16"},
        {"shape": [3, 2]},
        {"shape": [-2, -2]},
        {"shape": [10**9, 10**9]},
        {"data": "!!"},
        {"data": packed["data"][:-8]},
    ):
        with pytest.raises(CertificateError):
            unpack({**packed, **change})


def test_a_wrong_shape_is_refused_before_anything_is_decompressed(monkeypatch):
    def bomb(*arguments):
        raise AssertionError("something was decompressed")

    packed = pack(np.zeros((1000, 3)))
    assert unpack(packed, (None, 3)).shape == (1000, 3)
    monkeypatch.setattr("zlib.decompressobj", bomb)
    for shape in ((1000,), (1000, 2), (999, None), (1000, 3, 1)):
        with pytest.raises(CertificateError, match="is needed"):
            unpack(packed, shape)
    for changed in ([1000, True], [1000.0, 3], ["1000", 3], "1000", [1 << 40, 3], [1] * 9):
        with pytest.raises(CertificateError):
            unpack({**packed, "shape": changed}, (None, 3))
    with pytest.raises(CertificateError, match="parts"):
        unpack({**packed, "note": 1})
    # A few bytes that claim to be a huge tree: its shapes have to go together first.
    tree = {
        "nodes": {**packed, "dtype": "<i4", "shape": [10**8]},
        "cuts": pack(np.zeros(1)),
        "leaves": pack(np.zeros((2, 3))),
    }
    monkeypatch.undo()
    with pytest.raises(CertificateError, match="is needed"):
        unpack_tree(tree, "nodes", (), 3)


def test_a_bomb_decompresses_to_no_more_than_its_shape():
    data = base64.b64encode(zlib.compress(bytes(10**7))).decode()
    with pytest.raises(CertificateError, match="another size"):
        unpack({"dtype": "<f8", "shape": [2, 3], "data": data})


@pytest.mark.parametrize(
    ("nodes", "cuts", "leaves", "found"),
    [
        (np.array([0, -1, -1]), np.array([0.5]), np.full((2, 3), np.nan), "finite"),
        (np.array([0, -1, -1]), np.array([np.inf]), np.zeros((2, 3)), "finite"),
        (np.array([0, 0, -1]), np.array([0.5]), np.zeros((2, 3)), "one cut for each inner node"),
        (np.array([-1]), np.zeros(0), np.zeros((0, 3)), "no leaves"),
        (np.array([-1]), np.zeros(0), np.zeros(3), "no leaves"),
        (np.array([-1]), np.zeros(0), np.zeros((1, 2)), "is needed"),
        (np.array([-1, -1]), np.zeros(0), np.zeros((1, 3)), "is needed"),
        (np.array([-1]), np.zeros(1), np.zeros((1, 3)), "is needed"),
    ],
)
def test_malformed_trees_are_refused(nodes, cuts, leaves, found):
    tree = {"nodes": pack(nodes, "<i4"), "cuts": pack(cuts), "leaves": pack(leaves)}
    with pytest.raises(CertificateError, match=found):
        unpack_tree(tree, "nodes", (), 3)
    with pytest.raises(CertificateError):
        unpack_tree({**tree, "nodes": pack(nodes, "<f8")}, "nodes", (), 3)


def test_a_tree_that_only_goes_down_is_refused(certificate):
    size = DEPTH_LIMIT + 10
    cells = certificate.proof["groups"][0]["cells"]
    width = unpack(cells["leaves"]).shape[1]
    deep = cells_with(
        certificate,
        splits=pack(np.array([[0, 0, 1]] * (size - 1) + [[-1, -1, -1]] * size), "<i4"),
        cuts=pack(np.full(size - 1, 0.5)),
        leaves=pack(np.zeros((size, width))),
    )
    assert "too deep" in verify(deep).reason


@pytest.mark.parametrize(
    "change",
    [
        lambda entry: entry.update(note=1),
        lambda entry: entry.pop("records"),
        lambda entry: entry.update(records=[1]),
        lambda entry: entry.update(records=[False]),
        lambda entry: entry.update(same_as=0),
        lambda entry: entry["cells"].update(note=1),
        lambda entry: entry["cells"].pop("cuts"),
        lambda entry: entry["cells"].update(outputs=[["0"], [1], [2]]),
        lambda entry: entry["cells"].update(outputs=[[0], [True], [2]]),
        lambda entry: entry["cells"]["leaves"].update(note=1),
        lambda entry: entry["cells"]["leaves"].update(shape=[1e9, 1]),
    ],
)
def test_entries_of_the_proof_are_read_strictly(certificate, change):
    proof = copy.deepcopy(dict(certificate.proof))
    change(proof["groups"][0])
    answer = verify(rehashed(certificate, proof=proof))
    assert not answer.passed
    assert "malformed" not in answer.reason


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m["channel"]["matrix"].__setitem__(0, [True, False, False]),
        lambda m: m["channel"].update(note=1),
        lambda m: m.update(note=1),
        lambda m: m["query"].update(modulus=3.5),
    ],
)
def test_the_mechanism_is_read_strictly(certificate, change):
    problem = copy.deepcopy(dict(certificate.problem))
    change(problem["mechanism"])
    assert not verify(rehashed(certificate, problem=problem)).passed


def test_true_is_not_one_in_a_mechanism():
    certain = Mechanism(count(2), np.eye(3))
    found = record_leakage(certain, 0.5).certificate
    assert found is not None
    problem = copy.deepcopy(dict(found.problem))
    matrix = problem["mechanism"]["channel"]["matrix"]
    matrix[0] = [int(x) for x in matrix[0]]
    assert verify(rehashed(found, problem=problem)).passed
    matrix[0] = [bool(x) for x in matrix[0]]
    assert not verify(rehashed(found, problem=problem)).passed


@pytest.fixture(scope="module")
def slabs_certificate() -> Certificate:
    """A certificate with a tree of slabs of conditional laws."""
    noisy = Mechanism(count(12), truncated_geometric(12, 0.15))
    found = record_leakage(noisy, 5.0, tol=5e-3).certificate
    assert found is not None
    assert "slabs" in found.proof["groups"][0]
    return found


def slabs_with(certificate: Certificate, **changes) -> Certificate:
    proof = copy.deepcopy(dict(certificate.proof))
    proof["groups"][0]["slabs"].update(changes)
    return rehashed(certificate, proof=proof)


def test_slabs_pass_and_matter(slabs_certificate):
    assert verify(slabs_certificate).passed
    assert not verify(rehashed(slabs_certificate, upper=slabs_certificate.upper - 1e-9)).passed
    problem = {**slabs_certificate.problem, "entropy_floor": 4.5}
    assert not verify(rehashed(slabs_certificate, problem=problem)).passed


def test_tampered_slabs_fail(slabs_certificate):
    slabs = slabs_certificate.proof["groups"][0]["slabs"]
    leaves = unpack(slabs["leaves"])
    nodes, cuts = unpack(slabs["nodes"]), unpack(slabs["cuts"])
    functional = unpack(slabs["functional"])
    outputs = len(slabs["outputs"])
    assert len(cuts) >= 1
    lower_nu = leaves.copy()
    lower_nu[:, 2 + outputs :] -= 1e-3
    answer = verify(slabs_with(slabs_certificate, leaves=pack(lower_nu)))
    assert "nu is too small" in answer.reason
    higher_nu = leaves.copy()
    higher_nu[:, 2 + outputs :] += 1e-2
    assert "upper bound" in verify(slabs_with(slabs_certificate, leaves=pack(higher_nu))).reason
    for column, value in [(0, -1.0), (1, 0.0), (1, 1.0), (1, np.nan), (2, np.inf)]:
        changed = leaves.copy()
        changed[0, column] = value
        assert not verify(slabs_with(slabs_certificate, leaves=pack(changed))).passed
    assert not verify(slabs_with(slabs_certificate, leaves=pack(leaves[:-1]))).passed
    assert not verify(slabs_with(slabs_certificate, leaves=pack(leaves[:, :-1]))).passed
    for changed in (np.append(nodes, -1), nodes[:-1], np.where(nodes >= 0, 5, nodes)):
        assert not verify(slabs_with(slabs_certificate, nodes=pack(changed, "<i4"))).passed
    # A cut that is moved leaves slabs that the multipliers were not made for.
    moved = cuts + 0.2 * np.ptp(functional)
    assert not verify(slabs_with(slabs_certificate, cuts=pack(moved))).passed
    assert not verify(slabs_with(slabs_certificate, cuts=pack(cuts * np.nan))).passed
    assert not verify(slabs_with(slabs_certificate, functional=pack(functional[::-1]))).passed
    assert not verify(slabs_with(slabs_certificate, functional=pack(functional[:-1]))).passed


@pytest.fixture(scope="module")
def dataset_certificate() -> Certificate:
    """A certificate with the bound by the whole dataset: eight records of nine."""
    noise = np.full((4, 4), 0.2 / 3)
    np.fill_diagonal(noise, 0.8)
    query = AdditiveQuery(RecordSpace.binary(9), [(0, 1)] * 9, modulus=4)
    found = group_leakage(Mechanism(query, noise), 3.6, 8)
    assert found.status is Status.CERTIFIED
    assert found.certificate is not None
    assert set(found.certificate.proof["groups"][0]) == {"records", "dataset"}
    return found.certificate


def test_the_bound_by_the_dataset_passes_and_matters(dataset_certificate):
    assert verify(dataset_certificate).passed
    entry = dataset_certificate.proof["groups"][0]
    multipliers = unpack(entry["dataset"]["multipliers"]).copy()
    output = unpack(entry["dataset"]["output"]).copy()

    def answer(**changes):
        dataset = {**entry["dataset"], **changes}
        return verify(
            rehashed(dataset_certificate, proof={"groups": [{**entry, "dataset": dataset}]})
        )

    for place, value in [(0, -1.0), (1, -0.1), (1, 1.1), (1, np.nan), (0, np.inf)]:
        changed = multipliers.copy()
        changed[place] = value
        assert not answer(multipliers=pack(changed)).passed
    assert "upper bound" in answer(multipliers=pack(multipliers * [1, 0.5])).reason
    assert not answer(multipliers=pack(multipliers[:1])).passed
    for law in (
        output[:-1],
        -output,
        2 * output,
        output * [1, 1, 1, 0],
        np.array([0.4, 0.2, 0.2, 0.2]),
    ):
        assert not answer(output=pack(law)).passed
    shifted = output + np.array([0.1, -0.1, 0, 0])
    assert "upper bound" in answer(output=pack(shifted)).reason
    assert not answer(more=1).passed


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    lam=st.sampled_from([0.0, 1e-6, 0.1, 2.0, 1e5]),
    q=st.sampled_from([0.0, 0.3, 1.0]),
    limited=st.booleans(),
)
def test_any_multipliers_of_the_dataset_bound_every_adversary(seed, lam, q, limited):
    rng = np.random.default_rng(seed)
    rows = rng.dirichlet(np.full(3, 0.5), size=6)
    lumped = Mechanism.from_channel(RecordSpace([range(2), range(3)]), rows).lumped(0)
    size = len(lumped.rows)
    w = rng.dirichlet(np.full(size, 0.4))
    limits = Limits(rng.normal(size=(1, size)), [0.0]) if limited else Limits.none(lumped)
    limits = Limits(limits.coefficients, limits.coefficients @ w)
    kappa = rng.exponential(size=len(limits.bounds))
    proof = {
        "multipliers": pack(np.array([lam, q, *kappa])),
        "output": pack(rng.dirichlet(np.ones(3))),
    }
    floor = lumped_entropy(w, lumped)
    with precision():
        bound = dataset_bound(lumped, floor, proof, limits)
    assert lumped_information(w, lumped) <= bound + 1e-12 * (1 + lam)
