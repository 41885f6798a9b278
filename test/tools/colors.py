#!/usr/bin/env python3
"""When messages of tilec have colours: in a pipe and on a terminal, by the variables that programs agree on.

    colors.py TILEC
"""
import os
import pty
import subprocess
import sys
import tempfile

TERMINAL, PIPE = True, False
ROWS = [  # where, variables, options, are there colours?
    (TERMINAL, {}, [], True),
    (TERMINAL, {"TERM": "dumb"}, [], False),
    (TERMINAL, {"NO_COLOR": "1"}, [], False),
    (TERMINAL, {"NO_COLOR": ""}, [], True),
    (TERMINAL, {}, ["--color=never"], False),
    (PIPE, {}, [], False),
    (PIPE, {"FORCE_COLOR": "1"}, [], True),
    (PIPE, {"FORCE_COLOR": "0"}, [], False),
    (PIPE, {"CLICOLOR_FORCE": "1"}, [], True),
    (PIPE, {"CLICOLOR_FORCE": "1", "NO_COLOR": "1"}, [], False),
    (PIPE, {"NO_COLOR": "1", "TERM": "dumb"}, ["--color=always"], True),
]


def said(words, env, terminal):
    if not terminal:
        return subprocess.run(words, env=env, capture_output=True).stderr
    ours, theirs = pty.openpty()
    subprocess.run(words, env=env, stdout=subprocess.DEVNULL, stderr=theirs)
    os.close(theirs)
    text = b""
    try:
        while more := os.read(ours, 4096):
            text += more
    except OSError:  # the end of a terminal
        pass
    os.close(ours)
    return text


def main(tilec):
    plain = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE")}
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "wrong.tile")
        with open(path, "w", encoding="utf-8") as f:
            f.write("kernel k(f32 x[N]) grid(1) { x[0] = y; }\n")
        for terminal, env, options, colors in ROWS:
            text = said([tilec, path, *options], {**plain, "TERM": "xterm", **env}, terminal)
            if b"error" not in text or (b"\x1b[" in text) != colors:
                wrong += 1
                print("terminal" if terminal else "pipe", env, options, text)
    print(f"{len(ROWS)} rows, {wrong} wrong")
    return wrong != 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
