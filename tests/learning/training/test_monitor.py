"""What is noted along a run: epsilon for all, loss and clipping share for the curator alone."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from sfumato.errors import MissingExtra, ParameterError
from tests.run_time import run_time

if run_time(__name__):
    from sfumato.learning.training.monitor import TensorBoardTracker, TrainingMonitor


class Kept:
    """Keeps what it gets."""

    def __init__(self) -> None:
        self.found: list[tuple[int, dict[str, float]]] = []
        self.closed = 0

    def log(self, step: int, values: Mapping[str, float]) -> None:
        self.found.append((step, dict(values)))

    def close(self) -> None:
        self.closed += 1


def _trained(made: Any, monitor: TrainingMonitor) -> list[float]:
    losses = []
    for x, y in made.loader:
        made.optimizer.zero_grad()
        loss = made.loss(x, y)
        loss.backward()
        monitor.note_loss(loss)
        losses.append(float(loss.detach()))
        made.optimizer.step()
    return losses


def test_every_few_steps_are_noted_and_the_rest_at_the_end(make: Callable[..., Any]) -> None:
    made, curator, public = make(batch_size=8), Kept(), Kept()
    with TrainingMonitor(made.engine.run, delta=1e-5, every=2, curator=[curator], public=[public]) as monitor:
        losses = _trained(made, monitor)
    assert len(losses) == 5
    steps, epsilons = monitor.over_steps("epsilon")
    assert steps == [2, 4, 5]
    assert epsilons == [made.engine.run.loss_of(step).epsilon(1e-5) for step in steps]
    means = [sum(losses[:2]) / 2, sum(losses[2:4]) / 2, losses[4]]
    noted, shown = monitor.over_steps("curator/loss")
    assert noted == steps
    assert shown == pytest.approx(means)
    assert [values["epsilon"] for _, values in curator.found] == epsilons
    assert [sorted(values) for _, values in public.found] == [["epsilon"]] * 3  # nothing of the rows
    assert curator.closed == public.closed == 1
    monitor.close()
    assert curator.closed == 1
    _trained(made, monitor)  # closed: nothing is noted any more
    assert monitor.over_steps("epsilon")[0] == steps
    assert "curator" not in str(made.engine.card(1e-5).to_json())


@pytest.mark.parametrize(("clip_norm", "expected"), [(1e-9, 1.0), (1e9, 0.0)])
def test_the_share_is_that_of_examples_beyond_the_clip_norm(
    make: Callable[..., Any], clip_norm: float, expected: float
) -> None:
    made = make(max_grad_norm=clip_norm, noise_multiplier=1e-3)
    with TrainingMonitor(made.engine.run, delta=1e-5, every=1) as monitor:
        _trained(made, monitor)
    shares = monitor.over_steps("curator/clipping_share")[1]
    assert shares
    assert set(shares) == {expected}


def test_a_plot_shows_all_three_and_epsilon_on_its_own_axis(make: Callable[..., Any]) -> None:
    made = make()
    monitor = TrainingMonitor(made.engine.run, delta=1e-5, every=1)
    _trained(made, monitor)
    monitor.close()
    pytest.importorskip("matplotlib.figure")
    axes = monitor.plot()
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels == ["curator/loss", "curator/clipping_share", "epsilon"]
    assert axes.get_xlabel() == "steps"
    assert monitor.plot(axes) is axes
    with pytest.raises(ParameterError, match="every must be"):
        TrainingMonitor(made.engine.run, delta=1e-5, every=0)


def test_tensorboard_gets_a_scalar_for_each_value(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[tuple[Any, ...]] = []

    class Writer:
        def __init__(self, log_dir: str | None) -> None:
            written.append(("opened", log_dir))

        def add_scalar(self, name: str, value: float, step: int) -> None:
            written.append((name, value, step))

        def close(self) -> None:
            written.append(("closed",))

    module = types.ModuleType("torch.utils.tensorboard")
    module.SummaryWriter = Writer  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", module)
    tracker = TensorBoardTracker("runs")
    tracker.log(3, {"epsilon": 0.5, "curator/loss": 2.0})
    tracker.close()
    assert written == [("opened", "runs"), ("epsilon", 0.5, 3), ("curator/loss", 2.0, 3), ("closed",)]
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(MissingExtra, match="pip install tensorboard"):
        TensorBoardTracker("runs")
