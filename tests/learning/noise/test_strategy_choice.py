"""The choice of a strategy: errors as they are, and never worse than independent noise."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.learning.noise.strategy_choice import choose_strategy, optimizer_workload
from sfumato.mechanisms import Participation
from tests.chance import accepts_only
from tests.run_time import run_time

if run_time(__name__):
    import torch

    from sfumato.learning.noise.correlated import CorrelatedNoise


EPOCHS = Participation(max_participations=None, separation=20)


@pytest.mark.parametrize(("momentum", "decay"), [(0.0, 0.0), (0.9, 0.0), (0.0, 0.05), (0.8, 0.1)])
def test_the_workload_is_what_the_optimizer_does(momentum: float, decay: float) -> None:
    rate = 0.1
    weight = torch.nn.Parameter(torch.zeros(1, dtype=torch.float64))
    optimizer = torch.optim.SGD([weight], lr=rate, momentum=momentum)
    seen = []
    for step in range(15):
        with torch.no_grad():
            weight.mul_(1 - decay)
        weight.grad = torch.ones_like(weight) if step == 0 else torch.zeros_like(weight)
        optimizer.step()
        seen.append(-float(weight.detach()) / rate)
    assert np.allclose(seen, optimizer_workload(15, momentum=momentum, weight_decay=decay))


@pytest.mark.parametrize(("momentum", "decay"), [(0.0, 0.0), (0.9, 0.01)])
def test_errors_are_those_of_the_matrices(momentum: float, decay: float) -> None:
    steps = 60
    choice = choose_strategy(
        steps=steps, participation=EPOCHS, momentum=momentum, weight_decay=decay, memory=7
    )
    weights = optimizer_workload(steps, momentum=momentum, weight_decay=decay)
    a = np.array([[weights[t - i] if i <= t else 0.0 for i in range(steps)] for t in range(steps)])
    for candidate in choice.candidates:
        if candidate.name == "tree":
            continue
        c = candidate.strategy.matrix()
        squares = np.square(a @ np.linalg.inv(c)).sum() / steps
        pattern = max(float(np.linalg.norm(c[:, first::20].sum(1))) for first in range(20))
        assert candidate.error == pytest.approx(pattern * squares**0.5, rel=1e-6)
        assert candidate.memory <= 7
    assert [c.error for c in choice.candidates] == sorted(c.error for c in choice.candidates)
    assert choice.best.error <= choice.independent.error
    assert choice.gain > 1.5
    assert {"tree"} & {c.name for c in choice.candidates} == ({"tree"} if momentum == 0 else set())


def test_more_memory_is_no_worse_and_none_is_independent() -> None:
    errors = [
        choose_strategy(steps=60, participation=EPOCHS, memory=memory).best.error for memory in (0, 1, 3, 19)
    ]
    assert errors == sorted(errors, reverse=True)
    none = choose_strategy(steps=60, participation=EPOCHS, memory=0)
    assert [c.name for c in none.candidates] == ["independent"]


def test_the_noise_in_the_parameters_has_the_error_told() -> None:
    """Plain SGD on nothing but noise, over 4,000 parameters."""
    steps = 40
    choice = choose_strategy(steps=steps, participation=EPOCHS, memory=19)
    sensitivity = choice.strategy.sensitivity(EPOCHS).upper
    for candidate in (choice.best, choice.independent):
        noise = CorrelatedNoise(candidate.strategy, participation=EPOCHS, seed=8)
        weight, squares = torch.zeros(4000, dtype=torch.float64), 0.0
        for step in range(steps):
            noise.add_([weight], step=step, stddevs=[candidate.strategy.sensitivity(EPOCHS).upper])
            squares += float(weight.square().mean()) / steps

        def check(error: float, found: float = squares**0.5) -> None:
            """The mean square of 4,000 independent entries is off by 16% with a chance below 1e-9."""
            assert found == pytest.approx(error, rel=0.08)

        accepts_only(check, candidate.error, wider=1.1 * candidate.error, narrower=0.9 * candidate.error)
    assert sensitivity > 0


def test_one_step_and_bad_parameters() -> None:
    assert choose_strategy(steps=1).best.name == "independent"
    with pytest.raises(ParameterError, match=r"momentum must be in \[0, 1\)"):
        choose_strategy(steps=5, momentum=1.0)
    with pytest.raises(ParameterError, match="memory must be an integer of at least 0"):
        choose_strategy(steps=5, memory=-1)
