"""Shannon capacity: cvxleak against Blahut–Arimoto, plain CVXPY, qif and dit.

Every program gets the same channel and is timed from the matrix to the input distribution. Its gap
is certified afterwards, by the same code for all: max_x D(q(.|x) || t) - I(p, Q), rounded outward,
at the distribution p that it returned (negative entries cut off, divided by its sum) and the output
distribution t of p. Times are the least of up to five runs, and "x ours" is a program's time over
cvxleak's. A time counts as "at equal gap" only if the gap is 1e-9 nats or less. A program that runs
out of time on a Dirichlet channel is stopped there and left out of the larger ones.
"""

from __future__ import annotations

import importlib.util
import multiprocessing
import time
import warnings
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass

import cvxpy as cp
import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from cvxleak.capacities import Capacity, capacity
from cvxleak.capacities.channel_sets import largest_divergence, point_of
from cvxleak.iterative import blahut_arimoto
from cvxleak.kernel.numbers import precision
from cvxleak.mechanisms import discretized_gaussian
from cvxleak.model import Channel
from cvxleak.proofs.checker import PROVERS

Array = NDArray[np.float64]
Method = Callable[[Channel, float], Array]

GAP = 1e-9
LIMIT = 60.0


@dataclass(frozen=True)
class Measurement:
    name: str
    seconds: float
    gap: float
    note: str = ""


def ours(channel: Channel, limit: float) -> Array:
    return capacity(channel).witness.probabilities


def plain_blahut_arimoto(channel: Channel, limit: float) -> Array:
    return blahut_arimoto(channel, tol=GAP / 2, max_iterations=10**9, time_limit=limit).point


def plain_cvxpy(solver: str, **options: float) -> Method:
    def method(channel: Channel, limit: float) -> Array:
        problem = Capacity(channel).to_cvxpy()
        problem.solve(solver=solver, **options)
        return problem.var_dict["input"].value

    return method


def with_qif(channel: Channel, limit: float) -> Array:
    import qif

    return np.asarray(qif.measure.shannon.add_capacity(channel.matrix.copy(), GAP)[1]).ravel()


def with_dit(channel: Channel, limit: float) -> Array:
    from dit.algorithms.channelcapacity import channel_capacity

    return np.asarray(channel_capacity(channel.matrix, rtol=1e-15, atol=1e-15)[1])


METHODS: dict[str, Method] = {
    "cvxleak": ours,
    "Blahut–Arimoto": plain_blahut_arimoto,
    "SCS, eps 1e-9": plain_cvxpy("SCS", eps_abs=1e-9, eps_rel=1e-9, max_iters=100_000),
    "CLARABEL as it comes": plain_cvxpy("CLARABEL"),
    "CLARABEL, tol 1e-12": plain_cvxpy(
        "CLARABEL", tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12
    ),
    "ECOS as it comes": plain_cvxpy("ECOS"),
    "ECOS, tol 1e-12": plain_cvxpy("ECOS", abstol=1e-12, reltol=1e-12, feastol=1e-12),
    "qif": with_qif,
    "dit": with_dit,
}


def installed(name: str) -> bool:
    if name in ("qif", "dit"):
        return importlib.util.find_spec(name) is not None
    solver = name.split(",")[0].split(" ")[0]
    return solver not in ("SCS", "CLARABEL", "ECOS") or solver in cp.installed_solvers()


def dirichlet_channel(n: int) -> Channel:
    return Channel(np.random.default_rng(n).dirichlet(np.ones(n), size=n))


def gaussian_channel() -> Channel:
    """Return a channel of closely spaced inputs, on which Blahut–Arimoto hardly moves."""
    return discretized_gaussian(np.linspace(-8, 8, 200), 1.0, np.linspace(-3, 3, 200))


def certified_gap(channel: Channel, p: Array) -> float:
    p = np.maximum(p, 0.0)
    p = np.where(p >= 1e-200, p, 0.0) / p.sum()
    output = (p / channel.matrix.sum(axis=1)) @ channel.matrix
    output = np.where((channel.matrix > 0).any(axis=0), np.maximum(output, 1e-200), 0.0)
    with precision():
        lower, upper, *_ = PROVERS["capacity"].prove(
            {"matrix": channel.matrix.tolist()},
            point_of(p),
            largest_divergence(output, len(channel.matrix)),
        )
    return upper - lower


def measure(name: str, channel: Channel, limit: float) -> Measurement:
    times: list[float] = []
    while len(times) < 5 and sum(times) < 1.0:
        begin = time.perf_counter()
        with warnings.catch_warnings():
            # What a program has to say about its own accuracy is measured instead.
            warnings.simplefilter("ignore")
            try:
                p = METHODS[name](channel, limit)
            except cp.SolverError:
                return Measurement(name, time.perf_counter() - begin, np.inf, "solver failed")
        times.append(time.perf_counter() - begin)
    if p is None or not np.isfinite(p).all():
        return Measurement(name, min(times), np.inf, "no point")
    return Measurement(name, min(times), certified_gap(channel, p))


class Worker:
    """A process that measures, and is replaced by a new one when it runs out of time."""

    def __init__(self) -> None:
        self._start()

    def measure(self, name: str, channel: Channel, limit: float) -> Measurement:
        try:
            # The margin lets a program with a time limit of its own return what it has.
            return self._pool.apply_async(measure, (name, channel, limit)).get(1.2 * limit + 5)
        except multiprocessing.TimeoutError:
            self._pool.terminate()
            self._start()
            return Measurement(name, 1.2 * limit + 5, np.inf, "out of time")

    def close(self) -> None:
        self._pool.terminate()

    def _start(self) -> None:
        self._pool = multiprocessing.get_context("spawn").Pool(1)
        # Importing is nobody's running time.
        self._pool.apply(installed, ("cvxleak",))


def report(title: str, rows: list[Measurement], console: Console) -> None:
    reference = rows[0].seconds
    table = Table(title=title, title_justify="left")
    for heading in ("", "seconds", "certified gap", "x ours", ""):
        table.add_column(heading, justify="left" if heading == "" else "right")
    for row in rows:
        table.add_row(
            row.name,
            f"{row.seconds:.4f}",
            f"{row.gap:.1e}",
            f"{row.seconds / reference:.1f}",
            row.note or ("" if row.gap <= GAP else "gap too wide"),
        )
    console.print(table)
    close = [row for row in rows[1:] if row.gap <= GAP]
    if close:
        best = min(close, key=lambda row: row.seconds)
        console.print(
            f"at equal gap: cvxleak is {best.seconds / reference:.1f} times as fast as "
            f"the best of the others ({best.name})\n"
        )
    else:
        console.print(f"at equal gap: nobody else came to {GAP:g}\n")


def main(limit: float) -> None:
    console = Console()
    absent = [name for name in METHODS if not installed(name)]
    if absent:
        console.print(f"not installed, so left out: {', '.join(absent)}\n")
    present = [name for name in METHODS if name not in absent]
    with closing(Worker()) as worker:
        names = present
        for n in (10, 50, 200, 1000):
            channel = dirichlet_channel(n)
            rows = [worker.measure(name, channel, limit) for name in names]
            report(f"Dirichlet(1), {n} x {n}", rows, console)
            names = [row.name for row in rows if row.seconds <= limit]
        channel = gaussian_channel()
        rows = [worker.measure(name, channel, limit) for name in present]
        report("discretized Gaussian, 200 x 200", rows, console)
