"""The lattice of values that a mechanism works on: integers, or reals rounded to a grid."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

from sfumato import _check
from sfumato.mechanisms.base.grid import Grid, as_grid, whole
from sfumato.mechanisms.base.rational import Number, plain

__all__ = ["Lattice"]

_WIDEST = 1 << 40  # the samplers' range, in steps
_REALS = "pass a float sensitivity, or a grid, to the mechanism where values are real"


@final
@dataclass(frozen=True, slots=True)
class Lattice:
    """The whole steps that a mechanism works in.

    Parameters
    ----------
    grid : Grid
        Of step 1 where values are whole numbers.
    integral : bool
        Whether values must be whole numbers, which are taken as they are.

    Examples
    --------
    >>> lattice = Lattice.settle(0.5, noise=Fraction(1))
    >>> lattice.grid, lattice.integral
    (Grid(exponent=-21), False)
    """

    grid: Grid
    integral: bool

    @classmethod
    def settle(
        cls,
        sensitivity: Number,
        *,
        noise: Fraction,
        grid: Grid | None = None,
        integral: bool | None = None,
        share: Fraction | None = None,
    ) -> Lattice:
        """Resolve what was left open, from public parameters.

        Parameters
        ----------
        sensitivity : int, float or Fraction
            Its type tells the kind of values: an int without a grid means whole numbers.
        noise : Fraction
            Scale of the widest noise, in the unit of the values.
        grid : Grid, optional
        integral : bool, optional
        share : Fraction, optional
            What the grid is chosen for instead of the sensitivity: the part of it that one entry moves.
        """
        if integral is None:
            integral = isinstance(sensitivity, int) and grid is None
        if not isinstance(integral, bool):
            _check.refuse("integral", "be True, False or None", integral, "leave it out to follow the value")
        if integral:
            if grid not in (None, Grid(exponent=0)):
                _check.refuse(
                    "grid", "be left out where values are whole numbers", grid, "pass integral=False"
                )
            return cls(Grid(exponent=0), integral=True)
        if grid is None:
            fine = Fraction(sensitivity) if share is None else share
            grid = Grid.choose(sensitivity=fine, noise=noise)
        return cls(as_grid(grid), integral=False)

    @classmethod
    def settle_in(cls, mechanism: Any, noise: Fraction, share: Fraction | None = None) -> Lattice:
        """Resolve what a mechanism's parameters left open, and store grid and kind of values in it."""
        lattice = cls.settle(
            mechanism.sensitivity,
            noise=noise,
            grid=mechanism.grid,
            integral=mechanism.integral,
            share=share,
        )
        object.__setattr__(mechanism, "grid", lattice.grid)
        object.__setattr__(mechanism, "integral", lattice.integral)
        return lattice

    @property
    def step(self) -> int | Fraction:
        """What one step is worth; the int 1 where values are whole numbers."""
        return 1 if self.integral else self.grid.step

    def steps(self, value: Any, *, name: str = "value") -> Any:
        """Return a value, or an array of them, in whole steps: an int, or an int64 array.

        Raises
        ------
        ParameterError
            If the type does not fit; never for a value.
        """
        return whole(value, name=name, remedy=_REALS) if self.integral else self.grid.round(value, name=name)

    def shift(self, sensitivity: Number) -> int:
        """Return the most steps that a value moves which moves by at most ``sensitivity``; at least 1."""
        exact = Fraction(sensitivity)
        return max(1, math.floor(exact)) if self.integral else self.grid.shift(exact)

    def check_noise(self, name: str, noise: Fraction) -> None:
        """Refuse noise that the samplers cannot draw on this lattice."""
        if not 1 / Fraction(_WIDEST) <= noise / self.grid.step <= _WIDEST:
            rule = f"be from 2**-40 to 2**40 steps of {self.grid}"
            _check.refuse(name, rule, plain(noise), "pass another grid, or values in other units")
