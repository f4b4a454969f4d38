"""What pages of collections say beside the numbers: who is protected, whom one must trust, what was asked."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, final

from sfumato.local.base.protocol import ReportProtocol
from sfumato.local.longitudinal.protocol import LongitudinalProtocol
from sfumato.report.markup.elements import Markup, element
from sfumato.report.pages.number_table import Column, number_charts, number_table
from sfumato.report.pages.sections import (
    OddsWords,
    definitions,
    items,
    not_promised,
    odds_in_words,
    paragraph,
    section,
    use,
)
from sfumato.report.pages.subject import Subject

__all__ = ["Asked", "collection_sections", "protocol_facts"]

_WORDS: Final = OddsWords(
    belief="answer.belief",
    no_belief="answer.no_belief",
    right="answer.right",
    event="answer.event",
    belief_caption="answer.belief_caption",
    event_without="answer.event_without",
    event_with="answer.event_with",
    replaced="",
)
_LIMITS: Final = ("promise.groups", "promise.others", "collect.more", "collect.seen", "promise.truth")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """How answers were collected.

    Parameters
    ----------
    columns : sequence of Column
        The numbers.
    sent : str
        The key of the text that names what is protected.
    trust : sequence of str
        Whom one must trust, as texts.
    facts : sequence of two texts
        Of the protocol.
    about : sequence of str
        The keys of what is said below the numbers.
    advice : sequence of str
        The keys of how to use the numbers.
    remarks : sequence of str
        What else is to be said of the guarantee, as texts.
    """

    columns: list[Column]
    sent: str
    trust: list[Markup]
    facts: list[tuple[str, str]]
    about: tuple[str, ...]
    advice: tuple[str, ...]
    remarks: list[Markup]


def collection_sections(subject: Subject, asked: Asked) -> Iterable[Markup]:
    """Yield the sections of the page.

    Parameters
    ----------
    subject : Subject
    asked : Asked
    """
    texts, written = subject.texts, subject.numerals
    below = (paragraph(texts(key)) for key in asked.about)
    charts = number_charts(asked.columns, texts)
    yield section(texts("numbers.heading"), number_table(asked.columns, texts), *below, *charts)
    amounts = {"epsilon": written.up(subject.epsilon), "delta": written.up(subject.delta)}
    said = [
        texts("collect.who", sent=texts(asked.sent)),
        texts("collect.guarantee", **amounts),
        *asked.remarks,
    ]
    yield section(texts("who.heading"), *map(paragraph, said))
    yield section(texts("collect.trust"), items(asked.trust))
    yield odds_in_words(subject, _WORDS)
    yield section(texts("collect.made"), definitions(asked.facts))
    yield use(subject, asked.advice)
    yield not_promised(subject, _LIMITS)


def protocol_facts(
    subject: Subject, protocol: ReportProtocol[Any, Any], reports: int
) -> list[tuple[str, str]]:
    """Return what is public of a protocol: its name, what can be answered, and its epsilons.

    Parameters
    ----------
    subject : Subject
    protocol : ReportProtocol
    reports : int
        How many clients were counted.
    """
    texts, written = subject.texts, subject.numerals
    facts: list[tuple[str, str]] = [
        (texts("collect.protocol"), element("code", protocol.wire_name)),
        (texts("collect.reports"), written.nearest(reports)),
    ]
    domain, bounds = getattr(protocol, "domain", None), getattr(protocol, "bounds", None)
    if domain is not None:
        facts.append((texts("collect.categories"), written.nearest(len(domain))))
    if bounds is not None:
        low, high = (written.nearest(end) for end in bounds)
        facts.append((texts("collect.bounds"), texts("collect.between", low=low, high=high)))
    each = protocol.privacy_loss.epsilon(0.0)
    if math.isfinite(each):
        facts.append((texts("collect.each"), written.up(each)))
    if isinstance(protocol, LongitudinalProtocol):
        memo, total = protocol.permanent_loss.epsilon(0.0), protocol.longitudinal_loss().epsilon(0.0)
        memos = written.nearest(protocol.device.memo_limit)
        facts += [
            (texts("collect.memo"), texts("collect.memo_text", epsilon=written.up(memo))),
            (texts("collect.total"), texts("collect.total_text", epsilon=written.up(total), memos=memos)),
        ]
    return facts
