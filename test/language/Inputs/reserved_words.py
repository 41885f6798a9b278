"""Declares a variable, a function, a parameter and a field with each word; the reserved ones are refused at their place."""
import subprocess
import sys

RESERVED = """kernel const import struct tile auto void fn if else for while return break continue static static_assert in unchecked
true false inf nan pipeline unroll nounroll specialize bool i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64 f8e4m3 f8e5m2 f8e4m3fnuz
f8e5m2fnuz i4 u4 f4e2m1 int float""".split()
FREE = """grid require assume tune key instantiate warps stages cluster persistent maxreg alias group where type iota min max sum dot load store
exp sqrt range view sub raw pid npid print assert cast bitcast trans reshape sort gather histogram atomic_add identity target device
std switch enum typedef goto""".split()
PLACES = ("void f() {{ f32 {0} = 1; }}", "f32 {0}(f32 v) {{ return v; }}", "f32 f(f32 {0}) {{ return 1; }}", "struct s {{ f32 {0}; }};")


def wrong(word, path):
    for text in PLACES:
        with open(path, "w", encoding="utf-8") as f:
            f.write(text.format(word) + "\n")
        p = subprocess.run(["tilec", path, "--emit=ast", "-o", "-"], capture_output=True, text=True)
        at = f":1:{text.replace('{{', '{').index('{0}') + 1}: error[E0101]"
        if (p.returncode, at in p.stderr) != ((1, True) if word in RESERVED else (0, False)):
            print(text.format(word), p.stderr)
            return True
    return False


bad = sum(wrong(w, sys.argv[1]) for w in RESERVED + FREE)
print(f"{len(RESERVED)} reserved, {len(FREE)} free, {bad} wrong")
