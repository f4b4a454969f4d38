"""What a command line says of a run: mechanisms, sampling and steps, as a loss and its assumptions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import Final, NoReturn, final

from sfumato import _check
from sfumato.numerics.rounding import fraction_up
from sfumato.privacy.leaves.declared import PureDP
from sfumato.privacy.leaves.gaussian import Gaussian
from sfumato.privacy.leaves.gaussian_dp import GaussianDP
from sfumato.privacy.leaves.laplace import Laplace
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring
from sfumato.privacy.nodes.allocation import RandomAllocation
from sfumato.privacy.nodes.balls_in_bins import BallsInBins
from sfumato.privacy.nodes.fixed_size import FixedSizeSampled
from sfumato.privacy.nodes.poisson import PoissonSubsampled
from sfumato.privacy.nodes.with_replacement import SampledWithReplacement

__all__ = ["KINDS", "RunOptions", "Sampler", "number", "plus", "whole"]

Leaf = Callable[..., PrivacyLoss]

KINDS: Final[Mapping[str, Leaf]] = {
    "gaussian": Gaussian, "laplace": Laplace, "gaussian-dp": GaussianDP, "pure": PureDP,
}  # fmt: skip
"""The mechanisms that a command line can name, each by one number."""


class Sampler(Enum):
    """How the units of each step are chosen.

    Examples
    --------
    >>> Sampler("poisson")
    <Sampler.POISSON: 'poisson'>
    """

    NONE = "none"
    POISSON = "poisson"
    FIXED_SIZE = "fixed-size"
    WITH_REPLACEMENT = "with-replacement"
    ALLOCATION = "allocation"
    BALLS_IN_BINS = "balls-in-bins"
    SHUFFLED = "shuffled"


ASSUMED: Final = {
    Sampler.NONE: "every unit takes part in every step",
    Sampler.POISSON:
        "each unit is in each step's batch independently, with that probability: batches vary in size. "
        "Batches of a fixed size, of a shuffled or a cyclic loader are not covered: see --sampler",
    Sampler.FIXED_SIZE: "each batch is a new set of units, all sets of its size being equally likely",
    Sampler.WITH_REPLACEMENT: "each batch is drawn anew, unit by unit, each from all units",
    Sampler.ALLOCATION: "each unit is in as many steps as there are epochs, chosen at random from all steps",
    Sampler.BALLS_IN_BINS: "each unit is thrown into one batch, at random; all epochs use the same batches",
    Sampler.SHUFFLED:
        "each unit is in one batch of each epoch, and whoever looks may know in which: nothing is gained by "
        "sampling",
}  # fmt: skip
_REPLACING: Final = (Sampler.FIXED_SIZE, Sampler.WITH_REPLACEMENT)
_RELATIONS: Final = {
    Neighboring.ADD_REMOVE: "one unit is added or removed",
    Neighboring.REPLACE_ONE: "one unit is replaced by another, of as many",
    Neighboring.ZERO_OUT: "one unit is replaced by an empty one",
}


def number(option: str, text: str | float) -> float:
    """Read a number, which may be a fraction such as ``256/60000``.

    Parameters
    ----------
    option : str
        For the error.
    text : str or float

    Examples
    --------
    >>> number("--delta", "1/4"), number("--delta", "1e-5")
    (0.25, 1e-05)
    """
    try:
        return float(_exact(str(text)))
    except (ValueError, ZeroDivisionError, OverflowError):
        _check.refuse(option, "be a number or a fraction", text, f"write {option} 0.01, 1e-5 or 256/60000")


def whole(option: str, text: str | float) -> int:
    """Read a whole number, which may be written as ``1e4``.

    Parameters
    ----------
    option : str
        For the error.
    text : str or float

    Examples
    --------
    >>> whole("--steps", "1e4")
    10000
    """
    try:
        found = _exact(str(text))
    except (ValueError, ZeroDivisionError, OverflowError):
        found = Fraction(1, 2)
    if found.denominator != 1 or found < 1:
        _check.refuse(option, "be a whole number of at least 1", text, f"write {option} 1000 or 1e3")
    return int(found)


def _exact(text: str) -> Fraction:
    top, slash, bottom = text.partition("/")
    return Fraction(top) / Fraction(bottom) if slash else Fraction(text)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """The options of a run.

    Parameters
    ----------
    neighboring : Neighboring or None
        None is the one that the sampler's theorem is about.
    sampler : Sampler or None
        None is `Sampler.POISSON` where there is something to sample with, else `Sampler.NONE`.
    sampling_probability, steps, epochs, batch_size, examples : str, float or None
        As they are written.

    Examples
    --------
    >>> run = RunOptions(epochs="15", batch_size="250", examples="60000")
    >>> run.loss(Gaussian, 1.3)  # doctest: +ELLIPSIS
    PoissonSubsampled(loss=Gaussian(noise_multiplier=1.3), sampling_probability=0.00416666...) * 3600
    """

    neighboring: Neighboring | None = None
    sampler: Sampler | None = None
    sampling_probability: str | float | None = None
    steps: str | float | None = None
    epochs: str | float | None = None
    batch_size: str | float | None = None
    examples: str | float | None = None

    def __post_init__(self) -> None:
        if self.steps is not None and self.epochs is not None and self.batch_size is not None:
            found = "--epochs and --batch-size give them"
            _check.refuse_state("--steps", "be left out here", found, "leave one of the two out")
        if self.sampling_probability is not None and self.batch_size is not None:
            found = "--batch-size and --examples give it"
            _check.refuse_state("--sampling-probability", "be left out here", found, "leave one out")
        if (self.batch_size is None) != (self.examples is None):
            found = "one is missing"
            _check.refuse_state("--batch-size and --examples", "come together", found, "write both")

    @property
    def chosen(self) -> Sampler:
        """The sampler."""
        if self.sampler is not None:
            return self.sampler
        sampled = self.sampling_probability is not None or self.batch_size is not None
        return Sampler.POISSON if sampled else Sampler.NONE

    @property
    def relation(self) -> Neighboring:
        """The neighboring relation."""
        if self.neighboring is not None:
            return self.neighboring
        if self.chosen is Sampler.SHUFFLED:
            return Neighboring.ZERO_OUT
        return Neighboring.REPLACE_ONE if self.chosen in _REPLACING else Neighboring.ADD_REMOVE

    @property
    def count(self) -> int:
        """How many steps there are; a part of a batch at the end of the last epoch is a step."""
        if self.steps is not None or self.epochs is None:
            return whole("--steps", 1 if self.steps is None else self.steps)
        if self.batch_size is None or self.examples is None:
            if self.chosen is Sampler.SHUFFLED:
                return whole("--epochs", self.epochs)
            self._missing("--batch-size and --examples")
        rows = _read("--epochs", self.epochs) * whole("--examples", self.examples)
        return math.ceil(rows / whole("--batch-size", self.batch_size))

    @property
    def probability(self) -> float:
        """With which a unit is in a step."""
        if self.sampling_probability is not None:
            exact = _read("--sampling-probability", self.sampling_probability)
            return fraction_up(exact)
        if self.batch_size is None or self.examples is None:
            self._missing("--sampling-probability")
        sizes = whole("--batch-size", self.batch_size), whole("--examples", self.examples)
        return fraction_up(Fraction(*sizes))

    def loss(self, leaf: Leaf, noise: float) -> PrivacyLoss:
        """Return the loss of all steps of one mechanism.

        Parameters
        ----------
        leaf : callable
            Makes the loss of one step from its number.
        noise : float
        """
        step, sampler = leaf(noise, neighboring=self.relation), self.chosen
        if sampler is Sampler.NONE:
            return step * self.count
        if sampler is Sampler.POISSON:
            probability = self.probability
            return (step if probability == 1.0 else PoissonSubsampled(step, probability)) * self.count
        if sampler in _REPLACING:
            drawn = FixedSizeSampled if sampler is Sampler.FIXED_SIZE else SampledWithReplacement
            if self.batch_size is None or self.examples is None:
                self._missing("--batch-size and --examples")
            sizes = whole("--batch-size", self.batch_size), whole("--examples", self.examples)
            return drawn(step, *sizes) * self.count
        epochs = whole("--epochs", 1 if self.epochs is None else self.epochs)
        if sampler is Sampler.SHUFFLED:
            return step * epochs
        if sampler is Sampler.ALLOCATION:
            return RandomAllocation(step, self.count, epochs)
        return BallsInBins(step, math.ceil(self.count / epochs), epochs)

    def assumptions(self) -> Iterator[str]:
        """Yield all that the number assumes of the run, a sentence each."""
        yield f"protected is that {_RELATIONS[self.relation]}"
        yield "a noise multiplier is the noise divided by how far one unit so changed moves the noised sum"
        yield ASSUMED[self.chosen]
        yield "all outputs may be seen; noise, sampling and steps were fixed before the first of them"
        yield "choices that were made by looking at the data, such as of a learning rate, are not in it"

    def _missing(self, option: str) -> NoReturn:
        sampler = self.chosen.value
        _check.refuse_state(option, f"be given for the sampler {sampler}", "nothing says it", f"add {option}")


def _read(option: str, text: str | float) -> Fraction:
    number(option, text)
    return _exact(str(text))


def plus(texts: Sequence[str], run: RunOptions) -> Iterator[PrivacyLoss]:
    """Yield the losses of further mechanisms, each ``KIND=NUMBER[,steps=N][,sampling=Q]``.

    Parameters
    ----------
    texts : sequence of str
    run : RunOptions
        Whose relation they share.

    Examples
    --------
    >>> list(plus(["laplace=2,steps=1e1"], RunOptions()))
    [Laplace(noise_multiplier=2.0) * 10]
    """
    for text in texts:
        pairs = [part.partition("=")[::2] for part in text.split(",")]
        (kind, noise), more = pairs[0], dict(pairs[1:])
        if kind not in KINDS or not more.keys() <= {"steps", "sampling"}:
            rule = f"be KIND=NUMBER[,steps=N][,sampling=Q] of a kind {', '.join(KINDS)}"
            _check.refuse("--plus", rule, text, "write --plus laplace=2,steps=10")
        own = RunOptions(
            neighboring=run.relation,
            steps=more.get("steps"),
            sampling_probability=more.get("sampling"),
        )
        yield own.loss(KINDS[kind], number("--plus", noise))
