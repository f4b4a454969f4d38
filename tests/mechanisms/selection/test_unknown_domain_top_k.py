"""Top-k of an unknown domain: every list of a small universe, for every pair of neighbors."""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.mechanisms import StabilityHistogram, UnknownDomainTopK
from sfumato.privacy import loss_from_json
from sfumato.privacy.neighboring import Neighboring
from tests.cases import cases
from tests.chance import accepts_only, frequencies

KEYS = "abcd"


def race(weights: dict[str, float], places: int) -> dict[tuple[str, ...], float]:
    """Every list of the first so many, up to the bar "!" or a blank "?"."""
    total, distribution = sum(weights.values()), defaultdict[tuple[str, ...], float](float)
    for key, weight in weights.items():
        if not weight:
            continue
        if key in "!?":
            distribution[()] += weight / total
        elif places == 1:
            distribution[(key,)] += weight / total
        else:
            rest = {other: w for other, w in weights.items() if other != key}
            for tail, chance in race(rest, places - 1).items():
                distribution[(key, *tail)] += chance * weight / total
    return distribution


def exact(counts: Sequence[int], mechanism: UnknownDomainTopK) -> dict[tuple[str, ...], float]:
    """The distribution of the list, averaged over the coin and the order of equal counts."""
    distribution, scale = defaultdict[tuple[str, ...], float](float), float(mechanism.scale)
    heads = float(mechanism.probability)
    if heads < 1:
        for weight, more in ((heads, 0), (1 - heads, 1)):
            whole = replace(mechanism, threshold=mechanism.threshold + more, probability=1)
            for released, chance in exact(counts, whole).items():
                distribution[released] += weight * chance
        return distribution
    orders = list(itertools.permutations(range(len(counts))))
    for priority in orders:
        present = sorted(
            (i for i in range(len(counts)) if counts[i]), key=lambda i: (-counts[i], priority[i])
        )
        looked = present[: mechanism.domain]
        bar = mechanism.threshold + (counts[present[len(looked)]] if len(present) > len(looked) else 0)
        weights = {KEYS[i]: math.exp(counts[i] / scale) for i in looked}
        weights |= {"!": math.exp(bar / scale), "?": float(mechanism.domain - len(looked))}
        for released, chance in race(weights, mechanism.count).items():
            distribution[released] += chance / len(orders)
    return distribution


def excess(p: dict[Any, float], q: dict[Any, float], epsilon: float) -> float:
    return sum(max(0.0, chance - math.exp(epsilon) * q.get(released, 0.0)) for released, chance in p.items())


@cases(("count", "domain", "l0"), [(1, 1, None), (1, 2, 1), (2, 2, 1), (2, 2, 2), (2, 3, None)])
@cases(("threshold", "heads"), [(1, 1), (3, 1), (2, Fraction(3, 8))])
def test_the_loss_covers_the_exact_distribution(
    count: int, domain: int, l0: int | None, threshold: int, heads: int | Fraction
) -> None:
    mechanism = UnknownDomainTopK(
        scale=Fraction(3, 2), threshold=threshold, probability=heads, count=count, domain=domain, l0=l0
    )
    loss = mechanism.privacy_loss
    claimed = count / 1.5
    assert loss.pure().epsilon == pytest.approx(claimed)
    bounds = {x: loss.delta(x) for x in (0.0, 0.3 * claimed)} | {claimed: loss.quick_delta(claimed)}
    distributions_of: dict[tuple[int, ...], dict[tuple[str, ...], float]] = {}

    def distribution(counts: tuple[int, ...]) -> dict[tuple[str, ...], float]:
        if counts not in distributions_of:
            distributions_of[counts] = exact(counts, mechanism)
        return distributions_of[counts]

    worst = 0.0
    for counts in itertools.combinations_with_replacement(range(3), 4):
        assert sum(distribution(counts).values()) == pytest.approx(1)
        for move in itertools.product([0, 1], repeat=4):
            if l0 is not None and sum(move) > l0:
                continue
            other = tuple(x + y for x, y in zip(counts, move, strict=True))
            for p, q in (
                (distribution(counts), distribution(other)),
                (distribution(other), distribution(counts)),
            ):
                for epsilon, bound in bounds.items():
                    assert excess(p, q, epsilon) <= bound * (1 + 1e-9) + 1e-12
                # A list that one neighbor cannot produce has at most the mass, and may have it.
                worst = max(worst, sum(chance for released, chance in p.items() if not q.get(released)))
    assert 0.3 * mechanism.mass < worst <= mechanism.mass * (1 + 1e-12)


@pytest.mark.parametrize(
    ("counts", "threshold", "domain", "draws"),
    [([4, 2, 2, 2], 3, 3, 4_000), ([2, 1, 0, 0], 4, 6, 16_000), ([0, 0, 0, 1], 2, 2, 16_000)],
)
def test_lists_follow_their_distribution(counts: list[int], threshold: int, domain: int, draws: int) -> None:
    half = Fraction(1, 2)
    mechanism = UnknownDomainTopK(scale=2, threshold=threshold, probability=half, count=2, domain=domain)
    source = np.random.default_rng(5)
    named = dict(zip(KEYS, counts, strict=True))
    observed = Counter(mechanism.release(named, rng=source).value for _ in range(draws))
    assert set(observed) <= set(exact(counts, mechanism))

    def distribution(**changed: Any) -> dict[tuple[str, ...], float]:
        return exact(counts, replace(mechanism, **changed))

    accepts_only(
        frequencies(observed),
        distribution(),
        steeper=distribution(scale=1),
        two_thresholds_more=distribution(threshold=threshold + 2),
        always_the_higher_one=distribution(threshold=threshold + 1, probability=1),
    )


def test_the_mass_is_what_the_bar_lets_through() -> None:
    mechanism = UnknownDomainTopK(scale=2, threshold=31, count=3, domain=5, l0=2)
    odds = 2 * math.exp(-15)
    assert mechanism.mass == pytest.approx(odds / (1 + odds), rel=1e-12)
    assert mechanism.mass >= odds / (1 + odds) * (1 - 1e-15)
    assert mechanism.privacy_loss.pure().delta == mechanism.mass
    coin = replace(mechanism, probability=Fraction(1, 4))
    higher = replace(mechanism, threshold=32)
    assert coin.mass == pytest.approx(0.25 * mechanism.mass + 0.75 * higher.mass, rel=1e-12)
    unlimited = UnknownDomainTopK(scale=2, threshold=31, count=3, domain=5)
    assert unlimited.mass == pytest.approx(2.5 * mechanism.mass, rel=1e-5)


@pytest.mark.parametrize("beta", [0.4, 0.01])
def test_a_key_so_frequent_comes_before_the_bar(beta: float) -> None:
    mechanism = UnknownDomainTopK(scale=2, threshold=5, count=1, domain=3)
    count = mechanism.utility_bound(beta)
    assert exact([count], mechanism).get((), 0.0) <= beta < exact([count - 2], mechanism)[()]
    assert exact([count + 1, 1, 1, 1], UnknownDomainTopK(scale=2, threshold=5, count=3, domain=3))[()] <= beta


@pytest.mark.parametrize(("count", "l0"), [(1, 1), (5, None), (60, 3)])
def test_calibration_meets_the_request(count: int, l0: int | None) -> None:
    mechanism = UnknownDomainTopK.calibrated(epsilon=1.0, delta=1e-6, count=count, l0=l0)
    assert mechanism.privacy_loss.epsilon(1e-6) <= 1.0
    heads = Fraction(mechanism.probability)
    assert heads < 1
    lower = replace(mechanism, probability=heads + Fraction(1, 1 << 62))
    assert lower.privacy_loss.quick_epsilon(1e-6) > 1.0
    if count == 60:
        assert mechanism.scale < 0.8 * count


def test_with_few_keys_a_unit_the_top_of_a_histogram_is_listed() -> None:
    given: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "l0": 2}
    mechanism = UnknownDomainTopK.calibrated(**given, count=10)
    histogram = StabilityHistogram.calibrated(**given)
    assert (mechanism.noise, mechanism.threshold) == ("laplace", histogram.threshold)
    assert mechanism.privacy_loss == histogram.privacy_loss
    assert mechanism.privacy_loss.epsilon(1e-6) <= 1.0
    counts = {key: 20 + 3 * key for key in range(30)}
    for seed in range(50):
        listed = mechanism.release(counts, rng=seed).value
        assert listed == tuple(histogram.release(counts, rng=seed).value)[:10]
    assert len(listed) == 10
    assert mechanism.utility_bound(0.05) == histogram.utility_bound(0.05)
    assert mechanism.utility_bound(0.05) < UnknownDomainTopK.calibrated(
        **given, count=10, noise="gumbel"
    ).utility_bound(0.05)


@cases(
    ("count", "l0", "noise"),
    [(10, 1, "laplace"), (10, 3, "laplace"), (10, 30, "gumbel"), (1, 1, "laplace"), (10, None, "gumbel")],
)
def test_the_noise_that_lists_more_keys_is_taken(count: int, l0: int | None, noise: str) -> None:
    found = UnknownDomainTopK.calibrated(epsilon=1.0, delta=1e-6, count=count, l0=l0)
    assert found.noise == noise


def test_edges() -> None:
    mechanism = UnknownDomainTopK.calibrated(epsilon=1.0, delta=1e-6, count=3)
    usual = mechanism.privacy_loss
    for counts in ({}, {"a": 0}, {"a": -5, "b": 0}, Counter()):
        release = mechanism.release(counts, rng=1)
        assert (release.value, release.loss) == ((), usual)
    assert mechanism.release({"a": 10**400, "b": np.int64(10**9), 3: 0}, rng=1).value == ("a", "b")
    assert len(mechanism.release(dict.fromkeys(range(1000), 50_000), rng=1).value) <= 3
    # All counts equal: the bar stands above them, and nothing is released.
    assert mechanism.release(dict.fromkeys(range(1000), 50_000), rng=2).value == ()
    assert mechanism.release({"x": 10_000}, rng=3).neighboring is Neighboring.ADD_REMOVE
    assert not mechanism.release({"x": 10_000}).simulated
    replaced = usual.under(Neighboring.REPLACE_ONE)
    assert 1.0 < replaced.epsilon(1e-5) <= 2.0
    assert loss_from_json(usual.to_json()) == usual
    zero_out = UnknownDomainTopK(scale=1, threshold=9, count=1, neighboring=Neighboring.ZERO_OUT)
    assert zero_out.privacy_loss.neighboring is Neighboring.ZERO_OUT


@cases(
    ("change", "message"),
    [
        ({"scale": 0}, "scale must be positive"),
        ({"threshold": 0}, "threshold must be an integer of at least 1"),
        ({"threshold": 2.5}, "threshold must be an integer"),
        ({"probability": 0}, "probability must be"),
        ({"probability": Fraction(1, 3)}, "probability must be at most 1, a multiple"),
        ({"count": 0}, "count must be an integer of at least 1"),
        ({"domain": 1}, "domain must be an integer of at least 2"),
        ({"l0": 0}, "l0 must be an integer"),
        ({"noise": "normal"}, "noise must be 'gumbel' or 'laplace'"),
        ({"noise": "laplace"}, "l0 must be given for laplace noise, but it is None"),
        ({"threshold": 2**63 - 5}, r"threshold must be at most 2\*\*60"),
        ({"domain": 2**70}, r"domain must be at most 2\*\*60"),
        ({"count": 2**70, "domain": None}, r"domain must be at most 2\*\*60"),
        ({"neighboring": Neighboring.REPLACE_ONE}, "neighboring must be ADD_REMOVE or ZERO_OUT"),
    ],
)
def test_bad_parameters_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        UnknownDomainTopK(**{"scale": 1, "threshold": 5, "count": 2} | change)


def test_bad_values_are_refused_without_showing_them() -> None:
    mechanism = UnknownDomainTopK(scale=1, threshold=5, count=2)
    for value in (["secret"], {"secret": 1.5}, {"secret": "secret"}, 7):
        with pytest.raises(ParameterError) as caught:
            mechanism.release(value)
        assert "secret" not in str(caught.value)
    with pytest.raises(ParameterError, match="delta must be"):
        UnknownDomainTopK.calibrated(epsilon=1.0, delta=0.0, count=1)
