"""Audits of samples: they hold for the truth, say what they are about, and refuse what is none."""

import math
import pickle
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from cvxleak import Channel, capacity, record_leakage, verify
from cvxleak.core import ValidationError
from cvxleak.core.errors import InfeasibleError, SolveInterrupted
from cvxleak.mechanisms import truncated_geometric
from cvxleak.model import ChannelSet, Mechanism, RecordSpace
from cvxleak.queries import count
from cvxleak.samples import Samples, audit_samples, dp_violation, read_samples, sample_mechanism
from cvxleak.samples.columns import OTHERS, columns_between, columns_seen
from cvxleak.samples.intervals import telling_edges

PAIRS = {"x": ["a"] * 4 + ["b"] * 4, "y": [0, 0, 0, 1, 1, 1, 1, 0]}


def drawn(channel: Channel, draws: int, rng: np.random.Generator) -> Samples:
    """Draws of each input, in the order of the inputs."""
    outputs = np.array(channel.outputs, dtype=object)
    columns = [rng.choice(outputs, draws, p=row).tolist() for row in channel.matrix]
    return Samples(
        [label for label in channel.inputs for _ in range(draws)], [y for c in columns for y in c]
    )


def test_a_channel_is_found_between_the_ends():
    channel = Channel([[0.6, 0.3, 0.1], [0.1, 0.2, 0.7]], outputs=["low", "middle", "high"])
    truth = capacity(channel).lower
    rng = np.random.default_rng(0)
    widths = []
    for draws in (200, 10_000):
        audit = audit_samples(drawn(channel, draws, rng))
        assert audit.lower <= truth <= audit.upper
        assert set(audit.channels.outputs) == {*channel.outputs, OTHERS}
        assert not audit.binned
        assert audit.counts.sum() == audit.draws - audit.choosing == 0.9 * 2 * draws
        assert verify(audit.bound.certificate).passed
        back = pickle.loads(pickle.dumps(audit))
        assert (back.upper, back.channels) == (audit.upper, audit.channels)
        widths.append(audit.upper - audit.lower)
    assert widths[1] < widths[0] / 5


def test_listed_outputs_take_all_draws():
    channel = Channel([[0.7, 0.3], [0.2, 0.8]])
    audit = audit_samples(drawn(channel, 500, np.random.default_rng(1)), outputs=[0, 1])
    assert audit.choosing == 0
    assert audit.counts.sum() == 1000
    assert audit.upper == pytest.approx(audit.bound.upper)
    assert "Both bounds hold for the output itself" in str(audit)


def test_what_was_never_seen_is_allowed_for():
    """One output is rare and gives the secret away: the upper end is above what it is worth."""
    rare = 1 / 400
    channel = Channel([[1 - rare, rare, 0.0], [1 - rare, 0.0, rare]], outputs=["usual", "a", "b"])
    truth = capacity(channel).lower
    for seed in range(20):
        samples = drawn(channel, 200, np.random.default_rng(seed))
        if set(samples.outputs) == {"usual"}:
            audit = audit_samples(samples)
            assert audit.channels.outputs == ("usual", OTHERS)
            # The columns alone need not tell what hides behind the last one.
            assert audit.upper >= audit.bound.upper + 0.9 * audit.channels.upper[:, -1].max() * (
                math.log(2)
            )
            assert truth <= audit.upper
            return
    raise AssertionError("no sample without the rare outputs")


def test_numbers_are_sorted_into_intervals_that_a_part_chose():
    rng = np.random.default_rng(2)
    secrets = np.repeat([0, 1], 2000)
    outputs = secrets + rng.normal(size=4000)
    audit = audit_samples((secrets, outputs))
    assert audit.binned
    assert f"the upper one for its {len(audit.columns.edges) + 2} columns" in str(audit)
    # The same part, whatever the order of the lines is within: neither ends nor columns are those
    # of another seed.
    assert audit_samples((secrets, outputs)).channels == audit.channels
    assert audit_samples((secrets, outputs), rng=1).channels.outputs != audit.channels.outputs
    # Fixed beforehand, no part is needed.
    fixed = audit_samples((secrets, outputs), bins=[0.0, 0.5, 1.0])
    assert fixed.choosing == 0
    assert fixed.channels.outputs == ("below 0", "0 to 0.5", "0.5 to 1", "from 1", OTHERS)
    assert len(audit_samples((secrets, outputs), bins=3).channels.outputs) == 4


def test_the_part_that_chooses_does_not_follow_the_order_of_the_lines():
    """A file sorted by output: the first lines of each secret would have one output alone."""
    ordered = {"x": ["a"] * 100 + ["b"] * 100, "y": (["no"] * 50 + ["yes"] * 50) * 2}
    assert audit_samples(ordered).channels.outputs == ("no", "yes", OTHERS)


def test_a_floor_and_a_query():
    channel = truncated_geometric(2, 1.0)
    mechanism = Mechanism(count(2), channel)
    samples = drawn(channel, 20_000, np.random.default_rng(3))
    given: dict[str, Any] = {"outputs": [0, 1, 2], "time_limit": 0.1}
    free = audit_samples(samples, **given, query=count(2))
    assert free.lower <= record_leakage(mechanism, 0.0).lower <= free.upper
    above = audit_samples(samples, **given, query=count(2), entropy_floor=1.0)
    assert above.lower <= record_leakage(mechanism, 1.0).lower <= above.upper
    assert above.bound.name == "record leakage"
    # Neighbors differ by 1: the pair (0, 2), whose ratio is larger, is none.
    assert free.pairs == ((0, 1), (1, 2))
    assert free.violation().epsilon < 1.0 + 1e-12 < free.violation(pairs=[(0, 2)]).epsilon
    # Without a query the secret is the record.
    alone = audit_samples(samples, **given, entropy_floor=0.9)
    single = Mechanism.from_channel(RecordSpace([(0, 1, 2)]), channel)
    assert alone.lower <= record_leakage(single, 0.9).lower <= alone.upper
    # A value of the query that was not tried may do anything.
    fewer = Samples(samples.secrets[:40_000], samples.outputs[:40_000])
    unknown = audit_samples(fewer, **given, query=count(2))
    assert unknown.upper > 1.2 * free.upper
    assert unknown.more_draws is None
    with pytest.raises(InfeasibleError, match="entropy_floor"):
        audit_samples(samples, entropy_floor=2.0)


def test_more_draws_halve_the_width():
    channel = Channel([[0.7, 0.3], [0.2, 0.8]])
    rng = np.random.default_rng(4)
    first = audit_samples(drawn(channel, 1000, rng), outputs=[0, 1])
    assert first.more_draws is not None
    second = audit_samples(drawn(channel, 1000 + first.more_draws // 2, rng), outputs=[0, 1])
    halved = (second.upper - second.lower) / (first.upper - first.lower)
    assert 0.4 < halved < 0.6


class TestViolation:
    def test_samplers_that_spend_four_times_what_they_claim_are_caught(self):
        claimed, rng = 0.5, np.random.default_rng(5)
        laplace = np.repeat([0.0, 1.0], 10_000)
        found = audit_samples(
            (laplace, laplace + rng.laplace(scale=1 / (4 * claimed), size=20_000))
        )
        assert claimed < 3 * claimed < found.violation().epsilon <= 4 * claimed

        def noisy_max(scores: Any, rng: np.random.Generator) -> int:
            # The noise of 2 / epsilon is for monotone scores and others.
            return int(np.argmax(scores + rng.laplace(scale=2 / (4 * claimed), size=4)))

        samples = sample_mechanism(noisy_max, [(0, 1, 1, 1), (1, 0, 0, 0)], 10_000, rng)
        caught = audit_samples(samples, outputs=range(4)).violation()
        assert 2 * claimed < caught.epsilon <= 4 * claimed
        # One that spends what it claims is not.
        honest = (laplace, laplace + rng.laplace(scale=1 / claimed, size=20_000))
        assert audit_samples(honest).violation().epsilon <= claimed

    def test_it_is_the_best_event(self):
        """Against all events, for boxes of any kind."""
        rng = np.random.default_rng(6)
        for _ in range(20):
            rows = rng.dirichlet(np.ones(4), 3)
            wide = rng.uniform(0, 0.1, rows.shape)
            boxes = ChannelSet(np.maximum(rows - wide, 0), np.minimum(rows + wide, 1))
            for delta in (0.0, 0.05):
                best = 0.0
                for event in range(1, 15):
                    mask = np.array([event >> y & 1 for y in range(4)], dtype=bool)
                    low, high = boxes.lower[:, mask].sum(1), boxes.upper[:, mask].sum(1)
                    least = np.maximum(low, 1 - boxes.upper[:, ~mask].sum(1)) - delta
                    most = np.minimum(high, 1 - boxes.lower[:, ~mask].sum(1))
                    with np.errstate(divide="ignore"):
                        ratios = np.log(np.maximum(least, 0))[:, None] - np.log(most)
                    np.fill_diagonal(ratios, 0)
                    best = max(best, ratios.max())
                found = dp_violation(boxes, delta)
                assert found.epsilon == pytest.approx(best, abs=1e-12)
                if found.epsilon > 0:
                    assert found.least - delta >= math.exp(found.epsilon) * found.most * (1 - 1e-12)

    def test_of_an_exact_channel(self):
        rows = [[0.75, 0.25], [0.25, 0.75]]
        found = dp_violation(ChannelSet(rows, rows))
        assert found.epsilon == pytest.approx(math.log(3), abs=1e-15)
        assert found.epsilon < math.log(3)
        none = dp_violation(ChannelSet(rows, rows), 0.5)
        assert none.epsilon == 0
        assert str(none) == "no epsilon above 0 is ruled out at delta = 0.5"
        certain = dp_violation(ChannelSet(np.eye(2), np.eye(2)), 0.9)
        assert certain.epsilon == math.inf

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (({"delta": 1.5}), r"delta: found 1.5; it must be in \[0, 1\]"),
            (({"pairs": [(0, 5)]}), r"pairs: found \(0, 5\); pairs of the inputs \[0, 1\]"),
            (({"pairs": [(0, 1, 1)]}), "pairs: found"),
            (({"channels": [[1.0]]}), "channels: expected a ChannelSet"),
        ],
    )
    def test_bad_input(self, arguments: dict[str, Any], words: str):
        given = {"channels": ChannelSet(np.eye(2), np.eye(2))} | arguments
        with pytest.raises(ValidationError, match=words):
            dp_violation(**given)


class TestColumns:
    def test_every_output_has_one(self):
        columns = columns_between([-1.5, 0.0, 2.0])
        outputs: list[Hashable] = [-2, -1.5, -1, 0, 1.9, 2, 10**400, math.inf, "text", True, (0, 1)]
        assert [columns.place(y) for y in outputs] == [0, 1, 1, 2, 2, 3, 4, 3, 4, 4, 4]

    def test_outputs_have_columns_of_their_own_if_they_are_few(self):
        columns = columns_seen(["b", "a", OTHERS, "b"], [0, 1, 1, 1], None, 100)
        assert columns.labels == ("a", "b", OTHERS)
        assert [columns.place(y) for y in ("a", "b", "c", OTHERS)] == [0, 1, 2, 2]
        assert not columns.merged
        assert columns_seen([1, 10, 2] * 2, [0, 1, 1] * 2, None, 100).labels == (1, 2, 10, OTHERS)
        # Few numbers that come once are drawn from many.
        assert len(columns_seen([0.3, 0.1, 0.2], [0, 1, 1], None, 100).edges) > 0

    def test_many_outputs_are_put_together_by_what_they_speak_for(self):
        """Three secrets with texts of their own, and texts that all have."""
        rng = np.random.default_rng(9)
        secrets = rng.integers(3, size=3000)
        own = rng.random(3000) < 0.5
        texts = [
            f"{x if mine else 'all'}-{k}"
            for x, mine, k in zip(secrets, own, rng.integers(30, size=3000), strict=True)
        ]
        columns = columns_seen(texts, secrets.tolist(), None, 9000.0)
        assert columns.merged
        assert len(columns.labels) < 12
        places = {text: columns.place(text) for text in set(texts)}
        for x in range(3):
            mine = [place for text, place in places.items() if text.startswith(f"{x}-")]
            rest = {place for text, place in places.items() if not text.startswith(f"{x}-")}
            assert np.mean([place in rest for place in mine]) < 0.3
        # The same texts from all: nothing to tell them apart, and no column without any.
        alike = columns_seen([f"{k}" for k in range(100)], [0] * 100, None, 100)
        assert len(alike.labels) == 2

    def test_numbers_and_texts_are_apart(self):
        columns = columns_seen(
            [*range(100), "late", "late", "below 50"], [0] * 50 + [1] * 53, 2, 1000
        )
        assert columns.labels == ("below 50", "from 50", "late", OTHERS)
        assert [columns.place(y) for y in (-1, 50, "late", "below 50", "new")] == [0, 1, 2, 3, 3]
        assert columns.edges == (50.0,)

    def test_numbers_that_repeat_make_no_empty_intervals(self):
        numbers = [0] * 90 + list(range(1, 12))
        columns = columns_seen(numbers, [0, 1] * 50 + [0], None, 1000)
        assert min(columns.edges) > 0
        assert {columns.place(x) for x in numbers} == set(range(len(columns.edges) + 1))

    def test_the_intervals_are_those_that_tell(self):
        """The secrets differ between 0.4 and 0.5 and nowhere else."""
        rng = np.random.default_rng(8)
        numbers, secrets = rng.uniform(size=8000), rng.integers(2, size=8000)
        moved = np.where((secrets == 1) & (numbers < 0.1), 0.4 + numbers, numbers)
        edges = np.array(telling_edges(moved, secrets, 64, 72_000.0))
        assert len(edges) < 12
        for jump in (0.1, 0.4, 0.5):
            assert np.abs(edges - jump).min() < 0.02
        # Fewer draws afterwards bear fewer intervals.
        assert len(telling_edges(moved, secrets, 64, 300.0)) < len(edges)
        assert len(telling_edges(moved, secrets, 2, 300.0)) == 1

    @pytest.mark.parametrize("bins", [[], [1, 1], [2, 1], [math.inf], [0, math.nan], ["x"], 1, 2.5])
    def test_what_are_no_bins_is_refused(self, bins: Any):
        with pytest.raises(ValidationError, match="bins"):
            audit_samples(PAIRS, bins=bins)


class TestReading:
    def test_all_forms_are_the_same(self, tmp_path: Path):
        expected = Samples(PAIRS["x"], PAIRS["y"])
        frame = pd.DataFrame(PAIRS)
        path = tmp_path / "answers.csv"
        frame.to_csv(path, index=False)
        for given in (PAIRS, frame, path, str(path), (frame.x, frame.y), (PAIRS["x"], PAIRS["y"])):
            assert read_samples(given) == expected
        assert read_samples(frame.rename(columns={"x": "s"}), "s") == expected
        assert read_samples(expected.to_frame("secret", "out"), "secret", "out") == expected

    @pytest.mark.parametrize(
        ("changed", "words"),
        [
            ({"y": [0, 0, 0, None, 1, 1, 1, 0]}, "column 'y': entry 3 is None"),
            ({"y": [0, 0, 0, math.nan, 1, 1, 1, 0]}, "column 'y': entry 3 is nan"),
            ({"x": ["a"] * 7 + [pd.NA]}, "column 'x': entry 7 is <NA>"),
            ({"y": [0, 0, [], 0, 1, 1, 1, 0]}, r"column 'y': entry 2 is \[\]"),
            ({"y": [0, 1]}, "found 2 for 8 secrets"),
            ({"x": [], "y": []}, "found no draws"),
            ({"x": ["a"] * 8}, "secret: found only 'a'; two are needed"),
            ({"x": ["a"] * 7 + ["b"]}, "secret: 'b' appears once"),
            ({"x": list(range(8))}, r"secret: 0 appears once.*7 others.*the right way round"),
        ],
    )
    def test_what_is_no_sample_is_refused(self, changed: dict[str, Any], words: str):
        with pytest.raises(ValidationError, match=words):
            audit_samples(PAIRS | changed)

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"secret": "who"}, r"secret: found 'who'; one of the columns \['x', 'y'\]"),
            ({"output": "what"}, r"output: found 'what'; one of the columns \['x', 'y'\]"),
            ({"confidence": 1.0}, r"confidence: found 1.0; it must be in \(0, 1\)"),
            ({"confidence": 0}, r"confidence: found 0; it must be in \(0, 1\)"),
            ({"outputs": [1]}, r"outputs: a draw has the output 0; listed are \[1\]"),
            ({"outputs": []}, "outputs: found none"),
            ({"outputs": [0, 1], "bins": 3}, "bins: outputs are given"),
            ({"query": count(2)}, r"secret: found 'a'; the query's values are \[0, 1, 2\]"),
            ({"samples": 3}, "samples: expected a DataFrame"),
            ({"samples": "no such file"}, "no such file"),
        ],
    )
    def test_what_does_not_fit_is_refused(self, options: dict[str, Any], words: str):
        with pytest.raises(ValidationError, match=words):
            audit_samples(**{"samples": PAIRS} | options)

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("x,y\na,1\na,\n", "line 3 of .*: the column 'y' is empty"),
            ("x,y\na,1\nNaN,2\n", "line 3 of .*: the column 'x' is empty"),
            ("x,z\na,1\n", r"output: found 'y'; one of the columns \['x', 'z'\]"),
            ("x,y,y\na,1,1\n", "output: found 'y'"),
            ("x,y\n", "has a header and no draws"),
            ("x,y\na,1\nb\n", "line 3 of .* has 1 cell,"),
            ("", "is empty"),
        ],
    )
    def test_files(self, text: str, words: str, tmp_path: Path):
        path = tmp_path / "answers.csv"
        path.write_text(text)
        with pytest.raises(ValidationError, match=words):
            audit_samples(path)


class TestSampling:
    def test_each_input_is_drawn_as_often_as_asked(self):
        told: list[tuple[int, int]] = []
        samples = sample_mechanism(
            lambda x: x, ["a", "b"], 3, progress=lambda *now: told.append(now)
        )
        assert samples.secrets == samples.outputs == ("a", "b") * 3
        assert told == [(2, 6), (4, 6), (6, 6)]
        two = [sample_mechanism(lambda _, rng: rng.random(), [0, 1], 2, rng=7) for _ in range(2)]
        assert two[0] == two[1]

    def test_ctrl_c_keeps_complete_rounds(self):
        calls = iter(range(100))

        def interrupted(x: int) -> int:
            if next(calls) == 5:
                raise KeyboardInterrupt
            return x

        with pytest.raises(SolveInterrupted) as stopped:
            sample_mechanism(interrupted, [0, 1], 10)
        assert stopped.value.bound == Samples([0, 1, 0, 1], [0, 1, 0, 1])
        calls = iter(range(5, 100))
        with pytest.raises(SolveInterrupted) as stopped:
            sample_mechanism(interrupted, [0, 1], 10)
        assert stopped.value.bound is None

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            ((lambda x: 1 / x, [1, 0], 2), "f: call 1 at the input 0 raised ZeroDivisionError"),
            ((lambda x: None, [1, 0], 2), "f: call 1 at the input 1 is None"),
            ((lambda x: math.nan, [1, 0], 2), "f: call 1 at the input 1 is nan"),
            ((lambda x: [x], [1, 0], 2), r"f: call 1 at the input 1 is \[1\]"),
            ((3, [1, 0], 2), "f: expected a function"),
            ((abs, [1, 1], 2), "inputs"),
            ((abs, [], 2), "inputs: found none"),
            ((abs, [1, 0], 0), "draws: found 0"),
            ((abs, [1, 0], 2.5), "draws: expected an integer"),
            ((lambda x, rng: x, [1, 0], 2, "x"), "rng"),
        ],
    )
    def test_bad_input(self, arguments: Any, words: str):
        with pytest.raises(ValidationError, match=words):
            sample_mechanism(*arguments)
