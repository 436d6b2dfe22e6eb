"""``cvxleak explain``: the table, the JSON, the certificate, the picture, and what is wrong."""

import json
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "noisy_count.toml"
LOCAL = """
[space]
alphabets = [["a", "b", "c"]]

[mechanism]
kind = "randomized_response"
epsilon = 1.0

[prior]
counts = {a = 2, b = 1, c = 1}
"""


def test_example(run, tmp_path):
    files = {option: tmp_path / f"{option}.out" for option in ("json", "certificate", "html")}
    picture = tmp_path / "hits.svg"
    options = [part for option, path in files.items() for part in (f"--{option}", path)]
    result = run("explain", EXAMPLE, *options, "--plot", picture)
    assert result.exit_code == 0, result.output
    for said in (
        "0.01  0.027183  0.027183  computed",  # e times as many
        "zCDP rho                           0.462117",
        "finds at most\n  3 of 100",
        "leakage to independent beliefs     0.110944",
    ):
        assert said in result.output
    data = json.loads(files["json"].read_text())
    assert data["command"] == "explain"
    assert data["audited"]["hits"][100] == [1.0, 1.0]
    keys = {key for quantity in data["quantities"] for key in quantity}
    assert {"alpha", "false_alarm", "tries", "epsilon"} <= keys
    assert "Hits of the best test against its false alarms" in files["html"].read_text()
    assert picture.read_text().startswith("<?xml")
    checked = run("verify", files["certificate"])
    assert checked.exit_code == 0
    assert "all 18 certificates pass" in checked.output


def test_known_prior_and_keys(run, write):
    spec = write(LOCAL, "[explain]\ntries = 2\norders = [3]\nepsilons = []\n")
    result = run("explain", spec, "--json", "-", "--units", "bits")
    assert result.exit_code == 0
    found = json.loads(result.stdout)["quantities"]
    names = [quantity["name"] for quantity in found]
    assert names.count("guess, others known") == 2
    assert names.count("Rényi DP epsilon") == 1
    assert "record DP delta" not in names
    assert {"mutual information", "posterior guess"} <= set(names)


def test_what_is_wrong(run, write):
    cases = {
        "[explain]\norders = [1]\n": "explain.orders: found 1",
        "[explain]\nfalse_alarms = [2]\n": "explain.false_alarms: found 2",
        "[explain]\nguesses = 2\n": "explain.guesses: unknown key",
    }
    for part, message in cases.items():
        result = run("explain", write(LOCAL, part))
        assert result.exit_code == 2
        assert message in result.stderr
    missing = run("explain", write("[explain]\ntries = 2\n"))
    assert missing.exit_code == 2
    assert "explain needs" in missing.stderr or "mechanism" in missing.stderr
