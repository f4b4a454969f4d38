"""The auditor finds the epsilon that a design states, and no more."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sfumato.audit import audit
from sfumato.local.surveys import Design, ForcedResponse, TwoCoins, Warner
from tests.local.surveys.catalogue import SEVERAL

DESIGNS = {
    "two coins": TwoCoins(),
    "epsilon 1/2": Warner(truth="62/100"),
    "epsilon 4": ForcedResponse(yes="1/56", no="1/56"),
    "categories": SEVERAL["uneven"],
}


@pytest.mark.parametrize("design", DESIGNS.values(), ids=DESIGNS)
def test_the_auditor_agrees_with_the_price(design: Design) -> None:
    source, truths = np.random.default_rng(8), list(design.categories)

    def answer(truth: Any, size: int) -> Any:
        return design.respond([truth] * size, rng=source)

    found = audit(
        answer,
        epsilon=design.epsilon,
        pairs=[(one, other) for one in truths for other in truths if one != other],
        trials=200_000,
        confidence=1 - 1e-9,
        batch=True,
        rng=9,
    )
    assert not found.violated
    assert found.epsilon_lower >= 0.9 * design.epsilon
