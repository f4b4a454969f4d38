"""What may be changed in an expression: each operator yields what could stand in an expression's place."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator, Set
from typing import TypeAlias

__all__ = ["KINDS", "changes"]

Change: TypeAlias = tuple[str, ast.expr]

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}

EXTREMES = {"min": "max", "minimum": "maximum", "fmin": "fmax", "argmin": "argmax", "nanmin": "nanmax"}
DIRECTIONS = {"ceil": "floor", "ROUND_CEILING": "ROUND_FLOOR", "above": "below"}
MODULES_OF_NUMBERS = {"np", "numpy", "math", "torch"}

CLAMPS = {"min", "max", "minimum", "maximum", "fmin", "fmax", "clip"}
SYMMETRIC = CLAMPS - {"clip"} | {
    "gcd",
    "lcm",
    "hypot",
    "logaddexp",
    "isclose",
    "allclose",
    "array_equal",
    "union",
}
OF_PYTHON = {
    "isinstance",
    "issubclass",
    "getattr",
    "hasattr",
    "setattr",
    "cast",
    "print",
    "field",
    "__setattr__",
    "zip",
}
"""Calls whose arguments no one would swap unnoticed, or that mean the same when they are swapped."""

KINDS = (
    "comparison",
    "off by one",
    "min and max",
    "rounding",
    "factor",
    "sign",
    "clamp",
    "arguments",
    "condition",
)


def _both_ways(pairs: dict[str, str]) -> dict[str, str]:
    return pairs | {second: first for first, second in pairs.items()}


def _partner(name: str, bound: Collection[str], *, attribute: bool) -> tuple[str, str] | None:
    """Return the kind and the name that is the opposite of a function's name, where there is one."""
    if other := _both_ways(EXTREMES).get(name):
        return "min and max", other
    other = _both_ways(DIRECTIONS).get(name, "")
    for end, opposite in (("_up", "_down"), ("_down", "_up")):
        if name.endswith(end):
            other = name.removesuffix(end) + opposite
    return ("rounding", other) if other and (attribute or other in bound) else None


def _called(node: ast.Call) -> str:
    match node.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def _comparison(node: ast.expr) -> Iterator[Change]:
    if isinstance(node, ast.Compare):
        for at, operator in enumerate(node.ops):
            operators = [*node.ops[:at], COMPARISONS[type(operator)](), *node.ops[at + 1 :]]
            yield "comparison", ast.Compare(node.left, operators, node.comparators)


def _off_by_one(node: ast.expr) -> Iterator[Change]:
    match node:
        case ast.Constant(value=bool()):
            return
        case ast.Constant(value=int(number)):
            yield "off by one", ast.Constant(number + 1)
            if number:
                yield "off by one", ast.Constant(number - 1)
        case ast.Constant(value=float(number)) if number.is_integer() and abs(number) < 2**20:
            yield "off by one", ast.Constant(number + 1)
        case ast.Call(func=ast.Name(id="range"), args=[*_, last]) if not isinstance(
            last, ast.Constant | ast.Starred
        ):
            at = min(len(node.args), 2) - 1
            for operator in (ast.Add(), ast.Sub()):
                stop = ast.BinOp(node.args[at], operator, ast.Constant(1))
                yield (
                    "off by one",
                    ast.Call(node.func, [*node.args[:at], stop, *node.args[at + 1 :]], node.keywords),
                )


def _opposites(node: ast.expr, bound: Set[str]) -> Iterator[Change]:
    match node:
        case ast.Name(id=name, ctx=ast.Load()) if name in bound | {"min", "max"}:
            if found := _partner(name, bound, attribute=False):
                yield found[0], ast.Name(found[1], ast.Load())
        case ast.Attribute(value=owner, attr=name, ctx=ast.Load()):
            found = _partner(name, bound, attribute=True)
            of_numbers = isinstance(owner, ast.Name) and owner.id in MODULES_OF_NUMBERS
            if found and (of_numbers or found[0] == "min and max") and name not in {"above", "below"}:
                yield found[0], ast.Attribute(owner, found[1], ast.Load())


def _rounded_division(node: ast.expr) -> Iterator[Change]:
    match node:
        case ast.UnaryOp(
            op=ast.USub(),
            operand=ast.BinOp(left=ast.UnaryOp(op=ast.USub(), operand=left), op=ast.FloorDiv(), right=right),
        ):
            yield "rounding", ast.BinOp(left, ast.FloorDiv(), right)
        case ast.BinOp(left=left, op=ast.FloorDiv(), right=right) if not isinstance(left, ast.UnaryOp):
            negative = ast.BinOp(ast.UnaryOp(ast.USub(), left), ast.FloorDiv(), right)
            yield "rounding", ast.UnaryOp(ast.USub(), negative)


def _is_sequence(node: ast.expr) -> bool:
    match node:
        case (
            ast.List() | ast.Tuple() | ast.JoinedStr() | ast.ListComp() | ast.Constant(value=str() | bytes())
        ):
            return True
        case ast.Call(func=ast.Name(id="tuple" | "list" | "str" | "sorted")):
            return True
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _is_sequence(left) or _is_sequence(right)
    return False


def _factor(node: ast.expr) -> Iterator[Change]:
    match node:
        case ast.BinOp(left=left, op=ast.Mult() | ast.Div(), right=right):
            if _is_sequence(left) or _is_sequence(right):
                return
            yield "factor", left
            if isinstance(node.op, ast.Mult):
                yield "factor", right


def _sign(node: ast.expr) -> Iterator[Change]:
    match node:
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as operator, right=right):
            if not (_is_sequence(left) or _is_sequence(right)):
                other = ast.Sub() if isinstance(operator, ast.Add) else ast.Add()
                yield "sign", ast.BinOp(left, other, right)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            yield "sign", operand


def _clamp(node: ast.expr) -> Iterator[Change]:
    if not isinstance(node, ast.Call) or _called(node) not in CLAMPS or len(node.args) < 2:
        return
    if any(isinstance(argument, ast.Starred) for argument in node.args):
        return
    yield from (("clamp", argument) for argument in node.args[: 1 if _called(node) == "clip" else 2])


def _arguments(node: ast.expr) -> Iterator[Change]:
    if not isinstance(node, ast.Call) or _called(node) in SYMMETRIC | OF_PYTHON:
        return
    for at, (first, second) in enumerate(zip(node.args, node.args[1:], strict=False)):
        if not any(isinstance(each, ast.Starred) or _is_sequence(each) for each in (first, second)):
            swapped = [*node.args[:at], second, first, *node.args[at + 2 :]]
            if ast.dump(first) != ast.dump(second):
                yield "arguments", ast.Call(node.func, swapped, node.keywords)


def _condition(node: ast.expr) -> Iterator[Change]:
    match node:
        case ast.Constant(value=bool(truth)):
            yield "condition", ast.Constant(not truth)
        case ast.BoolOp(op=operator, values=values):
            yield "condition", ast.BoolOp(ast.Or() if isinstance(operator, ast.And) else ast.And(), values)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield "condition", operand


PLAIN: tuple[Callable[[ast.expr], Iterator[Change]], ...] = (
    _comparison,
    _off_by_one,
    _rounded_division,
    _factor,
    _sign,
    _clamp,
    _arguments,
    _condition,
)


def changes(node: ast.expr, bound: Collection[str], *, decides: bool) -> Iterator[Change]:
    """Yield the kinds of change and what to put in the place of an expression.

    Parameters
    ----------
    node : ast.expr
        The expression.
    bound : collection of str
        The names that the module binds: a function is exchanged only for one that is there.
    decides : bool
        Whether the expression is what an ``if``, ``while`` or a comprehension's filter asks.
    """
    yield from _opposites(node, frozenset(bound))
    for operator in PLAIN:
        yield from operator(node)
    if decides and not isinstance(node, ast.Compare | ast.Constant | ast.UnaryOp):
        yield "condition", ast.UnaryOp(ast.Not(), node)
