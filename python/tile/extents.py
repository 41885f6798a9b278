"""The extents and strides that a parameter declares, "[R : ld, 2 * C]", read and computed: what a launch does in C, for shapes that
need not be numbers yet (torch.compile)."""
from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Callable, NamedTuple, Optional

TOKEN = re.compile(r"\s*(?:(\d+)|([A-Za-z_][\w.]*)|(<=|>=|==|!=|&&|\|\||[-+*/%()?:,<>!]))")
POWERS = {"||": 1, "&&": 2, "==": 3, "!=": 3, "<": 4, ">": 4, "<=": 4, ">=": 4, "+": 5, "-": 5, "*": 6, "/": 6, "%": 6}
BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "||": lambda a, b: a or b, "&&": lambda a, b: a and b, "==": lambda a, b: a == b, "!=": lambda a, b: a != b, "<": lambda a, b: a < b,
    ">": lambda a, b: a > b, "<=": lambda a, b: a <= b, ">=": lambda a, b: a >= b, "+": lambda a, b: a + b, "-": lambda a, b: a - b,
    "*": lambda a, b: a * b, "/": lambda a, b: a // b, "%": lambda a, b: a % b}
CALLS: dict[str, Callable[..., Any]] = {"cdiv": lambda a, b: (a + b - 1) // b, "min": min, "max": max, "abs": abs,
                                        "floor_div": lambda a, b: a // b, "floor_mod": lambda a, b: a % b}


class Expression(NamedTuple):
    """A number (kind "number"), a name, an operator or "call" or "?" with its operands."""
    kind: str
    text: str
    operands: tuple[Expression, ...] = ()


class Axis(NamedTuple):
    extent: Expression
    stride: Optional[Expression]


class Unknown(Exception):
    """A name without a value."""


class Reader:
    def __init__(self, text: str) -> None:
        self.tokens = [m.group(m.lastindex or 0) for m in TOKEN.finditer(text)]

    def next(self) -> str:
        return self.tokens[0] if self.tokens else ""

    def take(self, token: str) -> bool:
        if self.next() == token:
            self.tokens.pop(0)
            return True
        return False

    def operand(self) -> Expression:
        word = self.tokens.pop(0)
        if word == "(":
            inner = self.expression()
            self.take(")")
            return inner
        if word in ("-", "!"):
            return Expression("sign", word, (self.operand(),))
        if word.isdigit():
            return Expression("number", word)
        if not self.take("("):
            return Expression("name", word)
        operands = [self.expression()]
        while self.take(","):
            operands.append(self.expression())
        self.take(")")
        return Expression("call", word, tuple(operands))

    def binary(self, least: int) -> Expression:
        left = self.operand()
        while POWERS.get(self.next(), 0) >= least:
            operator = self.tokens.pop(0)
            left = Expression("binary", operator, (left, self.binary(POWERS[operator] + 1)))
        return left

    def expression(self) -> Expression:
        condition = self.binary(1)
        if not self.take("?"):
            return condition
        then = self.expression()
        self.take(":")
        return Expression("choice", "?", (condition, then, self.expression()))


def axes(text: str) -> list[Axis]:
    """Those between the brackets of a parameter's type."""
    reader, found = Reader(text), []
    while reader.tokens:
        reader.take("i64")
        extent = reader.expression()
        found.append(Axis(extent, reader.expression() if reader.take(":") else None))
        if not reader.take(","):
            break
    return found


def value(e: Expression, values: Mapping[str, Any]) -> Any:
    """What an expression is; Unknown: one of its names has no value."""
    if e.kind == "number":
        return int(e.text)
    if e.kind == "name":
        if e.text not in values:
            raise Unknown(e.text)
        return values[e.text]
    if e.kind == "choice":
        return value(e.operands[1] if value(e.operands[0], values) else e.operands[2], values)
    operands = [value(o, values) for o in e.operands]
    if e.kind == "sign":
        return -operands[0] if e.text == "-" else not operands[0]
    if e.text not in (BINARY if e.kind == "binary" else CALLS):
        raise Unknown(e.text)
    return BINARY[e.text](*operands) if e.kind == "binary" else CALLS[e.text](*operands)


def bind(e: Expression, size: Any, values: dict[str, Any]) -> None:
    """Enters an extent that is a name, or the name in the chosen branch; others are the launch's to check."""
    while e.kind == "choice":
        try:
            e = e.operands[1] if value(e.operands[0], values) else e.operands[2]
        except Unknown:
            return
    if e.kind == "name":
        values.setdefault(e.text, size)
