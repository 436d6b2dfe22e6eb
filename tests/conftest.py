"""What every test shares: one BLAS thread, property tests that give the same verdict twice, and
brackets that meet: see `tests.brackets`."""

import functools
import importlib
import os
import signal
import sys
from collections.abc import Iterator

import pytest
from hypothesis import settings

# NumPy reads these when it is first imported, which is after this. Threads of BLAS and the workers
# of xdist would otherwise fight for the same cores.
for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")
os.environ.setdefault("MPLBACKEND", "Agg")  # no windows

# A run that a shell starts in the background ignores Ctrl-C, and so does all that it starts. Some
# tests press it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The same code gives the same verdict, and no verdict depends on how fast the machine is.
settings.register_profile("repeatable", deadline=None, derandomize=True)
settings.load_profile("repeatable")

# Where searches draw what they start from.
STARTS = (
    "audit.curve",
    "audit.product_leakage",
    "audit.worst_adversary.audit",
    "design.adversary_oracle",
    "design.alternation",
    "iterative.joint",
    "iterative.release_fixed",
    "release.information",
)


@pytest.fixture(scope="session", autouse=True)
def moved_seeds() -> Iterator[None]:
    """Move the seeds of all random starts by CVXLEAK_MOVE_SEEDS: no verdict depends on them."""
    moved = int(os.environ.get("CVXLEAK_MOVE_SEEDS", "0"))
    with pytest.MonkeyPatch.context() as patch:
        for name in STARTS if moved else ():
            module = importlib.import_module(f"cvxleak.{name}")
            own = module.generator

            def shifted(rng, *rest, own=own):
                seed = type(rng) is int and rng >= 0  # what is none has to be refused as it is
                return own(rng + moved if seed else rng, *rest)

            patch.setattr(module, "generator", shifted)
        yield


@pytest.fixture(scope="session", autouse=True)
def one_command_line() -> Iterator[None]:
    """Build the command line once: Typer's runner would for each of a thousand calls."""
    import typer.testing

    with pytest.MonkeyPatch.context() as patch:
        # A private name: where a release of Typer has none, the tests only take longer.
        made = functools.cache(typer.main.get_command)
        patch.setattr(typer.testing, "_get_command", made, raising=False)
        yield


@pytest.fixture(autouse=True)
def no_figures_left() -> Iterator[None]:
    """Close what pyplot holds open, so that no test draws into the figure of another one."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.fixture(scope="session", autouse=True)
def brackets_meet() -> Iterator[None]:
    """No two certificates of one problem may both pass with brackets that do not meet."""
    from cvxleak.problem.bound import Bound
    from cvxleak.proofs import checker
    from tests.brackets import Brackets

    brackets, check, proved = Brackets(), checker._check, Bound.proved

    @functools.wraps(check)
    def checked(certificate):
        answer = check(certificate)
        brackets.verified(answer)
        return answer

    @functools.wraps(proved)
    def bound(*args, **options):
        result = proved(*args, **options)
        if result.certificate is not None:
            brackets.claimed(result.certificate)
        return result

    checker._check, Bound.proved = checked, bound
    yield
    checker._check, Bound.proved = check, proved
    assert not brackets.crossed()
