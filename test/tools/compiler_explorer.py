#!/usr/bin/env python3
"""What Compiler Explorer would do with tools/editors/compiler-explorer, without it.

    compiler_explorer.py ROOT

Adds Tile to a stand-in for an instance (the lines that add.py looks for), reads the properties, runs each compiler's command line as the class makes
it, and looks at the output as the site's filters do: files, lines, labels. With a Node.js that reads TypeScript (22.18 or later) the class itself
makes the command lines, over a stand-in for its base; else they are read from its text.
"""
import json
import os
import re
import subprocess
import sys
import tempfile

# The keys of properties that an instance reads, by its document on adding a compiler.
KEYS = set("compilers defaultCompiler compilerType versionFlag versionRe includeFlag supportsBinary supportsBinaryObject supportsExecute demangler "
           "needsMulti groupName name exe options instructionSet".split())
INSTRUCTION_SETS = {"amd64", "aarch64", "ptx"}
FILES = {
    "types/languages.interfaces.ts": "export type LanguageKey =\n    | 'ada';\n",
    "lib/languages.ts": "const definitions: Record<LanguageKey, LanguageDefinition> = {\n    ada: {},\n};\n",
    "lib/compilers/_all.ts": "export {TIC2000} from './tic2000.js';\n",
    "lib/base-compiler.js": """export class BaseCompiler {
        constructor(info) { this.compiler = info; this.asm = 'plain'; }
        filename(name) { return name; }
        getIrOutputFilename(name) { return name.replace(/tile$/, 'll'); }
        generateIR(input, options) { return [...options, ...this.compiler.irArg, input]; }
    }""",
    "lib/parsers/asm-parser-ptx.js": "export class PTXAsmParser {}",
    "lib/compilers/argument-parsers.js": "export class BaseParser {}",
    "lib/compilers/run.mjs": """import {TileCompiler} from './tile.ts';
        const [output, input, set] = process.argv.slice(2), made = new TileCompiler({instructionSet: set}, {});
        const options = made.optionsForFilter({}, output);
        console.log(JSON.stringify({key: TileCompiler.key, options, ir: made.generateIR(input, options, {}, false, {}), plain: made.asm === 'plain'}));
    """,
}


def stand_in(root, folder):
    for name, text in FILES.items():
        os.makedirs(os.path.dirname(os.path.join(folder, name)), exist_ok=True)
        with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
            f.write(text)
    with open(os.path.join(folder, "package.json"), "w", encoding="utf-8") as f:
        f.write('{"type": "module"}')
    os.makedirs(os.path.join(folder, "etc/config"))
    for _ in range(2):
        subprocess.run([sys.executable, os.path.join(root, "tools/editors/compiler-explorer/add.py"), folder], check=True, stdout=subprocess.DEVNULL)
    texts = {}
    for name in list(FILES)[:3]:
        with open(os.path.join(folder, name), encoding="utf-8") as f:
            texts[name] = f.read()
    named = [t.lower().count("| 'tile'") + t.count(" tile: {") + t.count("{TileCompiler}") for t in texts.values()]
    print("added once:", named == [1, 1, 1])


def properties(path):
    with open(path, encoding="utf-8") as f:
        rows = [line.strip().split("=", 1) for line in f if "=" in line and not line.startswith("#")]
    for key, _ in rows:
        if key.split(".")[-1] not in KEYS:
            print("unknown key", key)
    return dict(rows)


def compilers_of(p):
    for group in p["compilers"].split(":"):
        yield from p[f"group.{group[1:]}.compilers"].split(":")


def reads_types():
    try:
        found = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return False
    major, minor = re.match(r"v(\d+)\.(\d+)", found).groups()
    return (int(major), int(minor)) >= (22, 18)


def command(folder, source, output, instructions):
    """The options of the class, for assembly and for LLVM IR."""
    with open(os.path.join(folder, "lib/compilers/tile.ts"), encoding="utf-8") as f:
        text = f.read()
    listed = re.search(r"return \[(.*), this\.filename\(outputFilename\)\];", text)[1]
    options = [*re.findall(r"'([^']*)'", listed), output]
    further = re.findall(r"'([^']*)'", re.search(r"irArg = \[(.*)\];", text)[1])
    file = source.replace(".tile", ".ll")
    ir = [*options, "-o", file, *further, source]
    if reads_types():
        p = subprocess.run(["node", "lib/compilers/run.mjs", output, source, instructions], cwd=folder, capture_output=True, text=True, check=False)
        made = json.loads(p.stdout or sys.exit(p.stderr))
        if made != {"key": "tile", "options": options, "ir": ir, "plain": instructions != "ptx"}:
            sys.exit(f"the class differs from what is read from its text: {made}")
    return options, ir


def faults_of_asm(text, instructions, lines):
    files = {n for n, a, b in re.findall(r'^\s*\.file\s+(\d+)\s+"([^"]+)"(?:\s+"([^"]+)")?', text, re.M) if re.search(r"example\.[^/]+$", b or a)}
    if not files:
        yield "no .file of the source"
    places = {int(line) for n, line in re.findall(r"^\s*\.loc\s+(\d+)\s+(\d+)\s+\d+", text, re.M) if n in files}
    if not places >= lines:
        yield f"lines {sorted(places)}, not {sorted(lines)}"
    label = r"^\.visible \.entry add_0" if instructions == "ptx" else r"^add[._]0:"
    if not re.search(label, text, re.M):
        yield "no label of the kernel"


def main(root):
    with tempfile.TemporaryDirectory(prefix="tile-explorer-") as folder:
        stand_in(root, folder)
        p = properties(os.path.join(folder, "etc/config/tile.defaults.properties"))
        with open(os.path.join(folder, "examples/tile/default.tile"), encoding="utf-8") as f:
            program = f.read()
        source, output = os.path.join(folder, "example.tile"), os.path.join(folder, "output.s")
        with open(source, "w", encoding="utf-8") as f:
            f.write(program)
        line = 1 + program[:program.index("out[i +:")].count("\n")
        names = list(compilers_of(p))
        print("default is listed:", p["defaultCompiler"] in names, "type:", p["compilerType"])
        faults = 0
        for name in names:
            exe, instructions = p[f"compiler.{name}.exe"], p.get(f"compiler.{name}.instructionSet", "")
            version = subprocess.run([exe, p["versionFlag"]], capture_output=True, text=True, check=True).stdout
            options, ir = command(folder, source, output, instructions)
            found = [] if re.search(p["versionRe"], version, re.I) else ["no version"]
            if instructions and instructions not in INSTRUCTION_SETS:
                found.append(f"instruction set {instructions}")
            own = p[f"compiler.{name}.options"].split()
            subprocess.run([exe, *options, *own, source], check=True)
            with open(output, encoding="utf-8") as f:
                found += faults_of_asm(f.read(), instructions, {line})
            subprocess.run([exe, *own, *ir], check=True)
            with open(source.replace(".tile", ".ll"), encoding="utf-8") as f:
                text = f.read()
            if not text.startswith("; ModuleID") or "!DILocation(line: %d" % line not in text:
                found.append("no LLVM IR with lines")
            print(f"{name}: {'; '.join(found) or 'assembly and LLVM IR with lines'}")
            faults += len(found)
        with open(source, "a", encoding="utf-8") as f:
            f.write("kernel broken(\n")
        wrong = subprocess.run([p[f"compiler.{names[0]}.exe"], *options, source], capture_output=True, text=True, check=False)
        print("errors have places:", bool(re.search(re.escape(source) + r":\d+:\d+: error", wrong.stderr)))
        print(f"{len(names)} compilers, {faults} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
