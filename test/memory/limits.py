"""tilec under limits of address space (ulimit -v): it compiles, or says that there is no memory, and ends with 70.

    limits.py TILEC FILE TARGET MEGABYTES...
"""
import os
import resource
import subprocess
import sys

tilec, source, target = sys.argv[1:4]
env = dict(os.environ, TILE_CACHE="off")
for megabytes in map(int, sys.argv[4:]):
    size = megabytes << 20
    result = subprocess.run([tilec, source, "--target", target], env=env, capture_output=True, text=True, check=False,
                            preexec_fn=lambda n=size: resource.setrlimit(resource.RLIMIT_AS, (n, n)))
    said = result.stderr.strip()
    print(f"{megabytes} MB: {result.returncode} {said}")
    if result.returncode != 0 and (result.returncode != 70 or not said.startswith("tilec: out of memory")):
        sys.exit(1)
