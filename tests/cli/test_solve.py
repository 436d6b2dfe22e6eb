"""``cvxleak solve``: every problem of the registry from a spec, its sweeps, and its errors."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from cvxleak.audit import record_leakage
from cvxleak.mechanisms import binary_symmetric
from cvxleak.model import Arimoto, GainMatrix, Guess, GuessInTries, Mechanism, RecordSpace
from cvxleak.problem import PROBLEMS, problem_class
from cvxleak.problem.registry import PYTHON_ONLY, numbers
from cvxleak.proofs import read_certificates, verify
from cvxleak.queries import from_table

Run = Callable[..., Result]
Write = Callable[..., Path]


class Nats(float):
    """A number of a spec that is an amount of information."""


CHANNEL = [[0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0.1, 0.1, 0.8]]
LAW = [0.5, 0.3, 0.2]
HAMMING = [[0, 1, 1], [1, 0, 1], [1, 1, 0]]
JOINT = [[[0.024, 0.228], [0.063, 0.203]], [[0.203, 0.013], [0.228, 0.038]]]
FLIPPED = binary_symmetric(0.1)
PARITY = "[query]\nkind = 'parity'\nrecords = 2\n[distortion]\nkind = 'hamming'"
NOISY = """[query]
kind = "table"
alphabets = [[0, 1], [0, 1, 2]]
values = [0, 1, 0, 1, 0, 1]
[mechanism]
kind = "binary_symmetric"
flip = 0.1
"""
NOISY_PARITY = PARITY + "\n[mechanism]\nkind = 'binary_symmetric'\nflip = 0.1"
ROUGH = "--tol", "0.01"
"""Enough where two answers are compared."""

GROUP = {"objective": "group", "size": 1}

SPECS: dict[str, tuple[str, dict[str, Any], str]] = {
    "record-leakage": (
        "record-leakage",
        {"entropy_floor": Nats(1.5), "size": 1},
        NOISY,
    ),
    "record-leakage of a record": (
        "record-leakage",
        {"entropy_floor": Nats(1.5), "records": 0},
        NOISY,
    ),
    "record-leakage, guesses": (
        "record-leakage",
        {"entropy_floor": Nats(1.5), "gain": "guess"},
        NOISY,
    ),
    "product-leakage": (
        "product-leakage",
        {"entropy_floor": Nats(1.2), "records": 0},
        NOISY_PARITY,
    ),
    "product-leakage, uncertain records": (
        "product-leakage",
        {"least_probability": 0.2, "records": 0},
        NOISY_PARITY,
    ),
    "product-leakage, record floor": (
        "product-leakage",
        {"record_floor": Nats(0.5)},
        NOISY_PARITY,
    ),
    "product-leakage, laws": (
        "product-leakage",
        {"laws": [[0.2, 0.8], [0.5, 0.5]]},
        NOISY_PARITY,
    ),
    "product-leakage, guesses": (
        "product-leakage",
        {"least_probability": 0.2, "gain": "guess"},
        NOISY_PARITY,
    ),
    "product-leakage, a factor under laws": (
        "product-leakage",
        {"laws": [[0.2, 0.8], [0.5, 0.5]], "gain": "guess", "form": "factor"},
        NOISY_PARITY,
    ),
    "capacity": ("capacity", {"channel": CHANNEL}, ""),
    "renyi-capacity": ("renyi-capacity", {"channel": CHANNEL, "alpha": 2}, ""),
    "failure-probability": (
        "failure-probability",
        {"prior": LAW, "channel": CHANNEL, "epsilon": Nats(0.9), "tie": Nats(1e-12)},
        "",
    ),
    "pml-envelope": ("pml-envelope", {"prior": LAW, "channel": CHANNEL, "delta": 0.6}, ""),
    "pml-envelope, ties": (
        "pml-envelope",
        {"prior": LAW, "channel": CHANNEL, "delta": 0.6, "tie": 1e-12},
        "",
    ),
    "pml-mechanism": (
        "pml-mechanism",
        {"prior": LAW, "utility": [[1, 0], [0, 1], [0, 1]], "epsilon": Nats(0.4)},
        "",
    ),
    "min-leakage": ("min-leakage", {"budget": 0.1, "entropy_floor": Nats(1.2), **GROUP}, PARITY),
    "min-distortion": (
        "min-distortion",
        # Up to log 2 the floor makes no difference to the parity of two bits.
        {"budget": Nats(0.2), "entropy_floor": Nats(1.2), **GROUP},
        PARITY,
    ),
    "min-local-dp": ("min-local-dp", {"sources": [LAW], "budget": 0.25, "delta": 0.01}, ""),
    "min-distortion-local-dp": (
        "min-distortion-local-dp",
        {"sources": [LAW], "epsilon": Nats(1.5), "delta": 0.01},
        "",
    ),
    "min-information": ("min-information", {"sources": [LAW], "budget": 0.25}, ""),
    "design-for-prior": (
        "design-for-prior",
        {"prior": LAW, "distortion": HAMMING, "budget": 0.2},
        "",
    ),
    "design-for-prior, distortion": (
        "design-for-prior",
        {"prior": LAW, "distortion": HAMMING, "budget": Nats(0.2), "minimize": "distortion"},
        "",
    ),
    "design-for-prior, slope": (
        "design-for-prior",
        {"prior": LAW, "distortion": HAMMING, "slope": Nats(2.0)},
        "",
    ),
    "release-distortion": (
        "release-distortion",
        {"joint": JOINT, "epsilon": Nats(0.05), "delta": Nats(0.1), "outputs": 2},
        "",
    ),
    "release-information": (
        "release-information",
        {"joint": JOINT, "epsilon": Nats(0.2), "delta": Nats(0.5), "outputs": 4},
        "",
    ),
}
"""Kind, arguments and other sections: all numbers of a problem stand in one of its specs."""

SAME = ("outputs", "records", "tie")
"""Numbers that may change without changing the value."""


def spec_of(name: str, **changes: Any) -> str:
    kind, data, sections = SPECS[name]
    lines = [f"{key} = {json.dumps(value)}" for key, value in (data | changes).items()]
    return "\n".join(["[problem]", f'kind = "{kind}"', *lines, sections])


def quantity_of(result: Result) -> dict[str, Any]:
    assert result.exit_code == 0, result.stderr
    (found,) = json.loads(result.stdout)["quantities"]
    return found


def test_every_problem_has_specs_with_all_its_numbers():
    assert {kind for kind, _, _ in SPECS.values()} == PROBLEMS.keys()
    for kind in PROBLEMS:
        given = {key for spec, data, _ in SPECS.values() for key in data if spec == kind}
        assert given >= {*numbers(problem_class(kind))}


@pytest.mark.parametrize("name", sorted(SPECS))
def test_solved_with_a_certificate(name: str, run: Run, write: Write, tmp_path: Path):
    path, proof = write(spec_of(name)), tmp_path / "proof.json"
    found = quantity_of(run("solve", path, "--json", "-", "--certificate", proof))
    assert found["status"] == "CERTIFIED"
    assert found["meaning"].endswith(".")
    (certificate,) = read_certificates(proof)
    answer = verify(certificate)
    assert answer.passed
    assert found["lower"] <= answer.lower <= answer.upper <= found["upper"]
    table = run("solve", path, *ROUGH)
    assert table.exit_code == 0
    assert "certified" in table.stdout


@pytest.mark.parametrize(
    ("name", "number"),
    [
        (name, number)
        for name, (kind, data, _) in sorted(SPECS.items())
        for number in numbers(problem_class(kind))
        if number in data
    ],
)
def test_swept_over_each_of_its_numbers(name: str, number: str, run: Run, write: Write):
    value = SPECS[name][1][number]
    other = value + 1 if isinstance(value, int) else value / 2
    over = f"problem.{number}={value},{other}"
    result = run("sweep", write(spec_of(name)), "--over", over, *ROUGH, "--json", "-")
    assert result.exit_code == 0, result.stderr
    first, second = json.loads(result.stdout)["rows"]
    assert (first["status"], second["status"]) == ("CERTIFIED", "CERTIFIED")
    assert number in SAME or (first["lower"], first["upper"]) != (second["lower"], second["upper"])


@pytest.mark.parametrize("name", sorted(SPECS))
def test_bits(name: str, run: Run, write: Write):
    data = SPECS[name][1]
    changes = {key: x / math.log(2) for key, x in data.items() if isinstance(x, Nats)}
    nats = quantity_of(run("solve", write(spec_of(name)), *ROUGH, "--json", "-"))
    scale = math.log(2) if nats["unit"] == "nats" else 1.0
    for spec in (spec_of(name, **changes), spec_of(name, unit="nats")):
        bits = quantity_of(run("solve", write(spec), "--units", "bits", *ROUGH, "--json", "-"))
        assert bits["unit"] == nats["unit"].replace("nats", "bits")
        room = 2 * (nats["upper"] - nats["lower"]) + 1e-9
        assert scale * bits["lower"] == pytest.approx(nats["lower"], abs=room)
        assert scale * bits["upper"] == pytest.approx(nats["upper"], abs=room)
    if changes:
        same = quantity_of(
            run("solve", write(spec_of(name, unit="bits", **changes)), *ROUGH, "--json", "-")
        )
        assert same["upper"] == pytest.approx(nats["upper"], abs=room)


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


LOCAL = """
[space]
alphabets = [["yes", "no"]]
[mechanism]
kind = "binary_symmetric"
flip = 0.1
[prior]
counts = {yes = 1, no = 3}
[distortion]
kind = "hamming"
"""
LAWS = "[sources]\nkind = 'laws'\nlaws = [[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]]\n"
VIEWS = {
    "design": (
        LOCAL,
        "[design]\nminimize = 'distortion'\nbudget = 0.1\nentropy_floor = 0.2",
        "kind = 'min-distortion'\nbudget = 0.1\nentropy_floor = 0.2",
    ),
    "local-dp": (
        LAWS,
        "[local_dp]\nepsilon = 1.5\ndelta = 0.01",
        "kind = 'min-distortion-local-dp'\nepsilon = 1.5\ndelta = 0.01",
    ),
    "envelope": (LOCAL, "[envelope]\ndelta = [0.3]", "kind = 'pml-envelope'\ndelta = 0.3"),
    "audit": (
        NOISY,
        "[adversary]\nentropy_floors = [0.0]\n[audit]\nrecords = [0]",
        "kind = 'record-leakage'\nentropy_floor = 0.0\nrecords = 0",
    ),
}
"""Other sections, the table of the command, and the same as [problem]."""


@pytest.mark.parametrize("command", VIEWS)
@pytest.mark.parametrize("units", ["nats", "bits"])
def test_the_other_commands_are_views_of_it(command: str, units: str, run: Run, write: Write):
    sections, table, problem = VIEWS[command]
    options = ["--units", units, "--tol", "1e-6", "--json", "-"]
    view = run(command, write(sections, table), *options)
    assert view.exit_code == 0, view.stderr
    spec = write(sections, f"[problem]\n{problem}")
    found, other = json.loads(view.stdout)["quantities"], quantity_of(run("solve", spec, *options))
    keys = ("lower", "upper", "unit", "status")
    assert [other[key] for key in keys] in [[one[key] for key in keys] for one in found]
    if command in ("design", "local-dp"):
        assert [other[key] for key in keys] == [found[0][key] for key in keys]


def test_coalitions_are_pairs_of_members_and_a_budget(run: Run, write: Write):
    def found(**changes: Any) -> dict[str, Any]:
        spec = write(spec_of("release-distortion", joint=twice, delta=0.5, **changes))
        return quantity_of(run("solve", spec, "--json", "-"))

    twice = [[[[x / 2 for x in z] for _ in range(2)] for z in r] for r in JOINT]
    bounded = found(coalitions=[[[0], 0.06]])
    assert bounded["lower"] > found()["upper"] + 1e-3
    first_alone = found(coalitions=[[[1], 0.06]])
    assert first_alone["upper"] == pytest.approx(found()["upper"], abs=1e-6)


GAINS = {
    'gain = "guess"': (Guess(), "probability", "raises the chance of guessing correctly"),
    'gain = {kind = "tries", tries = 2}\nform = "posterior"': (
        GuessInTries(2),
        "probability",
        "the largest chance of guessing correctly within 2 tries after seeing the output",
    ),
    'gain = {kind = "matrix", table = [["1/2", -2, 0], [-2, 1, 0]], actions = ["no", "yes"]}': (
        GainMatrix([[0.5, -2, 0], [-2, 1, 0]]),
        "gain",
        "raises the gain. The unit is that of the gain",
    ),
    'gain = {kind = "arimoto", alpha = "infinity"}\nform = "factor"': (
        Arimoto(math.inf),
        "times",
        "the largest factor by which seeing the output multiplies the norm",
    ),
}


@pytest.mark.parametrize("stated", GAINS)
def test_gains(stated: str, run: Run, write: Write):
    gain, unit, words = GAINS[stated]
    form = stated.rpartition("form = ")[2].strip('"') if "form" in stated else "rise"
    about = "records = {}1{}\n"
    solved = write(
        f'[problem]\nkind = "record-leakage"\nentropy_floor = 1.2\n{about.format("", "")}{stated}',
        NOISY,
    )
    found = quantity_of(run("solve", solved, *ROUGH, "--json", "-"))
    mechanism = Mechanism(from_table(RecordSpace([(0, 1), (0, 1, 2)]), [0, 1] * 3), FLIPPED)
    bound = record_leakage(mechanism, 1.2, 1, gain=gain, form=form, tol=0.01)
    assert (found["lower"], found["upper"]) == (bound.lower, bound.upper)
    assert found["unit"] == unit == bound.unit
    assert words in found["meaning"]
    assert "record 1" in found["meaning"]
    table = f"[adversary]\nentropy_floors = [1.2]\n[audit]\n{about.format('[', ']')}{stated}"
    result = run("audit", write(NOISY, table), *ROUGH, "--json", "-")
    assert result.exit_code == 0, result.stderr
    quantities = json.loads(result.stdout)["quantities"]
    # The rise of the chance of a guess is in every report, under its own name.
    own = "guess rise" if gain == Guess() else "gain"
    there = [one for one in quantities if one["name"] == own and one["entropy_floor"] == 1.2]
    assert [one["lower"] for one in there] == [bound.lower]
    assert ("gain" in {one["name"] for one in quantities}) == (own == "gain")


@pytest.mark.parametrize(
    ("stated", "message"),
    [
        ('gain = "luck"', "audit.gain: gain.kind: found 'luck'; allowed: 'shannon'"),
        ("gain = 3", "audit.gain: expected text, or a table with the key kind; found 3"),
        ('gain = {kind = "tries"}', "missing a required argument: 'tries'"),
        ('gain = {kind = "tries", tries = 0}', "audit.gain"),
        ('gain = {kind = "arimoto", alpha = 1}', "audit.gain"),
        ('gain = {kind = "matrix", table = [[1, 2, 3, 4]]}', "audit.gain"),
        ('gain = {kind = "matrix", table = [[nan, 1]]}', "audit.gain: table: found NaN"),
        ('gain = "shannon"\nform = "factor"', "audit.form"),
        ('form = "factor"', "form is for a gain"),
        ('gain = "guess"\nform = "ratio"', "audit.form"),
    ],
)
def test_bad_gains_name_the_key(stated: str, message: str, run: Run, write: Write):
    result = run("audit", write(NOISY, f"[audit]\n{stated}"))
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("renyi-capacity", "renyi"), "problem.kind: found 'renyi'; allowed: 'capacity'"),
        (("alpha", "order"), "problem.order is unknown; the keys of renyi-capacity: ['alpha'"),
        (("alpha = 2", ""), "problem.alpha is missing"),
        (("alpha = 2", "alpha = -2"), "problem.alpha: found -2"),
        (("alpha = 2", 'alpha = "two"'), "problem.alpha: "),
        (("0.8, 0.1, 0.1", "0.8, 0.1, 0.2"), "problem.channel: row 0 sums to 1.1"),
        ((json.dumps(CHANNEL), '"none.csv"'), "/none.csv: No such file"),
        (("alpha = 2", 'alpha = 2\nunit = "bytes"'), "problem.unit: found 'bytes'"),
    ],
)
def test_errors_name_the_key(change: tuple[str, str], message: str, run: Run, write: Write):
    spec = spec_of("renyi-capacity")
    assert change[0] in spec
    result = run("solve", write(spec.replace(*change)))
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())


def test_the_documentation_names_every_problem_and_what_is_for_python_only():
    text = (Path(__file__).parents[2] / "docs" / "specs.md").read_text()
    for kind in PROBLEMS:
        assert f'`"{kind}"`' in text
    for name in PYTHON_ONLY:
        assert f"\n- `{name}` of `" in text


def test_what_python_alone_can_say_is_told(run: Run, write: Write):
    for name in PYTHON_ONLY:
        kind = "record-leakage" if name == "adversaries" else "design-for-prior"
        result = run("solve", write(spec_of(kind, **{name: 1})))
        assert result.exit_code == 2
        assert f"problem.{name} can be given in Python only: " in " ".join(result.stderr.split())


def test_a_spec_without_a_problem(run: Run, write: Write):
    result = run("solve", write(""))
    assert result.exit_code == 2
    assert "solve needs [problem]" in result.stderr
