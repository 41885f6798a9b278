"""Integers of all sizes, one of which is 5 and none 6, and floats with NaN and infinity."""
import sys

import numpy as np

rng = np.random.default_rng(1)
x = rng.integers(-2**31 + 10**8, 2**31 - 1, 1024, dtype=np.int32)
x[x == 6] = 7
x[77] = 5
f = rng.standard_normal(1024).astype(np.float32)
f[[3, 40, 1000]] = np.nan
f[512] = np.inf
np.save(sys.argv[1] + ".x.npy", x)
np.save(sys.argv[1] + ".f.npy", f)
