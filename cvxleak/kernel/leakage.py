r"""Claims of kind ``record-leakage``: the largest leakage about a record, or a group of records.

The problem is {"mechanism", "entropy_floor": b, "size", "records": list of groups, or null for one
group of each kind} and perhaps "gain" with "form" and "adversaries". The claim is about the largest
J = sum_y s_y G(rho_y) - T G(pi) of all audited groups and all adversaries with H(X) >= b: I(A;Y)
without a gain, otherwise "posterior" (T = 0), "rise" (T = 1) or "factor" (the quotient).

The term of an upper end is {"rule": "max", "groups": one entry for each audited group}: a list of
B-terms, the least of which counts, or the number of an earlier group whose view is the same. That
of a lower end is {"rule": "point", "group", "weights": w}, a witness in whom F(w) >= b and all
limits are proved. Of a real output each end says its cells, too (`cvxleak.kernel.noise`). Over a
set of channels a lower end has "posteriors", phi(a|y), too: for every channel Q

    I(A;Y) >= sum_g w_g sum_y R_gy log(phi(a|y) / pi_a),

because the difference is sum_y s_y D(rho_y || phi_y) >= 0; and for a gain, sum_y s_y G(rho_y) >=
sum_y <r_y, s_y> for r_y below G that touches it at phi_y. Both are linear in the rows, and DUAL is
the least value on their boxes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from flint import arb, fmpq

from cvxleak.kernel.budget import charge, need
from cvxleak.kernel.gains import Gain, Shannon, lowest, read_gain
from cvxleak.kernel.knowledge import Knowledge, read_knowledge
from cvxleak.kernel.many import stacked
from cvxleak.kernel.noise import Output, read_output
from cvxleak.kernel.numbers import added, ball, dot, largest, law, rational, total, upper, xlogx
from cvxleak.kernel.reading import chosen, count, end_term, fractions, items, parts
from cvxleak.kernel.space import Space, label, read_query
from cvxleak.kernel.terms import Leaf, Shape, read_term
from cvxleak.kernel.view import Row, View, read_channel

__all__ = [
    "RecordLeakage",
    "audited_groups",
    "formed",
    "gain_at",
    "gain_of",
    "read_form",
    "read_mechanism",
    "same",
    "trivial",
    "upper_of_groups",
]

FORMS = {"posterior": 0, "rise": 1, "factor": None}


@dataclass(frozen=True)
class RecordLeakage:
    """What a file of this kind is about.

    Attributes
    ----------
    space : Space
        Datasets and query.
    groups : list of tuple of int
        The audited groups, as runs of the space.
    views : list of View
        A view of each.
    rows : mapping
        The channel's row for each place of the query's value.
    output : Output or None
        The output, if it is not from a finite set. Each end says what cells it is cut into, and
        rows have no entries before that.
    """

    space: Space
    groups: Sequence[tuple[int, ...]]
    views: Sequence[View]
    rows: Mapping[Any, Row]
    output: Output | None = None

    @classmethod
    def read(cls, problem: Any) -> RecordLeakage:
        """Return the statement of a file."""
        known = {"mechanism", "entropy_floor", "size", "records"}
        parts(problem, known, "the problem", {"gain", "form", "adversaries"})
        mechanism, output = problem["mechanism"], None
        if isinstance(mechanism, Mapping) and "noise" in mechanism:
            parts(mechanism, {"query", "noise"}, "the mechanism")
            space = read_query(mechanism["query"])
            output = read_output(mechanism["noise"], space)
            rows = output.blank
        else:
            space, rows = read_mechanism(mechanism)
        told = "adversaries" in problem
        known = read_knowledge(problem["adversaries"], space) if told else Knowledge(space)
        floor = rational(problem["entropy_floor"])
        groups = audited_groups(known.space, problem)
        times = read_form(problem)
        need(output is None or "gain" not in problem, "a gain of an output that is not finite")
        views = []
        for group in groups:
            view = known.view(group, rows, floor)
            gain = read_gain(problem["gain"], view.k) if "gain" in problem else Shannon()
            views.append(replace(view, gain=gain, times=times))
        return cls(known.space, groups, views, rows, output)

    def upper(self, data: Any, leaf: Leaf | None = None) -> arb:
        """Return the bound that a term of the file proves."""
        cut = frozenset() if self.output is None else self.output.upper
        end_term(data, "max", {"groups"} | cut, "an upper end")
        return upper_of_groups(self.priced(data), items(data["groups"], "groups"), leaf or Leaf())

    def priced(self, data: Mapping[str, Any]) -> Sequence[View]:
        """Return the views that the terms of an upper end are about."""
        if self.output is None:
            return self.views
        cells = self.output.cells(data)
        return [cells.priced(view) for view in self.views]

    def lower(self, data: Any) -> arb:
        """Return the value that a witness of the file attains."""
        cut = frozenset() if self.output is None else self.output.lower
        end_term(data, "point", {"group", "weights"} | cut, "a lower end", {"posteriors"})
        view = self.views[count(data["group"], "group", below=len(self.views))]
        if self.output is not None:
            view = self.output.cells(data).of(view)
        return gain_at(view, self.rows, data)


def gain_at(view: View, rows: Mapping[Any, Row], data: Mapping[str, Any]) -> arb:
    """Return what J is at least at a witness: its "weights", over a set with "posteriors"."""
    w = law(fractions(data["weights"], "weights", len(view.rows)), "the witness")
    check_adversary(view, w)
    if view.exact:
        need("posteriors" not in data, "posteriors are of use over a set of channels only")
        return gain_of(view, [ball(x) for x in w])
    need("posteriors" in data, "over a set of channels, posteriors are needed")
    table = items(data["posteriors"], "posteriors", view.k)
    phi = [fractions(row, "posteriors", view.n) for row in table]
    return gain_below(view, w, phi, rows)


def upper_of_groups(views: Sequence[View], groups: Sequence[Any], leaf: Leaf) -> arb:
    """Return the largest bound of the groups; each has terms, or is the same as another one."""
    need(len(groups) == len(views), "an entry for each audited group is needed")
    found: list[arb] = []
    for place, (view, entry) in enumerate(zip(views, groups, strict=True)):
        if isinstance(entry, int):
            other = count(entry, "a group", below=place)
            need(same(view, views[other]), f"group {place} is not the same as group {other}")
            continue
        need(items(entry, "a group"), "a group without a term")
        charge("ball operations", len(entry) * len(view.rows) * view.n)
        shape = Shape(view)
        bounds = [read_term(term, "B", shape).conclude(view, leaf) for term in entry]
        # Not the least ball, which may be wider than the bound that is sharper at its upper end.
        found.append(min(bounds, key=upper).max(trivial(view.gain, view.times, view.k)))
    return largest(found)


def trivial(gain: Gain, times: Any, k: int) -> arb:
    """Return what J of every adversary is at least: see `formed`; sum_y s_y G(rho_y) >= G(pi).

    Where what is known leaves no adversary, rules may prove anything; no upper end is below this.
    """
    if times == 0:
        return arb(lowest(gain, k))
    return arb(1) if times is None else arb(0)


def same(one: View, other: View) -> bool:
    """Whether two views of one file are equal: then so is what is proved of them."""
    facts = []
    for v in (one, other):
        # Labels say what limits with a share of F are about.
        limits = [(limit.bound, limit.share or list(limit.c)) for limit in v.limits]
        keys = [row.key for row in v.rows]
        facts.append((keys, v.counts, v.of, v.labels, limits, type(v.gain)))
    written = all(row.key is not None for row in one.rows)
    return written and facts[0] == facts[1]


def check_adversary(view: View, w: Sequence[fmpq]) -> None:
    """Refuse a distribution that is not shown to be one of the view's adversaries."""
    weights = [ball(x) for x in w]
    doubt = -total(map(xlogx, weights)) + dot(weights, view.logs)
    need(doubt >= view.floor, "the witness's entropy is not proved to reach the floor")
    for limit in view.limits:
        if limit.share == 0:
            meets = added([x * c for x, c in zip(w, limit.c, strict=True)]) <= limit.bound
        else:
            meets = dot(weights, limit.c) <= limit.bound + limit.share * doubt
        if not meets and limit.center is not None:
            meets = limit.bound >= 0 and limit.center(view.counts) == list(w)
        need(meets, "the witness violates a limit")


def gain_of(view: View, w: Sequence[arb]) -> arb:
    """Return J of a distribution on the groups."""
    joint = [
        [total(w[g] * view.rows[g].lo[y] for g in own) for y in range(view.n)] for own in view.of
    ]
    seen = total(view.gain.value(column) for column in zip(*joint, strict=True))
    prior = [total(w[g] for g in own) for own in view.of]
    return formed(view.gain, view.times, seen, prior)


def gain_below(
    view: View, w: Sequence[fmpq], phi: Sequence[Sequence[fmpq]], rows: Mapping[Any, Row]
) -> arb:
    """Return what J is at least, for every channel of the set.

    A group's contexts may lead to different rows, each of which may be anywhere in its box.
    """
    prior = [total(ball(w[g]) for g in own) for own in view.of]
    slopes = _slopes_below(view.gain, phi)
    costs: dict[Any, list[arb]] = {}
    for a, own in enumerate(view.of):
        for g in own:
            for place, n in view.within[g].items():
                share = ball(w[g] * n / view.counts[g])
                at = costs.setdefault(place, [arb(0)] * view.n)
                costs[place] = [x + share * s for x, s in zip(at, slopes[a], strict=True)]
    seen = total(-rows[place].over(-stacked(at)) for place, at in costs.items())
    return formed(view.gain, view.times, seen, prior)


def _slopes_below(gain: Gain, phi: Sequence[Sequence[fmpq]]) -> list[list[arb]]:
    """Return r_a(y), where <r(y), s> <= G(s) for every measure s on the values."""
    n = range(len(phi[0]))
    columns = [law([row[y] for row in phi], "posteriors") for y in n]
    if gain.linear:
        best = [max(gain.linear, key=lambda r, c=column: dot(r, c)) for column in columns]
        found = [[ball(x) for x in r] for r in best]
    else:
        found = gain.tangents([[ball(x) for x in column] for column in columns])
    return [list(row) for row in zip(*found, strict=True)]


def formed(gain: Gain, times: Any, seen: arb, prior: Sequence[Any]) -> arb:
    """Return J with this T, or the quotient if it is None, from sum_y s_y G(rho_y).

    G is convex and the mean of the posteriors is the prior: a rise is at least 0, a factor 1.
    """
    whole = gain.value([ball(x) for x in prior])
    if times is None:
        need(whole > 0, "a factor of a gain that may be 0 or less")
        found, known = seen / whole, arb(1)
    elif times == 0:
        return seen
    else:
        found, known = seen - times * whole, arb(0)
    return found if found > known else known


# Statements --------------------------------------------------------------------------------------


def read_form(problem: Mapping[str, Any]) -> Any:
    """Return T of a problem's form, or None of a factor; 1 if no gain is named."""
    if not {"gain", "form"} & set(problem):
        return 1
    need({"gain", "form"} <= set(problem), "a gain and its form come together")
    return FORMS[chosen(problem, "the problem", FORMS, "form")]


def read_mechanism(data: Any) -> tuple[Space, Mapping[Any, Row]]:
    """Return the query and the channel's rows, by the place of the query's value."""
    keys = set(data) - {"query"} if isinstance(data, Mapping) else set()
    need(len(keys) == 1 and keys <= {"channel", "channel_set"}, "a mechanism: a query, a channel")
    (key,) = keys
    parts(data, {"query", key}, "the mechanism")
    of_set = isinstance(data[key], Mapping) and "lower" in data[key]
    need(of_set == (key == "channel_set"), "a set of channels is a channel_set, and nothing else")
    space = read_query(data["query"])
    rows, inputs = read_channel(data[key], len(space.labels), {"inputs", "outputs"}), space.labels
    if "inputs" in data[key]:
        inputs = tuple(map(label, items(data[key]["inputs"], "inputs", len(rows))))
        need(set(inputs) == set(space.labels), "inputs that are not the values of the query")
    of_input = dict(zip(inputs, rows, strict=True))
    return space, {i: of_input[name] for i, name in enumerate(space.labels)}


def audited_groups(space: Space, problem: Mapping[str, Any]) -> list[tuple[int, ...]]:
    """Return the audited groups, as runs of the space, in the order in which A lists its records.

    That is the order of the file, or that of the records. It matters for actions of one's own.
    """
    size, records = count(problem["size"], "size", 1), problem["records"]
    if records is None:
        gain = problem.get("gain")
        return space.groups(size, ordered=isinstance(gain, Mapping) and "table" in gain)
    found = []
    for group in items(records, "records"):
        own = [count(i, "a record", below=space.records) for i in items(group, "a group", size)]
        need(len(set(own)) == size, "a record twice in a group")
        found.append(tuple(map(space.run_of, own)))
    need(found, "no group is audited")
    return sorted(set(found))
