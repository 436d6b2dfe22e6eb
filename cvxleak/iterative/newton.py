"""Shared by the interior-point methods here and in other packages."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import get_lapack_funcs

from cvxleak.core.errors import SolverError
from cvxleak.core.validation import Array

__all__ = ["cholesky_solver", "to_boundary"]


FACTORIZE, SOLVE = get_lapack_funcs(("potrf", "potrs"))


def cholesky_solver(matrix: Array, diagonal: Array) -> Callable[[Array], Array]:
    """Return a function that solves (matrix + Diag(diagonal)) x = b; `matrix` is overwritten.

    Equal and nearly equal rows of the data make the matrix singular as a central path ends: its
    diagonal is enlarged by as little as it takes. LAPACK is called as it is, since SciPy's
    functions around it take longer than systems of a few unknowns.

    Raises
    ------
    SolverError
        The matrix is not positive definite, whatever is added.

    Examples
    --------
    >>> import numpy as np
    >>> from cvxleak.iterative.newton import cholesky_solver
    >>> cholesky_solver(np.ones((2, 2)), np.ones(2))(np.array([3.0, 3.0])).round(9)
    array([1., 1.])
    """
    enlarged = matrix.diagonal() + diagonal
    for exponent in range(-15, 3, 2):
        np.fill_diagonal(matrix, enlarged * (1 + 10.0**exponent))
        factor, info = FACTORIZE(matrix, lower=1)
        if info == 0:
            return lambda b: SOLVE(factor, b, lower=1)[0]
    raise SolverError("the Newton system cannot be factorized")


def to_boundary(values: Array, change: Array) -> float:
    """Return the largest step in [0, 1] that keeps values + step * change >= 0.

    Examples
    --------
    >>> import numpy as np
    >>> from cvxleak.iterative.newton import to_boundary
    >>> to_boundary(np.array([1.0, 1.0]), np.array([-2.0, 5.0]))
    0.5
    """
    return 1 / max(1.0, float((-change / values).max()))
