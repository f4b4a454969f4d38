"""The client half of protocols for numbers between two bounds, which become grid points by chance."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.errors import ParameterError
from sfumato.local.device.base.randomizer import Randomizer
from sfumato.local.device.base.record_layout import Records
from sfumato.numerics.randomness.source import RandomSource

__all__ = ["NumericRandomizer"]

_FINEST: Final = 1 << 14
_UNIFORM_BITS: Final = 53


@dataclass(frozen=True, slots=True, kw_only=True)
class NumericRandomizer(Randomizer):
    r"""A client half that reports a number from a lower to an upper bound.

    Parameters
    ----------
    epsilon : float
        See `Randomizer`.
    bounds : tuple of float
        The lower and the upper bound of true numbers; public.
    steps : int
        Of the grid between them, up to 2^14: grid points are counted from 0 to ``steps``.

    Notes
    -----
    *Rounding.* A number between two grid points goes to either by chance, so that its mean stays (to
    2^-53 of a step). This comes before the randomization: a report's distribution is a mixture of those
    of two grid points, and what holds for all pairs of grid points holds for all pairs of numbers.
    """

    chosen: ClassVar[tuple[str, ...]] = ("epsilon", "bounds", "steps")

    bounds: tuple[float, float]
    steps: int = 2048

    def _prepare(self) -> None:
        self._set(bounds=_two_bounds(self.bounds))
        steps = _check.integer("steps", self.steps, minimum=1)
        if steps > _FINEST:
            _check.refuse("steps", f"be at most {_FINEST}", steps, "take fewer: the noise hides finer ones")
        self._set(steps=steps)
        self._choose()

    @abstractmethod
    def _choose(self) -> None:
        """Set the exact chances, with `_set`."""

    @abstractmethod
    def _encode(self, positions: NDArray[np.int64], source: RandomSource) -> Records:
        """Return one stamped record for each grid point."""

    def _records(self, values: Any, source: RandomSource) -> Records:
        positions = self._positions(values)
        low = np.minimum(positions.astype(np.int64), self.steps - 1)
        above = np.ldexp(positions - low, _UNIFORM_BITS).astype(np.uint64)
        return self._encode(low + (source.words(len(low)) >> np.uint64(64 - _UNIFORM_BITS) < above), source)

    def _positions(self, values: Any) -> NDArray[np.float64]:
        """Return where numbers lie, in steps of the grid; the one error does not show them."""
        lower, upper = self.bounds
        try:
            given = np.asarray(values)
        except ValueError:
            given = np.array(None)
        if (
            given.dtype.kind not in "iuf"
            or given.ndim != 1
            or not ((given >= lower) & (given <= upper)).all()
        ):
            raise ParameterError(
                f"values must be numbers from {lower} to {upper}, one per respondent, got others; "
                "clip them on the device"
            )
        return np.asarray((given.astype(np.float64) - lower) / (upper - lower) * self.steps)


def _two_bounds(given: Any) -> tuple[float, float]:
    """Return the bounds as two floats, the first below the second."""
    if not isinstance(given, tuple | list) or len(given) != 2:
        _check.refuse_type("bounds", "be a lower and an upper bound", given, "pass (lower, upper)")
    lower, upper = (_check.finite("bounds", bound) for bound in given)
    if not 0 < upper - lower < float("inf"):
        _check.refuse(
            "bounds",
            "be a lower bound and a greater upper one",
            (lower, upper),
            "exchange them, or widen them",
        )
    return lower, upper
