"""Choosing groups by noisy counts: what one unit may change, by exact probabilities, and the fewest lost."""

from __future__ import annotations

import math
import re

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import OptionError
from sfumato.mechanisms.noise.truncated_laplace import TruncatedLaplace
from sfumato.numerics.distributions.discrete import SymmetricDistribution
from sfumato.numerics.distributions.truncated_laplace import TruncatedLaplaceDistribution
from sfumato.queries.pricing.calibration import NoiseDistribution
from sfumato.queries.pricing.price import PricedQuery, price
from sfumato.queries.release.record import ReleaseRecord
from sfumato.queries.sql.analysis import read
from tests.cases import cases
from tests.chance import accepts_only
from tests.queries.pricing.test_price import _CATALOG, _priced

_STRATEGIES = {
    "LAPLACE_THRESHOLD": NoiseDistribution.LAPLACE,
    "GAUSSIAN_THRESHOLD": NoiseDistribution.GAUSSIAN,
    "TRUNCATED_GEOMETRIC": NoiseDistribution.TRUNCATED,
}


def _counts(strategy: str, epsilon: float, delta: float, more: str = "") -> PricedQuery:
    options = f"epsilon={epsilon}, delta={delta}, max_groups_contributed=1, "
    return _priced("COUNT(*) AS n", f"{options}group_selection_strategy={strategy}{more}")


def _answers(law: SymmetricDistribution, count: int, threshold: int, least: int) -> dict[int | None, float]:
    """Return the law of what is released about a group: its noisy count, or None where it is not shown."""
    if count < least:
        return {None: 1.0}
    shown: dict[int | None, float] = {
        value: law.pmf(value - count).upper for value in range(threshold, threshold + 400)
    }
    return {None: 1 - law.upper_tail(threshold - count).lower, **shown}


@pytest.mark.parametrize("strategy", _STRATEGIES)
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("least", [1, 4])
def test_one_unit_changes_what_is_told_of_a_group_by_epsilon_and_delta_only(
    strategy: str, epsilon: float, least: int
) -> None:
    delta = 1e-4
    priced = _counts(strategy, epsilon, delta, f", min_privacy_units_per_group={least}")
    law, threshold = priced.mechanisms[0].distribution, priced.threshold
    assert threshold is not None
    pairs = [
        [_answers(law, n, threshold, least) for n in (count, count - 1)] for count in range(1, threshold + 5)
    ]

    def check(stated: float) -> None:
        for one, other in pairs:
            for p, q in ((one, other), (other, one)):
                excess = sum(max(0.0, mass - math.exp(stated) * q.get(a, 0.0)) for a, mass in p.items())
                assert excess <= delta * (1 + 1e-6)

    accepts_only(check, epsilon, nine_tenths=0.9 * epsilon)


@cases("epsilon", [0.1, 0.5, 2.0])
@cases("delta", [1e-3, 1e-8])
def test_truncated_noise_shows_a_group_as_often_as_any_private_choice_can(
    epsilon: float, delta: float
) -> None:
    priced = _counts("TRUNCATED_GEOMETRIC", epsilon, delta)
    law, threshold = priced.mechanisms[0].distribution, priced.threshold
    assert threshold is not None
    # Desfontaines, Voss, Gipson, Mandayam (2022), theorem 1: the most that any (epsilon, delta) rule can show
    mass, best = law.upper_tail(threshold - 1).upper, 0.0
    assert mass <= delta
    for count in range(1, 2 * threshold):
        best = min(math.exp(epsilon) * best + mass, 1 - math.exp(-epsilon) * (1 - best - mass), 1.0)
        shown = law.upper_tail(threshold - count)
        assert shown.upper == pytest.approx(best, rel=1e-5, abs=1e-12), count
    assert law.upper_tail(threshold - 2).lower > 0


@pytest.mark.parametrize("groups", [1, 3, 20])
def test_truncated_noise_has_the_lower_threshold(groups: int) -> None:
    options = f"epsilon=1, delta=1e-8, max_groups_contributed={groups}, group_selection_strategy="
    thresholds = {s: _priced("COUNT(*) AS n", options + s).threshold or 0 for s in _STRATEGIES}
    assert thresholds["TRUNCATED_GEOMETRIC"] < thresholds["LAPLACE_THRESHOLD"]


@pytest.mark.parametrize(("strategy", "distribution"), _STRATEGIES.items())
def test_the_strategy_names_the_distribution(strategy: str, distribution: NoiseDistribution) -> None:
    assert _counts(strategy, 1.0, 1e-8).distribution is distribution


def test_the_limit_of_the_noise_is_the_least_that_delta_allows() -> None:
    priced = _counts("TRUNCATED_GEOMETRIC", 1.0, 1e-6)
    mechanism = priced.mechanisms[0]
    assert isinstance(mechanism, TruncatedLaplace)
    limit = int(mechanism.limit)
    assert mechanism.distribution.pmf(limit).upper <= 1e-6
    shorter = TruncatedLaplaceDistribution(mechanism.scale, limit - 1)
    assert shorter.pmf(limit - 1).lower > 1e-6


def test_the_count_of_units_with_a_value_serves_as_the_count_of_units() -> None:
    mean = "AVG(x, contribution_bounds_per_group => (0, 9)) AS a"
    options = "epsilon=1, delta=1e-8, max_groups_contributed=1"
    assert len(_priced(f"{mean}, COUNT(x) AS c", options).measures) == 2
    assert len(_priced(f"{mean}, SUM(x, contribution_bounds_per_group => (0, 9))", options).measures) == 3
    assert len(_priced(f"{mean}, COUNT(*) AS n", options).measures) == 3
    assert len(_priced(f"{mean}, COUNT(x + 1) AS c", options).measures) == 4


DP = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS("


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
    law, threshold = priced.mechanisms[0].distribution, priced.threshold
    assert threshold is not None
    shown = {units: 1 - _answers(law, units, threshold, 10)[None] for units in (3, 9, 14, 60)}
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
