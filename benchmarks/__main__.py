"""Run the benchmarks: every module of this package with ``main(limit)`` and ``LIMIT``."""

from __future__ import annotations

import argparse
import importlib
import pkgutil

import benchmarks


def main() -> None:
    names = sorted(
        module.name
        for module in pkgutil.iter_modules(benchmarks.__path__)
        if not module.name.startswith("_")
    )
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"which to run, of {names}; all if left out")
    parser.add_argument(
        "--limit",
        type=float,
        help="seconds for one program on one case (each benchmark has a default of its own); "
        "one that needs more is stopped",
    )
    options = parser.parse_args()
    unknown = sorted(set(options.names) - set(names))
    if unknown:
        parser.error(f"unknown benchmarks {unknown}; there are {names}")
    for name in options.names or names:
        module = importlib.import_module(f"benchmarks.{name}")
        module.main(module.LIMIT if options.limit is None else options.limit)


if __name__ == "__main__":
    main()
