"""What one step loses on a batch that is known."""

from __future__ import annotations

from fractions import Fraction

from sfumato import _check
from sfumato.numerics.rounding import fraction_down
from sfumato.privacy.leaves.gaussian import Gaussian
from sfumato.privacy.neighboring import Neighboring

__all__ = ["gaussian_step"]


def gaussian_step(noise_multiplier: float, neighboring: Neighboring) -> Gaussian:
    """Return the loss of Gaussian noise on the sum over a batch.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of the noise over the most by which one unit's presence moves the sum in the L2
        norm.
    neighboring : Neighboring
        A unit that is replaced takes one contribution out and puts another in, so that the sum moves by twice
        as much; one that is zeroed out takes its contribution out only.

    Examples
    --------
    >>> gaussian_step(1.0, Neighboring.REPLACE_ONE).noise_multiplier
    0.5
    """
    noise = _check.non_negative("noise_multiplier", noise_multiplier)
    if neighboring is Neighboring.REPLACE_ONE:
        noise = fraction_down(Fraction(noise) / 2)
    return Gaussian(noise, neighboring=neighboring)
