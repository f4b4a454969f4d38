"""Vickrey, Clarke and Groves: exactly truthful with payments, and not private."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.games.arrays import as_array

__all__ = ["ClarkePayments", "UniformPrice", "multi_unit_vickrey", "vcg"]


class UniformPrice(NamedTuple):
    """What a multi-unit Vickrey auction sells, and for how much.

    Attributes
    ----------
    price : float
        What each winner pays: the highest losing bid, or 0.
    winners : int64 array
        Positions of the bidders who get a unit.
    revenue : float
    """

    price: float
    winners: NDArray[np.int64]
    revenue: float


class ClarkePayments(NamedTuple):
    """What VCG chooses, and what agents pay for it.

    Attributes
    ----------
    alternative : int
        The position of the one with the largest sum of values; the first of equals.
    payments : float64 array of shape (agents,)
        By how much each agent's values lower the others' welfare.
    welfare : float
        The sum of values of the alternative.
    """

    alternative: int
    payments: NDArray[np.float64]
    welfare: float


def multi_unit_vickrey(bids: Any, *, supply: int) -> UniformPrice:
    """Sell units to the highest bidders, at the highest bid that gets none.

    Parameters
    ----------
    bids : array of shape (n,)
        Non-negative; of one unit for each bidder.
    supply : int
        How many units there are. With one for every bidder all get one for nothing.

    Returns
    -------
    UniformPrice

    Raises
    ------
    ParameterError
        If the bids are no numbers of at least 0, or the supply is below 1.

    Notes
    -----
    Not private: the price is somebody's bid. Bidding one's value is a dominant strategy, as no bid changes
    one's own price (Vickrey 1961). Of equal bids the first ones win.

    Examples
    --------
    >>> sale = multi_unit_vickrey([4, 9, 7, 1], supply=2)
    >>> sale.price, sale.winners.tolist(), sale.revenue
    (4.0, [1, 2], 8.0)
    """
    values = _values("bids", bids, 1)
    supply = _check.integer("supply", supply, minimum=1)
    if (values < 0).any():
        _check.refuse_state("bids", "be at least 0", "some are below", "leave out who wants no unit")
    order = np.argsort(-values, kind="stable")
    price = float(values[order[supply]]) if supply < values.size else 0.0
    winners = np.sort(order[:supply])
    return UniformPrice(price, winners, price * winners.size)


def vcg(values: Any) -> ClarkePayments:
    """Choose the alternative of the largest welfare, with Clarke's payments.

    Parameters
    ----------
    values : array of shape (agents, alternatives)
        What each alternative is worth to each agent, in money.

    Returns
    -------
    ClarkePayments

    Raises
    ------
    ParameterError
        If the values are no finite numbers, or an axis is empty.

    Notes
    -----
    Not private. Reporting one's values is a dominant strategy for agents whose utility is value less payment
    (Vickrey 1961, Clarke 1971, Groves 1973); payments need not balance.

    Examples
    --------
    >>> found = vcg([[5, 0], [0, 3], [0, 1]])
    >>> found.alternative, found.payments.tolist(), found.welfare
    (0, [4.0, 0.0, 0.0], 5.0)
    """
    table = _values("values", values, 2)
    if not table.size:
        _check.refuse_state("values", "have an agent and an alternative", "there is none", "pass a table")
    total = table.sum(axis=0)
    chosen = int(total.argmax())
    others = total - table
    payments = np.maximum(0.0, others.max(axis=1) - others[:, chosen])
    return ClarkePayments(chosen, payments, float(total[chosen]))


def _values(name: str, given: Any, axes: int) -> NDArray[np.float64]:
    array = as_array(name, given, "pass a list of numbers")
    if array.ndim != axes or array.dtype.kind not in "iuf":
        _check.refuse_type(name, f"be an array of numbers with {axes} axes", given, "pass a list of numbers")
    found = array.astype(np.float64)
    if not np.isfinite(found).all():
        _check.refuse_state(name, "be finite", "some are not", "leave them out")
    return found
