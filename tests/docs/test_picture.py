"""The picture of the README: its curves are closed forms where there are some."""

import math
import runpy

import numpy as np
import pytest

from tests.docs.test_pages import DOCS


def test_curves_and_published_values(tmp_path):
    path = tmp_path / "audit.svg"
    names = runpy.run_path(str(DOCS / "picture.py"))
    left, right = names["figure"](path, people=4, points=5).axes
    assert path.read_text(encoding="utf-8").rstrip().endswith("</svg>")
    assert left.lines[0].get_ydata()[0] == pytest.approx(math.log(2), rel=1e-3)
    # The parity goes through a binary symmetric channel: its capacity is the leakage up to 3 log 2.
    flip = math.exp(-0.5) / 2
    capacity = math.log(2) + flip * math.log(flip) + (1 - flip) * math.log(1 - flip)
    floors, leakage = right.lines[0].get_data()
    assert leakage[:4] == pytest.approx(capacity, rel=1e-3)
    assert leakage[-1] == pytest.approx(0, abs=1e-6)
    places, published = right.lines[1].get_data()
    assert all(np.array(published[:-1]) < np.interp(places[:-1], floors, leakage))
    assert (DOCS / "figures" / "audit.svg").is_file()
