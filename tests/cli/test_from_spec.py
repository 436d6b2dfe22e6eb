"""From a spec to mechanisms, priors and distortions, and what it says when they do not fit."""

import hashlib
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from cvxleak import mechanisms, queries
from cvxleak.cli.from_spec import Task, build_published, build_release, build_task
from cvxleak.cli.spec_file import SpecFile
from cvxleak.core.errors import ValidationError
from cvxleak.model import (
    AdditiveNoise,
    Channel,
    ChannelSet,
    DiscreteGaussian,
    DiscreteLaplace,
    Distortion,
    Gaussian,
    Laplace,
    Prior,
    Query,
    RecordSpace,
    Rounded,
    Uniform,
)
from cvxleak.tables import RoundToNearest, SuppressBelow

EXAMPLES = Path(__file__).parents[2] / "examples"
Write = Callable[..., Path]

COUNT = '[query]\nkind = "count"\nrecords = 4\n'
PARITY = '[query]\nkind = "parity"\nrecords = 4\n'
LOCAL = '[space]\nalphabets = [["x", "y", "z"]]\n'
IDENTITY = '[mechanism]\nkind = "identity"\n'


def noise(kind: str, **parameters: object) -> str:
    lines = [f"{key} = {value!r}" for key, value in parameters.items()]
    return "\n".join(["[mechanism]", f'kind = "{kind}"', *lines, ""])


def task_of(path: Path) -> Task:
    return build_task(SpecFile(path))


def channel(path: Path) -> Channel:
    return task_of(path).mechanism.channel


@pytest.mark.parametrize(
    ("spec", "query"),
    [
        ('kind = "count"\nrecords = 4', queries.count(4)),
        ('kind = "parity"\nrecords = 4', queries.parity(4)),
        ('kind = "modular_sum"\nrecords = 4\nmodulus = 3', queries.modular_sum(4, 3)),
        ('kind = "pair_sum"\nrecords = 4', queries.pair_sum(4)),
        (
            'kind = "table"\nalphabets = [[0, 1, 2], ["a", "b"]]\nvalues = [5, 5, 1, 1, 5, 9]',
            queries.from_table(RecordSpace([(0, 1, 2), "ab"]), [5, 5, 1, 1, 5, 9]),
        ),
    ],
)
def test_queries(write: Write, spec: str, query: Query):
    assert task_of(write("[query]", spec, IDENTITY)).mechanism.query == query


@pytest.mark.parametrize(
    ("query", "spec", "expected"),
    [
        (COUNT, noise("randomized_response", epsilon=1.5), mechanisms.randomized_response(5, 1.5)),
        (PARITY, noise("binary_symmetric", flip=0.3), mechanisms.binary_symmetric(0.3)),
        (COUNT, noise("generalized_symmetric", flip=0.3), mechanisms.generalized_symmetric(5, 0.3)),
        (PARITY, noise("laplace_threshold", epsilon=1), mechanisms.laplace_threshold(1.0)),
        (
            COUNT,
            noise("discretized_laplace", epsilon=0.5),
            mechanisms.discretized_laplace(range(5), 0.5, 1.0),
        ),
        (
            COUNT,
            noise("discretized_laplace", epsilon=0.5, sensitivity=2, outputs=[0, 2.5]),
            mechanisms.discretized_laplace([0, 2.5], 0.5, 2.0, range(5)),
        ),
        (
            COUNT,
            noise("discretized_gaussian", variance=2.0, outputs=[-1, 0, 5]),
            mechanisms.discretized_gaussian([-1, 0, 5], 2.0, range(5)),
        ),
        (
            COUNT,
            noise("discretized_gaussian", variance=2.0),
            mechanisms.discretized_gaussian(range(5), 2.0),
        ),
        (
            COUNT,
            noise("exponential", epsilon=1.0),
            mechanisms.exponential(-Distortion.absolute(range(5)).matrix, 1.0, 1.0),
        ),
        (
            COUNT,
            noise("rank_exponential", scale=2.0),
            mechanisms.rank_exponential(Distortion.absolute(range(5)), 2.0),
        ),
        (COUNT, noise("truncated_geometric", epsilon=0.7), mechanisms.truncated_geometric(4, 0.7)),
        (COUNT, noise("random_rounding", base=3), mechanisms.random_rounding(4, 3)),
        (
            COUNT,
            noise("random_rounding", base=3, up=[0.25, "4/5"]),
            mechanisms.random_rounding(4, 3, [0.25, 0.8]),
        ),
        (COUNT, noise("identity"), mechanisms.identity(5)),
        (COUNT, noise("constant"), mechanisms.constant(5, [1.0])),
    ],
)
def test_mechanisms(write: Write, query: str, spec: str, expected: Channel):
    found = channel(write(query, spec))
    np.testing.assert_array_equal(found.matrix, expected.matrix)
    assert found.outputs == expected.outputs


def test_sums_with_gaps_use_the_rows_of_their_values(write: Write):
    query = '[query]\nkind = "pair_sum"\nrecords = 4\n'
    found = channel(write(query, noise("random_rounding", base=4)))
    assert found.inputs == (0, 1, 3, 6)
    np.testing.assert_allclose(found.matrix @ found.outputs, found.inputs)


def test_labels_of_a_local_mechanism(write: Write):
    found = channel(write(LOCAL, noise("randomized_response", epsilon=1.0)))
    assert found.inputs == found.outputs == ("x", "y", "z")


def test_space_of_several_records(write: Write):
    spec = '[space]\nalphabets = [["x", "y"], [2, 1]]\n'
    task = task_of(write(spec, noise("randomized_response", epsilon=1.0)))
    assert task.mechanism.query(("y", 2)) == ("y", 2)
    assert task.mechanism.channel.inputs == (("x", 2), ("x", 1), ("y", 2), ("y", 1))


def test_pml_extremal_is_made_for_the_prior(write: Write):
    prior = "[prior]\ncounts = { z = 2, x = 5, y = 3 }\n"
    found = channel(write(LOCAL, noise("pml_extremal", epsilon=0.1), prior))
    expected = mechanisms.pml_extremal(Prior([0.5, 0.3, 0.2], "xyz"), 0.1)
    np.testing.assert_array_equal(found.matrix, expected.matrix)
    with pytest.raises(ValidationError, match=r"mechanism: .*\[prior\] is missing"):
        task_of(write(LOCAL, noise("pml_extremal", epsilon=0.1)))


def test_matrix_with_labels_may_be_in_any_order(write: Write, tmp_path: Path):
    (tmp_path / "data").mkdir()
    file = tmp_path / "data" / "m.csv"
    file.write_text(",no,yes\nz,0.1,0.9\nx,1,0\ny,0.5,0.5\n")
    given = SpecFile(write(LOCAL, noise("matrix", file="data/m.csv")))
    task = build_task(given)
    np.testing.assert_array_equal(task.mechanism.channel.matrix, [[1, 0], [0.5, 0.5], [0.1, 0.9]])
    assert task.mechanism.outputs == ("no", "yes")
    assert given.files == {"data/m.csv": hashlib.sha256(file.read_bytes()).hexdigest()}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (noise("gaussian", sigma=1.5), Gaussian(1.5)),
        (noise("gaussian", sigma=1.5, base=2), Rounded(Gaussian(1.5), 2)),
        (noise("laplace", scale=2), Laplace(2)),
        (noise("uniform", half_width=2, base=0.5), Rounded(Uniform(2), 0.5)),
        (noise("discrete_gaussian", sigma=1.5), DiscreteGaussian(1.5)),
        (noise("discrete_laplace", scale=2), DiscreteLaplace(2)),
    ],
)
def test_real_outputs(write: Write, text: str, expected: AdditiveNoise):
    task = task_of(write(COUNT, text))
    assert task.mechanism.noise == expected
    assert task.distortion is None


def test_sets_of_channels(write: Write, tmp_path: Path):
    (tmp_path / "m.csv").write_text(",no,yes\nz,0.33,0.67\nx,1,0\ny,0.5,0.5\n")
    found = task_of(write(LOCAL, noise("matrix", file="m.csv", digits=2))).mechanism.noise
    printed = ChannelSet.from_printed([[1, 0], [0.5, 0.5], [0.33, 0.67]], 2, "xyz", ["no", "yes"])
    assert found == printed
    (tmp_path / "l.csv").write_text("0,0.9\n0.4,0.4\n0.2,0.7\n")
    (tmp_path / "u.csv").write_text("0.1,1\n0.6,0.6\n0.3,0.8\n")
    found = task_of(write(LOCAL, noise("intervals", lower="l.csv", upper="u.csv"))).mechanism.noise
    assert found == ChannelSet(
        [[0, 0.9], [0.4, 0.4], [0.2, 0.7]], [[0.1, 1], [0.6, 0.6], [0.3, 0.8]], "xyz"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (noise("gaussian", sigma=0), r"mechanism.sigma: found 0.0; it must be in \(0, inf\)"),
        (noise("gaussian", sigma=1, base=0), "mechanism.base: found 0"),
        (noise("gaussian", scale=1), "mechanism.sigma: is missing"),
        (noise("matrix", file="m.csv", digits=0), "mechanism.*: digits: found 0"),
        (noise("intervals", lower="m.csv", upper="l.csv"), "upper: its labels are not those of"),
        (noise("intervals", lower="l.csv", upper="l.csv"), "upper: the bounds of input 0 sum"),
    ],
)
def test_bad_noise_and_sets(write: Write, tmp_path: Path, text: str, message: str):
    (tmp_path / "m.csv").write_text(",no,yes\n0,1,0\n1,0.5,0.5\n2,0,1\n3,0,1\n4,0,1\n")
    (tmp_path / "l.csv").write_text("0,0.5\n" * 5)
    with pytest.raises(ValidationError, match=message):
        task_of(write(COUNT, text))


def test_noise_is_added_to_numbers(write: Write):
    with pytest.raises(ValidationError, match="mechanism: query: found the value 'x'"):
        task_of(write(LOCAL, noise("gaussian", sigma=1)))


def test_ptable(write: Write, tmp_path: Path):
    (tmp_path / "p.csv").write_text("pcv,ckey,pvalue\n1,0,-1\n1,1,1\n2,0,0\n2,1,2\n")
    found = channel(write(COUNT, noise("ptable", file="p.csv", cycle=2)))
    assert found.outputs == (0, 2, 4, 6)
    expected = [
        [1, 0, 0, 0],
        [0.5, 0.5, 0, 0],
        [0, 0.5, 0.5, 0],
        [0, 0.5, 0.5, 0],
        [0, 0, 0.5, 0.5],
    ]
    np.testing.assert_array_equal(found.matrix, expected)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([COUNT, noise("ptable", file="p.csv", cycle=2)], "mechanism.cycle: found 2"),
        ([COUNT, noise("ptable", file="p.csv")], "mechanism: cycle: is missing; the count 2 "),
        ([COUNT, noise("ptable", file="no.csv")], r"mechanism: .*no.csv: No such file"),
        (
            [COUNT, noise("ptable", file="q.csv")],
            "mechanism: line 1 of .* the columns are 'i', 'p'",
        ),
        ([LOCAL, noise("ptable", file="p.csv")], "mechanism: query: values that are .* 'x'"),
    ],
)
def test_bad_ptables(write: Write, tmp_path: Path, parts: list[str], message: str):
    (tmp_path / "p.csv").write_text("pcv,ckey,pvalue\n1,0,0\n")
    (tmp_path / "q.csv").write_text("i,p\n1,1\n")
    with pytest.raises(ValidationError, match=message):
        task_of(write(*parts))


def test_bare_matrix_is_in_the_order_of_the_values(write: Write, tmp_path: Path):
    (tmp_path / "m.csv").write_text("1,0\n0.5,0.5\n0.1,0.9\n")
    found = channel(write(LOCAL, noise("matrix", file="m.csv")))
    assert found.inputs == ("x", "y", "z")
    np.testing.assert_array_equal(found.row("z"), [0.1, 0.9])


def test_scores_from_a_file(write: Write, tmp_path: Path):
    (tmp_path / "s.csv").write_text("1,0\n0,1\n0,0\n")
    found = channel(write(LOCAL, noise("exponential", epsilon=1.0, sensitivity=1, scores="s.csv")))
    expected = mechanisms.exponential([[1, 0], [0, 1], [0, 0]], 1.0, 1.0)
    np.testing.assert_array_equal(found.matrix, expected.matrix)


def test_prior_from_a_file(write: Write, tmp_path: Path):
    for content in ("value,people\nz,2\nx,5\ny,3\n", "x, 5\ny, 3\nz, 2\n"):
        (tmp_path / "p.csv").write_text(content)
        given = SpecFile(write(LOCAL, IDENTITY, '[prior]\nfile = "p.csv"\n'))
        assert build_task(given).prior == Prior([0.5, 0.3, 0.2], "xyz")
        assert given.files.keys() == {"p.csv"}


def test_keys_of_a_prior_stand_for_numbers_and_truth_values(write: Write):
    space = "[space]\nalphabets = [[0, 1.5, true]]\n"
    with pytest.raises(ValidationError, match="'2' is not a value"):
        task_of(write(space, IDENTITY, '[prior]\ncounts = { "0" = 1, "2" = 1 }\n'))
    task = task_of(write(space, IDENTITY, '[prior]\ncounts = { "0" = 1, "1.5" = 1, true = 2 }\n'))
    assert task.prior == Prior([0.25, 0.25, 0.5], [0, 1.5, True])


def test_distortions(write: Write, tmp_path: Path):
    rounding = noise("random_rounding", base=3)
    values, outputs = range(5), (0, 3, 6)
    for kind, expected in (
        ("hamming", Distortion.hamming(values, outputs)),
        ("absolute", Distortion.absolute(values, outputs)),
        ("squared", Distortion.squared(values, outputs)),
    ):
        task = task_of(write(COUNT, rounding, f'[distortion]\nkind = "{kind}"\n'))
        assert task.distortion == expected
    (tmp_path / "d.csv").write_text("0,1,2\n1,0,1\n2,1,0\n")
    task = task_of(write(LOCAL, IDENTITY, '[distortion]\nkind = "matrix"\nfile = "d.csv"\n'))
    assert task.distortion == Distortion([[0, 1, 2], [1, 0, 1], [2, 1, 0]], "xyz", "xyz")
    (tmp_path / "d.csv").write_text(",z,y,x\nx,2,1,0\ny,1,0,1\nz,0,1,2\n")
    task = task_of(write(LOCAL, IDENTITY, '[distortion]\nkind = "matrix"\nfile = "d.csv"\n'))
    assert task.distortion is not None
    assert task.distortion.outputs == ("z", "y", "x")


def test_hash_is_the_file_s(write: Write):
    path = write(COUNT, IDENTITY)
    assert SpecFile(path).identity()["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([COUNT.replace("4", "0"), IDENTITY], "query: number of records: found 0"),
        (['[query]\nkind="modular_sum"\nrecords=2\nmodulus=0\n', IDENTITY], "query.modulus"),
        (["[space]\nalphabets = []\n", IDENTITY], "space.alphabets: found none"),
        (['[space]\nalphabets = [["a", "a"]]\n', IDENTITY], r"space.alphabets\[0\]: .*equal"),
        (
            ['[query]\nkind = "table"\nalphabets = [[0, 1]]\nvalues = [1]\n', IDENTITY],
            "query.values: found shape",
        ),
        ([COUNT, noise("random_rounding", base=0)], "mechanism.base: found 0"),
        ([LOCAL, noise("random_rounding", base=3)], "mechanism: values that are counts .* 'x'"),
        ([LOCAL, noise("exponential", epsilon=1.0)], "mechanism: values that are numbers"),
        ([COUNT, noise("binary_symmetric", flip=0.1)], "it has 2 inputs; the query has 5 values"),
        ([PARITY, noise("binary_symmetric", flip=1.1)], "mechanism.flip: found 1.1"),
        ([PARITY, noise("randomized_response", epsilon=-1)], "mechanism.epsilon: found -1"),
        ([COUNT, noise("matrix", file="no.csv")], r"mechanism.file: .*no.csv: No such file"),
        ([COUNT, noise("exponential", epsilon=1.0, scores="s.csv")], "sensitivity: is missing"),
        ([COUNT, IDENTITY, "[prior]\ncounts = { a = 1 }\n"], "prior: .* 4 records"),
        ([LOCAL, IDENTITY, "[prior]\ncounts = { x = 1 }\n"], r"the values \['y', 'z'\]"),
        ([LOCAL, IDENTITY, "[prior]\ncounts = { x = 1, w = 2 }\n"], "'w' is not a value"),
        ([LOCAL, IDENTITY, "[prior]\ncounts = { x = 0, y = 0, z = 0 }\n"], "prior.counts: .*tot"),
        ([LOCAL, IDENTITY, "[prior]\ncounts = { x = -1, y = 1, z = 1 }\n"], r"counts\['x'\]"),
        ([LOCAL, IDENTITY, '[distortion]\nkind = "absolute"\n'], "distortion: values .* numbers"),
        ([COUNT, IDENTITY, "[audit]\nrecords = [4]\n"], "audit.records: found 4"),
        (
            [COUNT, IDENTITY, "[audit]\nrecords = [1]\ngroup_sizes = [2]\n"],
            "audit.group_sizes: .* not both",
        ),
        ([COUNT, IDENTITY, "[audit]\ngroup_sizes = [5]\n"], "audit.group_sizes: found 5"),
    ],
)
def test_what_does_not_fit(write: Write, parts: list[str], message: str):
    path = write(*parts)
    with pytest.raises(ValidationError, match=message) as found:
        task_of(path)
    assert str(found.value).startswith(f"{path}: ")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty"),
        ("1,2\n", "row 0 sums to 3.0"),
        ("1,0\n", "found 1 row; the query has 3 values"),
        ("1,0\n1\n1,0\n", "line 2 .* has 1 cell, but line 1 has 2"),
        ("1,0\nx,1\n1,0\n", "line 2, column 1 of .* found 'x'"),
        (",a,b\nx,1,0\ny,1,0\nw,1,0\n", r"inputs are .* lack \['z'\]"),
        ("\xff\xfe", "cannot read|number|cells"),
    ],
)
def test_bad_matrices(write: Write, tmp_path: Path, content: str, message: str):
    (tmp_path / "m.csv").write_text(content, encoding="latin-1")
    with pytest.raises(ValidationError, match=rf"mechanism.file: .*({message})"):
        task_of(write(LOCAL, noise("matrix", file="m.csv")))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("x,1,2\n", "found 3 columns"),
        ("x,1\ny,many\nz,1\n", "line 2, column 2 of .* found 'many'"),
        ("x,1\ny,2\nx,3\n", "line 3: 'x' is there twice"),
    ],
)
def test_bad_frequency_tables(write: Write, tmp_path: Path, content: str, message: str):
    (tmp_path / "p.csv").write_text(content)
    with pytest.raises(ValidationError, match=rf"prior.file: {message}"):
        task_of(write(LOCAL, IDENTITY, '[prior]\nfile = "p.csv"\n'))


def test_bad_scores(write: Write, tmp_path: Path):
    spec = noise("exponential", epsilon=1.0, sensitivity=1, scores="s.csv")
    for content, message in (
        ("a,b\n", r": line 1, column 1 of .*s\.csv': found 'a'"),
        ("1,2\n", r"\.scores: found 1 rows"),
    ):
        (tmp_path / "s.csv").write_text(content)
        with pytest.raises(ValidationError, match=f"mechanism{message}"):
            task_of(write(LOCAL, spec))


def test_epsilon_is_in_nats(write: Write):
    found = channel(write(PARITY, noise("randomized_response", epsilon=math.log(3))))
    np.testing.assert_allclose(found.matrix, [[0.75, 0.25], [0.25, 0.75]])


def test_histograms_have_noise_on_each_count(write: Write):
    rounding = noise("random_rounding", base=2)
    spec = '[query]\nkind = "histogram"\nrecords = 3\ncategories = ["a", "b"]\n'
    mechanism = task_of(write(spec, rounding)).mechanism
    assert mechanism.query == queries.histogram(3, ["a", "b"])
    one = mechanisms.random_rounding(3, 2)
    for counts, row in zip(mechanism.query.values, mechanism.channel.matrix, strict=True):
        for output, p in zip(mechanism.outputs, row, strict=True):
            rows = [one.row(count) for count in counts]
            each = [r[one.outputs.index(y)] for r, y in zip(rows, output, strict=True)]
            assert float(p) == pytest.approx(math.prod(each))
    cross = '[query]\nkind = "crosstab"\nrecords = 2\nrows = 2\ncolumns = ["x", "y"]\n'
    assert task_of(write(cross, IDENTITY)).mechanism.query == queries.crosstab(2, 2, ["x", "y"])
    assert len(task_of(write(cross, rounding)).mechanism.query.values) == 10
    with pytest.raises(ValidationError, match=r"mechanism.kind: is no noise for the numbers"):
        task_of(write(cross, noise("binary_symmetric", flip=0.1)))


def test_tables(write: Write, tmp_path: Path):
    rounding = noise("random_rounding", base=3)
    (tmp_path / "people.csv").write_text("sex,age\nf,1\nm,2\nf,1\n")
    (tmp_path / "counts.csv").write_text("sex/age,1,2\nf,2,0\nm,0,1\n")
    (tmp_path / "published.csv").write_text("sex/age,1,2,total\nf,3,0,3\nm,0,0,0\ntotal,3,0,3\n")
    people = '[table]\nmicrodata = "people.csv"\nrows = ["sex"]\ncolumns = ["age"]\n'
    counts = '[table]\ncounts = "counts.csv"\npublished = "published.csv"\n'
    shape = '[table]\npeople = 3\ncategories = { sex = ["f", "m"], age = [1, 2] }\n'
    made = [
        build_release(SpecFile(write(part, rounding)))
        for part in (people, counts, shape + 'columns = ["age"]\n')
    ]
    assert made[0] == made[1]
    assert dict(made[2].table.variables) == dict(made[0].table.variables)
    assert made[2].table.counts is None
    spec_file = SpecFile(write(counts, rounding))
    assert build_published(spec_file, made[1]) == [3, 0, 0, 0, 3, 0, 3, 0, 3]
    assert set(spec_file.files) == {"published.csv"}
    ptable = noise("ptable", file=str(EXAMPLES / "ptable.csv")) + "summed_keys = false\n"
    assert not build_release(SpecFile(write(shape, ptable))).linked
    steps = (
        '[mechanism]\nkind = "steps"\nsteps = [{ kind = "suppress_below", threshold = 8, '
        'replacement = 0 }, { kind = "round_to_nearest", base = 5 }]\n'
    )
    below = SuppressBelow(8, 0).then(RoundToNearest(5))
    assert build_release(SpecFile(write(shape, steps))).noise[0][1] == below
    counted = '[query]\nkind = "count"\nrecords = 12\n'
    assert channel(write(counted, steps)) == below.channel(12)
    even = noise("round_to_nearest", base=4, halves="even")
    assert channel(write(counted, even)) == RoundToNearest(4, "even").channel(12)
    shown = noise("suppress_below", threshold=3) + "zeros = false\n"
    assert channel(write(counted, shown)).outputs[0] == "suppressed"
    alone = build_release(SpecFile(write('[table]\npublished = "published.csv"\n', even)))
    assert alone.table.stated_people is None
    assert build_release(SpecFile(write(shape, noise("gaussian", sigma=2)))).noise[0][
        1
    ] == Gaussian(2)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ('microdata = "people.csv"\n', "table: rows: is missing; microdata needs it"),
        ("", "table: either microdata or counts or people"),
        (
            'published = "counts.csv"\nmargins = false\n',
            "table.margins: not allowed with published",
        ),
        ('published = "counts.csv"\ncategories = { sex = ["f"] }\n', "; or published alone"),
        ('microdata = "people.csv"\nrows = ["size"]\n', "table.microdata: the column 'size' is"),
        ("people = 3\n", "table: categories: is missing; people needs it"),
        ('counts = "counts.csv"\nrows = ["sex"]\n', "table.rows: allowed with microdata only"),
        ('people = 3\ncounts = "counts.csv"\n', "table: either microdata or counts or people"),
        ('counts = "nothing.csv"\n', "nothing.csv"),
        ('counts = "counts.csv"\n', "table.counts: 1 of 4 cells has no count, [('m', 2)]"),
        ('counts = "counts.csv"\nmissing = "category"\n', "table.missing: found 'category'"),
        (
            'people = 3\nmissing = "zero"\ncategories = { sex = ["f"] }\n',
            "table.missing: allowed with microdata or counts only",
        ),
    ],
)
def test_tables_that_do_not_fit(write: Write, tmp_path: Path, spec: str, message: str):
    (tmp_path / "people.csv").write_text("sex,age\nf,1\n")
    (tmp_path / "counts.csv").write_text("sex,age,count\nf,1,1\nm,1,1\nf,2,3\n")
    with pytest.raises(ValidationError) as found:
        build_release(SpecFile(write("[table]\n" + spec, noise("random_rounding", base=3))))
    assert message in str(found.value)
