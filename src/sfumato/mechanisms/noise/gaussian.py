"""The Gaussian mechanism: discrete Gaussian noise on integers or on a grid."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, final

from sfumato.mechanisms.base.additive import as_bound, as_entries, as_number
from sfumato.mechanisms.base.calibration import PrivacyTarget, minimum_noise
from sfumato.mechanisms.base.grid import Grid
from sfumato.mechanisms.base.measurement import MeasuringMechanism
from sfumato.mechanisms.base.rational import Number, plain, sqrt_up
from sfumato.mechanisms.base.sensitivity import Shift
from sfumato.numerics.distributions.discrete import DiscreteGaussianDistribution
from sfumato.privacy.calibration import analytic_gaussian_stddev
from sfumato.privacy.leaves.discrete_gaussian import DiscreteGaussian
from sfumato.privacy.leaves.discrete_gaussian_vector import DiscreteGaussianVector
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring

__all__ = ["Gaussian"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Gaussian(MeasuringMechanism):
    """Noise with ``P(x)`` proportional to ``exp(-x**2 / (2 stddev**2))``, on the integers or on a grid.

    Parameters
    ----------
    sensitivity : int, float or Fraction, optional
        The most that one unit moves an entry.
    stddev : int, float or Fraction
        Standard deviation of the noise, in the unit of the values (the parameter of the distribution, above
        its true standard deviation where that is under a few steps).
    l0 : int, optional
        The most entries of an array that one unit moves; 1 unless given. Where ``l2`` is given and values are
        real it must be given too (the array's size always holds).
    l2 : int, float or Fraction, optional
        Instead of ``sensitivity``: the most that one unit moves all entries together, in the L2 norm.
    grid : Grid, optional
        What values are rounded to; chosen from ``sensitivity`` and ``stddev`` unless given.
    integral : bool, optional
        Whether values are whole numbers, to which the noise is added as they are; else they are real and
        rounded to the grid first. Unless given: whether the sensitivity is an int and no grid is given.
    neighboring : Neighboring
        The relation under which ``sensitivity``, ``l0`` and ``l2`` are stated.

    Raises
    ------
    ParameterError
        If a parameter breaks its rule.
    UnboundedSensitivity
        If the sensitivity is infinite.

    Notes
    -----
    Guarantee: the loss is ``DiscreteGaussian(stddev, s) * l0`` in steps, where s is the sensitivity with the
    rounding counted (see ``Grid.shift``), under ``neighboring``: at most l0 entries move, each by at most s.
    With ``l2`` it is ``DiscreteGaussianVector(stddev, l2**2)``, which holds for every integer shift of that
    norm. Condition: the caller's sensitivity holds. The distribution is not rotation-invariant, so it is
    never priced as a continuous Gaussian.

    References
    ----------
    Canonne, Kamath, Steinke, "The discrete Gaussian for differential privacy" (NeurIPS 2020): the
    distribution, its zCDP in one and more dimensions, and its exact profile. The continuous Gaussian's
    analytic calibration is ``sfumato.privacy.analytic_gaussian_stddev`` (Balle, Wang, ICML 2018); here it
    only starts the search.

    Examples
    --------
    >>> count = Gaussian.calibrated(sensitivity=1, epsilon=1.0, delta=1e-6)
    >>> round(float(count.stddev), 2), count.privacy_loss.epsilon(1e-6) <= 1.0
    (4.23, True)
    """

    sensitivity: Number | None = None
    stddev: Number
    l0: int = None  # type: ignore[assignment]  # settled in __post_init__
    l2: Number | None = None
    grid: Grid = None  # type: ignore[assignment]  # settled in __post_init__
    neighboring: Neighboring = Neighboring.ADD_REMOVE
    integral: bool = field(default=None, repr=False)  # type: ignore[assignment]  # settled in __post_init__

    def __post_init__(self) -> None:
        remedy = "pass epsilon= and delta= to Gaussian.calibrated to have it chosen"
        object.__setattr__(self, "stddev", as_number("stddev", self.stddev, remedy))
        self._settle()
        self._check_range("stddev")

    @classmethod
    def calibrated(
        cls,
        *,
        epsilon: float,
        delta: float,
        sensitivity: Number | None = None,
        l0: int | None = None,
        l2: Number | None = None,
        grid: Grid | None = None,
        integral: bool | None = None,
        neighboring: Neighboring = Neighboring.ADD_REMOVE,
    ) -> Gaussian:
        """Return the mechanism with the smallest noise whose discrete loss meets (epsilon, delta).

        Parameters
        ----------
        epsilon, delta : float
            The guarantee; delta must be positive.
        sensitivity, l0, l2, grid, integral, neighboring
            As in the class.

        Returns
        -------
        Gaussian
            Its stddev is the smallest, to one part in a million, at which
            ``privacy_loss.quick_epsilon(delta)``, which is what a ledger charges, is at most epsilon.
        """
        request = PrivacyTarget.approximate(epsilon, delta, "use Laplace for delta 0")
        if l2 is not None:
            norm = float(as_bound("l2", l2))
        else:
            norm = float(as_bound("sensitivity", sensitivity)) * math.sqrt(as_entries(l0))
        template = cls(
            sensitivity=sensitivity,
            stddev=analytic_gaussian_stddev(sensitivity=norm, epsilon=request.epsilon, delta=request.delta),
            l0=l0,  # type: ignore[arg-type]
            l2=l2,
            grid=grid,  # type: ignore[arg-type]
            integral=integral,  # type: ignore[arg-type]
            neighboring=neighboring,
        )
        steps = float(sqrt_up(Fraction(template._total_squared())))
        start = analytic_gaussian_stddev(sensitivity=steps, epsilon=request.epsilon, delta=request.delta)
        stddev = minimum_noise(template._price, request, Fraction(start))
        return replace(template, stddev=plain(stddev * template.grid.step))

    @classmethod
    def _for_shift(cls, shift: Shift, **request: Any) -> Gaussian:
        if shift.l0 * shift.linf**2 <= shift.l2_squared:
            return cls.calibrated(sensitivity=shift.linf, l0=shift.l0, **request)
        return cls.calibrated(l2=sqrt_up(Fraction(shift.l2_squared)), integral=True, **request)

    @property
    def distribution(self) -> DiscreteGaussianDistribution:
        """The distribution of the noise on each entry, in steps."""
        return DiscreteGaussianDistribution(self._noise() / self.grid.step)

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
        if self.l2 is not None:
            return shift.l2_squared <= self._total_squared()
        return shift.within(Shift.entries(self.l0, self._per_entry()))

    def _noise(self) -> Fraction:
        return Fraction(self.stddev)

    def _overall(self) -> tuple[str, Number | None]:
        return "l2", self.l2

    def _total_squared(self) -> int:
        if self.l2 is None:
            return self._per_entry() ** 2 * self.l0
        if self.integral:
            return max(1, math.floor(Fraction(self.l2) ** 2))
        return self.grid.l2_squared_shift(Fraction(self.l2), self.l0)

    def _price(self, noise: Fraction) -> PrivacyLoss:
        if self.l2 is not None:
            return DiscreteGaussianVector(noise, self._total_squared(), neighboring=self.neighboring)
        return _loss_of_entries(noise, self._per_entry(), self.l0, self.neighboring)


@lru_cache(maxsize=256)
def _loss_of_entries(noise: Fraction, per_entry: int, l0: int, neighboring: Neighboring) -> PrivacyLoss:
    """Return the loss of noise on that many entries, which all releases of a mechanism share."""
    return DiscreteGaussian(noise, per_entry, neighboring=neighboring) * l0
