"""Runs the programs and commands of a page, and compares or writes what they print.

python docs/running.py PAGE...    writes outputs and pictures of these pages again, from a run

On a page, blocks of `python` are one program, run in order. A block right after one, opened by
```{code-block} text and `:class: output` (in the README, which GitHub shows, by ```text), is what
it prints; for a new program, open an empty one. An SVG picture right after that is what it draws,
on its `axes`. In a block of `console` a line that starts with `$ cvxleak` (or `$ cat`) is a
command, and what follows is its output. In outputs `...` stands for anything, and a line of `...`
alone for any lines.
"""

from __future__ import annotations

import difflib
import io
import os
import re
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import chdir, redirect_stdout
from pathlib import Path
from typing import Any

from matplotlib import rc_context
from typer.testing import CliRunner

from cvxleak.cli.app import app

DOCS = Path(__file__).parent
OUTPUT = "```{code-block} text\n:class: output\n\n"
BLOCK = re.compile(
    r"^```python\n(?P<code>.*?)^```$"
    r"(?:\n+^```(?:\{code-block\} text\n:class: output\n\n|text\n)(?P<out>.*?)^```$)?"
    r"(?:\n+^!\[[^]\n]*\]\((?P<picture>[^)\n]+\.svg)\)$)?"
    r"|^```console\n(?P<console>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)
NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
TOLERANCE = 2e-3


def runnable(text: str) -> bool:
    return BLOCK.search(text) is not None


def outputs(text: str, name: str, columns: int = 80) -> Iterator[tuple[re.Match[str], str]]:
    """Run a page in the present folder, and yield each block with what it really prints.

    Its pictures are written into that folder.
    """
    names: dict[str, Any] = {"__name__": "page"}
    os.environ["COLUMNS"] = str(columns)
    for block in BLOCK.finditer(text):
        if block["code"] is not None:
            # Line numbers of the page, for whoever reads a traceback.
            code = "\n" * text.count("\n", 0, block.start("code")) + block["code"]
            printed = io.StringIO()
            with redirect_stdout(printed):
                exec(compile(code, name, "exec"), names)
            if block["picture"]:
                with rc_context({"svg.hashsalt": "cvxleak"}):
                    file = Path(block["picture"]).name
                    names["axes"].figure.savefig(file, metadata={"Date": None})
            yield block, printed.getvalue()
        else:
            lines = [line for line in block["console"].splitlines() if line.startswith("$ ")]
            yield block, "\n".join(f"{line}\n{command(line[2:])}" for line in lines)


def command(line: str) -> str:
    """Run a command, and return what it prints."""
    words, typed = shlex.split(line), None
    if "<" in words:
        place = words.index("<")
        typed = Path(words[place + 1]).read_text(encoding="utf-8")
        del words[place : place + 2]
    if words[0] == "cat":
        return Path(words[1]).read_text(encoding="utf-8").strip("\n") + "\n"
    if words[0] != "cvxleak":
        raise ValueError(f"no such program: {line}")
    result = CliRunner().invoke(app, words[1:], input=typed)
    if result.exit_code:
        raise RuntimeError(f"{line}: exit code {result.exit_code}: {result.stderr}")
    return "\n".join(part.rstrip() for part in result.stdout.strip("\n").splitlines()) + "\n"


def agrees(shown: str, real: str) -> bool:
    """Whether an output is what is shown, up to the last digits of numbers that are not whole."""
    wanted, found = _lines(shown), _lines(real)
    while wanted:
        line = wanted.pop(0)
        if line == "...":
            if not wanted:
                return True
            while found and not _same(wanted[0], found[0]):
                found.pop(0)
        elif not found or not _same(line, found.pop(0)):
            return False
    return not found


def _lines(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]


def _same(shown: str, real: str) -> bool:
    numbers: list[str] = []
    words = []
    for word in shown.split(" "):
        if "..." in word:
            words.append(".*".join(map(re.escape, word.split("..."))))
            continue
        numbers += NUMBER.findall(word)
        rest = (re.escape(part) for part in NUMBER.split(word))
        words.append(f"({NUMBER.pattern})".join(rest))
    match = re.fullmatch(" ".join(words), real)
    if match is None:
        return False
    return all(_close(a, b) for a, b in zip(numbers, match.groups(), strict=True))


def _close(shown: str, real: str) -> bool:
    if not re.search(r"[.e]", shown + real):
        return shown == real
    a, b = float(shown), float(real)
    # The last digit that is shown may differ by rounding.
    digits = len(shown.partition(".")[2].partition("e")[0])
    last = 0.0 if "e" in shown else 1.5 * 10.0**-digits
    tiny = abs(a) < 1e-6 and abs(b) < 1e-6
    return tiny or abs(a - b) <= max(TOLERANCE * max(abs(a), abs(b)), last)


def differences(text: str, name: str) -> list[str]:
    """Run a page, and say what it prints otherwise than it shows."""
    wrong = []
    for block, real in outputs(text, name):
        shown = block["out"] if block["code"] is not None else block["console"]
        # A program without an output block (its answers are random, say) has to run, no more.
        if shown is not None and not agrees(shown, real):
            wrong.append("\n".join(difflib.ndiff(shown.splitlines(), real.splitlines())))
    return wrong


def rewritten(text: str, name: str) -> str:
    """Return the page with its outputs as they are now; those with `...` stay if they agree."""
    parts, last = [], 0
    for block, real in outputs(text, name):
        group = "out" if block["code"] is not None else "console"
        shown = block[group]
        # As for `differences`, a program without an output block has to run, no more.
        if shown is not None and not ("..." in shown and agrees(shown, real)):
            parts += [text[last : block.start(group)], real.rstrip() + "\n"]
            last = block.end(group)
    return "".join([*parts, text[last:]])


def main() -> None:
    examples = DOCS.parent / "examples"
    for page in sys.argv[1:]:
        path = Path(page).resolve()
        text = path.read_text(encoding="utf-8")
        with tempfile.TemporaryDirectory() as folder, chdir(folder):
            (Path(folder) / "examples").symlink_to(examples)
            found = rewritten(text, path.name)
            for block in BLOCK.finditer(text):
                if block["picture"]:
                    target = path.parent / block["picture"]
                    shutil.copyfile(target.name, target)
        path.write_text(found, encoding="utf-8")


if __name__ == "__main__":
    main()
