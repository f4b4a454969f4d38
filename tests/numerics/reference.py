"""The samplers and the laws once more, slowly, in mpmath: no table, no fixed point, no float decides here.

Reads the same words as `sfumato.numerics.sampling.plans`: only the layout of words is shared.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import cache

import mpmath as mp

DIGITS = 120
CELLS = {"laplace": (128, 128), "gaussian": (1024, 256)}


def number(x: Fraction) -> mp.mpf:
    return mp.mpf(x.numerator) / x.denominator


def weight(distribution: str, scale: Fraction, k: int) -> mp.mpf:
    x = number(Fraction(k) / scale)
    return mp.exp(-abs(x)) if distribution == "laplace" else mp.exp(-x * x / 2)


@cache
def gaussian_sums(scale: Fraction) -> tuple[list[mp.mpf], mp.mpf]:
    """Sums of the weights from k on, for k = 0, 1, ... while they matter at DIGITS digits."""
    with mp.workdps(DIGITS + 20):
        last = int(scale * (40 if scale < 200 else 25)) + 3
        sums = [mp.mpf(0)]
        for k in range(last, -1, -1):
            sums.append(sums[-1] + weight("gaussian", scale, k))
        return sums[::-1], sums[-1]


def magnitude_tail(distribution: str, scale: Fraction, k: int, folded: bool) -> mp.mpf:
    """P(K >= k), k >= 1: K is |X| if folded, else X given X >= 0."""
    if distribution == "laplace":
        q = mp.exp(-number(1 / scale))
        return 2 * q**k / (1 + q) if folded else q**k
    sums, whole = gaussian_sums(scale)
    tail = sums[k] if k < len(sums) else mp.mpf(0)
    return tail / (whole - mp.mpf(1) / 2) if folded else tail / whole


def upper_tail(distribution: str, scale: Fraction, k: int) -> mp.mpf:
    """P(X >= k) for k >= 1, by summation; for large Gaussians by Euler and Maclaurin's formula, order 28."""
    if distribution == "laplace" or scale <= 400:
        return magnitude_tail(distribution, scale, k, folded=True) / 2
    s = number(scale)

    def derivative(n: int) -> mp.mpf:
        z = k / s
        return (
            (-1) ** n
            * s**-n
            * mp.hermite(n, z / mp.sqrt(2))
            * mp.mpf(2) ** (-mp.mpf(n) / 2)
            * mp.exp(-z * z / 2)
        )

    total = s * mp.sqrt(mp.pi / 2) * mp.erfc(k / s / mp.sqrt(2)) + derivative(0) / 2
    for j in range(1, 15):
        total -= mp.bernoulli(2 * j) / mp.factorial(2 * j) * derivative(2 * j - 1)
    return total / (s * mp.sqrt(2 * mp.pi))


def low_bits(distribution: str, scale: Fraction) -> int:
    direct, cells = CELLS[distribution]
    bits = 0
    while scale > direct and scale > cells * 2**bits:
        bits += 1
    return bits


def compare(value: int, width: int, probability: mp.mpf, words: Iterator[int]) -> tuple[bool, int, int]:
    """Whether the uniform that starts with these bits is below a probability; reads words until known."""
    while True:
        scaled = probability * mp.mpf(2) ** width
        if value + 1 <= scaled:
            return True, value, width
        if value >= scaled:
            return False, value, width
        value, width = value << 64 | next(words), width + 64


def look_up(distribution: str, scale: Fraction, folded: bool, value: int, words: Iterator[int]) -> int:
    """#{k >= 1 : U < P(K >= k)} by doubling and bisection."""
    width, inside, outside = 63, 0, 1
    while True:
        below, value, width = compare(
            value, width, magnitude_tail(distribution, scale, outside, folded), words
        )
        if not below:
            break
        inside, outside = outside, 2 * outside
    while outside - inside > 1:
        middle = (inside + outside) // 2
        below, value, width = compare(
            value, width, magnitude_tail(distribution, scale, middle, folded), words
        )
        inside, outside = (middle, outside) if below else (inside, middle)
    return inside


def draw(distribution: str, scale: Fraction, own: list[int], words: Iterator[int]) -> int | None:
    """One draw from its own words; `words` gives the further ones. None for a refused draw."""
    with mp.workdps(DIGITS):
        low = low_bits(distribution, scale)
        sign = -1 if own[0] & 1 else 1
        cell = look_up(distribution, scale / 2**low, len(own) == 1, own[0] >> 1, words)
        if len(own) == 1:
            return sign * cell
        place = own[1] % 2**low
        quotient = weight(distribution, scale, (cell << low) + place) / weight(
            distribution, scale, cell << low
        )
        accepted, _, _ = compare(own[1] >> low, 64 - low, quotient, words)
        x = (cell << low) + place
        return sign * x if accepted and not (sign < 0 and x == 0) else None


def words_per_draw(distribution: str, scale: Fraction) -> int:
    return 2 if scale > CELLS[distribution][0] else 1


def sample(distribution: str, scale: Fraction, count: int, words: list[int]) -> list[int]:
    """The first accepted draws from a list of words, none of which may be left open."""
    step, made = words_per_draw(distribution, scale), list[int]()
    for at in range(0, len(words), step):
        value = draw(distribution, scale, words[at : at + step], iter(()))
        if value is not None:
            made.append(value)
        if len(made) == count:
            break
    return made
