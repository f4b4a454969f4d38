"""Social choice: what a ledger is charged, also by a mechanism of one's own whose loss has a delta."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from sfumato.errors import BudgetExceeded
from sfumato.games import ExponentialChoice, Game, SocialChoice
from sfumato.ledger import Budget, Dataset, Ledger
from sfumato.numerics import RandomSource
from sfumato.privacy import ApproximateDP, Neighboring, PrivacyLoss

REPLACE = Neighboring.REPLACE_ONE
GAME = Game(types=(0, 1), alternatives=(0, 1), utilities=[[0, 1], [1, 0]], agents=3)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Leaky(SocialChoice):
    """The truth of the first agent with a probability of 1e-6, else a coin: (0, 1e-6)-DP."""

    @property
    def privacy_loss(self) -> PrivacyLoss:
        return ApproximateDP(0.0, 1e-6, neighboring=REPLACE)

    @property
    def delta(self) -> float:
        return 1e-6

    def distributions(self, profiles: NDArray[np.int64]) -> NDArray[np.float64]:
        shown = np.where(profiles[:, :1] == np.arange(2), 1.0, 0.0)
        return np.asarray(1e-6 * shown + (1 - 1e-6) / 2)

    def draw(self, profile: NDArray[np.int64], source: RandomSource) -> tuple[int, bool]:
        return int(profile[0]), False


def book(budget: Budget) -> Ledger:
    dataset = Dataset(schema="reports", fingerprint=lambda key: "0" * 64)
    return Ledger.open(None, budget=budget, privacy_unit="agent", neighboring=REPLACE, dataset=dataset)


def test_a_guarantee_with_a_delta_is_read_at_that_delta() -> None:
    with book(Budget.approximate(epsilon=1.0, delta=1e-5)) as ledger:
        assert Leaky(game=GAME).release([0, 1, 1], ledger=ledger, description="leak").receipt is not None
        (entry,) = ledger.entries()
        assert (entry.epsilon, entry.delta, entry.description) == (0.0, 1e-6, "leak")
    with book(Budget.pure(epsilon=1.0)) as ledger:
        with pytest.raises(BudgetExceeded):
            Leaky(game=GAME).release([0, 1, 1], ledger=ledger)
        assert not list(ledger.entries())


def test_a_pure_guarantee_is_read_at_zero() -> None:
    choice = ExponentialChoice(game=GAME, epsilon=0.5)
    assert choice.delta == 0.0
    with book(Budget.pure(epsilon=1.0)) as ledger:
        choice.release([0, 1, 1], ledger=ledger)
        (entry,) = ledger.entries()
        assert (entry.epsilon, entry.delta) == (0.5, 0.0)
        assert math.isfinite(entry.epsilon)
