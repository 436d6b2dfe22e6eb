"""Forged certificates of designs: channels of one record, and rows of several."""

import itertools
import math

import numpy as np
import pytest
from flint import arb, fmpq

from cvxleak.core.errors import CertificateError
from cvxleak.kernel.numbers import precision
from cvxleak.kernel.reading import pack
from cvxleak.model import AdditiveQuery, Channel, Distortion, RecordSpace
from cvxleak.proofs import reading
from cvxleak.proofs.bounds.design_mixtures import mixture_above
from cvxleak.proofs.bounds.design_rows import Law, Rows, image, orbits, types_query
from cvxleak.proofs.bounds.user_rows import OwnRow, missed, priced, read_own
from cvxleak.proofs.checker import PROVERS
from cvxleak.proofs.design import exact_distortions, forces_constants, most_values, total_above
from cvxleak.proofs.exact import rational
from cvxleak.queries import count, from_table, parity
from tests.proofs.forging import (
    Parts,
    encloses,
    ends,
    proves_nothing_false,
    refused,
    tampered,
)

LOG_3 = math.log(3)
LEVEL = 0.13081203594113694
ROWS = [[0.75, 0.25], [0.25, 0.75]]
UNIFORM = {"on": "uniform", "weights": []}


def channel(rows=ROWS):
    return {"channel": Channel(rows).to_dict()}


def stated(**changes):
    return {
        "query": parity(1).to_dict(),
        "rows": {"form": "query"},
        "distortion": Distortion.hamming([0, 1]).to_dict(),
        "sources": [UNIFORM],
        "objective": {"size": 1},
        "entropy_floor": None,
        "priors": [UNIFORM],
        "budget": 0.25,
        "own": [],
    } | changes


def cut(multiplier, **adversary):
    return {"records": [0], "posterior": ROWS, "multiplier": multiplier, **adversary}


def proof(leakage=None, *, theta=1.0, beta=LOG_3, own=(), **adversary):
    adversary = adversary or {"prior": 0}
    return {
        "leakage": leakage,
        "cuts": [cut(theta, **adversary)],
        "sources": [beta],
        "own": list(own),
    }


CHOICES = {"rule": "choices", "inputs": pack(np.array([[0.5, 0.5]]), "<f8")}
AUDIT = {"rule": "max", "groups": [[CHOICES]]}
TOTAL = {"output": [0.5, 0.5], "multiplier": 0.0}
FREE = {"entropy_floor": 0.5, "priors": None}


def half_space(x, y, at_least, *, equal=False, further=(), coefficient=1.0):
    return {
        "entries": [[x, y, coefficient]],
        "further": [list(one) for one in further],
        "at_least": at_least,
        "equal": equal,
    }


OWN = [half_space(0, 0, 0.75), half_space(1, 1, 0.75)]

PARTS = {
    "priors": Parts("min-leakage", stated(), channel(), proof()),
    "floor": Parts("min-leakage", stated(**FREE), channel(), proof(AUDIT, weights=[0.5, 0.5])),
    "dataset": Parts(
        "min-leakage",
        stated(**FREE, objective={"size": 0}),
        channel(),
        tampered(
            Parts("", {}, {}, proof(TOTAL, weights=[0.5, 0.5])),
            {("proof", "cuts", 0, "records"): []},
        ).proof,
    ),
    "distortion": Parts(
        "min-distortion",
        stated(budget=LEVEL + 2.0**-50),
        channel(),
        proof(theta=1 / LOG_3, beta=1.0),
    ),
    "own": Parts(
        "min-leakage",
        stated(own=OWN, budget=None),
        channel(),
        proof(beta=0.0, own=[LOG_3 / 2, LOG_3 / 2]),
    ),
    "own equation": Parts(
        "min-leakage",
        stated(own=[half_space(0, 1, -0.25, equal=True, coefficient=-1.0), OWN[1]], budget=None),
        channel(),
        proof(beta=0.0, own=[LOG_3 / 2, LOG_3 / 2]),
    ),
}


@pytest.mark.parametrize(("name", "own"), [("priors", [0.0]), ("distortion", [0.0])])
def test_an_upper_end_that_the_witness_does_not_show_is_infinite(name, own):
    impossible = {("problem", "own"): [half_space(0, 1, 2.0)], ("proof", "own"): own}
    lower, upper, why = PROVERS[PARTS[name].kind].prove(*tampered(PARTS[name], impossible)[1:])
    assert (upper, why) == (math.inf, "the witness misses entry 0 of own")
    assert lower == pytest.approx(ends(PARTS[name])[0], abs=1e-12)


def least() -> arb:
    return arb(2).log() + arb("0.25") * arb("0.25").log() + arb("0.75") * arb("0.75").log()


@pytest.mark.parametrize("name", sorted(set(PARTS) - {"distortion"}))
def test_honest(name):
    if name.startswith("own"):
        lower, upper = ends(PARTS[name])
        assert LEVEL - 1e-11 < lower <= LEVEL < upper + 1e-15
    else:
        encloses(PARTS[name], least, 1e-9)


def test_honest_distortion():
    lower, upper = ends(PARTS["distortion"])
    assert upper == 0.25
    assert 0.25 - 1e-12 < lower <= 0.25


@pytest.mark.parametrize("name", PARTS)
def test_no_number_proves_too_much(name):
    truth = 0.25 if name == "distortion" else LEVEL
    proves_nothing_false(PARTS[name], truth, truth)


FORGED = [
    ("priors", {("problem", "budget"): 0.2499}, "distortion is above the budget"),
    ("distortion", {("problem", "budget"): LEVEL - 1e-9}, "not proved to be within the budget"),
    ("distortion", {("problem", "budget"): None}, "the problem has no budget"),
    ("priors", {("problem", "objective", "size"): 2}, "no groups of 2 records"),
    ("priors", {("problem", "objective", "note"): 2}, "the objective: it has no note"),
    ("priors", {("problem", "note"): 2}, "the problem: it has no note"),
    ("priors", {("problem", "entropy_floor"): 0.5}, "must be stated exactly once"),
    ("priors", {("problem", "priors"): None}, "must be stated exactly once"),
    ("priors", {("problem", "priors"): []}, "expected a list of distributions"),
    ("priors", {("problem", "sources"): []}, "expected a list of distributions"),
    ("priors", {("problem", "sources"): {"on": "uniform"}}, "expected a list of distributions"),
    (
        "priors",
        {("problem", "distortion"): Distortion.hamming([0, 1, 2]).to_dict()},
        "must have the values of the query",
    ),
    (
        "priors",
        {("witness", "channel"): Channel([[0.75, 0.25, 0.0], [0.25, 0.75, 0.0]]).to_dict()},
        "the channel has shape",
    ),
    ("priors", {("witness", "note"): 0}, "the witness: it has no note"),
    ("priors", {("proof", "note"): 0}, "the proof: it has no note"),
    ("distortion", {("proof", "note"): 0}, "the proof: it has no note"),
    ("priors", {("proof", "cuts"): {"0": 1}}, "cuts: expected a list"),
    ("priors", {("proof", "cuts", 0, "multiplier"): -1.0}, "a multiplier is negative"),
    ("distortion", {("proof", "cuts", 0, "multiplier"): -1.0}, "a multiplier is negative"),
    ("priors", {("proof", "sources"): [-1.0]}, "a multiplier is negative"),
    ("priors", {("proof", "sources"): []}, "the multipliers: expected a list of 1"),
    ("priors", {("proof", "cuts", 0, "note"): 0}, "a cut: it has no note"),
    (
        "priors",
        {("proof", "cuts", 0, "records"): []},
        "a group of 0 records; the problem has groups of 1",
    ),
    (
        "dataset",
        {("proof", "cuts", 0, "records"): [0]},
        "a group of 1 records; the problem has groups of 0",
    ),
    ("priors", {("proof", "cuts", 0, "prior"): 1}, "the problem has no prior 1"),
    ("priors", {("proof", "cuts", 0, "prior"): -1}, r": found -?\d"),
    ("floor", {("proof", "cuts", 0, "weights"): [1.0, 0.0]}, "an adversary has entropy"),
    ("floor", {("proof", "cuts", 0, "weights"): [1.5, -0.5]}, "finite and non-negative"),
    ("floor", {("proof", "cuts", 0, "weights"): [1.0]}, "an adversary: expected a list of 2"),
    ("dataset", {("proof", "cuts", 0, "weights"): [1.0, 0.0]}, "an adversary has entropy"),
    ("priors", {("proof", "cuts", 0, "posterior"): ROWS[:1]}, "a posterior must have 2 rows"),
    ("priors", {("proof", "cuts", 0, "posterior"): [*ROWS, ROWS[0]]}, "a posterior must have 2"),
    ("priors", {("proof", "cuts", 0, "posterior"): {"0": 1}}, "a posterior must have 2 rows"),
    ("priors", {("proof", "cuts", 0, "posterior"): [[1.0, 0.5], [0.0, 0.5]]}, "is 0 at a value"),
    ("priors", {("proof", "cuts", 0, "posterior"): [[1.5, 0.5], [-0.5, 0.5]]}, "non-negative"),
    ("priors", {("proof", "cuts", 0, "posterior"): [[1.0], [1.0]]}, "a posterior: expected a list"),
    # Of a value that does not occur, too.
    (
        "floor",
        {
            ("problem", "entropy_floor"): 0.0,
            ("proof", "cuts", 0, "weights"): [1.0, 0.0],
            ("proof", "cuts", 0, "posterior"): [[1e9] * 2, [1 - 1e9] * 2],
        },
        "non-negative",
    ),
    (
        "own",
        {("proof", "sources"): [1.0]},
        "multipliers for a budget that the problem does not have",
    ),
    ("dataset", {("proof", "leakage", "multiplier"): -1.0}, "the multiplier is negative"),
    (
        "dataset",
        {("proof", "leakage", "output"): [1.0, 0.0]},
        "the output distribution gives probability 0 to an output",
    ),
    ("dataset", {("proof", "leakage", "output"): [1.0]}, "the output: expected a list of 2"),
    ("dataset", {("proof", "leakage", "note"): 1}, "the leakage's proof: it has no note"),
    ("floor", {("proof", "leakage", "note"): 1}, "an upper end: it has no note"),
    ("floor", {("proof", "leakage"): None}, "an upper end: expected an object"),
    ("own", {("proof", "own"): [-0.5, 0.5]}, "a multiplier is negative"),
    ("own", {("proof", "own"): [0.5]}, "own: expected a list of 2"),
    (
        "priors",
        {
            ("problem", "sources"): [UNIFORM, {"on": "values", "weights": [0.75, 0.25]}],
            ("witness", "channel"): Channel([[0.5, 0.5], [0.0, 1.0]]).to_dict(),
        },
        "distortion is above the budget",
    ),
    (
        "priors",
        {("problem", "sources"): [UNIFORM] * 2, ("proof", "sources"): [-1.0, 2.0]},
        "a multiplier is negative",
    ),
    (
        "own",
        {("problem", "sources"): [UNIFORM] * 2, ("proof", "sources"): [1.0, 0.0]},
        "multipliers for a budget that the problem does not have",
    ),
    (
        "priors",
        {
            ("problem", "rows"): {"form": "types"},
            ("problem", "priors"): [{"on": "datasets", "weights": [0.5, 0.5]}],
        },
        "depend on f",
    ),
    (
        "priors",
        {("problem", "rows"): {"form": "classes", "query": parity(1).to_dict(), "generators": []}},
        "for the leakage of the whole dataset",
    ),
    (
        "priors",
        {("problem", "distortion"): Distortion.hamming([0]).to_dict()},
        "must have the values of the query",
    ),
    (
        "priors",
        {("witness", "channel"): Channel([[1.0], [1.0]]).to_dict()},
        "the channel has shape",
    ),
    (
        "distortion",
        {("problem", "own"): [half_space(0, 0, 0.76)], ("proof", "own"): [0.0]},
        "the witness misses entry 0 of own",
    ),
    ("own", {("problem", "own", 0, "at_least"): 0.7501}, "the witness misses entry 0 of own"),
    ("own equation", {("problem", "own", 0, "at_least"): -0.2501}, "misses entry 0 of own"),
    ("own equation", {("problem", "own", 0, "at_least"): -0.2499}, "misses entry 0 of own"),
    ("own", {("problem", "own"): {"0": 1}}, "own: expected a list"),
    ("own", {("problem", "own", 0, "note"): 1}, "an entry of own: it has no note"),
    ("own", {("problem", "own", 0, "equal"): 0}, "equal: expected true or false"),
    ("own", {("problem", "own", 0, "entries"): [[2, 0, 1.0]]}, "the channel has no entry 2"),
    ("own", {("problem", "own", 0, "entries"): [[0, 2, 1.0]]}, "the channel has no entry 2"),
    ("own", {("problem", "own", 0, "entries"): [[0, 1]]}, "expected lists of length 3"),
    ("own", {("problem", "own", 0, "entries"): [[0, 1, 1.0, 1.0]]}, "expected lists of length 3"),
    ("own", {("problem", "own", 0, "entries"): [[0, 1, 1.0], "abc"]}, "expected lists of length 3"),
    ("own", {("problem", "own", 0, "entries"): {"0": 1}}, "expected lists of length 3"),
    ("own", {("problem", "own", 0, "further"): [[0, 1.0, 1.0]]}, "expected lists of length 2"),
]


@pytest.mark.parametrize(("name", "changes", "reason"), FORGED)
def test_forged(name, changes, reason):
    refused(PARTS[name], changes, reason)


def test_the_largest_distortion_counts_and_is_rounded_up():
    third = [[2.0, 1.0], [1.0, 2.0]]
    told = Channel(np.array(third) / 3)
    parts = tampered(PARTS["distortion"], {("witness", "channel"): told.to_dict()})
    upper = ends(tampered(parts, {("problem", "budget"): 1.0}))[1]
    assert upper > 0.3333
    skew = {"on": "values", "weights": [0.75, 0.25]}
    half = Channel([[0.5, 0.5], [0.0, 1.0]]).to_dict()
    for sources in ([UNIFORM, skew], [skew, UNIFORM]):
        parts = tampered(
            PARTS["distortion"],
            {
                ("problem", "budget"): 1.0,
                ("problem", "sources"): sources,
                ("witness", "channel"): half,
                ("proof", "sources"): [0.5, 0.5],
            },
        )
        assert ends(parts)[1] == 0.375
    # 3/4 of 1/2 plus 1/4 of 1/3 is no float.
    odd = Channel([[0.5, 0.5], [1 / 3, 2 / 3]]).to_dict()
    upper = ends(tampered(parts, {("witness", "channel"): odd}))[1]
    rows = Rows(parity(1), parity(1), "query")
    masses = rows.masses(Law("values", (0.75, 0.25)))
    matrix = Channel.from_dict(odd).matrix
    (exact,) = exact_distortions([masses], [[0.0, 1.0], [1.0, 0.0]], matrix)
    assert rational(upper) >= exact
    assert rational(math.nextafter(upper, 0)) < exact


def test_rows_that_differ_by_rounding_are_not_the_same():
    near = Channel([[0.5, 0.5], [0.5, 0.5 + 2.0**-32]])
    changes = {("witness", "channel"): near.to_dict(), ("problem", "budget"): 1.0}
    assert ends(tampered(PARTS["priors"], changes))[1] > 0


def test_a_distortion_of_0_does_not_make_a_channel_constant():
    parts = Parts(
        "min-leakage",
        stated(**FREE, budget=0.0),
        channel([[1.0, 0.0], [0.0, 1.0]]),
        proof(AUDIT, beta=10.0, weights=[0.5, 0.5]),
    )
    assert ends(parts)[0] <= math.log(2)


def test_datasets_count_in_the_doubt_of_a_cut():
    told = parity(3)
    even = cut(1.0, weights=[0.25] * 4)
    parts = Parts(
        "min-leakage",
        stated(query=told.to_dict(), **FREE, budget=None),
        channel([[0.5, 0.5], [0.5, 0.5]]),
        {"leakage": None, "cuts": [even], "sources": [0.0], "own": []},
    )
    most = 3 * math.log(2)
    assert ends(tampered(parts, {("problem", "entropy_floor"): most - 1e-9})) == (0.0, 0.0)
    refused(parts, {("problem", "entropy_floor"): most + 1e-9}, "an adversary has entropy")


def test_who_is_attacked():
    """A parity of two even records tells nothing about one of them, and all about itself."""
    problem = stated(query=parity(2).to_dict(), budget=None)
    told = Parts("min-leakage", problem, channel([[1.0, 0.0], [0.0, 1.0]]), proof(beta=0.0))
    told.proof["cuts"] = []
    assert ends(told)[1] == pytest.approx(0.0, abs=1e-15)
    whole = tampered(told, {("problem", "objective", "size"): 0})
    assert ends(whole)[1] == pytest.approx(math.log(2), abs=1e-12)


def test_an_equation_takes_multipliers_of_either_sign(without_room):
    parts = tampered(
        PARTS["own equation"],
        {
            ("problem", "own", 0): half_space(0, 1, 0.25, equal=True),
            ("proof", "own", 0): -LOG_3 / 2,
        },
    )
    assert ends(parts)[0] == pytest.approx(LEVEL, abs=1e-12)


def test_a_channel_that_ignores_the_data_leaks_nothing():
    parts = tampered(
        PARTS["priors"],
        {
            ("witness", "channel"): Channel([[0.5, 0.5], [0.5, 0.5]]).to_dict(),
            ("problem", "budget"): 0.5,
            ("proof", "cuts"): [],
        },
    )
    assert ends(parts) == (0.0, 0.0)
    half = tampered(parts, {("witness", "channel"): Channel([[0.5, 0.5], [0.25, 0.75]]).to_dict()})
    assert ends(half)[1] > 0.01


def test_the_worst_of_several_priors_and_groups_counts():
    skew = {"on": "values", "weights": [0.75, 0.25]}
    for priors in ([UNIFORM, skew], [skew, UNIFORM]):
        parts = tampered(PARTS["priors"], {("problem", "priors"): priors, ("proof", "cuts"): []})
        assert LEVEL <= ends(parts)[1] <= LEVEL + 1e-12
    # The parity tells the one record that is not known: the first or the second.
    for law in ([0.5, 0.0, 0.5, 0.0], [0.5, 0.5, 0.0, 0.0]):
        problem = stated(
            query=parity(2).to_dict(),
            priors=[{"on": "datasets", "weights": law}],
            budget=None,
        )
        told = Parts("min-leakage", problem, channel([[1.0, 0.0], [0.0, 1.0]]), proof(beta=0.0))
        told.proof["cuts"] = []
        assert ends(told)[1] == pytest.approx(math.log(2), abs=1e-12)


def test_the_budget_0_forces_constants_below_the_greatest_doubt_only():
    rows = Rows(parity(2), parity(2), "query")
    with precision():
        assert forces_constants(rows, 1, 1.0)
        assert not forces_constants(rows, 1, None)
        assert not forces_constants(rows, 1, math.log(4))
        assert forces_constants(rows, 0, math.nextafter(math.log(4), 0))
        assert not forces_constants(rows, 0, math.nextafter(math.log(4), 2))
    problem = stated(**FREE, budget=0.0, sources=[{"on": "values", "weights": [0.75, 0.25]}])
    even = channel([[1.0, 0.0], [1.0, 0.0]])
    parts = Parts("min-distortion", problem, even, proof(theta=0.0, beta=1.0, weights=[0.5, 0.5]))
    assert ends(parts) == (pytest.approx(0.25, abs=1e-12), 0.25)
    # With the least budget above 0 the rows may differ, and this proves nothing.
    for change in ({("problem", "budget"): 1e-9}, {("problem", "entropy_floor"): math.log(2)}):
        assert ends(tampered(parts, change))[0] == 0.0


def test_most_values_of_the_largest_records():
    rows = Rows(parity(3), parity(3), "query")
    assert [most_values(rows, size) for size in (0, 1, 2, 3)] == [8, 2, 4, 8]


def test_total_above_is_above():
    """log sum m exp(D / lam) lam - lam b, for every multiplier."""
    told = Channel([[1.0, 0.0], [0.0, 1.0]])
    with precision():
        for multiplier in (0.0, 0.01, 1.0, 100.0):
            bound = total_above([1, 1], told, math.log(2), [0.5, 0.5], multiplier)
            assert math.log(2) < bound < math.log(2) + 1e-12
            free = total_above([1, 1], told, 0.0, [0.75, 0.25], multiplier)
            assert free > math.log(2)
        # Sizes count: two datasets of the first row, four of the second.
        value = total_above([2, 4], told, 1.0, [0.5, 0.5], 1.0)
        assert value == pytest.approx(math.log(2 * 2 + 4 * 2) - 1.0, abs=1e-12)
        # An output that a row does not have costs it nothing.
        assert total_above([1, 1], told, 0.0, [1e-3, 0.999], 0.0) == pytest.approx(
            -math.log(1e-3), abs=1e-9
        )
        wide = Channel([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
        assert total_above([1, 1], wide, 0.0, [0.5, 0.5, 0.0], 0.0) < 0.7
        for output in ([1.0, 0.0], [0.0, 1.0]):
            with pytest.raises(CertificateError, match="gives probability 0 to an output"):
                total_above([1, 1], told, 0.0, output, 0.0)


@pytest.fixture
def without_room():
    """Version 1, where multipliers are applied to the half-spaces as they stand."""
    with reading.schema(1):
        yield


def test_half_spaces_have_room():
    """2^-40 of the coefficients of the channel and of the right-hand side, for either sign."""
    part = fmpq(1, 1 << 40)
    row = half_space(0, 0, -0.5, further=[(0, 1.0)])
    back = half_space(1, 1, 0.25, further=[(0, 2.0)], equal=True)
    cells, offset = priced(own(row, back), {"own": [2.0, -1.0]})
    assert cells == [(0, 0, arb(2 + 2 * part)), (1, 1, arb(-1 + part))]
    assert offset == arb(-fmpq(5, 4) - fmpq(5, 4) * part)
    least, most = fmpq(1, 2) * (1 - part) / (1 + part), fmpq(1, 2) * (1 + part) / (1 - part)
    more = part / 1000
    for entry, inside, outside in [
        (half_space(0, 0, 0.5), [least, most + more], [least - more]),
        (half_space(0, 0, -0.5, coefficient=-1.0), [most, least - more], [most + more]),
        (half_space(0, 0, 0.5, equal=True), [least, most], [least - more, most + more]),
    ]:
        assert not any(missed(own(entry), [[q]], {}) for q in inside)
        assert all(missed(own(entry), [[q]], {}) for q in outside)
    # What further variables contribute has none.
    (entry,) = own(half_space(0, 0, 0.0, further=[(0, 1.0), (1, -1.0)]))
    for z in (fmpq(0), fmpq(1 << 80)):
        assert not missed([entry], [[fmpq(0)]], {"further": [str(z), str(z)]})
        assert missed([entry], [[fmpq(0)]], {"further": [str(z), str(z + more)]})


def own(*rows):
    return read_own(list(rows), 2, 2)


def test_what_a_half_space_lists_twice_counts_twice(without_room):
    row = half_space(0, 0, 0.5) | {"entries": [[0, 0, 0.75], [0, 0, 0.25]]}
    assert priced(own(row), {"own": [1.0]})[0] == [(0, 0, 1)]
    assert not missed(own(row), [[fmpq(1, 2)]], {})
    twice = half_space(0, 0, 0.5, further=[(0, 1.0), (0, 1.0)])
    assert not missed(own(twice), [[fmpq(0)]], {"further": ["1/4"]})
    assert missed(own(twice), [[fmpq(0)]], {"further": ["1/5"]})
    back = half_space(1, 1, 0.25, further=[(0, -2.0)])
    assert len(priced(own(twice, back), {"own": [1.0, 1.0]})[0]) == 2
    with pytest.raises(CertificateError, match="do not cancel"):
        priced(own(twice, back), {"own": [2.0, 1.0]})


def test_multipliers_of_further_variables_cancel(without_room):
    row = half_space(0, 0, 0.5, further=[(0, 1.0)])
    back = half_space(1, 1, 0.25, further=[(0, -2.0)])
    alone = half_space(1, 0, 0.25)
    assert dict(((x, y), a) for x, y, a in priced(own(row, back), {"own": [2.0, 1.0]})[0]) == {
        (0, 0): 2,
        (1, 1): 1,
    }
    assert priced(own(row, back), {"own": [2.0, 1.0]})[1] == arb("1.25")
    cells, offset = priced(own(row, half_space(0, 0, 0.25), alone), {"own": [0.0, 2.0, 0.0]})
    assert cells == [(0, 0, 2)]
    assert offset == arb("0.5")
    left = "do not cancel a further variable"
    for rows, given, reason in [
        ((row, back), {"own": [2.0, 1.5]}, left),
        ((row, back), {"own": [2.0, 0.5]}, left),
        ((row, alone), {"own": [1.0, 0.0]}, left),
        ((row, alone), {"own": [1.0, 0.0], "balance": [1]}, left),
        ((back, alone), {"own": [1.0, 0.0]}, left),
        ((row, back), {"own": [-2.0, 1.0]}, "a multiplier is negative"),
        ((row, back), {"own": [2.0, 1.0], "balance": [0, 0]}, "each once"),
        ((row, back), {"own": [2.0, 1.0], "balance": [2]}, "names an entry that does not exist"),
        ((row, back), {"own": [2.0, 1.0], "balance": [-1]}, r": found -?\d"),
        ((row, row), {"own": [2.0, 1.0], "balance": [1]}, "negative after balancing"),
        ((row, back), {"own": [2.0]}, "own: expected a list of 2"),
    ]:
        with pytest.raises(CertificateError, match=reason):
            priced(own(*rows), given)


def test_multipliers_are_balanced_exactly(without_room):
    third = half_space(0, 0, 0.0, further=[(0, 3.0), (1, 1.0)])
    other = half_space(1, 1, 1.0, further=[(0, -1.0)])
    last = half_space(1, 0, 1.0, further=[(1, -3.0)])
    cells, offset = priced(own(third, other, last), {"own": [1.0, 2.9, 0.3], "balance": [1, 2]})
    assert cells[:2] == [(0, 0, 1), (1, 1, 3)]
    assert cells[2][:2] == (1, 0)
    assert cells[2][2].overlaps(arb(fmpq(1, 3)))
    assert offset.overlaps(arb(fmpq(10, 3)))
    # 0 z_0 = -1 has no solution.
    odd = half_space(1, 1, 1.0, further=[(0, 1.0), (1, 1.0)])
    with pytest.raises(CertificateError, match="do not cancel"):
        priced(
            own(half_space(0, 0, 0.0, further=[(0, 1.0)]), odd), {"own": [1.0, 1.0], "balance": [1]}
        )
    # An equation's multiplier may become negative, and one may become 0.
    equation = half_space(1, 1, 1.0, further=[(0, 1.0)], equal=True)
    cells, _ = priced(
        own(half_space(0, 0, 0.0, further=[(0, 1.0)]), equation),
        {"own": [1.0, 0.0], "balance": [1]},
    )
    assert cells == [(0, 0, 1), (1, 1, -1)]
    nothing = half_space(1, 1, 1.0, further=[(0, 1.0)])
    cells, _ = priced(own(nothing), {"own": [1.0], "balance": [0]})
    assert cells == []


def test_as_many_multipliers_are_moved_as_is_said():
    many = [half_space(0, 0, 0.0, further=[(j, 1.0)]) for j in range(101)]
    wide = half_space(0, 0, 0.0, further=[(j, 1.0) for j in range(101)])
    assert priced(own(*many), {"own": [0.0] * 101, "balance": list(range(100))})[0] == []
    with pytest.raises(CertificateError, match="at most 100 entries"):
        priced(own(*many), {"own": [0.0] * 101, "balance": list(range(101))})
    with pytest.raises(CertificateError, match="touches more than 100"):
        priced(own(wide), {"own": [0.0], "balance": [0]})
    assert isinstance(own(wide)[0], OwnRow)


MIXED = Channel([[0.625, 0.375], [0.375, 0.625]])
TOLD = Channel([[1.0, 0.0], [0.0, 1.0]])


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ([(0.0, TOLD, 0.6)], "must be positive"),
        ([(-0.25, TOLD, 0.6)], "must be positive"),
        ([(0.25, Channel([[1.0], [1.0]]), 0.6)], "a part has shape"),
        ([(0.25, Channel([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]), 0.6)], "a part has shape"),
        ([(0.75, TOLD, 0.6)], "below that of the mixture of its parts"),
        ([(0.5, TOLD, 0.6), (0.5, TOLD, 0.6)], "below that of the mixture of its parts"),
    ],
)
def test_a_mixture_is_made_of_its_parts(parts, reason):
    with pytest.raises(CertificateError, match=reason):
        mixture_above(MIXED, parts, 2)


def test_what_a_mixture_leaks():
    with precision():
        assert 0.15 <= mixture_above(MIXED, [(0.25, TOLD, 0.6)], 2) < 0.15 + 1e-12
        # A part of smaller weight leaves a channel of which nothing is known.
        least = 0.125 * 0.6 + 0.125 * math.log(2)
        assert least < mixture_above(MIXED, [(0.125, TOLD, 0.6)], 2) < least + 1e-12
        assert mixture_above(MIXED, [(0.125, TOLD, 0.6)], 4) > 0.2
        assert mixture_above(TOLD, [(1.0, TOLD, 0.6)], 2) == pytest.approx(0.6, abs=1e-12)


def test_mixtures_in_certificates():
    part = {"share": 0.5, "channel": TOLD.to_dict(), "leakage": None}
    parts = tampered(PARTS["priors"], {("proof", "leakage"): {"parts": [part]}})
    assert ends(parts)[1] == pytest.approx(math.log(2) / 2, abs=1e-12)
    nested = {**part, "leakage": {"parts": [part]}}
    refused(
        parts,
        {("proof", "leakage", "parts"): [nested]},
        "a part of a mixture must not be a mixture",
    )
    refused(parts, {("proof", "leakage", "parts"): {"0": part}}, "parts: expected a list")
    refused(parts, {("proof", "leakage", "parts", 0, "note"): 1}, "a part: it has no note")
    refused(parts, {("proof", "leakage", "note"): 1}, "the leakage's proof: it has no note")
    for share in (-0.5, 0.0):
        refused(parts, {("proof", "leakage", "parts", 0, "share"): share}, "must be positive")


SWAP = [[1, 0], [[0, 1], [0, 1]]]


def rows_of(statistic, form, query, generators, laws=(), *, total=False):
    data = {"form": form, "query": query.to_dict(), "generators": generators}
    return Rows.from_dict(data, statistic, list(laws), total)


def test_types_are_told_apart_where_f_does_not():
    """x1 + x2 + 2 (x3 + ... + x6) mod 10 has 10 values, and there are 3 * 5 types."""
    ten = AdditiveQuery(RecordSpace.binary(6), [(0, 1)] * 2 + [(0, 2)] * 4, modulus=10)
    assert (len(ten.values), len(types_query(ten).values)) == (10, 15)


def test_rows_are_shared_for_a_reason():
    assert rows_of(count(2), "orbits", count(2), [SWAP]).sizes == [1, 2, 1]
    flip = [[0, 1], [[1, 0], [1, 0]]]
    for generators, query in [
        ([], count(2)),  # every dataset is an orbit of its own
        ([SWAP], parity(2)),  # coarser than the orbits
        ([SWAP, flip], count(2)),  # finer
        ([flip], count(2)),  # across
    ]:
        with pytest.raises(CertificateError, match="not the orbits"):
            rows_of(count(2), "orbits", query, generators)
    uneven = Law("datasets", (0.25, 0.5, 0.0, 0.25))
    even = Law("datasets", (0.25, 0.25, 0.25, 0.25))
    assert rows_of(count(2), "orbits", count(2), [SWAP], [even]).form == "orbits"
    with pytest.raises(CertificateError, match="equal probabilities to datasets"):
        rows_of(count(2), "orbits", count(2), [SWAP], [even, uneven])
    assert rows_of(count(2), "classes", count(2), [], [even], total=True).form == "classes"
    with pytest.raises(CertificateError, match="equal probabilities to datasets"):
        rows_of(count(2), "classes", count(2), [], [uneven], total=True)
    with pytest.raises(CertificateError, match="for the leakage of the whole dataset"):
        rows_of(count(2), "classes", count(2), [])
    with pytest.raises(CertificateError, match="must have the same space"):
        rows_of(count(2), "orbits", count(3), [SWAP])
    with pytest.raises(CertificateError, match="depend on f"):
        Rows.from_dict({"form": "types"}, count(2), [even], False)
    assert Rows.from_dict({"form": "types"}, parity(2), [], False).query == types_query(parity(2))
    with pytest.raises(CertificateError, match="rows of the form"):
        Rows.from_dict({"form": "none"}, count(2), [], False)
    with pytest.raises(CertificateError, match="the rows: it has no note"):
        Rows.from_dict({"form": "query", "note": 1}, count(2), [], False)
    with pytest.raises(CertificateError, match="the rows: without generators"):
        Rows.from_dict({"form": "orbits", "query": count(2).to_dict()}, count(2), [], False)
    assert rows_of(parity(2), "orbits", count(2), [SWAP]).values == [0, 1, 0]
    across = from_table(count(2).space, [[0, 0], [1, 2]])
    with pytest.raises(CertificateError, match="not the orbits"):
        rows_of(across, "orbits", across, [SWAP])
    mixed = rows_of(count(2), "classes", parity(2), [], total=True)
    with pytest.raises(CertificateError, match="constant on each row"):
        _ = mixed.values


@pytest.mark.parametrize(
    ("generator", "reason"),
    [
        ([[0, 0], [[0, 1], [0, 1]]], "does not permute the records"),
        ([[0], [[0, 1]]], "does not permute the records"),
        ([[0, 1], [[0, 1]]], "does not permute the records"),
        ([[0, 1], [[0, 0], [0, 1]]], "does not relabel"),
        ([[0, 1], [[0, 1, 2], [0, 1]]], "does not relabel"),
        ([[0, 1], [[0], [0, 1]]], "does not relabel"),
        ([[1, 1], [[0, 1], [0, 1]]], "does not permute the records"),
        ([[0, 1], [[0, 1]] * 3], "does not permute the records"),
        ([[0, 1], [[1, 2], [0, 1]]], "does not relabel"),
        ([[0, 1]], "not a list of pairs"),
        ([[0, 1], [[0, 1], [0, 1]], [0]], "not a list of pairs"),
        ("ab", "not a list of pairs"),
    ],
)
def test_symmetries_are_permutations(generator, reason):
    with pytest.raises(CertificateError, match=reason):
        rows_of(count(2), "orbits", count(2), [generator])


def test_symmetries_keep_to_the_alphabets():
    """A record of two values goes to no record of three, nor the other way around."""
    uneven = from_table(RecordSpace([(0, 1), (0, 1, 2)]), [[0, 1, 2], [3, 4, 5]])
    for relabelings in ([[0, 1, 2], [0, 1]], [[0, 1], [0, 1, 2]]):
        with pytest.raises(CertificateError, match="does not relabel"):
            rows_of(uneven, "orbits", uneven, [[[1, 0], relabelings]])


def test_types_are_how_often_each_value_occurs():
    space = RecordSpace([(0, 1, 2)] * 2 + [(0, 1)] * 2)
    query = AdditiveQuery(space, [(0, 1, 2)] * 2 + [(0, 3)] * 2, modulus=3)
    table = types_query(query).table().reshape(-1)
    kinds = {}
    for x, value in zip(itertools.product(range(3), range(3), (0, 1), (0, 1)), table, strict=True):
        kind = (*sorted(x[:2]), *sorted(x[2:])) if query.exchangeable() != [[0, 1], [2], [3]] else x
        kinds.setdefault(kind, set()).add(int(value))
    assert all(len(values) == 1 for values in kinds.values())
    assert len({min(values) for values in kinds.values()}) == len(kinds)


def test_symmetries_are_no_object():
    with pytest.raises(CertificateError, match="not a list of pairs"):
        rows_of(count(2), "orbits", count(2), {"0": SWAP})


def test_images_and_orbits():
    space = count(2).space
    assert image(space, ((1, 0), ((0, 1), (1, 0)))).tolist() == [2, 0, 3, 1]
    assert orbits(space, []).tolist() == [0, 1, 2, 3]


def test_laws_are_read_and_spread():
    rows = Rows(count(2), count(2), "query")
    assert rows.masses(Law("uniform")) == [fmpq(1, 4), fmpq(1, 2), fmpq(1, 4)]
    assert rows.masses(Law("values", (1.0, 2.0, 1.0)), (0,)) == [
        fmpq(1, 4),
        fmpq(1, 4),
        fmpq(1, 4),
        fmpq(1, 4),
    ]
    skew = Law("datasets", (0.5, 0.25, 0.125, 0.125))
    assert rows.masses(skew) == [fmpq(1, 2), fmpq(3, 8), fmpq(1, 8)]
    assert rows.masses(skew, (0,)) == [fmpq(1, 2), fmpq(1, 4), fmpq(1, 8), fmpq(1, 8)]
    for data, reason in [
        ({"on": "rows", "weights": []}, "a distribution is on"),
        ({"on": 3, "weights": []}, "a distribution is on"),
        ({"on": "uniform", "weights": [1.0]}, "a distribution: expected a list of 0"),
        ({"on": "values", "weights": [1.0]}, "a distribution: expected a list of 3"),
        ({"on": "datasets", "weights": [1.0]}, "a distribution: expected a list of 4"),
        ({"on": "uniform"}, "a distribution: without weights"),
    ]:
        with pytest.raises(CertificateError, match=reason):
            Law.from_dict(data, count(2))
