"""Constants: numbers, strings, dates and timestamps in one canonical spelling, and their Python values."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Protocol, TypeVar, runtime_checkable

from sqlglot import exp

from sfumato.errors import OptionError, SchemaError, UnsupportedSql
from sfumato.queries.plan.query import ColumnType
from sfumato.queries.plan.typed_expressions import NUMERIC, TEMPORAL, TypedTree, advice, cast

__all__ = [
    "common", "digits_of", "is_constant", "literal", "number", "python_value", "stored_value", "temporal",
    "text",
]  # fmt: skip


@runtime_checkable
class _Scalar(Protocol):
    """A numpy scalar, known by its face so that numpy need not be imported here."""

    @property
    def ndim(self) -> int: ...

    def item(self) -> object: ...


_Moment = TypeVar("_Moment", dt.date, dt.datetime)

_PLAIN = frozenset({bool, int, float, str, dt.date, dt.datetime})  # no scalars: looking at a face is slow
_INTEGER_REACH = 2**63
_INTEGER = re.compile(r"[0-9]+")
_FLOAT = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_MAX_DIGITS = 400
_NUMERIC_DIGITS = 38
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIMESTAMP = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?(Z|[+-][0-9]{2}:[0-9]{2})?)?"
)


def number(digits: str, *, negative: bool = False) -> TypedTree:
    """Return a number: an INT64 where it is written in digits alone, else a FLOAT64."""
    if len(digits) > _MAX_DIGITS:
        raise SchemaError(f"a number must have at most {_MAX_DIGITS} digits, got {len(digits)}; write fewer")
    if _INTEGER.fullmatch(digits):
        whole = int(digits)
        if whole - negative >= _INTEGER_REACH:
            raise SchemaError(f"an integer must fit in 64 bits, got {digits}; write it as a float like 1e19")
        return TypedTree(_signed(str(whole), negative=negative and whole != 0), ColumnType.INTEGER)
    if not _FLOAT.fullmatch(digits):
        raise UnsupportedSql(
            f"a number must be written in decimal digits, got {digits!r}; write it like 1.5 or 2e6"
        )
    real = float(digits)
    if math.isinf(real):
        raise SchemaError(f"a number must be finite, got {digits}; write a smaller one")
    return TypedTree(_signed(repr(real), negative=negative and real != 0), ColumnType.FLOAT)


def digits_of(value: Decimal) -> str | None:
    """Return a decimal as the text that NUMERIC is cast from; None of one with too many digits.

    Examples
    --------
    >>> digits_of(Decimal("1.50E+1")), digits_of(Decimal("-0.0")), digits_of(Decimal("1e39"))
    ('15', '0', None)
    """
    if not value.is_finite() or (value and abs(value.adjusted()) > _NUMERIC_DIGITS):
        return None
    whole, _, part = format(abs(value), "f").partition(".") if value else ("0", "", "")
    part = part.rstrip("0")
    if max(len(whole), len(part)) > _NUMERIC_DIGITS:
        return None
    return ("-" if value < 0 else "") + whole + ("." + part if part else "")


def _signed(digits: str, *, negative: bool) -> exp.Expression:
    literal = exp.Literal.number(digits)
    return exp.Neg(this=literal) if negative else literal


def text(value: str) -> TypedTree:
    """Return a string literal; what no engine could store is refused."""
    if not _storable(value):
        raise SchemaError(
            "a string must hold characters only, got NUL or half a surrogate pair; leave it out"
        )
    return TypedTree(exp.Literal.string(value), ColumnType.TEXT)


def _storable(value: str) -> bool:
    return "\0" not in value and not any("\ud800" <= character <= "\udfff" for character in value)


def temporal(value: str, type_: ColumnType) -> TypedTree:
    """Return a DATE or TIMESTAMP literal in its one canonical spelling; timestamps are in UTC."""
    moment = _moment(value, type_)
    if moment is None:
        form = "YYYY-MM-DD" if type_ is ColumnType.DATE else "YYYY-MM-DD HH:MM:SS"
        raise SchemaError(
            f"a {type_.value} must be a real moment written as '{form}', got {value!r}; correct it"
        )
    spelling = moment.isoformat(sep=" ") if isinstance(moment, dt.datetime) else moment.isoformat()
    return cast(text(spelling), type_)


def _moment(value: str, type_: ColumnType) -> dt.date | None:
    if type_ is ColumnType.DATE:
        return _read(dt.date.fromisoformat, value, _DATE)
    instant = _read(dt.datetime.fromisoformat, value, _TIMESTAMP)
    return None if instant is None else _naive_utc(instant)


def _read(parse: Callable[[str], _Moment], value: str, form: re.Pattern[str]) -> _Moment | None:
    if not form.fullmatch(value):
        return None
    try:
        return parse(value)
    except ValueError:
        return None


def _naive_utc(instant: dt.datetime) -> dt.datetime | None:
    if instant.tzinfo is None:
        return instant
    try:
        return instant.astimezone(dt.UTC).replace(tzinfo=None)
    except OverflowError:
        return None


def common(terms: Sequence[TypedTree], what: str) -> tuple[list[TypedTree], ColumnType | None]:
    """Bring terms to one type: integers widen to FLOAT64, string literals become dates beside dates.

    Returns
    -------
    tuple
        The terms, converted where needed, and their type; None if every one is a bare NULL.
    """
    types = {term.type for term in terms if term.type is not None}
    if len(types) <= 1:
        return list(terms), next(iter(types), None)
    if types == NUMERIC:
        return list(terms), ColumnType.FLOAT
    moments = types & TEMPORAL
    if len(moments) == 1 and types == moments | {ColumnType.TEXT}:
        target = next(iter(moments))
        strings = [term for term in terms if term.type is ColumnType.TEXT]
        if all(isinstance(term.tree, exp.Literal) for term in strings):
            return [temporal(t.tree.name, target) if t.type is ColumnType.TEXT else t for t in terms], target
    names = " and ".join(type_.value for type_ in ColumnType if type_ in types)
    other = next((t.value for t in ColumnType if t in types and t is not ColumnType.TEXT), "")
    to_declare = next((words for words in (advice(term, other) for term in terms) if words), "")
    raise SchemaError(
        f"{what} must have values of one type, got {names}; {to_declare}use CAST to bring them to one type"
    )


def is_constant(term: TypedTree) -> bool:
    """Return whether a term is a literal: a number, a string, a boolean, a DATE or a TIMESTAMP."""
    tree = term.tree
    if isinstance(tree, exp.TryCast):  # of a literal only where `temporal` made it
        return term.type in TEMPORAL and isinstance(tree.this, exp.Literal)
    return isinstance(tree.this if isinstance(tree, exp.Neg) else tree, (exp.Literal, exp.Boolean))


def python_value(term: TypedTree) -> object:
    """Return the Python value of a constant term."""
    tree = term.tree
    if isinstance(tree, exp.TryCast) and term.type is not None:
        return _moment(tree.this.name, term.type)
    if isinstance(tree, exp.Boolean):
        return bool(tree.this)
    if term.type is ColumnType.TEXT:
        return str(tree.name)
    sign, digits = (-1, tree.this.name) if isinstance(tree, exp.Neg) else (1, tree.name)
    return sign * (int(digits) if term.type is ColumnType.INTEGER else float(digits))


def literal(value: object, type_: ColumnType) -> exp.Expression:
    """Return a Python value of a type as a literal.

    Examples
    --------
    >>> literal(-3, ColumnType.INTEGER).sql(), literal(3, ColumnType.FLOAT).sql()
    ('-3', '3.0')
    """
    if isinstance(value, bool):
        return exp.Boolean(this=value)
    if isinstance(value, int | float):
        digits = str(abs(value)) if type_ is ColumnType.INTEGER else repr(abs(float(value)))
        return number(digits, negative=value < 0).tree
    if isinstance(value, dt.datetime):
        return temporal(value.isoformat(sep=" "), type_).tree
    if isinstance(value, dt.date):
        return temporal(value.isoformat(), type_).tree
    return text(str(value)).tree


def stored_value(value: object, type_: ColumnType, what: str) -> object:
    """Return a Python value as a column of that type stores it; None is the NULL of every type.

    Raises
    ------
    OptionError
        If the value is not of that type.
    """
    if value is None:
        return None
    plain = value
    if type(value) not in _PLAIN and isinstance(value, _Scalar) and value.ndim == 0:
        plain = value.item()
    stored = _STORED[type_](plain)
    if stored is not None:
        return stored
    shown = repr(plain)
    shown = shown if len(shown) <= 60 else shown[:57] + "..."
    raise OptionError(f"{what} must hold {type_.value} values, got {shown}; give values of the key's type")


def _boolean(value: object) -> bool | None:
    return value if isinstance(value, bool) else None


def _integer(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return int(value) if -_INTEGER_REACH <= value < _INTEGER_REACH else None


def _real(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        real = float(value)
    except OverflowError:
        return None
    return real + 0.0 if math.isfinite(real) else None  # -0.0 becomes 0.0: they are one group


def _string(value: object) -> str | None:
    return str(value) if isinstance(value, str) and _storable(value) else None


def _date(value: object) -> dt.date | None:
    return value if isinstance(value, dt.date) and not isinstance(value, dt.datetime) else None


def _timestamp(value: object) -> dt.datetime | None:
    if not isinstance(value, dt.datetime) or value != value:  # noqa: PLR0124 - pandas' NaT is a datetime
        return None
    return _naive_utc(value)


_STORED: dict[ColumnType, Callable[[object], object]] = {
    ColumnType.BOOLEAN: _boolean,
    ColumnType.INTEGER: _integer,
    ColumnType.FLOAT: _real,
    ColumnType.TEXT: _string,
    ColumnType.DATE: _date,
    ColumnType.TIMESTAMP: _timestamp,
    ColumnType.DECIMAL: lambda _: None,  # no key is one
}
