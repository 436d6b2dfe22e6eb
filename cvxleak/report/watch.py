"""`Watch`: whoever looks on while an audit runs."""

from __future__ import annotations

__all__ = ["Watch"]


class Watch:
    """Whoever looks on while an audit runs; this one does not.

    Attributes
    ----------
    interrupted : bool
        Once true, what is left to search takes no more time than its first bracket needs.
    """

    interrupted: bool = False

    def begin(self, what: str) -> None:
        """Take note that the work on `what` begins."""

    def progress(self, lower: float, upper: float, nodes: int) -> None:
        """Take note of a bracket, in nats; a KeyboardInterrupt from here ends the search."""

    def end(self) -> None:
        """Take note that the work is done."""
