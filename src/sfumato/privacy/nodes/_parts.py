"""Common base of the nodes that hold several losses."""

from __future__ import annotations

from collections.abc import Iterable

from sfumato import _check
from sfumato.privacy.leaves.leaf import Node
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Relation, common_relation, refuse_further
from sfumato.privacy.pairs.pair import Pair, no_loss
from sfumato.privacy.views import GDPView, ZCDPView

__all__ = ["Several", "checked", "pair_of"]


class Several(Node):
    """A node of which exactly one part runs; the notions in which the worst part bounds it."""

    __slots__ = ()

    losses: tuple[PrivacyLoss, ...]

    @property
    def neighboring(self) -> Relation:
        """The relation that all parts are about."""
        return next(part.neighboring for part in self.losses if part.neighboring is not None)

    @property
    def numeric(self) -> bool:
        """Whether that of a part is."""
        return any(term.numeric for part in self.losses for term, _ in part.terms)

    def zcdp(self) -> ZCDPView:
        """Return the largest rho and the largest mass."""
        views = [part.zcdp() for part in self.losses]
        return ZCDPView(max(view.rho for view in views), max(view.delta for view in views))

    def gdp(self) -> GDPView:
        """Return the largest mu and the largest mass."""
        views = [part.gdp() for part in self.losses]
        return GDPView(max(view.mu for view in views), max(view.delta for view in views))


def checked(losses: object) -> tuple[PrivacyLoss, ...]:
    """Return one or more losses as a tuple, or refuse them; they must be about one relation."""
    parts = tuple(losses) if isinstance(losses, Iterable) and not isinstance(losses, str) else ()
    if not parts or not all(isinstance(part, PrivacyLoss) for part in parts):
        _check.refuse_type("losses", "hold one or more losses", losses, "pass a tuple of losses")
    relation = common_relation(part.neighboring for part in parts)
    refuse_further("a node of several losses", relation)
    if relation is None:
        _check.refuse(
            "losses",
            "hold a loss that is not empty",
            parts,
            "leave out the node: doing nothing costs nothing",
        )
    return parts


def pair_of(loss: PrivacyLoss) -> Pair:
    """Return the dominating pair of one mechanism, or of none."""
    return loss.dominating_pair() if loss.terms else no_loss()
