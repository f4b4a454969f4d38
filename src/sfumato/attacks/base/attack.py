"""The base class of attacks, and how a release is read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

from sfumato import _check
from sfumato.attacks.base.findings import Findings
from sfumato.attacks.base.knowledge import Knowledge
from sfumato.privacy.loss import PrivacyLoss

__all__ = ["Attack", "ReadRelease", "read_release"]


class Attack(ABC):
    """An attack: a frozen value that states what the attacker knows, and runs on a release.

    A subclass is a frozen dataclass. Its fields are what the attacker has (targets, auxiliary records,
    population frequencies) and how it decides. What only the curator has, the truth and controls who are not
    in the release, goes to `run`, and so never into a guess.

    Examples
    --------
    >>> from sfumato import attacks
    >>> issubclass(attacks.MembershipAttack, attacks.Attack)
    True
    """

    __slots__ = ()

    @property
    @abstractmethod
    def knowledge(self) -> Knowledge:
        """What the attacker has beside the release."""

    @abstractmethod
    def run(
        self,
        release: Any,
        *,
        truth: Any = None,
        controls: Any = None,
        exchangeable: bool = False,
        loss: PrivacyLoss | None = None,
        confidence: float = 0.95,
    ) -> Findings:
        """Attack a release.

        Parameters
        ----------
        release : Release or Any
            What was published: a release of sfumato, which brings its loss, or the raw value.
        truth : Any, optional
            What is true of the targets: the curator's, for counting only.
        controls : Any, optional
            People who are not in the release, in the form of the targets.
        exchangeable : bool
            Whether targets and controls were drawn alike from one population, by lot: the privacy loss bounds
            the difference of their rates only then.
        loss : PrivacyLoss, optional
            Of the release, where it does not bring its own.
        confidence : float
            That the intervals hold together.

        Returns
        -------
        Findings
        """


class ReadRelease(NamedTuple):
    """A release as an attack reads it.

    Attributes
    ----------
    value : Any
        What was published.
    loss : PrivacyLoss or None
        Its loss; None for a raw value.
    """

    value: Any
    loss: PrivacyLoss | None


def read_release(release: Any, loss: PrivacyLoss | None = None) -> ReadRelease:
    """Return the value and the loss of a release of any kind.

    Parameters
    ----------
    release : Any
        With attributes ``value`` and ``loss``, or a raw value.
    loss : PrivacyLoss, optional
        Of a value that brings none.

    Returns
    -------
    ReadRelease

    Raises
    ------
    ParameterError
        If both the release and the caller state a loss, and not the same one.

    Examples
    --------
    >>> from sfumato.mechanisms import Laplace
    >>> release = Laplace(sensitivity=1, scale=2).release(100, rng=7)
    >>> read_release(release).loss == release.loss
    True
    >>> read_release([1, 2]).loss is None
    True
    """
    if loss is not None:
        _check.instance("loss", loss, PrivacyLoss, "pass a loss such as PureDP(1.0)")
    own = getattr(release, "loss", None)
    if not isinstance(own, PrivacyLoss):
        return ReadRelease(release, loss)
    if loss is not None and loss != own:
        _check.refuse_type("loss", "be left out, or that of the release", loss, "the release states its own")
    return ReadRelease(getattr(release, "value", release), own)
