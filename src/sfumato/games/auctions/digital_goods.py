"""Digital goods: one price for all, by the exponential mechanism over continuous prices."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.games.auctions.posted_price import PriceMechanism
from sfumato.games.auctions.price_curve import STEPS, PriceCurve, bid_steps
from sfumato.games.auctions.revenue_guarantee import RevenueGuarantee, revenue_guarantee
from sfumato.mechanisms.base.rational import drawn_epsilon
from sfumato.numerics.rounding import down, fraction_down

__all__ = ["BestBid", "DigitalGoods", "OptimalPrice"]


class OptimalPrice(NamedTuple):
    """The best price in hindsight, which is not private.

    Attributes
    ----------
    price : float
    sold : int
        How many units it sells.
    revenue : float
    """

    price: float
    sold: int
    revenue: float


class BestBid(NamedTuple):
    """The best lie of a bidder who knows all other bids.

    Attributes
    ----------
    bid : float
        At most the bidder's value.
    gain : float
        What it gains in expectation over the truth; at least 0.
    truth_utility, lie_utility : float
        The bidder's expected utilities.
    """

    bid: float
    gain: float
    truth_utility: float
    lie_utility: float


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DigitalGoods(PriceMechanism):
    r"""One price for many units of one good, drawn with weight ``exp(epsilon * revenue / upper)``.

    Parameters
    ----------
    upper : int, float or Fraction
        The highest price; public. Bids above it count as it.
    epsilon : int, float or Fraction
        Of one price.
    supply : int, optional
        How many units there are; no limit unless given. The revenue of a price is then the price times the
        smaller of supply and demand. If more want a unit than there are, a lottery gives them out.

    Notes
    -----
    Guarantee: epsilon-DP of bounded range for the price, under replacing one bid. Revenue at price p is
    :math:`p \min(s, N(p))`, with N(p) how many bid at least p. If a bid rises from b to b', N rises by 1 on
    :math:`(b, b']` and is the same elsewhere, so revenue moves by 0 to :math:`p \le` ``upper`` at every
    price: one way. The log odds of two prices move by at most epsilon. McSherry and Talwar (2007) price the
    same weights at 2 epsilon, which holds where revenue may move both ways. Prices are ``upper * k / 2**36``
    for k from 1; bids are rounded down to them; the draw is exact.

    Only the price is covered: who buys is every bidder's own best response to it, `PostedPrice.buys`, which
    makes all bidders' outcomes jointly private. With a supply the lottery shows others that demand exceeds
    it, which is not covered.

    *Truthfulness*, approximate: ``truthfulness`` bounds the gain of a lie. Whatever is bid, value less price
    if sold is at most the larger of that and 0, which the truth gets at every price: a function of the price.
    With a supply it is multiplied by one's chance of a unit, which depends on the others' bids alone.

    References
    ----------
    McSherry, Talwar (2007), "Mechanism design via differential privacy", Section 4.1.

    Examples
    --------
    >>> import numpy as np
    >>> bids = np.random.default_rng(1).uniform(0, 10, 1000)
    >>> auction = DigitalGoods(upper=10, epsilon=1)
    >>> auction.privacy_loss.epsilon(), round(auction.release(bids, rng=1).value, 1)
    (1.0, 5.1)
    >>> round(auction.expected_revenue(bids)), round(auction.optimum(bids).revenue)
    (2461, 2478)
    """

    supply: int | None = None

    def curve(self, value: Any) -> PriceCurve:
        """Return the revenue of every price.

        Parameters
        ----------
        value : array of shape (n,)
            Bids. NaN and what is negative count as 0.

        Returns
        -------
        PriceCurve
        """
        return self._curve(bid_steps("bids", value, float(self.upper)))

    def optimum(self, bids: Any) -> OptimalPrice:
        """Return the best price in hindsight: not private.

        Parameters
        ----------
        bids : array of shape (n,)

        Returns
        -------
        OptimalPrice
            The lowest of the bids, if several are best; the highest price if nobody bids.
        """
        steps = bid_steps("bids", bids, float(self.upper))
        price, revenue = self._curve(steps).best()
        unit = float(self.upper) / STEPS
        return OptimalPrice(price * unit, revenue // price, revenue * unit)

    def revenue_guarantee(self, bids: Any) -> RevenueGuarantee:
        """Return what the theorems say of the expected revenue on these bids: private as they are.

        Parameters
        ----------
        bids : array of shape (n,)

        Returns
        -------
        RevenueGuarantee
        """
        best = self.optimum(bids)
        return revenue_guarantee(
            optimum=max(0.0, down(best.revenue)),
            sold=best.sold,
            epsilon=fraction_down(drawn_epsilon(self.epsilon)),
            upper=float(self.upper),
        )

    def expected_utility(self, bid: float, others: Any, *, value: float) -> float:
        """Return the expected utility of a bidder who bids against others' bids.

        Parameters
        ----------
        bid : float
        others : array of shape (n - 1,)
            The other bids.
        value : float
            What a unit is worth to the bidder: value less price if it is sold one, else 0.

        Returns
        -------
        float
            A sum over all prices in closed form, right to 1e-9 of ``upper``.
        """
        own, steps, worth = self._bidder(bid, others, value)
        return self._utility(own, steps, worth) * float(self.upper) / STEPS

    def best_bid(self, value: float, others: Any) -> BestBid:
        r"""Return the best bid of a bidder who knows the others' bids, and what it gains over the truth.

        Parameters
        ----------
        value : float
            What a unit is worth to the bidder, in [0, upper].
        others : array of shape (n - 1,)
            The other bids.

        Returns
        -------
        BestBid

        Raises
        ------
        ParameterError
            If there is a supply: the proof is for none.

        Notes
        -----
        Let u(b) be the utility of bid b, in steps, and r the log weight of a step of revenue. The bid b
        instead of b - 1 adds the mass :math:`w(e^{rb} - 1)` at price b, which pays :math:`w e^{rb}(v - b)`;
        it is better if and only if :math:`g(b) = (v - b)/(1 - e^{-rb}) > u(b-1)`. With Z and U the whole
        weight and the weighted utility at b - 1, :math:`h(b) = g(b)Z - U` falls in b up to v: what Z and U
        gain in the step to b cancels, and g falls. So the best bid is the last one with :math:`g(b) > u(b -
        1)`, found by bisection, and no bid above v is better.

        Examples
        --------
        >>> auction = DigitalGoods(upper=1, epsilon=2)
        >>> best = auction.best_bid(0.8, [0.3, 0.9, 0.5])
        >>> round(best.bid, 3), round(best.gain, 4), best.gain < auction.truthfulness.gain
        (0.585, 0.0595, True)
        """
        if self.supply is not None:
            remedy = "leave it out, or compare bids with expected_utility"
            _check.refuse("supply", "be left out for the best bid", self.supply, remedy)
        truth, steps, worth = self._bidder(value, others, value)
        if not 0 <= value <= float(self.upper):
            _check.refuse(
                "value", f"be from 0 to {float(self.upper)!r}", value, "state it in the prices' range"
            )
        low, high, rate = 0, truth, float(self._rate(1))
        while low < high:
            bid = (low + high + 1) // 2
            if (worth - bid) / -math.expm1(-rate * bid) > self._utility(bid - 1, steps, worth):
                low = bid
            else:
                high = bid - 1
        unit = float(self.upper) / STEPS
        honest, lie = (self._utility(bid, steps, worth) * unit for bid in (truth, low))
        return BestBid(low * unit, max(0.0, lie - honest), honest, max(lie, honest))

    def _check_own(self) -> None:
        self._refuse_supply(self.supply)

    def _curve(self, steps: NDArray[np.int64]) -> PriceCurve:
        return PriceCurve.of_bids(steps, self._rate(1), self.supply)

    def _bidder(self, bid: float, others: Any, value: float) -> tuple[int, NDArray[np.int64], float]:
        """Return a bid and others' bids in steps, and the value in steps without rounding."""
        worth = _check.finite("value", value)
        upper = float(self.upper)
        own = bid_steps("bid", [_check.finite("bid", bid)], upper)
        return int(own[0]), bid_steps("others", others, upper), worth * (STEPS / upper)

    def _utility(self, bid: int, others: NDArray[np.int64], worth: float) -> float:
        bids = np.append(others, bid)
        curve = self._curve(bids)
        sold = curve.ends <= bid
        chance = np.ones(len(curve.ends))
        if self.supply is not None:
            left = bids.size - np.searchsorted(np.sort(bids), curve.ends)
            chance = np.minimum(1.0, self.supply / np.maximum(left, 1))
        return float((curve.shares() * chance * (worth - curve.means()))[sold].sum())
