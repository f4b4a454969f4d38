"""The sections of a deployment's report: promise, releases, accounts, members, and how to check it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from sfumato.ledger.ledger import Ledger
from sfumato.privacy.guarantee import Guarantee
from sfumato.report.deployments.deployment_facts import AccountState, DeploymentFacts, ReleaseState
from sfumato.report.markup.elements import Markup, element, joined, user_text
from sfumato.report.pages.odds import odds
from sfumato.report.pages.sections import (
    definitions,
    items,
    odds_in_words,
    paragraph,
    protected,
    section,
    small_table,
)
from sfumato.report.pages.stated_loss import stated_loss
from sfumato.report.pages.subject import Subject

__all__ = [
    "accounts",
    "check_ledger",
    "members",
    "not_promised_by_all",
    "odds_of_all",
    "promise",
    "releases",
    "unsound",
]

_STATES: Final = {
    "charged": "deployment.state_charged",
    "stored": "deployment.state_stored",
    "requested": "deployment.state_requested",
    "approved": "deployment.state_approved",
    "returned": "deployment.state_returned",
    "published": "deployment.state_published",
    "withdrawn": "deployment.state_withdrawn",
}
_LIMITS: Final = (
    "promise.groups",
    "promise.others",
    "deployment.promise_more",
    "promise.truth",
    "promise.keepers",
)


def unsound(subject: Subject, facts: DeploymentFacts) -> Iterable[Markup]:
    """Yield what a reader must know before the promise: that it is broken, or that sums are too small."""
    if facts.checked.overdrawn:
        yield subject.texts("deployment.notice_overdrawn")
    if facts.checked.underpriced:
        yield subject.texts("deployment.notice_underpriced")


def promise(subject: Subject, ledger: Ledger, facts: DeploymentFacts) -> Markup:
    """Return who is protected, what all releases together cost, and what watches it."""
    texts, numerals = subject.texts, subject.numerals
    renews = ledger.renewal is not None
    counts = {
        "charges": str(facts.charges),
        "stored": str(facts.stored),
        "spent": _all_of(subject, facts.spent),
    }
    lines = [
        *protected(subject),
        texts("who.budget_period" if renews else "who.budget", budget=str(ledger.budget)),
        texts("deployment.spent_periods" if renews else "deployment.spent", **counts),
    ]
    if facts.left is not None:
        lines.append(texts("deployment.left", left=_any_of(subject, facts.left)))
    if facts.reading is None:
        lines.append(texts("deployment.no_reading"))
    else:
        lines.append(texts("deployment.reading", guarantee=_all_of(subject, facts.reading)))
    ran = ", ".join(facts.mechanisms) or texts("deployment.nothing")
    lines.append(texts("deployment.mechanisms", mechanisms=ran))
    dataset = element("code", ledger.dataset_id)
    lines.append(texts("deployment.versions", dataset=dataset, versions=str(facts.versions)))
    heads = (texts("deployment.filter"), texts("deployment.limit"), texts("deployment.filter_delta"))
    rows = [
        (member.name, numerals.up(member.limit), numerals.up(member.delta))
        for member in ledger.budget.filters.members
    ]
    table = small_table(texts("deployment.filters"), heads, rows)
    return section(texts("deployment.together"), *map(paragraph, lines), table)


def odds_of_all(subject: Subject, facts: DeploymentFacts, *, renews: bool) -> Markup:
    """Return the odds of the whole budget, and the chance of a right guess after what was charged."""
    texts = subject.texts
    lines = [texts("deployment.odds_period" if renews else "deployment.odds")]
    if facts.reading is not None:
        right = odds(stated_loss(facts.reading)).right
        lines.append(texts("deployment.odds_so_far", most=subject.numerals.chance_up(right)))
    return joined([section(texts("deployment.odds_heading"), *map(paragraph, lines)), odds_in_words(subject)])


def releases(subject: Subject, facts: DeploymentFacts) -> Markup:
    """Return the releases in a table, and how many charges are not listed."""
    texts, inside = subject.texts, facts.audience == "internal"
    parts: list[Markup] = []
    if facts.releases:
        parts.append(_scrolling(subject, _release_table(subject, facts.releases, inside=inside)))
    elif not inside:
        parts.append(paragraph(texts("deployment.none_published")))
    signed = [each for each in facts.releases if each.signature]
    if signed:
        heads = ("deployment.number", "deployment.signed", "deployment.key", "deployment.signature")
        rows = [
            (
                str(each.number),
                user_text(each.signer),
                element("code", each.public_key),
                element("code", each.signature),
            )
            for each in signed
        ]
        table = small_table(texts("deployment.keys_caption"), map(texts, heads), rows, numbers=False)
        parts.append(_scrolling(subject, table))
    hidden = facts.charges - len(facts.releases)
    if hidden:
        parts.append(paragraph(texts("deployment.hidden", count=str(hidden))))
    return section(texts("deployment.releases"), *parts)


def _release_table(subject: Subject, listed: Sequence[ReleaseState], *, inside: bool) -> Markup:
    texts = subject.texts
    periods = any(each.period for each in listed)
    heads = ["deployment.number", "deployment.purpose", "deployment.cost", "deployment.state"]
    heads += ["deployment.period"] * periods + ["deployment.charged_to"] * inside + ["deployment.digest"]
    rows = []
    for each in listed:
        cost = f"{subject.numerals.up(each.epsilon)}; {subject.numerals.up(each.delta)}"
        purpose = user_text(each.purpose) if each.purpose else texts("deployment.no_purpose")
        cells: list[str] = [str(each.number), purpose, cost, _state(subject, each)]
        cells += [user_text(each.period)] * periods
        if inside:
            cells.append(user_text(each.analyst) if each.analyst else texts("deployment.nobody"))
        rows.append((*cells, element("code", each.digest)))
    caption = texts("deployment.releases_internal" if inside else "deployment.releases_public")
    return small_table(caption, map(texts, heads), rows, numbers=False)


def _state(subject: Subject, release: ReleaseState) -> Markup:
    key = _STATES[release.state]
    if release.state != "published":
        return subject.texts(key)
    return subject.texts(key, day="" if release.published is None else release.published.isoformat())


def accounts(subject: Subject, facts: DeploymentFacts) -> Markup:
    """Return what each account has spent and has left, and the forecast."""
    texts = subject.texts
    heads = ("account", "period", "budget", "charges", "spent_column", "left_column")
    named = [texts(_ACCOUNT_HEADS[head]) for head in heads]
    rows = [_account_row(subject, each) for each in facts.accounts]
    table = small_table(texts("deployment.accounts_caption"), named, rows, numbers=False)
    return section(texts("deployment.accounts"), _scrolling(subject, table), *_forecast(subject, facts))


_ACCOUNT_HEADS: Final = {
    "account": "deployment.account",
    "period": "deployment.period",
    "budget": "deployment.budget",
    "charges": "deployment.charges",
    "spent_column": "deployment.spent_column",
    "left_column": "deployment.left_column",
}


def _account_row(subject: Subject, account: AccountState) -> tuple[str, ...]:
    texts = subject.texts
    closed = texts("deployment.closed")
    return (
        user_text(account.analyst) if account.analyst else texts("deployment.dataset"),
        user_text(account.period) if account.period else "\N{EN DASH}",
        account.budget or closed,
        str(account.charges),
        _all_of(subject, account.spent),
        closed if account.left is None else _any_of(subject, account.left),
    )


def _forecast(subject: Subject, facts: DeploymentFacts) -> Iterable[Markup]:
    texts, forecast = subject.texts, facts.forecast
    if forecast is None:
        return
    said = []
    if forecast.more is None:
        said.append(texts("deployment.forecast_free"))
    else:
        counts = {"more": subject.numerals.down(forecast.more), "charges": str(forecast.charges)}
        said.append(texts("deployment.forecast_more", **counts))
    if forecast.until is not None:
        said.append(texts("deployment.forecast_until", until=forecast.until.isoformat()))
    period = max((each.period for each in facts.releases), default="")
    if period:
        said.append(texts("deployment.forecast_period", period=user_text(period)))
    yield element("h3", texts("deployment.forecast"))
    yield from map(paragraph, said)


def members(subject: Subject, facts: DeploymentFacts) -> Markup:
    """Return who may do what, whose key signs, and how many logins failed."""
    texts = subject.texts
    if not facts.members:
        return section(texts("deployment.members"), paragraph(texts("deployment.no_members")))
    heads = ("deployment.member", "deployment.roles", "deployment.key", "deployment.failed")
    rows = [
        (
            user_text(each.name),
            ", ".join(sorted(role.value for role in each.roles)) or texts("deployment.left_organisation"),
            element("code", each.public_key) if each.public_key else texts("deployment.no_key"),
            str(each.failed_logins),
        )
        for each in facts.members
    ]
    table = small_table(texts("deployment.members_caption"), map(texts, heads), rows, numbers=False)
    return section(texts("deployment.members"), _scrolling(subject, table))


def not_promised_by_all(subject: Subject) -> Markup:
    """Return what is not promised, in five lines."""
    return section(subject.texts("promise.heading"), items(map(subject.texts, _LIMITS)))


def check_ledger(subject: Subject, ledger: Ledger, facts: DeploymentFacts) -> Markup:
    """Return what the check of the ledger found, its head, and the commands that repeat it."""
    texts, checked = subject.texts, facts.checked
    counts = {name: str(getattr(checked, name)) for name in ("events", "charges", "releases")}
    lines = [texts("deployment.checked", **counts)]
    if checked.sound:
        lines.append(texts("deployment.sound"))
    if checked.underpriced:
        numbers = ", ".join(map(str, checked.underpriced))
        lines.append(texts("deployment.underpriced", numbers=numbers))
    if checked.overdrawn:
        lines.append(texts("deployment.overdrawn"))
    listed = [
        (texts("check.ledger"), element("code", ledger.ledger_id)),
        (texts("deployment.signing_key"), element("code", ledger.public_key)),
        (texts("deployment.head"), element("code", facts.head.to_json())),
    ]
    where, export = texts("check.file"), texts("check.export")
    language = "" if texts.language == "en" else f" --language {texts.language}"
    about = " --about ABOUT.toml" if facts.has_about else ""
    audience = "" if facts.audience == "public" else f" --audience {facts.audience}"
    remade = f"sfumato report {where} --deployment{about}{audience}{language} --output page.html"
    curator = f"sfumato ledger verify {where} --head HEAD.json\n{remade}"
    public = f"sfumato ledger verify {export} --public-key {ledger.public_key}"
    return section(
        texts("check.heading"),
        *map(paragraph, lines),
        definitions(listed),
        paragraph(texts("deployment.curator")),
        paragraph(element("code", curator)),
        paragraph(texts("deployment.public")),
        paragraph(element("code", public)),
    )


def _all_of(subject: Subject, guarantee: Guarantee) -> str:
    """Return the numbers of a guarantee, which hold all at once, rounded up."""
    return subject.texts("deployment.both").join(_notions(guarantee, subject.numerals.up))


def _any_of(subject: Subject, guarantee: Guarantee) -> str:
    """Return the numbers of what is left, of which a charge must fit into one, rounded down."""
    return subject.texts("deployment.either").join(_notions(guarantee, subject.numerals.down))


def _notions(guarantee: Guarantee, written: Callable[[float], str]) -> Iterable[str]:
    delta = "" if not guarantee.delta else written(guarantee.delta)
    if guarantee.epsilon is not None and guarantee.order is not None:
        yield f"({written(guarantee.order)}; {written(guarantee.epsilon)})-RDP"
    elif guarantee.epsilon is not None:
        epsilon = written(guarantee.epsilon)
        yield f"({epsilon}; {delta})-DP" if delta else f"{epsilon}-DP"
    aside = "" if guarantee.epsilon is not None or not delta else f"δ = {delta}, "
    if guarantee.rho is not None:
        yield f"{aside}{written(guarantee.rho)}-zCDP"
    if guarantee.mu is not None:
        yield f"{aside}{written(guarantee.mu)}-GDP"


def _scrolling(subject: Subject, table: Markup) -> Markup:
    label = subject.texts("deployment.table")
    return element("div", table, class_="scroll", tabindex="0", role="group", aria_label=label)
