"""Estimates of several collections together: against their moments, their coverage and their parts."""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest
from scipy.stats import kstest

from sfumato import local
from sfumato.errors import ParameterError
from sfumato.local import Domain, Estimate, OptimizedUnaryEncoding, RandomizedResponse
from tests.cases import cases
from tests.local.laws import covers

DOMAIN = Domain(["a", "b", "c"])
OLD = RandomizedResponse(epsilon=1.0, domain=DOMAIN)
NEW = OptimizedUnaryEncoding(epsilon=2.0, domain=Domain(["c", "a", "b"]))  # in another order
FIRST, SECOND = np.array([700, 250, 50]), np.array([100, 1200, 700])


def two(seed: int) -> tuple[Estimate, Estimate]:
    generator = np.random.default_rng(seed)
    return OLD.simulate(FIRST, generator), NEW.simulate(SECOND, generator)


@functools.cache
def many() -> list[tuple[Estimate, Estimate]]:
    return [two(seed) for seed in range(2000)]


DIFFERENCE = FIRST / 1000 - SECOND[[1, 2, 0]] / 2000
POOLED = (FIRST + SECOND[[1, 2, 0]]) / 3000


def test_sums_and_differences_are_unbiased_with_the_deviation_they_state() -> None:
    for made, truth in ((local.difference, DIFFERENCE), (local.pool, POOLED)):
        found = [made(first, second) for first, second in many()]
        raw = np.array([one.frequencies for one in found])
        stddev = found[0].stddev
        assert np.abs(raw.mean(axis=0) - truth).max() < 6 * stddev.max() / math.sqrt(len(raw))
        # The root of a variance of 2,000 draws errs by a factor of 1.6 %.
        assert np.allclose(raw.std(axis=0), stddev, rtol=0.1)


def test_intervals_cover_as_they_say() -> None:
    for made, truth in ((local.difference, DIFFERENCE), (local.pool, POOLED)):
        ends = [made(first, second).interval(0.95) for first, second in many()]
        held = np.sum([(end.lower <= truth) & (truth <= end.upper) for end in ends], axis=0)
        covers(held, len(many()))
        bands = [made(first, second).bands(0.95) for first, second in many()[:200]]
        wider = [
            np.all(band.upper - band.lower > end.upper - end.lower)
            for band, end in zip(bands, ends, strict=False)
        ]
        assert all(wider)


def test_intervals_of_a_population_cover_its_shares() -> None:
    generator = np.random.default_rng(5)
    truth, held, alone = FIRST / 1000, 0, 0
    for _ in range(500):
        counts = generator.multinomial([300, 300], truth)
        first, second = (
            RandomizedResponse(epsilon=5.0, domain=DOMAIN).simulate(row, generator) for row in counts
        )
        change = local.difference(first, second)
        lower, upper, _ = change.interval(0.9, population=True)
        held += int(lower[0] <= 0 <= upper[0])
        lower, upper, _ = change.interval(0.9)
        alone += int(lower[0] <= 0 <= upper[0])
    assert abs(held - 450) < 40  # six deviations
    assert alone < 350  # the respondents' own shares are another question


def test_p_values_are_uniform_where_nothing_changed() -> None:
    generator = np.random.default_rng(7)
    found = []
    for _ in range(1000):
        first = OLD.simulate(SECOND[[1, 2, 0]], generator)
        found.append(local.difference(first, NEW.simulate(SECOND, generator)).p_values())
    for column in np.array(found).T:
        assert kstest(column, "uniform").pvalue > 1e-4
    changed = local.difference(OLD.simulate(100 * FIRST, generator), NEW.simulate(100 * SECOND, generator))
    assert changed.p_values()[:2].max() < 1e-6  # .7 against .6 and .25 against .35, of thousands
    alike = local.difference(many()[0][0], many()[0][0])
    assert alike.p_values().tolist() == [1.0, 1.0, 1.0]


def test_p_values_of_populations_are_larger() -> None:
    first, second = many()[0]
    change = local.difference(first, second)
    assert (change.p_values(population=True) > change.p_values()).all()


def test_intervals_and_p_values_by_hand() -> None:
    """The first category, by the formulas: square and add, and a pooled share under the null."""
    first, second = many()[1]
    change, z = local.difference(first, second), 1.959963984540054
    x, y = float(first.raw[0]), float(second.raw[1])  # "a" stands second in the other domain
    ends = [part.error_model.score(part.raw, part.reports, z) for part in (first, second)]
    at = [(end.lower[place], end.upper[place]) for end, place in zip(ends, (0, 1), strict=True)]
    for population in (False, True):
        drawn = z * z * (x * (1 - x) / 1000 + y * (1 - y) / 2000) if population else 0.0
        lower, upper, _ = change.interval(population=population)
        assert lower[0] == pytest.approx(x - y - math.sqrt((x - at[0][0]) ** 2 + (at[1][1] - y) ** 2 + drawn))
        above = (at[0][1] - x) ** 2 + (y - at[1][0]) ** 2 + drawn
        assert upper[0] == pytest.approx(x - y + math.sqrt(above))
        share = np.array([(1000 * x + 2000 * y) / 3000])
        each = [float(part.error_model.variance(share)[0]) for part in (first, second)]
        more = float(share[0] * (1 - share[0])) if population else 0.0
        stddev = math.sqrt((each[0] + more) / 1000 + (each[1] + more) / 2000)
        p_value = change.p_values(population=population)[0]
        assert p_value == pytest.approx(math.erfc(abs(x - y) / stddev / math.sqrt(2)))
    pooled = local.pool(first, second)
    weights = [first.variances[0] / 9, 4 * second.variances[1] / 9]
    assert pooled.stddev[0] == pytest.approx(math.sqrt(sum(weights)))


def test_intervals_stay_where_shares_can_be() -> None:
    loud = RandomizedResponse(epsilon=0.1, domain=DOMAIN)
    one, two = loud.simulate([3, 0, 0], 1), loud.simulate([0, 0, 3], 2)
    assert max(one.raw.max(), two.raw.max()) > 1  # where f (1 - f) would be negative
    for made, least in ((local.difference(one, two), -1.0), (local.pool(one, two), 0.0)):
        plain, wide = made.interval(), made.interval(population=True)
        for ends in (plain, wide):
            assert least <= ends.lower.min() <= ends.upper.max() <= 1.0
        assert made.frequencies.min() < least or made.frequencies.max() > 1
    none = next(e for e in (OLD.simulate([0, 500, 500], seed) for seed in range(20)) if e.raw[0] < 0)
    far = local.difference(none, none)  # drawing adds nothing where a share is 0
    assert far.interval(population=True).upper[0] == far.interval().upper[0]


def test_bands_share_their_risk() -> None:
    change = local.difference(*many()[2])
    band, same = change.bands(0.94), change.interval(0.98)  # three categories
    assert np.allclose(band.lower, same.lower)
    assert np.allclose(band.upper, same.upper)


def test_a_pool_of_one_is_its_part() -> None:
    first, _ = many()[0]
    pooled = local.pool(first)
    assert np.allclose(pooled.frequencies, first.raw)
    assert np.allclose(pooled.stddev, first.stddev)
    assert pooled.reports == first.reports
    lower, upper, _ = pooled.interval(0.9)
    own = first.interval(0.9)
    assert np.allclose(lower, own.lower)
    assert np.allclose(upper, own.upper)


def test_tables_say_what_they_are_of() -> None:
    first, second = many()[0]
    change = local.difference(first, second)
    table = change.to_dict(0.9)
    assert table["category"] == ["a", "b", "c"]
    assert np.array_equal(table["lower"], change.interval(0.9).lower)
    assert change.simulated
    axes = pytest.importorskip("matplotlib.figure").Figure().subplots()
    assert change.plot(axes) is axes
    assert len(axes.patches) == 3


@cases(
    ("make", "message"),
    [
        (lambda: local.difference(many()[0][0], 3), "second must be an Estimate"),  # type: ignore[arg-type]
        (lambda: local.pool(many()[0][0], OLD.aggregator().estimate()), "others must have enough reports"),
        (
            lambda: local.difference(
                many()[0][0], RandomizedResponse(epsilon=1.0, domain=Domain(["a", "b"])).simulate([5, 5], 1)
            ),
            "second must be about the categories of the first",
        ),
        (lambda: local.difference(*many()[0]).interval(1.0), "level must"),
        (
            lambda: local.difference(*many()[0]).interval(0.9, population=1),  # type: ignore[arg-type]
            "population must be True or False",
        ),
    ],
)
def test_bad_input(make: object, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        make()  # type: ignore[operator]
