"""The base of this room's mechanisms: exact Laplace noise on a grid, and a guarantee instead of a DP loss."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

import numpy as np

from sfumato import _check
from sfumato.mechanisms.base.grid import Grid
from sfumato.mechanisms.base.lattice import Lattice
from sfumato.mechanisms.base.rational import Number, ceil_log2, floor_log2
from sfumato.mechanisms.base.release import read_only
from sfumato.numerics.distributions.discrete import DiscreteLaplaceDistribution, SymmetricDistribution
from sfumato.numerics.interval import Interval
from sfumato.numerics.randomness.source import Rng, random_source
from sfumato.numerics.rounding import fraction_down, fraction_up
from sfumato.pufferfish.release.guarantee import PufferfishGuarantee

__all__ = ["PufferfishMechanism", "PufferfishRelease", "lattice_for"]

_FINE_BITS = 26  # the step is this many bits below the sensitivity, so that rounding costs next to nothing
_NOISE_BITS = 38


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PufferfishRelease:
    """A noisy answer that may be shown, with its Pufferfish guarantee.

    Parameters
    ----------
    value : int, float or array
        The noisy answer.
    step : int or Fraction
        Distance between the points that answers lie on.
    distribution : SymmetricDistribution
        Distribution of each entry's noise, in steps; public.
    guarantee : PufferfishGuarantee
    simulated : bool
        Whether the randomness came from a seed; such a release protects nobody.

    Examples
    --------
    >>> from sfumato import pufferfish
    >>> chain = pufferfish.MarkovChain(transition=[[0.9, 0.1], [0.4, 0.6]])
    >>> release = pufferfish.MarkovQuilt(chain=chain, length=100, lipschitz=1, epsilon=1.0).release(31, rng=3)
    >>> release.simulated, release.stddev > 18
    (True, True)
    """

    value: Any
    step: int | Fraction
    distribution: SymmetricDistribution
    guarantee: PufferfishGuarantee
    simulated: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", read_only(self.value))

    def __repr__(self) -> str:
        simulated = ", simulated=True" if self.simulated else ""
        return f"PufferfishRelease(value={self.value!r}, epsilon={self.guarantee.epsilon!r}{simulated})"

    @property
    def stddev(self) -> float:
        """Standard deviation of the noise of each entry."""
        return self.distribution.stddev * float(self.step)

    def interval(self, level: float = 0.95) -> Interval[Any]:
        """Return an interval, per entry, that covers the exact answer with at least a probability.

        Parameters
        ----------
        level : float
            Strictly between 0 and 1.

        Returns
        -------
        Interval
            Rounded outward, and wide enough for the rounding of the answer to the grid.
        """
        half, _ = self.distribution.half_width(_check.unit_interval("level", level))
        exact = half if self.step == 1 else half + 1  # half a step of rounding, and the float of the value
        width = fraction_up(exact * Fraction(self.step))
        if isinstance(self.value, np.ndarray):
            return Interval(
                np.nextafter(self.value - width, -np.inf), np.nextafter(self.value + width, np.inf)
            )
        return Interval(
            fraction_down(Fraction(self.value) - Fraction(width)),
            fraction_up(Fraction(self.value) + Fraction(width)),
        )


class PufferfishMechanism(ABC):
    """A mechanism with Laplace noise whose guarantee is about secrets under a class of data models.

    A subclass is a frozen dataclass that states the noise's scale, the lattice and the guarantee.

    Examples
    --------
    >>> from sfumato import pufferfish
    >>> issubclass(pufferfish.MarkovQuilt, pufferfish.PufferfishMechanism)
    True
    """

    __slots__ = ()

    @property
    @abstractmethod
    def scale(self) -> float:
        """Scale of the Laplace noise on each entry, in the unit of the answer."""

    @property
    @abstractmethod
    def guarantee(self) -> PufferfishGuarantee:
        """What one release hides."""

    @property
    @abstractmethod
    def _lattice(self) -> Lattice:
        """The points that answers lie on."""

    @property
    def distribution(self) -> SymmetricDistribution:
        """Distribution of the noise on each entry, in steps."""
        return DiscreteLaplaceDistribution(Fraction(self.scale) / self._lattice.step)

    def release(self, value: Any, rng: Rng = None) -> PufferfishRelease:
        """Add noise to the exact answer of the query.

        Parameters
        ----------
        value : int, float, Fraction or numpy array
            The exact answer; whole numbers where the sensitivity was stated as an int.
        rng : None, int, numpy Generator or RandomSource
            None draws from the operating system's entropy; anything seeded only simulates.

        Returns
        -------
        PufferfishRelease

        Raises
        ------
        ParameterError
            If the type does not fit; never for a value.

        Notes
        -----
        The noise is exact discrete Laplace on the grid to which the answer is rounded; the rounding is in the
        scale. This charges no budget: see `PufferfishAccountant.release`.
        """
        lattice = self._lattice
        steps = lattice.steps(value)
        source = random_source(rng)
        distribution = self.distribution
        single = isinstance(steps, int)
        noise = distribution.sample(None if single else steps.shape, source)
        noisy: Any = steps + int(noise) if single else np.add(steps, noise)
        if not lattice.integral:
            noisy = float(noisy * lattice.step) if single else noisy * float(lattice.step)
        return PufferfishRelease(
            value=noisy,
            step=lattice.step,
            distribution=distribution,
            guarantee=self.guarantee,
            simulated=source.simulated,
        )


def lattice_for(sensitivity: Number, noise: float) -> Lattice:
    """Return the whole numbers for an int sensitivity, else a grid that is fine against it.

    Parameters
    ----------
    sensitivity : int, float or Fraction
    noise : float
        About the scale of the noise.

    Returns
    -------
    Lattice
    """
    if isinstance(sensitivity, int):
        return Lattice(Grid(exponent=0), integral=True)
    fine = floor_log2(Fraction(sensitivity)) - _FINE_BITS
    return Lattice(Grid(exponent=max(fine, ceil_log2(Fraction(noise)) - _NOISE_BITS)), integral=False)
