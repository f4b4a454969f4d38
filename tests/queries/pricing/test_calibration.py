"""Which strategy is taken: the least product of error and threshold, and the table that documents it."""

from __future__ import annotations

import importlib.util
import math
from pathlib import Path
from types import ModuleType

import pytest

from sfumato.queries.pricing.price import PricedQuery, price
from sfumato.queries.sql.analysis import read
from tests.cases import cases
from tests.queries.noised import noised
from tests.queries.pricing.test_group_selection import _STRATEGIES, DP, _counts, _shown, _threshold
from tests.queries.pricing.test_price import _CATALOG

_ROOT = Path(__file__).parents[3]
_ANSWERS = {
    "groups": "",
    "count": ", COUNT(*) AS n",
    "sum": ", SUM(x, contribution_bounds_per_group => (0, 1)) AS s",
    "three": ", COUNT(*) AS n, SUM(x, contribution_bounds_per_group => (0, 1)) AS s, "
    "AVG(x, contribution_bounds_per_group => (0, 1)) AS a",
}


def _error(priced: PricedQuery) -> float:
    """The geometric mean of the standard deviations of what is shown, per unit."""
    shown = {index for column in priced.estimators for index in column.measures}
    logs = [
        math.log(noised(priced.mechanisms[i]).stddev / max(1, priced.measures[i].sensitivity)) for i in shown
    ]
    return math.exp(math.fsum(logs) / len(logs)) if logs else 1.0


def _hidden(priced: PricedQuery) -> float:
    """How many groups are not shown, of one group of each number of units: the mean threshold less one."""
    threshold, least = _threshold(priced), priced.query.options.min_privacy_units
    return threshold.units + 1 - float(threshold.probability) - least


@cases("answer", _ANSWERS)
@cases(
    ("epsilon", "delta", "groups"),
    [(0.5, 1e-10, 5), (1.0, 1e-6, 1), (1.0, 1e-6, 3), (1.0, 1e-6, 5), (5.0, 1e-4, 3), (5.0, 1e-4, 20)],
)
def test_of_the_strategies_the_one_of_the_least_error_and_threshold_is_taken(
    answer: str, epsilon: float, delta: float, groups: int
) -> None:
    def priced(strategy: str, least: int = 1) -> PricedQuery:
        given = f"epsilon={epsilon}, delta={delta}, max_groups_contributed={groups}{strategy}"
        options = f"{given}, min_privacy_units_per_group={least}"
        text = f"{DP}{options}) g{_ANSWERS[answer]} FROM data GROUP BY g"
        return price(read(text, _CATALOG))

    chosen = priced("")
    others = [priced(f", group_selection_strategy={strategy}") for strategy in _STRATEGIES]
    errors, hidden = [_error(each) for each in others], [_hidden(each) for each in others]
    product = min(error * (1 + each) for error, each in zip(errors, hidden, strict=True))
    assert _error(chosen) * (1 + _hidden(chosen)) <= product * 1.001
    # A strategy that is better in both is never passed over, and without numbers the most groups are shown.
    for error, each in zip(errors, hidden, strict=True):
        assert _error(chosen) <= error * 1.001 or _hidden(chosen) <= each * 1.001
    if answer == "groups":
        assert _hidden(chosen) <= min(hidden) * 1.001
    if groups == 3:
        assert priced("", least=50).distribution is chosen.distribution


def _benchmark() -> ModuleType:
    spec = importlib.util.spec_from_file_location("selection", _ROOT / "benchmarks" / "selection.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cases("groups", [1, 5, 10])
def test_the_table_of_the_documentation_is_what_is_computed(groups: int) -> None:
    lines = (_ROOT / "docs" / "sql.md").read_text(encoding="utf-8").splitlines()
    head = next(i for i, line in enumerate(lines) if line.startswith("| `max_groups_contributed` | `LAPLACE"))
    table = {
        cells[0]: cells for line in lines[head + 2 : head + 9] for cells in [line.strip("| ").split(" | ")]
    }
    assert table[str(groups)] == _benchmark().row(1.0, 1e-6, groups)


@cases("strategy", _STRATEGIES)
def test_the_mean_threshold_is_the_number_of_groups_that_are_hidden(strategy: str) -> None:
    priced = _counts(strategy, 1.0, 1e-6, ", min_privacy_units_per_group=6")
    hidden = math.fsum(1 - _shown(priced, count) for count in range(6, 120))
    assert _hidden(priced) == pytest.approx(hidden, rel=1e-5)
