"""Audits of samples against the truth: how often they hold, how wide they are, whom they catch.

``python -m benchmarks samples`` prints the tables; ``python -m benchmarks.samples`` writes them
into docs/theory/samples.md, from 10,000 audits (some ten minutes).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from benchmarks._pages import replace_section, table
from cvxleak import Channel, capacity
from cvxleak.measures import privacy_profile
from cvxleak.mechanisms import binary_symmetric, randomized_response, truncated_geometric
from cvxleak.samples import SampleAudit, Samples, audit_samples

LIMIT = 60.0
PAGE = "theory/samples.md"
CONFIDENCE = 0.95
DELTAS = (0.0, 0.01)
DRAWS = (30, 100, 300, 1000)
"""Draws of each secret, in turn."""

Array = NDArray[np.float64]
Rng = np.random.Generator


@dataclass(frozen=True)
class Discrete:
    """A channel of which all is known."""

    channel: Channel

    @property
    def truth(self) -> float:
        return capacity(self.channel).lower

    def draw(self, draws: int, rng: Rng) -> Samples:
        outputs = np.array(self.channel.outputs, dtype=object)
        drawn = [rng.choice(outputs, draws, p=row / row.sum()) for row in self.channel.matrix]
        return Samples(np.repeat(self.channel.inputs, draws), np.concatenate(drawn))

    def holds(self, audit: SampleAudit, truth: float) -> bool:
        private = all(
            privacy_profile(self.channel, max(found.epsilon - 1e-9, 0.0)) > delta
            for delta in DELTAS
            if (found := audit.violation(delta)).epsilon > 0
        )
        sorted_into = np.zeros((len(self.channel.inputs), len(audit.columns.labels)))
        for y, output in enumerate(self.channel.outputs):
            sorted_into[:, audit.columns.place(output)] += self.channel.matrix[:, y]
        told = capacity(sorted_into).lower if audit.binned else truth
        return private and audit.lower <= truth and told <= audit.upper


@dataclass(frozen=True)
class Continuous:
    """Distributions of a number, and how likely each secret is to give the text "late" instead."""

    laws: tuple[stats.rv_continuous, ...]
    late: tuple[float, ...]
    epsilon: float = math.inf

    def matrix(self, edges: Array) -> Array:
        """Probabilities of the intervals, and of "late"."""
        rows = [
            np.append((1 - late) * np.diff(law.cdf([-np.inf, *edges, np.inf])), late)
            for law, late in zip(self.laws, self.late, strict=True)
        ]
        return np.array(rows)

    @property
    def truth(self) -> float:
        ends = [law.ppf([1e-7, 1 - 1e-7]) for law in self.laws]
        return capacity(self.matrix(np.linspace(np.min(ends), np.max(ends), 4000))).lower

    def draw(self, draws: int, rng: Rng) -> Samples:
        secrets = range(len(self.laws))
        outputs: list[object] = []
        for law, late in zip(self.laws, self.late, strict=True):
            numbers = law.rvs(draws, random_state=rng).tolist()
            outputs += [
                "late" if lost else number
                for number, lost in zip(numbers, rng.random(draws) < late, strict=True)
            ]
        return Samples(np.repeat(secrets, draws), outputs)

    def holds(self, audit: SampleAudit, truth: float) -> bool:
        if audit.violation().epsilon > self.epsilon:
            return False
        # What is below the truth by what a fine grid loses is not wrong.
        if not audit.lower <= truth + 1e-4:
            return False
        binned = (
            capacity(self.matrix(np.array(audit.columns.edges))).lower if audit.binned else truth
        )
        return binned <= audit.upper


def rare(probability: float) -> Channel:
    """Two secrets that are given away by outputs that hardly ever come."""
    usual = 1 - probability
    rows = [[usual, probability, 0.0], [usual, 0.0, probability]]
    return Channel(rows, outputs=["usual", "a", "b"])


def many(outputs: int) -> Channel:
    """Two secrets with different halves of many outputs, most of the time."""
    half = outputs // 2
    row = np.repeat([1.5 / outputs, 0.5 / outputs], half)
    return Channel(np.array([row, row[::-1]]), outputs=[f"output {y}" for y in range(outputs)])


def cases() -> dict[str, Discrete | Continuous]:
    rng = np.random.default_rng(0)
    discrete = {
        "binary symmetric, 0.05": binary_symmetric(0.05),
        "binary symmetric, 0.25": binary_symmetric(0.25),
        "binary symmetric, 0.5": binary_symmetric(0.5),
        "no noise": Channel(np.eye(2)),
        "Z channel": Channel([[1.0, 0.0], [0.3, 0.7]]),
        "erasure": Channel([[0.6, 0.4, 0.0], [0.0, 0.4, 0.6]]),
        "one output": Channel([[1.0], [1.0]]),
        "randomized response, 4 values": randomized_response(4, 1.0),
        "geometric noise, counts to 3": truncated_geometric(3, 1.0),
        "random, 3 x 5": Channel(rng.dirichlet(np.ones(5), 3)),
        "random, 5 x 3": Channel(rng.dirichlet(np.ones(3), 5)),
        "random, 10 x 2": Channel(rng.dirichlet(np.ones(2), 10)),
        "sparse, 4 x 8": Channel(rng.dirichlet(np.full(8, 0.2), 4)),
        "rows alike": Channel([[0.5, 0.3, 0.2], [0.51, 0.29, 0.2]]),
        "rare outputs give it away": rare(0.01),
        "200 outputs": many(200),
    }
    never = (0.0, 0.0)
    laplace = (stats.laplace(0, 1), stats.laplace(1, 1))
    normal = (stats.norm(0, 1), stats.norm(1, 1), stats.norm(2, 1))
    return {name: Discrete(channel) for name, channel in discrete.items()} | {
        "Laplace noise, 2 secrets": Continuous(laplace, never, 1.0),
        "Gaussian noise, 3 secrets": Continuous(normal, (0.0,) * 3),
        "answer times": Continuous((stats.gamma(2), stats.gamma(2, 0.5)), never),
        "answer times, some late": Continuous((stats.gamma(2), stats.gamma(2.5)), (0.0, 0.05)),
    }


def coverage(audits: int, confidence: float = CONFIDENCE) -> str:
    """Count how often everything that an audit says is so; `audits` of each channel."""
    rows, total = [], 0
    for number, (name, case) in enumerate(cases().items()):
        truth, rng, held, open_by = case.truth, np.random.default_rng(number), 0, []
        for audit in range(audits):
            samples = case.draw(DRAWS[audit % len(DRAWS)], rng)
            found = audit_samples(samples, confidence=confidence, rng=rng)
            held += case.holds(found, truth)
            if audit % len(DRAWS) == len(DRAWS) - 1:
                open_by.append(found.upper - found.lower)
        total += held
        width = f"{np.mean(open_by):.3f}" if open_by else "-"
        rows.append([name, f"{truth:.4f}", f"{held} of {audits}", width])
    rows.append(["all", "", f"{total} of {audits * len(rows)}", ""])
    return table(["channel", "capacity", "held", f"width at {DRAWS[-1]} draws"], rows)


def widths(most: int) -> str:
    """Both ends, for more and more draws of each secret."""
    chosen = cases()
    names = [
        "binary symmetric, 0.25",
        "randomized response, 4 values",
        "random, 3 x 5",
        "Laplace noise, 2 secrets",
        "answer times, some late",
    ]
    counts = [10**k for k in range(3, most + 1)]
    rows = []
    for name in names:
        case, rng = chosen[name], np.random.default_rng(1)
        ends = []
        for draws in counts:
            found = audit_samples(case.draw(draws, rng))
            ends.append(f"{found.lower:.4f} to {found.upper:.4f}")
        rows.append([name, f"{case.truth:.4f}", *ends])
    return table(["channel", "capacity", *(f"{draws:,} draws" for draws in counts)], rows)


def laplace(spent: float, draws: int, rng: Rng) -> Samples:
    """A count of 0 or 1 with Laplace noise."""
    secrets = np.repeat([0, 1], draws)
    return Samples(secrets, secrets + rng.laplace(scale=1 / spent, size=2 * draws))


def noisy_max(spent: float, draws: int, rng: Rng) -> Samples:
    """Which of five counts is largest with Laplace noise; all differ by one between neighbors."""
    scores = np.array([[0, 1, 1, 1, 1], [1, 0, 0, 0, 0]])
    noise = rng.laplace(scale=2 / spent, size=(2, draws, 5))
    return Samples(
        np.repeat([0, 1], draws), (scores[:, None] + noise).argmax(axis=2).ravel().tolist()
    )


def caught(draws: int, trials: int) -> str:
    """Samplers that spend more than they claim, which is epsilon = 0.5."""
    claimed, rows = 0.5, []
    samplers: dict[str, Callable[[float, int, Rng], Samples]] = {
        "Laplace noise": laplace,
        "noisy max": noisy_max,
    }
    for name, sampler in samplers.items():
        for factor in (1, 2, 4):
            rng = np.random.default_rng(factor)
            found = [
                audit_samples(sampler(factor * claimed, draws // 2, rng), rng=rng)
                .violation()
                .epsilon
                for _ in range(trials)
            ]
            above = sum(epsilon > claimed for epsilon in found)
            shown = f"{min(found):.3f} to {max(found):.3f}"
            rows.append([name, f"{factor * claimed:g}", shown, f"{above} of {trials}"])
    return table(["sampler", "spends", "shown to spend at least", "caught claiming 0.5"], rows)


def main(limit: float = LIMIT) -> None:
    print(coverage(20))
    print(widths(5))
    print(caught(100_000, 5))


def write() -> None:
    replace_section(PAGE, "widths", widths(6))
    replace_section(PAGE, "caught", caught(100_000, 20))
    replace_section(PAGE, "coverage", coverage(500))


if __name__ == "__main__":
    write()
