"""What a source declares: kernels, their parameters and documentation, read from the compiler's own print (--emit=ast)."""
from __future__ import annotations

import re
from typing import NamedTuple


class Parameter(NamedTuple):
    """kind: "view", "pointer", "scalar", "constant". type: "const f32[R, C]". default: a text, or None."""
    name: str
    kind: str
    type: str
    default: str | None


class Declaration(NamedTuple):
    name: str
    doc: str
    parameters: list[Parameter]
    clauses: list[str]


OPEN, CLOSE = "([{<", ")]}>"
KERNEL = re.compile(r"^kernel (\w+)\(", re.M)


def closing(text: str, start: int) -> int:
    """The place of the bracket that closes the one before `start`."""
    depth = 1
    for i in range(start, len(text)):
        depth += (text[i] in "([{") - (text[i] in ")]}")
        if depth == 0:
            return i
    raise ValueError("brackets do not match")


def split_list(text: str) -> list[str]:
    """At the commas outside of brackets."""
    parts, depth = [""], 0
    for c in text:
        depth += (c in "([{") - (c in ")]}")
        if c == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += c
    return [p.strip() for p in parts if p.strip()]


def parameter(text: str) -> Parameter:
    declared, _, default = text.partition(" = ")
    const = declared.startswith("const ")
    body = declared[6:] if const else declared
    if "[" in body:
        declared, bracket, axes = body.partition("[")
        element, name = declared.split()
        return Parameter(name, "view", ("const " if const else "") + element + bracket + axes, None)
    if "*" in body:
        return Parameter(body.partition("*")[2], "pointer", declared[: declared.index("*") + 1], None)
    kind, name = body.rsplit(" ", 1)
    return Parameter(name, "constant" if const else "scalar", kind, default or None)


def documentation(lines: list[str]) -> str:
    """The /// lines that end a text."""
    doc: list[str] = []
    while lines and lines[-1].startswith("///"):
        doc.insert(0, lines.pop()[3:].removeprefix(" "))
    return "\n".join(doc)


def read(printed: str) -> dict[str, Declaration]:
    """{name: Declaration} of a source as --emit=ast prints it."""
    found = {}
    for m in KERNEL.finditer(printed):
        end = closing(printed, m.end())
        body = printed.index("\n{", end)
        found[m[1]] = Declaration(
            m[1], documentation(printed[: m.start()].splitlines()), [parameter(p) for p in split_list(printed[m.end():end])],
            [line.strip() for line in printed[end + 1:body].splitlines() if line.strip()])
    return found


def describe(d: Declaration) -> str:
    """The text behind help(kernel)."""
    lines = [d.doc, ""] if d.doc else []
    for p in d.parameters:
        if p.kind != "constant":
            lines.append(f"{p.name} : {p.type}")
    constants = [f"{p.name} : {p.type}" + (f" = {p.default}" if p.default else "") for p in d.parameters if p.kind == "constant"]
    if constants:
        lines += ["", "Constants: " + ", ".join(constants)]
    return "\n".join(lines + ([""] + d.clauses if d.clauses else []))
