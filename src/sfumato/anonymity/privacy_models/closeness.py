"""t-closeness, beta-likeness and delta-disclosure privacy: how far a class is from the whole table.

The whole table is all rows, suppressed ones included: its distribution is what an observer is taken to know,
and it does not change with the node. Each distance is convex in the distribution of the class, so that the
conditions are closed under unions; none is upward closed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.anonymity.privacy_models.base import ClassCounts, SensitiveModel

__all__ = ["BetaLikeness", "DeltaDisclosurePrivacy", "TCloseness"]

_BLOCK = 1 << 21


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
            _check.refuse("distance", "be equal, ordered or hierarchical", self.distance)

    @property
    def minimum_size(self) -> int:
        """One: nothing follows for the size."""
        return 1

    def _satisfied(self, classes: ClassCounts) -> NDArray[np.bool_]:
        """Compare distances with t, up to their rounding."""
        close: NDArray[np.bool_] = self._distances(classes) <= self.t + 1e-12
        return close

    def _distances(self, classes: ClassCounts) -> NDArray[np.float64]:
        """Compute the distance of each class from the whole table."""
        if self.distance == "equal":
            excess = classes.frequencies - (classes.overall / classes.overall.sum())[classes.values]
            return classes.total(np.maximum(excess, 0))
        measure = _ordered if self.distance == "ordered" else _hierarchical
        return np.concatenate([measure(classes, block) for block in _differences(classes)])


def _differences(classes: ClassCounts) -> Iterator[NDArray[np.float64]]:
    """Give class minus table, a block of classes at a time, for the values that the table has."""
    width = len(classes.overall)
    step = max(1, _BLOCK // width)
    whole = classes.overall / classes.overall.sum()
    shares = classes.frequencies
    for start in range(0, len(classes.sizes), step):
        stop = min(start + step, len(classes.sizes))
        cells = slice(*np.searchsorted(classes.of_cell, [start, stop]))
        block = np.zeros((stop - start, width))
        block[classes.of_cell[cells] - start, classes.values[cells]] = shares[cells]
        yield block - whole


def _ordered(classes: ClassCounts, block: NDArray[np.float64]) -> NDArray[np.float64]:
    present = block[:, classes.overall > 0]
    distances: NDArray[np.float64] = np.abs(np.cumsum(present, axis=1)).sum(axis=1) / max(
        1, present.shape[1] - 1
    )
    return distances


def _hierarchical(classes: ClassCounts, block: NDArray[np.float64]) -> NDArray[np.float64]:
    """Move what a node's children have too much to those that have too little, at the height of the node."""
    if classes.hierarchy is None:
        _check.refuse_state("distance", "be equal or ordered", "the column has no hierarchy", "give it one")
    tree = classes.hierarchy.with_suppression()
    distances = np.zeros(len(block))
    below = block
    for level in range(tree.height):
        parents = tree.parents(level)
        gains = np.zeros((len(block), tree.cardinality(level + 1)))
        losses = np.zeros_like(gains)
        for child, parent in enumerate(parents):
            gains[:, parent] += np.maximum(below[:, child], 0)
            losses[:, parent] += np.maximum(-below[:, child], 0)
        distances += (level + 1) / tree.height * np.minimum(gains, losses).sum(axis=1)
        below = gains - losses
    return distances


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

    def _satisfied(self, classes: ClassCounts) -> NDArray[np.bool_]:
        """Compare the relative gains with beta, up to their rounding."""
        whole = (classes.overall / classes.overall.sum())[classes.values]
        bound = np.minimum(self.beta, -np.log(whole)) if self.enhanced else np.full(len(whole), self.beta)
        excess = classes.frequencies / whole - 1 - bound
        alike: NDArray[np.bool_] = classes.largest(excess) <= 1e-12
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

    def _satisfied(self, classes: ClassCounts) -> NDArray[np.bool_]:
        """Compare the logarithms of all values of the table."""
        whole = (classes.overall / classes.overall.sum())[classes.values]
        far = classes.largest(np.abs(np.log(classes.frequencies / whole)))
        values = np.bincount(classes.of_cell, minlength=len(classes.sizes))
        private: NDArray[np.bool_] = (far < self.delta) & (values == np.count_nonzero(classes.overall))
        return private
