"""The odds, against Bayes' rule on exact distributions and against published numbers."""

from __future__ import annotations

import math

from scipy import stats

from sfumato.privacy import Gaussian, PureDP
from sfumato.report import odds
from tests.cases import cases


@cases("epsilon", [0.01, 0.5, 1.0, 3.0])
def test_randomized_response_reaches_each_bound(epsilon: float) -> None:
    """Of two answers, the right one e**epsilon times as likely: posterior and best event are exact."""
    found = odds(PureDP(epsilon))
    truth = math.exp(epsilon) / (1 + math.exp(epsilon))
    for belief in found.beliefs:
        after = belief.before * truth / (belief.before * truth + (1 - belief.before) * (1 - truth))
        less = belief.before * (1 - truth) / (belief.before * (1 - truth) + (1 - belief.before) * truth)
        assert after <= belief.most <= after + 1e-12
        assert less - 1e-12 <= belief.least <= less
    # an event: the answer, or with a coin, so that its chance without is alpha
    for event in found.events:
        y, x = truth, 1 - truth  # the chances of "yes" with and without the data
        best = event.without / x * y if event.without <= x else y + (event.without - x) / (1 - x) * (1 - y)
        assert best <= event.most + 1e-12
        assert event.most <= best * 1.002
    assert truth - 1e-9 <= found.right <= truth + 1e-6


def test_half_is_62_and_70_as_published() -> None:
    found = odds(PureDP(0.5))
    assert (round(100 * found.beliefs[-1].most), round(100 * found.events[-1].most)) == (62, 70)


def test_gaussian_noise_bounds_no_belief_but_every_event() -> None:
    found = odds(Gaussian(2.0))
    assert found.beliefs == ()
    for event in found.events:
        exact = float(stats.norm.cdf(stats.norm.ppf(event.without) + 0.5))
        assert exact <= event.most <= exact + 1e-4
    assert float(stats.norm.cdf(0.25)) <= found.right <= float(stats.norm.cdf(0.25)) + 1e-4


def test_what_protects_nobody_says_so() -> None:
    found = odds(PureDP(800.0))
    assert found.events[-1].most == 1
    assert all((belief.most, belief.least) == (1, 0) for belief in found.beliefs)
    assert 0.5 < odds(PureDP(1e-300)).events[-1].most <= 0.5 + 1e-12
