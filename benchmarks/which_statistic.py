"""The error of each statistic at epsilon 1, from 100 to a million records: the table of its page in the docs.

An error is the root of the mean square of the release's distance from the data's own answer. Beside it, in
parentheses, stands the same of the data's answer from the population's: the error of sampling, which no
privacy causes. Selections are measured by what share of the wanted they find.

``python -m benchmarks which-statistic [--question TEXT] [--sizes N ...] [--write docs/statistics.md]``
"""

from __future__ import annotations

import argparse
import math
import zlib
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.mechanisms import (
    BinaryTree,
    CoinPress,
    Extreme,
    Gaussian,
    Histogram,
    Laplace,
    LeastSquares,
    Mean,
    ParallelComposition,
    PureContinualSum,
    Quantile,
    Quantiles,
    QuantileTree,
    SecondMoments,
    StabilityHistogram,
    TheilSen,
    TopK,
    UnknownDomainTopK,
    Variance,
)
from sfumato.privacy.neighboring import Neighboring

__all__ = ["QUESTIONS", "RUNS", "SIZES", "Question", "cell", "main", "table"]

SIZES: Final = (100, 1_000, 10_000, 100_000, 1_000_000)
RUNS: Final = {100: 400, 1_000: 400, 10_000: 200, 100_000: 60, 1_000_000: 20}
DELTA: Final = 1e-6
BEGIN, END = "<!-- figures: python -m benchmarks which-statistic -->", "<!-- end of figures -->"
_AGES: Final = (0.0, 100.0)
_DECILES: Final = tuple(k / 10 for k in range(1, 10))
_CENTILES: Final = tuple(k / 100 for k in range(1, 100))
_NORMAL: Final = (-1.2815515655, -0.8416212336, -0.5244005127, -0.2533471031, 0.0)
_ZIPF: Final = 1 / np.arange(1, 501) / (1 / np.arange(1, 501)).sum()

Floats = NDArray[np.float64]

_laplace = cache(partial(Laplace.for_query, epsilon=1.0))
_gaussian = cache(partial(Gaussian.for_query, epsilon=1.0, delta=DELTA))
_quantile = cache(partial(Quantile, quantile=0.5, bounds=_AGES, epsilon=1.0))
_quantiles = cache(partial(Quantiles, quantiles=_DECILES, bounds=_AGES, epsilon=1.0))
_tree = cache(partial(QuantileTree.calibrated, quantiles=_CENTILES, bounds=_AGES, epsilon=1.0))
_coinpress = cache(partial(CoinPress.calibrated, epsilon=1.0, delta=DELTA, bounds=(-1e6, 1e6), stddev=15.0))
_extreme = cache(partial(Extreme, bounds=_AGES, epsilon=1.0))
_histogram = cache(partial(StabilityHistogram.calibrated, epsilon=1.0, delta=DELTA))
_top_k = cache(partial(TopK.calibrated, sensitivity=1, epsilon=1.0, count=10, l0=1, monotone=True))
_unknown_top_k = cache(partial(UnknownDomainTopK.calibrated, epsilon=1.0, delta=DELTA, count=10, l0=1))


class Outcome(NamedTuple):
    """What one run found.

    Parameters
    ----------
    error : array
        Distances from the data's own answer, or shares that were found.
    sampling : array or None
        Distances of the data's answer from the population's.
    """

    error: Floats
    sampling: Floats | None = None


class Question(NamedTuple):
    """A row of the table.

    Parameters
    ----------
    text : str
        The question, with the unit of the error.
    use : str
        What answers it.
    cost : str
        Of the answer.
    run : callable
        From a generator and a number of records to an outcome.
    share : bool
        Whether outcomes are shares in percent, to be averaged.
    runs : int, optional
        The most runs, where fewer do than `RUNS` says.
    """

    text: str
    use: str
    cost: str
    run: Callable[[np.random.Generator, int], Outcome]
    share: bool = False
    runs: int | None = None


def _outcome(released: Any, exact: Any, truth: Any = None) -> Outcome:
    error = np.atleast_1d(np.asarray(released, np.float64) - np.asarray(exact, np.float64))
    return Outcome(error, None if truth is None else np.atleast_1d(np.asarray(exact - truth, np.float64)))


def _ages(rng: np.random.Generator, n: int) -> Floats:
    return np.clip(rng.normal(50, 15, n), *_AGES)


def _mean(rng: np.random.Generator, n: int) -> Outcome:
    query, ages = Mean(bounds=_AGES), _ages(rng, n)
    release = _laplace(query).release(ages, rng)
    return _outcome(query.estimate(release), ages.mean(), 50)


def _mean_in_wide_bounds(rng: np.random.Generator, n: int) -> Outcome:
    data = rng.normal(50, 15, n)
    return _outcome(_coinpress().release(data, rng).value, data.mean(), 50)


def _median(rng: np.random.Generator, n: int) -> Outcome:
    ages = _ages(rng, n)
    found = _quantile().release(ages, rng).value
    return _outcome(found, np.median(ages), 50)


def _deciles(rng: np.random.Generator, n: int) -> Outcome:
    ages = _ages(rng, n)
    found = _quantiles().release(ages, rng).value
    half = np.array(_NORMAL)
    truth = 50 + 15 * np.concatenate([half, -half[-2::-1]])
    return _outcome(found, np.quantile(ages, _DECILES), truth)


def _centiles(rng: np.random.Generator, n: int) -> Outcome:
    ages = _ages(rng, n)
    found = _tree().release(ages, rng).value
    return _outcome(found, np.quantile(ages, _CENTILES))


def _largest(rng: np.random.Generator, n: int) -> Outcome:
    ages = rng.uniform(0, 90, n)
    return _outcome(_extreme().release(ages, rng).value, ages.max(), 90)


def _stddev(rng: np.random.Generator, n: int) -> Outcome:
    query, ages = Variance(bounds=_AGES), _ages(rng, n)
    release = _laplace(query).release(ages, rng)
    return _outcome(math.sqrt(query.estimate(release)), ages.std(), 15)


def _share(rng: np.random.Generator, n: int) -> Outcome:
    answers = rng.random(n) < 0.3
    query = Mean(bounds=(0.0, 1.0))
    release = _laplace(query).release(answers, rng)
    return _outcome(100 * query.estimate(release), 100 * answers.mean(), 30)


def _difference(rng: np.random.Generator, n: int) -> Outcome:
    query = Mean(bounds=_AGES)
    part = _laplace(query)
    groups = [_ages(rng, n // 2), _ages(rng, n // 2)]
    both = ParallelComposition(parts={"a": part, "b": part}).release(groups, rng)
    first, second = (query.estimate(release) for release in both.parts.values())  # type: ignore[arg-type]
    return _outcome(first - second, groups[0].mean() - groups[1].mean(), 0)


def _correlation(rng: np.random.Generator, n: int) -> Outcome:
    pairs = rng.multivariate_normal([0, 0], [[1, 0.5], [0.5, 1]], n)
    query = SecondMoments(columns=2, radius=4.0)
    release = _gaussian(query).release(pairs, rng)
    matrix = np.asarray(query.estimate(release))
    scale = math.sqrt(max(matrix[0, 0] * matrix[1, 1], 1e-12))
    return _outcome(float(np.clip(matrix[0, 1] / scale, -1, 1)), np.asarray(np.corrcoef(pairs.T))[0, 1], 0.5)


def _line(rng: np.random.Generator, n: int) -> Floats:
    x = rng.uniform(0, 10, n)
    return np.stack([x, 3 + 0.5 * x + rng.normal(0, 2, n)], axis=1)


def _slope(rng: np.random.Generator, n: int) -> Outcome:
    data, query = _line(rng, n), LeastSquares(bounds=((0.0, 10.0), (-5.0, 16.0)))
    release = _gaussian(query).release(data, rng)
    return _outcome(query.estimate(release).slopes[0], np.polyfit(data[:, 0], data[:, 1], 1)[0], 0.5)


def _robust_slope(rng: np.random.Generator, n: int) -> Outcome:
    data = _line(rng, n)
    mechanism = TheilSen(
        slope_bounds=(-10.0, 10.0),
        intercept_bounds=(-100.0, 100.0),
        epsilon=1.0,
        neighboring=Neighboring.REPLACE_ONE,
    )
    return _outcome(
        mechanism.release(data, rng).value.slopes[0], np.polyfit(data[:, 0], data[:, 1], 1)[0], 0.5
    )


def _counts(rng: np.random.Generator, n: int) -> Outcome:
    groups, query = rng.integers(0, 50, n), Histogram(categories=tuple(range(50)))
    release = _laplace(query).release(groups, rng)
    return _outcome(release.value, np.bincount(groups, minlength=50))


def _keys(n: int) -> dict[Any, int]:
    return {key: count for key, count in enumerate(np.rint(n * _ZIPF).astype(int).tolist()) if count}


def _unknown_groups(rng: np.random.Generator, n: int) -> Outcome:
    keys = _keys(n)
    shown = _histogram().release(keys, rng).value
    return Outcome(np.array([100 * sum(keys[key] for key in shown) / sum(keys.values())]))


def _found(listed: Sequence[Any]) -> Outcome:
    return Outcome(np.array([10.0 * len({key for key in listed if key is not None and key < 10})]))


def _top(rng: np.random.Generator, n: int) -> Outcome:
    return _found(_top_k().release(np.rint(n * _ZIPF).astype(np.int64), rng).value)


def _unknown_top(rng: np.random.Generator, n: int) -> Outcome:
    return _found(_unknown_top_k().release(_keys(n), rng).value)


def _stream(_: np.random.Generator, n: int) -> Outcome:
    """Return the deviations of the sums themselves: nothing is drawn."""
    return Outcome(
        PureContinualSum.calibrated(strategy=BinaryTree(steps=n), sensitivity=1, epsilon=1.0).stddevs
    )


QUESTIONS: Final = (
    Question("a mean, between 0 and 100", "`Mean` with `Laplace`", "1", _mean),
    Question("a mean, bounds of a million either way", "`CoinPress`", "1, delta 1e-6", _mean_in_wide_bounds),
    Question("a median, between 0 and 100", "`Quantile`", "1", _median),
    Question("nine deciles", "`Quantiles`", "1", _deciles),
    Question("99 percentiles", "`QuantileTree`", "1", _centiles),
    Question("the largest value, of 0 to 90", "`Extreme`", "1", _largest),
    Question("a standard deviation (15)", "`Variance` with `Laplace`", "1", _stddev),
    Question("a share, in percentage points", "`Mean` of 0 and 1 with `Laplace`", "1", _share),
    Question("the difference of two groups' means", "`ParallelComposition` of `Mean`", "1", _difference),
    Question("a correlation (0.5)", "`SecondMoments` with `Gaussian`", "1, delta 1e-6", _correlation),
    Question("a slope (0.5)", "`LeastSquares` with `Gaussian`", "1, delta 1e-6", _slope),
    Question("a slope, with outliers about", "`TheilSen`", "1", _robust_slope, runs=16),
    Question("counts of 50 listed groups", "`Histogram` with `Laplace`", "1", _counts),
    Question(
        "groups nobody listed: people in those shown, %",
        "`StabilityHistogram`",
        "1, delta 1e-6",
        _unknown_groups,
        share=True,
    ),
    Question("the top 10 of 500 listed keys: found, %", "`TopK`", "1", _top, share=True),
    Question(
        "the top 10 of keys nobody listed: found, %",
        "`UnknownDomainTopK`",
        "1, delta 1e-6",
        _unknown_top,
        share=True,
    ),
    Question("a running total over as many steps", "`PureContinualSum`", "1", _stream, runs=1),
)


def cell(question: Question, n: int) -> str:
    """Return a figure of the table: always the same, as each has seeds of its own."""
    rng = np.random.default_rng([zlib.crc32(question.text.encode()), n])
    outcomes = [question.run(rng, n) for _ in range(min(RUNS[n], question.runs or RUNS[n]))]
    if question.share:
        return f"{np.mean([outcome.error for outcome in outcomes]):.0f}"
    error = _root([outcome.error for outcome in outcomes])
    if outcomes[0].sampling is None:
        return _shown(error)
    return f"{_shown(error)} ({_shown(_root([outcome.sampling for outcome in outcomes]))})"


def table(questions: Sequence[Question] = QUESTIONS, sizes: Sequence[int] = SIZES) -> Iterator[list[str]]:
    """Yield the rows of the table, the header first."""
    yield ["question", "use", "epsilon", *(f"{n:,}" for n in sizes)]
    for question in questions:
        yield [question.text, question.use, question.cost, *(cell(question, n) for n in sizes)]


def _root(found: Sequence[Any]) -> float:
    return float(np.sqrt(np.mean([np.mean(np.square(each)) for each in found])))


def _shown(number: float) -> str:
    """Return two digits, without an exponent."""
    if not number:
        return "0"
    rounded = float(f"{number:.1e}")
    return f"{rounded:,.{max(0, 1 - math.floor(math.log10(rounded)))}f}"


def _lines(rows: Iterator[list[str]]) -> Iterator[str]:
    for number, row in enumerate(rows):
        yield "| " + " | ".join(row) + " |"
        if not number:
            yield "|" + " --- |" * 3 + " ---: |" * (len(row) - 3)


def main(argv: Sequence[str]) -> int:
    """Print the table, and put it into the page where that is asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks which-statistic", description=__doc__)
    parser.add_argument("--question", default="", help="rows whose question holds this text")
    parser.add_argument("--sizes", type=int, nargs="+", choices=SIZES, default=list(SIZES))
    parser.add_argument("--write", type=Path, help="the page whose table is replaced")
    given = parser.parse_args(argv)
    chosen = [question for question in QUESTIONS if given.question in question.text]
    lines = []
    for line in _lines(table(chosen, given.sizes)):
        print(line, flush=True)
        lines.append(line)
    if given.write is not None:
        page = given.write.read_text(encoding="utf-8")
        before, after = page[: page.index(BEGIN)], page[page.index(END) :]
        given.write.write_text(f"{before}{BEGIN}\n\n" + "\n".join(lines) + f"\n\n{after}", encoding="utf-8")
    return 0
