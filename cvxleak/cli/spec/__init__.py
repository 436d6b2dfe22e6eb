"""The schema of SPEC.toml. docs/specs.md documents it; the tests compare the two."""

from cvxleak.cli.spec.spec import Spec

__all__ = ["Spec"]
