#!/usr/bin/env python3
"""The recipe for Conan, on a build that is there.

    conan.py ROOT BUILD FOLDER

Packages BUILD by `conan export-pkg`, in a home of its own in FOLDER, then has Conan build and run the recipe's test package. A build from the
sources is `conan create tools/package/conan`, which takes minutes.
"""
import os
import re
import subprocess
import sys


class Conan:
    def __init__(self, folder):
        self.environment = dict(os.environ, CONAN_HOME=os.path.join(folder, "home"), NO_COLOR="1", PYTHONDONTWRITEBYTECODE="1")

    def run(self, *args):
        p = subprocess.run(["conan", *args], env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if p.returncode:
            sys.exit(f"conan {' '.join(args)}: {p.stdout}")
        return p.stdout


def status(root):
    return subprocess.run(["git", "-C", root, "status", "--short"], capture_output=True, text=True, check=False).stdout


def main(root, build, folder):
    recipe, conan, before = os.path.join(root, "tools/package/conan"), Conan(folder), status(root)
    conan.run("profile", "detect")
    kernels = os.path.exists(os.path.join(build, "lib/libtilekernels.a"))
    made = conan.run("export-pkg", recipe, "-tf=", "-o", f"kernels={kernels}", "-c", f"user.tile:build={build}")
    package = re.search(r"Full package reference: (tile/[\d.]+)", made)[1]
    print("exported:", package)
    ran = conan.run("test", os.path.join(recipe, "test_package"), package, "-o", f"*:kernels={kernels}",
                    "-c", f"tools.cmake.cmake_layout:test_folder={folder}/test")
    for program, text in re.findall(r"RUN: \".*/(\w+)\"\n(.*)", ran):
        print(f"{program}: {text}")
    deps = os.path.join(folder, "deps")
    conan.run("install", "--requires", package, "-o", f"*:kernels={kernels}", "-g", "PkgConfigDeps", "-of", deps)
    found = subprocess.run(["pkg-config", "--libs-only-l", "tilec"], env=dict(os.environ, PKG_CONFIG_PATH=deps), capture_output=True, text=True, check=False)
    print("pkg-config:", found.stdout.strip(), found.stderr)
    print("nothing beside the sources:", status(root) == before)


if __name__ == "__main__":
    main(*sys.argv[1:])
