"""The texts of one language, by their keys; what is filled in is escaped."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import lru_cache
from importlib import resources
from string import Formatter
from typing import Any, Final, final

from sfumato import _check
from sfumato.report.markup.elements import Markup, escaped, joined

__all__ = ["LANGUAGES", "Texts"]

LANGUAGES: Final = ("en", "de")


@final
class Texts:
    """What a page says in one language.

    Parameters
    ----------
    language : str
        ``"en"`` or ``"de"``.

    Examples
    --------
    >>> Texts("de")("numbers.heading")
    'Die Zahlen'
    >>> Texts("en")("who.unit", unit="<b>")[:40]
    'Protected is each &lt;b&gt;: all rows of'
    """

    def __init__(self, language: str) -> None:
        if language not in LANGUAGES:
            rule = f"be one of {', '.join(LANGUAGES)}"
            _check.refuse("language", rule, language, "leave it out for English")
        self.language = language
        self._texts = _read(language)

    def __call__(self, key: str, /, **values: str) -> Markup:
        """Return a text, with values in the places of their names.

        Parameters
        ----------
        key : str
            Its section and its name, with a dot between.
        **values : str
            What stands for each name; what is not markup is escaped.
        """
        parts: list[str] = []
        for literal, name, _, _ in Formatter().parse(self._texts[key]):
            parts.append(escaped(literal))
            if name is not None:
                parts.append(escaped(values[name]))
        return joined(parts)


@lru_cache
def _read(language: str) -> Mapping[str, str]:
    """Return the texts of a language by section and name."""
    file = resources.files(__package__).joinpath(f"{language}.toml")
    document: dict[str, dict[str, Any]] = tomllib.loads(file.read_text(encoding="utf-8"))
    return {f"{section}.{name}": text for section, texts in document.items() for name, text in texts.items()}
