"""A page as one document: its policy, its style, its title, and its sections."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, final

from sfumato.report.markup.elements import Markup, element, joined
from sfumato.report.markup.page_style import POLICY, STYLE
from sfumato.report.markup.pdf import pdf_of
from sfumato.report.pages.sections import head
from sfumato.report.pages.subject import Subject

__all__ = ["ReleasePage", "document"]

_CONTENT: Final = "content"
"""Where the skip link leads: past title and lead."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasePage:
    """A page about one release, as one file of HTML without scripts or anything from elsewhere.

    Parameters
    ----------
    html : str
        The whole document, which is well-formed XML, too.
    language : str

    Examples
    --------
    >>> page = ReleasePage(html="<!DOCTYPE html>", language="en")
    >>> page.to_bytes()
    b'<!DOCTYPE html>'
    """

    html: str
    language: str

    def to_bytes(self) -> bytes:
        """Return the file, in UTF-8.

        Returns
        -------
        bytes
        """
        return self.html.encode()

    def to_pdf(self) -> bytes:
        """Return the page as PDF with the structure that screen readers use (PDF/UA).

        Returns
        -------
        bytes
            Of one page and one version of WeasyPrint and its fonts, always the same.

        Raises
        ------
        MissingExtra
            Without the extra ``sfumato[pdf]``.
        """
        return pdf_of(self.html)


def document(subject: Subject, parts: Iterable[Markup], *, title: str = "", lead: str = "") -> ReleasePage:
    """Return the whole page: its head, and the sections.

    Parameters
    ----------
    subject : Subject
    parts : iterable of Markup
    title, lead : str
        Of a release unless given.
    """
    texts, receipt = subject.texts, subject.receipt
    if not title:
        unnumbered = texts("page.title_unnumbered")
        title = unnumbered if receipt is None else texts("page.title", number=str(receipt.sequence))
    whole = element(
        "html",
        element(
            "head",
            element("meta", charset="utf-8"),
            element("meta", http_equiv="Content-Security-Policy", content=POLICY),
            element("meta", name="viewport", content="width=device-width, initial-scale=1"),
            element("title", title),
            element("style", STYLE),
        ),
        element(
            "body",
            element("a", texts("page.skip"), href=f"#{_CONTENT}", class_="skip"),
            head(subject, title, lead or texts("page.lead")),
            element("main", *parts, id=_CONTENT, tabindex="-1"),
        ),
        lang=texts.language,
    )
    return ReleasePage(html=joined((Markup("<!DOCTYPE html>\n"), whole, "\n")), language=texts.language)
