import copy
import math

import pytest

from cvxleak.core.errors import CvxleakError
from cvxleak.design import min_distortion, min_leakage
from cvxleak.kernel.numbers import precision
from cvxleak.model import Distortion
from cvxleak.proofs import Certificate, verify
from cvxleak.proofs import design as prover
from cvxleak.queries import count, parity

WRONG = Distortion.hamming([0, 1])


@pytest.fixture(scope="module")
def leakage():
    return min_leakage(parity(3), distortion=WRONG, budget=0.1, entropy_floor=1.5).certificate


@pytest.fixture(scope="module")
def distortion():
    return min_distortion(parity(2), distortion=WRONG, budget=0.2, entropy_floor=0.5).certificate


@pytest.fixture(scope="module")
def total():
    return min_leakage(
        parity(2), distortion=WRONG, budget=0.1, entropy_floor=0.9, objective="total"
    ).certificate


@pytest.fixture(scope="module")
def known():
    return min_leakage(
        count(2), distortion=Distortion.absolute(range(3)), budget=0.2, priors=[[0.4, 0.2, 0.4]]
    ).certificate


def tampered(certificate, change, claim=(None, None)):
    """Return whether a certificate still passes after a change of its content."""
    parts = [copy.deepcopy(getattr(certificate, n)) for n in ("problem", "witness", "proof")]
    change(*parts)
    lower = certificate.lower if claim[0] is None else claim[0]
    upper = certificate.upper if claim[1] is None else claim[1]
    problem, witness, proof = parts
    made = Certificate(
        certificate.kind, problem, lower, upper, witness, proof, unit=certificate.unit
    )
    return verify(made.to_dict()).passed


def nothing(problem, witness, proof):
    pass


@pytest.mark.parametrize("name", ["leakage", "distortion", "total", "known"])
def test_it_holds_as_it_is_and_claims_no_more(name, request):
    certificate = request.getfixturevalue(name)
    assert tampered(certificate, nothing)
    assert not tampered(certificate, nothing, (certificate.lower + 1e-6, None))
    assert not tampered(certificate, nothing, (None, certificate.upper - 1e-6))


def set_in(*path, value):
    def change(problem, witness, proof):
        place = {"problem": problem, "witness": witness, "proof": proof}[path[0]]
        for key in path[1:-1]:
            place = place[key]
        place[path[-1]] = value

    return change


@pytest.mark.parametrize(
    "change",
    [
        set_in("problem", "budget", value=0.09),
        set_in("problem", "budget", value=None),
        set_in("problem", "entropy_floor", value=1.6),
        set_in("problem", "entropy_floor", value=1.4),
        set_in("problem", "entropy_floor", value="1.5 nats"),
        set_in("problem", "priors", value=[{"on": "uniform", "weights": []}]),
        set_in("problem", "objective", value={"size": 2}),
        set_in("problem", "objective", value={"size": 9}),
        set_in("problem", "rows", value={"form": "anything"}),
        set_in("problem", "rows", "generators", value=[]),
        set_in("problem", "sources", value=[]),
        set_in("problem", "sources", value=[{"on": "values", "weights": [0.1, 0.9]}]),
        set_in("problem", "distortion", "matrix", value=[[0.0, 2.0], [1.0, 0.0]]),
        set_in("problem", "extra", value=1),
        set_in("witness", "channel", "matrix", value=[[1.0, 0.0], [0.0, 1.0]]),
        set_in("witness", "channel", "matrix", value=[[0.9, 0.1], [0.11, 0.89]]),
        set_in("proof", "cuts", value=[]),
        set_in("proof", "cuts", 0, "multiplier", value=-1.0),
        set_in("proof", "cuts", 0, "records", value=[0, 1]),
        set_in("proof", "cuts", 0, "weights", 0, value=1e9),
        set_in("proof", "cuts", 0, "weights", 0, value=-0.1),
        set_in("proof", "cuts", 0, "posterior", 0, value=[0.0, 0.0]),
        set_in("proof", "sources", value=[0.0]),
        set_in("proof", "sources", value=[-2.0]),
        set_in("proof", "own", value=[1.0]),
        set_in("proof", "leakage", value={}),
    ],
)
def test_changes_are_seen(leakage, change):
    assert not tampered(leakage, change)


@pytest.mark.parametrize(
    "change",
    [
        set_in("problem", "budget", value=0.19),
        set_in("problem", "budget", value=0.21),
        set_in("problem", "budget", value=None),
        set_in("witness", "channel", "matrix", value=[[0.99, 0.01], [0.01, 0.99]]),
        set_in("proof", "sources", value=[0.0]),
        set_in("proof", "cuts", 0, "multiplier", value=1e9),
    ],
)
def test_changes_of_least_distortion_are_seen(distortion, change):
    assert not tampered(distortion, change)


@pytest.mark.parametrize(
    "change",
    [
        set_in("proof", "leakage", "multiplier", value=-1.0),
        set_in("proof", "leakage", "output", value=[1.0, 0.0]),
        set_in("proof", "leakage", "output", value=[0.9, 0.1]),
        set_in("problem", "entropy_floor", value=1.4),
    ],
)
def test_changes_of_the_total_are_seen(total, change):
    assert not tampered(total, change, (None, None))


def test_rows_by_class_are_for_the_whole_dataset_only(leakage, total):
    rows = copy.deepcopy(total.problem["rows"])
    assert rows["form"] == "classes"
    problem = dict(leakage.problem, rows=dict(rows, query=leakage.problem["query"]))
    with precision(), pytest.raises(CvxleakError, match="whole dataset"):
        prover.prove_min_leakage(problem, leakage.witness, leakage.proof)


def test_rows_that_no_symmetry_joins_are_refused(known):
    problem = copy.deepcopy(dict(known.problem))
    problem["rows"] = {
        "form": "orbits",
        "query": parity(2).to_dict(),
        "generators": [],
    }
    with precision(), pytest.raises(CvxleakError):
        prover.prove_min_leakage(problem, known.witness, known.proof)


def test_conditions_of_the_user_are_told():
    certificate = min_leakage(
        parity(3), distortion=WRONG, budget=0.1, entropy_floor=1.5, rows="orbits",
        constraints=lambda Q: Q[0, 0] >= 0.95,
    ).certificate  # fmt: skip
    assert len(certificate.problem["own"]) == 1
    assert verify(certificate).passed
    # Without the condition the multipliers prove less than is claimed.
    assert not tampered(certificate, set_in("proof", "own", value=[0.0]))


@pytest.mark.parametrize("record", [0, 1])
def test_records_that_the_query_does_not_tell_apart_may_leak_apart(record):
    # A law on the values of f is symmetric in the records; a channel with a row per dataset, under
    # constraints of its own, need not be: this one tells the value of one record.
    values = [(x >> (1 - record)) & 1 for x in range(4)]
    bound = min_leakage(
        parity(2),
        distortion=[[0, 1], [1, 0]],
        budget=1.0,
        priors=[[0.5, 0.5]],
        constraints=lambda Q: [Q[x, value] >= 0.9 for x, value in enumerate(values)],
    )
    assert bound.lower == pytest.approx(0.368064, abs=1e-4)  # log 2 - h(0.1)
    assert verify(bound.certificate).passed


def silent(floor, size=1):
    """Return a certificate that a constant is the best that leaks nothing; b is put in after."""
    made = min_distortion(
        parity(3),
        distortion=WRONG,
        budget=0.0,
        entropy_floor=1.5,
        objective="total" if size == 0 else "record",
    ).certificate
    return tampered(made, set_in("problem", "entropy_floor", value=floor))


@pytest.mark.parametrize("size", [0, 1])
def test_nothing_may_leak_to_adversaries_of_some_freedom(size):
    assert silent(0.0, size)
    assert silent(2.0, size)
    # log|X| itself, rounded down: the even law tells of the whole dataset, not of a record.
    most = math.nextafter(math.log(8), 0)
    assert most < math.log(8)
    assert silent(most, size) is (size == 0)


def test_a_little_leakage_does_not_force_a_constant():
    made = min_distortion(parity(3), distortion=WRONG, budget=0.0, entropy_floor=1.5).certificate
    assert tampered(made, nothing)
    assert not tampered(made, set_in("problem", "budget", value=1e-300))
