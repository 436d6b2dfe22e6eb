"""Both checkers on one certificate, and why they may differ."""

import base64
import copy
import json
import re
import zlib

import numpy as np

from cvxleak import check, verify
from cvxleak.exact.packing import pack
from tests.second_checker.mutating import PACKED, signed

# What the first checker refuses though the second proves the claim, by the reason that it gives.
# In all of these the claim is true: the proof is written in a form that only the first insists on,
# or the claim is so sharp that the first's rounding does not reach it.
FORM = [
    (r"does not bound each of|is not about group", "groups: the second finds out what is covered"),
    (r"the witness is about .* not audited", "a record that can be swapped for an audited one"),
    (r"rows and the query must have the same", "labels of values, which no number depends on"),
    (r"sums to .* must sum to", "a row far from 1: divided by its sum, as the format says"),
    (r"must have the values of the query", "values in another order, found by their labels"),
    (r"labels must be distinct", "labels of values: 1 and true are two to the second"),
    (r"must be an integer >= 0", "contributions below 0, which add up like others"),
    (r"distortions are finite and non-negative", "a negative distortion: no step needs its sign"),
    (r"a lower bound is negative", "a bound below 0, which leaves the laws of a polytope the same"),
    (r"the balance must name", "an equation named twice: what is left is seen afterwards"),
    (r"a multiplier is negative", "one that the balance makes positive: signs are seen afterwards"),
    (r"packed array: expected an object, found None", "symmetries that are left out as null"),
    (r"of two different inputs", "a row compared with itself: (1 - f) sum h Q <= 0, which is true"),
    (r"rows: expected the parts|symmetries are not a list", "generators of rows that need none"),
    (r"expected a number that a float holds", "a number in text"),
    (r"the witness: expected the parts", "a part that no step reads"),
    (r"the output distribution sums to", "an output law far from 1: divided by its sum"),
    (r"all of the \d+ values, .* must occur", "values that never occur"),
    (r"missing keys|not in its canonical form", "the query in another form"),
]
ROUNDING = 1e-9


def compared(data):
    """Return both verdicts and how they go together: agree, unknown, strict, or why not."""
    text = json.dumps(data)
    first, second = verify(json.loads(text)), check.check_text(text)
    verdict = next(v for v in second if v.code == check.worst(second))
    return first, verdict, explained(first, verdict.code, data)


def explained(first, code, data):
    """Return why two verdicts on a certificate are what they are."""
    if code == check.UNKNOWN:
        return "not known to the second"
    if first.passed == (code == check.PROVED):
        return "agree"
    if first.passed:
        return "the second is stricter"
    if float(data["claim"]["lower"]) <= -1e300 and float(data["claim"]["upper"]) >= 1e300:
        return "a claim that says nothing"
    for pattern, why in FORM:
        if re.search(pattern, first.reason):
            return why
    if "is proved, not the claimed" in first.reason and _next_to_zero(data["proof"]):
        return "a multiplier next to 0, by which the first's balls cannot divide"
    if "inputs" in data["proof"] and verify(_with_laws(data)).passed:
        return "weights on vertices that are no law: divided by their sum"
    claimed = re.findall(r"bound: (\S+) is proved, not the claimed (\S+?);?(?:\s|$)", first.reason)
    lower = (
        first.reason.startswith("the lower bound") and "the upper bound is proved" in first.reason
    )
    given = data["problem"]
    if lower and ("channel_set" in given.get("mechanism", ()) or "lower" in given):
        return "the second's posteriors are those of members that tell less than the center"
    if claimed and all(abs(float(a) - float(b)) <= ROUNDING for a, b in claimed):
        return "the first rounds more"
    return "unexplained"


def _with_laws(data):
    """Return a certificate of independent records whose inputs are divided by their sums."""
    changed = copy.deepcopy(data)
    for place, one in enumerate(changed["proof"]["inputs"]):
        raw = zlib.decompress(base64.b64decode(one["data"]))
        rows = np.frombuffer(raw, one["dtype"]).reshape(one["shape"])
        changed["proof"]["inputs"][place] = pack(rows / rows.sum(axis=1, keepdims=True))
    return signed(changed)


def _next_to_zero(value):
    """Whether there is a number next to 0 in JSON data."""
    if isinstance(value, dict) and set(value) == PACKED:
        value = np.frombuffer(zlib.decompress(base64.b64decode(value["data"])), value["dtype"])
        return bool((np.abs(value[value != 0]) < 1e-290).any())
    if isinstance(value, (dict, list)):
        return any(map(_next_to_zero, value.values() if isinstance(value, dict) else value))
    return isinstance(value, float) and 0 < abs(value) < 1e-290
