"""Correlated noise: the strategy's covariance, its price for every schema, the same after a restart."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pytest
from scipy import stats

from sfumato.errors import ParameterError
from sfumato.mechanisms import BandedToeplitz, BinaryTree, BufferedToeplitz, Participation, SquareRoot
from sfumato.mechanisms.factorization.strategies.strategy import Strategy
from sfumato.numerics.randomness.keyed_normal import add_normals
from sfumato.privacy.leaves.gaussian import Gaussian
from tests.cases import cases
from tests.chance import FALSE_ALARM, accepts_only
from tests.run_time import run_time

if run_time(__name__):
    import torch

    from sfumato.learning.noise import correlated
    from sfumato.learning.noise.correlated import CorrelatedNoise


STEPS = 12
STRATEGIES: dict[str, Callable[[int], Strategy]] = {
    "tree": lambda steps: BinaryTree(steps=steps),
    "banded": lambda steps: BandedToeplitz(steps=steps, bands=[1.0, 0.6, 0.3]),
    "buffered": lambda steps: BufferedToeplitz(steps=steps, decays=(0.9, 0.4), weights=(0.3, 0.2)),
    "root": lambda steps: SquareRoot(steps=steps),
    "independent": lambda steps: BandedToeplitz(steps=steps, bands=[1.0]),
}
SCHEMAS = [
    Participation(),
    Participation(max_participations=2, separation=3),
    Participation(max_participations=None, separation=4),
    Participation(max_participations=None, separation=5, fixed_order=True),
]


def run(noise: CorrelatedNoise, entries: int, steps: int = STEPS, stddev: float = 1.0) -> np.ndarray:
    out = np.zeros((steps, entries))
    for step in range(steps):
        noise.add_([torch.from_numpy(out[step])], step=step, stddevs=[stddev])
    return out


def decoder(strategy: Strategy) -> np.ndarray:
    """B with prefix sums = B C; for the tree by least squares that use measurements so far only."""
    c = strategy.matrix()
    if isinstance(strategy, BinaryTree):
        return np.array([honaker(end, c) for end in range(1, STEPS + 1)])
    return np.tril(np.ones((STEPS, STEPS))) @ np.linalg.inv(c)


def honaker(end: int, c: np.ndarray) -> np.ndarray:
    """The best linear unbiased estimate of each dyadic block from the measurements inside it."""
    weights, start = np.zeros(len(c)), 0
    for height in reversed(range(end.bit_length())):
        if not end >> height & 1:
            continue
        block = np.zeros(STEPS)
        block[start : start + (1 << height)] = 1
        start += 1 << height
        inside = [row for row in range(len(c)) if (c[row] <= block).all()]
        weights[inside] += block @ np.linalg.pinv(c[inside])
    return weights


@cases("kind", STRATEGIES)
def test_the_noise_of_prefix_sums_has_the_strategys_covariance(kind: str) -> None:
    strategy, entries = STRATEGIES[kind](STEPS), 40_000
    b = decoder(strategy)
    assert np.allclose(b @ strategy.matrix(), np.tril(np.ones((STEPS, STEPS))))
    assert np.allclose(np.square(b).sum(1), strategy.variances())
    prefixes = np.cumsum(run(CorrelatedNoise(strategy, seed=1), entries, stddev=2.5), axis=0) / 2.5

    def check(b: np.ndarray) -> None:
        """Whitened by the covariance B B^T, entries are independent and standard normal."""
        left, sizes, _ = np.linalg.svd(b, full_matrices=False)
        white = (left / sizes).T @ prefixes
        products = white @ white.T / entries - np.eye(STEPS)
        assert np.abs(products).max() < 6.9 * (2 / entries) ** 0.5
        assert stats.kstest(white.ravel(), "norm").pvalue > FALSE_ALARM

    other = "root" if kind == "independent" else "independent"
    accepts_only(
        check, b, wider=1.03 * b, narrower=0.97 * b, of_another_strategy=decoder(STRATEGIES[other](STEPS))
    )


def test_the_tree_is_dp_ftrl_by_hand() -> None:
    """Noise of a prefix is the sum over its dyadic blocks of their own noise and that of their halves."""
    rows = iter(range(100))
    noise = CorrelatedNoise(BinaryTree(steps=4), seed=3)
    prefixes = np.cumsum(run(noise, 5, 4), axis=0)
    single = CorrelatedNoise(BandedToeplitz(steps=100, bands=[1.0]), seed=3)
    z = [run_one(single, next(rows)) for _ in range(7)]
    # Blocks in the order in which they end: 1, 2, 1-2, 3, 4, 3-4, 1-4.
    pair = [z[2] * 2 / 3 + (z[0] + z[1]) / 3, z[5] * 2 / 3 + (z[3] + z[4]) / 3]
    whole = z[6] * 4 / 7 + (pair[0] + pair[1]) * 3 / 7
    assert np.allclose(prefixes, [z[0], pair[0], pair[0] + z[3], whole])


def run_one(noise: CorrelatedNoise, step: int) -> np.ndarray:
    out = torch.zeros(5, dtype=torch.float64)
    noise.add_([out], step=step, stddevs=[1.0])
    return out.numpy()


def patterns(schema: Participation) -> Iterator[tuple[int, ...]]:
    if schema.fixed_order:
        yield from (tuple(range(first, STEPS, schema.separation)) for first in range(schema.separation))
        return
    most = STEPS if schema.max_participations is None else schema.max_participations
    for count in range(1, most + 1):
        for steps in combinations(range(STEPS), count):
            if all(b - a >= schema.separation for a, b in pairwise(steps)):
                yield steps


@cases("schema", SCHEMAS, ids=str)
@cases("kind", STRATEGIES)
def test_the_price_covers_every_pattern(kind: str, schema: Participation) -> None:
    """All patterns, each with the same unit vector at every step, and with random ones."""
    strategy = STRATEGIES[kind](STEPS)
    c, draw = strategy.matrix(), np.random.default_rng(2)
    worst = 0.0
    for steps in patterns(schema):
        columns = c[:, list(steps)]
        worst = max(worst, float(np.linalg.norm(columns.sum(1))))
        vectors = draw.normal(size=(len(steps), 3))
        moved = columns @ (vectors / np.linalg.norm(vectors, axis=1, keepdims=True))
        assert np.linalg.norm(moved) <= strategy.sensitivity(schema).upper * (1 + 1e-12)
    loss = CorrelatedNoise(strategy, participation=schema).loss(3.0)
    assert isinstance(loss, Gaussian)
    assert loss.gdp().mu >= worst / 3 * (1 - 1e-12)
    if kind != "tree":
        assert loss.gdp().mu == pytest.approx(worst / 3, rel=1e-9)


@cases("kind", STRATEGIES)
def test_a_restart_gives_the_same_noise(kind: str) -> None:
    strategy, key = STRATEGIES[kind](STEPS), bytes(range(32))
    whole = run(CorrelatedNoise(strategy, key=key), 7)
    for step in (STEPS - 1, 0, 5, 5, 4):
        fresh = CorrelatedNoise(strategy, key=key)
        out = np.zeros(7)
        fresh.add_([torch.from_numpy(out)], step=step, stddevs=[1.0])
        assert np.array_equal(out, whole[step])
    same = CorrelatedNoise(strategy, key=key)
    for step in (3, 3, 2, 7, 0):
        out = np.zeros(7)
        same.add_([torch.from_numpy(out)], step=step, stddevs=[1.0])
        assert np.array_equal(out, whole[step])


def test_parameters_and_kinds_of_tensors() -> None:
    noise = CorrelatedNoise(SquareRoot(steps=3), seed=5)
    sums = [
        torch.zeros(4, 2),
        torch.zeros(8, dtype=torch.bfloat16),
        torch.zeros(2, 4, dtype=torch.float64).t(),
    ]
    noise.add_(sums, step=0, stddevs=[1.0, 2.0, 1.0])
    noise.add_(sums, step=1, stddevs=[1.0, 2.0, 1.0])
    again = [torch.zeros(4, 2, dtype=torch.float64) for _ in range(3)]
    for step in range(2):
        CorrelatedNoise(SquareRoot(steps=3), seed=5).add_(again, step=step, stddevs=[1.0, 2.0, 1.0])
    assert torch.allclose(sums[0].double(), again[0], atol=1e-6)
    assert torch.allclose(sums[1].double().reshape(4, 2), again[1], atol=0.1)
    assert torch.allclose(sums[2], again[2], rtol=1e-12)
    assert not torch.allclose(sums[0].double(), sums[2], atol=0.1)


def test_memory_is_the_strategys() -> None:
    assert CorrelatedNoise(BandedToeplitz(steps=9, bands=[1.0, 0.5, 0.2])).memory == 2
    assert CorrelatedNoise(BufferedToeplitz(steps=9, decays=(0.5,), weights=(0.2,))).memory == 1


def test_wrong_use_is_told() -> None:
    noise = CorrelatedNoise(SquareRoot(steps=3), seed=5)
    noise.add_([torch.zeros(2)], step=0, stddevs=[1.0])
    with pytest.raises(ParameterError, match="step must be below the strategy's 3, got 3"):
        noise.add_([torch.zeros(2)], step=3, stddevs=[1.0])
    with pytest.raises(ParameterError, match="stddevs must stay the same at every step"):
        noise.add_([torch.zeros(2)], step=1, stddevs=[1.1])
    with pytest.raises(ParameterError, match="stddevs must stay the same at every step"):
        noise.add_([torch.zeros(3)], step=1, stddevs=[1.0])
    with pytest.raises(
        ParameterError, match="noise must be independent for a number released beside the gradients"
    ):
        noise.scalar(step=0, stddev=1.0)
    assert noise.simulated
    assert not CorrelatedNoise(SquareRoot(steps=3)).simulated
    assert not CorrelatedNoise(SquareRoot(steps=3)).float_safe


def test_steps_in_order_draw_each_row_once(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[int] = []

    def recorded(entries: np.ndarray, key: bytes, *, stream: tuple[int, int], **more: Any) -> None:
        drawn.append(stream[0])
        add_normals(entries, key, stream=stream, **more)

    monkeypatch.setattr(correlated, "add_normals", recorded)
    noise = CorrelatedNoise(STRATEGIES["banded"](STEPS), seed=3)
    whole = run(noise, 2)
    assert drawn == list(range(STEPS))
    # The last step is given again as it is; an earlier one is drawn anew from the first.
    again = np.zeros((2, 2))
    for place, step in enumerate((STEPS - 1, 3)):
        noise.add_([torch.from_numpy(again[place])], step=step, stddevs=[1.0])
    assert (again == whole[[STEPS - 1, 3]]).all()
    assert drawn == [*range(STEPS), *range(4)]
