"""Change a certificate in one place, at random, and sign it again as a forger would."""

import base64
import copy
import json
import random
import zlib

import numpy as np

PACKED = {"dtype", "shape", "data"}


def spots(data, where=()):
    """Yield the path of every value in JSON data; a packed array is one value."""
    yield where
    if isinstance(data, dict) and set(data) != PACKED:
        for key, value in data.items():
            yield from spots(value, (*where, key))
    elif isinstance(data, list):
        for place, value in enumerate(data):
            yield from spots(value, (*where, place))


def at(data, where):
    """Return the value at a path."""
    for key in where:
        data = data[key]
    return data


def changed_number(value, rng):
    """Return another number, near or far."""
    if isinstance(value, int):
        return rng.choice([value + 1, value - 1, -value, 0, value + rng.randint(-5, 5), 10**6])
    size = 10.0 ** rng.randint(-17, 0)
    return rng.choice(
        [
            value * (1 + size),
            value * (1 - size),
            value + size,
            value - size,
            -value,
            0.0,
            1.0,
            value / 2,
            value * 2,
            rng.random(),
            -rng.random(),
            1e-300,
            1e300,
        ]
    )


def changed_array(packed, rng):
    """Return a packed array with one entry, or its shape, changed."""
    array = np.frombuffer(zlib.decompress(base64.b64decode(packed["data"])), packed["dtype"]).copy()
    shape = list(packed["shape"])
    if len(array) and rng.random() < 0.9:
        place = rng.randrange(len(array))
        value = array[place].item()
        with np.errstate(all="ignore"):
            array[place] = changed_number(value, rng)
    elif shape:
        side = rng.randrange(len(shape))
        shape[side] = max(0, shape[side] + rng.choice([-1, 1]))
        array = np.resize(array, int(np.prod(shape)))
    data = base64.b64encode(zlib.compress(array.tobytes())).decode("ascii")
    return {"dtype": packed["dtype"], "shape": shape, "data": data}


def changed_value(value, rng):
    """Return another value of the same kind, as a rule."""
    if rng.random() < 0.02:
        return rng.choice([None, "inf", [], {}, True, -1, "1/3"])
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        return changed_number(value, rng)
    if isinstance(value, dict) and set(value) == PACKED:
        return changed_array(value, rng)
    if isinstance(value, dict) and value:
        value = copy.deepcopy(value)
        del value[rng.choice(sorted(value))]
        return value
    if isinstance(value, list) and value:
        value, place = copy.deepcopy(value), rng.randrange(len(value))
        other = rng.randrange(len(value))
        match rng.randrange(3):
            case 0:
                del value[place]
            case 1:
                value.insert(place, value[other])
            case _:
                value[place], value[other] = value[other], value[place]
        return value
    if isinstance(value, str):
        return rng.choice(["inf", "1/3", "", value + "0"])
    return rng.choice([0, 1, [], {}])


def tightened(data, rng):
    """Claim more than was proved at one end, or at both."""
    claim = data["claim"]
    for end, sign in rng.choice([[("lower", 1)], [("upper", -1)], [("lower", 1), ("upper", -1)]]):
        if isinstance(claim[end], float):
            claim[end] += sign * 10.0 ** rng.randint(-16, 0) * rng.random()


def mutate(original, rng):
    """Return a changed certificate, signed, and the path of the change."""
    data = copy.deepcopy(original)
    if rng.random() < 0.15:
        tightened(data, rng)
        return signed(data), ("claim",)
    roots = ["problem", "claim", "witness", "proof"]
    root = rng.choices(roots, [3, 1, 2, 5])[0]
    paths = [(root, *rest) for rest in spots(data[root])]
    # Few of the many numbers of a long list are as good as all: choose a depth first.
    depth = rng.choice(sorted({len(path) for path in paths}))
    where = rng.choice([path for path in paths if len(path) == depth])
    if len(where) == 1:
        data[root] = changed_value(data[root], rng)
    else:
        at(data, where[:-1])[where[-1]] = changed_value(at(data, where), rng)
    return signed(data), where


def signed(data):
    """Return the certificate with the hash that fits."""
    import hashlib

    content = {key: value for key, value in data.items() if key != "sha256"}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return {**content, "sha256": hashlib.sha256(text.encode()).hexdigest()}


def mutations(certificates, number, seed):
    """Yield (name, path, mutated certificate), the same ones for the same seed."""
    rng = random.Random(seed)
    names = sorted(certificates)
    for _ in range(number):
        name = rng.choice(names)
        data, where = mutate(certificates[name], rng)
        yield name, where, data
