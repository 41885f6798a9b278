#!/usr/bin/env python3
"""`tilec completion` and `tilec --man`: every option is there, and the shells that are installed take the scripts.

    completion.py TILEC FOLDER
"""
import os
import re
import shlex
import shutil
import subprocess
import sys

# What is typed in bash; words that must be offered; words that must not.
ROWS = [
    (["tilec", "ex"], ["explain"], ["run"]),
    (["tilec", ""], ["compile", "fmt", "here.tile", "sub"], ["other.txt"]),
    (["tilec", "run", "--de"], ["--device"], ["--target"]),
    (["tilec", "compile", "--"], ["--target", "--emit", "--help"], ["--device", "--diff"]),
    (["tilec", "here.tile", "--em"], ["--emit"], []),
    (["tilec", "run", "std.k"], ["std.kernels.gemm"], ["here.tile", "std.math"]),
    (["tilec", "fmt", "--di"], ["--diff", "--diagnostics"], ["--dump-dir"]),
    (["tilec", "compile", "--emit", "p"], ["ptx"], ["tir"]),
    (["tilec", "compile", "--emit", "=", "p"], ["ptx"], ["tir"]),
    (["tilec", "compile", "--target", "sm_9"], ["sm_90", "sm_90a"], ["cpu"]),
    (["tilec", "compile", "--dump-dir", ""], ["sub"], ["here.tile"]),
    (["tilec", "completion", ""], ["bash", "zsh", "fish"], ["here.tile"]),
]


def offered(script, words, folder):
    code = f"""source {shlex.quote(script)}
COMP_WORDS=({' '.join("'" + w + "'" for w in words)}); COMP_CWORD={len(words) - 1}
_tilec; printf '%s\\n' "${{COMPREPLY[@]}}" """
    run = subprocess.run(["bash", "--norc", "-c", code], cwd=folder, capture_output=True, text=True, timeout=60)
    return run.stdout.split("\n"), run.stderr


def check_bash(script, folder):
    for words, wanted, others in ROWS:
        found, stderr = offered(script, words, folder)
        if stderr or not set(wanted) <= set(found) or set(others) & set(found):
            yield f"bash offers {found} for {words}; {stderr}"


def check_manual(path):
    if shutil.which("groff"):
        run = subprocess.run(["groff", "-man", "-Tutf8", "-ww", path], capture_output=True, text=True, timeout=60)
        if run.stderr or run.returncode:
            yield f"groff: {run.stderr}"


def main():
    tilec, folder = sys.argv[1:3]
    os.makedirs(os.path.join(folder, "sub"), exist_ok=True)
    for name in ("here.tile", "other.txt"):
        open(os.path.join(folder, name), "w", encoding="utf-8").close()
    text = {shell: subprocess.run([tilec, "completion", shell], capture_output=True, text=True, check=True).stdout
            for shell in ("bash", "zsh", "fish")}
    text["man"] = subprocess.run([tilec, "--man"], capture_output=True, text=True, check=True).stdout
    options = re.findall(r"^  (--[a-z-]+|-M[DF]|-[a-zA-Z])", subprocess.run([tilec, "--help"], capture_output=True, text=True, check=True).stdout, re.M)
    faults = [] if len(options) > 20 else ["--help lists no options"]
    for kind, script in text.items():
        path = os.path.join(folder, "script." + kind)
        with open(path, "w", encoding="utf-8") as f:
            f.write(script)
        plain = script.replace("\\-", "-")
        for name in options:
            if not re.search(rf"-[lso] {name.lstrip('-')}\b" if kind == "fish" else rf"{name}\b", plain):
                faults.append(f"{kind} lacks {name}")
        if kind in ("zsh", "fish") and shutil.which(kind):
            run = subprocess.run([kind, "-n", path], capture_output=True, text=True, timeout=60)
            faults += [f"{kind}: {run.stderr}"] if run.returncode else []
    if shutil.which("bash"):
        faults += check_bash(os.path.join(folder, "script.bash"), folder)
    faults += check_manual(os.path.join(folder, "script.man"))
    print(*faults, sep="\n")
    print(f"{len(text)} texts, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
