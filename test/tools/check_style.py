#!/usr/bin/env python3
"""House rules that a program can check. One line per broken rule, then "N broken rules"; exit 1 if any.

    check_style.py [ROOT] [--functions] [--assertions]

--functions: also list the functions over 60 lines, longest first. --assertions: also count assertions per 1,000 lines of C, by package.

Rules: no file over 1500 lines; C within 100 columns but for .def files and tables between "clang-format off" and "on"; no tabs or blanks at line ends; nothing left from a merge; nothing at the top level but what belongs there; no
machine paths or package hosts; no printing, exiting or aborting in the libraries, no environment but by
secure_getenv, no program but by its path; no default in a switch over an enumeration of ours, so that a new row stops the
build wherever it needs a decision (code that looks for a few rows tests for them, or has a table); numbers and letters in no locale's way in libraries and tools; file names unique among sources;
no static function of a library called begin, finish or number_of, without its object; every row of diags.def has a test in test/frontend/diags or test/ir; every pass has its lit folder; names of lit tests say what is tested; texts of conformance kernels are never patched.
"""
import os
import re
import subprocess
import sys

MAX_LINES = 1500
COLUMNS = 100
ROW_COLUMNS = 120  # of the rows of test/conformance, so that their kernels can be read
SMELL = 60
TOP = set("""CMakeLists.txt frontend ir passes codegen runtime stdlib examples test README.md tools bootstrap LICENSE
             python .ci .github .dockerignore .clang-format .gitignore""".split())
# Pieces, so that this file does not contain what it forbids.
FORBIDDEN = ["/wo" + "rk/", "/ro" + "ot/", "/home" + "/", "deb" + ".debian.org", "pypi" + ".org", "snapshot" + ".debian"]
ALLOWED = {
    ("ir/support/guard.c", "abort"),  # a fault outside every guard: there is no way back
    ("codegen/target/llvm.c", "abort"),      # LLVM's fatal error in the host's own use of LLVM
    ("runtime/status.c", "abort"),  # a broken invariant, in debug builds alone
}
LIBRARIES = ("ir/", "frontend/", "passes/", "codegen/", "runtime/")
CALLS = re.compile(r"(?<![\w.>])(printf|puts|putchar|exit|_exit|abort|assert|perror|getenv|system|popen|posix_spawnp|exec[lv]pe?|mktemp|tmpnam)\s*\(")
# What follows the host's locale; ir/support/number.h and ir/support/ascii.h do not.
LOCAL_CALLS = re.compile(r"(?<![\w.>])(strto(?:d|f|ld)(?:_l)?|atof|setlocale|localeconv|strn?casecmp|"
                         r"is(?:alpha|alnum|digit|space|xdigit|upper|lower|punct|print|cntrl|graph|blank)|to(?:upper|lower))\s*\(")
FLOAT_FORMAT = re.compile(r"(?<!%)(?:%%)*%[-+ #0']*(?:\*|\d+)?(?:\.(?:\*|\d*))?l?L?[aefgAEFG](?![a-z0-9_])")
NUMBER_CALL = re.compile(r"(?:TL_NUMBER|tl_number_format)\((?:[^()\"]|\([^()]*\))*$")
OWN_ROW = re.compile(r"(?!LLVM|TL_TOK_|R_X86_|R_AARCH64_|R_REL|R_ABS)[A-Z][A-Z0-9_]+")
BARE_VERBS = re.compile(r"^static [^;=]*?\b(begin|finish|number_of)\(", re.M)
LOCALE_HOME = ("ir/support/number.h", "ir/support/ascii.h")
EMPTY_NAMES = ("all", "basic", "cases", "forms", "long", "main", "misc", "mixed", "more", "not", "other", "simple", "small", "test", "various", "ways")
CODE = (".c", ".h", ".re", ".y", ".def", ".py", ".sh", ".tile", ".tir", ".test", ".txt", ".cmake", ".in")


def tracked(root):
    out = subprocess.run(["git", "-C", root, "ls-files"], capture_output=True, text=True)
    if out.returncode == 0:
        return [p for p in out.stdout.split("\n") if p and os.path.exists(os.path.join(root, p))]
    found = []
    for folder, dirs, names in os.walk(root):
        dirs[:] = [d for d in dirs if not d.startswith("build") and d not in (".git", "__pycache__")]
        found += [os.path.relpath(os.path.join(folder, n), root) for n in names]
    return found


def strip_comments(text):
    """C text with comments and strings blanked, line numbers kept."""
    pattern = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
    return pattern.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)


def long_lines(path, text):
    """Numbers of lines over COLUMNS in C, outside of tables that are aligned by hand."""
    free = False
    for i, line in enumerate(text.split("\n"), 1):
        if "clang-format o" in line:
            free = "clang-format off" in line
        elif len(line) > COLUMNS and not free:
            yield i


def open_switches(code):
    """Lines of each default of a switch over an enumeration of ours; those of characters, tokens and others' numbers may have one."""
    for m in re.finditer(r"\bdefault\s*:", code):
        depth, start = 0, m.start()
        while start > 0 and depth <= 0:
            start -= 1
            depth += (code[start] == "{") - (code[start] == "}")
        outer = re.sub(r"\{[^{}]*\}", "", code[start + 1:m.start()])
        if any(OWN_ROW.fullmatch(row) for row in re.findall(r"\bcase\s+(\w+)\s*:", outer)):
            yield code.count("\n", 0, m.start()) + 1


def check_file(path, text):
    if path.endswith((".c", ".h", ".cc", ".cpp", ".re", ".y")):
        for i in long_lines(path, text):
            yield f"{path}:{i}: over {COLUMNS} columns"
    lines = text.split("\n")
    if path.startswith("test/") and path.endswith((".tile", ".tir", ".test")) and os.path.basename(path).split(".")[0] in EMPTY_NAMES:
        yield f"{path}: a name that does not say what is tested"
    for i, line in enumerate(lines, 1):
        if path.startswith("test/conformance/") and path.endswith(".py"):
            if len(line) > ROW_COLUMNS:
                yield f"{path}:{i}: over {ROW_COLUMNS} columns"
            if re.search(r"\b[A-Z][A-Z_]+\.replace\(", line):
                yield f"{path}:{i}: a kernel's text is patched"
    if len(lines) > MAX_LINES and path.endswith((".c", ".h", ".re", ".y", ".py", ".def")):
        yield f"{path}: {len(lines)} lines, more than {MAX_LINES}"
    for i, line in enumerate(lines, 1):
        for bad in FORBIDDEN:
            if bad in line:
                yield f"{path}:{i}: names a machine path or package host ({bad})"
        if line.startswith(("<" * 7 + " ", ">" * 7 + " ")):
            yield f"{path}:{i}: left from a merge"
        if path.endswith((".c", ".h", ".re", ".y", ".def", ".py")):
            if "\t" in line:
                yield f"{path}:{i}: tab"
            if line != line.rstrip():
                yield f"{path}:{i}: blanks at the end of the line"
    if path.endswith((".c", ".h", ".re", ".y")) and path.startswith(LIBRARIES + ("tools/",)) and path not in LOCALE_HOME:
        yield from check_locale(path, text)
    if path.endswith((".c", ".re", ".y")) and path.startswith(LIBRARIES):
        code = strip_comments(text)
        for line in open_switches(code):
            yield f"{path}:{line}: a default in a switch over an enumeration of ours, where a new row must stop the build"
        for m in BARE_VERBS.finditer(code):
            yield f"{path}:{code.count(chr(10), 0, m.start()) + 1}: {m.group(1)} of what?"
        for m in CALLS.finditer(code):
            if (path, m.group(1)) not in ALLOWED:
                yield f"{path}:{code.count(chr(10), 0, m.start()) + 1}: {m.group(1)} in a library"


def check_locale(path, text):
    """Numbers and letters are read and written by number.h and ascii.h, whatever the host's locale is."""
    code = strip_comments(text)
    for m in LOCAL_CALLS.finditer(code):
        yield f"{path}:{code.count(chr(10), 0, m.start()) + 1}: {m.group(1)} follows the locale (ir/support/number.h, ascii.h)"
    for m in re.finditer(r'"(?:\\.|[^"\\\n])*"', text):
        if FLOAT_FORMAT.search(m.group()) and not NUMBER_CALL.search(text[max(0, m.start() - 200):m.start()]) and code[m.start()] == " ":
            if not text[text.rfind("\n", 0, m.start()) + 1:m.start()].lstrip().startswith(("*", "/*", "//")):
                yield f"{path}:{text.count(chr(10), 0, m.start()) + 1}: a number that follows the locale: TL_NUMBER of ir/support/number.h"


def check_top(paths):
    for name in sorted({p.split("/")[0] for p in paths} - TOP):
        yield f"{name}: not a thing of the top level"


def check_unique_names(paths):
    seen = {}
    for path in paths:
        name = os.path.basename(path)
        if path.startswith(LIBRARIES + ("tools/",)) and name.endswith((".c", ".h", ".re", ".y", ".def")):
            if name in seen:
                yield f"{path}: same file name as {seen[name]}"
            seen[name] = path


def check_diags(root, paths):
    """Every id, or a warning's name, stands in a test's CHECK line, so its text was seen at least once."""
    with open(os.path.join(root, "ir/support/diags.def"), encoding="utf-8") as f:
        text = f.read()
    ids = re.findall(r"^DIAG\((\w+),", text, re.M) + re.findall(r'^WARN\(\w+, "([^"]+)"', text, re.M)
    seen = set()
    for path in paths:
        if path.startswith("test/") and path.endswith((".tile", ".tir", ".test")):
            with open(os.path.join(root, path), encoding="utf-8", errors="replace") as f:
                for line in f:
                    if "CHECK" in line or "RUN" in line:
                        seen.update(re.findall(r"E\d{4}|(?<=\[)[a-z-]+(?=\])", line))
    for ident in ids:
        if ident not in seen:
            yield f"ir/support/diags.def: {ident} has no test in test/frontend/diags"


def check_passes(root, paths):
    with open(os.path.join(root, "passes/passes.def"), encoding="utf-8") as f:
        names = re.findall(r'^(?:MODULE_)?PASS\(\w+,\s*"([^"]+)"', f.read(), re.M)
    for name in names:
        if not any(p.startswith(f"test/passes/{name}/") for p in paths):
            yield f"passes/passes.def: {name} has no tests in test/passes/{name}"


def functions(path, text):
    """(lines, name, line): a function starts where a line opens at column 0 with `{` or ends a definition with it."""
    code = strip_comments(text).split("\n")
    start = None
    for i, line in enumerate(code):
        if line == "{" or (start is None and re.match(r"^[A-Za-z].*\)\s*\{$", line)):
            start = i
        elif line == "}" and start is not None:
            head = next((code[j] for j in range(start, max(start - 12, -1), -1) if re.search(r"\w\s*\(", code[j])), "?")
            yield i - start + 1, re.sub(r"\s*\(.*", "", head).split()[-1].lstrip("*") if "(" in head else "?", start + 1
            start = None


def report_functions(root, paths):
    rows = []
    for path in paths:
        if path.endswith((".c", ".re", ".y")):
            with open(os.path.join(root, path), encoding="utf-8") as f:
                rows += [(n, f"{path}:{line}", name) for n, name, line in functions(path, f.read())]
    for n, place, name in sorted(rows, reverse=True):
        if n > SMELL:
            print(f"{n:5} lines  {name}  {place}")
    sizes = sorted(n for n, _, _ in rows) or [0]
    print(f"{len(rows)} functions, median {sizes[len(sizes) // 2]} lines, longest {sizes[-1]}, "
          f"{sum(n > SMELL for n in sizes)} over {SMELL}")


# TL_UNREACHABLE says that a line is never reached; the last two are the runtime's.
ASSERTION = re.compile(r"(?<!define )\b(TL_ASSERT|TL_UNREACHABLE|_Static_assert|TL_INVARIANT|TL_INVARIANT_OR|TL_INVARIANT_VOID|TL_DEBUG_INVARIANT|TL_EMU_INVARIANT)\(")


def report_assertions(root, paths):
    all_lines = all_found = 0
    for package in LIBRARIES:
        lines = found = 0
        for path in paths:
            if path.startswith(package) and path.endswith((".c", ".re", ".y")):
                with open(os.path.join(root, path), encoding="utf-8") as f:
                    text = f.read()
                lines += text.count("\n")
                found += len(ASSERTION.findall(strip_comments(text)))
        print(f"{package:10} {found:4} assertions in {lines:6} lines, {1000 * found / max(lines, 1):4.1f} per 1,000")
        all_lines, all_found = all_lines + lines, all_found + found
    print(f"{'all':10} {all_found:4} assertions in {all_lines:6} lines, {1000 * all_found / max(all_lines, 1):4.1f} per 1,000")


def main(args):
    root = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
    rest = [a for a in args if not a.startswith("--")]
    root = rest[0] if rest else root
    paths = tracked(root)
    if "--functions" in args:
        report_functions(root, paths)
    if "--assertions" in args:
        report_assertions(root, paths)
    broken = list(check_top(paths)) + list(check_unique_names(paths))
    for path in paths:
        if path.endswith(CODE) or os.path.basename(path) in ("bootstrap", "run", "README.md"):
            with open(os.path.join(root, path), encoding="utf-8", errors="replace") as f:
                broken += check_file(path, f.read())
    broken += list(check_diags(root, paths)) + list(check_passes(root, paths))
    for line in broken:
        print(line)
    print(f"{len(broken)} broken rules")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
