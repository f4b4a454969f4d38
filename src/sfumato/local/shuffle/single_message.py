"""One message each: the loosest protocol whose shuffled reports still satisfy a target."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final, TypeVar

from sfumato import _check
from sfumato.local.base.protocol import LocalProtocol
from sfumato.local.numeric.window import StochasticRoundingMean

__all__ = ["loosest", "single_message_mean"]

Made = TypeVar("Made", bound=LocalProtocol[Any, Any])

_MIN: Final = 1e-3
_MAX: Final = 40.0
_SHARE: Final = 0.02
_FIRST: Final = 0.25


def loosest(
    make: Callable[[float], Made],
    *,
    epsilon: float,
    delta: float,
    clients: int,
    guess: float | None = None,
) -> Made:
    r"""Return the protocol of the largest local epsilon whose shuffled reports satisfy (epsilon, delta).

    Parameters
    ----------
    make : callable
        From a local epsilon to a protocol with one message a client.
    epsilon, delta : float
        What the shuffled batch guarantees each client, under replace-one.
    clients : int
        Guaranteed number of honest clients in a batch.
    guess : float, optional
        Where to begin; it saves time.

    Returns
    -------
    LocalProtocol
        What ``make`` gave, for an epsilon at most 0.02 below the largest (and from 0.001 to 40).

    Raises
    ------
    ParameterError
        If a parameter breaks its rule, or even a local epsilon of 0.001 is too much.

    Notes
    -----
    Guarantee: `Shuffled` of the protocol's loss has a delta of at most ``delta`` at ``epsilon``: that is
    asked of the very protocol which is returned.

    Examples
    --------
    >>> from sfumato import local
    >>> made = loosest(
    ...     lambda e: local.OneBitMean(epsilon=e, bounds=(0.0, 1.0)), epsilon=1.0, delta=1e-6, clients=10_000
    ... )
    >>> 5.3 < made.epsilon < 5.6
    True
    """
    target = _check.positive("epsilon", epsilon)
    allowed = _check.unit_interval("delta", delta)
    remedy = "pass the guaranteed number of honest clients"
    count = _check.integer("clients", clients, minimum=1, remedy=remedy)

    step = _FIRST if guess is None else 2 * _SHARE
    if guess is None:
        # As many even reports of each kind as hide a client: see ShuffledHistogram.
        hiding = math.log(1 / allowed) * max(1.0, 3 / target**2)
        guess = max(target, math.log(count / hiding)) if count > hiding else target

    def tried(local: float) -> Made | None:
        made = make(local)
        return made if made.shuffled_loss(count).delta(target) <= allowed else None

    low = high = min(max(guess, _MIN), _MAX)
    best = tried(low)
    while best is None and low > _MIN:
        low, high, step = max(low - step, _MIN), low, 2 * step
        best = tried(low)
    if best is None:
        _check.refuse("epsilon", "be satisfied by a local epsilon of 0.001", epsilon, "allow a larger one")
    while high <= low < _MAX:
        high, step = min(low + step, _MAX), 2 * step
        if (more := tried(high)) is not None:
            low, best = high, more
    while high - low > _SHARE:
        middle = (low + high) / 2
        if (more := tried(middle)) is None:
            high = middle
        else:
            low, best = middle, more
    return best


def single_message_mean(
    *, epsilon: float, delta: float, clients: int, bounds: tuple[float, float]
) -> StochasticRoundingMean:
    r"""Return about the best protocol for a mean with one message each, seen shuffled.

    Parameters
    ----------
    epsilon, delta, clients
        See `loosest`.
    bounds : tuple of float
        Bounds of the numbers that can be true; public.

    Returns
    -------
    StochasticRoundingMean
        Its ``epsilon`` is what each report guarantees by itself.

    Notes
    -----
    Guarantee: see `loosest`. With m steps, and :math:`c = n\gamma/m` even reports for each grid point, the
    squared error of the sum is about :math:`cm/3 + n/4m^2`, which is smallest at :math:`m = (3n/2c)^{1/3}`.
    The c is taken from a first try.

    References
    ----------
    Balle, Bell, Gascón, Nissim (2019), "The privacy blanket of the shuffle model", summation of
    real numbers.

    Examples
    --------
    >>> made = single_message_mean(epsilon=2.0, delta=1e-3, clients=100, bounds=(0.0, 1.0))
    >>> made.steps, round(100 * made.variance(100) ** 0.5)
    (3, 3)
    """

    def with_steps(steps: int, guess: float | None = None) -> StochasticRoundingMean:
        def make(local: float) -> StochasticRoundingMean:
            return StochasticRoundingMean(epsilon=local, bounds=bounds, steps=steps)

        return loosest(make, epsilon=epsilon, delta=delta, clients=clients, guess=guess)

    count = _check.integer("clients", clients, minimum=1)
    first = max(1, round(count ** (1 / 3) / 3))
    tried = with_steps(first)
    even = count * float(1 - tried.device.inside.chance) / first
    best = max(1, round((1.5 * count / even) ** (1 / 3)))
    return tried if best == first else with_steps(best, tried.epsilon)
