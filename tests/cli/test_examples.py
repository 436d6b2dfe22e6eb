"""The specs that are shipped: what a reader should learn from each, and that sources are cited."""

import json
import math
from functools import cache
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cvxleak.cli.app import app
from cvxleak.cli.from_spec import build_task
from cvxleak.cli.spec_file import SpecFile
from cvxleak.model import Channel

EXAMPLES = Path(__file__).parents[2] / "examples"
SPECS = [
    "krr.toml",
    "noisy_count.toml",
    "parity4_laplace.toml",
    "ptable.toml",
    "published_count.toml",
    "rounded_count.toml",
    "warner.toml",
]


@cache
def audit(name: str) -> dict[str, list[dict]]:
    result = CliRunner().invoke(app, ["audit", str(EXAMPLES / name), "--json", "-"])
    assert result.exit_code == 0
    found: dict[str, list[dict]] = {}
    for quantity in json.loads(result.stdout)["quantities"]:
        found.setdefault(quantity["name"], []).append(quantity)
    return found


def test_every_spec_with_an_adversary_is_audited():
    paths = EXAMPLES.glob("*.toml")
    assert sorted(path.name for path in paths if "[adversary]" in path.read_text()) == SPECS


@pytest.mark.parametrize("name", SPECS)
def test_everything_is_certified(name: str):
    assert not any(q["status"] == "BRACKETED" for qs in audit(name).values() for q in qs)


@pytest.mark.parametrize("name", SPECS)
def test_specs_state_their_unit(name: str):
    assert SpecFile(EXAMPLES / name).spec.adversary.unit == "nats"


def test_rounded_count():
    found = audit("rounded_count.toml")
    for quantity in found["record leakage"]:
        # Up to 12 nats of doubt (of 20 log 2 = 13.86) the record is disclosed completely.
        complete = quantity["entropy_floor"] <= 12
        assert quantity["meaning"].startswith("Discloses") == complete
        assert (quantity["lower"] > math.log(2) - 1e-6) == complete
    # The first floor at which the adversary cannot be sure.
    assert [q["lower"] > 0.9999 for q in found["guess after"]] == [True] * 3 + [False] * 3
    assert found["worst-case distortion"][0]["upper"] == pytest.approx(4 / 3)


def test_ptable():
    found = audit("ptable.toml")
    # A count of 0 is published as 0, and a count of 1 with probability 102/256.
    assert found["record DP epsilon"][0]["upper"] == "inf"
    assert {q["upper"] for q in found["record DP delta"]} == {154 / 256}
    assert found["worst-case distortion"][0]["upper"] == pytest.approx((102 + 50 + 2 * 26) / 256)
    assert [q["lower"] > math.log(2) - 1e-6 for q in found["record leakage"]] == [True] * 2 + [
        False
    ] * 2


def test_published_count():
    found = audit("published_count.toml")
    law = dict(zip(range(7), (729, 1458, 1215, 540, 135, 18, 1), strict=True))
    # In 256ths, for the counts with a row of their own; the last one serves all others.
    rows = {
        0: {0: 256},
        1: {-1: 102, 0: 78, 1: 50, 2: 26},
        2: {-2: 16, -1: 64, 0: 96, 1: 64, 2: 16},
    }
    joint = {count: p * rows[min(count, 2)].get(3 - count, 0) for count, p in law.items()}
    after = {q["value"]: q["upper"] for q in found["posterior probability"]}
    assert after == pytest.approx({count: p / sum(joint.values()) for count, p in joint.items()})
    assert [count for count, p in after.items() if p] == [1, 2, 3, 4, 5]
    (leakage,) = [q for q in found["pointwise maximal leakage"] if q["outcome"] == 3]
    assert leakage["upper"] == pytest.approx(math.log(96 * 4096 / sum(joint.values())))


def test_parity_is_what_the_plateau_says():
    flip = math.exp(-0.5) / 2
    entropy = -flip * math.log(flip) - (1 - flip) * math.log(1 - flip)
    for quantity in audit("parity4_laplace.toml")["record leakage"]:
        if quantity["entropy_floor"] <= 3 * math.log(2):
            assert quantity["lower"] == pytest.approx(math.log(2) - entropy, abs=1e-6)
            assert round(quantity["upper"], 4) == 0.0795
        else:
            assert quantity["entropy_floor"] == 2.495
            assert round(quantity["upper"], 4) == 0.0393


def test_warner():
    found = audit("warner.toml")
    assert found["local DP epsilon"][0]["upper"] == pytest.approx(math.log(3))
    admitted = 1755 / 4526
    outputs = {
        "admitted": 0.75 * admitted + 0.25 * (1 - admitted),
        "rejected": 0.25 * admitted + 0.75 * (1 - admitted),
    }
    for quantity in found["pointwise maximal leakage"]:
        expected = math.log(0.75 / outputs[quantity["outcome"]])
        assert quantity["upper"] == pytest.approx(expected)


def test_krr():
    task = build_task(SpecFile(EXAMPLES / "krr.toml"))
    assert task.prior is not None
    assert task.prior["Brown"] == pytest.approx(286 / 592)
    found = audit("krr.toml")
    assert found["local DP epsilon"][0]["upper"] == pytest.approx(1.0)
    truth = math.e / (math.e + 3)
    assert found["expected distortion"][0]["upper"] == pytest.approx(1 - truth)
    red = truth * 71 / 592 + (1 - truth) / 3 * (1 - 71 / 592)
    (leakage,) = [q for q in found["pointwise maximal leakage"] if q["outcome"] == "Red"]
    assert leakage["upper"] == pytest.approx(math.log(truth / red))


@pytest.mark.parametrize(("name", "author"), [("warner.toml", "Bickel"), ("krr.toml", "Snee")])
def test_priors_cite_their_source(name: str, author: str):
    prior = SpecFile(EXAMPLES / name).spec.prior
    assert prior is not None
    assert prior.source is not None
    assert author in prior.source


def test_the_channel_in_a_file():
    result = CliRunner().invoke(
        app, ["capacity", str(EXAMPLES / "binary_symmetric.csv"), "--json", "-"]
    )
    assert result.exit_code == 0
    (quantity,) = json.loads(result.stdout)["quantities"]
    channel = Channel.from_csv(EXAMPLES / "binary_symmetric.csv").matrix
    flip = channel[0, 1]
    assert channel[1, 0] == flip
    exact = math.log(2) + flip * math.log(flip) + (1 - flip) * math.log(1 - flip)
    assert quantity["lower"] - 1e-12 <= exact <= quantity["upper"] + 1e-12
