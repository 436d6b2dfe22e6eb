"""Sphinx settings; `make docs` builds with them, and takes every warning for an error."""

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from numpy.typing import ArrayLike
from sphinx.application import Sphinx
from sphinx.ext.napoleon.docstring import NumpyDocstring
from sphinx.transforms import SphinxTransform
from sphinx.util.inspect import TypeAliasForwardRef
from sphinx.util.logging import getLogger
from sphinx.util.typing import stringify_annotation
from sphinx.writers.html5 import HTML5Translator

from cvxleak._version import __version__

project = "cvxleak"
author = "The cvxleak maintainers"
copyright = "the cvxleak maintainers"
version = release = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
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
# In a union Sphinx prints the alias's repr, which is the name of this class with the alias's.
TypeAliasForwardRef.__repr__ = lambda self: self.name


def no_type(self: Any) -> tuple[str, list[str]]:
    """Keep a property's sentence whole: Napoleon takes what stands before a colon for a type."""
    return "", NumpyDocstring(self._consume_to_end(), self._config).lines()


NumpyDocstring._consume_inline_attribute = no_type
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
html_static_path = ["_static"]
html_css_files = ["cvxleak.css"]
html_search_scorer = str(Path(__file__).parent / "search.js")
html_math_renderer = "mathml"
html_title = f"cvxleak {release}"


class PlainBars(SphinxTransform):
    """Leave the size |X| and the absolute value |a - b| alone: they name no substitution."""

    default_priority = 210  # before docutils complains, at 220

    def apply(self) -> None:
        for node in list(self.document.findall(nodes.substitution_reference)):
            node.replace_self(nodes.Text(node.rawsource))


def add_foot(app: Sphinx, docname: str, source: list[str]) -> None:
    """Say where a page's notebook is, and on tutorials that outputs were printed on one machine."""
    notebook = f"examples/{Path(docname).name}.ipynb"
    if (Path(__file__).parents[1] / notebook).exists():
        source[0] += f"\n\nThis page is a {{download}}`notebook </../{notebook}>` as well.\n"
    if docname.startswith("tutorials/"):
        source[0] += "\n\n*On another machine the last digits of the outputs may differ.*\n"


KEYWORDS = {
    "tutorials/audit": "audit, rounding, report",
    "tutorials/table": "table, microdata, margins, census",
    "tutorials/guess": "guess, intruder, gain, risk",
    "tutorials/choosing_b": "entropy floor, uncertainty, adversary",
    "tutorials/ptable": "ptable, perturbation table, cell key",
    "tutorials/noise": "continuous, Gaussian, Laplace, noise",
    "tutorials/survey": "survey, randomized response",
    "tutorials/samples": "samples, black box",
    "tutorials/epsilon": "epsilon, differential privacy",
    "design": "design, distortion, utility",
    "desk": "collusion, release",
    "tutorials/own_constraints": "CVXPY, constraints",
    "tutorials/own_solver": "solver",
    "tutorials/certificates": "certificate, verify, proof",
    "specs": "TOML, spec",
    "comparison": "qif, dit, OpenDP, dp_accounting, sdcMicro",
}
"""What the search finds a page by first, and the index lists it under."""


def add_keywords(app: Sphinx, docname: str, source: list[str]) -> None:
    if docname in KEYWORDS:
        title, rest = source[0].split("\n", 1)
        main = ", ".join(f"! {word}" for word in KEYWORDS[docname].split(", "))
        source[0] = f"{title}\n\n```{{index}} {main}\n```\n{rest}"


SPACING = [
    # A name such as log, and not in front of a parenthesis.
    (
        re.compile(r"(<mi[^>]*>\w+</mi>\s*<mo)>&ApplyFunction;</mo>(?!\s*<mo[^>]*>\()"),
        r'<mspace width="0.17em"/>\1 rspace="0.17em">&ApplyFunction;</mo>',
    ),
    (
        re.compile(r"<msub>\s*<mi>log</mi>\s*<mn>\d+</mn>\s*</msub>"),
        r'<mspace width="0.17em"/>\g<0><mspace width="0.17em"/>',
    ),
    # These would grow with a sum beside them; parentheses do not either.
    (re.compile(r'<mo(?: class="\w+")?>([⟨⟩‖{}|])</mo>'), r'<mo stretchy="false">\1</mo>'),
    (re.compile(r" xmlns=\S+?(?=>| display)"), ""),
]
RELATION = re.compile(r"^(  <mo>(?:[+=<≤≥≈∈→⟺]|&lt;|&gt;)</mo>)$", re.MULTILINE)
"""On the outermost level, where a line may break: no browser breaks one inside a formula."""
TEXT = re.compile(r"<mtext>[^<]*</mtext>")
MATH = r"<math>(?:(?!</?math).)*</math>"
JOINED = re.compile(rf"(\({MATH}[.,;:)]*|{MATH}[.,;:)]+)")
BREAKS = re.compile(
    r'(?:<span class="sig-prename.*?</span></span>|<span class="sig-paren">\(</span>)'
)
OPTION = re.compile(r'(?<=<span class="pre)(?=">-)')
SQUARE = re.compile(r"\s<math> <mi>(◻)</mi> </math>(?=</p>)")
CELL = re.compile(r"<td\b.*?</td>", re.DOTALL)
NAME = re.compile(r'(?<=<span class="pre">)[\w.]+(?=</span>)')


def formula(writer: HTML5Translator, node: nodes.math | nodes.math_block) -> None:
    """Write a formula as MathML: browsers render it by themselves, without a network."""
    block = isinstance(node, nodes.math_block)
    try:
        mathml = tex2mathml(node.astext(), as_block=block)
    except MathError as error:
        getLogger(__name__).warning(str(error), location=node)
        raise nodes.SkipNode from error
    for pattern, spaced in SPACING:
        mathml = pattern.sub(spaced, mathml)
    if not block:
        mathml = RELATION.sub(r"\1</math><wbr/><math>", mathml)
    mathml = " ".join(mathml.split())
    mathml = TEXT.sub(lambda text: text[0].replace(" ", "\N{NO-BREAK SPACE}"), mathml)
    writer.body.append(f'<div class="math">{mathml}</div>' if block else mathml)
    raise nodes.SkipNode


def shorten(
    app: Sphinx, what: str, name: str, thing: Any, options: Any, arguments: str, returns: str
) -> tuple[str, str] | None:
    """Write ArrayLike where a union with it has dissolved it into its parts."""
    parts = stringify_annotation(ArrayLike, "smart")
    return (arguments.replace(parts, "ArrayLike"), returns) if arguments else None


def skip(app: Sphinx, what: str, name: str, thing: Any, skipped: bool, options: Any) -> bool | None:
    """Leave out the fields of named tuples that say "Alias for field number 0" and no more."""
    return True if (thing.__doc__ or "").startswith("Alias for field") else None


def cell(found: re.Match[str]) -> str:
    """Let a long name break behind its underscores, or it would widen the table."""
    return NAME.sub(
        lambda name: re.sub(r"_(?=\w)", '_</span><wbr/><span class="pre">', name[0]), found[0]
    )


def join(app: Sphinx, page: str, template: str, context: dict[str, Any], tree: Any) -> None:
    """Keep a formula and its comma, or an option, on one line; break signatures at their joints."""
    if "body" in context:
        context["body"] = JOINED.sub(r'<span class="joined">\1</span>', context["body"])
        context["body"] = SQUARE.sub("\N{NO-BREAK SPACE}\\1", context["body"])
        context["body"] = BREAKS.sub(r"\g<0><wbr/>", context["body"])
        context["body"] = OPTION.sub(" joined", context["body"])
        context["body"] = CELL.sub(cell, context["body"])


def setup(app: Sphinx) -> None:
    app.add_html_math_renderer("mathml", (formula, None), (formula, None))
    app.add_transform(PlainBars)
    app.connect("source-read", add_keywords)
    app.connect("autodoc-process-signature", shorten)
    app.connect("autodoc-skip-member", skip)
    app.connect("html-page-context", join)
    app.connect("source-read", add_foot)
