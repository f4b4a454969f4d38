"""Opacus's door: a module, an optimizer and a loader go in, and come out private."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, final

import torch
from torch import nn
from torch.optim import Optimizer
from torch.utils.data import DataLoader

from sfumato import _check
from sfumato.learning.checks.validator import ModuleValidator
from sfumato.learning.clipping.clipping import Clipping
from sfumato.learning.engine.engine import Reduction
from sfumato.learning.reports.card import PrivacyCard
from sfumato.learning.training.accountant import RunAccountant
from sfumato.learning.training.distributed.shards import gathered
from sfumato.learning.training.loop.run import TrainingRun
from sfumato.learning.training.model_card import card_of
from sfumato.learning.training.saving import load, save
from sfumato.learning.training.setup import arguments, batches
from sfumato.learning.training.setup.assembly import Assembly, RunParts
from sfumato.learning.training.setup.options import (
    GradientOptions,
    NoiseOptions,
    RecordOptions,
    SamplingOptions,
    option,
)
from sfumato.learning.training.setup.trial_loss import trial_loss
from sfumato.privacy.calibration import calibrate

__all__ = ["PrivacyEngine"]


@final
class PrivacyEngine:
    """Makes training private, by the names that Opacus's tutorials use.

    Parameters
    ----------
    accountant : str
        Opacus's names are taken; there is one accountant, which bounds epsilon from above.
    secure_mode : bool
        Taken for its name: noise comes from a keyed cipher and the operating system's entropy anyway.

    Notes
    -----
    Guarantee: `get_epsilon`, for the released model and all that is computed from noisy gradients, under the
    sampler's relation. Conditions: those of `TrainingRun`; float arithmetic of the noisy sums is covered with
    ``float_safe=True`` only, as far as `GridNoise` says.

    Examples
    --------
    >>> from torch.utils.data import TensorDataset
    >>> module = nn.Linear(3, 1)
    >>> optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    >>> data = TensorDataset(torch.randn(100, 3), torch.randn(100, 1))
    >>> engine = PrivacyEngine()
    >>> module, optimizer, loader = engine.make_private(
    ...     module=module,
    ...     optimizer=optimizer,
    ...     data_loader=DataLoader(data, batch_size=20),
    ...     noise_multiplier=1.0,
    ...     max_grad_norm=1.0,
    ... )
    >>> for x, y in loader:
    ...     optimizer.zero_grad()
    ...     nn.functional.mse_loss(module(x), y).backward()
    ...     optimizer.step()
    >>> 2 < engine.get_epsilon(delta=1e-3) < 3
    True
    """

    def __init__(self, *, accountant: str = "prv", secure_mode: bool = False) -> None:
        del secure_mode
        if accountant not in ("prv", "rdp", "gdp", "pld"):
            _check.refuse("accountant", "be 'prv', 'pld', 'rdp' or 'gdp'", accountant, "leave it out")
        self._parts: RunParts | None = None

    def make_private(
        self,
        *,
        module: nn.Module,
        optimizer: Optimizer,
        data_loader: DataLoader[Any],
        noise_multiplier: float,
        max_grad_norm: float | Sequence[float],
        criterion: Any = None,
        batch_first: bool = True,
        loss_reduction: Reduction = "mean",
        poisson_sampling: bool = True,
        clipping: str | Clipping = "flat",
        noise_generator: torch.Generator | int | None = None,
        grad_sample_mode: str = "auto",
        sampling: SamplingOptions | None = None,
        gradients: GradientOptions | None = None,
        noise: NoiseOptions | None = None,
        record: RecordOptions | None = None,
    ) -> tuple[Any, ...]:
        """Return the module, the optimizer, and a loader whose batches are drawn and accounted.

        Parameters
        ----------
        module : torch.nn.Module
            Returned as it is.
        optimizer : torch.optim.Optimizer
            Returned as it is, but for ``step`` and ``zero_grad``; no LBFGS.
        data_loader : DataLoader
            Gives the dataset, the collate function and the expected batch size; the run draws the batches.
        noise_multiplier : float
            Standard deviation of the noise over the clipping's sensitivity.
        max_grad_norm : float
            The clip norm.
        criterion : object, optional
            A loss whose ``reduction`` is compared with ``loss_reduction``. A module is tested at its first
            call, on random outputs, to add up what each example loses alone; of any other loss that is a
            condition of the guarantee.
        batch_first : bool
            Whether examples are along the first dimension, or the second.
        loss_reduction : {"mean", "sum"}
            How the loss adds up its examples. Of a mean, gradients are divided by the *expected* batch size.
        poisson_sampling : bool
            False draws shuffled epochs, which amplify nothing.
        clipping : str or Clipping
            "flat", "per_layer", "automatic", or any `Clipping`.
        noise_generator : torch.Generator or int, optional
            Makes all noise and batches follow from a number: a simulation, which protects nobody.
        grad_sample_mode : str
            "auto", or a mode of the engine; Opacus's names mean the nearest. With "ghost" and a criterion,
            the criterion is returned too, as Opacus does.
        sampling : SamplingOptions, optional
            A public number of examples, the length of the run, other samplers, physical batches, views.
        gradients : GradientOptions, optional
            Memory, loss scale and self-test.
        noise : NoiseOptions, optional
            Noise on a grid, or correlated noise.
        record : RecordOptions, optional
            Ledger and checkpoint.

        Returns
        -------
        tuple
            Module, optimizer and loader.

        Raises
        ------
        ParameterError
            An argument breaks its rule.
        UnfitModule
            The module mixes examples; raised at the first forward where only the self-test shows it.
        BudgetExceeded
            The run does not fit; no data was touched.
        """
        if self._parts is not None:
            remedy = "make another PrivacyEngine"
            _check.refuse_state("engine", "make only one run private", "it has made one already", remedy)
        self._parts = Assembly(
            module=module,
            optimizer=optimizer,
            data_loader=data_loader,
            noise_multiplier=noise_multiplier,
            max_grad_norm=max_grad_norm,
            criterion=criterion,
            batch_first=batch_first,
            loss_reduction=loss_reduction,
            poisson_sampling=poisson_sampling,
            clipping=clipping,
            noise_generator=noise_generator,
            grad_sample_mode=grad_sample_mode,
            sampling=option("sampling", sampling, SamplingOptions),
            gradients=option("gradients", gradients, GradientOptions),
            noise=option("noise", noise, NoiseOptions),
            record=option("record", record, RecordOptions),
        ).assembled()
        with_criterion = criterion is not None and grad_sample_mode.startswith("ghost")
        return (module, optimizer, *([criterion] if with_criterion else []), self._parts.loader)

    def make_private_with_epsilon(
        self,
        *,
        module: nn.Module,
        optimizer: Optimizer,
        data_loader: DataLoader[Any],
        target_epsilon: float,
        target_delta: float,
        max_grad_norm: float | Sequence[float],
        epochs: int | None = None,
        poisson_sampling: bool = True,
        sampling: SamplingOptions | None = None,
        noise: NoiseOptions | None = None,
        record: RecordOptions | None = None,
        **options: Any,
    ) -> tuple[Any, ...]:
        """Return what `make_private` does, with the smallest noise that keeps a guarantee over a whole run.

        Parameters
        ----------
        module, optimizer, data_loader, max_grad_norm, poisson_sampling, **options
            As for `make_private`.
        target_epsilon, target_delta : float
            The guarantee of the whole run; it ends after its last step.
        epochs : int, optional
            How long the run is; or ``sampling`` says it.
        sampling, noise, record : optional
            As for `make_private`. The charge is read at ``target_delta`` unless ``record`` has a delta.

        Returns
        -------
        tuple
            Module, optimizer and loader.

        Raises
        ------
        ParameterError
            No noise is enough, or another argument breaks its rule.
        """
        arguments.check_wanted(module, target_delta, options)
        drawn, added = option("sampling", sampling, SamplingOptions), option("noise", noise, NoiseOptions)
        if epochs is not None and drawn.epochs is not None:
            _check.refuse("epochs", "be given once", epochs, "leave it out of sampling")
        drawn = drawn if epochs is None else replace(drawn, epochs=epochs)
        planned = batches.planned_for(data_loader, drawn, poisson=poisson_sampling)
        loss = trial_loss(planned, added, sum(p.numel() for p in module.parameters() if p.requires_grad))
        made = self.make_private(
            module=module,
            optimizer=optimizer,
            data_loader=data_loader,
            noise_multiplier=calibrate(loss, epsilon=target_epsilon, delta=target_delta, tolerance=1e-4),
            max_grad_norm=max_grad_norm,
            poisson_sampling=poisson_sampling,
            sampling=replace(drawn, epochs=None, steps=planned.steps),
            noise=added,
            record=option("record", record, RecordOptions).read_at(target_delta),
            **options,
        )
        self.run.scheduled.calibrated = True
        return made

    @property
    def parts(self) -> RunParts:
        """All parts of the run that was made private."""
        if self._parts is None:
            _check.refuse_state("engine", "have made a run private", "it has made none", "call make_private")
        return self._parts

    @property
    def run(self) -> TrainingRun:
        """The run that was made private."""
        return self.parts.run

    @property
    def accountant(self) -> RunAccountant:
        """What the run has spent so far."""
        return RunAccountant(self.run)

    def data_free(self, rows: int) -> AbstractContextManager[None]:
        """Take forwards as of rows that hold no data, such as a generator's, which add to a step at no cost.

        Parameters
        ----------
        rows : int
            A public number: how many each forward takes, whatever the size of the batch that was drawn.

        Returns
        -------
        context manager
        """
        return self.run.data_free(rows)

    def get_epsilon(self, delta: float) -> float:
        """Return the epsilon of the steps so far at a delta, rounded up.

        Parameters
        ----------
        delta : float
            Where epsilon is read.

        Returns
        -------
        float
        """
        return self.run.epsilon(delta)

    def card(self, delta: float, *, unit: str | None = None) -> PrivacyCard:
        """Return what was run and what it guarantees, to be published with the model.

        Parameters
        ----------
        delta : float
            Where epsilon is read.
        unit : str, optional
            What one example is: "row", "visit". A user's examples are "user" where users are sampled.

        Returns
        -------
        PrivacyCard
            On a ledger of the whole run that was charged, also while it lasts; without one, of the steps so
            far.
        """
        return card_of(self.parts, delta=delta, unit=unit)

    def save_checkpoint(
        self,
        *,
        path: str | os.PathLike[str],
        module: nn.Module | None = None,
        optimizer: Optimizer | None = None,
        checkpoint_dict: dict[str, Any] | None = None,
        torch_save_kwargs: dict[str, Any] | None = None,
    ) -> None:
        """Write a checkpoint that may be published, and beside it the run's secrets, sealed.

        Parameters
        ----------
        path : path
            The secrets lie at ``path`` with ``.secrets`` at its end, where there is a ledger to go on with.
        module, optimizer : optional
            The run's own by default.
        checkpoint_dict, torch_save_kwargs : dict, optional
            More to keep, plain values and tensors; and what else `torch.save` takes.
        """
        save(
            self.parts,
            path,
            module=module,
            optimizer=optimizer,
            extra=checkpoint_dict or {},
            options=torch_save_kwargs or {},
        )

    def load_checkpoint(
        self,
        *,
        path: str | os.PathLike[str],
        module: nn.Module,
        optimizer: Optimizer | None = None,
        torch_load_kwargs: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Load a checkpoint into a run without a ledger, as Opacus does; return what else is in it.

        A run on a ledger goes on with ``RecordOptions(resume_from=...)``.

        Parameters
        ----------
        path : str or path
            As `save_checkpoint` wrote it.
        module, optimizer : optional
            Get the weights and the optimizer's state.
        torch_load_kwargs : dict, optional
            For ``torch.load``, such as ``{"map_location": "cpu"}``.

        Returns
        -------
        dict
            What the caller put into the checkpoint beside the run.
        """
        return load(self.parts, path, module=module, optimizer=optimizer, options=torch_load_kwargs or {})

    def export_model(self) -> dict[str, torch.Tensor]:
        """Return copies of the module's parameters and buffers: what was released, and nothing else.

        Returns
        -------
        dict of str to Tensor
        """
        return {name: t.detach().clone() for name, t in gathered(self.run.engine.module.state_dict()).items()}

    def detach(self) -> None:
        """Give module and optimizer their own ways back; the run has ended."""
        self.parts.release()

    @staticmethod
    def is_compatible(*, module: nn.Module, **_: Any) -> bool:
        """Return whether nothing is known against a module; see `ModuleValidator`.

        Parameters
        ----------
        module : torch.nn.Module

        Returns
        -------
        bool
        """
        return ModuleValidator.is_valid(module)

    @staticmethod
    def validate(*, module: nn.Module, **_: Any) -> None:
        """Raise what is known against a module; see `ModuleValidator`.

        Parameters
        ----------
        module : torch.nn.Module
        """
        ModuleValidator.validate(module, strict=True)
