"""A checklist of a deployment, by the seven parts of NIST SP 800-226's pyramid, filled in from its ledger.

The publication orders what a guarantee rests on as a pyramid: epsilon and the unit of privacy on top, below
them the algorithms, and at the bottom what they run in: trust, side channels, access, and the collection of
the data. A part protects only as well as those below it. The questions are ours, in our words.

References
----------
Near, Darais, Lefkovitz, Howarth (2025), Guidelines for Evaluating Differential Privacy Guarantees, NIST
SP 800-226.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import Final, final

from sfumato import _check
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.log.entries import Entry
from sfumato.ledger.log.member_events import Role
from sfumato.ledger.log.verification import Verification
from sfumato.report.registry.checklist_answers import ChecklistAnswers
from sfumato.report.registry.registry_record import Deployment

__all__ = ["PARTS", "ChecklistLine", "Known", "checklist", "checklist_of", "mechanisms_of"]

PARTS: Final = ("epsilon", "unit", "algorithm", "trust", "side_channels", "access", "data_collection")
"""Of the pyramid, from its top."""

_ON_A_GRID: Final = frozenset(
    {
        "DiscreteLaplace",
        "DiscreteGaussian",
        "DiscreteGaussianSum",
        "DiscreteGaussianVector",
        "DiscretePair",
        "Skellam",
        "ThresholdedSampling",
    }
)
"""Losses of distributions on integers or of finitely many outcomes."""


class Known(Enum):
    """Who answers a line of a checklist.

    Examples
    --------
    >>> Known("ledger")
    <Known.LEDGER: 'ledger'>
    """

    LEDGER = "ledger"
    """The ledger: its facts stand in the line."""
    PERSON = "person"
    """A person did, in the `Deployment`."""
    OPEN = "open"
    """A person must: the line names the field."""
    UNKNOWN = "unknown"
    """Nobody whom this report could ask: it is not recorded."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ChecklistLine:
    """One question, and who answers it.

    Parameters
    ----------
    part : str
        Of the pyramid: "epsilon", "unit", "algorithm", "trust", "side_channels", "access" or
        "data_collection".
    question : str
        Its name, such as "mechanisms".
    known : Known
    facts : mapping of str to str
        What the ledger knows, by name.
    answer : str
        A person's, word for word.
    answered_in : str
        Where a person answers: a name of `Deployment`, or ``checklist.`` and one of `ChecklistAnswers`.

    Examples
    --------
    >>> ChecklistLine(part="trust", question="model_name", known=Known.OPEN, answered_in="model_name").answer
    ''
    """

    part: str
    question: str
    known: Known
    facts: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    answer: str = ""
    answered_in: str = ""


def checklist(ledger: Ledger, about: Deployment | None = None) -> tuple[ChecklistLine, ...]:
    """Return what is known of a deployment, and what a person is still to answer.

    Parameters
    ----------
    ledger : Ledger
        It is read, and checked as a whole.
    about : Deployment, optional
        What a person says of it.

    Returns
    -------
    tuple of ChecklistLine
        From the top of the pyramid to its bottom.

    Raises
    ------
    ParameterError
        If one is of another type.
    LedgerCorrupt
        If the ledger was damaged or altered.

    Notes
    -----
    Guarantee: none of differential privacy. A line that the ledger answers repeats what is recorded, and
    nothing of the data; what a person answers is not checked.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import sfumato as sf
    >>> from sfumato import report
    >>> with sf.connect(pa.table({"n": range(9)}), privacy_unit=sf.ROW, epsilon=1.0) as session:
    ...     lines = report.checklist(session.ledger)
    >>> lines[0].question, lines[0].known.value, lines[0].facts["budget"]
    ('budget', 'ledger', '1-DP')
    >>> [line.answered_in for line in lines if line.part == "data_collection" and line.known.value == "open"]
    ['checklist.data_collection']
    """
    _check.instance("ledger", ledger, Ledger, "pass session.ledger, or Ledger.read(file)")
    if about is not None:
        _check.instance("about", about, Deployment, "pass a Deployment, or leave it out")
    return checklist_of(ledger, about, ledger.entries(), ledger.verify())


def checklist_of(
    ledger: Ledger, about: Deployment | None, entries: tuple[Entry, ...], checked: Verification
) -> tuple[ChecklistLine, ...]:
    """Return the lines of a ledger whose entries were read, and which was checked."""
    return (
        *_epsilon(ledger, about),
        *_unit(ledger, about),
        *_algorithm(ledger, about, entries, checked),
        *_trust(ledger, about),
        *_side_channels(ledger, about, entries),
        *_access(ledger, about),
        *_data_collection(ledger, about, entries),
    )


def _epsilon(ledger: Ledger, about: Deployment | None) -> tuple[ChecklistLine, ...]:
    part, exact = "epsilon", "" if about is None else about.unprotected_quantities
    return (
        _from_ledger(part, "budget", budget=str(ledger.budget), spent=ledger.spent().amounts),
        _asked(part, "epsilon_justification", about),
        _stated(part, "unprotected_quantities", exact),
        _asked(part, "other_releases", about),
    )


def _unit(ledger: Ledger, about: Deployment | None) -> tuple[ChecklistLine, ...]:
    relation = str(ledger.neighboring)
    period = "renewal" if ledger.renewal is not None else "all_time"
    words = {} if ledger.renewal is None else {"period": ledger.renewal.words}
    return (
        _from_ledger("unit", "unit", unit=ledger.privacy_unit, relation=relation),
        _from_ledger("unit", period, **words),
        _asked("unit", "unit_meaning", about),
    )


def _algorithm(
    ledger: Ledger, about: Deployment | None, entries: tuple[Entry, ...], checked: Verification
) -> tuple[ChecklistLine, ...]:
    part, ran = "algorithm", ", ".join(mechanisms_of(entries))
    simulated = ledger.simulated or any(entry.simulated for entry in entries)
    sound = "accounting" if checked.sound else "accounting_unsound"
    return (
        _from_ledger(part, "mechanisms", mechanisms=ran) if ran else _from_ledger(part, "no_mechanisms"),
        _from_ledger(part, sound, charges=str(checked.charges)),
        _from_ledger(part, "simulated" if simulated else "real_noise"),
        _asked(part, "utility", about),
        _asked(part, "bias", about),
    )


def _trust(ledger: Ledger, about: Deployment | None) -> tuple[ChecklistLine, ...]:
    reviews = ledger.reviews.all()
    published = sum(review.state == "published" for review in reviews)
    return (
        _stated("trust", "model_name", "" if about is None else about.model_name),
        _stated("trust", "access_type", "" if about is None else about.access_type),
        _asked("trust", "trust", about),
        _from_ledger("trust", "reviews", published=str(published)),
    )


def _side_channels(
    ledger: Ledger, about: Deployment | None, entries: tuple[Entry, ...]
) -> tuple[ChecklistLine, ...]:
    part = "side_channels"
    filters = ", ".join(member.name for member in ledger.budget.filters.members)
    ran = set(mechanisms_of(entries))
    if ran <= _ON_A_GRID:
        floats = _from_ledger(part, "grid")
    else:
        floats = ChecklistLine(part=part, question="grid", known=Known.UNKNOWN)
    return (_from_ledger(part, "refusals", filters=filters), floats, _asked(part, "side_channels", about))


def _access(ledger: Ledger, about: Deployment | None) -> tuple[ChecklistLine, ...]:
    members = [member for member in ledger.members.all() if member.roles]
    counts = {
        role.value + "s": str(sum(role in member.roles for member in members))
        for role in (Role.CURATOR, Role.ANALYST, Role.REVIEWER, Role.AUDITOR)
    }
    head = ledger.head()
    return (
        _from_ledger("access", "roles", **counts) if members else _from_ledger("access", "no_roles"),
        _from_ledger("access", "chain", events=str(head.position)),
        _asked("access", "access_control", about),
        _asked("access", "data_security", about),
    )


def _data_collection(
    ledger: Ledger, about: Deployment | None, entries: tuple[Entry, ...]
) -> tuple[ChecklistLine, ...]:
    versions = max([ledger.version, *(entry.version for entry in entries)])
    return (
        _from_ledger("data_collection", "versions", versions=str(versions)),
        _asked("data_collection", "data_collection", about),
    )


def mechanisms_of(entries: Iterable[Entry]) -> list[str]:
    """Return of which kinds the losses of charges are."""
    return sorted({type(term).__name__ for entry in entries for term, _ in entry.loss.terms})


def _from_ledger(part: str, question: str, **facts: str) -> ChecklistLine:
    known = MappingProxyType(facts)
    return ChecklistLine(part=part, question=question, known=Known.LEDGER, facts=known)


def _asked(part: str, name: str, about: Deployment | None) -> ChecklistLine:
    """Return a line that `ChecklistAnswers` answers, or leaves open."""
    answers = ChecklistAnswers() if about is None else about.checklist
    return _stated(part, name, getattr(answers, name), f"checklist.{name}")


def _stated(part: str, name: str, answer: str, where: str = "") -> ChecklistLine:
    known = Known.PERSON if answer.strip() else Known.OPEN
    return ChecklistLine(part=part, question=name, known=known, answer=answer, answered_in=where or name)
