"""The largest epsilon of one more answer, given what it may cost."""

from __future__ import annotations

import math
from collections.abc import Callable

from sfumato.privacy.leaves.discrete_gaussian import DiscreteGaussian
from sfumato.privacy.leaves.discrete_laplace import DiscreteLaplace
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring

__all__ = ["SHY", "largest_epsilon"]

SHY = 1 - 2**-30
"""Factor on an epsilon that is offered: a mechanism calibrated to it fits in spite of rounding on its way."""

MOST_NOISE = 2.0**100


def largest_epsilon(fits: Callable[[PrivacyLoss], bool], delta: float, neighboring: Neighboring) -> float:
    """Return the largest epsilon, read at ``delta``, of one count with Gaussian or Laplace noise that fits.

    The noise is that which is drawn, on the integers. In rho and mu it costs a little more than continuous
    noise of the same epsilon, and most on a count, where a unit moves the answer by a single step.

    Parameters
    ----------
    fits : callable
        Whether a loss fits; with more noise it must still fit.
    delta : float
        Where the answer's epsilon is read. At 0 only a Laplace answer has one.
    neighboring : Neighboring
        The relation of the answer.

    Returns
    -------
    float
        Rounded down by one part in a thousand million; 0 if no answer fits.
    """
    leaves = (DiscreteGaussian, DiscreteLaplace)
    return max(_loosest_epsilon(leaf, fits, delta, neighboring) for leaf in leaves)


def _loosest_epsilon(
    leaf: Callable[..., PrivacyLoss],
    fits: Callable[[PrivacyLoss], bool],
    delta: float,
    neighboring: Neighboring,
) -> float:
    """Return the epsilon at ``delta`` of the least noise that fits, found by bisection.

    0 if no noise is enough, or if the leaf has no finite epsilon at this delta.
    """
    enough = 1.0
    while not fits(leaf(enough, neighboring=neighboring)):
        enough *= 2
        if enough > MOST_NOISE:
            return 0.0
    too_little = enough / 2
    while fits(leaf(too_little, neighboring=neighboring)):
        enough, too_little = too_little, too_little / 2
    # The two differ by a factor of 2, or are neighbors among the smallest floats, with nothing between them.
    while too_little < (middle := (enough + too_little) / 2) < enough and enough > too_little * (1 + 2**-36):
        if fits(leaf(middle, neighboring=neighboring)):
            enough = middle
        else:
            too_little = middle
    epsilon = leaf(enough, neighboring=neighboring).quick_epsilon(delta)
    return epsilon * SHY if math.isfinite(epsilon) else 0.0
