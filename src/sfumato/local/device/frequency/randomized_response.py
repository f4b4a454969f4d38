"""The client half of randomized response: the true category, or by chance another one."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, Final, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.local.device.base.bernoulli import Coin, truth_coin
from sfumato.local.device.base.randomizer import CategoricalRandomizer
from sfumato.local.device.base.record_layout import Records
from sfumato.numerics.randomness.source import RandomSource
from sfumato.numerics.randomness.uniform import uniform_integers

__all__ = ["RandomizedResponseRandomizer", "distribution_around", "exchanged"]

_LARGEST: Final = 1 << 56


def exchanged(codes: NDArray[np.int64], count: int, truth: Coin, source: RandomSource) -> NDArray[np.int64]:
    """Return each index below ``count`` where a coin falls on heads, and else one of the others, evenly.

    Parameters
    ----------
    codes : int64 array, shape (n,)
    count : int
        Number of categories.
    truth : Coin
        Falls on heads where the index stays.
    source : RandomSource

    Returns
    -------
    int64 array, shape (n,)
    """
    true = truth.flip(len(codes), source)
    others = uniform_integers(count - 1, len(codes), source)
    return np.where(true, codes, others + (others >= codes))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RandomizedResponseRandomizer(CategoricalRandomizer):
    r"""The true category with some probability p, else one of the other k - 1, drawn evenly.

    Parameters
    ----------
    epsilon, domain
        See `CategoricalRandomizer`.

    Attributes
    ----------
    truth : Coin
        Falls on heads for a true report: p is the largest multiple of :math:`2^{-64}` for which
        :math:`p (k-1) / (1-p) \le e^\epsilon`.

    Notes
    -----
    Guarantee: :math:`\epsilon`-DP of each report, replace-one: every report has the probability p or
    :math:`(1-p)/(k-1)`, exactly.

    References
    ----------
    Warner (1965); Kairouz, Bonawitz, Ramage (2016), "Discrete distribution estimation under local privacy".

    Examples
    --------
    >>> from sfumato.local.device import Domain
    >>> device = RandomizedResponseRandomizer(epsilon=1.0, domain=Domain(["no", "maybe", "yes"]))
    >>> len(device.randomize("yes")), device.width
    (5, 5)
    """

    wire_name: ClassVar[str] = "randomized-response"

    truth: Coin = field(init=False, repr=False, compare=False)

    def _choose(self) -> None:
        count = len(self.domain)
        truth = truth_coin(self.epsilon, 1, count - 1, categories=count)
        if count > _LARGEST:
            _check.refuse("domain", "have at most 2**56 categories", count, "hash the values to fewer")
        self._set(truth=truth)

    @property
    def chances(self) -> tuple[Fraction, Fraction]:
        """How likely the true category is named, and any one other."""
        return self.truth.chance, (1 - self.truth.chance) / (len(self.domain) - 1)

    @property
    def _bits(self) -> int:
        return (len(self.domain) - 1).bit_length()

    def _chances(self) -> dict[str, Any]:
        return {"truth": self.truth.threshold}

    def _encode(self, codes: NDArray[np.int64], source: RandomSource) -> Records:
        reported = exchanged(codes, len(self.domain), self.truth, source)
        return self.layout.pack(reported.astype(np.uint64))

    def well_formed(self, records: Records) -> NDArray[np.bool_]:
        """Return which records name a category.

        Parameters
        ----------
        records : uint8 array, shape (records, width)

        Returns
        -------
        bool array, shape (records,)
            True where the record is one that this protocol can send.
        """
        return self.layout.unpack(records) < np.uint64(len(self.domain))

    def probabilities(self, value: Any) -> dict[bytes, Fraction]:
        """Return the probability of each report, were a value true: private, and for small domains.

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


def distribution_around(
    code: int, chances: tuple[Fraction, Fraction], device: CategoricalRandomizer
) -> dict[bytes, Fraction]:
    """Return the probability of each report that names a category.

    Parameters
    ----------
    code : int
        Index of one category.
    chances : tuple of Fraction
        How likely this category is named, and any one other.
    device : CategoricalRandomizer
        Whose reports are numbers of categories.

    Returns
    -------
    dict of bytes to Fraction
    """
    records = device.layout.pack(np.arange(len(device.domain), dtype=np.uint64))
    return {row.tobytes(): chances[at != code] for at, row in enumerate(records)}
