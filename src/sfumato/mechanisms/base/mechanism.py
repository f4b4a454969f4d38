"""The base class of all mechanisms: frozen parameters, a privacy loss, and a release."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from functools import cache
from typing import TYPE_CHECKING, Any, Self, TypeVar

from sfumato import _check
from sfumato.mechanisms.base.release import Release
from sfumato.numerics.randomness.source import RandomSource, Rng, random_source
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring

__all__ = ["Mechanism"]

_AnyRelease = TypeVar("_AnyRelease", bound=Release)


@cache
def _parameters(kind: type) -> tuple[frozenset[str], frozenset[str]]:
    """Return what a class takes, and what of it has no default."""
    found = inspect.signature(kind).parameters.values()
    required = (parameter.name for parameter in found if parameter.default is parameter.empty)
    return frozenset(parameter.name for parameter in found), frozenset(required)


class Mechanism(ABC):
    """A randomized answer whose loss follows from the same frozen parameters that its sampler uses.

    Subclasses are frozen dataclasses. A mechanism knows nothing of tables, files or ledgers: releasing
    through it charges nobody, which is the caller's to do.

    Examples
    --------
    >>> from sfumato.mechanisms import Laplace
    >>> noisy = Laplace.calibrated(sensitivity=1, epsilon=0.5)
    >>> isinstance(noisy, Mechanism), noisy.privacy_loss.epsilon()
    (True, 0.5)
    >>> noisy.release(1000, rng=7).value
    999
    """

    __slots__ = ()

    if not TYPE_CHECKING:  # what the constructor takes is the subclass's own

        def __new__(cls, *args: Any, **given: Any) -> Self:
            """Name ``calibrated`` where the noise is missing, or an epsilon is in its place."""
            taken, required = _parameters(cls)
            if given and not required <= given.keys() and hasattr(cls, "calibrated"):
                missing = ", ".join(sorted(required - given.keys()))
                if given.keys() - taken <= {"epsilon", "delta"} and not inspect.isabstract(cls):
                    raise TypeError(
                        f"{cls.__name__} must have {missing}, which is missing; or pass epsilon= to "
                        f"{cls.__name__}.calibrated to have the noise chosen"
                    )
            return super().__new__(cls)

    @property
    @abstractmethod
    def privacy_loss(self) -> PrivacyLoss:
        """The loss of one release; it depends on the parameters alone."""

    @property
    @abstractmethod
    def neighboring(self) -> Neighboring:
        """Who is protected: the neighboring relation under which the parameters and the loss are stated."""

    @abstractmethod
    def release(self, value: Any, rng: Rng = None) -> Release:
        """Draw one release.

        Parameters
        ----------
        value
            The exact, private value.
        rng : None, int, numpy Generator or RandomSource
            None draws from the operating system's entropy. A seed or a Generator simulates: the release is
            marked so, and no ledger takes it for real.

        Returns
        -------
        Release
        """

    def outputs(self, value: Any, size: int, rng: Rng = None) -> Any:
        """Draw the values of many independent releases of one exact value, for simulations and audits.

        Parameters
        ----------
        value
            As in ``release``. Made-up: each of the releases costs ``privacy_loss``.
        size : int
            How many.
        rng : None, int, numpy Generator or RandomSource
            As in ``release``.

        Returns
        -------
        sequence or array
            One value in each entry of its first axis.
        """
        source = random_source(rng)
        return [self.release(value, source).value for _ in range(_check.integer("size", size, minimum=1))]

    def _release_as(
        self, kind: type[_AnyRelease], value: Any, source: RandomSource, **fields: Any
    ) -> _AnyRelease:
        """Return a release of this mechanism, with its loss and relation; fields are the kind's own."""
        return kind(
            value=value,
            loss=self.privacy_loss,
            neighboring=self.neighboring,
            simulated=source.simulated,
            **fields,
        )
