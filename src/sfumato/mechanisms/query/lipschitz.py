"""Lipschitz functions of a query's answer, and their sensitivity."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.errors import UnboundedSensitivity
from sfumato.mechanisms.base.grid import Grid, as_grid
from sfumato.mechanisms.base.query import Query
from sfumato.mechanisms.base.rational import Number, floor_log2, plain
from sfumato.mechanisms.base.sensitivity import Norm, Shift
from sfumato.privacy.neighboring import Neighboring

__all__ = ["LipschitzMap"]

_FINE_BITS = 20


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LipschitzMap(Query):
    """A function of a query's answer that stretches distances by at most a constant.

    Parameters
    ----------
    query : Query
    function : callable
        Takes the query's exact answer (a number or an array), returns a float, or an array of ``size``
        floats.
    constant : int, float or Fraction
        ``norm(function(x) - function(y)) <= constant * norm(x - y)`` for all x and y.
    norm : Norm
        The norm, the same on both sides: L1, L2 or LINF.
    size : int
        How many numbers the function returns.
    error : int, float or Fraction
        Bound on what float arithmetic adds to each number the function returns, in the unit of the answer;
        with the rounding of its argument to a float, where that is no multiple of a power of two.
    grid : Grid, optional
        What results are rounded to; unless given, a millionth of the constant times one step of the query.

    Raises
    ------
    ParameterError
        If a parameter breaks its rule.
    UnboundedSensitivity
        If the constant is infinite.

    Notes
    -----
    The sensitivity in ``norm`` is the constant times the query's, plus twice the float error, plus the
    rounding to the grid; the other norms follow from it by ``||v||_inf <= ||v||_2 <= ||v||_1``, the
    Cauchy-Schwarz inequality, and the number of entries. The constant is the caller's claim;
    ``check_sensitivity`` searches for violations.

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato.mechanisms import Count
    >>> capped = LipschitzMap(query=Count(), function=lambda n: min(n, 100), constant=1, norm=Norm.L1)
    >>> capped(np.zeros(1000)), capped.sensitivity(Neighboring.ADD_REMOVE, Norm.L1)
    (100.0, 1.0)
    """

    query: Query
    function: Callable[[Any], Any]
    constant: Number
    norm: Norm
    size: int = 1
    error: Number = 0
    grid: Grid = None  # type: ignore[assignment]  # settled in __post_init__

    def __post_init__(self) -> None:
        if self.constant == math.inf:
            raise UnboundedSensitivity(
                "constant must be finite, got inf; pass a bound on how far it stretches"
            )
        constant = _check.fraction("constant", self.constant)
        _check.non_negative("error", self.error)
        error = Fraction(0) if self.error == 0 else _check.fraction("error", self.error)
        # Python's own numbers: a numpy integer inside a Fraction would overflow without a word.
        object.__setattr__(self, "constant", plain(constant))
        object.__setattr__(self, "error", plain(error))
        if self.norm not in (Norm.L1, Norm.L2, Norm.LINF):
            remedy = "choose the norm in which the constant was proven"
            _check.refuse("norm", "be Norm.L1, Norm.L2 or Norm.LINF", self.norm, remedy)
        object.__setattr__(self, "size", _check.integer("size", self.size, minimum=1))
        given: Grid | None = self.grid
        if given is None:
            exponent = floor_log2(constant * self.query.step) - _FINE_BITS
            given = Grid(exponent=max(exponent, -1074))
        object.__setattr__(self, "grid", as_grid(given))

    @property
    def step(self) -> Fraction:
        """What one step is worth."""
        return self.grid.step

    @property
    def entries(self) -> int:
        """How many numbers the function returns."""
        return self.size

    def steps(self, data: Any) -> int | NDArray[np.int64]:
        """Return the function of the query's exact answer, rounded to steps.

        Parameters
        ----------
        data : array
            One record in each entry of the first axis.

        Returns
        -------
        int, or array of int64 of shape (entries,)
            In steps of `step`; private.
        """
        result = np.asarray(self.function(self.query(data)), dtype=np.float64)
        if result.size != self.size:
            remedy = "pass the number of entries that the function returns"
            _check.refuse("size", "be how many numbers the function returns", self.size, remedy)
        rounded = self.grid.round(result)
        return int(rounded.item()) if isinstance(rounded, np.ndarray) and self.size == 1 else rounded

    def shift(self, neighboring: Neighboring) -> Shift:
        """Return the query's bound times the constant, with float error and rounding counted.

        Parameters
        ----------
        neighboring : Neighboring
            Who may change, and how.

        Returns
        -------
        Shift
            In steps of `step`, in every norm.
        """
        step = self.query.step
        moved = Fraction(self.constant) * self.query.shift(neighboring).norm(self.norm) * step
        error = 2 * Fraction(self.error)
        if self.norm is Norm.LINF:
            return Shift.entries(self.size, self.grid.shift(moved + error))
        linf = self.grid.shift(moved + error)
        # The function's own move, its float error and the rounding of every entry: each norm by itself.
        total = moved + error * self.size
        l1 = self.grid.l1_shift(total, self.size)
        if self.norm is Norm.L2:
            l1 = self.size * linf
        squared = self.grid.l2_squared_shift(total, self.size)
        alone = Shift.entries(self.size, linf)
        return alone.tightest(Shift(l0=self.size, l1=l1, l2_squared=squared, linf=linf))
