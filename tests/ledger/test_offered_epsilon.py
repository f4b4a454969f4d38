"""What a refused question could still be asked at, for prices that grow as no filter expects."""

from __future__ import annotations

import pytest

from sfumato.ledger import Budget
from sfumato.ledger.offer import Question
from sfumato.privacy import ZCDP


@pytest.mark.parametrize("power", [1.5, 2.0, 3.0])
def test_the_offer_comes_close_whatever_the_price_grows_like(power: float) -> None:
    filters = Budget.zcdp(rho=1.0).filters

    def loss_at(epsilon: float) -> ZCDP:
        return ZCDP(epsilon**power)

    question = Question(loss_at, 2.0, 0.0, filters.price(loss_at(2.0), 0.0))
    offered = question.largest_epsilon(filters, filters.nothing)
    assert 0.998 < offered <= 1
    assert filters.hold(filters.after(filters.nothing, filters.price(loss_at(offered), 0.0)))
