"""Files: what is refused before any end is read, and what is said of each end."""

from __future__ import annotations

import math
from typing import Any

import pytest

from cvxleak.kernel.budget import LIMITS, charge, choices, limited
from cvxleak.kernel.claims import check, digest, outline, unit_of
from cvxleak.kernel.numbers import RefusedError
from cvxleak.model import Arimoto, GainMatrix, Gini, Guess, GuessInTries, Shannon
from cvxleak.model.gain import FORMS
from cvxleak.model.gain_form import GainForm
from tests.kernel.forging import HONEST, PROBLEM, WITNESS

END = {"value": 0.5, "about": "problem", "by": {"rule": "max", "groups": [[HONEST["share"]]]}}
BELOW = {
    "value": 0.1,
    "about": "problem",
    "by": {"rule": "point", "group": 0, "weights": WITNESS},
}


def file(**parts: Any) -> dict[str, Any]:
    """Return an intact file with parts replaced, or taken out with `...`."""
    found = {
        "format": "cvxleak-certificate",
        "schema_version": 3,
        "kind": "record-leakage",
        "problem": PROBLEM,
        "unit": "nats",
        "ends": {"upper": END, "lower": BELOW},
        "versions": {},
        **parts,
    }
    found = {key: part for key, part in found.items() if part is not ...}
    return found | {"sha256": digest(found)}


def test_an_honest_file_is_proved() -> None:
    found = check(file())
    assert [end.proved for end in found.values()] == [True, True]
    assert 0.1 < found["lower"].found <= found["upper"].found < 0.5
    assert found["upper"].rules == ("max", "close", "share", "vertices")
    assert found["lower"].rules == ("point",)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"unit": ...}, "without unit"),
        ({"unit": "bits"}, "unit 'bits'; this kind is in nats"),
        ({"unit": ["nats"]}, "this kind is in nats"),
        ({"problem": PROBLEM | {"gain": {"kind": "gini"}, "form": "rise"}}, "is in probability"),
        ({"problem": PROBLEM | {"gain": {"kind": "gini"}, "form": "factor"}}, "is in times"),
        ({"notes": 1}, "it has no notes"),
        ({"format": "cvxleak-certificates"}, "no file of schema 3"),
        ({"schema_version": 4}, "no file of schema 3"),
        ({"schema_version": 2}, "no file of schema 3"),
        ({"kind": "magic"}, "no such kind"),
        ({"ends": {}}, "no end is claimed"),
        ({"ends": [END]}, "no end is claimed"),
        ({"ends": {"upper": END, "middle": END}}, "it has no middle"),
        ({"ends": {"upper": END | {"value": None}}}, "expected a number"),
        ({"ends": {"upper": END | {"more": 1}}}, "it has no more"),
        ({"ends": {"upper": END | {"about": "half-spaces"}}}, "nothing about half-spaces"),
        ({"ends": {"upper": {"value": 1, "about": "problem"}}}, "without by"),
        ({"problem": PROBLEM | {"more": 1}}, "it has no more"),
    ],
)
def test_other_files_are_refused(parts: dict[str, Any], message: str) -> None:
    with pytest.raises(RefusedError, match=message):
        check(file(**parts))


GAINS = [Shannon(), Guess(), GuessInTries(2), Gini(), Arimoto(3), GainMatrix([[1, 0]])]


@pytest.mark.parametrize("gain", GAINS, ids=str)
@pytest.mark.parametrize("form", FORMS)
def test_units_are_those_that_users_read(gain: Any, form: Any) -> None:
    problem = {"gain": gain.to_dict(), "form": form}
    assert unit_of("record-leakage", problem) == GainForm(gain, form).unit


@pytest.mark.parametrize("other", ["0" * 64, "f" * 64])
def test_a_changed_file_is_refused(other: str) -> None:
    with pytest.raises(RefusedError, match="was changed"):
        check(file() | {"sha256": other})


def test_what_is_no_json_is_refused() -> None:
    deep: Any = END["by"]
    for _ in range(100_000):
        deep = [deep]
    for by in ({"rule": "max", "groups": deep}, {"rule": "max", "groups": {1}}, float("nan")):
        with pytest.raises(RefusedError, match="no JSON"):
            check({**file(), "ends": {"upper": END | {"by": by}}})


@pytest.mark.parametrize(
    ("name", "end", "value", "reason"),
    [
        ("upper", END, "inf", ""),
        ("upper", END, 0.3, "is proved, not the claimed 0.3"),
        ("upper", END | {"by": {"rule": "max"}}, 1, "without groups"),
        ("lower", BELOW, -1, ""),
        ("lower", BELOW, 0.4, "is proved, not the claimed 0.4"),
        ("lower", BELOW, "inf", "is proved, not the claimed inf"),
    ],
)
def test_an_end_is_proved_by_its_own_term(name: str, end: Any, value: Any, reason: str) -> None:
    found = check(file(ends={name: end | {"value": value}}))[name]
    assert found.proved == (not reason)
    assert found.reason.endswith(reason)


def test_bounds_are_compared_as_they_are_written() -> None:
    term = {"rule": "max", "groups": [[HONEST["choices"]]]}
    bound = check(file(ends={"upper": END | {"by": term}}))["upper"].found
    at = [str(bound), f"{bound}1", f"{bound!r}"[:-1]]
    ends = [check(file(ends={"upper": {**END, "by": term, "value": x}}))["upper"] for x in at]
    assert [end.proved for end in ends] == [True, True, False]


def test_an_infinite_parameter_is_only_claimed_to_be_infinite() -> None:
    problem = {"matrix": [[1, 0], [0.5, 0.5]], "pairs": [[0, 1]], "alpha": "inf"}
    more = {"kind": "renyi-dp", "problem": problem}
    upper = {"about": "problem", "by": {"rule": "pairs"}}
    lower = {"about": "problem", "by": {"rule": "pair", "pair": [1, 0]}}
    for value, proved in (("inf", True), (1e300, False)):
        assert (
            check(file(**more, ends={"upper": upper | {"value": value}}))["upper"].proved == proved
        )
    for value in ("inf", 1e300):
        assert check(file(**more, ends={"lower": lower | {"value": value}}))["lower"].proved


def test_an_outline_has_a_line_for_each_term() -> None:
    lines = outline(file()).splitlines()
    assert [line.split()[0].rstrip(":") for line in lines] == [
        "close",
        "share",
        "vertices",
        "vertices",
    ]
    assert [len(line) - len(line.lstrip()) for line in lines] == [0, 2, 2, 2]
    bound = check(file())["upper"].found
    assert lines[0].startswith(f"close: at most {bound:.10g} (J <= ")
    by = {"rule": "difference", "capacity": END["by"], "leakage": BELOW["by"]}
    assert outline(file(kind="balance", ends={"upper": END | {"by": by}})).startswith("close: at")


def test_an_outline_of_a_channel_has_its_terms() -> None:
    problem = {"matrix": [[0.75, 0.25], [0.25, 0.75]]}
    term = {**HONEST["share"], "of": HONEST["share"]["of"] | {"t": [1, 1]}}
    ends = {"upper": {"value": 2, "about": "problem", "by": term}}
    lines = outline(file(kind="capacity", problem=problem, ends=ends)).splitlines()
    assert [line.split()[0].rstrip(":") for line in lines] == ["close", "share", *["vertices"] * 2]


def test_one_file_is_counted_once() -> None:
    limit = LIMITS["ball operations"]
    with limited():
        charge("ball operations", limit - 1)
        with limited():
            charge("ball operations", 1)
            with pytest.raises(RefusedError, match="asks for more"):
                charge("ball operations", 1)
    charge("ball operations", limit + 1)


def test_sets_are_counted_before_they_are_made() -> None:
    few = [(n, k) for n in range(60) for k in range(n + 1)]
    assert all(choices(n, k) == math.comb(n, k) for n, k in few)
    for n, k in ((60, 30), (1 << 40, 1 << 39), (1 << 40, (1 << 40) - 31)):
        assert choices(n, k) > 1 << 56 > max(LIMITS.values())


def test_an_outline_of_a_kind_without_terms_says_what_is_bounded() -> None:
    problem = {"matrix": [[0.75, 0.25], [0.25, 0.75]], "pairs": [[0, 1]], "alpha": "inf"}
    ends = {"upper": {"value": 2, "about": "problem", "by": {"rule": "pairs"}}}
    line = outline(file(kind="renyi-dp", problem=problem, ends=ends))
    assert line == "pairs: at most 1.098612289 (the largest parameter of a pair)"
