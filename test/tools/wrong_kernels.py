#!/usr/bin/python3
"""Grades what the compiler says of wrong kernels. The kernels are in a table, two lines each: a program, or the body of one, with one mistake
behind <!>; and a regular expression that the message, its hint or its note must match. Usage: wrong_kernels.py TILEC TABLE [-v]"""
import os
import re
import subprocess
import sys
import tempfile

HEAD = ('kernel k(const f32 x[N], f32 y[N], const f32 A[M, K], const f32 W[K, L], f32 C[M, L], const i32 j[N], i32 n[1], '
        'const bool flag[N], int size, f32 s, const int B = 64)\n'
        '    grid(cdiv(N, B))\n{\n    int i = pid(0) * B;\n    auto v = x[i +: B];\n    ')
WHOLE = re.compile(r'\bkernel\b|^(<!>)?(__global__|export|def|f32 g|@|#)')


def read(path):
    """The rows: text, position of the mistake (line, column), expression."""
    lines = [l for l in open(path, encoding='utf-8').read().split('\n') if l.strip() and not re.match(r'#( |#)', l)]
    for program, wanted in zip(lines[::2], lines[1::2]):
        text = program if WHOLE.search(program) else HEAD + program + '\n}\n'
        at = text.find('<!>')
        before = text[:at] if at >= 0 else ''
        position = (before.count('\n') + 1, len(before) - before.rfind('\n')) if at >= 0 else None
        yield program, text.replace('<!>', ''), position, wanted.strip()


def diagnostics(tilec, text, folder):
    path = os.path.join(folder, 'k.tile')
    with open(path, 'w', encoding='utf-8') as f:
        f.write(text)
    done = subprocess.run([tilec, path, '-Wno-unused', '--emit=tir', '-o', os.devnull], stderr=subprocess.PIPE, encoding='utf-8',
                          env=dict(os.environ, TILE_CACHE='off'))
    said = done.stderr.replace(path, 'k.tile')
    return said, [(int(l), int(c)) for l, c in re.findall(r'^k\.tile:(\d+):(\d+): error', said, re.M)]


def grade(said, errors, position, wanted):
    """What is wrong with the message."""
    faults = []
    if not errors:
        return ['no error']
    if position and errors[0] != position:
        faults.append('position %d:%d instead of %d:%d' % (errors[0] + position))
    if len(errors) > 1:
        faults.append('%d errors' % len(errors))
    # what the source line itself says does not count
    text = '\n'.join(l for l in said.split('\n') if not re.match(r' *\d+ \|', l))
    if not re.search(wanted, text):
        faults.append('does not say ' + wanted)
    return faults


def main():
    tilec, table = sys.argv[1:3]
    rows = list(read(table))
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        for program, text, position, wanted in rows:
            said, errors = diagnostics(tilec, text, folder)
            faults = grade(said, errors, position, wanted)
            bad += bool(faults)
            if faults or '-a' in sys.argv:
                print(program, '\n    ', '; '.join(faults))
                if '-v' in sys.argv:
                    print(said)
    print('%d kernels, %d with another message' % (len(rows), bad))


main()
