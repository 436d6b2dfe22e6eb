"""The second checker agrees with the first, alone and on the command line, and knows what it is."""

import ast
import itertools
import json
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import linprog
from typer.testing import CliRunner

import cvxleak
from cvxleak import (
    RecordSpace,
    capacity,
    check,
    failure_probability,
    group_leakage,
    min_leakage,
    record_leakage,
    verify,
)
from cvxleak.cli.app import app
from cvxleak.core.errors import CertificateError
from cvxleak.exact import reading
from cvxleak.mechanisms import random_rounding
from cvxleak.model import ChannelSet, Mechanism, RelativeEntropyBall
from cvxleak.proofs.bounds.design_rows import Law, Rows
from cvxleak.queries import count, from_function, parity
from tests.reference import information
from tests.second_checker.making import MAKERS, WRONG, made
from tests.second_checker.mutating import signed

FILE = Path(check.__file__)


def code(data):
    return check.worst(check.check_text(json.dumps(data)))


@pytest.mark.parametrize("name", MAKERS)
def test_both_checkers_prove_what_was_made_and_neither_end_a_little_better(name):
    data = made(name)
    assert verify(data).passed
    (verdict,) = check.check_text(json.dumps(data))
    assert verdict.code == check.PROVED, verdict
    if name == "capacity of nothing":
        return
    # The other end is attained or proved, so a claim beyond it is false, whatever the proof says.
    lower, upper = data["claim"]["lower"], data["claim"]["upper"]
    if "inf" in (lower, upper):
        data["claim"]["lower"], data["problem"]["budget"] = "inf", data["problem"]["budget"] + 0.1
    else:
        data["claim"].update(lower=upper + 1e-6, upper=upper + 1.0)
        assert code(signed(data)) == check.NOT_PROVED
        data["claim"].update(lower=lower - 1.0, upper=lower - 1e-6)
    assert code(signed(data)) == check.NOT_PROVED


def test_a_floor_that_nobody_meets_proves_no_leakage_below_zero():
    # log sum exp - b falls without end as the floor b rises above log|X|.
    data = made("least leakage, whole dataset")
    data["problem"]["entropy_floor"] = 100.0
    data["proof"]["leakage"]["multiplier"] = 10.0
    data["proof"]["cuts"] = []
    for upper, proved in ((-1e-300, False), (0.0, True)):
        data["claim"].update(lower=None, upper=upper, about={"upper": "problem"})
        assert verify(signed(data)).passed is proved
        assert (code(signed(data)) == check.PROVED) is proved


def test_rows_that_differ_by_less_than_floats_do_tell_something():
    data = made("least distortion, silent")
    data["claim"]["upper"] += 1e-6
    channel, tiny = data["witness"]["channel"], Fraction(1, 10**30)
    near = [0.0, str(Fraction(1, 2) - tiny), str(Fraction(1, 2) + tiny), 0.0]
    for first, proved in (([0.0, 0.5, 0.5, 0.0], True), (near, False)):
        channel["matrix"] = [first, *([[0.0, 0.5, 0.5, 0.0]] * 3)]
        assert verify(signed(data)).passed is proved
        assert (code(signed(data)) == check.PROVED) is proved


def test_a_law_of_datasets_is_even_as_written():
    # Rows are shared by the datasets that nothing tells apart; as floats these weights are equal.
    third = str(Fraction(1, 3) + Fraction(1, 10**30))
    shared = Rows(count(2), count(2), "classes")
    with reading.schema(2):
        shared.check_constant(Law("datasets", (*reading.numbers([0.1, "1/3", "1/3", 0.2], "it"),)))
        uneven = Law("datasets", (*reading.numbers([0.1, "1/3", third, 0.2], "it"),))
        with pytest.raises(CertificateError, match="equal probabilities"):
            shared.check_constant(uneven)


def test_what_is_zero_exactly():
    # Nobody is above e^0 = 1, so that no multiplier is needed.
    data = failure_probability([0.3, 0.3, 0.4], [[0.5, 0.5]] * 3, 0.0).certificate.to_dict()
    data["proof"]["multipliers"] = [0.0] * 3
    alone = Mechanism(from_function(RecordSpace([[0]]), len), [[1.0]])
    for one in (signed(data), record_leakage(alone, 0.0).certificate.to_dict()):
        assert verify(one).passed
        assert one["claim"]["upper"] == 0
        assert code(one) == check.PROVED


def test_probabilities_far_below_the_first_precision():
    noisy = [[1e-111, 1.0, 1e-242], [1e-288, 1e-35, 1.0]]
    data = group_leakage(Mechanism(parity(5), noisy), 1.3, 2).certificate.to_dict()
    assert verify(data).passed
    assert code(data) == check.PROVED


def test_conditions_may_be_known_by_no_half_space_at_all():
    data = made("least leakage")
    assert data["problem"]["own"] == []
    data["claim"]["about"]["upper"] = "half-spaces"
    assert verify(signed(data)).passed
    assert code(signed(data)) == check.PROVED


def test_a_lower_end_needs_no_witness_inside():
    data = made("own half-space")
    data["witness"]["channel"]["matrix"] = [[1.0, 0.0], [0.0, 1.0]]
    data["claim"].update(upper=None, about={"lower": "problem"})
    assert verify(signed(data)).passed
    assert code(signed(data)) == check.PROVED


def test_symmetries_of_datasets_mean_the_same_to_both():
    # [order, maps] takes x to x' with x'_(order_i) = maps_i(x_i): here (a, b) to (b, a + 1), and so
    # datasets whose difference is 0 or 1 are alike. With (b, a + 2) those of 0 and 2 would be.
    space = RecordSpace([[0, 1, 2]] * 2)
    gap = from_function(space, lambda x: int((x[1] - x[0]) % 3 == 2))
    options = {"distortion": WRONG, "budget": 0.1, "entropy_floor": 1.0, "tol": 5e-2}
    certificate = min_leakage(gap, rows="query", **options).certificate
    assert certificate is not None
    data = json.loads(json.dumps(certificate.to_dict()))
    for first, proved in (([1, 2, 0], True), ([2, 0, 1], False)):
        generators = [[[1, 0], [first, [0, 1, 2]]]]
        query = data["problem"]["query"]
        data["problem"]["rows"] = {"form": "orbits", "query": query, "generators": generators}
        assert verify(signed(data)).passed is proved
        assert (code(signed(data)) == check.PROVED) is proved


def test_it_is_one_file_of_the_standard_library():
    text = FILE.read_text()
    assert len(text.splitlines()) <= 1850
    names = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            assert node.module is not None
            names.add(node.module.split(".")[0])
    assert names <= set(sys.stdlib_module_names)


def test_a_copy_runs_alone(tmp_path):
    copy, proof = tmp_path / "check.py", tmp_path / "proof.json"
    copy.write_text(FILE.read_text())
    data = made("cells")
    proof.write_text(json.dumps(data))
    # -I -S: no site packages, no current folder, so nothing but the standard library is there.
    command = [sys.executable, "-I", "-S", str(copy), str(proof)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == check.PROVED, done
    assert done.stdout.startswith("PROVED")
    data["claim"]["upper"] -= 0.01
    proof.write_text(json.dumps(signed(data)))
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == check.NOT_PROVED
    assert "upper bound" in done.stdout
    proof.write_text(json.dumps({**data, "kind": "capacity"}))
    assert subprocess.run(command, capture_output=True, check=False).returncode == check.UNUSABLE
    proof.write_text(json.dumps(signed({**data, "kind": "release-distortion"})))
    assert subprocess.run(command, capture_output=True, check=False).returncode == check.UNKNOWN


def test_a_bundle_is_as_good_as_its_worst_member():
    good = made("capacity")
    bad = json.loads(json.dumps(good))
    bad["claim"]["upper"] = bad["claim"]["lower"] - 0.01
    bad = signed(bad)
    unknown = signed({**good, "kind": "min-information"})

    def bundle(*members):
        return {"format": "cvxleak-certificates", "version": 1, "certificates": list(members)}

    assert code(bundle(good, good)) == check.PROVED
    assert code(bundle(good, unknown)) == check.UNKNOWN
    assert code(bundle(unknown, bad, good)) == check.NOT_PROVED
    assert code(bundle(good, {})) == check.UNUSABLE
    assert code(bundle()) == check.UNUSABLE
    assert code(bundle(bundle(good))) != check.PROVED


def test_what_it_does_not_know_it_refuses_by_name():
    mechanism = Mechanism(count(3), random_rounding(3, 3))
    known = RelativeEntropyBall(0.2, [0.125] * 8)
    data = record_leakage(mechanism, 1.0, adversaries=known, tol=5e-2).certificate
    assert data is not None
    (verdict,) = check.check_text(json.dumps(data.to_dict()))
    assert verdict.code == check.UNKNOWN
    assert "adversaries" in verdict.text
    entry = made("cells")
    entry["proof"]["groups"][0]["slabs"] = {}
    (verdict,) = check.check_text(json.dumps(signed(entry)))
    assert verdict.code == check.UNKNOWN
    assert "slabs" in verdict.text
    entry = made("rise of a guess")
    entry["proof"]["groups"][0]["dataset"] = {}
    assert code(signed(entry)) == check.UNKNOWN
    entry["problem"]["gain"] = {"kind": "brier"}
    assert code(signed(entry)) == check.UNKNOWN


def test_of_a_set_of_channels_it_does_cells_alone():
    data = made("set of channels")
    data["proof"]["groups"][0]["choices"] = {}
    (verdict,) = check.check_text(json.dumps(signed(data)))
    assert (verdict.code, "cells" in verdict.text) == (check.UNKNOWN, True)


def test_what_is_known_of_independent_laws_has_a_name():
    data = made("independent, likely values")
    data["problem"]["laws"] = {"most_probability": 0.2}
    assert code(signed(data)) == check.UNKNOWN


def test_a_set_of_one_row_transmits_nothing():
    alone = capacity(ChannelSet([[0.5, 0.3]], [[0.7, 0.5]]))
    assert alone.certificate is not None
    assert code(alone.certificate.to_dict()) == check.PROVED
    data = made("capacity of a set")
    data["problem"]["upper"][0].append(1.0)
    assert code(signed(data)) == check.UNUSABLE


@pytest.mark.parametrize("seed", range(5))
def test_divergences_of_a_box_are_largest_at_a_vertex(seed):
    rng = np.random.default_rng(seed)
    low = rng.dirichlet(np.ones(4)).round(3) * rng.choice([0.0, 0.8], 4)
    high, t = np.minimum(low + rng.choice([0.0, 0.4, 1.0], 4), 1.0), rng.integers(1, 9, 4)
    high[0] = 1.0
    vertices = []
    for free in range(4):
        for ends in itertools.product(*zip(low.tolist(), high.tolist(), strict=True)):
            q = np.array(ends)
            q[free] += 1 - q.sum()
            if low[free] <= q[free] <= high[free]:
                vertices.append(q)
    s = t / t.sum()
    best = max(
        float(np.where(q > 0, q * np.log(np.maximum(q, 1e-300) / s), 0).sum()) for q in vertices
    )
    log_t = check.common(t.tolist()).logs()
    box = check.box(low.tolist(), high.tolist())
    found = check.divergence_above(box, log_t, check.CUTS) / check.FX.one
    assert best - 1e-12 <= found <= best + 1e-3
    assert found <= check.divergence_above(box, log_t, 0) / check.FX.one + 1e-12
    with pytest.raises(check.InfiniteError):
        check.divergence_above(box, [None, *log_t[1:]], check.CUTS)


@pytest.mark.parametrize("seed", range(5))
def test_what_every_channel_of_a_set_tells(seed):
    rng = np.random.default_rng(seed)
    low = rng.dirichlet(np.ones(4), 3).round(3) * 0.8
    high = np.minimum(low + 0.3, 1.0)
    boxes = [check.box(*row) for row in zip(low.tolist(), high.tolist(), strict=True)]
    slopes = rng.normal(size=(3, 4))
    for row, slope, one, other in zip(boxes, slopes, low, high, strict=True):
        whole = [int(s * check.FX.one) for s in slope.tolist()]
        bounds = list(zip(one, other, strict=True))
        best = -linprog(-slope, A_eq=np.ones((1, 4)), b_eq=[1.0], bounds=bounds).fun
        assert check.support(row, whole) / check.FX.one == pytest.approx(best, abs=1e-9)
    masses = rng.integers(1, 9, (2, 3))
    masses[0, 0] = 0
    given = [[Fraction(int(m), int(masses.sum())) for m in own] for own in masses]
    found = check.below_of_set(check.LEAKAGE, given, boxes) / check.FX.one
    members = []
    for _ in range(300):
        directions = rng.normal(size=(3, 4))
        laws = [check.filled(*pair) for pair in zip(boxes, directions.tolist(), strict=True)]
        members.append(np.array([[x / check.FX.one for x in law] for law in laws]))
    members += [(a + b) / 2 for a, b in itertools.pairwise(members)]
    least = min(information(masses / masses.sum() @ q) for q in members)
    assert 0 <= found <= least + 1e-12
    known = [[0.5, 0.5, 0, 0], [0, 0.25, 0.75, 0], [1, 0, 0, 0]]
    points = [check.box(row, row) for row in known]
    told = information(masses / masses.sum() @ np.array(known, dtype=float))
    assert check.below_of_set(check.LEAKAGE, given, points) / check.FX.one == pytest.approx(
        told, abs=1e-12
    )


@pytest.mark.parametrize("option", [[], ["--second"]])
def test_verify_second_reports_both(tmp_path, option):
    path = tmp_path / "proof.json"
    path.write_text(json.dumps(made("choices")))
    done = CliRunner().invoke(app, ["verify", *option, str(path)])
    assert done.exit_code == 0
    assert ("second checker: PROVED" in done.output) == bool(option)


def test_verify_second_calls_a_disagreement_an_error(tmp_path, monkeypatch):
    path = tmp_path / "proof.json"
    path.write_text(json.dumps(made("choices")))
    wrong = check.Verdict(check.NOT_PROVED, "record-leakage", "something is missing")
    monkeypatch.setattr(check, "check_file", lambda _: [wrong])
    done = CliRunner().invoke(app, ["verify", "--second", str(path)])
    assert done.exit_code == 1
    assert "disagree" in done.output


def test_nothing_imports_it_unasked():
    assert "check" not in cvxleak.__all__
