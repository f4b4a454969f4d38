"""Opacus's name for batches in parts."""

from __future__ import annotations

from typing import Any, final

from torch.optim import Optimizer

from sfumato import _check
from sfumato.learning.training.loop.private_loader import PrivateLoader
from sfumato.learning.training.loop.private_optimizer import is_private

__all__ = ["BatchMemoryManager"]


@final
class BatchMemoryManager:
    """Lets a private loader give batches in parts; the optimizer steps with the last part of each.

    Parameters
    ----------
    data_loader : PrivateLoader
        As `PrivacyEngine.make_private` returned it.
    max_physical_batch_size : int
        The most examples of a part.
    optimizer : Optimizer
        Of the same run.

    Examples
    --------
    >>> import torch
    >>> from torch.utils.data import DataLoader, TensorDataset
    >>> from sfumato.learning import PrivacyEngine
    >>> module = torch.nn.Linear(3, 1)
    >>> module, optimizer, loader = PrivacyEngine().make_private(
    ...     module=module,
    ...     optimizer=torch.optim.SGD(module.parameters()),
    ...     data_loader=DataLoader(TensorDataset(torch.zeros(40, 3), torch.zeros(40, 1)), batch_size=20),
    ...     noise_multiplier=1.0,
    ...     max_grad_norm=1.0,
    ... )
    >>> with BatchMemoryManager(data_loader=loader, max_physical_batch_size=4, optimizer=optimizer) as parts:
    ...     max(len(x) for x, y in parts) <= 4
    True
    """

    def __init__(self, *, data_loader: Any, max_physical_batch_size: int, optimizer: Optimizer) -> None:
        _check.instance("data_loader", data_loader, PrivateLoader, "pass the one that make_private returned")
        if not is_private(optimizer):
            remedy = "pass that one"
            _check.refuse_type("optimizer", "be the one that make_private returned", optimizer, remedy)
        self._loader: PrivateLoader = data_loader
        self._largest = _check.integer("max_physical_batch_size", max_physical_batch_size, minimum=1)
        self._before: int | None = None

    def __enter__(self) -> PrivateLoader:
        """Return the loader, which now gives parts."""
        self._before = self._loader.largest
        self._loader.limit(self._largest)
        return self._loader

    def __exit__(self, *_: object) -> None:
        """Let it give what it gave before."""
        self._loader.limit(self._before)
