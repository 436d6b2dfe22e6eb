"""The second checker's arithmetic, its reading of hostile files, and its guards, one by one."""

import base64
import copy
import json
import random
import zlib
from decimal import Decimal, getcontext
from fractions import Fraction

import pytest

from cvxleak import check
from tests.second_checker.making import made
from tests.second_checker.mutating import signed


def verdict(data):
    (found,) = check.check_text(json.dumps(signed(data)))
    return found


@pytest.fixture
def decimals():
    getcontext().prec = 400
    yield
    getcontext().prec = 28


@pytest.mark.parametrize("bits", check.DIGITS[:2])
def test_logarithms_and_exponentials_are_enclosed_within_some_units(bits, decimals, monkeypatch):
    monkeypatch.setattr(check, "FX", check.Precision(bits))
    rng, one = random.Random(1), Decimal(2) ** bits
    for _ in range(200):
        size = rng.choice([3, 60, 300, 1100])
        a, b = rng.randrange(1, 1 << size), rng.randrange(1, 1 << rng.choice([3, size]))
        low, high = check.log_ratio(a, b)
        assert low <= (Decimal(a) / Decimal(b)).ln() * one <= high
        assert high - low <= 4
        x = rng.randrange(-(50 << bits), 10 << bits)
        low, high = check.exp(x)
        true = (Decimal(x) / one).exp() * one
        assert low <= true <= high
        assert high - low <= 4 + int(true / one)


def test_products_with_logarithms_are_enclosed_also_at_zero(decimals):
    one = 1 << check.FX.bits
    for low, high in [(0, 0), (0, 1), (0, one // 2), (1, 2), (one // 3, one // 3 + 1), (5, one)]:
        a, b = check.x_log_x((low, high))
        for x in {low, high, (low + high) // 2, min(max(one * 367879 // 1000000, low), high)}:
            value = Decimal(x) / one
            assert a <= (value * value.ln() * one if x else 0) <= b


def packed(raw, shape, dtype="<f8"):
    data = base64.b64encode(zlib.compress(raw, 9)).decode()
    return {"dtype": dtype, "shape": shape, "data": data}


@pytest.mark.parametrize(
    "text",
    [
        '{"format": NaN}',
        '{"format": 1, "format": 2}',
        "[" * 100_000,
        "",
        "[]",
        '{"format": "cvxleak-certificate"}',
        '{"format": "cvxleak-certificates", "version": true, "certificates": [{}]}',
        "1" * 10_000,
    ],
)
def test_what_is_no_certificate_is_unusable(text):
    assert check.worst(check.check_text(text)) == check.UNUSABLE


def test_a_changed_certificate_is_noticed():
    data = made("capacity")
    data["claim"]["lower"] -= 0.1
    assert check.worst(check.check_text(json.dumps(data))) == check.UNUSABLE


@pytest.mark.parametrize(
    "shape", [[1 << 23, 2], [1 << 12, 2], [-1, 2], [4], [True, 2], [1 << 62, 2]]
)
def test_nothing_larger_than_declared_is_expanded(shape):
    data = made("choices")
    bomb = packed(bytes(1 << 27), shape)
    data["proof"]["groups"][0]["choices"] = bomb
    assert verdict(data).code == check.UNUSABLE


def test_the_sum_of_all_runs_is_limited():
    data = made("cells")
    query = data["problem"]["mechanism"]["query"]
    query["space"]["alphabets"] = [[[0, 1], 1 << 23]] * 24
    query["contributions"] = [[[[0], [1]], 1 << 23]] * 24
    assert verdict(data).code == check.UNUSABLE


def changes():
    """Yield a name and a change to a certificate that takes away what its proof needs."""

    def groups(data):
        return data["proof"]["groups"]

    yield "table", lambda d: groups(d).pop(0)
    yield "different records", lambda d: groups(d).pop(1)
    yield "table", lambda d: groups(d).__setitem__(1, {"same_as": 0})
    yield "choices", lambda d: d["problem"].update(entropy_floor=4.1)
    yield "choices", lambda d: d["witness"].update(records=[7])
    yield "one record", lambda d: d["witness"].update(records=[0])
    yield "cells", lambda d: groups(d)[0]["cells"].update(outputs=[[0], [1]])
    yield "cells", lambda d: groups(d)[0]["cells"].update(outputs=[[0, 1], [2]])
    yield "cells with symmetries", lambda d: groups(d)[0]["cells"].pop("symmetries")
    yield "sharing", lambda d: groups(d)[0]["sharing"].update(multiplier=-0.1)
    yield "sharing", lambda d: groups(d)[0]["sharing"]["values"].pop()
    yield "factor of a guess", lambda d: groups(d)[0]["cells"].update(least=[1.0, 0.0])
    yield "factor of a guess", lambda d: groups(d)[0]["cells"].update(least=[1.0, -0.5])
    yield "factor of a guess", lambda d: groups(d)[0]["cells"].pop("times")
    yield "factor of a guess", lambda d: groups(d)[0]["cells"].update(tangents=2)
    yield "rise of a guess", lambda d: groups(d)[0]["cells"].update(outputs=[[0, 1], [2]])
    yield "rise of a guess", lambda d: groups(d)[0]["cells"].update(times=1.0)
    yield "rise of a guess", lambda d: d["problem"].update(form="posterior")
    yield "rise of a guess", lambda d: d["problem"].pop("form")
    yield "rise of a norm", lambda d: d["problem"]["gain"].update(alpha=1.0)
    yield "rise of many actions", lambda d: groups(d)[0]["cells"].pop("tangents")
    yield "rise of many actions", lambda d: d["problem"]["gain"]["table"].pop()
    yield "guess in two tries", lambda d: d["problem"]["gain"].update(tries=0)
    yield "independent, of a floor", lambda d: d["problem"].update(entropy_floor=2.7)
    yield "independent, of a floor", lambda d: d["witness"].update(record=1)
    yield "independent, of a floor", lambda d: d["witness"]["laws"].pop()
    yield "independent, of a floor", lambda d: d["proof"].update(audit=None, contexts=None)
    yield "independent, of a symmetric table", lambda d: d["proof"]["contexts"].pop()
    yield "independent, of a symmetric table", lambda d: d["proof"]["contexts"].reverse()
    yield "independent, of no floor", lambda d: d["proof"]["inputs"].pop()
    yield "independent, likely values", lambda d: d["problem"]["laws"].update(least_probability=0.1)
    yield "independent, likely values", lambda d: d["problem"]["laws"].update(least_probability=0.6)
    yield "independent, likely values", lambda d: d["witness"].update(least_probability=0.2)
    yield "independent, likely values", lambda d: d["problem"]["laws"].update(record_floor=0.2)
    yield "independent, doubt of each", lambda d: d["problem"]["laws"].update(record_floor=0.3)
    yield "independent, doubt of each", lambda d: d["problem"]["laws"].update(record_floor=0.5)
    yield "independent, doubt of each", lambda d: d["proof"].update(least_probability=0.2)
    yield "independent, doubt of each", lambda d: d["witness"].update(least_probability=0.1)
    yield "independent, known laws", lambda d: d["witness"].update(record=3)
    yield "independent, known laws", lambda d: d["proof"]["inputs"].pop()
    yield "independent, known laws", lambda d: d["proof"]["inputs"].reverse()
    yield "independent, known laws", lambda d: d["problem"]["laws"]["vertices"].pop()
    yield "envelope", lambda d: d["witness"]["weights"].__setitem__(0, 1.5)
    yield "envelope", lambda d: d["proof"]["multipliers"].__setitem__(0, -1.0)
    yield "envelope", lambda d: d["proof"].update(level=1.0)
    yield "failure", lambda d: d["problem"].update(epsilon=1.0)
    yield "least epsilon", lambda d: d["problem"].update(budget=0.45)
    yield "least epsilon", lambda d: d["witness"].update(channel=[[1.0, 0, 0]] * 3)
    yield "least epsilon, box", lambda d: d["witness"]["supports"][0].update(level=-1.0)
    yield "least epsilon, delta", lambda d: d["proof"].update(level=9.0)
    yield "least epsilon, delta", lambda d: d["problem"].update(delta=0.04)
    yield "least leakage", lambda d: d["problem"].update(budget=0.05)
    yield "least leakage", lambda d: d["proof"]["cuts"][-1].update(multiplier=-1.0)
    yield "least leakage", lambda d: d["problem"].update(entropy_floor=1.9)
    yield "least leakage", lambda d: d["problem"]["rows"].update(generators=[])
    yield "least leakage, types", lambda d: d["problem"].update(budget=1.5)
    yield "own half-space", lambda d: d["problem"]["own"][0].update(at_least=-0.6)
    yield "own half-space", lambda d: d["proof"].update(own=[-1.0])
    yield "own further variables", lambda d: d["proof"].update(own=[0.1, 0.2, 0.3, 0.4, 0.5])
    yield "own further variables", lambda d: d["witness"].pop("further")
    yield "own further variables", lambda d: d["witness"]["further"].__setitem__(0, 0.5)
    yield "least distortion", lambda d: d["problem"].update(budget=0.01)
    yield "least distortion, silent", lambda d: d["problem"].update(budget=0.01)


@pytest.mark.parametrize(("name", "change"), list(changes()))
def test_a_proof_without_a_part_that_it_needs_is_refused(name, change):
    data = copy.deepcopy(made(name))
    change(data)
    assert verdict(data).code in (check.NOT_PROVED, check.UNUSABLE)


def test_a_leaf_cannot_be_left_out_but_for_a_symmetry():
    data = made("cells")
    cells = data["proof"]["groups"][0]["cells"]
    shape = cells["leaves"]["shape"]
    raw = zlib.decompress(base64.b64decode(cells["leaves"]["data"]))
    row = b"\x00\x00\x80\xbf" + bytes(4 * shape[1] - 4)  # -1 in place of the multiplier
    cells["leaves"] = packed(row + raw[len(row) :], shape, "<f4")
    assert verdict(data).code == check.NOT_PROVED


def test_records_that_are_not_alike_are_told_apart():
    query = check.Query(made("different records")["problem"]["mechanism"]["query"])
    assert len(check.required_groups(query, 1)) == 3
    alike = check.Query(made("cells")["problem"]["mechanism"]["query"])
    assert check.required_groups(alike, 2) == [(0, 1)]


def test_lumping_counts_all_contexts():
    for name in ("different records", "two moduli", "table"):
        mechanism = made(name)["problem"]["mechanism"]
        query = check.Query(mechanism["query"])
        channel = check.Channel(mechanism["channel"], query)
        listing = query.listing()
        for i in range(len(query.sizes)):
            lumped = check.Lumped(query, channel, [i])
            assert sum(lumped.counts) == query.space
            # By brute force: how often each row occurs with each value.
            stride = 1
            for size in query.sizes[i + 1 :]:
                stride *= size
            for g, (a, row, number) in enumerate(
                zip(lumped.values, lumped.order, lumped.counts, strict=True)
            ):
                same = [
                    x
                    for x, place in enumerate(listing)
                    if channel.order[place] == row and x // stride % query.sizes[i] == a
                ]
                assert len(same) == number, (name, i, g)


def test_a_decimal_is_meant_as_it_is_written(monkeypatch):
    monkeypatch.setattr(check, "READ", check.Reader(2))
    assert check.rational(0.3, "it") == Fraction(3, 10)
    assert check.rational("3/10", "it") == Fraction(3, 10)
    assert check.law([0.7, 0.2, 0.1], "it").fractions()[0] == Fraction(7, 10)
    monkeypatch.setattr(check, "READ", check.Reader(1))
    assert check.rational(0.3, "it") == Fraction(0.3)


def silent_channel(text):
    """Return a capacity's file, its channel and claims as they are written in the text."""
    data = {
        "format": "cvxleak-certificate",
        "schema_version": 2,
        "kind": "capacity",
        "problem": {"matrix": "MATRIX"},
        "claim": {
            "lower": "LOWER",
            "upper": 0.0,
            "unit": "nats",
            "about": {"lower": "problem", "upper": "problem"},
        },
        "witness": {"input": [0.5, 0.5]},
        "proof": {"output": [0.5, 0.5]},
        "versions": {},
    }
    whole = json.dumps(data)
    for name, value in text.items():
        whole = whole.replace(f'"{name}"', value)
    sha256 = signed(json.loads(whole))["sha256"]  # as a forger would: of the nearest floats
    return f'{whole[:-1]}, "sha256": "{sha256}"}}'


@pytest.mark.parametrize(
    ("lower", "row", "code"),
    [
        ("0.0", "[0.5, 0.50]", check.PROVED),
        ("0", "[5e-1, 0.5]", check.PROVED),
        ("1e-400", "[0.5, 0.5]", check.UNUSABLE),
        ("1e-99999999999", "[0.5, 0.5]", check.UNUSABLE),
        ("1e-9999999999999999999999", "[0.5, 0.5]", check.UNUSABLE),
        ("0.0", "[0.50000000000000000001, 0.49999999999999999999]", check.UNUSABLE),
        ("0.0", "[1e999, 0.5]", check.UNUSABLE),
        ("0.0", "[Infinity, 0.5]", check.UNUSABLE),
    ],
)
def test_a_decimal_that_is_no_float_is_not_rounded(lower, row, code):
    text = silent_channel({"LOWER": lower, "MATRIX": f"[[0.5, 0.5], {row}]"})
    (found,) = check.check_text(text)
    assert found.code == code, found.text


def test_each_entry_of_a_half_space_has_its_room():
    # A cell may be there several times. Its entries cancel here, and what they leave open is more
    # than the half-space asks for: nothing is left of it, for `verify` and for the second checker.
    data = made("own half-space")
    (space,) = data["problem"]["own"]
    (x, y, _) = space["entries"][0]
    check.READ = check.Reader(2)
    for large, limited in [(0.0, True), (2.0**45, False)]:
        entries = [*space["entries"], [x, y, large], [x, y, -large]]
        spaces = check.HalfSpaces([{**space, "entries": entries}], x + 1, y + 1)
        (priced, constant) = spaces.weighted([1.0], None)
        total = sum(a for *_, a in priced)
        assert (total < constant) is limited  # else q(y|x) = 1, the worst case, is let in
        row = [check.Law((0,) * y + (1,), 1)] * (x + 1)
        channel = type("Deterministic", (), {"rows": row})
        assert spaces.hold(channel, None) is not limited
