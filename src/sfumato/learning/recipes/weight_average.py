"""The average of the weights over the steps: post-processing, which costs nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, final

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from sfumato import _check
from sfumato.errors import UnfitModule

__all__ = ["WeightAverage"]


@final
class WeightAverage:
    """An exponential moving average of a module's trained weights.

    Parameters
    ----------
    module : torch.nn.Module
        Its parameters that require a gradient are averaged, under the names of ``state_dict``; buffers and
        frozen parameters are taken as they are.
    decay : float
        In [0, 1): how much of the average stays at each step; after few steps less of it, so that the start
        has no more weight than any step (see Notes).
    optimizer : Optimizer, optional
        Updates the average after each of its steps; a private one's come with whole logical batches, not with
        each call of ``step``. Without one, call `update`.

    Notes
    -----
    Guarantee: that of the run. The average is a function of the weights after each step, all of which the
    run's loss covers, and of nothing else: post-processing (Dwork and Roth 2014, proposition 2.1), also where
    `decay` is chosen by anything but the private data.

    After t updates with w_1, ..., w_t the average is the sum of ``decay**(t - s) * w_s`` over the sum of
    ``decay**(t - s)``: the usual average without the bias towards where it began.

    References
    ----------
    De et al. (2022), "Unlocking high-accuracy differentially private image classification through scale",
    section 3 (parameter averaging). Kingma and Ba (2015), "Adam", section 3, for the correction of the bias.

    Examples
    --------
    >>> module = nn.Linear(1, 1, bias=False)
    >>> average = WeightAverage(module, decay=0.5)
    >>> for value in (1.0, 4.0):
    ...     _ = nn.init.constant_(module.weight, value)
    ...     average.update()
    >>> float(average.weights["weight"])  # (0.5 * 1 + 4) / 1.5
    3.0
    >>> with average.applied():
    ...     float(module(torch.ones(1, 1)))
    3.0
    """

    def __init__(
        self, module: nn.Module, *, decay: float = 0.999, optimizer: Optimizer | None = None
    ) -> None:
        self._decay = _check.probability("decay", decay)
        self._module = module
        self.updates = 0
        """How many steps are in the average."""
        self.weights: dict[str, Tensor] = {
            name: p.detach().to(torch.promote_types(p.dtype, torch.float32), copy=True)
            for name, p in self._live().items()
        }
        """The average by the parameters' names, in float32 at least: less would round small shares away.

        Before the first update, the module's own weights.
        """
        if not self.weights:
            raise UnfitModule("module must have a parameter that requires a gradient, got none")
        self._applied = False
        self._handle = None if optimizer is None else optimizer.register_step_post_hook(self._stepped)

    def _live(self) -> dict[str, Tensor]:
        return {name: p for name, p in self._module.named_parameters() if p.requires_grad}

    def _stepped(self, *_: Any) -> None:
        self.update()

    @torch.no_grad()
    def update(self) -> None:
        """Take the module's weights into the average: after each step, once.

        Raises
        ------
        UnfitModule
            If the module has the average in it, or other parameters than it had.
        """
        if self._applied:
            raise UnfitModule(
                "module must have its own weights in an update, got the average; leave applied()"
            )
        live = self._same()
        self.updates += 1
        share = (1 - self._decay) / (1 - self._decay**self.updates)
        for name, average in self.weights.items():
            average.lerp_(live[name].to(average.dtype), share)

    def _same(self) -> dict[str, Tensor]:
        live = self._live()
        shapes = {name: p.shape for name, p in live.items()}
        if shapes != {name: average.shape for name, average in self.weights.items()}:
            raise UnfitModule(
                "module must keep the parameters that it had when the average began, got others; "
                "make another WeightAverage"
            )
        return live

    @contextmanager
    def applied(self) -> Iterator[nn.Module]:
        """Have the averaged weights in the module, in eval mode and without gradients: for measurements.

        Nothing that is done inside counts as training. Its own weights and modes are put back at the end.

        Returns
        -------
        context manager

        Yields
        ------
        torch.nn.Module
            The module, with averaged weights until the context ends.
        """
        if self._applied:
            raise UnfitModule(
                "module must have its own weights, got the average; use one applied() at a time"
            )
        live = self._same()
        own = {name: p.detach().clone() for name, p in live.items()}
        modes = {inner: inner.training for inner in self._module.modules()}
        self._applied = True
        try:
            with torch.no_grad():
                _put(live, self.weights)
                self._module.eval()
                yield self._module
        finally:
            with torch.no_grad():
                _put(live, own)
            for inner, mode in modes.items():
                inner.training = mode
            self._applied = False

    def export_model(self) -> dict[str, Tensor]:
        """Return copies of the module's parameters and buffers with the averages in place: to be released.

        Returns
        -------
        dict of str to Tensor
        """
        # By identity: a parameter with several names is in a state_dict under all of them.
        averages = {id(p): self.weights[name].to(p.dtype) for name, p in self._same().items()}
        state = self._module.state_dict(keep_vars=True)
        return {name: averages.get(id(tensor), tensor).detach().clone() for name, tensor in state.items()}

    def state_dict(self) -> dict[str, Any]:
        """Return what a checkpoint keeps; none of it is secret.

        Returns
        -------
        dict
        """
        weights = {name: average.clone() for name, average in self.weights.items()}
        return {"decay": self._decay, "updates": self.updates, "weights": weights}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on with a stored average.

        Parameters
        ----------
        state : mapping of str to object
            As `state_dict` returned it.

        Raises
        ------
        ParameterError
            If it is of other parameters or of another decay.
        """
        if missing := {"decay", "updates", "weights"} - set(state):
            rule = "be what state_dict() returned"
            _check.refuse_state("state", rule, f"it has no {', '.join(sorted(missing))}", "pass it unchanged")
        stored: Mapping[str, Tensor] = state["weights"]
        shapes = {name: average.shape for name, average in self.weights.items()}
        if {name: average.shape for name, average in stored.items()} != shapes:
            remedy = "make it of the same module"
            rule = "have the module's parameters"
            _check.refuse_state("state", rule, "its weights have other names or shapes", remedy)
        if state["decay"] != self._decay:
            remedy = "make the average with that decay"
            _check.refuse("decay", f"be that of the state, {state['decay']!r}", self._decay, remedy)
        self.updates = _check.integer("updates", state["updates"])
        for name, average in self.weights.items():
            average.copy_(stored[name])

    def detach(self) -> None:
        """Update no more with the optimizer's steps."""
        if self._handle is not None:
            self._handle.remove()


def _put(live: Mapping[str, Tensor], weights: Mapping[str, Tensor]) -> None:
    for name, parameter in live.items():
        parameter.copy_(weights[name])
