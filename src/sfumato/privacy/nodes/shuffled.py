"""Shuffling: many clients randomize on their own, and only the unordered reports are seen."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

from sfumato._wire import INTEGER
from sfumato.errors import UnsupportedView
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.nodes._shuffle_model import ShuffleModelNode
from sfumato.privacy.pairs.pair import Pair
from sfumato.privacy.pairs.shuffling.blanket import Blanketed, blanketed
from sfumato.privacy.pairs.shuffling.clones import clones
from sfumato.privacy.serialization import LOSS, serialized_as

__all__ = ["Shuffled"]


@final
@serialized_as("shuffled", loss=LOSS, clients=INTEGER)
@dataclass(frozen=True, slots=True, repr=False)
class Shuffled(ShuffleModelNode):
    r"""One report from each of many clients, all by the same local randomizer, seen in random order.

    Parameters
    ----------
    loss : PrivacyLoss
        Of the local randomizer when its one client's datum is replaced by any other: under replace-one, and
        of pure DP. A report of several parts has a composed one; the parts stay together.
    clients : int
        Guaranteed number of honest reports in the batch; at least 1, public. Colluding clients don't count.

    Notes
    -----
    Guarantee: replace-one, an upper bound (``tight`` is False). Conditions: each client reports once per
    batch; whoever sees the reports learns nothing of who sent which. It says nothing about batches of
    training examples.

    Feldman, McMillan, Talwar (2021), Theorem 3.2. Proof, for one randomizer :math:`R`. Let the changed client
    have :math:`x^0` or :math:`x^1`, and :math:`w = e^{\epsilon_0}/(1 + e^{\epsilon_0})`. There are
    distributions :math:`Q_0, Q_1` with :math:`R(x^0) = wQ_0 + (1-w)Q_1`, :math:`R(x^1) = (1-w)Q_0 + wQ_1`
    (Kairouz, Oh, Viswanath 2015), so that :math:`R(x^0) + R(x^1) = Q_0 + Q_1`. For any x,
    :math:`R(x) \ge e^{-\epsilon_0} \max(R(x^0), R(x^1)) \ge e^{-\epsilon_0} (Q_0 + Q_1)/2`: with probability
    :math:`e^{-\epsilon_0}`, each other client reports like a fair coin's choice of :math:`Q_0` and
    :math:`Q_1` (a clone), and else by a distribution of its own. Which clients are clones is independent of
    all, so the shuffled reports are drawn from how many come from :math:`Q_0` and how many from :math:`Q_1`
    alone: the two counts of `sfumato.privacy.pairs.shuffling.clones`.

    A randomizer that knows a distribution which part of every report is drawn from, like `RandomizedResponse`
    and `SupportResponse`, hides among more reports than clones: Balle, Bell, Gascón, Nissim (2019), with the
    proof in `sfumato.privacy.pairs.shuffling.blanket`. It is never more, and often half as much.

    Examples
    --------
    >>> from sfumato.privacy import Neighboring, PureDP, RandomizedResponse
    >>> local = PureDP(2.0, neighboring=Neighboring.REPLACE_ONE)
    >>> round(Shuffled(local, clients=100_000).epsilon(1e-6), 4)
    0.045
    >>> round(Shuffled(RandomizedResponse(2.0, categories=10), clients=100_000).epsilon(1e-6), 4)
    0.0231
    """

    loss: PrivacyLoss
    clients: int

    def __post_init__(self) -> None:
        self._check_report()
        epsilon, delta = self.loss.pure()
        if delta > 0 or math.isinf(epsilon):
            raise UnsupportedView(f"{self.loss!r} has no pure view with delta 0, which shuffling needs")
        remedy = "pass the guaranteed number of honest reports"
        self._set_integers("clients", remedy=remedy)

    def dominating_pair(self) -> Pair:
        """Return the pair of the blanket, where the randomizer knows one, or that of the clones.

        Returns
        -------
        Pair
            Distributions P and Q whose divergences bound those of the outputs on any two neighbors.
        """
        if isinstance(self.loss, Blanketed):
            return blanketed(self.loss.blanket(), self.clients)
        return clones(self.loss.pure().epsilon, self.clients)
