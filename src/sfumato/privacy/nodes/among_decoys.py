"""Decoys in the shuffle model: one client's report, mixed with fake reports that look like it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from sfumato import _check
from sfumato._wire import INTEGER, RATIONAL, Field
from sfumato.errors import UnsupportedView
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.nodes._shuffle_model import ShuffleModelNode
from sfumato.privacy.pairs.pair import Pair
from sfumato.privacy.pairs.shuffling.blanket import Blanketed, among
from sfumato.privacy.serialization import LOSS, serialized_as

__all__ = ["AmongDecoys"]


@final
@serialized_as("among-decoys", loss=LOSS, decoys=INTEGER, probability=Field("chance", RATIONAL))
@dataclass(frozen=True, slots=True, repr=False)
class AmongDecoys(ShuffleModelNode):
    r"""One client's report in random order among decoys drawn from what all reports have in common.

    Parameters
    ----------
    loss : PrivacyLoss
        Of the local randomizer, under replace-one; one that knows its common distribution, like
        `RandomizedResponse` (the even distribution) and `SupportResponse`.
    decoys : int
        How many the honest clients may send, the changed one with them; at least 0, public.
    chance : int, float or Fraction
        With which each of them is sent, independently of all else; above 0 and at most 1. It is then a fresh
        draw from the common distribution.

    Notes
    -----
    Guarantee: replace-one, an upper bound (``tight`` is False): multi-message protocols of the shuffle model.
    Conditions: whoever sees the reports and decoys learns nothing of which are which, nor of who sent which;
    who sends a decoy, and which, depends on no datum.

    Proof. Reveal all reports of the other clients: they do not depend on the changed datum. Left are the
    changed client's report and the decoys, M - 1 binomial of ``decoys`` and ``chance``; given M, the
    pair is that of `sfumato.privacy.pairs.shuffling.blanket`. That the total number of messages, or how many
    each client sent, is seen does no harm: given these numbers the decoys still are independent draws.

    References
    ----------
    Balcer, Cheu (2020), "Separating local and shuffled differential privacy via histograms"; Cheu, Smith,
    Ullman, Zeber, Zhilyaev (2019), "Distributed differential privacy via shuffling"; Balle, Bell, Gascón,
    Nissim (2019), the blanket.

    Examples
    --------
    >>> from sfumato.privacy import RandomizedResponse
    >>> loss = AmongDecoys(RandomizedResponse(16.0, categories=100), decoys=20_000, chance=0.5)
    >>> round(loss.epsilon(1e-6), 2)
    0.6
    """

    loss: PrivacyLoss
    decoys: int
    chance: float | Fraction

    def __post_init__(self) -> None:
        self._check_report()
        if not isinstance(self.loss, Blanketed):
            raise UnsupportedView(f"{self.loss!r} names no distribution that decoys could be drawn from")
        if math.isinf(self.loss.pure().epsilon):
            raise UnsupportedView(f"{self.loss!r} has no finite pure view, which decoys need")
        remedy = "pass how many the honest clients may send"
        self._set_integers("decoys", minimum=0, remedy=remedy)
        self._set("chance", _chance(self.chance))

    def dominating_pair(self) -> Pair:
        """Return the pair of the blanket with so many draws.

        Returns
        -------
        Pair
            Distributions P and Q whose divergences bound those of the outputs on any two neighbors.
        """
        randomizer: object = self.loss
        if not isinstance(randomizer, Blanketed):
            self._missing("dominating pair")
        return among(randomizer.blanket(), self.decoys, Fraction(self.chance))


def _chance(value: object) -> Fraction:
    """Check a probability, and return it as the rational it is."""
    if not 0 < _check.non_negative("chance", value, "pass the probability that a decoy is sent") <= 1:
        _check.refuse("chance", "be above 0 and at most 1", value, "pass decoys=0 for none")
    return _check.fraction("chance", value, "pass the probability that a decoy is sent")
