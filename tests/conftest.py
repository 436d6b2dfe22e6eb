"""What every test shares: one BLAS thread, and property tests that give the same verdict twice."""

import os

from hypothesis import settings

# NumPy reads these when it is first imported, which is after this. Threads of BLAS and the workers
# of xdist would otherwise fight for the same cores.
for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

# The same code gives the same verdict, and no verdict depends on how fast the machine is.
settings.register_profile("repeatable", deadline=None, derandomize=True)
settings.load_profile("repeatable")
