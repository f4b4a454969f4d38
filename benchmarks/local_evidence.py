"""Evidence for local estimators: squared error over theory, and how often 95 % intervals hold the truth.

One row for each estimator and epsilon. Most repeats are simulated by counts, which have the law of all
reports; vectors are reported one by one; surveys are enumerated exactly. A ratio should be within 3 % of 1,
and coverage from 95 to 96 %; the figures' own standard errors stand beside them. Rows whose figures are
outside by more than four of those are marked, and then the exit status is 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from sfumato import local
from sfumato.local import surveys
from sfumato.local.surveys.estimates.intervals import share_bounds

__all__ = ["Row", "measure_evidence"]

Array = NDArray[np.float64]

EPSILONS = (0.5, 1.0, 4.0)
FREQUENCY = (
    "RandomizedResponse",
    "SymmetricUnaryEncoding",
    "OptimizedUnaryEncoding",
    "baselines.BinaryLocalHashing",
    "OptimalLocalHashing",
    "SubsetSelection",
    "HadamardResponse",
    "OneBitHadamard",
    "ProjectiveGeometryResponse",
    "baselines.SummationHistogram",
    "baselines.ThresholdHistogram",
    "CountMeanSketch",
    "HadamardCountMeanSketch",
    "BitFlip",
)
AGAIN = (
    "LongitudinalRandomizedResponse",
    "LongitudinalUnaryEncoding",
    "LongitudinalLocalHashing",
    "MemoizedBitFlip",
)
"""Frequency oracles of one round, of devices that are asked again and again."""
MEANS = (
    "LaplaceMean",
    "OneBitMean",
    "PiecewiseMean",
    "HybridMean",
    "StochasticRoundingMean",
    "SquareWave",
    "MemoizedOneBitMean",
)
VECTORS = ("SphereSampling", "PrivUnit", "PrivUnitG", "ProjUnit")
QUESTIONS = ("SplitBudget", "SampledAttribute", "baselines.FakeData")
SHARES = np.arange(1.0, 65) ** -1.1
SHARES /= SHARES.sum()


@dataclass(frozen=True)
class Row:
    """One estimator's figures, with their standard errors; 0 for those that are exact."""

    name: str
    epsilon: float
    how: str
    ratio: float
    ratio_error: float
    held: float
    held_error: float
    conservative: bool = False

    @property
    def outside(self) -> bool:
        """Whether a figure is outside of what it should be; a conservative interval may hold more often."""
        far = abs(self.ratio - 1) > 0.03 + 4 * self.ratio_error
        low = self.held < 0.95 - 4 * self.held_error - 5e-4
        high = self.held > 0.96 + 4 * self.held_error and not self.conservative
        return far or low or high

    def __str__(self) -> str:
        error, chance = f"{self.ratio:.3f} ± {self.ratio_error:.3f}", f"{100 * self.held:.2f}"
        mark = "  outside" if self.outside else "  (more is right)" if self.conservative else ""
        coverage = f"{chance} ± {100 * self.held_error:.2f}"
        return f"{self.name:<34}{self.epsilon:>8.3g}  {self.how:<26}{error:>16}{coverage:>16}{mark}"


def _row(name: str, epsilon: float, how: str, squares: Array, held: Array, **more: Any) -> Row:
    """Make a row of squared errors over their theory and of hits, a line of each for every repeat."""
    ratios, hits = (part.reshape(len(part), -1).mean(axis=1) for part in (squares, held.astype(float)))
    root = np.sqrt(len(ratios))
    errors = float(ratios.std() / root), float(hits.std() / root)
    return Row(name, epsilon, how, float(ratios.mean()), errors[0], float(hits.mean()), errors[1], **more)


def _shares(found: Sequence[Any], truth: Array, theory: Array) -> tuple[Array, Array]:
    """Squared errors over theory, and hits, of estimates of the same shares."""
    raw = np.array([estimate.raw for estimate in found])
    ends = [estimate.interval(0.95) for estimate in found]
    held = np.array([(end.lower <= truth) & (truth <= end.upper) for end in ends])
    return (raw - truth) ** 2 / theory, held


def frequency(name: str, epsilon: float, repeats: int) -> Row:
    """A frequency oracle over 64 categories, a million people, shares as 1 / rank^1.1."""
    oracle = attrgetter(name)(local)(epsilon=epsilon, domain=local.Domain(range(64)))
    counts = np.rint(SHARES * 1_000_000).astype(np.int64)
    truth, generator = counts / counts.sum(), np.random.default_rng(1)
    found = [oracle.simulate(counts, generator) for _ in range(repeats)]
    squares, held = _shares(found, truth, oracle.error_model.variance(truth) / counts.sum())
    return _row(name, epsilon, f"{repeats:,} by counts, 64 shares", squares, held)


def number(name: str, epsilon: float, repeats: int, alike: bool) -> Row:
    """A mean of 100,000 numbers, all alike or of ten values from bound to bound."""
    steps = {} if "OneBit" in name else {"steps": 64}
    protocol = getattr(local, name)(epsilon=epsilon, bounds=(-1.0, 1.0), **steps)
    values = np.array([0.25]) if alike else np.linspace(-1, 1, 10) ** 3
    people = np.full(len(values), 100_000 // len(values))
    truth, generator = float(values.mean()), np.random.default_rng(2)
    theory = float(np.mean([protocol.variance(100_000, value) for value in values.tolist()]))
    squares, held = np.empty(repeats), np.empty(repeats)
    for at in range(repeats):
        estimate: Any = protocol.simulate(values, people, generator)
        mean = estimate.mean if name == "SquareWave" else estimate
        lower, upper, _ = mean.interval(0.95)
        squares[at], held[at] = (mean.mean - truth) ** 2 / theory, lower <= truth <= upper
    # One bit does not tell how far numbers differ, so that its variance is that of numbers all alike.
    how = f"{repeats:,} by counts, {'alike' if alike else 'ten values'}"
    conservative = not alike and name in ("OneBitMean", "HybridMean", "MemoizedOneBitMean")
    return _row(name, epsilon, how, squares, held, conservative=conservative)


def vector(name: str, epsilon: float, repeats: int) -> Row:
    """A mean of 400 vectors of five numbers, all alike, reported one by one."""
    more = {} if name == "SphereSampling" else {"candidates": 64}
    protocol = getattr(local, name)(epsilon=epsilon, dimension=5, **more)
    people, truth = 400, np.array([0.6, -0.3, 0.2, 0.0, 0.1])
    theory = protocol.variance(people, float(np.linalg.norm(truth)))
    squares, held = np.empty((repeats, 1)), np.empty((repeats, 5))
    generator = np.random.default_rng(3)
    for start in range(0, repeats, 100):
        batch = protocol.randomize_batch(np.tile(truth, (100 * people, 1)), generator)
        for at, part in enumerate(np.split(batch.records, 100), start):
            estimate = protocol.estimate(protocol.tally(part), people)
            lower, upper, _ = estimate.interval(0.95)
            squares[at] = ((estimate.mean - truth) ** 2).sum() / theory
            held[at] = (lower <= truth) & (truth <= upper)
    return _row(name, epsilon, f"{repeats:,} whole, 5 numbers", squares, held)


def vector_by_law(name: str, epsilon: float, repeats: int) -> Row:
    """The same of 2,000 vectors, drawn from the law of reports."""
    protocol = getattr(local, name)(epsilon=epsilon, dimension=5)
    people, truth, generator = 2000, np.array([0.6, -0.3, 0.2, 0.0, 0.1]), np.random.default_rng(10)
    theory = protocol.variance(people, float(np.linalg.norm(truth)))
    squares, held = np.empty((repeats, 1)), np.empty((repeats, 5))
    for at in range(repeats):
        estimate = protocol.simulate(truth[None, :], [people], generator)
        lower, upper, _ = estimate.interval(0.95)
        squares[at] = ((estimate.mean - truth) ** 2).sum() / theory
        held[at] = (lower <= truth) & (truth <= upper)
    return _row(name, epsilon, f"{repeats:,} by law, 5 numbers", squares, held)


def questions(name: str, epsilon: float, repeats: int) -> Row:
    """Three questions to a million people, with optimal local hashing."""
    domains = [local.Domain(range(size)) for size in (3, 5, 2)]
    protocol = attrgetter(name)(local)(epsilon=epsilon, domains=domains, oracle=local.OptimalLocalHashing)
    rows, people = [(0, 4, 1), (1, 4, 0), (2, 0, 0)], np.array([500_000, 300_000, 200_000])
    truths = [np.array([0.5, 0.3, 0.2]), np.array([0.2, 0, 0, 0, 0.8]), np.array([0.5, 0.5])]
    generator = np.random.default_rng(4)
    many = [protocol.simulate(rows, people, generator) for _ in range(repeats)]
    parts = []
    for at, truth in enumerate(truths):
        own = many[0][at]
        parts.append(
            _shares([each[at] for each in many], truth, own.error_model.variance(truth) / own.reports)
        )
    squares, held = (np.concatenate([part[side] for part in parts], axis=1) for side in (0, 1))
    return _row(name, epsilon, f"{repeats:,} by counts, 10 shares", squares, held)


def ranges(name: str, epsilon: float, repeats: int) -> Row:
    """A hundred ranges over 64 places, of a million people."""
    protocol = attrgetter(name)(local)(epsilon=epsilon, domain=local.Domain(range(64)))
    counts, generator = np.rint(SHARES * 1_000_000).astype(np.int64), np.random.default_rng(7)
    ends = np.sort(generator.integers(0, 64, (2, 100)), axis=0)
    reach = np.concatenate([[0.0], np.cumsum(counts / counts.sum())])
    truth = reach[ends[1] + 1] - reach[ends[0]]
    theory = protocol.variance(int(counts.sum()), *ends, counts / counts.sum())
    squares, held = np.empty((repeats, 100)), np.empty((repeats, 100))
    for at in range(repeats):
        found = protocol.simulate(counts, generator).ranges(*ends)
        lower, upper, _ = found.interval(0.95)
        squares[at], held[at] = (found.share - truth) ** 2 / theory, (lower <= truth) & (truth <= upper)
    return _row(name, epsilon, f"{repeats:,} by counts, 100 ranges", squares, held)


def marginals(name: str, epsilon: float, repeats: int) -> Row:
    """The three tables of two of three attributes with 3, 4 and 2 categories, of a million people."""
    domains, pairs = [local.Domain(range(size)) for size in (3, 4, 2)], [(0, 1), (0, 2), (1, 2)]
    more: dict[str, Any] = {"views": pairs} if name == "SampledMarginals" else {}
    protocol = attrgetter(name)(local)(epsilon=epsilon, domains=domains, **more)
    rows, generator = np.array(list(np.ndindex(3, 4, 2))), np.random.default_rng(8)
    people = np.rint(generator.dirichlet(np.ones(len(rows))) * 1_000_000).astype(np.int64)
    table = (people / people.sum()).reshape(3, 4, 2)
    many = [protocol.simulate(rows, people, generator) for _ in range(repeats)]
    parts = []
    for pair, other in zip(pairs, (2, 1, 0), strict=True):
        truth = table.sum(axis=other).ravel()
        found = [estimate.marginal(*pair) for estimate in many]
        theory = found[0].error_model.variance(truth) / found[0].reports
        parts.append(_shares(found, truth, theory))
    squares, held = (np.concatenate([part[side] for part in parts], axis=1) for side in (0, 1))
    return _row(name, epsilon, f"{repeats:,} by counts, 26 cells", squares, held)


def shuffled_counts(repeats: int) -> Row:
    """A histogram of 100,000 people over 8 categories, with a curator's noise."""
    domain = local.Domain(range(8))
    protocol = local.shuffle.ShuffledCounts(epsilon=1.0, delta=1e-6, clients=100_000, domain=domain)
    counts = np.array([50_000, 20_000, 10_000, 10_000, 5_000, 3_000, 1_500, 500])
    truth, generator = counts / counts.sum(), np.random.default_rng(9)
    found = [protocol.simulate(counts, generator) for _ in range(repeats)]
    squares, held = _shares(found, truth, np.full(8, protocol.variance(100_000)))
    return _row("ShuffledCounts", 1.0, f"{repeats:,} by counts, 8 shares", squares, held)


def shuffled(repeats: int) -> Row:
    """A histogram of 100,000 people over 64 categories, by several messages and a shuffler."""
    domain = local.Domain(range(64))
    protocol = local.shuffle.ShuffledHistogram(epsilon=1.0, delta=1e-6, clients=100_000, domain=domain)
    counts = np.rint(SHARES * 100_000).astype(np.int64)
    truth, generator = counts / counts.sum(), np.random.default_rng(5)
    found = [protocol.simulate(counts, generator) for _ in range(repeats)]
    theory = np.array([protocol.variance(int(counts.sum()), share) for share in truth.tolist()])
    squares, held = _shares(found, truth, theory)
    return _row("ShuffledHistogram", 1.0, f"{repeats:,} by counts, 64 shares", squares, held)


def strings(repeats: int) -> Row:
    """RAPPOR with its defaults: ten strings of a tenth of a million devices each, among 40 candidates."""
    oracle, generator = local.Rappor(), np.random.default_rng(6)
    people = {f"string {at}": 100_000 for at in range(10)}
    candidates = [*people, *(f"other {at}" for at in range(30))]
    squares, held = np.empty((repeats, 10)), np.empty((repeats, 10))
    for at in range(repeats):
        found = oracle.simulate(people, generator).decode(candidates)
        lower, upper, _ = found.interval(0.95)
        squares[at] = ((found.frequencies - 0.1) / found.stddev)[:10] ** 2
        held[at] = ((lower <= 0.1) & (upper >= 0.1))[:10]
    return _row("Rappor, decoded", oracle.epsilon, f"{repeats:,} by counts, 10 shares", squares, held)


def survey(name: str, design: Any, method: Any) -> Row:
    """A design with two answers, 3000 respondents, enumerated for nine prevalences."""
    count, ratios, held = 3000, [], []
    yes = np.arange(count + 1)
    low, slope = float(design.yes_if_false), float(design.slope)
    ends = [(end - low) / slope for end in share_bounds(yes, count, 0.95, method)]
    lower, upper = np.minimum(*ends), np.maximum(*ends)
    for theta in np.linspace(0.03, 0.97, 9):
        law = binom.pmf(yes, count, design.yes_rate(float(theta)))
        error = (yes / count - low) / slope - theta
        ratios.append(float(law @ error**2) / design.variance(count, float(theta)))
        held.append(float(law @ ((lower <= theta + 1e-12) & (theta - 1e-12 <= upper))))
    # How often a normal interval holds goes up and down with the prevalence, by some thousandths.
    spread = 0.0 if method == "clopper-pearson" else float(np.std(held) / 3)
    how = f"exact, {method}"
    return Row(name, design.epsilon, how, float(np.mean(ratios)), 0.0, float(np.mean(held)), spread)


def _jobs(share: float) -> Iterator[tuple[str, Callable[[], Row]]]:
    def times(repeats: int) -> int:
        return max(100, round(repeats * share / 100) * 100)

    families: list[tuple[Sequence[str], Callable[..., Row], int]] = [
        ((*FREQUENCY, *AGAIN), frequency, 2000),
        (MEANS, partial(number, alike=True), 20_000),
        (MEANS, partial(number, alike=False), 20_000),
        (VECTORS, vector, 3000),
        (VECTORS, vector_by_law, 3000),
        (QUESTIONS, questions, 2000),
        (("HierarchicalHistogram", "HaarHistogram"), ranges, 2000),
        (("SampledMarginals", "FourierMarginals"), marginals, 2000),
    ]
    for names, make, repeats in families:
        for name in names:
            yield from ((name, partial(make, name, epsilon, times(repeats))) for epsilon in EPSILONS)
    yield "ShuffledCounts", partial(shuffled_counts, times(4000))
    yield "ShuffledHistogram", partial(shuffled, times(2000))
    yield "Rappor, decoded", partial(strings, times(400))
    yield from _surveys()


def _surveys() -> Iterator[tuple[str, Callable[[], Row]]]:
    designs: dict[str, Any] = {
        "Warner": surveys.Warner(truth="7/10"),
        "UnrelatedQuestion": surveys.UnrelatedQuestion(sensitive="2/3", innocuous="1/4"),
        "ForcedResponse": surveys.ForcedResponse(yes="1/6", no="1/6"),
        "Crosswise": surveys.Crosswise(innocuous=0.25),
        "TwoCoins": surveys.TwoCoins(),
    }
    for name, design in designs.items():
        for method in ("clopper-pearson", "wilson", "wald"):
            yield name, partial(survey, name, design, method)


def measure_evidence(share: float, only: str) -> int:
    """Print the table, row by row; return how many rows are outside.

    Parameters
    ----------
    share : float
        Of the usual repeats, which take some minutes in all.
    only : str
        What the names of the wanted estimators have in them.
    """
    print(f"{'estimator':<34}{'epsilon':>8}  {'repeats':<26}{'error / theory':>16}{'held, %':>16}")
    outside = 0
    for name, job in _jobs(share):
        if only.lower() in name.lower():
            row = job()
            outside += row.outside
            print(row, flush=True)
    print(f"{outside} rows outside of 3 % or of 95 to 96 %, by more than four standard errors")
    return outside
