#!/usr/bin/env python3
"""What the documents say, against the programs and the tables of the tree.

    check_statements.py ROOT BIN               one line per false statement, then "N documents, N statements, N false"
    check_statements.py ROOT BIN --self-test   breaks a statement of each kind and shows that it is seen

BIN is the folder of tilec and tile-opt. The checks are the functions in CHECKS; the first line of each says what it compares.
test/STATE.md's lists "GPU code uses" and "Limits" say where each item is shown, in a comment `<!-- shown: ITEM... -->`:
    PATH, PATH:TEXT      a tracked file or folder; TEXT is in the file
    absent:FOLDER:TEXT   no file of the folder contains TEXT (but for Markdown)
    NAME                 a diagnostic: E0303, no-effect
    commands             the names in the item are the sub-commands of tilec
    no-command:NAME      NAME is not one of them
    unproven             proven.def has no rows: no GPU has run anything
"""
import os
import re
import subprocess
import sys

from check_docs import tracked

SOURCES = (".c", ".h", ".cc", ".cpp", ".def", ".re", ".y", ".py", ".cmake", ".txt", ".in")
# Options of programs that are not ours.
FOREIGN = set("""--build --install --prefix --target --cflags --libs --output-on-failure --filter --jit --overlay-ports --system-site-packages""".split())
ROOMS = ("ir", "frontend", "passes", "codegen", "runtime", "tools")


class World:
    def __init__(self, root, binary):
        self.root, self.bin = root, binary
        self.paths = tracked(root)
        self.cache = {}
        self.docs = [p for p in self.paths if p.endswith(".md")]
        self.help = {p: self.run(p, "--help") for p in ("tilec", "tile-opt", "tile-reduce")}
        self.targets = self.run("tilec", "targets").split("\n\n")[0].split()
        self.commands = self.listed("nosuchcommand")
        self.help["tilec"] += "".join(self.run("tilec", "help", name) for name in self.commands)
        self.stages = self.listed("-", "--emit=nosuchstage")
        self.warnings = sorted(set(re.findall(r'^WARN\(\w+, "([^"]+)"', self.text("ir/support/diags.def"), re.M)))
        self.errors = set(re.findall(r"^(?:DIAG|WARN)\((\w+),", self.text("ir/support/diags.def"), re.M))
        self.passes = re.findall(r'^PASS\(\w+,\s*"([^"]+)"', self.text("passes/passes.def"), re.M)
        self.words = set()
        for p in self.paths:
            if p.endswith(SOURCES) and os.path.basename(p) != "check_statements.py":
                self.words.update(re.findall(r"\b(?:tl|tile|tilec|TL|TILE|TILEC)_\w+", self.text(p)))

    def run(self, program, *args):
        p = subprocess.run([os.path.join(self.bin, program), *args], input="", capture_output=True, text=True)
        return p.stdout + p.stderr

    def listed(self, *args):
        """The words that tilec lists where it does not know one."""
        return re.search(r"expected one of:?\s+(.*)", self.run("tilec", *args))[1].replace(",", "").split()

    def text(self, path):
        if path not in self.cache:
            with open(os.path.join(self.root, path), encoding="utf-8", errors="replace") as f:
                self.cache[path] = f.read()
        return self.cache[path]

    def found(self, pattern, docs=None):
        """(document, line, match) of each match in the documents."""
        for path in docs or self.docs:
            text = self.text(path)
            for m in re.finditer(pattern, text, re.M):
                yield path, text.count("\n", 0, m.start()) + 1, m


def options(w):
    """Options in documents are those of our programs, or of a script that the document names."""
    ours = set(re.findall(r"(?<![\w-])--[a-z][\w-]*", "".join(w.help.values())))
    scripts = {}
    for path in w.docs:
        named = set(re.findall(r"[\w]+\.(?:py|sh)\b", w.text(path))) | {"bootstrap", "run", "pack", "host.c", "sequences.c", "output.c"}
        scripts[path] = "".join(w.text(p) for p in w.paths if os.path.basename(p) in named and not p.endswith("check_statements.py"))
    for path, line, m in w.found(r"(?<![\w-])--[a-z][\w-]*"):
        name = m.group()
        known = name in ours or name in FOREIGN or re.search(rf"{name}\b", scripts[path])
        yield known, f"{path}:{line}: no program or script has {name}"


def warning_options(w):
    """-Wno-NAME and the like name warnings."""
    for path, line, m in w.found(r"(?<![\w-])-W(?:no-|error=)?([a-z](?:[a-z-]*[a-z])?)(?![\w-])"):
        yield m[1] in w.warnings + ["error", "all"], f"{path}:{line}: {m.group()}: no warning has that name"


def warnings_described(w):
    """LANGUAGE.md describes every warning."""
    for name in w.warnings:
        yield f"`{name}`" in w.text("frontend/LANGUAGE.md"), f"frontend/LANGUAGE.md: the warning {name} is missing"


def targets(w):
    """Targets, CPU levels and emulated devices in documents exist."""
    for path, line, m in w.found(r"\b(?:sm_\d+\w*|gfx\d\w+(?:-[\w-]*generic)?|cpu:[a-z][\w-]*(?:\.\d[\w-]*)?|x86-64-v\d|emu:[a-z]\w+(?:-[\w-]*generic)?)"):
        name = re.sub(r"^emu:", "", m.group())
        name = "cpu:" + name if name.startswith("x86") else name
        yield name in w.targets, f"{path}:{line}: no target {name}"


def targets_listed(w):
    """README.md's table of devices has every target, and the row of emu exactly the GPUs."""
    text = w.text("README.md")
    for name in w.targets:
        short = name.replace("cpu:", "")
        yield re.search(rf"`[^`\n]*\b{short}\b", text) or short == "native", f"README.md: the target {name} is missing"
    row = re.search(r"^\| `emu:TARGET`.*?runs for `([^`]+)`", text, re.M)
    gpus = [t for t in w.targets if re.match("sm_|gfx", t)]
    yield row and row[1].split() == gpus, f"README.md: emu:TARGET runs for {' '.join(gpus)}"


def stages(w):
    """Stages after --emit exist, and --help lists them all."""
    for path, line, m in w.found(r"--emit[= ]([a-z]+)"):
        yield m[1] in w.stages, f"{path}:{line}: no stage {m[1]}"
    said = re.search(r"^ *--emit STAGE.*", w.help["tilec"], re.M).group().split()
    yield set(w.stages) <= set(said), f"tilec --help: the stages are {' '.join(w.stages)}"


def commands(w):
    """`tilec WORD` is a sub-command."""
    for path, line, m in w.found(r"(?:`|^ {4}|^\$ |bin/)tilec ([a-z]+)(?![\w./:-])"):
        yield m[1] in w.commands, f"{path}:{line}: tilec has no sub-command {m[1]}"


def passes(w):
    """Passes after --passes and --skip exist."""
    for path, line, m in w.found(r"--(?:passes|skip|stop-after)=([a-z][\w,-]*)"):
        for name in m[1].split(","):
            yield name in w.passes, f"{path}:{line}: no pass {name}"


def identifiers(w):
    """Functions, macros and variables of ours that documents name are in the sources."""
    for path, line, m in w.found(r"(?<![/\w])(?:tl|tile|tilec|TL|TILE|TILEC)_\w*(\.\.\.)?"):
        name = m.group().rstrip(".")
        stem = re.split(r"(?<=_)[A-Z]{2,}$", name)[0] if name[0] == "t" else name  # tile_image_NAME
        known = any(x.startswith(stem) for x in w.words) if stem != name or m[1] or name.endswith("_") else name in w.words
        yield known, f"{path}:{line}: no {name} in the sources"


def environment(w):
    """runtime/README.md has every variable that the runtime reads."""
    for p in w.paths:
        if p.startswith("runtime/") and p.endswith(".c"):
            for name in re.findall(r'getenv\("(TILE_\w+)"\)', w.text(p)):
                yield f"`{name}" in w.text("runtime/README.md"), f"runtime/README.md: the variable {name} is missing"


def files(w):
    """Each source of a package is in its README's table, by its name or by its stem; sema.h lists files of the front end."""
    for p in w.paths:
        package = p.split("/")[0]
        if package not in ROOMS or not p.endswith((".c", ".h", ".def", ".re", ".y")):
            continue
        text = w.text(package + "/README.md") + (w.text("frontend/sema.h") if package == "frontend" else "")
        name = os.path.basename(p)
        named = re.search(rf"(?<![\w-]){re.escape(name)}\b|`{re.escape(name.rsplit('.', 1)[0])}[`*]", text)
        starred = any(name.startswith(s) for s in re.findall(r"(\w+)\*\.c", text))
        yield named or starred, f"{package}/README.md: {name} is missing"


def clauses(w):
    """References to clauses of LANGUAGE.md lead to one."""
    text = w.text("frontend/LANGUAGE.md")
    known = set(re.findall(r"^\* \[(\d+\.\d+)\]", text, re.M))
    for path, line, m in w.found(r"(?:(?<!\* )\[(\d+\.\d+)\](?!\()|\((\d\d\.\d+)\))", ["frontend/LANGUAGE.md"]):
        name = m[1] or m[2]
        yield name in known, f"{path}:{line}: no clause {name}"


def effects(w):
    """The clauses of what some GPUs alone follow name exactly these."""
    rows, text = w.text("frontend/effects.def"), w.text("frontend/LANGUAGE.md")
    for name, clause, words in (("MULTICAST", "8.17", "has an effect on"), ("ROLES", "6.8", "It takes effect on")):
        gpus = re.search(rf'^#define {name} +"([^"]*)"', rows, re.M)[1].split()
        said = re.search(rf"^\* \[{re.escape(clause)}\].*?{words}\s+((?:`\w+`(?:,\s+|\s+and\s+)?)+)", text, re.M | re.S)
        yield said and re.findall(r"`(\w+)`", said[1]) == gpus, f"frontend/LANGUAGE.md: {clause}: for {' '.join(gpus)}"


def image_version(w):
    """tile_image.h's comment has its version."""
    text = w.text("runtime/contract/tile_image.h")
    version = re.search(r"TILE_IMAGE_VERSION = (\d+)", text)[1]
    yield f"image, version {version}:" in text, f"runtime/contract/tile_image.h: the version is {version}"


def item_shown(w, item, bullet):
    kind, _, rest = item.partition(":")
    if kind == "absent":
        folder, _, text = rest.partition(":")
        return not any(text in w.text(p) for p in w.paths if p.startswith(folder + "/") and not p.endswith(".md"))
    if kind == "no-command":
        return rest not in w.commands
    if item == "commands":
        return set(re.findall(r"`(\w+)`", bullet)) - {"tilec"} == set(w.commands)
    if item == "unproven":
        return not re.search(r"^PROVEN\(", w.text("codegen/target/proven.def"), re.M)
    if item in w.errors or item in w.warnings:
        return True
    if rest:
        return kind in w.paths and rest in w.text(kind)
    return any(p == kind or p.startswith(kind + "/") for p in w.paths)


def shown(w):
    """Each item of test/STATE.md's lists of what GPU code uses and of limits is shown by something, and that holds."""
    text = w.text("test/STATE.md")
    for head in ("GPU code uses:", "Limits:"):
        part = re.search(rf"^{head}\n((?:[* ].*\n)+)", text, re.M)
        yield part, f"test/STATE.md: no list after '{head}'"
        for bullet in re.findall(r"^\* (?:.*\n)(?:  .*\n)*", part[1] if part else "", re.M):
            said = re.search(r"<!-- shown: (.*?) -->", bullet)
            yield said, f"test/STATE.md: nothing shows '{bullet[2:60]}...'"
            for item in said[1].split() if said else []:
                yield item_shown(w, item, bullet.split("<!--")[0]), f"test/STATE.md: '{bullet[2:50]}...': {item} does not hold"


CHECKS = [options, warning_options, warnings_described, targets, targets_listed, stages, commands, passes, identifiers, environment, files,
          clauses, effects, image_version, shown]
# check: document, what it says, a false version of it
BROKEN = {
    options: ("README.md", "--const B=1024 x=", "--constant B=1024 x="),
    warning_options: ("README.md", "# tilec:", "# -Wno-outerindex tilec:"),
    warnings_described: ("frontend/LANGUAGE.md", "`no-grid`", "`nogrid`"),
    targets: ("README.md", "sm_90a,gfx942", "sm_99a,gfx942"),
    targets_listed: ("README.md", "`sm_75 sm_80 sm_86 ", "`sm_75 sm_86 "),
    stages: ("codegen/README.md", "--emit=llvm", "--emit=llvmir"),
    commands: ("README.md", "$ tilec explain", "$ tilec walk"),
    passes: ("passes/PASSES.md", "--passes=cse", "--passes=gvn"),
    identifiers: ("runtime/README.md", "`tl_image_check`", "`tl_image_validate`"),
    environment: ("runtime/README.md", "`TILE_EMU_PERTURB", "`TILE_PERTURB"),
    files: ("codegen/README.md", "`ptx.c`", "`nvptx.c`"),
    clauses: ("frontend/LANGUAGE.md", "([9.15])", "([9.51])"),
    effects: ("frontend/LANGUAGE.md", "an effect on `sm_90a`,", "an effect on `sm_80`,"),
    image_version: ("runtime/contract/tile_image.h", "image, version ", "image, version 1"),
    shown: ("test/STATE.md", "`compile`, `run`, `explain`", "`compile`, `run`, `walk`, `explain`"),
}


def self_test(w):
    missed = 0
    for check, (path, old, new) in BROKEN.items():
        text = w.text(path)
        if old not in text:
            print(f"self-test: {path} does not say {old!r}")
            missed += 1
            continue
        before = {message for ok, message in check(w) if not ok}
        w.cache[path] = text.replace(old, new, 1)
        faults = [message for ok, message in check(w) if not ok and message not in before]
        print(f"{check.__name__}: {faults[0] if faults else 'NOT SEEN'}")
        missed += not faults
        w.cache[path] = text
    print(f"{len(CHECKS)} checks, {missed + len(set(CHECKS) - set(BROKEN))} not shown to fail")
    return 1 if missed else 0


def main(args):
    if len(args) < 2 or not os.access(os.path.join(args[1], "tilec"), os.X_OK):
        sys.exit("usage: check_statements.py SOURCE FOLDER [--self-test]; FOLDER has the programs: build/bin")
    w = World(args[0], os.path.abspath(args[1]))
    if args[2:] == ["--self-test"]:
        return self_test(w)
    count, faults = 0, []
    for check in CHECKS:
        for ok, message in check(w):
            count += 1
            if not ok:
                faults.append(message)
    for message in faults:
        print(message)
    print(f"{len(w.docs)} documents, {count} statements, {len(faults)} false")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
