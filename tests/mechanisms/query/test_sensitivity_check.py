"""The checker refutes the field's usual wrong claims, and lets the right ones stand."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.mechanisms import Norm, check_sensitivity
from sfumato.privacy.neighboring import Neighboring
from tests.cases import cases

ADD, REPLACE, ZERO = Neighboring.ADD_REMOVE, Neighboring.REPLACE_ONE, Neighboring.ZERO_OUT

UNIT = {"bounds": (0.0, 1.0)}
TEN = {"bounds": (0.0, 10.0)}


def histogram(data: Any) -> Any:
    return np.bincount(data, minlength=4)


def clamped_by_own_range(data: Any) -> Any:
    """A histogram whose cells follow the data's largest value."""
    return np.histogram(data, bins=4, range=(0, max(1e-9, data.max())))[0]


def groups(data: Any) -> Any:
    """One sum for each key that occurs: its length tells who is there."""
    return np.array([data[data == key].size for key in np.unique(data)])


WRONG: dict[str, tuple[Callable[[Any], Any], float, Neighboring, Norm, dict[str, Any]]] = {
    "mean with private n": (np.mean, 1 / 32, ADD, Norm.L1, UNIT),
    "mean of replaced records, n forgotten": (np.mean, 1 / 32, REPLACE, Norm.L1, UNIT),
    "unclipped sum": (np.sum, 100.0, ADD, Norm.L1, {}),
    "sum clipped at one end": (lambda x: np.minimum(x, 10).sum(), 10.0, ADD, Norm.L1, {}),
    "sum of bounds around zero, by the upper": (np.sum, 1.0, ADD, Norm.L1, {"bounds": (-3.0, 1.0)}),
    "replaced sum, by the largest record": (np.sum, 3.0, REPLACE, Norm.L1, {"bounds": (-3.0, 1.0)}),
    "variance as range / n": (np.var, 10 / 32, REPLACE, Norm.L1, TEN | {"sizes": (32, 32)}),
    "variance with private n": (np.var, 100 / 32, ADD, Norm.L1, TEN),
    "replaced histogram": (histogram, 1.0, REPLACE, Norm.L1, {"values": [0, 1, 2, 3]}),
    "replaced histogram in L2": (histogram, 1.0, REPLACE, Norm.L2, {"values": [0, 1, 2, 3]}),
    "histogram by the data's own maximum": (clamped_by_own_range, 1.0, ADD, Norm.L1, TEN),
    "median as range / n": (np.median, 1 / 9, REPLACE, Norm.L1, UNIT | {"sizes": (9, 9)}),
    "sorted, one entry moves": (np.sort, 1, REPLACE, Norm.L0, UNIT | {"sizes": (5, 5)}),
    "sorted, padded": (
        lambda x: np.append(np.sort(x), np.zeros(32 - x.size)),
        1.0,
        ADD,
        Norm.L1,
        {"bounds": (-1.0, 1.0)},
    ),
    "prefix sums": (np.cumsum, 1.0, REPLACE, Norm.L1, UNIT | {"sizes": (6, 6)}),
    "distinct values": (lambda x: np.unique(x).size, 0.5, REPLACE, Norm.L1, {"values": [1, 2, 3]}),
    "one entry for each key that occurs": (groups, 1.0, ADD, Norm.L1, {"values": [1, 2, 3]}),
    "maximum": (np.max, 1 / 2, ZERO, Norm.L1, UNIT),
    "correlation": (
        lambda x: float(np.corrcoef(x[:, 0], x[:, 1])[0, 1]),
        0.5,
        REPLACE,
        Norm.L1,
        {"sample": lambda generator: tuple(generator.uniform(0, 1, 2)), "sizes": (4, 4)},
    ),
    "pairs": (lambda x: (x[:, None] > x[None, :]).sum(), 1.0, REPLACE, Norm.L1, UNIT),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_claims_are_refuted(name: str) -> None:
    function, claimed, neighboring, norm, domain = WRONG[name]
    report = check_sensitivity(
        function, claimed=claimed, neighboring=neighboring, norm=norm, trials=600, **domain
    )
    assert report.violated, report
    assert report.largest > claimed
    assert "VIOLATED" in str(report)
    before, after = report.witness.before, report.witness.after
    assert len(before) - len(after) == (neighboring is ADD)


RIGHT: dict[str, tuple[Callable[[Any], Any], float, Neighboring, Norm, dict[str, Any]]] = {
    "count": (len, 1.0, ADD, Norm.L1, UNIT),
    "count of replaced records": (len, 0.0, REPLACE, Norm.L1, UNIT),
    "clipped sum": (lambda x: np.clip(x, -3, 1).sum(), 3.0, ADD, Norm.L1, {}),
    "clipped sum, zeroed": (lambda x: np.clip(x, -3, 1).sum(), 3.0, ZERO, Norm.L1, {}),
    "mean with public n": (lambda x: np.clip(x, 0, 1).sum() / 32, 1 / 32, ADD, Norm.L1, {}),
    "replaced mean": (np.mean, 1 / 8, REPLACE, Norm.L1, UNIT | {"sizes": (8, 8)}),
    "replaced variance": (np.var, 100 * 7 / 64, REPLACE, Norm.L1, TEN | {"sizes": (8, 8)}),
    "histogram": (histogram, 1.0, ADD, Norm.L1, {"values": [0, 1, 2, 3]}),
    "replaced histogram": (histogram, 2.0, REPLACE, Norm.L1, {"values": [0, 1, 2, 3]}),
    "median": (np.median, 1.0, REPLACE, Norm.L1, UNIT),
    "sorted": (np.sort, 1.0, REPLACE, Norm.L1, UNIT),
}


@cases("name", RIGHT)
def test_right_claims_stand(name: str) -> None:
    function, claimed, neighboring, norm, domain = RIGHT[name]
    report = check_sensitivity(
        function, claimed=claimed, neighboring=neighboring, norm=norm, trials=500, **domain
    )
    assert not report.violated, report
    assert report.trials == 500
    assert "not refuted" in str(report)


def test_climbing_finds_what_random_data_does_not() -> None:
    """Only where five other records all lie near .637 does a sixth move the product much."""

    def peak(data: Any) -> float:
        return float(np.exp(-((data - 0.637) ** 2) * 15).prod())

    def search(trials: int) -> bool:
        return check_sensitivity(
            peak, claimed=0.6, bounds=(0.0, 1.0), neighboring=REPLACE, sizes=(6, 6), trials=trials
        ).violated

    assert not search(300)
    assert search(6000)


def test_the_witness_shows_the_violation() -> None:
    report = check_sensitivity(np.mean, claimed=0.1, bounds=(0.0, 1.0))
    witness = report.witness
    assert float(np.mean(witness.before)) == witness.answer_before
    assert abs(witness.answer_before - witness.answer_after) == report.largest


def test_the_search_is_repeatable() -> None:
    runs = [check_sensitivity(np.median, claimed=0.1, bounds=(0.0, 1.0), trials=300, rng=4) for _ in range(2)]
    assert runs[0].largest == runs[1].largest
    assert runs[0].witness.before.tolist() == runs[1].witness.before.tolist()


def test_errors_and_undefined_answers_are_violations() -> None:
    def fails_alone(data: Any) -> float:
        if len(data) < 2:
            raise ValueError("too few")
        return 0.0

    raised = check_sensitivity(fails_alone, claimed=1.0, trials=200)
    assert raised.violated
    assert raised.largest == math.inf
    assert None in (raised.witness.answer_before, raised.witness.answer_after)
    undefined = check_sensitivity(np.mean, claimed=1.0, bounds=(0.0, 1.0), sizes=(0, 5), trials=200)
    assert undefined.violated  # the mean of nothing is NaN


def test_float_error_is_no_violation_where_the_answers_are_of_opposite_sign() -> None:
    def flips(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Two large numbers of opposite sign, each with its float error."""
        return np.array([1e12, -1e12]) + 1e-4 * (len(x) % 2)

    assert not check_sensitivity(flips, claimed=0.0, trials=200).violated
    assert check_sensitivity(flips, claimed=0.0, trials=200, tolerance=1e-17).violated


def test_float_error_is_no_violation() -> None:
    report = check_sensitivity(lambda x: np.clip(x, 0, 0.1).sum() * 3, claimed=0.1 * 3, trials=500)
    assert not report.violated


@cases(
    ("arguments", "message"),
    [
        ({"claimed": -1.0}, "claimed must be non-negative"),
        ({"claimed": math.inf}, "claimed must be non-negative"),
        ({"bounds": (1.0, 0.0)}, "bounds must be .lower, upper."),
        ({"bounds": (0.0, 1.0), "values": [1]}, "bounds must be the only one"),
        ({"values": []}, "values must hold"),
        ({"sizes": (3, 3)}, "sizes must be .smallest, largest. with room"),
        ({"sizes": (0, 0), "neighboring": REPLACE}, "sizes must be"),
        ({"sizes": (-1, 3)}, "sizes must be an integer"),
        ({"trials": 0}, "trials must be an integer"),
        ({"tolerance": -1}, "tolerance must be"),
        ({"function": lambda: 0}, "function must accept"),
    ],
)
def test_bad_parameters_are_refused(arguments: dict[str, Any], message: str) -> None:
    function = arguments.pop("function", np.sum)
    with pytest.raises(ParameterError, match=message):
        check_sensitivity(function, **{"claimed": 1.0} | arguments)
