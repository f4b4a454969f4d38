"""What a page says of releases that are no SQL table: tables and models of `synthetic`, and evaluations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from sfumato.learning.reports.evaluation import EvaluationRecord
from sfumato.report.markup.elements import Markup, element, user_text
from sfumato.report.pages.limits import question
from sfumato.report.pages.number_table import Column, number_charts, number_table
from sfumato.report.pages.sections import (
    NOISY,
    check,
    definitions,
    not_promised,
    odds_in_words,
    section,
    use,
    who,
)
from sfumato.report.pages.subject import Subject
from sfumato.synthetic.releases.release_record import SyntheticRecord

__all__ = ["KINDS", "StoredRecord", "record_sections"]

StoredRecord: TypeAlias = SyntheticRecord | EvaluationRecord

KINDS: Final = "a table that SQL asked for, of a synthetic table or of an evaluation"
"""Of which stored releases there are pages."""

_ADVICE: Final = {
    "marginals": ("use.deviation", "use.difference", "use.negative", "use.parts", "use.again"),
    "topdown": ("use.whole", "use.again"),
    "synthetic-model": ("use.model", "use.again"),
    "domain": ("use.domain", "use.again"),
}
_EXACT: Final = {
    "marginals": "exact.none",
    "topdown": "exact.none",
    "synthetic-model": "exact.model",
    "domain": "exact.domain",
}
"""What is exact where nothing is outside of the guarantee."""
_KEYS: Final = ("columns", "cell", "column")


def record_sections(subject: Subject, record: StoredRecord) -> list[Markup]:
    """Return the sections of the page of a record.

    Parameters
    ----------
    subject : Subject
    record : SyntheticRecord or EvaluationRecord
    """
    build = _SECTIONS[type(record)]
    numbers, advice, exactly = build(subject, record)
    texts, asked = subject.texts, subject.ledger
    parts = [section(texts("numbers.heading"), *numbers), who(subject), odds_in_words(subject)]
    if asked is not None and asked.entry.description:
        listed = definitions([(texts("made.question"), question(asked))])
        parts.append(section(texts("made.heading"), listed))
    exact = section(texts("exact.heading"), *(element("p", line) for line in exactly))
    return [*parts, exact, use(subject, advice), not_promised(subject), check(subject)]


_Built: TypeAlias = tuple[list[Markup], tuple[str, ...], list[Markup]]
"""The numbers, the keys of how to use them, and what is exact."""


def _synthetic(subject: Subject, record: SyntheticRecord) -> _Built:
    table = record.to_arrow()
    levels = set(table.column_names) - {"count", "count_", "stddev"} if record.kind == "topdown" else set()
    columns = [
        Column(
            name=name,
            values=table.column(index).to_pylist(),
            is_key=name in _KEYS or name in levels,
        )
        for index, name in enumerate(table.column_names)
    ]
    outside = record.release.outside_guarantee if record.kind == "topdown" else ()
    exactly = [subject.texts("exact.invariants", what=user_text(what)) for what in outside]
    return (
        [number_table(columns, subject.texts)],
        _ADVICE[record.kind],
        exactly or [subject.texts(_EXACT[record.kind])],
    )


def _evaluation(subject: Subject, record: EvaluationRecord) -> _Built:
    columns = [
        Column(name="correct", values=[record.correct]),
        Column(name="rows", values=[record.rows]),
        Column(name="accuracy", values=[record.accuracy], ends=([record.lower], [record.upper])),
    ]
    charts = number_charts(columns, subject.texts)
    return [number_table(columns, subject.texts), *charts], NOISY, [subject.texts("exact.evaluation")]


_SECTIONS: Final[dict[type, Callable[..., _Built]]] = {
    SyntheticRecord: _synthetic,
    EvaluationRecord: _evaluation,
}
