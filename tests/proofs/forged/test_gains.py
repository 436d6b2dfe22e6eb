"""Forged certificates of other gains than Shannon's: each formula, each guard."""

import math

import numpy as np
import pytest
from cvxleak.proofs.bounds.gains import LEAKAGE, GainForm, Tangents, height, tangent
from flint import arb

from cvxleak.audit import record_leakage
from cvxleak.core.errors import CertificateError, ValidationError
from cvxleak.exact.balls import normalized
from cvxleak.exact.packing import pack, unpack
from cvxleak.mechanisms import binary_symmetric
from cvxleak.model import (
    Arimoto,
    ChannelSet,
    Gain,
    GainMatrix,
    Gaussian,
    Gini,
    Guess,
    GuessInTries,
    Mechanism,
    Shannon,
    gain_from_dict,
)
from cvxleak.model.own_gain import OwnGain
from cvxleak.proofs.record_leakage import about, unit_of
from cvxleak.queries import count, parity
from tests.proofs.forging import Parts, ends, refused, tampered

GAINS = [
    Shannon(),
    Guess(),
    GuessInTries(2),
    GainMatrix([[2, -1, 0], [0, "1/3", 1]]),
    Gini(),
    Arimoto(2.5),
    Arimoto(math.inf),
]

pytestmark = pytest.mark.usefixtures("balls_of_the_checker")


def parts_of(gain, form, floor=1.0, flip=0.2):
    bound = record_leakage(
        Mechanism(parity(3), binary_symmetric(flip)), floor, gain=gain, form=form
    )
    own = bound.certificate
    return Parts("record-leakage", dict(own.problem), dict(own.witness), dict(own.proof)), bound


@pytest.mark.parametrize("gain", GAINS, ids=str)
def test_values_and_tangents_are_those_of_the_measure(gain):
    rng = np.random.default_rng(2)
    for law, other in rng.dirichlet(np.full(3, 0.7), size=(20, 2)):
        # A measure of any size: the gain is homogeneous.
        measure = 3 * other
        found = height(gain, [arb(x) for x in measure])
        assert abs(float(found) - float(gain.value(measure))) < 1e-12
        slopes = tangent(gain, normalized(law))
        assert np.allclose([float(x) for x in slopes], gain.tangent(law), atol=1e-12)
        below = sum(r * arb(x) for r, x in zip(slopes, measure, strict=True))
        assert below <= found + arb(1e-25) or float(below - found) < 1e-25
        touching = sum(r * x for r, x in zip(slopes, normalized(law), strict=True))
        assert abs(float(touching - height(gain, normalized(law)))) < 1e-12


@pytest.mark.parametrize("gain", GAINS, ids=str)
def test_values_of_wide_balls_enclose_those_inside(gain):
    measure = [arb(0.2, 0.1), arb(0.3, 0.15), arb(0.4, 0.05)]
    found = height(gain, measure)
    for point in ([0.1, 0.15, 0.35], [0.3, 0.45, 0.45], [0.3, 0.15, 0.4]):
        assert found.contains(height(gain, [arb(x) for x in point]))


def test_values_at_corners_and_without_mass():
    corner = [arb(1), arb(0), arb(0)]
    assert all(height(gain, corner) == 1 for gain in (Guess(), GuessInTries(2), Gini(), Arimoto(3)))
    assert height(Shannon(), corner) == 0
    assert all(height(gain, [arb(0)] * 3) == 0 for gain in (Guess(), Gini(), Shannon()))
    with pytest.raises(CertificateError, match="probability 0"):
        tangent(Shannon(), corner)


def test_a_gain_that_nobody_knows_proves_nothing():
    class Own(Gain):
        def value(self, laws):
            return np.asarray(laws)[..., 0]

        def tangent(self, laws):
            return np.asarray(laws)

    for of in (height, tangent):
        with pytest.raises(CertificateError, match="no bound is known"):
            of(Own(), [arb(1), arb(0)])


@pytest.mark.parametrize(
    ("gain", "k", "posterior", "rise", "factor"),
    [
        (Guess(), 3, 1, 2 / 3, 3),
        (GuessInTries(2), 3, 1, 1 / 3, 1.5),
        (Gini(), 4, 1, 3 / 4, 4),
        (Arimoto(2), 2, 1, 1 - math.sqrt(0.5), math.sqrt(2)),
        (Guess(), 70, 1, 69 / 70, 70),
        (GuessInTries(3), 13, 1, 10 / 13, 13 / 3),
        (Arimoto(math.inf), 70, 1, 69 / 70, 70),
        (GainMatrix([[1, -2], [-2, 1]]), 2, 1, 1.5, math.inf),
    ],
    ids=str,
)
def test_nobody_gains_more_than_from_the_secret_itself(gain, k, posterior, rise, factor):
    for form, value in (("posterior", posterior), ("rise", rise), ("factor", factor)):
        assert float(GainForm(gain, form).ceiling(k).mid()) == pytest.approx(value)
    assert float(LEAKAGE.ceiling(k)) == pytest.approx(math.log(k))


@pytest.mark.parametrize(
    ("gain", "form"),
    [
        (Guess(), "posterior"),
        (Guess(), "rise"),
        (Guess(), "factor"),
        (Gini(), "rise"),
        (Arimoto(2), "factor"),
    ],
    ids=str,
)
def test_what_is_claimed_is_about_one_gain_in_one_form(gain, form):
    honest, bound = parts_of(gain, form)
    lower, upper = ends(honest)
    assert (lower, upper) == (bound.lower, bound.upper)
    assert lower <= upper <= lower + 2e-4
    assert unit_of(honest.problem) == bound.unit
    for other in ("posterior", "rise", "factor"):
        if other != form:
            forged = tampered(honest, {("problem", "form"): other})
            try:
                found = ends(forged)
            except CertificateError:
                continue
            truth = parts_of(gain, other)[1]
            assert found[0] <= truth.upper
            assert truth.lower <= found[1]


def test_multipliers_prove_what_they_prove():
    # The truth is .3 for a flip of .2: somebody knows the others' parity.
    honest, _ = parts_of(Guess(), "rise")
    rng = np.random.default_rng(4)
    cells = ("proof", "groups", 0, "cells")

    def shaken(packed):
        leaves = unpack(packed)
        return pack(leaves * rng.uniform(0.3, 3.0, leaves.shape))

    for _ in range(20):
        lower, upper = ends(tampered(honest, {(*cells, "leaves"): shaken}))
        assert lower <= 0.3 <= upper
    refused(honest, {(*cells, "leaves"): lambda p: pack(-unpack(p))}, "negative")
    refused(honest, {(*cells, "outputs"): [[0, 1]]}, "merged")
    no_mixture = {(*cells, "leaves"): lambda p: pack(np.where([1, *[1] * 4, 0, 0], unpack(p), 0))}
    refused(honest, no_mixture, "sum to zero")


def test_factors_need_a_positive_gain_and_a_factor():
    honest, bound = parts_of(Guess(), "factor")
    cells = ("proof", "groups", 0, "cells")
    assert bound.lower <= 1.6 <= bound.upper
    for times in (0.0, 0.5, 1.0, 1.59, 1.7, 5.0):
        lower, upper = ends(tampered(honest, {(*cells, "times"): times}))
        assert lower <= 1.6 <= upper
    refused(honest, {(*cells, "times"): -1.0}, ">= 0")
    refused(honest, {(*cells, "least"): [0.0, 1.0]}, "not proved to be positive")
    refused(honest, {(*cells, "least"): [1.0]}, "2 numbers")


def test_tangents_touch_where_they_are_stored():
    honest, bound = parts_of(Gini(), "rise")
    cells = ("proof", "groups", 0, "cells")
    rng = np.random.default_rng(5)

    def moved(packed):
        leaves = unpack(packed).copy()
        number = honest.proof["groups"][0]["cells"]["tangents"]
        leaves[:, -2 * number :] = rng.dirichlet([1, 1], size=(len(leaves), number)).reshape(
            len(leaves), -1
        )
        return pack(leaves)

    for _ in range(10):
        assert ends(tampered(honest, {(*cells, "leaves"): moved}))[1] >= bound.lower
    refused(honest, {(*cells, "tangents"): 0}, "number of tangents")
    refused(honest, {(*cells, "tangents"): 1}, "does not fit|shape")
    guess, _ = parts_of(Guess(), "rise")
    refused(guess, {(*cells,): lambda c: c | {"tangents": 2}}, "actions")


def test_what_other_gains_have_not():
    honest, _ = parts_of(Guess(), "rise")
    entry = ("proof", "groups", 0)
    refused(honest, {entry: lambda e: e | {"dataset": {}}}, "parts")
    refused(honest, {(*entry, "cells"): lambda c: c | {"symmetries": {}}}, "parts")
    refused(honest, {("problem", "gain"): {"kind": "guess", "tries": 2}}, "gain")
    refused(honest, {("problem", "gain"): {"kind": "shannon"}}, "written|rise|gain")
    refused(honest, {("problem", "form"): "half"}, "form")
    refused(honest, {("problem", "gain"): {"kind": "matrix", "table": [[1, 2, 3]]}}, "columns")
    wide = Tangents(GainForm(Guess(), "rise"), {}, 3)
    assert wide.width == 3
    assert [float(x) for x in wide.mixed([1.0, 1.0, 2.0])] == [0.25, 0.25, 0.5]
    assert Tangents(LEAKAGE, {}, 2).mixed([]) == [0, 0]


def test_gain_and_form_come_together_and_as_they_are_written():
    guess = Guess().to_dict()
    for part in ({"gain": guess}, {"form": "rise"}):
        with pytest.raises(CertificateError, match="cannot be read"):
            GainForm.read(part)
    assert GainForm.read({}) == LEAKAGE
    halves = {"kind": "matrix", "table": [["1/2", 0.0], [0.0, 1.0]]}
    with pytest.raises(CertificateError, match="canonical form"):
        GainForm.read({"gain": halves, "form": "rise"})
    with pytest.raises(CertificateError, match="canonical form"):
        GainForm.read({"gain": Shannon().to_dict(), "form": "rise"})
    other = GainForm.read({"gain": Shannon().to_dict(), "form": "posterior"})
    assert not other.is_leakage
    assert float(other.ceiling(3)) == 0


def test_forms_of_one_joint_law():
    joint = [[arb(0.4), arb(0.1)], [arb(0.125), arb(0.375)]]
    for form, value in (("posterior", 0.775), ("rise", 0.275), ("factor", 1.55)):
        assert abs(float(GainForm(Guess(), form).value(joint)) - value) < 1e-12


def test_few_actions_are_64():
    rng = np.random.default_rng(3)
    for number, few in ((64, True), (65, False)):
        told = GainForm(GainMatrix(rng.uniform(size=(number, 2)).round(3)), "rise")
        assert (told.actions(2) is not None) == few


def test_a_gain_that_may_be_nothing_has_factors_without_end():
    assert GainForm(GainMatrix([[1, 0]]), "factor").ceiling(2) == arb.pos_inf()


def test_outputs_are_merged_for_no_other_gain():
    honest, _ = parts_of(Guess(), "rise")
    cells = ("proof", "groups", 0, "cells")
    for groups in ([[0, 1]], [[0], [1], []], [[0], [1, 1]]):
        refused(honest, {(*cells, "outputs"): groups}, "merged|outputs")


def test_a_set_of_channels_loses_the_gain_of_the_prior_too():
    # What is taken off for the prior is half of it: with the other sign the end would be above 1.
    channels = ChannelSet([[0.75, 0.15], [0.15, 0.75]], [[0.85, 0.25], [0.25, 0.85]])
    bound = record_leakage(Mechanism(parity(2), channels), 0.7, gain=Guess())
    assert bound.upper < 0.36


def test_real_outputs_and_sets_of_channels_have_the_gain_that_is_named():
    found = record_leakage(Mechanism(count(1), Gaussian(1.0)), 0.0, tol=1e-2).certificate
    real = Parts("record-leakage", dict(found.problem), dict(found.witness), dict(found.proof))
    told = {("problem", "gain"): Guess().to_dict(), ("problem", "form"): "rise"}
    refused(real, told, "real output")
    channels = ChannelSet([[0.75, 0.15], [0.15, 0.75]], [[0.85, 0.25], [0.25, 0.85]])
    bound = record_leakage(Mechanism(parity(2), channels), 0.6, gain=Guess())
    found = bound.certificate
    whole = Parts("record-leakage", dict(found.problem), dict(found.witness), dict(found.proof))
    # The least flip is .15, the greatest .25; a right guess rises by .25 under it.
    assert 0.24 < ends(whole)[0] <= 0.25 <= 0.35 <= ends(whole)[1]
    wrong = {("problem", "gain"): GainMatrix([[1, 0, 0]]).to_dict()}
    refused(whole, wrong, "columns")
    # A prior of which nothing is learned: the rise is 0, rounded to nothing less.
    sure = {("witness", "weights"): lambda w: [0.5, 0.5, *[0.0] * (len(w) - 2)]}
    assert ends(tampered(whole, {**sure, ("problem", "entropy_floor"): 0.0}))[0] == 0
    assert "increase in the chance of guessing correctly" in about(whole.problem)


def test_an_output_without_the_data_still_leaves_a_guess():
    silent = Mechanism(parity(2), [[0.5, 0.5], [0.5, 0.5]])
    for form, value in (("posterior", 1.0), ("rise", 0.0), ("factor", 1.0)):
        bound = record_leakage(silent, 0.5, gain=Guess(), form=form)
        assert bound.lower - 1e-9 <= value <= bound.upper


def test_gains_are_read_as_they_were_written():
    for gain in GAINS:
        assert gain_from_dict(gain.to_dict()) == gain


class Own(Gain):
    """A gain of the user's own: the square of the first probability."""

    def value(self, laws):
        return laws[:, 0] ** 2

    def tangent(self, laws):
        return 2 * laws * np.eye(laws.shape[1])[0]


def test_a_gain_of_the_user_s_own_is_taken_at_its_word_and_to_its_accuracy():
    gain, measure = OwnGain(Own()), [arb(0.5, 1e-20), arb(1.25), arb(0.25)]
    found = height(gain, measure)
    assert found.mid() == 0.125
    assert 2.125e-12 <= float(found.rad()) < 2.126e-12
    # A number that is 0 but for its ball is never asked about as a negative one.
    assert height(gain, [arb(-1e-30, 1e-20), arb(1)]).contains(0)
    assert height(gain, [arb(0), arb(0)]) == 0
    law = normalized([0.5, 0.25, 0.25])
    assert [float(x) for x in tangent(gain, law)] == [0.75, -0.25, -0.25]
    with pytest.raises(ValidationError, match="no certificate can hold"):
        GainForm(gain, "rise").to_dict()


@pytest.mark.parametrize(
    ("gain", "k", "least"),
    [
        (Guess(), 70, 1 / 70),
        (GuessInTries(3), 13, 3 / 13),
        (Arimoto(math.inf), 70, 1 / 70),
        (Arimoto(2), 9, 1 / 3),
    ],
    ids=str,
)
def test_the_least_of_guesses_among_many_values_is_at_the_uniform_law(gain, k, least):
    told = GainForm(gain, "factor")
    found = told.least(k, [1.0])
    assert float(found) == pytest.approx(least, rel=1e-15)
    assert not found > gain.value(np.full(k, 1 / k)).item() * (1 + 1e-15)
    with pytest.raises(CertificateError):
        told.least(k, [1.0, 1.0])


def test_the_least_of_a_gain_of_the_user_s_own_is_by_tangents_at_stored_points():
    class Edges(Gain):
        def value(self, laws):
            return laws.max(axis=-1)

        def tangent(self, laws):
            return np.eye(laws.shape[1])[laws.argmax(axis=-1)]

    told = GainForm(OwnGain(Edges()), "factor")
    points = [0.75, 0.25, 0.25, 0.75]
    assert float(told.least(2, [1.0, 1.0, *points])) == 0.5
    assert float(told.least(2, [1.0, 3.0, *points])) == 0.25
    for wrong in ([1.0, 0.75, 0.25], [1.0, 0.0, *points]):
        with pytest.raises(CertificateError, match="not proved to be positive"):
            told.least(2, wrong)
    for wrong in ([], [1.0], [1.0, -1.0, *points], [1.0, 1.0, 0.5, 0.5, 0.0, 0.0], [1.0, *points]):
        with pytest.raises(CertificateError):
            told.least(2, wrong)
