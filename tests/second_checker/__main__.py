"""Compare the two checkers on a folder of certificates: python -m tests.second_checker FOLDER."""

import json
import sys
import time
from collections import Counter
from pathlib import Path

from tests.second_checker.comparing import compared


def main(folder):
    """Print how often which verdicts came together, and every unexplained difference."""
    tally, kinds, slowest, unexplained = Counter(), Counter(), (0.0, ""), 0
    for path in sorted(Path(folder).glob("*.json")):
        data = json.loads(path.read_text())
        start = time.process_time()
        first, second, why = compared(data)
        slowest = max(slowest, (time.process_time() - start, path.name))
        tally[first.passed, second.code, why] += 1
        kinds[str(data.get("kind")), second.code] += 1
        if why == "unexplained":
            unexplained += 1
            print(path.name, data.get("kind"), first.passed, first.reason, second, flush=True)
    for (passed, code, why), number in sorted(tally.items(), key=str):
        print(f"{number:6}  first {'PASS' if passed else 'FAIL'}, second {code}  {why}")
    for (kind, code), number in sorted(kinds.items(), key=str):
        print(f"{number:6}  {kind}: {code}")
    print(f"slowest (both together, CPU): {slowest[0]:.1f} s, {slowest[1]}")
    return unexplained > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
