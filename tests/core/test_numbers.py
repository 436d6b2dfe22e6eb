"""Numbers as written: text, Decimal, Fraction and floats of the same decimals mean the same."""

import copy
import itertools
import json
import math
import pickle
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
import typer
from hypothesis import given, settings
from hypothesis import strategies as st

from cvxleak import capacity, record_leakage, verify
from cvxleak.audit import leakage_curve
from cvxleak.cli.options import number
from cvxleak.cli.reading import check_spec, read_toml
from cvxleak.cli.sweeping import read_grid
from cvxleak.core.errors import InfeasibleError, ValidationError
from cvxleak.core.numbers import (
    ExactArray,
    ExactFloat,
    as_written,
    carries,
    exact_array,
    exact_law,
    fraction,
    from_json,
    integer_law,
    ratio,
    same_numbers,
    stacked,
    stored_values,
    to_json,
    written_law,
)
from cvxleak.core.validation import frozen_array, real_number
from cvxleak.envelope import failure_probability, pml_envelope
from cvxleak.kernel.numbers import precision
from cvxleak.local_dp import (
    class_two_leakage,
    folding_bounds,
    min_distortion_local_dp,
    min_information,
    min_local_dp,
)
from cvxleak.mechanisms import binary_symmetric
from cvxleak.model import (
    AdditiveQuery,
    Channel,
    Distortion,
    Expectation,
    KnownMarginals,
    Mechanism,
    Prior,
    RecordSpace,
)
from cvxleak.papers.gallery.errata.hamming import TABLE_I
from cvxleak.proofs import Certificate
from cvxleak.proofs.exact import ball, normalized, normalized_rows, rational
from cvxleak.release import release_problem
from cvxleak.sources import Polytope, SourceSet
from tests.proofs.test_hostile_files import rehashed

THIRDS = ["1/3", "1/3", "1/3"]


def forms(decimals):
    """Return the same decimals as text, Decimal, Fraction and floats, and mixed."""
    texts = [str(d) for d in decimals]
    return [
        texts,
        [Decimal(t) for t in texts],
        [Fraction(t) for t in texts],
        [float(t) for t in texts],
        np.array([float(t) for t in texts]),
        [(str, Decimal, Fraction, float)[i % 4](t) for i, t in enumerate(texts)],
    ]


@st.composite
def laws(draw, size=3):
    places = draw(st.integers(1, 12))
    cuts = sorted(draw(st.lists(st.integers(0, 10**places), min_size=size - 1, max_size=size - 1)))
    ends = [0, *cuts, 10**places]
    return [Decimal(b - a).scaleb(-places) for a, b in itertools.pairwise(ends)]


class TestReading:
    @pytest.mark.parametrize(
        ("given", "meant"),
        [
            (0.3, "3/10"),
            ("0.3", "3/10"),
            (" 3/10 ", "3/10"),
            ("3e-1", "3/10"),
            (Decimal("0.30"), "3/10"),
            (Fraction(3, 10), "3/10"),
            (np.float64(0.3), "3/10"),
            ("1/3", "1/3"),
            (Fraction(1, 3), "1/3"),
            (
                Decimal("0.30000000000000000000001"),
                "30000000000000000000001/100000000000000000000000",
            ),
            (1 / 3, "3333333333333333/10000000000000000"),
            (5e-324, "5e-324"),
            (1e300, "1e300"),
            (2**53 + 1, "9007199254740993"),
            (np.int64(3), "3"),
        ],
    )
    def test_what_a_number_is(self, given, meant):
        assert fraction(as_written(given)) == Fraction(meant)
        assert rational(real_number(given, "x")) == rational(as_written(meant))

    @given(st.floats(allow_nan=False, allow_infinity=False))
    def test_floats_are_their_shortest_decimals(self, value):
        assert fraction(value) == Fraction(repr(value))
        assert float(fraction(value)) == value
        assert from_json(repr(value)) == value
        with stored_values():
            assert fraction(value) == Fraction(value)

    @pytest.mark.parametrize(
        "text", ["", "1/0", "0.5/2", "1_0", "½", "0x1", "1e", "--1", "1e99999"]
    )
    def test_what_is_no_number(self, text):
        with pytest.raises(ValidationError, match=r"^x: "):
            real_number(text, "x")
        with pytest.raises(ValidationError, match=r"^p: "):
            frozen_array([text, "0.5"], "p", 1)

    def test_limits_are_exact(self):
        above = Fraction(1) + Fraction(1, 10**30)
        with pytest.raises(ValidationError, match=r"^D: "):
            real_number(above, "D", 0.0, 1.0)
        with pytest.raises(ValidationError, match=r"^D: "):
            real_number("-1/100000000000000000000000000000000", "D", 0.0)
        for tiny in ("1e-400", "1e-5000", Fraction(1, 10**400), Decimal("1e-9999")):
            with pytest.raises(ValidationError):
                real_number(tiny, "D", 0.0)

    @pytest.mark.parametrize("text", ["inf", "-Infinity", "NaN"])
    def test_texts_of_no_finite_number(self, text):
        assert repr(as_written(text)) == repr(float(text))

    def test_long_texts_are_refused(self):
        assert as_written("0." + "1" * 3998) == as_written(Fraction("0." + "1" * 3998))
        with pytest.raises(ValueError, match="4001 characters"):
            as_written("0." + "1" * 3999)
        with pytest.raises(OverflowError):
            as_written("1e400")

    def test_ratios(self):
        assert ratio(3) == (3, 1)
        assert ratio(as_written("2/6")) == (1, 3)
        with pytest.raises(OverflowError):
            ratio(math.inf)

    def test_numbers_are_equal_as_written(self):
        third, more = as_written("1/3"), as_written("0.34000000000000000000001")
        assert third == as_written("2/6")
        assert not third != as_written("2/6")
        assert third != more
        assert more != third
        assert not third == more
        assert third != 1 / 3
        assert -third == as_written("-1/3")
        assert to_json({"a": [third, 0.5]}) == {"a": ["1/3", 0.5]}

    def test_a_long_json_number_is_itself(self):
        assert isinstance(from_json("0.30000000000000000000001"), ExactFloat)
        assert type(from_json("0.30")) is float
        for tiny in ("1e-400", "1e-5000"):  # no zero
            with pytest.raises(ValueError, match="too close to 0"):
                from_json(tiny)


class TestLaws:
    @pytest.mark.parametrize(
        ("row", "weights"),
        [
            ([0.7, 0.2, 0.1], [7, 2, 1]),
            ([1.0, 0.0], [1, 0]),
            ([1 / 3] * 3, [1, 1, 1]),
            (["1/3", "2/3"], [1, 2]),
            (["1/3", 0.6666666666666667], [10**16 // 1, 2 * 10**16 + 1]),
        ],
    )
    def test_weights(self, row, weights):
        found = integer_law(frozen_array(row, "row", 1))
        if weights[0] == 10**16:  # divided by its sum, as written
            a, b = Fraction(1, 3), Fraction("0.6666666666666667")
            assert Fraction(found[0], sum(found)) == a / (a + b)
        else:
            total, own = sum(weights), math.gcd(*found)
            assert [Fraction(f, sum(found)) for f in found] == [Fraction(w, total) for w in weights]
            assert own

    @given(laws())
    def test_rows_that_sum_to_one_are_the_law(self, law):
        row = [float(d) for d in law]
        assert exact_law(row) == tuple(Fraction(d) for d in law)
        assert sum(normalized_rows([row])[0]) == 1
        with precision():
            for share, d in zip(normalized(row), law, strict=True):
                assert share.overlaps(ball(float(d)))

    @given(st.lists(st.floats(5e-324, 1.0), min_size=1, max_size=6), st.booleans())
    def test_what_the_decimals_sum_to_decides(self, weights, filled):
        row = [weight / math.fsum(weights) for weight in weights]
        if filled:  # the last one is what the others leave, if a float prints as that
            row[-1] = float(1 - sum(map(Fraction, map(repr, row[:-1]))))
        total = sum(map(Fraction, map(repr, row)))
        assert (written_law(row) is not None) == (total == 1)

    def test_stored_values_are_divided_by_their_sum(self):
        total = sum(map(Fraction, [0.7, 0.2, 0.1]))
        with stored_values():
            assert exact_law([0.7, 0.2, 0.1])[0] == Fraction(0.7) / total

    @given(st.lists(st.floats(1e-6, 1.0), min_size=2, max_size=6))
    def test_others_are_divided_by_their_exact_sum(self, weights):
        total = sum(map(Fraction, weights))
        if sum(map(fraction, weights)) != 1:
            assert exact_law(weights) == tuple(Fraction(w) / total for w in weights)
        with stored_values():
            assert exact_law(weights) == tuple(Fraction(w) / total for w in weights)


class TestObjects:
    @given(laws())
    @settings(max_examples=30)
    def test_all_forms_are_equal(self, law):
        one = Prior([float(d) for d in law])
        for form in forms(law):
            assert Prior(form) == one
            assert hash(Prior(form)) == hash(one)
            assert Channel([form]) == Channel([one.probabilities])
            assert Distortion([form]) == Distortion([one.probabilities])
            assert SourceSet([form]).to_dict() == SourceSet([one]).to_dict()

    def test_equal_objects_have_equal_hashes(self):
        one, other = (Channel([[Fraction(1, 3), Fraction(2, 3), x]]) for x in (-0.0, 0.0))
        assert one == other
        assert hash(one) == hash(other)

    def test_a_third_is_kept(self, tmp_path):
        p = Prior(["1/3", "2/3"], ["a", "b"])
        assert p == Prior([Fraction(1, 3), Fraction(2, 3)], ["a", "b"])
        assert p != Prior([1 / 3, 2 / 3], ["a", "b"])
        assert pickle.loads(pickle.dumps(p)) == p
        assert copy.deepcopy(p) == p
        assert p.to_dict()["probabilities"] == ["1/3", "2/3"]
        assert Prior.from_dict(json.loads(json.dumps(p.to_dict()))) == p
        p.to_json(tmp_path / "p.json")
        assert Prior.from_json(tmp_path / "p.json") == p
        p.to_csv(tmp_path / "p.csv")
        assert Prior.from_csv(tmp_path / "p.csv") == p
        assert exact_law(p.probabilities) == (Fraction(1, 3), Fraction(2, 3))

    def test_tables_are_read_as_written(self, tmp_path):
        path = tmp_path / "rows.csv"
        path.write_text("0.1,0.9\n1/3,2/3\n0.30000000000000000000001,0.69999999999999999999999\n")
        rows = Channel.from_csv(path).matrix
        assert exact_law(rows[1]) == (Fraction(1, 3), Fraction(2, 3))
        assert exact_law(rows[2])[0] == Fraction("0.30000000000000000000001")

    def test_parts_carry_their_numbers(self):
        c = Channel([["1/3", "2/3"], [0.3, 0.7], ["2/3", "1/3"]], ["a", "b", "c"], ["x", "y"])
        assert c.select(["c", "a"], ["y", "x"]).to_dict()["matrix"] == [
            ["1/3", "2/3"],
            ["2/3", "1/3"],
        ]
        assert c.row("a").tolist() == [as_written("1/3"), as_written("2/3")]
        assert isinstance(c.matrix, ExactArray)
        assert not isinstance((2 * c.matrix).tolist()[0][0], ExactFloat)
        with pytest.raises(ValueError, match="read-only"):
            c.matrix[0, 0] = 0.5
        assert pickle.loads(pickle.dumps(c)) == c
        parts = (SourceSet([THIRDS]) | SourceSet.box(["1/9", 0, 0], ["1/2", 1, 1])).to_dict()
        assert parts["parts"][0]["points"] == [THIRDS]
        assert parts["parts"][1]["polytopes"][0]["lower"][0] == "1/9"
        assert SourceSet.from_dict(parts).to_dict() == parts

    def test_results_carry_nothing(self):
        exact = exact_array(np.array(["1/3", 0.5], dtype=object))
        plain = np.array([1 / 3, 0.5])
        assert not exact.flags.writeable
        assert carries(exact)
        assert not carries(1 * exact)
        assert not same_numbers(exact, plain)
        assert not same_numbers(plain, exact)
        assert same_numbers(exact, exact_array(np.array(["2/6", "0.5"], dtype=object)))
        assert not same_numbers(exact, exact_array(np.array(["1/3", "0.7"], dtype=object)))
        assert same_numbers(plain, 1 * exact)
        assert stacked([1 * exact, exact]).tolist() == [plain.tolist(), exact.tolist()]
        assert type(frozen_array(1 * exact, "p", 1)) is np.ndarray

    def test_negative_and_infinite_numbers_are_refused(self):
        for row in (["-1/3", "4/3"], ["inf", "0"], ["nan", "1"]):
            with pytest.raises(ValidationError, match=r"^probabilities: "):
                Prior(row)

    def test_bounds_of_polytopes_are_exact(self):
        body = Polytope([0, 0, 0], ["1/3"] * 3)
        assert body.contains((Fraction(1, 3),) * 3)
        with pytest.raises(ValidationError):
            Polytope([0, 0, 0], [Fraction(1, 3) - Fraction(1, 10**30)] * 3)


class TestLumping:
    def test_rows_that_differ_as_written_are_not_merged(self):
        space = RecordSpace.binary(2)
        count = AdditiveQuery(space, [(0, 1)] * 2)
        near = Fraction(1, 3) + Fraction(1, 10**25)
        rows = [["1/3", "2/3"], [near, 1 - near], ["2/3", "1/3"]]
        mechanism = Mechanism(count, rows)
        assert (mechanism.channel.matrix[0] == mechanism.channel.matrix[1]).all()
        assert len(mechanism.distinct_rows[0]) == 3
        assert len(mechanism.lumped(0).rows) == 4
        bound = record_leakage(mechanism, entropy_floor=0.0)
        assert verify(bound.certificate).passed
        stored = bound.certificate.problem["mechanism"]["channel"]["matrix"]
        assert [Fraction(x) for x in stored[1]] == [near, 1 - near]

    def test_records_whose_rows_differ_as_written_are_audited_apart(self):
        space = RecordSpace.binary(2)
        near = Fraction(1, 3) - Fraction(1, 10**20)
        rows = [["1/3", "2/3"], ["2/3", "1/3"], [1 - near, near], ["1/3", "2/3"]]
        mechanism = Mechanism.from_channel(space, rows)
        one, other = (mechanism.lumped(i) for i in range(2))
        assert np.array_equal(one.rows, other.rows)
        assert not same_numbers(one.rows, other.rows)
        for bound in (
            record_leakage(mechanism, entropy_floor=0.5),
            leakage_curve(mechanism, [0.0, 0.5]).bounds[1],
        ):
            answer = verify(bound.certificate)
            assert answer.passed, answer.reason

    def test_equal_rows_are_merged(self):
        space = RecordSpace.binary(1)
        mechanism = Mechanism.from_channel(
            space, [["1/3", "2/3"], [Fraction(1, 3), Fraction(2, 3)]]
        )
        assert len(mechanism.distinct_rows[0]) == 1
        assert record_leakage(mechanism, entropy_floor=0.0).upper == 0


class TestLocalDP:
    @pytest.mark.parametrize(
        ("law", "budget"),
        [
            ([0.7, 0.2, 0.1], 0.3),
            (TABLE_I, 0.3),
            ([0.4, 0.6], 0.4),
            (["1/2", "1/3", "1/6"], "1/2"),
            (THIRDS, "2/3"),
            ([1 / 3] * 3, Fraction(2, 3)),
        ],
    )
    def test_at_the_jump_nothing_is_told(self, law, budget):
        for d in (None, 1 - np.eye(len(law))):
            bound = min_local_dp([law], budget, d)
            assert bound.lower == bound.upper == 0
            assert verify(bound.certificate).passed
        assert min_information([law], budget).upper < 1e-30  # of balls, not of 0

    @given(laws(), st.integers(1, 99))
    @settings(max_examples=10, deadline=None)
    def test_all_forms_have_one_certificate(self, law, budget):
        D = Decimal(budget).scaleb(-2)
        first = None
        for form, amount in zip(
            forms(law), (str(D), D, Fraction(D), float(D), float(D), str(D)), strict=True
        ):
            bound = min_local_dp([form], amount)
            found = bound.lower, bound.upper, bound.certificate.hash
            first = first or found
            assert found == first

    @pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
    @pytest.mark.parametrize(
        ("law", "budget"),
        [([0.7, 0.2, 0.1], 0.3), ([0.6, 0.3, 0.1], 0.4), (["2/3", "2/9", "1/9"], "1/3")],
    )
    def test_the_paper_s_theorem_at_the_jump(self, order, law, budget):
        sources = [[law[i] for i in order]]
        assert class_two_leakage(sources, budget) == 0
        bounds = folding_bounds(sources, budget)
        assert (bounds.lower, bounds.upper, bounds.single_order) == (0, 0, 0)
        below = fraction(as_written(budget)) - Fraction(1, 10**6)
        truth = min_local_dp(sources, below).upper
        assert class_two_leakage(sources, below) == pytest.approx(truth, abs=1e-5)
        assert truth > 0.6

    def test_a_distortion_next_to_hamming_is_not_hamming(self):
        near = Fraction(1) - Fraction(1, 10**25)
        bound = min_local_dp([[0.7, 0.3]], 0.1, [[0, near], [1, 0]])
        assert [Fraction(x) for x in bound.certificate.problem["distortion"][0]] == [0, near]
        assert verify(bound.certificate).passed

    def test_thirds_are_in_the_certificate(self, tmp_path):
        bound = min_local_dp([["1/3", "1/6", "1/2"]], "1/3")
        assert bound.certificate.problem["budget"] == "1/3"
        assert bound.certificate.problem["sources"][0]["points"] == [["1/3", "1/6", 0.5]]
        path = tmp_path / "proof.json"
        bound.certificate.save(path)
        assert verify(path).passed
        assert Certificate.load(path) == bound.certificate

    def test_the_least_budget_is_met(self):
        d = [["1/3", 1], [1, "1/3"]]
        assert min_local_dp([[0.5, 0.5]], "1/3", d).lower == math.inf
        less = Fraction(1, 3) - Fraction(1, 10**20)
        with pytest.raises(InfeasibleError):
            min_local_dp([[0.5, 0.5]], less, d)

    def test_the_least_distortion_of_a_constant(self):
        bound = min_distortion_local_dp([[0.7, 0.2, 0.1]], 0)
        assert bound.upper == 0.3


class TestCertificates:
    def test_version_1_keeps_the_meaning_of_its_numbers(self):
        certificate = min_local_dp([[0.7, 0.2, 0.1]], 0.3).certificate
        assert verify(certificate).passed
        # In binary 1 - 0.7 / (0.7 + 0.2 + 0.1) is above 0.3.
        old = replace(certificate, about={}, schema_version=1)
        assert not verify(old).passed
        assert "exceeds the budget" in verify(old).reason
        assert fraction(0.3) == Fraction(3, 10)  # the checker leaves nothing behind

    def test_version_1_has_no_text(self):
        certificate = min_local_dp([["1/2", "1/3", "1/6"]], "1/4").certificate
        assert verify(certificate).passed
        assert not verify(replace(certificate, about={}, schema_version=1)).passed

    def test_a_row_that_does_not_sum_to_one(self):
        rows = [[0.1] * 9 + [0.1000000001], [0.2] + [0.0] * 8 + [0.8]]
        bound = capacity(rows)
        assert verify(bound.certificate).passed
        exact = exact_law(rows[0])
        assert exact[0] == Fraction(0.1) / sum(map(Fraction, rows[0]))

    def test_a_number_that_is_no_shortest_decimal_is_not_read_as_one(self, tmp_path):
        path = tmp_path / "proof.json"
        capacity([[0.9, 0.1], [0.1, 0.9]]).certificate.save(path)
        text = path.read_text()
        assert "[0.9, 0.1]" in text
        path.write_text(text.replace("[0.9, 0.1]", "[0.90000000000000000001, 0.1]"))
        answer = verify(path)
        assert not answer.passed
        assert "SHA-256" in answer.reason

    def test_text_that_is_no_number(self):
        certificate = min_local_dp([[0.7, 0.3]], 0.1).certificate
        for bad in ("a third", "inf", "1/0", True, None, [0.1]):
            problem = {**certificate.problem, "budget": bad}
            assert not verify(replace(certificate, problem=problem)).passed

    @given(laws(2), laws(2))
    @settings(max_examples=10, deadline=None)
    def test_capacity_of_all_forms(self, one, other):
        hashes = {
            capacity([a, b]).certificate.hash for a, b in zip(forms(one), forms(other), strict=True)
        }
        assert len(hashes) == 1

    def test_exact_channels(self):
        bound = capacity([["1/3", "2/3"], ["2/3", "1/3"]])
        assert bound.certificate.problem["matrix"] == [["1/3", "2/3"], ["2/3", "1/3"]]
        assert verify(bound.certificate).passed

    def test_envelope_of_exact_numbers(self):
        prior, rows = ["1/3", "2/3"], [["1/2", "1/2"], ["1/4", "3/4"]]
        for bound in (
            pml_envelope(prior, rows, "1/7"),
            failure_probability(prior, rows, "1/9"),
        ):
            assert bound.certificate.problem["prior"] == ["1/3", "2/3"]
            assert verify(bound.certificate).passed

    def test_releases_of_exact_laws(self):
        joint = [[["1/3", "1/6"]], [["1/9", "7/18"]]]
        bound = release_problem(joint, "1/10", "1/5", distortion=[[0, "1/3"], [1, 0]]).solve()
        problem = bound.certificate.problem
        assert problem["joint"] == joint
        assert problem["distortion"] == [[0.0, "1/3"], [1.0, 0.0]]
        assert verify(bound.certificate).passed
        assert not verify(replace(bound.certificate, problem={**problem, "joint": [joint]})).passed

    def test_adversaries_of_whom_exact_numbers_are_known(self):
        mechanism = Mechanism(
            AdditiveQuery(RecordSpace.binary(2), [(0, 1)] * 2, modulus=2), binary_symmetric(0.1)
        )
        for known in (
            KnownMarginals(["1/3", "2/3"]),
            Expectation(["1/7", 0.3], records=0, equals="1/5"),
            Expectation([0.1, 0.2], records=0, at_most=0.13),
        ):
            bound = record_leakage(mechanism, entropy_floor=0.0, adversaries=known)
            answer = verify(bound.certificate)
            assert answer.passed, answer.reason
            again = Certificate.from_dict(json.loads(json.dumps(bound.certificate.to_dict())))
            assert verify(again).passed


@pytest.mark.parametrize(
    ("end", "missed"), [("0.29999999999999999999", "upper"), ("0.30000000000000000001", "lower")]
)
def test_an_end_is_what_is_written(end, missed, tmp_path):
    """Both round to .3, which is proved: .3 is no lower end of .30000000000000000001."""
    path = tmp_path / "proof.json"
    certificate = min_distortion_local_dp([[0.7, 0.2, 0.1]], 0).certificate
    replace(certificate, lower=as_written(end), upper=as_written(end)).save(path)
    for answer in (verify(path), verify(json.loads(path.read_text()))):
        assert [name for name, one in answer.ends.items() if not one.proved] == [missed]


@pytest.mark.parametrize("lower", ["1/3", -1])
def test_an_end_that_is_no_float(lower, tmp_path):
    path = tmp_path / "proof.json"
    certificate = capacity([[0.9, 0.1], [0.1, 0.9]]).certificate
    data = json.loads(json.dumps(certificate.to_dict()))
    data["ends"]["lower"]["value"] = lower
    data = rehashed(data)
    path.write_text(json.dumps(data))
    assert verify(path).passed
    assert Certificate.load(path).to_dict()["ends"]["lower"]["value"] == lower


def test_specs_and_options_are_read_as_written():
    text = b"""version = 1
    [local_dp]
    distortion_budget = "1/3"
    delta = 0.30000000000000000001
    [sources]
    kind = "laws"
    laws = [[0.7, "1/5", 0.1]]
    [envelope]
    delta = [1, 0.5, "2/7"]
    """
    spec = check_spec(read_toml(text, "spec.toml"), "spec.toml")
    assert spec.local_dp is not None
    assert fraction(spec.local_dp.distortion_budget) == Fraction(1, 3)
    assert fraction(spec.local_dp.delta) == Fraction("0.30000000000000000001")
    assert spec.sources.laws == [[0.7, 0.2, 0.1]]
    assert list(map(fraction, spec.envelope.delta)) == [1, Fraction(1, 2), Fraction(2, 7)]
    assert read_grid(["local_dp.delta=1/3,0.5"]) == {"local_dp.delta": ["1/3", "0.5"]}
    assert fraction(number("1/3")) == Fraction(1, 3)
    for bad in ("a third", "1/0"):
        with pytest.raises(typer.BadParameter):
            number(bad)
        with pytest.raises(ValidationError, match=r"local_dp\.delta: expected a number"):
            check_spec(
                read_toml(
                    f'version = 1\n[local_dp]\nepsilon = 1\ndelta = "{bad}"'.encode(), "spec.toml"
                ),
                "spec.toml",
            )
