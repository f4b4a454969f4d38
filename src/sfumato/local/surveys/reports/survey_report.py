"""The report of one survey, as a page of HTML that needs nothing else, or as text."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, TypeAlias, final

import numpy as np

from sfumato import _check
from sfumato.local.surveys.designs.design import Design
from sfumato.local.surveys.designs.tasks import Kind
from sfumato.local.surveys.estimates.category_shares import Shares
from sfumato.local.surveys.estimates.prevalence import Prevalence
from sfumato.local.surveys.quantitative.number_design import NumberDesign
from sfumato.local.surveys.quantitative.number_estimate import NumberEstimate
from sfumato.local.surveys.reports.outward_decimals import PLACES, decimal_above, decimal_below
from sfumato.local.surveys.sheets.analyst import chances, privacy
from sfumato.local.surveys.sheets.blocks import Bars, Block, Heading, Listed, Page, Table, Text
from sfumato.local.surveys.sheets.html import html_text
from sfumato.local.surveys.sheets.number_pages import task_chances
from sfumato.local.surveys.sheets.plain import plain_text
from sfumato.local.surveys.sheets.respondent import label
from sfumato.local.surveys.sheets.words import Words, words_of

__all__ = ["SurveyReport"]

Reported: TypeAlias = Prevalence | Shares | NumberEstimate
_Row: TypeAlias = tuple[str, float, float, float, float]

_PRIOR: Final = Fraction(1, 10)
_MISFIT: Final = 0.01
_COVERING: Final = ("clopper-pearson", "bernstein", "hoeffding")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SurveyReport:
    """What one survey found, how it was asked, what an answer shows, and what is not promised.

    Parameters
    ----------
    question : str
        The sensitive question, as it was asked.
    estimate : Prevalence, Shares or NumberEstimate
        What a design estimated from the answers.
    level : float
        Of the intervals, strictly between 0 and 1.
    method : str, optional
        Of the intervals, as the estimate takes it; without it one that covers with at least the level.
    left_out : int
        How many rows had no answer.
    language : {"en", "de", "es", "fr"}
        Of all but the question and the categories.

    Notes
    -----
    Guarantee: what is shown of the privacy follows from the design alone, and holds for each answer under
    replace-one. Odds and the ends of intervals are rounded outward, so that what is read is never more than
    what holds. The estimates are functions of the randomized answers.

    Examples
    --------
    >>> from sfumato.local.surveys import TwoCoins
    >>> found = TwoCoins().estimate({"yes": 400, "no": 600})
    >>> report = SurveyReport(question="Have you ever cheated in an exam?", estimate=found)
    >>> report.html().startswith("<!DOCTYPE html>"), "1000 people answered." in report.text()
    (True, True)
    """

    question: str
    estimate: Reported
    level: float = 0.95
    method: str | None = None
    left_out: int = 0
    language: str = "en"

    def __post_init__(self) -> None:
        asked: object = self.question
        if not isinstance(asked, str) or not asked.strip():
            _check.refuse("question", "be a text", asked, "pass the question as it was asked")
        estimate: object = self.estimate
        if not isinstance(estimate, Prevalence | Shares | NumberEstimate):
            rule, remedy = "be a Prevalence, Shares or a NumberEstimate", "pass design.estimate(answers)"
            _check.refuse_type("estimate", rule, estimate, remedy)
        _check.instance("estimate.design", estimate.design, Design, "take a design with one sample")
        _check.integer("left_out", self.left_out)
        words_of(self.language)
        self._interval()  # level and method are checked

    def html(self) -> str:
        """Return the report as one HTML file without scripts that fetches nothing.

        Returns
        -------
        str
            The text of the file.
        """
        return html_text((self.page,), language=self.language)

    def text(self) -> str:
        """Return the report as plain text.

        Returns
        -------
        str
            Lines of plain characters.
        """
        return plain_text((self.page,))

    @property
    def page(self) -> Page:
        """What the report says, whatever it is written as."""
        words = words_of(self.language)
        blocks = (
            Text(self.question, loud=True),
            *self._result(words),
            *self._answers(words),
            *self._asked(words),
            *self._not_promised(words),
        )
        return Page(words.report_title, blocks)

    def _interval(self) -> Any:
        estimate: Any = self.estimate
        return estimate.interval(self.level, *([] if self.method is None else [self.method]))

    def _rows(self, words: Words) -> list[_Row]:
        """Return name, estimate, standard deviation and both ends of what was estimated."""
        lower, upper, _ = self._interval()
        match self.estimate:
            case Prevalence() as found:
                return [(words.prevalence, found.prevalence, found.stddev, lower, upper)]
            case NumberEstimate() as found:
                return [(words.mean, found.mean, found.stddev, lower, upper)]
            case found:
                names = [label(name, words) for name in found.design.categories]
                values = found.shares.tolist(), found.stddev.tolist(), lower.tolist(), upper.tolist()
                return list(zip(names, *values, strict=True))

    def _result(self, words: Words) -> Iterator[Block]:
        rows, estimate = self._rows(words), self.estimate
        yield Heading(words.report_result)
        headings = words.report_estimate, words.report_stddev, words.report_lower, words.report_upper
        cells = (
            (name, _near(value), _near(stddev), decimal_below(lower), decimal_above(upper))
            for name, value, stddev, lower, upper in rows
        )
        yield Table((words.report_quantity, *headings), tuple(cells))
        number, bounds = isinstance(estimate, NumberEstimate), (0.0, 1.0)
        if isinstance(estimate, NumberEstimate):
            bounds = float(estimate.design.lower), float(estimate.design.upper)
        if estimate.respondents:
            bars = tuple((name, value, lower, upper) for name, value, _, lower, upper in rows)
            yield Bars(words.report_bars, bars, bounds)
        method = self.method or ("bernstein" if number else "clopper-pearson")
        covers = words.report_covers if method in _COVERING else words.report_approximate
        interval = words.report_interval.format(level=f"{100 * self.level:.10g}", method=method)
        yield Text(f"{interval} {covers}")
        yield Text(words.report_raw)
        if not isinstance(estimate, Shares) and estimate.misfit < _MISFIT:
            yield Text(words.report_misfit.format(misfit=f"{decimal_above(estimate.misfit)}"))
        if isinstance(estimate, NumberEstimate) and estimate.respondents:
            yield Heading(words.report_distribution)
            shares = estimate.distribution.maximum_likelihood.tolist()
            numbers = map(str, estimate.design.categories)
            pairs = tuple((name, _near(share)) for name, share in zip(numbers, shares, strict=True))
            yield Table((words.answer, words.report_share), pairs)

    def _answers(self, words: Words) -> Iterator[Block]:
        yield Heading(words.report_answers)
        design, estimate = self._design, self.estimate
        if isinstance(estimate, Prevalence):
            counts = [estimate.respondents - estimate.yes, estimate.yes]
        else:
            counts = np.asarray(estimate.counts).tolist()
        total = words.report_total.format(count=estimate.respondents)
        left = f" {words.report_left_out.format(count=self.left_out)}" if self.left_out else ""
        yield Text(total + left)
        names = (label(answer, words) for answer in design.answers)
        yield Table((words.answer, words.report_count), tuple(zip(names, map(str, counts), strict=True)))

    def _asked(self, words: Words) -> Iterator[Block]:
        design = self._design
        yield Heading(words.report_design)
        yield Text(repr(design), formula=True)
        yield task_chances(design, words) if isinstance(design, NumberDesign) else chances(design, words)
        yield from privacy(design, words)
        if not math.isinf(design.odds):
            odds = Fraction(design.odds)
            most = _PRIOR * odds / (1 - _PRIOR + _PRIOR * odds)
            least = _PRIOR / (_PRIOR + (1 - _PRIOR) * odds)
            shown = {"least": decimal_below(100 * least, 1), "most": decimal_above(100 * most, 1)}
            yield Text(words.report_belief.format(prior=f"{float(100 * _PRIOR):g}", **shown))

    def _not_promised(self, words: Words) -> Iterator[Block]:
        design = self._design
        harmless = any(task.kind in {Kind.OTHER, Kind.COMPARE} for task in design.tasks)
        share = getattr(design, "innocuous", None)
        unknown = [words.unknown.format(share=Fraction(share))] if harmless and share is not None else []
        yield Heading(words.report_not_promised)
        own = words.report_who, words.report_population, words.report_followed, *unknown
        yield Listed((*own, words.report_learn, words.report_several))

    @property
    def _design(self) -> Design:
        design: Any = self.estimate.design
        found: Design = design
        return found


def _near(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.{PLACES}f}"
