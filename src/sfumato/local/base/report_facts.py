"""What each report of an estimate cost, in words for a notebook."""

from __future__ import annotations

from sfumato.errors import SfumatoError
from sfumato.privacy._outward import text_above
from sfumato.privacy.loss import PrivacyLoss

__all__ = ["report_facts"]


def report_facts(loss: PrivacyLoss, *, simulated: bool) -> dict[str, str]:
    """Return the guarantee of one report, and whether it protects anybody, each by its name.

    Parameters
    ----------
    loss : PrivacyLoss
        Of a report.
    simulated : bool

    Examples
    --------
    >>> from sfumato.privacy import PureDP
    >>> report_facts(PureDP(2.0), simulated=False)
    {'each report': 'epsilon 2, add/remove one unit'}
    """
    try:
        cost = f"epsilon {text_above(loss.epsilon(0.0))}"
    except SfumatoError:  # shuffled: only a positive delta has an epsilon
        cost = repr(loss)
    facts = {"each report": f"{cost}, {loss.neighboring}"}
    if simulated:
        facts["simulated"] = "some randomness followed from a seed: nobody was protected by it"
    return facts
