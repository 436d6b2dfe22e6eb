"""Certificate kind ``record-leakage``: the largest leakage about one record, or group of records.

The claim is about max over the audited groups of records I and over all priors with H(X) >= b of
I(X_I;Y), for the mechanism as written (`cvxleak.core.numbers`).

problem: {"mechanism", "entropy_floor": b, "size": k, "records": list of groups, or null for all
groups of k records}, and perhaps "adversaries", a list of what is known about the prior
(`cvxleak.model.knowledge`). One group is checked for each class of exchangeable ones.

With "gain" and "form" the claim is about another gain than Shannon's, in one of three forms
(`cvxleak.proofs.bounds.gains`): "posterior" is sum_y s_y G(rho_y), "rise" is that minus
G(distribution of A), and "factor" is their quotient. The entries of the proof then hold "cells"
alone.

witness: {"records": group, "weights": lumped prior w}. Its value I(w) is the lower bound, provided
that F(w) = H(w) + sum w log m >= b is shown in ball arithmetic. If there is knowledge, the weights
are fractions written as text, and satisfy it (`cvxleak.proofs.bounds.adversary_class`).

proof: {"groups": [one entry per class]}. An entry bounds its group by the least of

- log of the number of values that the group can take;
- "choices": an input distribution pi for every choice of one context group per value. The capacity
  of the chosen rows is at most max_a D(row_a || sum pi row), and the leakage is at most the largest
  of these capacities, whatever the floor (DALENIUS Theorem 2);
- "cells": a tree of posterior cells with multipliers (lam, mu) at each leaf. For any multipliers
  >= 0 the bound U(lam, mu) (`cvxleak.proofs.bounds.posterior_cells`) is above the leakage in the
  leaf. The checker repeats the splits, so the leaves cover every posterior. Outputs listed together
  in "outputs" are merged first. Since I(A;Y) <= I(A;Y') + I(A;Y|Y'), this adds to the bound the
  largest log-ratio of the merged columns, or an amount that a distribution on the outputs proves;
- "slabs": a tree of slabs of the conditional distributions with multipliers at each leaf
  (`cvxleak.proofs.bounds.law_slabs`);
- "sharing": the time-sharing bound, with a small problem for each value
  (`cvxleak.proofs.bounds.time_sharing`);
- "dataset": multipliers of the bound I(A;Y) <= (1 - q) H(A) + q I(X;Y), which needs no tree.

An entry {"same_as": j} refers to an earlier one whose lumped problem is identical.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from flint import arb, fmpz

from cvxleak.core.errors import CertificateError
from cvxleak.core.numbers import ExactArray, same_numbers, written_law
from cvxleak.exact import balls, reading
from cvxleak.exact.limits import ENTRY, charge, charge_entries, charge_records
from cvxleak.exact.packing import unpack
from cvxleak.model import (
    BoundedDensity,
    Channel,
    ChannelSet,
    Limits,
    Lumped,
    LumpedSet,
    Mechanism,
    RealOutput,
    TableQuery,
)
from cvxleak.model.knowledge import Knowledge
from cvxleak.model.knowledge.binding import exchangeable
from cvxleak.model.noise.additive import Standard
from cvxleak.model.restricted import Restricted, restrict
from cvxleak.proofs.bounds.adversary_class import (
    check_doubt,
    check_member,
    in_words,
    limits_of,
    read_knowledge,
    read_weights,
)
from cvxleak.proofs.bounds.channel_sets import (
    information_below,
    posterior_gain_below,
    posteriors_of,
)
from cvxleak.proofs.bounds.gains import LEAKAGE, GainForm, tangent
from cvxleak.proofs.bounds.law_slabs import slabs_bound
from cvxleak.proofs.bounds.noise import (
    Costs,
    bounded_costs,
    bounded_masses,
    cell_masses,
    costs_of_cells,
    distance_to,
    excess_of_cells,
    read_edges,
    slack_of_distance,
)
from cvxleak.proofs.bounds.outputs import Matrix, capacity_above, rows_by_value
from cvxleak.proofs.bounds.posterior_cells import cells_bound
from cvxleak.proofs.bounds.time_sharing import sharing_bound
from cvxleak.proofs.bounds.whole_dataset import dataset_bound

__all__ = [
    "Cells",
    "about",
    "about_independent",
    "audited_groups",
    "check_entry",
    "prove",
    "prove_balance",
    "prove_groups",
    "prove_lower",
    "prove_lower_within",
    "prove_upper",
    "read_cells",
    "read_entries",
    "read_statement",
    "unit_of",
    "view_of",
]

BOUNDS = {"choices", "dataset", "cells", "slabs", "sharing"}
"""The keys that an entry of the proof may have."""


def prove(
    problem: Mapping[str, Any], witness: Mapping[str, Any], proof: Mapping[str, Any]
) -> tuple[float, float]:
    """Return proved lower and upper bounds on the leakage, in nats."""
    return prove_groups(*read_statement(problem), witness, proof, GainForm.read(problem))


def prove_groups(
    mechanism: Mechanism,
    floor: float,
    groups: Sequence[tuple[int, ...]],
    knowledge: Sequence[Knowledge],
    witness: Mapping[str, Any],
    proof: Mapping[str, Any],
    told: GainForm = LEAKAGE,
) -> tuple[float, float]:
    """Return proved lower and upper bounds on the leakage about the worst of some groups."""
    if isinstance(mechanism.noise, ChannelSet):
        return _prove_set(mechanism, floor, groups, knowledge, witness, proof, told)
    if isinstance(mechanism.noise, RealOutput):
        if not told.is_leakage:
            raise CertificateError("for a real output, only the leakage in nats can be proved")
        return _prove_noise(mechanism, floor, groups, knowledge, witness, proof)
    entries = read_entries(proof, groups)
    views = [view_of(mechanism, group, knowledge) for group in groups]
    uppers: list[float] = []
    for place, entry in enumerate(entries):
        if isinstance(entry, Mapping) and "same_as" in entry:
            reading.parts(entry, {"same_as"}, "an entry of the proof")
            other = reading.count(entry["same_as"], "same_as")
            if not other < place or not _same(views[place], views[other]):
                raise CertificateError(
                    f"group {groups[place]} is not equivalent to the group of entry {other}"
                )
            uppers.append(uppers[other])
        else:
            check_entry(entry, groups[place], BOUNDS if told.is_leakage else {"cells"})
            lumped, _, limits = views[place]
            uppers.append(prove_upper(lumped, floor, entry, limits, told))
    group = _group_of(witness)
    lumped, restricted, _ = view = view_of(mechanism, group, knowledge)
    if group not in groups and not any(_same(view, audited) for audited in views):
        raise CertificateError(f"the witness is about {group}, which is not audited")
    if restricted is None:
        return prove_lower(lumped, floor, witness["weights"], told), max(uppers)
    return prove_lower_within(restricted, floor, witness["weights"], told), max(uppers)


def _prove_set(
    mechanism: Mechanism,
    floor: float,
    groups: Sequence[tuple[int, ...]],
    knowledge: Sequence[Knowledge],
    witness: Mapping[str, Any],
    proof: Mapping[str, Any],
    told: GainForm,
) -> tuple[float, float]:
    """Return a bound below the leakage of every channel of a set, and one above all of them."""
    uppers: list[float] = []
    for group, entry in zip(groups, read_entries(proof, groups), strict=True):
        check_entry(entry, group, {"cells"})
        _charge_lumping(mechanism, group)
        if knowledge:
            restricted = restrict(mechanism, group, knowledge)
            of_set, limits = restricted.of_set, limits_of(restricted)
            assert of_set is not None
        else:
            of_set, limits = mechanism.lumped_set(group), None
        uppers.append(prove_upper_of_set(of_set, floor, entry, limits, told))
    group = _group_of(witness)
    if group not in groups:
        raise CertificateError(f"the witness is about {group}, which is not audited")
    if knowledge:
        restricted = restrict(mechanism, group, knowledge)
        lower = prove_lower_within(restricted, floor, witness["weights"], told)
    else:
        lower = prove_lower_of_set(mechanism, group, floor, witness["weights"], told)
    return lower, max(uppers)


def _prove_noise(
    mechanism: Mechanism,
    floor: float,
    groups: Sequence[tuple[int, ...]],
    knowledge: Sequence[Knowledge],
    witness: Mapping[str, Any],
    proof: Mapping[str, Any],
) -> tuple[float, float]:
    """Return the bounds for a real output, by those for its cells."""
    bounded = isinstance(mechanism.noise, BoundedDensity)
    keys = {"channel"} if bounded else {"edges", "references", "channel"}
    reading.parts(proof, {"groups"} | keys, "the proof")
    cells = read_cells(mechanism, groups, {key: proof[key] for key in keys})
    inner = {"groups": proof["groups"]}
    return cells.widened(*prove_groups(cells.mechanism, floor, groups, knowledge, witness, inner))


class Cells(NamedTuple):
    """Stands for a real output.

    Attributes
    ----------
    mechanism : Mechanism
        Its output is the cell that the real output is in, up to `slack`; audited in its place.
    slack : arb
        The leakage through the cell differs by at most this from that of `mechanism`.
    excess : arb
        The place within the cell reveals at most this much more.
    most : arb
        log|A|.
    """

    mechanism: Mechanism
    slack: arb
    excess: arb
    most: arb

    def widened(self, lower: float, upper: float) -> tuple[float, float]:
        """Return the bounds for the real output, from those of `mechanism`."""
        above = (arb(upper) + self.slack + self.excess).min(self.most)
        return max(balls.round_down(arb(lower) - self.slack), 0.0), balls.round_up(above)


def read_cells(
    mechanism: Mechanism, groups: Sequence[tuple[int, ...]], cells: Mapping[str, Any]
) -> Cells:
    """Return what is audited in place of the real output of a mechanism."""
    query, space = mechanism.query, mechanism.space
    masses, costs = _masses_and_costs(mechanism, cells)
    rows = unpack(cells["channel"], (len(query.values), len(costs)))
    near = Mechanism(query, Channel(rows, query.values))
    size = max(math.prod(space.shape[i] for i in space.group(group)) for group in groups)
    eta = distance_to(masses, [balls.normalized(row) for row in near.channel.matrix])
    excess = excess_of_cells(masses, costs, size)
    return Cells(near, slack_of_distance(eta, size), excess, arb(fmpz(size)).log())


def _masses_and_costs(mechanism: Mechanism, cells: Mapping[str, Any]) -> tuple[Matrix, Costs]:
    """Return the probabilities of the cells, and what the place in each cell reveals."""
    output = mechanism.standard
    if isinstance(output, BoundedDensity):
        return bounded_masses(output), bounded_costs(output)
    assert isinstance(output, Standard)
    inner = unpack(cells["edges"], (None,)).tolist()
    references = unpack(cells["references"], (len(inner) + 1,)).tolist()
    if not np.isfinite(references).all():
        raise CertificateError("a cell's reference is not a number")
    edges = read_edges(output.noise, inner)
    masses = cell_masses(output.noise, output.places, edges)
    return masses, costs_of_cells(output.noise, output.places, edges, references)


def read_entries(proof: Mapping[str, Any], groups: Sequence[tuple[int, ...]]) -> list[Any]:
    """Return the entries of the proof, one for each group."""
    entries = reading.parts(proof, {"groups"}, "the proof")["groups"]
    if not isinstance(entries, list) or len(entries) != len(groups):
        raise CertificateError(f"the proof does not bound each of {len(groups)} groups")
    return entries


def check_entry(entry: Any, group: tuple[int, ...], bounds: set[str]) -> None:
    """Check that an entry of the proof is about this group, and holds only these bounds."""
    reading.parts(entry, {"records"}, "an entry of the proof", optional=bounds)
    if reading.groups([entry["records"]], "an entry's records")[0] != list(group):
        raise CertificateError(f"an entry of the proof is not about group {group}")


def _group_of(witness: Mapping[str, Any]) -> tuple[int, ...]:
    """Return the group of records that the witness is about."""
    reading.parts(witness, {"records", "weights"}, "the witness")
    return tuple(reading.groups([witness["records"]], "the witness's records")[0])


def prove_upper_of_set(
    lumped: LumpedSet,
    floor: float,
    entry: Mapping[str, Any],
    limits: Limits | None = None,
    told: GainForm = LEAKAGE,
) -> float:
    """Return a float above the leakage of one lumped problem, whatever the rows in their boxes.

    With `limits`, only adversaries that meet them count.
    """
    bounds = [
        balls.round_up(told.checked(len(lumped.center.values)).ceiling(len(lumped.center.values)))
    ]
    if "cells" in entry:
        boxes = (lumped.lower, lumped.upper)
        bounds.append(cells_bound(lumped.center, floor, entry["cells"], limits, boxes, told))
    return min(bounds)


def prove_lower_of_set(
    mechanism: Mechanism,
    group: tuple[int, ...],
    floor: float,
    weights: Sequence[float],
    told: GainForm = LEAKAGE,
) -> float:
    """Return a float below I(w) under every channel of the set; raise if w is not allowed."""
    of_set = mechanism.lumped_set(group)
    size = len(of_set.counts)
    w = balls.normalized(reading.numbers(weights, "the witness's weights", size))
    check_doubt(w, of_set.center.multiplicities, floor)
    return _below_all(mechanism, of_set, w, told)


def _below_all(mechanism: Mechanism, of_set: LumpedSet, w: Sequence[arb], told: GainForm) -> float:
    """Return a float below I(w), or below a gain, under every channel of a set.

    Each query value has a row of its own, which all values of A share.
    """
    noise, lumped = mechanism.noise, of_set.center
    assert isinstance(noise, ChannelSet)
    priors = [[arb(0)] * len(mechanism.query.values) for _ in lumped.values]
    joint: Matrix = [[arb(0)] * len(noise.outputs) for _ in lumped.values]
    for a, mass, counted, many, row in zip(
        lumped.value_index.tolist(),
        w,
        of_set.counts,
        lumped.multiplicities,
        lumped.rows.tolist(),
        strict=True,
    ):
        for i, number in counted.items():
            priors[a][i] += mass * arb(fmpz(number)) / arb(fmpz(many))
        joint[a] = [s + mass * arb(q) for s, q in zip(joint[a], row, strict=True)]
    law = [balls.total(own) for own in priors]
    posteriors = posteriors_of(joint, law)
    lower, upper = (
        [[balls.number(x) for x in row] for row in ends.tolist()]
        for ends in (noise.lower, noise.upper)
    )
    if told.is_leakage:
        return max(balls.round_down(information_below(priors, lower, upper, posteriors)), 0.0)
    told.checked(len(law))
    by_output = (tangent(told.gain, column) for column in zip(*posteriors, strict=True))
    tangents = list(zip(*by_output, strict=True))
    posterior = posterior_gain_below(priors, lower, upper, tangents)
    return max(balls.round_down(told.of_posterior(posterior, law)), told.floor)


def prove_balance(
    problem: Mapping[str, Any], witness: Mapping[str, Any], proof: Mapping[str, Any]
) -> tuple[float, float]:
    """Return proved bounds on g(b) = C_1 - C_1^b (kind ``balance``, DALENIUS Definition 10).

    Witness and proof hold those of C_1 under "capacity" and those of C_1^b under "leakage".
    """
    for part, name in ((witness, "the witness"), (proof, "the proof")):
        reading.parts(part, {"capacity", "leakage"}, name)
    free = {**problem, "entropy_floor": 0.0}
    most = prove(free, witness["capacity"], proof["capacity"])
    least = prove(problem, witness["leakage"], proof["leakage"])
    lower = max(math.nextafter(most[0] - least[1], -math.inf), 0.0)
    return lower, math.nextafter(most[1] - least[0], math.inf)


def unit_of(problem: Mapping[str, Any]) -> str:
    """Return the unit of the bounds."""
    return GainForm.read(problem).unit


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


Statement = tuple[Mechanism, float, list[tuple[int, ...]], tuple[Knowledge, ...]]


def read_statement(problem: Mapping[str, Any]) -> Statement:
    """Return mechanism, floor, one group of records for each exchangeable class, and knowledge."""
    keys = {"mechanism", "entropy_floor", "size", "records"}
    reading.parts(problem, keys, "the problem", optional={"adversaries", "gain", "form"})
    charge_records(problem["mechanism"])
    mechanism = Mechanism.from_dict(problem["mechanism"])
    # A mechanism reads more than it writes (true for 1, say): the file has to hold what it writes.
    if not reading.identical(problem["mechanism"], mechanism.to_dict()):
        raise CertificateError("the mechanism is not in its canonical form")
    floor = reading.number(problem["entropy_floor"], "the entropy floor")
    size, records = reading.count(problem["size"], "the size", 1), problem["records"]
    given = None if records is None else reading.groups(records, "the records")
    knowledge = ()
    if "adversaries" in problem:
        knowledge = read_knowledge(problem["adversaries"], mechanism.query)
    return mechanism, floor, audited_groups(mechanism, size, given, knowledge), knowledge


def audited_groups(
    mechanism: Mechanism,
    size: int,
    records: Sequence[Sequence[int]] | None,
    knowledge: Sequence[Knowledge] = (),
) -> list[tuple[int, ...]]:
    """Return the groups of records that an audit has to bound, one per exchangeable class."""
    if records is None:
        return mechanism.groups(size, exchangeable(mechanism.query, knowledge))
    groups = [tuple(group) for group in records]
    if not groups or any(len(group) != size for group in groups):
        raise CertificateError(f"records: expected groups of {size}")
    return groups


View = tuple[Lumped, Restricted | None, Limits | None]


def view_of(mechanism: Mechanism, group: tuple[int, ...], knowledge: Sequence[Knowledge]) -> View:
    """Return the lumped problem of a group of records, and the limits of the adversaries' class."""
    _charge_lumping(mechanism, group)
    if not knowledge:
        return mechanism.lumped(group), None, None
    restricted = restrict(mechanism, group, knowledge)
    return restricted.lumped, restricted, limits_of(restricted)


def _charge_lumping(mechanism: Mechanism, group: tuple[int, ...]) -> None:
    """Count the steps that lumping the contexts of a group of records takes, before it is done."""
    space, query = mechanism.space, mechanism.query
    written = math.prod(mechanism.nominal.channel.shape)
    values = math.prod(space.shape[i] for i in group if i < space.records)
    why = f"the contexts of records {group!r:.40}"
    charge_entries(values * mechanism.distinct_rows[0].size, written, why)
    # All entries of a table are read; for a sum, the numbers of contexts for each total, in words.
    words = space.size.bit_length() // 64 * len(query.values)
    counting = space.size if isinstance(query, TableQuery) else words
    charge("steps", (space.records + counting) // ENTRY, why)


def _same(one: View, other: View) -> bool:
    if not same_problem(one[0], other[0]):
        return False
    if one[1] is None or other[1] is None:
        return one[1] is other[1]
    return one[1].constraints == other[1].constraints


def same_problem(one: Lumped, other: Lumped) -> bool:
    """Whether two lumped problems have the same leakage because all their numbers agree."""
    return (
        one.multiplicities == other.multiplicities
        and np.array_equal(one.value_index, other.value_index)
        and same_numbers(one.rows, other.rows)
    )


def prove_lower(
    lumped: Lumped, floor: float, weights: Sequence[float], told: GainForm = LEAKAGE
) -> float:
    """Return a float below I(w), or below a gain; raise if w is not shown to meet the floor."""
    size = len(lumped.multiplicities)
    w = balls.normalized(reading.numbers(weights, "the witness's weights", size))
    check_doubt(w, lumped.multiplicities, floor)
    return _below(lumped, w, told)


def prove_lower_within(
    restricted: Restricted, floor: float, weights: Any, told: GainForm = LEAKAGE
) -> float:
    """Return a float below I(w), or below a gain; raise if w is not shown to be in the class.

    If the channel is known to be in a set, the float is below the value under every channel in it.
    """
    exact = read_weights(weights, len(restricted.lumped.multiplicities))
    w = check_member(restricted, floor, exact)
    if restricted.of_set is not None:
        return _below_all(restricted.mechanism, restricted.of_set, w, told)
    return _below(restricted.lumped, w, told)


def _below(lumped: Lumped, w: Sequence[arb], told: GainForm) -> float:
    joint: Matrix = []
    for a in range(len(lumped.values)):
        image = [arb(0)] * lumped.rows.shape[1]
        for g in np.flatnonzero(lumped.value_index == a).tolist():
            if w[g] == 0:
                continue
            # Rows may have few positive entries among thousands (the nearest float of an exact one
            # may be 0).
            exact = isinstance(lumped.rows, ExactArray)
            places = list(range(len(image))) if exact else np.flatnonzero(lumped.rows[g]).tolist()
            given = lumped.rows[g][places].tolist()
            row = [arb(q) for q in written_law(given) or given]
            # The sum of the row divides the weight: fewer divisions than entries.
            share = w[g] / sum(row, arb(0))
            for y, q in zip(places, row, strict=True):
                image[y] += share * q
        joint.append(image)
    if told.is_leakage:
        return max(balls.round_down(balls.mutual_information(joint)), 0.0)
    return max(balls.round_down(told.checked(len(joint)).value(joint)), told.floor)


def prove_upper(
    lumped: Lumped,
    floor: float,
    entry: Mapping[str, Any],
    limits: Limits | None = None,
    told: GainForm = LEAKAGE,
) -> float:
    """Return a float above the leakage of one lumped problem, by the least bound of its entry.

    With `limits`, only adversaries that meet them count; with `told`, it is about another gain.
    """
    same = all(same_numbers(row, lumped.rows[0]) for row in lumped.rows)
    if same and told.form != "posterior":
        return told.floor  # the output ignores the data, exactly
    k = len(lumped.values)
    bounds = [balls.round_up(told.checked(k).ceiling(k))]
    if not told.is_leakage:
        if "cells" in entry:
            bounds.append(cells_bound(lumped, floor, entry["cells"], limits, told=told))
        return min(bounds)
    if "choices" in entry:
        bounds.append(_choices_bound(lumped, entry["choices"]))
    for kind, bound in (("dataset", dataset_bound), ("cells", cells_bound), ("slabs", slabs_bound)):
        if kind in entry:
            bounds.append(bound(lumped, floor, entry[kind], limits))
    if "sharing" in entry:
        # Valid for all adversaries above the floor, and so for those within limits.
        bounds.append(sharing_bound(lumped, floor, entry["sharing"]))
    return min(bounds)


def _choices_bound(lumped: Lumped, packed: Any) -> float:
    parts = rows_by_value(lumped, [balls.normalized(row) for row in lumped.rows])
    entropies = [[balls.entropy(row) for row in part] for part in parts]
    choices = product(*(range(len(part)) for part in parts))
    many = math.prod(len(part) for part in parts)
    charge("steps", many * len(parts) * lumped.rows.shape[1], f"{many} choices of contexts")
    inputs = unpack(packed, (many, len(parts)))
    worst = arb(0)
    for choice, weights in zip(choices, inputs, strict=True):
        rows = [part[g] for part, g in zip(parts, choice, strict=True)]
        own = [part[g] for part, g in zip(entropies, choice, strict=True)]
        worst = worst.max(capacity_above(rows, own, weights))
    return balls.round_up(worst)
