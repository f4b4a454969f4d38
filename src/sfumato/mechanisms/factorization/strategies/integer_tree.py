"""The binary tree strategy in integers."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from sfumato.mechanisms.base.grid import LIMIT
from sfumato.mechanisms.factorization.strategies.block_estimates import (
    PrefixEstimates,
    block_squares,
    block_variance,
    block_weights,
    completed_blocks,
    own_weight,
)
from sfumato.mechanisms.factorization.strategies.integer_strategy import (
    FLOATS,
    Array,
    Integers,
    IntegerStrategy,
    IntegerStrategyStream,
    in_units,
)
from sfumato.mechanisms.factorization.strategies.participation import Participation

__all__ = ["IntegerTree"]


@final
class IntegerTree(IntegerStrategy):
    """Sums over dyadic blocks, times ``2**bits``; all blocks of one height together, the lowest first."""

    def __init__(self, steps: int, bits: int) -> None:
        self.steps, self.bits = steps, bits
        self.limit = LIMIT // (steps << bits)
        heights = steps.bit_length()
        weights = block_weights(heights)
        magnitudes = [sum(weight * count for weight, count in block) for block in weights]
        number = [sum(count for _, count in block) for block in weights]
        lengths = np.arange(1, steps + 1)
        held = [(lengths >> height & 1).astype(np.float64) for height in range(heights)]
        self.variances = np.asarray(sum(block_variance(h) * bit for h, bit in enumerate(held)))
        self.magnitudes = np.asarray(sum(m * bit for m, bit in zip(magnitudes, held, strict=True)))
        self.floats = FLOATS * float(self.magnitudes.max())
        self.draws = np.asarray(sum(c * bit for c, bit in zip(number, held, strict=True)))

    def squared_sensitivity(self, participation: Participation) -> int:
        """See the notes of `BinaryTree`."""
        return block_squares(self.steps, participation) << (2 * self.bits)

    def measure(self, values: Integers) -> Integers:
        """Return the sums of all complete blocks."""
        sums, parts = values << self.bits, []
        while len(sums):
            parts.append(sums)
            pairs = len(sums) // 2
            sums = sums[: 2 * pairs].reshape(pairs, 2, *sums.shape[1:]).sum(axis=1)
        return np.concatenate(parts) if parts else values

    def estimate(self, measured: Integers, steps: int) -> Array:
        """Refine the blocks from the lowest up, then add those of each prefix."""
        lengths = np.arange(1, steps + 1)
        total = np.zeros((steps, *measured.shape[1:]))
        start, refined = 0, np.zeros(0)
        for height in range(steps.bit_length()):
            count = steps >> height
            own = np.ldexp(measured[start : start + count].astype(np.float64), -self.bits)
            start += count
            if height:
                share = own_weight(height)
                halves = refined[: 2 * count].reshape(count, 2, *own.shape[1:]).sum(axis=1)
                own = share * own + (1 - share) * halves
            refined = own
            ends = np.flatnonzero(lengths >> height & 1)
            total[ends] += refined[(lengths[ends] >> height) - 1]
        return total

    def stream(self) -> IntegerStrategyStream:
        """Return the same, step by step, with memory for a block a height."""
        return _TreeStream(self.bits)


class _TreeStream(IntegerStrategyStream):
    def __init__(self, bits: int) -> None:
        self._bits = bits
        self._sums: list[Any] = []  # of the blocks that make up the steps so far, the longest first
        self._refinement = PrefixEstimates()
        self._time = 0

    def measure(self, value: Any) -> list[Any]:
        self._time += 1
        blocks = [value << self._bits]
        for _ in range(completed_blocks(self._time) - 1):
            blocks.append(self._sums.pop() + blocks[-1])
        self._sums.append(blocks[-1])
        return blocks

    def estimate(self, measured: list[Any]) -> Any:
        return self._refinement.add([in_units(own, self._bits) for own in measured])

    def measure_steps(self, values: Integers) -> Integers:
        parts, remaining, height = [], [], 0
        sums = values << self._bits
        while len(sums):
            parts.append(sums)
            # The last bits of the steps so far tell which blocks wait for their other half.
            if self._time >> height & 1:
                sums = np.concatenate([np.asarray(self._sums.pop())[np.newaxis], sums])
            if len(sums) % 2:
                remaining.append(sums[-1] if sums.ndim > 1 else int(sums[-1]))
            pairs = len(sums) // 2
            sums = sums[: 2 * pairs].reshape(pairs, 2, *sums.shape[1:]).sum(axis=1)
            height += 1
        self._sums += remaining[::-1]
        self._time += len(values)
        return np.concatenate(parts)

    def estimate_steps(self, measured: Integers, steps: int) -> Array:
        start, before, own = 0, self._time - steps, []
        for height in range(self._time.bit_length()):
            stop = start + (self._time >> height) - (before >> height)
            own.append(in_units(measured[start:stop], self._bits))
            start = stop
        return self._refinement.extend(own, before, steps)
