#!/usr/bin/env python3
"""A filter of Doxygen: makes the plain comments of our headers, /* before a declaration and after one, those that it reads."""
import re
import sys


def filtered(text):
    first = True

    def comment(m):
        nonlocal first
        if m[3].startswith(" ----"):
            return m[0]  # a section; api.py makes headings of these
        was_first, first = first, False
        sign = "/** @file\n *" if was_first else "/**" if not m[2].strip() else "/**<"
        text = m[3]
        if was_first:  # the number of lines stays
            text = re.sub(r"\n \* (?=\S)", " ", text, count=1)
        return m[1] + m[2] + sign + text + "*/"

    return re.sub(r"(^|\n)([^\n\"]*?)/\*(.*?)\*/", comment, text, flags=re.S)


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as f:
        sys.stdout.write(filtered(f.read()))
