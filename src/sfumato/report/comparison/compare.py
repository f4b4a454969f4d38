r"""A guarantee among the public records of deployments of the same unit, by what an attacker can gain.

Notions differ: some records state epsilon, some epsilon and delta, some rho. What compares them is what each
lets the best attacker do, computed from the trade-off that the stated numbers allow: the chance of a right
guess whether a unit is there, of 50 in 100 before; what a belief of 50 in 100 can become (for pure epsilon);
and the chance of guessing a record that was guessed with 1 in 100 before. For epsilon, and for epsilon with
delta, the first two are exact: a mechanism with this guarantee reaches them. For rho they are upper bounds,
and the third is one always.

Whether one guarantee *meets* another is a question by itself. A loss meets a stated epsilon and delta if its
own delta at that epsilon is at most the stated one, which is decided by certified bounds on both sides. It
meets a stated :math:`\rho` if its own rho is at most that; it does not if at some epsilon its delta is
above what every :math:`\rho`-zCDP mechanism has; between the two nothing is said.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final, final

from sfumato import _check
from sfumato.errors import UnsupportedView
from sfumato.ledger.ledger import Ledger
from sfumato.privacy._outward import above
from sfumato.privacy.accountant import intervals
from sfumato.privacy.accountant.precision import STANDARD
from sfumato.privacy.calibration import analytic_gaussian_stddev
from sfumato.privacy.interpretation.plotting import axes, ticks
from sfumato.privacy.leaves.declared import ZCDP
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring
from sfumato.report.comparison.deployment_records import DeploymentRecord, deployment_records, record_units
from sfumato.report.pages.odds import odds
from sfumato.report.pages.stated_loss import stated_loss

__all__ = ["BASELINE", "Comparison", "Placed", "Standing", "compare", "compare_budget"]

BASELINE: Final = 0.01
"""The chance of guessing a record without a release, for the bound on reconstruction."""
_RELATIONS: Final = {"add-remove": Neighboring.ADD_REMOVE, "replace-one": Neighboring.REPLACE_ONE}
_LASTING: Final = frozenset({"customer", "device", "household", "person"})
"""Units that are in the data for more than one period."""
_MONTHS: Final = frozenset({"month", "quarter", "year"})
"""Periods that hold a whole month."""
_TAILS: Final = (0.0, 1.0, 3.0, 10.0, 30.0)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What a guarantee lets the best attacker do, and what it costs in accuracy.

    Parameters
    ----------
    right : float
        The chance, at most, of guessing rightly whether a unit is there, where it is even before.
    advantage : float
        The largest difference between true and false positive rate, at most.
    belief : float or None
        What an even belief can become at most; None where no bound on it holds for every output.
    reconstruction : float
        The chance, at most, of guessing a record that is guessed with 1 in 100 without the release.
    error : float or None
        The standard deviation, about, of one count on which all of it is spent; None if no noise is known.

    Examples
    --------
    >>> Standing(right=0.6, advantage=0.2, belief=None, reconstruction=0.03, error=2.0).belief is None
    True
    """

    right: float
    advantage: float
    belief: float | None
    reconstruction: float
    error: float | None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A record beside the compared guarantee.

    Parameters
    ----------
    record : DeploymentRecord
    standing : Standing or None
        None if the record is not placed, for the reason that ``why`` names.
    meets : bool or None
        Whether the compared guarantee implies what the record states; None where that is not decided.
    why : str
        "" if it is placed, else "parameters" (they are no guarantee) or "relation" (it is another one).

    Examples
    --------
    >>> from sfumato.privacy import PureDP
    >>> from sfumato.report import compare
    >>> compare(PureDP(2.0), unit="event").placed[0].record.name
    'HealthKit Usage Statistics'
    """

    record: DeploymentRecord
    standing: Standing | None
    meets: bool | None
    why: str = ""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A guarantee among the records of the same unit.

    Parameters
    ----------
    loss : PrivacyLoss
    unit : str
    own : Standing
    records : tuple of Placed
        Of the same unit only: first those that are placed, from the strongest, then the others.
    other_units : int
        How many records are about other units, or none: they are not compared.

    Examples
    --------
    >>> from sfumato.privacy import PureDP
    >>> from sfumato.report import compare
    >>> found = compare(PureDP(1.0), unit="user-day")
    >>> [each.record.name for each in found.placed][:2]
    ['COVID-19 Search Trends Symptoms', 'Movement Ranges Map']
    """

    loss: PrivacyLoss
    unit: str
    own: Standing
    records: tuple[Placed, ...]
    other_units: int

    @property
    def placed(self) -> tuple[Placed, ...]:
        """Those that are placed, from the strongest."""
        return tuple(each for each in self.records if each.standing is not None)

    @property
    def stronger(self) -> int:
        """How many placed records let an attacker guess less often rightly than the compared guarantee."""
        return sum(
            each.standing is not None and each.standing.right < self.own.right for each in self.records
        )

    def plot(self, ax: Any = None) -> Any:
        """Draw how often an attacker guesses rightly with each placed record, and with this guarantee.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            New ones if left out.

        Returns
        -------
        matplotlib.axes.Axes
            Points for the records, the strongest on top, filled where this guarantee meets what the record
            states; and an upright line at its own chance.

        Raises
        ------
        MissingExtra
            If matplotlib is absent and no axes are given.
        """
        ax, placed = axes(ax), self.placed
        for met in (True, False):
            own = [(each, place) for place, each in enumerate(placed) if (each.meets is True) is met]
            rights = [each.standing.right for each, _ in own if each.standing is not None]
            style = {"fillstyle": "full" if met else "none", "label": "met" if met else "not met, or unknown"}
            ax.plot(rights, [place for _, place in own], "o", color="C0", **style)
        ax.axvline(self.own.right, color="gray", label="this guarantee")
        ticks(ax.yaxis, [each.record.name for each in placed], max(1, len(placed)), fontsize="small")
        ax.invert_yaxis()
        ax.set_xlabel("chance of a right guess, of 50 in 100 before")
        ax.legend()
        return ax


def compare(loss: PrivacyLoss, *, unit: str) -> Comparison:
    """Place a guarantee among the records of the Differential Privacy Deployments Registry, of one unit only.

    Parameters
    ----------
    loss : PrivacyLoss
        What was run, or a declared guarantee, such as ``ApproximateDP(2.0, 1e-7)``.
    unit : str
        What one unit of the loss is: ``"person"`` (all data of one), ``"user-day"``, ``"event"`` and so on. A
        column's name does not say it, so it is asked for.

    Returns
    -------
    Comparison

    Raises
    ------
    ParameterError
        If it is no loss, or no record has such a unit, or the loss is of a relation of its own.

    Notes
    -----
    Guarantee: the numbers are upper bounds on what the stated parameters allow, by `sfumato.report.odds` and
    `PrivacyLoss.risk`; see the module for what is exact. Records whose details state another relation than
    the loss's are listed and not placed; of most records the relation is not stated. A stated guarantee is
    what a curator wrote: no more is checked here. Errors are about, for noise with the smallest deviation of
    Laplace and Gaussian that the stated numbers are known to allow, for a count that one unit moves by 1.

    References
    ----------
    OpenDP, Differential Privacy Deployments Registry.

    Examples
    --------
    >>> from sfumato import report
    >>> from sfumato.privacy import ApproximateDP
    >>> found = report.compare(ApproximateDP(4.0, 1e-7), unit="person")
    >>> next(each.meets for each in found.records if each.record.name == "Assistive AI")
    True
    """
    _check.instance("loss", loss, PrivacyLoss, "pass a mechanism's privacy_loss, or PureDP(1.0)")
    units = record_units()
    if unit not in units:
        _check.refuse("unit", f"be one of {', '.join(units)}", unit, "records have no other one")
    own = loss.neighboring
    if own is not None and not isinstance(own, Neighboring):
        found = f"it is about {own}"
        _check.refuse_state("loss", "be about a Neighboring", found, "state it under add/remove")
    relation = own or Neighboring.ADD_REMOVE
    records = deployment_records()
    same = [_placed(loss, each, relation) for each in records if each.unit == unit]
    same.sort(key=lambda each: (each.standing is None, _key(each.standing), each.record.slug))
    return Comparison(
        loss=loss,
        unit=unit,
        own=_standing((loss,)),
        records=tuple(same),
        other_units=len(records) - len(same),
    )


def compare_budget(ledger: Ledger, *, unit: str) -> Comparison:
    """Place a ledger's budget among the records of one unit.

    Parameters
    ----------
    ledger : Ledger
    unit : str
        As for `compare`.

    Returns
    -------
    Comparison

    Raises
    ------
    ParameterError
        If no record has such a unit, or the budget renews while such a unit is in the data: over its periods
        nothing limits the sum.
    """
    comparison = compare(stated_loss(ledger.budget.guarantee(ledger.neighboring)), unit=unit)
    renewal = ledger.renewal
    longer = "month" in unit.split("-") and renewal is not None and renewal.every not in _MONTHS
    if renewal is not None and (longer or unit in _LASTING):
        rule = f"be one that lies within a period, where the budget is of one {renewal.every}"
        _check.refuse("unit", rule, unit, "pass 'user-day', say")
    return comparison


def _key(standing: Standing | None) -> tuple[float, float]:
    """Return what orders records: the chance of a right guess; where that is all but 1, the error."""
    if standing is None:
        return 0.0, 0.0
    return standing.right, -(standing.error or 0.0)


def _placed(loss: PrivacyLoss, record: DeploymentRecord, relation: Neighboring) -> Placed:
    if not record.complete:
        return Placed(record=record, standing=None, meets=None, why="parameters")
    if record.relation and _RELATIONS[record.relation] is not relation:
        return Placed(record=record, standing=None, meets=None, why="relation")
    losses = record.losses(relation)
    answers = [_meets_rho(loss, record.rho, relation)] if record.rho is not None else []
    if record.epsilon is not None and (record.rho is None or record.delta is not None):
        answers.append(_meets_epsilon(loss, record.epsilon, record.delta or 0.0))
    meets = False if False in answers else None if None in answers else True
    return Placed(record=record, standing=_standing(losses), meets=meets)


def _standing(losses: tuple[PrivacyLoss, ...]) -> Standing:
    """Return the smallest of each bound over guarantees that all hold, and the noise for all of them."""
    risks = [each.risk(prior=0.5, baseline=BASELINE) for each in losses]
    beliefs = [found.beliefs[-1].most for found in map(odds, losses) if found.beliefs]
    errors = [error for error in map(_error, losses) if error is not None]
    return Standing(
        right=min(each.accuracy.upper for each in risks),
        advantage=min(1.0, *(each.advantage.upper for each in risks)),
        belief=min(beliefs, default=None),
        reconstruction=min(each.reconstruction.upper for each in risks),
        error=max(errors, default=None),
    )


def _error(loss: PrivacyLoss) -> float | None:
    """Return the smallest deviation of Laplace or Gaussian noise for one count that has a loss's guarantee.

    That of its own notion: a pure epsilon is no Gaussian's, though it implies a rho.
    """
    try:
        pure = loss.pure()
    except UnsupportedView:
        try:
            rho = loss.zcdp().rho
        except UnsupportedView:
            return None
        return math.sqrt(0.5 / rho) if 0 < rho < math.inf else None
    if not 0 < pure.epsilon < math.inf:
        return None
    laplace = math.sqrt(2.0) / pure.epsilon
    if not 0 < pure.delta < 1:
        return laplace
    stated = {"epsilon": pure.epsilon, "delta": pure.delta}
    return min(laplace, analytic_gaussian_stddev(sensitivity=1.0, **stated))


def _meets_epsilon(loss: PrivacyLoss, epsilon: float, delta: float) -> bool | None:
    try:
        pure = loss.pure()
        if pure.epsilon <= epsilon and pure.delta <= delta:
            return True
    except UnsupportedView:
        pass
    if delta == 0:
        bounds, limit = intervals.epsilon_interval(loss, 0.0, STANDARD), epsilon
    else:
        bounds, limit = intervals.delta_interval(loss, epsilon, STANDARD), delta
    if bounds.upper <= limit:
        return True
    if bounds.lower > limit or intervals.delta_interval(loss, epsilon, STANDARD).lower > delta:
        return False
    return None


def _meets_rho(loss: PrivacyLoss, rho: float, relation: Neighboring) -> bool | None:
    try:
        own = loss.zcdp()
        if own.delta == 0 and own.rho <= rho:
            return True
    except UnsupportedView:
        pass
    stated = ZCDP(rho, neighboring=relation)
    for tail in _TAILS:
        epsilon = above(rho + 2.0 * math.sqrt(rho * tail), 4.0)
        most = stated.delta(epsilon)
        if intervals.delta_interval(loss, epsilon, STANDARD).lower > most:
            return False
    return None
