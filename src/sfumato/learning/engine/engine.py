"""The engine: hooks on a user's module that turn a backward pass into sums of clipped gradients."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Literal, TypeAlias, final, get_args

import torch
from torch import Tensor, nn

from sfumato import _check
from sfumato.errors import UnfitModule
from sfumato.learning.clipping.clipping import Clipping
from sfumato.learning.engine.clipped_sums import ClippedSums
from sfumato.learning.engine.first_look import CallForms, check_same, first_look, trainable
from sfumato.learning.engine.gradients.augmented_views import power_of_two, whole
from sfumato.learning.engine.gradients.collector import GradientCollector
from sfumato.learning.engine.gradients.step_sums import StepSums, learns_from
from sfumato.learning.engine.gradients.unattributed import UnattributedGradients
from sfumato.learning.engine.out_of_memory import add_remedy
from sfumato.learning.engine.recompute.chunks import ChunkedRecomputation
from sfumato.learning.engine.recompute.microbatches import replayed
from sfumato.learning.engine.recompute.recomputation import ForwardCall
from sfumato.learning.engine.rules.dispatch import RuleDispatch
from sfumato.learning.engine.trace.probe import ProbeResult, size_of

__all__ = ["Engine", "Mode", "Reduction"]

Reduction: TypeAlias = Literal["mean", "sum"]
Mode: TypeAlias = Literal["auto", "book_keeping", "vmap", "microbatch"]

_STORED_BYTES = 2**26  # of per-example gradients that one use may keep


@final
class Engine:
    """Sums of clipped per-example gradients of any module, from the user's own forward and backward.

    While attached, a forward in grad mode and the backward of its loss leave ``p.grad`` alone; `clipped_sums`
    gives what they are for. Several forwards, each with its own backward, add up to one step.

    Parameters
    ----------
    module : torch.nn.Module
        Its class, parameters and ``state_dict`` keys stay as they are.
    clipping : Clipping
        How per-example gradients are clipped.
    loss_reduction : {"mean", "sum"}
        How the loss adds up its examples; a mean is undone from the number of examples in the forward.
    mode : {"auto", "book_keeping", "vmap", "microbatch"}
        "auto" keeps books in one backward where it can, and falls back to the other two, in their order.
    memory : int, optional
        Bytes of per-example gradients that one use of a parameter may keep until their sums are made; all
        uses together keep at most 2.5 times as much. 64 MiB by default.
    chunk : int, optional
        How many examples to keep books for at a time; less memory, and up to two forwards more.
    batch_dim : int
        The dimension of the examples in the tensors given to the module.
    views : int
        How many rows in a row are one example, seen in so many ways: their gradients are averaged first.
    loss_scale : float
        A power of two from 1 to 2**40 that the user's loss is multiplied by, for gradients in float16.

    Notes
    -----
    Guarantee: each example adds to the sum its own gradient, summed over all uses of each parameter, times
    its factor: the condition of `Clipping`. It presupposes that no example has a part in another's outputs or
    loss; see the checks. With views, rows ``k * views`` up to ``(k + 1) * views`` are example k and no other:
    what is clipped is the mean of their gradients, a function of that example alone: the sensitivity stays.

    Examples
    --------
    >>> import torch
    >>> from sfumato.learning.clipping.flat import Flat
    >>> module = torch.nn.Linear(1, 1, bias=False)
    >>> engine = Engine(module, Flat(clip_norm=1.0))
    >>> engine.attach()
    >>> loss = (module(torch.tensor([[0.5], [3.0]])) * torch.tensor([[1.0], [-1.0]])).mean()
    >>> loss.backward()
    >>> engine.clipped_sums().gradients["weight"].tolist()
    [[-0.5]]
    """

    def __init__(
        self,
        module: nn.Module,
        clipping: Clipping,
        *,
        loss_reduction: Reduction = "mean",
        mode: Mode = "auto",
        memory: int | None = None,
        chunk: int | None = None,
        batch_dim: int = 0,
        views: int = 1,
        loss_scale: float = 1.0,
    ) -> None:
        if loss_reduction not in get_args(Reduction):
            _check.refuse("loss_reduction", "be 'mean' or 'sum'", loss_reduction, "pass what the loss does")
        if mode not in get_args(Mode):
            _check.refuse("mode", f"be one of {', '.join(get_args(Mode))}", mode, "use 'auto' if unsure")
        self.module, self.clipping = module, clipping
        self._mean, self._mode = loss_reduction == "mean", mode
        self._memory = _STORED_BYTES if memory is None else _check.integer("memory", memory, minimum=1)
        self._views = _check.integer("views", views, minimum=1)
        self._loss_scale = power_of_two("loss_scale", loss_scale)
        self._chunk = None if chunk is None else _check.integer("chunk", chunk, minimum=1) * self._views
        self._batch_dim = _check.integer("batch_dim", batch_dim)
        self._hooks: list[Any] = []
        self._parameters: dict[str, Tensor] = {}
        self._found: ProbeResult | None = None
        self._vmap: bool | None = None
        self._forms = CallForms()
        self._open: tuple[ExitStack, GradientCollector, Tensor] | None = None
        self._without_graph: ExitStack | None = None
        self._busy = False
        self._rows: int | None = None
        self._own, self._free = StepSums(self._memory), StepSums(self._memory)
        self._unattributed = UnattributedGradients()

    def _reset(self) -> None:
        self._own.reset()
        self._free.reset()
        self._unattributed = UnattributedGradients()

    @property
    def _step(self) -> StepSums:
        """What a forward belongs to now."""
        return self._own if self._rows is None else self._free

    def attach(self) -> None:
        """Put the hooks on; from now on the module's gradients go to the engine.

        Raises
        ------
        UnfitModule
            If no parameter requires a gradient.
        """
        if self._hooks:
            return
        self._parameters = trainable(self.module)
        if not self._parameters:
            raise UnfitModule("module must have a parameter that requires a gradient, got none")
        self._groups = dict(zip(self._parameters, self.clipping.groups(list(self._parameters)), strict=True))
        self._reset()
        self._hooks = [
            self.module.register_forward_pre_hook(self._before, with_kwargs=True),
            self.module.register_forward_hook(self._after, with_kwargs=True, always_call=True),
        ]
        self._hooks += [self._unattributed.watch(name, p) for name, p in self._parameters.items()]

    @property
    def attached(self) -> bool:
        """Whether the hooks are on."""
        return bool(self._hooks)

    def detach(self) -> None:
        """Take the hooks off, and forget the step."""
        for hook in self._hooks:
            hook.remove()
        self._hooks = []
        self._reset()

    @property
    def pending(self) -> bool:
        """Whether examples have gone through the module since the last step."""
        return self._own.pending

    @property
    def only_data_free(self) -> bool:
        """Whether rows that hold no data, and nothing else, have gone through since the last step."""
        return self._free.pending and not self._own.begun

    @contextmanager
    def data_free(self, rows: int) -> Iterator[None]:
        """Take the module's forwards as of rows that hold no data; see `PrivacyEngine.data_free`.

        Parameters
        ----------
        rows : int
            How many rows each of these forwards takes.
        """
        before, self._rows = self._rows, _check.integer("rows", rows, minimum=1)
        try:
            yield
        finally:
            self._rows = before

    def data_free_sums(self) -> dict[str, Tensor]:
        """Return the clipped sums over rows that hold no data, divided by their number if the loss is a mean.

        Returns
        -------
        dict of str to torch.Tensor
            Empty if there were none since the last call.
        """
        self._settle(self._free)
        sums = self._free.sums
        self._free.reset()
        self._unattributed.check()
        return sums

    def clipped_sums(self, examples: int | None = None) -> ClippedSums:
        """Return what all forwards and backwards since the last call add up to, and begin the next step.

        Parameters
        ----------
        examples : int, optional
            How many there were, as the caller knows it. The engine counts the rows of the first tensor that
            each forward takes, whatever these are; a run compares them with what its loader gave.

        Returns
        -------
        ClippedSums

        Raises
        ------
        UnattributedParameter
            If a parameter got a gradient past the module's forward.
        ParameterError
            If the engine counted other ``examples``; what it added up is dropped.
        """
        self._settle(self._own)
        sums = self._own.taken(self._parameters, self._groups)
        self._unattributed.check()
        if examples is not None and sums.examples != _check.integer("examples", examples):
            remedy = "pass the batch as the first tensor of the forward, or set batch_dim="
            _check.refuse("examples", "be as many as the forward took", examples, remedy)
        return sums

    def forget(self) -> int:
        """Drop what backwards have added since the last step; a forward still to go backward stays.

        Returns
        -------
        int
            The number of examples whose gradients were dropped.
        """
        for step in (self._own, self._free):
            if step.current is None or step.current.complete:
                self._settle(step)
        self._unattributed.forget()
        self._free.forget()
        return self._own.forget()

    def explain(self) -> str:
        """Return how each parameter's gradients are found: known after the first forward.

        Returns
        -------
        str
        """
        if self._found is None:
            return "not known before the first forward"
        if self._found.plan is None or self._mode in ("vmap", "microbatch"):
            way = "microbatches of one" if self._vmap is False else "vmap of the whole module"
            return f"{way}: {self._found.reason or 'asked for'}"
        return self._found.plan.explained()

    def _scale(self, count: int) -> float:
        return (count if self._mean else 1) / self._views / self._loss_scale

    def _settle(self, step: StepSums) -> None:
        averaged = self._mean and step is self._free
        step.settle(self.clipping, self._groups, self._scale, views=self._views, averaged=averaged)

    def _before(self, module: nn.Module, args: Any, kwargs: Any) -> None:
        if self._busy or not torch.is_grad_enabled():
            return
        if torch.compiler.is_compiling():
            # A compiler that comes upon this runs the forward as it is; one that may not do so reports it.
            raise UnfitModule(
                "module must run uncompiled while its gradients are clipped, got torch.compile with a whole "
                "graph; leave fullgraph out: the training forward then runs uncompiled"
            )
        count = whole(size_of(args, kwargs, self._batch_dim), self._views)
        if self._rows is not None and not learns_from(count, self._rows, self._parameters):
            return
        self._settle(self._step)
        check_same(self.module, self._parameters)
        self._step.begun = True
        if count == 0:
            self._unattributed.expected = True
            return
        self._found, self._vmap = self._forms.switched(args, kwargs, self._found, self._vmap)
        if self._found is None:
            self._look(args, kwargs)
        plan = self._found.plan if self._found is not None else None
        if plan is None or self._mode in ("vmap", "microbatch") or (self._chunk or count) < count:
            self._state = torch.get_rng_state()
            self._without_graph = ExitStack()
            needs_graph = self._found is not None and self._found.needs_graph
            self._without_graph.enter_context(torch.set_grad_enabled(needs_graph))
            return
        collector = self._collector(count)
        (stack := ExitStack()).enter_context(RuleDispatch(plan, collector))
        self._open = (stack, collector, torch.get_rng_state())

    def _look(self, args: Any, kwargs: Any) -> None:
        with self._alone():
            self._found = first_look(
                self.module,
                args,
                kwargs,
                batch_dim=self._batch_dim,
                parameters=self._parameters,
                collector=self._collector,
                unattributed=self._unattributed,
            )
        if self._found.plan is None and self._mode == "book_keeping":
            why = f"got none: {self._found.reason}; use mode='auto'"
            raise UnfitModule(f"module must have a plan for mode 'book_keeping', {why}")

    def _after(self, module: nn.Module, args: Any, kwargs: Any, output: Any) -> Any:
        if self._busy:
            return None
        if self._without_graph is not None:
            self._without_graph.close()
            self._without_graph = None
            return None if output is None else self._replayed(args, kwargs, output)
        if self._open is None:
            return None
        (stack, collector, state), self._open = self._open, None
        stack.close()
        if output is None:
            add_remedy(sys.exc_info()[1])
            return None
        if collector.broken:
            self._state = state
            torch.set_rng_state(state)
            return self._again(args, kwargs)
        self._step.current = collector
        return None

    def _again(self, args: Any, kwargs: Any) -> Any:
        """Run a forward that has left the plan anew, with a plan of its own; without one if need be."""
        self._look(args, kwargs)
        if self._found is not None and self._found.plan is not None:
            collector = self._collector(size_of(args, kwargs, self._batch_dim))
            with self._alone(), RuleDispatch(self._found.plan, collector):
                output = self.module.forward(*args, **kwargs)
            if not collector.broken:
                self._step.current = collector
                return output
            self._found = ProbeResult(outputs=self._found.outputs, reason="it leaves its plan")
        return self._replayed(args, kwargs)

    def _replayed(self, args: Any, kwargs: Any, output: Any = None) -> Any:
        if self._found is None or self._found.outputs is None:
            reason = "" if self._found is None else self._found.reason
            raise UnfitModule(f"module must run on batches of any size, got one that does not: {reason}")
        count = size_of(args, kwargs, self._batch_dim)
        forward = ForwardCall(
            module=self.module,
            args=args,
            kwargs=kwargs,
            count=count,
            batch_dim=self._batch_dim,
            outputs=self._found.outputs,
            alone=self._alone,
            clipping=self.clipping,
            groups=self._groups,
            scale=self._scale(count),
        )
        drawn = not torch.equal(torch.get_rng_state(), self._state) or torch.cuda.is_initialized()
        torch.set_rng_state(self._state)
        if self._found.plan is not None and self._mode in ("auto", "book_keeping"):
            chunked = ChunkedRecomputation(
                forward, self._chunk or count, plan=self._found.plan, collector=self._collector
            )
            self._step.current = chunked
            return chunked.forward(None if drawn else output)
        output, replay, self._vmap = replayed(
            forward,
            parameters=self._parameters,
            views=self._views,
            memory=4 * self._memory,
            mode=self._mode,
            vmap=self._vmap,
        )
        self._step.current = replay
        return output

    def _collector(self, count: int) -> GradientCollector:
        return GradientCollector(
            self._parameters, count, self._memory // 4, self._step.pool, views=self._views
        )

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Make the engine's own calls of the module unseen by its hooks."""
        before, self._busy = self._busy, True
        try:
            yield
        finally:
            self._busy = before
