"""A reserve price learned privately from past second-price auctions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from sfumato import _check
from sfumato.games.auctions.posted_price import PriceMechanism
from sfumato.games.auctions.price_curve import MOST_BIDS, STEPS, PriceCurve, bid_steps

__all__ = ["ReservePrice"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ReservePrice(PriceMechanism):
    r"""A reserve price, drawn by what it would have earned in past second-price auctions.

    Parameters
    ----------
    upper : int, float or Fraction
        The highest reserve price; public. Bids above it count as it.
    epsilon : int, float or Fraction
        Of one reserve price.

    Notes
    -----
    Guarantee: epsilon-DP of bounded range under replacing all bids of one past auction, and so under
    replacing one bid in it. With the reserve r, an auction whose two highest bids are f and s earns
    :math:`\max(s, r)` if :math:`f \ge r`, else nothing. Replacing the auction may raise that at one reserve
    by up to ``upper`` and lower it at another by as much, so weights are ``exp(epsilon * revenue / (2
    upper))``. The draw is exact, over the prices of `DigitalGoods`.

    The sum over past auctions is what is maximized. A bidder who takes part in later auctions may bid lower
    now so as to lower the reserve; `truthfulness` bounds what that gains later, over all of one auction.

    References
    ----------
    McSherry, Talwar (2007), "Mechanism design via differential privacy", for the mechanism.

    Examples
    --------
    >>> import numpy as np
    >>> past = np.random.default_rng(1).uniform(0, 10, (5000, 2))
    >>> reserve = ReservePrice(upper=10, epsilon=1)
    >>> round(reserve.release(past, rng=1).value, 1)
    4.9
    """

    def curve(self, value: Any) -> PriceCurve:
        """Return the revenue of every reserve price on past auctions.

        Parameters
        ----------
        value : array of shape (auctions, bidders)
            Bids; NaN stands for no bid. Each auction has at least one bidder.

        Returns
        -------
        PriceCurve
        """
        bids = np.asarray(value)
        if bids.ndim != 2 or not bids.shape[1] or bids.dtype.kind not in "iuf":
            remedy = "pass one row of bids for each past auction"
            rule = "be numbers, with an axis of auctions and one of bidders"
            _check.refuse_type("bids", rule, value, remedy)
        if bids.shape[0] > MOST_BIDS:
            _check.refuse_state(
                "bids", f"be of at most {MOST_BIDS:,} auctions", "there are more", "take the latest"
            )
        # Rows of the two highest bids, in steps.
        bids = np.where(np.isnan(bids), -np.inf, bids)
        if bids.shape[1] == 1:
            bids = np.concatenate([bids, np.zeros_like(bids)], axis=1)
        top = np.partition(bids, bids.shape[1] - 2, axis=1)[:, -2:]
        low, high = (np.sort(bid_steps("bids", column, float(self.upper))) for column in top.T)
        ends = np.append(np.unique(np.concatenate([low, high])), STEPS)
        # A piece ends at a bid: the seconds from there on earn themselves, the others' firsts the reserve.
        sums = np.append(low[::-1].cumsum()[::-1], 0)
        at_low, at_high = np.searchsorted(low, ends), np.searchsorted(high, ends)
        slopes = (high.size - at_high) - (low.size - at_low)
        return PriceCurve.of_pieces(ends, sums[at_low], slopes, self._rate(2))
