"""One run of all levels: by whom families are fitted, and where levels are written and shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from sfumato import _check
from sfumato._progress import StepProgress
from sfumato.numerics.randomness.source import RandomSource
from sfumato.synthetic.topdown.estimation import LevelEstimate, LevelEstimator
from sfumato.synthetic.topdown.state_file import StateFile
from sfumato.synthetic.topdown.unit_counts import LevelCounts
from sfumato.synthetic.topdown.workers.process_pool import FamilyWorkers, ProcessPool
from sfumato.synthetic.topdown.workers.spark_families import SparkFamilies

__all__ = ["LevelRun", "estimated_levels", "family_workers"]


class LevelRun(NamedTuple):
    """How a release is made: whether with intervals, by whom, and where levels are written and shown."""

    intervals: bool
    workers: FamilyWorkers
    file: StateFile | None
    progress: StepProgress | None


def family_workers(processes: int, spark: Any) -> FamilyWorkers:
    """Return who fits families: processes of this machine, or a Spark session's executors.

    Parameters
    ----------
    processes : int
    spark : pyspark.sql.SparkSession, SparkFamilies or None

    Returns
    -------
    FamilyWorkers

    Raises
    ------
    ParameterError
        If there is no process, or spark is no session.
    """
    number = _check.integer("processes", processes, minimum=1)
    if spark is None:
        return ProcessPool(number)
    return spark if isinstance(spark, SparkFamilies) else SparkFamilies.of(spark)


def estimated_levels(
    estimator: LevelEstimator, exact: Sequence[LevelCounts], source: RandomSource, file: StateFile | None
) -> tuple[list[LevelEstimate], bool]:
    """Return the estimates of all levels, and whether any noise was simulated.

    Parameters
    ----------
    estimator : LevelEstimator
    exact : sequence of LevelCounts
        Private, by level from the root.
    source : RandomSource
    file : StateFile or None
        Levels in it are done; others are written to it.

    Returns
    -------
    tuple of list of LevelEstimate and bool
    """
    estimates: list[LevelEstimate] = []
    simulated = source.simulated
    for depth, counts in enumerate(exact):
        done = None if file is None else file.read(depth)
        if done is not None:
            estimates.append(done[0])
            simulated |= done[1]
            continue
        above = estimates[-1].counts if estimates else None
        estimates.append(estimator.estimate(depth, counts, above, source))
        if file is not None:
            file.write(depth, estimates[-1], simulated=simulated)
    return estimates, simulated
