"""``cvxleak solve``: every problem of the registry from a spec, its sweeps, and its errors."""

import json
import math
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from cvxleak.problem import PROBLEMS, problem_class
from cvxleak.proofs import read_certificates, verify

Run = Callable[..., Result]
Write = Callable[..., Path]

CHANNEL = "[[0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0.1, 0.1, 0.8]]"
LAW = "[0.5, 0.3, 0.2]"
PARITY = "[query]\nkind = 'parity'\nrecords = 2\n[distortion]\nkind = 'hamming'"
NOISY = "[query]\nkind = 'parity'\nrecords = 2\n[mechanism]\nkind = 'binary_symmetric'\nflip = 0.1"
SPECS = {
    "record-leakage": f"entropy_floor = 1.0\n{NOISY}",
    "product-leakage": f"entropy_floor = 0.5\n{NOISY}",
    "capacity": f"channel = {CHANNEL}",
    "renyi-capacity": f"channel = {CHANNEL}\nalpha = 2",
    "failure-probability": f"prior = {LAW}\nchannel = {CHANNEL}\nepsilon = 0.4",
    "pml-envelope": f"prior = {LAW}\nchannel = {CHANNEL}\ndelta = 0.1",
    "pml-mechanism": f"prior = {LAW}\nutility = [[1, 0], [0, 1], [0, 1]]\nepsilon = 0.4",
    "min-leakage": f"budget = 0.1\nentropy_floor = 0.5\n{PARITY}",
    "min-distortion": f"budget = 0.2\nentropy_floor = 0.5\n{PARITY}",
    "min-local-dp": f"sources = [{LAW}]\nbudget = 0.25",
    "min-distortion-local-dp": f"sources = [{LAW}]\nepsilon = 1.5",
    "min-information": f"sources = [{LAW}]\nbudget = 0.25",
}
NUMBERS = {
    "record-leakage": "entropy_floor=0.9,1.3",
    "product-leakage": "entropy_floor=0.5,1.0",
    "renyi-capacity": "alpha=0.5,1,inf",
    "failure-probability": "epsilon=0.4,0.9",
    "pml-envelope": "delta=0.1,0.9",
    "pml-mechanism": "epsilon=0.1,0.4",
    "min-leakage": "budget=0.1,0.2",
    "min-distortion": "budget=0.1,0.2",
    "min-local-dp": "budget=0.1,0.25",
    "min-distortion-local-dp": "epsilon=0.5,1.5",
    "min-information": "budget=0.1,0.25",
}


def spec_of(kind: str) -> str:
    return f'[problem]\nkind = "{kind}"\n{SPECS[kind]}'


def test_every_problem_has_a_spec_here():
    assert SPECS.keys() == PROBLEMS.keys()


@pytest.mark.parametrize("kind", sorted(SPECS))
def test_solved_with_a_certificate(kind: str, run: Run, write: Write, tmp_path: Path):
    path, proof = write(spec_of(kind)), tmp_path / "proof.json"
    result = run("solve", path, "--json", "-", "--certificate", proof)
    assert result.exit_code == 0, result.stderr
    (found,) = json.loads(result.stdout)["quantities"]
    assert found["status"] == "CERTIFIED"
    assert found["meaning"].endswith(".")
    (certificate,) = read_certificates(proof)
    assert certificate["kind"] == problem_class(kind).kind
    answer = verify(certificate)
    assert answer.passed
    assert found["lower"] <= answer.lower <= answer.upper <= found["upper"]
    table = run("solve", path)
    assert table.exit_code == 0
    assert "certified" in table.stdout


@pytest.mark.parametrize("kind", sorted(NUMBERS))
def test_swept_over_its_number(kind: str, run: Run, write: Write):
    result = run("sweep", write(spec_of(kind)), "--over", f"problem.{NUMBERS[kind]}", "--json", "-")
    assert result.exit_code == 0, result.stderr
    rows = json.loads(result.stdout)["rows"]
    assert [row["status"] for row in rows] == ["CERTIFIED"] * len(rows)
    assert len({row["upper"] for row in rows}) == len(rows)


def test_bits(run: Run, write: Write):
    def found(*options: str) -> tuple[float, float]:
        path = write(
            spec_of("failure-probability").replace("0.4", str(0.4 / math.log(2))), *options
        )
        result = run("solve", path, "--json", "-", "--units", "bits")
        assert result.exit_code == 0, result.stderr
        (quantity,) = json.loads(result.stdout)["quantities"]
        return quantity["lower"], quantity["upper"]

    nats = run("solve", write(spec_of("failure-probability")), "--json", "-")
    (quantity,) = json.loads(nats.stdout)["quantities"]
    assert found() == pytest.approx((quantity["lower"], quantity["upper"]), abs=1e-9)
    assert found('unit = "bits"') == found()


def test_other_sections_are_the_arguments_of_their_name(run: Run, write: Write, tmp_path: Path):
    (tmp_path / "channel.csv").write_text("0.9,0.1\n0.3,0.7\n")
    result = run("solve", write('[problem]\nkind = "capacity"\nchannel = "channel.csv"'))
    assert result.exit_code == 0, result.stderr
    assert "0.205637" in result.stdout
    local = """
    [space]
    alphabets = [["yes", "no"]]
    [mechanism]
    kind = "binary_symmetric"
    flip = 0.1
    [prior]
    counts = {yes = 1, no = 1}
    [problem]
    kind = "pml-envelope"
    delta = 0.5
    """
    result = run("solve", write(local))
    assert result.exit_code == 0, result.stderr
    assert "0.587786" in result.stdout  # log 1.8


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("renyi-capacity", "renyi"), "problem.kind: found 'renyi'; allowed: 'capacity'"),
        (("alpha", "order"), "problem.order is unknown; the keys of renyi-capacity: ['alpha'"),
        (("alpha = 2", ""), "problem.alpha is missing"),
        (("alpha = 2", "alpha = -2"), "problem: alpha: found -2"),
        (("alpha = 2", 'alpha = "two"'), "problem: alpha: "),
        (("0.8, 0.1, 0.1", "0.8, 0.1, 0.2"), "problem: channel: row 0 sums to 1.1"),
        ((CHANNEL, '"none.csv"'), "/none.csv: No such file"),
        (("alpha = 2", 'alpha = 2\nunit = "bytes"'), "problem.unit: found 'bytes'"),
    ],
)
def test_errors_name_the_key(change: tuple[str, str], message: str, run: Run, write: Write):
    result = run("solve", write(spec_of("renyi-capacity").replace(*change)))
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())


def test_a_spec_without_a_problem(run: Run, write: Write):
    result = run("solve", write(""))
    assert result.exit_code == 2
    assert "solve needs [problem]" in result.stderr
