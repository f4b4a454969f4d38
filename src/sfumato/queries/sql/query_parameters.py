r"""Query parameters: ``@name`` in a query stands for a typed value, never for text.

A value is checked and becomes a node of the syntax tree after the text was parsed, so no value can change
what a query is. ``@name`` may stand wherever a literal may, also in OPTIONS and among the arguments of an
aggregate; a list stands in ``UNNEST(@name)``.

>>> print(Parameters.of({"state": "O'Hara", "ages": [18, 21]}).description)
@state = 'O\'Hara', @ages = [18, 21]
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final, TypeAlias

from sqlglot import Token, TokenType, exp

from sfumato.errors import OptionError
from sfumato.queries.plan.constants import digits_of, number, stored_value, text
from sfumato.queries.plan.query import ColumnType
from sfumato.queries.plan.typed_expressions import DATA_TYPES, closest_name

__all__ = ["NO_PARAMETERS", "Parameters", "QueryValues", "parameter_names"]

QueryValues: TypeAlias = Mapping[str, Any]
"""Values by name, as a caller gives them: bool, int, float, Decimal, str, date, datetime, lists of these."""

_LONGEST_LIST: Final = 20_000
_KINDS: Final = (
    (bool, ColumnType.BOOLEAN),
    (int, ColumnType.INTEGER),
    (float, ColumnType.FLOAT),
    (Decimal, ColumnType.DECIMAL),
    (str, ColumnType.TEXT),
    (dt.datetime, ColumnType.TIMESTAMP),
    (dt.date, ColumnType.DATE),
)
"""Python's types and those of queries; the first that fits."""

_RANGES: Final = {
    ColumnType.INTEGER: "fit in 64 bits",
    ColumnType.FLOAT: "be finite",
    ColumnType.DECIMAL: "be finite, with at most 38 digits before the point and 38 behind it",
    ColumnType.TEXT: "hold characters only, neither NUL nor half a surrogate pair",
    ColumnType.TIMESTAMP: "be a moment of the years 1 to 9999 in UTC",
}
"""What a value of each type must be, beside being of it."""


@dataclass(frozen=True, slots=True)
class _Value:
    """One parameter: its name as it was given, its value in Python, and the nodes that stand for it."""

    name: str
    value: object
    nodes: tuple[exp.Expr, ...]
    listed: bool

    @property
    def node(self) -> exp.Expr:
        """The node that takes the place of ``@name``."""
        copies = [node.copy() for node in self.nodes]
        return exp.Array(expressions=copies) if self.listed else copies[0]


@dataclass(frozen=True, slots=True)
class Parameters:
    """The values of a query's parameters, checked; made by `of`.

    Names are looked up without regard to case, as in BigQuery.
    """

    values: Mapping[str, _Value] = field(default_factory=dict)

    @classmethod
    def of(cls, given: QueryValues | None) -> Parameters:
        """Check values that a caller gives.

        Parameters
        ----------
        given : mapping or None
            Values by name, without the ``@``.

        Raises
        ------
        OptionError
            If a name is none or is given twice, or a value has no type here.
        """
        if given is None:
            return NO_PARAMETERS
        if not isinstance(given, Mapping):
            raise OptionError(
                f"params must be a mapping, got a value of type {type(given).__name__}; pass {{'age': 18}}"
            )
        values: dict[str, _Value] = {}
        entries: Mapping[Any, Any] = given
        for name, value in entries.items():
            if not isinstance(name, str) or not name.isidentifier():
                raise OptionError(
                    f"params must have names such as 'age', got {_shown(name)}; leave the @ to the query"
                )
            if name.casefold() in values:
                raise OptionError(
                    f"params must have names that differ beyond case, got {name!r} twice; rename one"
                )
            values[name.casefold()] = _checked(name, value)
        return cls(values)

    @property
    def description(self) -> str:
        """All values as SQL, for people who read the ledger; empty where there are none."""
        return ", ".join(
            f"@{each.name} = {each.node.sql(dialect='bigquery')}" for each in self.values.values()
        )

    def describe(self, text: str) -> str:
        """Return a query on one line with the values of its parameters in front, for people.

        Parameters
        ----------
        text : str
            The query. It cannot begin with ``@``, so what is in front can only be values.
        """
        values = self.description
        return f"{values}: {' '.join(text.split())}" if values else " ".join(text.split())

    def check_names(self, tokens: Sequence[Token]) -> None:
        """Refuse a name in the query that has no value, and a value that the query does not name.

        Raises
        ------
        OptionError
            If names do not fit.
        """
        names = parameter_names(tokens)
        named = {name.casefold(): name for name in names}
        known = [each.name for each in self.values.values()]
        for folded, name in named.items():
            if folded not in self.values:
                close = closest_name(name, known)
                remedy = f"did you mean @{close}?" if close else f"pass params={{{name!r}: ...}}"
                raise OptionError(f"@{name} must have a value, got none; {remedy}")
        self.check_used(names)

    def check_used(self, names: Collection[str]) -> None:
        """Refuse a value that none of some names means.

        Raises
        ------
        OptionError
            If there is one.
        """
        named = {name.casefold() for name in names}
        for folded, each in self.values.items():
            if folded not in named:
                close = closest_name(each.name, sorted(names))
                remedy = f"did you mean {close!r}?" if close else "leave it out"
                raise OptionError(f"params must be named in the query, got {each.name!r}; {remedy}")

    def only(self, names: Collection[str]) -> Parameters:
        """Return the values of some names."""
        named = {name.casefold() for name in names}
        return Parameters({folded: each for folded, each in self.values.items() if folded in named})

    def option(self, name: str) -> object:
        """Return the value of ``@name`` in OPTIONS.

        Raises
        ------
        OptionError
            If it has no value, or is a list.
        """
        found = self.values.get(name.casefold())
        if found is None or found.listed:
            shown = "none" if found is None else "a list"
            raise OptionError(f"@{name} must be one value in OPTIONS, got {shown}; pass a number, say")
        return found.value

    def bind(self, tree: exp.Expr) -> None:
        """Put the values in place of ``@name`` in a tree.

        Raises
        ------
        OptionError
            If a name has no value, or a list stands where one value must.
        """
        for node in list(tree.find_all(exp.Parameter)):
            name = _name_of(node)
            found = self.values.get(name.casefold())
            if found is None:
                continue  # refused by whoever reads the expression
            place = node.parent
            if node.arg_key == "alias" or isinstance(place, exp.Table | exp.TableAlias):
                raise OptionError(f"@{name} must stand for a value, got it as a name; write the name itself")
            if found.listed != isinstance(place, exp.Unnest):
                shown = "a list" if found.listed else "a single value"
                rule = "stand in UNNEST(...) where it is a list, and nowhere else"
                raise OptionError(f"@{name} must {rule}, got {shown}; write x IN UNNEST(@{name}) for a list")
            condition = None if place is None else place.parent
            if isinstance(condition, exp.In) and condition.args.get("unnest") is place:
                condition.set("unnest", None)
                condition.set("expressions", [each.copy() for each in found.nodes])
            else:
                node.replace(found.node)


NO_PARAMETERS: Final = Parameters()
"""Of a query that has none."""


def parameter_names(tokens: Sequence[Token]) -> list[str]:
    """Return the names behind each ``@`` of a query, in order; ``@@name`` is none."""
    names = []
    for index, token in enumerate(tokens):
        if token.token_type is not TokenType.PARAMETER or index + 1 == len(tokens):
            continue
        doubled = index > 0 and tokens[index - 1].token_type is TokenType.PARAMETER
        following = tokens[index + 1]
        if not doubled and following.token_type is not TokenType.PARAMETER:
            names.append(following.text)
    return names


def _name_of(node: exp.Expr) -> str:
    inner = node.this
    return str(inner.name) if isinstance(inner, exp.Var | exp.Identifier) else ""


def _checked(name: str, value: Any) -> _Value:
    """Return a value with its nodes, or refuse it."""
    plain = _plain(value)
    if not isinstance(plain, list | tuple):
        return _Value(name, plain, (_node(name, plain),), listed=False)
    values = [_plain(each) for each in plain]
    types = {_type_of(name, each) for each in values}
    if len(types) != 1:
        shown = " and ".join(sorted(type_.value for type_ in types)) or "none"
        raise OptionError(
            f"@{name} must be a list of values of one type, got {shown}; convert them to one type"
        )
    if len(values) > _LONGEST_LIST:
        raise OptionError(
            f"@{name} must list at most {_LONGEST_LIST} values, got {len(values)}; "
            "put them into a public table"
        )
    return _Value(name, values, tuple(_node(name, each) for each in values), listed=True)


def _plain(value: Any) -> Any:
    """Return a scalar or an array of numpy's as Python's own."""
    axes = getattr(value, "ndim", None)
    if axes == 0 and callable(getattr(value, "item", None)):
        return value.item()
    return value.tolist() if axes == 1 and callable(getattr(value, "tolist", None)) else value


def _type_of(name: str, value: object) -> ColumnType:
    for kind, type_ in _KINDS:
        if isinstance(value, kind):
            return type_
    rule = "be a bool, int, float, Decimal, str, date, datetime, or a list of one of these"
    remedy = "write IS NULL for a missing value" if value is None else "convert it to one of them"
    raise OptionError(f"@{name} must {rule}, got {_shown(value)}; {remedy}")


def _node(name: str, value: Any) -> exp.Expr:
    """Return the node of one value, which the text of a literal would be parsed to."""
    type_ = _type_of(name, value)
    stored: Any = None
    with suppress(OptionError):
        stored = digits_of(value) if type_ is ColumnType.DECIMAL else stored_value(value, type_, f"@{name}")
    if stored is None:
        range_ = _RANGES.get(type_, f"hold one {type_.value}")
        raise OptionError(f"@{name} must {range_}, got {_shown(value)}; convert it before it is passed")
    if type_ is ColumnType.BOOLEAN:
        return exp.Boolean(this=stored)
    if type_ is ColumnType.TEXT:
        return text(stored).tree
    if type_ in (ColumnType.INTEGER, ColumnType.FLOAT):
        digits = int.__repr__(stored) if type_ is ColumnType.INTEGER else float.__repr__(stored)
        return number(digits.removeprefix("-"), negative=digits.startswith("-")).tree
    if type_ is ColumnType.DECIMAL:
        return exp.Cast(this=exp.Literal.string(stored), to=DATA_TYPES[type_].copy())
    moment = type_ is ColumnType.TIMESTAMP
    spelling = stored.isoformat(sep=" ", timespec="microseconds") if moment else stored.isoformat()
    return exp.Cast(this=exp.Literal.string(spelling), to=DATA_TYPES[type_].copy())


def _shown(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= 60 else shown[:57] + "..."
