"""Exact samplers of discrete Laplace and Gaussian noise, and of parts that add up to Laplace noise.

Guarantee: given uniform random bits, the output distribution is exactly the stated one, for the rational
number that the scale is. Every decision compares a uniform's bits with a certified enclosure of the true
probability; one that the bits at hand leave open (fewer than one draw in 10^8) is taken with more bits and
exact integers, never by rounding, and never dropped.

Timing: words are drawn and looked up in blocks of at least 256 with a fixed number of steps each; a request
for fewer hands out the front of a block, so its time does not follow the values handed out. What remains is
the processor's cache and the rare open draws.

These functions add noise to nothing and charge no ledger: `sfumato.mechanisms` and a session do.

References
----------
Canonne, Kamath, Steinke, The discrete Gaussian for differential privacy, NeurIPS 2020: the two distributions,
and why they are to be drawn exactly. Devroye, Non-uniform random variate generation, Springer 1986, chapters
II and III: inversion and rejection.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import prod
from typing import overload

import numpy as np
from numpy.typing import NDArray

from sfumato._check import fraction, integer, refuse
from sfumato.numerics.randomness.source import Rng, random_source
from sfumato.numerics.sampling.plans import SamplingPlan, gaussian_plan, laplace_plan, polya_plan

__all__ = [
    "LARGEST_POLYA",
    "LARGEST_SCALE",
    "collect",
    "discrete_gaussian",
    "discrete_laplace",
    "exact_scale",
    "geometric",
    "polya",
]

LARGEST_POLYA = 1 << 14
"""Largest scale whose parts are drawn: tables grow with it."""

LARGEST_SCALE = 2**40
"""Largest scale and standard deviation that are drawn: beyond it a value could leave 64 bits."""

_MINIMUM = 256
_MAXIMUM = 1 << 13


def exact_scale(name: str, value: object) -> Fraction:
    """Return a scale as the exact rational it is, or refuse what is not positive or is above 2^40.

    Parameters
    ----------
    name : str
        Of the parameter, for the message.
    value : object
        What was passed.

    Returns
    -------
    Fraction
        Positive, at most `LARGEST_SCALE`.

    Raises
    ------
    ParameterError
        If it is anything else.

    Examples
    --------
    >>> exact_scale("scale", 0.1) == 0.1
    True
    """
    exact = fraction(name, value, "pass epsilon= to a mechanism to have it chosen")
    if exact > LARGEST_SCALE:
        refuse(name, "be at most 2**40", value, "measure the value in larger steps")
    return exact


def _shape(size: int | tuple[int, ...] | None) -> tuple[int, ...]:
    if size is None:
        return ()
    parts = size if isinstance(size, tuple) else (size,)
    return tuple(integer("size", part, remedy="pass how many draws are wanted") for part in parts)


def _sample(plan: SamplingPlan, size: int | tuple[int, ...] | None, rng: Rng) -> NDArray[np.int64] | int:
    shape, source = _shape(size), random_source(rng)
    count = prod(shape)
    out = np.empty(count, np.int64)
    made = 0
    while made < count:
        rest = out[made : made + _MAXIMUM]
        if rest.size >= _MINIMUM:
            made += plan.fill(rest, source)
        else:
            block = np.empty(_MINIMUM, np.int64)
            front = block[: plan.fill(block, source)][: rest.size]
            rest[: front.size] = front
            made += front.size
    return int(out[0]) if size is None else out.reshape(shape)


def collect(
    size: int | tuple[int, ...] | None, propose: Callable[[int], NDArray[np.int64]], acceptance: float
) -> NDArray[np.int64] | int:
    """Return as many accepted proposals as a shape holds.

    Parameters
    ----------
    size : int, tuple of int or None
        Shape of the result; None for one int.
    propose : callable
        From a number of proposals to the accepted ones among them.
    acceptance : float
        Approximate probability that a proposal is accepted.

    Returns
    -------
    int or int64 array
    """
    shape = _shape(size)
    parts: list[NDArray[np.int64]] = []
    missing = prod(shape)
    while missing > 0:
        # Blocks of fixed sizes, so that their number alone follows the draws that are refused.
        wanted = min(_MAXIMUM, max(_MINIMUM, 1 << int(missing / acceptance).bit_length()))
        parts.append(propose(wanted)[:missing])
        missing -= parts[-1].size
    drawn = np.concatenate([np.zeros(0, np.int64), *parts])
    return int(drawn[0]) if size is None else drawn.reshape(shape)


@overload
def discrete_laplace(scale: int | float | Fraction, size: None = None, rng: Rng = None) -> int: ...
@overload
def discrete_laplace(
    scale: int | float | Fraction, size: int | tuple[int, ...], rng: Rng = None
) -> NDArray[np.int64]: ...
@overload
def discrete_laplace(
    scale: int | float | Fraction, size: int | tuple[int, ...] | None, rng: Rng = None
) -> NDArray[np.int64] | int: ...
def discrete_laplace(
    scale: int | float | Fraction, size: int | tuple[int, ...] | None = None, rng: Rng = None
) -> NDArray[np.int64] | int:
    """Draw from the discrete Laplace distribution, ``P(X = k) ~ exp(-|k| / scale)``, exactly.

    Parameters
    ----------
    scale : int, float or Fraction
        Positive, at most 2**40; a float means the rational it is.
    size : int, tuple of int or None
        Shape of the result; None for one int.
    rng : int, numpy.random.Generator, RandomSource or None
        None for noise that protects; anything else simulates.

    Returns
    -------
    int or ndarray of int64
        Independent draws.

    Raises
    ------
    ParameterError
        If a parameter breaks its rule.

    Notes
    -----
    Guarantee: noise of scale ``s / epsilon`` on an integer query of sensitivity s is (epsilon, 0)-DP under
    the relation that s was taken for (Ghosh, Roughgarden, Sundararajan 2009).

    Examples
    --------
    >>> discrete_laplace(10, size=4, rng=1).dtype
    dtype('int64')
    >>> abs(discrete_laplace(0.001))
    0
    """
    return _sample(laplace_plan(exact_scale("scale", scale)), size, rng)


@overload
def discrete_gaussian(stddev: int | float | Fraction, size: None = None, rng: Rng = None) -> int: ...
@overload
def discrete_gaussian(
    stddev: int | float | Fraction, size: int | tuple[int, ...], rng: Rng = None
) -> NDArray[np.int64]: ...
@overload
def discrete_gaussian(
    stddev: int | float | Fraction, size: int | tuple[int, ...] | None, rng: Rng = None
) -> NDArray[np.int64] | int: ...
def discrete_gaussian(
    stddev: int | float | Fraction, size: int | tuple[int, ...] | None = None, rng: Rng = None
) -> NDArray[np.int64] | int:
    """Draw from the discrete Gaussian distribution, ``P(X = k) ~ exp(-k^2 / (2 stddev^2))``, exactly.

    Parameters
    ----------
    stddev : int, float or Fraction
        The distribution's parameter, positive, at most 2**40; a float means the rational it is.
    size : int, tuple of int or None
        Shape of the result; None for one int.
    rng : int, numpy.random.Generator, RandomSource or None
        None for noise that protects; anything else simulates.

    Returns
    -------
    int or ndarray of int64
        Independent draws.

    Raises
    ------
    ParameterError
        If a parameter breaks its rule.

    Notes
    -----
    Guarantee: noise on an integer query of sensitivity s is ``s^2 / (2 stddev^2)``-zCDP under the relation
    that s was taken for (Canonne, Kamath, Steinke 2020).

    Examples
    --------
    >>> discrete_gaussian(10, size=(2, 3), rng=1).shape
    (2, 3)
    """
    return _sample(gaussian_plan(exact_scale("stddev", stddev)), size, rng)


@overload
def geometric(scale: int | float | Fraction, size: None = None, rng: Rng = None) -> int: ...
@overload
def geometric(
    scale: int | float | Fraction, size: int | tuple[int, ...], rng: Rng = None
) -> NDArray[np.int64]: ...
@overload
def geometric(
    scale: int | float | Fraction, size: int | tuple[int, ...] | None, rng: Rng = None
) -> NDArray[np.int64] | int: ...
def geometric(
    scale: int | float | Fraction, size: int | tuple[int, ...] | None = None, rng: Rng = None
) -> NDArray[np.int64] | int:
    """Draw from the geometric distribution on k >= 0, ``P(X = k) ~ exp(-k / scale)``, exactly.

    Parameters
    ----------
    scale : int, float or Fraction
        Positive, at most 2**40; a float means the rational it is.
    size : int, tuple of int or None
        Shape of the result; None for one int.
    rng : int, numpy.random.Generator, RandomSource or None
        None for noise that protects; anything else simulates.

    Returns
    -------
    int or ndarray of int64
        Independent draws.

    Raises
    ------
    ParameterError
        If a parameter breaks its rule.

    Notes
    -----
    A discrete Laplace draw, given that it is not negative, has this distribution; the negative ones are
    refused.

    Examples
    --------
    >>> int(geometric(10, size=100, rng=1).min()) >= 0
    True
    """
    plan = laplace_plan(exact_scale("scale", scale))
    shape, source = _shape(size), random_source(rng)
    count, made = prod(shape), 0
    out = np.empty(count, np.int64)
    while made < count:
        # Blocks of fixed sizes, so that their number alone follows the draws that are refused.
        block = np.empty(min(_MAXIMUM, max(_MINIMUM, 1 << (2 * (count - made)).bit_length())), np.int64)
        block = block[: plan.fill(block, source)]
        selected = block[block >= 0][: count - made]
        out[made : made + selected.size] = selected
        made += selected.size
    return int(out[0]) if size is None else out.reshape(shape)


def polya(scale: int | float | Fraction, parts: int, size: int, rng: Rng = None) -> NDArray[np.int64]:
    """Draw whole numbers of which ``parts`` add up to a geometric number, exactly.

    Parameters
    ----------
    scale : int, float or Fraction
        The sum has ``P(X = k) ~ exp(-k / scale)``, k >= 0. Positive, at most 2**14; a float means the
        rational it is.
    parts : int
        From 1 to 2**40.
    size : int
        How many draws.
    rng : int, numpy.random.Generator, RandomSource or None
        None for noise that protects; anything else simulates.

    Returns
    -------
    ndarray of int64
        Independent draws, at least 0.

    Raises
    ------
    ParameterError
        If a parameter breaks its rule.

    Notes
    -----
    Guarantee: the difference of two such sums, of ``parts`` draws each, has the discrete Laplace distribution
    of this scale; see `fixed_point.polya_magnitude`. Whoever draws one part of both draws a fraction of that
    noise.

    References
    ----------
    Goryczka, Xiong, "A comprehensive comparison of multiparty secure additions with differential privacy",
    2017: Pólya parts of geometric noise.

    Examples
    --------
    >>> int(polya(10, 1000, 5000, rng=1).sum()) > 0
    True
    """
    exact = exact_scale("scale", scale)
    if exact > LARGEST_POLYA:
        refuse("scale", "be at most 2**14", scale, "measure the value in larger steps")
    if integer("parts", parts, minimum=1, remedy="pass how many parts add up to the noise") > 1 << 40:
        refuse("parts", "be at most 2**40", parts, "split the noise into fewer parts")
    # The kernel draws a sign too; a part has none.
    return np.abs(_sample(polya_plan(exact, parts), size, rng))
