"""The command line, ``cvxleak``: a module of `cvxleak.cli.commands` for each command.

Importing it loads nothing that a command may not need; checking a certificate needs no CVXPY.
"""

from cvxleak.cli.app import main

__all__ = ["main"]
