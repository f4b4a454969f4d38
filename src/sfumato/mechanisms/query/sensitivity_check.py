"""A randomized search for neighboring datasets that refute a claimed sensitivity."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.mechanisms.base.sensitivity import Norm
from sfumato.mechanisms.query import neighboring_datasets
from sfumato.privacy.neighboring import Neighboring

__all__ = ["SensitivityReport", "Witness", "check_sensitivity"]

_CLIMBS = 8  # pairs that hill climbing starts from


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Witness:
    """Two made-up neighboring datasets and what the function says of each.

    Attributes
    ----------
    before, after : array
        The two datasets.
    answer_before, answer_after : object
        What the function returned for each; None where it raised.

    Examples
    --------
    >>> import numpy as np
    >>> report = check_sensitivity(np.mean, claimed=1 / 32, bounds=(0.0, 1.0), trials=500)
    >>> isinstance(report.witness, Witness)
    True
    """

    before: NDArray[Any]
    after: NDArray[Any]
    answer_before: Any
    answer_after: Any


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SensitivityReport:
    """What the search found.

    Parameters
    ----------
    claimed : float
        The sensitivity that was claimed.
    largest : float
        The largest move found; infinite where the answer is undefined on one neighbor only, or changes its
        shape.
    violated : bool
        Whether ``largest`` exceeds ``claimed``: then the claim is wrong. Otherwise nothing is proved.
    witness : Witness
        The pair with the largest move.
    neighboring : Neighboring
    norm : Norm
    trials : int
        Pairs that were tried.

    Examples
    --------
    >>> import numpy as np
    >>> report = check_sensitivity(lambda x: np.clip(x, 0, 1).sum(), claimed=1.0, trials=500)
    >>> report.violated, report.claimed
    (False, 1.0)
    """

    claimed: float
    largest: float
    violated: bool
    witness: Witness
    neighboring: Neighboring
    norm: Norm
    trials: int

    def __str__(self) -> str:
        verdict = "VIOLATED" if self.violated else "not refuted"
        return (
            f"{self.norm.value} sensitivity {self.claimed:g} ({self.neighboring}): {verdict}; "
            f"largest move {self.largest:g} in {self.trials} pairs"
        )


def check_sensitivity(
    function: Callable[[NDArray[Any]], Any],
    *,
    claimed: float,
    neighboring: Neighboring = Neighboring.ADD_REMOVE,
    norm: Norm = Norm.L1,
    bounds: tuple[float, float] | None = None,
    values: Sequence[Any] | None = None,
    sample: Callable[[np.random.Generator], Any] | None = None,
    sizes: tuple[int, int] = (1, 32),
    neutral: Any = 0.0,
    trials: int = 4000,
    tolerance: float = 1e-9,
    rng: int | np.random.Generator = 0,
) -> SensitivityReport:
    """Search for two neighbors that a function moves further apart than claimed.

    Tries extreme data first (all alike, half and half, the smallest and the largest), then random data, then
    climbs from the worst pairs found. A violation is certain; its absence proves nothing.

    Parameters
    ----------
    function : callable
        An array of records to a number or an array; a ``Query`` is one.
    claimed : float
        The claimed sensitivity.
    neighboring : Neighboring
    norm : Norm
    bounds : tuple of two numbers, optional
        Records are numbers between them (whole numbers, if both are ints); all finite numbers unless given.
    values : sequence, optional
        Instead: the values that a record may have.
    sample : callable, optional
        Instead: draws one record from a numpy Generator.
    sizes : tuple of two ints
        Smallest and largest number of records.
    neutral
        What a zeroed record becomes; used under zero-out only.
    trials : int
        How many pairs to try.
    tolerance : float
        Relative float error of the function that is forgiven.
    rng : int or numpy Generator
        Where the made-up data comes from.

    Returns
    -------
    SensitivityReport

    Raises
    ------
    ParameterError
        If a parameter breaks its rule, or the function fails on everything.

    Examples
    --------
    >>> import numpy as np
    >>> report = check_sensitivity(np.mean, claimed=1 / 32, bounds=(0.0, 1.0), trials=500)
    >>> report.violated
    True
    >>> check_sensitivity(lambda x: np.clip(x, 0, 1).sum(), claimed=1.0, trials=500).violated
    False
    """
    domain = neighboring_datasets.domain_of(bounds, values, sample)
    shared = neighboring_datasets.shared_size_range(sizes, neighboring)
    claimed = _check.non_negative("claimed", claimed)
    trials = _check.integer("trials", trials, minimum=1)
    generator = np.random.default_rng(rng)
    search = _Search(function=function, norm=norm, tolerance=_check.non_negative("tolerance", tolerance))
    for pair in islice(
        neighboring_datasets.boundary_pairs(domain, neighboring, shared, neutral), trials // 3
    ):
        search.attempt(pair)
    while search.trials < 2 * trials // 3:
        search.attempt(neighboring_datasets.random_pair(domain, neighboring, shared, neutral, generator))
    while search.trials < trials and search.best[0][0] < math.inf:
        rank = search.trials % len(search.best)
        search.attempt(
            neighboring_datasets.mutated_pair(search.best[rank][1], domain, neighboring, shared, generator),
            rank,
        )
    return search.report(claimed, neighboring)


@final
@dataclass(slots=True, kw_only=True)
class _Search:
    """The worst pairs so far; ``best[0]`` is the worst of all."""

    function: Callable[[NDArray[Any]], Any]
    norm: Norm
    tolerance: float
    trials: int = 0
    defined: bool = False
    failure: Exception | None = None
    best: list[tuple[float, neighboring_datasets.DatasetPair]] = field(default_factory=list)

    def attempt(self, pair: neighboring_datasets.DatasetPair, parent: int | None = None) -> None:
        """Try a pair; one that varies a parent replaces it if it is as bad."""
        first, second = (self._answer(data) for data in pair.datasets())
        move = self._distance(first, second)
        self.trials += 1
        if parent is None:
            self.best = sorted([*self.best, (move, pair)], key=lambda scored: -scored[0])[:_CLIMBS]
        elif move >= self.best[parent][0]:
            self.best[parent] = (move, pair)

    def _answer(self, data: NDArray[Any]) -> NDArray[np.float64] | None:
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                answer = np.asarray(self.function(data), dtype=np.float64)
        except Exception as failure:  # whatever a user's function raises is an answer that the data decides
            self.failure = failure
            return None
        self.defined = True
        return answer

    def _distance(self, first: NDArray[np.float64] | None, second: NDArray[np.float64] | None) -> float:
        if first is None and second is None:
            return 0.0
        if first is None or second is None or first.shape != second.shape:
            return math.inf
        same = (first == second) | (np.isnan(first) & np.isnan(second))
        with np.errstate(all="ignore"):
            moves = np.where(same, 0.0, np.abs(first - second))
        moves = np.where(np.isnan(moves), math.inf, moves)
        # Both sums have float errors of the order of their size, which are not the function's meaning.
        sizes = np.where(np.isfinite(first), np.abs(first), 0.0) + np.where(
            np.isfinite(second), np.abs(second), 0.0
        )
        moves = np.where(moves <= self.tolerance * sizes, 0.0, moves)
        if self.norm is Norm.L0:
            return float(np.count_nonzero(moves))
        if self.norm is Norm.LINF:
            return float(np.max(moves, initial=0.0))
        if self.norm is Norm.L2:
            return float(math.hypot(*moves.ravel()))
        return float(moves.sum())

    def report(self, claimed: float, neighboring: Neighboring) -> SensitivityReport:
        """Return the verdict."""
        if not self.defined:
            rule = "accept an array of records"
            remedy = "pass a function of one array"
            _check.refuse_state("function", rule, f"it raised {self.failure!r}", remedy)
        largest, pair = max(self.best, key=lambda scored: scored[0])
        before, after = pair.datasets()
        return SensitivityReport(
            claimed=claimed,
            largest=largest,
            violated=largest > claimed * (1 + self.tolerance),
            witness=Witness(
                before=before,
                after=after,
                answer_before=self._answer(before),
                answer_after=self._answer(after),
            ),
            neighboring=neighboring,
            norm=self.norm,
            trials=self.trials,
        )
