"""Queries of n binary records that depend on the number of ones only."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from cvxleak.core.validation import whole_number
from cvxleak.model import AdditiveQuery, RecordSpace

__all__ = ["count", "modular_sum", "pair_sum", "parity"]


def count(n: int) -> AdditiveQuery:
    """Return the number of ones among n binary records, f(x) = x_1 + ... + x_n.

    Its sensitivity is 1.

    Parameters
    ----------
    n : int
        Number of records, at least 1.

    Returns
    -------
    AdditiveQuery
        On {0, 1}^n, with the values 0, ..., n.

    Raises
    ------
    ValidationError
        `n` is not a positive integer.

    Examples
    --------
    >>> from cvxleak.queries import count
    >>> query = count(3)
    >>> query((1, 0, 1)), query.sensitivity
    (2, 1)

    For a record that is 0, two of the four contexts of the other records give the value 1:

    >>> query.fibers([0])[0]
    {0: 1, 1: 2, 2: 1}
    """
    return _of_sum(n)


def parity(n: int) -> AdditiveQuery:
    """Return the parity of n binary records, f(x) = (x_1 + ... + x_n) mod 2.

    It is the case m = 2 of `modular_sum`; its sensitivity is 1.

    Parameters
    ----------
    n : int
        Number of records, at least 1.

    Returns
    -------
    AdditiveQuery
        On {0, 1}^n, with the values 0 and 1.

    Raises
    ------
    ValidationError
        `n` is not a positive integer.

    References
    ----------
    DALENIUS Example 5, eq. (43).

    Examples
    --------
    >>> from cvxleak.queries import parity
    >>> query = parity(4)
    >>> query((1, 0, 1, 1)), query.sensitivity
    (1, 1)
    """
    return modular_sum(n, 2)


def modular_sum(n: int, modulus: int) -> AdditiveQuery:
    """Return the sum of n binary records modulo m, f(x) = (x_1 + ... + x_n) mod m.

    As integers, neighboring values differ by up to m - 1: with n >= m records the sum can wrap
    around from m - 1 to 0, so ``sensitivity`` is m - 1. LEAKAGE 4.1 gives 1, which is the distance
    on the cycle of length m, ``cyclic_sensitivity(m)``. Noise that is not added modulo m has to be
    scaled to a sensitivity of m - 1.

    Parameters
    ----------
    n : int
        Number of records, at least 1.
    modulus : int
        m, at least 1.

    Returns
    -------
    AdditiveQuery
        On {0, 1}^n, with the values 0, ..., min(m - 1, n).

    Raises
    ------
    ValidationError
        `n` or `modulus` is not a positive integer.

    References
    ----------
    LEAKAGE 4.1 (the linear query).

    Examples
    --------
    >>> from cvxleak.queries import modular_sum
    >>> query = modular_sum(5, 3)
    >>> query((1, 1, 0, 1, 1)), query.sensitivity, query.cyclic_sensitivity(3)
    (1, 2, 1)
    """
    return _of_sum(n, modulus=whole_number(modulus, "modulus", 1))


def pair_sum(n: int) -> AdditiveQuery:
    """Return the number of pairs of ones, f(x) = sum over i < j of x_i x_j.

    With s ones it is s (s - 1) / 2. Changing one record changes it by the number of ones among the
    others, so the sensitivity is n - 1.

    Parameters
    ----------
    n : int
        Number of records, at least 1.

    Returns
    -------
    AdditiveQuery
        On {0, 1}^n, with the values 0, 1, 3, 6, ..., n (n - 1) / 2.

    Raises
    ------
    ValidationError
        `n` is not a positive integer.

    References
    ----------
    LEAKAGE 4.1 (the non-linear query).

    Examples
    --------
    >>> from cvxleak.queries import pair_sum
    >>> query = pair_sum(4)
    >>> query.values, query((1, 0, 1, 1)), query.sensitivity
    ((0, 1, 3, 6), 3, 3)
    """
    return _of_sum(n, lambda ones: ones * (ones - 1) // 2)


def _of_sum(
    n: int, value: Callable[[int], Hashable] | None = None, modulus: int | None = None
) -> AdditiveQuery:
    space = RecordSpace.binary(n)
    return AdditiveQuery(space, [(0, 1)] * space.records, value, modulus)
