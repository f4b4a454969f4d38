"""The largest epsilon of one more answer, given what it may cost."""

from __future__ import annotations

import math
from collections.abc import Callable

from sfumato.privacy.leaves.discrete_gaussian import DiscreteGaussian
from sfumato.privacy.leaves.discrete_laplace import DiscreteLaplace
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring

__all__ = ["ROUNDING_MARGIN", "largest_epsilon"]

ROUNDING_MARGIN = 1 - 2**-30
"""Factor on a suggested epsilon: a mechanism that is calibrated to it fits in spite of rounding."""

LARGEST_NOISE = 2.0**100


def largest_epsilon(fits: Callable[[PrivacyLoss], bool], delta: float, neighboring: Neighboring) -> float:
    """Return the largest epsilon, read at ``delta``, of one count with Gaussian or Laplace noise that fits.

    The noise is that which is drawn, on the integers. In rho and mu it costs a little more than continuous
    noise of the same epsilon, above all on a count, where a unit moves the answer by a single step.

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
    return max(_largest_epsilon_of(leaf, fits, delta, neighboring) for leaf in leaves)


def _largest_epsilon_of(
    leaf: Callable[..., PrivacyLoss],
    fits: Callable[[PrivacyLoss], bool],
    delta: float,
    neighboring: Neighboring,
) -> float:
    """Return the epsilon at ``delta`` of the smallest noise that fits, found by bisection.

    0 if no noise is enough, or if the leaf has no finite epsilon at this delta.
    """
    enough = 1.0
    while not fits(leaf(enough, neighboring=neighboring)):
        enough *= 2
        if enough > LARGEST_NOISE:
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
    return epsilon * ROUNDING_MARGIN if math.isfinite(epsilon) else 0.0
