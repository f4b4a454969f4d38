"""Releases: the list of what was published, and each one's page at an address that stays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sfumato.errors import ParameterError
from sfumato.report.texts.catalog import LANGUAGES
from sfumato.server.console.access.permissions import Action
from sfumato.server.console.pages.answer import Answer, Document, Page
from sfumato.server.console.pages.screen import Screen
from sfumato.server.console.pages.visit import Visit
from sfumato.server.console.services.published import public_releases, public_review

if TYPE_CHECKING:
    from sfumato.server.console.console import Console

__all__ = ["SCREENS", "missing", "release_document"]


def missing(what: str = "page") -> Page:
    """Return the answer where there is nothing, which also says nothing of what is not public."""
    return Page(
        template="message.html", title="Not found", facts=_words(f"There is no such {what}."), status=404
    )


def release_document(console: Console, number: int, visit: Visit) -> Answer:
    """Return a release's page, to who may see it."""
    language = visit.query.get("language", "en")
    if language not in LANGUAGES:
        return missing()
    try:
        content = console.release_pages.page(number, language)
    except ParameterError:  # a charge without a release, or one of which there are no pages
        return missing("release")
    return Document(content=content, media_type="text/html; charset=utf-8")


def _words(message: str) -> dict[str, str]:
    return {"message": message, "back": "/"}


def _list(console: Console, _: Visit) -> Answer:
    """Show what was published, the newest first; withdrawn ones stay, with their reason."""
    rows = public_releases(console)
    return Page(template="releases.html", title="Releases", facts={"rows": rows, "languages": LANGUAGES})


def _show(console: Console, visit: Visit) -> Answer:
    """Show one release, if it is published."""
    review = public_review(console, visit.number())
    if review is None:
        return missing("release")
    if review.state == "withdrawn":
        reason = f"This release was withdrawn: {review.steps[-1].comment}"
        return Page(template="message.html", title="Withdrawn", facts=_words(reason), status=410)
    return release_document(console, review.number, visit)


SCREENS: Final = (
    Screen(path="/releases", action=Action.VIEW_RELEASE, show=_list),
    Screen(path="/releases/{number}", action=Action.VIEW_RELEASE, show=_show),
)
