"""The guarantee of a Pufferfish mechanism: about secrets and a class of data models, and no DP loss."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NoReturn, final

from sfumato import _check
from sfumato.errors import NeighboringMismatch
from sfumato.numerics.rounding import fraction_up
from sfumato.pufferfish.chains.quilt_run import QuiltRun

__all__ = ["PufferfishGuarantee"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PufferfishGuarantee:
    """What a release hides: for every data model of a class, the secrets of each pair.

    Parameters
    ----------
    largest_epsilon : float
        The largest epsilon of the releases in it.
    secrets : str
        The secrets and their pairs, in words.
    models : str
        The class of data models, in words; the guarantee is void outside of it.
    digest : str
        What identifies secrets, pairs and class exactly: guarantees about two of them never meet.
    theorem : str
        The theorem that proves it.
    quilts : tuple of QuiltRun
        The active quilts, where the mechanism has some.
    releases : int
        How many releases it covers.
    delta : float
        Probability mass that the bound may miss; 0 unless the noise is Gaussian.
    order : float, optional
        For a Renyi guarantee its order; ``epsilon`` then bounds the Renyi divergence.

    Notes
    -----
    Guarantee: ``P(output | s, model) <= exp(epsilon) P(output | t, model) + delta`` for each pair (s, t) of
    secrets and each model of the class under which both can be. No claim is made for other models, nor about
    one record against all others, as differential privacy makes it: it has no ``privacy_loss``, and no ledger
    takes it. `PufferfishAccountant` holds a budget of it.

    ``+`` is refused but for Markov quilt mechanisms with one class and the same active quilts. Given record i
    and the quilt, the records beyond it keep their distribution and the records within it move each of K
    answers by its own sensitivity, so K releases leak at most the quilt's influence once and the K shifts:
    at most ``K max_k epsilon_k``, whatever the later queries are, if they are chosen from released values.

    References
    ----------
    Kifer, Machanavajjhala, "Pufferfish: a framework for mathematical privacy definitions" (TODS 39, 2014);
    Song, Wang, Chaudhuri (SIGMOD 2017), Theorem 4.4 for the sum.

    Examples
    --------
    >>> from sfumato import pufferfish
    >>> chain = pufferfish.MarkovChain(transition=[[0.9, 0.1], [0.4, 0.6]])
    >>> guarantee = pufferfish.MarkovQuilt(chain=chain, length=100, epsilon=0.5).guarantee
    >>> (guarantee + guarantee).epsilon
    1.0
    """

    largest_epsilon: float
    secrets: str
    models: str
    digest: str
    theorem: str
    quilts: tuple[QuiltRun, ...] = ()
    releases: int = 1
    delta: float = 0.0
    order: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "largest_epsilon", _check.positive("largest_epsilon", self.largest_epsilon))
        object.__setattr__(self, "delta", _check.probability("delta", self.delta))
        object.__setattr__(self, "releases", _check.integer("releases", self.releases, minimum=1))
        object.__setattr__(self, "quilts", tuple(QuiltRun(*run) for run in self.quilts))

    @property
    def epsilon(self) -> float:
        """The epsilon of all releases together: their number times the largest, rounded up."""
        return fraction_up(Fraction(self.largest_epsilon) * self.releases)

    def __add__(self, other: object) -> PufferfishGuarantee:
        if not isinstance(other, PufferfishGuarantee):
            _mixed(other)
        if self.digest != other.digest:
            _refuse("be about the same secrets, pairs and class of models", "they are about two")
        if not self.quilts or self.quilts != other.quilts:
            found = "the active quilts differ" if self.quilts and other.quilts else "one has no quilts"
            _refuse("have the same active Markov quilts (Song, Wang, Chaudhuri 2017, Theorem 4.4)", found)
        if any(part.delta or part.order is not None for part in (self, other)):
            _refuse("be pure, as the theorem's are", "one has a delta or an order")
        return replace(
            self,
            largest_epsilon=max(self.largest_epsilon, other.largest_epsilon),
            releases=self.releases + other.releases,
        )

    def __radd__(self, other: object) -> NoReturn:
        _mixed(other)

    def __str__(self) -> str:
        amount = f"epsilon={self.epsilon:.6g}"
        if self.order is not None:
            amount = f"order={self.order:g}, {amount}"
        if self.delta:
            amount += f", delta={self.delta:.3g}"
        return f"Pufferfish({amount}) for {self.secrets}, under {self.models}"

    def to_json(self) -> str:
        """Return it as JSON text.

        Returns
        -------
        str
        """
        written = {name: getattr(self, name) for name in self.__slots__}
        return json.dumps({"format": "sfumato-pufferfish-1", **written}, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> PufferfishGuarantee:
        """Return the guarantee that `to_json` wrote.

        Parameters
        ----------
        text : str

        Returns
        -------
        PufferfishGuarantee

        Raises
        ------
        ParameterError
            If it is no such text.
        """
        try:
            written = json.loads(text)
            known = written.pop("format") == "sfumato-pufferfish-1" and set(written) == set(cls.__slots__)
            return cls(**(written if known else {}))
        except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
            _check.refuse_state("text", "be a guarantee's to_json", "it is not", "pass what to_json returned")


def _mixed(other: object) -> NoReturn:
    _check.refuse_type(
        "the other summand",
        "be a PufferfishGuarantee",
        other,
        "a DP loss and a Pufferfish guarantee protect different things: budget each by itself",
        error=NeighboringMismatch,
    )


def _refuse(rule: str, found: str) -> NoReturn:
    remedy = (
        "other sums can reveal everything; pass quilts= of the first mechanism to the next, or release once"
    )
    _check.refuse_state(
        "Pufferfish guarantees", rule + " to be added", found, remedy, error=NeighboringMismatch
    )
