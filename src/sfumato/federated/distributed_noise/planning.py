"""How many bits an entry of a noisy sum needs."""

from __future__ import annotations

import math
from typing import Any, TypeVar

from sfumato import _check
from sfumato.errors import ParameterError
from sfumato.federated.distributed_noise.additive_noise import MAX_BITS, AdditiveNoise

__all__ = ["plan_bits"]

Noise = TypeVar("Noise", bound=AdditiveNoise)


def plan_bits(mechanism: type[Noise], *, grid_error: float = 1.05, **parameters: Any) -> Noise:
    """Return the mechanism with the fewest bits whose grid costs little accuracy.

    Parameters
    ----------
    mechanism : type
        `DistributedDiscreteGaussian` or `DistributedSkellam`.
    grid_error : float, default 1.05
        The most that rounding and the grid multiply the standard deviation of the error, above 1.
    **parameters
        All of the mechanism but ``bits`` and ``scale``. Its ``wraparound`` bounds the chance that the sum
        wraps around.

    Returns
    -------
    DistributedDiscreteGaussian or DistributedSkellam

    Raises
    ------
    ParameterError
        If a parameter breaks its rule, or no modulus will do.

    Examples
    --------
    >>> from sfumato.federated import DistributedDiscreteGaussian, plan_bits
    >>> noise = plan_bits(
    ...     DistributedDiscreteGaussian,
    ...     clients=1000,
    ...     minimum_survivors=900,
    ...     dimension=100_000,
    ...     clip_norm=1.0,
    ...     noise_multiplier=1.0,
    ... )
    >>> noise.bits, noise.wraparound_bound <= 1e-6
    (15, True)
    """
    if _check.finite("grid_error", grid_error) <= 1:
        _check.refuse("grid_error", "be above 1", grid_error, "1.05 costs five percent")
    low, high = 2, MAX_BITS
    widest = mechanism(bits=MAX_BITS, **parameters)  # refuses what no number of bits mends
    if _overhead(widest) > grid_error:
        _check.refuse("grid_error", f"be at least {_overhead(widest):.6g} here", grid_error, "allow more")
    found = widest
    while low < high:
        middle = (low + high) // 2
        try:
            candidate = mechanism(bits=middle, **parameters)
        except ParameterError:
            low = middle + 1
            continue
        if _overhead(candidate) <= grid_error:
            found, high = candidate, middle
        else:
            low = middle + 1
    return found


def _overhead(noise: AdditiveNoise) -> float:
    """Return the error over that of the same noise without a grid."""
    return noise.error_ratio * math.sqrt(noise.honest_survivors / noise.minimum_survivors)
