"""`sample_mechanism`: draws from a mechanism that is a Python function."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any

import numpy as np

from cvxleak.core.clock import check_progress
from cvxleak.core.errors import SolveInterrupted, ValidationError
from cvxleak.core.validation import generator, in_order, label_tuple, short, whole_number
from cvxleak.samples.reading import Samples, check_entry

__all__ = ["sample_mechanism"]

MOST = 1 << 27
"""Most draws, of all inputs together."""


def sample_mechanism(
    f: Callable[..., Hashable],
    inputs: Iterable[Hashable],
    draws: int,
    rng: int | np.random.Generator | None = None,
    *,
    progress: Callable[[int, int], None] | None = None,
) -> Samples:
    """Call a function `draws` times for each input and return the samples for `audit_samples`.

    Parameters
    ----------
    f : callable
        f(x), or f(x, generator) if `rng` is given. Each call must be an independent draw and return
        a value: a text such as "failed" in place of None, NaN or an exception.
    inputs : iterable of hashable
        The distinct inputs.
    draws : int
        Number of calls for each input, fixed beforehand: sampling until something is found would
        invalidate the confidence of an audit.
    rng : int or numpy.random.Generator, optional
        Seed or generator that is passed to f. If left out, f uses its own randomness.
    progress : callable, optional
        Called as progress(calls so far, calls in all) after each round of one call per input.

    Raises
    ------
    ValidationError
        Arguments of the wrong kind; or f raises an exception, or returns None, NaN or an object
        that is not hashable: the message names the call.
    SolveInterrupted
        At Ctrl-C; its `bound` holds the `Samples` of all complete rounds, or None.

    Examples
    --------
    >>> from cvxleak.samples import audit_samples, sample_mechanism
    >>> def respond(answer, rng):
    ...     return answer if rng.random() < 0.75 else 1 - answer
    >>> samples = sample_mechanism(respond, [0, 1], 10000, rng=0)
    >>> samples
    Samples(20000 draws of 2 secrets [0, 1])
    >>> print(audit_samples(samples, outputs=[0, 1]).violation())
    not (epsilon, 0)-private for epsilon below ...
    """
    check_progress(progress)
    if not callable(f):
        raise ValidationError(f"f: expected a function, found {short(f)}")
    listed = in_order(inputs, "inputs")
    labels = label_tuple(listed, len(listed), "inputs")
    if not labels:
        raise ValidationError("inputs: found none; at least one is needed")
    whole_number(draws, "draws", 1, MOST // len(labels))
    source = () if rng is None else (generator(rng),)
    outputs: list[Hashable] = []
    try:
        for turn in range(draws):
            outputs += [_drawn(f, x, source, turn) for x in labels]
            if progress is not None:
                progress(len(outputs), draws * len(labels))
    except KeyboardInterrupt as error:
        rounds = len(outputs) // len(labels)
        found = Samples(labels * rounds, outputs[: rounds * len(labels)]) if rounds else None
        raise SolveInterrupted(found) from error
    return Samples(labels * draws, outputs)


def _drawn(
    f: Callable[..., Any], x: Hashable, source: tuple[np.random.Generator, ...], turn: int
) -> Any:
    where = f"f: call {turn + 1} at the input {short(x)}"
    try:
        output = f(x, *source)
    except Exception as error:
        raise ValidationError(f"{where} raised {type(error).__name__}: {error}") from error
    return check_entry(output, where)
