"""The small database mechanism: a few synthetic records that answer many linear queries."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations_with_replacement
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.mechanisms.base.additive import as_number, check_informative
from sfumato.mechanisms.base.mechanism import Mechanism
from sfumato.mechanisms.base.rational import Number, drawn_epsilon
from sfumato.mechanisms.base.release import Release, read_only
from sfumato.mechanisms.base.sensitivity import check_public_size
from sfumato.mechanisms.query.linear_workload import LinearWorkload
from sfumato.numerics.decimals import outward
from sfumato.numerics.randomness.source import RandomSource, Rng, random_source
from sfumato.numerics.sampling.choice import choose
from sfumato.privacy.leaves.exponential import Exponential
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring

__all__ = ["SmallDatabase", "SmallDatabaseRelease"]

_MOST: Final = 1 << 18
_RECORDS: Final = 1 << 20
_SIZE: Final = 1 << 8
_CLAMP: Final = 1 << 50
_Counts = NDArray[np.int64]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SmallDatabaseRelease(Release):
    """A small synthetic database and its answers.

    Parameters
    ----------
    value : float64 array of shape (queries,)
        The workload's answers on the synthetic database, times records over size.
    counts : int64 array of shape (cells,)
        How many of the synthetic records are in each cell; they sum to the size.
    loss, neighboring, receipt, simulated, labels
        As in `Release`.

    Examples
    --------
    >>> halves = LinearWorkload(matrix=[[1, 1, 0, 0], [0, 0, 1, 1]])
    >>> relation = Neighboring.REPLACE_ONE
    >>> mechanism = SmallDatabase(workload=halves, records=400, size=4, epsilon=1.0, neighboring=relation)
    >>> release = mechanism.release(np.repeat([0, 3], [100, 300]), rng=2)
    >>> isinstance(release, SmallDatabaseRelease), release.value.tolist(), int(release.counts.sum())
    (True, [100.0, 300.0], 4)
    """

    counts: _Counts

    def __post_init__(self) -> None:
        for name in ("value", "counts"):
            object.__setattr__(self, name, read_only(getattr(self, name)))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SmallDatabase(Mechanism):
    r"""A database of few synthetic records, the likelier the better its answers are (Blum, Ligett, Roth).

    Parameters
    ----------
    workload : LinearWorkload
        The queries.
    records : int
        How many records there are, public, at most 2**20.
    size : int
        How many synthetic records, at most 256. All databases of that size are weighed, of which there may be
        at most 2**18: size + cells - 1 over size.
    epsilon : int, float or Fraction
        Taken as the exact rational; at least 2**-30.
    neighboring : Neighboring
        To be stated, as REPLACE_ONE or ZERO_OUT: the number of records is public.

    Notes
    -----
    Guarantee: epsilon-DP of bounded range, by the exponential mechanism over all multisets of ``size`` cells.
    For n records and m synthetic ones, a database's score is minus the largest difference over all queries of
    m times the data's answer and n times the synthetic one. Both are whole numbers, and one unit moves the
    data's answer by no more than `LinearWorkload` says, so it moves the score by at most m times that. A
    larger answer than so many records can have is clamped.

    *Utility.* For q queries whose entries range over w at most, some database of size m answers all within
    :math:`n w \sqrt{\ln(2q) / 2m}`, as a random sample of the data does so with a positive probability
    (Hoeffding); the mechanism's is worse by more than :math:`2 \Delta \ln(N/\beta)/\epsilon` with probability
    at most :math:`\beta`, of N databases and with :math:`\Delta` by how much one unit moves an answer.

    The number of databases grows fast: this is for few cells. `MultiplicativeWeights` has nearly the same
    bound in time that is linear in the cells.

    References
    ----------
    Blum, Ligett, Roth, "A learning theory approach to noninteractive database privacy" (JACM 2013); Dwork,
    Roth (2014), section 4.1, SmallDB.

    Examples
    --------
    >>> prefixes = LinearWorkload(matrix=np.tril(np.ones((6, 6))))
    >>> relation = Neighboring.REPLACE_ONE
    >>> mechanism = SmallDatabase(workload=prefixes, records=1000, size=10, epsilon=1.0, neighboring=relation)
    >>> release = mechanism.release(np.random.default_rng(0).binomial(5, 0.4, 1000), rng=1)
    >>> release.value.tolist()
    [100.0, 300.0, 700.0, 900.0, 1000.0, 1000.0]
    >>> mechanism.privacy_loss.epsilon(0.0)
    1.0
    """

    workload: LinearWorkload
    records: int
    size: int
    epsilon: Number
    neighboring: Neighboring = Neighboring.ADD_REMOVE

    def __post_init__(self) -> None:
        _check.instance("workload", self.workload, LinearWorkload, "pass LinearWorkload(matrix=...)")
        records = _check.integer("records", self.records, minimum=1, remedy="pass how many there are")
        if records > _RECORDS:
            _check.refuse("records", "be at most 2**20", records, "use MultiplicativeWeights")
        if _check.integer("size", self.size, minimum=1, remedy="pass a few") > _SIZE:
            _check.refuse("size", f"be at most {_SIZE}", self.size, "pass a smaller one")
        if self.databases > _MOST:
            rule = f"leave at most 2**18 databases of {self._cells} cells"
            _check.refuse("size", rule, self.size, "pass a smaller one, or use MultiplicativeWeights")
        object.__setattr__(self, "epsilon", as_number("epsilon", self.epsilon))
        check_informative(self.epsilon)
        _check.instance("neighboring", self.neighboring, Neighboring, "pass Neighboring.REPLACE_ONE")
        check_public_size(self.neighboring, "use MultiplicativeWeights")

    @property
    def databases(self) -> int:
        """How many databases there are to choose from."""
        return math.comb(self.size + self._cells - 1, self.size)

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """The loss of one release."""
        return Exponential(outward(drawn_epsilon(self.epsilon)), neighboring=self.neighboring)

    def utility_bound(self, beta: float) -> float:
        """Return how far any answer is off at most, but with probability ``beta``.

        Parameters
        ----------
        beta : float
            Strictly between 0 and 1.

        Returns
        -------
        float
            Of data with as many records in the cells as stated.
        """
        chance = _check.unit_interval("beta", beta)
        weights, step = self.workload.weights(), float(self.workload.step)
        widest = float((weights.max(axis=1) - weights.min(axis=1)).max()) * step
        sampled = min(1.0, math.sqrt(math.log(2 * len(weights)) / (2 * self.size)))
        chosen = 2 * self._move * step / float(self.epsilon) * math.log(self.databases / chance)
        return (self.records * widest * sampled + chosen) * (1 + 1e-9)

    def release(self, value: Any, rng: Rng = None) -> SmallDatabaseRelease:
        """Release a small database.

        Parameters
        ----------
        value : array, list or column of shape (n,)
            The cell of each record.
        rng : None, int, numpy Generator or RandomSource
            None draws from the operating system's entropy; anything seeded only simulates.

        Returns
        -------
        SmallDatabaseRelease
        """
        source = random_source(rng)
        counts = self._drawn(value, 1, source)
        return self._release_as(SmallDatabaseRelease, self._answers(counts)[0], source, counts=counts[0])

    def outputs(self, value: Any, size: int, rng: Rng = None) -> Any:
        """Draw the answers of many releases at once; see `Mechanism.outputs`.

        Parameters
        ----------
        value
            As in `release`; private.
        size : int
            How many independent releases are drawn.
        rng : int, numpy Generator or None
            None for the operating system's randomness; a seed is for simulation only.

        Returns
        -------
        float64 array of shape (size, queries)
        """
        size = _check.integer("size", size, minimum=1)
        return self._answers(self._drawn(value, size, random_source(rng)))

    def probabilities(self, value: Any) -> tuple[_Counts, NDArray[np.float64]]:
        """Return all databases and their probabilities: private, for tests and for the data's owner.

        Parameters
        ----------
        value : array, list or column of shape (n,)
            The cell of each record.

        Returns
        -------
        tuple of int64 array of shape (databases, cells) and float64 array of shape (databases,)
        """
        databases = self._all()
        scores = self._scores(value, databases)
        weights = np.exp(-float(self._rate) * (scores - scores.min()))
        return databases, weights / weights.sum()

    @property
    def _cells(self) -> int:
        return self.workload.histogram.entries

    @property
    def _move(self) -> int:
        """By how many steps one unit moves an answer at most."""
        return self.workload.shift(self.neighboring).linf

    @property
    def _rate(self) -> Fraction:
        return drawn_epsilon(self.epsilon) / (2 * self.size * self._move)

    def _drawn(self, value: Any, size: int, source: RandomSource) -> _Counts:
        databases = self._all()
        return databases[choose(self._scores(value, databases), self._rate, size=size, rng=source)]

    def _answers(self, counts: _Counts) -> NDArray[np.float64]:
        per = self.records * float(self.workload.step) / self.size
        return np.asarray(counts @ self.workload.weights().T * per)

    def _all(self) -> _Counts:
        """Return all databases, as counts of cells."""
        chosen = np.array(list(combinations_with_replacement(range(self._cells), self.size)), np.int64)
        found = np.zeros((len(chosen), self._cells), np.int64)
        for column in chosen.T:
            found[np.arange(len(chosen)), column] += 1
        return found

    def _scores(self, value: Any, databases: _Counts) -> _Counts:
        """Return how far each database is off at worst, times records and size, in steps."""
        weights = self.workload.weights()
        answers = np.clip(self.workload.steps(value), -_CLAMP, _CLAMP)
        worst = np.zeros(len(databases), np.int64)
        for row, answer in zip(weights, answers.tolist(), strict=True):
            off = np.abs(self.size * answer - self.records * (databases @ row))
            np.maximum(worst, off, out=worst)
        return worst
