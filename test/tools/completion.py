#!/usr/bin/env python3
"""`tilec completion` and `tilec --man`: what is offered, in the shells that are installed, and that every option has its place in a page.

    completion.py TILEC FOLDER TREE
"""
import os
import re
import shlex
import shutil
import subprocess
import sys

FILE = """kernel first(const f32 x[N], f32 y[N], const i32 B = 4) grid(cdiv(N, B)) { i32 i = pid(0) * B; y[i +: B] = x[i +: B]; }
kernel second(f32 out[N], const i32 WIDE = 4) grid(1) { out[0 +: WIDE] = undeclared; }
"""
# What is typed; words that must be offered; words that must not.
ROWS = [
    (["ex"], ["explain"], ["run"]),
    ([""], ["compile", "fmt", "here.tile", "sub"], ["other.txt"]),
    (["run", "--de"], ["--device"], ["--target"]),
    (["compile", "--"], ["--target", "--emit", "--help"], ["--device", "--diff"]),
    (["here.tile", "--em"], ["--emit"], []),
    (["run", "std.k"], ["std.kernels.gemm"], ["here.tile", "std.math"]),
    (["fmt", "--di"], ["--diff", "--diagnostics"], ["--dump-dir"]),
    (["compile", "--emit", "p"], ["ptx"], ["tir"]),
    (["compile", "--emit=p"], ["ptx"], ["tir"]),
    (["compile", "--target", "sm_9"], ["sm_90", "sm_90a"], ["cpu"]),
    (["compile", "--target=sm_80,gfx94"], ["sm_80,gfx942"], ["gfx942"]),
    (["compile", "--dump-dir", ""], ["sub"], ["here.tile"]),
    (["compile", "-o", ""], ["sub", "other.txt"], ["compile"]),
    (["completion", ""], ["bash", "zsh", "fish"], ["here.tile"]),
    (["run", "here.tile", "--device", "emu:sm_9"], ["sm_90a"], ["cpu"]),
    (["run", "--device", "c"], ["cpu", "cpu:x86-64-v3", "cuda"], ["ref"]),
    (["here.tile", "--kernel", ""], ["first", "second"], ["x", "B"]),
    (["run", "here.tile", ""], ["x=", "y=", "out="], ["B=", "here.tile"]),
    (["run", "here.tile", "--kernel", "second", ""], ["out="], ["x="]),
    (["run", "--const", "B=8", "here.tile", "x"], ["x="], ["y="]),
    (["run", "here.tile", "x=n"], ["normal(1)[", "nan["], ["zeros["]),
    (["run", "here.tile", "--const", ""], ["B=", "WIDE="], ["x="]),
    (["run", "here.tile", "--print", ""], ["x", "y", "out"], ["B"]),
    (["run", "missing.tile", "--kernel", ""], [], ["first"]),
    (["explain", "std.kernels.gemm", "--kernel", "gemm", "--const", "B"], ["BM=", "BN="], ["B="]),
    (["error", "E030"], ["E0303"], ["E0401"]),
    (["help", "t"], ["targets", "tune"], ["run"]),
    (["cache", "v"], ["verify"], ["clear"]),
    (["compile", "-Wno-unu"], ["-Wno-unused"], ["-Wno-E0303"]),
    (["compile", "--stop-after", "canon"], ["canonicalize"], ["cse"]),
]


def run(*args, **more):
    return subprocess.run(list(args), capture_output=True, text=True, timeout=60, **more)


def parted(words):
    """As bash parts words: = and : are words of their own."""
    return [part for word in words for part in (re.findall(r"[=:]+|[^=:]+", word) or [""])] + ([""] if words[-1].endswith(":") else [])


def in_bash(tilec, script, words, folder):
    typed = parted([tilec] + words) if "/" not in tilec else [tilec] + parted(words)
    code = f"""source {shlex.quote(script)}
COMP_WORDS=({' '.join(shlex.quote(w) for w in typed)}); COMP_CWORD={len(typed) - 1}
_tilec; printf '%s\\n' "${{COMPREPLY[@]}}" """
    shell = run("bash", "--norc", "-c", code, cwd=folder)
    return shell.stdout.split("\n"), shell.stderr


def in_fish(tilec, script, words, folder):
    line = " ".join([tilec] + [w if re.fullmatch(r"[\w.=:,/-]*", w) else shlex.quote(w) for w in words])
    shell = run("fish", "--no-config", "-c", f"source {shlex.quote(script)}; complete -C {shlex.quote(line)}", cwd=folder)
    found = [one.split("\t")[0].rstrip("/") for one in shell.stdout.split("\n")]
    return [end for one in found for end in [one] + [one[m.end():] for m in re.finditer("[=:]", one)]], shell.stderr  # it gives whole words


def check_rows(shell, offered, tilec, script, folder):
    for words, wanted, others in ROWS:
        found, stderr = offered(tilec, script, words, folder)
        if stderr or not set(wanted) <= set(found) or (shell == "bash" and set(others) & set(found)):  # fish has ideas of its own
            yield f"{shell} offers {found} for {words}; {stderr}"


def check_options(tilec, command):
    """Each option that help lists is offered, and in the manual page."""
    options = re.findall(r"^  (--[a-z-]+|-M[DF]|-[a-zA-Z])\b", run(tilec, "help", command).stdout, re.M)
    found = [one.split("\t")[0] for one in run(tilec, "completion", "words", command, "-").stdout.split("\n")]
    page = run(tilec, command, "--man").stdout.replace("\\-", "-")
    for name in options:
        if name not in found:
            yield f"{command}: {name} is not offered"
        if f"\\fB{name}" not in page:
            yield f"{command}: the page lacks {name}"


def check_pages(tilec, commands, folder):
    for command in [None] + commands:
        page = run(tilec, *([command] if command else []), "--man").stdout
        path = os.path.join(folder, f"tilec-{command}.1")
        with open(path, "w", encoding="utf-8") as f:
            f.write(page)
        if ".SH NAME" not in page or (command and f"tilec\\-{command} " not in page):
            yield f"{command}: no page"
        if shutil.which("groff"):
            groff = run("groff", "-man", "-Tutf8", "-ww", path)
            if groff.stderr or groff.returncode:
                yield f"groff: {command}: {groff.stderr}"


def check_environment(tilec, tree):
    """The variables of the page are those of runtime/README.md."""
    with open(os.path.join(tree, "runtime", "README.md"), encoding="utf-8") as f:
        told = set(re.findall(r"^\| `(TILE_[A-Z_]+)` \|", f.read(), re.M))
    found = set(re.findall(r"\\fB(TILE_[A-Z_]+)\\fR", run(tilec, "--man").stdout))
    if told != found or len(told) < 10:
        yield f"environment: the page and runtime/README.md differ in {told ^ found}"


def main():
    tilec, folder, tree = sys.argv[1:4]
    tilec = shutil.which(tilec) or tilec
    os.makedirs(os.path.join(folder, "sub"), exist_ok=True)
    for name, text in (("here.tile", FILE), ("other.txt", "")):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
            f.write(text)
    commands = re.findall(r"^  ([a-z]+)  ", run(tilec, "help").stdout.split("Options of")[0], re.M)
    faults = [] if len(commands) > 10 else ["help lists no sub-commands"]
    for command in commands:
        faults += check_options(tilec, command)
    for shell, offered in (("bash", in_bash), ("zsh", None), ("fish", in_fish)):
        script = os.path.join(folder, "script." + shell)
        with open(script, "w", encoding="utf-8") as f:
            f.write(run(tilec, "completion", shell).stdout)
        if shutil.which(shell):
            syntax = run(shell, "-n", script)
            faults += [f"{shell}: {syntax.stderr}"] if syntax.returncode else []
            faults += check_rows(shell, offered, tilec, script, folder) if offered else []
    faults += check_pages(tilec, commands, folder)
    faults += check_environment(tilec, tree)
    print(*faults, sep="\n")
    print(f"{len(commands)} commands, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
