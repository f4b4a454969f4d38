r"""The odds of a loss: what one can come to believe of a unit, and how likely what follows for it becomes.

*Belief.* Let neighbors' outputs have the densities :math:`P` and :math:`Q` and :math:`P \le e^\epsilon Q`,
:math:`Q \le e^\epsilon P` (epsilon at delta 0). By Bayes' rule, after any output the odds of the one against
the other are the prior odds times :math:`P / Q`, so that a belief :math:`\pi` becomes at most
:math:`\pi e^\epsilon / (\pi e^\epsilon + 1 - \pi)`, and at least that with :math:`-\epsilon`. With a delta
above 0 the quotient has no bound that holds for every output, and none is stated.

*Event.* What follows from the output has the probability :math:`\alpha` under one neighbor, and under the
other at most :math:`1 - f(\alpha)`, with the trade-off function :math:`f` of both orders
(`sfumato.privacy.interpretation.tradeoff`): were it more, then to reject upon it would be a better test.

The chance of a right guess is an event, too: `sfumato.privacy.PrivacyLoss.risk`, with an even prior.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, final

from sfumato.privacy._outward import above, below
from sfumato.privacy.loss import PrivacyLoss

__all__ = ["Belief", "Event", "Odds", "odds"]

EVEN: Final = 0.5
_CHANCES: Final = (0.01, 0.1, EVEN)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Belief:
    """A belief before, and what it can become.

    Parameters
    ----------
    before, least, most : float
    """

    before: float
    least: float
    most: float


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """The chance of an event without a unit's data, and with them at most.

    Parameters
    ----------
    without, most : float
    """

    without: float
    most: float


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Odds:
    """What a loss means for one unit; every number is on the safe side.

    Parameters
    ----------
    beliefs : tuple of Belief
        None of them where no bound on a belief holds for every output. The last is of an even belief.
    events : tuple of Event
        The last is of an even chance.
    right : float
        The chance, at most, of guessing rightly whether the unit is there, where that is even before.

    Examples
    --------
    >>> from sfumato.privacy import Gaussian, PureDP
    >>> half = odds(PureDP(0.5))
    >>> round(half.beliefs[-1].most, 4), round(half.events[-1].most, 4)
    (0.6225, 0.6967)
    >>> odds(Gaussian(2.0)).beliefs
    ()
    """

    beliefs: tuple[Belief, ...]
    events: tuple[Event, ...]
    right: float


def odds(loss: PrivacyLoss) -> Odds:
    """Return the odds of a loss.

    Parameters
    ----------
    loss : PrivacyLoss

    Returns
    -------
    Odds

    Notes
    -----
    Guarantee: each number holds under the loss's relation, whatever is known of the other units; see the
    module's proofs.
    """
    pure = loss.epsilon(0.0)
    beliefs = (_belief(chance, pure) for chance in _CHANCES) if math.isfinite(pure) else ()
    return Odds(
        beliefs=tuple(beliefs),
        events=tuple(
            Event(without=chance, most=min(1.0, above(1.0 - loss.trade_off(chance).lower)))
            for chance in _CHANCES
        ),
        right=loss.risk(prior=EVEN).accuracy.upper,
    )


def _belief(before: float, epsilon: float) -> Belief:
    odds_against = (1.0 - before) / before
    most = above(1.0 / (1.0 + odds_against * math.exp(-epsilon)), 16.0)
    # 1 / (1 + x e**epsilon), without an overflow
    shrunk = math.exp(-epsilon)
    least = below(shrunk / (shrunk + odds_against), 16.0)
    return Belief(before=before, least=max(0.0, least), most=min(1.0, most))
