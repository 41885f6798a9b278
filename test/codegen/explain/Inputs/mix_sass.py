"""Compares the instructions that tilec explain counts with sassmix.py's: mix_sass.py TILEC SOURCE TARGET..."""
import json
import os
import subprocess
import sys
import tempfile

tilec, source, targets = sys.argv[1], sys.argv[2], sys.argv[3:]
sys.path.insert(0, os.path.join(source, "test", "tools"))
import sassmix  # noqa: E402

KERNELS = [("test/bench/gemm.tile", []), ("examples/02_softmax/softmax.tile", ["B=4096"]), ("examples/03_matmul/matmul.tile", []),
           ("examples/05_attention/attention.tile", ["BD=64", "CAUSAL=1"])]
# By class: operations that are all of it, and only of it.
CLASSES = {"matrix instructions": sassmix.MATRIX, "shared loads": ("LDS", "LDSM"), "asynchronous copies": ("LDGSTS", "UTMALDG", "UTMASTG"), "global loads": ("LDG",),
           "global stores": ("STG",), "special functions": ("MUFU",), "shuffles": ("SHFL", "VOTE", "VOTEU", "REDUX", "MATCH")}


def counts(kernel, part):
    """Total and classes of explain's kernel."""
    of = {name: sum(m[part] for m in kernel["mix"] if m["name"] == name) for name in CLASSES}
    return {"total": sum(m[part] for m in kernel["mix"]), **of}


def theirs(scope):
    return {"total": scope["total"], **{name: sum(scope["mix"][o] for o in operations) for name, operations in CLASSES.items()}}


def main():
    n = differ = 0
    with tempfile.TemporaryDirectory() as folder:
        for target in targets:
            for path, consts in KERNELS:
                words = [os.path.join(source, path), "--target", target, *(w for c in consts for w in ("--const", c))]
                cubin = os.path.join(folder, "x.cubin")
                subprocess.run([tilec, *words, "--emit", "cubin", "-o", cubin], check=True)
                report = json.loads(subprocess.run([tilec, "explain", *words, "--json"], check=True, capture_output=True).stdout)
                known = {k["kernel"]: k for k in sassmix.analyze_file(cubin)}
                for k in report["targets"][0]["kernels"]:
                    other = known[k["symbol"]]
                    pairs = [(counts(k, "all"), theirs(other))]
                    pairs += [(counts(k, "trip"), theirs(x["short"])) for x in other["loops"] if x["main"]]
                    n, differ = n + 1, differ + any(a != b for a, b in pairs)
                    for a, b in pairs:
                        if a != b:
                            print(f"{k['symbol']} for {target}: explain {a}, sassmix {b}")
    print(f"{n} kernels, {differ} differ")


main()
