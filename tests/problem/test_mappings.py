"""A mapping from labels to probabilities is a law, wherever a candidate or a law is asked for."""

from typing import Any

import pytest

from cvxleak.audit import ProductLeakage, RecordLeakage
from cvxleak.capacities import Capacity, RenyiCapacity
from cvxleak.core.errors import ValidationError
from cvxleak.design import min_leakage
from cvxleak.local_dp import MinLocalDP
from cvxleak.mechanisms import binary_symmetric
from cvxleak.model import Channel, Distortion, Mechanism, Prior, RelativeEntropyBall
from cvxleak.problem import verify_iterates
from cvxleak.queries import count, parity
from cvxleak.report import audit_report, explain

LAW: Any = {"yes": 0.75, "no": 0.25}
CHANNEL = Channel([[0.9, 0.1], [0.2, 0.8]], ["no", "yes"])
MECHANISM = Mechanism(parity(2), binary_symmetric(0.1))


@pytest.mark.parametrize(
    ("problem", "mapping"),
    [
        (Capacity(CHANNEL), LAW),
        (RenyiCapacity(CHANNEL, 2), LAW),
        (MinLocalDP([LAW], 0.1), LAW),
        (RecordLeakage(MECHANISM, 0.5), {(0, 0): 0.5, (1, 1): 0.25, (0, 1): 0.25, (1, 0): 0}),
    ],
    ids=lambda part: type(part).__name__,
)
def test_a_candidate(problem, mapping):
    bound = problem.solve()
    found = problem.check(mapping, bound=bound)
    assert found == problem.check(Prior(mapping), bound=bound)
    assert found.value > 0


def test_candidates_of_an_iteration():
    report = verify_iterates(Capacity(CHANNEL), [LAW, {"no": 0.5, "yes": 0.5}])
    assert report.checks[0].value == Capacity(CHANNEL).check(Prior(LAW)).value
    assert report.last.feasible
    assert Capacity(CHANNEL).repair(LAW).lower >= report.checks[0].value - 1e-9


def test_laws_of_the_records():
    laws = [{1: 0.75, 0: 0.25}] * 2
    problem = ProductLeakage(MECHANISM, 0.5)
    assert problem.check(laws).value == problem.check([Prior(law) for law in laws]).value > 0
    near, same = (RelativeEntropyBall(0.1, laws=law) for law in (laws[0], Prior(laws[0])))
    assert near.bind(MECHANISM.query) == same.bind(MECHANISM.query)


@pytest.mark.parametrize("report", [audit_report, explain])
def test_the_prior_of_a_report(report):
    alone = Mechanism(count(1), binary_symmetric(0.1))
    one, other = (report(alone, prior=law) for law in ({1: 0.75, 0: 0.25}, Prior([0.25, 0.75])))
    (told,), (same,) = (found.named("mutual information") for found in (one, other))
    assert told.upper == same.upper > 0


def test_what_is_no_law_is_refused():
    with pytest.raises(ValidationError, match=r"sums to 1\.5"):
        Capacity(CHANNEL).check({"no": 1.0, "yes": 0.5})
    with pytest.raises(ValidationError, match="candidate: its labels are"):
        Capacity(CHANNEL).check({"a": 0.5, "b": 0.5})
    distortion = Distortion.absolute(range(3))
    one: Any = {0: 0.5, 1: 0.5, 2: 0.0}
    with pytest.raises(ValidationError, match="priors: found one Prior; a list"):
        min_leakage(count(2), distortion=distortion, budget=0.5, priors=one)
