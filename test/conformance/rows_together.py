"""Several features in one kernel: borders, points, order, scans, atomics and nested functions in loops and branches."""
import numpy as np

from rows import row
from values import exact, exactly, ints, poison, small, zeros


def _reflect(i, n):
    j = i % (2 * (n - 1))
    return np.where(j < n, j, 2 * (n - 1) - j)


def _symmetric(i, n):
    j = i % (2 * n)
    return np.where(j < n, j, 2 * n - 1 - j)


def _rows(a):
    """The kernel below, one element after the other."""
    x, width = a["x"], 8
    rows, columns = x.shape
    y, counts = np.zeros(x.shape), np.zeros(8)
    best, where = np.zeros((rows, 3)), np.zeros((rows, 3))
    for r in range(rows):
        top, at = np.full(3, -np.inf), np.full(3, -1)
        for c in range(0, columns, width):
            i = np.arange(c, c + width)
            inside = i < columns
            v = np.clip(x[r, _reflect(i - 1, columns)], -3, 3) / 4
            v = v + np.clip(x[_symmetric(np.array([r + 1]), rows)[0], _symmetric(i, columns)], -3, 2)
            y[r, i[inside]] = np.roll(np.cumsum(v) - v, -1)[inside]
            np.add.at(counts, np.floor(v * 4).astype(int)[inside] % 8, 1)
            values, places = np.append(top, np.where(inside, v, -np.inf)), np.append(at, i)
            first = np.argsort(-values, kind="stable")[:3]
            top, at = values[first], places[first]
        best[r], where[r] = top, at
    return {"y": exact(y), "counts": exact(counts), "best": exact(best), "place": exact(where)}


row("together_borders_order_scans_atomics", """
const int QUARTERS = 4;
struct limits { f32 low; f32 high; };
kernel k(const f32 x[R, C], f32 y[R, C], i32 counts[8], f32 best[R, 3], i32 place[R, 3],
         const int B = 8, const bool BELOW = true)
    grid(cdiv(R, 2))
{
    for (int d : range(2)) {
        int r = pid(0) * 2 + d;
        if (r >= R) return;
        limits l = {-3, 3};
        auto limited(auto t) { return clamp(t, l.low, l.high); }
        tile<f32, 3> top = -inf;
        tile<i32, 3> at_ = -1;
        for (int c : range(0, C, B)) {
            auto v = limited(load(x[r, c - 1 +: B], border = reflect)) / QUARTERS;
            static if (BELOW) {
                l.high = 2;
                v += limited(load(x[r + 1, c +: B], border = symmetric));
                l.high = 3;
            }
            y[r, c +: B] = roll(cumsum(v, 0, exclusive = true), 0, -1);
            auto candidates = in(x[r, c +: B]) ? v : -inf;
            (top, at_) = topk((cat(top, candidates, 0), cat(at_, iota(B) + c, 0)), 3);
            atomic_add(at(counts, floor_mod(cast(floor(v * QUARTERS), i32), 8)), 1, mask = c + iota(B) < C);
        }
        best[r, 0 +: 3] = top;
        place[r, 0 +: 3] = at_;
    }
}
""", {"x": small("f32", 1, 5, 21), "y": poison("f32", 5, 21), "counts": zeros("i32", 8), "best": poison("f32", 5, 3),
      "place": poison("i32", 5, 3)}, _rows)

row("together_points_with_borders_in_a_product", """
kernel k(const f8e4m3 a[M, K], const i32 rows[N], f32 y[N, N])
    grid(1)
{
    auto p = load(at(a, rows[0 +: 16], -2 +: 32), border = wrap);
    y[0 +: 16, 0 +: 16] = dot(p, trans(p));
}
""", {"a": small("f8e4m3", 2, 5, 30), "rows": ints("i32", 3, -20, 20, 16), "y": poison("f32", 16, 16)},
    lambda a: (lambda p: {"y": exact(p @ p.T)})(a["a"][a["rows"] % 5][:, (np.arange(32) - 2) % 30]))

row("together_functions_keep_their_own_names", """
auto apply(auto x, const fn f) { f32 s = 1000; int i = 77; return f(x) + (s - s) + (f32)(i - i); }
auto apply_more(auto x, const fn f) { f32 s = 2000; return apply(x, fn (s2) => f(s2) + s); }
kernel k(const f32 x[N], f32 y[5])
    grid(1)
{
    f32 s = 1;
    for (int i : range(2)) y[i] = apply(x[i], fn (q) => q + s + (f32)i);
    y[2] = apply_more(x[2], fn (x) => x * s);
    s = 3;
    y[3] = apply_more(x[0], fn (f) => f + s);
    y[4] = apply(x[0 +: 3], fn (t) => reduce(t * s, 0, fn (p, q) => max(p, q)));
}
""", {"x": exactly("f32", [3, 5, 7]), "y": poison("f32", 5)}, lambda a: {"y": exact([4, 7, 2007, 2006, 21])})

row("together_functions_between_carried_values", """
kernel k(i32 y[N], int n)
    grid(1)
{
    int a = 1, b = 1, i = 0;
    int next() { return a + b; }
    while (i < n) {
        int c = next();
        a = b;
        b = c;
        y[i] = next();
        i += 1;
        if (i > 6) break;
    }
}
""", {"y": zeros("i32", 8), "n": 8}, lambda a: {"y": exact([3, 5, 8, 13, 21, 34, 55, 0])})
