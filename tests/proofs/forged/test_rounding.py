"""Which way every end is rounded: with coarse rounding in its place, each end moves outwards."""

import importlib
import math
import pkgutil

import pytest
from flint import fmpq

from cvxleak import proofs
from cvxleak.kernel.numbers import lower as float_below
from cvxleak.proofs import envelope
from tests.proofs.forged import (
    test_design,
    test_envelope,
    test_fixed_prior,
    test_local_dp,
    test_min_information,
    test_release,
)
from tests.proofs.forging import ends, refused, tampered

STEP = 2.0**-10
COARSE = {
    "upper": lambda found: found + STEP,
    "lower": lambda found: found - STEP,
    "float_above": lambda found: found + STEP,
    "float_below": lambda found: found - STEP,
    "log_above": lambda found: found + STEP,
    "log_below": lambda found: found - STEP,
    "exp_above": lambda found: found * (1 + fmpq(1, 1 << 10)),
    "exp_below": lambda found: found * (1 - fmpq(1, 1 << 10)),
}

HONEST = {
    f"{source.__name__.rsplit('_', 1)[-1]}: {name}": parts
    for source, several in [
        (test_design, test_design.PARTS),
        (test_envelope, {name: parts for name, (parts, _) in test_envelope.PARTS.items()}),
        (test_fixed_prior, test_fixed_prior.PARTS),
        (test_local_dp, test_local_dp.PARTS),
        (test_min_information, test_min_information.PARTS),
        (test_release, {name: parts for name, (parts, _) in test_release.TRUTH.items()}),
    ]
    for name, parts in several.items()
}
"""Honest parts."""

BUDGETS = {
    "design: distortion": "budget",
    "envelope: mechanism": "epsilon",
    "dp: distortion": "epsilon",
    "dp: distortion at delta": "epsilon",
    "prior: local-dp": "budget",
    "prior: pml": "budget",
    "prior: maximal-leakage": "budget",
}
"""Problems whose witness meets a budget that is checked with rounding, and no more than that."""

TIGHT = set(BUDGETS)
HONEST |= {
    f"{name}, with room": tampered(HONEST[name], {("problem", budget): lambda v: v + 0.0625})
    for name, budget in BUDGETS.items()
}
HONEST["dp: distortion, with room"].proof["potentials"] = ["1/16", "1/16"]

MODULES = [
    importlib.import_module(f"{room.__name__}.{one.name}")
    for room in (proofs, proofs.bounds)
    for one in pkgutil.iter_modules(room.__path__)
]


@pytest.fixture
def coarse(monkeypatch):
    """Make every function that rounds do so by much more, the way that its name says."""
    for module in MODULES:
        for name in COARSE.keys() & vars(module).keys():
            exact, change = getattr(module, name), COARSE[name]
            monkeypatch.setattr(module, name, lambda *x, f=exact, c=change: c(f(*x)))


@pytest.mark.parametrize("name", sorted(set(HONEST) - TIGHT))
def test_ends_move_outwards(name, request):
    before = ends(HONEST[name])
    request.getfixturevalue("coarse")
    lower, upper = ends(HONEST[name])
    assert lower <= max(before[0] - STEP / 2, 0.0) or before[0] == lower == math.inf
    assert upper >= min(before[1] + STEP / 2, 1.0)


@pytest.mark.parametrize("name", sorted(TIGHT))
def test_witnesses_that_just_meet_their_budget_do_not_meet_it_any_more(name, request):
    ends(HONEST[name])
    request.getfixturevalue("coarse")
    refused(
        HONEST[name], {}, "not (proved to be )?(within|private)|does not meet|leaks more|is not "
    )


def test_failure_probabilities_keep_their_distance_from_e_to_the_epsilon(monkeypatch):
    """Ratios count that are above the larger rational; the bound is that at the smaller one."""
    honest = test_envelope.FAILURE
    for name in ("exp_above", "exp_below"):
        exact, change = getattr(envelope, name), COARSE[name]
        monkeypatch.setattr(envelope, name, lambda x, f=exact, c=change: c(f(x)))
    lower, upper = ends(honest)
    assert lower == 0.0
    assert 0.5 + STEP / 100 < upper < 0.51
    sure = tampered(honest, {("witness", "weights", 1): 0.25})
    assert ends(sure)[0] == 0.4375
    monkeypatch.setattr(envelope, "float_below", lambda x: float_below(x) - STEP)
    assert ends(sure)[0] == 0.4375 - STEP
