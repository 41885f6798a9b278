"""What a kernel declares, for the operators of torch and of JAX: which arguments meet which parameters, the types that it leaves open, and
the shapes of what it writes."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Optional

from . import declarations, extents
from .arrays import WRONG
from .errors import ArgumentError, NotFoundError

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
    element: str
    zero: bool


def wrong(text: str) -> ArgumentError:
    return ArgumentError(text, WRONG)


def parameter_of(p: declarations.Parameter) -> Parameter:
    declared = p.type.removeprefix("const ")
    element, bracket, inside = declared.partition("[")
    return Parameter(p.name, p.kind, element.rstrip(" *"), p.kind != "scalar" and not p.type.startswith("const "),
                     extents.axes(inside) if bracket else None, p.default)


def chosen(declared: Mapping[str, declarations.Declaration], name: Optional[str], source: str) -> declarations.Declaration:
    """The kernel of that name; None: the only one."""
    if name is None and len(declared) == 1:
        name = next(iter(declared))
    if name is None or name not in declared:
        raise NotFoundError(f"{source} has no kernel '{name}'; it has {', '.join(declared)}", "not found")
    return declared[name]


class Signature:
    """A kernel with some of its constants, seen by a library ("torch") that has element types of these names."""

    def __init__(self, declared: declarations.Declaration, consts: Mapping[str, str], library: str, elements: Mapping[str, Any]) -> None:
        self.name, self.library, self.elements = declared.name, library, elements
        self.constants = {p.name: p for p in declared.parameters if p.kind == "constant"}
        self.consts = {k: v for k, v in consts.items() if k.partition(".")[0] in self.constants}
        self.types = [name for name, p in self.constants.items() if p.type == "type" and name not in self.consts]
        self.parameters = [parameter_of(p) for p in declared.parameters if p.kind != "constant"]
        self.parameters = [p._replace(element=self.resolved(p.element, {})) if p.kind == "scalar" else p for p in self.parameters]
        structs = [p.name for p in self.parameters if p.kind == "scalar" and p.element not in elements]
        if structs:
            raise wrong(f"kernel '{self.name}': '{structs[0]}' is a struct, which operators of {library} cannot take")

    def types_of(self, elements: Mapping[str, str]) -> dict[str, str]:
        """The types that the kernel leaves open, by the elements of the arrays that are its parameters."""
        found: dict[str, str] = {}
        for p in self.parameters:
            if p.name in elements and p.element in self.types:
                found.setdefault(p.element, elements[p.name])
        return found

    def resolved(self, element: str, types: Mapping[str, str]) -> str:
        """The type behind the name of one."""
        while element in self.constants:
            element = types.get(element) or self.consts.get(element) or self.constants[element].default or ""
        return element

    def element_of(self, element: str, types: Mapping[str, str]) -> str:
        element = self.resolved(element, types)
        if element not in self.elements:
            raise wrong(f"kernel '{self.name}': {self.library} has no element type {element}")
        return element

    def sizes_of(self, values: Values) -> Values:
        """The numbers behind the names in extents: constants, numbers, and shapes of the arrays."""
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

    def results(self, values: Values, elements: Mapping[str, str], zeros: Sequence[str], like: Mapping[str, str]) -> list[Result]:
        """What the kernel writes and is not there yet. like: the names of what has the same shape, for those whose extents do not say it."""
        types, sizes, found = self.types_of(elements), self.sizes_of(values), []
        for p in self.parameters:
            if p.name in values or not p.written:
                continue
            try:
                shape = values[like[p.name]].shape if p.name in like else [extents.value(axis.extent, sizes) for axis in p.axes or ()]
            except extents.Unknown as e:
                raise wrong(f"kernel '{self.name}': the shape of '{p.name}' does not follow from the arguments ('{e}'): let the decorated function "
                            "return the results") from None
            found.append(Result(p.name, shape, self.element_of(p.element, types), p.name in zeros))
        return found

    def lacks(self, values: Values) -> None:
        missing = [p.name for p in self.parameters if p.name not in values and not p.written]
        if missing:
            raise wrong(f"kernel '{self.name}': nothing gives its parameter '{missing[0]}'")


def unused(values: Mapping[str, str], signatures: Sequence[Signature]) -> None:
    """An error for a constant that no kernel has."""
    for k in values:
        if not any(k in s.consts for s in signatures):
            raise NotFoundError(f"kernel '{signatures[0].name}' has no constant '{k}'", "not found")


def gradients_of(qualname: str, inputs: Sequence[str], outputs: Sequence[str], steps: Sequence[Signature]) -> tuple[list[str], dict[str, str]]:
    """Of backward kernels: what they take of the inputs, the outputs y and dy; and the dx that they write, with their x."""
    known = [*inputs, *outputs, *("d" + y for y in outputs)]
    taken = {p.name: p for step in reversed(steps) for p in step.parameters if not p.written and p.default is None}
    strange = [name for name in taken if name not in known and not any(p.written and p.name == name for step in steps for p in step.parameters)]
    gradients = {"d" + x: x for x in inputs if any(p.written and p.name == "d" + x for step in steps for p in step.parameters)}
    if strange or not gradients:
        raise wrong(f"{qualname}: a backward kernel takes {', '.join(known)} and writes {', '.join('d' + x for x in inputs)}, by these names; "
                    + (f"'{strange[0]}' is none of them" if strange else "it writes none of them"))
    return [name for name in known if name in taken], gradients


def defaults_of(names: Mapping[str, Any], qualname: str, kernel: Signature) -> tuple[list[str], dict[str, Any]]:
    """Of a function with these parameters (inspect.Signature.parameters): their names, and the defaults of those that have one."""
    known = {p.name for p in kernel.parameters}
    for name in names:
        if name not in known:
            raise wrong(f"{qualname}: kernel '{kernel.name}' has no parameter '{name}'; it has {', '.join(p.name for p in kernel.parameters)}")
    missing = [p.name for p in kernel.parameters if p.name not in names and not p.written and p.default is None]
    if missing:
        raise wrong(f"{qualname}: the function lacks the parameter '{missing[0]}' of kernel '{kernel.name}'")
    defaults = {p.name: p.default for p in kernel.parameters if p.default is not None and p.name in names}
    return list(names), defaults | {name: p.default for name, p in names.items() if p.default is not p.empty}
