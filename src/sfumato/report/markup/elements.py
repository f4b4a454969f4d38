"""Elements of a page: what is no markup is escaped, so that no name of a column can become an element.

>>> element("p", "1 < 2 ", element("b", "so", lang="en"))
'<p>1 &lt; 2 <b lang="en">so</b></p>'
>>> user_text('"><script>')
'<bdi>&quot;&gt;&lt;script&gt;</bdi>'
"""

from __future__ import annotations

import html
from collections.abc import Iterable
from typing import Final, final

from sfumato.queries.release.display import printable

__all__ = ["Markup", "element", "escaped", "joined", "user_text"]

_VOID: Final = frozenset({"meta", "line", "rect", "path"})


@final
class Markup(str):
    """Text that is markup already; only this module makes it."""

    __slots__ = ()


def escaped(text: str) -> Markup:
    """Return text as markup; markup stays as it is.

    Parameters
    ----------
    text : str
    """
    return text if isinstance(text, Markup) else Markup(html.escape(text))


def joined(parts: Iterable[str]) -> Markup:
    """Return parts one after the other, each escaped unless it is markup.

    Parameters
    ----------
    parts : iterable of str
    """
    return Markup("".join(escaped(part) for part in parts))


def user_text(text: str) -> Markup:
    """Return a text that somebody else chose: it steers neither the page nor the words around it.

    Parameters
    ----------
    text : str
        What is not printable in it is shown as an escape.
    """
    return element("bdi", printable(text))


def element(tag: str, *content: str, **attributes: str) -> Markup:
    """Return an element.

    Parameters
    ----------
    tag : str
    *content : str
        Text, which is escaped, or markup.
    **attributes : str
        By their names, with ``_`` for ``-``; one at the end, as in ``class_``, is left out.
    """
    stated = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{html.escape(value)}"' for name, value in attributes.items()
    )
    if tag in _VOID:
        return Markup(f"<{tag}{stated}/>")
    return Markup(f"<{tag}{stated}>{joined(content)}</{tag}>")
