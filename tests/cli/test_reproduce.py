"""``cvxleak reproduce``: the tables, the files, and what is wrong."""

import json

from cvxleak.papers.gallery import ITEMS
from cvxleak.papers.gallery.item import Item, pair


def test_the_list_has_every_item(run):
    found = run("reproduce", "--list")
    assert found.exit_code == 0
    assert all(name in found.stdout for name in ITEMS)


def test_an_item_is_printed_beside_the_paper(run):
    found = run("reproduce", "leakage-table-3")
    assert found.exit_code == 0
    assert "0.07954151" in found.stdout
    assert "LEAKAGE Table 3" in found.stdout
    assert "3 of 12 agree, 9 on the errata page" in found.stdout


def test_files_are_written(run, tmp_path):
    folder = tmp_path / "new" / "folder"
    found = run("reproduce", "dalenius-figure-3", "dalenius-remark-3", "--out", folder)
    assert found.exit_code == 0
    names = sorted(path.name for path in folder.iterdir())
    assert names == [
        "dalenius-figure-3.json",
        "dalenius-figure-3.png",
        "dalenius-figure-3.svg",
        "dalenius-remark-3.json",
    ]
    document = json.loads((folder / "dalenius-remark-3.json").read_text("utf-8"))
    assert document["pairs"][2]["numeral"] == "67824342"


def test_what_is_wrong_is_said_before_anything_is_computed(run, tmp_path):
    for arguments, message in (
        ((), "found neither; name items, or take --all"),
        (("leakage-table-3", "--all"), "found leakage-table-3 and --all; name items"),
        (("leakage-table-3", "leakage-table-33"), "there are leakage-table-3"),
        (("leakage-table-3", "--out", tmp_path / "file" / "folder"), "--out: cannot make"),
    ):
        (tmp_path / "file").write_text("")
        found = run("reproduce", *arguments)
        assert found.exit_code == 2
        assert message in " ".join(found.stderr.split())
        assert not found.stdout


def test_a_number_that_nothing_explains_is_exit_code_1(run, monkeypatch):
    bad = Item("leakage-table-3", "a test", lambda: ([pair("one", 1.0, "3")], {}))
    monkeypatch.setitem(ITEMS, "leakage-table-3", bad)
    found = run("reproduce", "leakage-table-3")
    assert found.exit_code == 1
    assert "NOT EXPLAINED" in found.stdout
