"""Noise for smooth sensitivity: its distributions, privacy losses and calibration."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any, Final, Literal, Self, TypeAlias

from sfumato import _check
from sfumato.mechanisms.base.additive import as_number
from sfumato.mechanisms.base.calibration import PrivacyTarget, minimum_noise, minimum_pure_noise
from sfumato.mechanisms.base.grid import LIMIT, Grid
from sfumato.mechanisms.base.mechanism import Mechanism
from sfumato.mechanisms.base.rational import Number, plain
from sfumato.mechanisms.base.release import Release
from sfumato.mechanisms.local_sensitivity.bounded_column import BoundedColumn
from sfumato.mechanisms.local_sensitivity.smooth_sensitivity import MINIMUM_SMOOTHNESS
from sfumato.numerics.randomness.source import Rng, random_source
from sfumato.numerics.rounding import fraction_up
from sfumato.numerics.sampling.rounded_noise import Draw, exponential, normal, rounded, student
from sfumato.privacy.leaves.smooth_noise import SmoothGaussian, SmoothLaplace
from sfumato.privacy.leaves.smooth_sensitivity import SmoothSensitivity
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring

__all__ = ["SmoothNoise", "SmoothStatistic"]

SmoothNoise: TypeAlias = Literal["student", "cauchy", "laplace", "gaussian"]

_DEGREES: Final = {"student": 3, "cauchy": 1}
_DRAWS: Final[dict[str, Draw]] = {
    "student": student(3),
    "cauchy": student(1),
    "laplace": exponential,
    "gaussian": normal,
}
_MAX_SMOOTHNESS: Final = 64
_ENOUGH: Final = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class SmoothStatistic(Mechanism):
    """A statistic of a column, with noise as wide as a smooth bound on its local sensitivity.

    A subclass has a centre and a smooth bound on its local sensitivity, both in steps.
    """

    bounds: tuple[Number, Number]
    noise_multiplier: Number
    smoothness: Number
    noise: SmoothNoise = "student"
    grid: Grid = None  # type: ignore[assignment]  # settled in __post_init__
    neighboring: Neighboring = Neighboring.ADD_REMOVE

    def __post_init__(self) -> None:
        column = BoundedColumn.settle(self.bounds, self.grid)
        object.__setattr__(self, "bounds", column.bounds)
        object.__setattr__(self, "grid", column.grid)
        for name in ("noise_multiplier", "smoothness"):
            remedy = f"pass epsilon= to {type(self).__name__}.calibrated to have it chosen"
            object.__setattr__(self, name, as_number(name, getattr(self, name), remedy))
        if not MINIMUM_SMOOTHNESS <= Fraction(self.smoothness) <= _MAX_SMOOTHNESS:
            remedy = "pass epsilon= to the class method calibrated to have it chosen"
            _check.refuse("smoothness", "be from 2**-20 to 64", self.smoothness, remedy)
        if self.noise not in _DRAWS:
            remedy = "pass 'student' without a delta, 'laplace' with one"
            _check.refuse("noise", "be 'student', 'cauchy', 'laplace' or 'gaussian'", self.noise, remedy)
        self._settle()
        _ = self.privacy_loss  # the leaf checks the relation

    @abstractmethod
    def _settle(self) -> None:
        """Check what a subclass adds."""

    @abstractmethod
    def _around(self, data: Any) -> tuple[int, Fraction]:
        """Return the statistic, and the smooth bound on its local sensitivity, both in steps."""

    @classmethod
    def calibrated(
        cls,
        *,
        epsilon: float,
        delta: float = 0.0,
        noise: SmoothNoise | None = None,
        smoothness: Number | None = None,
        **parameters: Any,
    ) -> Self:
        """Return the mechanism with the smallest noise multiplier whose loss meets (epsilon, delta).

        Parameters
        ----------
        epsilon : float
        delta : float
            Used by Laplace and Gaussian noise, which need one.
        noise : str, optional
            Unless given: "laplace" if there is a delta, else "student".
        smoothness : int, float or Fraction, optional
            Unless given: half of epsilon is spent on it by Student's and Cauchy noise; for Laplace noise it
            is ``epsilon / (2 log(2 / delta))`` (Nissim, Raskhodnikova, Smith 2007), for Gaussian noise a
            quarter of that.
        **parameters
            The other ones of the class.

        Returns
        -------
        SmoothStatistic
            Of the class.

        Raises
        ------
        ParameterError
            If the noise needs a delta that is not there, or the smoothness alone costs too much.
        """
        request = PrivacyTarget(epsilon=epsilon, delta=delta)
        distribution: SmoothNoise = noise or ("laplace" if request.delta else "student")
        if distribution not in _DRAWS:
            remedy = "'student' needs no delta, 'laplace' and 'gaussian' do"
            _check.refuse("noise", "be 'student', 'cauchy', 'laplace' or 'gaussian'", distribution, remedy)
        if distribution not in _DEGREES and not request.delta:
            _check.refuse(
                "delta", f"be positive for {distribution} noise", delta, "pass a delta, or noise='student'"
            )
        wanted = (
            _smoothness(distribution, request)
            if smoothness is None
            else _check.fraction("smoothness", smoothness)
        )
        price = _price(distribution, wanted, parameters.get("neighboring", Neighboring.ADD_REMOVE))
        if not request.met_by(price(_ENOUGH / Fraction(request.epsilon))):
            _check.refuse(
                "smoothness", "be small enough to cost less than epsilon", plain(wanted), "pass a smaller one"
            )
        return cls(
            noise_multiplier=plain(_multiplier(distribution, wanted, price, request)),
            smoothness=plain(wanted),
            noise=distribution,
            **parameters,
        )

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """The loss of one release, whatever the data."""
        return _loss(self.noise, Fraction(self.smoothness), self.neighboring, Fraction(self.noise_multiplier))

    def smooth_sensitivity(self, data: Any) -> float:
        """Return the smooth bound on the local sensitivity: private, for tests and for the data's owner.

        Parameters
        ----------
        data : array, list or column of shape (n,)

        Returns
        -------
        float
            In the unit of the data, rounded up.
        """
        return fraction_up(self._around(data)[1] * self.grid.step)

    def release(self, value: Any, rng: Rng = None) -> Release:
        """Release the statistic of a column.

        Parameters
        ----------
        value : array, list or column of shape (n,)
            One real number per record; not changed.
        rng : None, int, numpy Generator or RandomSource
            None draws from the operating system's entropy; anything seeded only simulates.

        Returns
        -------
        Release
            Of a number within the bounds; it has no interval, as its width would depend on the data.
        """
        source = random_source(rng)
        return self._release_as(Release, self.outputs(value, 1, source)[0], source)

    def outputs(self, value: Any, size: int, rng: Rng = None) -> list[int | float]:
        """Draw many answers at once; see `Mechanism.outputs`."""
        size = _check.integer("size", size, minimum=1)
        source, column = random_source(rng), self._column
        centre, sensitivity = self._around(value)
        scale = Fraction(self.noise_multiplier) * sensitivity
        lower, upper = column.ends
        noisy = (centre + rounded(_DRAWS[self.noise], scale, LIMIT, source) for _ in range(size))
        return [column.value(max(lower, min(upper, steps))) for steps in noisy]

    @property
    def _column(self) -> BoundedColumn:
        return BoundedColumn(self.bounds, self.grid)


def _price(noise: str, smoothness: Fraction, neighboring: Neighboring) -> Callable[[Fraction], PrivacyLoss]:
    return partial(_loss, noise, smoothness, neighboring)


@lru_cache(maxsize=64)
def _loss(noise: str, smoothness: Fraction, neighboring: Neighboring, multiplier: Fraction) -> PrivacyLoss:
    smooth: Any = smoothness  # the leaf rounds both numbers to the private side
    given: Any = multiplier
    if noise == "laplace":
        return SmoothLaplace(given, smoothness=smooth, neighboring=neighboring)
    if noise == "gaussian":
        return SmoothGaussian(given, smoothness=smooth, neighboring=neighboring)
    degrees = float(_DEGREES[noise])
    return SmoothSensitivity(given, smoothness=smooth, degrees=degrees, neighboring=neighboring)


def _smoothness(noise: str, request: PrivacyTarget) -> Fraction:
    if noise in _DEGREES:
        return request.exact_epsilon / (2 * _DEGREES[noise])
    share = 2 if noise == "laplace" else 8
    return Fraction(request.epsilon / (share * math.log(2 / request.delta)))


def _multiplier(
    noise: str, smoothness: Fraction, price: Callable[[Fraction], PrivacyLoss], request: PrivacyTarget
) -> Fraction:
    if noise not in _DEGREES:
        return minimum_noise(price, request, 2 / request.exact_epsilon)
    degrees = _DEGREES[noise]
    left = request.exact_epsilon - degrees * smoothness
    return minimum_pure_noise(price, request, Fraction((degrees + 1) / (2 * math.sqrt(degrees))) / left)
