"""Each .tir given is run before and after each pass, and after all of them: each_pass.py FILE..."""
import subprocess
import sys

ALL = "canonicalize,cse,licm,unroll,canonicalize,cse,dce"
for path in sys.argv[1:]:
    for passes in sorted(set(ALL.split(","))) + [ALL]:
        command = ["tile-opt", "--passes=" + passes, "--verify-each", "--run", "--same-as=" + path, path]
        if subprocess.run(command).returncode != 0:
            sys.exit(" ".join(command))
