"""A kernel of the library from C, by the name of its module: conformance_host HOST FOLDER."""
import os
import subprocess
import sys

import numpy as np

host, folder = sys.argv[1:]
arrays = {"A": np.arange(6, dtype=np.float32).reshape(2, 3), "B": np.ones((3, 4), np.float32), "C": np.zeros((2, 4), np.float32)}
for name, array in arrays.items():
    np.save(os.path.join(folder, name), array)
words = [f"f32:{os.path.join(folder, name)}.npy" for name in arrays]
for device in ("cpu", "emu:sm_80"):
    subprocess.run([host, device, "std.kernels.gemm", "gemm", "T=f32", "BM=16", "BN=16", "--", *words], check=True)
    got = np.load(os.path.join(folder, "C.npy.out"))
    if not np.array_equal(got, arrays["A"] @ arrays["B"]):
        sys.exit(f"{device}: {got}")
