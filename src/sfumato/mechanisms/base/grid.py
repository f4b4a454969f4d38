"""The power-of-two grid to which real values are rounded; the rounding is counted in the sensitivity.

Noise on a float lattice that depends on the value leaks it (I. Mironov, "On significance of the smallest
significant bits for differential privacy", CCS 2012). Here every value is rounded to a multiple of one public
step first, the noise is a whole number of steps, and so is the sensitivity: what neighboring inputs can
produce is the same set.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from numbers import Integral, Rational
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.mechanisms.base.columns import as_array
from sfumato.mechanisms.base.rational import Number, ceil_log2, floor_log2, power_of_two, sqrt_up

__all__ = ["LIMIT", "Grid", "as_grid", "clamp", "whole"]

LIMIT = 1 << 62
"""Values are clamped to this many steps on either side of zero; noise on top of it still fits into int64."""

_FINEST, _COARSEST = -1074, 960  # every multiple of the step up to 2**63 steps is then a finite float
_FINE_BITS = 20  # the automatic step is this many bits below the sensitivity
_NOISE_BITS = 39  # half the samplers' range: calibration may still raise the noise a little


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """The multiples of ``2**exponent``.

    Parameters
    ----------
    exponent : int
        Binary exponent of the step, from -1074 to 960.

    Notes
    -----
    Values are rounded half to even. One fixed rule covers the rest: NaN counts as 0, infinities and
    everything beyond ``2**62`` steps count as ``2**62`` steps of the same sign. The sensitivity that a caller
    states must hold for values after that rule.

    Examples
    --------
    >>> grid = Grid(exponent=-2)
    >>> grid.round(0.3), grid.round(float("nan")), grid.step
    (1, 0, Fraction(1, 4))
    """

    exponent: int

    def __post_init__(self) -> None:
        exponent = _check.integer("exponent", self.exponent, minimum=_FINEST)
        if exponent > _COARSEST:
            remedy = "pass a smaller one; larger values overflow a float"
            _check.refuse("exponent", f"be at most {_COARSEST}", exponent, remedy)
        object.__setattr__(self, "exponent", exponent)

    @classmethod
    def choose(cls, *, sensitivity: Fraction, noise: Fraction) -> Grid:
        """Choose a grid from public parameters alone.

        The step is about a millionth (2**-20) of the sensitivity, so that rounding costs at most a millionth
        of the noise, or coarser where the noise would otherwise exceed 2**39 steps. Values beyond ``2**42``
        sensitivities are then out of range and clamped; pass a coarser grid if that can happen.

        Parameters
        ----------
        sensitivity : int, float or Fraction
            How far one unit moves a value, in the value's unit.
        noise : int, float or Fraction
            The scale or standard deviation of the noise, in the same unit.

        Returns
        -------
        Grid
        """
        fine = floor_log2(sensitivity) - _FINE_BITS
        exponent = max(fine, ceil_log2(noise) - _NOISE_BITS)
        return cls(exponent=min(max(exponent, _FINEST), _COARSEST))

    @property
    def step(self) -> Fraction:
        """The distance between neighboring multiples."""
        return power_of_two(self.exponent)

    def round(self, value: Any, *, name: str = "value") -> Any:
        """Round a real scalar or array to whole steps.

        Parameters
        ----------
        value : int, float, Fraction or numpy array of integers or floats
        name : str
            What an error message calls the value.

        Returns
        -------
        int or int64 array
            Half-to-even, exact whatever the magnitudes.

        Raises
        ------
        ParameterError
            If the type is not numeric; never for a value.
        """
        if not isinstance(value, bool) and isinstance(value, Rational):
            return clamp(round(Fraction(int(value.numerator), int(value.denominator)) / self.step))
        array = as_array(value)
        if array.dtype.kind == "f" and array.dtype.itemsize <= 8 and not isinstance(value, list | tuple):
            steps = self._round_floats(array.astype(np.float64))
        elif array.dtype.kind in "iu" and not isinstance(value, list | tuple):
            steps = self._round_integers(whole(array))
        else:
            rule = "be a real number or a numpy array of them, of at most 64 bits"
            _check.refuse_state(name, rule, _kind(value), "convert it with numpy.asarray")
        return int(steps) if steps.ndim == 0 else steps

    def inside(self, bounds: tuple[Number, Number]) -> tuple[int, int]:
        """Return the smallest and the largest whole number of steps between two bounds, in range.

        Parameters
        ----------
        bounds : tuple of two numbers
            Lower and upper, in the value's unit.

        Returns
        -------
        tuple of two ints
            In steps.

        Examples
        --------
        >>> Grid(exponent=-2).inside((0.1, 1.0))
        (1, 4)
        """
        lower, upper = (Fraction(bound) / self.step for bound in bounds)
        return clamp(math.ceil(lower)), clamp(math.floor(upper))

    def _round_floats(self, array: NDArray[np.float64]) -> NDArray[np.int64]:
        with np.errstate(all="ignore"):
            # ldexp is exact, but for overflow (clamped below) and results far below half a step (0 anyway).
            steps = np.rint(np.ldexp(array, -self.exponent))
        return np.asarray(np.clip(np.nan_to_num(steps, nan=0.0), -LIMIT, LIMIT), dtype=np.int64)

    def _round_integers(self, array: NDArray[np.int64]) -> NDArray[np.int64]:
        if self.exponent > 0:
            shift = min(self.exponent, 63)  # |array| <= 2**62, so from 63 on everything rounds to 0
            if shift == 63:
                return np.zeros_like(array)
            below = array >> shift
            rest = array - (below << shift)
            half = 1 << (shift - 1)
            up = (rest > half) | ((rest == half) & (below & 1 == 1))
            return np.asarray(below + up, dtype=np.int64)
        shift = min(-self.exponent, 62)
        limit = LIMIT >> -self.exponent
        steps = np.clip(array, -limit, limit) << shift
        return np.where(array > limit, LIMIT, np.where(array < -limit, -LIMIT, steps)).astype(np.int64)

    def shift(self, sensitivity: Fraction) -> int:
        """Return the most whole steps that a value can move which moves by at most ``sensitivity``.

        Parameters
        ----------
        sensitivity : int, float or Fraction
            In the value's unit.

        Returns
        -------
        int
            In steps.

        Notes
        -----
        For ``|a - b| = d`` steps, rounding half to even moves by at most ``floor(d) + 1``, and by exactly d
        where d is an even whole number. Rounding is monotone, so an even ``sensitivity / step`` costs nothing
        at all.

        Examples
        --------
        >>> grid = Grid(exponent=0)
        >>> grid.shift(Fraction(2)), grid.shift(Fraction(3)), grid.shift(Fraction(1, 10))
        (2, 4, 1)
        """
        steps = sensitivity / self.step
        if steps.denominator == 1 and steps.numerator % 2 == 0:
            return steps.numerator
        return math.floor(steps) + 1

    def l1_shift(self, l1: Fraction, l0: int) -> int:
        """Return the largest L1 norm, in steps, where at most ``l0`` entries move by ``l1`` in total.

        Parameters
        ----------
        l1 : int, float or Fraction
            L1 sensitivity, in the value's unit.
        l0 : int
            How many entries move at most.

        Returns
        -------
        int
            In steps.
        """
        # The sum of floor(d_i) + 1 over the entries that move.
        return math.floor(l1 / self.step) + l0

    def l2_squared_shift(self, l2: Fraction, l0: int) -> int:
        """Return the largest squared L2 norm, in steps, where at most ``l0`` entries move by ``l2``.

        Parameters
        ----------
        l2 : int, float or Fraction
            L2 sensitivity, in the value's unit.
        l0 : int
            How many entries move at most.

        Returns
        -------
        int
            In squared steps.
        """
        # The triangle inequality: ||d + 1||_2 <= ||d||_2 + sqrt(l0); a sum of squared integers is an integer.
        steps = l2 / self.step
        return math.floor(steps**2 + 2 * sqrt_up(steps**2 * l0) + l0)


def as_grid(value: object) -> Grid:
    """Return a grid, or refuse what is none."""
    if not isinstance(value, Grid):
        _check.refuse_type("grid", "be a Grid", value, "pass Grid(exponent=...)")
    return value


def clamp(steps: int) -> int:
    """Return the nearest number of steps in range."""
    return max(-LIMIT, min(LIMIT, steps))


def whole(value: Any, *, name: str = "value", remedy: str = "") -> Any:
    """Return an integer, or an integer array as int64, clamped to ``2**62`` on either side.

    Raises
    ------
    ParameterError
        If the type is not integral; never for a value.
    """
    if not isinstance(value, bool) and isinstance(value, Integral):
        return clamp(int(value))
    array = as_array(value)
    if array.dtype.kind not in "iu" or isinstance(value, list | tuple):
        if isinstance(value, list | tuple):
            remedy = "convert it with numpy.asarray"
        _check.refuse_state(
            name, "be an int or a numpy array of integers", _kind(value), remedy or "pass whole numbers"
        )
    # Unsigned numbers are cut from above only: -LIMIT has no position in their type.
    lowest = -LIMIT if array.dtype.kind == "i" else 0
    bounds = np.iinfo(array.dtype)
    clamped = np.clip(array, max(lowest, bounds.min), min(LIMIT, bounds.max))
    return int(clamped) if array.ndim == 0 else clamped.astype(np.int64)


def _kind(value: object) -> str:
    """Return what an error may reveal of a value: its type, and nothing of an array's size."""
    if isinstance(value, np.ndarray):
        return f"it is an array of {value.dtype}"
    return f"it is a value of type {type(value).__name__}"
