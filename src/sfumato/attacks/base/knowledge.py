"""Knowledge: what an attacker has beside the release."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, final

from sfumato import _check

__all__ = ["Knowledge"]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Knowledge:
    """What an attacker has beside the release: sentences to print, and the data they are about.

    Parameters
    ----------
    statements : tuple of str
        One thing each, as plain English: what is known, of whom, and from where.
    data : mapping of str to Any
        The same as values, by name. They are neither printed nor written to JSON: they may be of real people.

    Raises
    ------
    ParameterError
        If there is no statement, or one is not text.

    Examples
    --------
    >>> print(Knowledge(("the attributes of each target", "the population's frequencies")))
    The attacker knows:
      - the attributes of each target
      - the population's frequencies
    """

    statements: tuple[str, ...]
    data: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        remedy = "pass ('nothing',) where the release is all there is"
        _check.instance("statements", self.statements, tuple, "pass a tuple of sentences")
        if not self.statements:
            _check.refuse_state("statements", "be at least one sentence", "there is none", remedy)
        for statement in self.statements:
            _check.instance("statements", statement, str, "say each in words")

    def __str__(self) -> str:
        return "\n".join(["The attacker knows:", *(f"  - {statement}" for statement in self.statements)])
