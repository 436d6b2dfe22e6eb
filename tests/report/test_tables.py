"""The report on a table: its numbers are those of the library, and the page shows them."""

import hashlib
import json
import math
import re
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cvxleak.cli.app import app
from cvxleak.core import InfeasibleError, ValidationError
from cvxleak.model import Gaussian
from cvxleak.problem import Stopped
from cvxleak.report import Progress, html_page, table_report
from cvxleak.tables import (
    PerturbationTable,
    RandomRounding,
    RoundToNearest,
    Table,
    TablePrivacy,
    TableRelease,
    possible_counts,
    realized_leakage,
    table_leakage,
    table_privacy,
)

TABLE = Table({"sex": ["f", "m"], "answer": ["no", "yes"]}, counts=[[5, 2], [4, 0]])
RELEASE = TableRelease(TABLE, RandomRounding(3))
PUBLISHED = [6, 3, 3, 0, 9, 3, 9, 3, 12]
SPEC = """
version = 1
title = "A small table"
[table]
counts = "counts.csv"
published = "published.csv"
[mechanism]
kind = "random_rounding"
base = 3
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "counts.csv").write_text("sex/answer,no,yes\nf,5,2\nm,4,0\n")
    published = "sex/answer,no,yes,total\nf,6,3,9\nm,3,0,3\ntotal,9,3,12\n"
    (tmp_path / "published.csv").write_text(published)
    people = ["f,no"] * 5 + ["f,yes"] * 2 + ["m,no"] * 4
    (tmp_path / "people.csv").write_text("\n".join(["sex,answer", *people]) + "\n")
    (tmp_path / "table.toml").write_text(SPEC)
    return tmp_path


def run(*arguments: object) -> str:
    result = CliRunner().invoke(app, ["audit", *map(str, arguments)])
    assert result.exit_code == 0, result.output
    return result.output


def test_numbers_are_those_of_the_library():
    report = table_report(RELEASE, published=PUBLISHED, unit="bits")
    privacy = table_privacy(RELEASE)
    for quantity, level in zip(report.named("table DP delta"), (0.1, 0.5, 1, 2), strict=True):
        assert quantity.upper == privacy.profile(level).upper
        assert quantity.epsilon == pytest.approx(level / math.log(2))
    assert report.named("table zCDP rho")[0].upper == math.inf
    possible = possible_counts(RELEASE, PUBLISHED)
    assert [cell["upper"] for cell in report.facts["cells"]] == list(possible.upper)
    assert report.named("numbers known exactly")[0].upper == len(possible.known)
    realized = realized_leakage(RELEASE, PUBLISHED)
    (pml,) = report.named("pointwise maximal leakage")
    assert pml.upper == pytest.approx(
        realized.pml[~(realized.pml != realized.pml)].max() / math.log(2)
    )
    assert json.loads(json.dumps(report.to_dict()))["audited"]["cells"][0]["published"] == 6


def test_floors_are_audited_where_the_table_is_small():
    table = Table({"x": ["a", "b"]}, people=3)
    report = table_report(TableRelease(table, RandomRounding(2)), [0.0, 1.5])
    assert [q.entropy_floor for q in report.named("record leakage")] == [0.0, 1.5]
    assert report.named("pointwise maximal leakage") == []
    assert table_report(TableRelease(table, Gaussian(2))).named("table zCDP rho")[0].upper < 1


def test_the_page_colors_what_tells_most():
    page = html_page(table_report(RELEASE, published=PUBLISHED), ["A table"])
    shares = [int(share) for share in re.findall(r"var\(--open\) (\d+)%", page)]
    assert len(shares) == 9
    assert max(shares) > 0
    assert "What was published" in page
    assert "What was published" not in html_page(table_report(RELEASE), ["A table"])


def test_specs_and_people_give_the_same_report(folder: Path):
    shown = run(folder / "table.toml", "--json", folder / "a.json", "--html", folder / "a.html")
    assert "A small table" in shown
    assert "numbers known exactly" in shown
    people = run(
        *("--microdata", folder / "people.csv", "--by", "sex,answer"),
        *("--noise", "random_rounding:3"),
        *("--published", folder / "published.csv", "--json", folder / "b.json"),
        *("--html", folder / "b.html"),
    )
    for text in (shown, people):
        assert (
            "11 people by sex (2 categories) and answer (2 categories); 9 published numbers; "
            "noise: random rounding (base 3)"
        ) in re.sub(r"\s+", " ", text)
    one, two = (json.loads((folder / f"{name}.json").read_text()) for name in "ab")
    for quantity in [*one["quantities"], *two["quantities"]]:
        del quantity["seconds"]
    assert one["quantities"] == two["quantities"]
    assert set(one["files_sha256"]) == {"counts.csv", "published.csv"}
    assert set(two["files_sha256"]) == {"published.csv"}
    # A hash of the people would confirm a guess of who they are.
    assert two["spec_sha256"] == ""
    digest = hashlib.sha256((folder / "people.csv").read_bytes()).hexdigest()
    assert not any(digest in (folder / f"b.{kind}").read_text("utf-8") for kind in ("json", "html"))
    first, second = ((folder / f"{name}.html").read_text(encoding="utf-8") for name in "ab")
    start, end = '<section aria-labelledby="counts">', "</section>"
    assert first.count(start) == 1
    tables = [page.partition(start)[2].partition(end)[0] for page in (first, second)]
    assert tables[0] == tables[1] != ""
    assert "people.csv" in second


def test_a_perturbation_table_has_all_its_keys_on_the_command_line(folder: Path):
    rows = ["1,0,-1", "1,1,0", "1,2,1", "2,0,0", "2,1,0", "2,2,1", "3,0,0", "3,1,1", "3,2,0"]
    (folder / "p,t.csv").write_text("\n".join(["pcv,ckey,pvalue", *rows]) + "\n")
    noise = 'kind = "ptable"\nfile = "p,t.csv"\ncycle = 2\nsummed_keys = false\n'
    spec = SPEC[: SPEC.index("published")] + "[mechanism]\n" + noise
    (folder / "table.toml").write_text(spec)
    people = ("--microdata", folder / "people.csv", "--by", "sex,answer", "--noise")
    text = f"ptable:{folder / 'p,t.csv'}"
    told = []
    for asked in (
        (folder / "table.toml",),
        (*people, f"{text},cycle=2,summed_keys=false"),
        (*people, f"{text},cycle=2"),
    ):
        run(*asked, "--json", folder / "a.json")
        quantities = json.loads((folder / "a.json").read_text())["quantities"]
        told.append([(one["name"], one["lower"], one["upper"]) for one in quantities])
    assert told[0] == told[1] != told[2]
    for asked, message in (
        ("", "--noise: cycle: is missing"),
        (",cycle=9", "--noise: cycle: found 9; it must be an integer from 1 to 3"),
        (",summed_keys=no", "--noise: mechanism.summed_keys: expected true or false, found 'no'"),
    ):
        refused = CliRunner().invoke(app, ["audit", *map(str, people), text + asked])
        assert message in re.sub(r"\s+", " ", refused.output)


ROUNDED = "sex/answer,no,yes,Total\nf,1700,65,1760\nm,105,5,110\nTotal,1800,70,1870\n"


def test_a_published_table_alone_has_its_ranges(folder: Path):
    path = folder / "rounded.csv"
    path.write_text(ROUNDED)
    found = table_report(
        TableRelease(Table.from_published(path), RoundToNearest(5)), published=path
    )
    assert [quantity.name for quantity in found.quantities] == ["numbers known exactly"]
    assert "given what was published alone." in found.quantities[0].meaning
    with pytest.raises(ValidationError, match="people: is missing"):
        table_report(TableRelease(Table.from_published(path), RoundToNearest(5)))
    asked = ("--published", path, "--noise", "round_to_nearest:5")
    alone = run(*asked, "--json", folder / "a.json", "--html", folder / "a.html")
    assert "True counts that are possible, given what was published alone:" in alone
    assert re.search(r"m / yes +published 5: 4 to 7\n", alone)
    spec = 'version = 1\n[table]\npublished = "rounded.csv"\nknown_people = 1871\n[mechanism]\n'
    (folder / "table.toml").write_text(spec + 'kind = "round_to_nearest"\nbase = 5\n')
    for known in (
        run(*asked, "--known-people", 1871),
        run(folder / "table.toml"),
        run(folder / "table.toml", "--known-people", 1871),
    ):
        text = re.sub(r"\s+", " ", known)
        assert "given what was published and the number of people, 1871:" in text
        assert "m / yes published 5: 5 to 7 " in text
    assert "m / yes published 5: 6 to 7 " in re.sub(
        r"\s+", " ", run(folder / "table.toml", "--known-people", 1872)
    )
    refused = CliRunner().invoke(app, ["audit", str(folder / "table.toml"), "--known-people", "9"])
    assert "no table of whole numbers" in re.sub(r"\s+", " ", refused.output)
    audited = json.loads((folder / "a.json").read_text())["audited"]
    assert (audited["people"], audited["known_people"]) == (None, None)


def test_noise_follows_noise_and_numbers_may_not_be_shown(folder: Path):
    text = "sex/answer,no,yes,total\nf,10,x,10\nm,15,x,20\ntotal,25,x,30\n"
    path = folder / "published.csv"
    path.write_text(text)
    shown = run(
        *("--published", path, "--noise", "suppress_below:5 then round_to_nearest:5"),
        *("--json", folder / "a.json", "--html", folder / "a.html"),
    )
    assert "noise: suppress below (threshold 5), then round to nearest (base 5)" in re.sub(
        r"\s+", " ", shown
    )
    assert re.search(r"f / yes +published not shown: 0 to 3\n", shown)
    assert json.loads((folder / "a.json").read_text())["audited"]["cells"][1]["published"] is None
    assert "–" in (folder / "a.html").read_text(encoding="utf-8")


def test_people_without_a_value_are_refused_or_a_category(tmp_path: Path):
    path = tmp_path / "gaps.csv"
    path.write_text("x\na\nNA\nnone\n")
    asked = ["audit", "--microdata", path, "--by", "x", "--noise", "random_rounding:3"]
    refused = CliRunner().invoke(app, [*map(str, asked)])
    assert refused.exit_code == 2
    assert "missing may be 'category'" in re.sub(r"\s+", " ", refused.output)
    printed = re.sub(r"\s+", " ", run(*asked[1:], "--missing", "category"))
    assert "3 people by x (3 categories)" in printed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--by", "sex"], "--by: needs --microdata"),
        (["--missing", "category"], "--missing: needs --microdata"),
        (["--microdata", "people.csv"], "--by: is required with --microdata"),
        (
            ["--microdata", "people.csv", "--by", "sex", "--noise", "dice:3"],
            "--noise: found 'dice:3'",
        ),
        (
            ["--microdata", "people.csv", "--by", "sex", "--noise", "random_rounding:x"],
            "--noise: mechanism.base: expected an integer, found 'x'",
        ),
        (
            ["--microdata", "people.csv", "--by", "sex", "--noise", "ptable:p.csv,cycel=3"],
            "--noise: mechanism.cycel: unknown key; did you mean cycle?",
        ),
        (
            ["--microdata", "people.csv", "--by", "sex", "--noise", "random_rounding:3,base=5"],
            "--noise: found base twice",
        ),
        (
            ["--microdata", "people.csv", "--by", "sex", "--noise", "geometric:2"],
            "geometric noise is discrete_laplace",
        ),
        (
            ["--microdata", "people.csv", "--by", ",", "--noise", "random_rounding:3"],
            "--by: found ','; names of columns",
        ),
        (
            ["--microdata", "people.csv", "--by", "sex", "--noise", "random_rounding:0"],
            "--noise: found 0",
        ),
        (
            ["--microdata", "people.csv", "--by", "sex", "--noise", "rounding:5"],
            "round_to_nearest:5 is conventional rounding, random_rounding:5 random rounding",
        ),
        (["--published", "published.csv"], "--noise: is required with --published"),
        (
            ["--published", "published.csv", "--noise", "gaussian:2", "--by", "sex"],
            "--by: needs --microdata",
        ),
        (["--known-people", "3"], "--known-people: needs --published"),
        (
            ["--published", "published.csv", "--noise", "round_to_nearest:5"],
            "published: found 6 for ('f', 'no'), which RoundToNearest(5) gives for no count",
        ),
        (
            [
                *("--published", "published.csv", "--noise", "random_rounding:3"),
                *("--known-people", "30"),
            ],
            "no table of whole numbers could have been published so",
        ),
        (
            ["--microdata", "people.csv", "--by", "size", "--noise", "random_rounding:3"],
            "'size' is not there",
        ),
        (["table.toml", "--microdata", "people.csv"], "SPEC: cannot be combined"),
        (["--microdata", "none.csv", "--by", "sex", "--noise", "random_rounding:3"], "none.csv"),
        (["table.toml", "--published", "counts.csv"], "published: 5 of 9 numbers are missing"),
        (
            [
                *("--microdata", "people.csv", "--by", "sex", "--noise", "random_rounding:3"),
                *("--published", "published.csv", "--html", "published.csv"),
            ],
            "published.csv is taken",
        ),
    ],
)
def test_wrong_options_are_named(folder: Path, monkeypatch, arguments, message):
    monkeypatch.chdir(folder)
    result = CliRunner().invoke(app, ["audit", *arguments])
    assert result.exit_code == 2
    assert message in re.sub(r"\s+", " ", result.output)


def test_ctrl_c_leaves_a_report(monkeypatch):
    class Patient(Progress):
        reports_interrupts = True

        def begin(self, what):
            self.what = what

        def count(self, done, total):
            if (self.what, done) == ("numbers known exactly", 2):
                raise KeyboardInterrupt

    whole, report = (
        table_report(RELEASE, published=PUBLISHED, progress=each) for each in (None, Patient())
    )
    assert report.interrupted
    for mine, exact in zip(report.facts["cells"], whole.facts["cells"], strict=True):
        assert mine["lower"] <= exact["lower"] <= exact["upper"] <= mine["upper"]
    late = table_report(RELEASE, published=PUBLISHED, time_limit=0.0)
    for part, why in (report, Stopped.INTERRUPTED), (late, Stopped.TIME_LIMIT):
        (certain,) = part.named("numbers known exactly")
        assert certain.lower <= whole.named("numbers known exactly")[0].lower <= certain.upper == 9
        assert (certain.status, certain.stopped) == ("BRACKETED", why)


def test_ctrl_c_at_the_moves_leaves_the_rest(monkeypatch):
    class Patient(Progress):
        reports_interrupts = True

    def pressed(self, place):
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr(TablePrivacy, "_of", pressed)
    report = table_report(RELEASE, progress=Patient())
    assert report.interrupted
    (advantage,) = report.named("membership advantage")
    truth = table_privacy(RELEASE).profile(0)
    assert advantage.lower <= truth.lower <= truth.upper <= advantage.upper
    assert len(report.named("table DP delta")) == 4
    assert not report.named("table zCDP rho")


def test_what_is_proved_of_delta_at_one_level_counts_at_the_others(monkeypatch):
    searched, truth = [], table_privacy(RELEASE).profile(0.5)

    def weak(self, epsilon, *, time_limit, work_limit, progress):
        searched.append(epsilon)
        if epsilon == 0.5:
            return truth
        return replace(truth, lower=0.0, upper=1.0, witness=None)

    monkeypatch.setattr(TablePrivacy, "profile", weak)
    report = table_report(RELEASE)
    assert searched == [0, 0.1, 0.5, 1, 2]
    found = [*report.named("membership advantage"), *report.named("table DP delta")]
    assert [quantity.lower for quantity in found] == [*[truth.lower] * 3, 0, 0]
    assert [quantity.upper for quantity in found] == [1, 1, *[truth.upper] * 3]
    assert "the worst case found is" in found[0].meaning


def test_a_published_value_that_is_impossible_is_refused_at_once(monkeypatch):
    monkeypatch.setattr("cvxleak.tables.table_privacy", None)
    with pytest.raises(ValidationError, match=r"published: found 7 for .* gives for no count"):
        table_report(RELEASE, published=[7, *PUBLISHED[1:]])

    with pytest.raises(InfeasibleError, match="no table of whole numbers"):
        table_report(RELEASE, published=[6, 3, 3, 0, 9, 3, 9, 3, 3])


def test_a_floor_needs_a_table_that_can_be_written_out():
    table = Table({"x": range(30)}, 2, margins=False)
    with pytest.raises(
        ValidationError, match=r"entropy_floors: found .*small enough to be written"
    ):
        table_report(TableRelease(table, RandomRounding(3)), [1.0])


def test_a_level_is_a_number():
    with pytest.raises(ValidationError, match="epsilons"):
        table_report(RELEASE, epsilons=[-1])


def test_keys_that_link_numbers_are_about_the_counts_of_the_table(tmp_path):
    path = tmp_path / "ptable.csv"
    rows = [f"{c},{k},{v}" for c in (1, 2, 3) for k, v in enumerate((-1, 0, 0, 1))]
    path.write_text("\n".join(["pcv,ckey,pvalue", *rows]) + "\n")
    table = Table({"x": ["a", "b"]}, counts=[2, 1])
    release = TableRelease(table, PerturbationTable(path, cycle=1))
    report = table_report(release, published=[2, 1, 3])
    (advantage,) = report.named("membership advantage")
    assert advantage.upper == table_privacy(release, this_table=True).profile(0).upper
    for quantity in (advantage, *report.named("table DP delta"), *report.named("table zCDP rho")):
        assert "given the true counts of this table" in quantity.meaning
    assert report.named("pointwise maximal leakage")

    class Pressed(Progress):
        reports_interrupts = True

        def update(self, lower, upper, nodes):
            if nodes == 1 and not self.interrupted:  # while moves are examined
                raise KeyboardInterrupt

    pressed, late = table_report(release, progress=Pressed()), table_report(release, time_limit=0)
    assert (pressed.interrupted, late.interrupted) == (True, False)
    for found in pressed, late:
        (reached,) = found.named("membership advantage")
        assert reached.lower < advantage.lower <= reached.upper == 1
        assert len(found.named("table DP delta")) == 4
        assert reached.stopped is Stopped.TIME_LIMIT  # after Ctrl-C the rest has none
    assert pressed.named("table DP delta")[0].upper == 1


def test_independent_people_are_in_the_report(folder):
    for known in {}, {"least_probability": 0.1}, {"laws": [[0.4, 0.2, 0.2, 0.2]]}:
        told = table_leakage(RELEASE, **known)
        whole, number = table_report(RELEASE, independent=known).named(
            "leakage to independent beliefs"
        )
        assert (whole.lower, whole.upper) == (told.whole().lower, told.whole().upper)
        assert number.upper == max(bound.upper for bound in told.numbers.values())
    for wrong in [3], {"record_floor": 0.1}:
        with pytest.raises(ValidationError, match="independent"):
            table_report(RELEASE, independent=wrong)
    known = '[adversary]\nkind = "independent"\nleast_probability = 0.1\n'
    (folder / "table.toml").write_text(SPEC + known)
    shown = " ".join(run(folder / "table.toml").split())
    assert "gives each cell of each other person a probability of at least 0.1" in shown
    for text, said in (
        ('kind = "marginals"\nlaw = [0.4, 0.2, 0.2, 0.2]\n', "adversary.kind: found 'marginals'"),
        ('kind = "independent"\nrecord_floor = 0.1\n', "adversary.record_floor"),
        ('kind = "independent"\nleast_probability = 0.3\n', "adversary.least_probability"),
    ):
        (folder / "table.toml").write_text(f"{SPEC}[adversary]\n{text}")
        result = CliRunner().invoke(app, ["audit", str(folder / "table.toml")])
        assert result.exit_code == 2
        assert said in " ".join(result.output.split())


def test_ctrl_c_at_a_number_leaves_what_was_found(monkeypatch):
    class Patient(Progress):
        reports_interrupts = True

        def count(self, done, total):
            if done == 2:
                raise KeyboardInterrupt

    report = table_report(RELEASE, progress=Patient())
    assert report.interrupted
    assert report.named("table zCDP rho")
    assert not report.named("leakage to independent beliefs")


def test_the_whole_table_is_reported_however_early_its_search_ends():
    class Patient(Progress):
        reports_interrupts = True
        what = ""

        def begin(self, what):
            self.what = what

        def update(self, lower, upper, nodes):
            if self.what == "leakage to independent beliefs":
                raise KeyboardInterrupt

    (exact, _), (whole, _), (late, _) = (
        table_report(RELEASE, **how).named("leakage to independent beliefs")
        for how in ({}, {"progress": Patient()}, {"time_limit": 0.0})
    )
    for part, why in (whole, Stopped.INTERRUPTED), (late, Stopped.TIME_LIMIT):
        assert part.lower <= exact.lower <= exact.upper <= part.upper
        assert (part.status, part.stopped) == ("BRACKETED", why)


def test_progress_is_told_in_its_unit():
    class Noting(Progress):
        def __init__(self):
            self.told = set()

        def begin(self, what):
            self.what = what

        def update(self, lower, upper, nodes):
            self.told.add((self.what, self.unit))

    progress = Noting()
    table_report(RELEASE, progress=progress)
    assert progress.told == {
        ("membership advantage", "probability"),
        ("table DP delta", "probability"),
        ("table zCDP rho", "nats"),
        ("leakage to independent beliefs", "nats"),
    }
    assert progress.unit == "nats"


def test_a_spec_says_where_noise_and_files_are_wrong(folder):
    for old, new, message in (
        ("[mechanism]", "[audit]", "needs [mechanism], the noise of each number of [table]"),
        ("counts.csv", "people.csv", "table.counts: the columns are ['sex', 'answer']"),
        ("published.csv", "people.csv", "table.published: the columns are ['sex', 'answer']"),
        ("published.csv", "counts.csv", "table.published: 5 of 9 numbers are missing"),
        ("[mechanism]", "noise = 3\n[mechanism]", "table.noise: unknown key; the noise of each"),
    ):
        spec = SPEC.replace(old, new)
        if new == "[audit]":
            spec = spec[: spec.index(new)]
        (folder / "table.toml").write_text(spec)
        result = CliRunner().invoke(app, ["audit", str(folder / "table.toml")])
        assert result.exit_code == 2
        assert message in result.output


def test_ctrl_c_at_what_was_published_leaves_the_rest(monkeypatch):
    class Patient(Progress):
        reports_interrupts = True

    def pressed(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("cvxleak.tables.realized_leakage", pressed)
    report = table_report(RELEASE, published=PUBLISHED, progress=Patient())
    assert report.interrupted
    assert report.named("numbers known exactly")
    assert not report.named("pointwise maximal leakage")
    assert html_page(report, ["A table"])
