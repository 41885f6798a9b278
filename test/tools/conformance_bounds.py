"""What conformance rows accept near and at infinity: `within` with a bound (test/conformance/values.py)."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "conformance"))
import numpy as np
from values import Arr, compare, within

INF, NAN, MOST = np.inf, np.nan, float(np.finfo(np.float32).max)
WRONG = [(0, INF, 1), (0, INF, INF), (-INF, INF, 1), (-INF, INF, INF), (NAN, INF, 1), (-MOST, INF, 1e32), (NAN, MOST, 1e38), (INF, 0, 1e32), (INF, -MOST, 1e32), (0, NAN, 1)]
RIGHT = [(INF, INF, 1), (INF, INF, INF), (MOST, INF, 1e32), (INF, MOST, 1e32), (-INF, -MOST, 1e32), (NAN, NAN, 1), (1, 1.5, 1), (5, 0, INF)]


def accepted(got, want, bound):
    return compare(Arr("f32", np.array([got], np.float32)), within(np.array([want]), bound)) is None


bad = [c for c in WRONG if accepted(*c)] + [c for c in RIGHT if not accepted(*c)]
print(f"{len(WRONG) + len(RIGHT)} pairs, {len(bad)} judged wrongly {bad or ''}")
