"""The Wasserstein mechanism: noise that covers the distance between a query's distributions.

>>> from sfumato import pufferfish
>>> clique = pufferfish.JointDistribution([(0, 0), (0, 1), (1, 0), (1, 1)], [0.4, 0.1, 0.1, 0.4])
>>> sick = pufferfish.Specification.of_records(models=clique)
>>> pufferfish.WassersteinMechanism(specification=sick, query=sum, epsilon=0.5).scale
4.0
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, final

from sfumato import _check
from sfumato.mechanisms.base.lattice import Lattice
from sfumato.mechanisms.base.rational import Number, plain
from sfumato.mechanisms.noise.gaussian import Gaussian
from sfumato.mechanisms.noise.laplace import Laplace
from sfumato.numerics.distributions.discrete import SymmetricDistribution
from sfumato.numerics.randomness.source import Rng
from sfumato.numerics.rounding import fraction_up
from sfumato.pufferfish.models.exact import exact_number
from sfumato.pufferfish.release.guarantee import PufferfishGuarantee
from sfumato.pufferfish.release.mechanism import PufferfishMechanism, PufferfishRelease, lattice_for
from sfumato.pufferfish.secrets.specification import Specification

__all__ = ["GeneralWasserstein", "WassersteinMechanism"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class WassersteinMechanism(PufferfishMechanism):
    """Laplace noise at the largest Wasserstein distance that a secret makes to a query.

    Parameters
    ----------
    specification : Specification
        Its models must be enumerable; a sampler is refused.
    query : callable
        Takes a dataset and returns one number.
    epsilon : float
    distance : int, float or Fraction, optional
        A bound on the distance, where it is known otherwise, such as from `ProbabilityBox`: the caller's
        word, an int for whole answers. Found from the specification unless given.

    Raises
    ------
    ParameterError
        If the models cannot be enumerated, or the query says nothing of any secret.

    Notes
    -----
    Guarantee: epsilon-Pufferfish privacy for the specification. The two distributions of the answer are
    coupled within the distance W, and so are the answers on the grid within W and a step; noise of scale
    ``(W + step) / epsilon`` (``W / epsilon`` where all answers are whole) hides each coupled pair of answers,
    and so their mixtures. Releases do not compose.

    References
    ----------
    Song, Wang, Chaudhuri, "Pufferfish privacy mechanisms for correlated data" (SIGMOD 2017), Theorem 3.2.

    Examples
    --------
    >>> specification = Specification.differential_privacy(values=(0, 1), records=3)
    >>> WassersteinMechanism(specification=specification, query=sum, epsilon=0.5).scale
    2.0
    """

    specification: Specification
    query: Callable[[tuple[Any, ...]], Any]
    epsilon: float
    distance: Number | None = None
    _scale: float = field(init=False, repr=False)
    _grid: Lattice = field(init=False, repr=False)
    _digest: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        _check.instance("specification", self.specification, Specification, "pass a Specification")
        object.__setattr__(self, "epsilon", _check.positive("epsilon", self.epsilon))
        distance, whole = _distance(self.specification, self.query, self.distance)
        bound = plain(distance)
        lattice = lattice_for(
            int(distance) if whole else float(bound), fraction_up(distance / Fraction(self.epsilon))
        )
        shift = distance if whole else distance + lattice.step
        object.__setattr__(self, "distance", bound)
        object.__setattr__(self, "_scale", fraction_up(shift / Fraction(self.epsilon)))
        object.__setattr__(self, "_grid", lattice)
        object.__setattr__(self, "_digest", self.specification.digest)
        lattice.check_noise("epsilon", Fraction(self._scale))

    @property
    def scale(self) -> float:
        """Scale of the Laplace noise, in the unit of the answer, rounded up."""
        return self._scale

    @property
    def guarantee(self) -> PufferfishGuarantee:
        """What one release hides: the secrets of the specification."""
        return PufferfishGuarantee(
            largest_epsilon=self.epsilon,
            secrets=self.specification.words,
            models=self.specification.describe_models(),
            digest=self._digest,
            theorem="Song, Wang, Chaudhuri 2017, Theorem 3.2",
        )

    @property
    def _lattice(self) -> Lattice:
        return self._grid

    def answer(self, dataset: Any, rng: Rng = None) -> PufferfishRelease:
        """Ask the query of a dataset, and release the answer.

        Parameters
        ----------
        dataset : sequence
            The protected records.
        rng : None, int, numpy Generator or RandomSource
            As for `release`.

        Returns
        -------
        PufferfishRelease
        """
        value = self.query(tuple(dataset))
        return self.release(int(value) if self._grid.integral else value, rng)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GeneralWasserstein:
    """Any additive noise at the Wasserstein distance of a query, with Renyi or approximate guarantees.

    Parameters
    ----------
    specification : Specification
    query : callable
        Takes a dataset and returns one number.
    noise : type
        `sfumato.mechanisms.Gaussian` or `sfumato.mechanisms.Laplace`.
    magnitude : int, float or Fraction
        Standard deviation of the Gaussian noise, or scale of the Laplace noise.

    Raises
    ------
    ParameterError
        If a parameter breaks its rule, or the query says nothing of any secret.

    Notes
    -----
    Guarantee: with answers coupled within the distance W, each output distribution is a mixture of shifts of
    the noise, and a divergence that is jointly quasi-convex (Renyi of each order, hockey-stick) is at most
    its largest at a shift of W: what the noise's loss proves of a sensitivity of W. Renyi Pufferfish
    guarantees do not compose in general, so they are not added.

    References
    ----------
    Pierquin, Bellet, Tommasi, Boussard, "Renyi Pufferfish privacy: general additive noise mechanisms and
    privacy amplification by iteration via shift reduction lemmas" (ICML 2024), the general Wasserstein
    mechanism.

    Examples
    --------
    >>> from sfumato.mechanisms import Gaussian
    >>> from sfumato.pufferfish import JointDistribution
    >>> twins = JointDistribution([(0, 0), (1, 1)], [0.5, 0.5])
    >>> specification = Specification.of_records(models=twins)
    >>> mechanism = GeneralWasserstein(specification=specification, query=sum, noise=Gaussian, magnitude=4)
    >>> round(mechanism.guarantee_at(order=8.0).epsilon, 6)  # order W^2 / (2 sigma^2)
    1.0
    """

    specification: Specification
    query: Callable[[tuple[Any, ...]], Any]
    noise: type[Gaussian | Laplace]
    magnitude: Number
    _mechanism: Gaussian | Laplace = field(init=False, repr=False)
    _digest: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        _check.instance("specification", self.specification, Specification, "pass a Specification")
        distance, whole = _distance(self.specification, self.query, None)
        sensitivity: Number = int(distance) if whole else distance
        if self.noise is Gaussian:
            mechanism: Gaussian | Laplace = Gaussian(sensitivity=sensitivity, stddev=self.magnitude)
        elif self.noise is Laplace:
            mechanism = Laplace(sensitivity=sensitivity, scale=self.magnitude)
        else:
            _check.refuse_type("noise", "be Gaussian or Laplace", self.noise, "pass the class itself")
        object.__setattr__(self, "_mechanism", mechanism)
        object.__setattr__(self, "_digest", self.specification.digest)

    @property
    def distribution(self) -> SymmetricDistribution:
        """Distribution of the noise, in steps."""
        return self._mechanism.distribution

    def guarantee_at(self, *, order: float | None = None, delta: float | None = None) -> PufferfishGuarantee:
        """Return what one release hides, at an order or at a delta.

        Parameters
        ----------
        order : float, optional
            A Renyi order above 1: the guarantee's epsilon bounds the Renyi divergence of that order.
        delta : float, optional
            The guarantee is (epsilon, delta).

        Returns
        -------
        PufferfishGuarantee

        Raises
        ------
        ParameterError
            If not exactly one is given.
        """
        if (order is None) == (delta is None):
            _check.refuse("order", "be given, or else delta", order, "pass exactly one of them")
        loss: Any = self._mechanism.privacy_loss
        epsilon = loss.rdp(order) if delta is None else loss.epsilon(delta)
        return PufferfishGuarantee(
            largest_epsilon=epsilon,
            secrets=self.specification.words,
            models=self.specification.describe_models(),
            digest=self._digest,
            theorem="Pierquin, Bellet, Tommasi, Boussard 2024, general Wasserstein mechanism",
            order=order,
            delta=delta or 0.0,
        )

    def release(self, value: Any, *, delta: float, rng: Rng = None) -> PufferfishRelease:
        """Add noise to the exact answer.

        Parameters
        ----------
        value : int, float or Fraction
            The exact answer of the query.
        delta : float
            Where the release states its guarantee.
        rng : None, int, numpy Generator or RandomSource
            None draws from the operating system's entropy; anything seeded only simulates.

        Returns
        -------
        PufferfishRelease
        """
        released = self._mechanism.release(value, rng)
        return PufferfishRelease(
            value=released.value,
            step=released.step,
            distribution=released.distribution,
            guarantee=self.guarantee_at(delta=delta),
            simulated=released.simulated,
        )


def _distance(
    specification: Specification, query: Callable[[tuple[Any, ...]], Any], given: Number | None
) -> tuple[Fraction, bool]:
    """Return the distance, and whether every answer that can be is a whole number."""
    whole = isinstance(given, int)
    if given is not None:
        distance = exact_number("distance", given)
    else:
        distance = specification.distance(query)
        answers = (query(d) for pair in specification.compiled() for part in pair[:2] for d in part)
        whole = all(exact_number("the query's answer", answer).denominator == 1 for answer in answers)
    if distance <= 0:
        remedy = "under this specification it can be shown as it is"
        _check.refuse_state("query", "say something of a secret", "its distance is zero", remedy)
    return distance, whole
