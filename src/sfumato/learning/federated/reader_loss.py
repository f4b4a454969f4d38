r"""What readers of the models learn, if they do not see who took part.

The server sees who takes part in each round, and so do the clients that do: sampling hides nothing from them.
A reader sees the models only. For one client k, condition on which of the others are drawn and on which of
them drop out; both have to be independent of all data and of whether k is drawn. If k's coin does not decide
whether the round is aborted, the reader sees, with probability q, the others' sum plus k's rounded vector
plus noise, and otherwise the others' sum plus noise of the same distribution: a Poisson-subsampled mechanism.
The server tops up the noise to that of a fixed number of clients, for otherwise the size of the noise would
show how many took part.

k's coin decides about an abort only if exactly one client fewer than the minimum survives without k, or
exactly as many as the round has room for are drawn without k. Chernoff's bound on the binomial distribution
bounds the chance c of that in a round; without these rounds the distributions of all T rounds move by at most
Tc in total variation, and so :math:`\delta(\epsilon)` by :math:`(1 + e^\epsilon) T c`.
"""

from __future__ import annotations

import math

from sfumato.numerics.rounding import add_up, exp_up
from sfumato.privacy._outward import above, below
from sfumato.privacy.loss import PrivacyLoss

__all__ = ["abort_chance", "epsilon_despite_aborts"]


def abort_chance(others: int, probability: float, *, fewest: int, most: int) -> float:
    """Return a bound on the chance that at most ``fewest`` or at least ``most`` of the others are drawn.

    Parameters
    ----------
    others : int
        Clients that are drawn independently.
    probability : float
        With which each is drawn; below 1.
    fewest, most : int

    Returns
    -------
    float
        Chernoff's bound for each side, added and rounded up; at most 1.

    Examples
    --------
    >>> 0 < abort_chance(999, 0.2, fewest=120, most=300) < 1e-9
    True
    """
    mean = others * probability
    low = _tail(others, probability, min(fewest, mean))
    high = _tail(others, probability, max(most, mean))
    return min(1.0, add_up(low, high))


def _tail(count: int, probability: float, at: float) -> float:
    """Bound the chance of a binomial variable to be as far from its mean as ``at``, or farther; 1 there."""
    if not 0 <= at <= count:
        return 0.0
    rest = count - at
    gain = at * math.log(at / (count * probability)) if at else 0.0
    loss = rest * math.log(rest / (count * (1 - probability))) if rest else 0.0
    return exp_up(min(0.0, -below(gain + loss, 64.0, abs(gain) + abs(loss) + count)))


def epsilon_despite_aborts(loss: PrivacyLoss, delta: float, chance: float) -> float | None:
    """Return an epsilon at ``delta``, or None if the chance of aborts is too large for any.

    Parameters
    ----------
    loss : PrivacyLoss
        Of all rounds, if no round's abort depends on the client.
    delta : float
    chance : float
        Upper bound on the chance that some round's abort does.

    Returns
    -------
    float or None
        ``loss`` is read at half of ``delta``; the other half covers ``(1 + e^epsilon) * chance``.
    """
    if not chance:
        return loss.epsilon(delta)
    found = loss.epsilon(below(delta / 2))
    if not found < 700 or above((1 + math.exp(found)) * chance, 64.0) > below(delta / 2):
        return None
    return found
