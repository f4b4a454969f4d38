"""RAPPOR over time: what its reports cost together, and that each round is read like any other."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from sfumato.local import MemoizedRappor, Rappor, device
from tests.cases import cases
from tests.chance import accepts_only
from tests.local.laws import within


@cases("both", [(0.5, 0.75), (0.125, 0.5), None])
@cases("reports", [1, 2, 4])
def test_reports_of_a_memo_have_the_stated_odds_exactly(both: Any, reports: int) -> None:
    protocol = MemoizedRappor(hashes=2, permanent=0.5, instantaneous=both)
    flip = protocol.device.inner.flip.chance
    low, high = map(Fraction, both) if both else (Fraction(0), Fraction(1))

    def law(true: bool) -> list[Fraction]:
        """Chances of all sequences of one bit, memo by memo."""
        memo = 1 - flip if true else flip
        found = []
        for bits in product((0, 1), repeat=reports):
            ones, zeros = sum(bits), reports - sum(bits)
            found.append(
                memo * high**ones * (1 - high) ** zeros + (1 - memo) * low**ones * (1 - low) ** zeros
            )
        return found

    possible = [(one, other) for one, other in zip(law(True), law(False), strict=True) if one]
    one = max(a / b for a, b in possible) * max(b / a for a, b in possible)
    assert protocol._odds_of(reports) == one**2
    if reports == 1:
        assert one == protocol.device.inner.odds


def test_losses_are_those_of_rappor() -> None:
    protocol, plain = MemoizedRappor(max_memos=3), Rappor()
    assert protocol.privacy_loss == plain.one_report_loss
    assert protocol.permanent_loss == plain.longitudinal_loss
    memo = plain.longitudinal_loss.epsilon(0.0)
    assert protocol.longitudinal_loss().epsilon(0.0) == pytest.approx(3 * memo)
    assert protocol.device.permanent_epsilon == pytest.approx(memo)
    costs = [protocol.same_memo_loss(t).epsilon(0.0) for t in (1, 2, 30, 600)]
    assert costs == sorted(costs)
    assert costs[0] == pytest.approx(protocol.epsilon)
    assert costs[-1] == pytest.approx(memo)


def test_rounds_are_decoded_and_simulated() -> None:
    protocol = MemoizedRappor(bits=32, cohorts=8, permanent=0.25, instantaneous=(0.25, 0.75))
    names = ["red"] * 9000 + ["blue"] * 6000
    for batch in protocol.randomize_rounds([names, names], 5):
        aggregator = protocol.aggregator()
        assert aggregator.add_batch(batch) == 15_000
        assert not aggregator.add(batch[0][:-1])
        found = aggregator.estimate().decode(["blue", "green", "red"])
        assert found.detected == ["red", "blue"]
        share = within(found.frequencies[2], found.stddev[2])
        accepts_only(share, 0.6, none=0.0, of_blue=0.4)
    drawn = protocol.simulate({"red": 600_000, "blue": 400_000}, 1)
    assert drawn.decode(["blue", "green", "red"]).detected == ["red", "blue"]
    assert np.isfinite(drawn.shares).all()
    assert protocol.aggregator().add_batch(Rappor(bits=32, cohorts=8).randomize_batch(["a"], 1)) == 0


def test_devices_and_servers_agree_where_nothing_is_said() -> None:
    assert MemoizedRappor().device == device.MemoizedRapporRandomizer()
    assert Rappor().device == device.RapporRandomizer()
