"""A price as a release, and what price mechanisms share."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, final

from sfumato import _check
from sfumato.games.auctions.price_curve import STEPS, PriceCurve, as_upper
from sfumato.games.incentives.truthfulness_bound import TruthfulnessBound, truthfulness
from sfumato.games.social_choice import Ledger, charged
from sfumato.mechanisms.base.additive import as_number, check_informative
from sfumato.mechanisms.base.mechanism import Mechanism
from sfumato.mechanisms.base.rational import Number, drawn_epsilon
from sfumato.mechanisms.base.release import Release
from sfumato.numerics.randomness.source import Rng, random_source
from sfumato.privacy.leaves.exponential import Exponential
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring

__all__ = ["PostedPrice", "PriceMechanism"]

_LARGEST: Final = 1 << 40


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PostedPrice(Release):
    """A price that everybody is offered.

    Parameters
    ----------
    upper : float
        The highest price; public.
    steps : int
        The price in steps of ``upper / 2**36``.
    value, loss, neighboring, receipt, simulated, labels
        As in `sfumato.mechanisms.Release`; the value is the price.

    Examples
    --------
    >>> from sfumato.games import DigitalGoods
    >>> price = DigitalGoods(upper=10, epsilon=1).release([2, 9, 9, 8, 3] * 20, rng=1)
    >>> price.buys(9), price.buys(0)
    (True, False)
    """

    upper: float
    steps: int

    def buys(self, bid: float) -> bool:
        """Return whether a bidder is sold a unit at the price.

        Parameters
        ----------
        bid : float

        Returns
        -------
        bool
            Whether the bid, rounded down to the steps, is at least the price: the bidder's own best response
            to what is public.
        """
        return bid * (STEPS / self.upper) >= self.steps


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceMechanism(Mechanism):
    """What mechanisms that post one price share."""

    upper: Number
    epsilon: Number

    def __post_init__(self) -> None:
        object.__setattr__(self, "upper", as_upper(self.upper))
        object.__setattr__(self, "epsilon", as_number("epsilon", self.epsilon))
        check_informative(self.epsilon)
        if self.epsilon > _LARGEST:
            _check.refuse(
                "epsilon", "be at most 2**40", self.epsilon, "pass a smaller one, which earns as much"
            )
        self._check_own()

    @property
    @final
    def neighboring(self) -> Neighboring:
        """One record is replaced; how many there are is public."""
        return Neighboring.REPLACE_ONE

    @property
    @final
    def privacy_loss(self) -> PrivacyLoss:
        """The loss of one price."""
        return Exponential(self.epsilon, neighboring=self.neighboring)  # type: ignore[arg-type]

    @property
    @final
    def truthfulness(self) -> TruthfulnessBound:
        """What a lie gains at most, for utilities from 0 to the highest price."""
        return truthfulness(self.privacy_loss, (0.0, float(self.upper)))

    @final
    def release(
        self,
        value: Any,
        rng: Rng = None,
        *,
        ledger: Ledger | None = None,
        description: str = "price",
    ) -> PostedPrice:
        """Draw a price.

        Parameters
        ----------
        value : array
            What bidders bid; see the class.
        rng : None, int, numpy Generator or RandomSource
            None draws from the operating system's entropy; anything seeded only simulates.
        ledger : Ledger, optional
            Charged before anything is drawn.
        description : str
            For the ledger.

        Returns
        -------
        PostedPrice

        Raises
        ------
        ParameterError
            If the bids are no array of numbers.
        BudgetExceeded
            If the ledger cannot pay.
        """
        curve, source = self.curve(value), random_source(rng)
        receipt = charged(ledger, self.privacy_loss, description, source)
        steps = int(curve.draw(1, source)[0])
        upper = float(self.upper)
        return self._release_as(
            PostedPrice, steps * upper / STEPS, source, receipt=receipt, upper=upper, steps=steps
        )

    @final
    def expected_revenue(self, value: Any) -> float:
        """Return the expected revenue over the mechanism's randomness: private, for the data's owner.

        Parameters
        ----------
        value : array
            As in `release`.

        Returns
        -------
        float
            A sum over all prices in closed form, right to a relative 1e-9.
        """
        return self.curve(value).expected_revenue() * float(self.upper) / STEPS

    @abstractmethod
    def curve(self, value: Any) -> PriceCurve:
        """Return the revenue of every price, with its weight.

        Parameters
        ----------
        value : array
            As in `release`.

        Returns
        -------
        PriceCurve
        """

    def _check_own(self) -> None:
        """Check a subclass's own parameters."""

    def _rate(self, range_: int) -> Fraction:
        return drawn_epsilon(self.epsilon) / (range_ * STEPS)

    def _refuse_supply(self, supply: int | None) -> None:
        if supply is not None:
            _check.integer("supply", supply, minimum=1, remedy="leave it out if there is no limit")
