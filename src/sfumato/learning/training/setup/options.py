"""What `PrivacyEngine.make_private` takes beside Opacus's own parameters, as four frozen values.

>>> from sfumato.learning import NoiseOptions, SamplingOptions
>>> SamplingOptions(population=10_000, epochs=3).epochs
3
>>> NoiseOptions(float_safe=True).float_safe
True
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar, final

from sfumato import _check
from sfumato.learning.noise.noise import Noise
from sfumato.learning.noise.schedule import Schedule
from sfumato.learning.recipes.augmentation import Views
from sfumato.learning.sampling.sampler import Sampler
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.view import LedgerView

__all__ = ["GradientOptions", "NoiseOptions", "RecordOptions", "SamplingOptions", "option"]

T = TypeVar("T")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingOptions:
    """How batches are drawn, and how many steps there are.

    Parameters
    ----------
    population : int, optional
        A public number of examples, such as a noisy count: all parameters follow from it, and the run is
        under add/remove. Left out, the dataset's own number is public, and the run is under zero-out.
    epochs, steps : int, optional
        How long the run is: one of them; needed with a ledger.
    sampler : callable, optional
        Makes another sampler than `PoissonSampler`: called with ``population``, ``batch_size``,
        ``steps_per_epoch``, ``steps`` and ``seed``.
    max_physical_batch_size : int, optional
        Larger batches are given in parts; the optimizer steps with the last part.
    public_indices : bool
        Declares the indices of the loader's ``SubsetRandomSampler`` public, or a list of indices that is its
        sampler: the examples at them are the population, under zero-out. Whether an index is in the list must
        not depend on what its record holds.
    views : Views, optional
        Augmented views of each example, averaged before clipping. Batches have a row for each view.

    Examples
    --------
    >>> SamplingOptions(steps=1000).steps
    1000
    """

    population: int | None = None
    epochs: int | None = None
    steps: int | None = None
    sampler: Callable[..., Sampler] | None = None
    max_physical_batch_size: int | None = None
    public_indices: bool = False
    views: Views | None = None

    def __post_init__(self) -> None:
        views: object = self.views
        if not isinstance(views, Views | None):
            _check.refuse_type("views", "be Views", views, "pass Views(count=, transform=)")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GradientOptions:
    """How per-example gradients are computed: in how much memory, at which scale, after which test.

    Parameters
    ----------
    memory : int, optional
        Bytes that the engine may hold of per-example gradients.
    chunk : int, optional
        How many examples of a batch the engine works on at a time, for less memory.
    loss_scale : float
        A power of two from 1 to 2**40 that the loop multiplies the loss by, for float16.
    self_test : bool
        Whether the module is tested on random inputs at its first forward.
    random_batch : callable, optional
        Draws the inputs of that test, where random entries are none that the module takes: called with a
        number of examples and a seed; returns what the module is called with.
    clip_schedule : Schedule, optional
        Of the clip norm by step: factors of ``max_grad_norm``. It costs nothing, as noise follows the norm.

    Examples
    --------
    >>> GradientOptions(chunk=64).self_test
    True
    """

    memory: int | None = None
    chunk: int | None = None
    loss_scale: float = 1.0
    self_test: bool = True
    random_batch: Callable[[int, int], Any] | None = None
    clip_schedule: Schedule | None = None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseOptions:
    """Which noise is added.

    Parameters
    ----------
    float_safe : bool
        Whether noisy sums are put on a grid with exactly rounded noise, see `GridNoise`; slower.
    noise : callable, optional
        Makes other noise, such as `CorrelatedNoise`: called with ``sampler``, ``key`` and ``seed``, the
        latter two to be passed on.
    schedule : Schedule, optional
        Of the noise multiplier by step: factors of ``noise_multiplier``, or of what ``target_epsilon`` needs.

    Examples
    --------
    >>> NoiseOptions().float_safe
    False
    """

    float_safe: bool = False
    noise: Callable[..., Noise] | None = None
    schedule: Schedule | None = None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RecordOptions:
    """Where the run is charged, and what it goes on from.

    Parameters
    ----------
    ledger : Ledger or LedgerView, optional
        Charged for all steps before the first one. Without one, epsilon is counted in this process only.
    delta : float, optional
        Where the charge is read; needed with a ledger.
    description : str
        Of the charge.
    replayable : bool
        In torch's deterministic mode: a killed run is computed again bit for bit from its checkpoint.
    resume_from : path, optional
        A checkpoint to go on from; the run is not charged again.
    key_file : path, optional
        Where the key lies that seals the run's secrets; beside the ledger by default.

    Examples
    --------
    >>> RecordOptions(resume_from="model.pt").replayable
    False
    """

    ledger: Ledger | LedgerView | None = None
    delta: float | None = None
    description: str = "private training"
    replayable: bool = False
    resume_from: str | os.PathLike[str] | None = None
    key_file: str | os.PathLike[str] | None = None

    def __post_init__(self) -> None:
        ledger: object = self.ledger
        if not isinstance(ledger, Ledger | LedgerView | None):
            _check.refuse_type("ledger", "be an open ledger", ledger, "pass Ledger.open(...), say")
        if self.delta is not None:
            _check.unit_interval("delta", self.delta)

    def read_at(self, delta: float) -> RecordOptions:
        """Return these with a delta, unless they have one.

        Parameters
        ----------
        delta : float
            Where the charge is read.

        Returns
        -------
        RecordOptions
        """
        return replace(self, delta=delta) if self.delta is None else self


def option(name: str, given: T | None, kind: type[T]) -> T:
    """Return the options given, or those by default."""
    value = kind() if given is None else given
    _check.instance(name, value, kind, f"pass {kind.__name__}(...)")
    return value
