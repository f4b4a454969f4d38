"""The base class of sparse vector mechanisms: "above" or "below" for each query, until a limit is reached."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import islice
from numbers import Rational
from typing import Any, ClassVar, Final, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.mechanisms.base.additive import as_bound, as_number
from sfumato.mechanisms.base.grid import Grid
from sfumato.mechanisms.base.lattice import Lattice
from sfumato.mechanisms.base.mechanism import Mechanism
from sfumato.mechanisms.base.rational import Number
from sfumato.mechanisms.base.release import Release
from sfumato.numerics.randomness.source import RandomSource, Rng, random_source
from sfumato.privacy.neighboring import Neighboring

__all__ = ["AboveThreshold", "SparseVectorRun", "Steps"]

Steps: TypeAlias = NDArray[np.int64]
_BLOCK: Final = 1 << 16


class SparseVectorRun(Protocol):
    """One run: a noisy threshold, and fresh noise for each query."""

    def above(self, steps: Any) -> Any:
        """Return whether a query, or each of an array of queries, is above; in whole steps."""

    def compare(self, steps: Any) -> tuple[Any, Any]:
        """Return the same, and the noisy queries where gaps may be released, else the queries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AboveThreshold(Mechanism):
    """Answers of each query whether it is above a threshold, until so many have been."""

    sensitivity: Number
    positives: int = 1
    threshold: Number = 0
    monotone: bool = False
    grid: Grid = None  # type: ignore[assignment]  # settled in __post_init__
    neighboring: Neighboring = Neighboring.ADD_REMOVE
    integral: bool = field(default=None, repr=False)  # type: ignore[assignment]  # settled in __post_init__

    _NOISES: ClassVar[tuple[str, str, str]]
    """Names of the noise on the threshold, on each query, and on a number where that is asked for."""

    def _settle(self) -> None:
        """Check what all runs have, and choose the grid."""
        object.__setattr__(self, "sensitivity", as_bound("sensitivity", self.sensitivity))
        remedy = f"pass epsilon= to {type(self).__name__}.calibrated to have it chosen"
        first, second, third = self._NOISES
        given = [first, second] if getattr(self, third) is None else [first, second, third]
        for name in given:
            object.__setattr__(self, name, as_number(name, getattr(self, name), remedy))
        finite = _check.finite("threshold", self.threshold)
        if not isinstance(self.threshold, Rational):
            object.__setattr__(self, "threshold", finite)
        widest = max(Fraction(getattr(self, name)) for name in (first, second))
        lattice = Lattice.settle_in(self, widest)
        for name in given:
            lattice.check_noise(name, Fraction(getattr(self, name)))

    @abstractmethod
    def _run(self, source: RandomSource) -> SparseVectorRun:
        """Draw a noisy threshold."""

    @abstractmethod
    def _number(self, steps: int, noisy: int, run: SparseVectorRun, source: RandomSource) -> int:
        """Return what is released of a query above, in steps: of the query and of its compared value."""

    @property
    def _numeric(self) -> bool:
        return getattr(self, self._NOISES[2]) is not None

    @property
    def _cap(self) -> int | None:
        """The most queries of a run."""
        return None

    def answers(self, queries: Iterable[Any], *, rng: Rng = None) -> Iterator[Any]:
        """Answer one query after another.

        Parameters
        ----------
        queries : iterable of numbers
            Exact answers, private; each is taken only after the one before it was answered, so a generator
            may choose it from the answers so far.
        rng : None, int, numpy Generator or RandomSource
            None draws from the operating system's entropy; anything seeded only simulates.

        Yields
        ------
        bool, int or float
            Whether the query is above; where answers are numbers or gaps, a number instead of True, which may
            be 0: compare with ``is False``. Ends with the last positive.
        """
        source = random_source(rng)
        run = self._run(source)
        left = self.positives
        for query in islice(queries, self._cap):
            steps = self._lattice.steps(query, name="queries")
            if not isinstance(steps, int):
                _check.refuse_type("queries", "be numbers", query, "pass an array of them to release instead")
            above, noisy = run.compare(steps)
            if not above:
                yield False
                continue
            yield self._released(self._number(steps, int(noisy), run, source)) if self._numeric else True
            left -= 1
            if not left:
                return

    def release(self, value: Any, rng: Rng = None) -> Release:
        """Answer an array of queries.

        Parameters
        ----------
        value : numpy array
            The exact answers, in one dimension.
        rng : None, int, numpy Generator or RandomSource
            None draws from the operating system's entropy; anything seeded only simulates.

        Returns
        -------
        Release
            Of the answers up to the last positive: booleans, or floats where answers are numbers or gaps,
            with NaN for "below".
        """
        steps = self._queries(value)
        source = random_source(rng)
        run = self._run(source)
        indices, noisy = self._positives(steps, run)
        end = indices[-1] + 1 if len(indices) == self.positives else len(steps)
        released: NDArray[Any]
        if self._numeric:
            released = np.full(end, np.nan)
            numbers = [
                self._number(int(query), int(compared), run, source)
                for query, compared in zip(steps[indices], noisy, strict=True)
            ]
            released[indices] = [float(self._released(number)) for number in numbers]
        else:
            released = np.zeros(end, dtype=np.bool_)
            released[indices] = True
        return self._release_as(Release, released, source)

    def _queries(self, value: Any) -> Steps:
        """Return an array of queries in steps, no more than a run has."""
        steps = np.atleast_1d(self._lattice.steps(value))
        if steps.ndim != 1:
            _check.refuse_type("value", "have one dimension", steps, "pass one query after another")
        return np.asarray(steps[: self._cap], np.int64)

    def _positives(self, steps: Steps, run: SparseVectorRun) -> tuple[Steps, Steps]:
        """Return indices and compared values of the first positives, at most as many as the run has."""
        none = np.zeros(0, np.int64)
        found, compared, left = [none], [none], self.positives
        for start in range(0, len(steps), _BLOCK):
            answers, noisy = run.compare(steps[start : start + _BLOCK])
            above = np.flatnonzero(answers)[:left]
            found.append(above + start)
            compared.append(noisy[above])
            left -= len(above)
            if not left:
                break
        return np.concatenate(found), np.concatenate(compared)

    def _released(self, steps: int) -> int | float:
        return steps if self.integral else float(steps * self.grid.step)

    @property
    def _lattice(self) -> Lattice:
        return Lattice(self.grid, self.integral)

    def _shift(self) -> int:
        return self._lattice.shift(self.sensitivity)
