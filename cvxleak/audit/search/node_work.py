"""How much work the nodes of each search are, and how many of them a turn has."""

from __future__ import annotations

from typing import Any

import numpy as np

from cvxleak.audit.search.law_blocks import BLOCK_STEPS
from cvxleak.audit.search.law_boxes import BOX_STEPS
from cvxleak.audit.search.sharing import SharingSearch
from cvxleak.model import Lumped
from cvxleak.solvers import BestFirst

__all__ = ["Search", "rule_of", "turn_of", "work_of"]

Search = BestFirst[Any, Any, Any] | SharingSearch

NODES = {"cells": 1000, "slabs": 15, "sharing": 2000, "boxes": 20_000, "blocks": 100_000}
"""Most nodes that are bounded in one turn."""

FIRST_NODES = {"cells": 1000, "slabs": 15, "sharing": 200, "boxes": 2000, "blocks": 5000}
"""Most nodes in the first turn; each turn may take twice as many as have been bounded so far."""

TURN = 10**9
"""About how many multiplications one turn may take, if that is more than one node."""

NEWTON_STEPS = 15
"""About how many Newton steps a node takes."""


def turn_of(search: Search, lumped: Lumped, outputs: int) -> int:
    """Return how many nodes the next turn of a search may bound."""
    rule = rule_of(search)
    most = np.clip(2 * search.nodes, FIRST_NODES[rule], NODES[rule])
    return int(np.clip(TURN / work_of(rule, lumped, outputs), 1, most))


def work_of(rule: str, lumped: Lumped, outputs: int) -> int:
    """Return about how many multiplications a node takes."""
    groups = len(lumped.rows)
    if rule in ("boxes", "blocks"):
        steps = BOX_STEPS if rule == "boxes" else BLOCK_STEPS
        return int(steps * groups * outputs // len(lumped.values))
    if rule == "sharing":
        return NEWTON_STEPS * (outputs**3 + groups * outputs**2 // len(lumped.values))
    if rule == "cells":
        size = outputs * len(lumped.values)
        return NEWTON_STEPS * (size**3 + groups * outputs**2)
    size = groups + outputs
    return NEWTON_STEPS * (size**3 + groups * size**2)


def rule_of(search: Search) -> str:
    """Return what a search branches by: of time sharing, there are three rules."""
    if isinstance(search, SharingSearch) and search.by_boxes:
        return "blocks" if search.by_blocks else "boxes"
    return search.kind
