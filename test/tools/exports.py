"""What the shared libraries export, and how large the public structs without struct_size are, is what the committed list says:
a name that goes, or a struct of another size, is a break of the ABI.

    exports.py LIST LIBRARY... HEADER...           one line per difference; exit status 1 if there is one
    exports.py --write LIST LIBRARY... HEADER...
"""
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
PUBLIC = ["-I", os.path.join(HERE, os.pardir, os.pardir, "runtime", "include")]  # what the other headers include


def exported(path):
    out = subprocess.run(["nm", "-D", "--defined-only", path], capture_output=True, text=True, check=True).stdout
    soname = re.search(r"soname: \[(.*)\]", subprocess.run(["readelf", "-d", path], capture_output=True, text=True, check=True).stdout)[1]
    return {f"{soname} {line.split()[-1]}" for line in out.splitlines()}


def sizes(header):
    """Of the structs that cannot grow, as the compiler lays them out."""
    text = subprocess.run(["cc", "-E", "-P", *PUBLIC, header], capture_output=True, text=True, check=True).stdout  # without TILE_UNSTABLE
    names = [m[1] for m in re.finditer(r"^typedef struct (tile\w*) \{\n(.*?)^\}", text, re.M | re.S) if "struct_size" not in m[2]]
    lines = "".join(f'printf("struct {n} %zu\\n", sizeof({n}));' for n in names)
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "sizes")
        text = f'#include <stdio.h>\n#include "{os.path.abspath(header)}"\nint main(void) {{ {lines} return 0; }}\n'
        subprocess.run(["cc", "-x", "c", "-", "-o", program, "-I", os.path.dirname(header), *PUBLIC], input=text, text=True, check=True)
        return set(subprocess.run([program], capture_output=True, text=True, check=True).stdout.splitlines())


def main(args):
    write = args[0] == "--write"
    path, *files = args[write:]
    now = set().union(*(sizes(f) if f.endswith(".h") else exported(f) for f in files))
    if write:
        with open(path, "w", encoding="utf-8") as f:
            f.write("".join(line + "\n" for line in sorted(now)))
        return 0
    with open(path, encoding="utf-8") as f:
        listed = set(f.read().splitlines())
    for line in sorted(listed - now):
        print("no longer there:", line)
    for line in sorted(now - listed):
        print(f"not in {os.path.basename(path)}:", line)
    print(f"{len(now)} symbols and structs, {len(listed ^ now)} differences")
    return int(listed != now)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
