"""The Laplace mechanism: discrete Laplace noise on integers or on a grid."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, final

from sfumato.mechanisms.base.additive import as_bound, as_entries, as_number
from sfumato.mechanisms.base.calibration import PrivacyTarget, cheapest_noise
from sfumato.mechanisms.base.grid import Grid
from sfumato.mechanisms.base.measurement import MeasuringMechanism
from sfumato.mechanisms.base.rational import Number, plain
from sfumato.mechanisms.base.sensitivity import Shift
from sfumato.numerics.decimals import outward
from sfumato.numerics.distributions.discrete import DiscreteLaplaceDistribution
from sfumato.privacy.leaves.declared import PureDP
from sfumato.privacy.leaves.discrete_laplace import DiscreteLaplace
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring

__all__ = ["Laplace"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Laplace(MeasuringMechanism):
    """Noise with ``P(x)`` proportional to ``exp(-|x| / scale)``, on the integers or on a grid.

    Parameters
    ----------
    sensitivity : int, float or Fraction, optional
        The most that one unit moves an entry.
    scale : int, float or Fraction
        Scale b of the noise, in the unit of the values.
    l0 : int, optional
        The most entries of an array that one unit moves; 1 unless given. Where ``l1`` is given and values are
        real it must be given too (the array's size always holds).
    l1 : int, float or Fraction, optional
        Instead of ``sensitivity``: the most that one unit moves all entries together, in the L1 norm.
    grid : Grid, optional
        What values are rounded to; chosen from ``sensitivity`` and ``scale`` unless given.
    integral : bool, optional
        Whether values are whole numbers, to which the noise is added as they are; else they are real and
        rounded to the grid first. Unless given: whether the sensitivity is an int and no grid is given.
    neighboring : Neighboring
        The relation under which ``sensitivity``, ``l0`` and ``l1`` are stated.

    Raises
    ------
    ParameterError
        If a parameter breaks its rule.
    UnboundedSensitivity
        If the sensitivity is infinite.

    Notes
    -----
    Guarantee: ``s * l0 / scale``-DP in steps, where s is the sensitivity with the rounding counted (see
    ``Grid.shift``), under ``neighboring``; condition: the caller's sensitivity holds. The loss is
    ``DiscreteLaplace(scale, s) * l0``, which also knows its profile at every delta; with ``l1`` it is the
    pure bound ``PureDP(l1 / scale)``, which holds for every shift of that norm.

    References
    ----------
    Dwork, McSherry, Nissim, Smith, "Calibrating noise to sensitivity in private data analysis" (TCC 2006);
    Ghosh, Roughgarden, Sundararajan, "Universally utility-maximizing privacy mechanisms" (STOC 2009) for the
    discrete distribution.

    Examples
    --------
    >>> Laplace(sensitivity=1, scale=2).privacy_loss.epsilon()
    0.5
    >>> Laplace.calibrated(sensitivity=1, epsilon=0.1).scale
    10
    >>> Laplace(sensitivity=0.5, scale=1.0).grid
    Grid(exponent=-21)
    """

    sensitivity: Number | None = None
    scale: Number
    l0: int = None  # type: ignore[assignment]  # settled in __post_init__
    l1: Number | None = None
    grid: Grid = None  # type: ignore[assignment]  # settled in __post_init__
    neighboring: Neighboring = Neighboring.ADD_REMOVE
    integral: bool = field(default=None, repr=False)  # type: ignore[assignment]  # settled in __post_init__

    def __post_init__(self) -> None:
        remedy = "pass epsilon= to Laplace.calibrated to have it chosen"
        object.__setattr__(self, "scale", as_number("scale", self.scale, remedy))
        self._settle()
        self._check_range("scale")

    @classmethod
    def calibrated(
        cls,
        *,
        epsilon: float,
        delta: float = 0.0,
        sensitivity: Number | None = None,
        l0: int | None = None,
        l1: Number | None = None,
        grid: Grid | None = None,
        integral: bool | None = None,
        neighboring: Neighboring = Neighboring.ADD_REMOVE,
    ) -> Laplace:
        """Return the mechanism with the smallest noise whose loss meets (epsilon, delta).

        Parameters
        ----------
        epsilon : float
        delta : float
            Used only where it buys less noise: for many entries at once.
        sensitivity, l0, l1, grid, integral, neighboring
            As in the class.

        Returns
        -------
        Laplace
            At ``delta=0`` the scale is ``s * l0 / epsilon`` (``l1 / epsilon``), rounded up by less than 1e-9
            to a fraction with a small denominator; at ``delta > 0`` the smallest that the loss proves, to
            1e-6, where that is less by a thousandth or more.
        """
        request = PrivacyTarget(epsilon=epsilon, delta=delta)
        maximum = as_bound("sensitivity", sensitivity) * as_entries(l0) if l1 is None else as_bound("l1", l1)
        template = cls(
            sensitivity=sensitivity,
            scale=Fraction(maximum) / request.exact_epsilon,
            l0=l0,  # type: ignore[arg-type]
            l1=l1,
            grid=grid,  # type: ignore[arg-type]
            integral=integral,  # type: ignore[arg-type]
            neighboring=neighboring,
        )
        steps = cheapest_noise(template._price, request, template._total() / request.exact_epsilon)
        return replace(template, scale=plain(steps * template.grid.step))

    @classmethod
    def _for_shift(cls, shift: Shift, **request: Any) -> Laplace:
        if shift.l0 * shift.linf <= shift.l1:
            return cls.calibrated(sensitivity=shift.linf, l0=shift.l0, **request)
        return cls.calibrated(l1=shift.l1, **request)

    @property
    def distribution(self) -> DiscreteLaplaceDistribution:
        """The distribution of the noise on each entry, in steps."""
        return DiscreteLaplaceDistribution(self._noise() / self.grid.step)

    @property
    def stddev(self) -> float:
        """Standard deviation of the noise on each entry, in the unit of the values."""
        return self.distribution.stddev * float(self.grid.step)

    def covers(self, shift: Shift) -> bool:
        """Return whether a value that moves by at most ``shift`` (in steps) is protected as the loss says.

        Parameters
        ----------
        shift : Shift
            A bound on the move, in steps of the mechanism's grid.

        Returns
        -------
        bool
        """
        if self.l1 is not None:
            return shift.l1 <= self._total()
        return shift.within(Shift.entries(self.l0, self._per_entry()))

    def _noise(self) -> Fraction:
        return Fraction(self.scale)

    def _overall(self) -> tuple[str, Number | None]:
        return "l1", self.l1

    def _total(self) -> int:
        if self.l1 is None:
            return self._per_entry() * self.l0
        if self.integral:
            return max(1, math.floor(self.l1))
        return self.grid.l1_shift(Fraction(self.l1), self.l0)

    def _price(self, noise: Fraction) -> PrivacyLoss:
        if self.l1 is not None:
            return PureDP(outward(self._total() / noise), neighboring=self.neighboring)
        return _loss_of_entries(noise, self._per_entry(), self.l0, self.neighboring)


@lru_cache(maxsize=256)
def _loss_of_entries(noise: Fraction, per_entry: int, l0: int, neighboring: Neighboring) -> PrivacyLoss:
    """Return the loss of noise on that many entries, which all releases of a mechanism share."""
    return DiscreteLaplace(noise, per_entry, neighboring=neighboring) * l0
