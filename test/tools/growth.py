#!/usr/bin/env python3
"""Growth of compile time and memory: each form of the language (growth_forms.py), doubled until it is costly, for each target.

    growth.py TILEC [-k FORM] [--targets front,cpu,sm_80,gfx942,gfx1100] [--seconds 0.4] [--memory GIB] [--jobs N] [--md FILE] [-v]

A form begins small and is doubled until one compilation takes --seconds of processor time, or its limit is reached: a diagnostic
of a limit is a good end too. Each doubling may cost at most 2.5 times (--factor), in processor time and in memory; a doubling that
looks worse is measured again, five times at most, and the least counts, so that a busy machine changes nothing; a form that grew too
fast is measured anew before it counts as wrong. Every compilation runs under a limit of address space and of time; reaching one is a failure.

--md FILE writes the table. Cells that this run did not measure stay as they are in FILE, and so does what follows the marker line there.
"""
import argparse
import concurrent.futures
import os
import resource
import subprocess
import sys
import tempfile

from growth_forms import FORMS, kernel

FACTOR = 2.5
SLACK = 0.03, 6 << 10   # seconds, KiB: what two runs of one input differ by
KIND = {"front": "front", "cpu": "cpu"}
TARGETS = "front,cpu,sm_80,gfx942,gfx1100"


def kind(target):
    return KIND.get(target, "nvidia" if target.startswith("sm_") else "amd")


HEAD = """# Growth of compile time and memory

Made by `./bootstrap check-long growth`: each form of the language (`test/tools/growth_forms.py`), doubled until one compilation takes
{seconds} s of processor time. A cell holds the worst factor of one doubling in time and in memory, then the largest size that was compiled.
At most {factor} is allowed; 0.0 is what two runs of one input differ by; what is over is in bold. "refused": a limit with a diagnostic.

"""

MARKER = "<!-- growth.py writes what is above and keeps what is below. -->"


class Cost:
    def __init__(self, status, seconds, kib, text):
        self.status, self.seconds, self.kib, self.text = status, seconds, kib, text


def compile_once(cx, target, files):
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            with open(os.path.join(folder, name), "w") as f:
                f.write(text)
        command = [cx.tilec, "k.tile"] + (["--emit=tir", "-o", "/dev/null"] if target == "front" else ["--target", target])

        def limit():
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            resource.setrlimit(resource.RLIMIT_CPU, (cx.limit, cx.limit + 5))
            if not os.environ.get("ASAN_OPTIONS"):  # the sanitizer reserves terabytes of addresses
                resource.setrlimit(resource.RLIMIT_AS, (cx.memory << 30, cx.memory << 30))

        with open(os.path.join(folder, "err"), "w+b") as err:
            p = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=err, preexec_fn=limit)
            _, status, used = os.wait4(p.pid, 0)
            p.returncode = os.waitstatus_to_exitcode(status)
            err.seek(0)
            text = err.read().decode("utf-8", "replace")
    return Cost(p.returncode, used.ru_utime + used.ru_stime, used.ru_maxrss, text)


def least(a, b):
    return Cost(b.status, min(a.seconds, b.seconds), min(a.kib, b.kib), b.text)


def refused(cost):
    """A limit: a diagnostic with its position."""
    return cost.status == 1 and "error[E" in cost.text


def base(cx, target):
    files = {"k.tile": kernel("    y[0] = 1;")}
    cost = compile_once(cx, target, files)
    for _ in range(4):
        cost = least(cost, compile_once(cx, target, files))
    if cost.status:
        sys.exit(f"growth.py: {target}: the empty kernel does not compile:\n{cost.text}")
    return cost


def factors(one, two, zero):
    """Of time and memory; differences within the slack count as none."""
    def factor(a, b, z, slack):
        return 0.0 if b - z <= slack else b / a
    return (factor(one.seconds, two.seconds, zero.seconds, SLACK[0]), factor(one.kib, two.kib, zero.kib, SLACK[1]))


class Row:
    def __init__(self, form, target):
        self.form, self.target = form, target
        self.n, self.time, self.space = 0, 0.0, 0.0   # the largest size, the worst factors
        self.cost, self.wrong, self.end = None, "", ""


def measure(cx, form, target):
    make, n, most, _ = FORMS[form]
    row, zero = Row(form, target), cx.base[target]
    one = compile_once(cx, target, make(n))
    while True:
        row.n, row.cost = n, one
        if refused(one) and "E07" in one.text or refused(one) and form == "errors":
            row.end = "refused"
        elif one.status:
            row.wrong = f"n = {n}: exit status {one.status}: {(one.text.strip().splitlines() or [''])[0][:160]}"
        if row.wrong or (row.end and form != "errors") or one.seconds - zero.seconds > cx.seconds or 2 * n > most:
            return row
        two = compile_once(cx, target, make(2 * n))
        for _ in range(5):
            t, m = factors(one, two, zero)
            if two.status or max(t, m) <= cx.factor:
                break
            one, two = least(one, compile_once(cx, target, make(n))), least(two, compile_once(cx, target, make(2 * n)))
        t, m = factors(one, two, zero)
        if two.status == 0 or form == "errors":
            row.time, row.space = max(row.time, t), max(row.space, m)
            if max(t, m) > cx.factor and not row.wrong:
                row.wrong = f"n = {n} to {2 * n}: {t:.2f} in time ({one.seconds:.2f} to {two.seconds:.2f} s), {m:.2f} in memory ({one.kib >> 10} to {two.kib >> 10} MiB)"
                row.n, row.cost = 2 * n, two
                return row
        one, n = two, 2 * n


def cell(row):
    """The worst factors of time and memory, and the largest size."""
    bold = "**" if row.wrong else ""
    return f"{bold}{row.time:.1f} {row.space:.1f}{bold} ({row.n}{', refused' if row.end else ''})"


def read_table(text):
    """{(form, target): cell}"""
    cells, targets = {}, []
    for line in text.splitlines():
        words = [w.strip() for w in line.strip("|").split("|")] if line.startswith("|") else []
        if words[:1] == ["form"]:
            targets = words[1:]
        elif words and words[0] in FORMS:
            cells.update({(words[0], t): w for t, w in zip(targets, words[1:]) if w})
    return cells


def table(cells):
    targets = [t for t in TARGETS.split(",") if any(k[1] == t for k in cells)] + sorted({k[1] for k in cells} - set(TARGETS.split(",")))
    lines = ["| form | " + " | ".join(targets) + " |", "| --- |" + " --- |" * len(targets)]
    for form in FORMS:
        if any(k[0] == form for k in cells):
            lines.append(f"| {form} | " + " | ".join(cells.get((form, t), "") for t in targets) + " |")
    return "\n".join(lines)


def write_table(cx, rows):
    """What the file has of other cells, and below the marker, stays."""
    old, notes = "", "\n"
    if os.path.exists(cx.md):
        with open(cx.md) as f:
            old, _, below = f.read().partition(MARKER)
            notes = below or notes
    cells = read_table(old)
    cells.update({(r.form, r.target): cell(r) for r in rows})
    with open(cx.md, "w") as f:
        f.write(HEAD.format(seconds=cx.seconds, factor=cx.factor) + table(cells) + "\n\n" + MARKER + notes)
    print(f"{cx.md}: {sum(c.startswith('**') for c in cells.values())} of {len(cells)} cells are over")


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("tilec")
    ap.add_argument("-k", default="", help="forms, with commas: parts of names, or =name")
    ap.add_argument("--targets", default=TARGETS)
    ap.add_argument("--seconds", type=float, default=0.4)
    ap.add_argument("--memory", type=int, default=4)
    ap.add_argument("--limit", type=int, default=20)
    ap.add_argument("--factor", type=float, default=FACTOR)
    ap.add_argument("--jobs", type=int, default=1)
    ap.add_argument("--md", default="")
    ap.add_argument("-v", action="store_true")
    cx = ap.parse_args()
    cx.tilec = os.path.abspath(cx.tilec)
    targets = cx.targets.split(",")
    cx.base = {t: base(cx, t) for t in targets}
    wanted = [w for w in cx.k.split(",") if w]
    chosen = [f for f in FORMS if not wanted or any(f == w[1:] if w[0] == "=" else w in f for w in wanted)]
    jobs = [(f, t) for f in chosen for t in targets if kind(t) in FORMS[f][3]]
    rows = []
    with concurrent.futures.ThreadPoolExecutor(cx.jobs) as pool:
        for r in pool.map(lambda j: measure(cx, *j), jobs):
            rows.append(r)
            if r.wrong or cx.v:
                print(f"{r.form} {r.target}: {r.wrong or 'ok'}; {r.n}{' ' + r.end if r.end else ''}, {r.time:.2f} {r.space:.2f}, {r.cost.seconds:.2f} s {r.cost.kib >> 10} MiB", flush=True)
    for i, r in enumerate(rows):  # what looked wrong is seen twice, the second time with nothing beside it
        if r.wrong:
            rows[i] = again = measure(cx, r.form, r.target)
            print(f"{r.form} {r.target} again: {again.wrong or 'ok'}", flush=True)
    if cx.md:
        write_table(cx, rows)
    bad = sum(bool(r.wrong) for r in rows)
    print(f"{bad} of {len(rows)} forms grow too fast")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
