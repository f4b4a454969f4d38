"""Every leaf at the edges of its parameters, and every node around a few of them."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from fractions import Fraction

from sfumato.privacy import (
    CDP,
    ZCDP,
    AdaptiveChoice,
    AmongDecoys,
    ApproximateDP,
    BallsInBins,
    DiscreteGaussian,
    DiscreteGaussianSum,
    DiscreteGaussianVector,
    DiscreteLaplace,
    DiscretePair,
    DistanceTest,
    Exponential,
    FixedSizeSampled,
    Gaussian,
    GaussianDP,
    GaussianSparseVector,
    GroupPrivacy,
    Laplace,
    MaxNoise,
    Mixture,
    Neighboring,
    NoisyIteration,
    Parallel,
    PoissonRecords,
    PoissonStopping,
    PoissonSubsampled,
    PostProcessed,
    PrivacyLoss,
    Profile,
    PureDP,
    RandomAllocation,
    RandomizedResponse,
    RandomStopping,
    RDPCurve,
    ReportNoisyMax,
    SampledWithReplacement,
    SeparatedPoisson,
    Shuffled,
    Skellam,
    SmoothGaussian,
    SmoothLaplace,
    SmoothSensitivity,
    SparseVector,
    Staircase,
    SupportResponse,
    ThresholdedSampling,
    ThresholdedSelection,
    TradeOff,
    TruncatedPoisson,
)

__all__ = ["ONE", "leaves", "nodes"]

LEAST, MOST = 5e-324, 1.7e308
LOSSES = (0.0, LEAST, 1e-310, 1e-200, 1e-30, 1e-8, 1e-3, 1.0, 30.0, 745.0, 1e6, 1e150, MOST)
"""Of what grows with the loss: epsilon, rho, mu, tau."""
NOISES = (0.0, LEAST, 1e-200, 1e-8, 1e-2, 1.0, 50.0, 1e8, 1e100, 1e200, MOST)
"""Of what falls with it: the scale of the noise in sensitivities."""
LATTICE = (0, Fraction(1, 10**100), Fraction(1, 1000), Fraction(1, 3), 1, 50, 10**9, 10**40, 10**300)
SOME = (0.0, LEAST, 1.0, MOST)
"""Each of the losses stands beside these, and these beside each."""
MASSES = (0.0, LEAST, 1e-300, 1e-30, 1e-6, 0.5, 1 - 2.0**-53)
ONE = Neighboring.ADD_REMOVE


def _declared() -> Iterator[PrivacyLoss]:
    for size in LOSSES:
        yield PureDP(size)
        yield ZCDP(size)
        yield GaussianDP(size)
        yield Exponential(size)
        yield from (Staircase(size, gamma) for gamma in (None, 0.0) if size)
        several = size in SOME
        yield from (ApproximateDP(size, mass) for mass in (MASSES if several else (1e-30, 0.5)))
        yield from (CDP(size, tau) for tau in (LOSSES if several else SOME))
        yield from (RandomizedResponse(size, categories) for categories in (2, 2**53))
        yield SupportResponse(size, Fraction(1, 2))
        yield SupportResponse(size, Fraction(1, 10**6), Fraction(1, 10**9))
        if size < 1e300:
            yield RDPCurve([1 + 2.0**-52, 2.0, 1e6], [size, size, 2 * size])
    for probability, threshold in ((0.0, 2), (2.0**-10, 2), (0.5, 1), (1 - 2.0**-53, 1024), (1.0, 1)):
        yield ThresholdedSampling(probability, threshold)
    yield RDPCurve([2.0], [0.0])
    yield Profile([0.0], [0.0])
    yield Profile([0.0], [1.0])
    for delta in (0.0, LEAST, 1e-300, 1e-9, 0.5):
        yield Profile([0.0, 1e-9, 1.0, 30.0], [0.5, 0.4, delta, delta / 2])
    for corner in (0, Fraction(1, 10**300), Fraction(1, 10**9), Fraction(1, 4), Fraction(1, 2)):
        yield TradeOff([0, corner or Fraction(1, 2), 1], [1, corner, 0])
    tiny = Fraction(1, 10**300)
    for p, q in (
        ([1], [1]),
        ([1, 0], [0, 1]),
        ([1 - tiny, tiny], [1, 0]),
        ([1 - tiny, tiny], [tiny, 1 - tiny]),
    ):
        yield DiscretePair(p, q)
    yield DiscretePair([Fraction(1, 2) + tiny, Fraction(1, 2) - tiny], [Fraction(1, 2), Fraction(1, 2)])


def _noise() -> Iterator[PrivacyLoss]:
    for noise in NOISES:
        yield Gaussian(noise)
        yield Laplace(noise)
        yield from (ReportNoisyMax(noise, noise=distribution) for distribution in MaxNoise)
        yield from (SparseVector(noise, other, positives=3) for other in (noise, 1.0, MOST))
        yield NoisyIteration(noise, 0)
        yield NoisyIteration(noise, 10**12)
        for smoothness in (0.0, LEAST, 1e-9, 1.0):
            yield SmoothSensitivity(noise, smoothness=smoothness)
            yield SmoothLaplace(noise, smoothness=smoothness)
            yield SmoothGaussian(noise, smoothness=smoothness)
    yield from (
        GaussianSparseVector(*noises, 10) for noises in ((0.0, 0.0), (0.0, 1.0), (1.0, 0.0), (8.0, 8.0))
    )
    for scale in LATTICE:
        for shift in (1, 40):
            yield DiscreteGaussian(scale, shift)
            yield DiscreteLaplace(scale, shift)
            yield DiscreteGaussianVector(scale, shift)
            yield DiscreteGaussianSum(scale, 3, shift, 2)
            yield Skellam(scale, 2, shift)


def _nodes() -> Iterator[PrivacyLoss]:
    responses: list[PrivacyLoss] = [
        *(PureDP(size) for size in (0.0, LEAST, 1.0, 745.0)),
        *(RandomizedResponse(size, 4, neighboring=ONE) for size in (0.0, 1.0, 40.0)),
    ]
    noises: list[PrivacyLoss] = [
        *(Gaussian(noise) for noise in (0.0, 1e-2, 1.0, MOST)),
        *(Laplace(noise) for noise in (0.0, 1.0)),
        DiscreteGaussian(1),
        DiscreteLaplace(3, 2),
    ]
    others: list[PrivacyLoss] = [
        ApproximateDP(1.0, 1e-9),
        ZCDP(0.0),
        CDP(0.0, 1.0),
        Staircase(1.0),
        TradeOff([0, Fraction(1, 4), 1], [1, Fraction(1, 4), 0]),
    ]
    for part in responses:
        replaced = _under(part, Neighboring.REPLACE_ONE)
        yield from (Shuffled(replaced, clients) for clients in (1, 100))
        if isinstance(part, RandomizedResponse):
            yield from (AmongDecoys(replaced, decoys, chance) for decoys, chance in ((0, 1), (50, 0.5)))
    for part in responses + noises:
        yield from (PoissonStopping(part, mean) for mean in (1e-6, 3.0))
        yield from (RandomStopping(part, shape, 0.1) for shape in (-0.5, 0.0, 2.0))
    for part in noises:
        yield from (ThresholdedSelection(part, *at) for at in ((1,), (30,), (9, 0.125)))
        yield DistanceTest(part, 5)
        if part in (Gaussian(1.0), Laplace(0.0)):
            yield PoissonRecords(part, 1e-3, 5)
    for part in responses + noises + others:
        yield from (PoissonSubsampled(part, chance) for chance in (1e-300, 0.5, 1.0))
        yield from (GroupPrivacy(part, steps, neighboring=ONE) for steps in (2, 7))
        yield AdaptiveChoice((part, PureDP(0.5)))
        yield Parallel((part, Gaussian(3.0)))
        yield PostProcessed(part)
        yield from (
            Mixture((part, PureDP(0.5)), (1 - share, share), told)
            for share in (1e-9, 0.5)
            for told in (True, False)
        )
        replaced = _under(part, Neighboring.REPLACE_ONE)
        yield from (FixedSizeSampled(replaced, size, 1000) for size in (1, 1000))
        yield SampledWithReplacement(replaced, 2, 1000)
        yield TruncatedPoisson(part, 0.01, 20, 1000)
    for part in (PureDP(0.0), PureDP(745.0), Gaussian(0.0), Gaussian(1.0), DiscreteGaussian(1), ZCDP(0.0)):
        yield RandomAllocation(part, 10)
        yield BallsInBins(part, 10, 2)
        yield SeparatedPoisson(part, 0.1, 3, 12)


def _under(part: PrivacyLoss, relation: Neighboring) -> PrivacyLoss:
    return type(part)(**{**part.parameters(), "neighboring": relation})


@functools.cache
def leaves() -> tuple[PrivacyLoss, ...]:
    """Return every leaf, made when first asked for."""
    return tuple(dict.fromkeys([*_declared(), *_noise()]))


@functools.cache
def nodes() -> tuple[PrivacyLoss, ...]:
    """Return every node, made when first asked for."""
    return tuple(dict.fromkeys(_nodes()))
