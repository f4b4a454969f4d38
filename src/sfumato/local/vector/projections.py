"""Random projections as a protocol for a mean vector: half a millisecond a report at a thousand numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Final, final

import numpy as np
from scipy.special import betainc

from sfumato.local.device.vector.projections import ProjUnitRandomizer
from sfumato.local.vector.directions import DirectionProtocol, largest_heights
from sfumato.local.vector.simulation import Reported, signed_reports

__all__ = ["ProjUnit", "half_sphere_heights"]

_POINTS: Final = 40_001


def half_sphere_heights(count: int, near: int, dimension: int) -> tuple[float, float]:
    r"""Return the mean and mean square of the ``near`` largest of ``count`` heights without their signs.

    Notes
    -----
    Of vectors that are even on a sphere of radius :math:`\sqrt d`: with the angle a to the given vector, or
    to its opposite if that is nearer, the height is :math:`\sqrt d \cos a`. The density of a is
    proportional to :math:`\sin^{d-2} a` from 0 to :math:`\pi/2`, and :math:`\cos^2 a` has a beta
    distribution.
    """
    angles = (np.arange(_POINTS) + 0.5) * (math.pi / (2 * _POINTS))
    masses = np.exp((dimension - 2) * np.log(np.sin(angles)))
    cosines = np.cos(angles)
    below = betainc(0.5, (dimension - 1) / 2, cosines**2)
    return largest_heights(math.sqrt(dimension) * cosines, masses / masses.sum(), below, count, near)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ProjUnit(DirectionProtocol[ProjUnitRandomizer]):
    r"""`PrivUnit` in a random projection of the truth: about the same error, and fast for many dimensions.

    Parameters
    ----------
    epsilon, dimension, radius, pairs
        See `DirectionProtocol`.
    candidates : int, optional
        Twice the dimensions of the projection: an even number from 2 to 2^12. Left out, 128 for an epsilon
        up to 6, and then the smallest power of two that is at least 256 and at least :math:`e^\epsilon/12`.

    Notes
    -----
    Guarantee: :math:`\epsilon`-DP of each report, replace-one, exactly; see
    `sfumato.local.device.ProjUnitRandomizer`. The seed of the projection is part of the report: it is drawn
    whatever is true.

    Unbiased: rotating the space about the truth u changes neither the distribution of a seed's vectors nor
    their heights along u, which is all that the choice rests on; so the vector that is reported has a mean
    along u. The k vectors are independent, of heights :math:`z_i`, and the 2k candidates have the heights
    :math:`\pm z_i`: those of the w <= k nearest are the w largest :math:`|z_i|`, of which the moments are
    integrals in one dimension. All candidates have the same norm, so that the error is exact too. Vectors are
    even on the sphere as normal numbers in the same direction, and those come from a table of 2^16: of a
    truth with one single part the gain is off by less than one part in 10^4, of one with d even parts by d
    times less.

    The error is at most 1.10 times that of `PrivUnit` up to epsilon 8, in any dimension.

    References
    ----------
    Asi, Feldman, Nelson, Nguyen, Talwar (2023), "Fast optimal locally private mean estimation via random
    projections".

    Examples
    --------
    >>> from sfumato.local import PrivUnit
    >>> protocol, peer = (kind(epsilon=4.0, dimension=1000) for kind in (ProjUnit, PrivUnit))
    >>> round(protocol.variance(1000) / peer.variance(1000), 2)
    1.02
    >>> aggregator = protocol.aggregator()
    >>> aggregator.add_batch(protocol.randomize_batch([[0.6, 0.8] + [0.0] * 998] * 1000, rng=1))
    1000
    >>> bool(abs(aggregator.estimate().mean[:2] - [0.6, 0.8]).max() < 0.1)
    True
    """

    wire_name: ClassVar[str] = "projunit"

    candidates: int | None = None

    @staticmethod
    def _reports() -> Reported:
        return signed_reports

    def _heights(self) -> tuple[float, float]:
        return half_sphere_heights(self.device.count // 2, self.device.near, self.dimension)
