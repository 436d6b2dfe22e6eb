"""Files: what is written comes back, a broken one is named, and no part of one is ever left."""

import json
import os
import stat

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cvxleak.core.errors import ValidationError
from cvxleak.core.files import write_atomic
from cvxleak.core.tables import label_from_text, label_to_text
from cvxleak.model import Channel, Distortion, Prior

scalars = st.one_of(
    st.text(max_size=8),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.booleans(),
    st.none(),
    st.sampled_from(["1", "1.0", "007", "true", "[0, 1]", '"', '"a"', "NaN", "", " ", "a\r\nb"]),
)
labels = st.recursive(scalars, lambda inner: st.tuples(inner, inner), max_leaves=4)


def channel_text(tmp_path, text, encoding="utf-8"):
    path = tmp_path / "channel.csv"
    path.write_bytes(text.encode(encoding))
    return path


def test_semicolons_are_named(tmp_path):
    for text in ("0,5;0,5\n1;0\n", ";a;b\n0;0.5;0.5\n"):
        with pytest.raises(ValidationError, match="semicolons"):
            Channel.from_csv(channel_text(tmp_path, text.replace(",", ".")))


class TestLabels:
    @given(label=labels)
    def test_come_back_from_text(self, label):
        text = label_to_text(label, "outputs")
        back = label_from_text(text.strip())
        assert back == label
        assert repr(back) == repr(label)

    @pytest.mark.parametrize(
        ("text", "label"),
        [
            ("1", 1),
            ("-1.50", -1.5),
            ("1e3", 1000.0),
            ("true", True),
            ("null", None),
            ("[0, [1, null]]", (0, (1, None))),
            ('"1"', "1"),
            ("007", "007"),
            ("1_000", "1_000"),
            ("NaN", "NaN"),
            ("Infinity", "Infinity"),
            ("inf", "inf"),
            ("yes", "yes"),
            ('{"a": 1}', '{"a": 1}'),
            ("[0, 1", "[0, 1"),
            ("", ""),
        ],
    )
    def test_json_stands_for_its_value_and_the_rest_for_itself(self, text, label):
        assert label_from_text(text) == label
        assert type(label_from_text(text)) is type(label)

    @pytest.mark.parametrize(
        "label", [float("inf"), frozenset([1]), 1j, pd.Timestamp("2020-01-01"), b"a", object()]
    )
    def test_what_would_not_come_back_is_refused(self, label, tmp_path):
        channel = Channel([[1.0]], outputs=[label])
        with pytest.raises(ValidationError, match=r"^outputs: the label .* cannot be written"):
            channel.to_csv(tmp_path / "channel.csv")
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize("label", [frozenset([1]), 1j, pd.Timestamp("2020-01-01"), b"a"])
    def test_json_files_too(self, label, tmp_path):
        with pytest.raises(ValidationError, match=r"cannot be written as JSON"):
            Channel([[1.0]], inputs=[label]).to_json(tmp_path / "channel.json")
        assert list(tmp_path.iterdir()) == []


class TestCsv:
    @given(
        inputs=st.lists(labels, min_size=1, max_size=3, unique=True),
        outputs=st.lists(labels, min_size=1, max_size=3, unique=True),
        seed=st.integers(0, 1000),
    )
    def test_round_trip(self, inputs, outputs, seed, tmp_path_factory):
        rng = np.random.default_rng(seed)
        matrix = rng.dirichlet(np.ones(len(outputs)), len(inputs))
        channel = Channel(matrix, inputs, outputs)
        path = tmp_path_factory.mktemp("csv") / "channel.csv"
        channel.to_csv(path)
        back = Channel.from_csv(path)
        assert back == channel
        assert repr((back.inputs, back.outputs)) == repr((channel.inputs, channel.outputs))

    def test_labels_that_a_table_would_garble(self, tmp_path):
        names = [
            "a\r\nb",
            "a\rb",
            "a\nb",
            "\ufeffa",
            "\x00",
            "\ud800",
            " a",
            "a,b",
            '"',
            "\x85",
            "",
        ]
        channel = Channel(np.full((1, len(names)), 1 / len(names)), ["\ufeff"], names)
        channel.to_csv(tmp_path / "channel.csv")
        assert Channel.from_csv(tmp_path / "channel.csv") == channel

    @pytest.mark.parametrize(
        "text",
        [
            ",no,yes\na,0.25,0.75\nb,1,0\n",
            "\ufeff,no,yes\r\na,0.25,0.75\r\nb,1,0\r\n",
            "input , no , yes\n\n a , 0.25 , 0.75 \n  \nb, 1e0, 0.\n",
            '"" , "no", "yes"\n"a", "0.25", ".75"\n"b", 1, 0',
        ],
    )
    def test_written_by_others(self, text, tmp_path):
        channel = Channel.from_csv(channel_text(tmp_path, text))
        assert channel == Channel([[0.25, 0.75], [1, 0]], ["a", "b"], ["no", "yes"])

    def test_bare_matrix(self, tmp_path):
        path = channel_text(tmp_path, "0.25, 0.75\n\n1, 0\n")
        assert Channel.from_csv(path) == Channel([[0.25, 0.75], [1, 0]])

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("", "is empty"),
            ("\n \n", "is empty"),
            (",a,b\n", "a header and no rows"),
            (",a,b\n\nx,1\n", "line 3 .* has 2 cells, but line 1 has 3 cells"),
            ("1,0\n0.5,0.25,0.25\n", "line 2 .* has 3 cells, but line 1 has 2 cells"),
            (",a,b\nx,1,zero\n", r"line 2, column 3 of .*channel\.csv': found 'zero'; a number"),
            (",a,b\nx,1,\n", "line 2, column 3 of .* found ''; a number"),
            (",a,b\n\n1/2,50%,1/2\n", "line 3, column 2 of .* found '50%'; a number"),
            ("1,0\n50%,1/2\n", "line 2, column 1 of .* found '50%'; a number with a decimal"),
            (",a,b\nx,0.5,0_5\n", "found '0_5'"),
            (",a,b\nx,nan,1\n", "NaN"),
            (",a,b\nx,0.5,0.6\n", "sums to 1.1"),
            (",a,a\nx,0.5,0.5\n", "outputs: found 'a' and 'a', which are equal"),
            (",1,1.0\nx,0.5,0.5\n", "outputs: found 1 and 1.0, which are equal"),
            ("just text\n", "a header and no rows"),
            ("no,yes\n0,1\n", "its first column may hold"),
            (
                "no,yes\n0.25,0.75\n1,0\n",
                "its first column may hold row labels or probabilities",
            ),
            ("no,yes\n0.25,0.5\n1,0\n", "row 1 sums to 0.0"),
            ("a;b\n0,5;0,5\n", r"semicolons; .*\(0\.5, not 0,5\)"),
            (",a\n" + "x" * 200_000 + ",1\n", "is not CSV"),
        ],
    )
    def test_broken(self, text, message, tmp_path):
        with pytest.raises(ValidationError, match=message) as caught:
            Channel.from_csv(channel_text(tmp_path, text))
        assert len(str(caught.value)) < 500

    @pytest.mark.parametrize(
        "cell", ["1/0", "-½", "50%", "50 %", '"0,5"', "1 000", "1_000", "½", "1.000.000", "1e"]
    )
    def test_a_number_in_another_notation_is_not_taken_for_a_header(self, cell, tmp_path):
        # The second line alone would be a channel: that of another table.
        path = channel_text(tmp_path, f"{cell},{cell}\n0,1\n")
        with pytest.raises(ValidationError, match=r"line 1, column 1 of .*channel\.csv': found"):
            Channel.from_csv(path)
        path = channel_text(tmp_path, f"no,{cell}\nyes,1\n")
        with pytest.raises(ValidationError, match=r"line 1, column 2 of .*channel\.csv': found"):
            Prior.from_csv(path)

    def test_labels_may_be_such_numbers(self, tmp_path):
        text = "p(y|x),1/2,50%\n1/3,0.25,0.75\n1_000,0,1\n"
        channel = Channel.from_csv(channel_text(tmp_path, text))
        assert channel == Channel([[0.25, 0.75], [0, 1]], ["1/3", "1_000"], ["1/2", "50%"])
        channel.to_csv(tmp_path / "again.csv")
        assert Channel.from_csv(tmp_path / "again.csv") == channel

    def test_a_header_without_labels_of_rows_is_not_half_a_distortion(self, tmp_path):
        path = channel_text(tmp_path, "no,yes\n0,1\n1,0\n")
        with pytest.raises(ValidationError, match="leave the top-left cell empty"):
            Distortion.from_csv(path)
        for text in (",no,yes\n0,0,1\n1,1,0\n", "truth,0,1\n0,0,1\n1,1,0\n"):
            path = channel_text(tmp_path, text)
            assert Distortion.from_csv(path).inputs == (0, 1)

    def test_not_text(self, tmp_path):
        with pytest.raises(ValidationError, match=r"^path: cannot read"):
            Channel.from_csv(channel_text(tmp_path, ",ä\nx,1\n", "latin-1"))

    @pytest.mark.parametrize("read", [Channel.from_csv, Channel.from_json])
    def test_missing(self, read, tmp_path):
        with pytest.raises(ValidationError, match=r"^path: cannot read .*nowhere"):
            read(tmp_path / "nowhere")
        with pytest.raises(ValidationError, match=r"^path: cannot read"):
            read(tmp_path)


class TestJson:
    def test_labels_may_be_left_out(self, tmp_path):
        path = tmp_path / "channel.json"
        path.write_text('\ufeff{"matrix": [[0.5, 0.5]]}', encoding="utf-8")
        assert Channel.from_json(path) == Channel([[0.5, 0.5]])

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("", "is not JSON"),
            ("{", "is not JSON"),
            ("[" * 100_000, "is not JSON"),
            ("[]", "data: expected a mapping"),
            ('{"inputs": [0]}', r"missing keys \['matrix'\]"),
            ('{"matrix": [[1]], "output": ["a"]}', "unknown keys .'output'"),
            ('{"matrix": [[0.5, 0.6]]}', "sums to 1.1"),
            ('{"matrix": [["one"]]}', "real numbers"),
            ('{"matrix": [[NaN, 1.0]]}', "NaN"),
            ('{"matrix": [[1.0]], "inputs": [{"a": 1}]}', "not hashable"),
            ('{"matrix": [[1.0]], "inputs": 3}', "inputs: expected a sequence"),
            ('{"matrix": null}', "real numbers"),
        ],
    )
    def test_broken(self, text, message, tmp_path):
        path = tmp_path / "channel.json"
        path.write_text(text)
        with pytest.raises(ValidationError, match=message):
            Channel.from_json(path)

    def test_floats_are_exact(self, tmp_path):
        row = np.random.default_rng(0).dirichlet(np.ones(50))
        Channel([row]).to_json(tmp_path / "channel.json")
        assert Channel.from_json(tmp_path / "channel.json").row(0).tobytes() == row.tobytes()


class TestPandas:
    def test_round_trip(self):
        channel = Channel([[0.25, 0.75], [1, 0]], ["a", (0, 1)], [1, ("x", "y")])
        frame = channel.to_pandas()
        assert frame.loc["a", 1] == 0.25
        assert Channel.from_pandas(frame) == channel
        frame.iloc[0, 0] = 0.0
        assert channel.matrix[0, 0] == 0.25

    def test_multi_index_labels_are_tuples(self):
        columns = pd.MultiIndex.from_tuples([(0, "a"), (0, "b")])
        channel = Channel.from_pandas(pd.DataFrame([[0.5, 0.5]], columns=columns))
        assert channel.outputs == ((0, "a"), (0, "b"))

    @pytest.mark.parametrize(
        ("frame", "message"),
        [
            (np.eye(2), "^frame: expected a pandas DataFrame"),
            (pd.Series([1.0]), "^frame: expected a pandas DataFrame"),
            (pd.DataFrame([["0.5", "half"]]), "real numbers"),
            (pd.DataFrame([[0.5, np.nan]]), "NaN"),
            (pd.DataFrame([[0.5, None]]), "real numbers"),
            (pd.DataFrame([[0.5, 0.5]], columns=["a", "a"]), "are equal"),
            (pd.DataFrame([[0.5, 0.5]], columns=["a", np.nan]), "NaN"),
            (pd.DataFrame(), "must not be empty"),
        ],
    )
    def test_bad_frames(self, frame, message):
        with pytest.raises(ValidationError, match=message):
            Channel.from_pandas(frame)


class TestAtomicWrites:
    def test_replaces_the_whole_file(self, tmp_path):
        path = tmp_path / "file"
        path.write_text("old and longer")
        write_atomic(path, "new")
        assert path.read_text() == "new"
        assert os.listdir(tmp_path) == ["file"]

    @pytest.mark.parametrize("step", ["os.replace", "shutil.copymode"])
    def test_a_failure_leaves_the_old_file(self, step, tmp_path, monkeypatch):
        path = tmp_path / "file"
        path.write_text("old")

        def fail(*_):
            raise OSError("the disk is full")

        monkeypatch.setattr(f"cvxleak.core.files.{step}", fail)
        with pytest.raises(ValidationError, match=r"^path: cannot write .*the disk is full"):
            write_atomic(path, "new")
        assert path.read_text() == "old"
        assert os.listdir(tmp_path) == ["file"]

    def test_an_interrupt_leaves_the_old_file(self, tmp_path, monkeypatch):
        path = tmp_path / "file"
        path.write_text("old")

        def interrupt(*_):
            raise KeyboardInterrupt

        monkeypatch.setattr("cvxleak.core.files.os.replace", interrupt)
        with pytest.raises(KeyboardInterrupt):
            write_atomic(path, "new")
        assert os.listdir(tmp_path) == ["file"]
        assert path.read_text() == "old"

    @pytest.mark.skipif(os.name != "posix", reason="file modes are POSIX")
    def test_modes_are_those_of_an_ordinary_open(self, tmp_path):
        ordinary, path = tmp_path / "ordinary", tmp_path / "file"
        ordinary.write_text("x")
        write_atomic(path, "x")
        assert path.stat().st_mode == ordinary.stat().st_mode
        path.chmod(0o600)
        write_atomic(path, "y")
        assert stat.S_IMODE(path.stat().st_mode) == 0o600

    @pytest.mark.skipif(os.name != "posix", reason="symbolic links")
    def test_links_stay_links(self, tmp_path):
        real, link = tmp_path / "real", tmp_path / "link"
        real.write_text("old")
        link.symlink_to(real)
        write_atomic(link, "new")
        assert link.is_symlink()
        assert real.read_text() == "new"

    @pytest.mark.skipif(os.name != "posix", reason="a named pipe")
    def test_what_is_no_file_is_not_replaced(self, tmp_path):
        pipe = tmp_path / "pipe"
        os.mkfifo(pipe)
        reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        try:
            write_atomic(pipe, "new")
            assert os.read(reader, 10) == b"new"
        finally:
            os.close(reader)
        assert stat.S_ISFIFO(pipe.stat().st_mode)

    def test_missing_folder(self, tmp_path):
        with pytest.raises(ValidationError, match=r"^path: cannot write"):
            Channel([[1.0]]).to_csv(tmp_path / "nowhere" / "channel.csv")

    def test_json_is_one_document(self, tmp_path):
        Channel([[1.0]]).to_json(tmp_path / "channel.json")
        assert json.loads((tmp_path / "channel.json").read_text())["matrix"] == [[1.0]]
