"""What the shared libraries export is what the committed list says: a name that goes is a break of the ABI.

    exports.py LIST LIBRARY...           one line per difference; exit status 1 if there is one
    exports.py --write LIST LIBRARY...
"""
import os
import re
import subprocess
import sys


def exported(path):
    out = subprocess.run(["nm", "-D", "--defined-only", path], capture_output=True, text=True, check=True).stdout
    soname = re.search(r"soname: \[(.*)\]", subprocess.run(["readelf", "-d", path], capture_output=True, text=True, check=True).stdout)[1]
    return {f"{soname} {line.split()[-1]}" for line in out.splitlines()}


def main(args):
    write = args[0] == "--write"
    path, *libraries = args[write:]
    now = set().union(*map(exported, libraries))
    if write:
        with open(path, "w", encoding="utf-8") as f:
            f.write("".join(line + "\n" for line in sorted(now)))
        return 0
    with open(path, encoding="utf-8") as f:
        listed = set(f.read().splitlines())
    for line in sorted(listed - now):
        print("no longer exported:", line)
    for line in sorted(now - listed):
        print(f"not in {os.path.basename(path)}:", line)
    print(f"{len(now)} symbols, {len(listed ^ now)} differences")
    return int(listed != now)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
