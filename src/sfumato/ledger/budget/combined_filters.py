"""Filters over the same charges, of which one must hold: the proof that several may be asked at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, final

from sfumato import _check
from sfumato._wire import Codec, sequence
from sfumato.ledger.budget.filters import FILTER, Filter
from sfumato.ledger.budget.spent import NOTHING, Spent
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring

__all__ = ["FILTERS", "Filters"]


@final
@dataclass(frozen=True, slots=True)
class Filters:
    """One or more filters over the same charges: a charge is accepted while *either* holds with it added.

    Both add up every accepted charge, also one that only the other could accept.

    Why two filters may be asked and only one need hold: let filter A alone promise (epsilon, delta_A)-DP and
    filter B alone (epsilon, delta_B)-DP. Then both together promise (epsilon, delta_A + delta_B)-DP.

    Fix two neighboring datasets and an adversary who picks each charge from the answers so far; P and Q are
    the distributions of the transcript on the two. Charges, prices, totals and refusals are functions of the
    transcript. Totals never fall, so a filter that holds for the whole transcript held all along; and the
    last accepted charge left at least one of the two holding. So every set S of transcripts splits into S_A,
    those at whose end A holds, and S_B, the rest, at whose end B holds.

    Now let the same adversary play a second game, cut short as soon as a charge would be accepted with which
    A no longer holds. In this game A is never passed, so by A's theorem its distributions satisfy
    P'(S_A) <= e^epsilon Q'(S_A) + delta_A. No transcript in S_A is ever cut, so P' = P and Q' = Q on S_A:
    P(S_A) - e^epsilon Q(S_A) <= delta_A. In the same way P(S_B) - e^epsilon Q(S_B) <= delta_B. Adding the
    two gives P(S) - e^epsilon Q(S) <= delta_A + delta_B, for every S.

    More than two filters split S in the same way. Filters of several Rényi orders leave out the *same* part
    of P, and add up the same masses: as P(S) is at most P_g(S) plus the mass left out, and each order bounds
    P_g(S_A) - e^epsilon Q(S_A) by its own delta_A, the masses count once and not for every order.

    Parameters
    ----------
    members : tuple of Filter
        The filters, in the order in which their totals are stored.
    """

    members: tuple[Filter, ...]

    def price(self, loss: PrivacyLoss, delta: float) -> tuple[Spent, ...]:
        """Return what one charge adds to each filter."""
        cost = tuple(member.price(loss, delta) for member in self.members)
        for part in cost:
            if not (part.amount >= 0 and part.delta >= 0):
                _check.refuse("loss", "cost nothing negative", loss, "mend the loss's views")
        return cost

    def binary_price(self, loss: PrivacyLoss, delta: float) -> tuple[Spent, ...]:
        """Return what one charge added to each filter before numbers were read as decimals."""
        return tuple(member.binary_price(loss, delta) for member in self.members)

    def after(self, totals: tuple[Spent, ...], cost: tuple[Spent, ...]) -> tuple[Spent, ...]:
        """Return the totals with one charge added."""
        return tuple(total.plus(part) for total, part in zip(totals, cost, strict=True))

    def sum(self, charges: Iterable[Mapping[str, Spent]]) -> tuple[Spent, ...]:
        """Return the totals of charges, each with what it adds to each filter by the filter's name."""
        totals = self.nothing
        for costs in charges:
            totals = self.after(totals, tuple(costs[member.name] for member in self.members))
        return totals

    def hold(self, totals: tuple[Spent, ...]) -> bool:
        """Whether at least one filter holds."""
        return any(member.holds(total) for member, total in zip(self.members, totals, strict=True))

    def in_units(self, parts: tuple[Spent, ...], *, up: bool) -> dict[str, float]:
        """Return the numbers of a `Guarantee` for all filters; ``delta`` is the first filter's.

        Of several Rényi orders it is the one that costs the smallest part of its limit, or has most of it
        left.
        """
        pairs = list(zip(self.members, parts, strict=True))
        pairs.sort(key=lambda pair: pair[0].used(pair[1]), reverse=not up)
        numbers: dict[str, float] = {}
        for member, part in pairs:
            numbers = member.in_unit(part, up=up) | numbers
        return numbers

    def left(self, totals: tuple[Spent, ...]) -> tuple[Spent, ...]:
        """Return what each filter has left."""
        return tuple(member.left(total) for member, total in zip(self.members, totals, strict=True))

    def largest_epsilon(self, totals: tuple[Spent, ...], delta: float, neighboring: Neighboring) -> float:
        """Return the largest epsilon, at ``delta``, of one Gaussian or Laplace count that either accepts."""
        pairs = zip(self.members, totals, strict=True)
        return max(member.largest_epsilon(total, delta, neighboring) for member, total in pairs)

    def epsilon_left(self, totals: tuple[Spent, ...], delta: float) -> float:
        """Return the largest epsilon for which every (epsilon, delta)-DP charge is known to fit; or 0."""
        pairs = zip(self.members, totals, strict=True)
        return max(member.epsilon_left(total, delta) for member, total in pairs)

    @property
    def nothing(self) -> tuple[Spent, ...]:
        """The totals before the first charge."""
        return tuple(NOTHING for _ in self.members)


_MEMBERS: Final[Codec[tuple[Filter, ...]]] = sequence(FILTER)
FILTERS: Final[Codec[Filters]] = Codec(
    lambda filters: _MEMBERS.encode(filters.members),
    lambda name, written: Filters(_MEMBERS.decode(name, written)),
)
"""Filters as a list of objects, each with its kind."""
