"""Takes outputs of any kind apart: their form, the order of their keys, and the numbers and labels in them.

Whatever of an output a caller can see is in one of these, so that any of it can be an event: that a count is
a float on one input and an int on the other, that a dict was filled in another order, what an error says.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, fields, is_dataclass
from numbers import Real
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from sfumato.mechanisms.base.release import Release

__all__ = [
    "MESSAGE",
    "ORDER",
    "TYPE",
    "ZERO_SIGN",
    "FlatOutcome",
    "Outputs",
    "Raised",
    "as_outputs",
    "flat_outcomes",
    "flatten",
    "is_negative_zero",
    "number_and_label",
    "numeric_entries",
]

MESSAGE: Final = "message"
ORDER: Final = "order"
TYPE: Final = "type"
ZERO_SIGN: Final = "zero sign"

_EXACT = 1 << 53
"""Whole numbers below it are floats, each one of its own."""
_PLAIN = frozenset({bool, int, float, str})


@final
@dataclass(frozen=True, slots=True)
class Raised:
    """An error in place of an output: who sees the output sees that too.

    Parameters
    ----------
    kind : str
        The name of the error's class.
    message : str
    """

    kind: str
    message: str

    def __repr__(self) -> str:
        return f"raised {self.kind}({self.message!r})" if self.message else f"raised {self.kind}"


@final
@dataclass(frozen=True, slots=True)
class FlatOutcome:
    """One outcome, taken apart.

    Parameters
    ----------
    form : str
        Its structure, with the types in it.
    order : str
        The keys of its mappings, as they came; what is in ``leaves`` is sorted by key.
    leaves : list
        The numbers and labels in it.
    """

    form: str
    order: str
    leaves: list[Any]


@final
@dataclass(frozen=True, slots=True)
class Outputs:
    """Outcomes of several runs.

    Parameters
    ----------
    values : array or list
        A numeric array with one outcome in each entry of its first axis, all of one form and as exact as the
        outcomes; else a list of them.
    form : FlatOutcome, optional
        Of each outcome of an array, without leaves.
    flat : list of FlatOutcome
        Each outcome of a list.
    """

    values: NDArray[Any] | list[Any]
    form: FlatOutcome | None = None
    flat: list[FlatOutcome] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.values)


def as_outputs(outputs: Any, ignored: Collection[str] = ()) -> Outputs:
    """Return outcomes of several runs, as an array where that loses nothing.

    Parameters
    ----------
    outputs : array, list or Release
        One outcome in each entry of the first axis.
    ignored : collection of str
        What of an outcome is not looked at.
    """
    if isinstance(outputs, Release):
        outputs = outputs.value
    if isinstance(outputs, np.ndarray):
        outputs = outputs if outputs.ndim else outputs[None]
        if _is_exact(outputs):
            shape = outputs.shape[1:]
            one = np.zeros(shape, outputs.dtype) if shape else outputs.dtype.type(0)
            return Outputs(outputs, _form(one, ignored))
    listed = [output.value if isinstance(output, Release) else output for output in outputs]
    kinds = set(map(type, listed))
    if len(kinds) == 1 and issubclass(next(iter(kinds)), int | float | np.number | np.bool_):
        numbers = np.asarray(listed)
        if _is_exact(numbers):
            return Outputs(numbers, _form(listed[0], ignored))
    flat = [flatten(outcome, ignored) for outcome in listed]
    return _stacked(flat) or Outputs(listed, flat=flat)


def flat_outcomes(outputs: Outputs) -> list[FlatOutcome]:
    """Return each outcome, taken apart; those of an array have its form."""
    form = outputs.form
    if form is None or not isinstance(outputs.values, np.ndarray):
        return outputs.flat
    rows = outputs.values.reshape(len(outputs), -1).tolist()
    return [FlatOutcome(form.form, form.order, leaves) for leaves in rows]


def _form(outcome: Any, ignored: Collection[str]) -> FlatOutcome:
    found = flatten(outcome, ignored)
    return FlatOutcome(found.form, found.order, [])


def _is_exact(numbers: NDArray[Any]) -> bool:
    """Return whether an array holds numbers, each of which a float can be."""
    if numbers.dtype.kind in "bf":
        return numbers.dtype.itemsize <= 8
    return numbers.dtype.kind in "iu" and not (
        numbers.size and (int(numbers.max()) >= _EXACT or int(numbers.min()) <= -_EXACT)
    )


def _stacked(flat: list[FlatOutcome]) -> Outputs | None:
    """Return outcomes of one form that consist of numbers as an array; None of others."""
    if not flat or len({(each.form, each.order) for each in flat}) > 1 or not flat[0].leaves:
        return None
    if any(not isinstance(leaf, int | float) for each in flat for leaf in each.leaves):
        return None
    whole = all(isinstance(leaf, int) for each in flat for leaf in each.leaves)
    if any(isinstance(leaf, int) and abs(leaf) >= _EXACT for each in flat for leaf in each.leaves):
        return None
    numbers = np.array([each.leaves for each in flat], dtype=np.int64 if whole else np.float64)
    return Outputs(numbers, FlatOutcome(flat[0].form, flat[0].order, []))


def numeric_entries(outputs: Outputs, count: int) -> NDArray[np.float64]:
    """Return the numbers in each of some outcomes, unrounded: up to so many, NaN for what is none."""
    if isinstance(outputs.values, np.ndarray):
        return np.asarray(outputs.values.reshape(len(outputs), -1), dtype=np.float64)
    table = np.full((len(outputs), count), np.nan)
    for row, outcome in zip(table, outputs.flat, strict=True):
        numbers = [number_and_label(leaf)[0] for leaf in outcome.leaves[:count]]
        row[: len(numbers)] = numbers
    return table


def number_and_label(leaf: Any, ignored: Collection[str] = ()) -> tuple[float, Any]:
    """Return the float next to a number, NaN for what is none; and what that leaves out, None if nothing."""
    if not isinstance(leaf, Real):
        return math.nan, leaf if isinstance(leaf, str | bytes) else _printed(leaf)
    try:
        number = float(leaf)
    except OverflowError:
        number = math.inf if leaf == abs(leaf) else -math.inf
    if number == 0 and is_negative_zero(number) and ZERO_SIGN not in ignored:
        return number, "-0.0"
    exact = math.isnan(number) or bool(leaf == number)
    return number, None if exact else _printed(leaf)


def is_negative_zero(numbers: Any) -> Any:
    """Return which numbers are the zero below zero."""
    return (numbers == 0) & np.signbit(numbers)


def _printed(leaf: Any) -> str:
    """Return how a leaf prints, enums and dates among them; what prints its address only, by its type."""
    own = getattr(type(leaf), "__repr__", None)
    return f"a {type(leaf).__name__}" if own is object.__repr__ else repr(leaf)


def flatten(outcome: Any, ignored: Collection[str] = ()) -> FlatOutcome:
    """Take an outcome apart.

    Parameters
    ----------
    outcome : object
    ignored : collection of str
        What is not looked at: ``"type"``, ``"order"`` or ``"message"``.

    Examples
    --------
    >>> flatten({"b": 1, "a": [2.0, 3.0]})
    FlatOutcome(form="dict('a': list(2*float), 'b': int)", order="'b', 'a'", leaves=[2.0, 3.0, 1])
    """
    orders: list[str] = []
    leaves: list[Any] = []
    form = _flatten(outcome, ignored, orders, leaves)
    return FlatOutcome(form, "; ".join(orders), leaves)


def _flatten(outcome: Any, ignored: Collection[str], orders: list[str], leaves: list[Any]) -> str:
    """Return the form of an outcome, and add its orders and leaves to the lists."""
    if isinstance(outcome, Release):
        outcome = outcome.value
    if isinstance(outcome, Raised):
        leaves += [outcome.kind, "" if MESSAGE in ignored else outcome.message]
        return "error"
    name = "" if TYPE in ignored else _name(outcome)
    if isinstance(outcome, Mapping):
        return f"{name}({_mapping(outcome, ignored, orders, leaves)})"
    if is_dataclass(outcome) and not isinstance(outcome, type):
        outcome = tuple(getattr(outcome, part.name) for part in fields(outcome))
    elif isinstance(outcome, AbstractSet):
        outcome = sorted(outcome, key=repr)
    elif isinstance(outcome, np.ndarray) and outcome.ndim:
        structure = _flatten(outcome.tolist(), {*ignored, TYPE}, orders, leaves)
        return name or structure
    if isinstance(outcome, tuple | list):
        return f"{name}({_sequence(outcome, ignored, orders, leaves)})"
    leaves.append(outcome.item() if isinstance(outcome, np.generic | np.ndarray) else outcome)
    return name or "."


def _sequence(entries: Sequence[Any], ignored: Collection[str], orders: list[str], leaves: list[Any]) -> str:
    if _PLAIN.issuperset(map(type, entries)):
        leaves.extend(entries)
        forms = ["." if TYPE in ignored else type(entry).__name__ for entry in entries]
    else:
        forms = [_flatten(entry, ignored, orders, leaves) for entry in entries]
    runs = ((form, len(list(same))) for form, same in itertools.groupby(forms))
    return ", ".join(form if many == 1 else f"{many}*{form}" for form, many in runs)


def _mapping(
    entries: Mapping[Any, Any], ignored: Collection[str], orders: list[str], leaves: list[Any]
) -> str:
    printed = {key: _printed(key) for key in entries}
    if ORDER not in ignored:
        orders.append(", ".join(printed.values()))
    parts = sorted(entries.items(), key=lambda item: printed[item[0]])
    return ", ".join(f"{printed[key]}: {_flatten(value, ignored, orders, leaves)}" for key, value in parts)


def _name(outcome: Any) -> str:
    """Return the type of an outcome; of an array also what it holds, and its shape."""
    kind = type(outcome)
    if isinstance(outcome, np.ndarray):
        return f"{kind.__name__} of {outcome.dtype}, shape {outcome.shape}"
    return (
        kind.__qualname__
        if kind.__module__ in ("builtins", "numpy")
        else f"{kind.__module__}.{kind.__qualname__}"
    )
