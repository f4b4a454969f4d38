"""Watches a run's clipped norms, for what it costs each example: the curator's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sfumato import _check
from sfumato.learning.clipping.clipping import SLACK, Clipping
from sfumato.learning.noise.keyed import KeyedNoise, SimulatedNoise
from sfumato.learning.reports.individual_losses import IndividualLosses
from sfumato.learning.training.loop.run import TrainingRun

__all__ = ["IndividualObserver", "contributions"]

_ROUNDED = 1 + 2.0**-40
"""What the float64 arithmetic of a contribution may lose, many times over."""


def contributions(clipping: Clipping, norms: Tensor, sizes: Mapping[str, int]) -> NDArray[np.float64]:
    """Return by how much each example may move the noisy sum, over the most that any may.

    Parameters
    ----------
    clipping : Clipping
    norms : Tensor of shape (groups, examples)
        Before clipping, as `ClippedSums` has them.
    sizes : mapping of str to int
        The number of entries of each trained parameter, in their order.

    Returns
    -------
    ndarray of shape (examples,)
        From 0 to 1: the root of the sum over groups of the squared clipped norm over the group's deviation,
        times the noise multiplier; rounded up, with `Clipping`'s slack for what floats lose.
    """
    wide = norms.detach().cpu().double()
    clipped = clipping.factors(wide.square()).double() * wide
    groups = clipping.groups(list(sizes))
    stddevs = clipping.stddevs(1.0, list(sizes), list(sizes.values()))
    minimum = [np.inf] * (1 + max(groups))
    for group, stddev in zip(groups, stddevs, strict=True):
        minimum[group] = min(minimum[group], stddev)
    scaled = clipped / torch.tensor(minimum, dtype=torch.float64)[:, None]
    moved = scaled.square().sum(0).sqrt() * ((1 + SLACK) * _ROUNDED)
    # What is not finite was clipped to nothing.
    return np.asarray(moved.nan_to_num(nan=0.0, posinf=1.0).clamp(0, 1).numpy(), dtype=np.float64)


@final
class IndividualObserver:
    """Counts what each example's gradients cost, step by step; made before the first step.

    Parameters
    ----------
    run : TrainingRun
        `PrivacyEngine.run`, of one process, on Poisson samples or full batches, with keyed noise, and with
        clipping that does not adapt.
    unseen : {"bound", "last"}
        What an example pays in a step whose sample it is not in, where its gradient is not computed: for the
        whole sensitivity, or for the norm that was seen of it last (the whole, before the first time). The
        latter is an estimate: that norm may have grown.

    Notes
    -----
    Guarantee: none but the run's; see `sfumato.learning.reports.individual_losses`. With ``"bound"`` the
    losses are those of the norms that were observed, in the sense said there. Conditions: rows go through the
    module in the order in which the loader gives them; of dropout and augmentation, what was drawn.

    A sampled run shows few of its norms: with ``"bound"`` nearly everybody pays nearly all. Of full batches
    all are seen. A loop of one's own may give `IndividualLosses` all norms of each step.

    Examples
    --------
    >>> import torch
    >>> from torch.utils.data import DataLoader, TensorDataset
    >>> from sfumato.learning import PrivacyEngine
    >>> engine, module = PrivacyEngine(), torch.nn.Linear(3, 1)
    >>> _ = engine.make_private(
    ...     module=module,
    ...     optimizer=torch.optim.SGD(module.parameters()),
    ...     data_loader=DataLoader(TensorDataset(torch.zeros(40, 3), torch.zeros(40, 1)), batch_size=20),
    ...     noise_multiplier=1.0,
    ...     max_grad_norm=1.0,
    ... )
    >>> observer = IndividualObserver(engine.run)
    >>> observer.losses.steps
    0
    """

    def __init__(self, run: TrainingRun, *, unseen: Literal["bound", "last"] = "bound") -> None:
        if unseen not in ("bound", "last"):
            _check.refuse("unseen", "be 'bound' or 'last'", unseen, "use 'bound' if unsure")
        if run.cursor:
            remedy = "make the observer before the first step"
            rule = "be observed from its first step"
            _check.refuse_state("run", rule, f"it has taken {run.cursor} steps", remedy)
        if run.ranks.together:
            remedy = "train in one process"
            _check.refuse_state("run", "run in one process", "several processes train it", remedy)
        self._run = run
        self._require_constant()
        if run.clipping.adapts:
            _check.refuse_type("clipping", "not adapt to the norms", run.clipping, "use a fixed clip norm")
        if not isinstance(run.noise, KeyedNoise | SimulatedNoise):
            remedy = "leave noise and float_safe out"
            _check.refuse_type("noise", "be independent in each step, and not on a grid", run.noise, remedy)
        self._losses = IndividualLosses(sampler=run.sampler, noise_multiplier=run.noise_multiplier)
        self._unseen = unseen
        self._last = np.ones(run.sampler.population)
        self._observed: set[int] = set()
        named = run.engine.module.named_parameters()
        self._sizes = {name: p.numel() for name, p in named if p.requires_grad}
        run.watch(self._watch)

    def _require_constant(self) -> None:
        """Refuse schedules, which may come until the first step."""
        if self._run.schedules:
            remedy = "leave the schedules out"
            _check.refuse_state("run", "have one noise and one clip norm", "it has a schedule", remedy)

    def _watch(self, numbers: Sequence[int], norms: Tensor) -> None:
        """Take in the norms of some logical batches, in the order in which they were drawn."""
        self._require_constant()
        batches = [self._run.sampler.batch(number) for number in numbers]
        if sum(map(len, batches)) != norms.shape[1]:
            return  # some were left out: those steps are paid for in full
        moved = np.split(
            contributions(self._run.clipping, norms, self._sizes), np.cumsum([len(b) for b in batches])[:-1]
        )
        for number, batch, own in zip(numbers, batches, moved, strict=True):
            if number not in self._observed:
                self._observed.add(number)
                step = self._last.copy() if self._unseen == "last" else np.ones(len(self._last))
                step[batch] = self._last[batch] = own
                self._losses.observe(step)

    @property
    def losses(self) -> IndividualLosses:
        """What each example's gradients have cost in the steps so far; the curator's alone.

        Raises
        ------
        ParameterError
            If a batch came from elsewhere than from the run's loader: nobody knows who was in it.
        """
        if self._run.foreign_steps:
            remedy = "iterate over the loader that make_private returned"
            rule = "come from the run's own loader"
            _check.refuse_state("batches", rule, "some came from elsewhere", remedy)
        # Steps that drew noise and were not seen whole.
        self._losses.bound(max(0, self._run.cursor - self._losses.steps))
        return self._losses

    def __repr__(self) -> str:
        return f"<IndividualObserver of {len(self._observed)} steps>"
