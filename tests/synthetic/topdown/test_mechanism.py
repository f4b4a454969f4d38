"""TopDown as a whole: every pair of neighbors within the loss, counts that add up, constraints that hold."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sfumato.errors import ParameterError
from sfumato.privacy import Neighboring
from sfumato.privacy.leaves.discrete_gaussian_vector import DiscreteGaussianVector
from sfumato.synthetic import (
    CountBound,
    Hierarchy,
    Invariant,
    Recode,
    TableDomain,
    TopDown,
    TopDownRelease,
    UnitCounts,
)
from sfumato.synthetic.topdown import estimation
from sfumato.synthetic.topdown.measurement import measure
from sfumato.synthetic.topdown.topdown_release import all_levels
from tests.cases import cases
from tests.drawings import line, new_axes, written
from tests.run_time import run_time

PAIR = TableDomain(sex=["f", "m"], age=[0, 1])

if run_time(__name__):
    TINY = Hierarchy.from_table(
        pa.table({"state": ["a", "a", "b"], "town": ["1", "2", "3"]}), ["state", "town"]
    )
    TOWNS = Hierarchy.from_table(
        pa.table({"state": np.arange(60) // 20, "county": np.arange(60) // 5, "town": np.arange(60)}),
        ["state", "county", "town"],
        root="land",
    )
PERSON = TableDomain(age=[0, 1, 2], sex=["f", "m"], job=list(range(4)))
QUERIES: Any = [
    (),
    ("sex", "age"),
    ("age", "sex", "job"),
    ("age", Recode("job", {"low": [0, 1], "high": [2, 3]})),
]


def people(seed: int = 0, number: int = 900) -> UnitCounts:
    rng = np.random.default_rng(seed)
    units = np.minimum(rng.geometric(0.04, number) - 1, 59)
    cells = rng.choice(24, number, p=rng.dirichlet(np.full(24, 0.2)))
    return UnitCounts(units, cells, np.ones(number, np.int64))


def shift(mechanism: TopDown, first: Any, second: Any) -> Fraction:
    """What two tables are apart, in units of the noise: the sum of squared moves over the variances."""
    levels = []
    for rows in (first, second):
        counted = [row for row in rows if row is not None]
        units, cells = (np.array([row[i] for row in counted], np.int64) for i in (0, 1))
        lowest = UnitCounts(units, cells, np.ones(len(counted), np.int64)).lowest(3, 4)
        levels.append(all_levels(mechanism.hierarchy, lowest, 4))
    found = Fraction(0)
    for each in mechanism._noise(Fraction(mechanism.rho)):
        query, places = mechanism._queries[each.query], mechanism.hierarchy.size(each.depth)
        here, there = (level[each.depth].grouped(0, places, query.group_of, query.groups) for level in levels)
        found += int(((here - there) ** 2).sum()) / each.sigma**2
    return found


@cases("relation", list(Neighboring))
def test_every_pair_of_neighbors_is_within_the_loss_and_one_is_at_it(relation: Neighboring) -> None:
    mechanism = TopDown(
        hierarchy=TINY, domain=PAIR, queries=[(), ("sex",), ("sex", "age")], rho=1.5, neighboring=relation,
        levels={"all": 1, "state": 2, "town": 3}, shares=[1, 1, 4],
    )  # fmt: skip
    rows: list[Any] = [*product(range(3), range(4)), None]  # None is a row that is not counted
    rest: Any = [(), ((0, 1),), ((2, 3), (2, 3))]
    if relation is Neighboring.ADD_REMOVE:
        pairs = [((row, *others), others) for row in rows for others in rest]
    else:
        pairs = [((a, *others), (b, *others)) for a, b in combinations(rows, 2) for others in rest]
    leaves = [leaf for leaf, count in mechanism.privacy_loss.terms for _ in range(count)]
    assert all(isinstance(leaf, DiscreteGaussianVector) and leaf.neighboring is relation for leaf in leaves)
    charged = sum(Fraction(leaf.l2_squared) / leaf.stddev**2 for leaf in leaves)  # type: ignore[attr-defined]
    worst = max(shift(mechanism, *pair) for pair in pairs)
    assert worst <= charged <= 3  # 2 rho
    if relation is Neighboring.ADD_REMOVE:
        assert worst == charged
    else:  # a row that is replaced by an uncounted one moves the root's total, by another one it does not
        assert worst > Fraction(9, 10) * charged
    assert mechanism.privacy_loss.zcdp().rho == pytest.approx(1.5, rel=1e-8)


def test_the_noise_drawn_is_the_noise_priced() -> None:
    mechanism = TopDown(hierarchy=TOWNS, domain=PERSON, queries=QUERIES, rho=0.5)
    released = mechanism.release(people(), rng=3)
    assert released.measured is not None
    exact = all_levels(TOWNS, people().lowest(60, 24), 24)
    plan = [each for each in mechanism._noise(Fraction(1, 2)) if not mechanism._queries[each.query].recoded]
    for each in plan:
        query = mechanism._queries[each.query]
        [table] = [t for t in released.measured[each.depth] if t.columns == query.columns]
        size = TOWNS.size(each.depth)
        off = table.counts - exact[each.depth].grouped(0, size, query.group_of, query.groups)
        assert np.issubdtype(off.dtype, np.integer)
        if off.size > 300:
            assert off.std() == pytest.approx(float(each.sigma), rel=0.2)
    assert mechanism.stddev("county", "age", "sex") == pytest.approx(float(plan[0].sigma), rel=1e-6)


def check_sums(released: TopDownRelease) -> None:
    """Children add up to their parents in every cell, and no count is negative."""
    names, levels = tuple(released.domain), released.hierarchy.levels
    for depth, level in enumerate(levels):
        counts = released.counts(level, *names)
        assert counts.dtype == np.int64
        assert counts.min() >= 0
        if depth:
            sums = np.add.reduceat(counts, released.hierarchy.starts(depth - 1)[:-1], axis=0)
            assert (sums == released.counts(levels[depth - 1], *names)).all()


@cases("intervals", [True, False])
def test_children_add_up_and_constraints_hold(intervals: bool) -> None:
    exact = all_levels(TOWNS, people().lowest(60, 24), 24)
    ages = [level.grouped(0, len(level.starts) - 1, np.arange(24) // 8, 3) for level in exact]
    upper = {town: (ages[3][town] + town % 3).tolist() for town in range(0, 60, 2)}
    lower = {town: ages[3][town].tolist() for town in range(0, 60, 5)}
    mechanism = TopDown(
        hierarchy=TOWNS, domain=PERSON, queries=QUERIES, rho=0.2, invariants=[Invariant("state", ["age"])],
        bounds=[CountBound("town", lower=lower, upper=upper, columns=["age"])],
    )  # fmt: skip
    released = mechanism.release(people(), rng=11, intervals=intervals)
    check_sums(released)
    for level in ("land", "state"):
        assert (released.counts(level, "age") == ages[TOWNS.depth(level)]).all()
    found = released.counts("town", "age")
    assert (found != ages[3]).any()
    assert all((found[town] <= most).all() for town, most in upper.items())
    assert all((found[town] >= least).all() for town, least in lower.items())
    assert released.outside_guarantee == mechanism.outside_guarantee == ("the counts by age at each state",)
    assert "exact: the counts by age at each state" in repr(released)


def test_little_noise_gives_the_counts_and_much_noise_gives_whole_ones() -> None:
    exact = people().lowest(60, 24)
    dense = exact.grouped(0, 60, np.arange(24), 24).reshape(60, 3, 2, 4)
    released = TopDown(hierarchy=TOWNS, domain=PERSON, queries=QUERIES, rho=4000).release(people(), rng=1)
    assert (released.counts("town", "age", "sex", "job") == dense).all()
    assert (released.counts("town", "job", "age") == dense.sum(axis=2).transpose(0, 2, 1)).all()
    for seed in range(3):
        noisy = TopDown(hierarchy=TOWNS, domain=PERSON, queries=QUERIES, rho=0.001)
        check_sums(noisy.release(people(seed), rng=seed))


def test_the_same_noisy_counts_give_the_same_release_whatever_the_rows_are(monkeypatch: Any) -> None:
    mechanism = TopDown(hierarchy=TOWNS, domain=PERSON, queries=QUERIES, rho=0.5)
    drawn: list[Any] = []

    def recorded(*given: Any) -> Any:
        drawn.append(measure(*given))
        return drawn[-1]

    monkeypatch.setattr(estimation, "measure", recorded)
    first = mechanism.release(people(), rng=1)
    replay = iter(drawn)
    monkeypatch.setattr(estimation, "measure", lambda *_: next(replay))
    second = mechanism.release(people(seed=5, number=400), rng=2)
    assert second.to_json() == first.to_json()
    assert second.estimate("age").counts.tolist() == first.estimate("age").counts.tolist()


def test_a_bound_beyond_all_counts_is_none() -> None:
    bounds = [CountBound("town", upper={0: 2**63, 1: 2**64 - 1})]
    mechanism = TopDown(hierarchy=TOWNS, domain=PERSON, queries=QUERIES, rho=100, bounds=bounds)
    assert mechanism.release(people(), rng=1).counts("town")[:2].min() > 20


def test_a_level_that_is_not_measured_gets_equal_parts_of_its_parents() -> None:
    levels = {"land": 0, "state": 1, "county": 0, "town": 0}
    mechanism = TopDown(
        hierarchy=TOWNS, domain=PERSON, queries=QUERIES, rho=100, levels=levels,
        invariants=[Invariant("land")],
        bounds=[CountBound("town", upper={0: 3})],
    )  # fmt: skip
    released = mechanism.release(people(), rng=1)
    check_sums(released)
    towns = released.counts("town")
    assert towns[0] == 3
    assert np.ptp(towns[20:40]) <= 2
    assert released.counts("land").tolist() == [900]
    with pytest.raises(ParameterError, match="columns must be measured on the level 'town'"):
        mechanism.stddev("town")


def test_an_empty_table_and_one_place_are_answered() -> None:
    none = UnitCounts(*[np.zeros(0, np.int64)] * 3)
    mechanism = TopDown(
        hierarchy=TOWNS, domain=PERSON, queries=QUERIES, rho=0.5, invariants=[Invariant("town")]
    )
    assert mechanism.release(none, rng=1).counts("land").tolist() == [0]
    alone = Hierarchy.from_table(pa.table({"town": ["x"]}), ["town"])
    rows = pa.table({"town": ["x"] * 40, "sex": ["f"] * 40, "age": [1] * 40})
    released = TopDown(hierarchy=alone, domain=PAIR, queries=[("sex",)], rho=10).release(rows, rng=2)
    check_sums(released)
    assert abs(int(released.counts("town")[0]) - 40) < 5


def test_several_processes_find_the_same_and_progress_is_shown() -> None:
    mechanism = TopDown(hierarchy=TINY, domain=PAIR, queries=[("sex", "age")], rho=1)
    counts = UnitCounts(np.arange(60) % 3, np.arange(60) % 4, np.ones(60, np.int64))
    seen: list[tuple[str, int, int]] = []
    one = mechanism.release(counts, rng=5, progress=lambda *step: seen.append(step))
    two = mechanism.release(counts, rng=5, processes=2)
    assert seen == [("all", 1, 1), ("state", 2, 2), ("town", 3, 3)]
    assert one.to_json() == two.to_json()


def test_a_release_that_was_ended_goes_on_below_the_levels_that_are_done(tmp_path: Path) -> None:
    mechanism = TopDown(hierarchy=TOWNS, domain=PERSON, queries=QUERIES, rho=0.5)

    def end(level: str, done: int, size: int) -> None:
        if level == "county":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        mechanism.release(people(), rng=1, state=tmp_path / "run", progress=end)
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == ["level-0.npz", "level-1.npz"]
    levels: list[str] = []
    later = mechanism.release(
        people(), rng=2, state=tmp_path / "run", progress=lambda level, *_: levels.append(level)
    )
    assert set(levels) == {"county", "town"}
    check_sums(later)
    again = mechanism.release(people(), state=tmp_path / "run")
    assert again.to_json() == later.to_json()
    assert again.simulated  # its noise was drawn from a seed, whoever asks
    assert again.estimate("age").counts.tolist() == later.estimate("age").counts.tolist()
    other = TopDown(hierarchy=TOWNS, domain=PERSON, queries=QUERIES, rho=0.6)
    less: dict[str, Any] = {"intervals": False}
    for wrong, given in ((other, {}), (mechanism, less)):
        with pytest.raises(ParameterError, match="state must be of this mechanism"):
            wrong.release(people(), state=tmp_path / "run", **given)
    (tmp_path / "run" / "level-1.npz").write_bytes(b"PK")
    with pytest.raises(ParameterError, match="state must be a folder of whole files"):
        mechanism.release(people(), state=tmp_path / "run")


def test_where_levels_cannot_be_written_is_refused_before_noise_is_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(estimation, "measure", None)
    (tmp_path / "file").write_text("")
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"state": tmp_path / "file"}, "state must be a folder that can be written"),
        ({"state": 5}, "state must be a path"),
        ({"progress": 5}, "progress must be a function"),
    ]
    for given, match in wrong:
        with pytest.raises(ParameterError, match=match):
            TopDown(hierarchy=TOWNS, domain=PERSON, queries=QUERIES, rho=1).release(people(), **given)


def test_a_run_is_known_by_each_of_many_bounds() -> None:
    domain, upper, found = TableDomain(code=range(1200)), np.full(1200, 7), []
    for most in (7, 8):
        upper[600] = most
        bounds = [CountBound("town", upper=upper.copy(), columns=["code"])]
        made = TopDown(hierarchy=TINY, domain=domain, queries=[()], rho=1, bounds=bounds)
        found.append(made._digest(intervals=True))
    assert found[0] != found[1]


def test_a_release_is_written_and_read_and_made_a_table() -> None:
    released = TopDown(hierarchy=TOWNS, domain=PERSON, queries=QUERIES, rho=1).release(people(), rng=4)
    back = TopDownRelease.from_json(released.to_json())
    assert back.to_json() == released.to_json()
    assert (back.simulated, back.neighboring) == (True, released.neighboring)
    assert back.loss == released.loss
    for level in TOWNS.levels:
        assert back.to_arrow(level).equals(released.to_arrow(level))
    rows = released.to_arrow("county").to_pylist()
    assert list(rows[0]) == ["county", "age", "sex", "job", "count"]
    assert sum(row["count"] for row in rows) == int(released.counts("land")[0])
    one = rows[3]
    full = released.counts("county", "age", "sex", "job")
    assert full[one["county"], one["age"], ["f", "m"].index(one["sex"]), one["job"]] == one["count"]


def test_a_calibrated_mechanism_meets_its_target_and_wastes_nothing() -> None:
    for relation in Neighboring:
        mechanism = TopDown.calibrated(
            hierarchy=TINY, domain=PAIR, queries=[(), ("sex",)], epsilon=0.7, delta=1e-7, neighboring=relation
        )
        assert 0.69 < mechanism.privacy_loss.quick_epsilon(1e-7) <= 0.7


if run_time(__name__):
    GOOD: dict[str, Any] = {"hierarchy": TINY, "domain": PAIR, "queries": [(), ("sex",)], "rho": 1}


@cases(
    ("given", "message"),
    [
        ({"rho": 0}, "rho must be"),
        ({"rho": float("nan")}, "rho must be"),
        ({"queries": []}, "queries must be a list of lists"),
        ({"queries": ["sex"]}, "queries must be lists of columns"),
        ({"queries": [("sex", "sex")]}, "queries must have a column once"),
        ({"queries": [("town",)]}, "column must be one of"),
        (
            {"queries": [(Recode("age", {"all": [0]}),)]},
            "groups must hold each label of the column 'age' once",
        ),
        ({"levels": {"all": 1}}, "levels must have an entry for each of"),
        ({"levels": {"all": 0, "state": 0, "town": 0}}, "shares must not all be 0"),
        ({"levels": {"all": -1, "state": 1, "town": 1}}, "levels must be"),
        ({"shares": [1]}, "shares must be 2 numbers"),
        ({"shares": [0, 0]}, "shares must not all be 0"),
        ({"invariants": [Invariant("county")]}, "level must be one of"),
        ({"invariants": ["state"]}, "invariants must be a list of Invariant"),
        ({"bounds": [CountBound("town", upper=-1)]}, "upper must be whole numbers of at least 0"),
        ({"bounds": [CountBound("town", upper=[1, 2])]}, "upper must have 1 numbers"),
        ({"bounds": [CountBound("town", upper={"1": [1, 2]})]}, "upper must have 1 numbers"),
        ({"bounds": [CountBound("town", upper=[0.5])]}, "upper must be whole numbers of at least 0"),
        ({"bounds": [CountBound("town", upper={3: 2})]}, "labels must be places of the level 'town'"),
        ({"bounds": [CountBound("town", upper={"9": 2})]}, "labels must be places of the level 'town'"),
        (
            {"bounds": [CountBound("town", lower=5), CountBound("state", upper=4)]},
            "counts must exist that meet",
        ),
        (
            {
                "bounds": [
                    CountBound("state", lower=5),
                    CountBound("town", upper={"1": [2, 9], "2": [2, 0]}, columns=["sex"]),
                    CountBound("town", upper=[9, 0], columns=["age"]),
                    CountBound("town", upper={"1": 2}),
                ]
            },
            "counts must exist that meet",
        ),
    ],
)
def test_what_cannot_be_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        TopDown(**(GOOD | given))


LABELS: Any = {"low": 5}
COLUMNS: Any = None


@cases(
    ("make", "message"),
    [
        (lambda: Recode("age", LABELS), "groups must have a list of labels for each name"),
        (lambda: Recode("age", {"low": [[0]], "high": [1]}), "groups must have a list of labels"),
        (lambda: Recode(COLUMNS, {"low": [0]}), "column must be a column's name"),
        (lambda: Invariant("state", COLUMNS), "columns must be a list of columns"),
        (lambda: CountBound("state", upper=1, columns=COLUMNS), "columns must be a list of columns"),
        (lambda: TOWNS.index("town", 5), "labels must be a list of places of the level 'town'"),
    ],
)
def test_labels_and_columns_are_lists(make: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        make()


def test_invariants_that_contradict_bounds_are_refused_without_a_number() -> None:
    mechanism = TopDown(**GOOD, invariants=[Invariant("state")], bounds=[CountBound("town", upper=9)])
    counts = UnitCounts(np.array([0, 1]), np.array([0, 0]), np.array([12, 7]))
    with pytest.raises(
        ParameterError, match="counts must exist that meet all invariants and bounds"
    ) as caught:
        mechanism.release(counts, rng=1)
    assert not any(digit in str(caught.value) for digit in "0123456789")


def test_counts_of_places_are_drawn_beside_their_estimates() -> None:
    people = pa.table({"town": ["1", "2", "3", "3"] * 10, "sex": ["f", "m"] * 20})
    sexes = TableDomain(sex=["f", "m"])
    mechanism = TopDown(hierarchy=TINY, domain=sexes, queries=[(), ("sex",)], rho=1)
    released = mechanism.release(people, rng=1)
    ax = released.plot(new_axes(), by="town", columns=["sex"], level=0.9, most=5)
    heights = [bar.get_height() for bar in ax.patches]
    assert heights == released.counts("town", "sex").ravel().tolist()[:5]
    assert written(ax) == ["1, f", "1, m", "2, f", "2, m", "3, f"]
    tables = [released.estimate("sex", places={"town": [town]}) for town in "123"]
    assert line(ax)[1] == np.concatenate([table.counts for table in tables]).tolist()[:5]
    (whiskers,) = ax.collections
    ends = np.concatenate([np.stack(table.interval(0.9)[:2], axis=1) for table in tables])[:5]
    np.testing.assert_allclose([[low[1], high[1]] for low, high in whiskers.get_segments()], ends)
    plain = mechanism.release(people, rng=1, intervals=False).plot(new_axes())
    assert written(plain) == ["a", "b"]
    assert not plain.lines
