"""Floats of PostgreSQL that are total: there a float that grows too large, or too small, is an error.

Each guard asks, by a computation that can neither overflow nor underflow itself, whether the result would;
then it is infinity, or zero. Operands that are no plain column or literal are computed once, in a subquery
behind ``OFFSET 0``, which the planner never merges into what is around it: so texts stay short, and so does
the work. A guard holds for constants too: PostgreSQL folds a CASE from left to right, and drops a branch
whose condition is false before it computes the branch.
"""

from __future__ import annotations

import re
from collections.abc import Callable

__all__ = [
    "INFINITY",
    "add",
    "binary_exponential",
    "divide",
    "exponential",
    "let",
    "multiply",
    "power",
    "real",
]

_PLAIN = re.compile(r"[\w.]+|\(?CAST\('[^']{0,40}' AS [\w ]+\)( COLLATE \"C\"\))?")
_COLUMN_NAMES = "abcdefgh"


def real(value: float) -> str:
    """Return a float as a literal."""
    return f"CAST('{value!r}' AS double precision)"


INFINITY = real(float("inf"))
_ZERO, _ONE = real(0.0), real(1.0)
_LARGE, _SMALL = real(1e150), real(1e-150)
_UP, _DOWN = real(2.0**537), real(2.0**-537)
_HALF_DOWN = real(2.0**-512)
_LAST_EXP, _FIRST_EXP = real(709.782712893384), real(-745.1332191019411)


def let(body: Callable[..., str], *operands: str) -> str:
    """Return the text that ``body`` makes of operands, each computed once and used as often as it likes."""
    if all(_PLAIN.fullmatch(operand) for operand in operands):
        return body(*operands)
    names = _COLUMN_NAMES[: len(operands)]
    items = ", ".join(f"{operand} AS {name}" for operand, name in zip(operands, names, strict=True))
    return f"(SELECT {body(*(f'b.{name}' for name in names))} FROM (SELECT {items} OFFSET 0) AS b)"


def _ordinary(*magnitudes: str) -> str:
    return " AND ".join(f"{m} BETWEEN {_SMALL} AND {_LARGE}" for m in magnitudes)


def _special(a: str, b: str) -> str:
    # of a zero, an infinity or a NaN PostgreSQL computes without an error
    return f"{a} = 0 OR {b} = 0 OR NOT abs({a}) < {INFINITY} OR NOT abs({b}) < {INFINITY}"


def _signed(a: str, b: str, magnitude: str) -> str:
    return f"sign({a}) * sign({b}) * {magnitude}"


def add(sign: str, left: str, right: str) -> str:
    """Return a sum or difference; only where both are beyond 1e290 can it leave the floats."""

    def body(a: str, b: str) -> str:
        least, scale = real(1e290), real(2.0**-10)
        scaled = (f"sign({x}) * (GREATEST(abs({x}), {least}) * {scale})" for x in (a, b))
        return (
            f"(CASE WHEN LEAST(abs({a}), abs({b})) < {least} OR NOT abs({a}) < {INFINITY} "
            f"OR NOT abs({b}) < {INFINITY} THEN {a} {sign} {b} "
            f"WHEN abs({f' {sign} '.join(scaled)}) >= {real(2.0**1014)} THEN sign({a}) * {INFINITY} "
            f"ELSE {a} {sign} {b} END)"
        )

    return let(body, left, right)


def multiply(left: str, right: str) -> str:
    """Return a product."""

    def body(a: str, b: str) -> str:
        x, y = f"abs({a})", f"abs({b})"
        return (
            f"(CASE WHEN {_ordinary(x, y)} OR {_special(a, b)} THEN {a} * {b} "
            f"WHEN {x} >= 1 AND {y} >= 1 THEN "
            f"CASE WHEN ({x} * {_HALF_DOWN}) * ({y} * {_HALF_DOWN}) >= 1 THEN {_signed(a, b, INFINITY)} "
            f"ELSE {a} * {b} END "
            f"WHEN {x} < 1 AND {y} < 1 THEN "
            f"CASE WHEN ({x} * {_UP}) * ({y} * {_UP}) <= {real(0.5)} THEN {_signed(a, b, _ZERO)} "
            f"ELSE {a} * {b} END "
            f"ELSE {a} * {b} END)"
        )

    return let(body, left, right)


def divide(left: str, right: str) -> str:
    """Return a quotient; NULL if the divisor is zero."""

    def body(a: str, b: str) -> str:
        x, y = f"abs({a})", f"abs({b})"
        return (
            f"(CASE WHEN {b} = 0 THEN NULL WHEN {_ordinary(x, y)} OR {_special(a, b)} THEN {a} / {b} "
            f"WHEN {x} >= 1 AND {y} < 1 THEN "
            f"CASE WHEN ({x} * {_DOWN}) / ({y} * {_UP}) >= {real(2.0**-50)} THEN {_signed(a, b, INFINITY)} "
            f"ELSE {a} / {b} END "
            f"WHEN {x} < 1 AND {y} < 1 THEN "
            f"CASE WHEN GREATEST({x}, {_DOWN}) / ({y} * {_UP}) >= {real(2.0**487)} "
            f"THEN {_signed(a, b, INFINITY)} ELSE {a} / {b} END "
            f"WHEN {x} < 1 AND {y} >= 1 THEN "
            f"CASE WHEN ({x} * {_UP}) / ({y} * {_DOWN}) <= {real(0.5)} THEN {_signed(a, b, _ZERO)} "
            f"ELSE {a} / {b} END "
            f"ELSE {a} / {b} END)"
        )

    return let(body, left, right)


def exponential(operand: str) -> str:
    """Return ``exp``."""

    def body(a: str) -> str:
        return (
            f"(CASE WHEN {a} > {_LAST_EXP} AND {a} <= {INFINITY} THEN {INFINITY} "
            f"WHEN {a} < {_FIRST_EXP} THEN {_ZERO} ELSE exp({a}) END)"
        )

    return let(body, operand)


def power(base: str, exponent: str) -> str:
    """Return a power, by C's rules: of a negative base to a fraction it is NaN.

    Parameters
    ----------
    base, exponent : str
        SQL of numbers.

    Returns
    -------
    str

    Examples
    --------
    >>> "power(" in power("2.0", "x")
    True
    """

    def body(a: str, b: str) -> str:
        x, nan = f"abs({a})", real(float("nan"))
        logarithm = f"{b} * ln({x})"
        whole = f"floor({b})"
        odd = f"{b} = {whole} AND {whole} * {real(0.5)} <> floor({whole} * {real(0.5)})"
        sign = f"(CASE WHEN {a} < 0 AND {odd} THEN {real(-1.0)} ELSE {_ONE} END)"
        return (
            f"(CASE WHEN {a} IS NULL OR {b} IS NULL THEN NULL "
            f"WHEN NOT {a} <= {INFINITY} OR NOT {b} <= {INFINITY} THEN power({a}, {b}) "
            f"WHEN {b} = 0 THEN {_ONE} "
            f"WHEN {a} = 0 THEN CASE WHEN {b} > 0 THEN power({a}, {b}) "
            f"WHEN {odd} AND CAST({a} AS text) = '-0' THEN -{INFINITY} ELSE {INFINITY} END "
            f"WHEN {x} = {INFINITY} THEN CASE WHEN {b} < 0 THEN {_ZERO} ELSE {sign} * {INFINITY} END "
            f"WHEN {a} < 0 AND {b} <> floor({b}) THEN {nan} "
            f"WHEN {x} = 1 OR abs({b}) <= {real(1e-290)} THEN {sign} "
            f"WHEN abs({b}) >= {real(1e290)} THEN "
            f"CASE WHEN ({b} > 0) = ({x} > 1) THEN {INFINITY} ELSE {_ZERO} END "
            f"WHEN {logarithm} > {real(709.7827128)} THEN {sign} * {INFINITY} "
            f"WHEN {logarithm} < {real(-745.13)} THEN {sign} * {_ZERO} "
            f"ELSE power({a}, {b}) END)"
        )

    return let(body, base, exponent)


def binary_exponential(operand: str, shift: int) -> str:
    """Return ``operand * 2**shift`` as the nearest 64-bit integer; it is known to be within 2**62."""

    def body(a: str) -> str:
        tiny = -2 - shift  # up to 2**tiny the result is a quarter at most
        steps, rest = [], shift
        while abs(rest) > 1000:
            step = 1000 if rest > 0 else -1000
            steps.append(step)
            rest -= step
        scaled = " * ".join([a, *(real(2.0**step) for step in (*steps, rest))])
        if tiny < -1074:
            return f"CAST({scaled} AS bigint)"
        bound = INFINITY if tiny > 1023 else real(2.0**tiny)
        return f"CASE WHEN abs({a}) <= {bound} THEN CAST('0' AS bigint) ELSE CAST({scaled} AS bigint) END"

    return let(body, operand)
