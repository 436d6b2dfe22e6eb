"""Make the perturbation tables ptable.csv and ptable_keys.csv, and examine one published count.

The noise changes a count by at most D = 2, never below 0, with mean 0 and variance V = 1, and has
the largest entropy, like the tables that the R package ptable makes. On the perturbations v that a
count allows, its distribution is proportional to exp(a v + b v^2), with a and b chosen to give the
mean and the variance. There are 256 cell keys, so the probabilities are rounded to multiples of
1/256: of the nearby distributions with mean 0, the one with the nearest variance, then the nearest
third moment.

A published small count is then examined in four ways: which true counts can be behind a "3", the
pointwise maximal leakage (PML) of each published count, differential privacy, and what an adversary
with little uncertainty about the other people learns about one person.
"""

import csv
import io
import math
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np

from cvxleak import record_leakage, verify
from cvxleak.measures import pml, record_privacy_profile
from cvxleak.model import Mechanism, Prior

FOLDER = Path(__file__).parent
LARGEST, VARIANCE, KEYS = 2, 1, 256
PEOPLE = 6


def maximum_entropy(noise: np.ndarray) -> np.ndarray:
    """The distribution of largest entropy on these perturbations with mean 0 and the variance."""
    features = np.stack([noise, noise**2])
    wanted = np.array([0.0, VARIANCE])
    multipliers = np.zeros(2)
    for _ in range(50):  # Newton's method for the dual, log sum exp minus the multipliers' part
        law = np.exp(multipliers @ features)
        law /= law.sum()
        missed = wanted - features @ law
        curvature = (features * law) @ features.T - np.outer(features @ law, features @ law)
        multipliers += np.linalg.solve(curvature, missed)
    assert abs(missed).max() < 1e-12
    return law


def in_keys(noise: np.ndarray, law: np.ndarray) -> tuple[int, ...]:
    """The distribution in whole numbers of cell keys, with mean 0."""

    def missed(keys: np.ndarray) -> list[float]:
        return [abs(round((keys - KEYS * law) @ noise**power, 6)) for power in (2, 3)]

    near = np.array(list(product(range(-2, 3), repeat=len(law)))) + np.rint(KEYS * law).astype(int)
    fitting = near[(near.sum(axis=1) == KEYS) & (near @ noise == 0)]
    return tuple(map(int, min(fitting, key=missed)))


def table() -> dict[int, dict[int, int]]:
    """For each count with a row of its own, how many keys have each perturbation."""
    rows = {0: {0: KEYS}}
    for count in range(1, LARGEST + 1):
        noise = np.arange(-min(count, LARGEST), LARGEST + 1)
        rows[count] = dict(zip(noise.tolist(), in_keys(noise, maximum_entropy(noise)), strict=True))
    return rows


def as_text(rows: dict[int, dict[int, int]]) -> dict[str, str]:
    """The table in the two forms that offices use, by file name."""
    probabilities: list[list[object]] = [["i", "j", "p", "v", "p_int_lb", "p_int_ub", "type"]]
    keys: list[list[object]] = [["pcv", "ckey", "pvalue"]]
    for count, row in rows.items():
        reached = 0
        for v, share in row.items():
            ends = (reached / KEYS, (reached + share) / KEYS)
            probabilities.append([count, count + v, share / KEYS, v, *ends, "all"])
            if count:
                keys += [[count, key, v] for key in range(reached, reached + share)]
            reached += share
    texts = {}
    for name, lines, mark in (
        ("ptable.csv", probabilities, ";"),
        ("ptable_keys.csv", keys, ","),
    ):
        buffer = io.StringIO()
        csv.writer(buffer, delimiter=mark, lineterminator="\n").writerows(lines)
        texts[name] = buffer.getvalue()
    return texts


def main() -> list[tuple[float, float]]:
    """Print the report; return what was computed beside what it has to be."""
    pairs: list[tuple[float, float]] = []
    rows = table()
    for count, row in rows.items():
        mean, variance = (sum(n * v**power for v, n in row.items()) / KEYS for power in (1, 2))
        print(f"a count of {count}: {row} of {KEYS} keys; mean {mean:g}, variance {variance:g}")
        pairs += [(mean, 0), (variance, VARIANCE if count else 0)]
    for name, text in as_text(rows).items():
        assert (FOLDER / name).read_text(encoding="utf-8") == text, f"{name} is another table"
    mechanism = Mechanism.from_ptable(FOLDER / "ptable.csv", PEOPLE)
    assert mechanism == Mechanism.from_ptable(FOLDER / "ptable_keys.csv", PEOPLE, cycle=1)
    channel = mechanism.channel

    # The prior: each of the six is counted with probability 1/4, independently.
    law = [Fraction(math.comb(PEOPLE, k) * 3 ** (PEOPLE - k), 4**PEOPLE) for k in range(PEOPLE + 1)]
    prior = Prior(law, channel.inputs)
    posterior = channel.posterior(prior).row(3)
    possible = [count for count, p in zip(channel.inputs, posterior, strict=True) if p]
    print(f"\n3 was published: the count is one of {possible}, with probabilities")
    print("  " + "  ".join(f"{p:.4f}" for p in posterior if p))
    # By hand: p(3 | count) in keys, times the probability of the count.
    shares = {count: row.get(3 - count, 0) for count, row in rows.items()}
    shares |= {count: rows[LARGEST].get(3 - count, 0) for count in range(LARGEST, PEOPLE + 1)}
    joint = [Fraction(shares[count], KEYS) * law[count] for count in range(PEOPLE + 1)]
    pairs += [(found, float(p / sum(joint))) for found, p in zip(posterior, joint, strict=True)]

    print("\nPML of each published count, in nats:")
    leakage = dict(zip(channel.outputs, pml(channel, prior), strict=True))
    print("  " + "  ".join(f"{published}: {value:.3f}" for published, value in leakage.items()))
    pairs.append((leakage[3], math.log(Fraction(max(shares.values()), KEYS) / sum(joint))))

    print("\nthe least delta of (epsilon, delta)-differential privacy for one person:")
    for epsilon in (0, 0.5, 1, 2, 4):
        print(f"  epsilon {epsilon}: delta {record_privacy_profile(mechanism, epsilon):.4f}")
    # Whatever epsilon: a count of 1 may be published as 1, 2 or 3, and a count of 0 never is.
    pairs.append((record_privacy_profile(mechanism, 50), 1 - rows[1][-1] / KEYS))

    print("\nleakage about one person, in nats, by least uncertainty about all six:")
    for floor in (0, 2, 3, 3.5, 4):
        bound = record_leakage(mechanism, floor)
        assert verify(bound.certificate).passed
        print(f"  {floor}: {bound.lower:.5f} to {bound.upper:.5f} ({bound.status.name})")
    return pairs


if __name__ == "__main__":
    for name, text in as_text(table()).items():
        (FOLDER / name).write_text(text, encoding="utf-8")
    main()
