"""Generates neighboring datasets that move a function as far as possible."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.privacy.neighboring import Neighboring

__all__ = [
    "ABSENT",
    "DatasetPair",
    "RecordDomain",
    "boundary_pairs",
    "bounded_domain",
    "domain_of",
    "finite_domain",
    "mutated_pair",
    "random_pair",
    "shared_size_range",
]

ABSENT = object()
"""In place of a record that one of the two neighbors does not have."""

_UNBOUNDED = (0.0, 1.0, -1.0, 1e3, -1e3, 1e9, -1e9)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RecordDomain:
    """What a record may be: how to draw one, and the ones most likely to do harm."""

    draw: Callable[[np.random.Generator], Any]
    extremes: tuple[Any, ...]

    def pick(self, generator: np.random.Generator) -> Any:
        """Draw a record, an extreme one half of the time."""
        if self.extremes and generator.random() < 0.5:
            return self.extremes[int(generator.integers(len(self.extremes)))]
        return self.draw(generator)


def bounded_domain(lower: float, upper: float) -> RecordDomain:
    """Return the numbers between two bounds, which may be infinite; whole numbers if both are ints."""
    if isinstance(lower, int) and isinstance(upper, int):
        ends = tuple(dict.fromkeys((lower, upper, (lower + upper) // 2)))
        return RecordDomain(
            draw=lambda generator: int(generator.integers(lower, upper, endpoint=True)), extremes=ends
        )
    if math.isinf(lower) or math.isinf(upper):
        inside = [value for value in _UNBOUNDED if lower <= value <= upper]
        finite = [end for end in (lower, upper) if math.isfinite(end)]

        def heavy_tailed(generator: np.random.Generator) -> float:
            return float(
                np.clip(generator.standard_cauchy() * 10.0 ** generator.integers(-2, 7), lower, upper)
            )

        return RecordDomain(draw=heavy_tailed, extremes=tuple(dict.fromkeys([*finite, *inside])))
    middle = lower + (upper - lower) / 2
    return RecordDomain(
        draw=lambda generator: float(generator.uniform(lower, upper)), extremes=(lower, upper, middle)
    )


def finite_domain(values: Sequence[Any]) -> RecordDomain:
    """Return a finite set of records."""
    return RecordDomain(
        draw=lambda generator: values[int(generator.integers(len(values)))], extremes=tuple(values[:8])
    )


def domain_of(
    bounds: tuple[float, float] | None = None,
    values: Sequence[Any] | None = None,
    sample: Callable[[np.random.Generator], Any] | None = None,
) -> RecordDomain:
    """Return the records between two bounds, or of some values, or as a function draws them.

    Raises
    ------
    ParameterError
        If more than one is given, the bounds are reversed or there is no value.
    """
    given = [choice for choice in (bounds, values, sample) if choice is not None]
    if len(given) > 1:
        _check.refuse("bounds", "be the only one of bounds, values and sample", given, "pass one of them")
    if values is not None:
        if not len(values):
            _check.refuse(
                "values", "hold at least one record", values, "pass some values that a record may have"
            )
        return finite_domain(list(values))
    if sample is not None:
        return RecordDomain(draw=sample, extremes=())
    lower, upper = (-math.inf, math.inf) if bounds is None else bounds
    if not lower <= upper:
        remedy = "swap them if they are in the wrong order"
        _check.refuse("bounds", "be (lower, upper) with lower <= upper", bounds, remedy)
    return bounded_domain(lower, upper)


def shared_size_range(sizes: tuple[int, int], neighboring: Neighboring) -> tuple[int, int]:
    """Return the range of the number of records that both neighbors share.

    Raises
    ------
    ParameterError
        If it is empty.
    """
    low, high = (_check.integer("sizes", size) for size in sizes)
    grows = neighboring is Neighboring.ADD_REMOVE
    if high < low + grows or high < 1:
        rule = "be (smallest, largest)" + (
            " with room for one more record" if grows else " of at least one record"
        )
        _check.refuse("sizes", rule, sizes, "pass (smallest, largest)")
    return (low if grows else max(low - 1, 0)), high - 1


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetPair:
    """Two neighbors: the records that they share, and what one unit has in each, at the same index."""

    others: tuple[Any, ...]
    index: int
    first: Any
    second: Any

    def datasets(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return both as arrays."""
        return self._with(self.first), self._with(self.second)

    def _with(self, record: Any) -> NDArray[Any]:
        own = () if record is ABSENT else (record,)
        return np.asarray([*self.others[: self.index], *own, *self.others[self.index :]])


def _second(neighboring: Neighboring, drawn: Any, neutral: Any) -> Any:
    return {Neighboring.ADD_REMOVE: ABSENT, Neighboring.REPLACE_ONE: drawn, Neighboring.ZERO_OUT: neutral}[
        neighboring
    ]


def boundary_pairs(
    domain: RecordDomain, neighboring: Neighboring, sizes: tuple[int, int], neutral: Any
) -> Iterator[DatasetPair]:
    """Yield pairs made of extreme records: all alike, or half and half, at the ends of the range of sizes."""
    low, high = sizes
    for size in dict.fromkeys((low, min(low + 1, high), (low + high) // 2, high)):
        for one, other in product(domain.extremes, repeat=2):
            others = (one,) * (size // 2) + (other,) * (size - size // 2)
            for first, drawn in product(domain.extremes, repeat=2):
                second = _second(neighboring, drawn, neutral)
                if neighboring is Neighboring.REPLACE_ONE or drawn is domain.extremes[0]:
                    yield DatasetPair(others=others, index=size // 2, first=first, second=second)


def random_pair(
    domain: RecordDomain,
    neighboring: Neighboring,
    sizes: tuple[int, int],
    neutral: Any,
    generator: np.random.Generator,
) -> DatasetPair:
    """Draw a pair; the sizes are log-uniform, because the smallest data are the most sensitive."""
    low, high = sizes
    size = min(high, int((low + 1) * ((high + 1) / (low + 1)) ** generator.random() + generator.random()) - 1)
    others = tuple(domain.pick(generator) for _ in range(max(low, size)))
    second = _second(neighboring, domain.pick(generator), neutral)
    index = int(generator.integers(len(others) + 1))
    return DatasetPair(others=others, index=index, first=domain.pick(generator), second=second)


def mutated_pair(
    pair: DatasetPair,
    domain: RecordDomain,
    neighboring: Neighboring,
    sizes: tuple[int, int],
    generator: np.random.Generator,
) -> DatasetPair:
    """Return a pair that differs in one thing: a record, the unit's own, the size, the index."""
    move = int(generator.integers(5))
    size = len(pair.others)
    at = int(generator.integers(size)) if size else 0
    if move == 0:
        return replace(pair, first=domain.pick(generator))
    if move == 1 and neighboring is Neighboring.REPLACE_ONE:
        return replace(pair, second=domain.pick(generator))
    if move == 2 and size > sizes[0]:
        shorter = pair.others[:at] + pair.others[at + 1 :]
        return replace(pair, others=shorter, index=min(pair.index, size - 1))
    if move == 3 and size < sizes[1]:
        return replace(pair, others=(*pair.others, domain.pick(generator)))
    if move == 4:
        return replace(pair, index=int(generator.integers(size + 1)))
    return replace(pair, others=(*pair.others[:at], domain.pick(generator), *pair.others[at + 1 :])[:size])
