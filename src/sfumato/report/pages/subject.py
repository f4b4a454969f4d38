"""What every page is about: one release, its guarantee, and what the ledger says of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from sfumato.ledger.log.entries import Entry
from sfumato.ledger.log.review_roll import Review
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Relation
from sfumato.privacy.receipt import Receipt
from sfumato.report.markup.elements import Markup, user_text
from sfumato.report.markup.numerals import Numerals
from sfumato.report.texts.catalog import Texts

__all__ = ["LedgerFacts", "Subject"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerFacts:
    """What a ledger says of one of its charges.

    Parameters
    ----------
    entry : Entry
    review : Review
    budget : str
        Of the whole ledger.
    """

    entry: Entry
    review: Review
    budget: str


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """One release, and the language that its page is in.

    Parameters
    ----------
    texts : Texts
    epsilon, delta : float
        The guarantee of this release alone.
    loss : PrivacyLoss
    relation : Relation
    privacy_unit : str
    simulated : bool
    payload : str
        SHA-256 of the stored bytes, in hexadecimal.
    receipt : Receipt or None
    ledger : LedgerFacts or None
    """

    texts: Texts
    epsilon: float
    delta: float
    loss: PrivacyLoss
    relation: Relation
    privacy_unit: str
    simulated: bool
    payload: str
    receipt: Receipt | None
    ledger: LedgerFacts | None

    @property
    def unit(self) -> Markup:
        """The privacy unit, as a page writes it."""
        return user_text(self.privacy_unit)

    @property
    def numerals(self) -> Numerals:
        """How numbers are written."""
        return Numerals(self.texts.language)
