"""Mutate the checker: change one thing at a time in what it trusts, and see a test fail.

``python -m tests.mutation`` (`make mutate`) runs the tests of the checker once and notes which
statements each test reaches. Then, for each mutant, a child process replaces the code of the one
function and runs the tests that reach the changed statement, the nearest first, until one fails. A
mutant that no test can tell must stand in ``survivors.toml`` with the reason why it is harmless.

Trusted are all functions in ``cvxleak/kernel`` and ``cvxleak/proofs`` and, of ``cvxleak/model``,
``cvxleak/core/numbers.py`` and ``cvxleak/core/validation.py``, those that are called while a
certificate is verified.
"""

from __future__ import annotations

import argparse
import builtins
import functools
import gc
import hashlib
import os
import resource
import signal
import subprocess
import sys
import time
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

from cvxleak.kernel import numbers
from cvxleak.proofs import checker, exact
from tests.mutation.mutants import Mutant, Source

ROOT = Path(__file__).resolve().parents[2]
SURVIVORS = Path(__file__).with_name("survivors.toml")
TRUSTED = tuple(ROOT / "cvxleak" / room for room in ("kernel", "proofs"))
FILES = [
    *(file for folder in TRUSTED for file in sorted(folder.rglob("*.py"))),
    *sorted((ROOT / "cvxleak/model").rglob("*.py")),
    ROOT / "cvxleak/core/validation.py",
    ROOT / "cvxleak/core/numbers.py",
]
NEAREST = "tests/proofs/forged"
"""Forged certificates: made by hand, so no search takes time."""

TESTS = [NEAREST, "tests/kernel", "tests/core", "tests/model"]
"""`survivors.toml` says exactly what these leave; other tests may kill some of it."""

CPU_SECONDS = 5
"""A child is given this and twenty times what its tests need without a change."""

MEMORY = 4 << 30

Test = Any
KILLED, SURVIVED, ENDLESS = "killed", "survived", "endless"


class Mutation:
    """The pytest plugin that does it all in place of running the tests once."""

    def __init__(self, only: Sequence[str], sample: int, jobs: int, exact: bool) -> None:
        self._only, self._sample, self._jobs, self._exact = only, sample, jobs, exact
        self._sources = {str(file): Source(file) for file in FILES}
        self._first: dict[str, int] = {}
        self._reached: set[int] = set()
        self._trusted: set[int] = set()
        self._by_setup: dict[Any, set[int]] = defaultdict(set)
        self._tests: dict[int, list[Test]] = defaultdict(list)
        self._seconds: dict[Test, float] = {}
        self.failed = True

    def pytest_sessionstart(self) -> None:
        """Have Hypothesis stop at the first failure: which one is the smallest is no matter."""
        # Not at the top: pytest rewrites the assertions of its plugins while it imports them.
        from hypothesis import Phase, settings

        phases = [Phase.explicit, Phase.generate]
        settings.register_profile("mutation", settings.get_profile("repeatable"), phases=phases)
        settings.load_profile("mutation")

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run all tests once as they are, then those that matter for each mutant."""
        tests = list(dict.fromkeys(session.items))
        near = [t for t in tests if NEAREST in t.nodeid] if self._sample else tests
        functions = _functions(self._sources)
        self._caches = [
            one
            for one in gc.get_objects()
            if isinstance(one, functools._lru_cache_wrapper)
            and one.__module__.startswith("cvxleak.")
        ]
        self._note_what_is_reached(near, functions)
        mutants = [
            (mutant, self._tests_of(mutant))
            for source in self._sources.values()
            for mutant in source.mutants
            if self._chosen(mutant) and self._is_trusted(mutant)
        ]
        listed = _listed()
        gc.freeze()  # children that collect garbage would copy all of it
        rest: list[Test] = []
        if self._sample:
            mutants = [m for m in mutants if m[1]]
            mutants.sort(key=lambda m: _drawn(m[0]))
            mutants = mutants[: self._sample]
            rest = [t for t in tests if t not in set(near)]
        outcomes: dict[str, str] = {}
        for key, outcome in self._outcomes(mutants, functions, listed, rest):
            outcomes[key] = outcome
            if outcome == SURVIVED and key not in listed:
                print(f"survived: {key}", flush=True)
        partly = bool(self._only or self._sample)
        self.failed = _report(outcomes, listed, partly, self._exact)
        return True

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self, item: Test) -> Iterator[None]:
        """Count what the fixtures of a file reach as reached by all its tests."""
        yield
        self._by_setup[item.path] |= self._reached

    def _note_what_is_reached(self, tests: Sequence[Test], functions: _Functions) -> None:
        first = 0
        for file, source in self._sources.items():
            self._first[file] = first
            _replace(functions, source.instrumented(first), file)
            first += source.statements
        builtins.__reached__ = self._reached  # type: ignore[attr-defined]
        provers = dict(checker.PROVERS)

        def noting(prove: Any, *parts: Any) -> Any:
            before = set(self._reached)
            self._reached.clear()
            try:
                return prove(*parts)
            finally:
                self._trusted |= self._reached
                self._reached |= before

        for kind, prover in provers.items():
            prove = functools.partial(noting, prover.prove)
            checker.PROVERS[kind] = prover._replace(prove=prove)
        by_test = {}
        for place, test in enumerate(tests):
            self._reached.clear()
            start = time.process_time()
            after = tests[place + 1] if place + 1 < len(tests) else None
            if any(report.failed for report in runtestprotocol(test, log=False, nextitem=after)):
                raise pytest.UsageError(f"{test.nodeid} fails without any mutant")
            self._seconds[test] = time.process_time() - start
            by_test[test] = set(self._reached)
        for test, reached in by_test.items():
            for statement in reached | self._by_setup[test.path]:
                self._tests[statement].append(test)
        checker.PROVERS.update(provers)
        for file, source in self._sources.items():
            _replace(functions, source.code(), file)
        print(f"{len(tests)} tests, {sum(self._seconds.values()):.0f} s", flush=True)

    def _chosen(self, mutant: Mutant) -> bool:
        key = mutant.key(ROOT)
        return not self._only or any(part in key for part in self._only)

    def _is_trusted(self, mutant: Mutant) -> bool:
        if any(map(mutant.file.is_relative_to, TRUSTED)):
            return True
        first = self._first[str(mutant.file)]
        same = self._sources[str(mutant.file)].mutants
        return any(
            first + m.statement in self._trusted for m in same if m.function == mutant.function
        )

    def _tests_of(self, mutant: Mutant) -> list[Test]:
        source, first = self._sources[str(mutant.file)], self._first[str(mutant.file)]
        found = self._tests[first + mutant.statement]
        if source.calls_at_import(mutant.function):
            # No test reaches it, but all that the file does rests on it.
            found = list(
                {test: None for n in range(source.statements) for test in self._tests[first + n]}
            )
        cost: dict[Any, float] = defaultdict(float)
        for test in found:
            cost[test.path] += self._seconds[test]
        return sorted(
            found, key=lambda t: (NEAREST not in t.nodeid, cost[t.path], self._seconds[t])
        )

    def _outcomes(
        self,
        mutants: Sequence[tuple[Mutant, list[Test]]],
        functions: _Functions,
        listed: Iterable[str],
        rest: Sequence[Test],
    ) -> Iterator[tuple[str, str]]:
        running: dict[int, str] = {}
        known = set(listed)
        start = time.monotonic()
        for number, (mutant, tests) in enumerate(mutants):
            key = mutant.key(ROOT)
            if number % 100 == 0:
                print(f"{number}/{len(mutants)} {time.monotonic() - start:.0f} s", flush=True)
            while len(running) >= self._jobs:
                yield _ended(running)
            child = os.fork()
            if child == 0:
                self._child(mutant, tests if key in known else [*tests, *rest], functions)
            running[child] = key
        while running:
            yield _ended(running)

    def _child(self, mutant: Mutant, tests: Sequence[Test], functions: _Functions) -> None:
        """Run the tests with the mutant in place; never returns."""
        code = 2
        try:
            limit = CPU_SECONDS + int(20 * sum(self._seconds.get(test, 1.0) for test in tests))
            resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            file = str(mutant.file)
            _replace(functions, self._sources[file].mutated(mutant), file)
            _recompute(self._sources[file], mutant, self._caches)
            code = 0
            for place, test in enumerate(tests):
                after = tests[place + 1] if place + 1 < len(tests) else None
                reports = runtestprotocol(test, log=False, nextitem=after)
                if failed := [report for report in reports if report.failed]:
                    code = 3 if "MemoryError" in str(failed[0].longrepr) else 1
                    break
        except MemoryError:
            code = 3
        finally:
            os._exit(code)


_Functions = dict[tuple[str, str, int], list[FunctionType]]


def _functions(files: Iterable[str]) -> _Functions:
    """Return the functions that were made from these files, by file, qualified name and line."""
    found: _Functions = defaultdict(list)
    names = set(files)
    for one in gc.get_objects():
        if isinstance(one, FunctionType) and one.__code__.co_filename in names:
            code = one.__code__
            found[code.co_filename, code.co_qualname, code.co_firstlineno].append(one)
    return found


def _replace(functions: _Functions, code: dict[tuple[str, int], CodeType], file: str) -> None:
    for key, new in code.items():
        for function in functions.get((file, *key), ()):
            function.__code__ = new


def _recompute(source: Source, mutant: Mutant, caches: Iterable[Any]) -> None:
    """Forget what the function as it was has left behind."""
    # A mutant may exchange a name for one that its module does not import.
    names = {"float_above": numbers.upper, "float_below": numbers.lower}
    for module in (numbers, exact):
        names |= {name: getattr(module, name) for name in module.__all__}
    for name, found in names.items():
        builtins.__dict__.setdefault(name, found)
    for cache in caches:
        cache.cache_clear()
    for module in list(sys.modules.values()):
        if getattr(module, "__file__", None) == str(source.file):
            for statement in source.calls_at_import(mutant.function):
                exec(statement, module.__dict__)


def _ended(running: dict[int, str]) -> tuple[str, str]:
    child, status = os.wait()
    key = running.pop(child)
    if os.WIFSIGNALED(status):
        late = os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL)
        return key, ENDLESS if late else KILLED
    if os.WEXITSTATUS(status) == 2:
        raise RuntimeError(f"no answer about {key}")
    if os.WEXITSTATUS(status) == 3:
        return key, ENDLESS
    return key, KILLED if os.WEXITSTATUS(status) else SURVIVED


def _drawn(mutant: Mutant) -> bytes:
    """Return what puts the mutants into another order for each commit."""
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout
    return hashlib.sha256((commit + mutant.key(ROOT)).encode()).digest()


def _listed() -> dict[str, str]:
    """Return the survivors that are known, with the reasons."""
    content = tomllib.loads(SURVIVORS.read_text())
    return {one: entry["because"] for entry in content["harmless"] for one in entry["mutants"]}


def _report(outcomes: dict[str, str], listed: dict[str, str], partly: bool, exact: bool) -> bool:
    """Print what came out; return whether something is to be done.

    That is a survivor that is not listed; with the default tests (`exact`) also an entry that is
    killed, or is none of the mutants any more.
    """
    survived = [key for key, outcome in outcomes.items() if outcome == SURVIVED]
    new = [key for key in survived if key not in listed]
    # Whether an endless loop ends in a refused file, or at its limits, depends on the machine.
    killed = [key for key in listed if outcomes.get(key) == KILLED]
    gone = [] if partly else [key for key in listed if key not in outcomes]
    for title, keys in (
        ("not in survivors.toml", new),
        ("in survivors.toml, but killed", killed),
        ("in survivors.toml, but not among the mutants", gone),
    ):
        for key in keys:
            print(f"{title}: {key}")
    endless = sum(outcome == ENDLESS for outcome in outcomes.values())
    print(
        f"{len(outcomes)} mutants: {len(outcomes) - len(survived)} killed "
        f"({endless} at a limit), {len(survived)} survived, {len(new)} of them not listed"
    )
    return bool(new or (exact and (killed or gone)))


def main() -> int:
    """Run from the command line; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="make mutate", description=(__doc__ or "").split("\n", 1)[0]
    )
    parser.add_argument(
        "--only", nargs="*", default=[], help="mutants whose file or function has this in it"
    )
    parser.add_argument("--sample", type=int, default=0, help="how many, drawn by the commit")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--tests", nargs="*", default=TESTS)
    given = parser.parse_args()
    mutation = Mutation(given.only, given.sample, given.jobs, given.tests == TESTS)
    # -qq: a log with pytest's "no tests ran" in it reads as one without any test.
    options = ["-qq", "-p", "no:cacheprovider", "-m", "not slow", *given.tests]
    code = pytest.main(options, plugins=[mutation])
    return int(
        mutation.failed or code not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
    )


if __name__ == "__main__":
    sys.exit(main())
