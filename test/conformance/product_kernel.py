"""The text of a kernel that sums matrix products in one loop and stores the sums: what most rows on products are."""


def product_kernel(parameters, a=None, b=None, then=None, name="k", block=(16, 32, 16), acc="f32", first="0", over=None,
                   m="pid(0) * {}", n="pid(1) * {}", before="", grid=None, loop="", precision=""):
    """block: rows, columns, step along k; numbers or names. a, b: the operands; default: slices of A and B. acc, first:
    type of the sums and what
    they begin with. over: the loop's range. m, n: where the block begins; before: lines after that. grid: in place of
    one block each.
    loop: clauses of the loop. then: lines after it; default: stores to C."""
    bm, bn, bk = block
    a = a or f"A[m +: {bm}, k +: {bk}]"
    b = b or f"B[k +: {bk}, n +: {bn}]"
    lines = [f"kernel {name}({parameters})",
             f"    grid({grid or f'cdiv(M, {bm}), cdiv(N, {bn})'})",
             "{",
             f"    int m = {m.format(bm)};",
             f"    int n = {n.format(bn)};",
             *indented(before),
             f"    tile<{acc}, {bm}, {bn}> acc = {first};",
             f"    for (int k : range({over or f'0, K, {bk}'})){loop}",
             f"        acc = dot({a}, {b}, acc{precision});",
             *indented(then or f"C[m +: {bm}, n +: {bn}] = acc;"),
             "}"]
    return "\n" + "\n".join(lines) + "\n"


def indented(text):
    return ["    " + line for line in text.strip().splitlines()]
