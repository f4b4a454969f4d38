"""The sections that all pages have: who is protected, the odds, how to use the numbers, the receipt."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, final

from sfumato.privacy.neighboring import Neighboring
from sfumato.report.markup.elements import Markup, element, joined, user_text
from sfumato.report.pages.odds import Odds, odds
from sfumato.report.pages.subject import LedgerFacts, Subject

__all__ = [
    "NOISY",
    "OddsWords",
    "check",
    "definitions",
    "head",
    "items",
    "not_promised",
    "odds_in_words",
    "paragraph",
    "protected",
    "section",
    "small_table",
    "use",
    "who",
]

_RELATIONS: Final = {
    Neighboring.ADD_REMOVE: "who.add_remove",
    Neighboring.REPLACE_ONE: "who.replace_one",
    Neighboring.ZERO_OUT: "who.zero_out",
}
_STATES: Final = {
    "none": "check.review_none",
    "requested": "check.review_requested",
    "approved": "check.review_approved",
    "returned": "check.review_returned",
    "published": "check.review_published",
    "withdrawn": "check.review_withdrawn",
}
NOISY: Final = ("use.interval", "use.difference", "use.negative", "use.parts", "use.again")
"""How to use noisy numbers that have intervals."""
_LIMITS: Final = ("promise.groups", "promise.others", "promise.more", "promise.truth", "promise.keepers")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class OddsWords:
    """The keys of the texts that say the odds; those of a release of a table, unless given.

    Parameters
    ----------
    belief, no_belief, right, event, belief_caption, event_without, event_with, replaced : str
        None of the last where the others say what may be exchanged.
    """

    belief: str = "odds.belief"
    no_belief: str = "odds.no_belief"
    right: str = "odds.right"
    event: str = "odds.event"
    belief_caption: str = "odds.belief_caption"
    event_without: str = "odds.event_without"
    event_with: str = "odds.event_with"
    replaced: str = "odds.replaced"


def paragraph(text: str) -> Markup:
    """Return a paragraph."""
    return element("p", text)


def items(texts: Iterable[str]) -> Markup:
    """Return a list of points."""
    return element("ul", *(element("li", text) for text in texts))


def section(heading: str, *content: str) -> Markup:
    """Return a section with its heading."""
    return element("section", element("h2", heading), *content)


def head(subject: Subject, title: str, lead: str) -> Markup:
    """Return the title, the lead, what these numbers are for, and what a reader must see first."""
    texts, parts = subject.texts, [element("h1", title)]
    facts = subject.ledger
    if subject.simulated:
        parts.append(element("p", texts("page.simulated"), class_="notice"))
    if facts is not None and facts.review.state == "withdrawn":
        parts.append(element("p", _state(subject, facts), class_="notice"))
    if facts is not None and facts.entry.purpose:
        parts.append(paragraph(texts("page.purpose", purpose=user_text(facts.entry.purpose))))
    return element("header", *parts, paragraph(lead))


def who(subject: Subject) -> Markup:
    """Return who is protected, from what, and how much."""
    texts, numerals, lines = subject.texts, subject.numerals, protected(subject)
    amounts = {"epsilon": numerals.up(subject.epsilon), "delta": numerals.up(subject.delta)}
    lines.append(texts("who.guarantee", **amounts))
    receipt = subject.receipt
    if receipt is not None and receipt.period:
        lines.append(texts("who.period", period=user_text(receipt.period)))
    if subject.ledger is not None:
        renews = receipt is not None and receipt.period
        lines.append(texts("who.budget_period" if renews else "who.budget", budget=subject.ledger.budget))
    return section(texts("who.heading"), *map(paragraph, lines))


def protected(subject: Subject) -> list[Markup]:
    """Return which unit is protected, and from what."""
    texts, unit = subject.texts, subject.unit
    key = _RELATIONS.get(subject.relation) if isinstance(subject.relation, Neighboring) else None
    if key is None:
        change = texts("who.other", relation=user_text(str(subject.relation)))
    else:
        change = texts(key, unit=unit)
    return [texts("who.row") if subject.privacy_unit == "row" else texts("who.unit", unit=unit), change]


def odds_in_words(subject: Subject, words: OddsWords | None = None) -> Markup:
    """Return the odds: of a belief, where a bound on it holds for every output, and of an event."""
    texts, found, written = subject.texts, odds(subject.loss), subject.numerals
    words = OddsWords() if words is None else words
    lines: list[str] = [paragraph(texts("odds.lead"))]
    if found.beliefs:
        even = found.beliefs[-1]
        ends = {"most": written.chance_up(even.most), "least": written.chance_down(even.least)}
        lines.append(paragraph(texts(words.belief, **ends)))
    else:
        lines.append(paragraph(texts(words.no_belief)))
        lines.append(paragraph(texts(words.right, most=written.chance_up(found.right))))
    if words.replaced and subject.relation is not Neighboring.ADD_REMOVE:
        lines.append(paragraph(texts(words.replaced)))
    lines.append(paragraph(texts(words.event, most=written.chance_up(found.events[-1].most))))
    lines += _odds_tables(subject, found, words)
    return section(texts("odds.heading"), *lines, paragraph(texts("odds.computed")))


def _odds_tables(subject: Subject, found: Odds, words: OddsWords) -> Iterable[Markup]:
    """Yield the odds of other beliefs and events as tables."""
    texts, written = subject.texts, subject.numerals
    if found.beliefs:
        heads = (texts("odds.belief_before"), texts("odds.belief_least"), texts("odds.belief_after"))
        rows = [
            (
                written.nearest(100 * each.before),
                written.chance_down(each.least),
                written.chance_up(each.most),
            )
            for each in found.beliefs
        ]
        yield small_table(texts(words.belief_caption), heads, rows)
    heads_of_events = (texts(words.event_without), texts(words.event_with))
    chances = [(written.nearest(100 * each.without), written.chance_up(each.most)) for each in found.events]
    yield small_table(texts("odds.event_caption"), heads_of_events, chances)


def small_table(
    caption: str, heads: Iterable[str], rows: Iterable[tuple[str, ...]], *, numbers: bool = True
) -> Markup:
    """Return a table with a caption; the first of each row is its name, the others are numbers or texts."""
    style = {"class_": "n"} if numbers else {}
    return element(
        "table",
        element("caption", caption),
        element("thead", element("tr", *(element("th", each, scope="col") for each in heads))),
        element(
            "tbody",
            *(
                element(
                    "tr",
                    element("th", first, scope="row"),
                    *(element("td", each, **style) for each in others),
                )
                for first, *others in rows
            ),
        ),
    )


def use(subject: Subject, advice: Iterable[str]) -> Markup:
    """Return how to use the numbers, by the keys of the texts."""
    return section(subject.texts("use.heading"), items(map(subject.texts, advice)))


def not_promised(subject: Subject, limits: Iterable[str] = _LIMITS) -> Markup:
    """Return what is not promised, in five lines, by the keys of the texts."""
    return section(subject.texts("promise.heading"), items(map(subject.texts, limits)))


def check(subject: Subject) -> Markup:
    """Return the receipt, the review, and the commands that verify them."""
    texts, receipt = subject.texts, subject.receipt
    payload = (texts("check.payload"), element("code", subject.payload))
    if receipt is None:
        content = (definitions([payload]), paragraph(texts("check.unknown")))
        return section(texts("check.heading"), *content)
    number = str(receipt.sequence)
    facts: list[tuple[str, str]] = [
        (texts("check.charge"), number),
        (texts("check.ledger"), element("code", receipt.ledger)),
        (texts("check.digest"), element("code", receipt.digest)),
        payload,
    ]
    if receipt.analyst:
        facts.append((texts("check.analyst"), user_text(receipt.analyst)))
    if subject.ledger is not None:
        facts.append((texts("check.review"), _state(subject, subject.ledger)))
    language = "" if texts.language == "en" else f" --language {texts.language}"
    where, export = texts("check.file"), texts("check.export")
    curator = f"sfumato ledger verify {where}\nsfumato report {where} {number} --output page.html{language}"
    public = f"sfumato ledger verify {export} --receipt {number}:{receipt.digest}"
    return section(
        texts("check.heading"),
        definitions(facts),
        paragraph(texts("check.curator")),
        paragraph(element("code", curator)),
        paragraph(texts("check.public")),
        paragraph(element("code", public)),
    )


def _state(subject: Subject, facts: LedgerFacts) -> Markup:
    """Say where the release is on its way to the public, and who signed for it."""
    review, texts = facts.review, subject.texts
    by = user_text(review.steps[-1].by) if review.steps else ""
    said = [texts(_STATES[review.state], by=by)]
    if review.approval is not None:
        signer = user_text(review.approval.by)
        marks = {"key": element("code", review.public_key), "signature": element("code", review.signature)}
        said += [Markup(" "), texts("check.signer", by=signer, **marks)]
    return joined(said)


def definitions(facts: Iterable[tuple[str, str]]) -> Markup:
    """Return names and what they stand for."""
    return element("dl", *(joined((element("dt", name), element("dd", value))) for name, value in facts))
