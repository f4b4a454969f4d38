"""Choosing groups by noisy counts: what one unit may change, by exact probabilities, and the fewest lost."""

from __future__ import annotations

import functools
import math
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction

import mpmath
import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import OptionError
from sfumato.mechanisms.noise.truncated_laplace import TruncatedLaplace
from sfumato.mechanisms.selection.randomized_threshold import RandomizedThreshold
from sfumato.numerics.distributions.truncated_laplace import TruncatedLaplaceDistribution
from sfumato.numerics.randomness.source import random_source
from sfumato.queries.pricing.calibration import NoiseDistribution
from sfumato.queries.pricing.price import PricedQuery, price
from sfumato.queries.release.noise import add_noise
from sfumato.queries.release.record import ReleaseRecord
from sfumato.queries.sql.analysis import read
from tests.cases import cases
from tests.chance import accepts_only, frequencies
from tests.queries.noised import noised
from tests.queries.pricing.test_price import _CATALOG, _priced

DP = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS("
_STRATEGIES = {
    "LAPLACE_THRESHOLD": NoiseDistribution.LAPLACE,
    "GAUSSIAN_THRESHOLD": NoiseDistribution.GAUSSIAN,
    "TRUNCATED_GEOMETRIC": NoiseDistribution.TRUNCATED,
}


def _counts(strategy: str, epsilon: float, delta: float, more: str = "") -> PricedQuery:
    options = f"epsilon={epsilon}, delta={delta}, max_groups_contributed=1, "
    return _priced("COUNT(*) AS n", f"{options}group_selection_strategy={strategy}{more}")


def _threshold(priced: PricedQuery) -> RandomizedThreshold:
    assert priced.threshold is not None
    return priced.threshold


def _shown(priced: PricedQuery, count: int) -> float:
    return _threshold(priced).shown(noised(priced.mechanisms[0]).distribution, count).upper


def _answers(priced: PricedQuery, counts: Iterable[int]) -> dict[int, dict[int | None, float]]:
    """Return the laws of what is released about groups: a noisy count, or None where it is not shown."""
    least, threshold = priced.query.options.min_privacy_units, _threshold(priced)
    law = noised(priced.mechanisms[0]).distribution
    odds = functools.cache(lambda magnitude: law.pmf(magnitude).upper)
    laws: dict[int, dict[int | None, float]] = {}
    for count in counts:
        values = range(threshold.units, threshold.units + 400) if count >= least else range(0)
        laws[count] = {value: odds(abs(value - count)) for value in values}
        if values:
            h, at = float(threshold.probability), threshold.units
            lowest = isinstance(law, TruncatedLaplaceDistribution) and at - count == -law.limit
            laws[count][at] *= min(1.0, h / (1 - h)) if lowest and h < 1 else h
        laws[count][None] = 1 - threshold.shown(law, count).lower if values else 1.0
    return laws


@pytest.mark.parametrize("strategy", _STRATEGIES)
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
@pytest.mark.parametrize(("least", "groups"), [(1, 1), (4, 1), (1, 3), (5, 2)])
def test_one_unit_changes_what_is_released_of_a_group_by_epsilon_and_delta_only(
    strategy: str, epsilon: float, least: int, groups: int
) -> None:
    delta = 1e-4
    options = f"epsilon={epsilon}, delta={delta}, max_groups_contributed={groups}, "
    more = f"group_selection_strategy={strategy}, min_privacy_units_per_group={least}"
    priced = _priced("COUNT(*) AS n", options + more)
    mechanism = priced.mechanisms[0]
    # One group alone: for Laplace noise a part of both; for Gaussian noise what one group's noise has.
    each = delta / groups
    pure = mechanism.privacy_loss.pure().epsilon / groups if strategy != "GAUSSIAN_THRESHOLD" else epsilon
    assert pure <= epsilon / groups * (1 + 1e-9) or strategy == "GAUSSIAN_THRESHOLD"
    span = range(max(1, least - 2), max(40, _threshold(priced).units + 5))
    laws = _answers(priced, (span[0] - 1, *span))

    def check(stated: float) -> None:
        for count in span:
            for p, q in ((laws[count], laws[count - 1]), (laws[count - 1], laws[count])):
                excess = sum(max(0.0, mass - math.exp(stated) * q.get(a, 0.0)) for a, mass in p.items())
                assert excess <= each * (1 + 1e-6)

    if strategy == "GAUSSIAN_THRESHOLD" and groups > 1:
        check(pure)
    else:
        accepts_only(check, pure, nine_tenths=0.9 * pure)


def _optimum(epsilon: float, delta: float, groups: int, count: int) -> list[mpmath.mpf]:
    """The most that any rule can show of a group with one share of both, by the number of its units.

    Desfontaines, Voss, Gipson, Mandayam, "Differentially private partition selection" (2022), theorem 1.
    """
    growth, mass = mpmath.exp(mpmath.mpf(epsilon) / groups), mpmath.mpf(delta) / groups
    shown = [mpmath.mpf(0)]
    for _ in range(count):
        last = shown[-1]
        shown.append(min(growth * last + mass, 1 - (1 - last - mass) / growth, mpmath.mpf(1)))
    return shown


@cases(
    ("epsilon", "delta", "groups", "least"),
    [(1.0, 1e-6, 1, 1), (0.3, 1e-5, 1, 1), (3.0, 1e-10, 1, 4), (0.5, 1e-3, 1, 1), (1.7, 1e-3, 3, 2)],
)
def test_truncated_noise_shows_a_group_as_often_as_any_private_choice_can(
    epsilon: float, delta: float, groups: int, least: int
) -> None:
    options = f"epsilon={epsilon}, delta={delta}, max_groups_contributed={groups}, "
    more = f"group_selection_strategy=TRUNCATED_GEOMETRIC, min_privacy_units_per_group={least}"
    priced = _priced("COUNT(*) AS n", options + more)
    mechanism, threshold = priced.mechanisms[0], _threshold(priced)
    assert isinstance(mechanism, TruncatedLaplace)
    law, limit = mechanism.distribution, int(mechanism.limit)
    with mpmath.workdps(30):
        optimum = _optimum(epsilon, delta, groups, 2 * limit + 3)
        for above, best in enumerate(optimum[1:]):
            shown = threshold.shown(law, least + above)
            assert shown.lower <= best * (1 + mpmath.mpf("1e-12"))  # no rule shows more
            assert best - shown.upper <= 1e-7, (above, best)
            assert best - shown.upper <= 1e-6 * best


def test_two_limits_are_mixed_to_use_all_of_delta() -> None:
    priced = _counts("TRUNCATED_GEOMETRIC", 1.0, 1e-6)
    mechanism = priced.mechanisms[0]
    assert isinstance(mechanism, TruncatedLaplace)
    assert mechanism.limit == 14
    assert float(mechanism.weight) == pytest.approx(0.93255, abs=5e-6)
    odds = [TruncatedLaplaceDistribution(mechanism.scale, limit).pmf(limit).upper for limit in (13, 14)]
    assert float(mechanism.weight) * odds[0] + float(1 - mechanism.weight) * odds[1] == pytest.approx(1e-6)
    assert [_shown(priced, count) for count in (12, 13, 14, 15)] == pytest.approx(
        [0.0947, 0.2575, 0.6999, 0.8896], abs=5e-5
    )
    assert mechanism.delta == pytest.approx(1e-6, rel=1e-12)
    assert mechanism.delta <= 1e-6


@cases(("epsilon", "delta"), [(12.0, 1e-5), (9.0, 0.2), (1.0, 0.3)])
def test_a_delta_above_that_of_the_least_limit_goes_to_the_threshold(epsilon: float, delta: float) -> None:
    priced = _counts("TRUNCATED_GEOMETRIC", epsilon, delta)
    mechanism = priced.mechanisms[0]
    assert isinstance(mechanism, TruncatedLaplace)
    assert mechanism.limit == 1
    assert mechanism.weight == 0
    assert delta * (1 - 1e-9) <= _shown(priced, 1) <= delta
    assert priced.loss.pure().delta <= delta
    assert priced.loss.pure().delta >= max(mechanism.delta, _shown(priced, 1))


@cases("strategy", ["LAPLACE_THRESHOLD", "GAUSSIAN_THRESHOLD"])
@cases("groups", [1, 5])
@cases("least", [1, 3])
def test_a_coin_at_the_threshold_uses_all_of_its_share_of_delta(
    strategy: str, groups: int, least: int
) -> None:
    options = f"epsilon=1, delta=1e-6, max_groups_contributed={groups}, group_selection_strategy={strategy}"
    priced = _priced("COUNT(*) AS n", f"{options}, min_privacy_units_per_group={least}")
    share = (1e-6 if strategy == "LAPLACE_THRESHOLD" else 3.75e-7) / groups
    assert share * (1 - 1e-9) <= _shown(priced, least) <= share
    law, threshold = noised(priced.mechanisms[0]).distribution, _threshold(priced)
    whole = least + law.quantile_above(share)  # the best threshold without a coin
    assert threshold.units in (whole - 1, whole)
    for count in range(least, 2 * whole):
        assert _shown(priced, count) >= law.upper_tail(whole - count).upper * (1 - 1e-12)


@pytest.mark.parametrize("groups", [1, 3, 20])
def test_truncated_noise_shows_more_groups_than_laplace_noise(groups: int) -> None:
    options = f"epsilon=1, delta=1e-8, max_groups_contributed={groups}, group_selection_strategy="
    truncated, plain = (
        _priced("COUNT(*) AS n", options + s) for s in ("TRUNCATED_GEOMETRIC", "LAPLACE_THRESHOLD")
    )
    for count in range(1, 3 * _threshold(plain).units):
        assert _shown(truncated, count) >= _shown(plain, count) * (1 - 1e-7)


@pytest.mark.parametrize(("strategy", "distribution"), _STRATEGIES.items())
def test_the_strategy_names_the_distribution(strategy: str, distribution: NoiseDistribution) -> None:
    assert _counts(strategy, 1.0, 1e-8).distribution is distribution


@pytest.mark.parametrize(
    ("strategy", "delta", "count"),
    [
        ("TRUNCATED_GEOMETRIC", 1e-6, 14),
        ("TRUNCATED_GEOMETRIC", 0.05, 6),  # at the threshold only by the lowest noise
        ("LAPLACE_THRESHOLD", 1e-6, 14),
        ("GAUSSIAN_THRESHOLD", 1e-6, 23),
    ],
)
def test_what_is_released_is_drawn_from_the_stated_law(strategy: str, delta: float, count: int) -> None:
    priced = _counts(strategy, 1.0, delta)
    many = 200_000
    table = pa.table({"k0": np.arange(many), "m0": np.full(many, count)})
    noisy = add_noise(priced, table, random_source(17), privacy_unit="id").table["m0"].to_numpy()
    drawn = Counter({None: many - noisy.size, **Counter(noisy.tolist())})
    law = _answers(priced, [count])[count]
    assert math.fsum(law.values()) == pytest.approx(1.0, abs=1e-9)

    less = Fraction(round(0.8 * float(_threshold(priced).probability) * 2**62), 2**62)
    threshold = RandomizedThreshold(_threshold(priced).units, less)
    wrong = _answers(replace(priced, threshold=threshold), [count])[count]
    if count == 6:
        # noise that has one coin for all, or that hides a group whose noise is the lowest
        at = _threshold(priced).units
        assert isinstance(priced.mechanisms[0], TruncatedLaplace)
        assert at - count == -priced.mechanisms[0].limit
        whole = law[None] + law[at]
        wrong = {**law, at: 0.0, None: whole}
    accepts_only(frequencies(drawn), law, another_coin=wrong)


def test_the_count_of_units_with_a_value_serves_as_the_count_of_units() -> None:
    mean = "AVG(x, contribution_bounds_per_group => (0, 9)) AS a"
    options = "epsilon=1, delta=1e-8, max_groups_contributed=1"
    assert len(_priced(f"{mean}, COUNT(x) AS c", options).measures) == 2
    assert len(_priced(f"{mean}, SUM(x, contribution_bounds_per_group => (0, 9))", options).measures) == 3
    assert len(_priced(f"{mean}, COUNT(*) AS n", options).measures) == 3
    assert len(_priced(f"{mean}, COUNT(x + 1) AS c", options).measures) == 4


def test_groups_below_the_least_number_of_units_are_never_shown() -> None:
    rows = [(unit, group) for group, units in enumerate([3, 9, 14, 60]) for unit in range(units)]
    table = pa.table({"id": [100 * g + u for u, g in rows], "g": [g for _, g in rows]})
    text = (
        DP + "epsilon=9, delta=0.2, max_groups_contributed=1, min_privacy_units_per_group=10) "
        "g, COUNT(*) AS n FROM data GROUP BY g"
    )
    with sf.connect(table, privacy_unit="id", epsilon=9, delta=0.6, rng=3) as session:
        release = session.sql(text)
    # Whether a group is shown is hardly left to chance: so many units are above the threshold by far.
    priced = _counts("LAPLACE_THRESHOLD", 9, 0.2, ", min_privacy_units_per_group=10")
    laws = _answers(priced, (3, 9, 14, 60))
    shown = {units: 1 - law[None] for units, law in laws.items()}
    assert shown == pytest.approx({3: 0.0, 9: 0.0, 14: 1.0, 60: 1.0}, abs=1e-9)
    assert release.to_arrow()["g"].to_pylist() == [2, 3]
    assert "at least 10 units in fact" in release.explain()
    assert release.record.minimum_units == 10
    again = ReleaseRecord.from_bytes(release.record.to_bytes())
    assert again == release.record or again.to_bytes() == release.record.to_bytes()
    lower = release.to_arrow(intervals=True)["n_lower"].to_pylist()
    assert min(lower) >= 10


@pytest.mark.parametrize(
    ("entries", "phrase"),
    [
        ("min_privacy_units_per_group=0", "min_privacy_units_per_group must be an integer"),
        ("min_privacy_units_per_group='3'", "min_privacy_units_per_group must be an integer"),
        ("group_selection_strategy=SOMEHOW", "must be one of LAPLACE_THRESHOLD, GAUSSIAN_THRESHOLD, TRUNC"),
    ],
)
def test_bad_options_are_refused(entries: str, phrase: str) -> None:
    with pytest.raises(OptionError, match=re.escape(phrase)):
        _priced("COUNT(*) AS n", f"epsilon=1, delta=1e-8, max_groups_contributed=1, {entries}")


@pytest.mark.parametrize("entry", ["min_privacy_units_per_group=3", "group_selection_epsilon=0.1"])
def test_options_of_choosing_groups_stand_only_where_groups_are_chosen(entry: str) -> None:
    text = f"{DP}epsilon=1, delta=1e-8, {entry}) COUNT(*) AS n FROM data"
    with pytest.raises(OptionError, match="where no groups are chosen"):
        read(text, _CATALOG)
    name, value = entry.split("=")
    plain = f"{DP}epsilon=1, delta=1e-8) COUNT(*) AS n FROM data"
    priced = price(read(plain, _CATALOG, defaults={name: float(value) if "." in value else int(value)}))
    assert priced.query.options.min_privacy_units == 1
    assert priced.query.options.group_selection_epsilon is None


ALL_ROWS = "max_rows_contributed"


@pytest.mark.parametrize(
    ("defaults", "entries", "expected"),
    [
        ({"max_groups_contributed": 3, "max_rows_per_group": 2}, f"{ALL_ROWS}=5", (None, None, 5)),
        ({ALL_ROWS: 5}, "max_groups_contributed=3", (3, None, None)),
        ({ALL_ROWS: 5, "max_rows_per_group": None}, "", (None, None, 5)),
    ],
)
def test_what_a_query_bounds_goes_before_the_sessions_other_bounds(
    defaults: dict[str, object], entries: str, expected: tuple[int | None, ...]
) -> None:
    given = ", ".join(filter(None, ["epsilon=1, delta=1e-8", entries]))
    text = f"{DP}{given}) g, COUNT(*) AS n FROM data GROUP BY g"
    options = read(text, _CATALOG, defaults=defaults).options
    assert (
        options.max_groups_contributed,
        options.max_rows_per_group,
        options.max_rows_contributed,
    ) == expected


def test_without_keys_all_rows_are_those_of_the_one_group() -> None:
    options = read(f"{DP}epsilon=1, delta=0, {ALL_ROWS}=4) COUNT(*) AS n FROM data", _CATALOG).options
    assert (options.max_rows_per_group, options.max_rows_contributed) == (4, None)


def test_a_unit_keeps_so_many_rows_in_all_groups() -> None:
    rows = [(unit, f"g{unit % 3 + i % 5}") for unit in range(400) for i in range(10)]
    table = pa.table({"id": [unit for unit, _ in rows], "g": [g for _, g in rows], "x": [1.0] * len(rows)})
    per_group = "contribution_bounds_per_group => (0, 6)"
    text = (
        f"{DP}epsilon=60, delta=1e-6, {ALL_ROWS}=6) g, COUNT(*, {per_group}) AS n, "
        "SUM(x, contribution_bounds_per_row => (0, 1)) AS s FROM data GROUP BY g"
    )
    with sf.connect(table, privacy_unit="id", epsilon=90, delta=1e-5, rng=3) as session:
        release = session.sql(text)
    answer = release.to_arrow()
    told = release.to_arrow(intervals=True, level=1 - 1e-10)
    for name in ("n", "s"):
        found = sum(answer[name].to_pylist())
        # All noise together is within the sum of the intervals' halves, of less than half a row a unit.
        ends = (sum(told[f"{name}{end}"].to_pylist()) for end in ("_lower", "_upper"))
        slack = max(abs(end - found) for end in ends)

        def check(rows: int, found: float = found, slack: float = slack) -> None:
            assert abs(found - 400 * rows) <= slack

        accepts_only(check, 6, one_less=5, one_more=7, all_of_them=10)
    assert "at most 6 rows in all groups together" in release.explain()
