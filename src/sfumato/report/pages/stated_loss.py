"""The loss that a stated guarantee allows: of all mechanisms that have it, what the worst one reveals."""

from __future__ import annotations

from sfumato import _check
from sfumato.privacy.guarantee import Guarantee
from sfumato.privacy.leaves.declared import ZCDP, ApproximateDP, PureDP
from sfumato.privacy.leaves.gaussian_dp import GaussianDP
from sfumato.privacy.loss import PrivacyLoss

__all__ = ["stated_loss"]


def stated_loss(guarantee: Guarantee) -> PrivacyLoss:
    """Return the loss of any mechanism with a guarantee.

    Parameters
    ----------
    guarantee : Guarantee
        With an epsilon (and a delta), or else a rho, or a mu; these two up to a mass delta.

    Returns
    -------
    PrivacyLoss

    Raises
    ------
    ParameterError
        If it states a Rényi divergence only.

    Notes
    -----
    Guarantee: what is computed from the loss holds for every mechanism with these numbers. An epsilon and a
    rho are alternatives in a `Guarantee`; the epsilon is taken. A mass delta is composed as a part that is
    (0, delta)-DP: outside of a mass delta of both neighbors' outputs the divergence is that of the other
    part, so that each hockey-stick divergence is at most ``delta + (1 - delta)`` times its own, which is that
    of the composition.

    Examples
    --------
    >>> from sfumato.privacy import Neighboring
    >>> stated_loss(Guarantee(neighboring=Neighboring.ADD_REMOVE, epsilon=1.0)).epsilon(0.0)
    1.0
    """
    relation, delta = guarantee.neighboring, guarantee.delta or 0.0
    if guarantee.epsilon is not None and guarantee.order is None:
        if delta:
            return ApproximateDP(guarantee.epsilon, min(delta, 1.0), neighboring=relation)
        return PureDP(guarantee.epsilon, neighboring=relation)
    if guarantee.rho is not None:
        loss: PrivacyLoss = ZCDP(guarantee.rho, neighboring=relation)
    elif guarantee.mu is not None:
        loss = GaussianDP(guarantee.mu, neighboring=relation)
    else:
        rule, remedy = "state epsilon, rho or mu", "state epsilon at a delta"
        _check.refuse_state("guarantee", rule, "it states a divergence of one order", remedy)
    return loss + ApproximateDP(0.0, min(delta, 1.0), neighboring=relation) if delta else loss
