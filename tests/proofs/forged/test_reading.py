"""Files and their parts are read strictly: what is not understood, or asks for too much, fails."""

import dataclasses
import json
import math
import os

import numpy as np
import pytest
from flint import fmpq

from cvxleak import verify
from cvxleak.core.errors import CertificateError, ValidationError
from cvxleak.kernel.budget import LIMITS, RefusedError, charge, limited
from cvxleak.kernel.reading import pack
from cvxleak.proofs import bundle, exact, reading
from cvxleak.proofs.bundle import members, read_certificates, save_certificates
from cvxleak.proofs.design import _charge_records as charge_records
from cvxleak.proofs.format import Certificate, read_json
from cvxleak.proofs.timed import run_within
from tests.kernel.test_capacity import symmetric
from tests.proofs.forged import test_design
from tests.proofs.forging import ends

HONEST = test_design.PARTS["priors"]


def certified(parts=HONEST, **changes):
    lower, upper = ends(parts)
    return dataclasses.replace(
        Certificate(parts.kind, parts.problem, lower, upper, *parts[2:]), **changes
    )


@pytest.fixture
def file(tmp_path):
    return tmp_path / "proof.json"


def test_a_list_passes_if_each_member_does(file):
    honest, false = certified(), certified(lower=1.0)
    for given, passed, reason in (
        ([honest], True, "both bounds are proved"),
        ([honest, honest], True, "all 2 certificates pass"),
        ([honest, false], False, "1 of 2 certificates do not pass"),
        ([false, false], False, "2 of 2 certificates do not pass"),
    ):
        save_certificates(given, file)
        answer = verify(file)
        assert (answer.passed, answer.reason) == (passed, reason)
        assert [part.passed for part in answer.parts] == [
            one is honest for one in given if len(given) > 1
        ]
        assert read_certificates(file) == [one.to_dict() for one in given]


def test_lists_are_not_empty_or_too_long(file, monkeypatch):
    with pytest.raises(ValidationError, match="found none"):
        save_certificates([], file)
    monkeypatch.setattr(bundle, "MEMBERS_LIMIT", 2)
    save_certificates([certified()] * 2, file)
    content = json.loads(file.read_text())
    assert len(members(content)) == 2
    with pytest.raises(ValidationError, match="at most 2"):
        save_certificates([certified()] * 3, file)
    with pytest.raises(CertificateError, match="at most 2 are read"):
        members({**content, "certificates": content["certificates"][:1] * 3})


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"version": 0}, "version 0"),
        ({"version": 2}, "version 2"),
        ({"version": True}, "version True"),
        ({"note": 1}, "has a part missing"),
        ({"certificates": []}, "no certificate"),
        ({"certificates": {"a": 1}}, "no certificate"),
        ({"certificates": "ab"}, "no certificate"),
        ({"certificates": [3]}, "not a cvxleak certificate"),
        ({"certificates": [[]]}, "not a cvxleak certificate"),
        ({"certificates": [{"format": "cvxleak-certificates"}]}, "inside another list"),
        ({"format": "cvxleak-other"}, "not a cvxleak certificate"),
        ({"format": "zzz"}, "not a cvxleak certificate"),
    ],
)
def test_forged_lists(changes, reason, file):
    content = {"format": "cvxleak-certificates", "version": 1}
    content = {**content, "certificates": [certified().to_dict()] * 2, **changes}
    answer = verify(content)
    assert not answer.passed
    assert reason in answer.reason
    del content["certificates"]
    assert not verify(content).passed


def test_a_list_has_all_its_parts():
    for content in ({"version": 1}, {"version": 1, "note": []}):
        answer = verify({"format": "cvxleak-certificates", **content})
        assert "has a part missing" in answer.reason


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"lower": None, "upper": None, "about": {}}, "a bound is missing"),
        ({"schema_version": 1, "about": {}, "lower": None}, "a bound is missing"),
        ({"schema_version": 1, "about": {"lower": "problem", "upper": "problem"}}, "about: found"),
        ({"schema_version": -1}, "schema version -1"),
        ({"schema_version": 4}, "schema version 4"),
        ({"schema_version": 2.0}, "schema version"),
        ({"about": []}, "about: found"),
        ({"about": 3}, "about: found"),
        ({"about": {"lower": "problem"}}, "about: found"),
        ({"about": {"lower": "problem", "upper": "problem", "it": "problem"}}, "about: found"),
        ({"about": {"lower": "problem", "upper": "all"}}, "about: found"),
        ({"about": {"lower": "problem", "upper": ["problem"]}}, "about: found"),
    ],
)
def test_forged_claims(changes, reason):
    assert certified().about == {"lower": "problem", "upper": "problem"}
    assert certified(upper=None, about={}).about == {"lower": "problem"}
    with pytest.raises(CertificateError, match=reason):
        certified(**changes)


def test_a_certificate_comes_back_from_its_file(file):
    for one in (
        certified(),
        certified(upper=None, about={}),
        certified(upper=math.inf),
        certified(schema_version=1, about={}),
    ):
        one.save(file)
        assert Certificate.load(file) == one
        assert Certificate.from_dict(one.to_dict()) == one
        assert verify(file).passed
    # Tuples are the lists that a file holds, keys its texts.
    matrix = {"matrix": [[0.75, 0.25], [0.25, 0.75]]}
    rows = tuple(map(tuple, matrix["matrix"]))
    assert certified(problem=matrix).problem == certified(problem={"matrix": rows}).problem
    assert certified(problem={1: ((1, 2.0), [])}).problem == {"1": [[1, 2.0], []]}
    assert certified(problem={"a": [1.0, (2.0,), {3: 4}]}).problem == {"a": [1.0, [2.0], {"3": 4}]}
    with pytest.raises(CertificateError, match="not JSON"):
        certified(problem={"matrix": math.nan}).to_dict()
    with pytest.raises(CertificateError, match="not JSON"):
        certified(problem={"matrix": {3}}).to_dict()


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"format": "cvxleak-certificatf"}, "not a cvxleak certificate"),
        ({"format": "a"}, "not a cvxleak certificate"),
        ({"note": 1}, "the certificate: it has no note"),
        ({"problem": []}, "problem: expected an object"),
        ({"witness": None}, "witness: expected an object"),
        ({"proof": 3}, "proof: expected an object"),
        ({"versions": 3}, ": expected an object"),
        ({"sha256": "0" * 64}, "SHA-256"),
        ({"sha256": "f" * 64}, "SHA-256"),
        ({"sha256": None}, "SHA-256"),
        ({"versions": {"cvxleak": "0"}}, "SHA-256"),
        ({"claim": 3}, "the claim: expected an object"),
    ],
)
def test_forged_files(changes, reason):
    answer = verify({**certified().to_dict(), **changes})
    assert not answer.passed
    assert reason in answer.reason
    assert not verify([certified().to_dict()]).passed  # type: ignore[arg-type]


def test_what_the_claim_must_hold():
    data = certified().to_dict()
    for key in data["claim"]:
        claim = {other: part for other, part in data["claim"].items() if other != key}
        assert f"the claim: without {key}" in verify({**data, "claim": claim}).reason
    for end in ("lower", "upper"):
        for value in ("1", "-inf", True, [0.5], math.nan):
            assert not verify({**data, "claim": {**data["claim"], end: value}}).passed


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"a": 1, "a": 1}', "there twice"),
        ('{"a": NaN}', "not a finite number"),
        ('{"a": -Infinity}', "not a finite number"),
        ('{"a": 1e999}', "not a finite number"),
        ("{", "as JSON"),
        ("[" * 100_000, "as JSON"),
    ],
)
def test_json_is_read_strictly(text, reason, file):
    file.write_text(text)
    with pytest.raises(CertificateError, match=reason):
        read_json(file)
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(CertificateError, match="can't decode"):
        read_json(file)
    with pytest.raises(ValidationError, match="cannot read"):
        read_json(file.parent)


def test_a_decimal_is_no_float_that_is_near(file):
    certified().save(file)
    text = file.read_text()
    file.write_text(text.replace("0.75", "0.75000000000000000001", 1))
    assert file.read_text() != text
    assert "SHA-256" in verify(file).reason
    for data in ([], "cvxleak-certificate", None):
        with pytest.raises(CertificateError, match="not a cvxleak certificate"):
            Certificate.from_dict(data)


def test_nested_too_deeply():
    deep = []
    for _ in range(100_000):
        deep = [deep]
    data = certified().to_dict()
    assert "nested too deeply" in verify({**data, "proof": {"output": deep}}).reason


def test_a_kind_is_read_in_the_version_that_its_checker_reads():
    for version, reads in ((3, 2), (2, 3)):
        made = certified(HONEST if version == 3 else symmetric(None), schema_version=version)
        reason = verify(made).reason
        assert reason == (
            f"schema version {version} of {made.kind}; this checker reads version {reads}: "
            "make the certificate again"
        )
        assert "schema version 0" in verify({**made.to_dict(), "schema_version": 0}).reason


def test_version_1_has_no_text_and_half_spaces_only():
    with reading.schema(1), pytest.raises(CertificateError, match="expected a number"):
        reading.number("1/3", "it")
    assert reading.number("1/3", "it") == reading.number("2/6", "it")
    own = test_design.PARTS["own"]
    old = certified(own, schema_version=1, about={})
    about = {name: end.about for name, end in verify(old).ends.items()}
    assert about == {"lower": "problem", "upper": "half-spaces"}
    assert {end.about for end in verify(certified(schema_version=1, about={})).ends.values()} == {
        "problem"
    }


def test_version_2_says_what_it_writes():
    with reading.schema(2):
        assert exact.rational(0.3) == fmpq(3, 10)
    with reading.schema(1):
        assert exact.rational(0.3) != fmpq(3, 10)


@pytest.mark.parametrize("wanted", [(2,), (2, 3, 1), (2, 4), (3, 3), (3, 2), (6,), (None,)])
def test_arrays_have_the_shape_that_is_needed(wanted):
    packed = pack(np.arange(6.0).reshape(2, 3), "<f8")
    for fits in ((2, 3), (None, 3), (2, None), (None, None)):
        assert reading.unpack(packed, "it", "f", fits).tolist() == [[0, 1, 2], [3, 4, 5]]
    with pytest.raises(CertificateError, match=r"it: found shape \[2, 3\], where"):
        reading.unpack(packed, "it", "f", wanted)


def test_an_end_is_compared_as_it_is_stored():
    lower, upper = ends(HONEST)
    for claim, passed in (
        ((-math.inf, math.inf), True),
        ((math.inf, upper), False),
        ((lower, -math.inf), False),
    ):
        assert verify(certified(lower=claim[0], upper=claim[1])).passed is passed
    half = verify(certified(lower=None, about={}))
    assert half.reason == "the upper bound is proved; no other bound is claimed"


def test_checks_end():
    answer = verify(certified(), time_limit=60.0)
    assert (answer.passed, answer.finished) == (True, True)
    answer = verify(certified(), time_limit=0.0)
    assert (answer.passed, answer.finished) == (False, False)
    assert "did not finish within 0 s" in answer.reason
    assert run_within(os._exit, 3, 60.0) == "the check ended without an answer, with exit code 3"


def test_numbers_and_parts():
    for value in (1 << 53, -(1 << 53), 0.5):
        assert reading.number(value, "it") == value
    for value in ((1 << 53) + 1, -(1 << 53) - 1, True, math.inf, math.nan, None, "0.5", "inf"):
        with pytest.raises(CertificateError, match="it: expected a number"):
            reading.number(value, "it")
    for value, found in (
        ([1, 2], r"\[1, 2\]"),
        ({"a": 1}, "{'a': 1}"),
        (1 << 60, r"about 10\^18"),
        (True, "True"),
        ("a" * 99, "'a*...a*'"),
    ):
        with pytest.raises(CertificateError, match=f"found {found}$"):
            reading.number(value, "it")
    assert reading.count(0, "it") == 0
    for value in (-1, True, 1.0):
        with pytest.raises(CertificateError, match="it: found"):
            reading.count(value, "it")


def spent(what, amount, *charges):
    """Make sure that so much was charged: the rest fits beside it, and no more than the rest."""
    with limited():
        for one, *arguments in charges:
            one(*arguments)
        charge(what, LIMITS[what] - amount)
        with pytest.raises(RefusedError, match="the file asks for more"):
            charge(what, 1)


def test_what_a_file_may_ask_for_in_all():
    spent("ball operations", 7, (charge, "ball operations", 3), (charge, "ball operations", 4))
    written = {"space": {"alphabets": [[[0, 1, 2], 5]]}, "contributions": [[[0], 7], [9], 3]}
    spent("records' values", 5 * 3 + 7 * 2, (charge_records, written))
    runs = {"alphabets": [[[], 1], [[], 1, 1], [[0.5], True]]}
    spent("records' values", 2, (charge_records, runs))
    spent("records' values", 0, (charge_records, {"alphabets": [[[], -5]], "other": [[[], 5]]}))
    spent("records' values", 0, (charge_records, [1]), (charge_records, {"alphabets": 5}))
    charge("ball operations", LIMITS["ball operations"] + 1)  # outside of a file
    with limited():
        with limited():
            charge("ball operations", LIMITS["ball operations"])
        with pytest.raises(RefusedError, match=f"more than {LIMITS['ball operations']} ball"):
            charge("ball operations", 1)


def test_fractions_are_charged_for_their_common_denominator():
    below = (1 << 2000) + 1
    near = f"{below - 1}/{below}"
    once = 2001**2 >> 19
    spent("ball operations", once, (reading.numbers, [near], "it"))
    for rows, amount in (([[0.5, near]], once), ([[near, 0.5], [near]], 3 * once), ([3, [1]], 0)):
        spent("ball operations", amount, (charge_records, {"matrix": rows}))
    for data in ({"other": [[near]]}, {"matrix": 5}, {"matrix": [[near, "a third"]]}):
        spent("ball operations", 0, (charge_records, data))
