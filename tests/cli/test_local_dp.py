"""`cvxleak local-dp`: table, JSON, channel, certificate, and what is wrong with what is given."""

import json
import math
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from cvxleak.cli.problems import problem_of
from cvxleak.cli.spec_file import SpecFile
from cvxleak.core.numbers import as_written
from cvxleak.measures import local_dp_epsilon
from cvxleak.model import Channel

EXAMPLE = Path(__file__).parents[2] / "examples" / "caithness_local_dp.toml"
LAWS = '[sources]\nkind = "laws"\nlaws = [[0.7, 0.2, 0.1], [0.6, 0.3, 0.1]]\n'
BUDGET = "[local_dp]\ndistortion_budget = 0.3\n"
PRIVATE = "[local_dp]\nepsilon = 1.0\n"

Run = Callable[..., Result]
Write = Callable[..., Path]


def document(result: Result) -> dict:
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def upper(found: dict, name: str) -> float:
    (quantity,) = [q for q in found["quantities"] if q["name"] == name]
    return float(quantity["upper"])


def test_the_shipped_example(run: Run):
    found = document(run("local-dp", EXAMPLE, "--json", "-"))
    assert found["command"] == "local-dp"
    assert list(found["files_sha256"]) == ["caithness_hair.csv"]
    assert upper(found, "k-RR epsilon") == pytest.approx(math.log(28 / 3))
    assert upper(found, "least local DP epsilon") == pytest.approx(1.906546, abs=1e-6)
    assert found["quantities"][0]["status"] == "CERTIFIED"
    assert "Fisher" in EXAMPLE.read_text()
    table = run("local-dp", EXAMPLE).stdout
    assert "least local DP epsilon             1.906545     1.906546  nats" in table
    assert "Class III: the distributions put the outcomes in different orders" in table
    assert max(map(len, table.splitlines())) <= 80


def test_json_keys_are_pinned(run: Run, write: Write):
    found = document(run("local-dp", write(LAWS, BUDGET), "--json", "-"))
    assert list(found)[-5:] == ["units", "interrupted", "audited", "quantities", "channel"]
    assert list(found["audited"]) == [
        "outcomes",
        "outputs",
        "class",
        "class_exact",
        "permutation",
        "foldings",
        "distance_from_uniform",
        "worst_source",
        "delta",
    ]
    assert [q["name"] for q in found["quantities"]] == [
        "least local DP epsilon",
        "k-RR epsilon",
        "worst-source distortion",
        "local DP epsilon",
    ]
    assert Channel.from_dict(found["channel"]).shape == (3, 3)


def test_the_converse(run: Run, write: Write):
    found = document(run("local-dp", write(LAWS, PRIVATE), "--json", "-"))
    assert [q["name"] for q in found["quantities"]][:2] == [
        "least worst-case distortion",
        "k-RR distortion",
    ]
    assert upper(found, "k-RR distortion") == pytest.approx(2 / (math.e + 2))
    assert upper(found, "local DP epsilon") == pytest.approx(1.0)
    bits = write(LAWS, "[local_dp]\nepsilon = 1.0\nunit = 'bits'\n", name="bits.toml")
    found = document(run("local-dp", bits, "--json", "-"))
    assert upper(found, "k-RR distortion") == pytest.approx(2 / (2 + 2))
    assert upper(found, "local DP epsilon") == pytest.approx(math.log(2))


def test_channel_and_certificate(run: Run, write: Write, tmp_path: Path):
    table, data, proof = (tmp_path / name for name in ("c.csv", "c.json", "proof.json"))
    space = '[space]\nalphabets = [["a", "b", "c"]]\n'
    path = write(space, LAWS, BUDGET)
    arguments = ["--channel", table, "--channel", data, "--certificate", proof]
    result = run("local-dp", path, *arguments)
    assert result.exit_code == 0
    channel = Channel.from_csv(table)
    assert channel.inputs == channel.outputs == ("a", "b", "c")
    assert Channel.from_dict(json.loads(data.read_text())) == channel
    claim = json.loads(proof.read_text())["claim"]
    assert local_dp_epsilon(channel) <= claim["upper"] + 1e-12
    checked = run("verify", proof)
    assert checked.exit_code == 0
    assert checked.stdout.startswith("PASS  local-dp, a set of 2 convex parts on 3 outcomes, ")
    content = json.loads(proof.read_text())
    content["claim"]["upper"] *= 0.999
    proof.write_text(json.dumps(content))
    assert run("verify", proof).exit_code == 1


@pytest.mark.parametrize(
    ("sources", "outcomes", "kind"),
    [
        ('kind = "polytope"\nmatrix = [[-1, 1, 0], [0, -1, 1]]\nbound = [0, 0]', 3, "I"),
        ('kind = "box"\nlower = [0.5, 0, 0]\nupper = [0.9, 0.3, 0.3]', 3, "III"),
        ('kind = "sample"\ncounts = { x = 900, y = 100 }', 2, "II"),
        ('kind = "sample"\ncounts = { x = 9, y = 1 }\nmethod = "dirichlet"\nlevel = 0.5', 2, "II"),
        ('kind = "laws"\nfile = "laws.csv"', 3, "II"),
    ],
)
def test_every_kind_of_set(run: Run, write: Write, tmp_path: Path, sources, outcomes, kind):
    (tmp_path / "laws.csv").write_text(",x,y,z\nolder,0.7,0.2,0.1\nnewer,0.6,0.3,0.1\n")
    found = document(run("local-dp", write(f"[sources]\n{sources}\n", PRIVATE), "--json", "-"))
    assert found["audited"]["outcomes"] == outcomes
    assert found["audited"]["class"] == kind
    names = found["channel"]["inputs"]
    assert names == (
        [0, 1, 2] if "b" in sources[6:10] or "poly" in sources else list("xyz")[:outcomes]
    )


def test_the_order_of_the_space_holds(run: Run, write: Write, tmp_path: Path):
    (tmp_path / "laws.csv").write_text(",1,2,3\na,0.7,0.2,0.1\nb,0.6,0.3,0.1\n")
    space = "[space]\nalphabets = [[3, 1, 2]]\n"
    for sources in (
        'kind = "laws"\nfile = "laws.csv"',
        'kind = "sample"\ncounts = { 1 = 900, 2 = 5, 3 = 1 }',
    ):
        path = write(space, f"[sources]\n{sources}\n", PRIVATE)
        found = document(run("local-dp", path, "--json", "-"))
        assert found["channel"]["inputs"] == [3, 1, 2]
        worst = found["audited"]["worst_source"]
        assert worst[1] > worst[2] > worst[0]


def test_a_cost_of_ones_own(run: Run, write: Write, tmp_path: Path):
    (tmp_path / "cost.csv").write_text("0,1\n1,0\n1,1\n")
    cost = '[distortion]\nkind = "matrix"\nfile = "cost.csv"\n'
    found = document(run("local-dp", write(LAWS, PRIVATE, cost), "--json", "-"))
    assert found["channel"]["outputs"] == [0, 1]
    assert list(found["files_sha256"]) == ["cost.csv"]
    absolute = document(
        run("local-dp", write(LAWS, PRIVATE, '[distortion]\nkind = "absolute"\n'), "--json", "-")
    )
    assert absolute["channel"]["outputs"] == [0, 1, 2]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "local-dp needs [sources]\ncvxleak: spec.toml: local-dp needs [local_dp]"),
        (LAWS, "local-dp needs [local_dp]"),
        (LAWS + "[local_dp]\n", "local_dp: either distortion_budget or epsilon is needed"),
        (LAWS + PRIVATE + "distortion_budget = 0.1", "local_dp: either distortion_budget or"),
        (LAWS + BUDGET.replace("0.3", "1.3"), "local_dp.distortion_budget: found 1.3"),
        (LAWS + PRIVATE.replace("1.0", "-1"), "local_dp.epsilon: found -1.0"),
        (LAWS + PRIVATE + "delta = 2", "local_dp.delta: found 2.0"),
        (LAWS.replace("0.7", "0.8") + PRIVATE, "sources.laws[0]: "),
        (LAWS.replace('"laws"', '"lows"', 1) + PRIVATE, "sources.kind: found 'lows'; did you mean"),
        ("[sources]\nkind = 'laws'\n" + PRIVATE, "sources: either laws or file is needed"),
        (
            "[sources]\nkind = 'box'\nlower = [0.6, 0.6]\nupper = [1, 1]\n" + PRIVATE,
            "sources.lower: ",
        ),
        (
            "[sources]\nkind = 'polytope'\nmatrix = [[1, 1]]\nbound = [0.5]\n" + PRIVATE,
            "sources.bound: ",
        ),
        ("[sources]\nkind = 'sample'\ncounts = { a = 1.5 }\n" + PRIVATE, "sources.counts.a: "),
        ("[sources]\nkind = 'sample'\ncounts = { a = -1 }\n" + PRIVATE, "sources: counts"),
        (
            "[sources]\nkind = 'sample'\ncounts = { a = 1, b = 2 }\nlevel = 1.0\n" + PRIVATE,
            "sources.level: found 1.0",
        ),
        (
            "[sources]\nkind = 'sample'\nfile = 'half.csv'\n" + PRIVATE,
            "sources.file: b: found 2.5; a whole number is needed",
        ),
        ("[sources]\nkind = 'laws'\nfile = 'none.csv'\n" + PRIVATE, "sources.file: none.csv"),
        (
            '[space]\nalphabets = [["x", "y"]]\n[sources]\nkind = "sample"\n'
            "counts = { x = 1, z = 2 }\n" + PRIVATE,
            "sources: 'z' is not a value of the record",
        ),
        (
            "[space]\nalphabets = [[0, 1], [0, 1]]\n" + LAWS + PRIVATE,
            "space: the distributions of [sources] are about one record; here there are 2",
        ),
    ],
)
def test_errors_are_one_message(
    run: Run, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content, message
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "half.csv").write_text("a,1\nb,2.5\n")
    write(content)
    result = run("local-dp", "spec.toml")
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert result.stderr.startswith(f"cvxleak: spec.toml: {message}"), result.stderr
    assert len(result.stderr.splitlines()) == 1 + message.count("\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--channel", "c.txt"], "--channel: found c.txt; its end must be one of .csv, .json"),
        (["--channel", "no/c.csv"], "--channel: there is no folder no"),
        (["--channel", "c.csv", "--channel", "c.csv"], "--channel: --channel is taken"),
        (["--tol", "2"], "--tol: found 2.0"),
    ],
)
def test_wrong_options(
    run: Run, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments, message
):
    monkeypatch.chdir(tmp_path)
    write(LAWS, BUDGET)
    result = run("local-dp", "spec.toml", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"cvxleak: {message}")
    assert [path.name for path in tmp_path.iterdir()] == ["spec.toml"]


@pytest.mark.parametrize("number", ["0.33333333333333333333", '"1/3"', "0.3"])
def test_numbers_of_a_spec_stay_as_written(write: Write, number: str):
    written = as_written(number.strip('"'))
    private = problem_of(
        "local-dp", SpecFile(write(LAWS, f"[local_dp]\nepsilon = {number}\n")), "nats"
    )
    assert (private.epsilon, private.delta) == (written, 0)
    budget = SpecFile(write(LAWS, f"[local_dp]\ndistortion_budget = {number}\n"))
    assert problem_of("local-dp", budget, "nats").budget == written
    wanted = f"[design]\nminimize = 'distortion'\nbudget = {number}\nentropy_floor = {number}\n"
    query = "[query]\nkind = 'parity'\nrecords = 2\n[distortion]\nkind = 'hamming'\n"
    design = problem_of("design", SpecFile(write(query, wanted)), "nats")
    assert (design.budget, design.entropy_floor) == (written, written)
    in_bits = problem_of(
        "local-dp", SpecFile(write(LAWS, "[local_dp]\nepsilon = 1.0\nunit = 'bits'\n")), "nats"
    )
    assert in_bits.epsilon == pytest.approx(math.log(2))
