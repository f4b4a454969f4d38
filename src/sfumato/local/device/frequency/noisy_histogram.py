"""The client half of the histogram encodings: a 1 for the true category among zeros, and noise on each."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, Final, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.local.device.base.randomizer import CategoricalRandomizer
from sfumato.local.device.base.record_layout import Records
from sfumato.numerics.randomness.source import RandomSource
from sfumato.numerics.sampling.integer_noise import discrete_laplace

__all__ = ["NoisyHistogramRandomizer"]

_STEPS: Final = 64
_FAR: Final = 64
_MAX: Final = 1 << 31
_LARGEST: Final = 1 << 20
_CELLS: Final = 1 << 21


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyHistogramRandomizer(CategoricalRandomizer):
    r"""A 1 for the true category and a 0 for each other one, each with discrete Laplace noise.

    Parameters
    ----------
    epsilon, domain
        See `CategoricalRandomizer`; at most 2**20 categories.

    Attributes
    ----------
    scale : Fraction
        Of the noise, in steps of 1/64: :math:`128/\epsilon`, exactly.
    limit : int
        Numbers beyond it, either way, are sent as it: :math:`64 + \lceil 64 \cdot scale \rceil`.

    Notes
    -----
    A record has a whole number of steps for each category, of 2 or 4 bytes, the lowest first.

    Guarantee: :math:`\epsilon`-DP of each report, replace-one. Two truths differ by 64 steps in each of two
    categories, and a number of steps is at most :math:`e^{64/scale} = e^{\epsilon/2}` times as likely under
    one as under the other, as the noise has the distribution :math:`\propto e^{-|k|/scale}` exactly. The
    limit is applied afterwards; it is met with probability below :math:`e^{-64}` a number.

    References
    ----------
    Wang, Blocki, Li, Jha (2017), "Locally differentially private protocols for frequency estimation",
    histogram encoding; Ghosh, Roughgarden, Sundararajan (2012), the discrete distribution.

    Examples
    --------
    >>> from sfumato.local.device import Domain
    >>> NoisyHistogramRandomizer(epsilon=1.0, domain=Domain(range(100))).width
    204
    """

    wire_name: ClassVar[str] = "noisy-histogram"

    steps: ClassVar[int] = _STEPS

    scale: Fraction = field(init=False, repr=False, compare=False)
    limit: int = field(init=False, repr=False, compare=False)

    def _choose(self) -> None:
        if len(self.domain) > _LARGEST:
            remedy = "use projective geometry response, whose reports are short"
            _check.refuse("domain", "have at most 2**20 categories", len(self.domain), remedy)
        scale = 2 * _STEPS / Fraction(self.epsilon)
        limit = _STEPS + math.ceil(_FAR * scale)
        if limit >= _MAX:
            _check.refuse("epsilon", "be greater for noise of 4 bytes", self.epsilon, "take about 2**-19")
        self._set(scale=scale, limit=limit)

    def _chances(self) -> dict[str, Any]:
        return {"steps": _STEPS, "scale": [self.scale.numerator, self.scale.denominator], "limit": self.limit}

    @property
    def _kind(self) -> str:
        return "<i2" if self.limit < 1 << 15 else "<i4"

    @property
    def _bits(self) -> int:
        return 8 * np.dtype(self._kind).itemsize * len(self.domain)

    def _encode(self, codes: NDArray[np.int64], source: RandomSource) -> Records:
        records = np.zeros((len(codes), self.width), np.uint8)
        rows = max(1, _CELLS // len(self.domain))
        for at in range(0, len(codes), rows):
            part = codes[at : at + rows]
            numbers = discrete_laplace(self.scale, (len(part), len(self.domain)), source)
            numbers[np.arange(len(part)), part] += _STEPS
            clipped = np.clip(numbers, -self.limit, self.limit).astype(self._kind)
            records[at : at + rows, : self._bits // 8] = clipped.view(np.uint8).reshape(len(part), -1)
        self.layout.stamp(records)
        return records

    def numbers(self, records: Records) -> NDArray[np.signedinteger[Any]]:
        """Return the noisy numbers of records, in steps of 1/64.

        Parameters
        ----------
        records : uint8 array, shape (records, width)

        Returns
        -------
        int16 or int32 array, shape (records, categories)
        """
        payload = np.ascontiguousarray(records[:, : self._bits // 8])
        return payload.view(self._kind).reshape(len(records), len(self.domain))

    def well_formed(self, records: Records) -> NDArray[np.bool_]:
        """Return which records hold no number beyond the limit.

        Parameters
        ----------
        records : uint8 array, shape (records, width)

        Returns
        -------
        bool array, shape (records,)
            True where the record is one that this protocol can send.
        """
        numbers = self.numbers(records)
        return np.asarray(((numbers <= self.limit) & (numbers >= -self.limit)).all(axis=1))
