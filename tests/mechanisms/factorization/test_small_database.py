"""The small database mechanism: its exact distribution against its loss, and how good its answers are."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import numpy as np
import pytest

from sfumato.errors import ParameterError, UnboundedSensitivity
from sfumato.mechanisms import Histogram, LinearWorkload, SmallDatabase
from sfumato.privacy.neighboring import Neighboring
from tests.cases import cases
from tests.chance import accepts_only, frequencies

PREFIXES = LinearWorkload(matrix=np.tril(np.ones((3, 3))))
REAL = LinearWorkload(matrix=[[0.3, -1.0, 0.5], [0.0, 1.0, 1.0]])


@cases(("workload", "size"), [(PREFIXES, 2), (REAL, 1)])
def test_the_loss_covers_the_exact_distribution(workload: LinearWorkload, size: int) -> None:
    mechanism = SmallDatabase(
        workload=workload, records=3, size=size, epsilon=2.0, neighboring=Neighboring.REPLACE_ONE
    )
    claimed = mechanism.privacy_loss.epsilon(0.0)
    assert claimed == 2.0
    worst = spans = 0.0
    # A record may be in no cell, too.
    for data in itertools.combinations_with_replacement((-1, 0, 1, 2), 3):
        here = mechanism.probabilities(np.array(data))[1]
        assert here.sum() == pytest.approx(1)
        for record, value in itertools.product(range(3), (-1, 0, 1, 2)):
            other = np.array(data)
            other[record] = value
            losses = np.log(here / mechanism.probabilities(other)[1])
            worst, spans = max(worst, float(np.abs(losses).max())), max(spans, float(np.ptp(losses)))
    assert 0.25 * claimed < worst <= claimed
    assert 0.4 * claimed < spans <= claimed * (1 + 1e-9)


def test_draws_have_the_distribution() -> None:
    mechanism = SmallDatabase(
        workload=PREFIXES, records=6, size=2, epsilon=3.0, neighboring=Neighboring.REPLACE_ONE
    )
    data = np.array([0, 0, 1, 2, 2, 2])
    # The answers of prefixes, 3 times whole numbers, say how many synthetic records are in each cell.
    counts = np.diff(mechanism.outputs(data, 3000, 4) / 3, prepend=0).round().astype(int)
    seen = Counter(map(tuple, counts.tolist()))

    def distribution(epsilon: float) -> dict[Any, float]:
        one = SmallDatabase(
            workload=PREFIXES, records=6, size=2, epsilon=epsilon, neighboring=Neighboring.REPLACE_ONE
        )
        databases, chances = one.probabilities(data)
        return dict(zip(map(tuple, databases.tolist()), chances.tolist(), strict=True))

    accepts_only(frequencies(seen), distribution(3.0), half=distribution(1.5))


def test_all_databases_are_weighed() -> None:
    mechanism = SmallDatabase(
        workload=PREFIXES, records=3, size=4, epsilon=1.0, neighboring=Neighboring.REPLACE_ONE
    )
    databases, _ = mechanism.probabilities(np.array([0, 1, 2]))
    assert len(databases) == mechanism.databases == 15
    assert len({tuple(row) for row in databases.tolist()}) == 15
    assert (databases.sum(axis=1) == 4).all()


def test_answers_are_as_good_as_promised() -> None:
    workload = LinearWorkload(
        matrix=[[float(i <= k <= j) for k in range(5)] for i in range(5) for j in range(i, 5)],
        histogram=Histogram(categories=tuple("abcde")),
    )
    mechanism = SmallDatabase(
        workload=workload, records=2000, size=12, epsilon=1.0, neighboring=Neighboring.REPLACE_ONE
    )
    data = np.random.default_rng(1).choice(list("abcde"), 2000, p=[0.4, 0.1, 0.1, 0.1, 0.3])
    exact, bound = workload(data), mechanism.utility_bound(0.01)
    errors = [float(np.abs(mechanism.release(data, rng=seed).value - exact).max()) for seed in range(20)]
    assert max(errors) < bound < 2000
    assert max(errors) < 250
    assert mechanism.utility_bound(0.5) < bound


def test_odd_data_is_answered() -> None:
    mechanism = SmallDatabase(
        workload=PREFIXES, records=3, size=2, epsilon=1.0, neighboring=Neighboring.REPLACE_ONE
    )
    for data in (np.zeros(0, np.int64), np.full(9, -1), np.full(10_000, 2)):
        assert mechanism.release(data, rng=1).counts.sum() == 2


@cases(
    ("given", "error", "message"),
    [
        ({"records": 0}, ParameterError, "records must"),
        ({"records": 2**21}, ParameterError, "records must be at most"),
        ({"size": 0}, ParameterError, "size must"),
        ({"size": 300}, ParameterError, "size must be at most 256"),
        ({"workload": LinearWorkload(matrix=np.eye(60)), "size": 9}, ParameterError, "size must leave"),
        ({"workload": np.eye(3)}, ParameterError, "workload must"),
        ({"epsilon": 0.0}, ParameterError, "epsilon must"),
        ({"epsilon": 2.0**-40}, ParameterError, "epsilon must be at least"),
        ({"neighboring": Neighboring.ADD_REMOVE}, UnboundedSensitivity, "neighboring must"),
    ],
)
def test_bad_parameters_are_refused(given: dict[str, Any], error: Any, message: str) -> None:
    good: dict[str, Any] = {"workload": PREFIXES, "records": 5, "size": 2, "epsilon": 1.0}
    with pytest.raises(error, match=message):
        SmallDatabase(**good | given)
