"""The search for one group of records."""

from types import SimpleNamespace

import pytest

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


@pytest.mark.parametrize(("reach", "share"), [(0.5, 0.0), (0.4, 1 / 3), (0.3, 2 / 3), (0.1, 1.0)])
def test_a_tree_gets_work_in_proportion_to_what_it_can_close(monkeypatch, reach, share):
    def grow(self, progress, nodes, look):
        self.work += 1.0

    monkeypatch.setattr(loop.Growing, "grow", grow)
    problem = RecordLeakage(Mechanism(count(4), random_rounding(4, base=3)), 2.2)
    (search,) = problem._search()._searches.values()
    search._planted = True
    other, cells = (
        loop.Growing(SimpleNamespace(nodes=0, upper=0.5, reach=x)) for x in (reach, -1.0)
    )
    search._trees, search._proofs = [other, cells], [other.tree]
    progress = loop.Progress(lambda: (0.2, 0.1), lambda: False, None)
    for _ in range(60):
        assert search.advance(progress, 1)
    assert other.work == pytest.approx(share * cells.work, abs=1.5)
