"""`Design`: a designed channel and its proved leakage and distortion."""

from __future__ import annotations

from dataclasses import dataclass, field

from cvxleak.design.adversary_oracle import Cut
from cvxleak.model import Channel, Mechanism

__all__ = ["Design", "Round"]


@dataclass(frozen=True)
class Round:
    """One round of the search.

    Attributes
    ----------
    lower, upper : float
        The proved bounds after this round.
    cuts : int
        Number of adversaries in the master.
    seconds : float
        Since the start.

    Examples
    --------
    >>> from cvxleak.design import Round
    >>> Round(lower=0.3, upper=0.31, cuts=4, seconds=0.2).cuts
    4
    """

    lower: float
    upper: float
    cuts: int
    seconds: float


@dataclass(frozen=True)
class Design:
    """The channel that a design problem returns, with its proved leakage and distortion.

    Attributes
    ----------
    mechanism : Mechanism
        The channel after the statistic that labels its rows: one row per dataset, or per orbit.
    distortion : float
        Largest expected distortion over the sources, rounded up.
    leakage : float
        Proved upper bound on the leakage to any adversary, in nats.
    worst : Cut
        The worst adversary found: the attacked records, and the joint distribution of their value
        and the row.
    rounds : tuple of Round
    binding : tuple of str
        The binding constraints.
    user_violation : float
        Largest violation of the user's constraints: 0, rounding of equations, or a violation that
        could not be repaired (`cvxleak.design.slater_repair`).

    Examples
    --------
    >>> from cvxleak import min_leakage
    >>> from cvxleak.queries import parity
    >>> wrong = [[0, 1], [1, 0]]
    >>> bound = min_leakage(parity(2), distortion=wrong, budget=0.5, entropy_floor=0.5)
    >>> bound.witness.leakage
    0.0
    """

    mechanism: Mechanism
    distortion: float
    leakage: float
    worst: Cut = field(repr=False)
    rounds: tuple[Round, ...] = field(repr=False, compare=False)
    binding: tuple[str, ...] = ()
    user_violation: float = 0.0

    @property
    def channel(self) -> Channel:
        """The channel; its inputs are the values of ``mechanism.query``."""
        return self.mechanism.channel
