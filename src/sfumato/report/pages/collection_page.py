"""The pages of surveys without a trusted curator: by local privacy, and by a shuffler."""

from __future__ import annotations

import math
from typing import Any, Final, TypeAlias, TypeVar, get_args

from sfumato import _check
from sfumato.local.base.protocol import ReportProtocol
from sfumato.local.frequency.estimate import Estimate
from sfumato.local.longitudinal.protocol import LongitudinalProtocol
from sfumato.local.shuffle.collection import Collection
from sfumato.local.shuffle.protocol import ShuffleProtocol
from sfumato.local.shuffle.sparse_histogram import SparseHistogram, SparseRelease
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring
from sfumato.report.markup.elements import Markup, element
from sfumato.report.pages.collected_numbers import Collected, collected_columns, sparse_columns
from sfumato.report.pages.collection_sections import Asked, collection_sections, protocol_facts
from sfumato.report.pages.document import ReleasePage, document
from sfumato.report.pages.subject import Subject
from sfumato.report.texts.catalog import Texts

__all__ = ["Mixed", "local_estimate", "shuffled_estimate"]

Mixed: TypeAlias = Collection | ShuffleProtocol[Any] | SparseHistogram
"""What was asked through a shuffler."""

_KINDS: Final = "shares, a mean, a sum or texts with intervals"
_SHARES: Final = ("use.interval", "collect.use_negative", "collect.use_rare", "use.parts")
_NUMBER: Final = ("use.interval",)
_NAMES: Final = ("use.interval", "use.difference", "collect.use_rare")
_T = TypeVar("_T")


def local_estimate(
    estimate: Collected, protocol: ReportProtocol[Any, Any], *, delta: float = 0.0, language: str = "en"
) -> ReleasePage:
    """Return the page of a survey with local privacy: numbers, epsilon of a report and of all, whom to trust.

    Parameters
    ----------
    estimate : Estimate, RangeEstimate, HeavyHitters or MeanEstimate
        Of `sfumato.local`.
    protocol : ReportProtocol
        The one that it was counted by.
    delta : float
        For a protocol whose reports are not pure.
    language : str
        ``"en"`` or ``"de"``.

    Returns
    -------
    ReleasePage

    Raises
    ------
    ParameterError
        If there are no pages of such estimates, the protocol is another one, or its messages need a shuffler.

    Notes
    -----
    Guarantee: the page is post-processing of reports. Its epsilon is that of `ReportProtocol.privacy_loss`,
    of one report; for protocols that memoize that of `longitudinal_loss`, of all reports that a device ever
    sends, between histories alike in their changes. The odds are `sfumato.report.odds` of the same loss.

    Examples
    --------
    >>> from sfumato import local, report
    >>> oracle = local.RandomizedResponse(epsilon=1.0, domain=local.Domain(["no", "yes"]))
    >>> page = report.local_estimate(oracle.simulate([7000, 3000], rng=1), oracle)
    >>> "epsilon is 1 and delta is 0" in page.html, "Nobody who collects" in page.html
    (True, True)
    """
    _check.instance("protocol", protocol, ReportProtocol, "pass the protocol that counted")
    if isinstance(protocol, ShuffleProtocol):
        _check.refuse_type("protocol", "be one without a shuffler", protocol, "take shuffled_estimate")
    estimate = _same(estimate, protocol)
    memoizes = isinstance(protocol, LongitudinalProtocol)
    loss = (
        protocol.longitudinal_loss() if isinstance(protocol, LongitudinalProtocol) else protocol.privacy_loss
    )
    subject = _subject(loss, _tolerated(delta), estimate.simulated, language)
    texts = subject.texts
    remarks = [texts("collect.changes")] if memoizes and protocol.device.memo_limit > 1 else []
    if not memoizes and math.isfinite(twice := (loss * 2).epsilon(subject.delta)):
        remarks.append(texts("collect.total_fresh", epsilon=subject.numerals.up(twice)))
    if (forged := _forged(subject, estimate)) is not None:
        remarks.append(forged)
    asked = Asked(
        columns=collected_columns(estimate, texts),
        sent="collect.sent_all" if memoizes else "collect.sent_report",
        trust=[texts("collect.trust_nobody"), texts("collect.trust_device")],
        facts=protocol_facts(subject, protocol, _respondents(estimate)),
        about=("collect.coverage",),
        advice=_SHARES if hasattr(estimate, "frequencies") else _NUMBER,
        remarks=remarks,
    )
    titles = {"title": texts("collect.local_title"), "lead": texts("collect.local_lead")}
    return document(subject, collection_sections(subject, asked), **titles)


def shuffled_estimate(
    estimate: Collected | SparseRelease, asked: Mixed, *, delta: float | None = None, language: str = "en"
) -> ReleasePage:
    """Return the page of a survey with a shuffler: numbers, the central guarantee, and what it presupposes.

    Parameters
    ----------
    estimate : Estimate, MeanEstimate, ShuffledSumEstimate, ShuffledMeanEstimate or SparseRelease
        Of `sfumato.local` or `sfumato.local.shuffle`.
    asked : Collection, ShuffleProtocol or SparseHistogram
        What it was counted by.
    delta : float, optional
        Needed where the reports of the collection have no delta of their own.
    language : str
        ``"en"`` or ``"de"``.

    Returns
    -------
    ReleasePage

    Raises
    ------
    ParameterError
        If there are no pages of such estimates, or it is of another collection, or a delta is missing; or if
        fewer reports were counted than the guarantee needs of honest devices.

    Notes
    -----
    Guarantee: the page is post-processing of what the shuffler released. Its epsilon is that of the
    collection's `privacy_loss` at the delta, with the conditions that the class of ``asked`` states; the page
    repeats them, and says what is left without them.

    Examples
    --------
    >>> from sfumato import report
    >>> from sfumato.local import Domain, shuffle
    >>> asked = shuffle.ShuffledHistogram(epsilon=1.0, delta=1e-6, clients=1000, domain=Domain(["a", "b"]))
    >>> page = report.shuffled_estimate(asked.simulate([600, 400], rng=1), asked)
    >>> "at least 1,000 devices are honest" in page.html
    True
    """
    if isinstance(asked, SparseHistogram):
        return _sparse(_checked(estimate, SparseRelease), asked, language)
    given: object = asked
    if not isinstance(given, Collection | ShuffleProtocol):
        rule = "be a Collection, a ShuffleProtocol or a SparseHistogram"
        _check.refuse_type("asked", rule, given, "for local privacy take local_estimate")
    protocol = asked.protocol if isinstance(asked, Collection) else asked
    found = _same(estimate, protocol)
    mixes = isinstance(protocol, ShuffleProtocol)
    stated = protocol.delta if isinstance(protocol, ShuffleProtocol) else None
    if delta is None and stated is None:
        _check.refuse("delta", "be given for reports without one", delta, "pass delta=1e-6, or your own")
    tolerated = _tolerated(stated if delta is None else delta)
    subject = _subject(asked.privacy_loss, tolerated, found.simulated, language)
    texts, written = subject.texts, subject.numerals
    clients, batch = asked.clients, asked.batch_size if isinstance(asked, Collection) else None
    if _respondents(found) < clients:
        few, remedy = (
            f"be of {clients} reports or more, as the guarantee is",
            "take local_estimate, if it may be",
        )
        _check.refuse_state("estimate", few, f"it is of {_respondents(found)}", remedy)
    trust = [texts("collect.trust_shuffler"), _honest(subject, clients, batch), texts("collect.trust_once")]
    if mixes:
        trust.append(texts("collect.left_little"))
    else:
        own = written.up(protocol.privacy_loss.epsilon(0.0))
        trust.append(texts("collect.left_local", epsilon=own))
    made = Asked(
        columns=collected_columns(found, texts),
        sent="collect.sent_mixed",
        trust=[*trust, texts("collect.trust_device")],
        facts=protocol_facts(subject, protocol, _respondents(found)),
        about=("collect.coverage",),
        advice=_SHARES if isinstance(found, Estimate) else _NUMBER,
        remarks=[],
    )
    return _mixed_page(subject, made)


def _sparse(release: SparseRelease, histogram: SparseHistogram, language: str) -> ReleasePage:
    known = histogram.collection
    subject = _subject(histogram.privacy_loss, known.delta, False, language)
    texts, written = subject.texts, subject.numerals
    threshold = written.nearest(histogram.mechanism.threshold)
    facts: list[tuple[str, str]] = [
        (texts("collect.protocol"), element("code", "sparse-histogram")),
        (texts("collect.reports"), written.nearest(known.batch_size)),
    ]
    if release.unreadable:
        facts.append((texts("collect.unreadable"), written.nearest(release.unreadable)))
    made = Asked(
        columns=sparse_columns(release, histogram, texts),
        sent="collect.sent_mixed",
        trust=[
            texts("collect.trust_counter", threshold=threshold),
            texts("collect.trust_once"),
            texts("collect.left_little"),
        ],
        facts=facts,
        about=("collect.coverage", "numbers.selected", "made.hidden_reason"),
        advice=_NAMES,
        remarks=[],
    )
    return _mixed_page(subject, made)


def _mixed_page(subject: Subject, asked: Asked) -> ReleasePage:
    texts = subject.texts
    titles = {"title": texts("collect.shuffled_title"), "lead": texts("collect.shuffled_lead")}
    return document(subject, collection_sections(subject, asked), **titles)


def _subject(loss: PrivacyLoss, delta: float, simulated: bool, language: str) -> Subject:
    return Subject(
        texts=Texts(language),
        epsilon=loss.epsilon(delta),
        delta=delta,
        loss=loss,
        relation=Neighboring.REPLACE_ONE,
        privacy_unit="person",
        simulated=simulated,
        payload="",
        receipt=None,
        ledger=None,
    )


def _same(estimate: Any, protocol: ReportProtocol[Any, Any]) -> Collected:
    """Return an estimate, but refuse what there is no page of, and what this protocol did not make."""
    _checked(estimate, *get_args(Collected))
    other = getattr(estimate, "domain", None), getattr(protocol, "domain", None)
    if estimate.loss != protocol.privacy_loss or (None not in other and other[0] != other[1]):
        found = "its loss or its domain is another"
        _check.refuse_state("protocol", "be the one of the estimate", found, "pass the one that counted")
    made: Collected = estimate
    return made


def _checked(estimate: Any, *kinds: type[_T]) -> _T:
    if not isinstance(estimate, kinds):
        remedy = "pass what aggregator.estimate() returned"
        _check.refuse_type("estimate", f"be one of {_KINDS}, of this collection", estimate, remedy)
    return estimate


def _tolerated(delta: float | None) -> float:
    return 0.0 if delta in (None, 0, 0.0) else _check.unit_interval("delta", delta)


def _respondents(estimate: Any) -> int:
    return int(getattr(estimate, "respondents", estimate.reports))


def _honest(subject: Subject, clients: int, batch: int | None) -> Markup:
    """Return how many are honest, of how many where that is fixed."""
    texts, written = subject.texts, subject.numerals
    if batch is None:
        return texts("collect.trust_honest_any", clients=written.nearest(clients))
    share = written.up(100 * clients / batch)
    return texts("collect.trust_honest", clients=str(clients), batch=str(batch), share=share)


def _forged(subject: Subject, estimate: Any) -> Markup | None:
    """Return how far forged reports can move the numbers, where the protocol states it."""
    if not isinstance(estimate, Estimate) or estimate.error_model.reach is None or estimate.reports < 100:
        return None
    low, high, _ = estimate.forged_bias(math.ceil(estimate.reports / 100))
    written = subject.numerals
    return subject.texts("collect.forged", low=written.down(low), high=written.up(high))
