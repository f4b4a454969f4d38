"""RAPPOR with a store: its losses over time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, final

import numpy as np

from sfumato.local.device.frequency.rappor import RapporRandomizer
from sfumato.local.device.longitudinal import memoized_rappor as client
from sfumato.local.frequency.rappor.estimate import RapporEstimate
from sfumato.local.frequency.rappor.oracle import Rappor
from sfumato.local.longitudinal.l_ue import bit_odds
from sfumato.local.longitudinal.protocol import MemoizedProtocol
from sfumato.privacy.loss import PrivacyLoss

__all__ = ["MemoizedRappor"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MemoizedRappor(MemoizedProtocol):
    r"""RAPPOR whose devices draw their memos, hold them in a store, and have at most so many.

    Parameters
    ----------
    bits, hashes, cohorts, permanent, instantaneous, max_memos
        See `sfumato.local.device.MemoizedRapporRandomizer`.

    Attributes
    ----------
    device : sfumato.local.device.MemoizedRapporRandomizer
        The client half.
    inner : Rappor
        The distribution of one round, and what its reports estimate.

    Notes
    -----
    Guarantee: of one report `privacy_loss`, of all reports of a device `longitudinal_loss`, under the
    conditions of `LongitudinalProtocol`, with *filters* instead of values. Both are those of `Rappor`
    for one string. For t reports of one memo, `bit_odds` holds for each of h pairs of bits.

    References
    ----------
    Erlingsson, Pihur, Korolova (2014), "RAPPOR: randomized aggregatable privacy-preserving ordinal response".

    Examples
    --------
    >>> protocol = MemoizedRappor(max_memos=2)
    >>> round(protocol.longitudinal_loss().epsilon(0.0), 2), round(protocol.same_memo_loss(7).epsilon(0.0), 2)
    (8.79, 4.07)
    """

    wire_name: ClassVar[str] = "memoized-rappor"

    added: ClassVar[tuple[int, int]] = (0, 1)
    """What one report adds to a total at least and at most."""

    bits: int = 128
    hashes: int = 2
    cohorts: int = 64
    permanent: float = 0.5
    instantaneous: tuple[float, float] | None = (0.5, 0.75)
    max_memos: int = 4
    device: client.MemoizedRapporRandomizer = field(init=False, repr=False, compare=False)
    inner: Rappor = field(init=False, repr=False, compare=False)

    def _prepare(self) -> None:
        self._set(inner=self._without_memos(self.epsilon))

    @property
    def epsilon(self) -> float:
        """Bound on the loss of one report."""
        return self.device.epsilon

    @property
    def permanent_loss(self) -> PrivacyLoss:
        """The loss of one memo; see `Rappor`."""
        return self.inner.longitudinal_loss

    def _without_memos(self, epsilon: float) -> Rappor:
        shared: dict[str, Any] = {name: getattr(self, name) for name in RapporRandomizer.chosen}
        return Rappor(**shared)

    def _odds_of(self, reports: int) -> Fraction:
        device = self.device.inner
        flip = device.flip.chance
        if device.ones is None:
            return device.permanent_odds**self.hashes
        low, high = (coin.chance for coin in device.ones)
        return bit_odds((1 - flip, flip), (high, low), reports) ** self.hashes

    def simulate(self, true_counts: Mapping[str, int], rng: int | np.random.Generator = 0) -> RapporEstimate:
        """Return an estimate as it might come of so many devices in one round; see `Rappor.simulate`.

        Parameters
        ----------
        true_counts : mapping
            How many devices have each string.
        rng : int or numpy Generator
            A seed: this simulates, for planning.

        Returns
        -------
        RapporEstimate
            Marked as simulated.
        """
        return self.inner.simulate(true_counts, rng)
