import itertools
import math
from collections import Counter, defaultdict
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest

from sfumato.anonymity.generalization.full_domain import generalize
from sfumato.anonymity.generalization.lattice import NodeState
from sfumato.anonymity.generalization.losses import (
    AverageClassSize,
    Discernibility,
    InformationLoss,
    NonUniformEntropy,
    Precision,
)
from sfumato.anonymity.hierarchies.hierarchy import GeneralizationHierarchy
from sfumato.anonymity.privacy_models.base import PrivacyModel
from sfumato.anonymity.privacy_models.closeness import BetaLikeness, DeltaDisclosurePrivacy, TCloseness
from sfumato.anonymity.privacy_models.diversity import (
    AlphaDeassociation,
    DistinctLDiversity,
    EntropyLDiversity,
    RecursiveLDiversity,
)
from sfumato.anonymity.report.check import check
from sfumato.anonymity.table.microdata import Microdata
from sfumato.errors import ParameterError
from tests.anonymity.arx import adult, random_table


@pytest.mark.parametrize(
    ("k", "suppression", "loss", "node"),
    [
        (5, 0.04, 255559.85455731067, (1, 0, 1, 1, 3, 2, 2, 0, 1)),
        (100, 0.04, 379417.3460570988, (1, 1, 1, 1, 3, 2, 2, 1, 1)),
        (5, 0.0, 407289.5388925293, (1, 2, 1, 1, 3, 2, 2, 1, 1)),
        (100, 0.0, 453196.8932458743, (0, 4, 1, 1, 3, 2, 2, 1, 1)),
    ],
)
def test_optima_of_arx_for_k_anonymity(
    k: int, suppression: float, loss: float, node: tuple[int, ...]
) -> None:
    best = generalize(adult(), k, suppression=suppression)
    assert best.loss == pytest.approx(loss, rel=1e-13)
    assert tuple(best.levels.values()) == node
    assert len(best.nodes) == 12_960
    assert best.checks < 1_000


def test_optimum_of_arx_for_entropy_l_diversity() -> None:
    model = EntropyLDiversity("occupation", 5)
    data = adult("occupation")
    best = generalize(data, 1, suppression=0.04, loss=NonUniformEntropy(suppressed=True), models=model)
    assert best.loss == pytest.approx(228878.2039109517, rel=1e-13)
    assert tuple(best.levels.values()) == (1, 0, 1, 1, 2, 2, 2, 1)


T_CLOSENESS = [
    (TCloseness("occupation", 0.2, "ordered"), 5, 0.04, 2712340.0, (0, 0, 1, 1, 2, 2, 2, 0)),
    (TCloseness("occupation", 0.2, "ordered"), 100, 0.0, 1.6231213e8, (1, 4, 1, 1, 1, 2, 2, 1)),
    (TCloseness("occupation", 0.2, "equal"), 5, 0.0, 4.56853172e8, (1, 4, 1, 1, 3, 2, 2, 1)),
]


@pytest.mark.parametrize(("model", "k", "suppression", "loss", "node"), T_CLOSENESS)
def test_optima_of_arx_for_t_closeness(
    model: TCloseness, k: int, suppression: float, loss: float, node: tuple[int, ...]
) -> None:
    """ARX orders texts by alphabet, and measures from all rows, suppressed ones included."""
    data = adult("occupation", order=True)
    best = generalize(data, k, suppression=suppression, loss=Discernibility(suppressed=False), models=model)
    assert (best.loss, tuple(best.levels.values())) == (loss, node)


@pytest.mark.exhaustive
def test_optimum_of_arx_for_hierarchical_t_closeness() -> None:
    model = TCloseness("occupation", 0.2, "hierarchical")
    best = generalize(adult("occupation"), 5, suppression=0.04, models=model)
    assert best.loss == pytest.approx(377622.78458729305, rel=1e-13)
    assert tuple(best.levels.values()) == (1, 4, 0, 0, 3, 2, 2, 1)


class Coded(NamedTuple):
    """A table at a node: its rows, generalised, and the share of the highest level in each column."""

    rows: list[tuple[int, ...]]
    general: list[tuple[int, ...]]
    shares: list[float]


def brute_force(
    data: Microdata, k: int, limit: int, loss: InformationLoss, model: PrivacyModel | None
) -> float:
    """Enumerate all nodes in plain Python."""
    rows = list(zip(*(data.codes[name].tolist() for name in data.quasi_identifiers), strict=True))
    jobs = data.codes["job"].tolist()
    maps = [[level.tolist() for level in data.hierarchies[name].levels] for name in data.quasi_identifiers]
    best = math.inf
    for node in itertools.product(*(range(len(levels)) for levels in maps)):
        general = [tuple(maps[c][node[c]][value] for c, value in enumerate(row)) for row in rows]
        classes = defaultdict(list)
        for job, key in zip(jobs, general, strict=True):
            classes[key].append(job)
        held = {key for key, of in classes.items() if len(of) >= k and satisfied(model, of, jobs)}
        hidden = [row for row, key in enumerate(general) if key not in held]
        if len(hidden) <= limit:
            shares = [level / (len(maps[c]) - 1) for c, level in enumerate(node)]
            best = min(best, lost(loss, Coded(rows, general, shares), held, hidden))
    return best


def satisfied(model: PrivacyModel | None, of: list[int], jobs: list[int]) -> bool:
    count, whole = Counter(of), Counter(jobs)
    q = {job: count[job] / len(of) for job in whole}
    p = {job: whole[job] / len(jobs) for job in whole}
    ordered = sorted(count.values(), reverse=True)
    match model:
        case DistinctLDiversity():
            result = len(count) >= model.l
        case EntropyLDiversity():
            result = -sum(x * math.log(x) for x in q.values() if x) >= math.log(model.l) - 1e-12
        case RecursiveLDiversity():
            result = ordered[0] < model.c * sum(ordered[model.l - 1 :])
        case AlphaDeassociation():
            result = ordered[0] <= model.alpha * len(of) + 1e-12
        case BetaLikeness():
            caps = {
                job: min(model.beta, -math.log(p[job])) if model.enhanced else model.beta for job in whole
            }
            result = all(q[job] <= p[job] * (1 + caps[job]) + 1e-12 for job in whole)
        case DeltaDisclosurePrivacy():
            result = all(q[job] > 0 and abs(math.log(q[job] / p[job])) < model.delta for job in whole)
        case TCloseness():
            result = distance(model.distance, {job: q[job] - p[job] for job in whole}) <= model.t + 1e-12
        case _:
            result = True
    return result


def distance(kind: str, gap: dict[int, float]) -> float:
    if kind == "equal":
        return sum(abs(x) for x in gap.values()) / 2
    if kind == "ordered":
        running = list(itertools.accumulate(gap[job] for job in sorted(gap)))
        return sum(map(abs, running)) / (len(gap) - 1)
    inside = [[gap.get(0, 0.0), gap.get(1, 0.0)], [gap.get(2, 0.0), gap.get(3, 0.0)]]
    near = sum(min(sum(max(x, 0) for x in pair), sum(max(-x, 0) for x in pair)) for pair in inside)
    return near / 2 + abs(sum(inside[0]))


def lost(loss: InformationLoss, coded: Coded, held: set[tuple[int, ...]], hidden: list[int]) -> float:
    rows, general, sizes = coded.rows, coded.general, Counter(coded.general)
    if isinstance(loss, NonUniformEntropy):
        total = 0.0
        for c in range(len(coded.shares)):
            fine, coarse = Counter(row[c] for row in rows), Counter(key[c] for key in general)
            total -= sum(
                math.log2(fine[row[c]] / coarse[key[c]]) for row, key in zip(rows, general, strict=True)
            )
            out = Counter(general[row][c] for row in hidden)
            if loss.suppressed:
                total -= sum(n * math.log2(n / len(hidden)) for n in out.values())
        return total
    if isinstance(loss, Discernibility):
        whole = [n if key in held or not loss.suppressed else len(rows) for key, n in sizes.items()]
        return float(sum(n * cost for n, cost in zip(sizes.values(), whole, strict=True)))
    if isinstance(loss, AverageClassSize):
        return len(rows) / (len(held) + bool(hidden))
    assert isinstance(loss, Precision)
    share = sum(coded.shares) / len(coded.shares)
    return share + (1 - share) * (len(hidden) / len(rows) if loss.suppressed else 0)


LOSSES = [
    NonUniformEntropy(),
    NonUniformEntropy(suppressed=True),
    Discernibility(),
    Discernibility(suppressed=False),
    AverageClassSize(),
    Precision(),
    Precision(suppressed=False),
]
MODELS: list[PrivacyModel | None] = [
    None,
    DistinctLDiversity("job", 3),
    EntropyLDiversity("job", 2.2),
    EntropyLDiversity("job", 2),
    RecursiveLDiversity(column="job", c=1.5, l=2),
    AlphaDeassociation("job", 0.6),
    BetaLikeness("job", 1.0),
    BetaLikeness("job", 3.0, enhanced=True),
    DeltaDisclosurePrivacy("job", 1.2),
    TCloseness("job", 0.3),
    TCloseness("job", 0.2, "ordered"),
    TCloseness("job", 0.3, "hierarchical"),
]


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_no_node_has_less_loss(loss: InformationLoss) -> None:
    rng = np.random.default_rng(7)
    solved = 0
    for model in MODELS:
        data = random_table(rng, rows=int(rng.integers(20, 50)))
        for k, share in ((1, 0.0), (2, 0.25), (3, 0.4)):
            least = brute_force(data, k, int(share * data.rows), loss, model)
            if math.isinf(least):
                with pytest.raises(ParameterError, match="be satisfied by some node"):
                    generalize(data, k, suppression=share, loss=loss, models=[model] if model else [])
                continue
            best = generalize(data, k, suppression=share, loss=loss, models=[model] if model else [])
            assert best.loss == pytest.approx(least, rel=1e-12)
            solved += 1
    assert solved >= 30


def test_a_node_that_fails_does_not_condemn_finer_ones_where_that_is_unproved() -> None:
    """At level 1 a class that alone would be suppressed spoils a larger one; level 0 and the top hold."""
    letters = GeneralizationHierarchy.from_rows([("a", "a|b", "*"), ("b", "a|b", "*"), ("c", "c", "*")])
    table = pa.table({"letter": list("aabcc"), "job": list("xyxyz")})
    data = Microdata(table, quasi_identifiers={"letter": letters}, sensitive=["job"])
    model = AlphaDeassociation("job", 0.5)
    best = generalize(data, 1, suppression=0.2, models=model)
    assert best.levels == {"letter": 0}
    assert best.suppressed.tolist() == [False, False, True, False, False]
    with pytest.raises(AssertionError):  # what inference from the node between would give
        assert_monotone(data, model, limit=1)
    assert_monotone(data, model, limit=0)


def assert_monotone(data: Microdata, model: PrivacyModel, limit: int) -> None:
    holds = [not math.isinf(level_loss(data, model, level, limit)) for level in range(3)]
    assert holds == sorted(holds)


def level_loss(data: Microdata, model: PrivacyModel, level: int, limit: int) -> float:
    general, jobs = data.columns["letter"].at(level).tolist(), data.codes["job"].tolist()
    classes = defaultdict(list)
    for key, job in zip(general, jobs, strict=True):
        classes[key].append(job)
    hidden = sum(len(of) for of in classes.values() if not satisfied(model, of, jobs))
    return 0.0 if hidden <= limit else math.inf


def test_states_of_all_nodes_are_true() -> None:
    data = random_table(np.random.default_rng(3), rows=40)
    best = generalize(data, 3, suppression=0.1, loss="discernibility")
    held = {NodeState.HOLDS, NodeState.INFERRED_HOLDS}
    failed = {NodeState.FAILS, NodeState.INFERRED_FAILS}
    seen = set()
    for node in np.ndindex(best.nodes.states.shape):
        columns = [
            data.columns[name].at(level) for name, level in zip(data.quasi_identifiers, node, strict=True)
        ]
        sizes = Counter(zip(*(column.tolist() for column in columns), strict=True))
        hidden = sum(size for size in sizes.values() if size < 3)
        state = best.nodes[node]
        seen.add(state)
        if state in held:
            assert hidden <= 4
        elif state in failed:
            assert hidden > 4
    assert seen >= {NodeState.HOLDS, NodeState.FAILS, NodeState.INFERRED_FAILS}


def test_released_table(tmp_path: Path) -> None:
    table = pa.table(
        {
            "name": ["Ada", "Bo", "Cy"],
            "zip": ["02139", "02142", "94305"],
            "age": [30, 31, 80],
            "job": ["x", "y", "x"],
        }
    )
    zips = GeneralizationHierarchy.from_rows(
        [("02139", "021", "*"), ("02142", "021", "*"), ("94305", "943", "*")]
    )
    ages = GeneralizationHierarchy.from_rows(
        [("30", "30-39", "*"), ("31", "30-39", "*"), ("80", "80-89", "*")]
    )
    data = Microdata(table, quasi_identifiers={"age": ages, "zip": zips}, sensitive=["job"])
    best = generalize(data, 2, suppression=0.34)
    assert best.table.to_pydict() == {  # a column of which nothing was said is not released
        "zip": ["021", "021", "*"],
        "age": ["30-39", "30-39", "*"],
        "job": ["x", "y", None],
    }
    assert best.classes == 1
    assert pq.read_table(best.write(tmp_path / "out.parquet")).equals(best.table)
    assert pc.read_csv(best.write(tmp_path / "out.csv")).num_rows == 3
    with pytest.raises(ParameterError, match=r"path must end in .parquet or .csv"):
        best.write(tmp_path / "out.xlsx")
    assert repr(best) == ("Generalization(levels={'age': 1, 'zip': 1}, loss=4, 1 of 3 rows suppressed)")


def test_progress_ends_at_all_nodes() -> None:
    seen: list[tuple[int, int]] = []
    data = random_table(np.random.default_rng(1), rows=30)
    generalize(data, 3, progress=lambda done, total: seen.append((done, total)))
    assert seen == sorted(seen)
    assert seen[-1] == (24, 24)


def test_refusals() -> None:
    data = random_table(np.random.default_rng(1), rows=30)
    refused = [
        ({"k": 31}, "k must be at most the number of rows, got 31"),
        ({"k": 0}, "k must be an integer of at least 1"),
        ({"k": 2, "suppression": 1.5}, "suppression must be from 0 to 1"),
        ({"k": 2, "loss": "entropy"}, "loss must be one of average-class-size, discernibility, "),
        (
            {"k": 2, "models": [DistinctLDiversity("sex", 2)]},
            "models must read sensitive columns, got 'sex'; declared",
        ),
        ({"k": 2, "models": [3]}, "models must be privacy models"),
        (
            {"k": 2, "models": DistinctLDiversity("job", 9)},
            "be satisfied by some node of the lattice, but none does",
        ),
    ]
    for arguments, message in refused:
        with pytest.raises(ParameterError, match=message):
            generalize(data, **arguments)  # type: ignore[arg-type]


def test_a_share_of_rows_is_the_number_as_it_is_written() -> None:
    jobs = GeneralizationHierarchy.from_rows([(str(i), "*") for i in range(100)])
    values = ["0"] * 71 + [str(i) for i in range(1, 30)]
    data = Microdata(pa.table({"value": values}), quasi_identifiers={"value": jobs})
    assert generalize(data, 2, suppression=0.29).levels == {"value": 0}
    assert generalize(data, 2, suppression=0.28).levels == {"value": 1}


def test_a_lattice_of_too_many_nodes_is_refused() -> None:
    names = [f"c{i}" for i in range(23)]  # 2 to the 23 nodes
    data = Microdata(pa.table({name: ["a", "b"] for name in names}), quasi_identifiers=names)
    with pytest.raises(
        ParameterError, match="at most 5,000,000 combinations of levels, got 8388608; use mondrian"
    ):
        generalize(data, 2)


def test_the_report_of_the_chosen_levels_has_what_was_asked() -> None:
    data = random_table(np.random.default_rng(21), rows=60)
    models = [EntropyLDiversity("job", 2.0), TCloseness("job", 0.4, "ordered"), DistinctLDiversity("job", 3)]
    report = check(data, levels=generalize(data, 4, models=models).levels)
    assert report.k >= 4
    assert report.entropy_l["job"] >= 2.0 - 1e-12
    assert report.distinct_l["job"] >= 3
    assert report.t_closeness("job", "ordered") <= 0.4 + 1e-12
