"""What only a person can answer of a deployment: the part of a checklist that no ledger knows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, final

from sfumato import _check

__all__ = ["ChecklistAnswers"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ChecklistAnswers:
    """Answers in words, for `sfumato.report.checklist`; what is left out stays open.

    Parameters
    ----------
    epsilon_justification : str
        Why the budget is what it is.
    other_releases : str
        What else was released from the same data, outside of the ledger.
    unit_meaning : str
        Whether a unit is one person, and whom that leaves out, such as who has two accounts.
    utility : str
        Whether the answers are accurate enough, and how their error is said to readers.
    bias : str
        Which groups noise, limits and thresholds serve worse.
    trust : str
        Who sees raw rows, and who is trusted with what.
    side_channels : str
        What is done about running times, logs and caches.
    access_control : str
        How people and programs are identified, and what each may do.
    data_security : str
        How the raw data are stored and guarded.
    data_collection : str
        What is collected, with which consent, and when it is deleted.

    Examples
    --------
    >>> ChecklistAnswers(trust="The clinic alone sees rows.").bias
    ''
    """

    epsilon_justification: str = ""
    other_releases: str = ""
    unit_meaning: str = ""
    utility: str = ""
    bias: str = ""
    trust: str = ""
    side_channels: str = ""
    access_control: str = ""
    data_security: str = ""
    data_collection: str = ""

    def __post_init__(self) -> None:
        for each in fields(self):
            _check.instance(each.name, getattr(self, each.name), str, "pass a text")

    @classmethod
    def from_table(cls, given: Mapping[str, Any]) -> ChecklistAnswers:
        """Read answers from a table of TOML.

        Parameters
        ----------
        given : mapping
            By the names of the parameters.

        Returns
        -------
        ChecklistAnswers

        Raises
        ------
        ParameterError
            If it has other names, or an answer is no text.
        """
        if not isinstance(given, Mapping):
            _check.refuse_type("checklist", "be a table", given, 'write [checklist], then trust = "..."')
        for name in given.keys() - {each.name for each in fields(cls)}:
            rule = "have the names of ChecklistAnswers"
            _check.refuse("checklist", rule, name, "see its documentation")
        return cls(**given)
