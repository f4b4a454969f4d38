"""A call of an aggregate, its named arguments set apart and read as literals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from sqlglot import exp

from sfumato import _check
from sfumato.errors import OptionError, ParameterError, QueryError, UnsupportedSql
from sfumato.queries.plan.constants import python_value
from sfumato.queries.plan.typed_expressions import NUMERIC
from sfumato.queries.sql.expressions.scalar import function_name, read_constant

__all__ = [
    "INTERVAL_EPSILON",
    "PER_GROUP",
    "PER_ROW",
    "Bounds",
    "Call",
    "Signature",
    "as_bounds",
    "read_call",
]

PER_GROUP = "contribution_bounds_per_group"
PER_ROW = "contribution_bounds_per_row"
INTERVAL_EPSILON = "interval_epsilon"

Bounds: TypeAlias = tuple[float, float]

_ALWAYS = ("epsilon", "report_format")
_MAX_BOUND = 1e150  # with room for the rows of a unit and for the noise, so that an answer is always a number


@dataclass(frozen=True, slots=True)
class Signature:
    """How an aggregate is called: how many plain arguments it takes, and which named ones.

    ``shown`` are the plain ones as a message shows them.
    """

    plain: int
    named: tuple[str, ...]
    shown: str = ""


@dataclass(frozen=True, slots=True)
class Call:
    """One call: its name in capitals, its plain arguments, its named arguments by name in small letters."""

    name: str
    plain: tuple[exp.Expr, ...]
    named: Mapping[str, exp.Expr]

    def bounds(self, key: str) -> Bounds | None:
        """Return a pair of bounds; None where they are not given."""
        return as_bounds(key, self.named[key]) if key in self.named else None

    def epsilon(self, key: str = "epsilon") -> float | None:
        """Return a part of epsilon that the call asks for: its own, or its interval's."""
        if key not in self.named:
            return None
        remedy = f"write {key} => 0.3, say"
        value = self._literal(key, remedy)
        try:
            return _check.positive(key, value, remedy)
        except ParameterError as error:
            raise OptionError(f"{self.name}: {error}") from None

    def report(self) -> bool:
        """Return whether value and interval are wanted as one JSON text."""
        form = self.word("report_format")
        if form not in (None, "JSON"):
            raise OptionError(f"report_format must be 'JSON', got {form!r}; write 'JSON', or leave it out")
        return form is not None

    def whole(self, key: str, *, maximum: int) -> int | None:
        """Return a whole number from 1 on; None where it is not given."""
        if key not in self.named:
            return None
        remedy = f"write {key} => 1, say"
        value = self._literal(key, remedy)
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= maximum:
            raise OptionError(f"{key} must be a whole number from 1 to {maximum}, got {value!r}; {remedy}")
        return value

    def word(self, key: str) -> str | None:
        """Return a string in capitals; None where it is not given."""
        if key not in self.named:
            return None
        if isinstance(self.named[key], exp.Column):
            name = self.named[key].name
            raise OptionError(f"{key} must be a string, got the name {name}; write {key} => '{name}'")
        value = self._literal(key, f"write {key} => 'NAME'")
        if not isinstance(value, str):
            raise OptionError(f"{key} must be a string, got {value!r}; put it in quotes")
        return value.upper()

    def second(self, remedy: str) -> object:
        """Return the value of the second plain argument, a literal."""
        what = f"the second argument of {self.name}"
        try:
            return python_value(read_constant(self.plain[1], what))
        except QueryError as error:
            raise OptionError(f"{what} must be a literal: {error}; {remedy}") from None

    def _literal(self, key: str, remedy: str) -> object:
        try:
            return python_value(read_constant(self.named[key], key))
        except QueryError as error:
            raise OptionError(f"{key} must be a literal: {error}; {remedy}") from None


def read_call(node: exp.Expr, signatures: Mapping[str, Signature], hints: Mapping[str, str]) -> Call:
    """Read a call of an aggregate.

    Parameters
    ----------
    node : sqlglot.exp.Expr
        The call.
    signatures : mapping
        The aggregates there are.
    hints : mapping
        What to write instead of others, and of named arguments that are not taken.

    Raises
    ------
    UnsupportedSql
        If there is no such aggregate, or it has other arguments.
    OptionError
        If a named argument is not known, or given twice.
    """
    name = function_name(node)
    if name not in signatures:
        usual = f"use {_listing(tuple(signatures))}"
        raise UnsupportedSql(f"the aggregate {name} is not supported; {hints.get(name, usual)}")
    signature = signatures[name]
    named: dict[str, exp.Expr] = {}
    plain: list[exp.Expr] = []
    for argument in node.expressions:
        if not isinstance(argument, exp.Kwarg):
            plain.append(argument)
            continue
        key = argument.this.name.lower()
        if key not in signature.named + _ALWAYS:
            raise OptionError(f"{name} has no argument {key!r}; {_instead(key, signature, hints)}")
        if key in named:
            raise OptionError(f"{key} must be given once, got it twice; leave one out")
        named[key] = argument.expression
    if len(plain) != signature.plain:
        wanted, usual = ("one argument", "x") if signature.plain == 1 else ("two arguments", "x, y")
        shown = signature.shown or usual
        raise UnsupportedSql(
            f"{name} must have {wanted} besides its bounds, got {len(plain)}; write {name}({shown})"
        )
    return Call(name, tuple(plain), named)


def _instead(key: str, signature: Signature, hints: Mapping[str, str]) -> str:
    if key in hints:
        return hints[key]
    for known in (PER_GROUP, PER_ROW):
        if known in signature.named:
            return f"write {known} => (lower, upper)"
    return f"it takes {_listing(signature.named + _ALWAYS)}"


def _listing(names: Sequence[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} or {last}" if first else last


def as_bounds(key: str, node: exp.Expr) -> Bounds:
    """Read a pair of finite literals, the lower one first."""
    remedy = "write public numbers, as in (0, 100)"
    if not isinstance(node, exp.Tuple) or len(node.expressions) != 2:
        raise OptionError(f"{key} must be a pair of literals (lower, upper); {remedy}")
    try:
        terms = [read_constant(bound, "a bound") for bound in node.expressions]
    except QueryError as error:
        raise OptionError(f"{key} must be a pair of finite literals: {error}") from None
    if any(term.type not in NUMERIC for term in terms):
        raise OptionError(f"{key} must be a pair of numbers; {remedy}")
    lower, upper = (float(str(python_value(term))) for term in terms)
    if lower > upper:
        raise OptionError(f"{key} must have its lower bound first, got ({lower:g}, {upper:g}); swap them")
    reach = max(abs(lower), abs(upper))
    if reach > _MAX_BOUND or 0 < reach < 1 / _MAX_BOUND:
        raise OptionError(
            f"{key} must reach from 1e-150 to 1e150, or be (0, 0), got ({lower:g}, {upper:g}); "
            "bring the column to another unit"
        )
    return lower, upper
