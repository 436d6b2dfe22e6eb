"""Queries by name: deterministic functions of a dataset, ready to be followed by a noise channel.

`count`, `parity`, `modular_sum` and `pair_sum` are functions of the sum of n binary records, and
support thousands of records. `from_function` and `from_table` take any function on a record space
that is small enough to write out.

Each query has a ``sensitivity``: the most that changing one record can change its value.

============================  ==================================  ========================
query                         value                               sensitivity
============================  ==================================  ========================
``count(n)``                  x_1 + ... + x_n                     1
``parity(n)``                 (x_1 + ... + x_n) mod 2             1
``modular_sum(n, m)``         (x_1 + ... + x_n) mod m             m - 1 (n >= m), else 1
``pair_sum(n)``               sum of x_i x_j over i < j           n - 1
``histogram(n, k)``           count of each category, a tuple     (no number)
``crosstab(n, k, m)``         count of each pair, a tuple         (no number)
============================  ==================================  ========================
"""

from cvxleak.queries.binary import count, modular_sum, pair_sum, parity
from cvxleak.queries.explicit import from_function, from_table
from cvxleak.queries.tables import crosstab, histogram

__all__ = [
    "count",
    "crosstab",
    "from_function",
    "from_table",
    "histogram",
    "modular_sum",
    "pair_sum",
    "parity",
]
