"""Shuffling against exact sums of the clone pair, and against shuffled mechanisms enumerated in full."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import mpmath
import numpy as np
import pytest

from sfumato.errors import NeighboringMismatch, ParameterError, UnsupportedView
from sfumato.privacy import (
    ApproximateDP,
    Gaussian,
    Neighboring,
    PrivacyLoss,
    PureDP,
    RandomizedResponse,
    Shuffled,
    SupportResponse,
    loss_from_json,
)
from tests.cases import cases

mpmath.mp.dps = 40
# Epsilon at delta 1e-6 of the clone pair, by summing over all numbers of clones; by (epsilon_0, clients).
EXACT = {
    (0.5, 10**3): 0.0705235,
    (0.5, 10**5): 0.00581255,
    (0.5, 10**7): 4.35598e-4,
    (1.0, 10**3): 0.182412,
    (1.0, 10**5): 0.0152821,
    (1.0, 10**7): 0.00119934,
    (2.0, 10**3): 0.545498,
    (2.0, 10**5): 0.0450256,
    (2.0, 10**7): 0.00366547,
    (4.0, 10**3): 3.98996,
    (4.0, 10**5): 0.169770,
    (4.0, 10**7): 0.0142045,
}


def local(epsilon: float) -> PureDP:
    return PureDP(epsilon, neighboring=Neighboring.REPLACE_ONE)


@cases(("job", "epsilon"), EXACT.items())
def test_large_batches_meet_the_exact_sum(job: tuple[float, int], epsilon: float) -> None:
    epsilon_0, clients = job
    lower, upper, tight = Shuffled(local(epsilon_0), clients).epsilon_interval(1e-6)
    assert epsilon * (1 - 4e-6) <= upper <= epsilon * (1 + 1e-4)
    assert lower == 0
    assert not tight


def counts(epsilon_0: float, clients: int) -> dict[tuple[int, int], tuple[mpmath.mpf, mpmath.mpf]]:
    """Return both laws of the counts, from their definition."""
    e0 = mpmath.mpf(epsilon_0)
    p, w, n = mpmath.exp(-e0), 1 / (1 + mpmath.exp(-e0)), clients - 1
    distributions: dict[tuple[int, int], list[mpmath.mpf]] = {}
    for c in range(n + 1):
        for a in range(c + 1):
            mass = mpmath.binomial(n, c) * p**c * (1 - p) ** (n - c) * mpmath.binomial(c, a) / 2**c
            for first, share in ((1, w), (0, 1 - w)):
                distributions.setdefault((a + first, c - a + 1 - first), [mpmath.mpf(0)] * 2)[0] += (
                    mass * share
                )
                distributions.setdefault((a + 1 - first, c - a + first), [mpmath.mpf(0)] * 2)[1] += (
                    mass * share
                )
    return {key: (value[0], value[1]) for key, value in distributions.items()}


@pytest.mark.parametrize(
    ("epsilon_0", "clients"), [(0.3, 2), (1.0, 5), (2.5, 12), (0.05, 40), (6.0, 30), (12.0, 7), (3.0, 60)]
)
def test_small_batches_meet_the_definition(epsilon_0: float, clients: int) -> None:
    distributions, loss = counts(epsilon_0, clients), Shuffled(local(epsilon_0), clients)
    for share in (0.0, 0.01, 0.1, 0.5, 0.9, 0.999):
        epsilon = share * epsilon_0
        exact = mpmath.fsum(max(0, a - mpmath.exp(epsilon) * b) for a, b in distributions.values())
        assert exact <= loss.delta(epsilon) <= exact * mpmath.mpf(1.01) + 1e-30
    assert loss.delta(epsilon_0 * 1.0000001) == 0


def test_divergences_meet_the_definition() -> None:
    distributions, loss = counts(1.5, 25), Shuffled(local(1.5), 25)
    for order, bound in zip((2, 5, 40), loss.rdp_curve(np.array([2.0, 5.0, 40.0])), strict=True):
        exact = mpmath.log(mpmath.fsum(a**order * b ** (1 - order) for a, b in distributions.values())) / (
            order - 1
        )
        assert exact <= bound <= exact * (1 + 1e-5)


def test_repeated_batches_hold_the_product_law() -> None:
    distributions = counts(1.0, 6)
    ratios = [(a, b) for a, b in distributions.values()]
    for epsilon in (0.1, 0.8):
        exact = mpmath.fsum(
            max(0, a * c - mpmath.exp(epsilon) * b * d)
            for (a, b), (c, d) in itertools.product(ratios, ratios)
        )
        assert exact <= (Shuffled(local(1.0), 6) * 2).delta(epsilon) <= exact * 1.005


def histograms(rows: list[list[float]]) -> Counter[tuple[int, ...]]:
    """Return the law of the histogram of one report of each client, each by its own row."""
    distribution: Counter[tuple[int, ...]] = Counter({(0,) * len(rows[0]): 1.0})
    for row in rows:
        after: Counter[tuple[int, ...]] = Counter()
        for key, mass in distribution.items():
            for value, chance in enumerate(row):
                after[(*key[:value], key[value] + 1, *key[value + 1 :])] += mass * chance  # type: ignore[assignment]
        distribution = after
    return distribution


@cases("seed", range(6))
def test_enumerated_mechanisms_lie_below(seed: int) -> None:
    rng = np.random.default_rng(seed)
    epsilon_0, clients, categories = (0.5, 1.0, 2.0)[seed % 3], 7, 3
    if seed < 3:
        weights = np.where(np.eye(categories) > 0, math.exp(epsilon_0), 1.0)
    else:
        base = rng.uniform(0.2, 1.0, size=(1, categories))
        weights = base * np.exp(epsilon_0 / 2 * rng.choice([0.0, 1.0], size=(categories, categories)))
    table = weights / weights.sum(axis=1, keepdims=True)
    others = [table[i].tolist() for i in rng.integers(0, categories, size=clients - 1)]
    distributions = [histograms([*others, table[i].tolist()]) for i in range(categories)]
    loss = Shuffled(local(epsilon_0), clients)
    for first, second in itertools.permutations(distributions, 2):
        for epsilon in (0.0, 0.1, 0.4, 0.9):
            true = sum(max(0.0, first[key] - math.exp(epsilon) * second[key]) for key in first | second)
            assert true <= loss.delta(epsilon) + 1e-14


def test_more_clients_hide_more_and_none_hides_nothing() -> None:
    epsilons = [Shuffled(local(2.0), n).epsilon(1e-8) for n in (1, 2, 30, 10**6)]
    assert all(after <= before for before, after in itertools.pairwise(epsilons))
    assert epsilons[0] == pytest.approx(local(2.0).epsilon(1e-8), rel=1e-9)
    assert Shuffled(local(0.0), 100).epsilon(0.0) == 0
    assert Shuffled(local(2.0), 1000).epsilon(0.0) == 2.0
    assert Shuffled(local(2.0), 10**30).epsilon(1e-8) <= Shuffled(local(2.0), 10**9).epsilon(1e-8)


def test_it_composes_with_everything_under_its_relation() -> None:
    batch, noise = Shuffled(local(1.0), 10_000), Gaussian(5.0, neighboring=Neighboring.REPLACE_ONE)
    both = (batch * 10 + noise).epsilon_interval(1e-7)
    assert noise.epsilon(1e-7) < both.upper < noise.epsilon(5e-8) + (batch * 10).epsilon(5e-8)
    assert (batch * 10).epsilon(1e-30) < 10


def test_what_no_theorem_covers_is_refused() -> None:
    relation = Neighboring.REPLACE_ONE
    with pytest.raises(NeighboringMismatch, match="loss must be under replace-one"):
        Shuffled(PureDP(1.0), 100)
    losses: list[PrivacyLoss] = [
        Gaussian(1.0, neighboring=relation),
        ApproximateDP(1.0, 1e-9, neighboring=relation),
    ]
    for loss in losses:
        with pytest.raises(UnsupportedView, match="no pure view"):
            Shuffled(loss, 100)
    for clients in (0, 1.5, True):
        with pytest.raises(ParameterError, match="clients must be an integer of at least 1"):
            Shuffled(local(1.0), clients)  # type: ignore[arg-type]


def divergence(first: Counter[tuple[int, ...]], second: Counter[tuple[int, ...]], epsilon: float) -> float:
    factor = math.exp(epsilon)
    return sum(max(0.0, mass - factor * second[key]) for key, mass in first.items())


def neighbors(
    table: list[list[float]], clients: int
) -> list[tuple[Counter[tuple[int, ...]], Counter[tuple[int, ...]]]]:
    """The laws of both histograms, whatever value each other client has."""
    rest = itertools.combinations_with_replacement(range(len(table)), clients - 1)
    known = [[table[i] for i in others] for others in rest]
    return [(histograms([*rows, table[0]]), histograms([*rows, table[1]])) for rows in known]


def responses(epsilon_0: float, categories: int) -> list[list[float]]:
    weights = np.where(np.eye(categories) > 0, math.exp(epsilon_0), 1.0)
    return [[float(x) for x in row] for row in weights / weights.sum(axis=1, keepdims=True)]


@pytest.mark.parametrize(
    ("categories", "clients", "epsilon_0"),
    [(2, 8, 1.0), (3, 8, 1.0), (3, 5, 2.5), (5, 6, 1.0), (5, 4, 3.0), (4, 1, 1.0), (3, 2, 0.3)],
)
def test_all_data_of_randomized_response_lie_below(categories: int, clients: int, epsilon_0: float) -> None:
    table, loss = (
        responses(epsilon_0, categories),
        Shuffled(RandomizedResponse(epsilon_0, categories), clients),
    )
    known, data = Shuffled(local(epsilon_0), clients), neighbors(table, clients)
    met = []
    for share in (0.0, 0.1, 0.3, 0.6, 0.9, 0.99):
        epsilon = share * epsilon_0
        true = max(divergence(first, second, epsilon) for first, second in data)
        bound = loss.delta(epsilon)
        assert true <= bound + 1e-14
        assert bound <= known.delta(epsilon) * (1 + 1e-9)
        met.append(bound <= true * (1 + 1e-8))
    # Where all others hold third values, or all hold the changed client's, it is attained.
    assert sum(met) >= 2


def unary(p: float, q: float, categories: int) -> list[list[float]]:
    """The laws of bits, one for each category: set with probability p for the true one, q for others."""
    reports = list(itertools.product((0, 1), repeat=categories))
    chances = [[p if at == true else q for at in range(categories)] for true in range(categories)]
    return [
        [math.prod(c if bit else 1 - c for c, bit in zip(row, bits, strict=True)) for bits in reports]
        for row in chances
    ]


@pytest.mark.parametrize(
    ("p", "q", "categories", "clients"), [(0.5, 0.25, 2, 5), (0.5, 0.25, 3, 3), (0.75, 0.25, 2, 4)]
)
def test_all_data_of_overlapping_supports_lie_below(
    p: float, q: float, categories: int, clients: int
) -> None:
    table, epsilon_0 = unary(p, q, categories), math.log(p * (1 - q) / (q * (1 - p)))
    loss = Shuffled(SupportResponse(epsilon_0 * (1 + 1e-15), q, q * q), clients)
    known, data = Shuffled(local(epsilon_0), clients), neighbors(table, clients)
    near = 0.0
    for share in (0.0, 0.1, 0.3, 0.6, 0.9):
        epsilon = share * epsilon_0
        true, bound = max(divergence(first, second, epsilon) for first, second in data), loss.delta(epsilon)
        assert true <= bound + 1e-14
        assert bound <= known.delta(epsilon) * (1 + 1e-9)
        near = max(near, true / bound)
    assert near > 0.5
    alone = SupportResponse(epsilon_0 * (1 + 1e-15), q, q * q)
    assert divergence(histograms([table[0]]), histograms([table[1]]), 0.2) == pytest.approx(alone.delta(0.2))


def test_a_silent_report_is_not_hidden_among_other_laws() -> None:
    # The pair without which reports are the clones', as if a third value of the changed client were theirs.
    epsilon_0, k, n, epsilon = 1.0, 3, 5, 0.9
    d = math.exp(epsilon_0) + k - 1
    distributions: tuple[Counter[tuple[int, ...]], Counter[tuple[int, ...]]] = (Counter(), Counter())
    for c in range(n):
        for a in range(c + 1):
            mass = math.comb(n - 1, c) * (2 / d) ** c * (1 - 2 / d) ** (n - 1 - c) * math.comb(c, a) / 2**c
            for x, y, weight in ((1, 0, math.exp(epsilon_0)), (0, 1, 1.0), (0, 0, k - 2)):
                distributions[0][a + x, c - a + y] += mass * weight / d
                distributions[1][a + y, c - a + x] += mass * weight / d
    table = responses(epsilon_0, k)
    true = divergence(histograms([table[0]] * 5), histograms([*[table[0]] * 4, table[1]]), epsilon)
    assert divergence(distributions[0], distributions[1], epsilon) < true / 8
    assert true <= Shuffled(RandomizedResponse(epsilon_0, k), n).delta(epsilon) <= true * (1 + 1e-9)


def test_more_categories_and_clients_hide_more() -> None:
    for sizes in (
        [Shuffled(RandomizedResponse(2.0, k), 300) for k in (2, 3, 1000)],
        [Shuffled(RandomizedResponse(2.0, 10), n) for n in (1, 3, 100, 10**5, 10**12)],
    ):
        epsilons = [loss.epsilon(1e-7) for loss in sizes]
        assert all(after <= before * (1 + 1e-6) for before, after in itertools.pairwise(epsilons))
    loss = Shuffled(RandomizedResponse(2.0, 10), 500)
    assert loss_from_json(loss.to_json()) == loss
    assert not loss.epsilon_interval(1e-7).tight
    assert loss.pure().epsilon == 2.0
    assert Shuffled(RandomizedResponse(0.0, 10), 500).epsilon(1e-7) == 0
    assert Shuffled(RandomizedResponse(40.0, 10), 500).epsilon(1e-7) == pytest.approx(40.0)
    assert loss.rdp(4.0) < Shuffled(local(2.0), 500).rdp(4.0)
    one, alone = Shuffled(RandomizedResponse(1.5, 7), 1), RandomizedResponse(1.5, 7)
    assert one.delta(0.4) == pytest.approx(alone.delta(0.4), rel=1e-9)


def test_a_report_of_several_parts_is_priced_as_one() -> None:
    parts = RandomizedResponse(0.25, 5) * 2 + PureDP(0.5, neighboring=Neighboring.REPLACE_ONE)
    loss = Shuffled(parts, 10_000)
    assert loss.epsilon(1e-6) == Shuffled(local(1.0), 10_000).epsilon(1e-6)
    assert loss.epsilon(0.0) == 1.0
    assert loss_from_json(loss.to_json()) == loss
    assert (loss * 3).epsilon(1e-6) == (Shuffled(local(1.0), 10_000) * 3).epsilon(1e-6)
    with pytest.raises(UnsupportedView, match="no pure view"):
        Shuffled(parts + Gaussian(1.0, neighboring=Neighboring.REPLACE_ONE), 100)
    with pytest.raises(ParameterError, match="loss must be a PrivacyLoss"):
        Shuffled(1.0, 100)  # type: ignore[arg-type]
