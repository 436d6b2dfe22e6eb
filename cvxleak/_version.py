"""The version of cvxleak. A test compares it with CITATION.cff, which states it too."""

__all__ = ["__version__"]

__version__ = "0.2.0"
