"""Publish the count of a small area: the noise that costs least, beside rounding and the geometric.

An office publishes how many of the six people of a block have a certain disease. Half of them do,
as far as the office knows, and every error costs its size. Somebody who reads the table may know a
lot about the block, even who lives together and who is ill: all that is assumed is that at least
five bits of doubt about the six answers are left to them. What may they learn about one person?

Statistical offices round at random to a multiple of three, without bias. Its leakage, as certified
here, is what the other mechanisms get as well: the truncated geometric mechanism by the smallest
noise that is proved to meet it (`calibrate`), and the channel of least distortion for that leakage
(`min_distortion`), of which the lower end says that no other channel whatsoever does better.
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
    print("\nthe best channel (true count, then the law of the published one):")
    for k, law in enumerate(best.witness.channel.matrix):
        print(f"  {k}  " + "".join(f"{q:8.3f}" for q in law))
    # Whoever sees a proof can check it: none of these leaks more than rounding does.
    certificates = [audit.certificate, noisy.bound.certificate, best.certificate]
    assert all(verify(certificate).passed for certificate in certificates)
    assert all(leakage <= audit.upper for _, leakage, _ in rows)
    assert best.lower <= best.upper < min(error for _, _, error in rows[:2])
    not_multiple = 1 - sum(math.comb(PEOPLE, k) for k in range(0, PEOPLE + 1, 3)) / 2**PEOPLE
    return [
        # Off by 1 with probability 2/3, by 2 with 1/3, where the count is no multiple of 3.
        (mean_error(rounding), 4 / 3 * not_multiple),
        (audit.lower, audit.upper),
        (mean_error(best.witness.mechanism), best.upper),
    ]


if __name__ == "__main__":
    main()
