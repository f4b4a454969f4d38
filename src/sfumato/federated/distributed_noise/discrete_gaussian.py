"""Distributed discrete Gaussian noise: every client adds a part of it, and secure aggregation the parts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np
from numpy.typing import NDArray

from sfumato.federated.distributed_noise.additive_noise import AdditiveNoise
from sfumato.federated.distributed_noise.modulus import gaussian_log_moment
from sfumato.mechanisms.base.rational import sqrt_up
from sfumato.numerics.randomness.source import RandomSource
from sfumato.numerics.sampling.integer_noise import LARGEST_SCALE, discrete_gaussian
from sfumato.privacy.leaves.discrete_gaussian_sum import DiscreteGaussianSum
from sfumato.privacy.neighboring import Neighboring

__all__ = ["DistributedDiscreteGaussian"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DistributedDiscreteGaussian(AdditiveNoise):
    r"""A sum of clients' vectors with Gaussian noise that no single party ever sees without the sum.

    Parameters
    ----------
    clients : int
        How many may take part, at least 3.
    minimum_survivors : int
        With fewer vectors the round is aborted before anything is unmasked; see ``colluders``.
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
    scale : float
        As chosen.
    l2_squared : int
        Bound on the squared L2 norm of a vector that is rounded to the grid, in steps; always enforced.
    honest_survivors : int
        ``minimum_survivors - colluders``, whose noise alone is counted.

    Raises
    ------
    ParameterError
        If parameters do not fit together, such as a modulus that is too small; no key exists by then.

    Notes
    -----
    Guarantee: `privacy_loss` for one round, under zero-out: one honest client's vector is exchanged for
    zeros, while the client still takes part and adds its noise. (Under add/remove the noise of the client
    would be absent too, and less would be sure.) It holds against the server and ``colluders`` clients, who
    know their own noise, together with everyone who sees the sum, if secure aggregation hides all but the
    sum of at least ``minimum_survivors`` vectors: the noise of the honest ones among them has the standard
    deviation ``noise_multiplier`` times the sensitivity, and further noise only helps. A round with fewer
    survivors is aborted; it is charged as any other, and nothing is given back. Clients that the server
    invents are colluders. The loss is that of a sum of discrete Gaussians (`DiscreteGaussianSum`), at the
    L2 norm after rotation and rounding. The rotation, the scale and the modulus are public; that the sum is
    taken modulo 2^bits is a function of it and costs no privacy. Nobody proves that a client clips or adds
    noise.

    Accuracy: of the clipped vectors the sum is unbiased, up to the chance that an entry wraps around and
    the chance of 2^-40 for each client that its rounding is not the plain one.

    References
    ----------
    P. Kairouz, Z. Liu, T. Steinke. The distributed discrete Gaussian mechanism for federated learning with
    secure aggregation. ICML 2021: rotation, conditional rounding, sums of discrete Gaussians.

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato.federated import simulate_round
    >>> noise = DistributedDiscreteGaussian(
    ...     clients=8, minimum_survivors=6, dimension=3, clip_norm=1.0, noise_multiplier=0.5, bits=16
    ... )
    >>> vectors = np.full((8, 3), 0.1)
    >>> messages = [noise.encode(vector, b"round 1") for vector in vectors]
    >>> found = simulate_round(noise.secure_aggregation(), messages)
    >>> noise.decode(found.total, b"round 1").shape
    (3,)
    >>> round(noise.privacy_loss.epsilon(1e-6), 2), str(noise.privacy_loss.neighboring)
    (11.0, 'zero out one unit')
    """

    _wire_name = "discrete-gaussian"

    @property
    def privacy_loss(self) -> DiscreteGaussianSum:
        """What one round costs, under zero-out: the noise of the fewest honest survivors."""
        return self.loss_against(self.colluders)

    def loss_against(self, colluders: int) -> DiscreteGaussianSum:
        """Return what one round costs, under zero-out, if so many clients work with the server.

        Parameters
        ----------
        colluders : int
            Below ``minimum_survivors``; all of them among the fewest survivors.

        Returns
        -------
        DiscreteGaussianSum
        """
        honest = self._honest(colluders)
        return DiscreteGaussianSum(
            self.share, honest, self.l2_squared, self.padded, neighboring=Neighboring.ZERO_OUT
        )

    @property
    def share(self) -> Fraction:
        """The parameter of each client's discrete Gaussian, in steps of the grid."""
        return sqrt_up(self.share_variance)  # a perfect square of a rational: exact

    def _variance_for(self, exact: Fraction) -> Fraction:
        # The sampler takes a rational standard deviation; twelve bits behind the point waste nothing.
        return Fraction(math.ceil(sqrt_up(exact) * (1 << 12)), 1 << 12) ** 2

    def _largest_share(self) -> int:
        return LARGEST_SCALE**2

    @staticmethod
    def _log_moment(variance: float, t: float) -> float:
        return gaussian_log_moment(variance, t)

    def _draw(self, source: RandomSource) -> NDArray[np.int64]:
        return discrete_gaussian(self.share, self.padded, source)
