from collections import Counter

import numpy as np
import pytest

from sfumato.anonymity.generalization.full_domain import generalize
from sfumato.anonymity.generalization.losses import Precision
from sfumato.anonymity.privacy_models.diversity import DistinctLDiversity
from sfumato.anonymity.recoding.local_recoding import recode_locally
from sfumato.anonymity.table.microdata import Microdata
from sfumato.errors import ParameterError
from tests.anonymity.arx import adult, random_table


def released_classes(
    data: Microdata, iteration_of_row: np.ndarray, levels: tuple[dict[str, int], ...]
) -> Counter:  # type: ignore[type-arg]
    found: Counter[tuple[int, ...]] = Counter()
    for row, iteration in enumerate(iteration_of_row.tolist()):
        if iteration >= 0:
            codes = (int(data.columns[name].at(level)[row]) for name, level in levels[iteration].items())
            found[(iteration, *codes)] += 1
    return found


def test_each_iteration_takes_the_node_of_least_loss_for_the_rows_left() -> None:
    data = random_table(np.random.default_rng(8), rows=60)
    recoded = recode_locally(data, 3, share=0)
    assert min(released_classes(data, recoded.iteration_of_row, recoded.levels).values()) >= 3
    heights = [hierarchy.height for hierarchy in (data.hierarchies[name] for name in data.quasi_identifiers)]
    for iteration, chosen in enumerate(recoded.levels):
        left = np.flatnonzero((recoded.iteration_of_row >= iteration) | (recoded.iteration_of_row < 0))
        loss = sum(level / height for level, height in zip(chosen.values(), heights, strict=True))
        for node in np.ndindex(*(height + 1 for height in heights)):
            columns = [
                data.columns[n].at(level)[left] for n, level in zip(data.quasi_identifiers, node, strict=True)
            ]
            largest = max(Counter(zip(*(column.tolist() for column in columns), strict=True)).values())
            if sum(level / height for level, height in zip(node, heights, strict=True)) < loss - 1e-9:
                assert largest < 3
            if node == tuple(chosen.values()):
                assert largest >= 3


def test_models_hold_in_each_class_and_rows_keep_their_sensitive_values() -> None:
    data = random_table(np.random.default_rng(5), rows=60)
    recoded = recode_locally(data, 2, models=DistinctLDiversity("job", 2), share=0.2)
    jobs = data.table.column("job").to_pylist()
    labels = zip(*(recoded.table.column(name).to_pylist() for name in data.quasi_identifiers), strict=True)
    classes: dict[tuple[str, ...], set[str]] = {}
    for key, job in zip(labels, jobs, strict=True):
        classes.setdefault(key, set()).add(job)
    assert all(len(of) >= 2 for key, of in classes.items() if set(key) != {"*"})
    kept = [job if released else None for job, released in zip(jobs, ~recoded.suppressed, strict=True)]
    assert recoded.table.column("job").to_pylist() == kept


def test_less_loss_than_one_node_for_all_rows() -> None:
    data = adult()
    seen: list[tuple[int, int]] = []
    recoded = recode_locally(data, 100, share=0.5, progress=lambda done, total: seen.append((done, total)))
    heights = {name: data.hierarchies[name].height for name in data.quasi_identifiers}
    lost = [
        sum(level / heights[n] for n, level in levels.items()) / len(heights) for levels in recoded.levels
    ]
    rows = np.bincount(recoded.iteration_of_row[~recoded.suppressed])
    total = (np.dot(rows, lost) + recoded.suppressed.sum()) / data.rows
    best = generalize(data, 100, suppression=recoded.suppressed.mean(), loss=Precision())
    assert total < 0.8 * best.loss
    assert seen[-1][0] == int((~recoded.suppressed).sum())


def test_a_share_is_refused_outside_of_its_range() -> None:
    data = random_table(np.random.default_rng(1), rows=30)
    with pytest.raises(ParameterError, match="share must be from 0 to 1"):
        recode_locally(data, 2, share=2.0)
