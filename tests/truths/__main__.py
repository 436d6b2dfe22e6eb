"""Run families of the bank: python -m tests.truths [--measure] [FAMILY ...].

With --measure the gaps that are reached are written into the files; without it they are printed.
"""

import json
import sys
from pathlib import Path

from tests.truths.problems import HERE, failures, load, solve

WIDTH = 110


def text(value, indent=0):
    """Return JSON with whatever fits on one line."""
    short = json.dumps(value, ensure_ascii=False)
    if indent + len(short) <= WIDTH or not isinstance(value, dict | list):
        return short
    pad = " " * (indent + 1)
    if isinstance(value, dict):
        parts = [
            f"{json.dumps(name)}: {text(part, indent + len(name) + 5)}"
            for name, part in value.items()
        ]
        return "{" + f",\n{pad}".join(parts) + "}"
    lines, line = [], ""
    for part in (text(part, indent + 1) for part in value):  # rows filled up, nested rows apart
        joined = f"{line}, {part}" if line else part
        if line and (indent + len(joined) > WIDTH or part[0] in "[{"):
            lines, joined = [*lines, line], part
        line = joined
    return "[" + f",\n{pad}".join([*lines, line]) + "]"


def save(family, entries):
    """Write a family's file, an entry a paragraph."""
    plain = [
        {
            name: ["inf" if end == float("inf") else end for end in part]
            if name in ("truth", "gap")
            else part
            for name, part in entry.items()
            if name != "family"
        }
        for entry in entries
    ]
    body = ",\n".join(text(entry) for entry in plain)
    Path(HERE / f"{family}.json").write_text(f"[\n{body}\n]\n", encoding="utf-8")


def main(measure, families):
    wrong = 0
    for family in families or sorted({entry["family"] for entry in load()}):
        entries = load([family])
        for entry in entries:
            answer = solve(entry)
            fails = failures(answer)
            bad = not answer.meets(entry) or fails
            wrong += bool(bad)
            entry["gap"] = [float(f"{part:.2g}") for part in answer.gap]
            ends = f"{answer.lower:.9g} to {answer.upper:.9g}"
            verdict = f"WRONG: truth {entry['truth']} {fails}" if bad else ""
            shown = (f"{family}/{entry['name']}", ends, f"{answer.seconds:.2f} s", verdict)
            print("  ".join(shown), f"gap {entry['gap']}", answer.stats.get("stopped", ""))
        if measure:
            save(family, entries)
    return wrong > 0


if __name__ == "__main__":
    arguments = sys.argv[1:]
    sys.exit(main("--measure" in arguments, [one for one in arguments if one[0] != "-"]))
