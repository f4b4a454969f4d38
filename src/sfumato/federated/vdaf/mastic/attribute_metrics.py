"""Metrics by attribute: what Prio3 sums, by group of clients, where no server sees a client's group.

>>> import os
>>> from sfumato.federated import MasticAttributeMetrics, UsedVerifyKeys, attribute_bits, mastic_histogram
>>> countries = {name: attribute_bits(name, 32) for name in ("GR", "US")}
>>> plan = MasticAttributeMetrics.calibrated(
...     mastic_histogram(bits=32, length=3, chunk_length=2), countries, epsilon=8.0, delta=1e-6
... )
>>> key = os.urandom(32)
>>> reports = plan.mastic.shard([countries["GR"], countries["US"], countries["GR"]] * 50, [0, 1, 2] * 50)
>>> sides = [plan.aggregator(key, j, UsedVerifyKeys()) for j in range(2)]
>>> for j, side in enumerate(sides):
...     side.receive(reports.nonces, reports.public_shares, reports.input_shares[j])
>>> metrics = plan.run(sides, rng=1)
>>> [abs(number - 50) < 20 for number in metrics.of("GR")]
[True, False, True]

Guarantee: `MasticAttributeMetrics.privacy_loss`, under replace-one of a client's attribute and measurement,
against everyone but the two aggregators, and against an aggregator that follows the protocol.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, final

from sfumato import _check
from sfumato.crypto.xof.turboshake import SEED_SIZE
from sfumato.federated.vdaf.aggregator import UsedVerifyKeys
from sfumato.federated.vdaf.mastic.mastic import Mastic
from sfumato.federated.vdaf.mastic.mastic_aggregator import MasticAggregator
from sfumato.federated.vdaf.mastic.mastic_noise import MasticNoise
from sfumato.federated.vdaf.mastic.mastic_parameter import MasticParameter
from sfumato.federated.vdaf.mastic.mastic_rounds import both_shares, check_pair
from sfumato.federated.vdaf.prefixes.aggregation_parameter import AggregationParameter
from sfumato.federated.vdaf.prefixes.descent import charge_all
from sfumato.numerics.randomness.source import Rng, random_source
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring

__all__ = ["AttributeMetrics", "MasticAttributeMetrics", "attribute_bits"]


def attribute_bits(attribute: str, bits: int) -> str:
    """Return an attribute's string of bits: the first ones of its SHA-256.

    Parameters
    ----------
    attribute : str
        Any text.
    bits : int
        How many, from 1 to 256; two of n attributes have the same with a probability below
        n^2 / 2^(bits + 1).

    Returns
    -------
    str
        Characters 0 and 1.

    Raises
    ------
    ParameterError
        If a parameter is out of range.

    Examples
    --------
    >>> attribute_bits("GR", 12)
    '110111001010'
    """
    _check.instance("attribute", attribute, str)
    if _check.integer("bits", bits, minimum=1) > 256:
        _check.refuse("bits", "be at most 256", bits, "use fewer")
    try:
        encoded = attribute.encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        _check.refuse(
            "attribute", "be text that UTF-8 encodes", ascii(attribute), "mend its surrogates first"
        )
    number = int.from_bytes(hashlib.sha256(encoded).digest(), "big")
    return format(number, "0256b")[:bits]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AttributeMetrics:
    """Noisy sums for each attribute.

    Parameters
    ----------
    attributes : tuple of str
        Their names.
    sums : tuple
        For each attribute what the function sums: an int or a list of them, perhaps negative.
    counts : tuple of int or None
        How many clients have each attribute, noisy; None where that was not paid for.
    reports : int
        How many reports were counted, with any attribute.
    noise : MasticNoise
        The noise of both aggregators.
    loss : PrivacyLoss
        Of the release.
    simulated : bool
        Whether the noise followed from a seed.

    Examples
    --------
    >>> from sfumato.federated import mastic_sum
    >>> mastic = mastic_sum(bits=2, max_measurement=7)
    >>> plan = MasticAttributeMetrics.calibrated(mastic, {"a": "00"}, epsilon=1.0, counts=True)
    >>> metrics = AttributeMetrics(
    ...     attributes=("a",), sums=(40,), counts=(10,), reports=12, noise=plan.noise, loss=plan.privacy_loss
    ... )
    >>> metrics.of("a"), metrics.mean("a")
    (40, 4.0)
    """

    attributes: tuple[str, ...]
    sums: tuple[Any, ...]
    counts: tuple[int, ...] | None
    reports: int
    noise: MasticNoise = field(repr=False)
    loss: PrivacyLoss = field(repr=False)
    simulated: bool = False

    @property
    def stddev(self) -> float:
        """Standard deviation of the noise on each sum."""
        return self.noise.weights.stddev

    def of(self, attribute: str) -> Any:
        """Return the noisy sums of an attribute.

        Parameters
        ----------
        attribute : str
            Its name.

        Returns
        -------
        int or list of int

        Raises
        ------
        ParameterError
            If it was not asked for.
        """
        return self.sums[self._row(attribute)]

    def mean(self, attribute: str) -> Any:
        """Return the noisy sums over the noisy count of an attribute's clients, which is not unbiased.

        Parameters
        ----------
        attribute : str
            Its name.

        Returns
        -------
        float or list of float
            NaN where the noisy count is below one.

        Raises
        ------
        ParameterError
            If it was not asked for, or counts were not released.
        """
        row = self._row(attribute)
        if self.counts is None:
            remedy = "calibrate with counts=True"
            _check.refuse_state("counts", "be released", "they were not paid for", remedy)
        count = self.counts[row] if self.counts[row] >= 1 else float("nan")
        sums = self.sums[row]
        return [number / count for number in sums] if isinstance(sums, list) else sums / count

    def _row(self, attribute: str) -> int:
        if attribute not in self.attributes:
            _check.refuse_type("attribute", "be one that was asked for", attribute, "see attributes")
        return self.attributes.index(attribute)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MasticAttributeMetrics:
    """A plan to sum measurements for each of some attributes, with a loss that is fixed beforehand.

    Parameters
    ----------
    mastic : Mastic
        The function; its strings are attributes, and its weights measurements.
    attributes : mapping of str to str
        Names of attributes, which are public, to their strings of ``mastic.bits`` bits, all different; see
        `attribute_bits`.
    noise : MasticNoise
        Of each aggregator.
    minimum_reports : int, optional
        How many counted reports are summed at least.

    Raises
    ------
    ParameterError
        If attributes have strings of another length or the same one, or the noise does not cover the sums.

    Notes
    -----
    Guarantee: ``privacy_loss``, that of one release, under replace-one of a client's attribute and
    measurement. A report adds one valid measurement to one attribute at most, so that another one in its
    place moves two attributes' sums, by what one measurement adds. Conditions as of `AggregatorNoise`: one
    aggregator keeps its noise to itself, both follow the protocol otherwise, and the client's report is
    valid. Clients of other attributes are in no sum; how many reports there are is not protected.

    Examples
    --------
    >>> from sfumato.federated import mastic_sum
    >>> plan = MasticAttributeMetrics.calibrated(
    ...     mastic_sum(bits=2, max_measurement=7), {"a": "00", "b": "10"}, epsilon=1.0, counts=True
    ... )
    >>> plan.privacy_loss.epsilon(), plan.noise.weights.mechanism.scale, plan.noise.counts.mechanism.scale
    (1.0, 28, 4)
    """

    mastic: Mastic
    attributes: Mapping[str, str]
    noise: MasticNoise
    minimum_reports: int = 1

    def __post_init__(self) -> None:
        _check.instance("mastic", self.mastic, Mastic)
        _check.instance("attributes", self.attributes, Mapping, "pass a dict of names and strings of bits")
        _check.instance("noise", self.noise, MasticNoise)
        _check.integer("minimum_reports", self.minimum_reports, minimum=1)
        object.__setattr__(self, "attributes", dict(self.attributes))
        for name, string in self.attributes.items():
            _check.instance("attributes", name, str, "name each with a str")
            _check.instance("attributes", string, str, "use attribute_bits")
        strings = list(self.attributes.values())
        if len(set(strings)) < len(strings):
            remedy = "use more bits, or other strings"
            _check.refuse_type("attributes", "have different strings", self.attributes, remedy)
        if any(len(string) != self.mastic.bits for string in strings):
            rule = f"have strings of {self.mastic.bits} bits"
            _check.refuse_type("attributes", rule, self.attributes, "use attribute_bits")
        AggregationParameter.of(*strings)  # refuses other characters, and no string at all
        self.noise.check_covers(self.mastic)

    @classmethod
    def calibrated(
        cls,
        mastic: Mastic,
        attributes: Mapping[str, str],
        *,
        epsilon: float,
        delta: float = 0.0,
        counts: bool = False,
        minimum_reports: int = 1,
    ) -> MasticAttributeMetrics:
        """Return the plan with noise that meets (epsilon, delta): Gaussian, or Laplace where delta is 0.

        Parameters
        ----------
        mastic, attributes, minimum_reports
            As in the class.
        epsilon, delta : float
            The guarantee.
        counts : bool, optional
            Whether it is released too how many clients have each attribute, at half of the loss.

        Returns
        -------
        MasticAttributeMetrics
        """
        noise = MasticNoise.calibrated(mastic, epsilon=epsilon, delta=delta, counts=counts)
        return cls(mastic=mastic, attributes=attributes, noise=noise, minimum_reports=minimum_reports)

    @property
    def _parameter(self) -> MasticParameter:
        return MasticParameter.of(*self.attributes.values(), check_weights=True)

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """The loss of the release."""
        return self.noise.privacy_loss

    @property
    def neighboring(self) -> Neighboring:
        """Who is protected: a client whose attribute and measurement are others."""
        return Neighboring.REPLACE_ONE

    def aggregator(self, verify_key: bytes, aggregator: int, used_keys: UsedVerifyKeys) -> MasticAggregator:
        """Return one aggregator, which adds its noise and answers for whole strings only.

        Parameters
        ----------
        verify_key : bytes
            The aggregators' common secret, 32 bytes.
        aggregator : int
            0, the leader, or 1.
        used_keys : UsedVerifyKeys
            Where the key is claimed.

        Returns
        -------
        MasticAggregator
        """
        return MasticAggregator(
            self.mastic,
            verify_key,
            aggregator,
            used_keys,
            noise=self.noise,
            levels=(self.mastic.bits - 1,),
            minimum_reports=self.minimum_reports,
        )

    def run(
        self,
        sides: Sequence[MasticAggregator],
        *,
        ledgers: Sequence[Any] = (),
        delta: float = 0.0,
        rng: Rng = None,
    ) -> AttributeMetrics:
        """Sum the measurements of each attribute.

        Parameters
        ----------
        sides : sequence of MasticAggregator
            What `aggregator` returned for 0 and 1, with the same reports received.
        ledgers : sequence of Ledger, optional
            Each is charged the loss before any report is read; each aggregator has its own. Where one
            refuses, those before it stay charged.
        delta : float, optional
            Where the charge's own guarantee is read.
        rng : None, int, numpy Generator or RandomSource
            None draws from the operating system's entropy; anything seeded only simulates.

        Returns
        -------
        AttributeMetrics

        Raises
        ------
        ParameterError
            If the aggregators are not this plan's, or sums could wrap; nothing is charged then.
        """
        check_pair(
            self.mastic, sides, [self.aggregator(bytes(SEED_SIZE), j, UsedVerifyKeys()) for j in range(2)]
        )
        source, parameter = random_source(rng), self._parameter
        charge_all(
            ledgers,
            self.privacy_loss,
            delta=delta,
            description=f"metrics of {len(self.attributes)} attributes",
            simulated=source.simulated,
        )
        shares = both_shares(self.mastic, sides, parameter, source)
        order = [parameter.prefixes.index(string) for string in self.attributes.values()]
        sums = self.mastic.unshard(parameter, shares, signed=True)
        counts = None
        if self.noise.counts is not None:
            found = self.mastic.counts(parameter, shares, signed=True)
            counts = tuple(found[row] for row in order)
        return AttributeMetrics(
            attributes=tuple(self.attributes),
            sums=tuple(sums[row] for row in order),
            counts=counts,
            reports=sides[0].reports,
            noise=self.noise,
            loss=self.privacy_loss,
            simulated=source.simulated,
        )
