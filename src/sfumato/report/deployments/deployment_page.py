"""The report of a deployment: one page about a whole ledger."""

from __future__ import annotations

from sfumato import _check
from sfumato.ledger.ledger import Ledger
from sfumato.queries.release.display import printable
from sfumato.report.comparison.compare import compare_budget
from sfumato.report.comparison.comparison_page import comparison_section
from sfumato.report.deployments.checklist_section import about_section, checklist_section
from sfumato.report.deployments.deployment_facts import facts_of
from sfumato.report.deployments.deployment_sections import (
    accounts,
    check_ledger,
    members,
    not_promised_by_all,
    odds_of_all,
    promise,
    releases,
    unsound,
)
from sfumato.report.markup.elements import Markup, element
from sfumato.report.pages.document import ReleasePage, document
from sfumato.report.pages.stated_loss import stated_loss
from sfumato.report.pages.subject import Subject
from sfumato.report.registry.registry_record import Deployment
from sfumato.report.texts.catalog import Texts

__all__ = ["deployment"]


def deployment(
    ledger: Ledger,
    *,
    about: Deployment | None = None,
    audience: str = "public",
    compared_unit: str = "",
    language: str = "en",
) -> ReleasePage:
    """Return the report of a whole ledger: its promise, the odds, all releases, and how to check it.

    Parameters
    ----------
    ledger : Ledger
        It is read, and checked as a whole; it takes no charge.
    about : Deployment, optional
        What a person says of it: its name, its use, and answers for the checklist.
    audience : str
        ``"public"`` shows what is or was published, and sums; ``"internal"`` also all other charges, the
        accounts and the forecast of curators, members with roles, keys and failed logins.
    compared_unit : str
        What one unit is, in a name of `compare`: the budget is placed among public records of that unit.
        Where the budget renews, it must be one that lies within a period, such as ``"user-month"``.
    language : str
        ``"en"`` or ``"de"``.

    Returns
    -------
    ReleasePage

    Raises
    ------
    ParameterError
        If there is no such audience, unit or language.
    LedgerCorrupt
        If the ledger was damaged or altered: of such a one nothing is reported.

    Notes
    -----
    Guarantee: the page is made of public parameters and costs nothing. It promises what the ledger's budget
    does, under full adaptivity (`sfumato.ledger.Budget`); beside it stands what an odometer of the same
    delta reads after all charges (`sfumato.ledger.Odometer`), or the sum of pure epsilons. The odds are
    those of the worst mechanism with the budget's guarantee (`sfumato.report.odds`). All is rounded outward.

    Neither audience sees what was asked: the text of a question, comments of reviews and reasons of grants
    are not read for it. Purposes are shown, as who asked put them.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import sfumato as sf
    >>> from sfumato import report
    >>> with sf.connect(pa.table({"n": range(9)}), privacy_unit=sf.ROW, epsilon=1.0) as session:
    ...     page = report.deployment(session.ledger)
    >>> "Nothing is published." in page.html, "at most 73.2 in 100 likely" in page.html
    (True, True)
    """
    _check.instance("ledger", ledger, Ledger, "pass session.ledger, or Ledger.read(file)")
    texts = Texts(language)
    if about is not None:
        _check.instance("about", about, Deployment, "pass a Deployment, or leave it out")
    facts = facts_of(ledger, audience, about)
    promised = ledger.budget.guarantee(ledger.neighboring)
    subject = Subject(
        texts=texts,
        epsilon=promised.epsilon or 0.0,
        delta=promised.delta or 0.0,
        loss=stated_loss(promised),
        relation=ledger.neighboring,
        privacy_unit=ledger.privacy_unit,
        simulated=facts.simulated,
        payload="",
        receipt=None,
        ledger=None,
    )
    inside, renews = audience == "internal", ledger.renewal is not None
    parts: list[Markup] = []
    if inside:
        parts.append(element("p", texts("deployment.internal"), class_="notice"))
    parts += [element("p", text, class_="notice") for text in unsound(subject, facts)]
    if about is not None:
        parts.append(about_section(subject, about))
    parts += [promise(subject, ledger, facts), odds_of_all(subject, facts, renews=renews)]
    if compared_unit:
        parts.append(comparison_section(texts, compare_budget(ledger, unit=compared_unit)))
    parts.append(releases(subject, facts))
    if inside or renews:
        parts.append(accounts(subject, facts))
    if inside:
        parts.append(members(subject, facts))
    parts += [checklist_section(subject, facts.checklist), not_promised_by_all(subject)]
    parts.append(check_ledger(subject, ledger, facts))
    title = texts("deployment.title") if about is None else printable(about.name)
    return document(subject, parts, title=title, lead=texts("deployment.lead"))
