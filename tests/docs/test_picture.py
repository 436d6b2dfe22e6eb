"""The picture of the README: its curves are closed forms where there are some."""

import math
import re
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


def drawn(text):
    """The words of a picture, and the bounds of each curve as parts of the axes around it."""

    def vertices(path):
        return np.array(re.findall(r"[ML] (\S+) (\S+)", path), dtype=float)

    height = float(re.search(r'viewBox="0 0 \S+ (\S+)"', text)[1])
    curves = []
    for axes in text.split('<g id="axes_')[1:]:
        box, filled = (vertices(path) for path in re.findall(r' d="(M[^"]+)"', axes)[:2])
        low, high = box.min(axis=0), box.max(axis=0)
        # From the axis along the lower bound, and back along the upper one.
        places = (filled + np.array([0, height]) - low) / (high - low)
        points = len(places) // 2 - 1
        curves.append((places[1 : points + 1], places[points + 2 : 2 * points + 2][::-1]))
    return re.findall("<!-- (.*?) -->", text), np.array(curves)


def test_the_stored_picture_is_what_is_drawn(tmp_path):
    path = tmp_path / "audit.svg"
    figure = runpy.run_path(str(DOCS / "picture.py"))["figure"]
    figure(path, points=5)
    words, curves = drawn(path.read_text(encoding="utf-8"))
    stored_words, stored = drawn((DOCS / "figures" / "audit.svg").read_text(encoding="utf-8"))
    assert words == stored_words
    assert stored.shape == (2, 2, 121, 2)
    np.testing.assert_allclose(stored[:, :, ::30], curves, rtol=0, atol=5e-4)
