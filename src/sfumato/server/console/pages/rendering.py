"""Make HTML of a page: its template inside of the frame, with what this visitor's menu offers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final, final

from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from sfumato.queries.release.display import printable
from sfumato.report.markup.numerals import Numerals
from sfumato.server.console.access.identity import Identity
from sfumato.server.console.access.permissions import Action
from sfumato.server.console.pages.answer import Page

__all__ = ["MENU", "Renderer"]

MENU: Final = (
    ("/releases", "Releases", Action.VIEW_RELEASE),
    ("/ask", "Ask", Action.ASK),
    ("/history", "History", Action.VIEW_OWN),
    ("/dry-run", "Dry run", Action.DRY_RUN),
    ("/dataset", "Dataset", Action.VIEW_SCHEMA),
    ("/account", "My budget", Action.VIEW_OWN),
    ("/review", "Review", Action.VIEW_REVIEWS),
    ("/budget", "Budget", Action.VIEW_BUDGET),
    ("/grants", "Grants", Action.VIEW_GRANTS),
    ("/members", "Members", Action.MANAGE_MEMBERS),
    ("/epsilon", "Set epsilon", Action.SET_EPSILON),
    ("/log", "Log", Action.VIEW_LOG),
)
"""Of each screen its path, its name, and the action that one must be allowed."""


@final
class Renderer:
    """Templates, and what every page shows around its own content.

    Parameters
    ----------
    title : str
        What the console calls its dataset.
    shown : set of str
        The paths that this console has.
    """

    def __init__(self, title: str, shown: frozenset[str]) -> None:
        self._title = title
        self._menu = tuple(entry for entry in MENU if entry[0] in shown)
        self._templates = Environment(
            loader=PackageLoader("sfumato.server.console", "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        numerals = Numerals("en")
        self._templates.filters |= {
            "moment": _moment,
            "plain": printable,
            "number": _number,
            "lines": _lines,
            "up": numerals.up,
            "down": numerals.down,
        }

    def first(self, identity: Identity) -> str:
        """Return the path of the first screen that a visitor may see; nobody's own is the list of releases.

        Parameters
        ----------
        identity : Identity
        """
        return next((path for path, _, action in self._menu if identity.may(action)), "/releases")

    def html(
        self, page: Page, identity: Identity, *, path: str, csrf: Callable[[], str] | None = None
    ) -> str:
        """Return a page's document.

        Parameters
        ----------
        page : Page
        identity : Identity
            Whose menu it is.
        path : str
            Of this page.
        csrf : callable, optional
            Returns what every form on it sends back; called only where there is one.
        """
        frame: Mapping[str, Any] = {
            "title": page.title,
            "dataset_title": self._title,
            "identity": identity,
            "path": path,
            "csrf": _Late(csrf),
            "refused": page.refused,
            "sent": lambda action: page.sent if action == path else {},
            "menu": [
                {"path": where, "name": name, "here": path == where or path.startswith(f"{where}/")}
                for where, name, action in self._menu
                if identity.may(action)
            ],
        }
        return self.template(page.template).render({**page.facts, **frame})

    def template(self, name: str) -> Template:
        """Return a template by its file's name.

        Parameters
        ----------
        name : str
        """
        return self._templates.get_template(name)


@final
class _Late:
    """A text that is made when a template shows it."""

    __slots__ = ("_make",)

    def __init__(self, make: Callable[[], str] | None) -> None:
        self._make = make

    def __str__(self) -> str:
        return "" if self._make is None else self._make()


def _moment(value: datetime) -> str:
    """Return a time as people read it."""
    return value.strftime("%Y-%m-%d %H:%M UTC")


def _lines(text: str) -> str:
    """Return a text of several lines in printable characters."""
    return "\n".join(printable(line) for line in text.splitlines())


def _number(value: float) -> str:
    """Return a number in few digits; for sizes of bars and the like, never for a bound."""
    return f"{value:.4g}"
