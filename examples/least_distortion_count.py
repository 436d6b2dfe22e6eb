"""Publish the count of a small area with least error: an optimal channel beside two usual ones.

An office publishes how many of the six people in a block have a certain disease. It assumes that
each has it with probability 1/2, and the cost of an error is its absolute value. An adversary may
know a lot about the block, even who lives together and who is ill; the only assumption is that at
least five bits of uncertainty about the six answers remain. How much can the adversary learn about
one person?

Statistical offices round at random to a multiple of three, without bias. The proved upper bound on
the leakage of rounding is the budget of the other mechanisms. For the truncated geometric
mechanism, `calibrate` finds the smallest noise that is proved to meet the budget; `min_distortion`
finds the channel of least distortion within it, and its lower bound proves that no other channel
does better.
"""

import math

import numpy as np

from cvxleak import verify
from cvxleak.audit import RecordLeakage
from cvxleak.design import calibrate, min_distortion
from cvxleak.mechanisms import random_rounding, truncated_geometric
from cvxleak.model import Distortion, Mechanism
from cvxleak.queries import count

PEOPLE = 6
DOUBT = 5 * math.log(2)
COUNT = count(PEOPLE)
LAW = np.array([math.comb(PEOPLE, k) for k in range(PEOPLE + 1)]) / 2**PEOPLE


def mean_error(mechanism: Mechanism) -> float:
    """E |f(X) - Y| of a mechanism with numbers as outputs."""
    errors = np.abs(np.subtract.outer(range(PEOPLE + 1), mechanism.channel.outputs))
    return float(LAW @ (mechanism.channel.matrix * errors).sum(axis=1))


def geometric(epsilon: float) -> Mechanism:
    return Mechanism(COUNT, truncated_geometric(PEOPLE, epsilon))


def main() -> list[tuple[float, float]]:
    """Print the comparison; return what was computed beside what it has to be."""
    rounding = Mechanism(COUNT, random_rounding(PEOPLE, 3))
    audit = RecordLeakage(rounding, DOUBT).solve(tol=1e-3)
    noisy = calibrate(
        geometric,
        (3.0, 0.2),
        leakage=audit.upper,
        entropy_floor=DOUBT,
        resolution=0.02,
        tol=1e-2,
    )
    best = min_distortion(
        COUNT,
        distortion=Distortion.absolute(range(PEOPLE + 1)),
        budget=audit.upper,
        entropy_floor=DOUBT,
        tol=0.02,
        time_limit=150,
    )
    rows = [
        ("random rounding, base 3", audit.upper, mean_error(rounding)),
        (
            f"geometric, epsilon {noisy.parameter:.2f}",
            noisy.bound.upper,
            mean_error(noisy.mechanism),
        ),
        ("least distortion", best.witness.leakage, best.upper),
    ]
    print(f"{'':28}{'nats at most':>14}{'mean error':>12}")
    for name, leakage, error in rows:
        print(f"{name:28}{leakage:14.4f}{error:12.4f}")
    print(f"{'no channel has less than':42}{best.lower:12.4f}")
    print("\nthe best channel (true count, then the distribution of the published one):")
    for k, law in enumerate(best.witness.channel.matrix):
        print(f"  {k}  " + "".join(f"{q:8.3f}" for q in law))
    # Anybody can check the proofs: none of these leaks more than rounding does.
    certificates = [audit.certificate, noisy.bound.certificate, best.certificate]
    assert all(verify(certificate).passed for certificate in certificates)
    assert all(leakage <= audit.upper for _, leakage, _ in rows)
    assert best.lower <= best.upper < min(error for _, _, error in rows[:2])
    not_multiple = 1 - sum(math.comb(PEOPLE, k) for k in range(0, PEOPLE + 1, 3)) / 2**PEOPLE
    return [
        # Off by 1 with probability 2/3, by 2 with 1/3, if the count is not a multiple of 3.
        (mean_error(rounding), 4 / 3 * not_multiple),
        (audit.lower, audit.upper),
        (mean_error(best.witness.mechanism), best.upper),
    ]


if __name__ == "__main__":
    main()
