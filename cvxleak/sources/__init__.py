"""Source sets: what is known about a law that is not known."""

from cvxleak.sources.polytope import Polytope
from cvxleak.sources.source_set import SourceSet, as_sources

__all__ = ["Polytope", "SourceSet", "as_sources"]
