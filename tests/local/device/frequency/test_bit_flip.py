"""dBitFlip on the device: its exact law, even draws without replacement, and what is refused."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.local.device import Domain, Randomizer
from sfumato.local.device.frequency.bit_flip import BitFlipRandomizer
from tests.cases import cases
from tests.chance import accepts_only, rate
from tests.local.laws import below_exponential, named_alike, reports, worst_odds


@cases("asked", [1, 2, 3, 5])
@cases("epsilon", [0.05, 0.5, 1.0, 4.0])
def test_the_odds_of_all_reports_are_those_of_epsilon(asked: int, epsilon: float) -> None:
    made = BitFlipRandomizer(epsilon=epsilon, domain=Domain(range(5)), asked=asked)
    assert below_exponential(worst_odds(made.probabilities, range(5)), epsilon)


@pytest.mark.parametrize("asked", [1, 2, 4])
def test_what_is_drawn_is_the_law(asked: int) -> None:
    made, n = BitFlipRandomizer(epsilon=1.0, domain=Domain(range(4)), asked=asked), 60_000
    law = made.probabilities(2)
    seen = Counter(made.randomize_batch(np.full(n, 2), 9))
    assert set(seen) <= set(law)
    sharper = BitFlipRandomizer(epsilon=1.25, domain=made.domain, asked=asked).probabilities(2)
    accepts_only(
        reports(seen, law), law, of_another=made.probabilities(1), of_epsilon_5_4=named_alike(law, sharper)
    )


def test_draws_are_kept_in_ascending_order() -> None:
    made = BitFlipRandomizer(epsilon=1.0, domain=Domain(range(100)), asked=7)
    drawn, _ = made.opened(made.randomize_batch(np.full(2000, 50), 1).records)
    assert (np.diff(drawn, axis=1) > 0).all()
    counts = np.bincount(drawn.ravel(), minlength=100)
    for count in (int(counts.min()), int(counts.max())):
        accepts_only(rate(count, 2000), 0.07, one_less_is_drawn=0.03, one_place_is_never_drawn=0.14)


def test_poisoned_records_are_not_well_formed() -> None:
    made = BitFlipRandomizer(epsilon=1.0, domain=Domain(range(5)), asked=2)
    bits = np.ones((1, 2), np.bool_)
    for drawn in ([3, 3], [3, 2], [4, 5], [0, 7]):
        assert not made.well_formed(made.packed(np.array([drawn]), bits)).any()
    assert made.well_formed(made.packed(np.array([[0, 4]]), bits)).all()


def test_specifications_come_back_and_all_means_all() -> None:
    made = BitFlipRandomizer(epsilon=2.0, domain=Domain(["a", "b", "c"]), asked=9)
    assert made.asked == 3
    again = Randomizer.from_specification(json.loads(json.dumps(made.specification())))
    assert again == made
    assert again.randomize("b", 4) == made.randomize("b", 4)


def test_odd_parameters_are_refused() -> None:
    with pytest.raises(ParameterError, match="asked must be"):
        BitFlipRandomizer(epsilon=1.0, domain=Domain(range(4)), asked=0)
    with pytest.raises(ParameterError, match="asked must be at most"):
        BitFlipRandomizer(epsilon=1.0, domain=Domain(range(4)), asked=5000)
    with pytest.raises(ParameterError, match="domain must have at most"):
        BitFlipRandomizer(epsilon=1.0, domain=Domain(range(1 << 25)))
    with pytest.raises(ParameterError, match="epsilon must be"):
        BitFlipRandomizer(epsilon=1e-30, domain=Domain(range(4)))
