"""OPTIONS(...): read from tokens, filled in from the session's defaults, checked."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from sqlglot import Token, TokenType

from sfumato import _check
from sfumato.errors import OptionError, ParameterError
from sfumato.queries.plan.query import GroupSelection, Options
from sfumato.queries.plan.typed_expressions import closest_name

__all__ = ["OPTION_NAMES", "Identifier", "Situation", "given_options", "resolve_options"]

OPTION_NAMES = (
    "delta",
    "epsilon",
    "group_selection_epsilon",
    "group_selection_strategy",
    "max_groups_contributed",
    "max_rows_contributed",
    "max_rows_per_group",
    "min_privacy_units_per_group",
    "privacy_unit_column",
)
"""The options, as messages list them."""

_ELSEWHERE = {
    "k_threshold": "the threshold follows from delta; write delta",
    "kappa": "write max_groups_contributed",
}
_REMEDIES = {
    "epsilon": "write epsilon=0.5, say",
    "delta": "write delta=1e-8, say, or 0 where the groups are public",
    "group_selection_epsilon": "write the part of epsilon for choosing the groups, as in 0.1",
    "max_groups_contributed": "write the most groups that one unit may count in",
    "max_rows_contributed": "write the most rows that one unit may have in all groups together",
    "max_rows_per_group": "write the most rows that one unit may have in one group",
    "min_privacy_units_per_group": "write the least units that a group must have to be shown",
}
_PER_GROUP = ("max_groups_contributed", "max_rows_per_group")
_ALL_ROWS = "max_rows_contributed"
_NUMBER_TOKENS = frozenset({TokenType.NUMBER, TokenType.DOT, TokenType.DASH, TokenType.PLUS})
_INTEGER = re.compile(r"[+-]?[0-9]{1,30}")
_FLOAT = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")

_Checked = TypeVar("_Checked", int, float)


class Identifier(str):
    """A name written as the value of an option: a column, or a word such as PUBLIC_GROUPS."""

    __slots__ = ()


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


def given_options(tokens: Sequence[Token]) -> dict[str, object]:
    """Read ``name = value, ...``; a value is a number, a string, NULL (None) or a name.

    Raises
    ------
    OptionError
        If a name is unknown or repeated, or a value is not a literal.
    """
    given: dict[str, object] = {}
    for entry in _entries(tokens):
        if len(entry) < 3 or entry[1].token_type is not TokenType.EQ:
            shown = " ".join(token.text for token in entry[:4])
            raise OptionError(f"an entry of OPTIONS must be name = value, got {shown!r}; write epsilon=0.5")
        name = entry[0].text.lower()
        _check_name(name, "OPTIONS")
        if name in given:
            raise OptionError(f"{name} must be given once in OPTIONS, got it twice; leave one out")
        given[name] = _value(name, entry[2:])
    return given


def _entries(tokens: Sequence[Token]) -> list[list[Token]]:
    if not tokens:
        return []
    entries: list[list[Token]] = [[]]
    for token in tokens:
        if token.token_type is TokenType.COMMA:
            entries.append([])
        else:
            entries[-1].append(token)
    return entries


def _check_name(name: str, where: str) -> None:
    if name in OPTION_NAMES:
        return
    close = closest_name(name, OPTION_NAMES)
    hint = f"did you mean {close}?" if close else f"the options are {', '.join(OPTION_NAMES)}"
    raise OptionError(f"{name!r} is not an option of {where}; {_ELSEWHERE.get(name, hint)}")


def _value(name: str, tokens: Sequence[Token]) -> object:
    kinds = {token.token_type for token in tokens}
    written = "".join(token.text for token in tokens)
    if kinds <= _NUMBER_TOKENS and _INTEGER.fullmatch(written):
        return int(written)
    if kinds <= _NUMBER_TOKENS and _FLOAT.fullmatch(written):
        return float(written)
    if kinds == {TokenType.STRING} and len(tokens) == 1:
        return written
    if kinds == {TokenType.NULL} and len(tokens) == 1:
        return None
    names, dots = tokens[::2], tokens[1::2]
    words = all(token.token_type is TokenType.IDENTIFIER or token.text.isidentifier() for token in names)
    if words and all(token.token_type is TokenType.DOT for token in dots) and len(names) == len(dots) + 1:
        return Identifier(names[-1].text)
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
    for name in defaults:
        _check_name(name, "the session's defaults")
    merged = _left(defaults, given or {}) | dict(given or {})
    for name, value in merged.items():
        if value is None:
            raise OptionError(f"{name} must have a value, got NULL; {_REMEDIES.get(name, 'leave it out')}")
    epsilon = _epsilon(merged, plain=given is None)
    delta = _delta(merged, situation, plain=given is None)
    _check_unit(merged.get("privacy_unit_column"), situation.unit)
    groups, rows, all_rows = _bounds(merged, situation)
    return Options(
        epsilon=epsilon,
        delta=delta,
        max_groups_contributed=groups,
        max_rows_per_group=rows,
        group_selection=_selection(merged, given or {}, situation),
        group_selection_epsilon=_selection_epsilon(merged, given or {}, situation),
        max_rows_contributed=all_rows,
        min_privacy_units=_least_units(merged, given or {}, situation),
    )


def _left(defaults: Mapping[str, object], given: Mapping[str, object]) -> dict[str, object]:
    """Return the defaults that are left beside what the query says: its kind of bounds replaces the other."""
    replaced = (
        {_ALL_ROWS} if set(_PER_GROUP) & set(given) else set(_PER_GROUP) if _ALL_ROWS in given else set()
    )
    return {name: value for name, value in defaults.items() if value is not None and name not in replaced}


def _bounds(merged: Mapping[str, object], situation: Situation) -> tuple[int | None, int | None, int | None]:
    """Return the most groups of a unit, its most rows in a group, and its most rows in all groups."""
    groups, rows, all_rows = (_whole(name, merged) for name in (*_PER_GROUP, _ALL_ROWS))
    others = [name for name in _PER_GROUP if name in merged]
    if all_rows is not None and others:
        raise OptionError(
            f"{_ALL_ROWS} must stand without {others[0]}, for it bounds the rows in all groups at once; "
            "keep one of them"
        )
    if situation.unit is None:
        return None, None, None
    if not situation.grouped:
        return None, all_rows if rows is None else rows, None
    if groups is None and all_rows is None:
        raise OptionError(
            "max_groups_contributed must be given where a unit may be in several groups, got none; "
            + _REMEDIES["max_groups_contributed"]
        )
    return groups, rows, all_rows


def _least_units(merged: Mapping[str, object], given: Mapping[str, object], situation: Situation) -> int:
    name = "min_privacy_units_per_group"
    least = _whole(name, merged)
    if least is None or (situation.grouped and not situation.listed):
        return least or 1
    if name in given:
        raise OptionError(
            f"{name} must be left out where no groups are chosen, got {least}; public groups are all shown"
        )
    return 1


def _epsilon(merged: Mapping[str, object], *, plain: bool) -> float:
    if "epsilon" not in merged and plain:
        raise OptionError(
            "a plain SELECT is answered only where the session has a default epsilon, got none; "
            "write SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=0.5, delta=1e-8, ...)"
        )
    if "epsilon" not in merged:
        raise OptionError(f"epsilon must be given in OPTIONS, got none; {_REMEDIES['epsilon']}")
    return _checked(lambda: _check.positive("epsilon", merged["epsilon"], _REMEDIES["epsilon"]))


def _selection_epsilon(
    merged: Mapping[str, object], given: Mapping[str, object], situation: Situation
) -> float | None:
    name = "group_selection_epsilon"
    if name not in merged:
        return None
    value = _checked(lambda: _check.positive(name, merged[name], _REMEDIES[name]))
    if situation.grouped and not situation.listed:
        return value
    if name in given:
        raise OptionError(f"{name} must be left out where no groups are chosen, got {value!r}; leave it out")
    return None


def _delta(merged: Mapping[str, object], situation: Situation, *, plain: bool) -> float:
    if "delta" not in merged and not plain:
        raise OptionError(f"delta must be given in OPTIONS, got none; {_REMEDIES['delta']}")
    delta = _checked(lambda: _check.probability("delta", merged.get("delta", 0.0), _REMEDIES["delta"]))
    if delta == 0 and situation.grouped and not situation.listed:
        raise OptionError(
            "delta must be positive where the groups are unknown, got 0.0; "
            "write delta=1e-8, say, or list the groups with public_groups="
        )
    return delta


def _whole(name: str, merged: Mapping[str, object]) -> int | None:
    if name not in merged:
        return None
    value = _checked(lambda: _check.integer(name, merged[name], minimum=1, remedy=_REMEDIES[name]))
    if value > 2**40:
        raise OptionError(f"{name} must be at most 2**40, got {value}; {_REMEDIES[name]}")
    return value


def _checked(check: Callable[[], _Checked]) -> _Checked:
    try:
        return check()
    except ParameterError as error:
        raise OptionError(str(error)) from None


def _check_unit(named: object, unit: str | None) -> None:
    if named is None:
        return
    if not isinstance(named, str):
        raise OptionError(f"privacy_unit_column must name a column, got {named!r}; leave it out")
    if unit is None:
        raise OptionError(
            f"privacy_unit_column must be left out where each row is a unit, got {str(named)!r}"
        )
    if named.casefold() != unit.casefold():
        raise OptionError(
            f"privacy_unit_column must be the session's unit {unit!r}, got {str(named)!r}; leave it out"
        )


def _selection(
    merged: Mapping[str, object], given: Mapping[str, object], situation: Situation
) -> GroupSelection | None:
    named = merged.get("group_selection_strategy")
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
    if strategy is public:
        return public
    if situation.listed == "join" or written:
        shown = "none" if strategy is None or not written else strategy.value
        raise OptionError(
            f"group_selection_strategy must be PUBLIC_GROUPS where the groups are listed, got {shown}; "
            "write group_selection_strategy=PUBLIC_GROUPS"
        )
    return public


def _strategy(named: object) -> GroupSelection:
    if isinstance(named, GroupSelection):
        return named
    names = [strategy.value for strategy in GroupSelection]
    if not isinstance(named, str) or named.upper() not in names:
        shown = repr(str(named)) if isinstance(named, str) else repr(named)
        raise OptionError(
            f"group_selection_strategy must be one of {', '.join(names)}, got {shown}; write one of them"
        )
    return GroupSelection(named.upper())
