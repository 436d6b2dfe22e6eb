"""Every public name has a docstring with an example, which runs as a doctest."""

import importlib
import inspect
import pkgutil
from typing import Any

import pytest

import cvxleak

# Programs and the inner parts of a search mean nothing by themselves.
PARTS = ("cvxleak.cli", "cvxleak.branch_and_bound")


def public_names() -> list[Any]:
    """Return (name, object) for the functions and classes in every public `__all__`."""
    found: dict[int, Any] = {}
    modules = ["cvxleak"] + [
        module.name
        for module in pkgutil.walk_packages(cvxleak.__path__, "cvxleak.")
        if module.ispkg or module.name.count(".") == 1
    ]
    for name in modules:
        if "._" in name or name.startswith(PARTS):
            continue
        module = importlib.import_module(name)
        for public in getattr(module, "__all__", ()):
            value = getattr(module, public)
            if inspect.isclass(value) or inspect.isroutine(value):
                found.setdefault(id(value), pytest.param(value, id=f"{name}.{public}"))
    return list(found.values())


@pytest.mark.parametrize("value", public_names())
def test_there_is_an_example(value: Any):
    where = f"{value.__module__}.{value.__qualname__}"
    # A class without a docstring of its own would show that of its parent.
    doc = vars(value).get("__doc__") if inspect.isclass(value) else value.__doc__
    assert doc, f"{where} is public (it is in an __all__) and has no docstring"
    assert "\nExamples\n--------\n" in inspect.cleandoc(doc), (
        f'{where} is public (it is in an __all__): its docstring needs a section "Examples"'
    )
    assert ">>> " in doc, f"the section Examples of {where} has no line that starts with >>>"
