"""A trained classifier of the rows of a table: its module, its card, and its file."""

from __future__ import annotations

import io
import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import pyarrow as pa
import torch
from torch import nn

from sfumato import _check
from sfumato._durable import write_whole
from sfumato._wire import canonical
from sfumato.errors import SourceError
from sfumato.learning.training.checkpoint.authentication import tag_of
from sfumato.learning.training.table_checkpoint import remove
from sfumato.learning.training.table_columns import Columns

__all__ = ["TrainedTable", "classifier"]


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
    checkpoint : Path or None
        Of its training, which goes on from there as long as the model is not saved.

    Examples
    --------
    >>> trained = TrainedTable(module=nn.Linear(3, 2), card={"format": "sfumato.table-classifier"})
    >>> trained.card["format"]
    'sfumato.table-classifier'
    """

    module: nn.Module
    card: dict[str, Any]
    checkpoint: Path | None = None

    def save(self, path: Path) -> None:
        """Write the weights, to be read by ``torch.load``, and the card beside them as JSON text.

        The checkpoint of its training is removed after that.

        Parameters
        ----------
        path : path
            Of the file.
        """
        buffer = io.BytesIO()
        content = {"state_dict": self.module.state_dict(), "sfumato": json.dumps(self.card)}
        torch.save(content, buffer)
        write_whole(path, buffer.getvalue())
        if self.checkpoint is not None:
            remove(self.checkpoint)

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

    def request(self, *, epsilon: float, rows: int | None) -> str:
        """Return what makes two evaluations the same, for `Ledger.find`.

        Parameters
        ----------
        epsilon : float
            Of the noisy count.
        rows : int or None
            The public number of rows, where it is not the table's own.

        Returns
        -------
        str
            With a hash of the module's weights.
        """
        weights = tag_of(b"evaluation", self.module.state_dict())
        asked = {"model": self.card["model"], "weights": weights, "epsilon": epsilon, "rows": rows}
        return canonical({"evaluation": asked})

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
