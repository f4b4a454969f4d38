"""The common base of oracles whose reports are even draws from those that support the truth, or do not."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from sfumato.local.device.base.record_layout import Records
from sfumato.local.device.frequency.block_design import DesignRandomizer, NumberedRandomizer
from sfumato.local.frequency.oracle import Oracle
from sfumato.local.frequency.support import Support
from sfumato.numerics.randomness.source import SimulatedSource
from sfumato.privacy.leaves.support_response import SupportResponse
from sfumato.privacy.loss import PrivacyLoss

__all__ = ["NumberedOracle", "balanced", "kept_share", "simulated_numbers"]

Device = TypeVar("Device", bound=NumberedRandomizer)

_BLOCK: Final = 1 << 18


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberedOracle(Oracle[Device]):
    """An oracle of a `NumberedRandomizer`; for its simulation see `simulated_numbers`."""

    added: ClassVar[tuple[int, int]] = (0, 1)
    """What one report adds to a total at least and at most."""

    @property
    def totals(self) -> int:
        """One number for each report there is."""
        return self.device.number

    @property
    @abstractmethod
    def overlap(self) -> Fraction:
        """Smallest part of all reports that supports both of two values."""

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """An even distribution and supports of it, with the odds that are drawn."""
        return SupportResponse(self._bound(self.device.odds), self.device.part, self.overlap)

    def tally(self, records: Records) -> NDArray[np.int64]:
        """Count the reports by number."""
        numbers = self.device.layout.unpack(records).astype(np.int64)
        return np.bincount(numbers, minlength=self.totals)

    def _simulate(self, counts: NDArray[np.int64], generator: np.random.Generator) -> NDArray[np.int64]:
        return simulated_numbers(self.device, counts, generator)


def simulated_numbers(
    device: NumberedRandomizer, counts: NDArray[np.int64], generator: np.random.Generator
) -> NDArray[np.int64]:
    r"""Draw how often each report is sent, given how many respondents have each value.

    Notes
    -----
    Let a be the part of reports that supports a value, p the probability of such a report and
    :math:`q = (1-p)a/(1-a)`. With probability 1 - p + q a report is an even draw from all, whatever is true,
    and else one from those that support the truth. The first kind are one multinomial draw for everybody; of
    the second one is drawn for each value, or report by report where these are fewer.
    """
    number = device.number
    retained = generator.binomial(counts, kept_share(device))
    totals = generator.multinomial(int(counts.sum() - retained.sum()), np.full(number, 1 / number))
    for code in np.flatnonzero(retained >= number).tolist():
        indices = np.flatnonzero(device.supporting(code))
        totals[indices] += generator.multinomial(int(retained[code]), np.full(len(indices), 1 / len(indices)))
    few = np.where(retained < number, retained, 0)
    codes, source = np.repeat(np.arange(len(few)), few), SimulatedSource(generator)
    for start in range(0, len(codes), _BLOCK):
        part = codes[start : start + _BLOCK]
        records = device.draw(part, np.ones(len(part), np.bool_), source)
        totals += np.bincount(device.layout.unpack(records).astype(np.int64), minlength=number)
    return np.asarray(totals, dtype=np.int64)


def kept_share(device: DesignRandomizer) -> float:
    """Return how often a report is no even draw from all reports; see `NumberedOracle`."""
    truth, part = device.truth.chance, device.part
    return float(truth - (1 - truth) * part / (1 - part))


def balanced(device: DesignRandomizer, two: Fraction, three: Fraction) -> Support:
    """Return the supports of reports, if all values overlap alike.

    Parameters
    ----------
    device : DesignRandomizer
    two, three : Fraction
        Part of all reports that supports two given values, and three.
    """
    truth, one = device.truth.chance, device.part
    with_truth, without = truth / one, (1 - truth) / (1 - one)
    return Support(
        true=truth,
        other=with_truth * two + without * (one - two),
        with_true=with_truth * two,
        both_others=with_truth * three + without * (two - three),
    )
