"""What stands between a generator and the rows: every answer is charged first."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from sfumato.mechanisms.base.rational import floor_log2, plain
from sfumato.mechanisms.selection.exponential import Exponential
from sfumato.numerics.distributions.discrete import DiscreteGaussianDistribution
from sfumato.numerics.randomness.source import RandomSource
from sfumato.privacy.leaves.discrete_gaussian_vector import DiscreteGaussianVector
from sfumato.privacy.loss import PrivacyLoss
from sfumato.synthetic.generators.cell_groups import CellGroups
from sfumato.synthetic.generators.table_shift import TableShift, short_number
from sfumato.synthetic.graphical_model.calibration import Array
from sfumato.synthetic.marginals.table_counts import LARGEST_COUNT, TableCounts
from sfumato.synthetic.marginals.workload import Clique

__all__ = ["Candidate", "PrivateTable"]

_STEPS: Final = 1 << 8  # scores are whole numbers of 1/256 of a row
_SCALE_BITS: Final = 38
_LARGEST: Final = 1 << 60


@final
@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A table that may be measured.

    Parameters
    ----------
    clique : tuple of int
        Its columns; none for nothing, which scores 0.
    expected : array
        The counts that a model predicts.
    penalty : float
        What is taken off its score: how much noise it would have.
    weight : int
        What its score is multiplied by, at least 1.
    """

    clique: Clique
    expected: Array
    penalty: float
    weight: int = 1


@final
class PrivateTable:
    r"""Private counts with a budget in zero-concentrated DP.

    Parameters
    ----------
    table : TableCounts
        Private.
    sizes : sequence of int
        Cells of each column.
    budget : Fraction
        Rho; no answer is given that would exceed it.
    shift : TableShift
        How far a person moves a table.
    source : RandomSource

    Notes
    -----
    Guarantee: all answers together are rho-zCDP under the relation, whatever released values the questions,
    their noise and their number depend on, by the fully adaptive composition theorem for zCDP (Whitehouse,
    Ramdas, Rogers, Wu 2023, Theorem 1 with delta 0: a privacy filter that stops where the sum of the
    conditional rhos would exceed the budget). Each answer's own rho is that of its leaf:

    - A measurement adds independent discrete Gaussian noise to a table of whole counts. A row is in one cell
      of it, so that one that is added or removed moves its squared L2 norm by 1, and one that is replaced by
      2, the k rows of a person by k^2 times as much (`TableShift`): `DiscreteGaussianVector`,
      :math:`\Delta^2/2\sigma^2` (Canonne, Kamath, Steinke 2020).
    - A choice is the exponential mechanism over whole scores, w times the L1 distance of counts and
      prediction (each rounded to 1/256 of a row) less a public penalty. A row moves the distance by 1, and by
      2 where it is replaced, k rows by k times as much: it has a bounded range of twice that over its scale:
      `Exponential`, at most :math:`\epsilon^2/8` (Cesar, Rogers 2021). Where that scale is above 2^38, scores
      are rounded down to coarser steps, and the most that they move is rounded up to such.

    Counts are clamped to at most 2**38, and to as many that scores cannot overflow: a clamped count moves by
    no more than the count. A row that has no cell is not counted, as if it was not there.
    """

    def __init__(
        self,
        table: TableCounts,
        sizes: Sequence[int],
        budget: Fraction,
        shift: TableShift,
        source: RandomSource,
    ) -> None:
        self._table, self._source = table, source
        self._shift = shift
        self.groups, self.left = CellGroups.single(sizes), budget
        self.charged: list[PrivacyLoss] = []
        self._counts: dict[Clique, NDArray[np.int64]] = {}

    def merge(self, groups: CellGroups) -> None:
        """Count groups of cells from now on; the groups follow from released values.

        Parameters
        ----------
        groups : CellGroups
        """
        self.groups = groups
        self._counts.clear()

    def measure(self, clique: Clique, sigma: Fraction) -> NDArray[np.int64]:
        """Return a table of counts with discrete Gaussian noise.

        Parameters
        ----------
        clique : tuple of int
        sigma : Fraction
            Of the noise.

        Returns
        -------
        int64 array, an axis for each column
        """
        shift = self._shift
        self._charge(DiscreteGaussianVector(sigma, shift.l2_squared, neighboring=shift.neighboring))
        counts = self._counted(clique)
        noise = DiscreteGaussianDistribution(sigma).sample(counts.shape or (1,), self._source)
        return np.asarray(counts + np.asarray(noise).reshape(counts.shape))

    def choose(self, candidates: Sequence[Candidate], rho: Fraction) -> int:
        """Return which table is predicted worst, by the exponential mechanism.

        Parameters
        ----------
        candidates : sequence of Candidate
            Public: predictions, penalties and weights follow from released values.
        rho : Fraction
            The most that the choice may cost.

        Returns
        -------
        int
        """
        heaviest = max(each.weight for each in candidates)
        sensitivity = self._shift.l1 * heaviest * _STEPS
        epsilon = short_number(Fraction(math.sqrt(8 * rho)), up=False)
        # A large scale is in coarser steps: rounding down moves a score by one of them more at most.
        steps = 1 << max(0, floor_log2(2 * sensitivity / epsilon) - _SCALE_BITS)
        sensitivity = -(-sensitivity // steps)
        scale = plain(2 * sensitivity / epsilon)
        choice = Exponential(sensitivity=sensitivity, scale=scale, neighboring=self._shift.neighboring)
        self._charge(choice.privacy_loss)
        scores = np.array([self.score(each) // steps for each in candidates], np.int64)
        return int(choice.release(scores, self._source).value)

    def score(self, candidate: Candidate) -> int:
        """Return a candidate's score: private, and exact.

        Parameters
        ----------
        candidate : Candidate

        Returns
        -------
        int
            In 1/256 of a row.
        """
        if not candidate.clique:
            return 0
        counts = self._counted(candidate.clique)
        most = min(LARGEST_COUNT, _LARGEST // (_STEPS * candidate.weight * counts.size))
        expected = np.nan_to_num(np.clip(candidate.expected, 0, most))  # NaN is no number to be cast
        predicted = np.rint(expected * _STEPS).astype(np.int64)
        distance = int(np.abs(np.minimum(counts, most) * _STEPS - predicted).sum())
        return candidate.weight * (distance - round(min(candidate.penalty, float(most)) * _STEPS))

    def _counted(self, clique: Clique) -> NDArray[np.int64]:
        found = self._counts.get(clique)
        if found is None:
            found = self.groups.merged(np.minimum(self._table.counts(clique), LARGEST_COUNT), clique)
            self._counts[clique] = found
        return found

    def _charge(self, loss: PrivacyLoss) -> None:
        rho = Fraction(loss.zcdp().rho)
        if rho > self.left:
            raise RuntimeError("a generator asked for more than its budget")
        self.left -= rho
        self.charged.append(loss)
