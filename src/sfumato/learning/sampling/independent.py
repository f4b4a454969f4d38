"""Samplers in which each unit is drawn by itself: what hides whether it is there at all."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field, fields, replace
from typing import Any, Self

from sfumato import _check
from sfumato.learning.sampling.sampler import Sampler
from sfumato.learning.sampling.seed import SeedLike
from sfumato.privacy.neighboring import Neighboring

__all__ = ["ExampleSampler", "IndependentSampler"]


class IndependentSampler(Sampler):
    """Which steps a unit is in depends on no other unit, nor on how many there are: add/remove or zero-out.

    Attributes
    ----------
    neighboring : Neighboring
        Add/remove, or zero-out. Both have one price.
    public_batch_size : float or None
        The expected batch size where it must not follow from the number of examples: what sums are divided
        by.

    Notes
    -----
    Add/remove holds for what is computed from public numbers only. Where nothing is declared, ``population``
    is taken for public, and `expected_batch_size` follows from it. Where the number of examples is private,
    ``public_batch_size`` is declared, and ``population`` is no more than how many there are to draw from.
    Under zero-out the number of examples is public by definition.
    """

    __slots__ = ()

    public_batch_size: float | None

    @property
    @abstractmethod
    def sampling_rate(self) -> float:
        """The chance that one unit is in a batch, in the long run; it follows from no number of examples."""

    @property
    def mean_batch_size(self) -> float:
        """The mean number of examples in a batch of the population."""
        return self.sampling_rate * self.population

    @property
    def expected_batch_size(self) -> float:
        """The declared number, or the mean over the samples of a public population."""
        return self.mean_batch_size if self.public_batch_size is None else self.public_batch_size

    @property
    def public_text(self) -> str:
        """The parameters, without the number of examples where that is private."""
        if self.public_batch_size is None:
            return repr(self)
        shown = (f for f in fields(self) if f.repr and f.name != "population")  # type: ignore[arg-type]
        return f"{type(self).__name__}({', '.join(f'{f.name}={getattr(self, f.name)!r}' for f in shown)})"

    def zeroing_out(self) -> Self:
        """Return the same batches, priced for a dataset whose number of examples is public."""
        return replace(self, neighboring=Neighboring.ZERO_OUT, **self._again())  # type: ignore[type-var]

    def over(self, examples: int) -> Self:
        """Return the sampler of a dataset whose number of examples is private.

        Parameters
        ----------
        examples : int
            How many there are. The expected batch size stays the declared one, or that of the public
            population that this sampler was made for.
        """
        own = self._again() or {"population": _check.integer("examples", examples)}
        return replace(self, public_batch_size=self.expected_batch_size, **own)  # type: ignore[type-var]

    def _again(self) -> dict[str, Any]:
        """Return the arguments that a copy must be given once more."""
        return {}

    def _check_independent(self) -> None:
        self._check_common()
        if self.neighboring not in (Neighboring.ADD_REMOVE, Neighboring.ZERO_OUT):
            remedy = "pass Neighboring.ZERO_OUT where the number of examples is public"
            _check.refuse("neighboring", "be add/remove or zero-out", self.neighboring, remedy)
        self._check_public_size()

    def _check_public_size(self) -> None:
        if self.public_batch_size is not None:
            remedy = "pass the sampling probability times a public number of examples"
            size = _check.positive("public_batch_size", self.public_batch_size, remedy)
            self._set("public_batch_size", size)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ExampleSampler(IndependentSampler):
    """Each example is drawn by itself: what the samplers of examples have in common.

    Parameters
    ----------
    population : int
        How many examples there are; at least 1, or 0 where their number is private.
    steps : int
        The planned number of batches.
    neighboring : Neighboring
        Add/remove, or zero-out where the number of examples is public.
    public_batch_size : float, optional
        The expected batch size where the number of examples is private; see `IndependentSampler`.
    seed : None, bytes, Seed or int
        None draws a fresh secret; an int simulates.
    """

    population: int
    steps: int
    neighboring: Neighboring = Neighboring.ADD_REMOVE
    public_batch_size: float | None = None
    seed: SeedLike = field(default=None, repr=False)

    def _check_examples(self) -> None:
        self._check_independent()
        self._check_population()

    def _check_population(self) -> None:
        """Take any number of examples, also none, where the number is private."""
        minimum = 1 if self.public_batch_size is None else 0
        self._set("population", _check.integer("population", self.population, minimum=minimum))
