"""What was published: the list, and whether one release may be seen by everybody."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sfumato.errors import ParameterError
from sfumato.ledger import Review

if TYPE_CHECKING:
    from sfumato.server.console.console import Console

__all__ = ["public_releases", "public_review"]


def public_releases(console: Console) -> list[Mapping[str, Any]]:
    """Return what was published, the newest first; withdrawn ones stay, with their reason.

    Parameters
    ----------
    console : Console
    """
    ledger = console.ledger
    return [
        {"review": review, "purpose": ledger.entry(review.number).purpose, "last": review.steps[-1]}
        for review in reversed(ledger.reviews.all())
        if review.state in {"published", "withdrawn"}
    ]


def public_review(console: Console, number: int | None) -> Review | None:
    """Return the review of a release that is or was public; None where there is none.

    Parameters
    ----------
    console : Console
    number : int or None
    """
    try:
        review = None if number is None else console.ledger.reviews.of(number)
    except ParameterError:
        return None
    return review if review is not None and review.state in {"published", "withdrawn"} else None
