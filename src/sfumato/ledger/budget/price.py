"""What one charge costs: checked once, in one way, by a ledger and by a filter in memory."""

from __future__ import annotations

import math
from typing import NamedTuple

from sfumato import _check
from sfumato.errors import NeighboringMismatch
from sfumato.ledger.budget.budget_check import HasBudget
from sfumato.ledger.budget.filters import Spent, own_epsilon
from sfumato.privacy.loss import PrivacyLoss

__all__ = ["Price", "price_of"]


class Price(NamedTuple):
    """The charge's own (epsilon, delta), and what it adds to each filter."""

    epsilon: float
    delta: float
    cost: tuple[Spent, ...]


def price_of(owner: HasBudget, loss: PrivacyLoss, delta: float) -> Price:
    """Return what a charge costs.

    Parameters
    ----------
    owner : HasBudget
        What has the budget and the neighboring relation.
    loss : PrivacyLoss
        What will be run.
    delta : float
        Where the charge's own guarantee is read.

    Raises
    ------
    ParameterError
        If the delta is none, or one at which an (epsilon, delta) budget's basic filter would be used up.
    NeighboringMismatch
        If the loss is about another relation.
    """
    delta = _check.probability("delta", delta)
    if not isinstance(loss, PrivacyLoss):
        _check.refuse("loss", "be a PrivacyLoss", loss, "pass a mechanism's privacy_loss")
    # The loss of doing nothing holds under every relation.
    if loss.neighboring not in (None, owner.neighboring):
        raise NeighboringMismatch(
            f"loss must be about the ledger's relation, {owner.neighboring}, got {loss.neighboring}; "
            "state the mechanism under the ledger's relation"
        )
    filters = owner.budget.filters
    price = Price(own_epsilon(loss, delta), delta, filters.price(loss, delta))
    if owner.budget.kind == "approximate" and math.isinf(price.epsilon) and filters.hold(price.cost):
        # Accepted by the zCDP filter, it would use up the other one for ever.
        remedy = "pass the delta of the query's own guarantee"
        _check.refuse("delta", "be one at which the loss has a finite epsilon", delta, remedy)
    return price
