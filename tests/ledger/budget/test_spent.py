"""How costs and totals are written and read: decimals as texts, floats from before as numbers."""

from __future__ import annotations

import math

import pytest

from sfumato.errors import ParameterError
from sfumato.ledger.budget.spent import COST, NOTHING, BinarySpent, Spent


def test_decimals_are_texts_and_floats_from_before_are_numbers() -> None:
    total = NOTHING.plus(Spent(1.0, 1e-9)).plus(Spent(1e-30, 1e-9))
    written = COST.encode((total, Spent(math.inf, 0.0), BinarySpent(0.1, 3.0000000000000004e-09)))
    assert written == [
        {"amount": "1.000000000000000000000000000001", "delta": "2e-09"},
        {"amount": "inf", "delta": "0.0"},
        {"amount": 0.1, "delta": 3.0000000000000004e-09},
    ]
    read = COST.decode("costs", written)
    assert read == (total, Spent(math.inf, 0.0), BinarySpent(0.1, 3.0000000000000004e-09))
    assert [type(each) for each in read] == [Spent, Spent, BinarySpent]
    assert COST.encode(read) == written


def test_a_number_is_written_in_one_way() -> None:
    wrong = ("nan", "1E400", "-1", "-0.0", "0.10", "1e-1x", "Infinity", "", "1" * 500, 0.1, None)
    for text in wrong:
        with pytest.raises(ParameterError):
            COST.decode("costs", [{"amount": text, "delta": "0.0"}])
    for missing in ({"amount": "0.1"}, {"delta": 0.0}, "0.1", None):
        with pytest.raises(ParameterError):
            COST.decode("costs", [missing])
