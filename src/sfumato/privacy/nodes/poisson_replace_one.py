"""Gaussian noise on a Poisson sample, where one unit is replaced by another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato._wire import NUMBER
from sfumato.errors import NeighboringMismatch
from sfumato.privacy._outward import above
from sfumato.privacy.accountant.renyi import renyi
from sfumato.privacy.leaves.gaussian import Gaussian
from sfumato.privacy.leaves.leaf import Node
from sfumato.privacy.neighboring import Neighboring
from sfumato.privacy.pairs.noise.normal import NormalPair
from sfumato.privacy.pairs.noise.replaced_normal import ReplacedNormalPair
from sfumato.privacy.pairs.pair import Pair, no_loss, two_points
from sfumato.privacy.serialization import LOSS, serialized_as

__all__ = ["PoissonReplaceOne"]


@final
@serialized_as("poisson-replace-one", loss=LOSS, sampling_probability=NUMBER)
@dataclass(frozen=True, slots=True, repr=False)
class PoissonReplaceOne(Node):
    r"""Gaussian noise on a sum over a Poisson sample, of a population in which one unit is replaced.

    ``PoissonSubsampled(Gaussian(s), q).under(Neighboring.REPLACE_ONE)`` makes it.

    Parameters
    ----------
    loss : Gaussian
        Of the noisy sum when one unit is *added or removed*, or zeroed out.
    sampling_probability : float
        With which each unit is in the sample, independently of all others; in [0, 1].

    Notes
    -----
    Guarantee: replace-one, tight: the pair :math:`(1-q) N(0, 1) + q N(\mu, 1)` against :math:`(1-q) N(0, 1) +
    q N(-\mu, 1)`, :math:`\mu` the inverse of the noise multiplier. Conditions: the noise is Gaussian and
    continuous; the answer is a sum in which no unit has a norm above 1; the sample is drawn anew for each
    run, independently of the data.

    *Proof.* Fix which of the other units are drawn (joint convexity). In units of the noise, seen from the
    answer without the unit, the answers are :math:`(1-q) N(0, I) + q N(u, I)` and :math:`(1-q) N(0, I) +
    q N(v, I)`, with norms of u and v of at most :math:`\mu`. Against :math:`N(0, I)` their densities are
    :math:`A = 1 - q + q e^{X - E X^2/2}` and :math:`B = 1 - q + q e^{Y - E Y^2/2}`, where :math:`X = \langle
    u, Z \rangle` and :math:`Y = \langle v, Z \rangle` are normal. A hockey-stick divergence is :math:`E g(A -
    sB)`, g convex, or a limit of such with smooth g. Move the covariance of (X, Y) along a line to that of
    :math:`(\mu Z_1, -\mu Z_1)`: the variances rise, and :math:`E XY \ge -\mu^2` falls. By integration by
    parts, as in Kahane (1986), the derivative of :math:`E g` is half the mean of :math:`q^2 g''(A - sB)`
    times the sum of the variances' derivatives, with the factors :math:`e^{2X - E X^2}` and :math:`s^2
    e^{2Y - E Y^2}`, and of that of the covariance with minus 2s times the product of both exponentials: no
    term is negative. A sum in which the two units point in opposite directions attains it.

    References
    ----------
    Kahane (1986), "Une inégalité du type de Slepian et Gordon sur les processus gaussiens".

    Examples
    --------
    >>> from sfumato.privacy import Neighboring, PoissonSubsampled
    >>> step = PoissonSubsampled(Gaussian(2.0), 0.01)
    >>> replaced = step.under(Neighboring.REPLACE_ONE)
    >>> (step * 1000).epsilon(1e-6) < (replaced * 1000).epsilon(1e-6) < 2 * (step * 1000).epsilon(1e-6)
    True
    """

    loss: Gaussian
    sampling_probability: float

    def __post_init__(self) -> None:
        _check.instance("loss", self.loss, Gaussian, "no theorem is known here for other noise")
        if self.loss.neighboring not in (Neighboring.ADD_REMOVE, Neighboring.ZERO_OUT):
            raise NeighboringMismatch(
                f"loss must be under add/remove or zero-out, got {self.loss.neighboring}; state the noise "
                "for one unit that is added, removed or zeroed out"
            )
        remedy = "pass the chance that one unit is drawn"
        probability = _check.share("sampling_probability", self.sampling_probability, remedy)
        self._set("sampling_probability", probability)

    @property
    def neighboring(self) -> Neighboring:
        """Replace-one."""
        return Neighboring.REPLACE_ONE

    def dominating_pair(self) -> Pair:
        """Return two mixtures that lie on either side of what both share.

        Returns
        -------
        Pair
            Distributions P and Q whose divergences bound those of the outputs on any two neighbors.
        """
        q, noise = self.sampling_probability, self.loss.noise_multiplier
        if q == 0:
            return no_loss()
        mu = above(1 / noise) if noise >= _TOO_LITTLE else 0.0
        if not mu:
            return two_points(0.0, q)
        return NormalPair(2 * mu) if q == 1 else ReplacedNormalPair(mu, q)

    numeric = True
    """Always."""

    def rdp_curve(self, orders: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return bounds on the divergences of the dominating pair.

        Parameters
        ----------
        orders : ndarray of float, shape (n,)
            Each above 1.

        Returns
        -------
        ndarray of float, shape (n,)
            Upper bounds on the Rényi divergences, one for each order.
        """
        return renyi(self.dominating_pair(), orders)


_TOO_LITTLE = 1e-150
"""Noise below it counts as none: then all is revealed where one of the two is drawn."""
