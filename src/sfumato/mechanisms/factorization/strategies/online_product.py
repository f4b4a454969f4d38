"""Products of a fixed series with one whose terms come in one after the other, in nearly linear time."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, Final, final

import numpy as np
import scipy
from numpy.typing import NDArray

from sfumato.mechanisms.factorization.strategies.integer_strategy import Array, Integers

__all__ = ["OnlineProduct"]

_BLOCK: Final = 1024
_SINGLE: Final = 16
_LONGEST: Final = 1 << 17
_RETAINED: Final = 1 << 16
_ELEMENTS: Final = 1 << 21
_GAMMA: Final = 32 * 2.0**-53


@final
class OnlineProduct:
    r"""The terms :math:`\sum_{i \le t} w_{t-i} x_i`, each as soon as :math:`x_t` is there.

    Parameters
    ----------
    weights : array of shape (m,)
        Of whole numbers from 0 to :math:`2^{42}`, or of floats.
    length : int
        The most terms.
    largest : int
        The greatest magnitude of a term, where weights are whole; products stay below :math:`2^{63}`.

    Notes
    -----
    *Blocks.* For :math:`i < t` there is one power of two :math:`b` at which both are in neighboring blocks of
    b steps that begin at an even multiple of b. So when an odd multiple of b is reached, the last b terms are
    multiplied by the first 2b weights and added to the next b sums, by a fast Fourier transform of 2b points;
    blocks of less than 1,024 are multiplied one by one. Over n steps that is :math:`O(n \log^2 n)`. Each
    step is answered at once; the one at an odd multiple of b takes a time in proportion to :math:`b \log b`.

    *Exactness.* Weights and terms are written in digits around 0, as few as the bounds on both allow: a
    product of rows of digits :math:`u, v` by a transform of N points errs by at most :math:`\gamma \|u\|
    \|v\|`, :math:`\gamma = 32 \log_2(N)\, 2^{-53}`: about eight times the bound that Higham proves for
    transforms with accurate twiddle factors. That is below 1/4, and the product is rounded to whole numbers.
    The number of digits follows from public bounds, never from the terms.

    *Floats.* A term errs by at most :math:`2^{-41.5} \sqrt{n} \|w\| \max |x|`: the bound above, over blocks
    of sizes that double.

    References
    ----------
    van der Hoeven (2002), "Relax, but don't be too lazy", section 4.2; Higham (2002), "Accuracy and stability
    of numerical algorithms", Theorem 24.2.

    Examples
    --------
    >>> import numpy as np
    >>> sums = OnlineProduct(np.array([1, 1, 1]), 5, largest=100)
    >>> [sums.send(term) for term in (1, 10, 100)], sums.extend(np.array([2, 3])).tolist()
    ([1, 11, 111], [112, 105])
    """

    def __init__(self, weights: NDArray[Any], length: int, *, largest: int = 0) -> None:
        self._weights, self._length, self._largest = weights[:length], length, largest
        self._backward = self._weights[::-1].copy()
        self._reach = 1 << (len(self._weights) - 1).bit_length()
        self._kernels: dict[tuple[int, bool], _Kernel] = {}
        # Terms so far, and from the next step on what they add to later sums.
        self._terms: NDArray[Any] = np.zeros(0, dtype=weights.dtype)
        self._time = 0

    def send(self, term: Any) -> Any:
        """Take the next term and return the product's.

        Parameters
        ----------
        term : number, or array
            Of the same shape in every step.

        Returns
        -------
        number, or array
        """
        self._open(np.shape(term))
        time = self._time
        reach = min(time % _BLOCK + 1, len(self._backward))
        sums = self._terms[time]
        before = sums.copy() if sums.ndim else sums
        self._terms[time] = term
        past = self._terms[time - reach + 1 : time + 1]
        if past.ndim == 1:
            out = (before + self._backward[-reach:].dot(past)).item()
        else:
            out = before + np.tensordot(self._backward[-reach:], past, 1)
        self._time = time + 1
        if self._time % _BLOCK == 0:
            self._pass_on()
        return out

    def extend(self, terms: NDArray[Any]) -> NDArray[Any]:
        """Take the next terms and return as many of the product's.

        Parameters
        ----------
        terms : array of shape (k, ...)

        Returns
        -------
        array of shape (k, ...)
        """
        self._open(terms.shape[1:])
        out = np.empty(terms.shape, dtype=self._terms.dtype)
        done = 0
        while done < len(terms):
            part = terms[done : done + self._part(len(terms) - done)]
            if len(part) <= _SINGLE:
                for index, term in enumerate(part, done):
                    out[index] = self.send(term)
            else:
                out[done : done + len(part)] = self._advance(part)
            done += len(part)
        return out

    def _open(self, shape: tuple[int, ...]) -> None:
        if not self._time:
            self._terms = np.zeros((self._length, *shape), dtype=self._terms.dtype)

    def _part(self, left: int) -> int:
        """Return how many terms are multiplied together: those of one aligned block."""
        inside = self._time % _BLOCK
        if inside or left < _BLOCK:
            return min(_BLOCK - inside, left)
        aligned = self._time & -self._time or _LONGEST
        return min(aligned, 1 << (left.bit_length() - 1), _LONGEST)

    def _advance(self, part: NDArray[Any]) -> NDArray[Any]:
        start, stop = self._time - self._time % _BLOCK, self._time + len(part)
        out = self._terms[self._time : stop].copy()
        self._terms[self._time : stop] = part
        size = max(_BLOCK, len(part))
        self._add(out, self._terms[start:stop], size, near=True, first=self._time - start)
        self._time = stop
        if stop % _BLOCK == 0:
            self._pass_on()
        return out

    def _pass_on(self) -> None:
        """Add what the block that ends here adds to the next one."""
        time = self._time
        size = min(time & -time, max(self._reach, _BLOCK))
        ahead = self._terms[time : time + size]
        if len(ahead) and len(self._weights) > 1:
            self._add(ahead, self._terms[time - size : time], size, near=False, first=0)

    def _add(self, out: NDArray[Any], terms: NDArray[Any], size: int, *, near: bool, first: int) -> None:
        """Add a block's products to sums: of its own steps if they are near, else of the next block's."""
        kernel = self._kernel(size, near)
        columns, sums = terms.reshape(len(terms), -1), out.reshape(len(out), -1)
        width = max(1, _ELEMENTS // (2 * size))
        for start in range(0, columns.shape[1], width):
            some = slice(start, start + width)
            found = kernel.multiply(columns[:, some].T)
            sums[:, some] += found[:, first : first + len(out)].T

    def _kernel(self, size: int, near: bool) -> _Kernel:
        found = self._kernels.get((size, near))
        if found is None:
            exact = self._weights.dtype.kind == "i"
            weights = self._weights[: size if near else 2 * size]
            found = _Whole(weights, size, near, self._largest) if exact else _Floats(weights, size, near)
            if size <= _RETAINED:
                self._kernels[size, near] = found
        return found


class _Kernel(ABC):
    """Multiplies rows of at most ``size`` terms by fixed weights, for their own steps or the next ones."""

    def __init__(self, size: int, near: bool) -> None:
        self._points = 2 * size
        self._steps = slice(0, size) if near else slice(size, 2 * size)

    @abstractmethod
    def multiply(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Return the products of each row, shape (rows, size)."""

    def _transform(self, rows: Array) -> NDArray[np.complex128]:
        return np.asarray(scipy.fft.rfft(rows, self._points))

    def _back(self, transformed: NDArray[np.complex128]) -> Array:
        return np.asarray(scipy.fft.irfft(transformed, self._points)[..., self._steps])


class _Floats(_Kernel):
    def __init__(self, weights: Array, size: int, near: bool) -> None:
        super().__init__(size, near)
        self._weights = self._transform(weights)

    def multiply(self, rows: NDArray[Any]) -> NDArray[Any]:
        return self._back(self._transform(rows) * self._weights)


class _Whole(_Kernel):
    """Exact products of whole numbers, in as few digits as their bounds allow."""

    def __init__(self, weights: Integers, size: int, near: bool, largest: int) -> None:
        super().__init__(size, near)
        gamma = _GAMMA * math.log2(self._points)
        wanted = largest.bit_length() + 1
        choices = []
        for count in range(1, 5):
            width = -(-(int(weights.max(initial=0)).bit_length() + 1) // count)
            digits = _digits(weights, width, count)
            # Not by a library's dot product, whose threads would wait for one another.
            norm = math.sqrt(max(float(np.square(digit).sum()) for digit in digits))
            # Digits of terms are at most half of 2**bits, and the error is to be below 1/4.
            bits = math.floor(-math.log2(gamma * max(norm, 1.0) * math.sqrt(size))) - 1
            if bits > 1:
                number = -(-wanted // bits)
                choices.append(((1 + count) * number, count, width, bits, number, digits))
        _, _, self._width, self._bits, self._number, chosen = min(choices, key=lambda choice: choice[:2])
        self._weights = [self._transform(digit) for digit in chosen]

    def multiply(self, rows: NDArray[Any]) -> NDArray[Any]:
        out = np.zeros((len(rows), self._points // 2), dtype=np.int64)
        for place, digit in enumerate(_digits(rows, self._bits, self._number)):
            right = self._transform(digit)
            for index, left in enumerate(self._weights):
                terms = np.rint(self._back(right * left)).astype(np.int64)
                # Beyond 64 bits nothing remains of a term.
                shift = place * self._bits + index * self._width
                if shift < 64:
                    out += terms << shift
        return out


def _digits(values: Integers, width: int, count: int) -> list[Array]:
    """Return so many digits around 0 of a width, the lowest first; the last is what remains."""
    digits, rest, half = [], values, 1 << (width - 1)
    for _ in range(count - 1):
        digit = ((rest + half) & (2 * half - 1)) - half
        digits.append(digit.astype(np.float64))
        rest = (rest - digit) >> width
    return [*digits, rest.astype(np.float64)]
