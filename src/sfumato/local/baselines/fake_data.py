"""Random sampling plus fake data (RS+FD): less exact than sampling alone, for the same epsilon."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from sfumato.local.device.marginals.attributes import FakeDataRandomizer
from sfumato.local.frequency.estimate import Estimate
from sfumato.local.frequency.oracle import SupportOracle
from sfumato.local.frequency.support import Support
from sfumato.local.frequency.variance import ErrorModel
from sfumato.local.marginals.attributes import AttributesProtocol
from sfumato.numerics.decimals import outward
from sfumato.privacy.leaves.declared import PureDP
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring

__all__ = ["FakeData"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FakeData(AttributesProtocol[FakeDataRandomizer]):
    r"""One question a person, drawn by chance and hidden among made-up answers to all others ("RS+FD").

    Parameters
    ----------
    epsilon, domains, oracle
        See `AttributesProtocol`.

    Notes
    -----
    Guarantee: :math:`\epsilon`-DP of each person's report, replace-one; see
    `sfumato.local.device.FakeDataRandomizer`, and there why the paper's gain by sampling is not claimed.

    *Estimate.* A report supports a value of a domain with d domains and k categories as it would if the true
    one were shown with probability 1/d, and else any one evenly: these are chances p' and q' of a `Support`.

    Examples
    --------
    >>> from sfumato.local import Domain
    >>> protocol = FakeData(epsilon=2.0, domains=[Domain(["yes", "no"]), Domain(["red", "green", "blue"])])
    >>> aggregator = protocol.aggregator()
    >>> aggregator.add_batch(protocol.randomize_batch([("yes", "red"), ("no", "blue")] * 50, rng=1))
    100
    >>> [len(estimate.frequencies) for estimate in aggregator.estimate()]
    [2, 3]
    """

    wire_name: ClassVar[str] = "fake-data"

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """Epsilon of the parts, which the proof bounds the whole by."""
        worst = max(oracle.privacy_loss.epsilon(0.0) for oracle in self.oracles)
        return PureDP(outward(worst), neighboring=Neighboring.REPLACE_ONE)

    def _error_models(self) -> tuple[tuple[ErrorModel, int], ...]:
        return tuple((self._support(oracle), 1) for oracle in self.oracles)

    def _simulated(
        self, codes: NDArray[np.int64], people: NDArray[np.int64], generator: np.random.Generator
    ) -> NDArray[np.int64]:
        count = len(self.oracles)
        asked, found = generator.multinomial(people, np.full(count, 1 / count)), []
        for at, oracle in enumerate(self.oracles):
            shown = self._in_each(at, codes, asked[:, at])
            even = np.full(len(shown), 1 / len(shown))
            shown += generator.multinomial(int(people.sum() - shown.sum()), even)
            found.append(oracle.simulate_counts(shown, generator))
        return np.concatenate(found)

    def _support(self, oracle: SupportOracle[Any]) -> Support:
        """Return how likely reports support values, made-up answers included."""
        own, real, k = oracle.support, Fraction(1, len(self.oracles)), len(oracle.domain)
        made_up = own.other + (own.true - own.other) / k
        both = own.both_others + (own.with_true - own.both_others) * 2 / k
        return Support(
            true=real * own.true + (1 - real) * made_up,
            other=real * own.other + (1 - real) * made_up,
            with_true=real * own.with_true + (1 - real) * both,
            both_others=real * own.both_others + (1 - real) * both,
        )

    def estimate(
        self, totals: NDArray[np.int64], reports: int, *, simulated: bool = False
    ) -> tuple[Estimate, ...]:
        """Return what each oracle's totals estimate; mostly called by an aggregator.

        Parameters
        ----------
        totals : int64 array, shape (totals,)
            An aggregator's totals.
        reports : int
            How many reports were accepted.
        simulated : bool
            Whether the randomness of any report followed from a seed.

        Returns
        -------
        tuple of Estimate
            One for each attribute, in the order of the domains.
        """
        supports = [self._support(oracle) for oracle in self.oracles]
        return tuple(
            Estimate(
                domain=oracle.domain,
                reports=reports,
                raw=support.shares(own, reports),
                error_model=support,
                loss=self.privacy_loss,
                simulated=simulated,
            )
            for oracle, support, own in zip(self.oracles, supports, self.pieces(totals), strict=True)
        )
