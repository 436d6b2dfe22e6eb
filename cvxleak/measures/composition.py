"""Budgets for several records or releases (DALENIUS Definitions 10, 16, 17, Theorems 3, 4).

All capacities are in nats: C_1 over all adversaries, C_1^b over those with H(X) >= b, C_k for
groups of k records.
"""

from __future__ import annotations

from collections.abc import Sequence

from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import SIZE_LIMIT, in_order, real_number, whole_number

__all__ = [
    "balance_value",
    "composition_budget",
    "composition_slack",
    "group_budget",
    "group_slack",
    "unrestricted_budget",
]


def balance_value(capacity: float, floored_capacity: float) -> float:
    """Return g(b) = C_1 - C_1^b: the extra leakage if the entropy floor b is dropped, in nats.

    Parameters
    ----------
    capacity : float
        C_1, over all adversaries.
    floored_capacity : float
        C_1^b, over the adversaries with H(X) >= b; at most C_1.

    Raises
    ------
    ValidationError
        If a capacity is negative, or the second is larger than the first.

    See Also
    --------
    cvxleak.audit.balance : Lower and upper bound on g(b) of a mechanism, both proved.

    Notes
    -----
    DALENIUS Definition 10; a channel with this value at b is called (b, g)-balanced.

    Examples
    --------
    >>> from cvxleak.measures import balance_value
    >>> balance_value(0.5, 0.125)
    0.375
    """
    largest = real_number(capacity, "capacity", 0.0, open_high=True)
    return largest - real_number(floored_capacity, "floored_capacity", 0.0, largest)


def unrestricted_budget(epsilon: float, balance: float) -> float:
    """Return epsilon + g(b): the budget against all adversaries, in nats.

    C_1^b <= epsilon if and only if C_1 <= epsilon + g(b).

    Parameters
    ----------
    epsilon : float
        Budget against the adversaries with H(X) >= b.
    balance : float
        g(b), see `balance_value`.

    Raises
    ------
    ValidationError
        If an argument is negative.

    Notes
    -----
    DALENIUS Proposition 2.

    Examples
    --------
    >>> from cvxleak.measures import unrestricted_budget
    >>> unrestricted_budget(0.125, 0.375)
    0.5
    """
    return _non_negative(epsilon, "epsilon") + _non_negative(balance, "balance")


def group_budget(size: int, epsilon: float, balance: float = 0.0) -> float:
    """Return k (epsilon + g(b)), an upper bound on C_k^b for groups of k = `size`, in nats.

    Parameters
    ----------
    size : int
        Size of the group, at least 1.
    epsilon : float
        A bound on C_1^b.
    balance : float, optional
        g(b), see `balance_value`; 0 if epsilon bounds C_1 over all adversaries, which gives a bound
        on C_k over all of them.

    Raises
    ------
    ValidationError
        If size is not a positive integer, or another argument is negative.

    Notes
    -----
    DALENIUS Theorem 3. In the chain rule, the adversary of the first term has entropy at least b.
    Those of the other k - 1 terms also know records, and may have less; each of these terms adds
    g(b).

    Examples
    --------
    >>> from cvxleak.measures import group_budget
    >>> group_budget(3, 0.125, 0.375)
    1.5
    """
    return whole_number(size, "size", 1, SIZE_LIMIT) * unrestricted_budget(epsilon, balance)


def group_slack(capacities: Sequence[float], epsilon: float) -> float:
    """Return the least c >= 0 with C_k <= k (epsilon + c) for every k, in nats.

    Parameters
    ----------
    capacities : sequence of float
        C_1, C_2, ..., in this order.
    epsilon : float
        The budget of one record.

    Raises
    ------
    ValidationError
        If there are no capacities, or a number is negative.

    Notes
    -----
    DALENIUS Definition 16: the mechanism has c-group privacy for this c and every larger one.

    Examples
    --------
    >>> from cvxleak.measures import group_slack
    >>> group_slack([0.5, 1.5], 0.5)
    0.25
    """
    budget = _non_negative(epsilon, "epsilon")
    checked = _non_negatives(capacities, "capacities")
    if not checked:
        raise ValidationError("capacities: found none; at least C_1 is needed")
    return max(0.0, max(c / k for k, c in enumerate(checked, start=1)) - budget)


def composition_budget(epsilons: Sequence[float], balances: Sequence[float]) -> float:
    """Return sum_j (epsilon_j + g_j(b)): an upper bound on C_1^b of several releases, in nats.

    Parameters
    ----------
    epsilons : sequence of float
        For each release, a bound on its C_1^b.
    balances : sequence of float
        For each release its g_j(b), see `balance_value`; zeros if the epsilons bound each C_1 over
        all adversaries, which gives a bound on C_1 over all of them.

    Raises
    ------
    ValidationError
        If the two sequences differ in length, are empty, or hold a negative number.

    Notes
    -----
    DALENIUS Theorem 4. The noise of the releases is independent; the datasets may have any
    distribution.

    Examples
    --------
    >>> from cvxleak.measures import composition_budget
    >>> composition_budget([0.125, 0.25], [0.375, 0.0])
    0.75
    """
    budgets, gains = _non_negatives(epsilons, "epsilons"), _non_negatives(balances, "balances")
    if len(budgets) != len(gains) or not budgets:
        raise ValidationError(
            f"balances: found {len(gains)}, with {len(budgets)} epsilons; "
            "one of each is needed for every release"
        )
    return sum(eps + g for eps, g in zip(budgets, gains, strict=True))


def composition_slack(capacity: float, epsilons: Sequence[float]) -> float:
    """Return the least c >= 0 with C_1 <= sum_j epsilon_j + c for a composition, in nats.

    Parameters
    ----------
    capacity : float
        C_1 of all releases together.
    epsilons : sequence of float
        The budget of each release.

    Raises
    ------
    ValidationError
        If a number is negative.

    Notes
    -----
    DALENIUS Definition 17: the composition satisfies it with this c and every larger one.

    Examples
    --------
    >>> from cvxleak.measures import composition_slack
    >>> composition_slack(0.75, [0.25, 0.25])
    0.25
    """
    budgets = sum(_non_negatives(epsilons, "epsilons"))
    return max(0.0, _non_negative(capacity, "capacity") - budgets)


def _non_negatives(values: Sequence[float], name: str) -> list[float]:
    return [_non_negative(v, f"{name}[{place}]") for place, v in enumerate(in_order(values, name))]


def _non_negative(value: float, name: str) -> float:
    return real_number(value, name, 0.0, open_high=True)
