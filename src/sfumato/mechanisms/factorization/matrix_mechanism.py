"""The matrix mechanism: measure a strategy, and answer a workload by least squares."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, final

import numpy as np
from numpy.typing import ArrayLike

from sfumato import _check
from sfumato.mechanisms.base.measurement import Measurement
from sfumato.mechanisms.base.mechanism import Mechanism
from sfumato.mechanisms.factorization.linear_error import LaplaceError, LinearError, NormalError
from sfumato.mechanisms.factorization.linear_release import LinearRelease
from sfumato.mechanisms.factorization.strategies.integer_strategy import FLOATS, Array
from sfumato.mechanisms.factorization.strategies.optimal_strategy import optimal_strategy
from sfumato.mechanisms.factorization.strategies.p_identity import p_identity
from sfumato.mechanisms.noise.gaussian import Gaussian
from sfumato.mechanisms.noise.laplace import Laplace
from sfumato.mechanisms.query.linear_workload import LinearWorkload
from sfumato.numerics.blas_threads import one_thread
from sfumato.numerics.distributions.discrete import DiscreteGaussianDistribution, DiscreteLaplaceDistribution
from sfumato.numerics.randomness.source import Rng
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring

__all__ = ["MatrixMechanism"]

_CONDITION: Final = 1e7


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MatrixMechanism(Mechanism):
    r"""Answers to many linear queries, from exact noise on other linear queries.

    Parameters
    ----------
    workload : LinearWorkload
        What is asked, :math:`W`.
    measurement : Measurement
        What is measured: a `LinearWorkload` on the same cells, :math:`C`, with discrete Gaussian or discrete
        Laplace noise.

    Raises
    ------
    ParameterError
        If the cells differ, or the strategy does not determine them all (full column rank, with a condition
        number of at most 1e7), so that the answers would be biased.

    Notes
    -----
    Guarantee: the measurement's. The counts of the cells are estimated from the noisy measurements by least
    squares, :math:`\hat x = C^+ y`, and the answers are :math:`W \hat x`: post-processing. Without noise they
    are exact, as :math:`C^+ C = I`, whatever C was rounded to.

    References
    ----------
    Li, Hay, Rastogi, Miklau, McGregor (2010), "Optimizing linear counting queries under differential
    privacy"; Li, Miklau, Hay, McGregor, Rastogi (2015), "The matrix mechanism".

    Examples
    --------
    >>> import numpy as np
    >>> prefixes = LinearWorkload(matrix=np.tril(np.ones((16, 16))))
    >>> mechanism = MatrixMechanism.calibrated(workload=prefixes, epsilon=1.0, delta=1e-6)
    >>> plain = Gaussian.for_query(prefixes, epsilon=1.0, delta=1e-6)
    >>> float(mechanism.stddevs.max() / float(plain.mechanism.stddev)) < 0.6
    True
    >>> release = mechanism.release(np.arange(16).repeat(10), rng=7)
    >>> release.value.shape, release.loss.epsilon(1e-6) <= 1
    ((16,), True)
    """

    workload: LinearWorkload
    measurement: Measurement
    _decoder: Array = field(init=False, repr=False)
    _floats: Array = field(init=False, repr=False)

    @one_thread()
    def __post_init__(self) -> None:
        remedy = "pass epsilon= to MatrixMechanism.calibrated to have it chosen"
        _check.instance("measurement", self.measurement, Measurement, remedy)
        query = self.measurement.query
        if not isinstance(query, LinearWorkload) or query.histogram != self.workload.histogram:
            remedy = "measure a LinearWorkload with the same histogram"
            _check.refuse_type("measurement", "be of the workload's cells", query, remedy)
        strategy = query.weights() * float(query.step)
        sizes = np.linalg.svd(strategy, compute_uv=False)
        if len(sizes) < strategy.shape[1] or sizes[-1] * _CONDITION < sizes[0]:
            remedy = "measure every cell, if only with little weight"
            _check.refuse_state(
                "measurement", "determine all cells", "some cells do not follow from it", remedy
            )
        weights = self.workload.weights() * float(self.workload.step)
        inverse = np.linalg.pinv(strategy)
        decoder = weights @ inverse
        # Where floats found no exact inverse, answers are off by so much of the greatest measurement.
        off = np.abs(decoder @ strategy - weights).sum(axis=1) * float(np.abs(inverse).sum(axis=1).max())
        object.__setattr__(self, "_decoder", decoder)
        object.__setattr__(self, "_floats", FLOATS * np.abs(decoder).sum(axis=1) + 2 * off)

    @classmethod
    def calibrated(
        cls,
        *,
        workload: LinearWorkload,
        epsilon: float,
        delta: float = 0.0,
        strategy: ArrayLike | None = None,
        neighboring: Neighboring = Neighboring.ADD_REMOVE,
    ) -> MatrixMechanism:
        """Return the mechanism with the smallest noise that meets (epsilon, delta).

        Parameters
        ----------
        workload : LinearWorkload
        epsilon, delta : float
            The guarantee. With a delta noise is Gaussian, without one it is Laplace.
        strategy : array of shape (entries, cells), optional
            What to measure. Unless given: `optimal_strategy` for Gaussian noise, `p_identity` for Laplace.
        neighboring : Neighboring
            Whose relation the sensitivity of the strategy is taken under.

        Returns
        -------
        MatrixMechanism
        """
        if not isinstance(workload, LinearWorkload):
            _check.refuse_type(
                "workload", "be a LinearWorkload", workload, "pass LinearWorkload(matrix=..., histogram=...)"
            )
        matrix = np.asarray(workload.matrix)
        if strategy is None:
            strategy = optimal_strategy(matrix).strategy if delta else p_identity(matrix)
        query = LinearWorkload(matrix=np.asarray(strategy), histogram=workload.histogram)
        kind = Gaussian if delta else Laplace
        measurement = kind.for_query(query, epsilon=epsilon, delta=delta, neighboring=neighboring)
        return cls(workload=workload, measurement=measurement)

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """The measurement's loss."""
        return self.measurement.privacy_loss

    @property
    def neighboring(self) -> Neighboring:
        """Who is protected."""
        return self.measurement.neighboring

    @property
    def stddevs(self) -> Array:
        """Standard deviation of each answer's noise, shape (queries,)."""
        return np.asarray(self._error(0.0).stddev)

    def release(self, value: Any, rng: Rng = None) -> LinearRelease:
        """Answer the workload on data.

        Parameters
        ----------
        value : array
            The data: one record per entry, as the histogram takes it.
        rng : None, int, numpy Generator or RandomSource
            None draws from the operating system's entropy; anything seeded only simulates.

        Returns
        -------
        LinearRelease
            Answers as floats, unbiased; other answers for the same cells are more post-processing.
        """
        measured = self.measurement.release(value, rng)
        noisy = np.asarray(measured.steps).astype(np.float64) * float(measured.step)
        return LinearRelease(
            value=self._decoder @ noisy,
            error=self._error(float(np.abs(noisy).max())),
            loss=measured.loss,
            neighboring=measured.neighboring,
            simulated=measured.simulated,
        )

    def outputs(self, value: Any, size: int, rng: Rng = None) -> Array:
        """Draw the answers of many releases at once; see `Mechanism.outputs`.

        Parameters
        ----------
        value
            As in `release`; private.
        size : int
            How many independent releases are drawn.
        rng : int, numpy Generator or None
            None for the operating system's randomness; a seed is for simulation only.

        Returns
        -------
        array of shape (size, queries)
        """
        return np.asarray(np.asarray(self.measurement.outputs(value, size, rng)) @ self._decoder.T)

    def _error(self, largest: float) -> LinearError:
        step, distribution = float(self.measurement.query.step), self.measurement.mechanism.distribution
        magnitudes = np.abs(self._decoder).sum(axis=1)
        floats = largest * self._floats
        if isinstance(distribution, DiscreteLaplaceDistribution):
            rows = [row[row > 0] for row in np.abs(self._decoder)]
            terms = [(row, np.ones(len(row))) for row in rows]
            return LaplaceError(
                terms=terms, scale=float(distribution.scale) * step, lattice=step * magnitudes, floats=floats
            )
        if not isinstance(distribution, DiscreteGaussianDistribution):
            remedy = "pass Gaussian.for_query(...) or Laplace.for_query(...)"
            _check.refuse_type("measurement", "have Gaussian or Laplace noise", distribution, remedy)
        sigma = float(distribution.sigma)
        return NormalError(
            stddev=sigma * step * np.linalg.norm(self._decoder, axis=1),
            slack=0.5 * step * magnitudes + floats,
            missed=np.full(len(magnitudes), self._decoder.shape[1] * 0.125 / sigma**2),
        )
