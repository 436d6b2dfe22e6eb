"""How fuzz tests draw their examples."""

from __future__ import annotations

from hypothesis import HealthCheck, settings


def many(examples: int) -> settings:
    """The same examples in every run, so that a failure can be looked into."""
    return settings(
        max_examples=examples,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
