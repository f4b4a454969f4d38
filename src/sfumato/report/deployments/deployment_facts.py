"""What a whole ledger says: its promise, what was spent and is left, its releases, its members.

Nothing here is the text of a question. A ledger describes each charge as its asker put it, in SQL, and one
analyst's SQL is not for another; comments of reviews and reasons of grants may quote it. They are not read.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, final

from sfumato import _check
from sfumato.errors import UnsupportedView
from sfumato.ledger.budget.budget import Budget
from sfumato.ledger.budget.odometer import Odometer
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.log.chain_head import ChainHead
from sfumato.ledger.log.entries import Entry
from sfumato.ledger.log.member_roll import Member
from sfumato.ledger.log.review_roll import Review
from sfumato.ledger.log.verification import Verification
from sfumato.privacy.guarantee import Guarantee
from sfumato.report.deployments.checklist import ChecklistLine, checklist_of, mechanisms_of
from sfumato.report.deployments.forecast import Forecast, forecast_of
from sfumato.report.registry.registry_record import Deployment

__all__ = ["AUDIENCES", "AccountState", "DeploymentFacts", "ReleaseState", "facts_of"]

AUDIENCES: Final = ("public", "internal")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AccountState:
    """One account: the dataset's or an analyst's, of all time or of one period.

    Parameters
    ----------
    analyst, period : str
        "" for the dataset's own, and for all time.
    budget : str
        In words; "" once the account was closed.
    charges : int
    spent : Guarantee
        Rounded up.
    left : Guarantee or None
        Rounded down; None once the account was closed.
    """

    analyst: str
    period: str
    budget: str
    charges: int
    spent: Guarantee
    left: Guarantee | None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseState:
    """One release: what it cost, and where it is on its way to the public.

    Parameters
    ----------
    number : int
    purpose, analyst, period : str
    epsilon, delta : float
    digest : str
        Of the charge, as its receipt has it.
    state : str
        "charged" where nothing was stored, "stored" where nobody asked for a review, or the review's.
    published : datetime.date or None
        When it was published last.
    signer, public_key, signature : str
        Of the approval that counts; "" without one.
    """

    number: int
    purpose: str
    analyst: str
    period: str
    epsilon: float
    delta: float
    digest: str
    state: str
    published: dt.date | None
    signer: str
    public_key: str
    signature: str


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentFacts:
    """All that a report of a ledger says; what the public may not see is not in the facts for the public.

    Parameters
    ----------
    audience : str
        "public" or "internal".
    releases : tuple of ReleaseState
        For the public those that were ever published; else all charges.
    charges, stored, versions : int
        How many charges, stored releases and versions of the dataset there are.
    mechanisms : tuple of str
        Of which kinds the losses are.
    simulated : bool
    spent : Guarantee
        The sum of all charges in the filters' units; where the budget renews, over all periods.
    left : Guarantee or None
        Of the budget; None where it renews, since each period has its own.
    reading : Guarantee or None
        An (epsilon, delta) that holds for all charges so far; None where no theorem gives one.
    accounts : tuple of AccountState
        For the public, the dataset's only.
    forecast : Forecast or None
        None for the public, and without charges.
    members : tuple of Member
        None for the public.
    checked : Verification
    head : ChainHead
    checklist : tuple of ChecklistLine
    has_about : bool
        Whether a person says something of it.
    """

    audience: str
    releases: tuple[ReleaseState, ...]
    charges: int
    stored: int
    versions: int
    mechanisms: tuple[str, ...]
    simulated: bool
    spent: Guarantee
    left: Guarantee | None
    reading: Guarantee | None
    accounts: tuple[AccountState, ...]
    forecast: Forecast | None
    members: tuple[Member, ...]
    checked: Verification
    head: ChainHead
    checklist: tuple[ChecklistLine, ...]
    has_about: bool


def facts_of(ledger: Ledger, audience: str, about: Deployment | None) -> DeploymentFacts:
    """Return what a report says to an audience.

    Parameters
    ----------
    ledger : Ledger
    audience : str
    about : Deployment or None
        What a person says of it.
    """
    if audience not in AUDIENCES:
        _check.refuse(
            "audience", f"be one of {', '.join(AUDIENCES)}", audience, "leave it out for the public"
        )
    inside = audience == "internal"
    entries, checked = ledger.entries(), ledger.verify()
    reviews = {review.number: review for review in ledger.reviews.all()}
    # All sums are of these entries, also while others charge.
    whole = _account(ledger, "", "", ledger.budget, entries)
    releases = [_release(entry, reviews.get(entry.sequence)) for entry in entries]
    if not inside:
        releases = [_for_the_public(each) for each in releases if each.published is not None]
    return DeploymentFacts(
        audience=audience,
        releases=tuple(releases),
        charges=len(entries),
        stored=sum(entry.committed for entry in entries),
        versions=max([ledger.version, *(entry.version for entry in entries)]),
        mechanisms=tuple(mechanisms_of(entries)),
        simulated=ledger.simulated or any(entry.simulated for entry in entries),
        spent=whole.spent,
        left=None if ledger.renewal is not None else whole.left,
        reading=_reading(ledger, entries, whole.spent),
        accounts=tuple(_accounts(ledger, entries, inside=inside)),
        forecast=forecast_of(ledger.budget, _latest(entries)) if inside else None,
        members=ledger.members.all() if inside else (),
        checked=checked,
        head=ledger.head(),
        checklist=checklist_of(ledger, about, entries, checked),
        has_about=about is not None,
    )


def _release(entry: Entry, review: Review | None) -> ReleaseState:
    state = "stored" if entry.committed else "charged"
    steps = () if review is None else review.steps
    published = [step.time.date() for step in steps if step.state == "published"]
    approval = None if review is None else review.approval
    return ReleaseState(
        number=entry.sequence,
        purpose=entry.purpose,
        analyst=entry.analyst,
        period=entry.period,
        epsilon=entry.epsilon,
        delta=entry.delta,
        digest=entry.digest,
        state=state if review is None else review.state,
        published=published[-1] if published else None,
        signer="" if approval is None else approval.by,
        public_key="" if review is None else review.public_key,
        signature="" if review is None else review.signature,
    )


def _for_the_public(release: ReleaseState) -> ReleaseState:
    """Return a release that was published, without its analyst; in a second review it is withdrawn still."""
    state = release.state if release.state == "published" else "withdrawn"
    signed = (release.signer, release.public_key, release.signature) if state == release.state else ("",) * 3
    return ReleaseState(
        number=release.number,
        purpose=release.purpose,
        analyst="",
        period=release.period,
        epsilon=release.epsilon,
        delta=release.delta,
        digest=release.digest,
        state=state,
        published=release.published,
        signer=signed[0],
        public_key=signed[1],
        signature=signed[2],
    )


def _latest(entries: Sequence[Entry]) -> Sequence[Entry]:
    """Return the charges of the latest period, or all where there are no periods."""
    period = max((entry.period for entry in entries), default="")
    return [entry for entry in entries if entry.period == period]


def _reading(ledger: Ledger, entries: Iterable[Entry], spent: Guarantee) -> Guarantee | None:
    """Return what an odometer of the ledger's delta reads; of a budget without delta, the sum of epsilons."""
    delta = ledger.budget.delta or 0.0
    if delta == 0:
        return None if spent.epsilon is None else spent
    odometer = Odometer(delta=delta, neighboring=ledger.neighboring)
    try:
        for entry in entries:
            odometer.add(entry.loss)
    except UnsupportedView:
        return None
    return odometer.spent()


def _accounts(ledger: Ledger, entries: Sequence[Entry], *, inside: bool) -> Iterable[AccountState]:
    """Yield the dataset's account, of each period where the budget renews, and then the analysts'."""
    own = sorted({entry.period for entry in entries}) if ledger.renewal is not None else [""]
    for period in own:
        yield _account(ledger, "", period, ledger.budget, [e for e in entries if period in ("", e.period)])
    for account in ledger.accounts() if inside else ():
        for period in account.periods or ("",):
            charged = [e for e in entries if e.analyst == account.analyst and period in ("", e.period)]
            yield _account(ledger, account.analyst, period, account.budget, charged)


def _account(
    ledger: Ledger, analyst: str, period: str, budget: Budget | None, entries: Sequence[Entry]
) -> AccountState:
    filters = (budget or ledger.budget).filters
    totals = filters.sum(entry.costs for entry in entries)
    numbers = filters.in_units(totals, up=True)
    left = None
    if budget is not None:
        rest = filters.in_units(filters.left(totals), up=False)
        left = Guarantee(neighboring=ledger.neighboring, **rest)
    return AccountState(
        analyst=analyst,
        period=period,
        budget="" if budget is None else str(budget),
        charges=len(entries),
        spent=Guarantee(neighboring=ledger.neighboring, **numbers),
        left=left,
    )
