"""Mechanisms by name: functions that return a `Channel`, and the parameters for a given leakage.

Each mechanism's docstring gives its formula, its source and its guarantee. C_1 stands for the
individual channel capacity (DALENIUS Theorem 2): the largest I(X_i; Y) over the records i and all
adversaries.

Arguments have one meaning throughout: ``k`` is the number of values (m in LEAKAGE), ``n`` the
number of records, ``flip`` the probability of a wrong output, ``epsilon`` a level of differential
privacy or of pointwise maximal leakage in nats, ``leakage`` the required bound on C_1 in nats,
``scale`` and ``variance`` those of the noise (both are N in DALENIUS), and ``peak`` the largest
absolute value of a query (T).

Bounds on C_1, and the functions that compute the parameter for a given bound (DALENIUS Corollaries
1 to 4):

===============================  ==============================  =================================
mechanism                        bound on C_1                    parameter for a given bound
===============================  ==============================  =================================
``generalized_symmetric``        ``symmetric_capacity``          ``flip_for_leakage``
``rank_exponential``             ``rank_exponential_bound``      ``rank_scale_for_leakage``
``discretized_gaussian``         ``gaussian_bound`` (loose) and  ``gaussian_variance_for_leakage``
                                 ``gaussian_peak_capacity``
any column-symmetric channel     ``column_symmetric_bound``
===============================  ==============================  =================================

A `Mechanism` consists of a query and a noise channel on its values:

>>> from cvxleak.mechanisms import binary_symmetric
>>> from cvxleak.model import Mechanism
>>> from cvxleak.queries import parity
>>> Mechanism(parity(4), binary_symmetric(0.3))
Mechanism(4 records, 2 query values -> 2 outputs)

`Mechanism.from_ptable` reads a statistical office's perturbation table.
"""

from cvxleak.mechanisms.column_symmetry import (
    column_symmetric_bound,
    is_column_symmetric,
    is_weakly_symmetric,
)
from cvxleak.mechanisms.exponential import (
    exponential,
    rank_exponential,
    rank_exponential_bound,
    rank_exponential_entropy,
    rank_scale_for_leakage,
)
from cvxleak.mechanisms.extremal import pml_extremal
from cvxleak.mechanisms.frequencies import FrequencyEstimate, estimate_frequencies
from cvxleak.mechanisms.gaussian import (
    discretized_gaussian,
    gaussian_bound,
    gaussian_variance_for_leakage,
)
from cvxleak.mechanisms.geometric import truncated_geometric
from cvxleak.mechanisms.laplace import discretized_laplace, laplace_threshold
from cvxleak.mechanisms.peak import PeakCapacity, gaussian_peak_capacity
from cvxleak.mechanisms.randomizing import randomize
from cvxleak.mechanisms.rounding import random_rounding
from cvxleak.mechanisms.symmetric import (
    binary_symmetric,
    flip_for_leakage,
    generalized_symmetric,
    randomized_response,
    symmetric_capacity,
)
from cvxleak.mechanisms.trivial import constant, identity

__all__ = [
    "FrequencyEstimate",
    "PeakCapacity",
    "binary_symmetric",
    "column_symmetric_bound",
    "constant",
    "discretized_gaussian",
    "discretized_laplace",
    "estimate_frequencies",
    "exponential",
    "flip_for_leakage",
    "gaussian_bound",
    "gaussian_peak_capacity",
    "gaussian_variance_for_leakage",
    "generalized_symmetric",
    "identity",
    "is_column_symmetric",
    "is_weakly_symmetric",
    "laplace_threshold",
    "pml_extremal",
    "random_rounding",
    "randomize",
    "randomized_response",
    "rank_exponential",
    "rank_exponential_bound",
    "rank_exponential_entropy",
    "rank_scale_for_leakage",
    "symmetric_capacity",
    "truncated_geometric",
]
