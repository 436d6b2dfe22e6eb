"""Compare this tree with another one, release 0.2.0: the bank of truths, or a script, on both.

`make compare` brings the other environment and runs this file. Each side is a process of its own
environment that answers one problem after the other, in turns with the other side; the adapter
beside this file makes and solves the problems on both. Both sides get the same limit of time, in
seconds of the processor (their clock is replaced), and the same limit of work, which 0.2.0 does not
know. Exit code 1: two brackets do not meet, or this tree misses a truth, has no answer, or has a
certificate that does not pass.

A script defines `problems()`: it returns problems of cvxleak by name, or a list of entries as in
the bank (README.md).
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import random
import runpy
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from statistics import median
from typing import Any

Entry = dict[str, Any]
Answer = dict[str, Any]
Case = dict[str, Any]

SIDES = ("old", "new")

NEGLIGIBLE = {"gap": 1e-9, "cpu": 1e-3, "size": 1, "verify": 1e-3}
"""Smaller values count as this in a ratio."""

WIDER = 1.1
"""From this ratio on, a gap beyond the tolerance is called wider."""

WAITING = 10
"""How many times its limit of time a side may take by the wall clock before it is ended."""


def of_script(_name: str, data: dict[str, str], limits: Any, unit: str | None) -> Any:
    """Solve a script's problem: a statement of the adapter."""
    from problems import _of_bound, _within

    problem = runpy.run_path(data["path"])["problems"]()[data["name"]]
    return _of_bound(problem.solve(**_within(problem.solve, limits)), unit)


def measure(entry: Entry, limits: dict[str, float]) -> Answer:
    """Solve an entry, save its certificates and verify the files; times are of the processor."""
    from problems import failures, solve

    entry.pop("work", None)  # both sides get the limits of the comparison
    found = solve(entry, **limits)
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder, f"{place}.json") for place in range(len(found.certificates))]
        for certificate, file in zip(found.certificates, files, strict=True):
            certificate.save(file)
        begin = time.process_time()
        fails = failures(replace(found, certificates=tuple(files)))
        return {
            "lower": found.lower,
            "upper": found.upper,
            "gap": 0.0 if found.gap[1] <= NEGLIGIBLE["gap"] else found.gap[0],
            "holds": found.meets(entry),
            "certified": found.stats.get("status") == "CERTIFIED",
            "cpu": found.seconds,
            "verify": time.process_time() - begin if files else None,
            "size": sum(file.stat().st_size for file in files) if files else None,
            "fails": fails,
        }


def serve() -> None:
    """Answer the requests on standard input, a line each."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # solvers may print
    time.monotonic = time.process_time  # limits of time: a busy machine takes nothing from a side
    import problems

    import cvxleak
    from cvxleak.problem import PROBLEMS, problem_class

    for name in PROBLEMS:  # what they import is not part of a measured time
        problem_class(name)
    problems.STATEMENTS["script"] = of_script
    print(json.dumps([cvxleak.__version__, cvxleak.__file__]), file=out, flush=True)
    for line in sys.stdin:
        try:
            answer = measure(*json.loads(line))
        except Exception as error:  # each tree fails in its own way
            answer = {"error": f"{type(error).__name__}: {error}".partition("\n")[0][:200]}
        print(json.dumps(answer), file=out, flush=True)


class Side:
    """A process that runs `serve` in an environment, started again if it is lost."""

    def __init__(self, python: str, environment: dict[str, str]) -> None:
        self._command = [python, "-W", "ignore", __file__, "--serve"]
        self._pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "env": environment}
        self._start()

    def _start(self) -> None:
        self._process = subprocess.Popen(self._command, text=True, **self._pipes)
        if not (line := self._line(600.0)):
            raise SystemExit(f"{self._command[0]} does not run cvxleak")
        self.tree = " ".join(json.loads(line))

    def _line(self, seconds: float) -> str:
        timer = threading.Timer(seconds, self._process.kill)
        timer.start()
        line = self._process.stdout.readline()
        timer.cancel()
        return line

    def ask(self, entry: Entry, limits: dict[str, float]) -> Answer:
        self._process.stdin.write(json.dumps([entry, limits]) + "\n")
        self._process.stdin.flush()
        if line := self._line(WAITING * limits["time_limit"] + 120.0):
            return json.loads(line)
        self._process.wait()
        self._start()
        return {"error": "the process was ended: out of time, or of memory"}


def median_of(answers: list[Answer]) -> Answer:
    """Return the first answer with the medians of the times, or the first that failed."""
    for answer in answers:
        if "error" in answer:
            return answer
    times = ("cpu", "verify") if answers[0]["size"] else ("cpu",)
    return answers[0] | {name: median(answer[name] for answer in answers) for name in times}


def ratio(new: Answer, old: Answer, name: str) -> float | None:
    if new[name] is None or old[name] is None:
        return None
    above, below = (max(answer[name], NEGLIGIBLE[name]) for answer in (new, old))
    return 1.0 if above == below else above / below


def judged(entry: Entry, old: Answer, new: Answer) -> Case:
    """Compare two answers; `wrong` lists what must not be."""
    case: Case = {"family": entry["family"], "name": entry["name"], "old": old, "new": new}
    if "error" in new:
        return case | {"wrong": [f"no answer: {new['error']}"]}
    wrong = [f"a certificate does not pass: {reason}" for reason in new["fails"]]
    if not new["holds"]:
        wrong.append(f"the truth {entry['truth']} is missed")
    if "error" not in old:
        case |= {name: ratio(new, old, name) for name in NEGLIGIBLE}
        lower, upper = max(old["lower"], new["lower"]), min(old["upper"], new["upper"])
        # Numbers that nothing proves are rounded; proved ends are not, but the mechanisms that they
        # are about may be: some constructors of this tree round their last digits towards privacy.
        rounding = 1e-11 if old["size"] and new["size"] else 1e-9
        near = math.isclose(lower, upper, rel_tol=rounding, abs_tol=rounding)
        case["meet"] = lower <= upper or near
        case["narrower"] = case["gap"] < 1 / WIDER and not old["certified"]
        case["wider"] = case["gap"] > WIDER and not new["certified"]
        if not case["meet"]:
            wrong.append("the brackets do not meet")
    return case | {"wrong": wrong}


def of_family(family: str, cases: list[Case]) -> dict[str, Any]:
    """Return a family's row: counts, sums of times, medians of ratios."""
    both = [case for case in cases if "meet" in case]
    ratios = {name: [c[name] for c in both if c[name] is not None] for name in NEGLIGIBLE}
    return {
        "family": family,
        "cases": len(cases),
        "answered by both": len(both),
        **{name: sum(case[name] for case in both) for name in ("meet", "narrower", "wider")},
        **{f"{side} holds": sum(c[side].get("holds", False) for c in cases) for side in SIDES},
        **{f"{side} CPU s": sum(case[side]["cpu"] for case in both) for side in SIDES},
        **{name: median(found) if found else None for name, found in ratios.items()},
    }


def of_case(case: Case) -> dict[str, Any]:
    """Return a case's row: both brackets and the ratios."""
    ends = "{lower:.7g} to {upper:.7g}"
    brackets = {side: case[side].get("error") or ends.format(**case[side]) for side in SIDES}
    ratios = {name: case.get(name) for name in NEGLIGIBLE}
    return {"case": f"{case['family']}/{case['name']}"} | brackets | ratios


def table(rows: list[dict[str, Any]]) -> str:
    """Return rows as a table in Markdown."""

    def cell(value: Any) -> str:
        return "" if value is None else f"{value:.3g}" if isinstance(value, float) else str(value)

    lines = [list(rows[0]), ["---"] * len(rows[0])]
    lines += [[cell(value) for value in row.values()] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def listed(script: Path) -> list[Entry]:
    """Return the problems of a script as entries."""
    found = runpy.run_path(str(script))["problems"]()
    if isinstance(found, dict):
        path = str(script.resolve())
        found = [{"name": n, "problem": "script", "data": {"path": path, "name": n}} for n in found]
    return [{"family": script.stem, "truth": [-math.inf, math.inf]} | entry for entry in found]


def chosen(script: Path | None, patterns: list[str], sample: int | None) -> list[Entry]:
    """Return the entries of the bank, or of a script, that are asked for, family by family."""
    from problems import load

    wanted = [(key, pattern) for key in ("family", "name") for pattern in patterns]
    found = listed(script) if script else load()
    found = [one for one in found if any(fnmatchcase(one[key], p) for key, p in wanted)]
    if sample is not None and sample < len(found):
        found = random.Random(0).sample(found, sample)
    return sorted(found, key=lambda entry: entry["family"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("patterns", nargs="*", default=["*"], help="families or names, as noise*")
    parser.add_argument("--old", required=True, help="the Python of the other environment")
    parser.add_argument("--script", type=Path, help="a Python file with problems()")
    parser.add_argument("--sample", type=int, help="so many of the entries, drawn at random")
    parser.add_argument("--time-limit", type=float, default=10.0, help="CPU seconds a problem")
    parser.add_argument("--work-limit", type=float, help="counted work a problem")
    parser.add_argument("--repeat", type=int, default=1, help="how often; medians of the times")
    parser.add_argument("--cases", action="store_true", help="also print a row for each case")
    parser.add_argument("--json", type=Path, help="also write all answers to this file")
    options = parser.parse_args()
    entries = chosen(options.script, options.patterns, options.sample)
    if not entries:
        parser.error(f"nothing is called {options.patterns}")
    limits = {name: getattr(options, name) for name in ("time_limit", "work_limit")}
    limits = {name: limit for name, limit in limits.items() if limit is not None}
    os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")
    # Whatever is on PYTHONPATH is this tree.
    theirs = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    sides = {"old": Side(options.old, theirs), "new": Side(sys.executable, dict(os.environ))}
    cases = []
    for done, entry in enumerate(entries, 1):
        answers = {name: [] for name in SIDES}
        for turn in range(options.repeat):
            for name in SIDES if turn % 2 == 0 else SIDES[::-1]:
                answers[name].append(sides[name].ask(entry, limits))
        cases.append(judged(entry, *(median_of(answers[name]) for name in SIDES)))
        said = f"{done}/{len(entries)} {entry['family']}/{entry['name']}"
        print(said, *cases[-1]["wrong"], sep="  ", file=sys.stderr, flush=True)
    found = itertools.groupby(cases, lambda case: case["family"])
    rows = [of_family(family, list(group)) for family, group in found] + [of_family("all", cases)]
    if options.json:  # before it is shown: a run takes long
        stored = {"limits": limits, "repeat": options.repeat, "families": rows, "cases": cases}
        options.json.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")
    print(*(f"{name}: cvxleak {side.tree}" for name, side in sides.items()), sep="\n")
    print(f"{limits}, {options.repeat} times; gap, cpu, size, verify: medians of new / old\n")
    print(table(rows))
    if options.cases:
        print(f"\n{table([of_case(case) for case in cases])}")
    wrong = [f"{c['family']}/{c['name']}: {reason}" for c in cases for reason in c["wrong"]]
    print("", *wrong, sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(serve() if sys.argv[1:] == ["--serve"] else main())
