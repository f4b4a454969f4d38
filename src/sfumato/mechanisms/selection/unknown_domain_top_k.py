"""The most frequent keys of an unknown domain."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal, cast, final

import numpy as np

from sfumato import _check
from sfumato.mechanisms.base.additive import as_number
from sfumato.mechanisms.base.calibration import PrivacyTarget, cheapest_noise
from sfumato.mechanisms.base.lattice import Lattice
from sfumato.mechanisms.base.mechanism import Mechanism
from sfumato.mechanisms.base.rational import Number, plain
from sfumato.mechanisms.base.release import Release
from sfumato.mechanisms.noise.laplace import Laplace
from sfumato.mechanisms.selection.key_counts import descending_order, positive_counts
from sfumato.mechanisms.selection.randomized_threshold import RandomizedThreshold
from sfumato.mechanisms.selection.selection import failure_probability
from sfumato.mechanisms.selection.stability_histogram import StabilityHistogram
from sfumato.numerics.decimals import outward
from sfumato.numerics.distributions.discrete import exp_minus
from sfumato.numerics.randomness.source import Rng, random_source
from sfumato.numerics.rounding import add_down, div_up, mul_up
from sfumato.numerics.sampling.exponential_race import choose_distinct
from sfumato.privacy.leaves import exponential as leaf
from sfumato.privacy.leaves.declared import ApproximateDP
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring

__all__ = ["UnknownDomainTopK"]

_DOMAIN = 10
_TYPICAL = 0.05
_MAXIMUM = 1 << 60  # counts of at most 2**61 with it on top fit into int64


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownDomainTopK(Mechanism):
    r"""At most so many of the most frequent keys, in order; only keys that occur are ever released.

    Parameters
    ----------
    scale : int, float or Fraction
        Of the noise, in counts.
    threshold : int
        A key is released before the list ends if its noisy count is above a noisy bar, which stands this far
        above the first count that is not looked at (zero if there is none). With Laplace noise: if its noisy
        count is at least the threshold.
    probability : int, float or Fraction
        Of the coin that leaves the threshold as it is and does not raise it by one: a multiple of 2**-62,
        above 0 and at most 1. So all of delta is used.
    count : int
        The most keys that are released.
    domain : int, optional
        How many of the largest counts are looked at, at least ``count``; ten times that unless given.
    l0 : int, optional
        The most keys whose count one unit moves, each by one; no limit unless given.
    neighboring : Neighboring
        Add/remove or zero-out.
    noise : {"gumbel", "laplace"}
        Gumbel noise pays for ``count`` choices, Laplace noise for the ``l0`` counts that one unit moves:
        then the list is the top of a `StabilityHistogram`, and ``domain`` does not matter.

    Raises
    ------
    ParameterError
        If a parameter breaks its rule; replace-one is refused, as counts must move in one direction
        (``privacy_loss.under(Neighboring.REPLACE_ONE)`` prices it).

    Notes
    -----
    Guarantee with Laplace noise: that of `StabilityHistogram`, of which the list is post-processing. With
    Gumbel noise: ``Exponential(1 / scale) * count`` and a mass :math:`p \delta(\tau) + (1 - p) \delta(\tau +
    1)`, :math:`\delta(\tau) = mx/(1 + mx)`, :math:`x = e^{-(\tau - 1)/b}`, m the smallest of ``l0`` and
    ``domain``, :math:`\tau` the threshold, p its probability and b the scale. Condition: a count is that of
    distinct units.

    *Proof* for a threshold without a coin. Let counts go from h to h' by one unit's arrival. Pad the keys
    with blank ones of count 0, whose release ends the list as the bar does, and order equal counts at random,
    independently of the data. Let D be the first :math:`\bar k` keys and a the next count; likewise D' and
    a', so that a' is a or a + 1. Only keys that rose enter D', so :math:`S = D \setminus D'` and :math:`S' =
    D' \setminus D` have one size, at most m. A key of S has :math:`a \le h_i \le h'_i \le a'`; one of S' has
    :math:`a' \le h'_i \le h_i + 1 \le a + 1`.

    Noisy counts and bar are an exponential race with weights :math:`w_i = e^{h_i/b}` and :math:`w =
    e^{(a + \tau)/b}`. Let B be the weight of S. The bar comes before all of S with probability :math:`w/(w +
    B) \ge 1 - \delta`, since :math:`h_i \le a + 1`; for S' on h' likewise. Given that, the first of bar and S
    comes when one candidate of weight w + B would, independently of which it is: the list is that of a race
    among :math:`D \cap D'` and a bar of weight w + B. From h to h' each of these weights grows by a factor
    between 1 and :math:`e^{1/b}`: those of keys plainly; if a' = a, then w' = w, :math:`B = |S| e^{a/b}` and
    B' lies between B and :math:`e^{1/b} B`; if a' = a + 1, then :math:`w' = e^{1/b} w`, :math:`B' = |S|
    e^{(a+1)/b}` and B lies between :math:`e^{-1/b} B'` and B'. So each next in the list is a choice of
    range 1/b, among candidates that do not depend on which of h and h' it is.

    *The coin* is the same for both datasets. Given either side of it, the list is that of choices of range
    1/b with probability :math:`1 - \delta`, for both. So it is with the mean of both masses; else it is a
    mixture of two such lists, with the same weights for both datasets, of which even whoever also saw the
    coin would learn no more than the choices reveal.

    References
    ----------
    Durfee, Rogers, "Practical differentially private top-k selection with pay-what-you-get composition"
    (NeurIPS 2019), the limited domain; the proof here is another, and its mass is smaller.

    Examples
    --------
    >>> mechanism = UnknownDomainTopK.calibrated(epsilon=1.0, delta=1e-6, count=2)
    >>> mechanism.release({"red": 500, "green": 900, "blue": 3}, rng=1).value
    ('green', 'red')
    """

    scale: Number
    threshold: int
    probability: Number = 1
    count: int
    domain: int = None  # type: ignore[assignment]  # settled in __post_init__
    l0: int | None = None
    neighboring: Neighboring = Neighboring.ADD_REMOVE
    noise: Literal["gumbel", "laplace"] = "gumbel"

    def __post_init__(self) -> None:
        remedy = "pass epsilon= and delta= to UnknownDomainTopK.calibrated to have it chosen"
        object.__setattr__(self, "scale", as_number("scale", self.scale, remedy))
        Lattice.settle(1, noise=Fraction(self.scale)).check_noise("scale", Fraction(self.scale))
        if _check.integer("threshold", self.threshold, minimum=1, remedy=remedy) > _MAXIMUM:
            _check.refuse("threshold", "be at most 2**60", self.threshold, remedy)
        exact = _check.fraction("probability", self.probability, remedy)
        object.__setattr__(self, "probability", RandomizedThreshold(self.threshold, exact).probability)
        count = _check.integer("count", self.count, minimum=1)
        given: int | None = self.domain
        if given is None:
            object.__setattr__(self, "domain", _DOMAIN * count)
        remedy = "look at no fewer than are released"
        if _check.integer("domain", self.domain, minimum=count, remedy=remedy) > _MAXIMUM:
            _check.refuse("domain", "be at most 2**60", self.domain, "pass fewer; no data has so many keys")
        if self.noise not in ("gumbel", "laplace"):
            _check.refuse("noise", "be 'gumbel' or 'laplace'", self.noise, "leave it out")
        if self.l0 is not None:
            _check.integer("l0", self.l0, minimum=1)
        elif self.noise == "laplace":
            remedy = "pass the most keys that one unit has, or use Gumbel noise"
            _check.refuse_state("l0", "be given for laplace noise", "it is None", remedy)
        if self.neighboring not in (Neighboring.ADD_REMOVE, Neighboring.ZERO_OUT):
            remedy = "counts that move both ways have no theorem here"
            remedy = "pass one of them: no theorem here covers counts that move both ways"
            _check.refuse("neighboring", "be ADD_REMOVE or ZERO_OUT", self.neighboring, remedy)

    @classmethod
    def calibrated(
        cls,
        *,
        epsilon: float,
        delta: float,
        count: int,
        domain: int | None = None,
        l0: int | None = None,
        neighboring: Neighboring = Neighboring.ADD_REMOVE,
        noise: Literal["gumbel", "laplace"] | None = None,
    ) -> UnknownDomainTopK:
        """Return the mechanism with the smallest noise whose loss meets (epsilon, delta).

        Parameters
        ----------
        epsilon, delta : float
            Delta must be positive: what keys there are is private.
        count, domain, l0, neighboring
            As in the class.
        noise : {"gumbel", "laplace"}, optional
            Unless given, the one that lists less frequent keys; Gumbel noise where ``l0`` is not given.

        Returns
        -------
        UnknownDomainTopK
            With Gumbel noise half of delta goes into composition where that buys a smaller scale, else all of
            it into the threshold, which is the lowest that fits.
        """
        request = PrivacyTarget.approximate(epsilon, delta, "use TopK with listed keys")
        released = _check.integer("count", count, minimum=1)
        if noise is None:
            given: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "count": count, "domain": domain}
            given |= {"l0": l0, "neighboring": neighboring}
            both = [cls.calibrated(**given, noise="gumbel")]
            if l0 is not None:
                both.append(cls.calibrated(**given, noise="laplace"))
            return min(both, key=lambda one: one.utility_bound(_TYPICAL))
        if noise == "laplace":
            few = _check.integer("l0", l0, minimum=1, remedy="pass the most keys that one unit has")
            histogram = StabilityHistogram.calibrated(
                epsilon=epsilon, delta=delta, l0=few, neighboring=neighboring
            )
            return cls(
                scale=cast("Laplace", histogram.noise).scale,
                threshold=histogram.threshold,
                probability=histogram.probability,
                count=released,
                domain=domain,  # type: ignore[arg-type]
                l0=few,
                neighboring=neighboring,
                noise="laplace",
            )
        halved = PrivacyTarget(epsilon=request.epsilon, delta=request.delta / 2)
        scale = cheapest_noise(
            lambda scale: _choices(scale, released, neighboring), halved, released / request.exact_epsilon
        )
        pure = _choices(scale, released, neighboring).epsilon(0.0) <= request.epsilon
        found = cls(
            scale=plain(scale),
            threshold=1,
            count=released,
            domain=domain,  # type: ignore[arg-type]
            l0=l0,
            neighboring=neighboring,
        )
        # The mass is the share near this threshold; the loss itself decides.
        share = request.delta if pure else halved.delta
        exponent = math.log(found.entrants) + math.log1p(-share) - math.log(share)
        lowest = RandomizedThreshold.lowest(
            lambda each: request.met_by(
                replace(found, threshold=each.units, probability=each.probability).privacy_loss
            ),
            math.floor(float(scale) * exponent),
        )
        return replace(found, threshold=lowest.units, probability=lowest.probability)

    def utility_bound(self, beta: float) -> int:
        """Return by how much a key's count must exceed the first count not looked at to come before the bar.

        With Laplace noise all counts are looked at: the count from which on a key reaches the threshold.

        Parameters
        ----------
        beta : float
            From 1e-200 to below 1.

        Returns
        -------
        int
            A key so frequent comes before the bar with probability at least ``1 - beta``; it is listed then
            unless ``count`` other keys come before it.

        Notes
        -----
        A key that is t above that count comes first of itself, bar and blanks with probability at least ``1 /
        (1 + exp(-t / b) (exp(threshold / b) + domain))``.
        """
        if self.noise == "laplace":
            return self._histogram.utility_bound(beta)
        beta = failure_probability(beta)
        scale = Fraction(self.scale)
        bar = self.threshold + (self.probability < 1)  # as high as the coin may put it
        rivals = float(np.logaddexp(float(bar / scale), math.log(self.domain)))
        exponent = rivals + math.log1p(-beta) - math.log(beta)
        return max(0, math.ceil(scale * Fraction(exponent * (1 + 2.0**-48) + 2.0**-40)))

    @property
    def _histogram(self) -> StabilityHistogram:
        """The histogram whose largest counts are listed."""
        moved: dict[str, Any] = {"sensitivity": 1, "l0": self.l0, "neighboring": self.neighboring}
        noise = Laplace(scale=self.scale, **moved)
        return StabilityHistogram(noise=noise, threshold=self.threshold, probability=self.probability)

    @property
    def entrants(self) -> int:
        """The most keys that one unit moves into the domain."""
        return self.domain if self.l0 is None else min(self.l0, self.domain)

    @property
    def mass(self) -> float:
        """The probability of releasing a key whose rank only one unit made, rounded up, with Gumbel noise."""
        heads = Fraction(self.probability)
        at = Fraction(self._mass_above(self.threshold - 1))
        return outward(heads * at + (1 - heads) * Fraction(self._mass_above(self.threshold)))

    def _mass_above(self, distance: int) -> float:
        """Return an upper bound on the probability that the keys one unit moves up to come before a bar."""
        odds = mul_up(float(self.entrants), exp_minus(distance / Fraction(self.scale)).upper)
        return div_up(odds, add_down(1.0, odds))

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """The loss of one release."""
        if self.noise == "laplace":
            return self._histogram.privacy_loss
        mass = ApproximateDP(0.0, self.mass, neighboring=self.neighboring)
        return mass + _choices(Fraction(self.scale), self.count, self.neighboring)

    def release(self, value: Any, rng: Rng = None) -> Release:
        """List the most frequent keys.

        Parameters
        ----------
        value : mapping of keys to ints
            How many distinct units have each key; private. Keys without a unit are as good as absent.
        rng : None, int, numpy Generator or RandomSource
            None draws from the operating system's entropy; anything seeded only simulates.

        Returns
        -------
        Release
            A tuple of at most ``count`` keys, the most frequent first; fewer where the bar came before.

        Raises
        ------
        ParameterError
            If it is no mapping, or a count no int; never for a key or a count.
        """
        source = random_source(rng)
        if self.noise == "laplace":
            (shown,) = self._histogram.outputs(value, 1, source)  # the largest first
            return self._release_as(Release, tuple(shown)[: self.count], source)
        keys, counts = positive_counts(value)
        order = descending_order(counts, source.words(counts.size))
        randomized = RandomizedThreshold(self.threshold, Fraction(self.probability))
        among, bar = order[: self.domain], randomized.flipped(source)
        if counts.size > self.domain:
            bar += int(counts[order[self.domain]])
        # The last two entries are the bar and the blank keys.
        scores = np.concatenate([counts[among], [bar, 0]])
        multiplicity = np.ones(scores.size, np.int64)
        multiplicity[-1] = self.domain - among.size
        drawn = min(self.count, among.size + 1)
        chosen = choose_distinct(
            -scores, 1 / Fraction(self.scale), drawn, multiplicity=multiplicity, rng=source
        ).tolist()
        ends = next((rank for rank, index in enumerate(chosen) if index >= among.size), len(chosen))
        return self._release_as(Release, tuple(keys[among[index]] for index in chosen[:ends]), source)


def _choices(scale: Fraction, count: int, neighboring: Neighboring) -> PrivacyLoss:
    one = leaf.Exponential(1 / scale, neighboring=neighboring)  # type: ignore[arg-type]
    return one * count
