import json
import os
import signal
import sqlite3
import subprocess
import sys
import time

import numpy as np
import pytest

from cvxleak.core.errors import InfeasibleError, ValidationError
from cvxleak.desk import ReleaseDesk
from cvxleak.desk import release_desk as module
from cvxleak.desk.kernels import GRID
from cvxleak.measures import mutual_information
from cvxleak.model import Channel, Distortion, Prior

PEOPLE = {("f", "no"): 0.3, ("f", "yes"): 0.2, ("m", "no"): 0.1, ("m", "yes"): 0.4}
SEX = {x: x[0] for x in PEOPLE}
ANSWER = {x: x[1] for x in PEOPLE}
TRUTH = ("f", "yes")


@pytest.fixture
def place(tmp_path):
    return tmp_path / "ledger.db"


def new(place, **options):
    return ReleaseDesk.create(place, PEOPLE, **({"epsilon": 0.2, "delta": 0.3} | options))


def exposure(desk, *parties):
    found = [who for who in desk.report().exposures if who.parties == parties]
    assert len(found) == 1
    return found[0]


def test_a_day_at_the_desk(place):
    desk = new(place, coalitions={("Ann", "Bob"): 0.25})
    releases = [
        desk.request("Ann", SEX, x=TRUTH),
        desk.request("Bob", ANSWER, x=TRUTH),
        desk.request("Cyd", x=TRUTH, epsilon=0.1),
        desk.request("Ann", ANSWER, x=TRUTH),
    ]
    assert [release.number for release in releases] == [1, 2, 3, 4]
    assert releases[0].output in {"f", "m"}
    assert releases[2].output in PEOPLE
    assert desk.releases() == ReleaseDesk(place).releases() == releases
    for party, budget in (("Ann", 0.2), ("Bob", 0.2), ("Cyd", 0.2)):
        assert 0 < exposure(desk, party).leakage <= budget == exposure(desk, party).budget
    assert exposure(desk, "Cyd").leakage <= 0.1
    assert exposure(desk, "Ann", "Bob").leakage <= 0.25
    assert exposure(desk).leakage <= 0.3
    assert exposure(desk).leakage >= exposure(desk, "Ann", "Bob").leakage
    assert json.loads(json.dumps(desk.report().to_dict()))["releases"] == 4
    assert "all parties: at most" in str(desk.report())
    assert desk.verify().passed


def test_the_first_release_is_the_rate_distortion_optimum(place):
    """A fair bit within epsilon nats: flip it with h(flip) = log 2 - epsilon."""
    desk = ReleaseDesk.create(place, [0.5, 0.5], epsilon=0.2, delta=0.2)
    lower, upper = desk.request("Ann", x=1).distortion
    flip = upper
    assert np.isclose(mutual_information([[1 - flip, flip], [flip, 1 - flip]], [0.5, 0.5]), 0.2,
                      atol=1e-5)  # fmt: skip
    assert lower <= upper <= lower + 1e-5


@pytest.mark.parametrize("mode", ["ex_ante", "realized"])
def test_the_same_request_twice_gets_the_same_answer(place, mode):
    desk = new(place, mode=mode)
    first = desk.request("Ann", SEX, 0.2, 0.2, x=TRUTH)
    assert first.copy_of is None
    for party in ("Bob", "Ann", "Cyd"):
        again = desk.request(party, SEX, 0.2, 0.2, x=TRUTH)
        assert again.output == first.output
        assert again.copy_of == 1
    assert exposure(desk).leakage == exposure(desk, "Ann").leakage
    assert desk.verify().passed


def test_realized_answers_may_tell_of_all_that_came_before(place):
    """A copy adds nothing for who knows all, but it tells a newcomer what the first one told."""
    desk = new(place, mode="realized", epsilon={"Ann": 0.2, "Bob": 0.2, "Cyd": 0.05})
    desk.request("Ann", SEX, 0.2, 0.2, x=TRUTH)
    desk.request("Bob", SEX, 0.2, 0.2, x=TRUTH)
    assert exposure(desk, "Bob").leakage == exposure(desk, "Ann").leakage > 0.1
    with pytest.raises(
        InfeasibleError, match=r"epsilon: found 0.05 nats; Cyd may already have learned"
    ):
        desk.request("Cyd", SEX, x=TRUTH)


@pytest.mark.parametrize("seed", range(4))
def test_a_returning_party_gets_what_the_problem_allows(place, seed):
    """The kernel looks at what the party got, so the bound of the problem is met."""
    rng = np.random.default_rng(seed)
    desk = ReleaseDesk.create(place, rng.dirichlet(np.ones(3)), epsilon=0.2, delta=0.4)
    ones, twos = (rng.dirichlet(np.ones(2), size=3) for _ in range(2))
    for party, request in (("A", ones), ("B", twos), ("A", twos), ("B", ones), ("A", ones)):
        lower, upper = desk.request(party, request, x=0).distortion
        assert lower <= upper <= lower + 1e-4
    assert desk.verify().passed
    again = desk.request("A", ones, x=0)
    assert (again.copy_of, again.output) == (1, desk.releases()[0].output)


def test_a_party_that_comes_back_gets_its_old_answer(place):
    """Also where the histories that hold several of its answers are one class."""
    desk = ReleaseDesk.create(place, [0.5, 0.5], epsilon={"Ann": 0.1, "Bob": 0.7}, delta=0.7)
    first = desk.request("Ann", x=0)
    assert desk.request("Bob", x=0).output == 0  # 0.7 nats are enough to know it
    again = desk.request("Ann", x=0)
    assert (again.copy_of, again.output) == (1, first.output)
    assert again.distortion[1] == first.distortion[1]


@pytest.mark.parametrize("scale", [1e-7, 1.0, 1e3, 1e5])
def test_copies_do_not_depend_on_the_unit_of_the_distortion(tmp_path, scale):
    desk = new(tmp_path / "ledger.db", epsilon=0.2, delta=0.4)
    cost = scale * (1 - np.eye(2))
    first = desk.request("Ann", SEX, 0.2, 0.2, x=TRUTH, distortion=cost)
    assert desk.request("Bob", SEX, 0.2, 0.2, x=TRUTH, distortion=cost).copy_of == 1
    other = desk.request("Cyd", ANSWER, 0.2, 0.4, x=TRUTH, distortion=cost)
    assert other.copy_of is None
    assert other.distortion[1] < 0.4 * scale
    assert first.distortion[1] < 0.4 * scale


def test_coalitions_of_any_shape_lock_nobody_out(place):
    desk = new(place, epsilon=0.1, delta=0.4,
               coalitions={("Ann", "Bob"): 0.15, ("Ann", "Cyd"): 0.3})  # fmt: skip
    for party in ("Bob", "Ann", "Ann", "Cyd", "Bob"):
        desk.request(party, SEX if party == "Ann" else ANSWER, x=TRUTH)
    assert exposure(desk, "Ann", "Bob").leakage <= 0.15
    assert desk.verify().passed


def test_a_desk_notices_another_ledger_in_its_place(place):
    desk = new(place)
    desk.request("Ann", SEX, x=TRUTH)
    place.unlink()
    with pytest.raises(ValidationError, match="path: cannot use"):
        desk.request("Ann", SEX, x=TRUTH)
    assert not place.exists()
    new(place, epsilon=0.01, delta=0.01)
    with pytest.raises(ValidationError, match="no longer the ledger that was opened"):
        desk.request("Ann", SEX, x=TRUTH)
    assert ReleaseDesk(place).releases() == []


def test_nothing_is_released_on_a_falsified_account(place):
    desk = new(place)
    desk.request("Ann", SEX, x=TRUTH)
    connection = sqlite3.connect(place)
    connection.execute("UPDATE release SET content = replace(content, 'Ann', 'Zoe')")
    connection.commit()
    connection.close()
    for call in (desk.report, desk.releases, lambda: desk.request("Ann", SEX, x=TRUTH)):
        with pytest.raises(ValidationError, match="release 1 was changed after it was recorded"):
            call()


def test_a_trigger_cannot_keep_a_release_out_of_the_ledger(place):
    desk = new(place)
    connection = sqlite3.connect(place)
    connection.execute("CREATE TRIGGER t BEFORE INSERT ON release BEGIN SELECT RAISE(IGNORE); END")
    connection.commit()
    connection.close()
    with pytest.raises(ValidationError, match="it has other tables"):
        desk.request("Ann", SEX, x=TRUTH)


def test_a_head_shows_what_was_taken_away(place):
    desk = new(place)
    heads = [desk.head]
    for party in ("Ann", "Bob"):
        desk.request(party, SEX, x=TRUTH)
        heads.append(desk.head)
    assert len(set(heads)) == 3
    assert all(desk.verify(head).passed for head in heads)
    connection = sqlite3.connect(place)
    connection.execute("DELETE FROM release WHERE number = 2")
    connection.commit()
    connection.close()
    assert desk.verify().passed
    assert desk.verify(heads[1]).passed
    assert "not there any more" in desk.verify(heads[2]).errors[0]


def test_a_ledger_is_for_its_owner_only(place):
    desk = new(place)
    desk.request("Ann", SEX, x=TRUTH)
    assert place.stat().st_mode & 0o077 == 0
    assert list(place.parent.iterdir()) == [place]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE ledger SET value = 'x' WHERE key = 'heading'",
        "UPDATE ledger SET value = '[1]' WHERE key = 'heading'",
        "UPDATE ledger SET value = '{}' WHERE key = 'heading'",
        "DELETE FROM ledger WHERE key = 'heading'",
        "UPDATE ledger SET value = '9' WHERE key = 'version'",
        "UPDATE ledger SET value = replace(value, 'ex_ante', 'bogus') WHERE key = 'heading'",
        "UPDATE ledger SET value = replace(value, '{\"mode', '{\"m\": 1, \"mode')",
        "UPDATE ledger SET value = replace(value, '[]', '\"\"') WHERE key = 'heading'",
        "DROP TABLE ledger",
        "DROP TABLE release",
        "ALTER TABLE release RENAME COLUMN content TO contents",
        "CREATE TRIGGER t BEFORE INSERT ON release BEGIN SELECT RAISE(IGNORE); END",
    ],
)
def test_damaged_ledgers_are_refused(place, statement):
    new(place)
    connection = sqlite3.connect(place)
    connection.execute(statement)
    connection.commit()
    connection.close()
    with pytest.raises(ValidationError, match="path: "):
        ReleaseDesk(place)


def test_what_was_spent_is_rounded_so_a_realized_budget_used_up_leaves_a_speck(place):
    coins = dict.fromkeys([("h", "h"), ("h", "t"), ("t", "h"), ("t", "t")], 0.25)
    desk = ReleaseDesk.create(place, coins, epsilon=0.2, delta=0.2, mode="realized")
    desk.request("Ann", {x: x[0] for x in coins}, x=("h", "t"), epsilon=0.1)
    spent = exposure(desk).leakage
    release = desk.request("Bob", {x: x[1] for x in coins}, x=("h", "t"), epsilon=spent)
    lower, upper = release.distortion
    # Around independence the distortion falls like the root of the room.
    assert 1e-9 < upper - lower < 1e-6
    assert desk.verify().passed


@pytest.mark.parametrize("content", ["[1]", "x", "[" * 100_000, "{}"])
def test_damaged_rows_do_not_verify(place, content):
    desk = new(place)
    desk.request("Ann", SEX, x=TRUTH)
    from cvxleak.desk.ledger import _digest

    connection = sqlite3.connect(place)
    sha256 = _digest(desk._ledger._seed, content)
    connection.execute("UPDATE release SET content = ?, sha256 = ?", (content, sha256))
    connection.commit()
    connection.close()
    assert not desk.verify().passed


def test_labels_that_no_ledger_holds(tmp_path):
    with pytest.raises(ValidationError, match="a label cannot be recorded"):
        ReleaseDesk.create(tmp_path / "a.db", {b"x": 0.5, b"y": 0.5}, epsilon=0.1, delta=0.1)
    assert list(tmp_path.iterdir()) == []
    desk = new(tmp_path / "b.db")
    with pytest.raises(ValidationError, match="a label cannot be recorded"):
        desk.request("Ann", {x: frozenset([x[0]]) for x in PEOPLE}, x=TRUTH)
    with pytest.raises(ValidationError, match="request"):
        desk.request("Ann", {x: [x[0]] for x in PEOPLE}, x=TRUTH)
    assert desk.releases() == []


def test_releases_add_up_to_what_the_budgets_allow(place):
    desk = new(place, epsilon=0.05, delta=0.08)
    for party, request in (("Ann", SEX), ("Ann", ANSWER), ("Bob", ANSWER), ("Ann", None)):
        desk.request(party, request, x=TRUTH)
    assert exposure(desk, "Ann").leakage <= 0.05
    assert exposure(desk).leakage <= 0.08
    # What is spent is spent: a smaller budget cannot be kept any more.
    with pytest.raises(InfeasibleError, match=r"epsilon: .*Ann may already have learned 0\.0[45]"):
        desk.request("Ann", SEX, epsilon=0.01, x=TRUTH)
    assert len(desk.releases()) == 4


def test_budgets_beyond_the_ledger_are_refused(place):
    desk = new(place, epsilon={"Ann": 0.2, "Bob": 0.1})
    desk.request("Ann", SEX, 0.1, 0.2, x=TRUTH)
    size = place.stat().st_size
    for party, epsilon, delta, error, found in (
        (
            "Bob",
            0.2,
            0.3,
            InfeasibleError,
            "epsilon: found 0.2 nats; the ledger allows at most 0.1 nats",
        ),
        (
            "Ann",
            0.2,
            0.5,
            InfeasibleError,
            "delta: found 0.5 nats; the ledger allows at most 0.3 nats",
        ),
        (
            "Eve",
            0.1,
            0.3,
            InfeasibleError,
            r"party: found 'Eve'; the parties of this ledger are \['Ann', 'Bob",
        ),
        ("Ann", 0.1, 0.15, ValidationError, "delta: found 0.15, below 0.2 of an earlier request"),
        ("Ann", 0.1, 0.05, ValidationError, "delta"),
        ("Ann", -0.1, 0.3, ValidationError, "epsilon"),
        ("Ann", 0.2, float("nan"), ValidationError, "delta"),
        (
            "Ann",
            0.01,
            0.3,
            InfeasibleError,
            "epsilon: found 0.01 nats; Ann may already have learned 0.0999",
        ),
        ("", 0.1, 0.3, ValidationError, "party: found ''"),
        (3, 0.1, 0.3, ValidationError, "party: found 3"),
    ):
        with pytest.raises(error, match=found):
            desk.request(party, SEX, epsilon, delta, x=TRUTH)
    assert len(desk.releases()) == 1
    assert place.stat().st_size == size


def test_the_data_is_nowhere(place):
    """Neither the file nor an error message holds x."""
    secret = {"zz-secret-name": 0.5, "zz-other-name": 0.5}
    desk = ReleaseDesk.create(place, secret, epsilon=0.1, delta=0.1)
    with pytest.raises(ValidationError, match="x: not one of the model's values") as caught:
        desk.request("Ann", x="zz-unknown-person")
    assert "unknown-person" not in str(caught.value)
    for _ in range(3):
        desk.request("Ann", {"zz-secret-name": 0, "zz-other-name": 1}, x="zz-secret-name")
    connection = sqlite3.connect(place)
    texts = [row for row in connection.execute("SELECT content FROM release")]
    connection.close()
    other = place.with_name("other.db")
    # The same requests about the other person: apart from what was drawn, the same ledger.
    twin = ReleaseDesk.create(other, secret, epsilon=0.1, delta=0.1)
    for _ in range(3):
        twin.request("Ann", {"zz-secret-name": 0, "zz-other-name": 1}, x="zz-other-name")
    connection = sqlite3.connect(other)
    twins = [row for row in connection.execute("SELECT content FROM release")]
    connection.close()
    for (one,), (two,) in zip(texts, twins, strict=True):
        mine, theirs = json.loads(one), json.loads(two)
        mine.pop("output"), theirs.pop("output")
        assert mine == theirs


def test_data_that_the_model_rules_out(place):
    desk = ReleaseDesk.create(place, {"a": 0.5, "b": 0.5, "c": 0.0}, epsilon=0.7, delta=0.7)
    with pytest.raises(ValidationError, match="x: its probability is zero under the model"):
        desk.request("Ann", x="c")
    assert desk.request("Ann", x="a").output == "a"
    with pytest.raises(ValidationError, match="given the earlier releases"):
        desk.request("Bob", x="b")
    assert len(desk.releases()) == 1


def test_budgets_too_small_to_be_told_from_nothing(place):
    desk = ReleaseDesk.create(place, [0.5, 0.5], epsilon=1e-15, delta=1e-15)
    assert desk.request("Ann", x=0).distortion[1] == 0.5
    assert exposure(desk).leakage == 0


def test_requests_of_every_form(place):
    desk = new(place)
    rows = [[0.9, 0.1], [0.2, 0.8], [0.9, 0.1], [0.2, 0.8]]
    assert desk.request("Ann", rows, x=TRUTH).output in {0, 1}
    shuffled = list(reversed(PEOPLE))
    channel = Channel(list(reversed(rows)), shuffled, ["lo", "hi"])
    cost = Distortion([[0, 2], [1, 0]], ["hi", "lo"], ["hi", "lo"])
    assert desk.request("Bob", channel, x=TRUTH, distortion=cost).output in {"lo", "hi"}
    for request, found in (
        ({("f", "no"): 1}, "request: a mapping needs one value for each"),
        ([[0.5, 0.5]], "inputs"),
        ([[0.5, 0.6]] * 4, "sums to"),
        ("sex", "request"),
    ):
        with pytest.raises(ValidationError, match=found):
            desk.request("Bob", request, x=TRUTH)
    with pytest.raises(ValidationError, match=r"(distortion|matrix|inputs): "):
        desk.request("Bob", SEX, x=TRUTH, distortion=[[0.0, 1.0]])
    assert len(desk.releases()) == 2


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"mode": "both"}, "mode: found 'both'"),
        ({"epsilon": 0.4}, "epsilon"),
        ({"delta": float("inf")}, "delta"),
        ({"delta": -1.0}, "delta"),
        ({"epsilon": {"": 0.1}}, "epsilon: found ''"),
        ({"coalitions": {("Ann", "Bob"): 0.5}}, "coalitions"),
        ({"coalitions": {"Ann": 0.1}}, "coalitions: found 'Ann'"),
        ({"coalitions": {(): 0.1}}, "coalitions: found"),
        ({"coalitions": {("Ann", "Bob"): 0.1, ("Bob", "Ann"): 0.3}}, "coalitions: found"),
        ({"coalitions": {("Ann", "Bbo"): 0.1}, "epsilon": {"Ann": 0.1, "Bob": 0.1}}, "Bbo"),
        ({"epsilon": {"Ann ": 0.1}}, "epsilon: found 'Ann '"),
    ],
)
def test_bad_ledgers_are_not_made(place, change, found):
    with pytest.raises(ValidationError, match=found):
        new(place, **change)
    assert not place.exists()
    assert list(place.parent.iterdir()) == []


def test_files_that_are_no_ledger(place):
    with pytest.raises(ValidationError, match="there is no ledger"):
        ReleaseDesk(place)
    place.write_text("hello")
    with pytest.raises(ValidationError, match="not a ledger"):
        ReleaseDesk(place)
    with pytest.raises(ValidationError, match="already exists"):
        new(place)
    assert place.read_text() == "hello"
    place.unlink()
    connection = sqlite3.connect(place)
    connection.executescript("CREATE TABLE ledger (key TEXT, value TEXT);")
    connection.close()
    with pytest.raises(ValidationError, match="not a ledger"):
        ReleaseDesk(place)
    with pytest.raises(ValidationError, match=r"cannot write .*': No such file or directory$"):
        new(place.parent / "missing" / "ledger.db")


def change(place, number, edit):
    """Edit a release in the file, its hashes recomputed."""
    connection = sqlite3.connect(place)
    rows = connection.execute("SELECT number, content FROM release ORDER BY number").fetchall()
    (heading,) = connection.execute("SELECT value FROM ledger WHERE key = 'heading'").fetchone()
    before = module.Ledger(place)._seed
    assert heading
    for row, content in rows:
        if row == number:
            data = json.loads(content)
            edit(data)
            content = json.dumps(data)
        from cvxleak.desk.ledger import _digest

        before = _digest(before, content)
        connection.execute(
            "UPDATE release SET content = ?, sha256 = ? WHERE number = ?", (content, before, row)
        )
    connection.commit()
    connection.close()


@pytest.mark.parametrize("mode", ["ex_ante", "realized"])
def test_a_changed_ledger_does_not_verify(place, mode):
    desk = new(place, mode=mode)
    desk.request("Ann", SEX, 0.1, 0.2, x=TRUTH)
    desk.request("Bob", ANSWER, x=TRUTH)
    desk.request("Bob", SEX, x=TRUTH, epsilon=0.2)
    assert desk.verify().passed
    unchanged = place.read_bytes()

    def restored():
        place.write_bytes(unchanged)
        return ReleaseDesk(place)

    connection = sqlite3.connect(place)
    connection.execute("UPDATE release SET content = replace(content, 'Bob', 'Cyd')")
    connection.commit()
    connection.close()
    assert any("was changed after" in error for error in desk.verify().errors)
    desk = restored()
    connection = sqlite3.connect(place)
    connection.execute("DELETE FROM release WHERE number = 2")
    connection.commit()
    connection.close()
    assert any("missing" in error for error in desk.verify().errors)

    # With hashes that fit again, what is recomputed does not.
    from cvxleak.kernel.reading import pack

    def louder(data):
        data["kernel"] = pack(np.array([[[GRID, 0]] * 2 + [[0, GRID]] * 2]), "<i4")
        data["output"] = 0

    for number, edit in (
        (1, lambda data: data.update(epsilon=0.05)),
        (1, lambda data: data.update(delta=0.1, epsilon=0.05)),
        (2, lambda data: data.update(delta=0.05)),
        (2, lambda data: data.update(delta=3.0)),
        (1, lambda data: data.update(expected_distortion=[0.0, 0.01])),
        (1, louder),
        (1, lambda data: data.update(kernel=pack(np.ones((1, 4, 2)), "<i4"))),
        (1, lambda data: data.pop("kernel")),
        (1, lambda data: data.update(output=7)),
        (2, lambda data: data.update(copy_of=1)),
    ):
        desk = restored()
        change(place, number, edit)
        assert not desk.verify().passed


@pytest.mark.parametrize(
    "edit",
    [
        lambda data: data.update(looks=0),
        lambda data: data.update(looks=False),
        lambda data: data.update(copy_of=True),
        lambda data: data.update(copy_of=0),
        lambda data: data.update(copy_of=2),
        lambda data: data.update(output=True),
        lambda data: data.update(output=2),
        lambda data: data.update(epsilon=None),
        lambda data: data.update(party=["Ann"]),
        lambda data: data.update(more=1),
        lambda data: data["request"].pop("inputs"),
        lambda data: data["request"].update(inputs=[["f", "no"], ["f", "yes"], "m", "n"]),
        lambda data: data["distortion"].update(outputs=["m", "f"]),
        lambda data: data["kernel"].update(dtype="<f4"),
        lambda data: data.update(expected_distortion=[0.0]),
    ],
)
def test_rows_are_read_strictly(place, edit):
    desk = new(place)
    for _ in range(2):
        desk.request("Ann", SEX, 0.1, 0.2, x=TRUTH)
    change(place, 2, edit)
    assert [text for text in desk.verify().errors if "release 2" in text]
    if desk.verify().errors[0].startswith("release 2: its kernel must"):
        return  # well formed, but not what the desk does
    for call in (desk.report, desk.releases, lambda: desk.request("Ann", SEX, x=TRUTH)):
        with pytest.raises(ValidationError, match=r"path: release 2 (is damaged|has other data)"):
            call()


def test_a_kernel_that_was_not_the_best_is_seen(place):
    """A constant release in the place of a good one, with a distortion that fits it."""
    from cvxleak.kernel.reading import pack

    desk = ReleaseDesk.create(place, [0.5, 0.5], epsilon=0.2, delta=0.3)
    desk.request("Ann", x=0)
    silent = pack(np.tile([[GRID, 0]], (1, 2, 1)), "<i4")
    upper = 0.5
    change(place, 1, lambda data: data.update(kernel=silent, output=0))
    change(place, 1, lambda data: data.update(expected_distortion=[0.0, upper]))
    assert desk.verify().passed  # nothing better was claimed
    change(place, 1, lambda data: data.update(expected_distortion=[upper, upper]))
    (error,) = desk.verify().errors
    assert error == "release 1: the least expected distortion is below the recorded one"


@pytest.mark.parametrize("mode", ["ex_ante", "realized"])
def test_a_report_says_what_it_claims(place, mode):
    report = new(place, mode=mode).report()
    assert ("no claim about other histories" in str(report)) is (mode == "realized")
    assert report.to_dict()["claim"] == report.claim


SERVE = """
import sys
from cvxleak.desk import ReleaseDesk
desk = ReleaseDesk(sys.argv[1])
for turn in range(int(sys.argv[3])):
    release = desk.request(sys.argv[2], [[0.8, 0.2], [0.2, 0.8]], x=turn % 2)
    print(release.number, release.output, flush=True)
"""


def serve(place, party, turns):
    return subprocess.Popen(
        [sys.executable, "-c", SERVE, os.fspath(place), party, str(turns)],
        stdout=subprocess.PIPE,
        text=True,
    )


def test_a_killed_process_has_released_nothing_unrecorded(tmp_path):
    rng = np.random.default_rng(0)
    for attempt in range(3):
        place = tmp_path / f"{attempt}.db"
        desk = ReleaseDesk.create(place, [0.5, 0.5], epsilon=0.1, delta=0.1, mode="realized")
        process = serve(place, "Ann", 10_000)
        assert process.stdout is not None
        handed = [process.stdout.readline().split()]
        time.sleep(0.3 * rng.random())
        process.send_signal(signal.SIGKILL)
        handed += [line.split() for line in process.stdout.read().splitlines()]
        process.wait()
        process.stdout.close()
        recorded = {str(release.number): str(release.output) for release in desk.releases()}
        whole = [pair for pair in handed if len(pair) == 2]
        assert whole
        assert all(recorded[number] == output for number, output in whole)
        # At most the one that was on its way is recorded and was not handed out.
        assert len(recorded) <= len(handed) + 1
        assert desk.verify().passed
        assert desk.request("Bob", x=0).number == len(recorded) + 1


def test_two_processes_take_turns(tmp_path):
    place = tmp_path / "ledger.db"
    desk = ReleaseDesk.create(place, [0.5, 0.5], epsilon=0.1, delta=0.1, mode="realized")
    processes = [serve(place, party, 8) for party in ("Ann", "Bob")]
    outputs = [process.communicate()[0].split() for process in processes]
    numbers = sorted(int(n) for output in outputs for n in output[::2])
    assert numbers == list(range(1, 17))
    assert desk.verify().passed
    assert [release.party for release in desk.releases()].count("Ann") == 8


def test_nothing_is_recorded_when_the_search_fails(place, monkeypatch):
    desk = new(place)
    desk.request("Ann", SEX, x=TRUTH)

    def fail(*_):
        raise RuntimeError("the power went out")

    for owner, name in ((module, "choose_kernel"), (module, "draw"), (module.Record, "to_dict")):
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, fail)
            with pytest.raises(RuntimeError):
                desk.request("Bob", SEX, x=TRUTH)
        assert len(desk.releases()) == 1
    assert desk.request("Bob", SEX, x=TRUTH).number == 2


def test_histories_grow_only_as_they_differ(place):
    """Fresh noise about a fair bit, with the budget for it: only the number of ones matters."""
    desk = ReleaseDesk.create(place, [0.5, 0.5], epsilon=0.05, delta=0.6)
    for number, party in enumerate("ABCD", start=1):
        flip = 0.5 - 0.1 * number
        desk.request(party, [[1 - flip, flip], [flip, 1 - flip]], 0.05, 0.6, x=0)
    assert desk.report().histories <= 5
    assert desk.verify().passed


def test_a_prior_object_is_a_model(place):
    desk = ReleaseDesk.create(place, Prior([0.5, 0.5], ["a", "b"]), epsilon=0.0, delta=0.0)
    assert desk.prior == Prior([0.5, 0.5], ["a", "b"])
    assert desk.mode == "ex_ante"
    release = desk.request("Ann", x="a")
    assert release.distortion[1] == 0.5
    assert exposure(desk).leakage == 0


def test_a_problem_that_no_proof_goes_through_is_refused(place, monkeypatch):
    desk = new(place)
    desk.request("Ann", SEX, 0.1, 0.2, x=TRUTH)
    before = place.read_bytes()
    # 2 classes, 4 datasets, 2 outputs; Ann, everybody, the two that have no budget, the cost.
    monkeypatch.setattr("cvxleak.desk.solving.PROOF_LIMIT", 2 * 4 * 2 * 5 - 1)
    with pytest.raises(
        ValidationError, match=r"ledger: .* takes more than 79 numbers; ask for few"
    ):
        desk.request("Bob", SEX, x=TRUTH)
    assert place.read_bytes() == before
    monkeypatch.setattr("cvxleak.desk.solving.PROOF_LIMIT", 2 * 4 * 2 * 5)
    assert desk.request("Bob", SEX, x=TRUTH).number == 2


def test_the_manual_has_the_limits_that_hold():
    from pathlib import Path

    from cvxleak.desk.history import SIZE_LIMIT
    from cvxleak.desk.solving import PROOF_LIMIT

    manual = (Path(__file__).parents[2] / "docs" / "desk.md").read_text(encoding="utf-8")
    assert f"{SIZE_LIMIT:,} numbers" in manual
    assert f"more than {PROOF_LIMIT:,}" in manual


def test_a_flipped_bit_anywhere_in_the_file_is_no_raw_error(place):
    desk = new(place)
    desk.request("Ann", SEX, x=TRUTH)
    data = bytearray(place.read_bytes())
    schema = data.index(b"CREATE TABLE")
    texts = [i for name in (b"CREATE TABLE ledger", b"CREATE TABLE release")
             for i in range(data.index(name), data.index(name) + 24)]  # fmt: skip
    heads = [*range(0, 110, 3), *range(schema - 60, schema)]
    spread = range(0, len(data), 499)
    refused = 0
    for byte in (*texts, *heads, *spread):
        place.write_bytes(data[:byte] + bytes([data[byte] ^ 0x80]) + data[byte + 1 :])
        try:
            ReleaseDesk(place).releases()
        except ValidationError:
            refused += 1
    assert refused > len(texts)


def test_a_schema_text_that_has_become_a_blob_is_no_raw_error(place):
    new(place)
    data = place.read_bytes()
    row = data.index(b"tableledgerledger")  # before it types and lengths, the text's last
    place.write_bytes(data[: row - 1] + bytes([data[row - 1] ^ 1]) + data[row:])
    with pytest.raises(ValidationError, match="it has other tables"):
        ReleaseDesk(place)


def test_last_releases_that_are_gone_are_seen_in_the_file(place):
    """A damaged count of rows, or an end that is cut off, leaves a chain that is whole."""
    desk = new(place)
    for party in ("Ann", "Bob"):
        desk.request(party, SEX, x=TRUTH)
    data = place.read_bytes()
    count = data.rindex(b"\x0d\x00\x00\x00\x02", 0, len(data) - 1000)  # a leaf of two rows
    assert count % 4096 == 0
    for damaged in (data[: count + 4] + b"\x00" + data[count + 5 :], data[: count + 3]):
        place.write_bytes(damaged)
        with pytest.raises(ValidationError):
            ReleaseDesk(place).releases()
        with pytest.raises(ValidationError):
            ReleaseDesk(place).request("Cyd", SEX, x=TRUTH)


@pytest.mark.parametrize("damage", ["truncate", "replace", "unlink"])
def test_a_release_is_read_back_before_it_is_handed_out(place, monkeypatch, damage):
    """Another program meddles with the file between BEGIN IMMEDIATE and COMMIT."""
    desk = new(place)
    desk.request("Ann", SEX, x=TRUTH)
    choose = module.choose_kernel

    def meddling(*arguments):
        if damage == "truncate":
            os.truncate(place, 0)
        else:
            place.unlink()
        if damage == "replace":
            new(place)
        return choose(*arguments)

    monkeypatch.setattr(module, "choose_kernel", meddling)
    lost = "cannot be read back, so it is not returned"
    with pytest.raises(ValidationError, match=lost if damage == "truncate" else "is released"):
        desk.request("Bob", SEX, x=TRUTH)


def test_another_release_right_after_ours_is_no_harm(place, monkeypatch):
    desk = new(place)
    read, seen = module.Ledger._read, []

    def crowded(self, connection):
        if len(seen) == 1:  # the reading back
            seen.append("ours")
            ReleaseDesk(place).request("Bob", SEX, x=TRUTH)
        seen.append("read")
        return read(self, connection)

    monkeypatch.setattr(module.Ledger, "_read", crowded)
    assert desk.request("Ann", SEX, x=TRUTH).number == 1
    monkeypatch.undo()
    assert [release.party for release in desk.releases()] == ["Ann", "Bob"]
    assert desk.verify().passed
