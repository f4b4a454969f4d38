"""How much worse a model is for some groups than for others, released privately."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast, final

import numpy as np
from numpy.typing import ArrayLike

from sfumato import _check
from sfumato.learning.pate.partition import column
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.view import LedgerView
from sfumato.mechanisms.noise.laplace import Laplace
from sfumato.mechanisms.query.counts import Histogram
from sfumato.numerics.interval import Interval
from sfumato.numerics.randomness.source import Rng, random_source
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.receipt import Receipt

__all__ = ["GroupAccuracies", "GroupAccuracy", "group_accuracies"]


class GroupAccuracy(NamedTuple):
    """What is released of one group.

    Attributes
    ----------
    right, wrong : int
        Noisy counts of examples that the model gets right and wrong; possibly negative.
    accuracy : Interval
        The part of the group's examples that it gets right.

    Examples
    --------
    >>> from sfumato.learning import group_accuracies
    >>> right, groups = [True] * 90 + [False] * 10, ["a"] * 100
    >>> report = group_accuracies(right, groups, public_groups=["a"], epsilon=5.0, rng=1)
    >>> group = report.groups["a"]
    >>> group.accuracy.lower < 0.9 < group.accuracy.upper
    True
    """

    right: int
    wrong: int
    accuracy: Interval


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GroupAccuracies:
    """Accuracies of all groups, with what they cost.

    Parameters
    ----------
    groups : mapping of group to GroupAccuracy
    gap : Interval
        The best group's accuracy minus the worst one's.
    confidence : float
        That all intervals hold together.
    loss : PrivacyLoss
        Of the report: of one example of the evaluated data.
    receipt : Receipt or None
        Proof of the charge.
    simulated : bool
        Whether the noise came from a seed.

    Examples
    --------
    >>> from sfumato.learning import group_accuracies
    >>> right, groups = [True, False] * 50, ["a", "b"] * 50
    >>> report = group_accuracies(right, groups, public_groups=["a", "b"], epsilon=5.0, rng=1)
    >>> sorted(report.groups), report.simulated
    (['a', 'b'], True)
    """

    groups: Mapping[Hashable, GroupAccuracy]
    gap: Interval
    confidence: float
    loss: PrivacyLoss
    receipt: Receipt | None
    simulated: bool

    def __str__(self) -> str:
        lines = [f"gap {self.gap.lower:.3f} to {self.gap.upper:.3f}, with confidence {self.confidence:g}"]
        for group, released in self.groups.items():
            lines.append(f"{group}: accuracy {released.accuracy.lower:.3f} to {released.accuracy.upper:.3f}")
        return "\n".join(lines)


def group_accuracies(
    right: ArrayLike,
    groups: ArrayLike,
    *,
    public_groups: Sequence[Hashable],
    epsilon: float,
    confidence: float = 0.95,
    ledger: Ledger | LedgerView | None = None,
    rng: Rng = None,
) -> GroupAccuracies:
    """Release how accurate a model is for each group of the people whom it was evaluated on.

    Parameters
    ----------
    right : bool array of shape (examples,)
        Whether the model is right about each example.
    groups : array of shape (examples,)
        The group of each; who is in none of the public ones counts nowhere.
    public_groups : sequence
        The groups there are, never taken from the data.
    epsilon : float
        What the report costs.
    confidence : float
        That all intervals hold together.
    ledger : Ledger or LedgerView, optional
        Charged before the data is looked at.
    rng : None, int, numpy Generator or RandomSource
        None draws from the operating system's entropy; anything else only simulates.

    Returns
    -------
    GroupAccuracies

    Raises
    ------
    ParameterError
        If a parameter breaks its rule, before anything is charged.
    BudgetExceeded
        If the ledger refuses.

    Notes
    -----
    Guarantee: epsilon-DP under add/remove of one evaluated example: counts of disjoint cells (group, right or
    wrong), with discrete Laplace noise. The model is taken for fixed: where the examples were in its training
    too, both losses add up. Intervals are about these examples, not the population: all
    counts are within b of the noisy ones with the confidence, by a union bound over the cells.

    Private training costs small groups more accuracy than others: this says how much.

    References
    ----------
    Bagdasaryan, Poursaeed, Shmatikov (2019), "Differential privacy has disparate impact on model accuracy".

    Examples
    --------
    >>> import numpy as np
    >>> groups = np.repeat(["old", "young"], [9000, 1000])
    >>> right = np.arange(10_000) % 10 < np.where(groups == "old", 9, 6)
    >>> report = group_accuracies(right, groups, public_groups=["old", "young"], epsilon=1.0, rng=1)
    >>> report.gap.lower < 0.3 < report.gap.upper, report.gap.upper - report.gap.lower < 0.03
    (True, True)
    """
    _check.ledger(ledger)
    names, source = tuple(public_groups), random_source(rng)
    risk = 1 - _check.unit_interval("confidence", confidence)
    if not names or len(set(names)) < len(names):
        _check.refuse("public_groups", "be distinct, and one at least", names, "list each public group once")
    if any(np.ndim(name) for name in names):  # type: ignore[arg-type]
        _check.refuse("public_groups", "be single values", names, "name each group by a number or a text")
    hits, group = np.asarray(right), column(groups)
    if hits.dtype != np.bool_ or hits.ndim != 1:
        rule = "be a bool array with one entry for each example"
        _check.refuse_type("right", rule, hits, "pass predicted == label")
    if group.shape != hits.shape:
        remedy = "pass one group for each example"
        rule = "have one entry for each example"
        _check.refuse_state("groups", rule, f"their shape is {group.shape} beside {hits.shape}", remedy)
    cells = 2 * len(names)
    counted = Laplace.for_query(Histogram(categories=range(cells + 1)), epsilon=epsilon)
    loss, receipt = counted.mechanism.privacy_loss, None
    if ledger is not None:
        description = f"accuracy of {len(names)} groups"
        receipt = ledger.charge(loss, delta=0.0, description=description, simulated=source.simulated)
    index = np.full(len(hits), cells)
    for k, name in enumerate(names):
        index[group == name] = k
    index = np.where(index < cells, 2 * index + ~hits, cells)
    noisy = [int(count) for count in counted.release(index, source).value[:cells]]
    off = _reach(float(cast("Laplace", counted.mechanism).scale), risk / cells)
    rows = {
        name: GroupAccuracy(noisy[2 * k], noisy[2 * k + 1], _share(noisy[2 * k], noisy[2 * k + 1], off))
        for k, name in enumerate(names)
    }
    return GroupAccuracies(
        groups=rows,
        gap=_gap([row.accuracy for row in rows.values()]),
        confidence=confidence,
        loss=loss,
        receipt=receipt,
        simulated=source.simulated,
    )


def _reach(scale: float, risk: float) -> int:
    """Return how far discrete Laplace noise goes but with a chance of at most ``risk``."""
    ratio = math.exp(-1 / scale)
    # P[|N| >= t] = 2 ratio^t / (1 + ratio); one more, for what floats round.
    return max(0, math.ceil(scale * math.log(2 / (risk * (1 + ratio)))))


def _share(right: int, wrong: int, off: int) -> Interval:
    """Return the least and greatest share of counts that are so near: nothing is known of an empty group."""
    few, many = (max(0, right - off), max(0, wrong - off)), (max(0, right + off), max(0, wrong + off))
    lower = few[0] / (few[0] + many[1]) if few[0] else 0.0
    upper = many[0] / (many[0] + few[1]) if few[1] else 1.0
    return Interval(max(0.0, math.nextafter(lower, 0.0)), min(1.0, math.nextafter(upper, 2.0)))


def _gap(shares: Sequence[Interval]) -> Interval:
    lower = max(share.lower for share in shares) - min(share.upper for share in shares)
    upper = max(share.upper for share in shares) - min(share.lower for share in shares)
    return Interval(max(0.0, math.nextafter(lower, -1.0)), min(1.0, math.nextafter(upper, 2.0)))
