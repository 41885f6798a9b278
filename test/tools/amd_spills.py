#!/usr/bin/env python3
"""Kernels on AMD GPUs that keep values in scratch memory: bytes of it, and spilled vector registers, as the code object's notes say.

    amd_spills.py [TILEC] [--targets gfx942,gfx1100] [-k PART] [--few] [--aligned] [--all]      default: build/bin/tilec, four targets

The kernels are the examples, the peers' of test/bench/peers, and products and attention in many shapes, with 4 and 8 warps; --few:
six of them; --aligned: only the form for aligned arguments. Prints a table of those that have scratch (--all: of each form), and last "N forms, N with scratch"; exit 1 if any has.
"""
import argparse
import os
import sys

import amd_asm


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("tilec", nargs="?", default=os.path.join(amd_asm.ROOT, "build", "bin", "tilec"))
    p.add_argument("--targets", default=",".join(amd_asm.TARGETS))
    p.add_argument("-k", default="")
    p.add_argument("--few", action="store_true")
    p.add_argument("--aligned", action="store_true")
    p.add_argument("--all", action="store_true")
    a = p.parse_args()
    forms = bad = wrong = 0
    print("| kernel | target | form | scratch bytes | spilled | VGPRs | AGPRs |\n| --- | --- | --- | --- | --- | --- | --- |")
    for row in [r for r in (amd_asm.FEW if a.few else amd_asm.all_rows()) if a.k in r.name]:
        for target in a.targets.split(","):
            try:
                kernels = amd_asm.read(row.asm(a.tilec, target))
            except ValueError as e:
                print(f"| {row.name} | {target} | {e} | | | | |", flush=True)
                wrong += 1
                continue
            for k in [k for k in kernels.values() if not a.aligned or k.name.endswith("_0")]:
                f = k.facts
                has = bool(f["private_segment_fixed_size"] or f["vgpr_spill_count"])
                forms, bad = forms + 1, bad + has
                if has or a.all:
                    print(f"| {row.name} | {target} | {k.name} | {f['private_segment_fixed_size']} | {f['vgpr_spill_count']} | "
                          f"{f['vgpr_count']} | {f['agpr_count']} |", flush=True)
    print(f"{forms} forms, {bad} with scratch" + (f", {wrong} not compiled" if wrong else ""))
    return 1 if bad or wrong else 0


if __name__ == "__main__":
    sys.exit(main())
