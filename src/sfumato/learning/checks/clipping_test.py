"""The engine on a random batch: against per-example gradients, and with each example left out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, final

import torch
from torch import Tensor, nn

from sfumato.errors import SfumatoError, UnfitModule
from sfumato.learning.checks.batch_tensors import batch_size, leaves, rows
from sfumato.learning.checks.double_precision import squared_distance, squared_sum
from sfumato.learning.checks.reference_gradients import Loss, PerExample, per_example
from sfumato.learning.checks.state_restoration import seeded
from sfumato.learning.clipping.clipping import Clipping
from sfumato.learning.engine.clipped_sums import ClippedSums
from sfumato.learning.engine.engine import Engine, Mode, Reduction

__all__ = ["Findings", "Trial"]

_MICROBATCH = "use mode 'microbatch' (grad_sample_mode in make_private)"

_CLOSE, _CLOSE_IN_HALF = 1e-4, 5e-2
_CLIPPED, _NARROW = 4.0, 1e-3
_HALVES = (torch.float16, torch.bfloat16)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """How the engine compares with other means.

    Parameters
    ----------
    examples : int
    reference : str
        ``"vmap"``, ``"one at a time"``, or ``"none"`` where randomness leaves nothing to compare.
    norm_error, sum_error : float
        Largest error of a norm relative to the largest norm, and of a sum of clipped gradients relative to
        the sum of their norms.
    removal : float
        The most by which leaving out one example moved the sum, as a multiple of the sensitivity.
    plan : str
        How the engine found each parameter's gradients.
    faults : tuple of str
    """

    examples: int
    reference: str
    norm_error: float
    sum_error: float
    removal: float
    plan: str
    faults: tuple[str, ...]

    def __str__(self) -> str:
        return (
            f"{self.examples} examples against {self.reference}: norms within {self.norm_error:.1e}, "
            f"sums within {self.sum_error:.1e}, one example moves {self.removal:.4f} of the sensitivity"
        )


@dataclass(slots=True)
class _Notes:
    norm_error: float = 0.0
    sum_error: float = 0.0
    removal: float = 0.0
    faults: list[str] = field(default_factory=list)


class Trial:
    """One trial of the engine; the module must be calm (see `without_dropout`).

    Parameters
    ----------
    module, loss, clipping, reduction, mode, seed
        As `self_test` has them.
    batch, other : object
        Two random batches: for all comparisons, and for that of losses.
    """

    def __init__(
        self,
        *,
        module: nn.Module,
        loss: Loss,
        batch: Any,
        other: Any,
        clipping: Clipping,
        reduction: Reduction,
        mode: Mode,
        seed: int,
    ) -> None:
        self._module, self._loss, self._batch, self._clipping = module, loss, batch, clipping
        self._reduction, self._seed = reduction, seed
        self._engine = Engine(module, clipping, loss_reduction=reduction, mode=mode)
        self._size, self._other = batch_size(batch), other
        self._notes = _Notes()
        self._close = _CLOSE
        self._trained = [p for p in module.parameters() if p.requires_grad]

    def findings(self) -> Findings:
        """Run all comparisons."""
        whole, halves = self._gradient()
        self._close = _CLOSE_IN_HALF if halves else _CLOSE
        way = "none"
        if self._draws_anew():
            self._singles()
        else:
            with seeded(self._module, self._seed):
                found = per_example(self._module, self._loss, self._batch)
            way = found.way
            squares = found.squared_norms(self._clipping)
            self._compare_reduction(whole, found, squares)
            whole.clear()
            if not getattr(self._loss, "adds_rows", False):
                self._compare_values()
            if not self._notes.faults:
                self._compare_engine(found, squares)
        notes = self._notes
        return Findings(
            examples=self._size,
            reference=way,
            norm_error=notes.norm_error,
            sum_error=notes.sum_error,
            removal=notes.removal,
            plan=self._engine.explain(),
            faults=tuple(dict.fromkeys(notes.faults)),
        )

    def _draws_anew(self) -> bool:
        """Return whether the loss still differs between two states of randomness."""
        values = []
        for seed in (self._seed, self._seed + 1):
            with seeded(self._module, seed):
                values.append(self._loss(self._module, self._batch).detach())
        return not torch.equal(*values)

    def _gradient(self) -> tuple[list[Tensor], bool]:
        """Return the plain gradient of the batch, and whether half precision had a part in it."""
        halves = [any(p.dtype in _HALVES for p in self._module.parameters())]

        def look(_: nn.Module, __: Any, outputs: Any) -> None:
            devices = {t.device.type for _, t in leaves(outputs)}
            halves.append(any(t.dtype in _HALVES for _, t in leaves(outputs)))
            halves.extend(torch.is_autocast_enabled(device) for device in devices)

        handle = self._module.register_forward_hook(look)
        try:
            with seeded(self._module, self._seed):
                value = self._loss(self._module, self._batch)
                found = torch.autograd.grad(value, self._trained, allow_unused=True, materialize_grads=True)
        except RuntimeError as error:
            if "use_reentrant" not in str(error):
                raise
            raise UnfitModule(
                "checkpoint must have use_reentrant=False, got True; pass use_reentrant=False (for "
                "transformers in gradient_checkpointing_kwargs), or leave it out"
            ) from error
        finally:
            handle.remove()
        return [gradient.to_dense() for gradient in found], any(halves)

    def _compare_reduction(self, whole: list[Tensor], found: PerExample, squares: Tensor) -> None:
        """Compare the batch's gradient with its examples'."""
        size = float(self._size)
        ones = torch.ones(len(squares), self._size, dtype=torch.float64)
        total = list(found.weighted(ones, self._clipping).values())
        allowed = 10 * self._close * float(squares.sum(0).sqrt().sum())
        observed = [
            name
            for name, factor in (("mean", size), ("sum", 1.0))
            if _distance([g * factor for g in whole], total) <= allowed
        ]
        self._note_reduction(observed)

    def _compare_values(self) -> None:
        """Compare the losses themselves on a larger batch: weights that others' labels give show in few."""
        size = batch_size(self._other)
        with seeded(self._module, self._seed):
            whole = float(self._loss(self._module, self._other).detach())
            singles = [rows(self._other, torch.tensor([example])) for example in range(size)]
            each = [float(self._loss(self._module, single).detach()) for single in singles]
        allowed = 10 * self._close * sum(map(abs, each))
        factors = (("mean", float(size)), ("sum", 1.0))
        self._note_reduction([n for n, factor in factors if abs(whole * factor - sum(each)) <= allowed])

    def _note_reduction(self, observed: list[str]) -> None:
        if self._reduction in observed:
            return
        if observed:
            self._notes.faults.append(
                f"loss_reduction must be what the loss does, got {self._reduction!r} where the loss is a "
                f"{observed[0]} over examples; pass loss_reduction={observed[0]!r}"
            )
        else:
            self._notes.faults.append(
                "loss must be a mean or a sum over examples of a loss of each alone, got another function; "
                "leave out what joins examples, and terms of no example"
            )

    def _compare_engine(self, found: PerExample, squares: Tensor) -> None:
        norms = squares.sqrt()
        positive = norms[norms > 0]
        bound = min(self._clipping.group_sensitivities)
        smallest = float(positive.min().clamp(min=_NARROW * positive.max())) if len(positive) else bound
        scales = {1.0, _CLIPPED * bound / smallest}
        for scale in sorted(scales):
            sums = self._sums(self._batch, scale)
            if sums is None:
                return
            self._compare_norms(sums, norms * scale)
            self._compare_sums(sums, found, squares, scale)
            if scale == max(scales):
                self._leave_out(sums, scale)

    def _compare_norms(self, sums: ClippedSums, norms: Tensor) -> None:
        if sums.examples != self._size or sums.norms.shape != norms.shape:
            self._notes.faults.append(
                f"the engine must count {self._size} examples, got {sums.examples}; "
                "pass the whole batch to one forward"
            )
            return
        error = float((sums.norms.detach().cpu().double() - norms).abs().max() / norms.max().clamp(min=1e-30))
        self._notes.norm_error = max(self._notes.norm_error, error)
        if not error <= self._close:
            self._notes.faults.append(
                f"the engine's norms must be those of per-example gradients, got ones off by {error:.1e} of "
                f"the largest; {_MICROBATCH}, and report it"
            )

    def _compare_sums(self, sums: ClippedSums, found: PerExample, squares: Tensor, scale: float) -> None:
        """Compare with the clipped sums of gradients that are scaled as the loss was."""
        if set(found.gradients) != set(sums.gradients):
            self._notes.faults.append(
                "the engine must give a sum for every parameter that requires a gradient"
            )
            return
        factors = self._clipping.factors(squares * scale**2) * scale
        size = float((factors * squares.sqrt()).sum().clamp(min=1e-30))
        expected = found.weighted(factors, self._clipping)
        error = _distance([sums.gradients[name] for name in expected], list(expected.values())) / size
        self._notes.sum_error = max(self._notes.sum_error, error)
        if not error <= self._close:
            self._notes.faults.append(
                "the engine's sums must be those of clipped per-example gradients, got ones off by "
                f"{error:.1e} of their norms' sum; {_MICROBATCH}, and report it"
            )

    def _leave_out(self, whole: ClippedSums, scale: float) -> None:
        for example in range(self._size):
            index = torch.tensor([other for other in range(self._size) if other != example])
            rest = self._sums(rows(self._batch, index), scale)
            if rest is None:
                return
            self._bound({name: whole.gradients[name] - rest.gradients[name] for name in whole.gradients})

    def _singles(self) -> None:
        """Where every pass draws anew, only one example's own sum can be compared with the bound."""
        for example in range(self._size):
            for scale in (1.0, 1e3):
                sums = self._sums(rows(self._batch, torch.tensor([example])), scale)
                if sums is None:
                    return
                self._bound(sums.gradients)

    def _bound(self, moved: Mapping[str, Tensor]) -> None:
        groups = self._clipping.groups(list(moved))
        squares = torch.zeros(max(groups) + 1, dtype=torch.float64)
        for group, difference in zip(groups, moved.values(), strict=True):
            squares[group] += squared_sum(difference)
        bounds = torch.tensor(self._clipping.group_sensitivities, dtype=torch.float64)
        parts = [float(part) for part in squares.sqrt() / bounds[: len(squares)]]
        ratio = max(*parts, float(squares.sum().sqrt()) / self._clipping.sensitivity)
        self._notes.removal = max(self._notes.removal, ratio)
        if not ratio <= 1 + self._size * self._close:
            self._notes.faults.append(
                "leaving out one example must move the sum by at most the sensitivity, got more; what one "
                "example adds must not depend on the others"
            )

    def _sums(self, batch: Any, scale: float) -> ClippedSums | None:
        """Return the engine's sums of the scaled loss; None where it refuses, which is noted."""
        try:
            self._engine.attach()
            with seeded(self._module, self._seed):
                torch.autograd.backward(self._loss(self._module, batch) * scale)  # keeps the calm
                return self._engine.clipped_sums()
        except Exception as error:  # whatever a user's module or loss raises
            self._notes.faults.append(f"the engine must take the module, it raised {_shown(error)}")
            return None
        finally:
            self._engine.detach()


def _shown(error: Exception) -> str:
    first = str(error).partition("\n")[0]
    remedy = "" if isinstance(error, SfumatoError) else f"; {_MICROBATCH}"
    return f"{type(error).__name__}: {first}{remedy}"


def _distance(first: list[Tensor], second: list[Tensor]) -> float:
    return math.sqrt(sum(squared_distance(one, other) for one, other in zip(first, second, strict=True)))
