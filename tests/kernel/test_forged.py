"""Forged terms: each is refused, or proves nothing that an adversary exceeds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from flint import arb, fmpq

from cvxleak.kernel.budget import limited
from cvxleak.kernel.leakage import RecordLeakage
from cvxleak.kernel.numbers import RefusedError, lower, precision
from cvxleak.kernel.reading import array, pack
from cvxleak.kernel.terms import Leaf, Shape, read_term
from tests.kernel.forging import (
    CELLS,
    CONTRACTION,
    GAIN,
    HONEST,
    LIMITED,
    PROBLEM,
    SET,
    SHARE,
    VERTICES,
    WITNESS,
    N,
    attained,
    cells,
    changed,
    chord,
    close,
    nothing,
    prove,
    share,
    with_,
)


@pytest.fixture(autouse=True)
def _precise() -> Iterator[None]:
    with precision(), limited(), np.errstate(all="ignore"):
        yield


@pytest.mark.parametrize("name", HONEST)
def test_honest_terms_are_above_the_witness(name: str) -> None:
    assert attained() > 0.1
    assert attained() <= prove(HONEST[name]) < 3


REFUSED: dict[str, Any] = {
    # Shapes and types.
    "a law of another length": close(SHARE | {"t": [1]}),
    "share without values": close(share()),
    "share with values of one": close(share(VERTICES)),
    "a mixture that drops a share's part": close({"rule": "mix", "weights": [1], "parts": [SHARE]}),
    "a golden bound at a law of one output": close({"rule": "golden", "t": [1]}),
    "a slab at too few bounds": close(share(*[{"rule": "slab", "tau": [1], "of": VERTICES}] * 2)),
    "a value's cover with symmetries": close(
        share(*[CELLS | {"symmetries": pack([range(N)], "<i4")}] * 2)
    ),
    "a contraction at a law of another length": close(share(*[CONTRACTION | {"w": [1, 1]}] * 2)),
    "NaN in text": close(SHARE, "nan"),
    # Keys, rules and judgements.
    "a cache as a key": with_(HONEST["contraction"], "of.values.0.eta", 0),
    "an unknown rule": close({"rule": "magic"}),
    "a rule that is no text": close({"rule": ["share"]}),
    "a missing key": with_(HONEST["share"], "of.t", ...),
    "J in place of B": SHARE,
    "B in place of J": close(close(SHARE)),
    "V in place of J": close(VERTICES),
    "J in place of V": close(share(SHARE, SHARE)),
    "a cover in place of V": close(share(CELLS, CELLS)),
    # Numbers.
    "a negative multiplier": close(SHARE, -1),
    "true as a number": close(SHARE, True),
    "infinity": close(SHARE, 1e999),
    "limits of none": close(SHARE, 0.1, [1]),
    "a negative law": close(SHARE | {"t": [2, -1, 0]}),
    "a law of nothing": close(SHARE | {"t": [0, 0, 0]}),
    "a law without an output": close(share(VERTICES, VERTICES, t=[1, 1, 0])),
    "a tangent's law without an output": close(share(CONTRACTION, CONTRACTION, t=[1, 1, 0])),
    "a tangent where a group has no weight": close(share(*[CONTRACTION | {"w": [1, 1, 0]}] * 2)),
    "a leaf's number outside of covers": close(SHARE, {"leaf": 0}),
    "no numbers of a leaf outside of covers": close(SHARE) | {"limits": {"leaf": [0, 0]}},
    "a share of noise of 0": with_(HONEST["smoothed"], "of.share", 0),
    "nothing but noise": with_(HONEST["smoothed"], "of.share", 1),
    "a negative share of noise": with_(HONEST["smoothed"], "of.share", -0.1),
    "noise of a negative law": with_(HONEST["smoothed"], "of.t", [2, -1, 1]),
    "a bound of what has noise": with_(HONEST["smoothed"], "of.of", HONEST["share"]),
    # Partitions.
    "a partition with a part twice": with_(HONEST["price"], "parts", [[0, 1], [1, 2]]),
    "a partition without an output": with_(HONEST["price"], "parts", [[0], [1]]),
    "an empty part": with_(HONEST["price"], "parts", [[0, 1], [2], []]),
    "a negative output": with_(HONEST["price"], "parts", [[0, 1], [-1]]),
    "an output that is no number": with_(HONEST["price"], "parts", [["0"], [1, 2]]),
    "an output that is true": with_(HONEST["price"], "parts", [[0], [True, 2]]),
    "a price's negative law": with_(HONEST["price"], "t", [-1, 1, 1]),
    "more than noise": with_(HONEST["smoothed"], "of.share", 2),
    "a price's law of parts": with_(HONEST["price"], "t", [1, 1]),
    "a mass that no price is left for": with_(HONEST["price"], "t", [0, 0, 1]),
    # Rules of their own.
    "equal": {"rule": "equal"},
    "too few choices": {"rule": "choices", "inputs": pack(np.ones((1, 2)), "<f8")},
    "choices of a negative law": {"rule": "choices", "inputs": pack([[2, -1]] * 9, "<f8")},
    "choices of one value": {"rule": "choices", "inputs": pack(np.ones((9, 1)), "<f8")},
    "choices of no law": {"rule": "choices", "inputs": pack(np.zeros((9, 2)), "<f8")},
    "a factor of information": {"rule": "factor", "times": 1, "theta": [1], "of": CELLS},
    "the prior of information": close({"rule": "prior", "theta": [1], "of": SHARE}),
    # Packed arrays.
    "another type": HONEST["choices"] | {"inputs": pack(np.ones((9, 2)), "<f8") | {"dtype": ">f8"}},
    "another size": HONEST["choices"]
    | {"inputs": pack(np.ones((9, 2)), "<f8") | {"shape": [10, 2]}},
    "a negative size": HONEST["choices"]
    | {"inputs": pack(np.ones((9, 2)), "<f8") | {"shape": [-9, -2]}},
    "no base64": HONEST["choices"] | {"inputs": pack(np.ones((9, 2)), "<f8") | {"data": "?"}},
    "a size in floats": HONEST["choices"]
    | {"inputs": pack(np.ones((9, 2)), "<f8") | {"shape": [9.0, 2]}},
    "too few bytes": HONEST["choices"]
    | {"inputs": pack(np.ones((9, 2)), "<f8") | {"data": pack(np.ones(17), "<f8")["data"]}},
    "very many bytes in few": HONEST["choices"]
    | {"inputs": pack(np.ones((9, 2)), "<f8") | {"data": pack(np.zeros(10**6), "<f8")["data"]}},
    "a key that no array has": HONEST["choices"]
    | {"inputs": pack(np.ones((9, 2)), "<f8") | {"note": 1}},
    "very many bytes": HONEST["choices"]
    | {"inputs": pack(np.ones((9, 2)), "<f8") | {"shape": [1 << 40, 2]}},
}


@pytest.mark.parametrize("name", REFUSED)
def test_forged_terms_are_refused(name: str) -> None:
    assert nothing(REFUSED[name])


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_packed_numbers_are_finite(value: float) -> None:
    with pytest.raises(RefusedError, match="not finite"):
        array(pack([1.0, value], "<f8"), "it", "f")


def test_a_law_that_is_zero_where_no_row_is_not_leaves_nothing_out() -> None:
    # Choices of two rows that exclude each other, and an output that none of a value's rows has.
    told = changed(channel={"matrix": [[1, 0, 0], ["1/2", "1/2", 0], [0, 1, 0], [0, "1/2", "1/2"]]})
    even, told_all = pack(np.ones((9, 2)), "<f8"), pack([[1.0, 0.0]] * 9, "<f8")
    assert prove({"rule": "choices", "inputs": even}, problem=told) >= attained(told)
    assert nothing({"rule": "choices", "inputs": told_all}, told)
    silent = changed(channel={"matrix": [[f"1/{n}", f"{n - 1}/{n}", 0] for n in (2, 3, 4, 5)]})
    for t in ([1, 1, 0], [1, 1, 1]):
        for value in (VERTICES, CONTRACTION):
            assert 0 < attained(silent) <= prove(close(share(value, value, t=t)), problem=silent)


@pytest.mark.parametrize("name", ["share", "alphabet", "cells"])
def test_honest_terms_of_sets_are_above_a_witness(name: str) -> None:
    phi = [[1 - x for x in (0.2, 0.5, 0.8)], [0.2, 0.5, 0.8]]
    statement = RecordLeakage.read(SET)
    term = {"rule": "point", "group": 0, "weights": WITNESS, "posteriors": phi}
    assert 0.05 < lower(statement.lower(term)) <= prove(HONEST[name], problem=SET) < 3


@pytest.mark.parametrize(
    "term",
    [
        HONEST["price"],
        HONEST["contraction"],
        HONEST["ratio"],
        HONEST["smoothed"],
        HONEST["choices"],
        {"rule": "equal"},
        close(SHARE | {"t": [1, 0, 0]}),
    ],
)
def test_what_needs_one_channel_is_refused_of_sets(term: Any) -> None:
    assert nothing(term, SET)


@pytest.mark.parametrize("name", sorted(set(HONEST) - {"cells"}))
def test_what_is_about_information_is_refused_of_other_gains(name: str) -> None:
    assert nothing(HONEST[name], changed(**GAIN, form="rise"))


def limited_close() -> dict[str, Any]:
    return close(chord()) | {"limits": {"leaf": [0, 1]}}


def test_limits_have_multipliers_that_are_not_negative() -> None:
    for multiplier in (0, 0.2):
        assert prove(close(SHARE, 0.1, [multiplier]), problem=LIMITED) >= attained(LIMITED)
        term = cells(limited_close(), [[multiplier]])
        assert prove(term, problem=LIMITED) >= attained(LIMITED)
    for term in (
        close(SHARE, 0.1, [-0.2]),
        close(SHARE, 0.1),
        close(SHARE, 0.1, [1, 1]),
        cells(limited_close(), [[-0.2]]),
    ):
        assert nothing(term, LIMITED)


@pytest.mark.parametrize("share", [0, 1, 2])
def test_a_share_of_noise_is_between_0_and_1(share: float) -> None:
    with pytest.raises(RefusedError, match="between 0 and 1"):
        prove(with_(HONEST["smoothed"], "of.share", share))


def test_a_smoothed_majorant_is_that_of_the_mixture_over_what_is_left() -> None:
    (view,) = RecordLeakage.read(PROBLEM).views
    s, t = fmpq(1, 4), [fmpq(1, 2), fmpq(1, 3), fmpq(1, 6)]
    data = {"rule": "smoothed", "share": "1/4", "t": ["1/2", "1/3", "1/6"], "of": SHARE}
    found = read_term(data, "J", Shape(view)).evaluate(view, Leaf())
    for mixed, row in zip(found.sharing.rows, view.rows, strict=True):
        for x, y, z in zip(mixed.lo, row.lo, t, strict=True):
            assert abs(x - (y * (1 - s) + s * z)) < 1e-30
    assert abs(found.sharing.q - fmpq(4, 3)) < 1e-30
    doubt = -(arb(s) * arb(s).log() + arb(1 - s) * arb(1 - s).log())
    assert all(abs(x - doubt * fmpq(4, 3)) < 1e-30 for x in found.c)
    data |= {"of": {"rule": "alphabet"}}
    assert abs(read_term(data, "J", Shape(view)).evaluate(view, Leaf()).kappa - fmpq(4, 3)) < 1e-30


def test_outputs_may_be_merged_twice() -> None:
    again = {"rule": "price", "parts": [[0, 1]], "t": [1, 1], "of": close(SHARE | {"t": [1]})}
    assert attained() <= prove(HONEST["price"] | {"of": again}) < 3


def test_a_price_needs_no_law_of_outputs_that_stay_as_they_are() -> None:
    assert not nothing(with_(HONEST["price"], "t", [1, 1, 0]))
