"""Every item: what is printed comes out, or is on the errata page; files are written."""

import json
import xml.etree.ElementTree as ET
from functools import cache
from pathlib import Path

import pytest

from cvxleak.core.errors import ValidationError
from cvxleak.papers import gallery
from cvxleak.papers.gallery import ERRATA, ITEMS, reproduce
from cvxleak.papers.gallery.item import Item, Pair, pair
from cvxleak.problem.bound import Bound

STORED = Path(__file__).parents[2] / "docs" / "gallery" / "pairs.json"


@cache
def computed(name):
    return gallery.reproduce(name)


LONG = {
    *(f"hamming-figure-{n}" for n in (4, 5, 6, 7)),
    *("dalenius-figure-5", "leakage-figure-5", "leakage-figure-6", "sequential-figure-3"),
}
"""Those that take seconds each; of each paper others are computed."""


def cases():
    return [
        pytest.param(name, marks=[pytest.mark.slow] if item.slow or name in LONG else [], id=name)
        for name, item in ITEMS.items()
    ]


@pytest.mark.parametrize("name", cases())
def test_an_item_gives_what_is_printed_or_says_why_not(name, tmp_path):
    found = computed(name)
    assert found.pairs
    assert len({each.name for each in found.pairs}) == len(found.pairs)
    for each in found.pairs:
        assert each.lower <= each.upper
        if each.erratum is None:
            assert each.agrees, each
        else:
            # A pointer to an erratum where the two agree would be a wrong reproach.
            assert not each.agrees, each
            assert each.erratum in ERRATA
    assert found.explained
    paths = found.save(tmp_path)
    stored = json.loads((tmp_path / f"{name}.json").read_text("utf-8"))
    assert [row["name"] for row in stored["pairs"]] == [each.name for each in found.pairs]
    if found.item.draw is None:
        assert found.figure() is None
        assert len(paths) == 1
    else:
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert ET.parse(tmp_path / f"{name}.svg").getroot().tag.endswith("svg")


@pytest.mark.parametrize("name", cases())
def test_the_numbers_on_the_page_still_come_out(name):
    stored = json.loads(STORED.read_text("utf-8"))[name]
    now = [each.to_dict() for each in computed(name).pairs]
    assert [row["name"] for row in now] == [row["name"] for row in stored]
    for row, old in zip(now, stored, strict=True):
        assert (row["printed"], row["erratum"]) == (pytest.approx(old["printed"]), old["erratum"])
        # Brackets may differ, within the tolerance they are computed to.
        assert row["upper"] == pytest.approx(old["upper"], rel=2e-3, abs=1e-6)


def test_names_are_the_papers_and_their_places():
    papers = ["LEAKAGE", "ENVELOPE", "HAMMING", "DALENIUS", "SEQUENTIAL", "LIBQIF"]
    assert list(dict.fromkeys(item.paper for item in ITEMS.values())) == papers
    assert all(name == item.name for name, item in ITEMS.items())


def test_an_unknown_name_is_answered_with_those_that_are_near():
    with pytest.raises(ValidationError, match=r"name: found 'leakage-tabel-3'.*leakage-table-3"):
        reproduce("leakage-tabel-3")
    with pytest.raises(ValidationError, match="name: "):
        reproduce(3)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("computed", "printed", "agrees"),
    [
        (0.0795415, "0.079", True),  # cut off
        (0.0795415, "0.080", True),  # rounded
        (0.0795415, "0.081", False),
        (0.0795415, "0.078", False),
        (0.030299, "0.032", False),
        (67824342.2, "67824342", True),
        (0.5, 0.5 + 1e-8, False),
        (0.5, 0.5 + 1e-10, True),
    ],
)
def test_how_near_is_near(computed, printed, agrees):
    assert pair("a number", computed, printed).agrees is agrees


def test_a_bracket_agrees_with_what_it_holds():
    bracket = Pair("a bracket", 0.1, 0.2, 0.15, None, 0.0)
    assert bracket.agrees
    assert bracket.computed == pytest.approx(0.15)
    assert not Pair("a bracket", 0.1, 0.2, 0.21, None, 0.0).agrees
    assert not Pair("a bracket", 0.1, 0.2, 0.09, None, 0.0).agrees


def test_an_unexplained_difference_is_one():
    item = Item("dalenius-nothing", "nothing", lambda: ([pair("one", 1.0, "3")], {}))
    found = item.run()
    assert not found.explained
    assert "one: 1 (printed 3" in str(found)


def test_the_same_numbers_make_the_same_picture(tmp_path):
    first, second = (reproduce("dalenius-figure-3") for _ in range(2))
    for place, found in (("a", first), ("b", second)):
        (tmp_path / place).mkdir()
        found.save(tmp_path / place)
    for kind in ("json", "svg"):
        name = f"dalenius-figure-3.{kind}"
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_a_bound_is_taken_as_its_bracket():
    found = reproduce("leakage-table-3")
    assert all(isinstance(each.upper, float) for each in found.pairs)
    assert found.pairs[5].lower < found.pairs[5].upper
    assert not isinstance(found.pairs[5], Bound)
