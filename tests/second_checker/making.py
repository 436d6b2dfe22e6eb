"""Certificates of every kind and proof that the second checker does, made afresh and quickly."""

import functools
import json
import math
from collections.abc import Callable

import cvxpy as cp
import numpy as np

from cvxleak import (
    Distortion,
    Mechanism,
    RecordSpace,
    SourceSet,
    capacity,
    failure_probability,
    group_leakage,
    min_distortion,
    min_leakage,
    min_local_dp,
    pml_envelope,
    product_leakage,
    record_leakage,
)
from cvxleak.mechanisms import (
    binary_symmetric,
    discretized_gaussian,
    generalized_symmetric,
    random_rounding,
    randomized_response,
    truncated_geometric,
)
from cvxleak.model import (
    AdditiveQuery,
    Arimoto,
    ChannelSet,
    GainMatrix,
    Gini,
    Guess,
    GuessInTries,
    Shannon,
)
from cvxleak.problem.bound import Bound
from cvxleak.queries import count, from_function, modular_sum, parity

SPACE = RecordSpace([[0, 1], [0, 1, 2], [0, 1]])
MIXED = AdditiveQuery(SPACE, [(0, 1), (0, 2, 5), (0, 3)], modulus=4)
CHANNEL = [[0.5, 0.3, 0.2], [0.1, 0.2, 0.7], [0.25, 0.5, 0.25], [0.6, 0.1, 0.3]]
HOLES = [[0.5, 0.5, 0.0], [0.0, 0.25, 0.75], [1.0, 0.0, 0.0], [0.25, 0.5, 0.25]]
PRINTED = ChannelSet.from_printed(CHANNEL, 2)
PRIOR = [0.1, 0.2, 0.3, 0.4]
LAWS = [[0.5, 0.3, 0.2], [0.2, 0.5, 0.3]]
WRONG = [[0, 1], [1, 0]]
CAREFUL = GainMatrix([[1, -2], [-2, 1], [0, 0]])
MANY = GainMatrix(
    [[round(1 - (a / 69) ** 2, 6), round(1 - (1 - a / 69) ** 2, 6)] for a in range(70)]
)


def table(x):
    return x[0] * x[1] + x[2]


def two_alike(x):
    return (x[0] + x[1]) % 2 + 2 * (x[2] == "b")


def further(q):
    """A constraint with a further variable: the entries may be off the identity by .4 in all."""
    off = cp.Variable((2, 2))
    return [q - np.eye(2) <= off, np.eye(2) - q <= off, cp.sum(off) <= 0.4]


def noisy(n, variance, step=1.0):
    outputs = np.arange(-3.0, n + 3.5, step)
    return Mechanism(count(n), discretized_gaussian(outputs, variance, inputs=range(n + 1)))


def gained(gain, form, people=4, floor=2.4, tol=2e-2):
    rounded = Mechanism(count(people), random_rounding(people, 3))
    return lambda: record_leakage(rounded, floor, gain=gain, form=form, tol=tol)


MAKERS: dict[str, Callable[[], Bound]] = {
    "capacity": lambda: capacity(CHANNEL),
    "capacity of zeros": lambda: capacity(HOLES),
    "capacity of nothing": lambda: capacity([[0.5, 0.5], [0.5, 0.5]]),
    "capacity of a set": lambda: capacity(PRINTED),
    "capacity of a wide set": lambda: capacity(
        ChannelSet([[0.4, 0, 0.1], [0.0, 0.3, 0.1]], [[0.9, 0.2, 0.5], [0.2, 0.8, 0.7]])
    ),
    "capacity of a set of points": lambda: capacity(ChannelSet(HOLES, HOLES)),
    "log k alone": lambda: record_leakage(Mechanism(count(6), random_rounding(6, 3)), 0.0),
    "cells": lambda: record_leakage(Mechanism(count(5), random_rounding(5, 3)), 3.2, tol=1e-2),
    "cells with symmetries": lambda: record_leakage(
        Mechanism(parity(4), binary_symmetric(0.2)), 2.5, tol=1e-2
    ),
    "cells of merged outputs": lambda: record_leakage(
        Mechanism(count(3), random_rounding(3, 3)).product(
            Mechanism(count(3), truncated_geometric(3, 1.0))
        ),
        1.0,
        tol=2e-2,
    ),
    "cells at a price": lambda: record_leakage(noisy(5, 1.0, 0.5), 2.0, tol=5e-2),
    "dataset": lambda: group_leakage(
        Mechanism(modular_sum(9, 4), generalized_symmetric(4, 0.2)), 3.6, 8
    ),
    "sharing": lambda: group_leakage(Mechanism(count(5), random_rounding(5, 3)), 2.5, 2, tol=2e-2),
    "choices": lambda: record_leakage(
        Mechanism(modular_sum(6, 4), randomized_response(4, 1.0)), 2.0, tol=1e-2
    ),
    "table": lambda: record_leakage(Mechanism(from_function(SPACE, table), CHANNEL), 1.0, tol=2e-2),
    "groups of a table": lambda: group_leakage(
        Mechanism(from_function(SPACE, table), CHANNEL), 1.0, 2, tol=5e-2
    ),
    "different records": lambda: record_leakage(Mechanism(MIXED, HOLES), 0.7, tol=2e-2),
    "one record": lambda: record_leakage(Mechanism(MIXED, CHANNEL), 0.7, 1, tol=2e-2),
    "two moduli": lambda: record_leakage(
        Mechanism(count(3), random_rounding(3, 3)).product(
            Mechanism(parity(3), binary_symmetric(0.2))
        ),
        1.0,
        tol=1e-1,
    ),
    "set of channels": lambda: record_leakage(
        Mechanism(count(3), ChannelSet(PRINTED.lower, PRINTED.upper)), 1.0, tol=5e-2
    ),
    "set of equal boxes": lambda: record_leakage(
        Mechanism(count(3), ChannelSet.from_printed([CHANNEL[i] for i in (0, 1, 0, 2)], 1)),
        0.5,
        tol=1e-1,
    ),
    "set of points": lambda: record_leakage(
        Mechanism(parity(3), ChannelSet([[0.8, 0.2], [0.3, 0.7]], [[0.8, 0.2], [0.3, 0.7]])),
        1.0,
        tol=5e-2,
    ),
    "chance of a guess": gained(Guess(), "posterior"),
    "rise of a guess": gained(Guess(), "rise", floor=2.7),
    "factor of a guess": gained(Guess(), "factor"),
    "factor of a guess among many": lambda: record_leakage(
        Mechanism(AdditiveQuery(RecordSpace([range(65)]), [range(65)]), randomized_response(65, 1)),
        math.log(65),
        gain=Guess(),
        form="factor",
    ),
    "rise of an action": gained(CAREFUL, "rise"),
    "factor of an action": gained(GainMatrix(CAREFUL.table + 2), "factor"),
    "rise of many actions": gained(MANY, "rise"),
    "factor of many actions": gained(MANY, "factor", tol=1e-1),
    "rise of a proportional guess": gained(Gini(), "rise"),
    "factor of a proportional guess": gained(Gini(), "factor", tol=1e-1),
    "chance of a proportional guess": gained(Gini(), "posterior"),
    "rise of a norm": gained(Arimoto(1.5), "rise"),
    "factor of a norm": gained(Arimoto(3), "factor", tol=1e-1),
    "infinite norm": gained(Arimoto(np.inf), "rise"),
    "doubt that is left": gained(Shannon(), "posterior"),
    "output of nothing, in a guess": lambda: record_leakage(
        Mechanism(count(2), [[0.5, 0.5]] * 3), 1.0, gain=Guess(), form="factor"
    ),
    "guess in two tries": lambda: record_leakage(
        Mechanism(MIXED, CHANNEL), 1.2, 1, gain=GuessInTries(2), form="rise", tol=1e-1
    ),
    "set of channels, in a guess": lambda: record_leakage(
        Mechanism(count(3), PRINTED), 1.0, gain=Guess(), form="rise", tol=5e-2
    ),
    "set of channels, in a norm": lambda: record_leakage(
        Mechanism(parity(3), ChannelSet([[0.7, 0.2], [0.3, 0.6]], [[0.8, 0.3], [0.4, 0.7]])),
        1.0,
        gain=Arimoto(2),
        form="factor",
        tol=1e-1,
    ),
    "independent, of a floor": lambda: product_leakage(
        Mechanism(count(4), random_rounding(4, 3)), entropy_floor=2.0, tol=5e-2
    ),
    "independent, of no floor": lambda: product_leakage(Mechanism(MIXED, CHANNEL), tol=5e-2),
    "independent, of a table": lambda: product_leakage(
        Mechanism(from_function(SPACE, table), CHANNEL), entropy_floor=1.0, tol=5e-2
    ),
    "independent, of a symmetric table": lambda: product_leakage(
        Mechanism(from_function(RecordSpace([[0, 1], [0, 1], ["a", "b"]]), two_alike), HOLES),
        entropy_floor=0.5,
        tol=0.5,
    ),
    "independent, likely values": lambda: product_leakage(
        Mechanism(count(6), truncated_geometric(6, 0.7)), least_probability=0.2
    ),
    "independent, certain values": lambda: product_leakage(
        Mechanism(MIXED, CHANNEL), records=1, least_probability=0.0
    ),
    "independent, doubt of each": lambda: product_leakage(
        Mechanism(count(5), random_rounding(5, 3)), record_floor=0.4
    ),
    "independent, known laws": lambda: product_leakage(
        Mechanism(from_function(SPACE, table), CHANNEL),
        laws=[[[0.5, 0.5], [0.8, 0.2]], [[0.2, 0.3, 0.5], [0.1, 0.8, 0.1]], [[0.4, 0.6]]],
    ),
    "envelope": lambda: pml_envelope(PRIOR, CHANNEL, 0.3),
    "envelope of zeros": lambda: pml_envelope([0.3, 0.3, 0.4, 0.0], HOLES, 0.5),
    "envelope at 0": lambda: pml_envelope(PRIOR, CHANNEL, 0.0),
    "failure": lambda: failure_probability(PRIOR, CHANNEL, 0.4),
    "failure, not strict": lambda: failure_probability(PRIOR, HOLES, 0.7, strict=False),
    "least epsilon": lambda: min_local_dp(LAWS, 0.5),
    "least epsilon, box": lambda: min_local_dp(
        SourceSet.box([0.1, 0.2, 0.1], [0.6, 0.6, 0.5]), 0.4
    ),
    "least epsilon, delta": lambda: min_local_dp(LAWS, 0.4, delta=0.05),
    "least epsilon, distances": lambda: min_local_dp(LAWS, 0.3, [[0, 1, 2], [1, 0, 1], [2, 1, 0]]),
    "least epsilon, infinite": lambda: min_local_dp(LAWS, 0.0),
    "least epsilon, infinite, delta": lambda: min_local_dp(LAWS, 0.0, delta=0.01),
    "least leakage": lambda: min_leakage(
        parity(3), distortion=WRONG, budget=0.1, entropy_floor=1.5
    ),
    "least leakage, types": lambda: min_leakage(
        count(20), distortion=Distortion.absolute(range(21)), budget=1.9, entropy_floor=8.0
    ),
    "least leakage, query": lambda: min_leakage(
        from_function(SPACE, table),
        distortion=Distortion.absolute(range(4)),
        budget=0.3,
        entropy_floor=1.0,
        tol=5e-2,
        rows="query",
    ),
    "least leakage, group": lambda: min_leakage(
        count(3),
        distortion=Distortion.absolute(range(4)),
        budget=0.5,
        entropy_floor=1.0,
        objective="group",
        size=2,
        tol=5e-2,
    ),
    "least leakage, whole dataset": lambda: min_leakage(
        count(2),
        distortion=Distortion.absolute(range(3)),
        budget=0.2,
        entropy_floor=1.0,
        source=[0.1, 0.2, 0.4, 0.3],
        objective="total",
        tol=5e-2,
    ),
    "least leakage, sources": lambda: min_leakage(
        count(3),
        distortion=Distortion.absolute(range(4)),
        budget=0.5,
        entropy_floor=1.0,
        sources=[[0.1, 0.2, 0.3, 0.4], [0.4, 0.3, 0.2, 0.1]],
        tol=5e-2,
    ),
    "own half-space": lambda: min_leakage(
        parity(3),
        distortion=WRONG,
        budget=0.3,
        entropy_floor=1.5,
        rows="orbits",
        constraints=[lambda q: [q[0, 0] <= 0.8]],
    ),
    "own convex set": lambda: min_leakage(
        parity(3),
        distortion=WRONG,
        budget=0.3,
        entropy_floor=1.5,
        rows="orbits",
        constraints=[lambda q: cp.sum_squares(q[:, 0] - np.array([0.85, 0.15])) <= 0.01],
    ),
    "own further variables": lambda: min_leakage(
        parity(3),
        distortion=WRONG,
        budget=0.3,
        entropy_floor=1.5,
        rows="orbits",
        constraints=[further],
    ),
    "least distortion": lambda: min_distortion(
        parity(3), distortion=WRONG, budget=0.1, entropy_floor=1.5
    ),
    "least distortion, silent": lambda: min_distortion(
        count(3), distortion=Distortion.absolute(range(4)), budget=0.0, entropy_floor=1.0
    ),
    "least distortion, mixture": lambda: min_distortion(
        modular_sum(3, 3),
        distortion=Distortion.hamming([0, 1, 2]),
        budget=0.1,
        entropy_floor=1.0,
        tol=5e-2,
    ),
}


@functools.cache
def _text(name):
    certificate = MAKERS[name]().certificate
    assert certificate is not None
    return json.dumps(certificate.to_dict())


def made(name):
    """Return the certificate of a maker as JSON data, which may be changed."""
    return json.loads(_text(name))
