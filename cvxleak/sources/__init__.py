"""Source sets: the distributions that are possible for a partly known source."""

from cvxleak.sources.polytope import Polytope
from cvxleak.sources.source_set import SourceSet, as_sources

__all__ = ["Polytope", "SourceSet", "as_sources"]
