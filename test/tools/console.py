#!/usr/bin/env python3
r"""Runs the commands of documents as a reader would, against an installed tree, and compares what they print with what is shown.

    console.py SOURCE BUILD SCRATCH [FILE.md...]      FILE below SOURCE, else every document; installs BUILD below SCRATCH
    console.py --write SOURCE BUILD SCRATCH [FILE.md...]    also puts what they print, and the pictures that they draw, into the documents
    console.py --keep DIR SOURCE BUILD SCRATCH FILE.md    leaves the files of one document in DIR
    console.py --self-test                          shows that a wrong output, a wrong status and a command that nobody runs are seen

In a document
    `NAME`:                 a paragraph before a fenced block: its text is the file NAME, for the commands below it
    <!-- with: FILE.md -->  the files that FILE shows are there too
    ```console              lines `$ COMMAND` (bash, in a folder of the document's own; `\` continues a line), each followed by its output
    # exit status N         at the end of a command: it fails so; all others succeed
    ...                     a line of this alone stands for any lines; within a line for any text
    <!-- not run: WHY -->   before a block: commands that a test must not run
    <!-- synopsis -->       before a block: forms of commands, with placeholders
    ![text](NAME.svg)       a picture that a command has made: its words must be those of the document's, numbers may differ
    ![text](NAME.svg)<!-- not drawn: WHY -->  a picture that no test makes again
    <!-- draw: COMMAND -->  makes a picture too, by a script of tools/docs; every byte must be the document's
Commands find this tree in $SOURCE. Of times, speeds and percentages only the kind is compared: 3 ms is as good as 4 us. Nor are the numbers of the lines
`registers` and `occupancy` of tilec explain compared, which depend on the versions of LLVM and ptxas.
A line of any other code block that begins with the name of a program of ours is a fault: a command that nothing runs.
"""
import os
import re
import shutil
import subprocess
import sys
import time
import xml.dom.minidom

from check_docs import tracked
from check_readme import pc_flags

FENCE = re.compile(r"((?:^`[\w./-]+`:\n\n)?(?:^<!-- [^\n]*? -->\n)*)^(`{3,})(\w*)\n(.*?)^\2\n", re.S | re.M)
LINES = 40  # of a wrong output
UNITS = {"TIME": r"(?:ns|us|ms|s)", "SPEED": r"[kMGT](?:B|FLOP)/s", "PART": "%"}
NUMBER = r"\d+(?:\.\d+)?(?:e[-+]?\d+)?"
OURS = re.compile(r"^(?:\$ )?(?:\S+=\S+ )*(?:build/bin/|bin/)?(?:tilec|tile-opt|tile-reduce|\./bootstrap|cmake|ninja|cc|pip|python3?)(?: |$)")


def elided(line):
    """The line without what varies."""
    line = line.rstrip()
    for kind, unit in UNITS.items():
        line = re.sub(rf"\b{NUMBER} ?{unit}(?![\w/])", kind, line)
    if line.startswith(("registers ", "occupancy ")):
        line = re.sub(r"blocks?\b", "blocks", re.sub(NUMBER, "N", line))
    return re.sub(r" +", " ", line)


def same(shown, printed):
    """Whether lines shown, with `...`, describe the lines printed."""
    pattern = ""
    for line in shown:
        if line.strip() == "...":
            pattern += r"(?:.*\n)*?"
        else:
            pattern += r".*?".join(re.escape(part) for part in elided(line).split("...")) + r"\n"
    return re.fullmatch(pattern, "".join(elided(line) + "\n" for line in printed)) is not None


def commands(text):
    """(command, lines shown) of a console block."""
    found = []
    for line in text.splitlines():
        if found and found[-1][0].endswith("\\"):
            found[-1][0] += "\n" + line
        elif line.startswith("$ "):
            found.append([line[2:], []])
        elif found:
            found[-1][1].append(line)
        else:
            raise ValueError(f"output without a command: {line}")
    return found


class Page:
    def __init__(self, path, folder, environment):
        self.path, self.folder, self.environment = path, folder, environment
        with open(path, encoding="utf-8") as f:
            self.text = f.read()
        self.faults, self.count, self.changed = [], 0, self.text

    def fault(self, at, text):
        self.faults.append(f"{os.path.basename(self.path)}:{self.text.count(chr(10), 0, at) + 1}: {text}")

    def execute(self, command):
        p = subprocess.run(["bash", "-c", command], cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)
        return p.returncode, p.stdout.splitlines()

    def console(self, at, text):
        """Runs a block; its text with what was printed now."""
        new = ""
        for command, shown in commands(text):
            said = re.search(r"# exit status (\d+)$", command)
            start = time.monotonic()
            status, printed = self.execute(command)
            self.count += 1
            if os.environ.get("CONSOLE_TIMES"):
                print(f"{time.monotonic() - start:6.2f} s  {command.splitlines()[0]}")
            if status != int(said[1] if said else 0):
                self.fault(at, f"{command}: exit status {status}\n" + "\n".join(printed[:LINES]))
            elif not same(shown, printed):
                self.fault(at, f"{command}: shown\n" + "\n".join(shown) + "\nprinted\n" + "\n".join(printed[:LINES]))
            new += f"$ {command}\n" + "".join(line + "\n" for line in (shown if "..." in "".join(shown) else printed))
        return new

    def file(self, notes, text):
        """Writes the file that a block shows; its name."""
        file = re.match(r"`(.*)`:", notes)
        if file:
            os.makedirs(os.path.dirname(os.path.join(self.folder, file[1])), exist_ok=True)
            with open(os.path.join(self.folder, file[1]), "w", encoding="utf-8") as f:
                f.write(text)
        return file and file[1]

    def files_of(self, path):
        with open(os.path.join(os.path.dirname(self.path), path), encoding="utf-8") as f:
            for m in FENCE.finditer(f.read()):
                self.file(m[1], m[4])

    def block(self, m):
        notes, _, language, text = m.groups()
        file = self.file(notes, text)
        if "<!-- not run: " in notes or "<!-- synopsis -->" in notes:
            return m[0]
        if language == "console":
            return m[0].replace(text, self.console(m.start(), text)) if text else m[0]
        self.nobody_runs(m.start(), text, file)
        return m[0]

    def nobody_runs(self, at, text, file):
        for line in [] if file else text.splitlines():
            if OURS.match(line.strip()):
                self.fault(at, f"no test runs this: {line.strip()}")

    def draw(self):
        """Runs the commands that the document does not show; the names of the pictures."""
        self.drawn = set()
        for m in re.finditer(r"<!-- draw: (.*?) -->", self.text):
            status, printed = self.execute(m[1])
            self.drawn.update(re.findall(r"\S+\.svg", m[1]))
            if status or printed:
                self.fault(m.start(), "\n".join([f"{m[1]}: exit status {status}", *printed[:LINES]]))

    @staticmethod
    def equal(made, kept):
        with open(made, "rb") as a, open(kept, "rb") as b:
            return a.read() == b.read()

    def pictures(self):
        for m in re.finditer(r"!\[.*?\]\(([\w./-]+\.svg)\)(?!<!-- not drawn: \S)", self.text):
            made = os.path.join(self.folder, os.path.basename(m[1]))
            kept = os.path.join(os.path.dirname(self.path), m[1])
            if not os.path.exists(made):
                self.fault(m.start(), f"no command makes {m[1]}")
            elif not os.path.exists(kept) or not (self.equal(made, kept) if os.path.basename(m[1]) in self.drawn else words(made) == words(kept)):
                self.fault(m.start(), f"{m[1]} is not what tilec draws now")
            yield made, kept

    def run(self):
        for path in re.findall(r"<!-- with: (\S+) -->", self.text):
            self.files_of(path)
        self.changed = FENCE.sub(self.block, self.text)
        plain = FENCE.sub(lambda m: "\n" * m[0].count("\n"), self.text)  # line numbers stay
        for m in re.finditer(r"(?:^ {4}.*\n)+", plain, re.M):  # indented blocks
            if not re.search(r"<!-- (?:not run: [^\n]*|synopsis) -->\s*\Z", plain[:m.start()]):
                self.nobody_runs(m.start(), m[0], None)
        self.draw()
        self.kept = list(self.pictures())

    def write(self):
        with open(self.path, "w", encoding="utf-8") as f:
            f.write(self.changed)
        for made, kept in self.kept:
            if os.path.exists(made):
                os.makedirs(os.path.dirname(kept), exist_ok=True)
                shutil.copyfile(made, kept)


def words(path):
    """The words of a picture's texts, without numbers: an axis may have other marks another time."""
    texts = xml.dom.minidom.parse(path).getElementsByTagName("text")
    said = ["".join(n.data for n in t.childNodes if n.nodeType == n.TEXT_NODE) for t in texts]
    return sorted({re.sub(r"[\d.]+", "N", text) for text in said} - {"N"})


def install(build, scratch):
    prefix = os.path.join(scratch, "prefix")
    p = subprocess.run(["cmake", "--install", build, "--prefix", prefix], capture_output=True, text=True)
    if p.returncode:
        sys.exit(p.stdout + p.stderr)
    return prefix


def environment(source, scratch, prefix):
    lib = next(d for d, _, names in os.walk(prefix) if "libtile.a" in names)
    stand_in = os.path.join(scratch, "stand_in")
    os.makedirs(stand_in)
    os.symlink(sys.executable, os.path.join(stand_in, "python3"))  # the one that has NumPy
    path = [stand_in, os.path.join(prefix, "bin"), os.environ["PATH"], os.path.join(source, "tools", "docs")]
    if not shutil.which("pkg-config"):  # as it would answer
        with open(os.path.join(stand_in, "pkg-config"), "w", encoding="utf-8") as f:
            f.write(f"#!/bin/sh\necho '{' '.join(pc_flags(prefix, os.path.relpath(lib, prefix)))}'\n")
        os.chmod(os.path.join(stand_in, "pkg-config"), 0o755)
    return {**os.environ, "PATH": os.pathsep.join(path), "HOME": scratch, "TILE_CACHE": os.path.join(scratch, "cache"), "TILE_THREADS": "2",
            "LD_LIBRARY_PATH": lib, "CMAKE_PREFIX_PATH": prefix, "PKG_CONFIG_PATH": os.path.join(lib, "pkgconfig"), "COLUMNS": "100",
            "PYTHONPATH": os.path.join(source, "python"), "TILE_LIBRARY": os.path.join(lib, "libtilec.so"), "PYTHONDONTWRITEBYTECODE": "1",
            "CMAKE_GENERATOR": "Ninja", "LC_ALL": "C.UTF-8", "SOURCE": source}


def self_test(scratch):
    shutil.rmtree(scratch, ignore_errors=True)
    os.makedirs(scratch)
    page = os.path.join(scratch, "page.md")
    cases = {  # a block, and whether it has a fault
        "```console\n$ echo a; echo 3.5 ms\na\n17 ms\n```\n": False,
        "```console\n$ printf 'a\\nb\\nc\\n'\na\n...\nc\n```\n": False,
        "```console\n$ echo one 7 two\none ... two\n```\n": False,
        "```console\n$ false # exit status 1\n```\n": False,
        "`x`:\n\n```tile\ntilec\n```\n\n```console\n$ cat x\ntilec\n```\n": False,
        "<!-- not run: it takes an hour -->\n```console\n$ exit 3\n```\n": False,
        "```console\n$ echo 3.5 ms; echo 80%\n17 us\n9.1%\n```\n": False,
        "```console\n$ echo 3.5 ms\n3.5 GB/s\n```\n": True,
        "```console\n$ echo 35\n36\n```\n": True,
        "```console\n$ printf 'a\\nb\\n'\nb\n...\n```\n": True,
        "```console\n$ false\n```\n": True,
        "```console\n$ true # exit status 1\n```\n": True,
        "```sh\ntilec run k.tile\n```\n": True,
        "    tilec run k.tile\n": True,
        "<!-- not run: it takes an hour -->\n\n    tilec run k.tile\n": False,
        "<!-- not run: it takes an hour -->\n\nText.\n\n    tilec run k.tile\n": True,
        "<!-- a --> \n\n```console\n$ echo a\nb\n```\n\n<!-- not run: it takes an hour -->\n```console\n$ exit 3\n```\n": True,
        "![speed](gone.svg)\n": True,
        "![speed](gone.svg)<!-- not drawn: it takes hours -->\n": False,
        "<!-- draw: mkdir p; echo '<svg/>' | tee p/made.svg > made.svg -->\n![x](p/made.svg)\n": False,
        "<!-- draw: echo '<svg></svg>' > made.svg -->\n![x](p/made.svg)\n": True,
    }
    wrong = 0
    for text, bad in cases.items():
        with open(page, "w", encoding="utf-8") as f:
            f.write(text)
        p = Page(page, scratch, dict(os.environ))
        p.run()
        if bool(p.faults) != bad:
            wrong += 1
            print("self-test failed on", repr(text), p.faults)
    print(f"{len(cases)} cases, {wrong} wrong")
    return 1 if wrong else 0


def main(args):
    if args[0] == "--self-test":
        return self_test(args[1])
    write = args[0] == "--write"
    keep = args[1] if args[0] == "--keep" else None
    source, build, scratch, *names = args[1 if write else 2 if keep else 0:]
    shutil.rmtree(scratch, ignore_errors=True)
    os.makedirs(scratch)
    where = environment(source, scratch, install(build, scratch))
    count, faults = 0, []
    names = names or sorted(p for p in tracked(source) if p.endswith(".md"))
    for i, name in enumerate(names):
        folder = keep or os.path.join(scratch, str(i))
        os.makedirs(folder, exist_ok=True)
        page = Page(os.path.join(source, name), folder, where)
        page.run()
        count += page.count
        faults += page.faults
        if write:
            page.write()
    print("\n".join([*faults, f"{len(names)} documents, {count} commands, {len(faults)} faults"]))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
