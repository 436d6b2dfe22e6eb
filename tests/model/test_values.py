"""What every model object promises: frozen, equal by content, safe to pickle, readable, stored."""

import copy
import dataclasses
import json
import pickle

import numpy as np
import pytest

from cvxleak.core.errors import ValidationError
from cvxleak.model import (
    AdditiveQuery,
    Channel,
    Distortion,
    Lumped,
    Mechanism,
    Prior,
    Query,
    RecordSpace,
    TableQuery,
)

SPACE = RecordSpace([(0, 1), ("no", "yes", None), (True, (0, 1.5))])
NOISE = [[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]]


def additive():
    return AdditiveQuery(SPACE, [(0, 1), (0, 1, 2), (0, 4)], modulus=3)


# Each case: a function that makes the object from scratch, and one that makes a different object.
CASES = {
    "Prior": (
        lambda: Prior([0.25, 0.75], ["no", ("yes", 1)]),
        lambda: Prior([0.25, 0.75], ["no", ("yes", 2)]),
    ),
    "Channel": (
        lambda: Channel(NOISE, ["a", 1, (0, "b")], [0.5, None]),
        lambda: Channel(NOISE[::-1], ["a", 1, (0, "b")], [0.5, None]),
    ),
    "Distortion": (
        lambda: Distortion.absolute([0, 1, 2], [0, 3]),
        lambda: Distortion.squared([0, 1, 2], [0, 3]),
    ),
    "RecordSpace": (
        lambda: RecordSpace([(0, 1), ("no", "yes", None), (True, (0, 1.5))]),
        lambda: RecordSpace([(1, 0), ("no", "yes", None), (True, (0, 1.5))]),
    ),
    "AdditiveQuery": (
        additive,
        lambda: AdditiveQuery(SPACE, [(0, 1), (0, 1, 2), (0, 4)], lambda t: t % 2, modulus=3),
    ),
    "AdditiveQuery of tuples": (
        lambda: AdditiveQuery(
            RecordSpace.binary(2), [((0, 1), (2, 0))] * 2, lambda t: f"{t[0]}-{t[1]}"
        ),
        lambda: AdditiveQuery(RecordSpace.binary(2), [((0, 1), (2, 0))] * 2),
    ),
    "TableQuery": (
        lambda: TableQuery(RecordSpace.binary(2), [0, 1, 1, 0], ["even", "odd"]),
        lambda: TableQuery(RecordSpace.binary(2), [0, 1, 1, 0], ["odd", "even"]),
    ),
    "Mechanism": (
        lambda: Mechanism(additive(), NOISE),
        lambda: Mechanism(additive(), NOISE[::-1]),
    ),
    "Lumped": (
        lambda: Mechanism(additive(), NOISE).lumped(1),
        lambda: Mechanism(additive(), NOISE).lumped(0),
    ),
}
STORED = [name for name in CASES if name != "Lumped"]


@pytest.fixture(params=CASES)
def case(request):
    return CASES[request.param]


def arrays_of(value):
    for field in dataclasses.fields(value):
        part = getattr(value, field.name)
        if isinstance(part, np.ndarray):
            yield part
        elif dataclasses.is_dataclass(part):
            yield from arrays_of(part)


def test_equality_and_hash_go_by_content(case):
    make, make_other = case
    value, same, other = make(), make(), make_other()
    assert value == same
    assert hash(value) == hash(same)
    assert value != other
    assert len({value, same, other}) == 2
    assert value != "something else"


def test_fields_cannot_be_set(case):
    value = case[0]()
    for field in dataclasses.fields(value):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(value, field.name, None)


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_pickle(case, protocol):
    value = case[0]()
    loaded = pickle.loads(pickle.dumps(value, protocol))
    assert loaded == value
    assert hash(loaded) == hash(value)
    assert repr(loaded) == repr(value)
    for array in arrays_of(loaded):
        with pytest.raises(ValueError, match=r"read-only"):
            array[...] = 0


def test_copies_are_equal_and_read_only(case):
    value = case[0]()
    for copied in (copy.copy(value), copy.deepcopy(value)):
        assert copied == value
        assert not any(array.flags.writeable for array in arrays_of(copied))


def test_unpickling_validates():
    make, (kind, named) = Channel([[0.5, 0.5]]).__reduce__()
    with pytest.raises(ValidationError, match=r"sums to"):
        make(kind, {**named, "matrix": np.array([[0.5, 0.6]])})


def test_repr_is_one_readable_line(case):
    text = repr(case[0]())
    assert "\n" not in text
    assert len(text) < 300
    assert text.startswith(type(case[0]()).__name__ + "(")


@pytest.mark.parametrize("name", STORED)
def test_json_round_trip(name, tmp_path):
    value = CASES[name][0]()
    path = tmp_path / "value.json"
    value.to_json(path)
    assert type(value).from_json(path) == value
    # Really JSON, and the labels keep their types.
    again = type(value).from_dict(json.loads(path.read_text()))
    assert repr(again) == repr(value)
    assert again.to_dict() == value.to_dict()


@pytest.mark.parametrize("name", STORED)
def test_files_with_missing_or_unknown_keys_are_refused(name):
    value = CASES[name][0]()
    data = value.to_dict()
    with pytest.raises(ValidationError, match=r"colour"):
        type(value).from_dict({**data, "colour": 1})
    needed = {"matrix", "probabilities", "alphabets", "space", "query"} & data.keys()
    for key in needed:
        with pytest.raises(ValidationError, match=key):
            type(value).from_dict({k: v for k, v in data.items() if k != key})
    for junk in (None, 3, "text", [], [1, 2]):
        with pytest.raises(ValidationError):
            type(value).from_dict(junk)


@pytest.mark.parametrize("name", ["AdditiveQuery", "TableQuery"])
def test_a_query_file_can_be_read_without_knowing_its_form(name):
    value = CASES[name][0]()
    assert Query.from_dict(value.to_dict()) == value


@pytest.mark.parametrize("kind", ["modular", None, 3, ["additive"]])
def test_unknown_query_forms(kind):
    data = {**CASES["TableQuery"][0]().to_dict(), "kind": kind}
    with pytest.raises(ValidationError, match=r"allowed: \['additive', 'table'\]"):
        Query.from_dict(data)


def test_negative_zero_changes_nothing():
    one, other = Channel([[1.0, 0.0]]), Channel([[1.0, -0.0]])
    assert one == other
    assert hash(one) == hash(other)


def test_labels_that_python_takes_for_equal():
    # As dictionary keys 1, 1.0 and True are one; so are the labels.
    one, other = Prior([0.5, 0.5], [0, 1]), Prior([0.5, 0.5], [False, 1.0])
    assert one == other
    assert hash(one) == hash(other)
    assert other[True] == one[1]


def test_different_types_are_different():
    assert Channel([[1.0]]) != Distortion([[1.0]])


def test_cached_arrays_cannot_be_changed():
    lumped = CASES["Lumped"][0]()
    for array in (lumped.log_multiplicity, lumped.starts, lumped.rows, lumped.value_index):
        with pytest.raises(ValueError, match=r"read-only"):
            array[0] = 0


def test_dataclasses_replace_validates():
    lumped = CASES["Lumped"][0]()
    assert isinstance(dataclasses.replace(lumped, outputs=("x", "y")), Lumped)
    with pytest.raises(ValidationError, match=r"outputs"):
        dataclasses.replace(lumped, outputs=("x",))
