"""`sample_mechanism`: draws of a mechanism that is a Python function."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any

import numpy as np

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
    """Call a function `draws` times for each of its inputs: what `audit_samples` takes.

    Parameters
    ----------
    f : callable
        f(x), or f(x, generator) if `rng` is given. Each call has to be a fresh draw. What it
        returns has to be a value: a text such as "failed" in place of None, NaN or an error.
    inputs : iterable of hashable
        Distinct.
    draws : int
        Calls for each input, fixed beforehand: an audit's confidence does not survive if one goes
        on until something shows.
    rng : int or numpy.random.Generator, optional
        Randomness for f, if it takes its randomness from outside.
    progress : callable, optional
        Called as progress(calls so far, calls in all) after each round, a call for each input.

    Raises
    ------
    ValidationError
        Arguments of the wrong kind; or f raises an error, or returns nothing or what is not
        hashable: the message says at which call.
    SolveInterrupted
        At Ctrl-C; its `bound` has the `Samples` of all complete rounds, None if there are none.

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
    if not callable(f):
        raise ValidationError(f"f: expected a function, found {short(f)}")
    listed = in_order(inputs, "inputs")
    labels = label_tuple(listed, len(listed), "inputs")
    if not labels:
        raise ValidationError("inputs: found none")
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
