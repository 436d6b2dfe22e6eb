"""One module for each command: what it takes, and in which order it does what.

A command imports what it needs when it runs, so that ``--help`` and ``verify`` are light.
"""
