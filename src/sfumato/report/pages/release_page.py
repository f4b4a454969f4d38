"""The page of one release: static HTML that anybody can read, with the numbers, the odds and the receipt."""

from __future__ import annotations

import hashlib

from sfumato import _check
from sfumato.ledger.ledger import Ledger
from sfumato.privacy.receipt import Receipt
from sfumato.queries.release.table import TableRelease
from sfumato.report.markup.elements import Markup, element
from sfumato.report.pages.document import ReleasePage, document
from sfumato.report.pages.limits import exact, limits
from sfumato.report.pages.number_table import columns_of, number_charts, number_table
from sfumato.report.pages.record_sections import KINDS, StoredRecord, record_sections
from sfumato.report.pages.sections import NOISY, check, not_promised, odds_in_words, section, use, who
from sfumato.report.pages.subject import LedgerFacts, Subject
from sfumato.report.texts.catalog import Texts

__all__ = ["release", "stored_release"]


def release(release: TableRelease, *, ledger: Ledger | None = None, language: str = "en") -> ReleasePage:
    """Return the page of a release: numbers with intervals, who is protected, the odds, the receipt.

    Parameters
    ----------
    release : TableRelease
        From a session, or read back from a ledger.
    ledger : Ledger, optional
        That of the release: the page says purpose, question, budget and review, too.
    language : str
        ``"en"`` or ``"de"``.

    Returns
    -------
    ReleasePage
        Of the same bytes for a release that was read back, but for the limits on a unit's groups and rows,
        which a ledger does not store.

    Raises
    ------
    ParameterError
        If it is no such release, or of another ledger, or there is no such language.

    Notes
    -----
    Guarantee: the page is post-processing of the release and of public parameters. It has the numbers of the
    release, and costs nothing; the odds are those of `sfumato.report.odds`. Every bound is rounded outward
    after it is written as text.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import sfumato as sf
    >>> from sfumato import report
    >>> with sf.connect(pa.table({"n": range(1000)}), privacy_unit=sf.ROW, epsilon=1.0, rng=1) as session:
    ...     answer = session.sql(
    ...         "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=0.5, delta=0) COUNT(*) AS people FROM data"
    ...     )
    ...     page = report.release(answer, ledger=session.ledger)
    >>> "at most 62.3 in 100" in page.html, "at most 69.7 in 100" in page.html
    (True, True)
    """
    _check.instance("release", release, TableRelease, "pass what session.sql or ledger.release returned")
    if ledger is not None:
        _check.instance("ledger", ledger, Ledger, "pass session.ledger")
    facts = None if ledger is None or release.receipt is None else _facts(ledger, release.receipt)
    subject = Subject(
        texts=Texts(language),
        epsilon=release.epsilon,
        delta=release.charged_delta,
        loss=release.loss,
        relation=release.neighboring,
        privacy_unit=release.privacy_unit,
        simulated=release.simulated,
        payload=hashlib.sha256(release.record.to_bytes()).hexdigest(),
        receipt=release.receipt,
        ledger=facts,
    )
    parts = (
        _numbers(subject, release),
        who(subject),
        odds_in_words(subject),
        limits(subject, release),
        exact(subject, release.record),
        use(subject, NOISY),
        not_promised(subject),
        check(subject),
    )
    return document(subject, parts)


def stored_release(ledger: Ledger, number: int, *, language: str = "en") -> ReleasePage:
    """Return the page of a release that a ledger stored; needs no data and costs nothing.

    Parameters
    ----------
    ledger : Ledger
    number : int
        Of its charge.
    language : str
        ``"en"`` or ``"de"``.

    Returns
    -------
    ReleasePage

    Raises
    ------
    ParameterError
        If nothing was stored with this charge of which there are pages, or there is no such language.

    Notes
    -----
    There are pages of tables that SQL asked for, of tables and models of `sfumato.synthetic`, and of
    evaluations of models; each is post-processing, as in `release`.
    """
    _check.instance("ledger", ledger, Ledger, "pass session.ledger, or Ledger.read(file)")
    found = ledger.release(number)
    if isinstance(found, TableRelease):
        return release(found, ledger=ledger, language=language)
    if not isinstance(found, StoredRecord):
        _check.refuse("number", f"be that of {KINDS}", number, "'sfumato ledger release' shows the others")
    return _record_page(found, ledger, number, language)


def _record_page(record: StoredRecord, ledger: Ledger, number: int, language: str) -> ReleasePage:
    """Return the page of a record that holds no receipt: it is that of the ledger's entry."""
    entry = ledger.entry(number)
    receipt = ledger.receipt(number)
    subject = Subject(
        texts=Texts(language),
        epsilon=record.epsilon,
        delta=entry.delta,
        loss=record.loss,
        relation=ledger.neighboring,
        privacy_unit=record.privacy_unit,
        simulated=record.simulated,
        payload=hashlib.sha256(record.to_bytes()).hexdigest(),
        receipt=receipt,
        ledger=_facts(ledger, receipt),
    )
    return document(subject, record_sections(subject, record))


def _facts(ledger: Ledger, receipt: Receipt) -> LedgerFacts:
    entry = ledger.entry(receipt.sequence) if ledger.ledger_id == receipt.ledger else None
    if entry is None or entry.digest != receipt.digest:
        _check.refuse_state("ledger", "be the one of the release", "it is another", "pass session.ledger")
    review = ledger.reviews.of(receipt.sequence)
    return LedgerFacts(entry=entry, review=review, budget=str(ledger.budget))


def _numbers(subject: Subject, release: TableRelease) -> Markup:
    """Return table and charts, and what their intervals are about."""
    texts, record = subject.texts, release.record
    columns = columns_of(release.to_arrow(), release.to_arrow(intervals=True), record.keys)
    lines = [texts("numbers.coverage")] if record.columns else []
    if record.threshold is not None:
        lines.append(texts("numbers.thresholded"))
    if record.having is not None or record.limit is not None or record.offset:
        lines.append(texts("numbers.selected"))
    paragraphs = (element("p", line) for line in lines)
    charts = number_charts(columns, texts)
    return section(texts("numbers.heading"), number_table(columns, texts), *paragraphs, *charts)
