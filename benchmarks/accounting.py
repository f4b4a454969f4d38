"""The accountant's jobs and their limits, cold: every cache of sfumato is emptied before each run.

CPU seconds, medians in one process; what goes to the disk is in seconds of the clock. With ``--peers``,
dp-accounting does the same jobs in an environment of its own. With ``--readings``, every reading of one run
over its first epsilon, which comes before each of them and is not in it.
"""

from __future__ import annotations

import argparse
import functools
import gc
import json
import math
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks.environments import interpreter, script, title
from sfumato.ledger import Budget, Dataset, Ledger, PrivacyFilter
from sfumato.numerics.interval import Interval
from sfumato.privacy import (
    DiscreteGaussian,
    Gaussian,
    Laplace,
    Neighboring,
    PoissonSubsampled,
    Precision,
    PrivacyLoss,
    PureDP,
    RandomAllocation,
    Shuffled,
    calibrate,
    compose,
)

__all__ = ["JOBS", "main", "mixed"]

FINE: Final = Precision(relative=1e-4)


class Job(NamedTuple):
    """One row: what it is, its limit in seconds, and what does it."""

    title: str
    limit: float
    run: Callable[[], Interval | float | str]


def training(probability: float, noise: float, steps: int) -> PrivacyLoss:
    """Return DP-SGD on Poisson samples."""
    return PoissonSubsampled(Gaussian(noise), sampling_probability=probability) * steps


def mixed() -> PrivacyLoss:
    """Return 200 different mechanisms of five kinds."""
    return compose(
        part
        for i in range(40)
        for part in (
            Laplace(20.0 + i),
            Gaussian(20.5 + i),
            DiscreteGaussian(20 + i),
            PureDP(0.02 + 0.001 * i),
            PoissonSubsampled(Gaussian(0.8 + 0.03 * i), sampling_probability=0.005 + 0.0004 * i),
        )
    )


def distinct() -> PrivacyLoss:
    """Return 2,000 different subsampled Gaussians, 100 times each."""
    return compose(training(0.001 + 1e-6 * i, 0.8 + 0.001 * i, 100) for i in range(2000))


def calibrated(epsilon: float) -> float:
    """Return the noise of 10,000 steps."""
    return calibrate(lambda noise: training(0.01, noise, 10_000), epsilon=epsilon, delta=1e-5)


def in_memory(count: int = 100_000) -> str:
    """Charge a filter without a file."""
    account = PrivacyFilter(Budget.approximate(epsilon=10.0, delta=1e-6))
    loss = Gaussian(3000.0)
    for _ in range(count):
        account.charge(loss, delta=1e-12)
    return f"{account.charges:,} charges"


def durable(count: int = 10_000) -> str:
    """Charge a ledger in a file, each charge on the disk before the next."""
    loss = Gaussian(3000.0)
    with (
        tempfile.TemporaryDirectory() as folder,
        Ledger.open(
            Path(folder) / "bench.ledger",
            budget=Budget.approximate(epsilon=4.0, delta=1e-6),
            privacy_unit="id",
            neighboring=Neighboring.ADD_REMOVE,
            dataset=Dataset(schema="people(id BIGINT)", fingerprint=lambda key: key.hex()),
        ) as ledger,
    ):
        for _ in range(count):
            ledger.charge(loss, delta=1e-12)
    return f"{count:,} charges"


JOBS: Final[dict[str, Job]] = {
    **{
        f"sgd {delta:g}": Job(
            f"DP-SGD q=.01 sigma=1 T=1e4, delta {delta:g}",
            limit,
            functools.partial(lambda d: training(0.01, 1.0, 10_000).epsilon_interval(d), delta),
        )
        for delta, limit in ((1e-5, 0.005), (1e-15, 0.010), (1e-30, 0.010))
    },
    "rare": Job(
        "q=1e-5 sigma=.5 T=1e6, delta 1e-5",
        0.1,
        lambda: training(1e-5, 0.5, 10**6).epsilon_interval(1e-5),
    ),
    "mixed": Job(
        "200 mixed mechanisms, width 1e-4", 0.2, lambda: mixed().epsilon_interval(1e-5, precision=FINE)
    ),
    "distinct": Job(
        "2,000 subsampled Gaussians x 100, delta 1e-8", 1.0, lambda: distinct().epsilon_interval(1e-8)
    ),
    "calibrate 1": Job("calibration of sigma, epsilon 1", 0.05, lambda: calibrated(1.0)),
    "calibrate 8": Job("calibration of sigma, epsilon 8", 0.05, lambda: calibrated(8.0)),
    "shuffle": Job(
        "shuffle n=1e7, epsilon0 1, delta 1e-6, width 1e-4",
        0.5,
        lambda: Shuffled(PureDP(1.0, neighboring=Neighboring.REPLACE_ONE), clients=10**7).epsilon_interval(
            1e-6, precision=FINE
        ),
    ),
    **{
        f"allocation {steps}": Job(
            f"random allocation t={steps}, sigma=1, delta 1e-5",
            1.0,
            functools.partial(lambda t: RandomAllocation(Gaussian(1.0), t).epsilon_interval(1e-5), steps),
        )
        for steps in (100, 10_000)
    },
    "distinct steps": Job(
        "10,000 different subsampled Gaussians, delta 1e-5",
        2.0,
        lambda: compose(training(0.01, 1.0 + 1e-4 * i, 1) for i in range(10_000)).epsilon_interval(1e-5),
    ),
    "distinct leaves": Job(
        "10,000 different Laplace leaves, delta 1e-5",
        1.0,
        lambda: compose(Laplace(100.0 + 0.01 * i) for i in range(10_000)).epsilon_interval(1e-5),
    ),
    "deep": Job("PureDP(1) x 1e6, delta .5", 0.05, lambda: (PureDP(1.0) * 10**6).epsilon_interval(0.5)),
    "filter": Job("filter in memory, 100,000 charges", 2.0, in_memory),
    "ledger": Job("ledger in a file, 10,000 charges (clock)", 60.0, durable),
}


def common() -> PrivacyLoss:
    """Return a thousand steps of DP-SGD."""
    return training(0.01, 1.0, 1000)


READINGS: Final[dict[str, tuple[float, Callable[[PrivacyLoss], object]]]] = {
    "delta at epsilon 1": (0.05, lambda loss: loss.delta_interval(1.0)),
    "trade-off at .05": (0.05, lambda loss: loss.trade_off(0.05)),
    "risk": (0.05, lambda loss: loss.risk().advantage),
    "rdp of order 2": (0.05, lambda loss: loss.rdp(2.0)),
    "mean and variance of the loss": (
        0.05,
        lambda loss: (loss.loss_variable().mean, loss.loss_variable().variance),
    ),
    "tail of the loss at 1": (0.05, lambda loss: loss.loss_variable().tail(1.0)),
    "median of the loss": (0.05, lambda loss: loss.loss_variable().quantile(0.5)),
    "quantile .99 of the loss": (0.05, lambda loss: loss.loss_variable().quantile(0.99)),
    "profile, 33 points": (0.15, lambda loss: loss.curve("profile")),
    "trade-off curve, 33 points": (0.15, lambda loss: loss.curve("trade-off")),
    "distribution of the loss, 33 points": (0.15, lambda loss: loss.loss_variable().curve()),
    "epsilon over steps, 33 points": (0.15, lambda loss: loss.curve("steps", delta=1e-5)),
}
"""Each with its limit in seconds, after the first epsilon."""


def _readings(repeats: int) -> None:
    print(f"{'reading of q=.01 sigma=1 T=1000':<50} {'limit, s':>9} {'seconds':>9} {'over epsilon':>13}")
    for name, (limit, read) in READINGS.items():
        firsts, times = [], []
        for _ in range(repeats):
            for clear in _caches():
                clear()
            loss = common()
            start = time.process_time()
            loss.epsilon(1e-5)
            between = time.process_time()
            read(loss)
            firsts.append(between - start)
            times.append(time.process_time() - between)
        seconds = statistics.median(times)
        print(f"{name:<50} {limit:>9g} {seconds:>9.4f} {seconds / statistics.median(firsts):>13.1f}")


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks accounting", description=__doc__)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--jobs", nargs="+", choices=sorted(JOBS), default=list(JOBS))
    parser.add_argument("--peers", action="store_true", help="run dp-accounting beside it; some minutes")
    parser.add_argument("--readings", action="store_true", help="every reading of one run, and nothing else")
    options = parser.parse_args(argv)
    if options.readings:
        training(0.5, 2.0, 3).epsilon_interval(1e-5)
        _readings(options.repeats)
        return 0
    theirs = _theirs() if options.peers else {}
    # What is loaded on first use is no part of a job.
    training(0.5, 2.0, 3).epsilon_interval(1e-5)
    print(f"{'job':<50} {'limit, s':>9} {'seconds':>9}  answer")
    for name in options.jobs:
        job = JOBS[name]
        clock, repeats = (time.perf_counter, 1) if name == "ledger" else (time.process_time, options.repeats)
        seconds, answer = _measured(job.run, clock, repeats)
        print(f"{job.title:<50} {job.limit:>9g} {seconds:>9.4f}  {_said(answer)}")
        for label, (taken, value) in theirs.get(name, {}).items():
            print(f"{'  ' + label:<50} {'':>9} {taken:>9.4f}  {value}")
    return 0


def _measured(
    run: Callable[[], Interval | float | str], clock: Callable[[], float], repeats: int
) -> tuple[float, Interval | float | str]:
    times = []
    for _ in range(repeats):
        for clear in _caches():
            clear()
        start = clock()
        answer = run()
        times.append(clock() - start)
        if sum(times) > 30:
            break
    return statistics.median(times), answer


def _caches() -> Iterator[Callable[[], None]]:
    """Yield what empties each cached function of sfumato."""
    cached = type(functools.cache(len))
    for thing in gc.get_objects():
        if isinstance(thing, cached) and thing.__module__.startswith("sfumato"):
            yield thing.cache_clear


def _said(answer: Interval | float | str) -> str:
    if isinstance(answer, Interval):
        width = (answer.upper - answer.lower) / answer.upper if answer.upper else math.nan
        return f"[{answer.lower:.7g}, {answer.upper:.7g}], width {width:.1e}" + (
            "" if answer.tight else ", upper bound only"
        )
    return answer if isinstance(answer, str) else f"{answer:.7g}"


def _theirs() -> dict[str, dict[str, tuple[float, str]]]:
    peer = "dp_accounting"
    command = [interpreter(peer), script(peer, "accounting")]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, dict[str, tuple[float, str]]] = json.loads(done.stdout)
    return {
        job: {f"{title(peer)}, {label}": pair for label, pair in rows.items()} for job, rows in found.items()
    }
