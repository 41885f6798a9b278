# lit.cfg.py: how the .tile, .tir and .test files below this folder are run.
#
# Read through BUILD/test/lit.site.cfg.py, which says where the build is; `lit test/...` with TILE_BUILD set
# (default: build/) works too. Tools come from BUILD/bin and from LLVM's own bin folder, both first on PATH, so a
# RUN line says plainly `tile-opt ... %s | FileCheck %s`. Substitutions:
#   %source %build   roots of the source and of the build tree
#   %examples        folder of the built examples' programs
#   %python          the Python that runs lit
#   %cc              the C compiler of the build
#   %{hostile_seconds}  what test/tools/hostile.py allows per input
#   %{programs}      how many random programs test/fuzz/language.test takes
# Features: x86-64, asan, package, ptxas, lld, mpi, cuda, hip, cxx, numpy, torch, sphinx, clang, chromium,
# libpng, pcre2. A test that needs one says `// REQUIRES: ptxas`.
import glob
import importlib.util
import os
import platform
import shutil
import subprocess
import sys

import lit.formats

here = os.path.dirname(os.path.abspath(__file__))
source = getattr(config, "tile_source", None) or os.path.dirname(here)
build = getattr(config, "tile_build", None) or os.environ.get("TILE_BUILD") or os.path.join(source, "build")
sanitize = getattr(config, "tile_sanitize", "")
cc = getattr(config, "tile_cc", "") or "cc"

config.name = "tile-asan" if sanitize else "tile"
config.test_format = lit.formats.ShTest(execute_external=False)  # lit's own shell: the same on every machine
config.suffixes = [".tile", ".tir", ".test"]
config.excludes = ["Inputs", "unit", "conformance", "bench", "clean_packages"]
config.test_source_root = here
config.test_exec_root = os.path.join(build, "lit-out")
os.makedirs(config.test_exec_root, exist_ok=True)


def llvm_tools_dir():
    """The folder that holds FileCheck, not, split-file, llvm-readelf ... without a version in their names."""
    tried = [getattr(config, "llvm_tools", ""), "/usr/lib/llvm-19/bin"]
    found = shutil.which("llvm-config-19")
    if found:
        tried.append(subprocess.run([found, "--bindir"], capture_output=True, text=True).stdout.strip())
    for folder in tried:
        if folder and os.path.exists(os.path.join(folder, "FileCheck")):
            return folder
    lit_config.fatal("no FileCheck: install llvm-19-tools")


path = [os.path.join(build, "bin"), llvm_tools_dir(), os.environ.get("PATH", "/usr/bin:/bin")]
config.environment["PATH"] = os.pathsep.join(path)
for name in ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "XDG_RUNTIME_DIR"):
    if name in os.environ:
        config.environment[name] = os.environ[name]
# What a test compiles is compiled; the tests of the cache say where theirs is.
config.environment["TILE_CACHE"] = "off"
# Tests run side by side; a kernel's programs need not.
config.environment["TILE_THREADS"] = os.environ.get("TILE_THREADS", "2")

config.substitutions.append(("%source", source))
config.substitutions.append(("%build", build))
config.substitutions.append(("%examples", os.path.join(build, "bin")))
config.substitutions.append(("%python", sys.executable))
config.substitutions.append(("%cc", cc))

config.substitutions.append(("%{hostile_seconds}", "40" if sanitize else "10"))
config.substitutions.append(("%{programs}", "6" if sanitize else "24"))

features = config.available_features
if platform.machine() == "x86_64":
    features.add("x86-64")
if sanitize:
    features.add("asan")
    config.environment["ASAN_OPTIONS"] = "detect_leaks=1:strict_string_checks=1:check_initialization_order=1"
    config.environment["UBSAN_OPTIONS"] = "print_stacktrace=1:halt_on_error=1"
for feature, program in (("ptxas", "ptxas"), ("clang", "clang-19"), ("cxx", "g++"), ("lld", "ld.lld-19"), ("chromium", "chromium")):
    if shutil.which(program, path=config.environment["PATH"]):
        features.add(feature)
if os.path.exists(os.path.join(build, "bin", "09_image")):
    features.add("libpng")  # else CMake has left these programs out
if os.path.exists(os.path.join(build, "bin", "08_llm")):
    features.add("pcre2")


def starts_ranks():
    """Does mpirun start processes here? Without a network, or a shell for other machines, it may not."""
    env = dict(os.environ, OMPI_MCA_rmaps_base_oversubscribe="1", OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    try:
        return subprocess.run(["mpirun", "-n", "2", "true"], env=env, capture_output=True, timeout=30, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


if glob.glob(os.path.join(build, "lib", "libtilec-mpi.so*")) and starts_ranks():
    features.add("mpi")
if getattr(config, "tile_package", "") == "ON":
    features.add("package")  # `cmake --install` works here: not for sanitizer builds
if any(os.path.exists(p) for p in ("/dev/nvidia0", "/dev/nvidiactl")):
    features.add("cuda")
if os.path.exists("/dev/kfd"):
    features.add("hip")
try:
    import numpy  # noqa: F401  (only to know that it is there)

    features.add("numpy")
except ImportError:
    pass
if importlib.util.find_spec("sphinx") and importlib.util.find_spec("myst_parser"):
    features.add("sphinx")
if importlib.util.find_spec("torch"):
    features.add("torch")
