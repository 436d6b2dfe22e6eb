"""A check with a time limit: it runs in a process of its own, which is stopped in time.

Arithmetic on large numbers and polynomials runs in compiled code that nothing else interrupts.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Any

__all__ = ["run_within"]

CHILD = """
import pickle, sys
sys.path[:] = pickle.load(sys.stdin.buffer)
check, certificate = pickle.load(sys.stdin.buffer)
pickle.dump(check(certificate), sys.stdout.buffer)
"""


WEEKS = 10**6
"""Seconds past which a limit is none: the system cannot wait for so long."""


def run_within(check: Callable[[Any], Any], certificate: Any, seconds: float) -> Any:
    """Return what a checker answers, or a text that says why it did not answer in time.

    The seconds include the start of a Python, about half of one.
    """
    question = pickle.dumps(sys.path) + pickle.dumps((check, certificate))
    try:
        done = subprocess.run(
            [sys.executable, "-c", CHILD],
            input=question,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=seconds if seconds < WEEKS else None,
        )
    except subprocess.TimeoutExpired:
        return f"the check did not finish within {seconds:g} s"
    if done.returncode:  # the system may have stopped it because of the memory that it took
        return f"the check ended without an answer, with exit code {done.returncode}"
    return pickle.loads(done.stdout)
