"""The study of the page "The envelope of randomized response": random cases, certified one by one.

    python docs/envelope_conjecture.py [cases] [seed]

Every case draws k, epsilon, a prior and delta, and brackets the envelope by `pml_envelope`, which
knows nothing of randomized response. The closed forms are compared with that bracket.
"""

import sys
from dataclasses import dataclass

import numpy as np

from cvxleak.envelope import (
    envelope_upper_bound,
    pml_envelope,
    response_condition,
    response_envelope,
    response_lower_bound,
    tail_average_bound,
)
from cvxleak.mechanisms import randomized_response


@dataclass(frozen=True)
class Case:
    k: int
    epsilon: float
    delta: float
    condition: bool
    lower: float
    upper: float
    exact: float
    theorem: float
    tail_average: float
    theorem_3: float


def draw(rng: np.random.Generator) -> Case:
    k = int(rng.integers(2, 21))
    epsilon = float(np.exp(rng.uniform(np.log(0.05), np.log(6))))
    prior = rng.dirichlet(np.full(k, rng.choice([0.2, 0.5, 1.0, 5.0, 50.0])))
    prior = np.maximum(prior, 1e-6)
    prior /= prior.sum()
    delta = float(rng.uniform(0, 1))
    channel = randomized_response(k, epsilon)
    bound = pml_envelope(prior, channel, delta)
    return Case(
        k,
        epsilon,
        delta,
        bool(response_condition(prior, epsilon, delta)),
        bound.lower,
        bound.upper,
        float(response_envelope(prior, epsilon, delta)),
        float(response_lower_bound(prior, epsilon, delta)),
        float(tail_average_bound(prior, channel, delta)),
        float(envelope_upper_bound(prior, channel, delta)),
    )


def summary(name: str, values: np.ndarray) -> str:
    quantiles = np.quantile(values, [0.5, 0.9, 0.99, 1.0]) if len(values) else [np.nan] * 4
    return f"| {name} | {len(values)} | " + " | ".join(f"{q:.2g}" for q in quantiles) + " |"


def main(cases: int = 5000, seed: int = 0) -> None:
    rng = np.random.default_rng(seed)
    drawn = [draw(rng) for _ in range(cases)]
    met = np.array([case.condition for case in drawn])
    outside = np.array(
        [max(case.lower - case.exact, case.exact - case.upper, 0.0) for case in drawn]
    )
    width = np.array([case.upper - case.lower for case in drawn])
    short = np.array([case.upper - case.theorem for case in drawn])
    tail = np.array([case.tail_average - case.lower for case in drawn])
    third = np.array([case.theorem_3 - case.lower for case in drawn])
    print("| quantity, nats | cases | median | 90 % | 99 % | largest |")
    print("|---|---|---|---|---|---|")
    print(summary("gap between the certified bounds", width))
    print(summary("closed form outside the bounds by", outside))
    print(summary("envelope above h, condition met", short[met]))
    print(summary("envelope above h, condition not met", short[~met]))
    print(summary("tail average above the envelope", tail))
    print(summary("Theorem 3 above the envelope", third))
    equal = int((short[~met] < 1e-8).sum())
    print(f"\ncondition not met, equal all the same: {equal} of {int((~met).sum())}")
    worst = drawn[int(np.argmax(np.where(met, -1, short)))]
    print(f"largest shortfall: {worst}")


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:]))
