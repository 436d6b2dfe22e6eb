"""Files of schema version 1, as the program wrote them then: `stored/` has one of each kind.

Kinds that the proof kernel checks have to be made again, and designs whose proof holds an audit's.
"""

import json
from pathlib import Path

from cvxleak import Certificate, verify
from cvxleak.kernel.claims import KINDS
from cvxleak.proofs import read_certificates
from cvxleak.proofs.checker import PROVERS

STORED = Path(__file__).parent / "stored"

# Kinds that no file of version 1 has.
SINCE = {
    "renyi-capacity",
    "renyi-dp",
    "zcdp",
    "dp-profile",
    "gaussian-dp",
    "deficiency",
    "local-dp-of-set",
    "total-disclosure",
}

AUDITED = {"min-leakage", "min-distortion"}


def test_one_of_each_kind_holds():
    members = read_certificates(STORED / "schema_1.json")
    assert {member["kind"] for member in members} == set(PROVERS) - SINCE
    assert {member["schema_version"] for member in members} == {1}
    answer = verify(STORED / "schema_1.json")
    for member, part in zip(members, answer.parts, strict=True):
        assert Certificate.from_dict(member).to_dict() == member
        if member["kind"] in KINDS:
            assert part.reason == (
                f"schema version 1 of {member['kind']}; this checker reads version 3: make the "
                "certificate again"
            )
            continue
        if member["kind"] in AUDITED:
            assert "the leakage's proof" in part.reason
            continue
        assert (part.passed, part.reason) == (True, "both bounds are proved")
        assert {name: end.proved for name, end in part.ends.items()} == {
            "lower": True,
            "upper": True,
        }
        # Nothing says whether half-spaces are all that was asked for.
        own = bool(member["problem"].get("own"))
        assert part.ends["upper"].about == ("half-spaces" if own else "problem")
        assert part.ends["lower"].about == "problem"


def test_a_witness_whose_further_variables_are_not_stored():
    path = STORED / "schema_1_further.json"
    assert any(row["further"] for row in json.loads(path.read_text())["problem"]["own"])
    answer = verify(path)
    assert not answer.passed
    assert [answer.ends[name].proved for name in ("lower", "upper")] == [True, False]
    assert answer.reason == (
        "the upper bound: entry 0 of own has further variables whose values are not stored; "
        "the lower bound is proved"
    )
