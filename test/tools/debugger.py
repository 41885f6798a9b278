#!/usr/bin/env python3
"""GDB stops at a line of a kernel, shows where it is, and steps; with TILE_BREAK=1 it stops where an assertion fails. Where programs run several at once, GDB calls the function of one `scale[each]`.

    debugger.py TILEC FOLDER      "no debugger" where processes may not be traced
"""
import os
import re
import shutil
import subprocess
import sys

KERNEL = """kernel scale(const f32 x[N], f32 y[N], const i32 B = 4)
    grid(cdiv(N, B))
{
    i32 i = pid(0) * B;
    auto v = x[i +: B];
    auto w = v * 2.0;
    y[i +: B] = sqrt(w);
}
"""
COMMANDS = ("set pagination off", "set breakpoint pending on", "set confirm off", "break scale.tile:7", "run", "bt 2", "info line", "list 7,7",
            "info breakpoints", "kill")


CHECKED = """kernel copy(const f32 x[N], f32 y[N])
    grid(1)
    require(N <= 8)
{
    auto v = x[0 +: 8];
    assert(v < 3);
    y[0 +: 8] = v;
}
"""
STOPPED = ("set pagination off", "set confirm off", "run", "bt 8", "kill")


def gdb(folder, commands, *words):
    """What GDB prints of tilec run; None: it may not trace processes here."""
    env = dict(os.environ, HOME=folder, LC_ALL="C", DEBUGINFOD_URLS="", TILE_BREAK="1")
    p = subprocess.run(["gdb", "-nx", "-q", "-batch", *(w for c in commands for w in ("-ex", c)), "--args", *words, "-g", "-O0", "--device", "cpu", "--cache", "off",
                        "x=iota[8]", "y=nan[8]"], cwd=folder, env=env, capture_output=True, text=True, timeout=300, check=False)
    if re.search(r"[Cc]ould not trace|ptrace: Operation not permitted|[Cc]annot trace", p.stdout + p.stderr):
        return None
    return p.stdout + p.stderr


def main():
    tilec, folder = shutil.which(sys.argv[1]) or sys.argv[1], sys.argv[2]
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "scale.tile"), "w", encoding="utf-8") as f:
        f.write(KERNEL)
    with open(os.path.join(folder, "checked.tile"), "w", encoding="utf-8") as f:
        f.write(CHECKED)
    shown = gdb(folder, COMMANDS, tilec, "run", "scale.tile")
    if shown is None:
        print("no debugger")
        return 0
    wanted = (r"hit Breakpoint 1, scale(\[each\])? \(\) at scale\.tile:7", r"#0  scale(\[each\])? \(\) at scale\.tile:7",
              r"Line 7 of \"scale\.tile\" starts at", r"y\[i \+: B\] = sqrt\(w\);", r"breakpoint already hit")
    missing = [w for w in wanted if not re.search(w, shown)]
    stopped = gdb(folder, STOPPED, tilec, "run", "checked.tile", "--check")
    missing += [w for w in (r"received signal SIGTRAP", r"#\d+ .* copy(\[each\])? \(\) at checked\.tile:6") if not re.search(w, stopped)]
    print(f"{len(missing)} missing", *missing, sep="\n")
    if missing:
        print(shown, stopped)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
