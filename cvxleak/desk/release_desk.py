"""`ReleaseDesk`: answers the requests of several parties, one after another, within budgets."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from cvxleak.core.errors import CvxleakError, ValidationError
from cvxleak.core.validation import plain_label, short
from cvxleak.desk.answers import DeskReport, DeskVerification, Exposure, Release
from cvxleak.desk.budgets import Budgets, Limits, party_name
from cvxleak.desk.choosing import choose_kernel, within
from cvxleak.desk.history import History, Observer
from cvxleak.desk.kernels import copied, draw, expected_cost, mean_cost
from cvxleak.desk.ledger import Ledger
from cvxleak.desk.realized import RealizedHistory
from cvxleak.desk.record import Record, identical
from cvxleak.desk.solving import TOLERANCE, solve_kernel
from cvxleak.model import Channel, Distortion, Prior, as_channel
from cvxleak.model.prior import named_law

__all__ = ["ReleaseDesk"]

Mode = Literal["ex_ante", "realized"]
MODES = ("ex_ante", "realized")
LISTED_PARTIES = 4
"""Most parties for which a report lists every coalition."""
SECONDS = 60.0
"""Most seconds that a verification spends on solving the problem of one release again."""


class ReleaseDesk:
    """A desk that releases data to several parties that may collude (SEQUENTIAL, section VI).

    For each request R_k of a party the desk solves SEQUENTIAL's problem (1), with all earlier
    outputs as Z: it minimizes E d(R, Rhat) over kernels p(rhat | z, x) for which the party's
    outputs, including the new one, reveal at most `epsilon` about X, and the outputs of all parties
    together at most `delta`. It then draws the output, records it, and returns it.

    Parameters
    ----------
    path : path-like
        A ledger that `create` made.

    Raises
    ------
    ValidationError
        No ledger is there.

    Notes
    -----
    *Modes.* They differ in the joint distribution that the budgets are about.

    - ``"ex_ante"``: p(x) prod_k p(rhat_k | s_k, x), over all histories that were possible. Here s_k
      is the class of the history and, for a party that asks again, its own earlier outputs. Under
      this distribution I(V; X) <= budget for the outputs V of each observer, before anything is
      drawn, provided that the requests do not depend on what was released.
    - ``"realized"``: the kernel is made for the realized history only, from p(x | z). Requests may
      depend on it. For each party that gets an output, the budget limits the sum of
      I(Rhat; X | Z = z) over *all* releases so far, because the output may depend on all of them.
      So a party is served while that sum is below its epsilon. Nothing is claimed ex ante.

    *The data.* x is an argument of `request` and is not kept: neither the ledger nor an error
    message contains it. The kernel is computed before x is used.

    *Crashes.* A release is one transaction. It is on the disk, and has been read back through a
    second connection, before the output is returned. If the program dies before that, there was no
    release. Requests of several processes wait for each other.

    *Kernels* have probabilities that are multiples of 2^-20. Leakages are computed from them in
    exact and in ball arithmetic, so the budgets are met without any rounding error.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from cvxleak.desk import ReleaseDesk
    >>> place = pathlib.Path(tempfile.mkdtemp()) / "ledger.db"
    >>> desk = ReleaseDesk.create(place, {"no": 0.7, "yes": 0.3}, epsilon=0.1, delta=0.2)
    >>> first = desk.request("Ann", x="no")
    >>> again = desk.request("Bob", x="no")  # the same budget: the same answer
    >>> again.output == first.output, again.copy_of
    (True, 1)
    >>> desk.report().exposures[-1].leakage <= 0.1
    True
    >>> desk.verify().passed
    True
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._ledger = Ledger(path)
        heading = self._ledger.heading
        try:
            self._mode: Mode = heading["mode"]
            if self._mode not in MODES:
                raise ValueError(f"mode {self._mode!r:.20}")
            self._prior = Prior.from_dict(heading["prior"])
            self._budgets = Budgets.from_dict(heading["budgets"])
            if not identical(_heading(self._mode, self._prior, self._budgets), heading):
                raise ValueError("the heading is not in its canonical form")
        except (KeyError, TypeError, ValueError) as error:
            raise ValidationError(f"path: {self._ledger.path} holds a damaged heading") from error

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        prior: Prior | Mapping[Any, float] | ArrayLike,
        *,
        epsilon: float | Mapping[str, float],
        delta: float,
        coalitions: Mapping[tuple[str, ...], float] | None = None,
        mode: Mode = "ex_ante",
    ) -> ReleaseDesk:
        """Create a ledger.

        Parameters
        ----------
        path : path-like
            Path of the new ledger, which must not exist.
        prior : Prior, mapping or array_like, shape (|X|,)
            p(x), the model of the data: an outsider's prior.
        epsilon : float or mapping of str to float
            Most that one party may learn, in nats; with a mapping, only the parties named in it
            are served.
        delta : float
            Most that all parties together may learn, in nats.
        coalitions : mapping of tuples of str to float, optional
            Most that some parties may learn together.
        mode : {"ex_ante", "realized"}
            The joint distribution that the budgets are about; see the class.

        Raises
        ------
        ValidationError
            A bad argument, or `path` exists already.
        """
        if mode not in MODES:
            raise ValidationError(f"mode: found {short(mode)}; it must be one of {MODES}")
        Ledger.create(path, _heading(mode, _model(prior), Budgets(epsilon, delta, coalitions)))
        return cls(path)

    @property
    def prior(self) -> Prior:
        """The model p(x)."""
        return self._prior

    @property
    def mode(self) -> Mode:
        """The joint distribution that the budgets are about."""
        return self._mode

    def request(
        self,
        party: str,
        request: Channel | Mapping[Any, Hashable] | ArrayLike | None = None,
        epsilon: float | None = None,
        delta: float | None = None,
        *,
        x: Hashable,
        distortion: Distortion | ArrayLike | None = None,
        time_limit: float | None = None,
    ) -> Release:
        """Answer a request, and record the answer before it is returned.

        Parameters
        ----------
        party : str
            The party that asks.
        request : Channel, mapping or array_like, shape (|X|, |R|), optional
            p(r | x), what the party wants to know; a mapping gives one r for each x. The data
            itself if left out. The released values are the labels of R.
        epsilon, delta : float, optional
            Budgets of this request in nats, at most the ledger's, which are used if left out.
            `delta` must not be smaller than in an earlier request.
        x : hashable
            The true data, a label of the model. It is used to draw the output and never stored.
        distortion : Distortion or array_like, shape (|R|, |R|), optional
            d(r, rhat); the Hamming distortion if left out.
        time_limit : float, optional
            Seconds for the search; the best kernel found until then is used.

        Raises
        ------
        ValidationError
            A bad argument.
        InfeasibleError
            The budgets are more than the ledger allows, or less than what was revealed already; the
            message gives the budgets that are possible. The ledger is unchanged.
        """
        name = party_name(party, "party")
        try:
            place = self._prior.labels.index(x)
        except ValueError:
            # Without the value, because messages are written to logs.
            raise ValidationError("x: not one of the model's values") from None
        channel = self._request(request)
        cost = self._distortion(distortion, channel)
        with self._ledger.release() as writer:
            earlier = self._records(writer.releases)
            limits = self._limits(name, epsilon, delta, earlier)
            followed = [who for who in limits if who is not None]
            returns = any(record.party == name for record in earlier)
            history = self._history(earlier, followed, name if returns else None)
            past = [record.request.outputs for record in earlier]
            choice = choose_kernel(history, name, channel, cost, limits, past, time_limit)
            looker = name if name in history.lookers else None
            masses = history.seen(looker)
            row = list(masses).index(history.realized(looker))
            if masses[history.realized(looker)][place] == 0:
                raise ValidationError(
                    "x: its probability is zero under the model, given the earlier releases"
                )
            record = Record(
                number=len(earlier) + 1,
                party=name,
                request=channel,
                distortion=cost,
                epsilon=limits[frozenset([name])],
                delta=limits[None],
                kernel=choice.kernel,
                looks=looker is not None,
                expected_distortion=choice.distortion,
                copy_of=choice.copy_of,
                output=draw(choice.kernel[row, place].tolist()),
            )
            writer.record(record.to_dict())
        return record.release

    @property
    def head(self) -> str:
        """A hash of the whole ledger; a copy kept elsewhere shows later if anything is missing."""
        return self._ledger.head

    def releases(self) -> list[Release]:
        """Return the releases so far, first to last."""
        return [record.release for record in self._records(self._ledger.releases())]

    def report(self) -> DeskReport:
        """Return what each party and each coalition may have learned so far.

        With more than four parties, only the coalitions that have a budget, and all together.
        """
        records = self._records(self._ledger.releases())
        parties = sorted({record.party for record in records})
        groups: list[tuple[str, ...]] = [(party,) for party in parties]
        if len(parties) <= LISTED_PARTIES:
            sizes = range(2, len(parties))
            groups += [group for size in sizes for group in combinations(parties, size)]
        groups += [
            group for group in sorted(tuple(sorted(who)) for who in self._budgets.coalitions)
            if group not in groups
        ]  # fmt: skip
        history = self._history(records)
        exposures = []
        for group in groups:
            who = frozenset(group)
            leakage = self._history(records, [who]).leakage(who)[1]
            exposures.append(Exposure(group, leakage, self._budgets.of(who)))
        everybody = history.leakage()[1]
        exposures.append(Exposure((), everybody, self._budgets.delta))
        return DeskReport(self._mode, len(records), history.classes, tuple(exposures))

    def verify(self, head: str | None = None) -> DeskVerification:
        """Recompute every release's leakage and distortion, and check that its budgets were met.

        The problem of every release is solved again, for at most a minute each. The least
        distortion that was recorded must not be above what is attained now.

        Parameters
        ----------
        head : str, optional
            The value of `head` at an earlier time. Then it is also checked that everything that the
            ledger held at that time is still there.
        """
        errors = []
        try:
            records = self._records(self._ledger.releases())
            if head is not None and head not in self._ledger.heads():
                errors.append("what the ledger held at the given head is not there any more")
        except CvxleakError as error:
            return DeskVerification((error.detail,))
        for record in records:
            try:
                found = self._errors_of(record, records[: record.number - 1])
            except CvxleakError as error:
                found = [error.detail]
            errors += [f"release {record.number}: {what}" for what in found]
        return DeskVerification(tuple(errors))

    def _errors_of(self, record: Record, earlier: Sequence[Record]) -> list[str]:
        """Return what is wrong with a release."""
        returns = any(before.party == record.party for before in earlier)
        if record.looks != (returns and self._mode == "ex_ante"):
            return [
                "its kernel must depend on the party's earlier outputs exactly if there are some"
            ]
        limits = self._limits(record.party, record.epsilon, record.delta, earlier)
        if limits[frozenset([record.party])] != record.epsilon:
            return [f"the recorded epsilon {record.epsilon!r} is above the budget of a coalition"]
        followed = [who for who in limits if who is not None]
        looker = record.party if record.looks else None
        history = self._history(earlier, followed, looker)
        masses = history.seen(looker)
        costs = mean_cost(record.request.matrix, record.distortion.matrix)
        after = self._history([*earlier, record], followed)
        errors = [f"the budget of {who} is exceeded" for who in within(after, limits)]
        lower, upper = record.expected_distortion
        expected = expected_cost(list(masses.values()), record.kernel, costs)
        if not lower <= upper == expected:
            errors.append("the expected distortion differs from the recorded one")
        _, least = solve_kernel(history, looker, record.request, record.distortion, limits, SECONDS)
        if lower > least.upper + TOLERANCE * float(np.ptp(record.distortion.matrix)):
            errors.append("the least expected distortion is below the recorded one")
        if record.copy_of is not None:
            chosen = [history.output_of(record.copy_of - 1, seen, looker) for seen in masses]
            same = earlier[record.copy_of - 1].request.outputs == record.request.outputs
            copy = copied([r or 0 for r in chosen], record.kernel.shape)
            if not same or None in chosen or (record.kernel != copy).any():
                errors.append(f"it is not a copy of release {record.copy_of}")
        return errors

    def _records(self, contents: Iterable[dict[str, Any]]) -> list[Record]:
        """Read what the ledger holds."""
        records = [Record.from_dict(n, content) for n, content in enumerate(contents, start=1)]
        for record in records:
            if record.request.inputs != self._prior.labels:
                raise ValidationError(
                    f"path: release {record.number} has other data values than the model"
                )
        return records

    def _limits(
        self,
        party: str,
        epsilon: float | None,
        delta: float | None,
        earlier: Sequence[Record],
    ) -> Limits:
        before = max((record.delta for record in earlier), default=0.0)
        return self._budgets.of_request(party, epsilon, delta, before)

    def _history(
        self,
        records: Sequence[Record],
        observers: Iterable[Observer] = (),
        asker: str | None = None,
    ) -> History | RealizedHistory:
        law = self._prior.probabilities.tolist()
        entries = (record.entry for record in records)
        if self._mode == "realized":
            return RealizedHistory(law, entries)
        return History(law, entries, observers, asker)

    def _request(self, request: Any) -> Channel:
        labels = self._prior.labels
        if request is None:
            return Channel(np.eye(len(labels)), labels, labels)
        if isinstance(request, Mapping):
            missing = [label for label in labels if label not in request]
            if missing or len(request) != len(labels):
                raise ValidationError(
                    f"request: a mapping needs one value for each of {short(labels)}"
                )
            chosen = [plain_label(request[label], "request") for label in labels]
            values = list(dict.fromkeys(chosen))
            matrix = [[float(wanted == value) for value in values] for wanted in chosen]
            return Channel(matrix, labels, values)
        given = as_channel(request, "request")
        if not isinstance(request, Channel) and len(given.inputs) == len(labels):
            return Channel(given.matrix, labels, given.outputs)
        return given.select(labels, None, "request")

    def _distortion(self, distortion: Any, channel: Channel) -> Distortion:
        values = channel.outputs
        if distortion is None:
            return Distortion.hamming(values)
        if isinstance(distortion, Distortion):
            return distortion.select(values, values, "distortion")
        return Distortion(distortion, values, values)


def _heading(mode: Mode, prior: Prior, budgets: Budgets) -> dict[str, Any]:
    return {"mode": mode, "prior": prior.to_dict(), "budgets": budgets.to_dict()}


def _model(prior: Any) -> Prior:
    known = named_law(prior)
    return known if isinstance(known, Prior) else Prior(known)
