"""Distributed Skellam noise, whose parts add up to Skellam noise exactly."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np
from numpy.typing import NDArray

from sfumato.federated.distributed_noise.additive_noise import AdditiveNoise
from sfumato.federated.distributed_noise.modulus import skellam_log_moment
from sfumato.numerics.randomness.source import RandomSource
from sfumato.numerics.sampling.skellam_noise import LARGEST_VARIANCE, skellam
from sfumato.privacy.leaves.skellam import Skellam
from sfumato.privacy.neighboring import Neighboring

__all__ = ["DistributedSkellam"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DistributedSkellam(AdditiveNoise):
    r"""A sum of clients' vectors with Skellam noise, of which each client adds a part.

    Parts of Skellam noise add up to Skellam noise, so that the price has no term for how they are split; but
    it is proved as Rényi DP only, and in the L1 norm beside the L2 norm. Take `DistributedDiscreteGaussian`
    unless parts are far below one step of the grid.

    Parameters
    ----------
    clients : int
        How many may take part, at least 3.
    minimum_survivors : int
        With fewer vectors the round is aborted before anything is unmasked.
    dimension : int
        Entries of a vector.
    clip_norm : float
        Each vector is scaled down to this L2 norm where it is longer; from 2^-400 to 2^400.
    noise_multiplier : float
        Standard deviation of the noise that is sure, over the L2 sensitivity; at least 2^-100.
    bits : int
        The sum is taken modulo 2^bits; from 2 to 48.
    colluders : int, default 0
        So many clients may work with the server: their noise does not count. Below ``minimum_survivors``.
    wraparound : float, default 1e-6
        The most probable that any entry of the sum wraps around.
    scale : float or None, default None
        Steps of the grid in a unit; None for the finest that ``wraparound`` leaves room for.

    Attributes
    ----------
    l2_squared : int
        Bound on the squared L2 norm of a vector that is rounded to the grid, in steps; always enforced.

    Raises
    ------
    ParameterError
        If parameters do not fit together, such as a modulus that is too small; no key exists by then.

    Notes
    -----
    Guarantee: `privacy_loss` for one round, under zero-out and on the conditions of
    `DistributedDiscreteGaussian`; the noise of the fewest honest survivors is Skellam noise of their
    variances' sum. The L1 norm of the rounded vector is at most :math:`\min(\sqrt d\,L_2, L_2^2)`, as it is
    of whole numbers.

    References
    ----------
    N. Agarwal, P. Kairouz, Z. Liu. The Skellam mechanism for differentially private federated learning.
    NeurIPS 2021.

    Examples
    --------
    >>> noise = DistributedSkellam(
    ...     clients=8, minimum_survivors=6, dimension=3, clip_norm=1.0, noise_multiplier=0.5, bits=16
    ... )
    >>> noise.encode([0.1, 0.2, 0.3], b"round 1").shape
    (4,)
    >>> round(noise.privacy_loss.epsilon(1e-6), 2)
    11.86
    """

    _wire_name = "skellam"

    @property
    def privacy_loss(self) -> Skellam:
        """What one round costs, under zero-out: the noise of the fewest honest survivors."""
        return self.loss_against(self.colluders)

    def loss_against(self, colluders: int) -> Skellam:
        """Return what one round costs, under zero-out, if so many clients work with the server.

        Parameters
        ----------
        colluders : int
            Below ``minimum_survivors``; all of them among the fewest survivors.

        Returns
        -------
        Skellam
        """
        l1 = min(math.isqrt(self.padded * self.l2_squared), self.l2_squared)
        variance = self._honest(colluders) * self.share_variance
        return Skellam(variance, l1, self.l2_squared, neighboring=Neighboring.ZERO_OUT)

    def _largest_share(self) -> int:
        return LARGEST_VARIANCE

    @staticmethod
    def _log_moment(variance: float, t: float) -> float:
        return skellam_log_moment(variance, t)

    def _variance_for(self, exact: Fraction) -> Fraction:
        return Fraction(math.ceil(exact * (1 << 12)), 1 << 12)

    def _draw(self, source: RandomSource) -> NDArray[np.int64]:
        return skellam(self.share_variance, self.padded, source)
