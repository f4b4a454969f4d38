"""The planner's figures are the protocols' own, and its order follows from public parameters alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sfumato import local
from sfumato.errors import ParameterError
from tests.cases import cases


def test_errors_and_bytes_are_the_protocols_own() -> None:
    choice = local.choose(local.Ranges(100, lengths=[1, 20]), epsilon=1.0, n=5000)
    assert not choice.ruled_out
    assert {plan.name for plan in choice.plans} == {
        "tree",
        "tree, one bit",
        "tree, projective",
        "haar",
        "flat",
    }
    for plan in choice.plans:
        assert min(plan.client_seconds, plan.server_seconds) >= 0
        assert plan.stddev == pytest.approx(np.sqrt(np.mean(np.square(list(plan.by_length.values())))))
    protocol = choice.protocol(local.Domain(range(100)))
    assert protocol.device.width == choice.best.bytes
    assert protocol.expected_error(5000, 20) == pytest.approx(choice.best.by_length[20], rel=1e-12)
    assert choice.best.name in str(choice)


def test_the_best_is_nearly_as_exact_as_any_and_short() -> None:
    choice = local.choose(local.Ranges(300), epsilon=1.0, n=10_000)
    least = min(plan.stddev for plan in choice.plans)
    near = [plan for plan in choice.plans if plan.stddev <= 1.05 * least]
    assert choice.best in near
    assert choice.best.bytes == min(plan.bytes for plan in near)
    own = choice.protocol(local.Domain(range(300)))
    assert choice.best.stddev == pytest.approx(own.expected_error(10_000), rel=1e-12)
    rest = [plan.stddev for plan in choice.plans if plan not in near]
    assert rest == sorted(rest)
    # Single values alone are told best without a tree, in whatever bytes.
    assert local.choose(local.Ranges(300, lengths=[1]), epsilon=1.0, n=10_000).best.name == "flat"


def test_limits_rule_out_with_the_reason() -> None:
    choice = local.choose(local.Ranges(300), epsilon=1.0, n=1000, max_bytes=7)
    assert all(plan.bytes <= 7 for plan in choice.plans)
    assert choice.ruled_out["tree"] == "10 bytes a report"
    assert "10 bytes a report" in str(choice)
    many = local.choose(local.Ranges(5000, lengths=[1]), epsilon=1.0, n=1000)
    assert "for more than 4096 nodes" in many.ruled_out["tree, projective"]


@cases(
    ("given", "rule"),
    [
        ({"epsilon": 0.0}, "epsilon must be positive"),
        ({"domain": 1}, "domain must be an integer of at least 2"),
        ({"domain": 2**40}, "domain must have at most 16777216 categories, to be tried, got"),
        ({"n": 0}, "n must be an integer of at least 1"),
        ({"max_bytes": 1}, "max_bytes and max_seconds must leave some protocol"),
        ({"max_seconds": -1.0}, "max_seconds must be positive"),
        ({"lengths": []}, "lengths must be a list"),
        ({"lengths": 3}, "lengths must be a list"),
        ({"lengths": [0]}, "lengths must be an integer of at least 1"),
        ({"lengths": [11]}, "lengths must be at most 10"),
    ],
)
def test_wrong_parameters_are_named(given: dict[str, float], rule: str) -> None:
    whole: dict[str, Any] = {"epsilon": 1.0, "n": 10, "domain": 10} | given
    asked = {name: whole.pop(name) for name in ("domain", "lengths") if name in whole}
    with pytest.raises(ParameterError, match=rule):
        local.choose(local.Ranges(**asked), **whole)
