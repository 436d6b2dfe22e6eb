"""The page: what it holds, that nothing is loaded, what may run, and how a browser sees it."""

import base64
import hashlib
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")

from cvxleak.core.errors import ValidationError
from cvxleak.design import MinLeakage
from cvxleak.mechanisms import binary_symmetric, identity, random_rounding
from cvxleak.model import Channel, Distortion, Mechanism, Prior, RecordSpace
from cvxleak.queries import count, from_function, parity
from cvxleak.report import (
    Report,
    audit_report,
    capacity_report,
    design_report,
    envelope_report,
    html_page,
)
from cvxleak.report.numbers import ends

EVIL = '<script>alert("1")</script>'
VOID = {"meta", "img", "br", "input"}
BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), ""
)


class Page(HTMLParser):
    """A page as a list of (tag, attributes), its text, and whether what opens is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.fixture(scope="module")
def report() -> Report:
    return audit_report(Mechanism(count(6), random_rounding(6, 3)), [3.0, 3.9])


@pytest.fixture(scope="module")
def text(report: Report) -> str:
    return html_page(report, ["A count", "6 records"], spec="[query]\n", certificate="proof.json")


def test_every_quantity_is_there_with_what_it_means(report: Report, text: str):
    page = Page(text)
    for quantity in report.quantities:
        lower, upper = ends(quantity)
        assert f"{lower} {upper} {quantity.unit} {quantity.status}" in page.text
        assert quantity.meaning in page.text
    for certificate in report.certificates():
        assert certificate.hash in page.text
    for words in (
        "cvxleak verify proof.json",
        "[query]",
        "Made by cvxleak",
        "A count",
        "6 records",
    ):
        assert words in page.text


def test_what_many_floors_share_is_said_once(report: Report, text: str):
    table = text[text.index("<caption>Proved bounds") :].partition("</table>")[0]
    shared = {(q.name, q.meaning) for q in report.quantities}
    assert len(shared) < len(report.quantities)
    for name, meaning in shared:
        assert Page(table).text.count(f"{name}: {meaning}") == 1


def test_one_script_may_run_and_nothing_is_loaded(text: str):
    page = Page(text)
    assert text.startswith("<!DOCTYPE html>")
    assert not {"link", "iframe", "object", "form"} & {tag for tag, _ in page.tags}
    assert page.all("script") == [{}]
    (script,) = re.findall("<script>(.*)</script>", text, re.S)
    allowed = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = next(meta for meta in page.all("meta") if meta.get("http-equiv"))["content"] or ""
    assert policy.partition("script-src ")[2] == f"'sha256-{allowed}'"
    for _, attributes in page.tags:
        assert not any(name.startswith("on") for name in attributes)
        source = attributes.get("src")
        assert source is None or source.startswith("data:image/svg+xml;base64,")
        assert "href" not in attributes
    assert "url(" not in text
    assert "@import" not in text
    policies = [meta for meta in page.all("meta") if meta.get("http-equiv")]
    assert policies[0]["content"].startswith("default-src 'none'")


def test_it_can_be_read_by_everybody(text: str):
    page = Page(text)
    assert page.all("html") == [{"lang": "en"}]
    assert any(meta.get("name") == "viewport" for meta in page.all("meta"))
    assert "@media print" in text
    assert "prefers-color-scheme: dark" in text
    images, tables = page.all("img"), page.all("table")
    # The curve, two pictures for each of three adversaries, and the channel.
    assert len(images) == 8
    assert all(len(image["alt"] or "") > 20 for image in images)
    assert len(page.all("figcaption")) == len(page.all("figure")) == len(images)
    assert len(page.all("caption")) == len(tables)
    assert all(head.get("scope") in {"col", "row", "rowgroup"} for head in page.all("th"))
    ids = [a["id"] for _, a in page.tags if "id" in a]
    assert len(set(ids)) == len(ids)
    assert {a["aria-labelledby"] for a in page.all("section")} <= set(ids)
    assert {a["for"] for tag in ("label", "output") for a in page.all(tag)} <= set(ids)


def test_colors_can_be_told_apart(text: str):
    def luminance(color: str) -> float:
        color = "".join(2 * c for c in color) if len(color) == 3 else color
        parts = [int(color[i : i + 2], 16) / 255 for i in (0, 2, 4)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    schemes = [dict(re.findall(r"--(\w+): #(\w+)", line)) for line in re.findall(r":root.*", text)]
    assert len(schemes) == 3
    for scheme in schemes:
        for name in {"ink", "soft", "good", "open"} & set(scheme):
            for ground in ("page", "tint"):
                pair = sorted((luminance(scheme[name]), luminance(scheme[ground])))
                assert (pair[1] + 0.05) / (pair[0] + 0.05) >= 4.5, (name, ground)


def test_pictures_are_whole_and_show_what_is_said(text: str):
    for image in Page(text).all("img"):
        svg = base64.b64decode((image["src"] or "").partition(",")[2]).decode()
        assert svg.startswith("<?xml")
        assert svg.rstrip().endswith("</svg>")
        assert "<script" not in svg
    assert "Upper bounds on the leakage against the adversary&#39;s uncertainty" in text


def test_what_comes_from_outside_is_text():
    space = RecordSpace([(EVIL, "$5")])
    channel = Channel([[0.9, 0.1], [0.2, 0.8]], (EVIL, "$5"), ("a & b", '"><img src=x onerror=y>'))
    evil = audit_report(
        Mechanism.from_channel(space, channel), prior=Prior([0.5, 0.5], (EVIL, "$5"))
    )
    text = html_page(evil, [EVIL, EVIL], spec=f"# {EVIL}", sources={EVIL: "0"}, certificate=EVIL)
    page = Page(text)
    assert "<script" not in text
    assert page.text.count(EVIL) >= 6
    assert all(set(image) == {"src", "alt"} for image in page.all("img"))
    for image in page.all("img"):
        svg = base64.b64decode((image["src"] or "").partition(",")[2]).decode()
        assert "<script" not in svg


def test_the_same_numbers_give_the_same_page(report: Report, text: str):
    again = html_page(report, ["A count", "6 records"], spec="[query]\n", certificate="proof.json")
    assert again == text


def test_adversaries_that_are_the_same_are_shown_once():
    disclosed = audit_report(Mechanism(parity(4), identity(2)), [0.5, 1.0])
    found = [q.witness.weights.tobytes() for q in disclosed.named("record leakage")]
    page = Page(html_page(disclosed))
    assert len(found) == 3
    assert page.text.count("such cases") == len(set(found)) < 3
    assert "record 0, uncertainty at least 0 to " in page.text.lower()


def test_without_the_script_all_adversaries_are_shown(text: str):
    page = Page(text)
    shown = [attributes for tag, attributes in page.tags if attributes.get("class") == "witness"]
    assert len(shown) == 3
    assert not any("hidden" in attributes for attributes in shown)
    (control,) = (a for _, a in page.tags if a.get("class") == "control")
    assert "hidden" in control
    alone = html_page(audit_report(Mechanism(parity(2), identity(2))))
    assert "script" not in {tag for tag, _ in Page(alone).tags}
    assert not Page(alone).all("input")


def test_records_and_groups_are_named():
    query = from_function(RecordSpace.binary(2), lambda x: x[0])
    page = Page(html_page(audit_report(Mechanism(query, identity(2)), records=[1, 0])))
    assert "record 0; 0 nats" in page.text
    assert "record 1; 0 nats" in page.text
    groups = audit_report(Mechanism(count(3), identity(4)), [1.0], group_sizes=[1, 2], unit="bits")
    page = Page(html_page(groups))
    assert "records 0, 1; 1 bits" in page.text
    assert "Leakage in bits" in page.text


def test_a_report_without_adversaries():
    page = Page(html_page(capacity_report(binary_symmetric(0.1)), ["A channel"]))
    assert re.search("capacity: .* capacity 0.368064 0.368065 nats certified", page.text, re.I)
    assert not page.all("img")
    assert "They were not kept" in page.text


def test_other_reports_are_pages_too():
    prior, channel = Prior([0.25, 0.75]), binary_symmetric(0.1)
    page = Page(
        html_page(envelope_report(prior, channel, epsilon=[0.2], delta=[0.1]), ["An envelope"])
    )
    assert re.search("PML envelope: .* delta 0.1 [0-9]", page.text)
    assert re.search("failure probability: .* epsilon 0.2 nats [0-9]", page.text)
    designed = design_report(
        MinLeakage(parity(1), distortion=Distortion.hamming([0, 1]), budget=0.1, entropy_floor=0.0)
    )
    page = Page(html_page(designed, ["A design"]))
    assert "least leakage" in page.text
    assert len(page.all("img")) == 1  # its channel


def test_large_mechanisms_get_no_pictures_that_nobody_can_read():
    mechanism = Mechanism(count(130), identity(131))
    page = Page(html_page(audit_report(mechanism, time_limit=5.0)))
    assert "The mechanism" not in page.text
    assert page.all("table")


def test_interrupted_searches_are_told():
    quick = audit_report(Mechanism(parity(2), identity(2)))
    told = Report(quick.unit, quick.quantities, quick.facts, interrupted=True)
    assert "A search was interrupted" in html_page(told)
    assert "A search was interrupted" not in html_page(quick)


@pytest.mark.parametrize("module", ["jinja2", "matplotlib"])
def test_what_is_missing_is_named(report: Report, monkeypatch, module: str):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ValidationError, match=rf"no {module}: pip install 'cvxleak\[html\]'"):
        html_page(report)


FRAME = """<iframe id="page" src="page.html" style="width:{width}px;height:800px"></iframe><script>
onload = () => {{
  const view = document.getElementById("page").contentWindow, root = view.document.documentElement;
  const images = [...view.document.images];
  document.title = JSON.stringify({{
    wider: root.scrollWidth - root.clientWidth,
    broken: images.filter(image => !image.naturalWidth).length,
    images: images.length,
    chosen: [0, 1, 2].map(place => {{
      const slider = view.document.querySelector("input");
      slider.value = place;
      slider.dispatchEvent(new Event("input"));
      return [...view.document.querySelectorAll(".witness")].filter(
        one => view.getComputedStyle(one).display !== "none").map(one => one.id).join();
    }}).join(),
    loaded: view.performance.getEntriesByType("resource").filter(e => !e.name.startsWith("data:"))
      .map(e => e.name),
  }});
}};</script>"""


def browse(page: Path, *options: str) -> str:
    """Return what a browser prints about a page."""
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic"]
    command += ["--no-first-run", "--disable-background-networking", "--disable-component-update"]
    command += ["--disable-sync", f"--user-data-dir={page.parent / 'profile'}", *options]
    shown = subprocess.run(
        [*command, page.as_uri()], capture_output=True, text=True, check=True, timeout=600
    )
    return shown.stdout


@pytest.mark.slow
@pytest.mark.skipif(not BROWSER, reason="there is no Chromium here")
def test_many_floors_are_printed_on_few_sheets(tmp_path: Path):
    floors = [0.06 * i for i in range(21)]
    long = audit_report(Mechanism(parity(2), binary_symmetric(0.1)), floors)
    (tmp_path / "page.html").write_text(html_page(long, ["Parity"]), encoding="utf-8")
    browse(tmp_path / "page.html", f"--print-to-pdf={tmp_path / 'page.pdf'}")
    sheets = re.findall(rb"/Type\s*/Page\b", (tmp_path / "page.pdf").read_bytes())
    assert len(long.quantities) > 120
    # Rows of one line each, and the pictures: with the meaning in every row there were 40.
    assert 5 <= len(sheets) <= 16


@pytest.mark.skipif(not BROWSER, reason="there is no Chromium here")
@pytest.mark.parametrize("width", [320, 390, 1200])
def test_a_real_browser_shows_all_of_it(text: str, tmp_path: Path, width: int):
    (tmp_path / "page.html").write_text(text, encoding="utf-8")
    (tmp_path / "frame.html").write_text(FRAME.format(width=width), encoding="utf-8")
    options = ["--allow-file-access-from-files", "--dump-dom", "--virtual-time-budget=5000"]
    (title,) = re.findall("<title>(.*)</title>", browse(tmp_path / "frame.html", *options))
    chosen = '"chosen":"adversary-1,adversary-2,adversary-3"'
    assert title == f'{{"wider":0,"broken":0,"images":8,{chosen},"loaded":[]}}'


def test_a_heading_is_a_list_of_lines(report: Report):
    for heading in ("A count", [], [3]):
        with pytest.raises(ValidationError, match="heading"):
            html_page(report, heading)
