# lit.cfg.py: how the .tile, .tir and .test files below this folder are run.
#
# Read through BUILD/test/lit.site.cfg.py, which says where the build is; `lit test/...` with TILE_BUILD set
# (default: build/) works too. Tools come from BUILD/bin and from LLVM's own bin folder, both first on PATH, so a
# RUN line says plainly `tile-opt ... %s | FileCheck %s`. Substitutions:
#   %source %build   roots of the source and of the build tree
#   %examples        folder of the built examples' programs
#   %python          the Python that runs lit
#   %{plain}         %t by a path without blanks and letters beyond ASCII, which a shell that cuts pkg-config's words would not survive
#   %{pythonpath}    what finds the package `tile` of the source tree
#   %cc              the C compiler of the build
#   %{hostile_seconds}  what test/tools/hostile.py allows per input
#   %{programs}      how many random programs test/fuzz/language.test takes
# Features: llvm19 or llvm22 (what tilec has), x86-64, asan, package, ptxas, lld, mpi, two-hosts, cuda, hip, cxx, numpy, torch, jax, mypy, sphinx, clang, chromium,
# libpng, pcre2, libevent, ggml, onnxruntime, gdb, node, tree-sitter, conan, amx-emulator. A test that needs one says `// REQUIRES: ptxas`.
# TILE_TEST_WITHOUT=ptxas,numpy or =all hides what HIDDEN names: the machine looks as if it lacked them.
import glob
import hashlib
import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile

import lit.formats
import lit.ShUtil
import lit.TestRunner

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


BLANK = "\ue000"  # private use: no path has it


def plain_root():
    """The folder of the tests' outputs, if need be by a link to it."""
    root = config.test_exec_root
    if re.fullmatch(r"[\w./+-]+", root, re.ASCII):
        return root
    user = f"tile-lit-{os.getuid()}-{hashlib.sha1(root.encode()).hexdigest()[:12]}"
    link = next(os.path.join(d, user) for d in (tempfile.gettempdir(), "/tmp", "/var/tmp") if " " not in d and d.isascii())
    if not os.path.islink(link):
        os.symlink(root, link)
    return link


def add_paths(root):
    """%{plain}. And lit puts paths into command lines as text, so that one with a blank would be two words. Such a blank is another
    character until lit has cut the line into words."""
    values, word = lit.TestRunner.getDefaultSubstitutions, lit.ShUtil.ShLexer.lex_arg

    def text_of(w):
        if isinstance(w, lit.ShUtil.GlobItem):
            return lit.ShUtil.GlobItem(w.pattern.replace(BLANK, " "))
        return w.replace(BLANK, " ") if isinstance(w, str) else w

    def of_test(*args, **named):
        found = values(*args, **named)
        plain = dict(found)["%t"].replace(config.test_exec_root, root)
        return [(name, value.replace(" ", BLANK)) for name, value in [("%{plain}", plain), *found]]

    lit.TestRunner.getDefaultSubstitutions = of_test
    lit.ShUtil.ShLexer.lex_arg = lambda self, c: text_of(word(self, c))


add_paths(plain_root())


def llvm_tools_dir():
    """The folder that holds FileCheck, not, split-file, llvm-readelf ... without a version in their names."""
    tried = [getattr(config, "llvm_tools", ""), "/usr/lib/llvm-19/bin", "/usr/lib/llvm-22/bin"]
    found = shutil.which("llvm-config-19")
    if found:
        tried.append(subprocess.run([found, "--bindir"], capture_output=True, text=True).stdout.strip())
    for folder in tried:
        if folder and os.path.exists(os.path.join(folder, "FileCheck")):
            return folder
    lit_config.fatal("no FileCheck: install llvm-19-tools")


# What a machine may lack: (programs, Python modules).
HIDDEN = {
    "ptxas": (("ptxas", "nvcc", "nvdisasm", "cuobjdump", "fatbinary", "nvlink"), ()),
    "lld": (("ld.lld", "ld.lld-19"), ()),
    "mpi": (("mpirun", "mpiexec", "mpicc"), ()),
    "cxx": (("g++", "c++", "clang++", "clang++-19"), ()),
    "clang": (("clang", "clang-19"), ()),
    "chromium": (("chromium",), ()),
    "numpy": ((), ("numpy",)),
    "torch": ((), ("torch",)),
    "jax": ((), ("jax",)),
    "sphinx": (("sphinx-build",), ("sphinx", "myst_parser")),
}


def hide(names, folders):
    """The PATH, and Python's, on which what `names` of HIDDEN stand for is not found."""
    place = os.path.join(config.test_exec_root, "without", "-".join(names))
    programs = {p for n in names for p in HIDDEN[n][0]}
    shutil.rmtree(place, ignore_errors=True)
    os.makedirs(os.path.join(place, "bin"))
    os.makedirs(os.path.join(place, "python"))
    for folder in folders:
        for program in sorted(os.listdir(folder)) if os.access(folder, os.R_OK | os.X_OK) else ():
            link = os.path.join(place, "bin", program)
            if program not in programs and not os.path.lexists(link):
                os.symlink(os.path.join(folder, program), link)
    for module in (m for n in names for m in HIDDEN[n][1]):
        with open(os.path.join(place, "python", module + ".py"), "w", encoding="utf-8") as f:
            f.write(f'raise ImportError("{module} is hidden by TILE_TEST_WITHOUT")\n')
    return os.path.join(place, "bin"), os.path.join(place, "python")


without = [n for n in os.environ.get("TILE_TEST_WITHOUT", "").split(",") if n]
without = sorted(HIDDEN) if without == ["all"] else sorted(without)
if set(without) - set(HIDDEN):
    lit_config.fatal(f"TILE_TEST_WITHOUT: known are all, {', '.join(HIDDEN)}")
path = [os.path.join(build, "bin"), llvm_tools_dir(), *os.environ.get("PATH", "/usr/bin:/bin").split(os.pathsep)]
if without:
    bare, config.environment["PYTHONPATH"] = hide(without, path[1:])
    path = [path[0], bare]
    sys.path.insert(0, config.environment["PYTHONPATH"])
config.environment["PATH"] = os.pathsep.join(path)
for name in ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "XDG_RUNTIME_DIR"):
    if name in os.environ:
        config.environment[name] = os.environ[name]
# Open MPI 5 starts no rank without a home; nobody's own folder is written to.
config.environment["HOME"] = os.path.join(config.test_exec_root, "home")
os.makedirs(config.environment["HOME"], exist_ok=True)
# mpirun starts more ranks than there are cores, by the words of Open MPI 4 and of 5, and also as root. (`vader` attaches to
# other processes, which containers refuse; `tcp` says in the middle of other lines that there is no network.)
config.environment.update(OMPI_MCA_rmaps_base_oversubscribe="1", PRTE_MCA_rmaps_default_mapping_policy=":oversubscribe",
                          OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                          OMPI_MCA_btl_vader_single_copy_mechanism="none", OMPI_MCA_btl="^tcp")
# What a test compiles is compiled; the tests of the cache say where theirs is.
config.environment["TILE_CACHE"] = "off"
# Tests run side by side; a kernel's programs need not.
config.environment["TILE_THREADS"] = os.environ.get("TILE_THREADS", "2")

config.substitutions.append(("%source", source))
config.substitutions.append(("%build", build))
config.substitutions.append(("%examples", os.path.join(build, "bin")))
config.substitutions.append(("%python", sys.executable))
# The package `tile` of the source tree, and what hides modules that TILE_TEST_WITHOUT names.
modules = [os.path.join(source, "python"), config.environment.get("PYTHONPATH", "")]
config.substitutions.append(("%{pythonpath}", os.pathsep.join(m for m in modules if m)))
config.substitutions.append(("%cc", cc))

config.substitutions.append(("%{hostile_seconds}", "40" if sanitize else "10"))
config.substitutions.append(("%{programs}", "6" if sanitize else "16"))

features = config.available_features
version = subprocess.run([os.path.join(build, "bin", "tilec"), "--version"], capture_output=True, text=True, check=False).stdout
features.update(f"llvm{n}" for n in re.findall(r"LLVM (\d+)", version))
if platform.machine() == "x86_64":
    features.add("x86-64")
if sanitize:
    features.add("asan")
    # Not strict_string_checks, as for the unit tests: each search in a text would go to its end first.
    config.environment["ASAN_OPTIONS"] = "detect_leaks=1:check_initialization_order=1"
    config.environment["UBSAN_OPTIONS"] = "print_stacktrace=1:halt_on_error=1"
for feature, program in (("ptxas", "ptxas"), ("clang", "clang-19"), ("cxx", "g++"), ("lld", "ld.lld-19"), ("chromium", "chromium"), ("gdb", "gdb"),
                         ("node", "node"), ("tree-sitter", "tree-sitter"), ("conan", "conan")):
    if shutil.which(program, path=config.environment["PATH"]):
        features.add(feature)
if os.path.exists(os.path.join(build, "bin", "09_image")):
    features.add("libpng")  # else CMake has left these programs out
if os.path.exists(os.path.join(build, "bin", "08_llm")):
    features.add("pcre2")
    with open(os.path.join(build, "bin", "08_llm"), "rb") as program:
        if b"built without libevent" not in program.read():
            features.add("libevent")


def cpu_flags():
    """What Linux says that the CPU has."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as f:
            return next((set(line.split()) for line in f if line.startswith("flags")), set())
    except OSError:
        return set()


if os.path.exists(os.path.join(build, "amx", "bin", "tilec")) and {"avx512vl", "avx512_vnni", "avx512_bf16"} <= cpu_flags() and "amx_tile" not in cpu_flags():
    features.add("amx-emulator")  # which has nothing to do where the CPU has AMX
if os.path.exists(os.path.join(build, "bin", "17_ggml")):
    features.add("ggml")
if glob.glob(os.path.join(build, "lib", "libonnxruntime-tile.so")) and all(importlib.util.find_spec(m) for m in ("onnxruntime", "onnx", "ml_dtypes", "numpy")):
    features.add("onnxruntime")


def starts_ranks():
    """Does mpirun start processes here? Without a network, or a shell for other machines, it may not."""
    return succeeds("mpirun", "-n", "2", "true")


def succeeds(*command):
    try:
        return subprocess.run(command, env=config.environment, capture_output=True, timeout=30, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


if "mpi" not in without and glob.glob(os.path.join(build, "lib", "libtilec-mpi.so*")) and starts_ranks():
    features.add("mpi")
    if succeeds(os.path.join(source, "test", "tools", "two_hosts.sh"), "1", "true"):
        features.add("two-hosts")  # two of a kind: namespaces
if getattr(config, "tile_package", "") == "ON":
    features.add("package")  # `cmake --install` works here: not for sanitizer builds
if glob.glob(os.path.join(build, "lib", "libtilekernels.a")):
    features.add("kernels")  # TILE_KERNELS is ON
if any(os.path.exists(p) for p in ("/dev/nvidia0", "/dev/nvidiactl")):
    features.add("cuda")
if os.path.exists("/dev/kfd"):
    features.add("hip")
for feature, modules in (("numpy", ["numpy"]), ("sphinx", ["sphinx", "myst_parser"]), ("torch", ["torch"]), ("jax", ["jax"]), ("mypy", ["mypy"])):
    if feature not in without and all(importlib.util.find_spec(m) for m in modules):
        features.add(feature)
