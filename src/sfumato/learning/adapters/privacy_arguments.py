"""The privacy arguments of a training loop that is somebody else's."""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar, final

from torch import nn
from torch.optim import Optimizer
from torch.utils.data import DataLoader

from sfumato import _check
from sfumato.learning.training.privacy_engine import PrivacyEngine
from sfumato.learning.training.setup.options import (
    GradientOptions,
    NoiseOptions,
    RecordOptions,
    SamplingOptions,
    option,
)
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.view import LedgerView

__all__ = ["PrivacyArguments"]

T = TypeVar("T")

_THE_LOOPS = {
    *("self", "module", "optimizer", "data_loader", "noise_multiplier", "max_grad_norm", "criterion"),
    *("batch_first", "loss_reduction"),
}
_SET_BY_THE_LOOP = {
    "sampling": ("epochs", "steps", "max_physical_batch_size"),
    "gradients": ("chunk",),
    "record": ("ledger", "delta", "resume_from"),
}
_KINDS: dict[str, type[Any]] = {
    "sampling": SamplingOptions,
    "gradients": GradientOptions,
    "noise": NoiseOptions,
    "record": RecordOptions,
}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PrivacyArguments:
    """The guarantee that is asked of a training loop.

    Parameters
    ----------
    delta : float
        Where epsilon is read.
    target_epsilon : float, optional
        Has the smallest noise found that keeps it over the whole run.
    noise_multiplier : float, optional
        Standard deviation of the noise over the clipping's sensitivity; instead of ``target_epsilon``.
    max_grad_norm : float
        The clip norm of an example's gradient.
    ledger : Ledger or LedgerView, optional
        Charged for the whole run before its first step.
    show_loss : bool
        Whether the training loss stands in logs and checkpoints. It is of private rows, and not in epsilon.
    options : mapping
        More of `PrivacyEngine.make_private`: ``clipping``, ``sampling``, ``noise``, ``gradients``, ... The
        loop itself says how long the run is, how its batches are cut up and what it goes on from.

    Raises
    ------
    ParameterError
        An argument breaks its rule.

    Examples
    --------
    >>> PrivacyArguments(target_epsilon=3.0, delta=1e-5).max_grad_norm
    1.0
    """

    delta: float
    target_epsilon: float | None = None
    noise_multiplier: float | None = None
    max_grad_norm: float = 1.0
    ledger: Ledger | LedgerView | None = None
    show_loss: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _check.unit_interval("delta", self.delta, "use 1e-5, say: below one over the number of examples")
        _check.positive("max_grad_norm", self.max_grad_norm)
        if (self.target_epsilon is None) == (self.noise_multiplier is None):
            given = "neither was given" if self.target_epsilon is None else "both were given"
            rule = "be given, or noise_multiplier"
            _check.refuse_state("target_epsilon", rule, given, "pass one of them")
        known = set(inspect.signature(PrivacyEngine.make_private).parameters) - _THE_LOOPS
        for name in self.options:
            if name not in known:
                _check.refuse("options", f"be among {', '.join(sorted(known))}", name, "check the names")
        for name, kind in _KINDS.items():
            given, default = self._option(name, kind), kind()
            for part in _SET_BY_THE_LOOP.get(name, ()):
                if (value := getattr(given, part)) != getattr(default, part):
                    _check.refuse(name, f"leave {part} to the loop", value, f"leave {part}= out")

    @property
    def sampling(self) -> SamplingOptions:
        """How batches are drawn."""
        return self._option("sampling", SamplingOptions)

    def _option(self, name: str, kind: type[T]) -> T:
        found: T = option(name, self.options.get(name), kind)
        return found

    def begin(
        self,
        *,
        module: nn.Module,
        optimizer: Optimizer,
        data_loader: DataLoader[Any],
        steps: int,
        resume_from: str | os.PathLike[str] | None = None,
        max_physical_batch_size: int | None = None,
        chunk: int | None = None,
    ) -> PrivacyEngine:
        """Make a module's training private, and return the engine.

        Parameters
        ----------
        module : torch.nn.Module
        optimizer : torch.optim.Optimizer
        data_loader : DataLoader
            Of logical batches.
        steps : int
            Of the optimizer, in all.
        resume_from : path, optional
            A checkpoint of the same run.
        max_physical_batch_size, chunk : int, optional
            How batches are cut up.

        Returns
        -------
        PrivacyEngine
            Attached to the module, and charged where there is a ledger.
        """
        engine = PrivacyEngine()
        shared: dict[str, Any] = {
            "module": module,
            "optimizer": optimizer,
            "data_loader": data_loader,
            "max_grad_norm": self.max_grad_norm,
            **self.options,
            "sampling": replace(self.sampling, steps=steps, max_physical_batch_size=max_physical_batch_size),
            "gradients": replace(self._option("gradients", GradientOptions), chunk=chunk),
            "record": replace(
                self._option("record", RecordOptions),
                ledger=self.ledger,
                delta=self.delta,
                resume_from=resume_from,
            ),
        }
        if self.noise_multiplier is not None:
            engine.make_private(noise_multiplier=self.noise_multiplier, **shared)
        elif self.target_epsilon is not None:
            engine.make_private_with_epsilon(
                target_epsilon=self.target_epsilon, target_delta=self.delta, **shared
            )
        return engine
