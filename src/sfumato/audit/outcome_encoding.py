"""Encodes outputs as numbers: columns rounded at a resolution, and a key for each distinct output."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from sfumato.audit.flattening import Raw, as_float, flatten

__all__ = ["EncodedOutcomes", "OutcomeEncoder"]

_MAX_ENTRIES = 64  # of a ragged outcome
_ABSENT = -1.0
_WIDE = 60  # characters of an outcome that is shown
_MIX = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)


@final
@dataclass(frozen=True, slots=True)
class EncodedOutcomes:
    """Some outcomes of one input.

    Parameters
    ----------
    columns : array of shape (outcomes, columns)
        Numbers; NaN where an outcome has none.
    keys : uint64 array of shape (outcomes,)
        Equal for equal outcomes.
    """

    columns: NDArray[np.float64]
    keys: NDArray[np.uint64]

    def __len__(self) -> int:
        return len(self.keys)

    def __getitem__(self, rows: slice) -> EncodedOutcomes:
        return EncodedOutcomes(self.columns[rows], self.keys[rows])


@final
@dataclass(slots=True)
class OutcomeEncoder:
    """Turns outcomes into numbers, always in the way that was learned from a first sample.

    Whatever it merges, it is a function of the outcome alone: post-processing, which never adds to epsilon.

    Parameters
    ----------
    resolution : float
        Float columns are rounded to a power of two about this part of their width.
    """

    resolution: float
    labels: dict[Any, float] = field(default_factory=dict)
    _learning: bool = True
    _numeric: bool = False
    _width: int = 0
    _entries: int = 0
    _retained: NDArray[np.intp] = field(default_factory=lambda: np.zeros(0, np.intp))
    _steps: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    _names: list[str] = field(default_factory=list)
    _sample: tuple[Raw, Raw] = ([], [])

    def learn(self, first: Raw, second: Raw) -> tuple[EncodedOutcomes, EncodedOutcomes]:
        """Learn the columns, their labels and steps from outcomes of both inputs, and encode these."""
        raws = self._sample = (first, second)
        self._numeric = all(isinstance(raw, np.ndarray) for raw in raws)
        if self._numeric:
            self._width = max(math.prod(raw.shape[1:]) for raw in raws)
        else:
            self._entries = min(
                _MAX_ENTRIES, max(len(flatten(outcome)[1]) for raw in raws for outcome in raw)
            )
            self._width = 2 + 2 * self._entries
        tables = [self._table(raw) for raw in raws]
        self._learning = False
        both = np.concatenate(tables)
        varies = ~((both == both[:1]) | (np.isnan(both) & np.isnan(both[:1]))).all(axis=0)
        self._retained = np.flatnonzero(varies) if varies.any() else np.arange(min(1, self._width))
        self._names = [self._name(int(j)) for j in self._retained]
        exact = self._numeric and all(raw.dtype.kind in "biu" for raw in raws)
        self._steps = np.array(
            [
                0.0 if exact or name.startswith("label") else self._step(both[:, j])
                for j, name in zip(self._retained, self._names, strict=True)
            ]
        )
        first_table, second_table = tables
        return self._encode(first_table), self._encode(second_table)

    def __call__(self, raw: Raw) -> EncodedOutcomes:
        """Encode further outcomes."""
        return self._encode(self._table(raw))

    @property
    def names(self) -> list[str]:
        """What each column holds."""
        return self._names

    def shown(self, row: int) -> str:
        """Return an outcome of the first sample for people, by its row in both inputs' together."""
        first, second = self._sample
        raw, row = (first, row) if row < len(first) else (second, row - len(first))
        outcome = raw[row]
        outcome = outcome.tolist() if isinstance(outcome, np.ndarray | np.generic) else outcome
        text = f"{outcome:.10g}" if isinstance(outcome, float) else repr(outcome)
        return text if len(text) <= _WIDE else f"{text[: _WIDE - 3]}..."

    def forget(self) -> None:
        """Let go of the first sample, which only served to be shown."""
        self._sample = ([], [])

    def _table(self, raw: Raw) -> NDArray[np.float64]:
        """Return a row for each outcome: a function of that outcome alone, whatever came beside it."""
        if self._numeric and isinstance(raw, np.ndarray):
            table = np.asarray(raw.reshape(len(raw), -1)[:, : self._width], dtype=np.float64)
            missing = self._width - table.shape[1]
            return np.pad(table, ((0, 0), (0, missing)), constant_values=np.nan) if missing else table
        table = np.full((len(raw), self._width), np.nan)
        for row, outcome in zip(table, raw, strict=True):
            shape, leaves = flatten(outcome)
            if self._numeric:
                numbers = [as_float(leaf) for leaf in leaves[: self._width]]
                row[: len(numbers)] = [math.nan if number is None else number for number in numbers]
                continue
            # Structure and length, then number or label of each index.
            row[0], row[1] = self._code(shape), len(leaves)
            for index, leaf in enumerate(leaves[: self._entries]):
                number = as_float(leaf)
                if number is None:
                    row[3 + 2 * index] = self._code(leaf)
                else:
                    row[2 + 2 * index] = number
        return table

    def _code(self, label: Any) -> float:
        known = label
        if not isinstance(label, str | bytes | type(None)):
            # By how they print, enums and dates among them; what prints its address only, by its type.
            own = getattr(type(label), "__repr__", None)
            known = f"a {type(label).__name__}" if own is object.__repr__ else repr(label)
        if self._learning:
            return self.labels.setdefault(known, float(len(self.labels)))
        return self.labels.get(known, _ABSENT)

    def _step(self, column: NDArray[np.float64]) -> float:
        finite = column[np.isfinite(column)]
        if not finite.size:
            return 0.0
        quarters = finite / 4  # whose differences are floats, always
        low, below, above, high = np.quantile(quarters, (0.001, 0.25, 0.75, 0.999))
        width = next((s for s in (above - below, high - low, float(np.ptp(quarters))) if s > 0), 0.0)
        width = float(width) or abs(float(quarters[0]))
        scaled = 4 * (width * self.resolution)
        return 2.0 ** math.floor(math.log2(scaled)) if 1e-300 < scaled < 1e300 else 0.0

    def _name(self, column: int) -> str:
        if self._numeric:
            return "output" if self._width == 1 else f"output[{column}]"
        if column < 2:
            return ("label of the structure", "length")[column]
        index, label = divmod(column - 2, 2)
        where = "output" if self._entries == 1 else f"output[{index}]"
        return f"label of {where}" if label else where

    def _encode(self, table: NDArray[np.float64]) -> EncodedOutcomes:
        columns = np.asfortranarray(table[:, self._retained])
        for j, step in enumerate(self._steps):
            if step:
                with np.errstate(over="ignore", invalid="ignore"):
                    columns[:, j] = np.rint(columns[:, j] / step) * step
        columns += 0.0  # a negative zero is a zero
        return EncodedOutcomes(columns, _keys(columns))


def _keys(columns: NDArray[np.float64]) -> NDArray[np.uint64]:
    """Return a hash of each row; two rows that share one are one outcome, which merges and so never adds."""
    keys = np.zeros(len(columns), dtype=np.uint64)
    for j in range(columns.shape[1]):
        bits = np.where(np.isnan(columns[:, j]), np.nan, columns[:, j]).view(np.uint64) ^ keys
        for shift, factor in zip((30, 27), _MIX, strict=True):
            bits = (bits ^ (bits >> np.uint64(shift))) * np.uint64(factor)
        keys = bits ^ (bits >> np.uint64(31)) ^ np.uint64(j + 1)
    return keys
