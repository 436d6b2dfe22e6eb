"""What claims about the leakage of records are about, in words; the kernel proves them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cvxleak.model.gain_form import GainForm
from cvxleak.proofs import reading

__all__ = ["about", "about_disclosure", "about_independent", "in_words"]

SHOWN = 4
"""Most numbers of a distribution, and most records, that are written out in words."""


def about(problem: Mapping[str, Any]) -> str:
    """Say what a problem that `prove` has read is about."""
    size, given = problem["size"], problem["records"]
    total = sum(number for _, number in problem["mechanism"]["query"]["space"]["alphabets"])
    if given is not None:
        named = [" + ".join(str(i) for i in group) for group in given[:4]]
        who = "record " + ", ".join(named) + (", ..." if len(given) > 4 else "") + f" of {total}"
    elif size == 1:
        who = f"the worst of {total} records"
    else:
        who = f"the worst group of {size} of {total} records"
    floor = reading.number(problem["entropy_floor"], "the entropy floor")
    told = GainForm.read(problem)
    known = "; ".join(in_words(one) for one in problem.get("adversaries", ()))
    more = f"; known about them: {known}" if known else ""
    if "channel_set" in problem["mechanism"]:
        more += "; for every channel in a set"
    if "noise" in problem["mechanism"]:
        more += "; for the number with its noise"
    if not told.is_leakage:
        more += f"; {told.name}"
    return f"{who}, adversaries with at least {floor:.12g} nats of uncertainty{more}"


def in_words(known: Mapping[str, Any]) -> str:
    """Describe one piece of knowledge, as the kernel has read it.

    Examples
    --------
    >>> from cvxleak.proofs.record_leakage import in_words
    >>> in_words({"kind": "marginals", "law": [0.9, 0.1], "records": [0, 2]})
    'each of records 0, 2 has the distribution (0.9, 0.1)'
    """
    if known["kind"] == "marginals":
        records, law = _few(known["records"]), _few(known["law"])
        return f"each of records {records} has the distribution ({law})"
    if known["kind"] == "relative-entropy":
        center = "a prior" if known["prior"] is not None else "a product of distributions"
        radius = reading.number(known["radius"], "the radius")
        return f"relative entropy of at most {radius:.12g} nats to {center}"
    low, high = (
        None if known[side] is None else reading.number(known[side], side)
        for side in ("at_least", "at_most")
    )
    sides = [
        f"{word} {side:.12g}"
        for word, side in (("at least", low), ("at most", high))
        if side is not None
    ]
    # A name can be anything: it is kept on one line, and not longer than the rest.
    name = " ".join(known["name"].split())
    return f"{name:.60} " + (" and ".join(sides) if low != high else f"equal to {low:.12g}")


def _few(numbers: Sequence[float]) -> str:
    rest = ", ..." if len(numbers) > SHOWN else ""
    return ", ".join(f"{reading.number(x, 'a distribution'):.12g}" for x in numbers[:SHOWN]) + rest


def about_disclosure(problem: Mapping[str, Any]) -> str:
    """Say what a problem that `prove` has read is about."""
    size, records = problem["size"], problem["records"]
    who = f"{size} records" if size > 1 else "a record"
    return f"total disclosure of {who}" + ("" if records is None else f" of {len(records)} groups")


def about_independent(problem: Mapping[str, Any]) -> str:
    """Say what a problem about independent records is about, once its ends are proved."""
    record, told = problem["record"], GainForm.read(problem)
    who = "the worst record" if record is None else f"record {record}"
    if not told.is_leakage:
        who = f"{told.name}, {who}"
    if "laws" not in problem:
        floor = reading.number(problem["entropy_floor"], "the entropy floor")
        return f"{who}, product priors with an entropy of at least {floor:.12g} nats"
    ((kind, known),) = problem["laws"].items()
    if kind == "vertices":
        return f"{who}, product priors whose distributions are mixtures of given ones"
    words = {
        "least_probability": "each value of each other record has a probability of",
        "record_floor": "each other record's entropy in nats is",
    }
    return f"{who}, product priors; {words[kind]} at least {reading.number(known, kind):.12g}"
