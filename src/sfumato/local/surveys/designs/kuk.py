"""Kuk's design: two decks of cards, and only the color of a card drawn from one's own deck is reported."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from math import comb
from typing import final

from sfumato import _check
from sfumato.local.surveys.designs.binary import BinaryDesign
from sfumato.local.surveys.designs.matrix import MatrixDesign
from sfumato.local.surveys.designs.probabilities import Chance, chance, plain
from sfumato.local.surveys.designs.tasks import Task

__all__ = ["Kuk"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Kuk(BinaryDesign):
    r"""Draw a card from the first deck if it is true, from the second if it is false, and say its color.

    Parameters
    ----------
    true, false : Chance
        The shares of red cards in the first and in the second deck, different.

    Notes
    -----
    Guarantee: for each answer :math:`\max(|\log(a/b)|, |\log((1-a)/(1-b))|)`-DP under replace-one,
    exact, with :math:`a` and :math:`b` for the two shares. For several cards, drawn with replacement, see
    `repeated`.

    References
    ----------
    Kuk (1990), "Asking sensitive questions indirectly".

    Examples
    --------
    >>> design = Kuk(true="4/5", false="1/5")
    >>> round(design.estimate({"red": 320, "black": 680}).prevalence, 6), round(design.epsilon, 4)
    (0.2, 1.3863)
    """

    true: Chance
    false: Chance

    def __post_init__(self) -> None:
        object.__setattr__(self, "true", plain(chance("true", self.true)))
        object.__setattr__(self, "false", plain(chance("false", self.false)))
        self._check_transition("true")

    @property
    def answers(self) -> tuple[Hashable, ...]:
        """The color of the card."""
        return ("black", "red")

    @property
    def tasks(self) -> tuple[Task, ...]:
        """None: everybody draws from a deck of their own."""
        return ()

    @property
    def yes_if_true(self) -> Fraction:
        """The share of red cards in the first deck."""
        return Fraction(self.true)

    @property
    def yes_if_false(self) -> Fraction:
        """The share of red cards in the second deck."""
        return Fraction(self.false)

    def repeated(self, cards: int) -> MatrixDesign:
        """Return the design in which so many cards are drawn with replacement, and the red ones are counted.

        Parameters
        ----------
        cards : int
            From 1 to 16.

        Returns
        -------
        MatrixDesign
            With the answers 0 to ``cards``. Its epsilon is that of a single card times their number.
        """
        count = _check.integer("cards", cards, minimum=1)
        if count > 16:
            _check.refuse("cards", "be at most 16", cards, "draw fewer: each one reveals more")
        rows = [
            [comb(count, red) * share**red * (1 - share) ** (count - red) for red in range(count + 1)]
            for share in (self.yes_if_false, self.yes_if_true)
        ]
        return MatrixDesign(names=(False, True), said=tuple(range(count + 1)), matrix=rows)
