"""Training a classifier on the rows of a table, whose columns and bounds are public."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from sfumato import _check
from sfumato._progress import Progress, shown_progress
from sfumato._wire import Format
from sfumato.errors import RunExhausted
from sfumato.learning.training.privacy_engine import PrivacyEngine
from sfumato.learning.training.setup.options import RecordOptions, SamplingOptions
from sfumato.learning.training.table_checkpoint import SAVES, SavedTraining, TableCheckpoint
from sfumato.learning.training.table_classifier import TrainedTable, classifier
from sfumato.learning.training.table_columns import Columns
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.view import LedgerView

__all__ = ["train_table"]

FORMAT: Final = Format("sfumato.table-classifier", 1)


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
    progress: Progress | bool | None = None,
    checkpoint: Path | None = None,
    key_file: Path | None = None,
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
    progress : callable or bool, optional
        Called after each epoch with how many are done, and how many there are. By default a bar is shown on a
        terminal and in a notebook; True shows it anywhere, False nowhere. Epochs are public; how long one
        takes is outside of the guarantee.
    checkpoint : Path, optional
        Needs a ledger. The run is saved there before its first step and after each hundredth of its steps.
        Where the file exists, the run goes on from it and nothing is charged; `TrainedTable.save` removes it.
    key_file : Path, optional
        Where the key lies that seals the secrets of the checkpoint; beside the ledger by default, if that is
        a file.

    Returns
    -------
    TrainedTable

    Raises
    ------
    ParameterError
        An argument breaks its rule, or is not the one that the checkpoint's run began with; nothing was
        charged.
    BudgetExceeded
        The run does not fit; no row was used.
    LedgerCorrupt, LedgerMismatch, LedgerUnavailable
        The checkpoint is not one of a run on this ledger, or the ledger was rolled back.

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
    training = {"clip_norm": clip_norm, "learning_rate": learning_rate}
    model = {"columns": columns.to_json(), "hidden": list(hidden)}
    settings = columns.to_json() | training | {"hidden": list(hidden), "epsilon": epsilon, "delta": delta}
    settings |= {"epochs": epochs, "batch_size": size, "rows": rows}
    module = classifier(columns, hidden)
    record = RecordOptions(ledger=ledger, delta=delta, description=description, key_file=key_file)
    place = None
    if checkpoint is not None:
        place = TableCheckpoint(path=checkpoint, ledger=ledger, key_file=key_file, settings=settings)
    run = _Training(
        module=module,
        optimizer=torch.optim.Adam(module.parameters(), lr=rate),
        place=place,
        saved=None if place is None else place.found(),
    )
    run.begin(
        DataLoader(data, batch_size=size),
        {"max_grad_norm": clip_norm, "sampling": SamplingOptions(population=rows, epochs=epochs)},
        {"target_epsilon": epsilon, "target_delta": delta},
        record,
    )
    with shown_progress(progress, "training, epochs") as show:
        run.train(epochs, show)
    card = json.loads(run.engine.card(delta, unit="row").to_json())
    run.engine.detach()
    lost = run.steps - run.taken
    training |= {"lost_steps": lost} if lost else {}
    document = FORMAT.wrap({"model": model, "training": training, "privacy": card})
    return TrainedTable(module=module, card=document, checkpoint=checkpoint)


class _Training:
    """A run that begins, or goes on from its checkpoint."""

    def __init__(
        self,
        *,
        module: nn.Module,
        optimizer: torch.optim.Optimizer,
        place: TableCheckpoint | None,
        saved: SavedTraining | None,
    ) -> None:
        self.engine = PrivacyEngine()
        self.taken = 0 if saved is None else saved.taken
        self._module, self._optimizer = module, optimizer
        self._place, self._saved = place, saved
        self._loader: DataLoader[Any]

    @property
    def steps(self) -> int:
        """How many steps were charged."""
        return self.engine.run.sampler.steps

    def begin(
        self,
        loader: DataLoader[Any],
        options: dict[str, Any],
        target: dict[str, Any],
        record: RecordOptions,
    ) -> None:
        """Charge the run, or go on with what was charged."""
        parts = {"module": self._module, "optimizer": self._optimizer, "data_loader": loader, **options}
        if self._saved is None or self._place is None:
            *_, self._loader = self.engine.make_private_with_epsilon(**parts, **target, record=record)
            self._save()
        else:
            *_, self._loader = self.engine.make_private(
                **parts,
                noise_multiplier=self._saved.noise_multiplier,
                record=replace(record, resume_from=self._place.path),
            )

    def train(self, epochs: int, progress: Progress) -> None:
        """Take all steps that are left."""
        every = max(1, self.steps // SAVES)
        if self._saved is not None:
            progress(self._epochs_of(epochs), epochs)
        with contextlib.suppress(RunExhausted):
            while True:
                for inputs, labels, weights in self._loader:
                    self._optimizer.zero_grad()
                    losses = nn.functional.cross_entropy(self._module(inputs), labels, reduction="none")
                    (weights * losses).mean().backward()
                    self._optimizer.step()
                    self.taken += 1
                    if self.taken % every == 0:
                        self._save()
                progress(self._epochs_of(epochs), epochs)
        self._save()

    def _epochs_of(self, epochs: int) -> int:
        """Return how many epochs are done, with steps that were lost."""
        return self.engine.run.cursor * epochs // self.steps

    def _save(self) -> None:
        if self._place is not None:
            self._place.save(self.engine, taken=self.taken)
