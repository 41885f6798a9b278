#!/usr/bin/env python3
"""Compiles kernels of packages that are written in Triton, without a GPU and without what those packages need: the part of library.py that
runs under a python that has Triton.

    originals.py FOLDER TARGET OUT < JOBS

FOLDER holds packages, as their wheels hold them. A job is a line of JSON: name, path (package.module), kernel, types (name of an argument:
type; others are i32), constants, odd (arguments that are multiples of nothing), warps, stages. Writes OUT/NAME.ptx or OUT/NAME.s, and a
line for each job: [name, what went wrong or null].

Of a package only modules that have kernels, or functions for kernels, are imported; anything else, torch too, is a stand-in.
"""
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import sys
from types import ModuleType, SimpleNamespace
from unittest.mock import MagicMock

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.language.extra import libdevice

INTEGER = "i32"
# Modules without kernels that are imported as they are, and what others have in place of their own.
REAL = ("fla.ops.utils.op", "flag_gems.utils.triton_lang_extension", "flag_gems.utils.triton_lang_helper")


class Version(tuple):
    """What packaging.version.Version is asked for."""

    def __new__(cls, text):
        return super().__new__(cls, [int(x) for x in text.split("+")[0].split(".")[:2]])


def same(*_args, **_options):
    """A decorator with arguments that does nothing."""
    return lambda f: f


def finite(_type):
    return SimpleNamespace(min=-448.0, max=448.0)


GIVEN = {
    "torch": {"__version__": "2.9.0", "finfo": finite},
    "packaging.version": {"Version": Version, "parse": Version},
    "vllm.triton_utils": {"tl": tl, "triton": triton, "HAS_TRITON": True, "tldevice": libdevice},
    "vllm.platforms": {"current_platform": MagicMock(**{n + ".return_value": False for n in ("is_rocm", "is_xpu", "is_cpu", "is_arch_support_pdl")},
                                                     **{"fp8_dtype.return_value": "float8_e4m3fn", "is_cuda.return_value": True})},
    "vllm.model_executor.layers.quantization.utils.quant_utils": {"get_fp8_min_max": lambda: (-448.0, 448.0)},
    "fla.utils": {"autotune_cache_kwargs": {}, "IS_NVIDIA_HOPPER": True, "IS_NVIDIA_BLACKWELL": False, "IS_AMD": False, "USE_CUDA_GRAPH": False,
                  "check_shared_mem": lambda *a, **k: True, "IS_GATHER_SUPPORTED": False, "IS_TF32_SUPPORTED": True, "IS_TMA_SUPPORTED": False},
    "fla.ops.utils.cache": {"fla_cache_autotune": same},
    "liger_kernel.utils": {"is_npu_available": lambda: False, "infer_device": lambda: "cuda", "infer_device_arch": lambda: "hopper"},
    "unsloth.kernels.utils": {"triton_tanh": libdevice.tanh, "triton_cast": tl.cast},
    "flag_gems.utils": {"libentry": same, "libtuner": same, "tl_extra_shim": libdevice},
    "flag_gems.runtime": {"get_heuristic_config": lambda name: {}, "get_tuned_config": lambda name: []},
}


class StandIn(ModuleType):
    """A module, or package, of which everything is there, and does nothing."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        inside = os.path.join(self.__path__[0], name)
        if f"{self.__name__}.{name}" in GIVEN or os.path.exists(inside + ".py") or os.path.isdir(inside):
            return importlib.import_module(f"{self.__name__}.{name}")
        value = MagicMock(name=f"{self.__name__}.{name}")
        setattr(self, name, value)
        return value


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, folder):
        self.folder, self.roots = folder, set(os.listdir(folder))

    def find_spec(self, name, _path, _target=None):
        root = name.split(".")[0]
        if name.startswith("triton.experimental.tle"):  # of FlagGems' own Triton
            root = ""
        if root and root not in self.roots and self.elsewhere(root):
            return None
        base = os.path.join(self.folder, *name.split("."))
        if name not in GIVEN and os.path.exists(base + ".py") and self.is_real(name, base + ".py"):
            return importlib.util.spec_from_file_location(name, base + ".py")
        spec = importlib.machinery.ModuleSpec(name, self, is_package=True)
        spec.submodule_search_locations = [base]
        return spec

    @staticmethod
    def is_real(name, path):
        with open(path, encoding="utf-8") as f:
            return name in REAL or "triton.jit" in f.read()

    @staticmethod
    def elsewhere(root):
        """Is there such a package?"""
        return root in sys.stdlib_module_names or root in sys.builtin_module_names or (
            importlib.machinery.PathFinder.find_spec(root) is not None and root != "torch")

    def create_module(self, spec):
        module = StandIn(spec.name)
        for name, value in GIVEN.get(spec.name, {}).items():
            setattr(module, name, value)
        return module

    def exec_module(self, module):
        pass


def unwrapped(fn):
    """The kernel inside of what tunes it, and what is guessed of it."""
    while not isinstance(fn, triton.runtime.JITFunction):
        fn = fn.fn
    return fn


def source_of(job):
    fn = unwrapped(getattr(importlib.import_module(job["path"]), job["kernel"]))
    given = dict(job["constants"])
    for p in fn.params:
        if p.name not in given and p.name not in job["types"] and p.has_default:
            given[p.name] = p.default
    missing = [p.name for p in fn.params if p.is_constexpr and p.name not in given]
    if missing:
        raise ValueError(f"no value for {', '.join(missing)}")
    unknown = [n for n in (*job["constants"], *job["types"]) if n not in fn.arg_names]
    if unknown:
        raise ValueError(f"no argument is called {', '.join(unknown)}")
    given = {k: getattr(tl, v) if isinstance(v, str) and hasattr(tl, v) else v for k, v in given.items()}
    kinds = {n: "constexpr" if n in given else job["types"].get(n, INTEGER) for n in fn.arg_names}
    aligned = {(i,): [["tt.divisibility", 16]] for i, n in enumerate(fn.arg_names)
               if (kinds[n][0] == "*" or kinds[n] == INTEGER) and n not in job["odd"]}
    return ASTSource(fn, kinds, {(fn.arg_names.index(n),): v for n, v in given.items()}, aligned)


def target_of(target):
    if target.startswith("gfx"):
        return GPUTarget("hip", target, 64 if target.startswith("gfx9") else 32), "amdgcn", "s"
    return GPUTarget("cuda", int(target[3:5]), 32), "ptx", "ptx"


def main(folder, target, out):
    sys.meta_path.insert(0, Finder(folder))
    gpu, kind, ending = target_of(target)
    for job in map(json.loads, sys.stdin):
        error = None
        try:
            code = triton.compile(source_of(job), target=gpu, options={"num_warps": job["warps"], "num_stages": job["stages"]})
            with open(os.path.join(out, f"{job['name']}.{ending}"), "w", encoding="utf-8") as f:
                f.write(code.asm[kind])
        except Exception as e:  # pylint: disable=broad-except
            if os.environ.get("TRACE"):
                raise
            error = f"{type(e).__name__}: {str(e).strip().splitlines()[-1] if str(e).strip() else ''}"[:160]
        print(json.dumps([job["name"], error]), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
