#!/usr/bin/env python3
"""The command line of tilec, row by row: arguments, exit status, expressions that stdout and stderr must match.

    tilec_cli.py TILEC FOLDER [-k SUBSTRING]
"""
import os
import re
import subprocess
import sys

FILES = {
    "add.tile": """/// Adds.
kernel add(const f32 x[N], f32 y[N], const int B = 64)
    grid(cdiv(N, B))
{
    int i = pid(0) * B;
    y[i +: B] = x[i +: B] + 1;
}
""",
    "two.tile": """kernel a(f32 x[N], const int B) grid(1) { x[0 +: B] = 1; }
kernel b(i32 x[N], int n, const f32 *p) grid(N) {
    x[pid(0)] = n;
    assert(n > 0, "n is small");
    print("n", n);
}
""",
    "types.tile": """kernel types(const T x[N], f64 y[N], const type T = f32) grid(N) {
    y[pid(0)] = cast(x[pid(0)], f64);
}
""",
    "bits.tile": """kernel bits(const T x[N], i32 y[N], const type T = i4) grid(1) {
    y[0 +: 16] = cast(x[0 +: 16], i32);
}
""",
    "scalars.tile": """kernel scalars(i8 a, u64 b, f16 c, bool d, f64 e, f64 y[5]) grid(1) {
    y[0] = cast(a, f64);
    y[1] = cast(b, f64);
    y[2] = cast(c, f64);
    y[3] = d ? 1.0 : 0.0;
    y[4] = e;
}
""",
    "same.tile": """kernel same(const f32 x[M, N], f32 y[M, N]) grid(1) alias(x, y) {
    y[0 +: 4, 0 +: 4] = x[0 +: 4, 0 +: 4] * 2;
}
""",
    "table.tile": """kernel table(const u64 P[G], const f32 x[N], const f32 y[M], f32 z[L]) grid(1) {
    for (int i : range(G)) z[i] = ((const f32 *)P[i])[1];
}
""",
    "refer.tile": """kernel refer(const u64 P[G], const u64 Q[G], f32 x[N]) grid(1) { x[0] = (f32)(P[0] - Q[0]); }
""",
    "emu.tile": """kernel sums(const f32 x[N], f32 y[N], const int B = 256) grid(cdiv(N, B)) {
    f32 s = sum(x[pid(0) * B +: B]);
    y[pid(0) * B +: B] = x[pid(0) * B +: B] / s;
}
kernel crowd(i32 x[N]) grid(8) {
    x[0] = pid(0);
}
kernel late(i32 x[1], i32 y[N]) grid(64) {
    y[pid(0)] = atomic_add(x[0], 1);
}
kernel outside(const f32 *p, f32 x[N]) grid(1) {
    x[0] = load(p + 5);
}
""",
    "wrong.tile": "kernel k(f32 x[N]) grid(1) { x[0] = y; }\n",
    "wrong_and_open.tile": "kernel k(f32 x[N], const int B) grid(1) { x[B] = y; }\n",
    "empty.tile": "\n",
}

ROWS = []


def row(name, args, status, out="", err=""):
    ROWS.append((name, args.split() if isinstance(args, str) else args, status, out, err))


# ---- the program itself ----
row("no arguments", "", 2, err=r"usage: tilec")
row("-MF without -MD", "add.tile -o add.tir -MF add.d", 2, err=r"tilec: -MF add\.d: nothing is written there without -MD")
for word in ("--help", "-h", "help"):
    row(f"help: {word}", word, 0, out=r"usage: tilec \[compile\].*explain +report.*--kernel NAME.*Exit status")
for name in ("compile", "check", "run", "explain", "tune", "bench", "fmt", "new", "lsp", "completion", "error", "targets", "cache", "help"):
    for words in ([name, "--help"], [name, "-h"], ["help", name]):
        usage = r"\[compile\]" if name == "compile" else name
        row("help: " + " ".join(words), words, 0, out=rf"^usage: tilec {usage}\b.*\ntilec {name}: .*Exit status" if name != "compile" else
            rf"^usage: tilec {usage} .*Exit status")
row("help of run has no option of others", "run --help", 0, out=r"\A(?!.*--html).*--repeat N.*PARAM=VALUE")
row("help of what is none", "help runn", 2, err=r"no sub-command 'runn'; did you mean 'run'")
row("help of two", "help run tune", 2, err=r"'tune'")
row("version", "--version", 0, out=r"^tilec \d+\.\d+")
row("help of fmt", "fmt --help", 0, out=r"tilec fmt \[--check\].*--diff")
row("fmt on standard output", "fmt --diff two.tile", 0, out=r"^\+kernel b")
row("option of fmt", "add.tile --diff", 2, err=r"--diff is an option of tilec fmt")
row("help of lsp", "lsp --help", 0, out=r"tilec lsp \[-I DIR\].* \[--target T\].*--stdio")
row("lsp for two targets", "lsp --target sm_80,gfx942", 2, err=r"lsp shows one target")
row("lsp for no target", "lsp --target sm_1", 2, err=r"sm_1")
row("option of lsp", "add.tile --stdio", 2, err=r"--stdio is an option of tilec lsp")
row("targets", "targets", 0, out=r"^cpu$.*^ref$.*^sm_90a$.*^gfx1201$.*run on a GPU.*records|GPUs on which operations")
row("targets takes nothing", "targets x", 2, err=r"'x'")
row("unknown sub-command", "walk", 2, err=r"'walk'.*run")
row("a sub-command with a slip", "explian add.tile", 2, err=r"'explian'; did you mean 'explain'")
row("check: no file", "check", 2, err=r"no input file")
row("check: no such file", "check add.tile x.tile", 2, err=r"x\.tile.*No such file")
row("check", "check add.tile same.tile --target sm_80", 0)
row("check: all are looked at", "check wrong.tile add.tile no.tile", 1, err=r"wrong\.tile:1:37: error.*no\.tile")
row("check writes nothing", "check add.tile -o add.o", 2, err=r"-o is an option of tilec compile")
row("new: no name", "new", 2, err=r"takes the name")
row("new: no name of a kernel", "new a-b", 2, err=r"'a-b' names no kernel")
row("new", "new made", 0, out=r"made\.tile, main\.c")
row("new: it is there", "new made", 2, err=r"'made': File exists")
row("new: no such folder", "new no/such", 2, err=r"'no/such': No such file")
row("what it made is right", "check made/made.tile --target cpu,sm_90a,gfx942", 0)
row("diagnostic in lower case", "error e0303", 0, out=r"^E0303: '\.\.\.': the shapes of \.\.\. and")
row("diagnostic by number", "error 303", 0, out=r"^E0303")
row("a number that is none", "error 9999", 2, err=r"'9999'")
row("bench: no file", "bench", 2, err=r"no input file")
row("bench: no such file", "bench x.tile", 2, err=r"cannot read 'x.tile'")
row("nothing to tune", "tune add.tile x=zeros[3] y=zeros[3]", 2, err=r"tune clause")
row("option of tune", "add.tile --budget 3", 2, err=r"--budget is an option of tilec tune")
row("sizes without a name", "tune add.tile --sizes 3", 2, err=r"--sizes takes NAME=N.*'3'")
row("sizes that are no numbers", "tune add.tile --sizes M=3,x", 2, err=r"'x' is not a number")
row("the model needs targets", "tune add.tile --model", 2, err=r"--model: name the GPUs with --target")
row("targets are for the model", "tune add.tile --target sm_80", 2, err=r"--target is for --model")
row("unknown option", "add.tile --fast", 2, err=r"'--fast'; tilec help compile lists")
row("option with a slip", "run add.tile --devise=cpu", 2, err=r"'--devise=cpu'; did you mean '--device'")
row("option before all with a slip", "--hlep", 2, err=r"did you mean '--help'")
row("option of run", "add.tile --device ref", 2, err=r"--device.*tilec run")
row("option of compile", "run add.tile --emit=tir", 2, err=r"--emit.*compile")
row("no file", "compile", 2, err=r"no input")
row("two files", "add.tile two.tile", 2, err=r"more than one")
row("missing file", "no_such.tile", 2, err=r"no_such\.tile.*No such file")
row("value missing", "add.tile --target", 2, err=r"--target needs")
for option, value in (("--fp", "fast"), ("--color", "red"), ("--diagnostics", "xml"), ("--warps", "0"),
                      ("--stages", "x"), ("--bisect", "-1"), ("-O", "4"), ("--const", "B"), ("--const", "=4")):
    row(f"bad {option}={value}", ["add.tile", option + value if option == "-O" else option, value][:2 if option == "-O" else 3],
        2, err=re.escape(value))

# ---- compile ----
row("checks only", "add.tile", 0)
row("sub-command said", "compile add.tile", 0)
row("program is wrong", "wrong.tile", 1, err=r"wrong\.tile:1:37: error.*'y'")
row("as JSON", "wrong.tile --diagnostics=json", 1, err=r"\{.*\"line\"")
row("a constant without a value is nothing to add to errors", "wrong_and_open.tile", 1, err=r"\Awrong_and_open\.tile:1:50: error[^\n]*'y'(?!.*no value)")
row("nor to JSON", "wrong_and_open.tile --diagnostics=json", 1, err=r"\A\{.*\"line\".*\}\n\Z")
row("unknown target", "add.tile --target sm_1", 2, err=r"'sm_1'.*cpu")
row("unknown stage", "add.tile --emit=soup", 2, err=r"'soup'.*tir")
row("IR on stdout", "add.tile --emit=tir", 0, out=r"kernel @add")
row("IR to stdout by name", "add.tile --emit tir -o -", 0, out=r"kernel @add")
row("stage by the file's ending", "add.tile -o add.tir", 0)
row("the file is there", "add.tir", 0)
row("tir to ref", "add.tir --target ref --emit=image -o add.img", 0)
row("output cannot be written", "add.tile --emit=tir -o no/such/dir/x", 2, err=r"no/such/dir/x.*No such")
row("folder of dumps cannot be written", "add.tile --dump-dir=no/such/dir", 2, err=r"\Atilec: cannot write 'no/such/dir/\d+-.*No such")
row("folder of dumps is a file", "run add.tile x=iota[5] y=nan[5] --dump-dir add.tile", 2, err=r"\Atilec: cannot write 'add\.tile/.*Not a directory")
row("unknown pass to print", "add.tile --print-after=cse,soup -o -", 2, err=r"\Atilec: pass list: print-after: no pass is called 'soup'; there are .*cse")
row("unknown pass to print, several targets", "add.tile --print-after=soup --target cpu,sm_80 -o add.o", 2, err=r"^tilec: .*'soup'")
row("kernel unknown", "two.tile --kernel c", 2, err=r"'c'.*a, b")
row("constant unknown", "two.tile --kernel a --const C=1", 2, err=r"'C'.*B")
row("constant missing", "two.tile --kernel a", 2, err=r"'B'")
row("constant unreadable", "two.tile --kernel a --const B=x", 2, err=r"'x'")
row("file without kernels", "run empty.tile", 2, err=r"no kernel")

# ---- run: generators ----
row("adds", "run add.tile x=iota[5] y=nan[5] --print y", 0, out=r"^y = \[1, 2, 3, 4, 5\]$")
row("on ref", "run add.tile x=iota[5] y=nan[5] --print y --device ref", 0, out=r"^y = \[1, 2, 3, 4, 5\]$")
row("long arrays are shortened", "run add.tile x=iota[1000] y=nan[1000] --print=y", 0,
    out=r"^y = \[1, 2, 3, \.\.\., 998, 999, 1000\]$")
row("full", "run add.tile x=full(-0.5)[2] y=nan[2] --print y", 0, out=r"\[0\.5, 0\.5\]")
row("full of infinity", "run add.tile x=full(inf)[1] y=nan[1] --print y", 0, out=r"\[inf\]")
row("empty array", "run add.tile x=zeros[0] y=nan[0] --print y", 0, out=r"y = \[\]")
row("nan", "run add.tile x=zeros[2] y=nan[2] --print y --grid 0", 0, out=r"y = \[nan, nan\]")
row("nan of integers", "run two.tile --kernel b x=nan[1] n=1 p=nan[1] --print x --grid 0", 0, out=r"x = \[-1431655766\]")
# Philox of seed 0 and counter 0 begins with 6627e8d5 (the generator's published vector): 0x6627e8 / 2^24
row("uniform", "run types.tile x=uniform(0)[1] y=nan[1] --print y --const T=f64", 0, out=r"\[0\.3990464210510254\]")
row("uniform counts", "run types.tile x=uniform(7)[3] y=nan[3] --print x --print y --const T=f64", 0, out=r"x = (\[.*\])\ny = \1")
row("normal", "run types.tile x=normal(0)[1] y=nan[1] --print y --const T=f64", 0, out=r"\[0\.9911374751458971\]")
row("packed", "run bits.tile x=iota[11] y=nan[11] --print y --device ref", 0, out=r"\[0, 1, 2, 3, 4, 5, 6, 7, -8, -7, -6\]")
row("packed u4", "run bits.tile x=iota[11] y=nan[11] --print y --print x --const T=u4 --device ref", 0, out=r"y = (\[.*10\])\nx = \1")
for t in "i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64".split():
    row(f"iota of {t}", f"run types.tile --const T={t} x=iota[4] y=nan[4] --print x --print y", 0,
        out=r"x = \[0, 1, 2, 3\]\ny = \[0, 1, 2, 3\]")
row("scalars", "run scalars.tile a=-128 b=18446744073709551615 c=0.1 d=true e=0x1p-3 y=nan[5] --print y", 0,
    out=r"\[-128, 1\.8446744073709552e\+19, 0\.0999755859375, 1, 0\.125\]")
row("same buffer", "run same.tile x=iota[2,3] y=&x --print x --print y", 0,
    out=r"x = \[\[0, 2, 4\], \[6, 8, 10\]\]\ny = \[\[0, 2, 4\], \[6, 8, 10\]\]")
row("table of pointers", "run table.tile P=addresses(x,y,x+8) x=iota[4] y=full(7)[3] z=nan[3] --print z --print P", 0,
    out=r"z = \[1, 7, 3\]\nP = \[(\d+), \d+, \d+\]")
for device in ("ref", "emu:sm_80", "emu:gfx942"):
    row(f"table of pointers on {device}", f"run table.tile P=addresses(x,y,x+8) x=iota[4] y=full(7)[3] z=nan[3] --print z --check --device {device}", 0, out=r"z = \[1, 7, 3\]")
row("table of pointers under schedules", "run table.tile P=addresses(x,y,x+8) x=iota[4] y=full(7)[3] z=nan[3] --print z --device emu:sm_80 --schedules all", 0,
    out=r"z = \[1, 7, 3\]")
row("table of an array that is another", "run table.tile P=addresses(y) x=iota[4] y=&x z=nan[1] --print z", 0, out=r"z = \[1\]")
for bad, why in (("addresses(", "addresses"), ("addresses()", "addresses"), ("addresses(q)", "'q' is not an array"), ("addresses(x,)", "'' is not an array"), ("addresses(P)", "'P' is not an array"),
                 ("addresses(x+)", "'' is not an array"), ("addresses(x+y)", "'y' is not an array"), ("addresses(x-8)", "'x-8' is not an array"), ("addresses(x)[3]", "addresses")):
    row(f"table of pointers '{bad}'", ["run", "table.tile", f"P={bad}", "x=iota[4]", "y=nan[3]", "z=nan[3]"], 2, err=rf"P=addresses.*{why}")
row("table of pointers of another type", "run table.tile P=addresses(y) x=addresses(y) y=nan[3] z=nan[1]", 2, err=r"addresses are u64, 'x' is of type f32")
row("no reference to a table", "run refer.tile P=addresses(x) Q=&P x=iota[4]", 2, err=r"Q=&P: no array")
row("same buffer needs alias", "run add.tile x=iota[5] y=&x --check", 3, err=r"'x' and 'y'.*alias\(x, y\)")
row("repeat", "run add.tile x=iota[5] y=nan[5] --repeat 3", 0, err=r"3 launches")
row("grid", "run two.tile --kernel b x=zeros[4] n=3 p=nan[1] --grid 2 --print x", 0, out=r"n = 3\nn = 3\nx = \[3, 3, 0, 0\]")

# ---- run: nan[...] is data like any other, also to a checked run ----
row("nan is read", "run add.tile x=nan[2] y=nan[2] --check --device ref --print y", 0, out=r"\[nan, nan\]")
row("what stays unwritten is seen", "run two.tile --kernel a --const B=2 x=nan[3] --check --device ref --print x", 0, out=r"\[1, 1, nan\]")

# ---- run: memory that nothing has written ----
U = "--check --device ref"
row("uninit is read", f"run add.tile x=uninit[5] y=nan[5] {U}", 3,
    err=r"^add\.tile:6:\d+: read of uninitialised memory: load of 4 bytes at x \+ 0, .*\(program 0\)$")
row("uninit in a later program", f"run types.tile x=uninit[3] y=nan[3] {U}", 3, err=r"^types\.tile:2:\d+: .* at x \+ 0,")
row("uninit is only written", f"run add.tile x=iota[5] y=uninit[5] {U} --print y", 0, out=r"^y = \[1, 2, 3, 4, 5\]$")
row("uninit, written and read", f"run same.tile x=uninit[2,3] y=&x {U}", 3, err=r"^same\.tile:2:\d+: .* at x \+ 0,")
row("uninit of nothing", f"run add.tile x=uninit[0] y=nan[0] {U}", 0)
row("uninit as a pointer", f"run two.tile --kernel b x=uninit[2] n=3 p=uninit[1] {U} --print x", 0, out=r"x = \[3, 3\]")
row("uninit of a packed type", f"run bits.tile x=uninit[11] y=nan[11] {U}", 3, err=r"^bits\.tile:2:\d+: .* at x \+ 0,")
row("uninit without the check", "run add.tile x=uninit[5] y=nan[5] --device ref", 0)
row("uninit on cpu", "run add.tile x=iota[5] y=uninit[5] --check --print y", 0, out=r"^y = \[1, 2, 3, 4, 5\]$")
row("uninit takes no value", f"run add.tile x=uninit(1)[5] y=nan[5] {U}", 2, err=r"uninit\[DIMS\]")
row("uninit in the help", "run --help", 0, out=r"uninit\[\.\.\.\]")

# ---- run: what is refused ----
X = "x=iota[5] y=nan[5]"
row("several kernels", "run two.tile x=nan[3]", 2, err=r"--kernel.*a, b")
row("run: kernel unknown", "run two.tile --kernel c x=nan[3]", 2, err=r"'c'.*a, b")
row("run: constant missing", "run two.tile --kernel a x=nan[3]", 2, err=r"'B'")
row("run: constant unknown", f"run add.tile {X} --const Q=1", 2, err=r"'Q'.*B")
row("parameter unknown", f"run add.tile {X} z=nan[5]", 2, err=r"'z'.*x \(const f32, 1 axis\), y \(f32")
row("parameter missing", "run add.tile x=iota[5]", 2, err=r"'y' is missing: write y=zeros.*x \(const f32, 1 axis\), y \(f32, 1 axis\)")
row("parameter twice", f"run add.tile {X} x=iota[5]", 2, err=r"'x' is given twice")
row("no PARAM=VALUE", f"run add.tile {X} z", 2, err=r"'z'")
row("print unknown", f"run add.tile {X} --print z", 2, err=r"'z'.*x y")
row("save unknown", f"run add.tile {X} --save z=z.npy", 2, err=r"'z'.*x y")
row("save without a file", f"run add.tile {X} --save y", 2, err=r"PARAM=FILE")
row("save where one cannot", f"run add.tile {X} --save y=no/such/y.npy", 2, err=r"no/such/y\.npy")
row("print of a scalar", "run two.tile --kernel b x=nan[3] n=1 p=nan[1] --print n", 2, err=r"'n'")
row("missing file of an array", "run add.tile x=@no.npy y=nan[5]", 2, err=r"no\.npy.*No such")
row("no .npy file", "run add.tile x=@add.tile y=nan[5]", 2, err=r"not a \.npy")
for bad in ("7", "iota", "iota[", "iota[5", "iota[a]", "iota[-1]", "iota[5]x", "full[5]", "full()[5]", "full(a)[5]", "zeros(1)[5]",
            "uniform[5]", "uniform(x)[5]", "uniform(-1)[5]", "ones[5]", "&z", "&x", "", "iota[99999999999999999999]"):
    row(f"array from '{bad}'", ["run", "add.tile", f"x={bad}", "y=nan[5]"], 2, err=r"x=")
row("array larger than memory", "run add.tile x=zeros[4294967296,4294967296] y=nan[5]", 2, err=r"larger than memory|out of memory")
row("random integers", "run two.tile --kernel b x=normal(1)[3] n=1 p=nan[1]", 2, err=r"'x' is of i32")
for bad in ("1.5", "x", "2147483648", "-2147483649", "", "1e3", "true", "iota[3]"):
    row(f"scalar from '{bad}'", ["run", "two.tile", "--kernel", "b", "x=nan[3]", f"n={bad}", "p=nan[1]"], 2, err=r"'n' is a scalar of type i32")
for bad in ("x", "1,", "1,2,3,4,5,6,7", "-1", ""):
    row(f"grid '{bad}'", ["run", "add.tile", "x=iota[5]", "y=nan[5]", f"--grid={bad}"], 2, err=r"--grid")
row("repeat of nothing", f"run add.tile {X} --repeat 0", 2, err=r"--repeat")
row("device unknown", f"run add.tile {X} --device tpu", 2, err=r"'tpu'.*cpu.*cuda")
row("device not there", f"run add.tile {X} --device hip:0", 3, err=r"'hip:0' is not available|hip")
row("run: program is wrong", "run wrong.tile x=nan[1]", 1, err=r":1:37: error")
row("extents differ", "run add.tile x=iota[5] y=nan[6]", 3, err=r"'add'.*'y'.*N.*5.*'x'.*6")
row("rank differs", "run add.tile x=iota[5,1] y=nan[5]", 3, err=r"'add'.*'x'.*1 axis.*2")
row("rank beyond all", "run add.tile x=zeros[1,1,1,1,1,1,1,1,1,1] y=nan[5]", 3, err=r"'x'.*1 axis.*10")
for device in ("cpu", "ref", "emu:sm_80", "emu:gfx942"):
    row(f"assertion on {device}", f"run two.tile --kernel b x=nan[3] n=0 p=nan[1] -g --device {device}", 3,
        out=r"n = 0\nn = 0\nn = 0", err=r"^two\.tile:4:5: assertion failed: n is small \(program 0\)$")

# ---- run: the virtual GPU ----
E = "run emu.tile --device emu:sm_80"
row("on emu", "run add.tile x=iota[5] y=nan[5] --print y --device emu:sm_80", 0, out=r"^y = \[1, 2, 3, 4, 5\]$")
row("emu of nothing", "run add.tile x=iota[5] y=nan[5] --device emu", 2, err=r"emu:sm_80")
row("emu of what is not", "run add.tile x=iota[5] y=nan[5] --device emu:sm_1", 2, err=r"'emu:sm_1'.*sm_80")
row("emu: all schedules agree", f"{E} --kernel sums x=iota[512] y=nan[512] --schedules=all --check", 0)
row("emu: some schedules", f"{E} --kernel sums x=iota[512] y=nan[512] --schedules rr,random:9", 0)
row("emu: schedules differ", f"{E} --kernel late x=zeros[1] y=nan[64] --schedules rr,reverse", 3,
    err=r"'y' is not the same under the schedules rr and reverse, from element 0 on")
row("emu: a schedule that is not", f"{E} --kernel sums x=iota[512] y=nan[512] --schedules=rr,backwards", 2, err=r"'backwards'.*rr, reverse")
row("schedules on another device", "run add.tile x=iota[5] y=nan[5] --schedules=all", 2, err=r"cpu.*'schedule'")
row("emu: race", f"{E} --kernel crowd x=zeros[1] --check", 3, err=r"^emu\.tile:6:\d+: race: .*\(program 0\)$")
row("emu: race under a schedule", f"{E} --kernel crowd x=zeros[1] --check --schedules=ahead", 3, err=r"race.*under the schedule ahead")
row("emu: out of bounds, always seen", f"{E} --kernel outside p=zeros[5] x=zeros[1]", 3, err=r"^emu\.tile:12:\d+: out of bounds: ")
row("emu: uninit", "run add.tile x=uninit[5] y=nan[5] --device emu:sm_80 --check", 3, err=r"^add\.tile:6:\d+: read of uninitialised memory")
row("emu: what was counted", f"{E} --kernel sums x=iota[512] y=nan[512] --stats", 0,
    err=r"compiled in.*kernel sums: 2 blocks of 128 threads.*barriers: \d+.*shuffles: \d+")
row("stats elsewhere", "run add.tile x=iota[5] y=nan[5] --stats", 0, err=r"^compiled in [^\n]*\n$")


def run(tilec, folder, args):
    p = subprocess.run([tilec] + args, cwd=folder, capture_output=True, timeout=60)
    return p.returncode, p.stdout.decode(), p.stderr.decode()


def main():
    tilec, folder = sys.argv[1], sys.argv[2]
    wanted = sys.argv[4] if sys.argv[3:4] == ["-k"] else ""
    for name, text in FILES.items():
        with open(os.path.join(folder, name), "w") as f:
            f.write(text)
    bad = 0
    subprocess.run([tilec, "add.tile", "--emit=tir", "-o", "dep.tir", "-MD"], cwd=folder)
    subprocess.run([tilec, "add.tile", "-o", "dep.tir", "-MD", "-MF", "other.d"], cwd=folder)
    for file in ("dep.d", "other.d"):
        with open(os.path.join(folder, file)) as f:
            if f.read() != "dep.tir: add.tile\n":
                bad += 1
                print(f"{file} is not what make wants")
    for name, args, status, out, err in ROWS:
        if wanted not in name:
            continue
        got = run(tilec, folder, args)
        for what, have, want in (("status", got[0], status), ("stdout", got[1], out), ("stderr", got[2], err)):
            fine = have == want if what == "status" else re.search(want, have, re.S | re.M)
            if not fine:
                bad += 1
                print(f"{name}: tilec {' '.join(args)}: {what}\n  wanted {want!r}\n  got    {have!r}")
    print(f"{len(ROWS)} rows, {bad} wrong")
    return bad != 0


if __name__ == "__main__":
    sys.exit(main())
