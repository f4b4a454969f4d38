"""What holds for every noise."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable

import pytest

from sfumato.mechanisms import BinaryTree
from tests.cases import cases
from tests.run_time import run_time

if run_time(__name__):
    import torch

    from sfumato.learning.noise.correlated import CorrelatedNoise
    from sfumato.learning.noise.grid import GridNoise
    from sfumato.learning.noise.keyed import KeyedNoise, SimulatedNoise
    from sfumato.learning.noise.noise import Noise


def tree() -> Noise:
    return CorrelatedNoise(BinaryTree(steps=4))


@cases("make", lambda: [KeyedNoise, GridNoise, tree])
@cases("take", [pickle.dumps, copy.copy, copy.deepcopy])
def test_the_key_leaves_by_no_copy(make: Callable[[], Noise], take: Callable[[Noise], object]) -> None:
    with pytest.raises(TypeError, match="checkpoint"):
        take(make())


def test_simulated_noise_may_be_copied() -> None:
    noise = SimulatedNoise(3)
    first, second = torch.zeros(4), torch.zeros(4)
    noise.add_([first], step=0, stddevs=[1.0])
    pickle.loads(pickle.dumps(noise)).add_([second], step=0, stddevs=[1.0])
    assert torch.equal(first, second)
