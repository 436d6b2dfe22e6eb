"""The pages are what docs/gallery.py writes."""

import json
import runpy
from pathlib import Path

import pytest

from cvxleak.papers.gallery import ITEMS

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def writer():
    return runpy.run_path(str(DOCS / "gallery.py"))


@pytest.fixture(scope="module")
def stored():
    return json.loads((DOCS / "gallery" / "pairs.json").read_text("utf-8"))


def test_the_gallery_page_is_up_to_date(writer, stored):
    assert list(stored) == list(ITEMS)
    assert (DOCS / "gallery.md").read_text("utf-8") == writer["gallery_page"](stored)


def test_the_errata_page_is_up_to_date(writer):
    assert (DOCS / "errata.md").read_text("utf-8") == writer["errata_page"]()


def test_every_picture_is_there():
    drawn = {f"{name}.svg" for name, item in ITEMS.items() if item.draw is not None}
    assert {path.name for path in (DOCS / "gallery").glob("*.svg")} == drawn
