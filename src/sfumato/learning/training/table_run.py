"""One private run on a table, and the card that tells what it cost."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, final

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from sfumato import _check
from sfumato._durable import write_whole
from sfumato._wire import Format
from sfumato.learning.training.privacy_engine import PrivacyEngine
from sfumato.learning.training.table import Columns, classifier
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.view import LedgerView

__all__ = ["TrainedTable", "train_table"]

FORMAT: Final = Format("sfumato.table-classifier", 1)


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
    """

    module: nn.Module
    card: dict[str, Any]

    def save(self, path: Path) -> None:
        """Write the weights, to be read by ``torch.load``, and the card beside them as JSON text."""
        buffer = io.BytesIO()
        content = {"state_dict": self.module.state_dict(), "sfumato": json.dumps(self.card)}
        torch.save(content, buffer)
        write_whole(path, buffer.getvalue())


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
) -> TrainedTable:
    """Train a classifier with the least noise that keeps (epsilon, delta), charged before its first batch.

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

    Returns
    -------
    TrainedTable

    Raises
    ------
    ParameterError
        An argument breaks its rule; nothing was charged.
    BudgetExceeded
        The run does not fit; no row was used.
    """
    size = _check.integer("batch_size", batch_size, minimum=1)
    rate = _check.positive("learning_rate", learning_rate)
    module = classifier(columns, hidden)
    engine = PrivacyEngine()
    module, optimizer, loader = engine.make_private_with_epsilon(
        module=module,
        optimizer=torch.optim.Adam(module.parameters(), lr=rate),
        data_loader=DataLoader(data, batch_size=size),
        population=rows,
        target_epsilon=epsilon,
        target_delta=delta,
        epochs=epochs,
        max_grad_norm=clip_norm,
        ledger=ledger,
        description=description,
    )
    for _ in range(epochs):
        for inputs, labels, weights in loader:
            optimizer.zero_grad()
            losses = nn.functional.cross_entropy(module(inputs), labels, reduction="none")
            (weights * losses).mean().backward()
            optimizer.step()
    card = engine.card(delta, unit="row").to_document()
    engine.detach()
    document = FORMAT.wrap(
        {
            "model": {"columns": columns.to_json(), "hidden": list(hidden)},
            "training": {"clip_norm": clip_norm, "learning_rate": learning_rate},
            "privacy": card,
        }
    )
    return TrainedTable(module=module, card=document)
