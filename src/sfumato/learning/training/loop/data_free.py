"""Rows that hold no data, in a step of a run: those of a generator, beside the examples of the loader."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import final

from torch import Tensor

from sfumato import _check
from sfumato.learning.engine.engine import Engine
from sfumato.learning.training.distributed.ranks import Ranks

__all__ = ["DataFreeRows"]

_SEVERAL = 4


@final
class DataFreeRows:
    """What rows that hold no data add to a step, without noise.

    Parameters
    ----------
    engine : Engine
    ranks : Ranks

    Notes
    -----
    Guarantee: that of the run without them. Proof: their clipped sums are a function of released parameters,
    of randomness that is independent of the data, and of public numbers, and so follow from what was released
    already; the run's own sums and noise are as without them. Conditions: no entry of the rows is computed
    from an example, other than by released parameters, and their number does not follow from one either. Both
    are the user's to see to. What is refused: a tensor of the loader's batches, more than a few different
    numbers of rows in one run, and rows beside a part of a batch, of which there are as many as examples
    were drawn.
    """

    def __init__(self, engine: Engine, ranks: Ranks) -> None:
        self._engine, self._ranks = engine, ranks
        self._numbers: set[int] = set()
        self._sums: dict[str, Tensor] = {}
        self.open = False
        """Whether forwards are of such rows now."""

    @contextmanager
    def of(self, rows: int, *, complete: bool) -> Iterator[None]:
        """Take forwards as of such rows.

        Parameters
        ----------
        rows : int
            A public number: how many each forward takes.
        complete : bool
            Whether the batch given last ends its logical batch.
        """
        rows = _check.integer("rows", rows, minimum=1, remedy="pass the loader's batch_size, say")
        if self._ranks.size > 1:
            rule, found = "be given in one process", f"there are {self._ranks.size}"
            _check.refuse_state("rows", rule, found, "train in one process")
        if not complete:
            rule, found = "come with the last part of a batch", "more parts of it follow"
            remedy = "ask loader.ended first: how many parts there are follows from the examples drawn"
            _check.refuse_state("rows", rule, found, remedy)
        self._numbers.add(rows)
        if len(self._numbers) > _SEVERAL:
            rule, found = "be a public number", f"more than {_SEVERAL} different ones came in this run"
            _check.refuse_state("rows", rule, found, "pass the loader's batch_size, not the size of a batch")
        before, self.open = self.open, True
        try:
            with self._engine.data_free(rows):
                yield
        finally:
            self.open = before

    def alone(self) -> dict[str, Tensor] | None:
        """Return the sums of such rows for a step of their own, or None if examples are in it too."""
        if not (self._engine.attached and self._engine.only_data_free):
            return None
        sums = self._engine.data_free_sums()
        empty = dict(self._engine.clipped_sums().gradients)
        return empty | sums

    def take(self) -> None:
        """Take the sums of such rows for the step that is being made."""
        self._sums = self._engine.data_free_sums() if self._engine.attached else {}

    def add_to(self, gradients: dict[str, Tensor]) -> None:
        """Add them to the gradients of that step, which have their noise."""
        for name, total in self._sums.items():
            gradients[name].add_(total)
        self._sums = {}
