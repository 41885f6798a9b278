"""The tutorial of the package `tile`. Run it whole, or cell by cell in an editor that knows `# %%`."""
# %% [markdown]
# # From a vector addition to a tuned softmax
# A kernel describes what one program of a grid does with its *tiles*: blocks of numbers whose shape is known at compile time.

# %%
import numpy as np

import tile

add = tile.kernel("""
/// z = x + y
kernel add(const f32 x[N], const f32 y[N], f32 z[N], const int B = 1024)
    grid(cdiv(N, B))
{
    int i = pid(0) * B;
    z[i +: B] = x[i +: B] + y[i +: B];
}
""")
x, y = np.arange(5000, dtype=np.float32), np.ones(5000, np.float32)
z = np.empty_like(x)
add(x, y, z)
assert (z == x + y).all()

# %% [markdown]
# The kernel worked on the arrays themselves; nothing was copied. The slice that passes the end of the view reads zeros and writes
# nothing there, so 5000 need not be a multiple of 1024. `B` is a constant: another value is another kernel.

# %%
print(add)
help(add)
small = tile.kernel(add.module.source, B=64)
small(x=x, y=y, z=z)

# %% [markdown]
# ## Mistakes
# Arguments are checked at each call, programs when they are compiled.

# %%
try:
    add(x, y, z.astype(np.float64))
except tile.ArgumentError as e:
    print(e)
try:
    tile.kernel("kernel wrong(f32 x[N]) grid(1) { x[0] = q; }")
except tile.CompileError as e:
    print(e)

# %% [markdown]
# ## A softmax
# Rows are independent, so each is a program. `require` is checked at the launch.

# %%
SOFTMAX = """
/// y = softmax of each row of x.
kernel softmax(const f32 x[R, C], f32 y[R, C], const int B)
    grid(R)
    require(B >= C)
{
    int r = pid(0);
    auto v = load(x[r, 0 +: B], pad = -inf);
    auto e = exp(v - max(v));
    y[r, 0 +: B] = e / sum(e);
}
"""
softmax = tile.kernel(SOFTMAX, B=1024)
x = np.random.default_rng(1).standard_normal((128, 1000)).astype(np.float32)
y = np.empty_like(x)
softmax(x, y)
e = np.exp(x - x.max(axis=1, keepdims=True))
assert np.allclose(y, e / e.sum(axis=1, keepdims=True), rtol=1e-5)

# %% [markdown]
# `x[R, C]` is dense. `[R : ld, C]` takes rows at any distance: the strides are the array's, so a part of a wider array needs no copy.

# %%
into = tile.kernel(SOFTMAX.replace("y[R, C]", "y[R : ldy, C]"), B=1024)
wide = np.zeros((128, 3000), np.float32)
into(x, wide[:, 1000:2000])
assert (wide[:, 1000:2000] == y).all() and not wide[:, 2000:].any()

# %% [markdown]
# ## What became of it on a GPU
# No GPU is needed to see that, nor to run it: `emu:TARGET` executes the GPU's code thread by thread and checks it.

# %%
print(softmax.explain("sm_90a"))
emulated = tile.kernel(SOFTMAX, B=1024, device="emu:gfx942")
z = np.empty_like(x)
emulated(x, z)
assert np.allclose(z, y, rtol=1e-5)

# %% [markdown]
# ## 16-bit types
# NumPy has no bf16: `tile.view` says that the words of a `uint16` array are that. (The package `ml_dtypes` brings the type itself.)

# %%
scale = tile.kernel("kernel scale(bf16 x[N], f32 a) grid(1) require(N <= 64) { x[0 +: 64] = (bf16)((f32)x[0 +: 64] * a); }")
words = np.full(64, 0x3FC0, np.uint16)  # 1.5
scale(tile.view(words, "bf16"), 2.0)
assert (words == 0x4040).all()          # 3.0

# %% [markdown]
# ## Streams, prints and assertions
# A call on a stream of one's own returns at once. The end of `with` waits for it, prints what kernels printed and raises what they
# found wrong. `debug=True` keeps assertions.

# %%
chatty = tile.kernel('kernel chatty(const i32 x[N]) grid(N) { print("element", x[pid(0)]); assert(x[pid(0)] < 3, "too large"); }', debug=True)
try:
    with tile.Stream() as stream:
        chatty(np.arange(4, dtype=np.int32), stream=stream)
except tile.KernelError as e:
    print(e)

# %% [markdown]
# ## Ahead of time
# `tile.compile` gives what `tilec` writes: PTX, objects, images that `tile.load_image` and C programs load without a compiler.

# %%
image = tile.compile(SOFTMAX, target="cpu", kernel="softmax", B=1024)
again = tile.load_image(image.data).kernel("softmax")
again(x, z)
assert (z == y).all()
print(tile.compile(SOFTMAX, target="sm_80", emit="ptx", B=1024).text.splitlines()[4:7])
