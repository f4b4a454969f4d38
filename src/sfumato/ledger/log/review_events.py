"""Events of a release's way to the public: review requested, approved or returned, published, withdrawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final, TypeAlias

from sfumato._wire import INTEGER, TEXT, Codec, Field, Record

__all__ = [
    "REVIEW_BODIES",
    "REVIEW_RECORDS",
    "Approved",
    "Published",
    "Returned",
    "ReviewBody",
    "ReviewRequested",
    "Withdrawn",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewRequested:
    """Somebody asked that a release be reviewed."""

    kind: ClassVar[str] = "request"

    number: int
    by: str
    comment: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Approved:
    """A reviewer signed a release; what is signed is an `sfumato.ledger.log.approval.Approval`."""

    kind: ClassVar[str] = "approve"

    number: int
    by: str
    public_key: str
    signature: str
    comment: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Returned:
    """A reviewer sent a release back to who asked."""

    kind: ClassVar[str] = "return"

    number: int
    by: str
    comment: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """An approved release became public."""

    kind: ClassVar[str] = "publish"

    number: int
    by: str
    comment: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Withdrawn:
    """A published release is no longer offered; who has a copy has it."""

    kind: ClassVar[str] = "withdraw"

    number: int
    by: str
    comment: str = ""


ReviewBody: TypeAlias = ReviewRequested | Approved | Returned | Published | Withdrawn
REVIEW_BODIES: Final = (ReviewRequested, Approved, Returned, Published, Withdrawn)

_FIELDS: Final[dict[str, Codec[Any] | Field]] = {
    "release": Field("number", INTEGER),
    "by": TEXT,
    "comment": TEXT,
}
_COMMENT: Final = {"comment": ""}

REVIEW_RECORDS: Final[dict[str, Record[ReviewBody]]] = {
    "request": Record("a request for review", ReviewRequested, _FIELDS, _COMMENT),
    "approve": Record("an approval", Approved, {**_FIELDS, "public_key": TEXT, "signature": TEXT}, _COMMENT),
    "return": Record("a return", Returned, _FIELDS, _COMMENT),
    "publish": Record("a publication", Published, _FIELDS, _COMMENT),
    "withdraw": Record("a withdrawal", Withdrawn, _FIELDS, _COMMENT),
}
"""How each of them is written, by its kind."""
