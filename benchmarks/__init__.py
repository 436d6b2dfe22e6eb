"""Benchmarks: cvxleak against other programs, as ratios measured in the same run.

``python -m benchmarks`` runs all of them; ``python -m benchmarks capacity`` runs one.
"""

import os

# Before NumPy is imported: it reads these once. One thread for everybody, so ratios are of methods.
for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS"):
    os.environ[_name] = "1"
