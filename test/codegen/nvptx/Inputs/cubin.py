"""cubin.py TILEC FILE.tile FOLDER: stage cubin with the real ptxas, when there is one, and with scripts in its place."""
import os
import shutil
import subprocess
import sys

tilec, source, folder = shutil.which(sys.argv[1]), sys.argv[2], sys.argv[3]
shutil.rmtree(folder, ignore_errors=True)
os.makedirs(os.path.join(folder, "tmp"))


def run(path, **more):
    """tilec with PATH `path` and its temporary files in a folder that must be empty afterwards."""
    env = dict(os.environ, PATH=path, TMPDIR=os.path.join(folder, "tmp"), **more)
    out = os.path.join(folder, "k.cubin")
    if os.path.exists(out):
        os.remove(out)
    r = subprocess.run([tilec, source, "--target", "sm_80", "--emit=cubin", "-o", out], env=env, capture_output=True,
                       text=True, timeout=60)
    assert not os.listdir(env["TMPDIR"]), os.listdir(env["TMPDIR"])
    return r, open(out, "rb").read() if os.path.exists(out) else None


def pretend(text):
    """A folder with a program `ptxas`."""
    place = os.path.join(folder, "bin")
    os.makedirs(place, exist_ok=True)
    path = os.path.join(place, "ptxas")
    with open(path, "w") as f:
        f.write("#!/bin/sh\n" + text)
    os.chmod(path, 0o755)
    return place + ":/usr/bin:/bin"


def refused(result, words):
    r, data = result
    assert r.returncode == 2 and words in r.stderr and data is None, (r.returncode, r.stderr, data)


if shutil.which("ptxas"):
    r, data = run(os.environ["PATH"])
    assert r.returncode == 0 and data[:4] == b"\x7fELF" and b"vector_add_0" in data, r.stderr
else:
    print("skipped: the real ptxas, which is not here")
refused(run(os.path.join(folder, "tmp")), "no ptxas on PATH")
refused(run(pretend("echo 'ptxas fatal : no'; exit 255")), "ptxas failed: ptxas fatal : no")
refused(run(pretend("exit 0")), "ptxas failed")  # and wrote nothing
refused(run(pretend("kill -SEGV $$")), "ptxas failed")
refused(run(pretend("sleep 30 & sleep 30"), TILE_PTXAS_SECONDS="1"), "took too long")
r, data = run(pretend('while [ "$1" != -o ]; do shift; done; echo made > "$2"'))
assert r.returncode == 0 and data == b"made\n", r.stderr
