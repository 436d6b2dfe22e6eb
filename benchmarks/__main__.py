"""Compare cvxleak with other programs, family by family; or run one of the benchmarks by name.

Without a name: every family of problems, in growing sizes, against SCIP, qif, dit, dp_accounting,
plain CVXPY with four solvers and the papers' own algorithms, in one run: ratios, growth exponents,
and what each is off by. With names: the benchmarks of this package that look closer, each a module
with ``main(limit)`` and ``LIMIT``.
"""

from __future__ import annotations

import argparse
import importlib
import pkgutil
from pathlib import Path

import benchmarks

SECONDS = 20.0
"""What a program gets for one case of a family, if not said."""


def main() -> None:
    names = sorted(
        module.name
        for module in pkgutil.iter_modules(benchmarks.__path__)
        if not module.name.startswith("_")
    )
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"which to look at closer, of {names}")
    parser.add_argument(
        "--limit",
        type=float,
        help="seconds for one program on one case; one that needs more is stopped",
    )
    parser.add_argument("--family", action="append", help="only this family; may be repeated")
    parser.add_argument("--sizes", type=int, help="only so many sizes of each family")
    parser.add_argument("--json", type=Path, help="also write the comparison to this file")
    parser.add_argument(
        "--page",
        action="store_true",
        help="also put it into docs/benchmarks.json and docs/benchmarks.md",
    )
    options = parser.parse_args()
    unknown = sorted(set(options.names) - set(names))
    if unknown:
        parser.error(f"unknown benchmarks {unknown}; there are {names}")
    for name in options.names:
        module = importlib.import_module(f"benchmarks.{name}")
        module.main(module.LIMIT if options.limit is None else options.limit)
    if not options.names:
        compare(parser, options)


def compare(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    from benchmarks import _ratios
    from benchmarks._families import FAMILIES

    chosen = options.family or list(FAMILIES)
    unknown = sorted(set(chosen) - set(FAMILIES))
    if unknown:
        parser.error(f"unknown families {unknown}; there are {list(FAMILIES)}")
    limit = SECONDS if options.limit is None else options.limit
    found = _ratios.compare(chosen, limit, options.sizes)
    # Written before it is shown: a run takes long.
    if options.json:
        _ratios.save(found, options.json)
    if options.page:
        stored = _ratios.merged(found)
        _ratios.save(stored, _ratios.NUMBERS)
        _ratios.write_page(stored)
    print(_ratios.show(found))


if __name__ == "__main__":
    main()
