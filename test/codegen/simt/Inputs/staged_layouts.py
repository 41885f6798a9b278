#!/usr/bin/env python3
"""Tiles through buffers of shared memory in random layouts, on the emulator against the interpreter.

    staged_layouts.py FOLDER [--seeds N] [--first SEED] [TARGET:LANES...]

A kernel takes some ways. Each brings a tile in a random layout (or a fragment of a matrix instruction) to a slot of a
buffer of a random layout (or a swizzled one), by put or by copy, and gets it in another layout. What the emulator
stores, with all checks on, must be what the interpreter stores, which knows of no layouts. In half of the kernels the
array ends inside of the tile. Prints how many ways agreed and how many there were of which kind."""
import os
import random
import re
import subprocess
import sys

WAYS = 6
FRAGMENTS = [  # of one warp
    ([(0, 1), (8, 0)], [(0, 2), (0, 4), (1, 0), (2, 0), (4, 0)]),
    ([(0, 1), (8, 0), (0, 8)], [(0, 2), (0, 4), (1, 0), (2, 0), (4, 0)]),
    ([(1, 0), (8, 0)], [(2, 0), (4, 0), (0, 1), (0, 2), (0, 4)]),
    ([(0, 1), (0, 2), (8, 0), (0, 16)], [(0, 4), (0, 8), (1, 0), (2, 0), (4, 0)]),
    ([(0, 4)], [(0, 1), (0, 2), (1, 0), (2, 0), (4, 0)]),
]
SHAPES = [(16, 16), (32, 64), (64, 16), (8, 64), (48, 40), (17, 24), (5, 7), (33, 3)]
TYPES = {"i8": 1, "i16": 2, "i32": 4, "i64": 8}


def text(ins, out_bits, reps):
    parts = [name + "".join(f"({a},{b})" for a, b in images) for name, images in ins]
    return " ".join(parts) + f" -> {1 << out_bits[0]}x{1 << out_bits[1]} * {reps[0]}x{reps[1]}"


def chunk(r, shape, spare):
    """Bits of a chunk and repetitions that hold the shape."""
    bits = []
    for n in shape:
        most = (n - 1).bit_length()
        bits.append(max(r.randint(0, most + spare), most - 2))
    return bits, [-(-n >> b) or 1 for n, b in zip(shape, bits)]


def dealt(r, shape, names, limits, spare):
    bits, reps = chunk(r, shape, spare)
    ins = [[] for _ in names]
    left = [(0, 1 << b) for b in range(bits[1])] + [(1 << b, 0) for b in range(bits[0])]
    order = r.randrange(3)
    if order == 1:
        left = left[bits[1]:] + left[:bits[1]]
    elif order == 2:
        r.shuffle(left)
    for image in left:
        to = r.randrange(len(names))
        if len(ins[to]) >= limits[to]:
            to = 0
        ins[to].append(image)
    for k in range(1, len(names)):  # copies
        while len(ins[k]) < limits[k]:
            ins[k].insert(r.randint(0, len(ins[k])), (0, 0))
    flat = [(k, i) for k in range(len(names)) for i in range(len(ins[k]))]
    for _ in range(r.choice([0, 0, 3])):  # one XORed into another
        (k, i), (m, j) = r.choice(flat), r.choice(flat)
        if (k, i) != (m, j):
            a, b = ins[k][i], ins[m][j]
            ins[k][i] = (a[0] ^ b[0], a[1] ^ b[1])
    return text(zip(names, ins), bits, reps)


def fragment(r, shape, lanes):
    """Grown over warps and registers; None: the shape is smaller, or the machine is another."""
    regs, lane = r.choice(FRAGMENTS)
    regs, lane = list(regs), list(lane)
    size = [1 << max(v[d] for v in regs + lane).bit_length() >> 0 for d in range(2)]
    if lanes != 32 or any(n % s for n, s in zip(shape, size)) or any(n & (n - 1) for n in shape):
        return None
    rest = [(s << b, 0) if d == 0 else (0, s << b) for d, s in enumerate(size)
            for b in range((shape[d] // s).bit_length() - 1)]
    r.shuffle(rest)
    warps = [rest.pop() if rest and r.random() < 0.7 else (0, 0) for _ in range(2)]
    return text([("reg", regs + rest), ("lane", lane), ("warp", warps)], [(n - 1).bit_length() for n in shape], (1, 1))


def swizzled(r, shape, size):
    """Rows or columns whose pieces of 16 bytes are turned."""
    if any(n & (n - 1) for n in shape):
        return None
    turned, (rows, cols) = r.random() < 0.4, [(n - 1).bit_length() for n in shape]
    if turned:
        rows, cols = cols, rows
    vec, phase, most = (16 // size).bit_length() - 1, r.randrange(3), r.randrange(4)
    images = [(0, 1 << b) for b in range(cols)]
    for b in range(rows):
        column = ((1 << b >> phase) % (1 << most) << vec) % (1 << cols)
        images.append((1 << b, column))
    if turned:
        images = [(b, a) for a, b in images]
    return text([("offset", images)], [(n - 1).bit_length() for n in shape], (1, 1))


def tile_layout(r, shape, lanes):
    f = fragment(r, shape, lanes) if r.random() < 0.6 else None
    return f or dealt(r, shape, ["reg", "lane", "warp"], [99, lanes.bit_length() - 1, 2], 1)


def kernel(r, shape, dtype, lanes):
    m, n = shape
    size = TYPES[dtype]
    out = ['files "k.tile"', f"kernel @k(%x: view<const {dtype}, 2>, %y: view<{dtype}, 3>, %s: i32) info {{",
           f'  param "x" view const {dtype} [sym 0 : dense, sym 1 : dense]',
           f'  param "y" view {dtype} [sym 2 : dense, const {m} : dense, const {n} : dense]', '  param "s" scalar i32',
           '  sym "M" extent 0, 0', '  sym "N" extent 0, 1', '  sym "P" extent 1, 0',
           '  expr int "1" [const 1]', "  grid 0", "} warps 4 {", "  %z = const {value = 0} : i32",
           "  %one = const {value = 1} : i32"]
    for i in range(WAYS):
        put, get = tile_layout(r, shape, lanes), tile_layout(r, shape, lanes)
        buf = (swizzled(r, shape, size) if r.random() < 0.6 else None) or dealt(r, shape, ["offset"], [99], 1 if shape[0] * shape[1] < 1024 else 0)
        large = m * n * size > 8192
        slots, slot = (1, "%z") if large else r.choice([(1, "%z"), (2, "%one"), (3, "%s"), (2, "%s")])
        of = f"{dtype}, {m}, {n}"
        out.append(f'  %b{i} = alloc : buf<{of}, "{buf}", {slots}>')
        if r.random() < 0.5:
            out += [f'  %t{i} = copy %x, %z, %z, %b{i}, {slot} {{axes = [{m}, {n}]}} : token<{of}, "{put}">', "  commit",
                    "  wait {pending = 0}"]
        else:
            out += [f'  %t{i} = load %x, %z, %z {{axes = [{m}, {n}]}} : tile<{of}, "{put}">', f"  put %b{i}, {slot}, %t{i}"]
        out += [f'  %g{i} = get %b{i}, {slot} : tile<{of}, "{get}">', f"  %i{i} = const {{value = {i}}} : i32",
                f"  store %y, %i{i}, %z, %z, %g{i} {{axes = [i, {m}, {n}]}}"]
    return "\n".join(out + ["  return", "}", ""])


def run(path, device, shape, ends):
    m, n = shape
    to = f"{path}.{device.replace(':', '_')}.npy"
    command = ["tilec", "run", path, "--skip", "bounds,coalesce,place-layouts", "--device", device, "--check",
               f"x=iota[{m - ends[0]},{n - ends[1]}]", f"y=zeros[{WAYS},{m},{n}]", "s=1", "--save", f"y={to}"]
    if device != "ref":
        command += ["--schedules", "rr,reverse"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    with open(to, "rb") as f:
        return f.read()


def leaves(path, target, kinds):
    command = ["tilec", path, "--skip", "bounds,coalesce,place-layouts", "--target", target, "--emit=llvm", "-o", "-"]
    code = subprocess.run(command, capture_output=True, text=True).stdout
    for name in kinds:
        kinds[name] += len(re.findall(rf"call[^\n]*@tl\.leaf\.{name}", code))


def main(folder, words):
    os.makedirs(folder, exist_ok=True)
    option = {"--seeds": 1, "--first": 0}
    while words and words[0] in option:
        option[words[0]] = int(words[1])
        words = words[2:]
    agreed = total = 0
    kinds = {"ldsm_t": 0, "ldsm_[124]": 0, "cp_async": 0, "sts": 0, "lds": 0}
    for target, lanes in (t.split(":") for t in words or ["sm_80:32", "gfx942:64", "gfx1100:32"]):
        seeds = option["--seeds"] if target.startswith("sm") else -(-option["--seeds"] // 3)
        for seed in range(option["--first"], option["--first"] + seeds):
            r = random.Random(f"{target} {seed}")
            for shape in SHAPES:
                dtype = r.choice(["i8", "i16", "i16", "i32", "i64"])
                path = os.path.join(folder, f"{target}_{seed}_{shape[0]}x{shape[1]}_{dtype}.tir")
                with open(path, "w", encoding="utf-8") as f:
                    f.write(kernel(r, shape, dtype, int(lanes)))
                ends = r.choice([(0, 0), (0, 0), (0, 1), (min(3, shape[0] - 1), 0)])
                got, want = (run(path, d, shape, ends) for d in ("emu:" + target, "ref"))
                if target == "sm_80":
                    leaves(path, target, kinds)
                size = (len(want) - 128) // WAYS
                wrong = [i for i in range(WAYS) if got[128 + i * size:][:size] != want[128 + i * size:][:size]]
                for i in wrong:
                    print(f"{path}: way {i} differs")
                agreed += WAYS - len(wrong)
                total += WAYS
    print(f"{agreed} of {total} ways agree")
    print("all kinds" if all(kinds.values()) else f"not all kinds: {kinds}")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
