"""tile.op: an operator of torch made of kernels.

A Chain is some kernels and the names of what goes in and comes out: arguments meet parameters by name, what a kernel writes and nobody
gave is allocated, with the shape of its extents, and is there for the kernels behind it. One Chain is the operator, a second one, of
the kernels of `backward`, the operator that autograd calls. Fake tensors take the same way, without the launch.
"""
from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Callable, Optional, Union

import torch
from torch._library.custom_ops import CustomOpDef

from . import compiler, declarations, extents, modules
from .devices import Device
from .signatures import Parameter, Result, Signature, Values, chosen, defaults_of, gradients_of, unused, wrong
from .torch_tensors import DTYPES, GPU, in_forward_mode

TORCH = {name: dtype for dtype, name in DTYPES.items()} | {"u8": torch.uint8, "u16": getattr(torch, "uint16", torch.int16)}


RECIPES = 256  # of a kernel: kinds of arguments


class Step(Signature):
    """A kernel of a chain: what it declares, and the kernels of the devices and types it was called with."""

    def __init__(self, declared: declarations.Declaration, load: Callable[[str, Optional[str], Mapping[str, str]], modules.Kernel],
                 consts: Mapping[str, str]) -> None:
        super().__init__(declared, consts, "torch", TORCH)
        self.load = load
        self.kernels: dict[Any, modules.Kernel] = {}
        self.recipes: dict[Any, tuple[list[Result], modules.Kernel]] = {}

    def missing(self, values: Values, zeros: Sequence[str], like: Mapping[str, str]) -> list[Result]:
        return self.results(values, elements_of(values), zeros, like)

    def kernel_for(self, values: Values) -> modules.Kernel:
        types = self.types_of(elements_of(values))
        device = next(v.device for v in values.values() if isinstance(v, torch.Tensor))
        key = (device, *types.values())
        if key not in self.kernels:
            self.lacks(values)
            self.kernels[key] = self.load(self.name, f"{GPU}:{device.index or 0}" if device.type == "cuda" else None, {**self.consts, **types})
        return self.kernels[key]

    def run(self, values: Values, zeros: Sequence[str], like: Mapping[str, str]) -> None:
        """Allocates and launches. What follows from types and shapes is remembered. Tensors with other strides than the kernel takes are copied."""
        key = tuple([(v.dtype, v.shape, v.device) if isinstance(v, torch.Tensor) else v if isinstance(v, int) else None for v in values.values()])
        if key not in self.recipes:
            if len(self.recipes) >= RECIPES:
                self.recipes.clear()
            self.recipes[key] = self.missing(values, zeros, like), self.kernel_for(values)
        results, kernel = self.recipes[key]
        allocate(results, values)
        kernel(*[fitting(values[p.name], p) for p in self.parameters])


def elements_of(values: Values) -> dict[str, str]:
    return {name: DTYPES.get(v.dtype, "u8" if v.dtype is torch.uint8 else "?") for name, v in values.items() if isinstance(v, torch.Tensor)}


def allocate(results: Sequence[Result], values: Values) -> None:
    if results:
        first = next(v for v in values.values() if isinstance(v, torch.Tensor))
        for name, shape, element, zero in results:
            dtype = TORCH[element]
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
                allocate(step.missing(values, self.zeros, like or {}), values)
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
            if in_forward_mode():  # torch would take the tangents for zeros
                raise RuntimeError(f"{qualname} has no rule for differentiation in forward mode (torch.func.jvp, jacfwd, forward_ad): "
                                   "differentiate it by backward() or torch.autograd.grad")
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
    taken, gradients = gradients_of(qualname, forward.inputs, forward.outputs, steps)
    backward = Chain(steps, taken, list(gradients), zeros)
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


def no_gradient(qualname: str) -> Callable[..., Any]:
    def backward_of(ctx: Any, *grads: torch.Tensor) -> Any:
        raise RuntimeError(f'{qualname} has no gradient: name the kernel that computes it, tile.op(..., backward="...")')

    return backward_of


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
    if not re.fullmatch(r"[A-Za-z_]\w*::[A-Za-z_]\w*", qualname):
        bare = qualname.replace(":", "")
        raise wrong(f"an operator's name has a namespace before it, 'mine::{bare}', not {qualname!r}" if bare.isidentifier() else
                    f"the first argument is the operator's name, as 'mine::swish', not {qualname[:40]!r}")
    zeros, text = tuple(zeros), compiler.Source(source)
    values = compiler.constants({**(consts or {}), **more_consts})
    declared = declarations.read(compiler.compile_source(text, dict(emit="ast"), {}, include_dirs, 3).text)
    if autocast is not None and autocast not in TORCH:
        raise wrong(f"{qualname}: autocast is the name of a type, 'bf16', not {autocast!r}")
    names = [backward] if isinstance(backward, str) else list(backward or ())

    def load(name: str, gpu: Optional[str], consts: Mapping[str, str]) -> modules.Kernel:
        return modules.kernel(source, name, device=gpu or device, include_dirs=include_dirs, opt_level=opt_level, fp=fp, warps=warps, stages=stages,
                              cache=cache, consts=consts)

    def step(name: Optional[str]) -> Step:
        return Step(chosen(declared, name, text.name), load, values)

    first, behind = step(kernel), [step(name) for name in names]
    unused(values, (first, *behind))

    def decorate(function: Callable[..., Any]) -> CustomOpDef:
        inputs, defaults = defaults_of(inspect.signature(function).parameters, qualname, first)
        chain = Chain([first], inputs, None, zeros, defaults, function)
        made = chain.operator(qualname)
        if behind:
            differentiate(made, qualname, chain, behind, zeros)
        elif chain.outputs and not chain.mutated:
            made.register_autograd(no_gradient(qualname))
        for kind in ("cpu", "cuda") if autocast is not None else ():
            made.register_autocast(kind, TORCH[autocast])
        made.__doc__ = function.__doc__
        return made

    return decorate
