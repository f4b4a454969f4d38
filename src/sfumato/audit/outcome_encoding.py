"""Encodes outputs as numbers: columns rounded at a resolution, and a key for each distinct output."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from sfumato.audit.flattening import (
    ZERO_SIGN,
    Outputs,
    flat_outcomes,
    is_negative_zero,
    number_and_label,
)

__all__ = ["EncodedOutcomes", "OutcomeEncoder"]

_MAX_ENTRIES = 64  # of an outcome that is no row of an array
_BEFORE = ("label of the form", "label of the order", "length", "label of the rest")
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
    ratios : array of shape (outcomes,), optional
        Log-likelihood ratios, where they are known.
    """

    columns: NDArray[np.float64]
    keys: NDArray[np.uint64]
    ratios: NDArray[np.float64] | None = None

    def __len__(self) -> int:
        return len(self.keys)

    def __getitem__(self, rows: slice) -> EncodedOutcomes:
        ratios = None if self.ratios is None else self.ratios[rows]
        return EncodedOutcomes(self.columns[rows], self.keys[rows], ratios)


@final
@dataclass(slots=True)
class OutcomeEncoder:
    """Turns outcomes into numbers, always in the way that was learned from a first sample.

    Whatever it merges, it is a function of the outcome alone: post-processing, which never adds to epsilon.
    Outcomes of one form that consist of numbers have a column for each. Of others the first 64 numbers and
    labels have columns, and what is behind them one label together, of how it prints.

    Parameters
    ----------
    resolution : float
        Float columns are rounded to a power of two about this part of their width.
    ignored : collection of str
        What of an outcome is not looked at.
    observed : collection of str
        What comes before the output in each outcome: the names of observations.
    ratio : callable, optional
        From outcomes to their log-likelihood ratios.
    """

    resolution: float
    ignored: Collection[str] = ()
    observed: Sequence[str] = ()
    ratio: Callable[[Any], NDArray[np.float64]] | None = None
    labels: dict[Any, float] = field(default_factory=dict)
    _learning: bool = True
    _numeric: bool = False
    _signed: bool = False
    _width: int = 0
    _entries: int = 0
    _retained: NDArray[np.intp] = field(default_factory=lambda: np.zeros(0, np.intp))
    _steps: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    _names: list[str] = field(default_factory=list)
    _sample: tuple[Outputs, ...] = ()

    def learn(self, first: Outputs, second: Outputs) -> tuple[EncodedOutcomes, EncodedOutcomes]:
        """Learn the columns, their labels and steps from outcomes of both inputs, and encode these."""
        self._sample = (first, second)
        arrays = [each.values for each in self._sample if isinstance(each.values, np.ndarray)]
        self._numeric = len(arrays) == len(self._sample)
        if self._numeric:
            self._entries = max(math.prod(values.shape[1:]) for values in arrays)
            self._signed = ZERO_SIGN not in self.ignored and any(
                bool(is_negative_zero(values).any()) for values in arrays if values.dtype.kind == "f"
            )
            self._width = 1 + self._entries * (2 if self._signed else 1)
        else:
            self._entries = min(_MAX_ENTRIES, max(self._longest(each) for each in self._sample))
            self._width = 4 + 2 * self._entries
        tables = [self._table(each) for each in self._sample]
        self._learning = False
        both = np.concatenate(tables)
        varies = ~((both == both[:1]) | (np.isnan(both) & np.isnan(both[:1]))).all(axis=0)
        self._retained = np.flatnonzero(varies) if varies.any() else np.arange(min(1, self._width))
        self._names = [self._name(int(j)) for j in self._retained]
        self._steps = np.array(
            [
                0.0 if name.startswith("label") else self._step(both[:, j])
                for j, name in zip(self._retained, self._names, strict=True)
            ]
        )
        encoded = [self._encode(table) for table in tables]
        return self._with_ratios(encoded[0], first), self._with_ratios(encoded[1], second)

    def __call__(self, outputs: Outputs) -> EncodedOutcomes:
        """Encode further outcomes."""
        return self._with_ratios(self._encode(self._table(outputs)), outputs)

    def _with_ratios(self, encoded: EncodedOutcomes, outputs: Outputs) -> EncodedOutcomes:
        return encoded if self.ratio is None else replace(encoded, ratios=self.ratio(outputs.values))

    @property
    def names(self) -> list[str]:
        """What each column holds."""
        return self._names

    def shown(self, row: int) -> str:
        """Return an outcome of the first sample for people, by its row in both inputs' together."""
        first, second = self._sample
        outputs, row = (first, row) if row < len(first) else (second, row - len(first))
        outcome = outputs.values[row]
        outcome = outcome.tolist() if isinstance(outcome, np.ndarray | np.generic) else outcome
        text = f"{outcome:.10g}" if isinstance(outcome, float) else repr(outcome)
        text = text if len(text) <= _WIDE else f"{text[: _WIDE - 3]}..."
        form = (outputs.form or outputs.flat[row]).form
        return text if "label of the form" not in self._names else f"{text} ({form[:_WIDE]})"

    def forget(self) -> None:
        """Let go of the first sample, which only served to be shown."""
        self._sample = ()

    @staticmethod
    def _longest(outputs: Outputs) -> int:
        if isinstance(outputs.values, np.ndarray):
            return math.prod(outputs.values.shape[1:])
        return max((len(each.leaves) for each in outputs.flat), default=0)

    def _table(self, outputs: Outputs) -> NDArray[np.float64]:
        """Return a row for each outcome: a function of that outcome alone, whatever came beside it."""
        if self._numeric:
            return self._numbers(outputs)
        table = np.full((len(outputs), self._width), np.nan)
        for row, outcome in zip(table, flat_outcomes(outputs), strict=True):
            row[:3] = self._code(outcome.form), self._code(outcome.order), len(outcome.leaves)
            rest = outcome.leaves[self._entries :]
            row[3] = self._code(("rest", _digest(rest, self.ignored))) if rest else 0.0
            for index, leaf in enumerate(outcome.leaves[: self._entries]):
                number, label = number_and_label(leaf, self.ignored)
                row[4 + 2 * index] = number
                if label is not None:
                    row[5 + 2 * index] = self._code(label)
        return table

    def _numbers(self, outputs: Outputs) -> NDArray[np.float64]:
        """Return the form of each outcome, its numbers, and which of them are zeros with a sign."""
        table = np.full((len(outputs), self._width), np.nan)
        if isinstance(outputs.values, np.ndarray) and outputs.form is not None:
            numbers = np.asarray(outputs.values.reshape(len(outputs), -1)[:, : self._entries], np.float64)
            table[:, 0] = self._code((outputs.form.form, outputs.form.order))
            table[:, 1 : 1 + numbers.shape[1]] = numbers
        else:
            for row, outcome in zip(table, outputs.flat, strict=True):
                row[0] = self._code((outcome.form, outcome.order))
                found = [number_and_label(leaf)[0] for leaf in outcome.leaves[: self._entries]]
                row[1 : 1 + len(found)] = found
        if self._signed:
            table[:, 1 + self._entries :] = is_negative_zero(table[:, 1 : 1 + self._entries])
        return table

    def _code(self, label: Any) -> float:
        if self._learning:
            return self.labels.setdefault(label, float(len(self.labels)))
        return self.labels.get(label, _ABSENT)

    def _step(self, column: NDArray[np.float64]) -> float:
        """Return what a column is rounded to: 0 for nothing, where all of it are whole numbers."""
        finite = column[np.isfinite(column)]
        if not finite.size or bool((np.abs(finite) < 2.0**53).all() and (finite == np.rint(finite)).all()):
            return 0.0
        quarters = finite / 4  # whose differences are floats, always
        low, below, above, high = np.quantile(quarters, (0.001, 0.25, 0.75, 0.999))
        width = next((s for s in (above - below, high - low, float(np.ptp(quarters))) if s > 0), 0.0)
        width = float(width) or abs(float(quarters[0]))
        scaled = 4 * (width * self.resolution)
        return 2.0 ** math.floor(math.log2(scaled)) if 1e-300 < scaled < 1e300 else 0.0

    def _name(self, column: int) -> str:
        before = ("label of the form",) if self._numeric else _BEFORE
        if column < len(before):
            return before[column]
        column -= len(before)
        index, label = divmod(column, 2)
        if self._numeric:
            label, index = divmod(column, self._entries)
        where = self._entry(index)
        return f"label of {where}" if label else where

    def _entry(self, index: int) -> str:
        before = len(self.observed)
        if index < before:
            return self.observed[index]
        return "output" if self._entries == before + 1 else f"output[{index - before}]"

    def _encode(self, table: NDArray[np.float64]) -> EncodedOutcomes:
        columns = np.asfortranarray(table[:, self._retained])
        for j, step in enumerate(self._steps):
            if step:
                with np.errstate(over="ignore", invalid="ignore"):
                    columns[:, j] = np.rint(columns[:, j] / step) * step
        columns += 0.0  # a negative zero is a zero
        return EncodedOutcomes(columns, _keys(columns))


def _digest(leaves: list[Any], ignored: Collection[str]) -> bytes:
    """Return a hash of leaves: of the numbers, and of the labels that these leave out."""
    digest = hashlib.blake2b(digest_size=16)
    for leaf in leaves:
        number, label = number_and_label(leaf, ignored)
        digest.update(repr((number + 0.0, label)).encode(errors="surrogatepass") + b"\0")
    return digest.digest()


def _keys(columns: NDArray[np.float64]) -> NDArray[np.uint64]:
    """Return a hash of each row; two rows that share one are one outcome, which merges and so never adds."""
    keys = np.zeros(len(columns), dtype=np.uint64)
    for j in range(columns.shape[1]):
        bits = np.where(np.isnan(columns[:, j]), np.nan, columns[:, j]).view(np.uint64) ^ keys
        for shift, factor in zip((30, 27), _MIX, strict=True):
            bits = (bits ^ (bits >> np.uint64(shift))) * np.uint64(factor)
        keys = bits ^ (bits >> np.uint64(31)) ^ np.uint64(j + 1)
    return keys
