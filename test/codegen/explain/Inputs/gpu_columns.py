"""A row of runtime/contract/gpu.def that lacks a column, or has one twice, does not build, and the compiler names the column.

    gpu_columns.py SOURCE FOLDER CC...
"""
import os
import re
import subprocess
import sys


def errors(cc, source, folder, rows):
    """What the compiler says of target.c with these rows in place of the table."""
    os.makedirs(os.path.join(folder, "runtime", "contract"), exist_ok=True)
    with open(os.path.join(folder, "runtime", "contract", "gpu.def"), "w", encoding="utf-8") as f:
        f.write(rows)
    p = subprocess.run([*cc, "-std=c11", "-fsyntax-only", f"-I{folder}", f"-I{source}", os.path.join(source, "codegen", "target", "target.c")],
                       capture_output=True, text=True, check=False)
    return p.stderr if p.returncode else ""


def main(source, folder, *cc):
    with open(os.path.join(source, "runtime", "contract", "gpu.def"), encoding="utf-8") as f:
        table = f.read()
    first = re.search(r"^GPU\(.*?\)\)$", table, re.M | re.S).group(0)
    columns = re.findall(r"IS\((\w+), ", first)
    assert errors(cc, source, folder, table) == "", "the table itself"
    for column in columns:
        less = re.sub(rf" *IS\({column}, (?:[^()]|\([^()]*\))*\)", "", first)
        assert less != first and column in errors(cc, source, folder, table.replace(first, less)), f"without {column} it builds"
    twice = first.replace("IS(sms,", "IS(sms, 1) IS(sms,")
    assert "sms" in errors(cc, source, folder, table.replace(first, twice)), "twice the same"
    wrong = first.replace("IS(sms,", "IS(smx, 1) IS(sms,")
    assert "smx" in errors(cc, source, folder, table.replace(first, wrong)), "an unknown column"
    print(f"{len(columns)} columns, each is missed")


if __name__ == "__main__":
    main(*sys.argv[1:])
