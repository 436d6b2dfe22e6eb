"""Choose the noise for a survey question from a published table, with its sampling error.

Each person is asked a question with five answers, through a randomizer on their own device. A
sample is known: the hair color of 5387 people in Caithness (R. A. Fisher, Annals of Eugenics 10,
1940, 422-429; data set `caithness` in the R package MASS), here in caithness_hair.csv. Its
frequencies are subject to sampling error, so the true distribution is in a box: Clopper and
Pearson's intervals, at a joint confidence of 99 percent for the five answers.

The published answer has to be right with probability at least 1 - D under every distribution in the
box. k-ary randomized response achieves this with epsilon = log 4 (1 - D) / D, and nothing better is
possible without knowledge of the distribution (Theorem 1 of K. Kalantari, L. Sankar and A. D.
Sarwate 2018, called HAMMING in the documentation). Knowledge of the box helps if D is above four
times the least probability that all answers may have. Treating the sample's frequencies as the
truth would promise a slightly smaller epsilon, but break the promise about D.
"""

import csv
import math
from pathlib import Path

from cvxleak import verify
from cvxleak.local_dp import MinLocalDP, min_distortion_local_dp, min_local_dp
from cvxleak.measures import local_dp_epsilon
from cvxleak.mechanisms import randomized_response
from cvxleak.model import Prior
from cvxleak.sources import SourceSet

TABLE = Path(__file__).with_name("caithness_hair.csv")
BUDGETS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6)


def counts() -> dict[str, int]:
    with TABLE.open(newline="", encoding="utf-8") as file:
        return {row["hair"]: int(row["people"]) for row in csv.DictReader(file)}


def wrong(sources: SourceSet, channel) -> float:
    """How often the published answer is wrong, under the worst distribution of the set."""
    return sources.worst(1 - channel.matrix.diagonal())[0]


def main() -> list[tuple[float, float]]:
    """Print the comparison; return what was computed beside what it has to be."""
    sources = SourceSet.from_counts(counts(), level=0.99)
    table = SourceSet([Prior.from_counts(counts())])
    box = sources.polytopes[0]
    print("what is known:")
    for label, low, high in zip(sources.labels, box.lower, box.upper, strict=True):
        print(f"  {label:7} between {low:.3f} and {high:.3f}")
    headings = ("D", "k-RR", "optimal", "D at k-RR's", "table as truth", "its true D")
    print("\n" + "".join(f"{heading:>15}" for heading in headings))
    pairs = []
    for budget in BUDGETS:
        simple = math.log(4 * (1 - budget) / budget)
        problem = MinLocalDP(sources, budget)
        bound = problem.solve()
        assert verify(bound.certificate).passed
        converse = min_distortion_local_dp(sources, simple).upper
        naive = min_local_dp(table, budget)
        row = (budget, simple, bound.upper, converse, naive.upper, wrong(sources, naive.witness))
        print("".join(f"{value:15.4f}" for value in row))
        response = randomized_response(sources.size, simple)
        pairs.append((wrong(sources, response), budget))
        pairs.append((wrong(sources, bound.witness), budget))
        pairs.append((local_dp_epsilon(bound.witness), bound.lower))
        assert bound.upper <= simple + 1e-9
        assert problem.check(response, bound=bound).shortfall[0] >= -1e-9
    print(f"\nthe channel for {BUDGETS[-1]} (true answer, then P(published answer)):")
    for label, law in zip(sources.labels, bound.witness.matrix, strict=True):
        print(f"  {label:7}" + "".join(f"{q:8.3f}" for q in law))
    worst = bound.stats["worst_source"]
    print("the worst distribution: " + ", ".join(f"{worst[x]:.3f} {x}" for x in worst.labels))
    # If nothing is known, the optimum is k-RR itself.
    anything = SourceSet.box([0] * 5, [1] * 5, labels=sources.labels)
    pairs.append((min_local_dp(anything, 0.25).upper, math.log(12)))
    return pairs


if __name__ == "__main__":
    main()
