"""Gains of the user's own: extended to measures, and their answers checked."""

import pickle

import numpy as np
import pytest
from scipy.special import entr

from cvxleak.core.errors import ValidationError
from cvxleak.measures import gain_leakage, gain_vulnerability
from cvxleak.model import Gain, GainMatrix, Gini, Guess, Shannon, as_gain
from cvxleak.model.gain import FORMS, gain_from_dict
from cvxleak.model.own_gain import OwnGain, checked_gain, provable_gain

LAWS = np.vstack([np.eye(3), np.random.default_rng(0).dirichlet(np.full(3, 0.5), size=20)])


class Brier(Gain):
    def value(self, laws):
        return (laws**2).sum(axis=-1)

    def tangent(self, laws):
        return 2 * laws


class Certainty(Gain):
    def value(self, laws):
        return -entr(laws).sum(axis=-1)

    def tangent(self, laws):
        with np.errstate(divide="ignore"):
            return 1 + np.log(laws)


class Answers(Gain):
    def __init__(self, value=None, tangent=None, rows=None):
        self._value, self._tangent, self._rows = value, tangent, rows

    def value(self, laws):
        return laws.max(axis=-1) if self._value is None else self._value(laws)

    def tangent(self, laws):
        return self._tangent(laws)

    def rows(self, k):
        return self._rows


@pytest.mark.parametrize(("own", "known"), [(Brier(), Gini()), (Certainty(), Shannon())])
def test_functions_of_laws_are_extended_to_measures(own, known):
    gain = checked_gain(own, 3)
    measures = np.vstack([LAWS, 7 * LAWS, np.zeros(3)]).reshape(-1, 1, 3)
    assert gain.value(measures) == pytest.approx(known.value(measures), abs=1e-12)
    tangents, others = gain.tangent(measures), known.tangent(measures)
    assert tangents.shape == measures.shape
    assert (np.isneginf(tangents) == np.isneginf(others)).all()
    finite = np.isfinite(others)
    assert tangents[finite] == pytest.approx(others[finite], abs=1e-12)
    noisy = [[0.75, 0.25, 0], [0.25, 0.5, 0.25], [0, 0.5, 0.5]]
    assert gain_leakage(noisy, [0.2, 0.3, 0.5], own) == pytest.approx(
        gain_leakage(noisy, [0.2, 0.3, 0.5], known)
    )


def test_a_gain_cannot_change_what_it_is_asked_about():
    def greedy(laws):
        laws[:] = 1
        return laws.sum(axis=-1)

    law = np.array([0.5, 0.5])
    assert as_gain(Answers(greedy), 2).value(law) == 2
    assert law.tolist() == [0.5, 0.5]


def test_own_gains_are_values():
    own = Brier()
    assert OwnGain(own) == OwnGain(own)
    assert hash(OwnGain(own)) == hash(OwnGain(own))
    assert own != Brier()
    assert pickle.loads(pickle.dumps(OwnGain(own))).value([0.5, 0.5]) == 0.5
    assert (OwnGain(own).name, OwnGain(own).unit, repr(OwnGain(own))) == ("gain", "gain", "Brier()")
    assert as_gain(OwnGain(own), 2) == OwnGain(own)


def test_what_a_certificate_can_hold():
    assert provable_gain(Guess(), 2) == Guess()
    assert provable_gain(Answers(rows=[[1, 0], [0, 1]]), 2) == GainMatrix([[1, 0], [0, 1]])
    with pytest.raises(ValidationError, match=r"gain: found Brier.*no certificate can hold"):
        provable_gain(Brier(), 2)
    with pytest.raises(ValidationError, match="no certificate can hold"):
        OwnGain(Brier()).to_dict()


def zero(laws):
    return np.zeros_like(laws)


@pytest.mark.parametrize(
    ("gain", "message"),
    [
        (
            Answers(lambda laws: 0.5),
            r"value for distributions of shape \(\d+, 2\) is an array of shape",
        ),
        (Answers(lambda laws: "high"), r"is str of shape \(\); numbers of shape \(\d+,\)"),
        (Answers(lambda laws: [[1], [1, 2]]), "gain.value: expected an array"),
        (Answers(lambda laws: laws[:, :1]), r"an array of shape \(\d+, 1\)"),
        (Answers(lambda laws: laws.max(axis=-1) + 0j), "is ndarray of shape"),
        (Answers(lambda laws: laws.sum(axis=-1) * np.nan), r"value at the distribution .* is nan"),
        (
            Answers(lambda laws: np.where(laws.min(axis=-1) == 0, np.inf, 1.0)),
            "is inf; it has to be finite",
        ),
        (Answers(lambda laws: laws.min(axis=-1)), "not convex: halfway"),
        (Answers(tangent=lambda laws: laws.max(axis=-1)), "tangent for distributions of shape"),
        (
            Answers(tangent=lambda laws: zero(laws) - np.inf),
            "tangent at the distribution .* finite",
        ),
        (
            Answers(tangent=lambda laws: zero(laws) * np.nan),
            "tangent at the distribution .* finite",
        ),
        (Answers(tangent=zero), "whose tangent at the distribution .* a subgradient is needed"),
        (
            Answers(max),
            r"whose value fails for distributions of shape \(\d+, 2\): ValueError: The truth",
        ),
        (Answers(tangent=lambda laws: laws[0, 5]), "whose tangent fails .* IndexError: index 5"),
        (Answers(rows=np.eye(3)), r"gain.rows\(2\): found shape \(3, 3\)"),
        (Answers(rows=[[0, np.nan]]), r"gain.rows\(2\): found NaN"),
        (Answers(rows=np.eye(2) / 2), "not the largest of its rows"),
    ],
)
def test_refuses_answers_that_are_no_gain_s(gain, message):
    with pytest.raises(ValidationError, match=message):
        checked_gain(gain, 2)


def test_an_error_of_a_gain_s_rows_says_so():
    class Rowless(Answers):
        def rows(self, k):
            return self.table[k]

    with pytest.raises(ValidationError, match="whose rows fails for 2 values: AttributeError") as e:
        checked_gain(Rowless(), 2)
    assert isinstance(e.value.__cause__, AttributeError)


def test_answers_are_checked_where_a_gain_is_measured():
    with pytest.raises(ValidationError, match=r"gain: found Answers.*one for each distribution"):
        gain_vulnerability([0.5, 0.5], Answers(lambda laws: 0.5))


def test_what_is_not_convex_is_not_measured():
    doubt = Answers(lambda laws: laws.min(axis=-1), np.zeros_like)
    noisy = [[0.75, 0.25], [0.25, 0.75]]
    for form in FORMS:
        with pytest.raises(ValidationError, match="not convex"):
            gain_leakage(noisy, [0.5, 0.5], doubt, form)
    with pytest.raises(ValidationError, match="not convex"):
        gain_vulnerability([0.5, 0.5], doubt)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"kind": "matrix"}, "missing a required argument: 'table'"),
        ({"kind": "guess", "tries": 2}, "unexpected keyword argument 'tries'"),
        ({"kind": "brier"}, "gain.kind: found 'brier'; allowed: 'shannon'"),
    ],
)
def test_refuses_parts_of_a_gain_that_do_not_belong_to_it(data, message):
    with pytest.raises(ValidationError, match=message):
        gain_from_dict(data)
