"""What the tests that tamper with certificates from a search share."""

import copy

import numpy as np

from cvxleak.kernel.reading import pack
from cvxleak.proofs import Certificate
from cvxleak.proofs.reading import unpack


def rebuilt(content):
    """Return a certificate with this content and a hash that fits it."""
    claim = content["claim"]
    return Certificate(
        content["kind"],
        content["problem"],
        claim["lower"],
        claim["upper"],
        content["witness"],
        content["proof"],
        unit=claim["unit"],
    )


def _is_packed(node):
    return isinstance(node, dict) and set(node) == {"dtype", "shape", "data"}


def numbers(node, path=()):
    """Yield the path of every number in a piece of JSON, in packed arrays too."""
    if _is_packed(node):
        for index in np.ndindex(*node["shape"]):
            yield (*path, index)
        return
    items = node.items() if isinstance(node, dict) else enumerate(node)
    for key, value in items:
        if isinstance(value, (dict, list)):
            yield from numbers(value, (*path, key))
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            yield (*path, key)


def changed(content, path, change):
    """Return the content with one number changed."""
    result = copy.deepcopy(content)
    node = result
    for key in path[:-1]:
        node = node[key]
    if _is_packed(node):
        array = unpack(node, "it", "f", node["shape"]).copy()
        array[path[-1]] = change(array[path[-1]])
        node.update(pack(array, "<f8"))
    else:
        node[path[-1]] = change(node[path[-1]])
    return result
