"""Makes the wheel twice, installs it where nothing else of this tree is, and uses it.

    wheel.py SOURCE BUILD SCRATCH

With pip: `pip install` in a fresh venv that sees the system's NumPy, with no index. Without pip or venv the wheel is unpacked, which is
what pip does with it.
"""
import glob
import importlib.util
import os
import shutil
import subprocess
import sys
import zipfile

LAUNCHER = "tile_launcher.abi3.so"
PROGRAM = """
import numpy as np
import tile
from tile import native
print("library:", "in the package" if native.library_path().startswith(PLACE) else native.library_path())
k = tile.kernel('kernel softmax(const f32 x[R, C], f32 y[R, C], const int B) grid(R) require(B >= C) {'
                ' auto v = load(x[pid(0), 0 +: B], pad = -inf); auto e = exp(v - max(v)); y[pid(0), 0 +: B] = e / sum(e); }', B=1024)
x = np.random.default_rng(1).random((128, 1000), np.float32)
y = np.empty_like(x)
k(x, y)
print("sums to %.0f" % y.sum())
print("launcher:", "as built" if native.launcher is None or k.launcher.call((x, y)) else "no quick call")
print("explains:", "occupancy" in str(k.explain("sm_80")))
"""


def run(words, **env):
    keep = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "TILE_LIBRARY", "TILE_BUILD", "TILE_PREFIX")}
    p = subprocess.run(words, capture_output=True, text=True, env={**keep, **env})
    if p.returncode:
        sys.exit(f"{' '.join(words)}\n{p.stdout}{p.stderr}")
    return p.stdout


def backend(source, folder, **env):
    return run([sys.executable, os.path.join(source, "python", "build_wheel.py"), folder], **env).strip()


def install(wheel, scratch):
    """(python, its environment, folder of the package)"""
    place = os.path.join(scratch, "venv")
    if importlib.util.find_spec("pip") and importlib.util.find_spec("ensurepip") and importlib.util.find_spec("venv"):
        run([sys.executable, "-m", "venv", "--system-site-packages", place])
        python = os.path.join(place, "bin", "python")
        run([python, "-m", "pip", "install", "--quiet", "--no-index", "--disable-pip-version-check", wheel])
        run([os.path.join(place, "bin", "tilec"), "--version"])
        return python, {}, place
    with zipfile.ZipFile(wheel) as z:
        z.extractall(place)
    for path in glob.glob(os.path.join(place, "tile", "lib", "*")):
        os.chmod(path, 0o755)
    return sys.executable, {"PYTHONPATH": place}, place


def names(wheel):
    with zipfile.ZipFile(wheel) as z:
        return sorted(z.namelist())


def main(source, build, scratch):
    shutil.rmtree(scratch, ignore_errors=True)
    wheels = [backend(source, os.path.join(scratch, n), TILE_BUILD=build) for n in ("one", "two")]
    print(os.path.basename(wheels[0]))
    with open(wheels[0], "rb") as one, open(wheels[1], "rb") as two:
        print("equal bytes:", one.read() == two.read())
    print("typed:", "tile/py.typed" in names(wheels[0]))
    print("launcher is in it:", os.path.exists(os.path.join(build, "package", LAUNCHER)) == ("tile/lib/" + LAUNCHER in names(wheels[0])))
    python, env, place = install(wheels[0], scratch)
    print(run([python, "-c", PROGRAM.replace("PLACE", repr(place))], **env), end="")
    print("tutorial:", ".target sm_80" in run([python, "-m", "tile.tutorial"], **env))
    beside = os.path.join(scratch, "tree", "python")  # a source tree without a build, in which the script's folder comes first
    shutil.copytree(os.path.join(source, "python"), beside, ignore=shutil.ignore_patterns("__pycache__"))
    print("tutorial of the source:", ".target sm_80" in run([python, os.path.join(beside, "tutorial.py")], **env))
    bare = subprocess.run([sys.executable, "-c", "import tile"], capture_output=True, text=True, env={"PYTHONPATH": beside})
    print("nothing installed:", "is the source of the package" in bare.stderr)
    prefix = os.path.join(scratch, "prefix")
    for component in ("compiler", "kernels"):
        run(["cmake", "--install", build, "--prefix", prefix, "--component", component])
    print("prefix: the same files:", names(backend(source, os.path.join(scratch, "three"), TILE_PREFIX=prefix)) == names(wheels[0]))
    p = subprocess.run([sys.executable, os.path.join(source, "python", "build_wheel.py"), scratch], capture_output=True, text=True,
                       env=dict(os.environ, TILE_PREFIX=os.path.join(scratch, "nothing")))
    print("nothing built:", p.returncode and p.stderr.partition("tile: ")[2], end="")
    shutil.rmtree(scratch)


if __name__ == "__main__":
    main(*sys.argv[1:])
