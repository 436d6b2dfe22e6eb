"""A search uses one BLAS thread, and leaves the caller as many as there were."""

from __future__ import annotations

from threadpoolctl import threadpool_info, threadpool_limits

from cvxleak.audit import leakage_curve, record_leakage
from tests.reference import rounded_table


def blas_threads() -> int:
    return max(
        library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"
    )


def test_a_search_uses_one_blas_thread():
    seen: list[int] = []

    def progress(*_: float) -> None:
        seen.append(blas_threads())

    mechanism = rounded_table(3, total=True)
    with threadpool_limits(2, user_api="blas"):
        record_leakage(mechanism, 2.9, 0, tol=0.05, progress=progress)
        leakage_curve(mechanism, [2.8, 2.9], 0, tol=0.05, progress=progress)
        assert blas_threads() == 2

    assert set(seen) == {1}
