"""The planar Laplace mechanism: a point of a lattice near the true position, exactly drawn.

>>> from sfumato.location import PlanarLaplace, Projection
>>> berlin = Projection(latitude=52.52, longitude=13.405, radius=30_000)
>>> report = PlanarLaplace.from_level(level=1.386, radius=200, projection=berlin)
>>> latitude, longitude = report.release_degrees([52.5163], [13.3777])
>>> report.guarantee.metric, report.guarantee.unit
('geodesic', 'm')
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import lambertw

from sfumato import _check
from sfumato.location.guarantee.geo_indistinguishability import GeoIndistinguishability
from sfumato.location.metrics.coordinates import as_points
from sfumato.location.metrics.projection import Projection
from sfumato.location.planar.lattice_noise import FINE_BITS, SLOPE, draw, probabilities
from sfumato.numerics import Rng, random_source

__all__ = ["PlanarLaplace"]

_EXTENT_BITS = 21


@cache
def _mean_steps() -> float:
    reach = 480
    quadrant = probabilities(reach)
    signs = np.where(np.arange(reach + 1) > 0, 2, 1)
    first, second = np.meshgrid(np.arange(reach + 1), np.arange(reach + 1), indexing="ij")
    return float((quadrant * np.outer(signs, signs) * np.hypot(first, second)).sum())


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanarLaplace:
    """Report a lattice point near the true position, with epsilon per metre.

    Parameters
    ----------
    epsilon : float
        Per metre, for geodesic distances if there is a projection, else for distances in the plane.
    projection : Projection or None
        The fixed projection; None if positions are metres in a plane.
    region : tuple of float or None
        ``(left, bottom, right, top)`` in metres of the plane: reports are clamped to it.

    Raises
    ------
    ParameterError
        If a parameter breaks its rule.

    Notes
    -----
    Guarantee: `guarantee` holds for all positions of the plane, or of the projection's region. The lattice
    has step ``SLOPE / epsilon``, an eighth of ``1 / epsilon``. Rounding to the lattice, the noise and its
    normaliser, which is one number for all places, are in it: see the theorem in
    `sfumato.location.planar.lattice_noise`. What is not exact is where a position given in floating point
    lies; this is the guarantee's slack. Positions beyond `extent` are moved to its border, which brings no
    two further apart. Clamping a report is post-processing; drawing again until a report is in a region
    would not be.

    References
    ----------
    Andres, Bordenabe, Chatzikokolakis, Palamidessi, Geo-indistinguishability, CCS 2013, sections 4 and 4.1:
    the continuous mechanism. Theirs is truncated and rounded to a grid after; here the lattice is drawn
    from itself.

    Examples
    --------
    >>> report = PlanarLaplace(epsilon=math.log(4) / 200)
    >>> report.release([[0, 0], [500, 500]]).shape
    (2, 2)
    >>> round(report.step, 2), round(report.radius(0.95) * report.epsilon, 3)
    (18.08, 4.744)
    """

    epsilon: float
    projection: Projection | None = None
    region: tuple[float, float, float, float] | None = None

    def __post_init__(self) -> None:
        _check.positive("epsilon", self.epsilon, "pass a number per metre, such as math.log(4) / 200")
        if self.projection is not None:
            _check.instance("projection", self.projection, Projection, "pass Projection(latitude=, ...)")
        if not 1e-9 <= self.epsilon <= 1e3:
            _check.refuse("epsilon", "be from 1e-9 to 1000 per metre", self.epsilon, "use metres")
        if self.region is not None:
            rule, remedy = "be (left, bottom, right, top) with left < right and bottom < top", "pass metres"
            given: object = self.region
            if not isinstance(given, tuple) or len(given) != 4:
                _check.refuse("region", rule, given, remedy)
            left, bottom, right, top = (_check.finite("region", edge, remedy) for edge in given)
            if left >= right or bottom >= top:
                _check.refuse("region", rule, given, remedy)

    @classmethod
    def from_level(
        cls,
        level: float = math.log(4),
        *,
        radius: float = 200.0,
        projection: Projection | None = None,
        region: tuple[float, float, float, float] | None = None,
    ) -> PlanarLaplace:
        """Return the mechanism whose log-ratio is ``level`` within ``radius``.

        Parameters
        ----------
        level : float
            Log of the largest ratio of probabilities; log 4 is the paper's.
        radius : float
            Metres; 200 is the paper's.
        projection, region
            As in the constructor.

        Returns
        -------
        PlanarLaplace
            With ``epsilon = level / radius``.

        Raises
        ------
        ParameterError
            If a number is not positive.
        """
        epsilon = GeoIndistinguishability.from_level(level, radius=radius).epsilon
        return cls(epsilon=epsilon, projection=projection, region=region)

    @property
    def plane_epsilon(self) -> float:
        """Epsilon per metre of the plane: less than `epsilon` by the distortion of the projection."""
        stretch = 1.0 if self.projection is None else self.projection.stretch
        return self.epsilon / stretch * (1 - 1e-15)

    @property
    def step(self) -> float:
        """Distance of neighbouring lattice points in metres of the plane."""
        return SLOPE / self.plane_epsilon * (1 + 1e-15)

    @property
    def extent(self) -> float:
        """Metres from the origin of the plane, in each coordinate, beyond which positions are moved back."""
        return 2.0**_EXTENT_BITS * self.step

    @property
    def guarantee(self) -> GeoIndistinguishability:
        """What one report satisfies."""
        # Each coordinate is off by 1.5 units of 2**-31 steps at most, of which one is the product's.
        rounding = SLOPE * 2 * math.sqrt(2) * 1.5 * 2.0**-FINE_BITS
        error = 0.0 if self.projection is None else self.projection.error
        return GeoIndistinguishability(
            epsilon=self.epsilon,
            metric="plane" if self.projection is None else "geodesic",
            slack=rounding + 2 * error * self.plane_epsilon,
        )

    @property
    def mean_error(self) -> float:
        """Mean distance in metres of the plane of the noise on the lattice, before rounding and clamping."""
        return _mean_steps() * self.step

    def radius(self, probability: float) -> float:
        """Return the radius within which a report of the continuous mechanism is with a probability.

        Parameters
        ----------
        probability : float
            Strictly between 0 and 1.

        Returns
        -------
        float
            Metres: the root of ``1 - (1 + epsilon r) exp(-epsilon r) = probability``. The lattice adds
            about 1 %.

        Raises
        ------
        ParameterError
            If the probability is out of range.
        """
        probability = _check.unit_interval("probability", probability, "pass a number such as 0.95")
        root = -float(lambertw((probability - 1) / math.e, -1).real) - 1
        return root / self.plane_epsilon

    def release(self, points: ArrayLike, rng: Rng = None) -> NDArray[np.float64]:
        """Return one report for each position in the plane.

        Parameters
        ----------
        points : array_like of shape (n, 2)
            Metres.
        rng : None, int, numpy Generator or RandomSource
            None for noise that protects; anything else simulates.

        Returns
        -------
        ndarray of shape (n, 2)
            Points of the lattice, in metres, clamped to the region if there is one.

        Raises
        ------
        ParameterError
            If a position is missing or infinite.
        """
        step = self.step
        given = as_points("points", points).T
        extent = 2.0 ** (_EXTENT_BITS + FINE_BITS)
        scaled = np.clip(given, -self.extent, self.extent) * (2.0**FINE_BITS / step)
        fine = np.rint(np.clip(scaled, -extent, extent)).astype(np.int64)
        first, second = draw(fine[0], fine[1], random_source(rng))
        out = np.empty((first.size, 2))
        np.multiply(first, step, out=out[:, 0])
        np.multiply(second, step, out=out[:, 1])
        if self.region is not None:
            np.clip(out, self.region[:2], self.region[2:], out=out)
        return out

    def release_degrees(
        self, latitude: ArrayLike, longitude: ArrayLike, rng: Rng = None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return one report for each position on the ellipsoid.

        Parameters
        ----------
        latitude, longitude : array_like of shape (n,)
            Degrees; positions outside of the projection's region are moved to its border first.
        rng : None, int, numpy Generator or RandomSource
            None for noise that protects; anything else simulates.

        Returns
        -------
        tuple of two ndarrays
            Latitudes and longitudes.

        Raises
        ------
        ParameterError
            If there is no projection, or a coordinate is missing or out of range.
        """
        if self.projection is None:
            _check.refuse_state(
                "projection",
                "be given for degrees",
                "it is None",
                "pass projection=Projection(latitude=, ...)",
            )
        return self.projection.to_degrees(self.release(self.projection.to_plane(latitude, longitude), rng))
