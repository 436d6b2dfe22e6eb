"""Three parties ask a release desk overlapping questions about one applicant. How much accuracy is
lost because they may pool the answers?

The model p(x) is a published table: the applicants to the six largest departments of the
University of California, Berkeley, for 1973, by admission, sex and department (P. J. Bickel,
E. A. Hammel and J. W. O'Connell, Sex bias in graduate admissions: data from Berkeley, Science 187
(1975) 398-404; the counts are those of the data set UCBAdmissions of R).

Run it: python examples/berkeley_desk.py
"""

import secrets
import tempfile
from pathlib import Path

from cvxleak.desk import ReleaseDesk
from cvxleak.model import Prior

APPLICANTS = {  # (admitted men, rejected men, admitted women, rejected women)
    "A": (512, 313, 89, 19),
    "B": (353, 207, 17, 8),
    "C": (120, 205, 202, 391),
    "D": (138, 279, 131, 244),
    "E": (53, 138, 94, 299),
    "F": (22, 351, 24, 317),
}
GROUPS = [("man", "yes"), ("man", "no"), ("woman", "yes"), ("woman", "no")]
MODEL = Prior.from_counts(
    {
        (sex, admitted, department): count
        for department, counts in APPLICANTS.items()
        for (sex, admitted), count in zip(GROUPS, counts, strict=True)
    }
)
QUESTIONS = {
    "newspaper": {x: x[1] for x in MODEL.labels},  # was the applicant admitted?
    "ministry": {x: x[:2] for x in MODEL.labels},  # of which sex, and admitted?
    "union": {x: (x[0], x[2]) for x in MODEL.labels},  # of which sex, in which department?
}
EPSILON = 0.15  # nats that one party may learn
COLLUSION = {"nothing more than one": 0.15, "a little more": 0.2, "as if they never met": 0.45}


def serve(delta: float, folder: Path) -> tuple[dict[str, float], dict[str, float]]:
    """Return each party's expected distortion, and what each and everybody may have learned."""
    desk = ReleaseDesk.create(folder / f"{delta}.db", MODEL, epsilon=EPSILON, delta=delta)
    # Any applicant: the kernels, and so the figures below, do not depend on the choice.
    person = secrets.choice(MODEL.labels)
    wrong = {
        party: desk.request(party, question, x=person).distortion[1]
        for party, question in QUESTIONS.items()
    }
    told = {" + ".join(who.parties): who.leakage for who in desk.report().exposures}
    assert desk.verify().passed
    return wrong, told


def main() -> list[tuple[float, float]]:
    """Print the table; return pairs (computed, expected).

    The first party is answered as if no other came after it, and tight budgets are used up.
    """
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        print(f"{len(MODEL.labels)} kinds of applicants, {EPSILON} nats for each party\n")
        print("probability that the answer is wrong" + " " * 9 + "newspaper  ministry     union")
        for name, delta in COLLUSION.items():
            wrong, told = results[delta] = serve(delta, Path(folder))
            figures = "".join(f"{wrong[party]:>10.4f}" for party in QUESTIONS)
            print(f"together {name:<24} ({delta:.2f} nats){figures}")
            assert told[""] <= delta
    spread = results[max(results)][1]
    print("\nWith the loosest budget they may learn, alone and together (nats):")
    for who, leakage in spread.items():
        print(f"  {who or 'everybody':<22} {leakage:.4f}")
    first = {wrong["newspaper"] for wrong, _ in results.values()}
    used = [(results[delta][1][""], delta) for delta in (0.15, 0.2)]
    return [(max(first), min(first)), (spread["newspaper"], EPSILON), *used]


if __name__ == "__main__":
    main()
