"""Keep a copy of each certificate that is made in this process, in a folder."""

import json
from pathlib import Path

from cvxleak import Certificate

LARGEST = 1 << 22  # bytes


def collect(folder):
    """Write what `Certificate` is made of from now on, each distinct one once."""
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    made = Certificate.__init__

    def keep(self, *args, **kwargs):
        made(self, *args, **kwargs)
        try:
            path = target / f"{self.hash}.json"
            text = json.dumps(self.to_dict())
        except Exception:  # a forged one that cannot be written
            return
        if len(text) <= LARGEST and not path.exists():
            path.write_text(text)

    Certificate.__init__ = keep
