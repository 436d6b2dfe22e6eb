"""The search for one group of records."""

from cvxleak.audit import RecordLeakage
from cvxleak.audit.worst_adversary import loop
from cvxleak.core.clock import Clock, Stop
from cvxleak.mechanisms import random_rounding
from cvxleak.model import Mechanism
from cvxleak.problem import Gap, Stopped
from cvxleak.queries import count


def test_a_search_that_has_no_tree_stays_without(monkeypatch):
    monkeypatch.setattr(loop, "LATE", 1)
    problem = RecordLeakage(Mechanism(count(4), random_rounding(4, base=3)), 2.2)
    search = problem._search()
    for _ in range(2):
        assert search.advance(Gap(1e-4), Stop(Clock())) is Stopped.TOO_LARGE
    found = search.found(Gap(1e-4))
    assert 0.2 < found.lower < found.upper
