"""The command line: ``cvxleak audit``, ``cvxleak verify`` and ``cvxleak capacity``.

Importing it loads nothing that a command may not need; checking a certificate needs no CVXPY.
"""

from cvxleak.cli.app import main

__all__ = ["main"]
