"""Noise on a grid: sums are rounded to it, and the noise is exact."""

from __future__ import annotations

from collections.abc import Sequence
from math import frexp, ldexp, sqrt
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from sfumato import _check
from sfumato.learning.noise.keyed import change_entries
from sfumato.learning.noise.noise import Noise, Slices
from sfumato.learning.noise.noise_key import NoiseKey
from sfumato.numerics.randomness.keyed_normal import rounded_normals
from sfumato.numerics.rounding import div_down, mul_up

__all__ = ["GridNoise"]

_BITS: Final = 30
_MULTIPLIER: Final = 1024.0
_MIN: Final = 2.0**-400
_WIDEST: Final = 2.0**52
_PART: Final = 1 << 18


def _spacing(stddev: float) -> float:
    """Return the largest power of two that is at most ``stddev / 2**30``."""
    return ldexp(1.0, frexp(stddev)[1] - 1 - _BITS)


@final
class GridNoise(Noise):
    r"""Normal noise without floats: sums on a grid of a power of two, and exactly rounded normal numbers.

    Parameters
    ----------
    key : bytes, optional
        32 secret bytes, used for one run only; fresh from the operating system unless given.
    seed : int, optional
        In place of a key, for simulation only.

    Notes
    -----
    Every sum is rounded to a multiple of a grid :math:`\gamma_p \le 2^{-30} \sigma_p`, a power of two, and
    gets a whole number of grid steps: :math:`\sigma_p Z/\gamma_p` for a normal Z, rounded exactly (see
    `sfumato.numerics.randomness.keyed_normal.rounded_normals`). The result is stored in the tensor's type.

    Guarantee: if the sums of clipped gradients move by at most S in the L2 norm *as they were computed*, a
    step costs what ``Gaussian(charged(z))`` does for a noise multiplier z, which is z itself up to 1024.
    Proof: a whole number plus a rounded normal one is the rounding of a normal number around it; so the
    release is a function of what the Gaussian mechanism would have released, for sums on the grid. Rounding
    moves each entry by at most half a grid step in either dataset; over the noise's deviation, d entries
    move by at most :math:`2^{-30} \sqrt d` more. Noise is drawn with deviations :math:`1 + 2^{-20} \sqrt d`
    times those asked for, which pays for it if :math:`z \le 1024`: :math:`1/z + 2^{-30}\sqrt d \le (1 +
    2^{-20} \sqrt d)/z`. It is no discrete Gaussian, and needs no allowance for one.

    What is left of floats is in S: the gradients, and their sum over the examples, are the engine's.

    Examples
    --------
    >>> import torch
    >>> sums = [torch.zeros(3)]
    >>> GridNoise().add_(sums, step=0, stddevs=[1.0])
    >>> bool((sums[0] * 2**30 == (sums[0] * 2**30).round()).all())
    True
    """

    def __init__(self, key: bytes | None = None, *, seed: int | None = None) -> None:
        self._key = NoiseKey.of(key, seed)
        self._entries = self._key.subkey("grid entries")
        self._scalars = self._key.subkey("grid scalars")

    @property
    def key(self) -> bytes:
        """The secret key, to be sealed with a run that is to be resumed."""
        return self._key.secret

    @property
    def simulated(self) -> bool:
        """Whether the noise follows from a seed; then it protects nobody."""
        return self._key.simulated

    @property
    def float_safe(self) -> bool:
        """True: what is drawn is what is priced."""
        return True

    def charged(self, noise_multiplier: float, entries: int) -> float:
        """Return the noise multiplier that stands in the loss, rounded down; see the class's notes.

        Parameters
        ----------
        noise_multiplier : float
            Standard deviation of the noise over the sensitivity.
        entries : int
            Of all gradients together.

        Returns
        -------
        float
            The noise multiplier that stands in the loss.
        """
        noise = _check.non_negative("noise_multiplier", noise_multiplier)
        if noise <= _MULTIPLIER:
            return noise
        root = sqrt(_check.integer("entries", entries))
        worse = (1 + noise * 2.0**-_BITS * root) / (1 + _MULTIPLIER * 2.0**-_BITS * root)
        return div_down(noise, mul_up(worse, 1 + 2.0**-48))

    def _add(self, gradients: Sequence[Tensor], step: int, stddevs: Sequence[float], parts: Slices) -> None:
        entries = sum(part.whole for part in parts)
        more = 1 + mul_up(_MULTIPLIER * 2.0**-_BITS, sqrt(entries) * (1 + 2.0**-48))
        for index, (gradient, stddev, part) in enumerate(zip(gradients, stddevs, parts, strict=True)):
            if stddev:
                # A grid of the deviation asked for: that of the one drawn could be twice as coarse.
                drawn = _Drawn(
                    self._entries, (step, index), mul_up(stddev, more), like=stddev, first=part.start
                )
                change_entries(gradient, drawn.add)

    def scalar(self, *, step: int, stddev: float) -> float:
        """Return the noise of a step's one number beside the gradients: a multiple of the grid.

        Parameters
        ----------
        step : int
            The step that the number is of.
        stddev : float
            Standard deviation of the noise, in the number's unit.

        Returns
        -------
        float

        Notes
        -----
        A number that is a multiple of 1/2, as a count less half the batch, is on the grid already for
        deviations up to 2**29.
        """
        stream = (_check.integer("step", step), 0)
        if not _check.non_negative("stddev", stddev):
            return 0.0
        drawn = _Drawn(self._scalars, stream, stddev)
        value = np.zeros(1)
        drawn.add(value)
        return float(value[0])


class _Drawn:
    """The noise of one tensor at one step."""

    def __init__(
        self, key: bytes, stream: tuple[int, int], stddev: float, *, like: float | None = None, first: int = 0
    ) -> None:
        if not _MIN <= stddev <= 1 / _MIN:
            _check.refuse("stddevs", "be 0, or between 2**-400 and 2**400", stddev, "rescale the loss")
        self._key, self._stream, self._first = key, stream, first
        self._stddev, self._grid = stddev, _spacing(stddev if like is None else like)

    def add(self, entries: NDArray[Any]) -> None:
        """Round the entries to the grid and add noise to them.

        What is no number counts as 0, and what is beyond 2**52 grid steps as that; neither moves by more.
        """
        widest = _WIDEST * self._grid
        for start in range(0, entries.size, _PART):
            part = entries[start : start + _PART]
            held = np.clip(np.nan_to_num(part.astype(np.float64)), -widest, widest)
            whole = np.rint(held / self._grid).astype(np.int64)
            scale = self._stddev / self._grid
            index = self._first + start
            whole += rounded_normals(part.size, self._key, scale=scale, stream=self._stream, start=index)
            part[:] = whole.astype(np.float64) * self._grid
