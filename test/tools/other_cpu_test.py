#!/usr/bin/env python3
"""other_cpu.py without Bochs and QEMU: a machine that runs the rows with `tilec run`, and does some of it wrong.

    other_cpu_test.py BUILD
"""
import glob
import os
import shlex
import subprocess
import sys

import other_cpu

PATTERN = "^(int_bits_i8|int_division_i8|bool_logic|reduce_i8|cast_from_i16)$"


def record(kind, name, data=b""):
    return b"\n=> %s %d %s\n" % (kind.encode(), len(data), name.encode()) + data


def machine(tilec, faults):
    """A boot() that sends these faults."""
    def boot(_cx, _size):
        sent = b"noise of the BIOS\n" + b"".join(record("fault", f) for f in faults)
        for line in other_cpu.read("disk/jobs").decode().split("\n"):
            name, device, image, n, *words = line.split("\t")
            saves, items = words[:int(n)], words[int(n):]
            p = subprocess.run([tilec, "run", *glob.glob(name + "/*.tile"), "--device", device, *items,
                                *(w for s in saves for w in ("--save", s))], capture_output=True, check=False)
            assert os.path.getsize(image) and p.returncode == 0, p.stderr
            status = "0"
            for path in (s.partition("=")[2] for s in saves):
                data = bytearray(other_cpu.read(path))
                os.remove(path)
                if "cast_from" in name or "reduce" in name:
                    data[-1] ^= 1
                sent += record("file", path, bytes(data))
            if "int_bits" in name:
                status = "signal 4\nno instruction of this CPU: 62 f1"
            if "int_division" not in name:
                sent += record("ended", name, status.encode() + b"\n")
        other_cpu.write("sent", sent + (record("end", "") if "vcvtps2ph" in faults else b""))
        return True
    return boot


def disk(_cx, jobs):
    os.makedirs("disk")
    other_cpu.write("disk/jobs", "\n".join(j.line() for j in jobs).encode())
    return len(other_cpu.archive(other_cpu.machine_files("/dev/null", jobs)))


def say_needs():
    there = other_cpu.NEEDS
    other_cpu.NEEDS = {package: "/nowhere" for package in there}
    for devices in ("cpu:aarch64", "cpu:x86-64-v4"):
        sys.argv = ["other_cpu.py", "--devices", devices, "-k", "^bool_logic$"]
        other_cpu.main()
    other_cpu.NEEDS = there


def main(build):
    say_needs()
    other_cpu.make_disk, other_cpu.lacking, other_cpu.build_program = disk, lambda cx: None, lambda cx: None
    what, _, status = other_cpu.FAULTS["vcvtps2ph"]
    other_cpu.FAULTS["vcvtps2ph"] = what, r"\bcvtdq2ps\b", status  # which every CPU has that runs this test
    for faults in ([], ["vcvtps2ph", "kshiftlw"]):
        other_cpu.boot = machine(os.path.join(build, "bin", "tilec"), faults)
        sys.argv = shlex.split(f"other_cpu.py --build {shlex.quote(build)} --devices cpu:x86-64-v2 -v -k '{PATTERN}'")
        print("status", other_cpu.main())
    other_cpu.lacking = lambda cx: "needs bochs"
    print("status", other_cpu.main())


if __name__ == "__main__":
    main(os.path.abspath(sys.argv[1]))
