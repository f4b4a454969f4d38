"""The client half of L-GRR: permanent randomized response, and a fresh one for each report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.local.device.base.bernoulli import Coin, odds_below
from sfumato.local.device.base.record_layout import Records
from sfumato.local.device.frequency.randomized_response import (
    RandomizedResponseRandomizer,
    distribution_around,
    exchanged,
)
from sfumato.local.device.longitudinal.layers import TwoLayerRandomizer, refuse_layers
from sfumato.numerics.randomness.source import RandomSource

__all__ = ["LongitudinalRandomizedResponseRandomizer"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LongitudinalRandomizedResponseRandomizer(TwoLayerRandomizer):
    r"""Randomized response of randomized response: L-GRR.

    Parameters
    ----------
    epsilon, domain, permanent_epsilon, max_memos
        See `TwoLayerRandomizer`.

    Attributes
    ----------
    permanent : RandomizedResponseRandomizer
        The permanent layer: a memo is a report of it.
    again : Coin
        Falls on heads for a true report of the memo. With it a report is true with the largest probability P
        for which :math:`P (k-1)/(1-P) \le e^\epsilon`, up to :math:`2^{-64}`: one report has the distribution
        of `RandomizedResponseRandomizer` with epsilon, and memoizing costs it no error.

    Notes
    -----
    Guarantee: as of `TwoLayerRandomizer`. A report of one device has the probability P or (1-P)/(k-1),
    exactly; its memo likewise, with ``permanent_epsilon``.

    References
    ----------
    Arcolezi, Couchot, Al Bouna, Xiao (2022), "Improving the utility of locally differentially private
    protocols for longitudinal and multidimensional frequency estimates".

    Examples
    --------
    >>> from sfumato.local.device import Domain
    >>> device = LongitudinalRandomizedResponseRandomizer(epsilon=1.0, domain=Domain(["no", "maybe", "yes"]))
    >>> device.permanent_epsilon, len(device.randomize("yes"))
    (2.0, 5)
    """

    wire_name: ClassVar[str] = "longitudinal-randomized-response"

    permanent: RandomizedResponseRandomizer = field(init=False, repr=False, compare=False)
    again: Coin = field(init=False, repr=False, compare=False)

    def _layers(self, permanent_epsilon: float) -> None:
        count, odds = len(self.domain), odds_below(self.epsilon)
        permanent = RandomizedResponseRandomizer(epsilon=permanent_epsilon, domain=self.domain)
        first = permanent.truth.chance
        lie = (1 - first) / (count - 1)
        wanted = (odds / (odds + count - 1) - lie) / (first - lie)
        if wanted >= 1:
            refuse_layers(permanent_epsilon, self.epsilon)
        again = Coin.below(wanted)
        if again.chance * count <= 1:
            remedy = "raise it, or hash the domain to fewer values"
            _check.refuse("epsilon", f"be greater for {count} categories", self.epsilon, remedy)
        self._set(permanent=permanent.within(), again=again)

    def _chances(self) -> dict[str, Any]:
        return {"permanent": self.permanent.truth.threshold, "again": self.again.threshold}

    @property
    def memo_chances(self) -> tuple[Fraction, Fraction]:
        """How likely a memo is the true category, and any one other."""
        return self.permanent.chances

    @property
    def fresh_chances(self) -> tuple[Fraction, Fraction]:
        """How likely the memoized category is reported, and any one other."""
        return self.again.chance, (1 - self.again.chance) / (len(self.domain) - 1)

    @property
    def _like(self) -> RandomizedResponseRandomizer:
        return self.permanent

    @property
    def memo_width(self) -> int:
        """Bytes of a memo: a report of the permanent layer."""
        return self.permanent.width

    def memoize(self, keys: NDArray[np.int64], fixed: Records, source: RandomSource) -> Records:
        """Draw the permanent reports of indices in the domain.

        Parameters
        ----------
        keys : int64 array, shape (n,)
            Indices of categories in the domain.
        fixed : uint8 array, shape (n, fixed_width)
            What each device drew once for good.
        source : RandomSource

        Returns
        -------
        uint8 array, shape (n, memo_width)
            One memo for each key, drawn independently.
        """
        reported = exchanged(keys, len(self.domain), self.permanent.truth, source)
        return self.permanent.layout.pack(reported.astype(np.uint64))

    def reported(self, memos: Records, source: RandomSource) -> NDArray[np.int64]:
        """Draw one reported category for each memo.

        Parameters
        ----------
        memos : uint8 array, shape (n, memo_width)
            What `memoize` returned.
        source : RandomSource

        Returns
        -------
        int64 array, shape (n,)
            Indices of categories in the domain.
        """
        memoized = self.permanent.layout.unpack(memos).astype(np.int64)
        return exchanged(memoized, len(self.domain), self.again, source)

    def fresh(self, memos: Records, fixed: Records, source: RandomSource) -> Records:
        """Draw one report of each memo.

        Parameters
        ----------
        memos : uint8 array, shape (n, memo_width)
            What `memoize` returned.
        fixed : uint8 array, shape (n, fixed_width)
            What each device drew once for good.
        source : RandomSource

        Returns
        -------
        uint8 array, shape (n, width)
            One stamped report from each memo.
        """
        return self.layout.pack(self.reported(memos, source).astype(np.uint64))

    def probabilities(self, value: Any) -> dict[bytes, Fraction]:
        """Return the probability of each report of a new device, were a value true: private.

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
        return distribution_around(code, self.chances, self)

    def fresh_probabilities(self, memo: bytes) -> Mapping[bytes, Fraction]:
        """Return the probability of each report, given the memo: private, and for small domains.

        Parameters
        ----------
        memo : bytes
            One row of what `memoize` returned.

        Returns
        -------
        dict of bytes to Fraction
            From each possible report to its exact probability; they sum to 1.
        """
        memoized = int(self.permanent.layout.unpack(np.frombuffer(memo, np.uint8)[None])[0])
        return distribution_around(memoized, self.fresh_chances, self)
