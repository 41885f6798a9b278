#!/usr/bin/env python3
"""Every conversion among the layouts of a shape, on the emulator against the interpreter.

    convert_layouts.py FOLDER [--all] [TARGET:LANES...]

For each shape and element type one kernel: a tile goes through all ordered pairs of the shape's layouts, one conversion
after the other, and is stored after each. What the emulator stores must be what the interpreter, which knows of no
layouts, stores. Prints how many conversions agreed. Without --all each shape gets some of the types,
and the large ones one target."""
import os
import subprocess
import sys

# (shape, layouts for 32 lanes and 4 warps)
SHAPES = [
    ((64, 64), [
        "reg(0,1)(0,2)(16,0)(32,0)(0,32) lane(0,4)(0,8)(0,16)(1,0)(2,0) warp(4,0)(8,0)",
        "reg(1,0)(2,0)(0,16)(0,32)(32,0) lane(4,0)(8,0)(16,0)(0,1)(0,2) warp(0,4)(0,8)",
        "reg(0,1)(8,0)(0,8)(0,16)(0,32) lane(0,2)(0,4)(1,0)(2,0)(4,0) warp(16,0)(32,0)",
        "reg(1,0)(8,0)(16,0)(32,0)(0,8)(0,16)(0,32) lane(2,0)(4,0)(0,1)(0,2)(0,4) warp(0,0)(0,0)",
        "reg(0,1)(8,0)(0,8)(0,16)(32,0) lane(0,2)(1,0)(0,4)(4,0)(2,0) warp(0,32)(16,0)",
        "reg(0,33)(8,8)(0,8)(0,16)(7,0) lane(0,2)(0,4)(1,0)(2,1)(4,0) warp(16,3)(32,1)",
    ]),
    ((48, 80), [
        "reg(0,1)(0,2) lane(0,4)(0,8)(1,0)(2,0)(4,0) warp(8,0)(0,0) -> 16x16 * 3x5",
        "reg(1,0)(2,0) lane(4,0)(8,0)(0,1)(0,2)(0,4) warp(0,8)(0,0) -> 16x16 * 3x5",
        "reg(1,0)(16,0)(32,0) lane(2,0)(4,0)(8,0)(0,1)(0,2) warp(0,4)(0,8) -> 64x16 * 1x5",
        "reg(0,1)(16,0) lane(0,2)(0,4)(1,0)(2,0)(4,0) warp(0,0)(8,0) -> 32x8 * 2x10",
    ]),
    ((17, 3), [
        "lane(1,0)(2,0)(4,0)(8,0)(16,0) warp(0,0)(0,0) -> 32x1 * 1x3",
        "reg(1,0) lane(2,0)(4,0)(8,0)(0,1)(0,2) warp(0,0)(0,0) -> 16x4 * 2x1",
        "reg(0,1)(0,2) lane(1,0)(2,0)(4,0)(0,0)(0,0) warp(8,0)(16,0)",
        "lane(0,0)(0,0)(0,0)(0,0)(0,0) warp(0,0)(0,0) -> 1x1 * 17x3",
    ]),
    ((128, 64), [  # f64 and pointers take two rounds
        "reg(0,1)(8,0)(16,0)(32,0)(0,32)(64,0) lane(0,2)(0,4)(0,8)(0,16)(1,0) warp(2,0)(4,0)",
        "reg(1,0)(2,0)(16,0)(0,16)(0,32)(64,0) lane(4,0)(8,0)(32,0)(0,1)(0,2) warp(0,4)(0,8)",
    ]),
]
TYPES = ["i8", "bool", "f16", "bf16", "f8e5m2", "f32", "f64", "ptr"]


def tour(n):
    """A walk through every ordered pair of 0 .. n - 1 (Hierholzer)."""
    left = {i: [k for k in range(n) if k != i] for i in range(n)}
    stack, walk = [0], []
    while stack:
        if left[stack[-1]]:
            stack.append(left[stack[-1]].pop())
        else:
            walk.append(stack.pop())
    return walk[::-1]


def kernel(shape, layouts, dtype, lanes):
    m, n = shape
    if lanes == 64:  # one more lane, with copies
        layouts = [l.replace(" warp", "(0,0) warp") for l in layouts]
    size, walk = f"{m}, {n}", tour(len(layouts))
    of = {"ptr": "ptr<const i32>"}.get(dtype, dtype)
    out = [f'files "k.tile"', "layouts " + ", ".join(f'#{i} "{l}"' for i, l in enumerate(layouts)),
           "kernel @k(%x: view<const i32, 2>, %y: view<i32, 3>) info {",
           '  param "x" view const i32 [sym 0 : dense, sym 1 : dense] @1:1',
           '  param "y" view i32 [sym 2 : dense, sym 0 : dense, sym 1 : dense] @1:1',
           '  sym "M" extent 0, 0', '  sym "N" extent 0, 1', '  sym "P" extent 1, 0',
           '  expr int "1" [const 1] @1:1', "  grid 0", "} warps 4 {",
           "  %z = const {value = 0} : i32",
           f"  %t = load %x, %z, %z {{axes = [{m}, {n}]}} : tile<i32, {size}, #0>"]
    if dtype == "ptr":
        out += ["  %p = view_ptr %x : ptr<const i32>", f"  %b = broadcast %p : tile<ptr<const i32>, {size}, #0>",
                f"  %v0 = ptr_add %b, %t : tile<ptr<const i32>, {size}, #0>"]
    elif dtype == "bool":
        out += [f"  %c = const {{value = 37}} : tile<i32, {size}, #0>", f"  %a = and %t, %c : tile<i32, {size}, #0>",
                f"  %v0 = cast %a : tile<bool, {size}, #0>"]
    else:
        out.append(f"  %v0 = cast %t : tile<{of}, {size}, #0>")
    for i, to in enumerate(walk[1:]):
        out.append(f"  %v{i + 1} = convert %v{i} : tile<{of}, {size}, #{to}>")
        if dtype == "ptr":
            out.append(f"  %s{i} = load %v{i + 1} : tile<i32, {size}, #{to}>")
        else:
            out.append(f"  %s{i} = cast %v{i + 1} : tile<i32, {size}, #{to}>")
        out += [f"  %i{i} = const {{value = {i}}} : i32",
                f"  store %y, %i{i}, %z, %z, %s{i} {{axes = [i, {m}, {n}]}}"]
    return "\n".join(out + ["  return", "}", ""]), len(walk) - 1


def run(path, device, shape, count):
    m, n = shape
    to = f"{path}.{device.replace(':', '_')}.npy"
    command = ["tilec", "run", path, "--skip", "place-layouts", "--device", device, f"x=iota[{m},{n}]",
               f"y=zeros[{count},{m},{n}]", "--save", f"y={to}"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    with open(to, "rb") as f:
        return f.read()


def main(folder, targets):
    os.makedirs(folder, exist_ok=True)
    agreed, step = 0, 3
    if targets[:1] == ["--all"]:
        step, targets = 1, targets[1:]
    for target, lanes in (t.split(":") for t in targets or ["sm_80:32", "gfx942:64"]):
        for k, (shape, layouts) in enumerate(SHAPES):
            if step > 1 and lanes != "32" and shape[1] == 64:
                continue
            for dtype in TYPES[k % step::step]:
                path = os.path.join(folder, f"{target}_{k}_{dtype}.tir")
                text, count = kernel(shape, layouts, dtype, int(lanes))
                with open(path, "w", encoding="utf-8") as f:
                    f.write(text)
                got, want = (run(path, d, shape, count) for d in ("emu:" + target, "ref"))
                size = (len(want) - 128) // count
                wrong = [i for i in range(count) if got[128 + i * size:][:size] != want[128 + i * size:][:size]]
                if wrong:
                    walk = tour(len(layouts))
                    print(f"{path}: conversion from layout {walk[wrong[0]]} to {walk[wrong[0] + 1]} differs")
                agreed += count - len(wrong)
    print(f"{agreed} conversions agree")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
