"""`Budgets`: what each party, some coalitions, and all parties together may learn."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cvxleak.core.errors import InfeasibleError, ValidationError
from cvxleak.core.validation import real_number, short
from cvxleak.desk.history import Observer

__all__ = ["Budgets", "Limits", "party_name"]

Limits = dict[Observer | None, float]
"""Budgets, in nats, of all observers of a release; None stands for all parties together."""


@dataclass(frozen=True)
class Budgets:
    """The budgets of a ledger, in nats.

    Parameters
    ----------
    epsilon : float or mapping of str to float
        Budget of each party; with a mapping, only the parties in it are served.
    delta : float
        Budget of all parties together.
    coalitions : mapping of tuples of str to float
        Budgets of some parties together.

    Raises
    ------
    ValidationError
        An invalid name or number, or a budget above `delta`.
    """

    epsilon: float | dict[str, float]
    delta: float
    coalitions: dict[Observer, float]

    def __init__(
        self,
        epsilon: float | Mapping[str, float],
        delta: float,
        coalitions: Mapping[tuple[str, ...], float] | None = None,
    ) -> None:
        most = real_number(delta, "delta", 0.0, open_high=True)
        if isinstance(epsilon, Mapping):
            own: Any = {
                party_name(party, "epsilon"): real_number(e, "epsilon", 0.0, most)
                for party, e in epsilon.items()
            }
        else:
            own = real_number(epsilon, "epsilon", 0.0, most)
        groups = {}
        for parties, budget in (coalitions or {}).items():
            if isinstance(parties, str):
                raise ValidationError(
                    f"coalitions: found {short(parties)}; at least two parties are needed"
                )
            who = frozenset(party_name(party, "coalitions") for party in parties)
            if not who or who in groups:
                raise ValidationError(
                    f"coalitions: found {short(parties)}; each coalition needs members and "
                    "exactly one budget"
                )
            strangers = sorted(who - set(own)) if isinstance(own, dict) else []
            if strangers:
                raise ValidationError(
                    f"coalitions: found {strangers}; members must be parties that epsilon names"
                )
            groups[who] = real_number(budget, "coalitions", 0.0, most)
        object.__setattr__(self, "epsilon", own)
        object.__setattr__(self, "delta", most)
        object.__setattr__(self, "coalitions", groups)

    def to_dict(self) -> dict[str, Any]:
        """Return the budgets as plain data."""
        groups = [[sorted(who), budget] for who, budget in self.coalitions.items()]
        return {"epsilon": self.epsilon, "delta": self.delta, "coalitions": groups}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Budgets:
        """Return the budgets that `to_dict` wrote."""
        groups = {tuple(parties): budget for parties, budget in data["coalitions"]}
        return cls(data["epsilon"], data["delta"], groups)

    def of(self, who: Observer) -> float:
        """Return the budget of some parties; infinite if they have none."""
        own = math.inf
        if len(who) == 1:
            (party,) = who
            own = self.epsilon.get(party, 0.0) if isinstance(self.epsilon, dict) else self.epsilon
        return min(own, self.coalitions.get(who, math.inf))

    def of_request(
        self, party: str, epsilon: float | None, delta: float | None, before: float
    ) -> Limits:
        """Return the budgets of all observers of a release to `party`.

        `before` is the largest delta of the requests before this one.

        Raises
        ------
        ValidationError
            delta below `before`, or epsilon above delta (SEQUENTIAL, section II).
        InfeasibleError
            A budget above what the ledger allows, which the message states.
        """
        if isinstance(self.epsilon, dict) and party not in self.epsilon:
            raise InfeasibleError(
                f"party: found {short(party)}; the parties of this ledger are "
                f"{sorted(self.epsilon)}"
            )
        own = _within("epsilon", epsilon, self.of(frozenset([party])))
        everybody = _within("delta", delta, self.delta)
        if everybody < before:
            raise ValidationError(
                f"delta: found {everybody!r}, below {before!r} of an earlier request; the budget "
                "of all parties together must not decrease"
            )
        if epsilon is None:
            own = min(own, everybody)
        if own > everybody:
            raise ValidationError(
                f"epsilon: found {own!r}; it must be at most delta, which is {everybody!r}"
            )
        limits: Limits = {frozenset([party]): own, None: everybody}
        for who, budget in self.coalitions.items():
            if party in who:
                limits[who] = min(budget, limits.get(who, math.inf))
        return limits


def party_name(party: Any, argument: str) -> str:
    """Return the name of a party; raise if it is not valid."""
    if not isinstance(party, str) or not party or party != party.strip():
        raise ValidationError(
            f"{argument}: found {short(party)}; the name of a party is text without leading or "
            "trailing spaces"
        )
    return party


def _within(name: str, value: float | None, cap: float) -> float:
    if value is None:
        return cap
    number = real_number(value, name, 0.0)
    if number > cap:
        raise InfeasibleError(
            f"{name}: found {number!r} nats; the ledger allows at most {cap!r} nats"
        )
    return number
