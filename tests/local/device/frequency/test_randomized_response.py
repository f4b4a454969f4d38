"""Randomized response: its exact law, and that this law is drawn."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.local.device import Domain, RandomizedResponseRandomizer
from tests.cases import cases
from tests.chance import accepts_only
from tests.local.laws import below_exponential, named_alike, reports, worst_odds


@cases("epsilon", [0.01, 0.5, 1.0, 4.0, 20.0])
@cases("count", [2, 3, 17])
def test_the_odds_of_all_reports_are_those_of_epsilon(epsilon: float, count: int) -> None:
    made = RandomizedResponseRandomizer(epsilon=epsilon, domain=Domain(range(count)))
    assert below_exponential(worst_odds(made.probabilities, range(count)), epsilon, 1 - 1e-6)


def test_what_is_drawn_is_the_law() -> None:
    made, n = RandomizedResponseRandomizer(epsilon=1.0, domain=Domain(range(5))), 100_000
    for value in (0, 2, 4):
        seen, law = Counter(made.randomize_batch(np.full(n, value), value)), made.probabilities(value)
        assert set(seen) <= set(law)
        sharper = RandomizedResponseRandomizer(epsilon=1.1, domain=made.domain).probabilities(value)
        another = made.probabilities((value + 1) % 5)
        wrong = named_alike(law, sharper)
        accepts_only(reports(seen, law), law, of_another=another, of_epsilon_11_10=wrong)


def test_an_epsilon_that_tells_nothing_is_refused() -> None:
    with pytest.raises(ParameterError, match="epsilon must be greater for 4611686018427387904 categories"):
        RandomizedResponseRandomizer(epsilon=0.2, domain=Domain(range(1 << 62)))


def test_a_domain_that_no_payload_names_is_refused() -> None:
    largest = RandomizedResponseRandomizer(epsilon=1.0, domain=Domain(range(1 << 56)))
    assert len(largest.randomize(12345)) == largest.width == 11
    with pytest.raises(ParameterError, match=r"domain must have at most 2\*\*56 categories, got 7205759"):
        RandomizedResponseRandomizer(epsilon=1.0, domain=Domain(range((1 << 56) + 1)))


def test_payloads_beyond_the_domain_are_not_well_formed() -> None:
    made = RandomizedResponseRandomizer(epsilon=1.0, domain=Domain(range(5)))
    records = made.layout.pack(np.arange(8, dtype=np.uint64))
    assert made.well_formed(records).tolist() == [True] * 5 + [False] * 3
