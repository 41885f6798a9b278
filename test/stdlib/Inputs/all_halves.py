"""exp and the other functions for which a device has instructions of its own, of every f16 and every bf16, on the devices named:
within half an ulp plus their bound (LANGUAGE 12.3). NumPy computes in f64.

    all_halves.py TILEC DEVICE...
"""
import os
import subprocess
import sys
import tempfile

import numpy as np

FUNCTIONS = {  # the bound for f32, in ulp, and the function
    "exp": (2, np.exp),
    "exp2": (2, np.exp2),
    "sigmoid": (4, lambda x: 1 / (1 + np.exp(-x))),
    "rsqrt": (2, lambda x: 1 / np.sqrt(x)),
    "sqrt": (2, np.sqrt),
}
# fraction bits; the exponent of the least normal number; of the greatest
FORMATS = {"f16": (10, -14, 15), "bf16": (7, -126, 127)}


def decoded(t, bits):
    if t == "f16":
        return bits.view(np.float16).astype(np.float64)
    return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


def error(t, got, want):
    """In ulp of t where the true result is; NaN and infinities are right or infinitely wrong."""
    mant, least, most = FORMATS[t]
    exponent = np.clip(np.frexp(want)[1] - 1, least, None)
    e = np.abs(got - want) / np.exp2(exponent - mant)
    beyond = np.abs(want) >= np.exp2(most + 1) - np.exp2(most - mant - 1)  # rounds to an infinity
    special = ~np.isfinite(got) | ~np.isfinite(want) | beyond
    right = (got == np.where(beyond, np.copysign(np.inf, want), want)) | (np.isnan(got) & np.isnan(want))
    return np.where(special, np.where(right, 0, np.inf), e)


def main(tilec, devices):
    names = list(FUNCTIONS)
    bits = np.arange(65536, dtype=np.uint16)
    worst, wrong = {}, 0
    with tempfile.TemporaryDirectory(prefix="tile-halves-") as d, np.errstate(all="ignore"):
        np.save(f"{d}/x.npy", bits)
        for t, (mant, _, _) in FORMATS.items():
            outs = ", ".join(f"u16 {n}_of[N]" for n in names)
            body = "".join(f"    {n}_of[i +: 1024] = bitcast({n}(x), u16);\n" for n in names)
            with open(f"{d}/k.tile", "w", encoding="utf-8") as f:
                f.write(f"kernel k(const u16 bits[N], {outs})\n    grid(cdiv(N, 1024))\n{{\n    int i = pid(0) * 1024;\n"
                        f"    auto x = bitcast(bits[i +: 1024], {t});\n{body}}}\n")
            x = decoded(t, bits)
            for device in devices:
                words = [tilec, "run", f"{d}/k.tile", "--device", device, f"bits=@{d}/x.npy"] + [f"{n}_of=zeros[65536]" for n in names]
                for n in names:
                    words += ["--save", f"{n}_of={d}/{n}.npy"]
                subprocess.run(words, check=True)
                for n, (bound, f) in FUNCTIONS.items():
                    e = error(t, decoded(t, np.load(f"{d}/{n}.npy")), f(x))
                    most = .5 + bound * 2.0 ** (mant - 23)
                    bad = np.flatnonzero(~(e <= most))
                    for k in bad[:3]:
                        print(f"{n}({x[k]}) of {t} on {device}: {e[k]:.6f} ulp, at most {most:.6f}")
                    wrong += len(bad)
                    worst[n, t] = max(worst.get((n, t), 0), e.max())
    for (n, t), e in worst.items():
        print(f"{n} of {t}: {e:.5f} ulp")
    print(f"{len(FORMATS) * len(names) * len(devices)} times 65536 results, {wrong} wrong")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
