"""What was limited, clamped and hidden in a table that SQL asked for."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Final

from sfumato.queries.plan.query import AggregateKind
from sfumato.queries.pricing.calibration import NoiseDistribution
from sfumato.queries.release.record import NoisyMeasure, ReleasedColumn, ReleaseRecord
from sfumato.queries.release.table import TableRelease
from sfumato.report.markup.elements import Markup, element, user_text
from sfumato.report.pages.sections import definitions, items, section
from sfumato.report.pages.subject import LedgerFacts, Subject

__all__ = ["exact", "limits", "question"]

_COUNTS: Final = frozenset(
    {
        AggregateKind.COUNT_ROWS,
        AggregateKind.COUNT_VALUES,
        AggregateKind.COUNT_UNITS,
        AggregateKind.COUNT_DISTINCT,
    }
)
_NOISES: Final = {
    NoiseDistribution.GAUSSIAN: "made.noise_gaussian",
    NoiseDistribution.LAPLACE: "made.noise_laplace",
    NoiseDistribution.TRUNCATED: "made.noise_truncated",
}
_CUTS: Final = {
    "units": "made.cut_units",
    "groups": "made.cut_groups",
    "rows": "made.cut_rows",
    "values": "made.cut_values",
}


def limits(subject: Subject, release: TableRelease) -> Markup:
    """Return the question, and what its limits, clamps and thresholds do.

    Parameters
    ----------
    subject : Subject
    release : TableRelease
    """
    texts, record = subject.texts, release.record
    facts: list[tuple[str, str]] = []
    if subject.ledger is not None and subject.ledger.entry.description:
        facts.append((texts("made.question"), question(subject.ledger)))
    if subject.privacy_unit != "row" or release.truncation is not None:
        facts.append((texts("made.limits"), items(_contributions(subject, release))))
    facts.append((texts("made.groups"), items(_groups(subject, record))))
    for column in record.columns:
        name = texts("made.column", column=user_text(column.name))
        facts.append((name, items(_column(subject, record, column))))
    for computed in record.computed:
        if computed.name in record.output:
            name = texts("made.column", column=user_text(computed.name))
            formula = element("code", user_text(computed.sql))
            facts.append((name, items([texts("made.computed", formula=formula)])))
    return section(texts("made.heading"), definitions(facts))


def question(ledger: LedgerFacts) -> Markup:
    """Return what was asked, as the ledger describes it.

    Parameters
    ----------
    ledger : LedgerFacts
    """
    return element("code", user_text(" ".join(ledger.entry.description.split())))


def exact(subject: Subject, record: ReleaseRecord) -> Markup:
    """Return what of the table has no noise.

    Parameters
    ----------
    subject : Subject
    record : ReleaseRecord
    """
    texts = subject.texts
    lines = [texts("exact.none")]
    if record.keys:
        key = "exact.public_names" if record.threshold is None else "exact.shown_names"
        lines.append(texts(key))
    return section(texts("exact.heading"), *(element("p", line) for line in lines))


def _contributions(subject: Subject, release: TableRelease) -> Iterator[Markup]:
    """Yield how much of one unit counts, and what share of all is left out where that was asked."""
    texts, unit, written = subject.texts, subject.unit, subject.numerals
    if subject.privacy_unit != "row":
        if release.priced is None:
            yield texts("made.limits_in_question", unit=unit)
        else:
            options = release.priced.query.options
            stated = (
                ("made.limit_groups", options.max_groups_contributed),
                ("made.limit_rows", options.max_rows_per_group),
                ("made.limit_all_rows", options.max_rows_contributed),
            )
            for key, count in stated:
                if count is not None:
                    yield texts(key, unit=unit, count=written.nearest(count))
    report = release.truncation
    for row in [] if report is None else report.to_arrow().to_pylist():
        share, low, high = (100 * row[name] for name in ("share", "share_lower", "share_upper"))
        shown = {"share": written.nearest(share), "low": written.down(low), "high": written.up(high)}
        column = user_text(row["aggregate"] or "")
        yield texts(_CUTS[row["cut_off"]], unit=unit, column=column, **shown)


def _groups(subject: Subject, record: ReleaseRecord) -> Iterator[Markup]:
    """Yield which groups are shown."""
    texts, threshold = subject.texts, record.threshold
    if not record.keys:
        yield texts("made.no_groups")
    elif threshold is None:
        yield texts("made.public_groups")
    else:
        least = subject.numerals.nearest(threshold.units)
        yield texts("made.threshold", unit=subject.unit, least=least)
        if threshold.probability != 1:
            yield texts("made.threshold_coin", least=least)
        if record.minimum_units > 1:
            yield texts("made.minimum", minimum=subject.numerals.nearest(record.minimum_units))
        yield texts("made.hidden_reason")
    for found in record.found:
        ends = {"low": subject.numerals.down(found.lower), "high": subject.numerals.up(found.upper)}
        yield texts("made.found", what=user_text(found.words), **ends)


def _column(subject: Subject, record: ReleaseRecord, column: ReleasedColumn) -> Iterator[Markup]:
    """Yield what a column is, its clamps, and its noise."""
    texts, measure = subject.texts, record.measures[column.total]
    yield texts("made.kind", kind=element("code", column.kind.value))
    unit, written, step = subject.unit, subject.numerals, Fraction(2) ** measure.exponent
    low, high = written.down(float(measure.lower * step)), written.up(float(measure.upper * step))
    if measure.row_lower is not None and measure.row_upper is not None:
        rows = written.down(float(measure.row_lower * step)), written.up(float(measure.row_upper * step))
        yield texts("made.clamp_rows", low=rows[0], high=rows[1])
    if column.kind in _COUNTS and measure.lower > 0:
        yield texts("made.clamp_count_least", unit=unit, low=low, high=high)
    elif column.kind in _COUNTS and subject.privacy_unit != "row":
        yield texts("made.clamp_count", unit=unit, high=high)
    elif column.kind is AggregateKind.SUM:
        yield texts("made.clamp_sum", unit=unit, low=low, high=high)
    elif column.kind is AggregateKind.AVG:
        yield texts("made.clamp_mean", unit=unit, low=low, high=high)
    if column.count is not None or (column.more and measure.distribution in _NOISES):
        yield texts("made.from_sums")
    yield _noise(subject, measure)


def _noise(subject: Subject, measure: NoisyMeasure) -> Markup:
    if measure.distribution not in _NOISES:
        return subject.texts("made.noise_chosen")
    deviation = measure.noise.stddev * 2.0**measure.exponent
    return subject.texts(_NOISES[measure.distribution], deviation=subject.numerals.up(deviation))
