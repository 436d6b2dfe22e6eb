"""Counting in how many ways contributions add up to each total, exactly.

The generating function of the totals is a product of one polynomial per record, with one variable
per component of the contributions; equal records give a power.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

from flint import Ordering, fmpz_mpoly_ctx

from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import short

__all__ = ["Total", "count_totals"]

Total = tuple[int, ...]

BITS_LIMIT = 1 << 31
"""Most memory, in bits, that the counts of all totals may take."""


def count_totals(
    kinds: Mapping[tuple[Total, ...], int], width: int, modulus: int | None
) -> dict[Total, int]:
    """Count the choices of one contribution per record by the total that they add up to.

    Parameters
    ----------
    kinds : mapping
        How many records have these contributions, each a tuple of `width` integers >= 0.
    width : int
        Number of components.
    modulus : int or None
        Totals are reduced modulo this.

    Raises
    ------
    ValidationError
        More totals than can be held in memory.
    """
    parts = {part for record in kinds for part in record}
    columns = zip(*parts, strict=True) if parts else [()] * width
    units = [math.gcd(modulus or 0, *column) or 1 for column in columns]
    moduli = None if modulus is None else [modulus // unit for unit in units]
    bits = sum(power * math.log2(len(record)) for record, power in kinds.items())
    factors = [_Counts.of({(0,) * width: 1}, moduli, bits)]
    for record, power in kinds.items():
        counts = Counter(
            tuple(c // unit for c, unit in zip(part, units, strict=True)) for part in record
        )
        factors.append(_Counts.of(counts, moduli, bits).power(power))
    # In pairs, pairs of pairs and so on: products of polynomials of like size are the fastest.
    while len(factors) > 1:
        odd = factors[-1:] if len(factors) % 2 else []
        pairs = zip(factors[::2], factors[1::2], strict=False)
        factors = [one.times(two) for one, two in pairs] + odd
    return {
        tuple(int(e) * unit for e, unit in zip(total, units, strict=True)): int(count)
        for total, count in factors[0].polynomial.to_dict().items()
    }


class _Counts:
    """A polynomial whose exponents are totals and whose coefficients are counts."""

    def __init__(self, polynomial: Any, moduli: list[int] | None, bits: float) -> None:
        self.polynomial = polynomial
        self.moduli = moduli
        self.bits = bits

    @classmethod
    def of(cls, counts: Mapping[Total, int], moduli: list[int] | None, bits: float) -> _Counts:
        width = len(next(iter(counts)))
        context = fmpz_mpoly_ctx.get([f"t{j}" for j in range(width)], Ordering.lex)
        return cls(context.from_dict(dict(counts)), moduli, bits)

    def times(self, other: _Counts) -> _Counts:
        one, two = self.polynomial, other.polynomial
        degrees = [int(d) + int(e) for d, e in zip(one.degrees(), two.degrees(), strict=True)]
        self._check(min(len(one) * len(two), _box(degrees)))
        return self._folded(one * two)

    def power(self, power: int) -> _Counts:
        base = self.polynomial
        multisets = math.comb(power + len(base) - 1, power)
        unfolded = min(multisets, _box([power * int(d) for d in base.degrees()]))
        if self.moduli is None or unfolded < math.prod(self.moduli):
            self._check(unfolded)
            return self._folded(base**power)
        # Folding after each squaring keeps the polynomials as small as the result.
        if power == 1:
            return self._folded(base)
        half = self.power(power // 2)
        square = half.times(half)
        return square.times(self) if power % 2 else square

    def _folded(self, polynomial: Any) -> _Counts:
        if self.moduli is not None:
            folded: dict[Total, Any] = {}
            for total, count in polynomial.to_dict().items():
                key = tuple(int(e) % m for e, m in zip(total, self.moduli, strict=True))
                folded[key] = folded.get(key, 0) + count
            polynomial = polynomial.context().from_dict(folded)
        return _Counts(polynomial, self.moduli, self.bits)

    def _check(self, terms: int) -> None:
        if terms * (self.bits + 1000) > BITS_LIMIT:
            raise ValidationError(
                f"contributions: their sums can take about {short(terms)} values, too many to count"
            )


def _box(degrees: list[int]) -> int:
    return math.prod(1 + degree for degree in degrees)
