"""From the root down: each level measured, fitted to its parents and rounded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, final

import numpy as np

from sfumato._progress import StepProgress
from sfumato.numerics.randomness.source import RandomSource
from sfumato.synthetic.topdown.cell_query import CellQuery
from sfumato.synthetic.topdown.family_batch import (
    BatchLimits,
    FamilyBatch,
    Weighted,
    fit_root,
    joined,
)
from sfumato.synthetic.topdown.hierarchy import Hierarchy, Nodes
from sfumato.synthetic.topdown.limits.joint_limits import JointLimits
from sfumato.synthetic.topdown.measurement import NoisyCounts, child_ranges, measure, measure_some
from sfumato.synthetic.topdown.noise_plan import LevelNoise
from sfumato.synthetic.topdown.unit_counts import LevelCounts
from sfumato.synthetic.topdown.workers.process_pool import FamilyWorkers

__all__ = ["LevelEstimate", "LevelEstimator"]

_BATCH: Final = 1 << 21


class LevelEstimate(NamedTuple):
    """Released counts of a level; its noisy counts, where asked for; how many families were not fitted."""

    counts: LevelCounts
    noisy: NoisyCounts | None
    unfinished: int


@final
@dataclass(frozen=True, slots=True, eq=False)
class LevelEstimator:
    """Measures a level and fits it to the released counts of the level above.

    Parameters
    ----------
    hierarchy : Hierarchy
    queries : sequence of CellQuery
    noise : sequence of LevelNoise
        Of all levels.
    limits : JointLimits or None
    cells : int
        How many cells the histogram has.
    possible : int64 array
        Those that may hold people: all but structural zeros.
    every : bool
        Whether all noisy counts are drawn, or only those that the fit needs.
    workers : FamilyWorkers
        Who fits the families of a level.
    progress : callable or None
    """

    hierarchy: Hierarchy
    queries: Sequence[CellQuery]
    noise: Sequence[LevelNoise]
    limits: JointLimits | None
    cells: int
    possible: Nodes
    every: bool
    workers: FamilyWorkers
    progress: StepProgress | None

    def estimate(
        self, depth: int, exact: LevelCounts, above: LevelCounts | None, source: RandomSource
    ) -> LevelEstimate:
        """Return the counts of a level.

        Parameters
        ----------
        depth : int
        exact : LevelCounts
            Of the level; private.
        above : LevelCounts or None
            Released, of the level above; None for the root.
        source : RandomSource

        Returns
        -------
        LevelEstimate
        """
        noise = self._noise(depth)
        if above is None:
            noisy = measure(exact, noise, self.queries, source)
            none = LevelCounts(np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.int64))
            limits = self._limits(depth, 0, 1)
            root = FamilyBatch(none, np.array([0, 1]), self._weighted(noise), noisy, limits)
            fitted = fit_root(root, self.possible)
            self._show(depth, 1)
            return LevelEstimate(fitted.counts, noisy if self.every else None, fitted.unfinished)
        drawn = measure(exact, noise, self.queries, source) if self.every else None
        parts, unfinished, done = [], 0, 0
        for fitted in self.workers.fitted(self._batches(depth, exact, above, drawn, source)):
            parts.append(fitted.counts)
            unfinished += fitted.unfinished
            done += len(fitted.counts.starts) - 1
            self._show(depth, done)
        return LevelEstimate(joined(parts), drawn, unfinished)

    def _show(self, depth: int, done: int) -> None:
        if self.progress is not None:
            self.progress(self.hierarchy.levels[depth], done, self.hierarchy.size(depth))

    def _noise(self, depth: int) -> list[LevelNoise]:
        return [each for each in self.noise if each.depth == depth]

    def _weighted(self, noise: Sequence[LevelNoise]) -> Mapping[int, Weighted]:
        found = {}
        for each in noise:
            query = self.queries[each.query]
            found[each.query] = Weighted(query.group_of, query.groups, float(1 / each.sigma**2))
        return found

    def _limits(self, depth: int, first: int, last: int) -> BatchLimits | None:
        if self.limits is None:
            return None
        apart = not self.limits.coupled[depth][first:last].any()
        parts = self.limits.parts[-1:] if apart else self.limits.parts  # the finest one's say all
        return BatchLimits(
            tuple(part.query.group_of for part in parts),
            tuple(part.lower[depth][first:last] for part in parts),
            tuple(part.upper[depth][first:last] for part in parts),
            self.limits.coarse,
            self.limits.below(depth, first, last),
        )

    def _batches(
        self,
        depth: int,
        exact: LevelCounts,
        above: LevelCounts,
        noisy: NoisyCounts | None,
        source: RandomSource,
    ) -> Iterator[FamilyBatch]:
        """Yield the families of a level, drawing noise as they come where it was not drawn before."""
        noise = self._noise(depth)
        starts, weighted = self.hierarchy.starts(depth - 1), self._weighted(noise)
        for low, high in child_ranges(starts, self.cells, _BATCH):
            first, last = int(starts[low]), int(starts[high])
            begin, end = above.starts[low], above.starts[high]
            parents = LevelCounts(
                above.starts[low : high + 1] - begin, above.cells[begin:end], above.counts[begin:end]
            )
            children = starts[low : high + 1] - first
            if noisy is not None:
                part: NoisyCounts = {i: array[first:last] for i, array in noisy.items()}
            else:
                present = zip(np.diff(children).tolist(), _cells_of(parents), strict=True)
                part = measure_some(
                    exact, noise, self.queries, source, children=(first, last), wanted=present
                )
            yield FamilyBatch(parents, children, weighted, part, self._limits(depth, first, last))


def _cells_of(counts: LevelCounts) -> Iterator[np.ndarray[tuple[int], np.dtype[np.int64]]]:
    for begin, end in zip(counts.starts[:-1].tolist(), counts.starts[1:].tolist(), strict=True):
        yield counts.cells[begin:end].astype(np.int64)
