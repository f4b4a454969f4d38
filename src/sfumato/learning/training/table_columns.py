"""The columns of a table that a classifier is trained on, and what is public of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray
from torch.utils.data import TensorDataset

from sfumato import _check
from sfumato.learning.estimators.table_entries import number

__all__ = ["Columns"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """Which columns are read, and what is public of them.

    Parameters
    ----------
    target : str
    classes : sequence of str
        The public values of the target, at least two. Rows with another have weight zero: they keep their
        position, so that nothing but the noisy gradients depends on how many they are.
    numbers : mapping of str to (lower, upper)
        Columns of numbers: clamped to their bounds and scaled to -1 to 1. What is no number counts as the
        middle.
    categories : mapping of str to sequence of str
        Columns of texts, with their public values: one input for each; other values give none.

    Examples
    --------
    >>> columns = Columns(
    ...     target="y", classes=["no", "yes"], numbers={"age": (0, 100)}, categories={"sex": ["F", "M"]}
    ... )
    >>> columns.inputs  # the age, and one for each sex
    3
    """

    target: str
    classes: Sequence[str]
    numbers: Mapping[str, tuple[float, float]]
    categories: Mapping[str, Sequence[str]]

    def __post_init__(self) -> None:
        if len(self.classes) < 2 or len(set(self.classes)) != len(self.classes):
            _check.refuse("classes", "be two or more different classes", self.classes, "write y=no,yes")
        for name, (lower, upper) in self.numbers.items():
            if not _check.finite(name, lower) < _check.finite(name, upper):
                _check.refuse(name, "have a lower bound below the upper", (lower, upper), "write age=0:100")
        for name, values in self.categories.items():
            if not values or len(set(values)) != len(values):
                _check.refuse(name, "have one or more different values", values, "write sex=F,M")
        names = [self.target, *self.numbers, *self.categories]
        if len(names) < 2 or len(set(names)) != len(names):
            remedy = "name each column once"
            _check.refuse("columns", "be a target and one or more others, each once", names, remedy)

    @property
    def inputs(self) -> int:
        """How many inputs the module has."""
        return len(self.numbers) + sum(map(len, self.categories.values()))

    def read(self, table: pa.Table) -> TensorDataset:
        """Return inputs, classes and weights of all rows, each row by itself.

        A row whose class is not declared has class 0 and weight 0.

        Parameters
        ----------
        table : pyarrow.Table
            With the declared columns.

        Returns
        -------
        TensorDataset
            Inputs, classes and weights.
        """
        for name in (self.target, *self.numbers, *self.categories):
            if name not in table.column_names:
                _check.refuse("columns", "be in the table", name, "check the names")
        texts = _texts(table[self.target])
        labels = np.array([self._classes.get(text, -1) for text in texts], dtype=np.int64)
        weights = (labels >= 0).astype(np.float32)
        return TensorDataset(
            self.tensor(table), torch.from_numpy(np.maximum(labels, 0)), torch.from_numpy(weights)
        )

    def tensor(self, table: pa.Table) -> torch.Tensor:
        """Return the module's inputs of all rows; the target need not be there.

        Parameters
        ----------
        table : pyarrow.Table
            With the declared columns of numbers and texts.

        Returns
        -------
        torch.Tensor
        """
        for name in (*self.numbers, *self.categories):
            if name not in table.column_names:
                _check.refuse("columns", "be in the table", name, "check the names")
        parts = [_scaled(table[name], *bounds) for name, bounds in self.numbers.items()]
        for name, values in self.categories.items():
            found = np.array(_texts(table[name]), dtype=object)
            parts += [(found == value).astype(np.float32) for value in values]
        return torch.from_numpy(np.stack(parts, axis=1).astype(np.float32))

    @property
    def _classes(self) -> dict[str, int]:
        return {value: index for index, value in enumerate(self.classes)}

    def to_json(self) -> dict[str, Any]:
        """Return what inputs and outputs of the module mean.

        Returns
        -------
        dict
            Plain values: the target, its classes, bounds and categories.
        """
        return {
            "target": self.target,
            "classes": list(self.classes),
            "numbers": {name: list(bounds) for name, bounds in self.numbers.items()},
            "categories": {name: list(values) for name, values in self.categories.items()},
        }


def _texts(column: pa.ChunkedArray) -> list[str]:
    return [_text(value).strip() for value in column.to_pylist()]


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return "" if value is None else str(value)


def _scaled(column: pa.ChunkedArray, lower: float, upper: float) -> NDArray[np.float64]:
    values = np.array([number(value) for value in column.to_pylist()])
    middle, half = (lower + upper) / 2, (upper - lower) / 2
    values = np.where(np.isnan(values), middle, np.clip(values, lower, upper))
    scaled: NDArray[np.float64] = (values - middle) / half
    return scaled
