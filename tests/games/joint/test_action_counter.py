"""Counters of actions: the noise that is cheaper, its bound, and what is refused."""

from typing import Any

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.games.joint import action_counter
from sfumato.games.joint.action_counter import ActionCounter
from sfumato.numerics.randomness.source import SimulatedSource

GIVEN: dict[str, Any] = {
    "steps": 64, "columns": 2, "turns": 2, "separation": 8, "step_squared": 1, "state_squared": 2,
    "epsilon": 1.0, "delta": 1e-6,
}  # fmt: skip


def test_the_cheaper_noise_is_taken() -> None:
    few, many = ActionCounter(**GIVEN), ActionCounter(**GIVEN | {"turns": 64, "separation": 1})
    assert few.continual
    assert not many.continual
    assert few.stddev < many.stddev == pytest.approx(4.2247 * np.sqrt(64 * 2), rel=0.01)
    for counter in (few, many):
        assert 0.99 < counter.privacy_loss.epsilon(1e-6) <= 1


def test_noise_stays_within_its_bound() -> None:
    for turns, separation in ((2, 8), (64, 1)):
        check_noise(ActionCounter(**GIVEN | {"turns": turns, "separation": separation}))


def check_noise(counter: ActionCounter) -> None:
    changes = np.random.default_rng(1).integers(-3, 4, (64, 2))
    noises = []
    for seed in range(40):
        send = counter.open(SimulatedSource(seed))
        noises.append([send(change) for change in changes] - np.cumsum(changes, axis=0))
    found = np.abs(noises)
    # 40 runs with fixed seeds: a bound at 0.5 is broken in at most 20 of them on average.
    assert (found.max(axis=(1, 2)) > counter.error(0.5)).mean() < 0.5
    assert found.max() > 0.3 * counter.error(0.5)
    assert found.max() < counter.error(1e-9)
    deviation = np.std(np.array(noises)[:, -1])
    assert 0.6 * counter.stddev < deviation < 1.4 * counter.stddev


def test_the_bound_by_hand() -> None:
    counter = ActionCounter(**GIVEN)
    reach = np.sqrt(2 * np.log(2 * 64 * 2 / 0.05))
    assert counter.error(0.05) == pytest.approx(counter.stddev * reach + 1, rel=1e-8)
    assert counter.error(0.05) > counter.stddev * reach * (1 + 1e-10) + 1
    assert "_mechanism" not in repr(counter)


def test_what_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("steps", "columns", "turns", "separation", "step_squared", "state_squared"):
        with pytest.raises(ParameterError, match=f"{name} must be an integer of at least 1"):
            ActionCounter(**GIVEN | {name: 0})
    with pytest.raises(ParameterError, match="steps must be at most 65,536"):
        ActionCounter(**GIVEN | {"steps": (1 << 16) + 1})
    monkeypatch.setattr(action_counter, "_MOST", 64)
    assert ActionCounter(**GIVEN).steps == 64
    with pytest.raises(ParameterError, match="delta"):
        ActionCounter(**GIVEN | {"delta": 0.0})
