"""Attribute auctions: split bidders into markets by a public attribute, with one price in each."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.games.auctions.price_curve import STEPS, PriceCurve, as_upper, bid_steps
from sfumato.games.game import as_labels
from sfumato.games.social_choice import Ledger, charged
from sfumato.mechanisms.base.additive import as_number
from sfumato.mechanisms.base.mechanism import Mechanism
from sfumato.mechanisms.base.rational import Number, drawn_epsilon
from sfumato.mechanisms.base.release import Release
from sfumato.numerics.randomness.source import Rng, random_source
from sfumato.numerics.sampling.choice import choose
from sfumato.privacy.leaves.exponential import Exponential
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring

__all__ = ["AttributeAuction", "MarketPrices"]

_UNIT: Final = Fraction(1, 1 << 40)
_LARGEST: Final = 1 << 22  # of a log weight: in units it is then below 2^63


class MarketPrices(NamedTuple):
    """How bidders are split, and what each market pays.

    Attributes
    ----------
    attribute : str or None
        The attribute by which they are split; None for one market.
    prices : dict
        From the attribute's values, or None, to prices.
    """

    attribute: str | None
    prices: dict[Any, float]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AttributeAuction(Mechanism):
    r"""A split of bidders by one of their public attributes, and a price for each market.

    Parameters
    ----------
    upper : int, float or Fraction
        The highest price; public.
    epsilon : int, float or Fraction
        Of one choice of a split and its prices.
    attributes : mapping of str to sequence
        Of each attribute its value for every bidder; public, as is the number of bidders.
    whole : bool
        Whether one market of all is among the choices.

    Raises
    ------
    ParameterError
        If a parameter breaks its rule, there is no choice, or epsilon is too small for so many bidders.

    Notes
    -----
    Guarantee: epsilon-DP of bounded range under replacing one bid. Each choice of a split and of prices
    weighs ``exp(c * revenue)``, each split the same before that. One bid changes the revenue of its own
    market alone, one way and by at most that market's price, so c would be ``epsilon / upper`` if the draw
    were exact. Given the split, prices are independent and drawn exactly. The split is drawn by weights
    that are summed in floats: their logs are off by at most e = (16 + markets + epsilon n) 2^-40, each, so
    that log odds are off by 8 e between two neighbors, and c is ``(epsilon - 8 e) / upper``.

    Which bidder buys is its own best response to the prices, as in `DigitalGoods`; so is truthfulness.

    References
    ----------
    McSherry, Talwar (2007), "Mechanism design via differential privacy", Section 4.2.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> region, age = rng.integers(2, size=(2, 2000))
    >>> bids = rng.uniform(0, 5, 2000) + 5 * region
    >>> auction = AttributeAuction(upper=10, epsilon=1, attributes={"region": region, "age": age})
    >>> found = auction.release(bids, rng=1).value
    >>> found.attribute, {market: round(price, 1) for market, price in found.prices.items()}
    ('region', {0: 2.5, 1: 5.0})
    """

    upper: Number
    epsilon: Number
    attributes: Mapping[str, Any]
    whole: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "upper", as_upper(self.upper))
        object.__setattr__(self, "epsilon", as_number("epsilon", self.epsilon))
        given: object = self.attributes
        if not isinstance(given, Mapping) or not given:
            remedy = "pass each attribute's values, by its name"
            _check.refuse_type("attributes", "be a mapping that is not empty", given, remedy)
        if not all(isinstance(name, str) for name in given):
            _check.refuse_state(
                "attributes", "have names", "one is no text", "leave None to the market of all"
            )
        columns = {name: _column(values) for name, values in self.attributes.items()}
        if len({len(column) for column in columns.values()}) != 1:
            _check.refuse_state("attributes", "have one length", "they differ", "give each bidder a value")
        object.__setattr__(self, "attributes", columns)
        if Fraction(self.epsilon) * self.bidders > _LARGEST:
            remedy = "pass a smaller epsilon, or hold several auctions"
            _check.refuse("epsilon", "be at most 2**22 over the number of bidders", self.epsilon, remedy)
        if not self.rate > 0:
            _check.refuse(
                "epsilon", "exceed the error of the draw", self.epsilon, "split fewer bidders, or pass more"
            )

    @property
    def neighboring(self) -> Neighboring:
        """One bid is replaced; who takes part, and attributes, are public."""
        return Neighboring.REPLACE_ONE

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """The loss of one choice."""
        return Exponential(self.epsilon, neighboring=self.neighboring)  # type: ignore[arg-type]

    @property
    def bidders(self) -> int:
        """How many there are."""
        return len(next(iter(self.attributes.values())))

    @property
    def error(self) -> Fraction:
        """By how much the log of a split's weight may be off."""
        return (16 + _most_markets(self.attributes) + Fraction(self.epsilon) * self.bidders) * _UNIT

    @property
    def rate(self) -> Fraction:
        """By how much one step of revenue raises the logarithm of a weight."""
        return (drawn_epsilon(self.epsilon) - 8 * self.error) / STEPS

    def release(
        self, value: Any, rng: Rng = None, *, ledger: Ledger | None = None, description: str = "prices"
    ) -> Release:
        """Draw a split and its prices.

        Parameters
        ----------
        value : array of shape (n,)
            Bids, in the order of the attributes' values.
        rng : None, int, numpy Generator or RandomSource
            None draws from the operating system's entropy; anything seeded only simulates.
        ledger : Ledger, optional
            Charged before anything is drawn.
        description : str
            For the ledger.

        Returns
        -------
        Release
            Its value is `MarketPrices`.

        Raises
        ------
        ParameterError
            If there is not one bid for each bidder.
        BudgetExceeded
            If the ledger cannot pay.
        """
        splits, source = self._splits(value), random_source(rng)
        receipt = charged(ledger, self.privacy_loss, description, source)
        logs = np.array([_log_weight(curves) for curves in splits.values()])
        gaps = np.rint((logs.max() - logs) / float(_UNIT)).astype(np.int64)
        attribute = list(splits)[choose(gaps, _UNIT, rng=source)]
        unit = float(self.upper) / STEPS
        prices = {label: int(curve.draw(1, source)[0]) * unit for label, curve in splits[attribute].items()}
        return self._release_as(Release, MarketPrices(attribute, prices), source, receipt=receipt)

    def probabilities(self, bids: Any) -> dict[str | None, float]:
        """Return the probability of each split: private, for the data's owner and for tests.

        Parameters
        ----------
        bids : array of shape (n,)

        Returns
        -------
        dict
            By the attribute; None is one market of all.
        """
        splits = self._splits(bids)
        logs = np.array([_log_weight(curves) for curves in splits.values()])
        weights = np.exp(logs - logs.max())
        return dict(zip(splits, (weights / weights.sum()).tolist(), strict=True))

    def expected_revenue(self, bids: Any) -> float:
        """Return the expected revenue over the mechanism's randomness: private, for the data's owner.

        Parameters
        ----------
        bids : array of shape (n,)

        Returns
        -------
        float
        """
        chances, splits = self.probabilities(bids), self._splits(bids)
        steps = sum(
            chances[name] * sum(curve.expected_revenue() for curve in curves.values())
            for name, curves in splits.items()
        )
        return steps * float(self.upper) / STEPS

    def optimum(self, bids: Any) -> tuple[MarketPrices, float]:
        """Return the best split and prices in hindsight, and their revenue: not private.

        Parameters
        ----------
        bids : array of shape (n,)

        Returns
        -------
        MarketPrices
        float
        """
        unit = float(self.upper) / STEPS
        found = {}
        for name, curves in self._splits(bids).items():
            best = {label: curve.best() for label, curve in curves.items()}
            prices = {label: price * unit for label, (price, _) in best.items()}
            found[name] = (MarketPrices(name, prices), sum(revenue for _, revenue in best.values()) * unit)
        return max(found.values(), key=lambda pair: pair[1])

    def _splits(self, bids: Any) -> dict[str | None, dict[Any, PriceCurve]]:
        steps = bid_steps("bids", bids, float(self.upper))
        if steps.size != self.bidders:
            remedy = "a bidder who is absent bids 0"
            _check.refuse_state("bids", "be one for each bidder", "there are more or fewer", remedy)
        rate = self.rate
        whole = {None: {None: PriceCurve.of_bids(steps, rate)}} if self.whole else {}
        return whole | {name: _markets(steps, column, rate) for name, column in self.attributes.items()}


def _column(values: Any) -> tuple[Any, ...]:
    if not isinstance(values, Sequence | np.ndarray) or isinstance(values, bytes):
        _check.refuse_type("attributes", "hold sequences", values, "pass lists or arrays")
    column = tuple(np.asarray(values).tolist()) if isinstance(values, np.ndarray) else tuple(values)
    as_labels("attributes", tuple(dict.fromkeys(column)))
    return column


def _markets(steps: NDArray[np.int64], column: tuple[Any, ...], rate: Fraction) -> dict[Any, PriceCurve]:
    place = {label: at for at, label in enumerate(dict.fromkeys(column))}
    which = np.fromiter((place[label] for label in column), np.int64, len(column))
    order = np.argsort(which, kind="stable")
    parts = np.split(steps[order], np.bincount(which).cumsum()[:-1])
    labels = sorted(place, key=str)
    return {label: PriceCurve.of_bids(parts[place[label]], rate) for label in labels}


def _log_weight(curves: Mapping[Any, PriceCurve]) -> float:
    """Return the log of the mean weight over all prices of all markets."""
    return math.fsum(curve.log_total() - math.log(STEPS) for curve in curves.values())


def _most_markets(attributes: Mapping[str, Sequence[Any]]) -> int:
    return max(len(set(column)) for column in attributes.values())
