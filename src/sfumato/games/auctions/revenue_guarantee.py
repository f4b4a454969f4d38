"""What the exponential mechanism earns at least, in expectation, beside the best single price."""

from __future__ import annotations

import math
from typing import NamedTuple

from sfumato import _check
from sfumato.numerics.rounding import div_up, log_up, mul_up, sub_down

__all__ = ["RevenueGuarantee", "revenue_guarantee"]


class RevenueGuarantee(NamedTuple):
    """Lower bounds on the expected revenue of `DigitalGoods`, rounded down.

    Attributes
    ----------
    mcsherry_talwar : float
        ``OPT - 3 upper ln(e + epsilon^2 OPT m / upper) / epsilon``.
    partition_function : float
        ``OPT - upper ln(epsilon m / (1 - exp(-epsilon OPT / upper))) / epsilon``.
    """

    mcsherry_talwar: float
    partition_function: float

    @property
    def revenue(self) -> float:
        """The greater of both, and of 0."""
        return max(0.0, self.mcsherry_talwar, self.partition_function)


def revenue_guarantee(*, optimum: float, sold: int, epsilon: float, upper: float = 1.0) -> RevenueGuarantee:
    r"""Return what `DigitalGoods` earns at least in expectation, given the optimum.

    Parameters
    ----------
    optimum : float
        The revenue OPT of the best single price, for bids that are rounded down to the mechanism's prices: at
        least that of the bids themselves less ``sold * upper / 2**36``.
    sold : int
        How many units m that price sells.
    epsilon : float
        Of the mechanism: weights are ``exp(epsilon * revenue / upper)``. It is what `DigitalGoods` costs;
        McSherry and Talwar state 2 epsilon for these weights.
    upper : float
        The highest price.

    Returns
    -------
    RevenueGuarantee

    Raises
    ------
    ParameterError
        If a number is out of range, or the optimum exceeds ``sold * upper``.

    Notes
    -----
    Guarantee: for the expected revenue on the bids that were made, over the mechanism's randomness; nothing
    is assumed of the bids. With a supply the bounds hold as well, as the best price sells at most that.

    Let all be measured in ``upper``, and :math:`\mu` be the uniform distribution of prices. A price that
    lies :math:`x` below the best one sells at least m units and earns at least :math:`OPT - mx`.

    *McSherry and Talwar* (2007, Theorem 9). Prices that earn more than :math:`OPT - t` have :math:`\mu \ge
    t/m`; those that earn at most :math:`OPT - 2t` are drawn with probability at most :math:`e^{-\epsilon t}
    m/t`. For :math:`t = \ln(e + \epsilon^2 OPT\,m)/\epsilon \ge 1/\epsilon` that is at most :math:`t/OPT`,
    so the expectation is at least :math:`OPT - 3t`. If :math:`t \ge OPT` that says nothing.

    *Partition function.* Let P be the mechanism's distribution and :math:`Z = \int e^{\epsilon q} d\mu`. Then
    :math:`0 \le KL(P \| \mu) = \epsilon E_P q - \ln Z`, so :math:`E_P q \ge \ln Z/\epsilon`; and :math:`Z \ge
    \int_0^{OPT/m} e^{\epsilon(OPT - mx)} dx = e^{\epsilon OPT}(1 - e^{-\epsilon OPT})/(\epsilon m)`. Over
    prices on a lattice both integrals are sums that are no smaller.

    References
    ----------
    McSherry, Talwar (2007), "Mechanism design via differential privacy", Theorems 8 and 9.

    Examples
    --------
    >>> bound = revenue_guarantee(optimum=250.0, sold=500, epsilon=1.0)
    >>> round(bound.mcsherry_talwar, 1), round(bound.partition_function, 1)
    (214.8, 243.8)
    """
    optimum = _check.non_negative("optimum", optimum, "pass the best single price's revenue")
    sold = _check.integer("sold", sold, remedy="pass how many units the best price sells")
    epsilon = _check.positive("epsilon", epsilon)
    upper = _check.positive("upper", upper, "pass the highest price")
    if optimum > mul_up(float(sold), upper):
        _check.refuse("optimum", "be at most sold * upper", optimum, "pass units that the best price sells")
    scale = div_up(upper, epsilon)
    share = div_up(optimum, upper)
    inside = (math.e + epsilon * epsilon * share * sold) * (1 + 2.0**-48)
    paper = sub_down(optimum, mul_up(3.0, mul_up(scale, log_up(inside))))
    if not optimum:
        return RevenueGuarantee(paper, 0.0)
    mass = -math.expm1(-epsilon * optimum / upper)
    lost = mul_up(scale, _log_above(epsilon * sold / mass))
    return RevenueGuarantee(paper, sub_down(optimum, lost))


def _log_above(x: float) -> float:
    """Return a bound above the logarithm of what was computed with a few roundings."""
    return log_up(x * (1 + 2.0**-48))
