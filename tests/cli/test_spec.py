"""SPEC.toml: what it says when something is wrong, and that the documentation is complete."""

import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import pytest
from pydantic import BaseModel

from cvxleak.cli.from_spec import build_release, build_task
from cvxleak.cli.problems import problem_of
from cvxleak.cli.reading import check_spec, models_of, read_toml
from cvxleak.cli.spec import Spec
from cvxleak.cli.spec_file import SpecFile
from cvxleak.core.errors import ValidationError

DOCS = Path(__file__).parents[2] / "docs"
COUNT = '[query]\nkind = "count"\nrecords = 3\n'
ROUNDING = '[mechanism]\nkind = "random_rounding"\nbase = 3\n'
LOCAL = '[space]\nalphabets = [["a", "b"]]\n'
IDENTITY = '[mechanism]\nkind = "identity"\n'


def complaints(content: str, *, version: str = "version = 1\n") -> list[str]:
    with pytest.raises(ValidationError) as found:
        check_spec(read_toml((version + content).encode(), "s.toml"), "s.toml")
    lines = str(found.value).splitlines()
    assert all(line.startswith("s.toml: ") for line in lines)
    return [line.removeprefix("s.toml: ") for line in lines]


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (
            COUNT + LOCAL + ROUNDING,
            ["either [query], [space] or [table] is needed; found [query] and [space]"],
        ),
        (
            COUNT + '[mechanism]\nkind = "random_roundng"\n',
            ["mechanism.kind: found 'random_roundng'; did you mean random_rounding?"],
        ),
        (
            '[query]\nkind = "median"\n' + ROUNDING,
            [
                "query.kind: found 'median'; known: count, parity, modular_sum, pair_sum, table, "
                "histogram, crosstab"
            ],
        ),
        ("[query]\nrecords = 3\n" + ROUNDING, ["query: the key kind is missing"]),
        (
            COUNT + '[mechanism]\nkind = "random_rounding"\nbsae = 3\n',
            ["mechanism.base: is missing", "mechanism.bsae: unknown key; did you mean base?"],
        ),
        (
            COUNT + ROUNDING + "[adversry]\nunit = 1\n",
            ["adversry: unknown key; did you mean adversary?"],
        ),
        (
            COUNT + ROUNDING + "[adversary]\nfloor = 1\n",
            [
                "adversary.floor: unknown key; known: entropy_floors, unit, kind, "
                "least_probability, record_floor, laws, law, records, values, at_least, "
                "at_most, equals, radius, prior"
            ],
        ),
        (
            COUNT + '[mechanism]\nkind = "random_rounding"\nbase = "3"\n',
            ["mechanism.base: expected an integer, found '3'"],
        ),
        (
            COUNT + '[mechanism]\nkind = "random_rounding"\nbase = 3.0\n',
            ["mechanism.base: expected an integer, found 3.0"],
        ),
        (
            COUNT + '[mechanism]\nkind = "random_rounding"\nbase = true\n',
            ["mechanism.base: expected an integer, found True"],
        ),
        (
            COUNT + ROUNDING + '[adversary]\nentropy_floors = [0, "six", nan]\nunit = "bit"\n',
            [
                "adversary.entropy_floors[1]: expected a number, found 'six'",
                "adversary.entropy_floors[2]: found nan; it must be finite",
                "adversary.unit: found 'bit'; allowed: nats or bits",
            ],
        ),
        (
            COUNT + ROUNDING + "[adversary]\nentropy_floors = 3\n",
            ["adversary.entropy_floors: expected a list, found 3"],
        ),
        (
            COUNT + ROUNDING + "[adversary]\nentropy_floors = []\n",
            ["adversary.entropy_floors: the list must not be empty"],
        ),
        ("title = 3\n" + COUNT + ROUNDING, ["title: expected text, found 3"]),
        ("space = 3\n" + ROUNDING, ["space: expected a table, found 3"]),
        (
            "[space]\nalphabets = [[1, 1979-05-27]]\n" + IDENTITY,
            [
                "space.alphabets[0][1]: a label is text, a number, true or false, "
                "not datetime.date(1979, 5, 27)"
            ],
        ),
        (
            LOCAL + IDENTITY + "[prior]\nsource = 'x'\n",
            ["prior: either counts or file is needed, and not both"],
        ),
        (
            LOCAL + IDENTITY + "[prior]\ncounts = { a = 1, b = 'two' }\n",
            ["prior.counts.b: expected a number, found 'two'"],
        ),
        (
            COUNT + ROUNDING + '[distortion]\nkind = "hammin"\n',
            ["distortion.kind: found 'hammin'; did you mean hamming?"],
        ),
    ],
)
def test_complaints(content: str, lines: list[str]):
    assert complaints(content) == lines


def test_version():
    assert complaints("x = 1", version="") == [
        "version: is missing; write version = 1",
        f"x: unknown key; known: {', '.join(Spec.model_fields)}",
    ]
    assert complaints("x = 1", version="version = 2\n") == [
        "version: found 2; this cvxleak reads version 1"
    ]
    assert complaints(COUNT + ROUNDING, version="version = '1'\n") == [
        "version: found '1'; allowed: 1"
    ]


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        ("", ["audit needs [mechanism]", "audit needs [query] or [space]"]),
        (COUNT, ["audit needs [mechanism]"]),
        (ROUNDING, ["audit needs [query] or [space]"]),
    ],
)
def test_a_command_says_what_it_needs(write: Callable[..., Path], content: str, lines: list[str]):
    path = write(content)
    with pytest.raises(ValidationError) as found:
        build_task(SpecFile(path))
    said, remedy = str(found.value).split("; ")
    assert said.splitlines() == [f"{path}: {line}" for line in lines]
    assert remedy == "docs/specs.md describes what a spec has"


@pytest.mark.parametrize(
    "data", [b"version = \n", b"\xff\xfe", b"[a]\n[a]\n", b"x = " + b"[" * 9999]
)
def test_not_toml(data: bytes):
    with pytest.raises(ValidationError, match=r"^s.toml: not a TOML file: "):
        check_spec(read_toml(data, "s.toml"), "s.toml")


@pytest.mark.parametrize(
    ("name", "remedy"), [("q.csv", "cvxleak capacity takes"), ("s.yaml", "docs/specs.md")]
)
def test_what_is_no_spec_is_told_what_is(name: str, remedy: str):
    with pytest.raises(ValidationError, match=rf"^{name}: not a TOML file: .*; {remedy}"):
        read_toml(b"a,b\n0.5,0.5\n", name)


def test_byte_order_mark_is_fine():
    data = b"\xef\xbb\xbfversion = 1\n" + (COUNT + ROUNDING).encode()
    assert check_spec(read_toml(data, "s"), "s").version == 1


def test_defaults():
    spec = check_spec(read_toml(f"version = 1\n{COUNT}{ROUNDING}".encode(), "s"), "s")
    assert dict(spec.audit) == {
        "records": None,
        "group_sizes": [1],
        "epsilons": [],
        "outputs": [],
        "gain": None,
        "form": None,
    }
    assert spec.adversary.entropy_floors == [0.0]
    assert spec.adversary.unit is None
    assert spec.adversary.kind is None
    assert spec.adversary.known() == {}


def sections() -> dict[str, list[type[BaseModel]]]:
    """Return, for each key of a spec that is a table, the models that it can have."""
    found = {name: models_of(field.annotation) for name, field in Spec.model_fields.items()}
    return {name: models for name, models in found.items() if models}


def test_documentation_lists_exactly_the_schema():
    text = (DOCS / "specs.md").read_text()
    parts = dict(re.findall(r"^## `\[(\w+)\]`\n(.*?)(?=^## )", text, re.DOTALL | re.MULTILINE))
    assert parts.keys() == sections().keys()
    assert set(re.findall(r"^\| `\[?(\w+)\]?` \|", text.split("\n## ")[0], re.MULTILINE)) == set(
        Spec.model_fields
    )
    for name, models in sections().items():
        rows = dict(re.findall(r"^\| `(\w+)` \|([^|]*)\|", parts[name], re.MULTILINE))
        if len(models) == 1:
            assert rows.keys() == models[0].model_fields.keys()
            continue
        del rows["kind"]  # the head of the table
        documented = {kind: set(re.findall(r"`(\w+)`", keys)) for kind, keys in rows.items()}
        assert documented == {
            get_args(model.model_fields["kind"].annotation)[0]: model.model_fields.keys() - {"kind"}
            for model in models
        }


def test_documented_specs_work(tmp_path: Path):
    text = (DOCS / "specs.md").read_text()
    blocks = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    loaded = []
    for place, block in enumerate(blocks):
        path = tmp_path / f"{place}.toml"
        path.write_text(block)
        spec = Spec.model_validate(tomllib.loads(block))
        if spec.table is not None:
            assert build_release(SpecFile(path)).table.people == 12
            loaded.append("table")
        elif spec.mechanism is not None:
            given = SpecFile(path)
            assert build_task(given).mechanism.space.records > 0
            assert given.spec == spec
            loaded.append("audit")
        if spec.local_dp is not None:
            assert problem_of("local-dp", SpecFile(path), "nats").sources.size == 3
            loaded.append("local-dp")
    assert loaded == ["audit", "audit", "table", "audit", "local-dp"]


def test_documented_complaints_are_the_real_ones():
    text = (DOCS / "specs.md").read_text()
    shown = re.findall(r"^cvxleak: survey.toml: (.*)$", text, re.MULTILINE)
    content = (
        COUNT + '[mechanism]\nkind = "random_roundng"\n[adversary]\nentropy_floors = [0, "six"]\n'
    )
    assert complaints(content) == shown
