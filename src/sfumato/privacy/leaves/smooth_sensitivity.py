"""Student's t noise scaled to a smooth bound on local sensitivity: pure DP."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import final

from sfumato import _check
from sfumato._wire import NUMBER, Field
from sfumato.privacy._outward import above
from sfumato.privacy.leaves.bounded import BoundedLeaf
from sfumato.privacy.neighboring import RELATION, Neighboring
from sfumato.privacy.serialization import serialized_as

__all__ = ["SmoothSensitivity"]


@final
@serialized_as(
    "smooth-student-t",
    noise_multiplier=NUMBER,
    smoothness=NUMBER,
    degrees_of_freedom=Field("degrees", NUMBER),
    neighboring=RELATION,
)
@dataclass(frozen=True, slots=True, repr=False)
class SmoothSensitivity(BoundedLeaf):
    r"""A number with Student's t noise, as wide as a smooth upper bound on its local sensitivity.

    The answer is :math:`f(x) + k\, S(x)\, T`, where :math:`T` has Student's t distribution. The scale is
    secret: it depends on the data, and so does every error that is computed from it.

    Parameters
    ----------
    noise_multiplier : float
        :math:`k`; 0 is no noise.
    smoothness : float
        :math:`\beta`: the logarithm of :math:`S` moves by at most this between neighbors.
    degrees : float
        Of freedom of the t distribution, positive; 1 is the Cauchy distribution, and the variance is finite
        above 2.
    neighboring : Neighboring
        The relation that the local sensitivity and its smoothness are about.

    Notes
    -----
    Guarantee: pure DP with

    .. math:: \epsilon = \max(1, d)\, \beta + \frac{d + 1}{2 k \sqrt d},

    :math:`d` the degrees of freedom. Conditions: :math:`S(x) \ge |f(x) - f(y)|` and :math:`S(x) \le e^\beta
    S(y)` for all neighbors :math:`x, y`, in either order, without exception; the value is one real number;
    the scale is not released.

    *Proof.* If :math:`S(x) = 0` then :math:`S(y) = 0` and :math:`f(x) = f(y)`. Otherwise the density of the
    answer is moved in two steps. Shifting the centre by :math:`|f(x) - f(y)|`, at most :math:`1/k` scales,
    changes its logarithm by at most that many times the largest slope of :math:`\frac{d+1}{2}\log(1 +
    z^2/d)`, which is :math:`(d+1)/(2\sqrt d)`. Multiplying the scale by :math:`e^\tau`, :math:`|\tau| \le
    \beta`, changes it at a rate of :math:`(d + 1) z^2/(d + z^2) - 1`, which lies in :math:`[-1, d]`.

    References
    ----------
    Nissim, Raskhodnikova, Smith (2007), "Smooth sensitivity and sampling in private data analysis",
    admissible noise; Bun, Steinke (2019), "Average-case averages: private algorithms for smooth sensitivity
    and mean estimation", Student's t noise.

    Examples
    --------
    >>> SmoothSensitivity(4.0, smoothness=0.25, degrees=1.0).epsilon(0.0) < 0.5000001
    True
    """

    noise_multiplier: float
    smoothness: float = field(kw_only=True)
    degrees: float = field(default=3.0, kw_only=True)
    neighboring: Neighboring = field(default=Neighboring.ADD_REMOVE, kw_only=True)

    def __post_init__(self) -> None:
        self._set_rounded("noise_multiplier", self.noise_multiplier, up=False)
        self._set_rounded("smoothness", self.smoothness, up=True)
        remedy = "the noise is drawn with this number, so it must be a float as it stands"
        degrees = _check.positive("degrees", self.degrees, remedy)
        if degrees != self.degrees:
            _check.refuse("degrees", "be a float", self.degrees, remedy)
        self._set("degrees", degrees)
        self._set_relation(self.neighboring)

    def pure_epsilon(self) -> float:
        """Return the cost of the scale's change and that of the centre's; proof in the class's notes.

        Returns
        -------
        float or Fraction
            The epsilon of `pure`: exact as a Fraction, rounded up as a float.
        """
        noise, degrees = self.noise_multiplier, self.degrees
        if noise == 0:
            return math.inf
        root = math.sqrt(degrees)
        shift = (root + 1 / root) / (2 * noise)
        return above(max(1.0, degrees) * self.smoothness + shift, 16.0)
