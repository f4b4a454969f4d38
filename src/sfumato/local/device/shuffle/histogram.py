"""The client half of histograms in the shuffle model: the truth, and decoys."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from sfumato.local.device.base.bernoulli import Coin, truth_coin
from sfumato.local.device.base.randomizer import CategoricalRandomizer
from sfumato.local.device.base.record_layout import Records
from sfumato.local.device.shuffle.decoys import Decoys, check_messages, joint_distribution, mixed
from sfumato.numerics.randomness.source import RandomSource
from sfumato.numerics.randomness.uniform import uniform_integers

__all__ = ["ShuffledHistogramRandomizer"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ShuffledHistogramRandomizer(CategoricalRandomizer):
    r"""One message with the category, by randomized response, and decoys that name any category or none.

    Parameters
    ----------
    epsilon, domain
        See `CategoricalRandomizer`. Here epsilon is large: it is what is left of the protection if the
        shuffler betrays its clients.
    decoys : Decoys, or what `Decoys.specification` returned
        How many each client sends.

    Attributes
    ----------
    truth : Coin
        As in `RandomizedResponseRandomizer`.

    Notes
    -----
    ``randomize`` returns all `messages` of a client, one record after the other, sorted. A shuffler takes the
    records of all clients apart and mixes them; nobody else may see which came together.

    Guarantee: :math:`\epsilon`-DP of all messages of a client together, replace-one: decoys depend on no
    datum. What they protect once they are shuffled is priced by `sfumato.local.shuffle.ShuffledHistogram`.

    Examples
    --------
    >>> from sfumato.local.device import Domain
    >>> device = ShuffledHistogramRandomizer(
    ...     epsilon=16.0, domain=Domain(range(1000)), decoys=Decoys(2, Coin(1 << 62))
    ... )
    >>> device.messages, device.width, len(device.randomize(7))
    (3, 6, 18)
    """

    wire_name: ClassVar[str] = "shuffled-histogram"
    chosen: ClassVar[tuple[str, ...]] = (*CategoricalRandomizer.chosen, "decoys")

    decoys: Decoys
    truth: Coin = field(init=False, repr=False, compare=False)

    def _choose(self) -> None:
        self._set(decoys=Decoys.from_specification(self.decoys))
        check_messages("decoys", self.messages)
        count = len(self.domain)
        self._set(truth=truth_coin(self.epsilon, 1, count - 1, categories=count))

    @property
    def messages(self) -> int:
        """How many records each client sends."""
        return 1 + self.decoys.slots

    @property
    def _bits(self) -> int:
        return len(self.domain).bit_length()

    def _chances(self) -> dict[str, Any]:
        return {"truth": self.truth.threshold}

    def _encode(self, codes: NDArray[np.int64], source: RandomSource) -> Records:
        true = self.truth.flip(len(codes), source)
        others = uniform_integers(len(self.domain) - 1, len(codes), source)
        named = np.where(true, codes, others + (others >= codes))
        decoys = self.decoys.draw(len(codes), len(self.domain), source)
        return mixed(np.column_stack([named, decoys]), self.layout)

    def well_formed(self, records: Records) -> NDArray[np.bool_]:
        """Return which records name a category or are blank.

        Parameters
        ----------
        records : uint8 array, shape (records, width)

        Returns
        -------
        bool array, shape (records,)
            True where the record is one that this protocol can send.
        """
        return self.layout.unpack(records) <= np.uint64(len(self.domain))

    def probabilities(self, value: Any) -> dict[bytes, Fraction]:
        """Return the distribution of all messages of a client, were a value true: private, and for very few.

        Parameters
        ----------
        value
            A category of the domain.

        Returns
        -------
        dict of bytes to Fraction
            From each possible report to its exact probability; they sum to 1.
        """
        (code,) = self.domain.codes([value]).tolist()
        count = len(self.domain)
        lie = (1 - self.truth.chance) / (count - 1)
        named = {at: self.truth.chance if at == code else lie for at in range(count)}
        decoys = [self.decoys.distribution(count)] * self.decoys.slots
        return joint_distribution([named, *decoys], self.layout)
