"""The mutants of a source file: each differs from it in one place.

What is changed is what a proof checker's soundness hangs on:

- a guard (an ``if`` that ends in raise, return, continue or break) never applies; a statement that
  is a call, such as ``reading.parts(...)``, is left out;
- < and <= are exchanged, > and >=; == becomes >=, and != each of < and >; of a chain of
  comparisons, of ``and`` and of ``or`` one part is left out; ``not`` is left out;
- calls that round up and down are exchanged, those of lower and upper ends, min and max, any and
  all; inf and -inf are;
- + and - are exchanged, and a minus is left out.

Messages of errors, annotations, decorators and default arguments stay as they are, and so does
what stands outside of functions.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import CodeType
from typing import NamedTuple

SWAPPED_NAMES = dict(
    pair
    for one, other in [
        ("round_up", "round_down"),
        ("exp_above", "exp_below"),
        ("log_above", "log_below"),
        ("float_above", "float_below"),
        ("upper", "lower"),
        ("max", "min"),
        ("maximum", "minimum"),
        ("argmax", "argmin"),
        ("floor", "ceil"),
        ("any", "all"),
    ]
    for pair in [(one, other), (other, one)]
)
SWAPPED_OPERATORS: dict[type, tuple[type, ...]] = {
    ast.Lt: (ast.LtE,),
    ast.LtE: (ast.Lt,),
    ast.Gt: (ast.GtE,),
    ast.GtE: (ast.Gt,),
    ast.Eq: (ast.GtE,),
    ast.NotEq: (ast.Lt, ast.Gt),
    ast.Add: (ast.Sub,),
    ast.Sub: (ast.Add,),
}
LEAVING = (ast.Raise, ast.Return, ast.Continue, ast.Break)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class Mutant(NamedTuple):
    """One change of one function.

    Attributes
    ----------
    file : pathlib.Path
    function : str
        Qualified name of the outermost function that holds the change.
    text : str
        What stands there, and what stands there instead; unique in the function.
    statement : int
        The number of its statement, as `Source.instrumented` counts them.
    place : int
        Which of the mutants of the file it is.
    """

    file: Path
    function: str
    text: str
    statement: int
    place: int

    def key(self, root: Path) -> str:
        """Return how a list of mutants names it: no line numbers, so that most edits keep it."""
        return f"{self.file.relative_to(root)} {self.function}: {self.text}"


class _Change(NamedTuple):
    parent: ast.AST
    field: str
    index: int | None
    new: ast.AST


class Source:
    """A Python file, its mutants, and the code of its functions as it is, mutated or instrumented.

    Parameters
    ----------
    file : pathlib.Path
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        self._text = file.read_text()
        self._tree = ast.parse(self._text)
        self._statements = 0
        self._changes: list[_Change] = []
        self.mutants: list[Mutant] = []
        for name, function in _outermost(self._tree.body, ""):
            self._read(name, function)

    def code(self) -> dict[tuple[str, int], CodeType]:
        """Return the code of each outermost function, by its qualified name and first line."""
        return self._compiled(self._tree)

    def mutated(self, mutant: Mutant) -> dict[tuple[str, int], CodeType]:
        """Return the same for a mutant."""
        parent, field, index, new = self._changes[mutant.place]
        old = getattr(parent, field)
        try:
            if index is None:
                setattr(parent, field, new)
            else:
                setattr(parent, field, [*old[:index], new, *old[index + 1 :]])
            return self._compiled(self._tree)
        finally:
            setattr(parent, field, old)

    def instrumented(self, first: int) -> dict[tuple[str, int], CodeType]:
        """Return the same with ``__reached__.add(first + i)`` before statement i."""
        tree = ast.parse(self._text)
        for _, function in _outermost(tree.body, ""):
            first = _instrument(function, first)
        return self._compiled(tree)

    @property
    def statements(self) -> int:
        """Return the number of statements in functions."""
        return self._statements

    def calls_at_import(self, function: str) -> list[CodeType]:
        """Return the assignments outside of functions that call one, for what it made of them."""
        return [
            compile(ast.Module([node], []), str(self.file), "exec")
            for node in self._tree.body
            if isinstance(node, ast.Assign)
            and isinstance(node.value, ast.Call)
            and ast.unparse(node.value.func) == function
        ]

    def _compiled(self, tree: ast.Module) -> dict[tuple[str, int], CodeType]:
        return dict(_functions(compile(tree, str(self.file), "exec")))

    def _read(self, name: str, function: ast.AST) -> None:
        found: list[tuple[str, int]] = []
        for statement in _statements(function):
            for change, old, new in _changes(statement):
                self._changes.append(change)
                found.append((f"{old} -> {new}", self._statements))
            self._statements += 1
        seen: Counter[str] = Counter()
        for text, statement in found:
            seen[text] += 1
            text += f" #{seen[text]}" if seen[text] > 1 else ""
            self.mutants.append(Mutant(self.file, name, text, statement, len(self.mutants)))


def _outermost(body: list[ast.stmt], prefix: str) -> Iterator[tuple[str, ast.AST]]:
    for node in body:
        if isinstance(node, FUNCTIONS):
            yield prefix + node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from _outermost(node.body, f"{prefix}{node.name}.")


def _functions(code: CodeType) -> Iterator[tuple[tuple[str, int], CodeType]]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType) and "<" not in constant.co_qualname:
            yield (constant.co_qualname, constant.co_firstlineno), constant
            yield from _functions(constant)


def _bodies(node: ast.AST) -> Iterator[tuple[str, list[ast.stmt]]]:
    for field in ("body", "orelse", "finalbody"):
        part = getattr(node, field, None)
        if isinstance(part, list):
            yield field, part


def _statements(function: ast.AST) -> Iterator[ast.stmt]:
    """Return the statements of a function, in the order in which `_instrument` counts them."""
    for _, body in _bodies(function):
        for statement in body:
            yield statement
            yield from _statements(statement)
    for handler in getattr(function, "handlers", []):
        yield from _statements(handler)
    for case in getattr(function, "cases", []):
        yield from _statements(case)


def _instrument(function: ast.AST, number: int) -> int:
    for field, body in _bodies(function):
        marked: list[ast.stmt] = []
        for statement in body:
            mark = ast.parse(f"__reached__.add({number})").body[0]
            for node in ast.walk(mark):
                ast.copy_location(node, statement)
            marked += [mark, statement]
            number = _instrument(statement, number + 1)
        setattr(function, field, marked)
    for handler in getattr(function, "handlers", []):
        number = _instrument(handler, number)
    for case in getattr(function, "cases", []):
        number = _instrument(case, number)
    return number


def _changes(statement: ast.stmt) -> Iterator[tuple[_Change, str, str]]:
    """Return the changes of a statement, not of those inside of it: what, from and to."""
    if isinstance(statement, ast.Raise | ast.ClassDef):
        return
    if isinstance(statement, ast.If) and isinstance(statement.body[-1], LEAVING):
        kind = type(statement.body[-1]).__name__.lower()
        never = ast.copy_location(ast.Constant(False), statement.test)
        guard = f"if {ast.unparse(statement.test)}: {kind}"
        yield _Change(statement, "test", None, never), guard, "never"
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        nothing = ast.copy_location(ast.Constant(None), statement.value)
        yield _Change(statement, "value", None, nothing), ast.unparse(statement.value), "nothing"
    if isinstance(statement, ast.AugAssign) and type(statement.op) in SWAPPED_OPERATORS:
        (other,) = SWAPPED_OPERATORS[type(statement.op)]
        sign = {ast.Add: "+=", ast.Sub: "-="}
        old = ast.unparse(statement)
        new = f"{ast.unparse(statement.target)} {sign[other]} ..."
        yield _Change(statement, "op", None, other()), old, new
    for parent, field, index, node in _expressions(statement):
        called = isinstance(parent, ast.Call) and field == "func"
        for new in _replacements(node, called):
            for part in ast.walk(new):
                if "lineno" in part._attributes and not hasattr(part, "lineno"):
                    ast.copy_location(part, node)
            yield _Change(parent, field, index, new), *_told(parent, node, new)


def _told(parent: ast.AST, node: ast.AST, new: ast.AST) -> tuple[str, str]:
    """Return what is shown of a change; of a function's name, its call too."""
    if isinstance(parent, ast.Call) and parent.func is node:
        call = ast.unparse(parent)
        return call, ast.unparse(
            ast.copy_location(ast.Call(new, parent.args, parent.keywords), parent)
        )  # type: ignore[arg-type]
    return ast.unparse(node), ast.unparse(new)


Place = tuple[ast.AST, str, "int | None", ast.AST]


def _expressions(node: ast.AST) -> Iterator[Place]:
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list", "defaults", "kw_defaults"):
            continue
        for index, part in enumerate(value) if isinstance(value, list) else [(None, value)]:
            skipped = (ast.stmt, ast.JoinedStr, ast.excepthandler, ast.match_case, ast.arguments)
            if not isinstance(part, ast.AST) or isinstance(part, skipped):
                continue
            yield node, field, index, part
            yield from _expressions(part)


def _replacements(node: ast.AST, called: bool) -> Iterator[ast.expr]:
    if isinstance(node, ast.Compare):
        terms = [node.left, *node.comparators]
        if any(isinstance(term, ast.Constant) and isinstance(term.value, str) for term in terms):
            return  # names have no order
        for i, op in enumerate(node.ops):
            for other in SWAPPED_OPERATORS.get(type(op), ()):
                ops = [*node.ops[:i], other(), *node.ops[i + 1 :]]
                yield ast.Compare(node.left, ops, node.comparators)
        if len(node.ops) == 2:
            yield ast.Compare(terms[0], node.ops[:1], terms[1:2])
            yield ast.Compare(terms[1], node.ops[1:], terms[2:])
    elif isinstance(node, ast.BoolOp):
        for i in range(len(node.values)):
            rest = [*node.values[:i], *node.values[i + 1 :]]
            yield rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
        yield node.operand
    elif isinstance(node, ast.BinOp) and type(node.op) in SWAPPED_OPERATORS:
        for other in SWAPPED_OPERATORS[type(node.op)]:
            yield ast.BinOp(node.left, other(), node.right)
    elif called and isinstance(node, ast.Name) and node.id in SWAPPED_NAMES:
        yield ast.Name(SWAPPED_NAMES[node.id], ast.Load())
    elif called and isinstance(node, ast.Attribute) and node.attr in SWAPPED_NAMES:
        yield ast.Attribute(node.value, SWAPPED_NAMES[node.attr], ast.Load())
    elif isinstance(node, ast.Attribute) and node.attr == "inf":
        yield ast.UnaryOp(ast.USub(), node)
