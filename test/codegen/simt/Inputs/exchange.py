#!/usr/bin/env python3
"""exchange.tile on the emulator in many layouts against the interpreter.

    exchange.py FOLDER SEED...

For each shape and kernel: the interpreter's results, then the emulator's with the layouts that the compiler chooses and
with random ones for each seed; with one seed each shape on one device only. Prints how many runs had the same bits."""
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
DEVICES = ["emu:sm_80", "emu:gfx942"]
SHAPES = [(6, 10, 12), (8, 16, 32), (1, 7, 96), (33, 3, 5)]
KERNELS = {
    "reductions": {"s0": "QR", "s1": "PR", "s2": "PQ", "at": "PR", "all": "1", "b": "PQ"},
    "scans": {"c0": "PQR", "c1": "PQR", "c2": "PQR", "back": "PQR"},
    "products": {"y": "PQQ", "z": "QP", "w": "QQ"},
}


def run(folder, kernel, shape, device, extra):
    sizes = dict(zip("PQR", shape), **{"1": 1})
    command = ["tilec", "run", os.path.join(HERE, "exchange.tile"), "--kernel", kernel, "--device", device, *extra]
    for name, n in zip("PQR", shape):
        command += ["--const", f"{name}={n}"]
    command.append("x=iota[%d,%d,%d]" % shape)
    results = KERNELS[kernel]
    for name, axes in results.items():
        command += [f"{name}=zeros[{','.join(str(sizes[a]) for a in axes)}]", "--save",
                    f"{name}={os.path.join(folder, name + '.npy')}"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    bits = {}
    for name in results:
        with open(os.path.join(folder, name + ".npy"), "rb") as f:
            bits[name] = f.read()
    return bits


def main(folder, seeds):
    os.makedirs(folder, exist_ok=True)
    same = 0
    for k, shape in enumerate(SHAPES):
        for kernel in KERNELS:
            want = run(folder, kernel, shape, "ref", [])
            for device in DEVICES[k % 2:][:1] if len(seeds) < 2 else DEVICES:
                for extra in [[]] + [[f"--stress-layouts={s}"] for s in seeds]:
                    got = run(folder, kernel, shape, device, extra)
                    wrong = [name for name in want if got[name] != want[name]]
                    if wrong:
                        print(kernel, shape, device, *extra, "differ in", *wrong)
                    same += not wrong
    print(f"{same} runs the same")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
