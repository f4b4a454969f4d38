"""A token that names a member, which nothing shows again.

>>> BearerToken.of("a-secret")
BearerToken(...)
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final, Self, final

from sfumato import _check

__all__ = ["VARIABLE", "BearerToken"]

VARIABLE: Final = "SFUMATO_TOKEN"
_TOKEN: Final = re.compile(r"[A-Za-z0-9._~+/=-]{1,1024}")


@final
class BearerToken:
    """A token; its text is in no message and no representation, and it cannot be pickled.

    Parameters
    ----------
    text : str
    """

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    @classmethod
    def of(cls, given: str | os.PathLike[str] | None) -> Self:
        """Return the token that is given, that a file holds, or that the environment has.

        Parameters
        ----------
        given : str, path or None
            The token itself, a path to its file (`pathlib.Path`), or None for ``SFUMATO_TOKEN``.

        Raises
        ------
        ParameterError
            If there is none, or its file cannot be read; the message does not show it.
        """
        if given is None:
            text = os.environ.get(VARIABLE, "")
        elif isinstance(given, str):
            text = given
        elif isinstance(given, os.PathLike):
            try:
                text = Path(given).read_text(encoding="utf-8")
            except (OSError, ValueError):
                _check.refuse("token", "be a file that can be read", os.fspath(given), "check the path")
        else:
            _check.refuse_type("token", "be a text or a path", given, f"or set {VARIABLE}")
        text = text.strip()
        if not _TOKEN.fullmatch(text):
            found = "there is none" if not text else "it is another text"
            remedy = f"pass token=, a Path to its file, or set {VARIABLE}"
            _check.refuse_state("token", "be one that a console printed", found, remedy)
        return cls(text)

    def header(self) -> str:
        """Return the value of the header ``Authorization``."""
        return f"Bearer {self._text}"

    def __repr__(self) -> str:
        return "BearerToken(...)"

    def __reduce__(self) -> str:
        _check.refuse_state("token", "stay in its process", "it was to be pickled", "connect again there")
