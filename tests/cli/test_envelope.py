"""`cvxleak envelope`: table, JSON, picture, certificate, and what is wrong with what is given."""

import json
import math
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from cvxleak.envelope import response_envelope

EXAMPLE = Path(__file__).parents[2] / "examples" / "krr_envelope.toml"
PRIOR = (108 / 592, 286 / 592, 71 / 592, 127 / 592)
LOCAL = (
    '[space]\nalphabets = [["x", "y"]]\n[mechanism]\nkind = "binary_symmetric"\nflip = 0.25\n'
    "[prior]\ncounts = { x = 1, y = 3 }\nsource = 'Made up'\n"
)
# Every output leaks the same, so that all depends on whether equality counts.
EXTREMAL = (
    '[space]\nalphabets = [["x", "y", "z"]]\n[mechanism]\nkind = "pml_extremal"\nepsilon = 0.1\n'
    "[prior]\ncounts = { x = 2, y = 3, z = 5 }\n"
)

Run = Callable[..., Result]
Write = Callable[..., Path]


def document(result: Result) -> dict:
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def named(result: Result, name: str) -> list[dict]:
    return [q for q in document(result)["quantities"] if q["name"] == name]


def test_the_shipped_example(run: Run):
    result = run("envelope", EXAMPLE, "--json", "-")
    found = named(result, "PML envelope")
    assert [q["delta"] for q in found] == [0.01, 0.1, 0.3, 0.5, 0.9]
    # Exact, by another method, where the condition of Theorem 5 holds.
    exact = response_envelope(PRIOR, 1.0, [q["delta"] for q in found])
    for quantity, value in zip(found, exact, strict=True):
        assert quantity["lower"] - 1e-9 <= value <= quantity["upper"] + 1e-9
    assert {q["status"] for q in found} == {"CERTIFIED"}
    bounds = {q["name"] for q in document(result)["quantities"]}
    for place, quantity in enumerate(found):
        at = {name: named(result, name) for name in bounds}
        for name in ("PML quantile", "event envelope"):
            assert at[name][place]["upper"] <= quantity["upper"] + 1e-9
        assert quantity["lower"] <= at["tail average bound"][place]["upper"] + 1e-9
        assert (
            at["tail average bound"][place]["upper"] <= at["Theorem 3 bound"][place]["upper"] + 1e-9
        )
    assert "Snee" in EXAMPLE.read_text()


def test_the_table(run: Run):
    result = run("envelope", EXAMPLE)
    assert result.exit_code == 0
    assert "cvxleak:" not in result.stderr  # how far a search is may be there
    assert "0.9  0.395621    0.049170  0.541249  0.541250  certified" in result.stdout
    assert "> 0.8  0.210916  0.214989  0.214990  certified" in result.stdout
    assert "Prior: R. D. Snee" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_options_replace_the_lists_of_the_spec(run: Run):
    result = run("envelope", EXAMPLE, "--delta", 0.2, 0.05, "--epsilon", 0.1, "--json", "-")
    assert [q["delta"] for q in named(result, "PML envelope")] == [0.05, 0.2]
    assert [q["epsilon"] for q in named(result, "failure probability")] == [0.1]


def test_equality_counts_or_not(run: Run, write: Write):
    result = run("envelope", write(EXTREMAL), "--epsilon", 0.1, "--json", "-")
    (above,), (equal,) = (
        named(result, name) for name in ("failure probability", "failure probability, or equal")
    )
    assert above["upper"] == 0
    assert equal["lower"] == pytest.approx(1)
    (released,) = named(result, "released failure probability, or equal")
    assert released["upper"] == pytest.approx(1)
    assert equal["unit"] == "probability"


def test_units(run: Run, write: Write):
    path = write(LOCAL, "[envelope]\nepsilon = [0.2]\nunit = 'nats'\n")
    nats = run("envelope", path, "--delta", 0.3, "--json", "-")
    bits = run("envelope", path, "--delta", 0.3, "--units", "bits", "--json", "-")
    assert named(bits, "PML envelope")[0]["upper"] == pytest.approx(
        named(nats, "PML envelope")[0]["upper"] / math.log(2)
    )
    # What the spec states in nats stays what it is, and the probability with it.
    (one,), (other,) = (named(result, "failure probability") for result in (nats, bits))
    assert other["epsilon"] == pytest.approx(0.2 / math.log(2))
    assert other["upper"] == pytest.approx(one["upper"])
    level = 0.2 / math.log(2)
    given = run("envelope", path, "--epsilon", level, "--units", "bits", "--json", "-")
    assert named(given, "failure probability")[0]["upper"] == pytest.approx(one["upper"])


def test_certificate(run: Run, write: Write, tmp_path: Path):
    proof = tmp_path / "proof.json"
    arguments = ["--delta", 0.4, "--epsilon", 0.2, "--certificate", proof]
    assert run("envelope", write(LOCAL), *arguments).exit_code == 0
    checked = run("verify", proof)
    assert checked.exit_code == 0
    lines = checked.stdout.splitlines()
    assert lines[0].startswith(
        "PASS  1 of 3: pml-envelope, the PML envelope at 0.4 of a channel with 2 inputs and 2"
    )
    assert lines[-1] == "PASS  all 3 certificates pass"
    content = json.loads(proof.read_text())
    content["certificates"][0]["claim"]["upper"] *= 0.99
    proof.write_text(json.dumps(content))
    assert run("verify", proof).exit_code == 1


@pytest.mark.parametrize(
    ("kind", "start"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")]
)
def test_the_picture(run: Run, write: Write, tmp_path: Path, kind: str, start: bytes):
    pytest.importorskip("matplotlib")
    path, spec = tmp_path / f"envelope.{kind}", write(LOCAL)
    assert run("envelope", spec, "--epsilon", 0.2, "--plot", path).exit_code == 0
    first = path.read_bytes()
    assert first.startswith(start)
    assert run("envelope", spec, "--delta", 0, 0.5, "--plot", path).exit_code == 0
    assert path.read_bytes() != first


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["spec.toml"],
            "spec.toml: envelope needs --delta or --epsilon, or [envelope] in the spec",
        ),
        (["spec.toml", "--delta", "2"], "--delta: found 2.0; it must be in [0, 1]"),
        (["spec.toml", "--delta", "nan"], "--delta: found nan"),
        (["spec.toml", "--epsilon", "-1"], "--epsilon: found -1.0"),
        (["spec.toml", "--epsilon", "inf"], "--epsilon: found inf"),
        (["spec.toml", "--delta", ".1", "--plot", "x.gif"], "--plot: found x.gif; its end must"),
        (["spec.toml", "--delta", ".1", "--plot", "no/x.png"], "--plot: there is no folder no"),
        (["spec.toml", "--delta", ".1", "--tol", "-1"], "--tol: found -1.0"),
        (["spec.toml", "--delta", ".1", "--json", "spec.toml"], "--json: spec.toml is taken"),
        (["bad.toml"], "bad.toml: envelope.delta: found 1.5; it must be in [0, 1]"),
        (["low.toml"], "low.toml: envelope.epsilon: found -1.0"),
        (["key.toml"], "key.toml: envelope.deltas: unknown key; did you mean delta?"),
        (["count.toml", "--delta", ".1"], "count.toml: envelope needs [prior]"),
        (["two.toml", "--delta", ".1"], "two.toml: prior: it is the distribution of the only"),
    ],
)
def test_errors_are_one_message(
    run: Run, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments, message
):
    monkeypatch.chdir(tmp_path)
    write(LOCAL)
    write(LOCAL, "[envelope]\ndelta = [0.5, 1.5]\n", name="bad.toml")
    write(LOCAL, "[envelope]\nepsilon = [-1]\n", name="low.toml")
    write(LOCAL, "[envelope]\ndeltas = [0.5]\n", name="key.toml")
    noise = '[query]\nkind = "count"\nrecords = 2\n[mechanism]\nkind = "identity"\n'
    write(noise, name="count.toml")
    write(noise, "[prior]\ncounts = { 0 = 1, 1 = 1 }\n", name="two.toml")
    before = sorted(tmp_path.iterdir())
    result = run("envelope", *arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith(f"cvxleak: {message}")
    assert len(result.stderr.splitlines()) == 1
    assert sorted(tmp_path.iterdir()) == before
