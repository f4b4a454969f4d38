"""The client half of sums and means in the shuffle model: additive shares of a number and of noise."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.local.device.base.record_layout import Records
from sfumato.local.device.numeric.randomizer import NumericRandomizer
from sfumato.local.device.shuffle.decoys import mixed
from sfumato.local.device.shuffle.split_and_mix import Split
from sfumato.numerics.randomness.source import RandomSource
from sfumato.numerics.sampling.integer_noise import LARGEST_POLYA

__all__ = ["ShuffledSumRandomizer", "checked_scale"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ShuffledSumRandomizer(NumericRandomizer):
    r"""The grid point and a part of the noise, split into additive shares that are sent one a message.

    Parameters
    ----------
    epsilon, bounds, steps
        See `NumericRandomizer`. Here epsilon is that of the noise of ``split.clients`` clients together:
        discrete Laplace noise of scale ``steps / epsilon``, at most 2^14.
    split : Split, or what `Split.specification` returned
        How many clients share the noise, how many shares there are, and how many bits.

    Notes
    -----
    ``randomize`` returns all `messages` of a client, one record after the other, sorted. A shuffler takes the
    records of all clients apart and mixes them; nobody else may see which came together.

    Guarantee: each message alone is even over all it could be, whatever is true, and so are any but one of a
    client's messages together: epsilon 0, replace-one. All messages of one client together reveal its number
    nearly always. What they protect once they are shuffled is priced by `sfumato.local.shuffle.ShuffledSum`.

    Examples
    --------
    >>> device = ShuffledSumRandomizer(epsilon=1.0, bounds=(0.0, 1.0), steps=100, split=Split(1000, 6, 24))
    >>> device.messages, device.width, len(device.randomize(0.5))
    (6, 7, 42)
    """

    wire_name: ClassVar[str] = "shuffled-sum"

    chosen: ClassVar[tuple[str, ...]] = (*NumericRandomizer.chosen, "split")

    split: Split

    def _choose(self) -> None:
        self._set(split=Split.from_specification(self.split))
        checked_scale(self.scale)

    @property
    def scale(self) -> Fraction:
        """Scale of the whole noise in steps, exactly steps over epsilon."""
        return self.steps / Fraction(self.epsilon)

    @property
    def report_epsilon(self) -> float:
        """Infinite: all messages of one client together reveal its value."""
        return float("inf")

    @property
    def messages(self) -> int:
        """How many records each client sends."""
        return self.split.shares

    @property
    def _bits(self) -> int:
        return self.split.bits

    def _chances(self) -> dict[str, Any]:
        return {}

    def _encode(self, positions: NDArray[np.int64], source: RandomSource) -> Records:
        return mixed(self.split.shared(positions, self.scale, source).view(np.int64), self.layout)


def checked_scale(scale: Fraction) -> None:
    """Refuse scales of noise whose parts are not drawn.

    Parameters
    ----------
    scale : Fraction
        Of the whole noise, in steps.

    Raises
    ------
    ParameterError
        If it is above 2^14.
    """
    if scale > LARGEST_POLYA:
        rule = "be at least 2**-14 for each step that a client can move the sum"
        _check.refuse("epsilon", rule, float(1 / scale), "take fewer steps, or a greater epsilon")
