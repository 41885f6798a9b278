#!/usr/bin/env python3
"""The grammar of frontend/grammar.y for readers: actions, error rules and lists written as recursion are gone.

Rules named in KEEP stay rules, under Bison's names; all others are written out where they are used. Left recursion becomes
{repetition}, an empty alternative [option].
"""
import re
import sys

KEEP = ("file item field list value_of_field params param extent clause tune variant constname type tiletype block stmt loop hint decl init simple assignop "
        "expr orexpr andexpr bor bxor band eq rel shift addexpr mul unary postfix path complex primary index args arg value name contextual").split()
PLAIN = ["param", "simple"]  # alternatives that a reader wants apart
TOKENS = {"INTLIT": "INTEGER", "FLOATLIT": "FLOAT", "STRLIT": "STRING"}
WIDTH = 132


def without_actions(text):
    """The rules' text without comments and { actions }; quoted braces are tokens."""
    out, depth = [], 0
    for t in re.finditer(r"/\*.*?\*/|'.'|\"[^\"]*\"|[{}]|[^'\"{}/]+|/", text, re.S):
        word = t.group()
        if word.startswith("/*"):
            continue
        depth += (word == "{") - (word == "}")
        if depth == 0 and word != "}":
            out.append(word)
    return "".join(out)


def rules(path):
    """{name: [alternative]}, an alternative a list of symbols; terminals are in double quotes or upper case."""
    with open(path, encoding="utf-8") as f:
        body = without_actions(f.read().split("\n%%\n")[1])
    body = re.sub(r"%type[^\n]*|%prec\s+\w+|%empty", "", body)
    found = {}
    tokens = re.findall(r"'.'|\"[^\"]*\"|\w+|[:;|]", body)
    for i, t in enumerate(tokens):
        if i + 1 < len(tokens) and tokens[i + 1] == ":" and t.isidentifier():
            name = t
            found[name] = [[]]
        elif t == "|":
            found[name].append([])
        elif t not in (":", ";"):
            found[name][-1].append(f'"{t[1]}"' if t[0] == "'" else TOKENS.get(t, t))
    return {n: [a for a in alts if "RECOVERED" not in a] for n, alts in found.items()}


def shorter(short, long):
    """`long` as `short` with one [option] in it; None where it is not that."""
    for at in range(len(short), -1, -1):
        if short[:at] == long[:at] and short[at:] == long[len(long) - len(short) + at:]:
            return short[:at] + [f"[{' '.join(long[at:len(long) - len(short) + at])}]"] + short[at:]
    return None


def merged(alts):
    """Alternatives that differ by one part, as one with an option."""
    alts = list(alts)
    for i in range(len(alts) - 1, -1, -1):
        for j in range(len(alts) - 1, i, -1):
            a, b = sorted((alts[i], alts[j]), key=len)
            both = shorter(a, b) if a and len(a) < len(b) and a != ['";"'] else None
            if both:
                alts[i] = both
                del alts[j]
    return alts


class Printer:
    def __init__(self, found):
        self.rules = found

    def symbol(self, s, inside):
        if s not in self.rules or s in KEEP:
            return s
        if s in inside:
            sys.exit(f"ebnf.py: rule {s} needs a name: put it into KEEP")
        return self.body(s, inside + [s])

    def parts(self, name, inside):
        """(alternatives, tails of left recursion), lists of texts, and whether it may be empty"""
        alts = self.rules[name]
        base = [[self.symbol(s, inside) for s in a] for a in alts if a[:1] != [name]]
        tails = [[self.symbol(s, inside) for s in a[1:]] for a in alts if a[:1] == [name]]
        if name not in PLAIN:
            base = merged(base)
        return [" ".join(a) for a in base if a], [" ".join(a) for a in tails], [] in base

    def body(self, name, inside, tight=True):
        first, rest, empty = self.parts(name, inside)
        text = " | ".join(dict.fromkeys(first))
        if rest and first == rest:
            return f"{text} {{{text}}}" if not empty else f"{{{text}}}"
        if len(first) > 1 and not empty and (tight or rest):
            text = f"({text})"
        if rest:
            text = f"{text} {{{' | '.join(rest)}}}".strip()
        return f"[{text}]" if empty and first else text

    def lines(self, name):
        """Alternatives, each on its own line when they do not fit one."""
        first, rest, empty = self.parts(name, [name])
        one = self.body(name, [name], False)
        if len(one) + 16 <= WIDTH or empty:
            return [one]
        out = [f"({first[0]}" if rest else first[0]]
        for text in first[1:]:
            if len(out[-1]) + len(text) + 20 <= WIDTH:
                out[-1] += " | " + text
            else:
                out.append(text)
        if rest:
            out[-1] += f") {{{' | '.join(rest)}}}"
        return out


def listing(path):
    found = rules(path)
    if "fields" in found:
        found["field"] = [found["fields"][0]]
        found["fields"] = [["field"], ["fields", "field"]]
    found["tune"] = [found["tunes"][0]]
    found["tunes"] = [["tune"], ["tunes", '","', "tune"]]
    found["variant"] = found.pop("inst")
    found["variant"] = [[n if n != "inst" else "variant" for n in a] for a in found["variant"]]
    found["insts"] = [["variant"], ["insts", '";"', "variant"]]
    found["hint"] = [a[1:] for a in found["hints"] if a]
    found["hints"] = [[], ["hints", "hint"]]
    p = Printer(found)
    out = []
    for name in KEEP:
        if name not in found:
            sys.exit(f"ebnf.py: {path} has no rule {name}")
        lines = p.lines(name)
        out.append(f"    {name:9} = {lines[0]}")
        out += [f"    {'':9} | {line}" for line in lines[1:]]
    return "\n".join(out)


if __name__ == "__main__":
    print(listing(sys.argv[1]))
