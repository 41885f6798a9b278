#!/usr/bin/env python3
"""Who may include whom. Reads every #include of the tree and compares it with the table below.

    check_layers.py [ROOT]        prints one line per violation, then "N violations in N files"; exit 1 if any
    check_layers.py --rooms       prints which folder includes which, lowest first
    check_layers.py --self-test   shows that a wrong include is seen

The table is the one of the architecture: lower packages know nothing of higher ones, LLVM's C API is seen by
codegen only, driver headers by nobody (they are found with dlopen), and the kernel image is the one contract
that compiler and runtime share. Folders inside a package are rooms: their includes form no cycle.
"""
import os
import re
import sys
from fnmatch import fnmatch

# Package -> packages of which it may include any header (its own always).
MAY = {
    "ir": set(),
    "frontend": {"ir"},
    "passes": {"ir"},
    "codegen": {"ir", "passes"},
    "runtime": set(),
    "stdlib": set(),
    "tools": {"ir", "frontend", "passes", "codegen", "runtime", "stdlib"},
    "examples": set(),
    "test": {"ir", "frontend", "passes", "codegen", "runtime", "stdlib", "tools"},
}
# (who, what): single files that may include more, or headers that more may include.
EXTRA = [
    ("*", "runtime/contract/tile_image.h"),           # the image: the contract of compiler and runtime
    ("*", "runtime/contract/form_text.h"),            # the texts of forms: likewise
    ("codegen/*", "runtime/contract/grow.h"),         # structs of the public headers: likewise
    ("codegen/*", "runtime/contract/leaf.*"),         # the leaf table: likewise
    ("codegen/*", "runtime/contract/cpu_level.def"),  # the CPU levels: likewise
    ("codegen/*", "runtime/contract/cpu_state.h"),    # what a process must ask for of its CPU: likewise
    ("codegen/*", "runtime/contract/fp_state.h"),     # the floating-point state: likewise
    ("codegen/*", "runtime/contract/gpu*"),          # the GPUs: likewise
    ("codegen/compile*.[ch]", "frontend/*"),          # the one place where source meets code
    ("codegen/*", "codegen/include/tilec*.h"),
    ("runtime/jit*", "codegen/include/tilec.h"),      # CMake target tile_jit
    ("runtime/tune*", "codegen/include/tilec.h"),     # likewise
    ("runtime/dtype.c", "ir/types.def"),              # names and sizes of element types: data only
    ("runtime/*", "ir/support/number.h"),             # headers alone: numbers as text,
    ("runtime/*", "ir/support/ascii.h"),              # classes of characters
    ("runtime/host/driver_ref*.c", "ir/*"),           # CMake target tile_ref
    ("examples/*", "runtime/include/tile*.h"),
    ("examples/*", "codegen/include/tilec.h"),
    ("stdlib/*", "runtime/include/tile.h"),           # libtilekernels is a user of the runtime
    ("stdlib/*", "runtime/contract/grow.h"),          # structs of the public headers
    ("test/examples/share_test.c", "examples/15_train_gpt/*.h"),
]
# Headers of the world that only some may see.
WORLD = [
    ("llvm-c/*", "codegen/* test/unit/intrinsic_test.c"),
    ("llvm/*", ""),
    ("pthread.h", "runtime/* codegen/core_loaded.c codegen/process_server.c codegen/target/llvm.c codegen/target/worker.* examples/* test/* tools/*"),
    ("dlfcn.h", "runtime/* codegen/core_loaded.c codegen/process_find.c tools/farm/farm.c test/*"),
    ("mpi.h", "tools/farm/farm_mpi.c runtime/collectives/comm_mpi.c test/examples/stub_nccl.c"),
    ("cuda*.h", ""),
    ("hip/*", ""),
]
# Where a bare include name ("tile.h") is looked for beside the file itself.
PUBLIC = ["runtime/include", "codegen/include", "stdlib/include"]
INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]', re.M)


def sources(root):
    for package in MAY:
        for folder, _, names in os.walk(os.path.join(root, package)):
            for name in sorted(names):
                if name.endswith((".c", ".h", ".re", ".y", ".def")):
                    yield os.path.relpath(os.path.join(folder, name), root)


def resolve(root, path, name):
    """The included file as a path in the tree, or None when it is not of the tree (generated, or the system's)."""
    for place in [os.path.dirname(path), ""] + PUBLIC:
        full = os.path.normpath(os.path.join(place, name))
        if os.path.exists(os.path.join(root, full)):
            return full
    return None


def allowed(path, target):
    mine, theirs = path.split("/")[0], target.split("/")[0]
    if mine == theirs or theirs in MAY[mine]:
        return True
    return any(fnmatch(path, who) and fnmatch(target, what) for who, what in EXTRA)


def violations(root, path, text):
    for match in INCLUDE.finditer(text):
        line = text.count("\n", 0, match.start(2)) + 1
        name = match.group(2)
        target = resolve(root, path, name)
        if target is None:
            for what, who in WORLD:
                if fnmatch(name, what) and not any(fnmatch(path, w) for w in who.split()):
                    yield f"{path}:{line}: <{name}> may be included by {who or 'nobody'} only"
        elif not allowed(path, target):
            yield f"{path}:{line}: {path.split('/')[0]} may not include {target}"


def includes(root, path, text):
    """The folders of the files of the tree that `text` includes."""
    targets = (resolve(root, path, m.group(2)) for m in INCLUDE.finditer(text))
    return {os.path.dirname(t) for t in targets if t} - {os.path.dirname(path)}


def cycles(edges):
    """One line per folder that includes itself through others."""
    for start in sorted(edges):
        todo, seen = [(start, (start,))], set()
        while todo:
            folder, way = todo.pop()
            for to in sorted(edges.get(folder, ())):
                if to == start:
                    yield "cycle of rooms: " + " -> ".join((*way, to))
                    todo = []
                    break
                if to not in seen:
                    seen.add(to)
                    todo.append((to, (*way, to)))


def print_rooms(edges):
    done, left = set(), set(edges) | {t for to in edges.values() for t in to}
    while left:
        ready = sorted(f for f in left if not edges.get(f, set()) - done)
        for folder in ready or sorted(left):
            print(f"{folder:18} {' '.join(sorted(edges.get(folder, ())))}")
        done |= set(ready) or left
        left -= done


def self_test(root):
    bad = [
        ("ir/x.c", '#include "passes/pass.h"\n'),
        ("runtime/x.c", '#include "ir/ir.h"\n'),
        ("frontend/x.c", "#include <llvm-c/Core.h>\n"),
        ("codegen/lower.c", '# include "frontend/frontend.h"\n'),
        ("runtime/gpu/driver_cuda.c", "#include <cuda.h>\n"),
    ]
    good = [
        ("codegen/compile.c", '#include "frontend/frontend.h"\n'),
        ("ir/x.c", '#include "runtime/contract/tile_image.h"\n'),
        ("runtime/host/driver_ref.c", '#include "ir/interp/interp.h"\n'),
    ]
    missed = [p for p, t in bad if not list(violations(root, p, t))]
    wrong = [p for p, t in good if list(violations(root, p, t))]
    for path in missed + wrong:
        print("self-test failed on", path)
    ring = {"ir": {"ir/layout"}, "ir/layout": {"ir/support"}, "ir/support": {"ir"}, "passes": {"ir"}}
    if len(list(cycles(ring))) != 3 or list(cycles({"passes": {"ir"}})):
        print("self-test failed on cycles")
        return 1
    return 1 if missed or wrong else 0


def main(args):
    root = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
    if args == ["--self-test"]:
        return self_test(root)
    rooms = args[:1] == ["--rooms"]
    if args and not rooms:
        root = args[0]
    found, files, edges = [], 0, {}
    for path in sources(root):
        files += 1
        with open(os.path.join(root, path), encoding="utf-8") as f:
            text = f.read()
        found += violations(root, path, text)
        if path.split("/")[0] not in ("tools", "examples", "test", "stdlib"):
            edges.setdefault(os.path.dirname(path), set()).update(includes(root, path, text))
    if rooms:
        print_rooms(edges)
        return 0
    found += cycles(edges)
    for line in found:
        print(line)
    print(f"{len(found)} violations in {files} files")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
