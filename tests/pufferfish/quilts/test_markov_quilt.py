from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from sfumato import pufferfish
from sfumato.errors import ParameterError
from sfumato.numerics.distributions.discrete import DiscreteLaplaceDistribution
from sfumato.pufferfish import MarkovChain, MarkovChainClass, MarkovChainInterval, MarkovQuilt

FIRST = MarkovChain(transition=[[0.9, 0.1], [0.4, 0.6]], start=[1, 0])
SECOND = MarkovChain(transition=[[0.8, 0.2], [0.3, 0.7]], start=[0.9, 0.1])


def test_the_scales_of_the_paper() -> None:
    first = MarkovQuilt(chain=FIRST, length=100, lipschitz=1.0, epsilon=1.0)
    assert first.scale == pytest.approx(13.0219235, abs=1e-6)
    # Node 8 is the worst, with the quilt X3, X13.
    assert next(run for run in first.active_quilts if run.first <= 8 <= run.last)[2:] == (5, 5)
    second = MarkovQuilt(chain=SECOND, length=100, lipschitz=1.0, epsilon=1.0)
    assert second.scale == pytest.approx(10.640193, abs=1e-6)
    assert next(run for run in second.active_quilts if run.first <= 6 <= run.last)[2:] == (0, 4)
    reachable = MarkovQuilt(chain=FIRST, length=100, epsilon=1.0, reachable_only=True)
    assert reachable.scale == pytest.approx(12.934051, abs=1e-6)
    independent = MarkovChain(transition=[[0.5, 0.5], [0.5, 0.5]], start=[0.5, 0.5])
    both = MarkovQuilt(
        chain=[FIRST, independent], length=100, lipschitz=1.0, epsilon=1.0, reachable_only=True
    )
    assert both.scale == reachable.scale  # the other chain needs less with any quilt
    assert first.group_scale == 100


@pytest.mark.parametrize(
    ("stay", "epsilon", "scale"),
    [
        ((0.9, 0.6), 1, 12.84), ((0.9, 0.6), 5, 0.706), ((0.8, 0.7), 1, 10.12), ((0.8, 0.7), 5, 0.401),
        ((0.6, 0.6), 1, 3.572), ((0.6, 0.6), 5, 0.239),
    ],
)  # fmt: skip
def test_stationary_chains(stay: tuple[float, float], epsilon: float, scale: float) -> None:
    chain = MarkovChain(transition=[[stay[0], 1 - stay[0]], [1 - stay[1], stay[1]]])
    assert MarkovQuilt(chain=chain, length=100, epsilon=epsilon).scale == pytest.approx(scale, rel=1.5e-3)


def test_independent_records_cost_what_differential_privacy_costs() -> None:
    chain = MarkovChain(transition=[[0.3, 0.7], [0.3, 0.7]])
    assert MarkovQuilt(chain=chain, length=100, lipschitz=1, epsilon=1.0).scale == pytest.approx(1, rel=1e-12)
    real = MarkovQuilt(chain=chain, length=100, lipschitz=0.5, epsilon=2.0)
    assert 0.25 <= real.scale <= 0.25 * (1 + 1e-7)


def test_records_that_never_change_cost_group_privacy() -> None:
    chain = MarkovChain(transition=np.eye(3), start=[0.2, 0.3, 0.5])
    quilt = MarkovQuilt(chain=chain, length=50, lipschitz=1, epsilon=2.0)
    assert quilt.scale == pytest.approx(25, rel=1e-12)
    assert quilt.active_quilts == ((1, 50, 0, 0),)


def test_nothing_to_hide_still_draws_noise() -> None:
    known = MarkovQuilt(chain=MarkovChain(transition=[[1.0]]), length=5, lipschitz=1, epsilon=2.0)
    assert known.scale == 0.5


def output_ratio(chain: MarkovChain, length: int, scale: float) -> float:
    """Return the largest log-ratio of the count's noisy density under two values of a record, by enumeration.

    Mixtures of Laplace densities at integers have their extreme ratios at the integers.
    """
    counts = {(node, x): np.zeros(length + 1) for node in range(length) for x in range(2)}
    for code in range(2**length):
        row = [code >> node & 1 for node in range(length)]
        weight = chain.start[row[0]] * math.prod(
            chain.transition[row[i], row[i + 1]] for i in range(length - 1)
        )
        for node in range(length):
            counts[node, row[node]][sum(row)] += weight
    points = np.arange(length + 1)
    kernel = np.exp(-np.abs(points[:, None] - points[None, :]) / scale)
    worst = 0.0
    for node in range(length):
        p, q = (
            (counts[node, x] / counts[node, x].sum() for x in range(2) if counts[node, x].sum())
            if min(counts[node, 0].sum(), counts[node, 1].sum()) > 0
            else (points, points)
        )
        ratio = np.log((kernel @ p) / (kernel @ q))
        worst = max(worst, float(np.abs(ratio).max()))
    return worst


def test_the_guarantee_holds_for_the_count_of_ten_records() -> None:
    for epsilon in (0.5, 3.0):
        scale = MarkovQuilt(chain=SECOND, length=10, lipschitz=1, epsilon=epsilon).scale
        assert output_ratio(SECOND, 10, scale) <= epsilon
        # The same noise as for independent records would not do.
        assert output_ratio(SECOND, 10, 1 / epsilon) > epsilon


def test_rounding_is_in_the_scale() -> None:
    whole = MarkovQuilt(chain=SECOND, length=100, lipschitz=1, epsilon=1.0)
    real = MarkovQuilt(chain=SECOND, length=100, lipschitz=1.0, epsilon=1.0, entries=50)
    one = MarkovQuilt(chain=SECOND, length=100, lipschitz=1.0, epsilon=1.0)
    assert whole.scale < one.scale < real.scale < whole.scale * (1 + 1e-6)
    released = whole.release(7, rng=1)
    assert isinstance(released.value, int)
    assert whole.distribution == DiscreteLaplaceDistribution(Fraction(whole.scale))
    assert isinstance(real.release(np.zeros(50), rng=1).value, np.ndarray)


def test_classes_need_at_least_the_noise_of_their_chains() -> None:
    chains = (FIRST, SECOND)
    alone = max(MarkovQuilt(chain=chain, length=100, lipschitz=1, epsilon=1.0).scale for chain in chains)
    both = MarkovQuilt(chain=chains, length=100, lipschitz=1, epsilon=1.0)
    assert both.scale >= alone
    assert both == MarkovQuilt(chain=list(chains), length=100, lipschitz=1, epsilon=1.0)
    for model in (
        MarkovChainClass.covering(*chains),
        MarkovChainInterval(lower=[[0.8, 0.1], [0.3, 0.6]], upper=[[0.9, 0.2], [0.4, 0.7]]),
    ):
        assert MarkovQuilt(chain=model, length=100, lipschitz=1, epsilon=1.0).scale > both.scale


def test_given_quilts() -> None:
    first = MarkovQuilt(chain=SECOND, length=100, lipschitz=1, epsilon=1.0)
    again = MarkovQuilt(chain=SECOND, length=100, lipschitz=1, epsilon=1.0, quilts=first.active_quilts)
    assert again.scale == pytest.approx(first.scale, rel=1e-12)
    half = MarkovQuilt(chain=SECOND, length=100, lipschitz=1, epsilon=2.0, quilts=first.active_quilts)
    assert half.scale < first.scale
    bad: list[tuple[tuple[int, ...], ...]] = [
        ((1, 100, 1, 1),),
        ((1, 99, 0, 0),),
        ((2, 100, 0, 0),),
        ((1, 100, 0, 0), (101, 101, 0, 0)),
        ((1, 100, -1, 0),),
    ]
    for runs in bad:
        with pytest.raises(ParameterError, match="quilts must cover each record and leak less than epsilon"):
            MarkovQuilt(chain=SECOND, length=100, epsilon=1.0, quilts=runs)  # type: ignore[arg-type]


def test_bad_parameters_are_refused() -> None:
    cases: tuple[dict[str, object], ...] = (
        {"length": 0},
        {"epsilon": 0.0},
        {"lipschitz": -1},
        {"entries": 0},
        {"chain": []},
        {"chain": 7},
    )
    for bad in cases:
        with pytest.raises(ParameterError):
            MarkovQuilt(**{"chain": FIRST, "length": 10, "epsilon": 1.0, **bad})  # type: ignore[arg-type]


def test_the_face_has_it() -> None:
    assert pufferfish.MarkovQuilt is MarkovQuilt
