#!/usr/bin/env python3
"""Runs the commands that stand in a .tile file's comments, on each device, and compares what they say.

    runs.py FILE.tile DEVICE[,DEVICE...]

A line `//$ WORDS -> STATUS TEXT` is `tilec run FILE.tile --device D WORDS`: its exit status must be STATUS, and its output
(both streams) must hold TEXT, if there is one. `FILE` in TEXT stands for the file's name. tilec is found on PATH.
"""
import os
import re
import shlex
import subprocess
import sys


def wrong(path, device, line):
    words, status, text = re.fullmatch(r"//\$ (.*?) -> (\d+)(?: (.*))?", line).groups()
    p = subprocess.run(["tilec", "run", path, "--device", device, *shlex.split(words)], capture_output=True, text=True, timeout=120)
    said = p.stdout + p.stderr
    if p.returncode == int(status) and (text or "").replace("FILE", os.path.basename(path)) in said:
        return None
    return f"{device}: {line}\n    status {p.returncode}: {said.strip()}"


def main(path, devices):
    with open(path, encoding="utf-8") as f:
        lines = [line.strip() for line in f if line.startswith("//$ ")]
    bad = [w for w in (wrong(path, d, line) for d in devices.split(",") for line in lines) if w]
    print("\n".join([*bad, f"{len(lines)} commands, {len(bad)} wrong"]))
    return 1 if bad or not lines else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
