"""What a certificate can show of a channel and the user's constraints."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

__all__ = ["Shown"]


class Shown(NamedTuple):
    """What can be shown of a channel and user constraints.

    Attributes
    ----------
    met : bool
        Whether it meets them, and is in the half-spaces that a certificate stores.
    witness : dict
        What the witness stores in addition to the channel.
    about : dict
        What the bounds of a certificate are about.
    """

    met: bool = True
    witness: Mapping[str, Any] = MappingProxyType({})
    about: Mapping[str, str] = MappingProxyType({})
