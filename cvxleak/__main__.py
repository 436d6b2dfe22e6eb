"""``python -m cvxleak``: the command line, where the script ``cvxleak`` is not on the path."""

from cvxleak.cli import main

if __name__ == "__main__":
    main()
