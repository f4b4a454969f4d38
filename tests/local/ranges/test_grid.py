"""Pairs of values: the exact law of reports, variances of rectangles, intervals, and whatever bytes come."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from sfumato.audit import audit
from sfumato.errors import ParameterError
from sfumato.local import Bins, Domain, HaarGrid, RandomizedResponse
from sfumato.local.device import Grid, Randomizer
from tests.cases import cases
from tests.chance import accepts_only
from tests.drawings import new_axes, written
from tests.local.laws import (
    SEVEN_SIGMA,
    audited,
    below_exponential,
    covers,
    of_more_epsilon,
    reports,
    within,
    worst_odds,
)

CERTAIN = 1 - 1e-11


def made(epsilon: float = 1.0, first: int = 5, second: int = 3, **given: Any) -> HaarGrid:
    return HaarGrid(epsilon=epsilon, domains=(Domain(range(first)), Domain(range(second))), **given)


def haar_matrix(size: int) -> list[np.ndarray[Any, Any]]:
    """For all and each level above the leaves, the signs of the leaves in each node's coefficient."""
    found, span = [np.ones((1, size))], 1 << (size - 1).bit_length()
    while span > 1:
        starts = range(0, size, span)
        place = np.arange(size)
        rows = [
            np.where((place >= x) & (place < x + span), np.where(place < x + span // 2, 1.0, -1.0), 0.0)
            for x in starts
        ]
        found.append(np.array(rows))
        span //= 2
    return found


def law_of(protocol: HaarGrid, person: tuple[int, int]) -> dict[bytes, Fraction]:
    """The law of whole reports, from the matrices of coefficients."""
    device, law = protocol.device, dict[bytes, Fraction]()
    one, other = (haar_matrix(len(domain)) for domain in protocol.domains)
    for at, (pair, chance) in enumerate(zip(device.pairs, device.chances, strict=True)):
        signs = np.kron(one[pair[0]][:, person[0]], other[pair[1]][:, person[1]])
        (node,) = np.flatnonzero(signs)
        for report, mass in device.parts[at].probabilities(2 * node + (signs[node] < 0)).items():  # type: ignore[attr-defined]
            row = np.zeros((1, device.width), np.uint8)
            row[0, : 1 + len(report)] = [at, *report]
            device.layout.stamp(row)
            law[row.tobytes()] = chance * mass
    return law


@pytest.mark.parametrize("epsilon", [0.5, 4.0])
def test_the_odds_are_those_of_epsilon_and_the_law_is_drawn(epsilon: float) -> None:
    protocol, n = made(epsilon, 4, 3), 40_000
    people = list(product(range(4), range(3)))
    laws = {person: law_of(protocol, person) for person in people}
    assert below_exponential(worst_odds(laws.__getitem__, people), epsilon)
    for person in ((0, 0), (3, 2), (2, 1)):
        records = protocol.randomize_batch([person] * n, 11)
        drawn: dict[bytes, int] = dict.fromkeys(laws[person], 0)
        for report in records:
            drawn[report] += 1
        law, another = laws[person], laws[person[0], (person[1] + 1) % 3]
        sharper = of_more_epsilon(law, 1.5)
        accepts_only(reports(drawn, law), law, of_another=another, of_half_more_epsilon=sharper)


@cases("sizes", [(2, 2), (5, 3), (4, 7)])
@cases("oracle", [None, RandomizedResponse])
@cases("epsilon", [0.7, 3.0])
def test_variances_are_those_of_all_reports(sizes: tuple[int, int], oracle: Any, epsilon: float) -> None:
    protocol = made(epsilon, *sizes, oracle=oracle)
    truth = np.random.default_rng(1).dirichlet(np.full(sizes[0] * sizes[1], 0.7))
    asked = [300 + 20 * at for at in range(len(protocol.levels))]
    places, start = np.arange(len(truth)), 0
    # One report at a time in a level: what it adds to all shares, and how likely it is.
    totals = [np.zeros(level.totals, np.int64) for level in protocol.levels]
    nothing = protocol._shares(totals, [1] * len(totals)).ravel()
    covariance = -(np.diag(truth) - np.outer(truth, truth)) / sum(asked)
    mean = nothing.copy()
    for at, level in enumerate(protocol.levels):
        shares = np.bincount(protocol.device.answers(places, at), truth, len(level.device.domain))
        laws = [level.device.probabilities(code) for code in range(len(shares))]  # type: ignore[attr-defined]
        chances = shares @ np.array([[float(x) for x in law.values()] for law in laws])
        rows = np.array([np.frombuffer(report, np.uint8) for report in laws[0]])
        parts = []
        for row in rows:
            given = list(totals)
            given[at] = level.tally(row[None])
            parts.append(protocol._shares(given, [1] * len(totals)).ravel() - nothing)
        told = np.array(parts)
        own = chances @ told
        mean += own
        covariance += (told.T @ (chances[:, None] * told) - np.outer(own, own)) / asked[at]
        start += level.totals
    np.testing.assert_allclose(mean, truth, atol=1e-9)
    reach = np.pad(truth.reshape(sizes).cumsum(axis=0).cumsum(axis=1), ((1, 0), (1, 0)))
    rows_of, columns_of = np.triu_indices(sizes[0]), np.triu_indices(sizes[1])
    pairs = list(product(zip(*rows_of, strict=True), zip(*columns_of, strict=True)))
    first = np.array([[one[0], other[0]] for one, other in pairs])
    last = np.array([[one[1], other[1]] for one, other in pairs])
    found = protocol.error_model(asked).variance(first.T, last.T, reach)
    for at, (low, high) in enumerate(zip(first, last, strict=True)):
        inside = np.zeros(sizes)
        inside[low[0] : high[0] + 1, low[1] : high[1] + 1] = 1
        flat = inside.ravel()
        assert found[at] == pytest.approx(flat @ covariance @ flat, rel=1e-9, abs=1e-14)


def test_no_bias_on_the_wire_and_ranges_by_name() -> None:
    generator = np.random.default_rng(3)
    ages = generator.integers(0, 40, 60_000)
    incomes = generator.gamma(2.0 + ages / 10, 500.0).clip(0, 8000)
    domains = Domain(range(40)), Bins(np.linspace(0, 8000, 21))
    for oracle in (None, RandomizedResponse):
        protocol = HaarGrid(epsilon=2.0, domains=domains, oracle=oracle)
        counted = protocol.aggregator()
        pairs = list(zip(ages.tolist(), incomes.tolist(), strict=True))
        counted.add_batch(
            protocol.randomize_batch(pairs if oracle is None else np.column_stack([ages, incomes]), 5)
        )
        told = counted.estimate()
        assert told.simulated
        lower, upper = (
            [(0, 0), (10, 2000), (20, 0), (5, 800)],
            [(39, 8000), (29, 4000), (39, 1200), (5, 1200)],
        )
        found = told.ranges(lower, upper)
        truth = np.array(
            [
                np.mean((ages >= a) & (ages <= c) & (incomes >= b) & (incomes < d + (d == 8000)))
                for (a, b), (c, d) in zip(lower, upper, strict=True)
            ]
        )
        accepts_only(within(found.share, found.stddev), truth, in_another_order=truth[::-1], half=truth / 2)
        one = told.range((10, 2000), (29, 4000))
        assert one.share == pytest.approx(told.raw[10:30, 5:10].sum())
        assert told.of(7, 123.0) == told.raw[7, 0]
        assert told.raw.sum() == pytest.approx(1)
        assert told.counts.shape == (40, 20)
    cut = told.consistent("norm-sub")
    assert cut.frequencies.min() >= 0
    assert cut.range((0, 0), (39, 8000)).share == pytest.approx(1)
    assert (cut.raw == told.raw).all()
    assert (told.bands().upper >= told.interval().upper).all()
    with pytest.raises(ParameterError, match="upper must be edges"):
        told.range((0, 0), (39, 8001))
    with pytest.raises(ParameterError, match="values must be"):
        told.range((0, 0, 0), (39, 8000))
    with pytest.raises(ParameterError, match="upper must not come before"):
        told.range((5, 0), (4, 8000))


def test_spread_and_coverage() -> None:
    protocol, generator, n, repeats = made(1.0, 6, 4), np.random.default_rng(5), 60_000, 300
    shares = np.random.default_rng(2).dirichlet(np.full(24, 2.0))
    counts = np.floor(shares * n).astype(np.int64)
    counts[0] += n - counts.sum()
    truth = (counts / n).reshape(6, 4)
    places = np.indices((6, 4)).reshape(2, -1)
    stated = protocol.variance(n, places.T, places.T, truth).reshape(6, 4)
    square, hits, whole, asked = np.zeros((6, 4)), np.zeros((6, 4)), 0, repeats // 3
    for turn in range(repeats):
        told = protocol.simulate(counts, generator)
        square += (told.raw - truth) ** 2 / repeats
        if turn >= asked:
            continue
        low, high, _ = told.interval()
        hits += (low <= truth) & (truth <= high)
        low, high, _ = told.bands()
        whole += bool(((low <= truth) & (truth <= high)).all())

    def check(variances: Any) -> None:
        assert (abs(square / variances - 1) <= SEVEN_SIGMA * np.sqrt(2 / repeats)).all()
        assert square.sum() / variances.sum() == pytest.approx(1, abs=0.03 * np.sqrt(1500 / repeats))

    accepts_only(check, stated, a_fifth_less=0.8 * stated, a_fifth_more=1.2 * stated)
    level = within(hits.mean() / asked, 0.01 * np.sqrt(500 / asked) / SEVEN_SIGMA)
    accepts_only(level, 0.955, as_of_92=0.92, as_of_99=0.99)
    covers(whole, asked, claimed=1.0)


@pytest.mark.parametrize("epsilon", [4.0, 1.0])
def test_the_bytes_keep_epsilon_and_use_it(epsilon: float) -> None:
    # The two pairs differ in the first value: all levels but the first one, of the second alone, see that.
    protocol, generator = made(epsilon, 2, 2, weights=(1e-3, 1.0, 1.0)), np.random.default_rng(7)
    trials = {1.0: 500_000, 4.0: 150_000}[epsilon]
    found = audit(
        lambda value, size: protocol.randomize_batch(np.tile([[value, 0]], (size, 1)), generator).records,
        epsilon=epsilon,
        pairs=[(0, 1)],
        trials=trials,
        batch=True,
        confidence=CERTAIN,
    )
    assert not found.violated
    accepts_only(audited(found), epsilon, nine_tenths=0.9 * epsilon)


def test_a_specification_makes_the_same_randomizer() -> None:
    domains = Domain(list("abc")), Bins([0, 1, 2, 4])
    device = HaarGrid(epsilon=1.0, domains=domains).device
    told = json.loads(json.dumps(device.specification()))
    again = Randomizer.from_specification(told)
    assert again == device
    assert again.digest == device.digest
    assert again.randomize(("b", 3.5), 5) == device.randomize(("b", 3.5), 5)
    assert Randomizer.from_specification(told, domain=Grid(*domains)) == device
    part: dict[str, Any] = told["domain"]
    swapped = {"digest": part["digest"], "grid": part["grid"][::-1]}
    changes: list[Any] = [None, {**part, "grid": []}, {**part, "grid": [1, 2]}, {"digest": "aa"}, swapped]
    for change in changes:
        with pytest.raises(ParameterError):
            Randomizer.from_specification({**told, "domain": change})
    with pytest.raises(ParameterError, match="domain must be a Grid"):
        Randomizer.from_specification(told, domain=domains[0])
    assert Grid(*domains) != Grid(*domains[::-1])


def test_whatever_bytes_come_are_counted() -> None:
    protocol = made()
    batch = protocol.randomize_batch([(at % 5, at % 3) for at in range(200)], 1)
    whole = protocol.aggregator()
    whole.add_batch(batch)
    merged = protocol.aggregator(whole.to_bytes()).merge(whole.to_bytes())
    assert merged.totals.tolist() == (2 * whole.totals).tolist()
    noise = np.random.default_rng(5).integers(0, 256, (20_000, protocol.device.width), dtype=np.uint8)
    protocol.device.layout.stamp(noise[:5000])
    merged.add_batch(noise)
    merged.add(b"x")
    assert merged.accepted + sum(merged.refused.values()) == 400 + 20_001
    assert merged.refused["encoding"] > 0
    assert merged.refused["specification"] > 10_000
    nobody = protocol.aggregator().estimate()
    assert np.isnan(nobody.raw).all()
    assert nobody.interval().upper.tolist() == np.ones((5, 3)).tolist()
    with pytest.raises(ParameterError, match="reports must be at least 1"):
        nobody.consistent("norm-sub")


def test_wrong_parameters_are_named() -> None:
    one = Domain(range(5))
    wrong: list[tuple[Any, str]] = [
        (one, "domains must be two ordered domains"),
        ((one,), "domains must be two ordered domains"),
        ((one, 3), "second must be a Domain or Bins"),
        ((range(3), one), "first must be a Domain or Bins"),
        ((Domain(range(1 << 13)), Domain(range(1 << 12))), "domain must have at most"),
    ]
    for domains, rule in wrong:
        with pytest.raises(ParameterError, match=rule):
            HaarGrid(epsilon=1.0, domains=domains)
    protocol = made()
    for values in ([(0, 3)], [(5, 0)], [0], 3, [(0,)]):
        with pytest.raises(ParameterError, match="values must be"):
            protocol.randomize_batch(values)
    for ends in (([[0, 0]], [[5, 0]]), ([[1, 0]], [[0, 0]]), ([0], [1]), ([[0, 0]], [[1, 1], [1, 1]])):
        with pytest.raises(ParameterError, match="last must be pairs of indices"):
            protocol.variance(10, *ends)
    with pytest.raises(
        ParameterError, match="last must be whole numbers, got a value of type ndarray, of float64"
    ):
        protocol.variance(10, [[0, 0]], [[1.0, 1.9]])
    with pytest.raises(ParameterError, match="shares must be"):
        protocol.variance(10, [[0, 0]], [[1, 1]], np.ones((5, 3)))


def test_a_map_has_the_shares_upwards_and_to_the_right() -> None:
    grid = HaarGrid(epsilon=2.0, domains=(Domain(["a", "b"]), Bins([0, 1, 2, 4, 8])))
    estimate = grid.simulate(np.arange(8) * 500, rng=1)
    ax = estimate.plot(new_axes(), level=0.9)
    image = ax.images[0]
    assert image.get_array().tolist() == estimate.frequencies.tolist()
    assert image.origin == "lower"
    assert [each.get_text() for each in ax.get_yticklabels()] == ["a", "b"]
    assert written(ax) == ["(0.0, 1.0)", "(1.0, 2.0)", "(2.0, 4.0)", "(4.0, 8.0)"]
    lower, upper, _ = estimate.interval(0.9)
    assert ax.get_title() == f"90 % intervals are at most {(upper - lower).max():.2g} wide"
