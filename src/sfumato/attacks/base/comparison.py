"""One attack on a raw release and on its private counterpart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, final

from sfumato import _check
from sfumato._wire import Format, canonical, parse
from sfumato.attacks.base.attack import Attack
from sfumato.attacks.base.findings import Findings

__all__ = ["Comparison", "compare"]

_FORMAT: Final = Format("sfumato.attack-comparison", 1)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Comparison:
    """What an attack found in a raw release, and what was left of it in a private one.

    Parameters
    ----------
    raw, private : Findings
        Of the same attack.

    Examples
    --------
    >>> from sfumato import attacks
    >>> from sfumato.privacy import PureDP
    >>> attack = attacks.MembershipAttack(score=lambda model, people: [model[one] for one in people],
    ...                                   people=range(8))
    >>> raw, private = {n: 9.0 - n for n in range(16)}, {n: float(n * 5 % 16) for n in range(16)}
    >>> found = attacks.compare(attack, raw=raw, private=private, loss=PureDP(1.0), truth=[True] * 8,
    ...                         controls=range(8, 16))
    >>> found.raw.loss is None, found.private.loss
    (True, PureDP(epsilon=1.0))
    """

    raw: Findings
    private: Findings

    def __str__(self) -> str:
        return f"RAW\n{self.raw}\n\nPRIVATE\n{self.private}"

    def to_json(self) -> str:
        """Return both findings as JSON; no guess about any one person is in it.

        Returns
        -------
        str
        """
        both = {"raw": self.raw.to_json(), "private": self.private.to_json()}
        return canonical(_FORMAT.wrap({name: parse(name, text) for name, text in both.items()}))

    def plot(self, ax: Any = None) -> Any:
        """Draw both curves, and what the private release's loss allows; needs ``sfumato[plot]``.

        Parameters
        ----------
        ax : matplotlib axes, optional
            New ones by default.

        Returns
        -------
        matplotlib axes

        Raises
        ------
        ParameterError
            If there is no curve, as the truth was not given.
        MissingExtra
            If matplotlib is absent and no axes are given.
        """
        ax = self.raw.plot(ax, label="raw")
        return self.private.plot(ax, label="private")


def compare(attack: Attack, *, raw: Any, private: Any, loss: Any = None, **options: Any) -> Comparison:
    """Run an attack on a raw release and on its private counterpart, with the same truth and controls.

    Parameters
    ----------
    attack : Attack
        Which states what the attacker knows.
    raw, private : Any
        The two releases.
    loss : PrivacyLoss, optional
        Of the private one, where it does not bring its own.
    **options
        More for `Attack.run`: truth, controls, confidence.

    Returns
    -------
    Comparison
        With a ``str`` that shows both, ``plot()`` and ``to_json()``.

    Raises
    ------
    ParameterError
        If the first argument is no attack, or a run refuses its own.

    Examples
    --------
    >>> from sfumato import attacks
    >>> attack = attacks.MembershipAttack(score=lambda model, people: [model[one] for one in people],
    ...                                   people=range(8))
    >>> model = {n: 9.0 - n for n in range(16)}
    >>> print(str(attacks.compare(attack, raw=model, private=model, truth=[True] * 8)).split()[0])
    RAW
    """
    _check.instance("attack", attack, Attack, "pass an attack of sfumato.attacks, or a subclass of Attack")
    first = attack.run(raw, **options)
    return Comparison(raw=first, private=attack.run(private, loss=loss, **options))
