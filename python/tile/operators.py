"""tile.op: an operator of torch made of kernels.

A Chain is some kernels and the names of what goes in and comes out: arguments meet parameters by name, what a kernel writes and nobody
gave is allocated, with the shape of its extents, and is there for the kernels behind it. One Chain is the operator, a second one, of
the kernels of `backward`, the operator that autograd calls. Fake tensors take the same way, without the launch.
"""
from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Callable, NamedTuple, Optional, Union

import torch
from torch._library.custom_ops import CustomOpDef

from . import compiler, declarations, extents, modules
from .arrays import WRONG
from .devices import Device
from .errors import ArgumentError, NotFoundError
from .torch_tensors import DTYPES, GPU

TORCH = {name: dtype for dtype, name in DTYPES.items()} | {"u8": torch.uint8, "u16": getattr(torch, "uint16", torch.int16)}
Values = dict[str, Any]  # by the names of parameters


class Parameter(NamedTuple):
    """A parameter that a call gives: element, "f32" or the name of a type; axes of a view, None of a pointer and a number."""
    name: str
    kind: str
    element: str
    written: bool
    axes: Optional[list[extents.Axis]]
    default: Optional[str]


class Result(NamedTuple):
    name: str
    shape: Sequence[Any]
    dtype: torch.dtype
    zero: bool


RECIPES = 256  # of a kernel: kinds of arguments


def wrong(text: str) -> ArgumentError:
    return ArgumentError(text, WRONG)


def parameter_of(p: declarations.Parameter) -> Parameter:
    declared = p.type.removeprefix("const ")
    element, bracket, inside = declared.partition("[")
    return Parameter(p.name, p.kind, element.rstrip(" *"), p.kind != "scalar" and not p.type.startswith("const "),
                     extents.axes(inside) if bracket else None, p.default)


class Step:
    """A kernel of a chain: what it declares, and the kernels of the devices and types it was called with."""

    def __init__(self, declared: declarations.Declaration, load: Callable[[str, Optional[str], Mapping[str, str]], modules.Kernel],
                 consts: Mapping[str, str]) -> None:
        self.name, self.load = declared.name, load
        self.constants = {p.name: p for p in declared.parameters if p.kind == "constant"}
        self.consts = {k: v for k, v in consts.items() if k.partition(".")[0] in self.constants}
        self.types = [name for name, p in self.constants.items() if p.type == "type" and name not in self.consts]
        self.kernels: dict[Any, modules.Kernel] = {}
        self.recipes: dict[Any, tuple[list[Result], modules.Kernel]] = {}
        self.parameters = [parameter_of(p) for p in declared.parameters if p.kind != "constant"]
        self.parameters = [p._replace(element=self.resolved(p.element, {})) if p.kind == "scalar" else p for p in self.parameters]
        structs = [p.name for p in self.parameters if p.kind == "scalar" and p.element not in TORCH]
        if structs:
            raise wrong(f"kernel '{self.name}': '{structs[0]}' is a struct, which operators of torch cannot take")

    def types_of(self, values: Values) -> dict[str, str]:
        """The types that the kernel leaves open, by the tensors."""
        found: dict[str, str] = {}
        for p in self.parameters:
            if p.name in values and p.element in self.types and isinstance(values[p.name], torch.Tensor):
                found.setdefault(p.element, DTYPES.get(values[p.name].dtype, "u8" if values[p.name].dtype is torch.uint8 else "?"))
        return found

    def resolved(self, element: str, types: Mapping[str, str]) -> str:
        """The type behind the name of one."""
        while element in self.constants:
            element = types.get(element) or self.consts.get(element) or self.constants[element].default or ""
        return element

    def dtype_of(self, element: str, types: Mapping[str, str]) -> torch.dtype:
        element = self.resolved(element, types)
        if element not in TORCH:
            raise wrong(f"kernel '{self.name}': torch has no element type {element}")
        found: torch.dtype = TORCH[element]
        return found

    def sizes_of(self, values: Values) -> Values:
        """The numbers behind the names in extents: constants, numbers, and shapes of the tensors."""
        sizes: Values = {}
        for name, text in {**{n: p.default for n, p in self.constants.items()}, **self.consts}.items():
            if text in ("true", "false"):
                sizes[name] = text == "true"
            elif text and text.lstrip("-").isdigit():
                sizes[name] = int(text)
        sizes.update((p.name, values[p.name]) for p in self.parameters if p.kind == "scalar" and p.name in values)
        for p in self.parameters:
            for axis, size in zip(p.axes or (), values[p.name].shape if p.axes and p.name in values else ()):
                extents.bind(axis.extent, size, sizes)
        return sizes

    def results(self, values: Values, zeros: Sequence[str], like: Mapping[str, str]) -> list[Result]:
        """What the kernel writes and is not there yet."""
        types, sizes, found = self.types_of(values), self.sizes_of(values), []
        for p in self.parameters:
            if p.name in values or not p.written:
                continue
            try:
                shape = values[like[p.name]].shape if p.name in like else [extents.value(axis.extent, sizes) for axis in p.axes or ()]
            except extents.Unknown as e:
                raise wrong(f"kernel '{self.name}': the shape of '{p.name}' does not follow from the arguments ('{e}'): let the decorated function "
                            "return the results") from None
            found.append(Result(p.name, shape, self.dtype_of(p.element, types), p.name in zeros))
        return found

    def kernel_for(self, values: Values) -> modules.Kernel:
        types = self.types_of(values)
        device = next(v.device for v in values.values() if isinstance(v, torch.Tensor))
        key = (device, *types.values())
        if key not in self.kernels:
            missing = [p.name for p in self.parameters if p.name not in values and not p.written]
            if missing:
                raise wrong(f"kernel '{self.name}': nothing gives its parameter '{missing[0]}'")
            self.kernels[key] = self.load(self.name, f"{GPU}:{device.index or 0}" if device.type == "cuda" else None, {**self.consts, **types})
        return self.kernels[key]

    def run(self, values: Values, zeros: Sequence[str], like: Mapping[str, str]) -> None:
        """Allocates and launches. What follows from types and shapes is remembered. Tensors with other strides than the kernel takes are copied."""
        key = tuple([(v.dtype, v.shape, v.device) if isinstance(v, torch.Tensor) else v if isinstance(v, int) else None for v in values.values()])
        if key not in self.recipes:
            if len(self.recipes) >= RECIPES:
                self.recipes.clear()
            self.recipes[key] = self.results(values, zeros, like), self.kernel_for(values)
        results, kernel = self.recipes[key]
        allocate(results, values)
        kernel(*[fitting(values[p.name], p) for p in self.parameters])


def allocate(results: Sequence[Result], values: Values) -> None:
    if results:
        first = next(v for v in values.values() if isinstance(v, torch.Tensor))
        for name, shape, dtype, zero in results:
            values[name] = first.new_zeros(shape, dtype=dtype) if zero else first.new_empty(shape, dtype=dtype)


def fitting(value: Any, p: Parameter) -> Any:
    if p.axes is None or p.written or value.is_contiguous() or takes_strides(p.axes, value):
        return value
    return value.contiguous()


def takes_strides(axes: Sequence[extents.Axis], t: torch.Tensor) -> bool:
    """An axis without a stride is dense over those to its right."""
    step = 1
    for axis, size, stride in zip(reversed(axes), reversed(t.shape), reversed(t.stride())):
        if axis.stride is None and stride != step and size > 1:
            return False
        step = size * (stride if size > 1 else step)
    return True


class Chain:
    def __init__(self, steps: Sequence[Step], inputs: Sequence[str], outputs: Optional[Sequence[str]], zeros: Sequence[str],
                 defaults: Optional[Mapping[str, Any]] = None, make: Optional[Callable[..., Any]] = None) -> None:
        self.steps, self.inputs, self.zeros, self.make = steps, list(inputs), zeros, make
        self.defaults = dict(defaults or {})
        self.parameters = {p.name: p for step in reversed(steps) for p in step.parameters}
        written = [p.name for step in steps for p in step.parameters if p.written and p.name not in self.inputs]
        self.outputs = list(outputs if outputs is not None else dict.fromkeys(written))
        self.mutated = [name for name in self.inputs if any(p.name == name and p.written for step in steps for p in step.parameters)]

    def run(self, arguments: Sequence[Any], launch: bool, like: Optional[Mapping[str, str]] = None) -> Any:
        values: Values = {**self.defaults, **dict(zip(self.inputs, arguments))}  # torch leaves out what is the default
        made = self.make(*arguments) if self.make else None
        if made is not None:
            values.update(zip(self.outputs, made if isinstance(made, (tuple, list)) else (made,)))
        for step in self.steps:
            if launch:
                step.run(values, self.zeros, like or {})
            else:
                allocate(step.results(values, self.zeros, like or {}), values)
        results = tuple(values[name] for name in self.outputs)
        return results if len(results) > 1 else results[0] if results else None

    def schema(self) -> str:
        words: list[str] = []
        for name in self.inputs:
            p = self.parameters[name]
            kind = "Tensor" if p.kind != "scalar" else "bool" if p.element == "bool" else "float" if TORCH[p.element].is_floating_point else "SymInt"
            if name in self.mutated:
                kind = f"Tensor(a{len(words)}!)"
            words.append(f"{kind} {name}" + (f"={self.defaults[name]!r}" if name in self.defaults else ""))
        results = ["Tensor"] * len(self.outputs)
        return f"({', '.join(words)}) -> {results[0] if len(results) == 1 else '(' + ', '.join(results) + ')'}"

    def operator(self, qualname: str, like: Optional[Mapping[str, str]] = None) -> CustomOpDef:
        def run(*arguments: Any) -> Any:
            return self.run(arguments, True, like)

        def fake(*arguments: Any) -> Any:
            return self.run(arguments, False, like)

        def vmap(*arguments: Any) -> Any:
            raise RuntimeError(f"{qualname} has no rule for torch.vmap: its kernel takes the axes that it declares; give it one for the batch")

        made = torch.library.custom_op(qualname, run, mutates_args=self.mutated, schema=self.schema())
        made.register_fake(fake)
        made.register_vmap(vmap)
        return made


def differentiate(op: CustomOpDef, qualname: str, forward: Chain, steps: Sequence[Step], zeros: Sequence[str]) -> None:
    """Autograd by kernels that write dx for inputs x, from dy for outputs y and from the inputs and outputs themselves."""
    if forward.mutated:
        raise wrong(f"{qualname}: '{forward.mutated[0]}' is changed in place, and torch differentiates only operators that change nothing")
    known = [*forward.inputs, *forward.outputs, *("d" + y for y in forward.outputs)]
    taken = {p.name: p for step in reversed(steps) for p in step.parameters if not p.written and p.default is None}
    unknown = [name for name in taken if name not in known and not any(p.written and p.name == name for step in steps for p in step.parameters)]
    gradients = {"d" + x: x for x in forward.inputs if any(p.written and p.name == "d" + x for step in steps for p in step.parameters)}
    if unknown or not gradients:
        raise wrong(f"{qualname}: a backward kernel takes {', '.join(known)} and writes {', '.join('d' + x for x in forward.inputs)}, by these names; "
                    + (f"'{unknown[0]}' is none of them" if unknown else "it writes none of them"))
    backward = Chain(steps, [name for name in known if name in taken], list(gradients), zeros)
    like = {dx: x for dx, x in gradients.items() if x in backward.inputs}
    gradient = backward.operator(qualname + "_backward", like)

    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        values = {**forward.defaults, **dict(zip(forward.inputs, inputs))}
        lost = [name for name, needed in zip(forward.inputs, ctx.needs_input_grad) if needed and "d" + name not in gradients]
        if lost:
            raise wrong(f"{qualname}: '{lost[0]}' requires grad, and the backward kernels do not write 'd{lost[0]}'")
        results = dict(zip(forward.outputs, output if isinstance(output, (tuple, list)) else (output,)))
        ctx.mark_non_differentiable(*(y for name, y in results.items() if "d" + name not in backward.inputs))
        values.update(results)
        needed = {name: values[name] for name in backward.inputs if name in values}
        ctx.tensors = [name for name, v in needed.items() if isinstance(v, torch.Tensor)]
        ctx.numbers = {name: v for name, v in needed.items() if name not in ctx.tensors}
        ctx.save_for_backward(*(needed[name] for name in ctx.tensors))

    def backward_of(ctx: Any, *grads: torch.Tensor) -> Any:
        values = {**ctx.numbers, **dict(zip(ctx.tensors, ctx.saved_tensors)), **{"d" + y: g for y, g in zip(forward.outputs, grads)}}
        found = gradient(*(values[name] for name in backward.inputs))
        by_name = dict(zip(gradients.values(), found if isinstance(found, (tuple, list)) else (found,)))
        return tuple(by_name.get(name) for name in forward.inputs)

    op.register_autograd(backward_of, setup_context=setup_context)


def defaults_of(function: Callable[..., Any], qualname: str, step: Step) -> tuple[list[str], dict[str, Any]]:
    """The names of the parameters, and the defaults of those that have one."""
    parameters = inspect.signature(function).parameters
    known = {p.name for p in step.parameters}
    for name in parameters:
        if name not in known:
            raise wrong(f"{qualname}: kernel '{step.name}' has no parameter '{name}'; it has {', '.join(p.name for p in step.parameters)}")
    missing = [p.name for p in step.parameters if p.name not in parameters and not p.written and p.default is None]
    if missing:
        raise wrong(f"{qualname}: the function lacks the parameter '{missing[0]}' of kernel '{step.name}'")
    defaults = {p.name: p.default for p in step.parameters if p.default is not None and p.name in parameters}
    return list(parameters), defaults | {name: p.default for name, p in parameters.items() if p.default is not p.empty}


def op(qualname: str, source: Any, kernel: Optional[str] = None, /, *, backward: Union[str, Iterable[str], None] = None, zeros: Iterable[str] = (),
       autocast: Optional[str] = None, device: Union[Device, str, None] = "cpu", include_dirs: Sequence[str] = (), opt_level: int = 3,
       fp: str = "default", warps: int = 0, stages: int = 0, cache: Optional[str] = None, consts: Optional[Mapping[str, Any]] = None,
       **more_consts: Any) -> Callable[[Callable[..., Any]], CustomOpDef]:
    """A decorator that makes an operator of torch from a kernel of a source:

        @tile.op("mine::softmax", "softmax.tile", "softmax", backward="softmax_backward", B=1024)
        def softmax(x): ...

    The function's parameters are the kernel's, by name, with defaults as wanted. Parameters of the kernel that it writes and that the
    function lacks are the results, in the kernel's order; those that the function has are changed in place. Results have the
    shapes of their extents, unless the function returns tensors for them. A type that the kernel leaves open (const type T) is that of
    the tensors. Tensors whose strides the kernel does not take are copied.

    `backward` names the kernel, or kernels that run one after the other, which from dy, for each result y, and from x and y write dx,
    for each x that has a gradient; what else they write is for those behind. A result y without dy has no gradient. What is
    in `zeros` starts as zeros, for kernels that add to it. `autocast` is the type, "bf16", that floating tensors get under torch.autocast. Kernels run on the device of
    the tensors; `device` is that for tensors in the host's memory. The other options are those of tile.load."""
    zeros, text = tuple(zeros), compiler.Source(source)
    values = compiler.constants({**(consts or {}), **more_consts})
    declared = declarations.read(compiler.compile_source(text, dict(emit="ast"), {}, include_dirs, 3).text)
    if autocast is not None and autocast not in TORCH:
        raise wrong(f"{qualname}: autocast is the name of a type, 'bf16', not {autocast!r}")
    names = [backward] if isinstance(backward, str) else list(backward or ())

    def load(name: str, gpu: Optional[str], chosen: Mapping[str, str]) -> modules.Kernel:
        return modules.kernel(source, name, device=gpu or device, include_dirs=include_dirs, opt_level=opt_level, fp=fp, warps=warps, stages=stages,
                              cache=cache, consts=chosen)

    def step(name: Optional[str]) -> Step:
        if name is None and len(declared) == 1:
            name = next(iter(declared))
        if name not in declared:
            raise NotFoundError(f"{text.name} has no kernel '{name}'; it has {', '.join(declared)}", "not found")
        return Step(declared[name], load, values)

    first, behind = step(kernel), [step(name) for name in names]
    unused = [k for k in values if not any(k in s.consts for s in (first, *behind))]
    if unused:
        raise NotFoundError(f"kernel '{first.name}' has no constant '{unused[0]}'", "not found")

    def decorate(function: Callable[..., Any]) -> CustomOpDef:
        inputs, defaults = defaults_of(function, qualname, first)
        chain = Chain([first], inputs, None, zeros, defaults, function)
        made = chain.operator(qualname)
        if behind:
            differentiate(made, qualname, chain, behind, zeros)
        for kind in ("cpu", "cuda") if autocast is not None else ():
            made.register_autocast(kind, TORCH[autocast])
        made.__doc__ = function.__doc__
        return made

    return decorate
