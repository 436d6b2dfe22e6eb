"""Run the benchmarks: every module of this package with a function ``main(limit)``."""

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
        default=60.0,
        help="seconds for one program on one case (default: %(default)s); "
        "one that needs more is stopped and left out of the larger cases",
    )
    options = parser.parse_args()
    unknown = sorted(set(options.names) - set(names))
    if unknown:
        parser.error(f"unknown benchmarks {unknown}; there are {names}")
    for name in options.names or names:
        importlib.import_module(f"benchmarks.{name}").main(options.limit)


if __name__ == "__main__":
    main()
