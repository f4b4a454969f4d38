"""The predictive mechanism: a trace is reported by its last report for as long as that is near enough."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import _check
from sfumato.location.guarantee.geo_indistinguishability import GeoIndistinguishability
from sfumato.location.metrics.coordinates import as_points
from sfumato.location.planar.lattice_noise import FINE_BITS, round_to_lattice
from sfumato.location.planar.planar_laplace import PlanarLaplace
from sfumato.numerics import RandomSource, Rng, discrete_laplace, random_source

__all__ = ["PredictiveMechanism"]

_SCALE = 16
_EXTENT_BITS = 21
_TEST_SLOPE = math.sinh(1 / _SCALE) * (1 + 1e-12)


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictiveMechanism:
    """Report a trace, and draw a new point only where the last report is no longer near.

    Parameters
    ----------
    noise : PlanarLaplace
        How a new point is drawn; without a projection.
    test_epsilon : float
        Per metre, of each test whether the last report is near enough.
    threshold : float
        Metres, with noise, up to which it is.
    max_positions : int
        Longest trace.
    max_draws : int
        Most new points. After that the last one is reported without looking.

    Raises
    ------
    ParameterError
        If a parameter breaks its rule.

    Notes
    -----
    Guarantee: `guarantee`, for traces x and y of one length and the distance ``max_i |x_i - y_i|``,
    adaptively: ``max_draws`` draws and ``max_positions - 1`` tests, whatever the trace is (Chatzikokolakis,
    Palamidessi, Stronati, PETS 2014, with their budget fixed in advance). A test is a function of a noisy
    distance, and a distance to a fixed point changes by no more than the position does. It is rounded to a
    grid by the quadratic B-spline, and discrete Laplace noise of scale 16 is added: the argument of
    `sfumato.location.planar.lattice_noise` in one dimension gives the slope ``sinh(1 / 16)`` per step. How
    many positions a trace has is not hidden.

    Examples
    --------
    >>> noise = PlanarLaplace(epsilon=0.01)
    >>> walk = PredictiveMechanism(
    ...     noise=noise, test_epsilon=0.002, threshold=600.0, max_positions=50, max_draws=10
    ... )
    >>> reports = walk.release([[10.0 * i, 0.0] for i in range(50)])
    >>> reports.shape, round(walk.guarantee.epsilon, 3)
    ((50, 2), 0.198)
    """

    noise: PlanarLaplace
    test_epsilon: float
    threshold: float
    max_positions: int
    max_draws: int

    def __post_init__(self) -> None:
        _check.instance("noise", self.noise, PlanarLaplace, "pass PlanarLaplace(epsilon=...)")
        if self.noise.projection is not None:
            remedy = "project the trace once, by Projection.to_plane"
            _check.refuse_state("noise", "have no projection", "it has one", remedy)
        _check.positive("test_epsilon", self.test_epsilon, "pass a number per metre")
        _check.finite("threshold", self.threshold, "pass metres")
        _check.integer("max_positions", self.max_positions, minimum=1, remedy="pass the longest trace")
        _check.integer("max_draws", self.max_draws, minimum=1, remedy="pass how many points may be drawn")

    @property
    def guarantee(self) -> GeoIndistinguishability:
        """What the reports of a whole trace satisfy together."""
        drawn = self.noise.guarantee * min(self.max_draws, self.max_positions)
        if self.max_positions == 1:
            return drawn
        slack = _TEST_SLOPE * 2 * 1.5 * 2.0**-FINE_BITS
        test = GeoIndistinguishability(epsilon=self.test_epsilon, metric=drawn.metric, slack=slack)
        return drawn + test * (self.max_positions - 1)

    def release(self, points: ArrayLike, rng: Rng = None) -> NDArray[np.float64]:
        """Return one report for each position of a trace.

        Parameters
        ----------
        points : array_like of shape (n, 2)
            Metres, in the order of time.
        rng : None, int, numpy Generator or RandomSource
            None for noise that protects; anything else simulates.

        Returns
        -------
        ndarray of shape (n, 2)
            Metres.

        Raises
        ------
        ParameterError
            If a position is missing, or there are more than ``max_positions``.
        """
        trace = as_points("points", points)
        if trace.shape[0] > self.max_positions:
            found = "there are more"
            _check.refuse_state(
                "points", f"be at most {self.max_positions} positions", found, "raise max_positions"
            )
        source = random_source(rng)
        reports = np.empty_like(trace)
        draws = 0
        for at, point in enumerate(trace):
            last = reports[at - 1]
            if at and (draws == self.max_draws or self._near(point, last, source)):
                reports[at] = last
            else:
                reports[at] = self.noise.release(point[None], source)[0]
                draws += 1
        return reports

    def _near(self, point: NDArray[np.float64], last: NDArray[np.float64], source: RandomSource) -> bool:
        step = _TEST_SLOPE / self.test_epsilon
        steps = min(math.hypot(*(point - last).tolist()) / step, 2.0**_EXTENT_BITS)
        fine = np.array([round(steps * 2.0**FINE_BITS)], np.int64)
        uniform = (source.words(1) >> np.uint64(1)).astype(np.int64)
        noisy = int(round_to_lattice(fine, uniform)[0]) + int(discrete_laplace(_SCALE, 1, source)[0])
        return noisy * step <= self.threshold
