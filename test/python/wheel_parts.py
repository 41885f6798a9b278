"""The package in three wheels: the smallest alone, then with the two others.

    wheel_parts.py SOURCE BUILD SCRATCH
"""
import os
import shutil
import sys

from wheel import install, run

PROGRAM = """
import numpy as np
import tile
SOURCE = 'kernel twice(f32 x[N]) grid(cdiv(N, 64)) { x[pid(0) * 64 +: 64] = 2 * x[pid(0) * 64 +: 64]; }'
x = np.ones(100, np.float32)
tile.kernel(SOURCE)(x)
print("twice:", x.sum())
for target in ("sm_90a", "emu:sm_90a", "gfx942", "emu:gfx942", "cpu:OTHER", "emu:sm_90a@OTHER"):
    try:
        print(target + ":", len(tile.compile(SOURCE, target=target, emit="asm", cache="off").text) > 100)
    except tile.UnavailableError as e:
        print(target + ":", str(e).partition("; ")[2])
print("tir:", "twice" in tile.compile(SOURCE, target="gfx942", emit="tir", cache="off").text)
try:
    from tile import kernels
    print("kernels:", kernels.gemm(np.eye(3, dtype=np.float32), np.eye(3, dtype=np.float32)).sum())
except ImportError as e:
    print("kernels:", str(e).rpartition(" (")[2])
"""


def main(source, build, scratch):
    shutil.rmtree(scratch, ignore_errors=True)
    folder, other = os.path.join(scratch, "wheels"), "x86-64-v3" if os.uname().machine == "aarch64" else "aarch64"
    made = run([sys.executable, os.path.join(source, "python", "build_wheel.py"), "--parts", folder], TILE_BUILD=build).splitlines()
    for path in made:
        print(os.path.basename(path).partition("-")[0], "below 20 MB" if os.path.getsize(path) < 20e6 else "below 25 MB" if os.path.getsize(path) < 25e6 else "")
    for wheels in (made[:1], made):
        shutil.rmtree(os.path.join(scratch, "venv"), ignore_errors=True)
        for wheel in wheels:
            python, env, _place = install(wheel, scratch)
        print(run([python, "-c", PROGRAM.replace("OTHER", other)], **env), end="")
    shutil.rmtree(scratch)


if __name__ == "__main__":
    main(*sys.argv[1:])
