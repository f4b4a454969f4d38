"""OPTIONS(...): read from tokens, filled in from the session's defaults, checked."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from sqlglot import Token, TokenType

from sfumato import _check
from sfumato.errors import OptionError, ParameterError
from sfumato.queries.plan.query import GroupSelection, Options
from sfumato.queries.plan.typed_expressions import closest_name
from sfumato.queries.sql.query_parameters import NO_PARAMETERS, Parameters

__all__ = ["OPTION_NAMES", "Situation", "given_options", "resolve_options"]


def _count(name: str, value: object, remedy: str) -> int:
    count = _check.integer(name, value, minimum=1, remedy=remedy)
    if count > 2**40:
        _check.refuse(name, "be at most 2**40", count, remedy)
    return count


_NUMBERS: Final[Mapping[str, tuple[Callable[[str, object, str], Any], str]]] = MappingProxyType(
    {
        "epsilon": (_check.positive, "write epsilon=0.5, say"),
        "delta": (_check.probability, "write delta=1e-8, say, or 0 where the groups are public"),
        "max_groups_contributed": (_count, "write the maximum number of groups that one unit may count in"),
        "max_rows_per_group": (_count, "write the maximum number of rows of one unit in one group"),
        "max_rows_contributed": (
            _count,
            "write the maximum number of rows of one unit in all groups together",
        ),
        "group_selection_epsilon": (
            _check.positive,
            "write the part of epsilon for choosing the groups, as in 0.1",
        ),
        "truncation_epsilon": (
            _check.positive,
            "write the part of epsilon for the report of what the limits cut off, as in 0.1",
        ),
        "min_privacy_units_per_group": (
            _count,
            "write the minimum number of units of a group that may be shown",
        ),
    }
)
"""How each number is checked, and what a message says to write."""

OPTION_NAMES: Final = tuple(sorted([*_NUMBERS, "group_selection_strategy", "privacy_unit_column"]))
"""The options, as messages list them."""

_ELSEWHERE: Final = MappingProxyType(
    {
        "k_threshold": "the threshold follows from delta; write delta",
        "kappa": "write max_groups_contributed",
    }
)
_PER_GROUP: Final = ("max_groups_contributed", "max_rows_per_group")
_ALL_ROWS: Final = "max_rows_contributed"
_NUMBER_TOKENS: Final = frozenset({TokenType.NUMBER, TokenType.DOT, TokenType.DASH, TokenType.PLUS})
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,30}")
_FLOAT: Final = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


@dataclass(frozen=True, slots=True)
class Situation:
    """What a query is, as far as its options depend on it.

    Parameters
    ----------
    unit : str or None
        The session's privacy-unit column; None where each row is a unit.
    grouped : bool
        Whether the query has keys.
    listed : str
        How its groups are listed: ``"join"``, ``"argument"``, or empty where they are not.
    """

    unit: str | None
    grouped: bool
    listed: str

    @property
    def unknown_groups(self) -> bool:
        """Whether the groups that are shown are chosen by looking at the data."""
        return self.grouped and not self.listed


def given_options(tokens: Sequence[Token], parameters: Parameters = NO_PARAMETERS) -> dict[str, object]:
    """Read ``name = value, ...``; a value is a number, a string, NULL (None), a name or a parameter.

    Raises
    ------
    OptionError
        If a name is unknown or repeated, or a value is not a literal.
    """
    given: dict[str, object] = {}
    entries: list[list[Token]] = [[]] if tokens else []
    for token in tokens:
        if token.token_type is TokenType.COMMA:
            entries.append([])
        else:
            entries[-1].append(token)
    for entry in entries:
        if len(entry) < 3 or entry[1].token_type is not TokenType.EQ:
            shown = " ".join(token.text for token in entry[:4])
            raise OptionError(f"an entry of OPTIONS must be name = value, got {shown!r}; write epsilon=0.5")
        name = entry[0].text.lower()
        _check_name(name, "OPTIONS")
        if name in given:
            raise OptionError(f"{name} must be given once in OPTIONS, got it twice; leave one out")
        given[name] = _value(name, entry[2:], parameters)
    return given


def _check_name(name: str, where: str) -> None:
    if name not in OPTION_NAMES:
        close = closest_name(name, OPTION_NAMES)
        hint = f"did you mean {close}?" if close else f"the options are {', '.join(OPTION_NAMES)}"
        raise OptionError(f"{name!r} is not an option of {where}; {_ELSEWHERE.get(name, hint)}")


def _value(name: str, tokens: Sequence[Token], parameters: Parameters) -> object:
    if len(tokens) == 2 and tokens[0].token_type is TokenType.PARAMETER:
        return parameters.option(tokens[1].text)
    kinds = {token.token_type for token in tokens}
    written = "".join(token.text for token in tokens)
    if kinds <= _NUMBER_TOKENS:
        if _INTEGER.fullmatch(written):
            return int(written)
        if _FLOAT.fullmatch(written):
            return float(written)
    if len(tokens) == 1 and kinds <= {TokenType.STRING, TokenType.NULL}:
        return None if TokenType.NULL in kinds else written
    words, dots = tokens[::2], tokens[1::2]
    named = all(token.token_type is TokenType.IDENTIFIER or token.text.isidentifier() for token in words)
    if named and all(token.token_type is TokenType.DOT for token in dots) and len(words) == len(dots) + 1:
        return words[-1].text  # a column, or a word such as PUBLIC_GROUPS
    raise OptionError(f"{name} must be a literal, got {written[:40]!r}; write the value itself")


def resolve_options(
    given: Mapping[str, object] | None, defaults: Mapping[str, object], situation: Situation
) -> Options:
    """Fill in defaults and check every option.

    Parameters
    ----------
    given : mapping or None
        What OPTIONS says; None for a plain SELECT.
    defaults : mapping
        The session's defaults; None means that there is none.
    situation : Situation
        What the query is.

    Raises
    ------
    OptionError
        If an option is missing, of a wrong type, out of range, or does not fit the query.
    """
    merged = _merged(given, defaults)
    try:
        numbers = {
            name: check(name, merged[name], remedy)
            for name, (check, remedy) in _NUMBERS.items()
            if name in merged
        }
    except ParameterError as error:
        raise OptionError(str(error)) from None
    if not numbers.get("delta") and situation.unknown_groups:
        raise OptionError(
            "delta must be positive where the groups are unknown, got 0.0; "
            "write delta=1e-8, say, or list the groups with public_groups="
        )
    _check_unit(merged.get("privacy_unit_column"), situation.unit)
    groups, rows, all_rows = _bounds(numbers, situation)
    if not situation.unknown_groups:
        for name in ("group_selection_epsilon", "min_privacy_units_per_group"):
            if name in (given or {}):
                raise OptionError(
                    f"{name} must be left out where no groups are chosen, got {numbers[name]!r}; "
                    "leave it out: all groups are shown"
                )
            numbers.pop(name, None)
    return Options(
        epsilon=numbers["epsilon"],
        delta=numbers.get("delta", 0.0),
        max_groups_contributed=groups,
        max_rows_per_group=rows,
        group_selection=_selection(merged.get("group_selection_strategy"), given or {}, situation),
        group_selection_epsilon=numbers.get("group_selection_epsilon"),
        max_rows_contributed=all_rows,
        min_privacy_units=numbers.get("min_privacy_units_per_group", 1),
        truncation_epsilon=numbers.get("truncation_epsilon"),
    )


def _merged(given: Mapping[str, object] | None, defaults: Mapping[str, object]) -> dict[str, object]:
    """Return what the query says beside the defaults: its kind of bounds replaces the other kind's."""
    for name in defaults:
        _check_name(name, "the session's defaults")
    written = dict(given or {})
    replaced = (
        {_ALL_ROWS} if set(_PER_GROUP) & set(written) else set(_PER_GROUP if _ALL_ROWS in written else ())
    )
    left = {name: value for name, value in defaults.items() if value is not None and name not in replaced}
    for name, value in written.items():
        if value is None:
            remedy = _NUMBERS[name][1] if name in _NUMBERS else "leave it out"
            raise OptionError(f"{name} must have a value, got NULL; {remedy}")
    merged = left | written
    if given is None and "epsilon" not in merged:
        raise OptionError(
            "a plain SELECT is answered only where the session has a default epsilon, got none; "
            "write SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=0.5, delta=1e-8, ...)"
        )
    for name in ("epsilon", "delta"):
        if name not in merged and given is not None:
            raise OptionError(f"{name} must be given in OPTIONS, got none; {_NUMBERS[name][1]}")
    return merged


def _bounds(numbers: Mapping[str, Any], situation: Situation) -> tuple[int | None, int | None, int | None]:
    """Return a unit's maximum numbers of groups, of rows in a group, and of rows in all groups."""
    groups, rows, all_rows = (numbers.get(name) for name in (*_PER_GROUP, _ALL_ROWS))
    if all_rows is not None and (groups or rows):
        other = _PER_GROUP[0] if groups else _PER_GROUP[1]
        raise OptionError(
            f"{_ALL_ROWS} must stand without {other}, for it bounds the rows in all groups at once; "
            "keep one of them"
        )
    if situation.unit is None:
        return None, None, None
    if not situation.grouped:
        return None, rows or all_rows, None
    if groups is None and all_rows is None:
        raise OptionError(
            "max_groups_contributed must be given where a unit may be in several groups, got none; "
            + _NUMBERS["max_groups_contributed"][1]
        )
    return groups, rows, all_rows


def _check_unit(named: object, unit: str | None) -> None:
    if named is None:
        return
    if not isinstance(named, str):
        raise OptionError(f"privacy_unit_column must name a column, got {named!r}; leave it out")
    if unit is None:
        raise OptionError(
            f"privacy_unit_column must be left out where each row is a unit, got {named!r}; leave it out"
        )
    if named.casefold() != unit.casefold():
        raise OptionError(
            f"privacy_unit_column must be the session's unit {unit!r}, got {named!r}; leave it out"
        )


def _selection(named: object, given: Mapping[str, object], situation: Situation) -> GroupSelection | None:
    strategy = None if named is None else _strategy(named)
    written = "group_selection_strategy" in given
    public = GroupSelection.PUBLIC_GROUPS
    if not situation.listed:
        if strategy is public and written:
            raise OptionError(
                "group_selection_strategy = PUBLIC_GROUPS needs a list of the groups, got none; "
                "join a SELECT DISTINCT of a public table, or pass public_groups="
            )
        return None if strategy is public else strategy
    if strategy is not public and (situation.listed == "join" or written):
        shown = "none" if strategy is None or not written else strategy.value
        raise OptionError(
            f"group_selection_strategy must be PUBLIC_GROUPS where the groups are listed, got {shown}; "
            "write group_selection_strategy=PUBLIC_GROUPS"
        )
    return public


def _strategy(named: object) -> GroupSelection:
    names = [strategy.value for strategy in GroupSelection]
    if isinstance(named, GroupSelection):
        return named
    if not isinstance(named, str) or named.upper() not in names:
        raise OptionError(
            f"group_selection_strategy must be one of {', '.join(names)}, got {named!r}; write one of them"
        )
    return GroupSelection(named.upper())
