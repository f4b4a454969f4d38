"""Joint quantiles: the distribution against the loss over small datasets, every path of the draw."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.mechanisms import Grid, JointQuantiles, Quantile, Quantiles
from sfumato.mechanisms.statistics.quantile import joint_sampling
from sfumato.mechanisms.statistics.quantile import quantiles as quantiles_module
from sfumato.mechanisms.statistics.quantile.joint_sampling import JointSampler
from sfumato.mechanisms.statistics.quantile.log_sum_exp import NOTHING
from sfumato.numerics.randomness.source import random_source
from sfumato.privacy.neighboring import Neighboring
from tests.cases import cases
from tests.chance import accepts_only, frequencies

TOP = 4
Data = tuple[int, ...]
DECILES = [k / 10 for k in range(1, 10)]


def weights(mechanism: JointQuantiles, data: Data, top: int = TOP) -> dict[tuple[int, ...], float]:
    """The weight of each ordered answer, by the definition: summed over places, in every order."""
    parts, n = mechanism.parts, len(data)
    rate = float(mechanism._distribution().rate * parts)
    shares = np.diff([0.0, *(float(q) for q in mechanism.quantiles), 1.0])
    found: dict[tuple[int, ...], float] = {}
    for places in itertools.combinations_with_replacement(range((top + 1) * parts), len(shares) - 1):
        up_to = [sum(min(max(0, at + 1 - y * parts), parts) for y in data) / parts for at in places]
        gap = np.abs(np.diff([0, *up_to, n]) - shares * n).sum()
        orders = math.factorial(len(places))
        for many in Counter(places).values():
            orders //= math.factorial(many)
        answer = tuple(at // parts for at in places)
        found[answer] = found.get(answer, 0.0) + orders * math.exp(-rate * gap)
    return found


@lru_cache(maxsize=1000)
def distribution(mechanism: JointQuantiles, data: Data, top: int = TOP) -> dict[tuple[int, ...], float]:
    found = weights(mechanism, data, top)
    whole = math.fsum(found.values())
    return {answer: weight / whole for answer, weight in found.items()}


def neighbors(relation: Neighboring, largest: int) -> Iterator[tuple[Data, Data]]:
    for size in range(largest + 1):
        for data in itertools.combinations_with_replacement(range(TOP + 1), size):
            for value in range(TOP + 1):
                if relation is Neighboring.ADD_REMOVE:
                    yield data, tuple(sorted((*data, value)))
                elif relation is Neighboring.ZERO_OUT and data:
                    yield data, tuple(sorted((0, *data[1:])))
                elif data:
                    yield data, tuple(sorted((value, *data[1:])))


@cases("relation", list(Neighboring))
@cases(
    ("quantiles", "parts", "largest"),
    [((0.5,), 1, 3), ((0.1,), 3, 3), ((0.25, 0.75), 1, 3), ((0.2, 0.5), 2, 2), ((0.1, 0.5, 0.75), 1, 3)],
)
def test_losses_have_the_range_that_is_paid_for(
    relation: Neighboring, quantiles: tuple[float, ...], parts: int, largest: int
) -> None:
    mechanism = JointQuantiles(
        quantiles=quantiles, bounds=(0, TOP), epsilon=1.0, parts=parts, neighboring=relation
    )
    assert mechanism.privacy_loss.epsilon(0.0) == 1.0
    widest = 0.0
    for one, other in neighbors(relation, largest):
        here, there = distribution(mechanism, one), distribution(mechanism, other)
        losses = [math.log(here[answer] / there[answer]) for answer in here]
        widest = max(widest, max(losses) - min(losses))
    assert 0.3 < widest <= 1 + 1e-12


REPLACED = (Neighboring.REPLACE_ONE, Neighboring.ZERO_OUT)


def test_quantiles_are_drawn_jointly_where_records_are_replaced() -> None:
    given: dict[str, Any] = {"quantiles": (0.2, 0.5), "bounds": (0, TOP), "epsilon": 1.0}
    for relation in Neighboring:
        chosen = Quantiles(**given, neighboring=relation)
        joint = JointQuantiles(**given, neighboring=relation)
        assert chosen.joint == (relation in REPLACED)
        if relation in REPLACED:
            assert chosen.privacy_loss.epsilon(0.0) == joint.privacy_loss.epsilon(0.0)
        asked = replace(chosen, joint=True)
        draws: tuple[Quantiles | JointQuantiles, ...] = (asked, joint)
        for seed in range(6):  # both cut points into parts and draw alike
            drawn = [each.release(np.array([0, 2, 2, 4]), seed).value.tolist() for each in draws]
            assert drawn[0] == drawn[1]
    many = Quantiles(
        quantiles=[k / 40 for k in range(1, 40)], bounds=(0, 9), epsilon=1.0, neighboring=REPLACED[0]
    )
    assert not many.joint


def spread_distribution(mechanism: Quantiles, data: Data) -> dict[tuple[int, ...], float]:
    """The distribution where each point is two, of which each record has one by lot."""
    fine = JointQuantiles(
        quantiles=mechanism.quantiles,
        bounds=(0, 2 * TOP + 1),
        epsilon=mechanism.epsilon,
        parts=1,
        neighboring=mechanism.neighboring,
    )
    found: dict[tuple[int, ...], float] = {}
    for lots in itertools.product((0, 1), repeat=len(data)):
        spread = tuple(2 * y + lot for y, lot in zip(data, lots, strict=True))
        for answer, chance in distribution(fine, tuple(sorted(spread)), 2 * TOP + 1).items():
            coarse = tuple(at // 2 for at in answer)
            found[coarse] = found.get(coarse, 0.0) + chance / 2 ** len(data)
    return found


def test_joint_quantiles_of_spread_records_cost_what_they_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quantiles_module, "_TIE_BITS", 1)
    monkeypatch.setattr(quantiles_module, "parts_of", lambda points: 1)
    for relation in REPLACED:
        mechanism = Quantiles(quantiles=(0.25, 0.75), bounds=(0, TOP), epsilon=1.0, neighboring=relation)
        widest = 0.0
        for one, other in neighbors(relation, 2):
            here, there = spread_distribution(mechanism, one), spread_distribution(mechanism, other)
            losses = [math.log(here[answer] / there[answer]) for answer in here]
            widest = max(widest, max(losses) - min(losses))
        assert 0.2 < widest <= 1 + 1e-12
    data, rng = (0, 2, 2, 4), np.random.default_rng(9)
    seen = Counter(tuple(mechanism.release(np.array(data), rng).value.tolist()) for _ in range(600))
    accepts_only(
        frequencies(seen),
        spread_distribution(mechanism, data),
        steeper=spread_distribution(replace(mechanism, epsilon=4.0), data),
    )


def test_replaced_records_between_wide_bounds_leave_quantiles_near() -> None:
    data, rng = np.random.default_rng(1).normal(50, 1, 1000), np.random.default_rng(2)
    given: dict[str, Any] = {"quantiles": DECILES, "bounds": (-1e6, 1e6), "neighboring": REPLACED[0]}
    errors = {}
    for joint in (None, False):
        mechanism = Quantiles(**given, epsilon=1.0, joint=joint)
        off = [np.abs(mechanism.release(data, rng).value - np.quantile(data, DECILES)) for _ in range(5)]
        errors[joint] = np.mean(off)
    assert errors[None] < 0.1
    assert errors[False] > 100


DRAWS: dict[str, tuple[JointSampler, list[int], list[int]]] = {
    "nothing": (JointSampler((Fraction(1, 3), Fraction(2, 3)), Fraction(1, 4), 0, 5), [], []),
    "one point": (JointSampler((Fraction(1, 3),) * 3, Fraction(1, 4), 0, 0), [0], [7]),
    "one": (JointSampler((Fraction(1, 2), Fraction(1, 4), Fraction(1, 4)), Fraction(1), -3, 9), [4], [1]),
    "few": (JointSampler((Fraction(1, 4),) * 4, Fraction(1, 3), 0, 12), [0, 1, 5, 9, 12], [1, 3, 4, 7, 8]),
    # Some of its ranks are whole in units, some are not.
    "mixed": (JointSampler((Fraction(1, 4),) * 4, Fraction(1, 3), 0, 12), [0, 1, 5, 9, 11], [1, 4, 6, 9, 12]),
    "far": (JointSampler((Fraction(1, 4),) * 4, Fraction(9), 0, 12), [2, 5, 9], [3, 5, 12]),
    "wide": (JointSampler((Fraction(2, 5), Fraction(1, 5), Fraction(2, 5)), Fraction(1, 7), 0, 2**60),
             [5, 2**40, 2**59], [3, 7, 11]),
    # The weights of all paths are below e^-10^8, and those of their beginnings that far apart.
    "tied": (JointSampler((Fraction(1, 3),) * 3, Fraction(1, 3), 0, 3), [1], [10**9]),
    "two": (JointSampler((Fraction(1, 3),) * 3, Fraction(1, 3), 0, 3), [1, 2], [10**9, 2 * 10**9 + 1]),
}  # fmt: skip


def coarsen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make bounds loose: words are refused and paths rejected all the time."""
    monkeypatch.setattr(joint_sampling, "FINEST", 8)
    monkeypatch.setattr(joint_sampling, "_WORD", 9)
    monkeypatch.setattr(joint_sampling, "_SLACK", Fraction(1))


def log_weights(draw: JointSampler, values: list[int], ranks: list[int]) -> dict[tuple[int, ...], float]:
    """Logarithms of the weights of paths, the levels of the points in order, but for a common term."""
    rank_of = {draw.lower: 0}
    rank_of.update(zip(values, ranks, strict=True))
    starts = sorted(rank_of)
    size = ranks[-1] if ranks else 0
    exact: dict[tuple[int, ...], tuple[Fraction, float]] = {}
    for path in itertools.combinations_with_replacement(range(len(starts)), len(draw.shares) - 1):
        reached = [0, *(rank_of[starts[level]] for level in path), size]
        gap = sum(abs(b - a - p * size) for a, b, p in zip(reached, reached[1:], draw.shares, strict=False))
        log = math.lgamma(len(path) + 1)
        for level, many in Counter(path).items():
            end = starts[level + 1] if level + 1 < len(starts) else draw.upper + 1
            log += many * math.log(end - starts[level]) - math.lgamma(many + 1)
        exact[path] = draw.rate * gap, log
    least = min(cost for cost, _ in exact.values())
    return {path: log - float(cost - least) for path, (cost, log) in exact.items()}


def arrays(values: list[int], ranks: list[int]) -> tuple[np.ndarray, np.ndarray]:
    return np.array(values, np.int64), np.array(ranks, np.int64)


def sums_of(case: str) -> Any:
    draw, values, ranks = DRAWS[case]
    levels = joint_sampling._levels(*arrays(values, ranks), draw.lower, draw.upper)
    return joint_sampling._Sums(draw, levels, ranks[-1] if ranks else 0)


def all_paths(sums: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Take every choice at every sum, in turn."""
    script: list[int] = []
    options: list[int] = []

    def pick(self: Any, top: int, terms: np.ndarray, path: Any, _source: Any) -> int:
        chances = np.where(terms > NOTHING // 2, self.logs.chances(top - terms), 0)
        assert chances.sum() <= 1 << joint_sampling._WORD
        possible = np.flatnonzero(chances)
        at = len(options)
        if at == len(script):
            script.append(0)
        options.append(len(possible))
        picked = int(possible[script[at]])
        path.chances.append(int(chances[picked]))
        return picked

    monkeypatch.setattr(joint_sampling._Sums, "_pick", pick)
    while True:
        options.clear()
        yield sums.propose(random_source(1))
        while script and script[-1] + 1 == options[len(script) - 1]:
            script.pop()
        if not script:
            return
        script[-1] += 1


@pytest.mark.parametrize("case", DRAWS)
@pytest.mark.parametrize("coarse", [False, True])
def test_every_path_is_retained_as_often_as_it_weighs(
    case: str, coarse: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if coarse:
        coarsen(monkeypatch)
    expected = log_weights(*DRAWS[case])
    sums, found = sums_of(case), {}
    for path in all_paths(sums, monkeypatch):
        levels = tuple(level for level, many in reversed(path.runs) for _ in range(many))
        more, exponent = sums.odds(path)
        log_odds = math.log(more.numerator) - math.log(more.denominator) - float(exponent)
        assert exponent >= 0
        assert log_odds <= 0
        proposed = sum(math.log(chance / 2**joint_sampling._WORD) for chance in path.chances)
        assert levels not in found
        found[levels] = proposed + log_odds
    assert set(found) == set(expected)
    apart = [found[path] - expected[path] for path in expected]
    assert max(apart) - min(apart) < 1e-6
    attempts = 1 / math.fsum(math.exp(log) for log in found.values())
    assert attempts > 5 if coarse else attempts < 1.02


@pytest.mark.parametrize("case", DRAWS)
def test_no_factor_is_rounded_down(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joint_sampling, "FINEST", 8)
    sums = sums_of(case)
    distribution, size, ranks = sums.distribution, sums.size, sums.levels.ranks.tolist()
    unit = distribution.rate * 2**sums.logs.bits
    for share in distribution.shares:
        for rank, got in zip(ranks, sums._away(share).tolist(), strict=True):
            assert -unit * abs(rank - share * size) <= got < 2 - unit * abs(rank - share * size)
    for point, share in enumerate(distribution.shares[1:-1], 2):
        for level, rank in enumerate(ranks):
            factors = sums.before(point, level) - sums.ends[point - 2][:level]
            for below, got in zip(ranks[:level], factors.tolist(), strict=True):
                true = -unit * abs(rank - below - share * size)
                assert true <= got < true + 3


def point_distribution(case: str) -> dict[tuple[int, ...], float]:
    draw, values, ranks = DRAWS[case]
    return normalized(log_weights(draw, values, ranks))


def normalized(logs: dict[tuple[int, ...], float]) -> dict[tuple[int, ...], float]:
    whole = math.fsum(math.exp(log) for log in logs.values())
    return {path: math.exp(log) / whole for path, log in logs.items()}


@pytest.mark.parametrize("case", DRAWS)
@pytest.mark.parametrize("coarse", [False, True])
def test_paths_come_as_often_as_the_distribution_says(
    case: str, coarse: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if coarse:
        coarsen(monkeypatch)
    draw, values, ranks = DRAWS[case]
    starts = sorted({draw.lower, *values})
    count, source, seen = 200 if coarse else 1500, random_source(11), Counter[tuple[int, ...]]()
    sums = sums_of(case)
    monkeypatch.setattr(joint_sampling, "_Sums", lambda *_: sums)
    for _ in range(count):
        points = draw.draw(*arrays(values, ranks), source)
        assert points == sorted(points)
        assert draw.lower <= points[0] <= points[-1] <= draw.upper
        seen[tuple(int(np.searchsorted(starts, point, side="right")) - 1 for point in points)] += 1
    expected = point_distribution(case)
    assert set(seen) <= set(expected)
    wrong = {"without the commonest": expected | {max(expected, key=lambda path: expected[path]): 0.0}}
    if len(expected) > 1 and not coarse:
        wrong["even"] = dict.fromkeys(expected, 1 / len(expected))
    accepts_only(frequencies(seen), expected, **wrong)


@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize("relation", [Neighboring.ADD_REMOVE, Neighboring.REPLACE_ONE])
def test_releases_follow_the_distribution(relation: Neighboring, parts: int) -> None:
    data, count, rng = (0, 2, 2, 4), 2000, np.random.default_rng(5)
    mechanism = JointQuantiles(
        quantiles=(0.25, 0.75), bounds=(0, TOP), epsilon=2.0, neighboring=relation, parts=parts
    )
    seen = Counter(tuple(mechanism.release(np.array(data), rng).value.tolist()) for _ in range(count))
    expected = distribution(mechanism, data)
    assert set(seen) <= set(expected)
    accepts_only(
        frequencies(seen),
        expected,
        flatter=distribution(replace(mechanism, epsilon=1.0), data),
        steeper=distribution(replace(mechanism, epsilon=4.0), data),
    )


def test_one_quantile_is_drawn_as_by_the_other_mechanism() -> None:
    data, top = (1, 1, 3), range(TOP + 1)
    for quantile in (0.5, 0.1, 0.75):
        joint = JointQuantiles(quantiles=(quantile,), bounds=(0, TOP), epsilon=1.0, parts=1)
        alone = Quantile(quantile=quantile, bounds=(0, TOP), epsilon=1.0)
        draw = alone._draw(Fraction(alone.quantile), Fraction(1), 0, TOP)
        found = weights(joint, data)
        for x in (x for x in top if x not in data):
            low, high = sum(y < x for y in data), sum(y > x for y in data)
            assert found[(x,)] == pytest.approx(math.exp(-float(draw.rate * draw._gap(3, low, high))))


def rank_error(mechanism: Any, data: np.ndarray, rng: Any) -> float:
    """By how many records answers are off, on the mean."""
    released, ordered, target = (
        mechanism.release(data, rng).value,
        np.sort(data),
        np.array(DECILES) * len(data),
    )
    below, up_to = (np.searchsorted(ordered, released, side=side) for side in ("left", "right"))
    return float(np.maximum(0, np.maximum(below - target, target - up_to)).mean())


def test_it_is_nearer_than_halving() -> None:
    rng = np.random.default_rng(3)
    given: dict[str, Any] = {"quantiles": DECILES, "epsilon": 1.0, "neighboring": Neighboring.REPLACE_ONE}
    whole = np.clip(rng.normal(40, 20, 1000), 0, 120).round().astype(np.int64)
    columns: list[tuple[np.ndarray, tuple[Any, Any]]] = [
        (rng.normal(size=1000), (-100.0, 100.0)),
        (whole, (0, 120)),
    ]
    for data, bounds in columns:
        pair = (JointQuantiles(bounds=bounds, **given), Quantiles(bounds=bounds, joint=False, **given))
        one, other = ([rank_error(m, data, rng) for _ in range(8)] for m in pair)
        assert np.mean(one) < 0.75 * np.mean(other)


def test_parts_let_answers_tie() -> None:
    data = np.repeat([30, 50, 80], [100, 700, 200])
    parted = JointQuantiles(quantiles=DECILES, bounds=(0, 120), epsilon=2.0)
    assert parted.parts == (1 << 14) // 121
    assert np.count_nonzero(parted.release(data, 1).value == 50) >= 6
    whole = JointQuantiles(quantiles=DECILES, bounds=(0, 120), epsilon=2.0, parts=1)
    assert np.count_nonzero(whole.release(data, 1).value == 50) < 6
    assert JointQuantiles(quantiles=DECILES, bounds=(0.0, 1.0), epsilon=2.0).parts == 1


def test_many_records() -> None:
    data = np.random.default_rng(2).random(30_000)
    released = JointQuantiles(quantiles=DECILES, bounds=(0.0, 1.0), epsilon=1.0).release(data, 3).value
    assert np.abs(released - DECILES).max() < 0.02


def test_odd_data_is_answered_at_the_usual_cost() -> None:
    mechanism = JointQuantiles(quantiles=(0.3, 0.6), bounds=(-1.0, 1.0), epsilon=1.0)
    odd = np.array([math.nan, math.inf, -math.inf, 1e308, 0.5])
    for data in (np.zeros(0), odd, np.full(100, math.nan), np.full(1000, math.inf), np.zeros(5, np.int64)):
        release = mechanism.release(data)
        assert release.value.shape == (2,)
        assert -1 <= release.value[0] <= release.value[1] <= 1
        assert release.loss == mechanism.privacy_loss
    assert odd[1] == math.inf
    costly = JointQuantiles(quantiles=DECILES, bounds=(0, 9), epsilon=65536)
    assert costly.release(np.repeat(np.arange(10), 99)).value.tolist() == list(range(9))
    least = JointQuantiles(quantiles=(0.5,), bounds=(0, 9), epsilon=1e-300, neighboring=Neighboring.ZERO_OUT)
    assert 0 <= least.release(np.arange(9)).value[0] <= 9


@cases(
    ("parameters", "message"),
    [
        ({"bounds": (1, 1)}, "bounds must"),
        ({"bounds": (0, math.inf)}, "bounds must"),
        ({"epsilon": 0}, "epsilon must"),
        ({"epsilon": 1e5}, "epsilon must be at most"),
        ({"quantiles": ()}, "quantiles must"),
        ({"quantiles": (0.5, 0.5)}, "quantiles must"),
        ({"quantiles": (0.0, 0.5)}, "quantiles must"),
        ({"quantiles": "half"}, "quantiles must"),
        ({"quantiles": [(k + 1) / 40 for k in range(33)]}, "use Quantiles"),
        ({"parts": 0}, "parts must"),
        ({"parts": 1.5}, "parts must"),
        ({"parts": 1 << 62}, "parts must make up"),
        ({"grid": 0.1}, "grid must"),
        ({"neighboring": "add"}, "neighboring must"),
    ],
)
def test_bad_parameters_are_refused(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        JointQuantiles(**({"bounds": (0, 9), "epsilon": 1.0, "quantiles": (0.5,), **parameters}))


def test_data_of_another_shape_is_refused() -> None:
    mechanism = JointQuantiles(bounds=(0, 1), epsilon=1, quantiles=(0.5,), grid=Grid(exponent=0))
    for data in (np.zeros((2, 2)), np.array(["a"]), {1, 2}, 5):
        with pytest.raises(ParameterError, match="data must"):
            mechanism.release(data)
