"""Training a classifier on the rows of a table, whose columns and bounds are public."""

from __future__ import annotations

import io
import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, final

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from sfumato import _check
from sfumato._durable import write_whole
from sfumato._wire import Format
from sfumato.errors import SourceError
from sfumato.learning.estimators.table_entries import number
from sfumato.learning.training.privacy_engine import PrivacyEngine
from sfumato.learning.training.setup.options import RecordOptions, SamplingOptions
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.view import LedgerView

__all__ = ["Columns", "TrainedTable", "classifier", "train_table"]

FORMAT: Final = Format("sfumato.table-classifier", 1)


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


def classifier(columns: Columns, hidden: Sequence[int]) -> nn.Module:
    """Return a logistic model, or a network with hidden layers of these widths."""
    widths = [columns.inputs, *(_check.integer("hidden", width, minimum=1) for width in hidden)]
    layers: list[nn.Module] = []
    for before, width in itertools.pairwise(widths):
        layers += [nn.Linear(before, width), nn.Tanh()]
    return nn.Sequential(*layers, nn.Linear(widths[-1], len(columns.classes)))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TrainedTable:
    """A model and its card.

    Attributes
    ----------
    module : torch.nn.Module
    card : dict
        A document of the format ``sfumato.table-classifier``: what the model's inputs and outputs mean, and
        under ``privacy`` its `PrivacyCard`: what was run, and what that guarantees.

    Examples
    --------
    >>> trained = TrainedTable(module=nn.Linear(3, 2), card={"format": "sfumato.table-classifier"})
    >>> trained.card["format"]
    'sfumato.table-classifier'
    """

    module: nn.Module
    card: dict[str, Any]

    def save(self, path: Path) -> None:
        """Write the weights, to be read by ``torch.load``, and the card beside them as JSON text.

        Parameters
        ----------
        path : path
            Of the file.
        """
        buffer = io.BytesIO()
        content = {"state_dict": self.module.state_dict(), "sfumato": json.dumps(self.card)}
        torch.save(content, buffer)
        write_whole(path, buffer.getvalue())

    @classmethod
    def load(cls, path: Path) -> TrainedTable:
        """Read what `save` wrote.

        Parameters
        ----------
        path : path
            Of the file.

        Returns
        -------
        TrainedTable

        Raises
        ------
        SourceError
            It is no such file.
        """
        try:
            content = torch.load(path, weights_only=True)
            card = json.loads(content["sfumato"])
            module = classifier(_columns_of(card), card["model"]["hidden"])
            module.load_state_dict(content["state_dict"])
        except Exception as error:
            raise SourceError(
                f"model must be a file of sfumato train, got {str(path)!r}; check it"
            ) from error
        return cls(module=module, card=card)

    @property
    def columns(self) -> Columns:
        """The columns that it was trained on."""
        return _columns_of(self.card)

    def predict(self, table: pa.Table) -> tuple[list[str], list[float]]:
        """Return the likeliest class of each row, and its probability.

        Parameters
        ----------
        table : pyarrow.Table
            With the model's inputs.

        Returns
        -------
        tuple
            Classes and probabilities, in the order of the rows.
        """
        with torch.no_grad():
            likely, index = self.module(self.columns.tensor(table)).softmax(1).max(1)
        classes = self.columns.classes
        return [classes[each] for each in index.tolist()], likely.tolist()

    def correct(self, table: pa.Table) -> int:
        """Return in how many rows the likeliest class is the true one: raw data, to be noised.

        Parameters
        ----------
        table : pyarrow.Table
            With the model's inputs and the target.

        Returns
        -------
        int
        """
        inputs, labels, weights = self.columns.read(table).tensors
        with torch.no_grad():
            return int(((self.module(inputs).argmax(1) == labels) * weights).sum())


def _columns_of(card: Mapping[str, Any]) -> Columns:
    stated = card["model"]["columns"]
    bounds = {name: (lower, upper) for name, (lower, upper) in stated["numbers"].items()}
    return Columns(**{**stated, "numbers": bounds})


def train_table(
    data: TensorDataset,
    columns: Columns,
    *,
    hidden: Sequence[int],
    epsilon: float,
    delta: float,
    epochs: int,
    batch_size: int,
    learning_rate: float,
    clip_norm: float,
    ledger: Ledger | LedgerView | None,
    description: str,
    rows: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> TrainedTable:
    """Train a classifier with the smallest noise that keeps (epsilon, delta), charged before its first batch.

    Parameters
    ----------
    data : TensorDataset
        Of `Columns.read`.
    columns : Columns
    hidden : sequence of int
        Widths of hidden layers.
    epsilon, delta : float
        The guarantee.
    epochs : int
        Passes over the public number of rows, on average.
    batch_size : int
        Expected number of rows in a batch.
    learning_rate, clip_norm : float
    ledger : Ledger or LedgerView or None
    description : str
        Of the charge.
    rows : int, optional
        A public number of rows, such as a noisy count: the run is under add/remove of one row. Left out, the
        data's own number of rows is public, and the run is under zero-out of one row.
    progress : callable, optional
        Called after each epoch with how many are done, and how many there are.

    Returns
    -------
    TrainedTable

    Raises
    ------
    ParameterError
        An argument breaks its rule; nothing was charged.
    BudgetExceeded
        The run does not fit; no row was used.

    Examples
    --------
    >>> import pyarrow as pa
    >>> columns = Columns(target="y", classes=["no", "yes"], numbers={"age": (0, 100)}, categories={})
    >>> data = columns.read(pa.table({"age": list(range(100)), "y": ["no", "yes"] * 50}))
    >>> trained = train_table(
    ...     data, columns, hidden=[], epsilon=1.0, delta=1e-5, epochs=1, batch_size=100, learning_rate=0.1,
    ...     clip_norm=1.0, ledger=None, description="an example",
    ... )
    >>> trained.card["format"]
    'sfumato.table-classifier'
    """
    size = _check.integer("batch_size", batch_size, minimum=1)
    rate = _check.positive("learning_rate", learning_rate)
    module = classifier(columns, hidden)
    engine = PrivacyEngine()
    module, optimizer, loader = engine.make_private_with_epsilon(
        module=module,
        optimizer=torch.optim.Adam(module.parameters(), lr=rate),
        data_loader=DataLoader(data, batch_size=size),
        target_epsilon=epsilon,
        target_delta=delta,
        epochs=epochs,
        max_grad_norm=clip_norm,
        sampling=SamplingOptions(population=rows),
        record=RecordOptions(ledger=ledger, description=description),
    )
    for epoch in range(epochs):
        for inputs, labels, weights in loader:
            optimizer.zero_grad()
            losses = nn.functional.cross_entropy(module(inputs), labels, reduction="none")
            (weights * losses).mean().backward()
            optimizer.step()
        if progress is not None:
            progress(epoch + 1, epochs)
    card = json.loads(engine.card(delta, unit="row").to_json())
    engine.detach()
    document = FORMAT.wrap(
        {
            "model": {"columns": columns.to_json(), "hidden": list(hidden)},
            "training": {"clip_norm": clip_norm, "learning_rate": learning_rate},
            "privacy": card,
        }
    )
    return TrainedTable(module=module, card=document)


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
