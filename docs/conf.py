"""Sphinx settings; `make docs` builds with them, and takes every warning for an error."""

import inspect
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

from cvxleak._version import __version__
from cvxleak.proofs.checker import PROVERS

project = "cvxleak"
author = "The cvxleak maintainers"
copyright = "the cvxleak maintainers"
version = release = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.mathjax", "sphinx.ext.napoleon"]
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

# The pages under api/ carry the names of modules. A page whose module is still to be written waits.
exclude_patterns = ["_build"] + [
    f"api/{page.stem}.md"
    for page in Path(__file__).parent.glob("api/*.md")
    if page.stem != "index" and find_spec(f"cvxleak.{page.stem}") is None
]
suppress_warnings = ["toc.not_readable"]

autodoc_default_options = {"members": True}
autodoc_member_order = "bysource"
autodoc_type_aliases = {"Array": "Array", "ArrayLike": "ArrayLike"}
autodoc_typehints_format = "short"
napoleon_google_docstring = False
# As fields, the words of "array_like, shape (n, m)" would each become a link.
napoleon_use_param = False
napoleon_use_rtype = False
napoleon_custom_sections = [("Attributes", "params_style")]

# The page that `cvxleak audit --html` makes of the example, beside the other pages.
EXTRA = Path(__file__).parent / "_build" / "extra"
EXTRA.mkdir(parents=True, exist_ok=True)
AUDIT = [sys.executable, "-m", "cvxleak", "audit", "rounded_count.toml", "--html"]
audited = subprocess.run(
    [*AUDIT, str(EXTRA / "rounded_count.html")],
    cwd=Path(__file__).parents[1] / "examples",
    env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
    check=False,
    capture_output=True,
    text=True,
)
if audited.returncode:
    raise RuntimeError(f"the example's page: {audited.stderr}")
html_extra_path = ["_build/extra"]

html_theme = "furo"
html_title = f"cvxleak {release}"


class PlainBars(SphinxTransform):
    """Leave the size |X| and the absolute value |a - b| alone: they name no substitution."""

    default_priority = 210  # before docutils complains, at 220

    def apply(self) -> None:
        for node in list(self.document.findall(nodes.substitution_reference)):
            node.replace_self(nodes.Text(node.rawsource))


def add_kinds(app: Sphinx, docname: str, source: list[str]) -> None:
    """Give the page of certificates a section for each kind that only its prover describes."""
    if docname != "certificates":
        return
    sections = [
        f"## `{kind}`\n\n{inspect.getdoc(inspect.getmodule(prover.prove))}\n\n"
        for kind, prover in PROVERS.items()
        if f"## `{kind}`" not in source[0]
    ]
    before, rest = source[0].split("## A second checker", 1)
    source[0] = "".join([before, *sections, "## A second checker", rest])


def setup(app: Sphinx) -> None:
    app.add_transform(PlainBars)
    app.connect("source-read", add_kinds)
