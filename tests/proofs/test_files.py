"""What `verify` makes of files: several certificates in one, units, and files of any kind."""

import copy
import dataclasses
import hashlib
import json
import math
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cvxleak.audit import balance, record_leakage
from cvxleak.core.errors import CertificateError, ValidationError
from cvxleak.envelope import pml_envelope
from cvxleak.kernel.claims import KINDS
from cvxleak.model import Mechanism, RecordSpace
from cvxleak.proofs import Certificate, read_certificates, save_certificates, verify
from cvxleak.proofs.checker import PROVERS, Prover

CHANNEL = [[0.9, 0.1], [0.2, 0.8]]


def local() -> Mechanism:
    return Mechanism.from_channel(RecordSpace.binary(1), CHANNEL)


@pytest.fixture(scope="module")
def certificates() -> list[Certificate]:
    """Certificates in either format: what the kernel proves is in that of schema version 3."""
    mechanism = Mechanism.from_channel(RecordSpace.binary(2), [[0.9, 0.1], *CHANNEL, [0.4, 0.6]])
    found = [
        pml_envelope([0.4, 0.6], CHANNEL, 0.2),
        record_leakage(local(), 0.5),
        record_leakage(mechanism, 1.2, tol=1e-2),
        balance(mechanism, 1.2, tol=1e-2),
    ]
    return [bound.certificate for bound in found]


@pytest.fixture
def file(tmp_path):
    return tmp_path / "proof.json"


def rehashed(certificate: Certificate, **changes) -> Certificate:
    names = [field.name for field in dataclasses.fields(certificate)]
    parts = {name: copy.deepcopy(getattr(certificate, name)) for name in names}
    return Certificate(**(parts | changes))


def with_end(content: dict, end: str, value: Any) -> dict:
    """Return a file's content with another claimed end."""
    if "ends" in content:
        ends = content["ends"]
        return {**content, "ends": {**ends, end: {**ends[end], "value": value}}}
    return {**content, "claim": {**content["claim"], end: value}}


def hashed(content: dict) -> dict:
    """Return a content with a hash that fits."""
    rest = {key: part for key, part in content.items() if key != "sha256"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return {**rest, "sha256": hashlib.sha256(text.encode()).hexdigest()}


def test_both_formats_are_here(certificates):
    assert [one.schema_version for one in certificates] == [2, 3, 3, 3]
    for certificate in certificates:
        content = certificate.to_dict()
        assert hashed(content) == content
        assert verify(with_end(content, "upper", 10.0)).reason.endswith("it was changed")
        assert verify(hashed(with_end(content, "upper", 10.0))).passed
        assert not verify(hashed(with_end(content, "upper", 0.0))).passed


def test_several_certificates_in_one_file(certificates, file):
    save_certificates(certificates, file)
    assert json.loads(file.read_text())["format"] == "cvxleak-certificates"
    answer = verify(file)
    assert (answer.passed, answer.reason) == (True, "all 4 certificates pass")
    assert [part.certificate for part in answer.parts] == certificates
    for part, certificate in zip(answer.parts, certificates, strict=True):
        assert part.passed
        assert certificate.lower <= part.lower <= part.upper <= certificate.upper
    assert verify(json.loads(file.read_text())) == answer
    assert [Certificate.from_dict(member) for member in read_certificates(file)] == certificates


def test_shown_is_the_claim_and_not_the_data(certificates):
    for certificate in certificates:
        assert str(certificate.lower) in repr(certificate)
        assert len(repr(certificate)) < 200
        assert "weights" not in repr(verify(certificate))


def test_one_certificate_is_written_as_itself(certificates, file):
    save_certificates(certificates[:1], file)
    assert Certificate.load(file) == certificates[0]
    assert read_certificates(file) == [certificates[0].to_dict()]
    answer = verify(file)
    assert (answer.passed, answer.parts, answer.certificate) == (True, (), certificates[0])


def test_no_certificate_is_no_file(file):
    with pytest.raises(ValidationError, match="certificates: found none"):
        save_certificates([], file)
    assert not file.exists()


def test_a_bundle_passes_only_if_all_pass(certificates, file):
    for place, certificate in enumerate(certificates):
        changed = list(certificates)
        changed[place] = rehashed(certificate, upper=certificate.upper - 1e-2)
        save_certificates(changed, file)
        answer = verify(file)
        assert (answer.passed, answer.reason) == (False, "1 of 4 certificates do not pass")
        assert [part.passed for part in answer.parts] == [i != place for i in range(4)]
        assert "upper bound" in answer.parts[place].reason


def test_malformed_bundles_fail(certificates):
    member = certificates[0].to_dict()
    whole = {"format": "cvxleak-certificates", "version": 1, "certificates": [member]}
    assert verify(whole).passed
    for change in (
        {"version": 2},
        {"version": None},
        {"version": True},
        {"version": 1.0},
        {"certificates": []},
        {"certificates": None},
        {"certificates": member},
        {"certificates": [3]},
        {"certificates": ["proof.json"]},
        {"certificates": [member, {}]},
        {"certificates": [member, {"format": "cvxleak-certificates"}]},
        {"note": "trust me"},
    ):
        answer = verify(whole | change)
        assert not answer.passed
        assert answer.reason
    assert not verify({key: whole[key] for key in ("format", "version")}).passed
    with pytest.raises(CertificateError, match="not a cvxleak certificate"):
        Certificate.from_dict(whole)


@pytest.mark.parametrize("place", [0, 1])
def test_units(certificates, place):
    certificate = certificates[place]
    content = certificate.to_dict()
    assert content.get("claim", content)["unit"] == certificate.unit == "nats"
    # The same numbers are no claim in bits, with a hash that fits or without.
    for unit in ("bits", "probability", "", None, 1):
        answer = verify(rehashed(certificate, unit=unit))
        assert not answer.passed
        assert not answer.about
        assert "in nats" in answer.reason
    content = json.loads(json.dumps(content).replace('"nats"', '"bits"'))
    assert "SHA-256" in verify(content).reason
    assert "in nats" in verify(hashed(content)).reason


@pytest.mark.parametrize("place", [0, 1])
def test_what_each_end_is_about(certificates, place):
    certificate = certificates[place]
    content = certificate.to_dict()
    if place == 0:
        assert certificate.claim == content["claim"]
    assert certificate.claim["about"] == {"lower": "problem", "upper": "problem"}
    answer = verify(certificate)
    assert {name: end.about for name, end in answer.ends.items()} == certificate.about
    assert all(end.proved and not end.reason for end in answer.ends.values())
    for about in (
        {"lower": "problem"},
        {"lower": "problem", "upper": "truth"},
        {"lower": "problem", "upper": ["problem"]},
        {"lower": "problem", "upper": "problem", "middle": "problem"},
        ["lower", "upper"],
        None,
    ):
        with pytest.raises(CertificateError, match="about: found"):
            rehashed(certificate, about=about)
        if place == 0:
            assert (
                "about: found"
                in verify(content | {"claim": content["claim"] | {"about": about}}).reason
            )
    narrow = {"lower": "problem", "upper": "half-spaces"}
    assert verify(rehashed(certificate, about=narrow)).reason == (
        "about: this kind of file proves nothing about half-spaces"
    )
    if place == 1:
        for about in ("truth", ["problem"], None):
            ends = {**content["ends"], "upper": {**content["ends"]["upper"], "about": about}}
            assert "about: found" in verify(hashed({**content, "ends": ends})).reason


@pytest.mark.parametrize("place", [0, 1])
def test_an_end_that_is_not_claimed(certificates, file, place):
    certificate = certificates[place]
    for end, other in (("lower", "upper"), ("upper", "lower")):
        half = rehashed(certificate, about={end: "problem"}, **{other: None})
        half.save(file)
        content = json.loads(file.read_text())
        assert other not in content["ends"] if place else content["claim"][other] is None
        if place == 0:
            assert Certificate.load(file) == half
        answer = verify(file)
        assert (answer.passed, list(answer.ends)) == (True, [end])
        assert answer.reason == f"the {end} bound is proved; no other bound is claimed"
        worse = {"lower": 0.1, "upper": -0.1}[end] + getattr(half, end)
        assert not verify(rehashed(half, **{end: worse})).passed
        with pytest.raises(CertificateError, match="a bound is missing"):
            rehashed(half, **{end: None}, about={})
    with pytest.raises(CertificateError, match="a bound is missing"):
        rehashed(certificates[0], upper=None, schema_version=1, about={})


@pytest.mark.parametrize("place", [0, 1])
def test_each_end_gets_its_verdict(certificates, place):
    certificate = certificates[place]
    for end, other, shift in (("lower", "upper", 0.1), ("upper", "lower", -0.1)):
        answer = verify(rehashed(certificate, **{end: getattr(certificate, end) + shift}))
        assert not answer.passed
        assert not answer.about
        assert [answer.ends[name].proved for name in (end, other)] == [False, True]
        assert answer.reason.startswith(f"the {end} bound: {getattr(answer, end)!r} is proved, not")
        assert answer.reason.endswith(f"; the {other} bound is proved")
    missing = Prover(lambda *_: (0.4, math.inf, "the witness is missing"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(PROVERS, "guess", missing)
        for upper in (0.5, math.inf):
            answer = verify(Certificate("guess", {}, 0.3, upper, {}, {}))
            assert (
                answer.reason
                == "the upper bound: the witness is missing; the lower bound is proved"
            )
            assert not answer.passed


def test_a_term_that_is_refused_leaves_the_other_end(certificates):
    certificate = certificates[2]
    for part, other in (("witness", "upper"), ("proof", "lower")):
        answer = verify(rehashed(certificate, **{part: {"rule": "magic"}}))
        assert not answer.passed
        assert [name for name, end in answer.ends.items() if end.proved] == [other]
        assert answer.reason.endswith(f"; the {other} bound is proved")
        assert "malformed" not in answer.reason


def test_schema_versions(certificates, file):
    old = rehashed(certificates[0], schema_version=1, about={})
    assert set(old.claim) == {"lower", "upper", "unit"}
    old.save(file)
    assert json.loads(file.read_text())["schema_version"] == 1
    assert Certificate.load(file) == old
    answer = verify(file)
    assert (answer.passed, answer.reason) == (True, "both bounds are proved")
    for version in (4, -1, True, 2.0, "2"):
        with pytest.raises(CertificateError, match="schema version"):
            rehashed(certificates[0], schema_version=version)
    for version in (0, 4, True, 2.0, "2", None):
        for certificate in certificates[:2]:
            content = certificate.to_dict() | {"schema_version": version}
            assert "schema version" in verify(content).reason
    # Each kind has its format.
    for certificate in certificates[:2]:
        other = rehashed(certificate, schema_version=5 - certificate.schema_version)
        assert verify(other).reason.endswith("make the certificate again")
    content = old.to_dict()
    content["claim"] = certificates[0].claim
    assert not verify(content).passed


def test_a_kind_may_have_another_unit(monkeypatch, file):
    prover = Prover(lambda *_: (0.4, 0.5), unit="probability", about=lambda _: "a guess")
    monkeypatch.setitem(PROVERS, "guess", prover)
    certificate = Certificate("guess", {}, 0.3, 0.5, {}, {}, unit="probability")
    certificate.save(file)
    assert Certificate.load(file) == certificate
    answer = verify(file)
    assert (answer.passed, answer.lower, answer.upper) == (True, 0.4, 0.5)
    assert answer.about == "a guess"
    assert not verify(Certificate("guess", {}, 0.3, 0.5, {}, {})).passed


def test_files_that_cannot_be_read(file):
    for path in (file, file.parent, "no\0where"):
        assert verify(path).reason.startswith("cannot read ")
        with pytest.raises(ValidationError, match="path: cannot read"):
            Certificate.load(path)
        with pytest.raises(ValidationError, match="path: cannot read"):
            read_certificates(path)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "as JSON"),
        ('{"format": "cvxleak-certificate", "format": "cvxleak-certificate"}', "there twice"),
        ('{"format": "cvxleak-certificate", "claim": {"lower": NaN}}', "NaN is not a finite"),
        ('{"format": -Infinity}', "-Infinity is not a finite"),
        ('{"format": 1e999}', "1e999 is not a finite"),
        ("[" * 200_000, "as JSON"),
        ('{"a":' * 200_000, "as JSON"),
        ('{"format": ' + "9" * 5000 + "}", "as JSON"),
        ("[1]", "not a cvxleak certificate"),
        ("null", "not a cvxleak certificate"),
        ('"cvxleak-certificate"', "not a cvxleak certificate"),
        ('{"format": "cvxleak-certificate"}', "schema version None"),
        ('{"format": "cvxleak-certificate", "schema_version": 1}', "the certificate: without "),
    ],
)
def test_what_is_no_certificate(file, text, reason):
    file.write_text(text)
    answer = verify(file)
    assert not answer.passed
    assert reason in answer.reason
    assert len(answer.reason) < 1000
    with pytest.raises(CertificateError):
        Certificate.load(file)


def test_bytes_that_are_no_text_are_no_certificate(file):
    file.write_bytes(b'{"format": "\xf1"}')
    assert "utf-8" in verify(file).reason
    with pytest.raises(CertificateError, match="cannot read"):
        Certificate.load(file)


def test_byte_order_mark_is_fine(certificates, file):
    file.write_text("\ufeff" + json.dumps(certificates[0].to_dict()), encoding="utf-8")
    assert verify(file).passed


def deep(levels: int) -> list:
    nest: list = []
    for _ in range(levels):
        nest = [nest]
    return nest


@pytest.mark.parametrize(
    "value",
    [
        deep(100_000),
        math.nan,
        -math.inf,
        10**400,
        10**5000,
        {1: 2},
        {None: 0},
        object(),
        {1j},
        b"x",
    ],
    ids=lambda value: type(value).__name__,
)
def test_content_that_no_file_can_hold(certificates, value):
    for certificate in certificates[:2]:
        content = certificate.to_dict()
        for part in content:
            assert not verify({**content, part: value}).passed
        for end in ("lower", "upper"):
            assert not verify(with_end(content, end, value)).passed
    for part in ("problem", "witness", "proof", "kind", "unit"):
        for certificate in certificates[:2]:
            try:
                changed = rehashed(certificate, **{part: value})
            except RecursionError:
                continue
            assert not verify(changed).passed


@pytest.mark.parametrize("place", [0, 1])
def test_infinite_ends_are_saved_as_text(certificates, file, place):
    """No more is claimed by an infinite upper end, and too much by a lower one."""
    vague = rehashed(certificates[place], upper=math.inf)
    vague.save(file)
    content = json.loads(file.read_text())
    assert (content["ends"]["upper"]["value"] if place else content["claim"]["upper"]) == "inf"
    assert Certificate.load(file) == vague
    assert verify(file).passed
    rehashed(vague, lower=math.inf).save(file)
    assert "lower bound" in verify(file).reason
    for value in (math.nan, -math.inf):
        with pytest.raises(CertificateError, match="not JSON"):
            rehashed(vague, lower=value).save(file)


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=300))
def test_random_bytes(tmp_path_factory, data):
    path = tmp_path_factory.getbasetemp() / "random.json"
    path.write_bytes(data)
    answer = verify(path)
    assert not answer.passed
    assert answer.reason


def with_hash(content: dict) -> dict:
    try:
        return hashed(content)
    except ValueError:  # no JSON
        return content


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=10,
)


@settings(max_examples=150, deadline=None)
@given(
    st.fixed_dictionaries(
        {
            "format": st.sampled_from(["cvxleak-certificate", "cvxleak-certificates"]),
            "schema_version": st.sampled_from([1, 2, 3]),
            "version": st.just(1),
            "certificates": JSON | st.lists(JSON, min_size=1, max_size=3),
            "kind": st.sampled_from(sorted(PROVERS)) | JSON,
            "claim": JSON
            | st.fixed_dictionaries(
                {"lower": JSON, "upper": JSON, "unit": JSON}, optional={"about": JSON}
            ),
            "problem": JSON,
            "witness": JSON,
            "proof": JSON,
            "versions": JSON,
        }
    )
    | st.fixed_dictionaries(
        {
            "format": st.just("cvxleak-certificate"),
            "schema_version": st.just(3),
            "kind": st.sampled_from(sorted(KINDS)) | JSON,
            "problem": JSON,
            "unit": st.just("nats"),
            "ends": JSON
            | st.dictionaries(
                st.sampled_from(["lower", "upper"]),
                st.fixed_dictionaries({"value": JSON, "about": st.just("problem"), "by": JSON}),
            ),
            "versions": st.just({}),
        }
    ).map(with_hash)
    | JSON
)
def test_random_json(content):
    if isinstance(content, dict):
        answer = verify(content)
        assert not answer.passed
        assert answer.reason


def places(content, path=()):
    yield path
    if isinstance(content, (dict, list)):
        items = content.items() if isinstance(content, dict) else enumerate(content)
        for key, value in items:
            yield from places(value, (*path, key))


ODD = [
    None,
    True,
    -1,
    0,
    3,
    10**30,
    0.5,
    -1e308,
    1e-320,
    "",
    "x",
    "1",
    [],
    {},
    [[]],
    [None],
    {"a": 1},
]


@pytest.mark.parametrize("place", range(4))
def test_random_mutations_never_raise(certificates, place, recwarn):
    """Any part replaced by something odd, with a hash that fits: an answer, and no false claim."""
    rng = random.Random(place)
    original = certificates[place].to_dict()
    del original["sha256"]
    paths = [path for path in places(original) if path and path[0] not in ("format", "versions")]
    for _ in range(150):
        content = copy.deepcopy(original)
        for path in rng.sample(paths, rng.choice([1, 1, 2])):
            node = content
            try:
                for key in path[:-1]:
                    node = node[key]
                node[path[-1]] = rng.choice(ODD)
            except (KeyError, IndexError, TypeError):
                continue  # an earlier mutation took this place away
        answer = verify(hashed(content))
        assert answer.reason
        if answer.passed:
            assert answer.certificate is not None
            claimed = answer.certificate.lower, answer.certificate.upper
            assert claimed[0] is None or claimed[0] <= answer.lower
            assert claimed[1] is None or answer.upper <= claimed[1]
    assert not recwarn
