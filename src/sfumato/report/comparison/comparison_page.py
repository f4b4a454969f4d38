"""A comparison for readers: as text, as a section of a page with a strip and a table, and as a page."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable
from typing import Final

from sfumato import _check
from sfumato.privacy.neighboring import Neighboring
from sfumato.queries.release.display import printable
from sfumato.report.comparison.compare import Comparison, Placed, Standing
from sfumato.report.comparison.deployment_records import DeploymentRecord
from sfumato.report.markup.elements import Markup, element, joined, user_text
from sfumato.report.markup.numerals import Numerals
from sfumato.report.markup.strip_chart import strip_chart
from sfumato.report.pages.document import ReleasePage, document
from sfumato.report.pages.sections import items, odds_in_words, paragraph, section, small_table
from sfumato.report.pages.subject import Subject
from sfumato.report.texts.catalog import Texts

__all__ = ["comparison_page", "comparison_section", "comparison_text", "stated_parameters"]

_SURE: Final = 12.0
"""Odds of more than 10 to this power stand at the end of the strip."""
_STEPS: Final = 4
"""Between the labels below the strip, at most."""
_MEETS: Final = {True: "compare.yes", False: "compare.no", None: "compare.undecided"}
_WHY: Final = {"parameters": "compare.why_parameters", "relation": "compare.why_relation"}
_HEADS: Final = (
    "compare.name",
    "compare.stated",
    "compare.right",
    "compare.belief",
    "compare.reconstruction",
    "compare.error",
    "compare.meets",
)


def comparison_page(comparison: Comparison, *, language: str = "en") -> ReleasePage:
    """Return a comparison as a page: the section, and the odds of the compared guarantee in words.

    Parameters
    ----------
    comparison : Comparison
        What `sfumato.report.compare` returned.
    language : str
        ``"en"`` or ``"de"``.

    Returns
    -------
    ReleasePage

    Raises
    ------
    ParameterError
        If it is no comparison, or there is no such language.

    Notes
    -----
    Guarantee: the page follows from public parameters; see `sfumato.report.compare` for its numbers.

    Examples
    --------
    >>> from sfumato import report
    >>> from sfumato.privacy import PureDP
    >>> page = report.comparison_page(report.compare(PureDP(0.5), unit="user-day"))
    >>> "COVID-19 Search Trends Symptoms" in page.html, "Broadband Coverage" in page.html
    (True, False)
    """
    _check.instance("comparison", comparison, Comparison, "pass what report.compare returned")
    texts = Texts(language)
    loss = comparison.loss
    subject = Subject(
        texts=texts,
        epsilon=0.0,
        delta=0.0,
        loss=loss,
        relation=loss.neighboring or Neighboring.ADD_REMOVE,
        privacy_unit=comparison.unit,
        simulated=False,
        payload="",
        receipt=None,
        ledger=None,
    )
    parts = (comparison_section(texts, comparison), odds_in_words(subject))
    return document(subject, parts, title=texts("compare.title"), lead=texts("compare.lead"))


def comparison_section(texts: Texts, comparison: Comparison) -> Markup:
    """Return the section: how it is compared, the strip, the table, and what is not placed."""
    placed = comparison.placed
    parts: list[Markup] = [paragraph(_summary(texts, comparison, element("code", comparison.unit)))]
    if placed:
        parts.append(paragraph(texts("compare.how")))
        parts.append(_strip(texts, comparison))
    table = _table(texts, comparison)
    label = texts("compare.heading")
    parts.append(element("div", table, class_="scroll", tabindex="0", role="group", aria_label=label))
    parts.append(paragraph(texts("compare.error_note")))
    others = [each for each in comparison.records if each.standing is None]
    if others:
        lines = (joined((_name(each.record), ": ", _why(texts, each))) for each in others)
        parts += [element("h3", texts("compare.not_placed")), items(lines)]
    return section(texts("compare.heading"), *parts, paragraph(texts("compare.source")))


def comparison_text(comparison: Comparison, *, language: str = "en") -> str:
    """Return a comparison as lines of text: the compared guarantee, and a line for each record.

    Parameters
    ----------
    comparison : Comparison
        What `sfumato.report.compare` returned.
    language : str
        ``"en"`` or ``"de"``.

    Returns
    -------
    str

    Raises
    ------
    ParameterError
        If it is no comparison, or there is no such language.

    Examples
    --------
    >>> from sfumato import report
    >>> from sfumato.privacy import PureDP
    >>> lines = report.comparison_text(report.compare(PureDP(0.5), unit="user-day")).splitlines()
    >>> lines[2][:70]
    '1. COVID-19 Search Trends Symptoms (Google, 2020): ε = 1.68; User-day-'
    """
    _check.instance("comparison", comparison, Comparison, "pass what report.compare returned")
    texts = Texts(language)
    lines = [_summary(texts, comparison, comparison.unit), _own_line(texts, comparison.own)]
    written = Numerals(language)
    for mark, each in enumerate(comparison.placed, start=1):
        right = "" if each.standing is None else written.chance_up(each.standing.right)
        known = {
            "mark": str(mark),
            "name": _plain_name(each.record),
            "parameters": stated_parameters(written, each.record),
            "stated": each.record.stated_unit,
            "right": right,
            "meets": texts(_MEETS[each.meets]),
        }
        lines.append(texts("compare.line", **known))
    for each in comparison.records:
        if each.standing is None:
            name = _plain_name(each.record)
            lines.append(texts("compare.left_out", name=name, why=_why(texts, each)))
    lines.append(texts("compare.source"))
    return "".join(f"{printable(html.unescape(line))}\n" for line in lines)


def _summary(texts: Texts, comparison: Comparison, unit: str) -> Markup:
    counts = {
        "placed": str(len(comparison.placed)),
        "stronger": str(comparison.stronger),
        "others": str(comparison.other_units),
    }
    said = texts("compare.unit", unit=unit, **counts)
    return said if comparison.placed else joined((said, " ", texts("compare.none")))


def _own_line(texts: Texts, own: Standing) -> Markup:
    written = Numerals(texts.language)
    if own.belief is None:
        belief = texts("compare.no_belief_line")
    else:
        belief = texts("compare.belief_line", belief=written.chance_up(own.belief))
    found = texts("compare.in_100", chance=written.chance_up(own.reconstruction))
    right = written.chance_up(own.right)
    known = {"right": right, "belief": belief, "reconstruction": found, "error": _error(texts, own)}
    return texts("compare.own_line", **known)


def _table(texts: Texts, comparison: Comparison) -> Markup:
    rows = [(texts("compare.own"), "\N{EN DASH}", *_numbers(texts, comparison.own), "\N{EN DASH}")]
    for mark, each in enumerate(comparison.placed, start=1):
        if each.standing is not None:
            named = (joined((f"{mark}. ", _name(each.record))), _stated(texts, each.record))
            rows.append((*named, *_numbers(texts, each.standing), texts(_MEETS[each.meets])))
    return small_table(texts("compare.caption"), map(texts, _HEADS), rows, numbers=False)


def _stated(texts: Texts, record: DeploymentRecord) -> Markup:
    """Return the unit and the parameters of a record, in its own words and numbers."""
    note = f" {record.note}" if record.note else ""
    parameters = stated_parameters(Numerals(texts.language), record)
    return joined((user_text(record.stated_unit), f": {parameters}.", user_text(note)))


def _numbers(texts: Texts, standing: Standing) -> tuple[str, ...]:
    written = Numerals(texts.language)
    belief = texts("compare.no_bound") if standing.belief is None else written.chance_up(standing.belief)
    return (
        written.chance_up(standing.right),
        belief,
        texts("compare.in_100", chance=written.chance_up(standing.reconstruction)),
        _error(texts, standing),
    )


def _error(texts: Texts, standing: Standing) -> Markup:
    if standing.error is None:
        return texts("compare.no_error")
    return joined([Numerals(texts.language).nearest(standing.error)])


def _plain_name(record: DeploymentRecord) -> str:
    part = f", {record.part}" if record.part else ""
    return f"{record.name}{part} ({', '.join(record.curators)}, {record.published.year})"


def _name(record: DeploymentRecord) -> Markup:
    return user_text(_plain_name(record))


def _why(texts: Texts, placed: Placed) -> Markup:
    if placed.why == "relation":
        return texts("compare.why_relation", relation=placed.record.relation)
    return texts(_WHY[placed.why])


def stated_parameters(written: Numerals, record: DeploymentRecord) -> str:
    """Return what a record states, to four digits.

    Parameters
    ----------
    written : Numerals
    record : DeploymentRecord
    """
    stated: Iterable[tuple[str, float | None]] = (
        ("ε", record.epsilon),
        ("δ", record.delta),
        ("\N{GREEK SMALL LETTER RHO}", record.rho),
    )
    return ", ".join(f"{name} = {written.up(value)}" for name, value in stated if value is not None)


def _strip(texts: Texts, comparison: Comparison) -> Markup:
    marks = [_odds(each.standing.right) for each in comparison.placed if each.standing is not None]
    own = _odds(comparison.own.right)
    top = float(max(1, math.ceil(max(min(each, _SURE) for each in (own, *marks)))))
    numerals = Numerals(texts.language)
    steps = [float(step) for step in range(0, int(top) + 1, 1 if top <= _STEPS else -(-int(top) // _STEPS))]
    scale = [(step, texts("compare.odds_scale", odds=numerals.nearest(10.0**step))) for step in steps]
    chart = strip_chart(
        own,
        marks,
        top=top,
        scale=scale,
        title=texts("compare.chart"),
        description=texts("compare.chart_text"),
        key="strip",
    )
    return element("figure", chart, element("figcaption", texts("compare.chart_caption")))


def _odds(right: float) -> float:
    """Return the power of ten of the odds of a right guess."""
    wrong = 1.0 - right
    return math.inf if wrong <= 0 else max(0.0, math.log10(right / wrong))
