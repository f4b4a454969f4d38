"""t-closeness, beta-likeness and delta-disclosure privacy: how far a class is from the whole table.

The whole table is all rows, suppressed ones included: its distribution is what an observer is taken to know,
and it does not change with the node. Each distance is convex in the distribution of the class, so that the
conditions are closed under unions; none is upward closed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.anonymity.hierarchies.hierarchy import GeneralizationHierarchy
from sfumato.anonymity.measures.l_diversity import distinct_values
from sfumato.anonymity.measures.sensitive_counts import SensitiveCounts
from sfumato.anonymity.measures.t_closeness import equal_distances, hierarchical_distances, ordered_distances
from sfumato.anonymity.privacy_models.base import SensitiveModel

__all__ = ["BetaLikeness", "DeltaDisclosurePrivacy", "TCloseness"]


@final
@dataclass(frozen=True, slots=True)
class TCloseness(SensitiveModel):
    """T-closeness: the earth mover's distance of each class from the whole table is at most t.

    Parameters
    ----------
    column : str
        A sensitive column.
    t : float
        From 0 to 1.
    distance : {"equal", "ordered", "hierarchical"}, default "equal"
        Between two values: 1; the difference of their ranks among the values of the table, in the order of
        the column's hierarchy, over the largest one; or the height of their lowest common ancestor over the
        largest.

    References
    ----------
    Li, Li and Venkatasubramanian, "t-closeness", ICDE 2007; closed under unions by its generalisation
    property.

    Examples
    --------
    >>> from sfumato.anonymity import TCloseness
    >>> TCloseness("occupation", 0.2, distance="ordered").t
    0.2
    """

    column: str
    t: float
    distance: Literal["equal", "ordered", "hierarchical"] = "equal"

    upward_closed: ClassVar[bool] = False

    def __post_init__(self) -> None:
        _check.share("t", self.t)
        if self.distance not in ("equal", "ordered", "hierarchical"):
            _check.refuse("distance", "be equal, ordered or hierarchical", self.distance, "pass one of them")

    @property
    def minimum_size(self) -> int:
        """One: nothing follows for the size."""
        return 1

    def _satisfied(
        self, counts: SensitiveCounts, hierarchy: GeneralizationHierarchy | None
    ) -> NDArray[np.bool_]:
        return self._distances(counts, hierarchy) <= self.t + 1e-12

    def _distances(
        self, counts: SensitiveCounts, hierarchy: GeneralizationHierarchy | None
    ) -> NDArray[np.float64]:
        if self.distance == "equal":
            return equal_distances(counts)
        if self.distance == "ordered":
            return ordered_distances(counts)
        if hierarchy is None:
            _check.refuse_state(
                "distance", "be equal or ordered", "the column has no hierarchy", "give it one"
            )
        return hierarchical_distances(counts, hierarchy)


@final
@dataclass(frozen=True, slots=True)
class BetaLikeness(SensitiveModel):
    """Beta-likeness: a value's share of a class exceeds its share p of the table by at most beta p.

    Parameters
    ----------
    column : str
        A sensitive column.
    beta : float
        Positive.
    enhanced : bool, default False
        Bound the relative gain by -log p as well, which binds for frequent values.

    References
    ----------
    Cao and Karras, "Publishing microdata with a robust privacy guarantee", PVLDB 5(11), 2012.

    Examples
    --------
    >>> from sfumato.anonymity import BetaLikeness
    >>> BetaLikeness("occupation", 2.0).beta
    2.0
    """

    column: str
    beta: float
    enhanced: bool = False

    upward_closed: ClassVar[bool] = False

    def __post_init__(self) -> None:
        _check.positive("beta", self.beta)

    @property
    def minimum_size(self) -> int:
        """One: nothing follows for the size."""
        return 1

    def _satisfied(
        self, counts: SensitiveCounts, hierarchy: GeneralizationHierarchy | None
    ) -> NDArray[np.bool_]:
        whole = counts.baseline
        bound = np.minimum(self.beta, -np.log(whole)) if self.enhanced else np.full(len(whole), self.beta)
        excess = counts.frequencies / whole - 1 - bound
        alike: NDArray[np.bool_] = np.maximum.reduceat(excess, counts.starts) <= 1e-12
        return alike


@final
@dataclass(frozen=True, slots=True)
class DeltaDisclosurePrivacy(SensitiveModel):
    """Delta-disclosure privacy: the absolute value of log(q / p) is below delta.

    A value of the table that a class does not have violates it.

    Parameters
    ----------
    column : str
        A sensitive column.
    delta : float
        Positive.

    References
    ----------
    Brickell and Shmatikov, "The cost of privacy", KDD 2008.

    Examples
    --------
    >>> from sfumato.anonymity import DeltaDisclosurePrivacy
    >>> DeltaDisclosurePrivacy("occupation", 1.0).delta
    1.0
    """

    column: str
    delta: float

    upward_closed: ClassVar[bool] = False

    def __post_init__(self) -> None:
        _check.positive("delta", self.delta)

    @property
    def minimum_size(self) -> int:
        """One: nothing follows for the size."""
        return 1

    def _satisfied(
        self, counts: SensitiveCounts, hierarchy: GeneralizationHierarchy | None
    ) -> NDArray[np.bool_]:
        far = np.maximum.reduceat(np.abs(np.log(counts.frequencies / counts.baseline)), counts.starts)
        complete = distinct_values(counts) == np.count_nonzero(counts.totals)
        private: NDArray[np.bool_] = (far < self.delta) & complete
        return private
