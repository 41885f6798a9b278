"""tile.jax_op: a function of JAX made of kernels, as custom calls of XLA.

A chain is some kernels that run one after the other: arguments meet parameters by name, what a kernel writes and nobody gave is a result,
with the shape of its extents, and is there for the kernels behind it. One chain is the function, a second one, of the kernels of
`backward`, its gradient. Each kernel is one call of the handler tile_xla_call (tile_xla.h), whose attributes say which kernel, and what
each of its parameters is.
"""
from __future__ import annotations

import ctypes
import functools
import inspect
import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Callable, Optional, Union, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_derivatives import SymbolicZero

from . import compiler, declarations, elements, modules, native
from .devices import Device
from .native import check
from .signatures import Result, Signature, Values, chosen, defaults_of, gradients_of, unused, wrong

TARGET = "tile_xla_call"
ELEMENTS = {name: name for name in elements.NAMES if name not in elements.PACKED}
FORMATS = {"f16": "e", "f32": "f", "f64": "d"}  # of struct: others are integers
registered: dict[int, tuple[modules.Kernel, int]] = {}  # by the id of a kernel, which stays: code that XLA has compiled may call it


@functools.cache
def register_handler() -> None:
    address = ctypes.cast(native.lib.tile_xla_call, ctypes.c_void_p).value
    ctypes.pythonapi.PyCapsule_New.restype = ctypes.py_object
    ctypes.pythonapi.PyCapsule_New.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    for platform in ("cpu", "CUDA", "ROCM"):
        jax.ffi.register_ffi_target(TARGET, ctypes.pythonapi.PyCapsule_New(address, None, None), platform=platform)


def number_of(kernel: modules.Kernel) -> int:
    if id(kernel) not in registered:
        register_handler()
        number = ctypes.c_int64()
        check(native.lib.tile_xla_register(kernel.handle, ctypes.byref(number)))
        registered[id(kernel)] = kernel, number.value
    return registered[id(kernel)][1]


def bits_of(value: Any, element: str) -> int:
    """The bits of a number as an i64."""
    if element == "bf16":
        raise wrong("a number of type bf16 cannot be passed from JAX: make it f32 in the kernel")
    data = struct.pack("<" + FORMATS[element], value) if element in FORMATS else int(value).to_bytes(8, "little", signed=int(value) < 0)
    return int.from_bytes(data.ljust(8, b"\0"), "little", signed=True)


def element_of(array: Any) -> str:
    name = elements.element_of(array.dtype)
    if name not in ELEMENTS:
        raise wrong(f"kernels have no element type for JAX's {array.dtype}")
    return name


class Step(Signature):
    def __init__(self, declared: declarations.Declaration, load: Callable[..., modules.Kernel], consts: Mapping[str, str]) -> None:
        super().__init__(declared, consts, "JAX", ELEMENTS)
        self.load = load

    def call(self, values: Values, zeros: Sequence[str], like: Mapping[str, str]) -> None:
        """Enters what the kernel writes. What it changes is an operand and a result in the same memory, if XLA has no other use for it."""
        found = {name: element_of(v) for name, v in values.items() if hasattr(v, "shape")}
        self.lacks(values)
        kernel = self.load(self.name, {**self.consts, **self.types_of(found)})
        made = {r.name: r for r in self.results(values, found, zeros, like)}
        for r in made.values():
            if r.zero:
                values[r.name] = jnp.zeros(r.shape, elements.numpy_type(r.element))
        operands = [p.name for p in self.parameters if p.kind != "scalar" and p.name in values]
        results = [p.name for p in self.parameters if p.kind != "scalar" and p.written]
        scalars = [p for p in self.parameters if p.kind == "scalar"]
        places = {**{name: k for k, name in enumerate(operands)}, **{name: len(operands) + k for k, name in enumerate(results)},
                  **{p.name: -1 - k for k, p in enumerate(scalars)}}
        types = [self.shape_of(name, values, made) for name in results]
        call = jax.ffi.ffi_call(TARGET, types, vmap_method="sequential",
                                input_output_aliases={operands.index(name): k for k, name in enumerate(results) if name in operands})
        got = call(*(values[name] for name in operands), kernel=np.int64(number_of(kernel)),
                   places=np.array([places[p.name] for p in self.parameters], np.int64),
                   scalars=np.array([bits_of(values[p.name], p.element) for p in scalars], np.int64),
                   types=np.array([elements.NUMBERS[p.element] for p in scalars], np.int64))
        values.update(zip(results, got))

    def shape_of(self, name: str, values: Values, made: Mapping[str, Result]) -> Any:
        struct_of: Callable[..., Any] = jax.ShapeDtypeStruct
        if name in values:
            return struct_of(values[name].shape, values[name].dtype)
        return struct_of(tuple(made[name].shape), elements.numpy_type(made[name].element))


class Chain:
    def __init__(self, steps: Sequence[Step], outputs: Optional[Sequence[str]], zeros: Sequence[str]) -> None:
        self.steps, self.zeros = steps, zeros
        written = [p.name for step in steps for p in step.parameters if p.written]
        self.outputs = list(outputs if outputs is not None else dict.fromkeys(written))

    def run(self, values: Values, like: Mapping[str, str]) -> list[Any]:
        for step in self.steps:
            step.call(values, self.zeros, like)
        return [values[name] for name in self.outputs]


def one_or_all(results: Sequence[Any]) -> Any:
    return tuple(results) if len(results) > 1 else results[0]


def cotangent(g: Any) -> Any:
    shape: Any = g.aval if isinstance(g, SymbolicZero) else None
    return jnp.zeros(shape.shape, shape.dtype) if shape is not None else g


class Function:
    """What tile.jax_op makes."""
    __name__: str

    def __init__(self, function: Callable[..., Any], forward: Chain, behind: Sequence[Step], zeros: Sequence[str]) -> None:
        functools.update_wrapper(self, function)
        self.signature = inspect.signature(function)
        self.inputs, self.defaults = defaults_of(self.signature.parameters, self.__name__, forward.steps[0])
        self.arrays = [p.name for p in forward.steps[0].parameters if p.kind != "scalar" and p.name in self.inputs]
        self.arrays.sort(key=self.inputs.index)
        self.forward = forward
        self.backward: Optional[Chain] = None
        self.taken: list[str] = []
        self.gradients: dict[str, str] = {}
        if behind:
            changed = [name for name in self.arrays if name in forward.outputs]
            if changed:
                raise wrong(f"{self.__name__}: '{changed[0]}' is changed, and only a function that changes nothing has a gradient")
            self.taken, self.gradients = gradients_of(self.__name__, self.inputs, forward.outputs, behind)
            self.backward = Chain(behind, list(self.gradients), zeros)
        self.made = functools.lru_cache(maxsize=256)(self.make)

    def __call__(self, *args: Any, **named: Any) -> Any:
        bound = self.signature.bind(*args, **named)
        values = {**self.defaults, **bound.arguments}
        missing = [name for name in self.inputs if name not in values]
        if missing:
            raise TypeError(f"{self.__name__}() needs '{missing[0]}'")
        numbers = {name: v for name, v in values.items() if name not in self.arrays}
        for name, v in numbers.items():
            if isinstance(v, jax.core.Tracer):
                raise wrong(f"{self.__name__}: '{name}' is a number of the kernel, which must be known when JAX traces: name it in static_argnames")
        arrays = [jnp.asarray(values[name]) for name in self.arrays]
        return self.made(tuple(numbers.items()))(*arrays)

    def make(self, numbers: tuple[tuple[str, Any], ...]) -> Callable[..., Any]:
        """The function of the arrays alone."""
        def primal(*arrays: Any) -> Any:
            return one_or_all(self.forward.run({**dict(numbers), **dict(zip(self.arrays, arrays))}, {}))

        def forward(*arrays: Any) -> Any:
            lost = [name for name, a in zip(self.arrays, arrays) if a.perturbed and "d" + name not in self.gradients]
            if lost:
                raise wrong(f"{self.__name__}: '{lost[0]}' is differentiated, and the backward kernels do not write 'd{lost[0]}'")
            values = [a.value for a in arrays]
            results = primal(*values)
            return results, (values, results)

        def backward(kept: Any, grads: Any) -> Any:
            arrays, results = kept
            many = len(self.forward.outputs) > 1
            values = {**dict(numbers), **dict(zip(self.arrays, arrays)), **dict(zip(self.forward.outputs, results if many else (results,)))}
            values.update({"d" + y: cotangent(g) for y, g in zip(self.forward.outputs, grads if many else (grads,))})
            like = {dx: x for dx, x in self.gradients.items() if x in self.taken}
            assert self.backward
            found = dict(zip(self.gradients.values(), self.backward.run({name: values[name] for name in self.taken}, like)))
            return tuple(found.get(name) for name in self.arrays)

        if self.backward is None:
            return primal
        made: Any = jax.custom_vjp(primal)
        made.defvjp(forward, backward, symbolic_zeros=True)
        return cast(Callable[..., Any], made)


def jax_op(source: Any, kernel: Optional[str] = None, /, *, backward: Union[str, Iterable[str], None] = None, zeros: Iterable[str] = (),
           device: Union[Device, str, None] = None, include_dirs: Sequence[str] = (), opt_level: int = 3, check: bool = False,
           fp: str = "default", warps: int = 0, stages: int = 0, cache: Optional[str] = None, consts: Optional[Mapping[str, Any]] = None, **more_consts: Any) -> Callable[[Callable[..., Any]], Function]:
    """A decorator that makes a function of JAX from a kernel of a source:

        @tile.jax_op("softmax.tile", "softmax", backward="softmax_backward", B=1024)
        def softmax(x): ...

    The function's parameters are the kernel's, by name, with defaults as wanted; its body is not run. What the kernel writes is returned, in the
    kernel's order: results with the shapes of their extents, and new values of arrays that it changes. A type that the kernel leaves open
    (const type T) is that of the arrays. The kernel's numbers must be known when JAX traces. jax.jit, jax.grad and jax.vmap (a loop over the
    batch) take the function.

    `backward` and `zeros` are those of tile.op. `device` is a device of the host's memory, or of the GPU that JAX uses (None: "cpu" or
    "cuda", as jax.default_backend() says). The other options are those of tile.load."""
    zeros, text = tuple(zeros), compiler.Source(source)
    values = compiler.constants({**(consts or {}), **more_consts})
    declared = declarations.read(compiler.compile_source(text, dict(emit="ast"), {}, include_dirs, 3).text)

    def load(name: str, known: Mapping[str, str]) -> modules.Kernel:
        place = device or {"cpu": "cpu", "gpu": "cuda", "rocm": "hip"}.get(jax.default_backend(), "cpu")
        return modules.kernel(source, name, device=place, include_dirs=include_dirs, opt_level=opt_level, check=check, fp=fp,
                              warps=warps, stages=stages, cache=cache, consts=known)

    def step(name: Optional[str]) -> Step:
        return Step(chosen(declared, name, text.name), load, values)

    names = [backward] if isinstance(backward, str) else list(backward or ())
    first, behind = step(kernel), [step(name) for name in names]
    unused(values, (first, *behind))
    return lambda function: Function(function, Chain([first], None, zeros), behind, zeros)
