"""tile.jax_op: functions of JAX made of kernels: jit, grad, vmap, arrays that a kernel changes, types, what is refused."""
import os
import re
import subprocess
import sys
import tempfile
import threading
import unittest

import jax

jax.config.update("jax_enable_x64", True)
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
import tile  # noqa: E402

README = os.path.join(os.path.dirname(os.path.abspath(tile.__file__)), os.pardir, "README.md")
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "Inputs", "rms.tile"), encoding="utf-8") as source:
    NORM = source.read() + """
kernel add_to(f32 y[N], const f32 x[N], f32 by, i32 times, bool twice)
    grid(cdiv(N, 64))
{
    int n = pid(0) * 64;
    y[n +: 64] += x[n +: 64] * by * (f32)times * (twice ? 2.0 : 1.0);
}

kernel checked(const i32 x[N], i32 y[N])
    grid(N)
{
    assert(x[pid(0)] >= 0, "a negative one");
    y[pid(0)] = x[pid(0)] + 1;
}
"""


@tile.jax_op(NORM, "rms", backward="rms_backward", zeros=["dw"], B=64)
def rms(x, w, eps=1e-5):
    """RMS norm."""


@tile.jax_op(NORM, "add_to")
def add_to(y, x, by, times=1, twice=False):
    """y + x by times"""


def plain(x, w, eps=1e-5):
    r = 1 / jnp.sqrt((x * x).mean(-1) + eps)
    return x * r[..., None] * w, r


class Functions(unittest.TestCase):
    def setUp(self):
        rng = np.random.default_rng(1)
        self.x, self.w = (jnp.asarray(rng.standard_normal(s), jnp.float32) for s in ((5, 50), (50,)))

    def near(self, got, want, tolerance=1e-5):
        for g, w in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
            self.assertEqual((g.shape, g.dtype), (w.shape, w.dtype))
            np.testing.assert_allclose(np.asarray(g, np.float64), np.asarray(w, np.float64), tolerance, tolerance)

    def test_values(self):
        self.assertEqual((rms.__name__, rms.__doc__), ("rms", "RMS norm."))
        for f in (rms, jax.jit(rms), jax.jit(rms, static_argnames="eps")):
            self.near(f(self.x, self.w), plain(self.x, self.w))
        self.near(jax.jit(rms, static_argnames="eps")(self.x, self.w, eps=0.5), plain(self.x, self.w, 0.5))
        self.near(rms(self.x[:0], self.w), plain(self.x[:0], self.w))

    def test_types(self):
        y, r = rms(self.x.astype(jnp.bfloat16), self.w.astype(jnp.bfloat16))
        want = plain(self.x.astype(jnp.bfloat16).astype(jnp.float32), self.w.astype(jnp.bfloat16).astype(jnp.float32))
        self.near((y, r), (want[0].astype(jnp.bfloat16), want[1]), 1e-2)
        double = tile.jax_op(NORM, "rms", B=64, S="f64")(lambda x, w, eps=1e-5: None)
        x, w = self.x.astype(jnp.float64), self.w.astype(jnp.float64)
        self.near(double(x, w), plain(x, w), 1e-12)

    def test_gradients(self):
        def loss(f, x, w):
            return (jnp.sin(f(x, w)[0]) * jnp.arange(50)).sum()
        for f in (rms, jax.jit(rms)):
            self.near(jax.grad(lambda x, w: loss(f, x, w), (0, 1))(self.x, self.w), jax.grad(lambda x, w: loss(plain, x, w), (0, 1))(self.x, self.w), 2e-4)
        self.near(jax.grad(lambda w: loss(rms, self.x, w))(self.w), jax.grad(lambda w: loss(plain, self.x, w))(self.w), 2e-4)

    def test_a_batch_is_a_loop(self):
        x = jnp.stack([self.x, self.x * 2 + 1, -self.x])
        self.near(jax.vmap(rms, (0, None))(x, self.w), jax.vmap(plain, (0, None))(x, self.w))
        self.near(jax.jit(jax.vmap(rms, (0, None)))(x, self.w), jax.vmap(plain, (0, None))(x, self.w))

    def test_what_a_kernel_changes(self):
        y, x = jnp.arange(100, dtype=jnp.float32), jnp.ones(100, jnp.float32)
        for f in (add_to, jax.jit(add_to, static_argnames=("by", "times", "twice"), donate_argnames="y")):
            was = y + 0
            self.near(f(y + 0, x, 0.5, times=-3, twice=True), was - 3)
        self.near(y, jnp.arange(100, dtype=jnp.float32))

    def test_threads(self):
        f, bad = jax.jit(rms), []

        def run(k):
            for _ in range(20):
                x = self.x * k
                if not np.allclose(f(x, self.w)[0], plain(x, self.w)[0], 1e-4, 1e-4):
                    bad.append(k)
        threads = [threading.Thread(target=run, args=(k + 1,)) for k in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(bad, [])

    def test_emulated(self):
        f = tile.jax_op(NORM, "rms", B=64, device="emu:sm_90a")(lambda x, w, eps=1e-5: None)
        self.near(f(self.x, self.w), plain(self.x, self.w))

    def refused(self, text, f, *args, **named):
        with self.assertRaisesRegex(Exception, text):
            jax.block_until_ready(f(*args, **named))

    def test_refused(self):
        for device in ("cpu", "ref"):
            f = tile.jax_op(NORM, "checked", device=device, check=True)(lambda x: None)
            self.near(f(jnp.arange(4, dtype=jnp.int32)), jnp.arange(1, 5, dtype=jnp.int32))
            self.refused("a negative one", f, jnp.arange(-1, 3, dtype=jnp.int32))
            self.near(f(jnp.arange(4, dtype=jnp.int32)), jnp.arange(1, 5, dtype=jnp.int32))
        self.refused(r"require\(N <= B\) does not hold", tile.jax_op(NORM, "rms", B=16)(lambda x, w, eps=0: None), self.x, self.w)
        self.refused("parameter 'w'|extent|expects", rms, self.x, self.w[:7])
        self.refused("number of the kernel", jax.jit(lambda e: rms(self.x, self.w, e)), 0.5)
        self.refused("no constant 'Q'", tile.jax_op, NORM, "rms", B=64, Q=1)
        self.refused("no kernel 'gone'", tile.jax_op, NORM, "gone")
        self.refused("lacks the parameter 'x'", tile.jax_op(NORM, "rms", B=64), lambda w, eps=0: None)
        self.refused("no parameter 'q'", tile.jax_op(NORM, "rms", B=64), lambda x, w, q, eps=0: None)
        self.refused("'y' is changed", tile.jax_op(NORM, "add_to", backward="rms_backward"), lambda y, x, by, times, twice: None)
        self.refused("has registered no kernel 5", jax.ffi.ffi_call("tile_xla_call", jax.ShapeDtypeStruct((2,), jnp.float32)), kernel=np.int64(5))

    def test_readme(self):
        with open(README, encoding="utf-8") as f:
            files = dict(re.findall(r"^`(swish\S*)`:\n\n```\w+\n(.*?)^```", f.read(), re.M | re.S))
        with tempfile.TemporaryDirectory() as d:
            for name, text in files.items():
                with open(os.path.join(d, name), "w", encoding="utf-8") as f:
                    f.write(text)
            p = subprocess.run([sys.executable, "swish_jax.py"], cwd=d, capture_output=True, text=True)
        self.assertEqual((p.stdout, p.returncode), ("True\nTrue\n", 0), p.stderr)

    def test_another_process(self):
        """Code that a cache has kept calls no kernel of this process by chance."""
        program = f"import jax, tile\nNORM = '''{NORM}'''\nf = jax.jit(tile.jax_op(NORM, 'checked')(lambda x: None))\nprint(f(jax.numpy.arange(3, dtype='int32')))\n"
        with tempfile.TemporaryDirectory() as d:
            env = {**os.environ, "JAX_COMPILATION_CACHE_DIR": d, "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0", "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1"}
            for _ in range(2):
                p = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True)
                self.assertEqual((p.stdout, p.returncode), ("[1 2 3]\n", 0), p.stderr)


if __name__ == "__main__":
    unittest.main()
