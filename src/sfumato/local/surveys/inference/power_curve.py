"""The power of the test of a prevalence: numbers, then a plot, against respondents, epsilon and design."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, Literal, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.local.surveys.designs.binary import BinaryDesign
from sfumato.local.surveys.designs.yes_or_no import Warner
from sfumato.local.surveys.inference.power import power
from sfumato.local.surveys.inference.sample_size import MAX_RESPONDENTS
from sfumato.privacy._outward import text_above
from sfumato.privacy.interpretation.plotting import axes, label_text

__all__ = ["PowerAnalysis", "PowerCurve", "warner_for_epsilon"]

Against: TypeAlias = Literal["respondents", "epsilon"]

_STEPS: Final = 1 << 20
_MIN_EPSILON: Final = 1e-4
_MAX_EPSILON: Final = 12.0


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PowerCurve:
    """Powers as numbers, to plot or to store.

    Parameters
    ----------
    x_label : str
        What the powers are against.
    x : array of float
        Its values, in order.
    lines : tuple of str
        The name of each line.
    powers : array of float
        A row for each line.

    Examples
    --------
    >>> from sfumato.local.surveys import PowerAnalysis, TwoCoins
    >>> designs = {"coins": TwoCoins()}
    >>> analysis = PowerAnalysis(designs=designs, null=0.1, prevalence=0.2, respondents=[200, 800])
    >>> found: PowerCurve = analysis.curve()
    >>> found.lines, found.x.tolist(), found.powers.round(2).tolist()
    (('coins (epsilon 1.0987)',), [200.0, 800.0], [[0.3, 0.84]])
    """

    x_label: str
    x: NDArray[np.float64]
    lines: tuple[str, ...]
    powers: NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PowerAnalysis:
    """What designs and numbers of respondents find out: the power of the exact test of one prevalence.

    Parameters
    ----------
    designs : mapping of str to BinaryDesign
        The designs that are compared, by the names to show.
    null, prevalence : float
        What is tested, and what is true; from 0 to 1, different.
    respondents : sequence of int
        Numbers of them, each at least 1.
    false_positive_rate : float
        Of the test, strictly between 0 and 1.
    two_sided : bool
        False puts all of it on the side of ``prevalence``.

    Notes
    -----
    Each power is that of `power`, a sum of binomial probabilities. The number of "yes" at which an exact test
    rejects is whole, so that powers go up and down a little as respondents are added.

    Examples
    --------
    >>> from sfumato.local.surveys import warner_for_epsilon
    >>> designs = {str(epsilon): warner_for_epsilon(epsilon) for epsilon in (0.5, 1.0, 2.0)}
    >>> analysis = PowerAnalysis(designs=designs, null=0.1, prevalence=0.2, respondents=[500, 2000])
    >>> found = analysis.curve("epsilon")
    >>> found.lines, found.powers.round(2).tolist()
    (('500 respondents', '2000 respondents'), [[0.18, 0.58, 0.98], [0.6, 0.99, 1.0]])
    """

    designs: Mapping[str, BinaryDesign]
    null: float
    prevalence: float
    respondents: Sequence[int] | NDArray[np.int64]
    false_positive_rate: float = 0.05
    two_sided: bool = True

    def __post_init__(self) -> None:
        given: object = self.designs
        if not isinstance(given, Mapping) or not given or not all(map(_is_design, given.items())):
            rule, remedy = "be designs with two answers by their names", 'pass {"two coins": TwoCoins()}'
            _check.refuse_type("designs", rule, given, remedy)
        numbers: object = self.respondents
        if not isinstance(numbers, list | tuple | range | np.ndarray) or not len(numbers):
            _check.refuse_type(
                "respondents", "be a list of numbers of them", numbers, "pass [500, 1000, 2000]"
            )
        counts = tuple(_check.integer("respondents", _plain(count), minimum=1) for count in numbers)
        if max(counts) > MAX_RESPONDENTS:
            _check.refuse("respondents", "be at most 10**9", max(counts), "plan for fewer")
        object.__setattr__(self, "designs", dict(self.designs))
        object.__setattr__(self, "respondents", tuple(sorted(set(counts))))
        self._power(next(iter(self.designs.values())), 1)  # the other parameters are checked

    def curve(self, against: Against = "respondents") -> PowerCurve:
        """Return the powers as numbers.

        Parameters
        ----------
        against : {"respondents", "epsilon"}
            What changes along a line: with respondents each design has a line; with the designs' epsilon each
            number of respondents has one.

        Returns
        -------
        PowerCurve

        Raises
        ------
        ParameterError
            If the epsilon of a design is infinite and the curve is against epsilon.
        """
        if against not in {"respondents", "epsilon"}:
            _check.refuse("against", "be 'respondents' or 'epsilon'", against, "leave it out for respondents")
        powers = np.array(
            [[self._power(design, count) for count in self.respondents] for design in self.designs.values()]
        )
        epsilons = [design.epsilon for design in self.designs.values()]
        if against == "respondents":
            names = (
                f"{name} (epsilon {'infinite' if math.isinf(epsilon) else text_above(epsilon, 5)})"
                for name, epsilon in zip(self.designs, epsilons, strict=True)
            )
            x = np.array(self.respondents, dtype=np.float64)
            return PowerCurve(x_label="respondents", x=x, lines=tuple(names), powers=powers)
        if math.inf in epsilons:
            remedy = "leave out designs in which an answer rules a truth out"
            _check.refuse_state("designs", "have a finite epsilon each", "one is infinite", remedy)
        order = np.argsort(epsilons, kind="stable")
        lines = tuple(f"{count} respondents" for count in self.respondents)
        return PowerCurve(
            x_label="epsilon", x=np.array(epsilons)[order], lines=lines, powers=powers.T[:, order]
        )

    def plot(self, ax: Any = None, *, against: Against = "respondents") -> Any:
        """Draw the powers.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; new axes without.
        against : {"respondents", "epsilon"}
            As in `curve`.

        Returns
        -------
        matplotlib.axes.Axes
            They are not shown.

        Raises
        ------
        MissingExtra
            If matplotlib is absent and no axes are given.
        """
        found, ax = self.curve(against), axes(ax)
        for name, line in zip(found.lines, found.powers, strict=True):
            ax.plot(found.x, line, marker=".", label=label_text(name))
        if against == "respondents":
            ax.set_xscale("log")
        ax.set_xlabel(found.x_label)
        ax.set_ylabel("power")
        ax.set_ylim(0.0, 1.0)
        sides = "two-sided" if self.two_sided else "one-sided"
        ax.set_title(f"{self.prevalence:g} against {self.null:g}, {sides} at {self.false_positive_rate:g}")
        ax.legend()
        return ax

    def _power(self, design: BinaryDesign, count: int) -> float:
        return power(
            design,
            null=self.null,
            prevalence=self.prevalence,
            respondents=count,
            false_positive_rate=self.false_positive_rate,
            two_sided=self.two_sided,
        )


def warner_for_epsilon(epsilon: float) -> Warner:
    r"""Return Warner's design with an epsilon of at most a given one.

    Parameters
    ----------
    epsilon : float
        From 0.0001 to 12.

    Returns
    -------
    Warner
        With the largest chance of the truth among multiples of :math:`2^{-20}`.

    Examples
    --------
    >>> design = warner_for_epsilon(1.0)
    >>> design.epsilon <= 1.0, round(float(design.truth), 4)
    (True, 0.7311)
    """
    wanted = _check.finite("epsilon", epsilon)
    if not _MIN_EPSILON <= wanted <= _MAX_EPSILON:
        _check.refuse("epsilon", f"be from {_MIN_EPSILON:g} to {_MAX_EPSILON:g}", epsilon, "choose one there")
    part = math.ceil(_STEPS / (1 + math.exp(-wanted)))
    while (design := Warner(truth=Fraction(part, _STEPS))).epsilon > wanted:
        part -= 1
    return design


def _is_design(item: tuple[object, object]) -> bool:
    return isinstance(item[0], str) and isinstance(item[1], BinaryDesign)


def _plain(count: object) -> object:
    return int(count) if isinstance(count, np.integer) else count
