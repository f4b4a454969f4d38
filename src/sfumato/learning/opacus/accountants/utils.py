"""The noise that a guarantee needs, by Opacus's name."""

from __future__ import annotations

import math
from typing import Final

from sfumato import _check
from sfumato.privacy.calibration import calibrate
from sfumato.privacy.leaves.gaussian import Gaussian
from sfumato.privacy.neighboring import Neighboring
from sfumato.privacy.nodes.poisson import PoissonSubsampled

__all__ = ["get_noise_multiplier"]

_ROUNDING: Final = 1e-12


def get_noise_multiplier(
    *,
    target_epsilon: float,
    target_delta: float,
    sample_rate: float,
    epochs: int | None = None,
    steps: int | None = None,
    accountant: str = "prv",
) -> float:
    """Return the smallest noise multiplier whose whole run has a guarantee, rounded up.

    Parameters
    ----------
    target_epsilon, target_delta : float
        The guarantee, under adding or removing one example.
    sample_rate : float
        The probability with which each example is in a batch.
    epochs, steps : int
        How long the run is: one of them.
    accountant : {"rdp", "gdp", "prv"}
        All are the same one, which is certified.

    Returns
    -------
    float

    Examples
    --------
    >>> noise = get_noise_multiplier(target_epsilon=2.0, target_delta=1e-5, sample_rate=0.01, epochs=10)
    >>> 0.9 < noise < 1.0
    True
    """
    if accountant not in ("rdp", "gdp", "prv"):
        _check.refuse("accountant", "be 'rdp', 'gdp' or 'prv'", accountant, "leave it out")
    if (epochs is None) == (steps is None):
        _check.refuse("steps", "be given, or epochs", steps, "pass one of them")
    rate = _check.share("sample_rate", _check.positive("sample_rate", sample_rate))
    if steps is None:
        # Of a rate of 1 / n exactly n steps an epoch, though floats round; of any other, one more than less.
        steps = math.ceil(_check.integer("epochs", epochs, minimum=1) / rate * (1 - _ROUNDING))
    count = _check.integer("steps", steps, minimum=1)
    return calibrate(
        lambda noise: PoissonSubsampled(Gaussian(noise, neighboring=Neighboring.ADD_REMOVE), rate) * count,
        epsilon=target_epsilon,
        delta=_check.unit_interval("target_delta", target_delta, "use 1e-5, say"),
    )
