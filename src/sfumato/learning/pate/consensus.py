"""What a vote costs where the teachers agree: less than the worst vote, and private itself."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.learning.pate.aggregator import Aggregator, as_votes
from sfumato.learning.pate.confident import ConfidentGNMax
from sfumato.learning.pate.gnmax import GNMax
from sfumato.learning.pate.likeliest_outcome import (
    PROBABILITY_SLACK,
    divergence,
    log_probabilities,
    log_tails,
)
from sfumato.privacy.interpretation.plotting import draw_line, draw_map

__all__ = ["Consensus"]

_Array = NDArray[np.float64]

_SLACK: Final = 1 + 1e-9


@final
@dataclass(frozen=True, kw_only=True)
class Consensus:
    r"""Bounds on the Rényi divergence of labels that hold for the votes as they are.

    Everything it returns is private: it is for the data's owner, and for `ConsensusRelease`, which releases a
    bound privately. A ledger is always charged the loss of the worst votes.

    Parameters
    ----------
    aggregator : GNMax or ConfidentGNMax
    teachers : int
        How many vote.
    classes : int
        How many they choose from.
    order : float
        Of the divergence, above 1: from 10 to 40, for the deltas that are usual.

    Notes
    -----
    Guarantee: for the dataset D at hand and any neighbor D', the divergence of the labels on D from those on
    D' is at most the sum of `costs`. It is a statement on D, in one direction, and no differential privacy by
    itself.

    *An answer* costs `divergence` at the chance that its likeliest label misses. That is at most the sum over
    the other classes of :math:`P(Z - Z' \ge g)`, g being by how many votes each is behind; the `table`, which
    knows the votes by two numbers only, takes the least g for all of them.

    *The check* passes with a chance p that the most votes m alone decide, and on a neighbor with that p' of a
    number of votes in :math:`[m - 1, m + 1]` (a unit of two teachers: 2). With an answer of cost b, the
    divergence of the question is at most that of the worst of them,

    .. math:: e^{(\lambda-1)D_\lambda} \le (1-p)^\lambda (1-p')^{1-\lambda}
        + p^\lambda p'^{1-\lambda} e^{(\lambda-1)b},

    and never more than b and the check's own divergence together. The mean of the costs over the check's
    noise, :math:`D_\lambda(p, p') + p b`, which the scripts of the paper add up, is smaller: it is no bound.

    References
    ----------
    Papernot, Song, Mironov, Raghunathan, Talwar, Erlingsson, "Scalable private learning with PATE" (ICLR
    2018), Theorem 6, Proposition 10.

    Examples
    --------
    >>> from sfumato.learning.pate.gnmax import GNMax
    >>> owner = Consensus(aggregator=GNMax(stddev=40), teachers=250, classes=10, order=20.0)
    >>> votes = np.array([[250] + [0] * 9, [240, 10] + [0] * 8, [130, 120] + [0] * 8])
    >>> owner.costs(votes).round(5).tolist(), round(owner.worst, 5)
    ([6e-05, 0.00012, 0.0125], 0.0125)
    """

    aggregator: Aggregator
    teachers: int
    classes: int
    order: float

    def __post_init__(self) -> None:
        if not isinstance(self.aggregator, GNMax | ConfidentGNMax):
            remedy = "use GNMax(...)"
            _check.refuse_type("aggregator", "be a GNMax or ConfidentGNMax", self.aggregator, remedy)
        object.__setattr__(self, "teachers", _check.integer("teachers", self.teachers, minimum=1))
        object.__setattr__(self, "classes", _check.integer("classes", self.classes, minimum=2))
        order = _check.finite("order", self.order)
        if not 1 < order <= 1e6:
            _check.refuse("order", "be above 1, and at most 1e6", order, "use 20, say")
        object.__setattr__(self, "order", order)

    def costs(self, votes: NDArray[np.int64]) -> _Array:
        """Return the bound for each question: private.

        Parameters
        ----------
        votes : int64 array of shape (n, classes)

        Returns
        -------
        float64 array of shape (n,)
            At most the entry of the `table` for these votes, which a release is of.
        """
        ordered = np.sort(np.clip(as_votes(votes), 0, self.teachers), axis=1)
        behind = ordered[:, -1:] - ordered[:, :-1]
        absent = max(self.classes - ordered.shape[1], 0)
        misses = np.logaddexp.reduce(self._tails[behind], axis=1)
        if absent:
            misses = np.logaddexp(misses, self._tails[ordered[:, -1]] + math.log(absent))
        return self._costs(self.table_indices(votes)[0], misses)

    @property
    def worst(self) -> float:
        """The divergence of a question whatever the votes; public."""
        question = self.aggregator.question_loss
        rho = self.aggregator.answer_loss.zcdp().rho + (0.0 if question is None else question.zcdp().rho)
        return self.order * rho * _SLACK

    def table_indices(self, votes: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return where in the table each question is: private.

        The first index is the most votes (0 where they do not matter), the second how many more they are than
        the next. A teacher who votes otherwise moves the first by at most 1 and the second by at most 2.

        Parameters
        ----------
        votes : int64 array of shape (n, classes)
            Private; a vote a teacher in each row.

        Returns
        -------
        tuple of two int64 arrays of shape (n,)
            The first and the second index.
        """
        ordered = np.sort(np.clip(as_votes(votes), 0, self.teachers), axis=1)
        maximum, gap = ordered[:, -1], ordered[:, -1] - ordered[:, -2]
        return (maximum if isinstance(self.aggregator, ConfidentGNMax) else np.zeros_like(maximum)), gap

    @cached_property
    def table(self) -> _Array:
        """The cost by most votes and gap; public."""
        rows = self.teachers + 1 if isinstance(self.aggregator, ConfidentGNMax) else 1
        misses = self._tails + math.log(self.classes - 1)
        return self._costs(np.arange(rows)[:, None], misses[None, :])

    def plot(self, ax: Any = None) -> Any:
        """Draw the `table`, which is public: what a question costs by the gap; return the axes.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            New ones if left out.

        Returns
        -------
        matplotlib.axes.Axes
            A line over the gap and a dotted one at `worst`; with a check, a map of colours by most votes and
            gap, without what no votes have: a gap above the most votes.

        Raises
        ------
        MissingExtra
            If matplotlib is absent and no axes are given.
        """
        table = self.table
        if isinstance(self.aggregator, ConfidentGNMax):
            votes = np.arange(len(table))
            possible = np.where(votes[None, :] <= votes[:, None], table, np.nan)
            ax = draw_map(possible, (votes.tolist(), votes.tolist()), ax=ax, label="cost")
            ax.set_ylabel("most votes")
        else:
            ax = draw_line(np.arange(table.shape[1]), table[0], ax=ax)
            ax.axhline(self.worst, color="gray", linestyle=":")
            ax.set_ylabel(f"cost of a question, at order {self.order:g}")
        ax.set_xlabel("votes ahead of the next label")
        return ax

    @cached_property
    def _tails(self) -> _Array:
        """Bounds on the log of the chance that noise makes up for so many votes."""
        stddev = float(getattr(self.aggregator, "stddev")) * (1 + 2.0**-52)  # noqa: B009
        return log_tails(2 * stddev**2, self.teachers)

    def _costs(self, maximum: NDArray[np.int64], misses: _Array) -> _Array:
        """Return the cost for each pair of most votes and log of the chance that an answer misses."""
        rho = self.aggregator.answer_loss.zcdp().rho
        answer = divergence(-misses, rho, self.order)
        if not isinstance(self.aggregator, ConfidentGNMax):
            return np.asarray(answer * _SLACK)
        check, slope, reach = self.aggregator.check, self.order - 1, self.aggregator.teachers_moved
        variance = (float(check.stddev) * (1 + 2.0**-52)) ** 2
        distance = self.aggregator.threshold - np.arange(-reach, self.teachers + reach + 1)
        passes, fails = log_probabilities(variance, distance)
        found = np.asarray(0.0)
        for moved in range(2 * reach + 1):
            hit, missed = (
                self.order * log[maximum + reach] - slope * log[maximum + moved] for log in (passes, fails)
            )
            with np.errstate(invalid="ignore"):  # of a chance too small for a float
                found = np.maximum(found, np.logaddexp(missed, hit + slope * answer))
        found = found / slope + (self.order / slope + 1) * PROBABILITY_SLACK
        apart = answer + self.order * check.privacy_loss.zcdp().rho
        return np.asarray(np.fmin(found, apart) * _SLACK)
