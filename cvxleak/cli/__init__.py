"""The command line, ``cvxleak``: a module of `cvxleak.cli.commands` for each command.

Importing it loads nothing that a command may not need; checking a certificate needs no CVXPY.
"""

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line (the console script ``cvxleak``)."""
    try:
        # Here, as Ctrl-C may come while the commands are loaded.
        from cvxleak.cli.app import main as run

        run()
    except KeyboardInterrupt:
        print("cvxleak: stopped", file=sys.stderr)
        sys.exit(130)
