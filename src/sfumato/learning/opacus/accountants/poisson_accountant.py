"""Steps of Gaussian noise on Poisson samples, counted one by one as Opacus's accountants do.

Of a run that `PrivacyEngine.make_private` made, `PrivacyEngine.get_epsilon` says what it spent. This is for
numbers that come from elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

from sfumato import _check
from sfumato.privacy.leaves.gaussian import Gaussian
from sfumato.privacy.loss import PrivacyLoss, compose
from sfumato.privacy.neighboring import Neighboring
from sfumato.privacy.nodes.poisson import PoissonSubsampled

__all__ = ["GaussianAccountant", "PRVAccountant", "PoissonAccountant", "RDPAccountant", "create_accountant"]

_NAMES = ("rdp", "gdp", "prv")


@final
class PoissonAccountant:
    """Counts steps, each of its own noise multiplier and sampling probability.

    Notes
    -----
    Guarantee: `get_epsilon` is an upper bound of the composition's epsilon under adding or removing one
    example, where each step draws every example independently. Opacus's ``gdp`` is an approximation, its
    ``rdp`` a looser bound and its ``prv`` one of an error that is chosen; this is the certified bound for all
    three names.

    Examples
    --------
    >>> accountant = PoissonAccountant()
    >>> for _ in range(1000):
    ...     accountant.step(noise_multiplier=1.0, sample_rate=0.01)
    >>> accountant.history
    [(1.0, 0.01, 1000)]
    >>> 1.8 < accountant.get_epsilon(delta=1e-5) < 1.9
    True
    """

    def __init__(self) -> None:
        self.history: list[tuple[float, float, int]] = []
        """Noise multiplier, sampling probability and number of steps, in their order."""

    def step(self, *, noise_multiplier: float, sample_rate: float) -> None:
        """Count a step.

        Parameters
        ----------
        noise_multiplier : float
            Standard deviation of the noise over the clip norm.
        sample_rate : float
            The probability with which each example is in the batch.
        """
        multiplier = _check.non_negative("noise_multiplier", noise_multiplier)
        rate = _check.share("sample_rate", sample_rate)
        count = 1
        if self.history and self.history[-1][:2] == (multiplier, rate):
            count += self.history.pop()[2]
        self.history.append((multiplier, rate, count))

    @property
    def loss(self) -> PrivacyLoss:
        """The loss of all steps."""
        nothing = Gaussian(noise_multiplier=1.0, neighboring=Neighboring.ADD_REMOVE) * 0
        return compose([nothing, *(_step(noise, rate) * count for noise, rate, count in self.history)])

    def get_epsilon(self, delta: float) -> float:
        """Return an upper bound of epsilon at a delta.

        Parameters
        ----------
        delta : float
            Where epsilon is read.

        Returns
        -------
        float
        """
        return self.loss.epsilon(_check.unit_interval("delta", delta, "use 1e-5, say"))

    def __len__(self) -> int:
        """Return how many steps there were."""
        return sum(count for _, _, count in self.history)

    @staticmethod
    def mechanism() -> str:
        """Name how the loss is accounted.

        Returns
        -------
        str
        """
        return "certified privacy loss distributions"

    def state_dict(self) -> dict[str, Any]:
        """Return the history, to be stored.

        Returns
        -------
        dict
        """
        return {"history": list(self.history)}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go on from a stored history.

        Parameters
        ----------
        state_dict : mapping
            As `state_dict` returned it.
        """
        fresh = [
            (
                _check.non_negative("noise_multiplier", noise),
                _check.share("sample_rate", rate),
                _check.integer("steps", count),
            )
            for noise, rate, count in state_dict["history"]
        ]
        self.history = fresh


RDPAccountant = PRVAccountant = GaussianAccountant = PoissonAccountant


def create_accountant(mechanism: str) -> PoissonAccountant:
    """Return an accountant for one of Opacus's words.

    Parameters
    ----------
    mechanism : {"rdp", "gdp", "prv"}
        All are the same one.

    Returns
    -------
    PoissonAccountant

    Examples
    --------
    >>> len(create_accountant("prv"))
    0
    """
    if mechanism not in _NAMES:
        _check.refuse("mechanism", "be 'rdp', 'gdp' or 'prv'", mechanism, "pass 'prv'")
    return PoissonAccountant()


def _step(noise_multiplier: float, rate: float) -> PrivacyLoss:
    step = Gaussian(noise_multiplier=noise_multiplier, neighboring=Neighboring.ADD_REMOVE)
    return PoissonSubsampled(step, rate)
