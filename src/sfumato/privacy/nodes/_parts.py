"""What nodes with several parts share."""

from __future__ import annotations

from collections.abc import Iterable

from sfumato import _check
from sfumato.errors import NeighboringMismatch
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring
from sfumato.privacy.pairs.pair import Pair, no_loss

__all__ = ["checked", "numeric", "pair_of", "relation_of"]


def checked(losses: object) -> tuple[PrivacyLoss, ...]:
    """Return one or more losses as a tuple, or refuse them; they must be about one relation."""
    parts = tuple(losses) if isinstance(losses, Iterable) and not isinstance(losses, str) else ()
    if not parts or not all(isinstance(part, PrivacyLoss) for part in parts):
        _check.refuse("losses", "hold one or more losses", type(losses).__name__, "pass a tuple of losses")
    relations = sorted({str(part.neighboring) for part in parts if part.neighboring is not None})
    if len(relations) > 1:
        raise NeighboringMismatch(
            f"losses must protect one neighboring relation, got {' and '.join(relations)}; "
            "state every loss under the same relation"
        )
    if not relations:
        _check.refuse(
            "losses", "hold a loss that says something", "nothing", "an empty composition needs no node"
        )
    return parts


def relation_of(losses: tuple[PrivacyLoss, ...]) -> Neighboring:
    """Return the relation that checked losses are about."""
    return next(part.neighboring for part in losses if part.neighboring is not None)


def numeric(losses: tuple[PrivacyLoss, ...]) -> bool:
    """Whether a part's Rényi divergences are computed from its pair."""
    return any(term.numeric for part in losses for term, _ in part.terms)


def pair_of(loss: PrivacyLoss) -> Pair:
    """Return the dominating pair of one mechanism, or of none."""
    return loss.dominating_pair() if loss.terms else no_loss()
