"""All programs of all families at all sizes: measured, fitted, stored and printed."""

from __future__ import annotations

import json
import math
import multiprocessing
import os
import platform
import signal
import time
import warnings
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._families import FAMILIES, OURS, Family, missing
from benchmarks._pages import DOCS, replace_section, table

NUMBERS = DOCS / "benchmarks.json"
PAGE = "benchmarks.md"
PACKAGES = ("cvxleak", "numpy", "scipy", "cvxpy", "highspy", "clarabel", "ecos", "scs", "pyscipopt")
PACKAGES += ("qif", "dit", "dp_accounting")
REPEAT = 3


@dataclass(frozen=True)
class Run:
    """A program on a case: seconds of the processor, and what came out."""

    seconds: float
    lower: float | None = None
    upper: float | None = None
    note: str = ""
    """"failed", "out of time" or "left out"."""
    why: str = ""

    @property
    def done(self) -> bool:
        return not self.note


def measure(family: str, program: str, size: int, limit: float) -> Run:
    """Run a program on a case, up to three times if it is quick; the least time counts."""
    kind = FAMILIES[family]()
    case = kind.make(size)
    times: list[float] = []
    value: Any = math.nan
    while len(times) < REPEAT and sum(times) < 0.5:
        begin = time.process_time()
        with warnings.catch_warnings():
            # What a program has to say about its own accuracy is measured instead.
            warnings.simplefilter("ignore")
            try:
                value = kind.programs[program](case, limit)
            except Exception as error:  # each program fails in its own way
                what = "out of time" if "out of time" in str(error) else "failed"
                return Run(time.process_time() - begin, note=what, why=f"{error!r:.100}")
        times.append(time.process_time() - begin)
    lower, upper = value if isinstance(value, tuple) else (value, value)
    if not (math.isfinite(lower) and math.isfinite(upper)):
        return Run(min(times), note="failed", why="no value")
    return Run(min(times), float(lower), float(upper))


class Worker:
    """A process that measures, and is replaced by a new one when it runs out of time."""

    def __init__(self) -> None:
        self._start()

    def measure(self, family: str, program: str, size: int, limit: float) -> Run:
        begin = cpu_clock(self._pid)
        future = self._pool.submit(measure, family, program, size, limit)
        while True:
            try:
                return future.result(timeout=0.2)
            except TimeoutError:
                # A program may be run several times, but only if the first run was quick.
                if cpu_clock(self._pid) - begin > limit + 1.0:
                    os.kill(self._pid, signal.SIGKILL)
                    self._start()
                    return Run(limit, note="out of time")

    def close(self) -> None:
        self._pool.shutdown(wait=False)

    def _start(self) -> None:
        self._pool = ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"))
        # Importing is nobody's running time.
        self._pool.submit(measure, "capacity", OURS, 10, 1.0).result()
        self._pid = self._pool.submit(os.getpid).result()


def cpu_clock(pid: int) -> float:
    """Return the processor's seconds of another process; of the clock, where that is not to be had.

    (A limit set by the process itself would make its own clock coarse.)
    """
    try:
        return time.clock_gettime((~pid << 3) | 2)  # clock_getcpuclockid of Linux
    except (AttributeError, OSError):
        return time.monotonic()


def compare(names: Iterable[str], limit: float, sizes: int | None = None) -> dict[str, Any]:
    """Measure families, the first so many sizes of each, and return everything as plain data."""
    families = {}
    with closing(Worker()) as worker:
        for name in names:
            family = FAMILIES[name]()
            absent = [why for why in map(missing, family.programs) if why]
            runs: dict[str, list[Run]] = {p: [] for p in family.programs if not missing(p)}
            for size in family.sizes[:sizes]:
                for program, done in runs.items():
                    # Who failed or ran out of time is not asked for more.
                    stop = bool(done) and done[-1].note in ("out of time", "left out")
                    run = Run(0.0, note="left out")
                    if not stop:
                        run = worker.measure(name, program, size, limit)
                    if not done and run.done and run.seconds < 1.0:
                        # Importing was part of the first time.
                        run = worker.measure(name, program, size, limit)
                    if run.done and run.seconds > limit:
                        run = Run(run.seconds, note="out of time")
                    done.append(run)
            families[name] = {
                "title": family.title,
                "case": family.case,
                "attained": family.attained,
                "close": family.close,
                "relative": family.relative,
                "limit": limit,
                "sizes": list(family.sizes[:sizes]),
                "absent": absent,
                "runs": {program: [asdict(run) for run in done] for program, done in runs.items()},
                "growth": {
                    program: growth(family.sizes[:sizes], done) for program, done in runs.items()
                },
            }
    return {"machine": machine(), "families": families}


def growth(sizes: Sequence[int], runs: Sequence[Run]) -> float | None:
    """Fit log seconds = constant + exponent log size, over three sizes at least."""
    points = [(n, run.seconds) for n, run in zip(sizes, runs, strict=True) if run.done]
    if len(points) < 3:
        return None
    x, y = np.log(np.maximum(np.array(points), 1e-6)).T
    return float(np.polyfit(x, y, 1)[0])


def machine() -> dict[str, Any]:
    """Return what the numbers depend on."""
    versions = {}
    for package in PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = "not installed"
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "processor": processor(),
        "cores": os.cpu_count(),
        "threads": 1,
        "load": round(os.getloadavg()[0], 1),
        "python": platform.python_version(),
        "system": platform.system(),
        "versions": versions,
    }


def processor() -> str:
    path = Path("/proc/cpuinfo")
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def off(family: dict[str, Any], run: dict[str, Any], ours: dict[str, Any]) -> float | None:
    """Return by how much a value misses cvxleak's attained end, with its sign."""
    if run["note"] or ours["note"]:
        return None
    scale = (abs(ours["upper"]) if family["relative"] else 0.0) or 1.0
    return (run[family["attained"]] - ours[family["attained"]]) / scale


def worst(family: dict[str, Any], program: str) -> float | None:
    """Return what a program is off by where it is worst; of cvxleak, its widest gap."""
    ours = family["runs"][OURS]
    runs = family["runs"][program]
    if program == OURS:
        done = [run for run in runs if not run["note"]]
        scale = [(abs(run["upper"]) if family["relative"] else 0.0) or 1.0 for run in done]
        found = [(r["upper"] - r["lower"]) / s for r, s in zip(done, scale, strict=True)]
    else:
        pairs = zip(runs, ours, strict=True)
        found = [d for run, mine in pairs if (d := off(family, run, mine)) is not None]
    return max(found, key=abs, default=None)


def cell(family: dict[str, Any], program: str, index: int) -> str:
    run, ours = family["runs"][program][index], family["runs"][OURS][index]
    if program == OURS:
        return run["note"] or f"{run['seconds']:.3g} s"
    if run["note"] in ("left out", "failed"):
        return "–" if run["note"] == "left out" else "failed"
    if ours["note"]:
        # Nothing to take a ratio to: what the others did is told in seconds.
        return run["note"] or f"{run['seconds']:.3g} s"
    ratio = run["seconds"] / max(ours["seconds"], 1e-6)
    if run["note"]:
        return f"> {figure(ratio)}×"
    miss = off(family, run, ours)
    mark = "" if miss is not None and abs(miss) <= family["close"] else "\\*"
    return f"{figure(ratio)}×{mark}"


def figure(x: float) -> str:
    return f"{x:.0f}" if x >= 99.5 else f"{x:.2g}"


def family_table(family: dict[str, Any]) -> str:
    """Return the table of one family."""
    headings = ["program", *(f"n = {n}" for n in family["sizes"]), "growth", "off by at most"]
    rows = []
    for program in family["runs"]:
        exponent, miss = family["growth"][program], worst(family, program)
        rows.append(
            [
                program,
                *(cell(family, program, i) for i in range(len(family["sizes"]))),
                "–" if exponent is None else f"{exponent:.1f}",
                "–" if miss is None else f"{miss:.1g}" if program == OURS else f"{miss:+.1g}",
            ]
        )
    return table(headings, rows)


def best_table(found: dict[str, Any]) -> str:
    """Return one line for each family: the best of the others that is as accurate."""
    headings = ["family", "largest n", "cvxleak", "best of the others", ""]
    headings += ["growth: cvxleak", "other"]
    rows = []
    for family in found["families"].values():
        mine = family["runs"][OURS]
        last = max((i for i, run in enumerate(mine) if not run["note"]), default=None)
        if last is None:
            continue
        others = {
            program: runs[last]["seconds"]
            for program, runs in family["runs"].items()
            if program != OURS
            and (miss := off(family, runs[last], mine[last])) is not None
            and abs(miss) <= family["close"]
        }
        best = min(others, key=lambda program: others[program], default=None)
        exponents = [family["growth"][OURS], None if best is None else family["growth"][best]]
        growths = ["–" if e is None else f"{e:.1f}" for e in exponents]
        seconds = max(mine[last]["seconds"], 1e-6)
        ratio = "" if best is None else f"{figure(others[best] / seconds)}×"
        size = str(family["sizes"][last])
        rows.append([family["title"], size, f"{seconds:.3g} s", best or "none", ratio, *growths])
    return table(headings, rows)


def conditions(found: dict[str, Any]) -> str:
    machine = found["machine"]
    versions = ", ".join(f"{name} {number}" for name, number in machine["versions"].items())
    absent = [why for family in found["families"].values() for why in family["absent"]]
    lines = [
        f"Measured on {machine['date']}: {machine['processor']}, {machine['cores']} cores, one "
        f"thread for every program, {machine['system']}, Python {machine['python']}; load of "
        f"the machine at the end {machine['load']} (other load affects processor time less than "
        "elapsed time, and ratios least).",
        f"Versions: {versions}.",
    ]
    if absent:
        lines.append(f"Left out: {'; '.join(dict.fromkeys(absent))}.")
    return "\n\n".join(lines)


def sections(found: dict[str, Any]) -> dict[str, str]:
    """Return what the page says, by section."""
    parts = []
    for family in found["families"].values():
        unit = " (relative)" if family["relative"] else ""
        parts.append(
            f"### {family['title']}\n\nCases: {family['case']}. A value counts as right within "
            f"{family['close']:g}{unit}; a program had {family['limit']:g} seconds for a case.\n\n"
            f"{family_table(family)}"
        )
    return {
        "conditions": conditions(found),
        "best": best_table(found),
        "families": "\n\n".join(parts),
    }


def show(found: dict[str, Any]) -> str:
    return "\n\n".join(sections(found).values()).replace("\\*", "*")


def load(path: Path = NUMBERS) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8"))


def save(found: dict[str, Any], path: Path) -> None:
    path.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def merged(found: dict[str, Any]) -> dict[str, Any]:
    """Return what is stored, with the families of a new run in place of the old ones."""
    known = load()["families"] if NUMBERS.exists() else {}
    known |= found["families"]
    ordered = {name: known[name] for name in FAMILIES if name in known}
    return found | {"families": ordered}


def write_page(found: dict[str, Any]) -> None:
    for name, content in sections(found).items():
        replace_section(PAGE, name, content)


__all__ = ["NUMBERS", "Family", "Run", "compare", "growth", "load", "save", "sections", "show"]
