"""Events of a release's way to the public: review requested, approved or returned, published, withdrawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final, final

from sfumato._wire import INTEGER, TEXT, Codec, Field, Record

__all__ = [
    "REVIEW_RECORDS",
    "Approved",
    "Published",
    "Returned",
    "ReviewBody",
    "ReviewRequested",
    "Withdrawn",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewBody:
    """A step that somebody took with the release of one charge; each kind of step is a class of its own."""

    kind: ClassVar[str]

    number: int
    by: str
    comment: str = ""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewRequested(ReviewBody):
    """Somebody asked that a release be reviewed."""

    kind: ClassVar[str] = "request"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Approved(ReviewBody):
    """A reviewer signed a release; what is signed is an `sfumato.ledger.log.approval.Approval`."""

    kind: ClassVar[str] = "approve"

    public_key: str
    signature: str


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Returned(ReviewBody):
    """A reviewer sent a release back to who asked."""

    kind: ClassVar[str] = "return"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Published(ReviewBody):
    """An approved release became public."""

    kind: ClassVar[str] = "publish"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Withdrawn(ReviewBody):
    """A published release is no longer offered; who has a copy has it."""

    kind: ClassVar[str] = "withdraw"


_FIELDS: Final[dict[str, Codec[Any] | Field]] = {
    "release": Field("number", INTEGER),
    "by": TEXT,
    "comment": TEXT,
}
_COMMENT: Final = {"comment": ""}

REVIEW_RECORDS: Final[dict[str, Record[Any]]] = {
    "request": Record("a request for review", ReviewRequested, _FIELDS, _COMMENT),
    "approve": Record("an approval", Approved, {**_FIELDS, "public_key": TEXT, "signature": TEXT}, _COMMENT),
    "return": Record("a return", Returned, _FIELDS, _COMMENT),
    "publish": Record("a publication", Published, _FIELDS, _COMMENT),
    "withdraw": Record("a withdrawal", Withdrawn, _FIELDS, _COMMENT),
}
"""How each of them is written, by its kind."""
