"""Pages of the public C headers, from Doxygen's XML: declarations in the header's order, each with the comment above it.

A declaration without a comment of its own that directly follows another belongs to that one's, as in the header. Structs and enums are shown
as they stand there. `/* ---- NAME ---- */` makes a section. Macros whose names end with `_`, and PRIVATE, are not shown.
"""
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET

HEADERS = ["runtime/include/tile.h", "runtime/include/tile_jit.h", "runtime/include/tile_xla.h", "runtime/include/tile_collectives.h", "codegen/include/tilec.h", "codegen/include/tilec_report.h",
           "stdlib/include/tile_kernels.h"]
PRIVATE = {"TILE_COUNT", "TILE_FIRST8", "TILE_PAD8", "TILE_HAS_C_F16", "TILE_HAS_C_BF16", "TILE_DTYPE_OF", "TILE_API", "TILEC_API", "TILE_0_1", "TILEC_0_1"}
MISSING = "# {name}\n\nDoxygen was not there when this page was made. The comments of `{path}` hold what it would show.\n"


def doxygen_xml(source, folder, program):
    os.makedirs(folder, exist_ok=True)
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "Doxyfile"), encoding="utf-8") as f:
        settings = f.read()
    headers = " ".join(f'"{h}"' for h in HEADERS)  # from the source's folder, whose path may have spaces, as a filter's may not
    filter_path = os.path.relpath(os.path.join(here, "plain_comments.py"), source)
    settings += f'INPUT = {headers}\nOUTPUT_DIRECTORY = "{folder}"\nINPUT_FILTER = "{sys.executable} {filter_path}"\n'
    p = subprocess.run([program, "-"], input=settings, capture_output=True, text=True, cwd=source)
    if p.returncode or p.stderr.strip():
        sys.exit(f"doxygen: {p.stdout}{p.stderr}")


def text_of(node):
    """A description as Markdown."""
    out = []
    for para in node.iter("para") if node is not None else []:
        words = ""
        for kind, text in pieces(para):
            if kind == "code":
                out += [listed(words), f"```c\n{text}```"]
                words = ""
            else:
                words += text
        out.append(listed(words))
    return "\n\n".join(text for text in out if text)


def pieces(node):
    """("words" or "code", text) of a paragraph, in order."""
    if node.tag == "verbatim":
        yield "code", (node.text or "").strip("\n") + "\n"
    elif node.tag == "programlisting":
        yield "code", "".join("".join(" " if n.tag == "sp" else n.text or "" for n in line.iter()) + "\n" for line in node.iter("codeline"))
    else:
        yield "words", escape(node.text)
        for child in node:
            yield from pieces(child)
            yield "words", escape(child.tail)


def escape(text):
    return re.sub(r"([*<>|\[\]\\]|(?<!\w)_|_(?!\w))", r"\\\1", text or "")


def listed(words):
    """`TILE_IO: why.  TILE_COMPILE: why.` as a list, below what comes before."""
    first, *rest = re.split(r"(?:^|(?<=[.;]))\s*((?:TILEC?_[A-Z_]+(?:, )?)+): ", " ".join(words.split()))
    items = [f"* **{name}**: {text}" for name, text in zip(rest[::2], rest[1::2])]
    return "\n\n".join(part for part in (first.strip(), "\n".join(items)) if part)


class Header:
    def __init__(self, path, source, folder):
        with open(os.path.join(source, path), encoding="utf-8") as f:
            self.lines = f.read().splitlines()
        self.name = os.path.basename(path)
        escaped = self.name.replace("_", "__").replace(".", "_8")
        root = ET.parse(os.path.join(folder, "xml", escaped + ".xml")).getroot()
        self.compound = root.find("compounddef")
        self.structs = {}
        for inner in self.compound.findall("innerclass"):
            struct = ET.parse(os.path.join(folder, "xml", inner.get("refid") + ".xml")).getroot().find("compounddef")
            self.structs[inner.text] = struct

    def members(self):
        """(line, name, declaration, comment), in the header's order; the typedef of a struct or an enum is that."""
        found = {}
        for m in self.compound.iter("memberdef"):
            name, line = m.findtext("name"), int(m.find("location").get("line"))
            kind = m.get("kind")
            if kind == "typedef" and (name in self.structs or f"}} {name};" in "\n".join(self.lines[line - 1:line])):
                continue  # comes as the struct or enum itself
            declaration = {"function": self.function, "define": self.define}.get(kind, self.slice)(m, line)
            found[line] = (line, name, declaration, self.comment(m))
        for name, struct in self.structs.items():
            line = int(struct.find("location").get("line"))
            found[line] = (line, name, self.slice(struct, line), self.comment(struct))
        return [found[line] for line in sorted(found)]

    def comment(self, node):
        return "\n\n".join(t for t in (text_of(node.find("briefdescription")), text_of(node.find("detaileddescription"))) if t)

    def function(self, m, line):
        words = f"{m.findtext('definition')}{m.findtext('argsstring')};"
        words = re.sub(r"\* (?=\w)", "*", " ".join(words.split()))
        return wrapped(words)

    def define(self, m, line):
        params = [p.findtext("defname") or "" for p in m.findall("param")]
        value = "".join(m.find("initializer").itertext()).strip() if m.find("initializer") is not None else ""
        value = " ".join(value.replace("\\\n", " ").split())
        if len(value) > 70 and value.startswith("{"):
            value = "{ ... }"
        return f"#define {m.findtext('name')}{'(' + ', '.join(params) + ')' if params else ' ' + value}"

    def slice(self, _, line):
        """The lines of a declaration, up to the semicolon outside of braces."""
        depth, out = 0, []
        for text in self.lines[line - 1:]:
            out.append(text)
            code = re.sub(r"/\*.*?\*/", "", text)
            depth += code.count("{") - code.count("}")
            if depth == 0 and (";" in code or not text.endswith("\\") and text.lstrip().startswith("#")):
                return "\n".join(out)
        raise ValueError(f"{self.name}:{line}: no end")

    def groups(self):
        """Lists of members under one comment."""
        out, left_over, end = [], "", 0
        for line, name, declaration, comment in self.members():
            if name.endswith("_") or name in PRIVATE:
                left_over = comment or left_over
                continue
            comment, left_over = comment or left_over, ""
            if comment or not out or not self.directly_follows(end, line):
                out.append([line, [], comment])
            out[-1][1].append((name, declaration))
            end = line + declaration.count("\n")
        return out

    def directly_follows(self, end, line):
        return all(text.strip() for text in self.lines[end:line - 1])

    def sections(self):
        """(line, heading and text) of each /* ---- NAME ---- ... */"""
        found = []
        for m in re.finditer(r"^/\* ---- (.*?) ----(.*?)\*/", "\n".join(self.lines), re.S | re.M):
            text = re.sub(r"^ \* ?", "", m[2], flags=re.M).strip("\n")
            text = re.sub(r"(?:^    .*\n?)+", lambda code: f"```c\n{code[0]}```\n", text + "\n", flags=re.M).strip()
            found.append((m.string.count("\n", 0, m.start()) + 1, f"\n## {m[1][0].upper()}{m[1][1:]}\n\n{text}\n"))
        return found

    def page(self):
        sections = self.sections()
        page = f"# {self.name}\n\n{self.comment(self.compound)}\n" + ("\n## Basics\n" if sections else "")
        for line, members, comment in self.groups():
            while sections and sections[0][0] < line:
                page += sections.pop(0)[1]
            names = ", ".join(re.findall(r"\w+", declaration)[1] if name.startswith("@") else name for name, declaration in members)
            code = "\n".join(declaration for _, declaration in members)
            page += f"\n### {names if len(names) < 90 else names[:90].rsplit(',', 1)[0] + ', ...'}\n\n```c\n{code}\n```\n\n{comment}\n"
        return page if "\n## " in page else page.replace("\n### ", "\n## ")


def wrapped(words, width=96):
    """A prototype in lines, its parameters aligned."""
    if len(words) <= width:
        return words
    indent = words.index("(") + 1
    lines, rest = [words[:indent]], words[indent:].split(", ")
    for i, part in enumerate(rest):
        part += ", " if i < len(rest) - 1 else ""
        if len(lines[-1]) + len(part) > width:
            lines.append(" " * indent)
        lines[-1] += part
    return "\n".join(line.rstrip() for line in lines)


def pages(source, folder, program):
    """(name, text) of each header's page."""
    if program:
        doxygen_xml(source, folder, program)
    for path in HEADERS:
        name = os.path.basename(path)
        yield name.replace(".", "_"), Header(path, source, folder).page() if program else MISSING.format(name=name, path=path)
