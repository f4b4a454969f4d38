"""Sources of random bits: the operating system's entropy, or a seed for simulation.

`SecureSource` draws a 256-bit key and a 128-bit counter from the operating system (`os.urandom`) and
stretches them by AES-256 in counter mode (NIST SP 800-38A). At most 2^30 blocks are drawn per key: if
AES-256 is a pseudo-random permutation, what distinguishes its output from uniform bits, the lack of repeated
blocks, is then worth an advantage of at most 2^-69 per key.

A word that was handed out is erased from the source and never handed out again: not to another thread,
not to a forked child, which starts from fresh entropy. A copied virtual machine has a copy of its memory,
keys included, and is outside this promise.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from functools import partial
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from sfumato._check import integer, refuse

__all__ = ["RandomSource", "Rng", "SecureSource", "SimulatedSource", "random_source"]

_BLOCK = 16
_POOL_WORDS = 1 << 12
_PIECE_WORDS = 1 << 16
_ZEROS = memoryview(bytes(8 * _PIECE_WORDS))


@runtime_checkable
class RandomSource(Protocol):
    """A source of uniform random words, as a protocol: all samplers draw from one.

    Attributes
    ----------
    simulated : bool
        Whether the words follow from a seed; then nothing drawn from them protects anyone.

    Examples
    --------
    >>> isinstance(SecureSource(), RandomSource), isinstance(SimulatedSource(1), RandomSource)
    (True, True)
    """

    @property
    def simulated(self) -> bool:
        """Whether the words follow from a seed."""

    def words(self, count: int) -> NDArray[np.uint64]:
        """Return ``count`` fresh uniform 64-bit words in an array that the caller owns.

        Parameters
        ----------
        count : int
            How many, at least 0.

        Returns
        -------
        ndarray of uint64, shape (count,)
            Writable, never handed out again.
        """

    def bytes(self, count: int) -> bytes:
        """Return ``count`` fresh uniform bytes.

        Parameters
        ----------
        count : int
            How many, at least 0.

        Returns
        -------
        bytes
        """


class _Stream:
    """One keystream of one process: a key, its lock and a pool of words not yet handed out."""

    __slots__ = ("_blocks", "_encryptor", "_limit", "_lock", "_next", "_pool", "process")

    def __init__(self, limit: int) -> None:
        self.process = os.getpid()
        self._limit = limit
        self._lock = threading.Lock()
        # An update may write up to one block more than it is given.
        self._pool = np.empty(_POOL_WORDS + 2, np.uint64)
        self._next = _POOL_WORDS
        self._rekey()

    def _rekey(self) -> None:
        seed = os.urandom(48)
        self._encryptor = Cipher(algorithms.AES(seed[:32]), modes.CTR(seed[32:])).encryptor()
        self._blocks = 0

    def _stretch(self, into: NDArray[np.uint64], count: int) -> None:
        """Overwrite the first ``count`` words of ``into``, which has room for one block more."""
        for start in range(0, count, _PIECE_WORDS):
            piece = min(_PIECE_WORDS, count - start)
            blocks = -(-8 * piece // _BLOCK)
            if self._blocks + blocks > self._limit:
                self._rekey()
            self._blocks += blocks
            self._encryptor.update_into(_ZEROS[: 8 * piece], into[start:].view(np.uint8).data)

    def words(self, count: int) -> NDArray[np.uint64]:
        with self._lock:
            if count > _POOL_WORDS // 4:
                fresh = np.empty(count + 2, np.uint64)
                self._stretch(fresh, count)
                return fresh[:count]
            if self._next + count > _POOL_WORDS:
                self._stretch(self._pool, _POOL_WORDS)
                self._next = 0
            given = self._pool[self._next : self._next + count]
            self._next += count
            taken = given.copy()
            given[:] = 0
            return taken


class SecureSource:
    """Cryptographic random words, safe to share by threads and across `os.fork`.

    Parameters
    ----------
    rekey_blocks : int
        Maximum number of 128-bit blocks drawn from one key before fresh entropy replaces it.

    Notes
    -----
    Each process has its own keystream: a child of `os.fork` drops its parent's in a fork handler, and a
    child made behind Python's back is noticed by its process id.

    Examples
    --------
    >>> SecureSource().words(3).shape
    (3,)
    """

    __slots__ = ("__weakref__", "_rekey_blocks", "_stream")

    def __init__(self, rekey_blocks: int = 1 << 30) -> None:
        self._rekey_blocks = integer(
            "rekey_blocks",
            rekey_blocks,
            minimum=8 * _PIECE_WORDS // _BLOCK,
            remedy="the default draws fresh entropy every 16 GiB",
        )
        self._stream: _Stream | None = None
        _SECURE.add(self)

    @property
    def simulated(self) -> bool:
        """False: these words protect."""
        return False

    def words(self, count: int) -> NDArray[np.uint64]:
        """Return ``count`` fresh uniform 64-bit words in an array that the caller owns.

        Parameters
        ----------
        count : int
            How many, at least 0.

        Returns
        -------
        ndarray of uint64
            Writable, never handed out before and never again.
        """
        integer("count", count, remedy="pass how many are wanted")
        stream = self._stream
        # Two threads may both start a stream here; each has its own key, so nothing is shared.
        if stream is None or stream.process != os.getpid():
            stream = self._stream = _Stream(self._rekey_blocks)
        return stream.words(count)

    def bytes(self, count: int) -> bytes:
        """Return ``count`` fresh uniform bytes.

        Parameters
        ----------
        count : int
            How many, at least 0.

        Returns
        -------
        bytes
            Never handed out before and never again.
        """
        return self.words(-(-count // 8)).tobytes()[:count]

    def forget(self) -> None:
        """Drop the key and every word not yet handed out; the next call draws fresh entropy."""
        self._stream = None


_SECURE: weakref.WeakSet[SecureSource] = weakref.WeakSet()


def _forget_all() -> None:
    for source in list(_SECURE):
        source.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)

_SYSTEM = SecureSource()


def _full_words(generator: np.random.Generator, size: int) -> NDArray[np.uint64]:
    return generator.integers(0, 2**64 - 1, size, dtype=np.uint64, endpoint=True)


class SimulatedSource:
    """Words that follow from a seed: for simulation and tests, never for real data.

    Parameters
    ----------
    seed : int or numpy.random.Generator
        A non-negative seed of numpy's PCG64, whose raw stream is fixed, or a generator whose state advances.

    Examples
    --------
    >>> bool((SimulatedSource(7).words(4) == SimulatedSource(7).words(4)).all())
    True
    """

    __slots__ = ("_draw",)

    _draw: Callable[..., NDArray[np.uint64]]

    def __init__(self, seed: int | np.random.Generator) -> None:
        if isinstance(seed, np.random.Generator):
            self._draw = partial(_full_words, seed)
        else:
            self._draw = np.random.PCG64(integer("seed", seed, remedy="pass a number such as 1")).random_raw

    @property
    def simulated(self) -> bool:
        """True: whatever is drawn from here protects nobody."""
        return True

    def words(self, count: int) -> NDArray[np.uint64]:
        """Return the next ``count`` words of the seeded stream.

        Parameters
        ----------
        count : int
            How many, at least 0.

        Returns
        -------
        ndarray of uint64, shape (count,)
        """
        return self._draw(size=integer("count", count, remedy="pass how many are wanted"))

    def bytes(self, count: int) -> bytes:
        """Return the next ``count`` bytes of the seeded stream, drawn as whole words.

        Parameters
        ----------
        count : int
            How many, at least 0.

        Returns
        -------
        bytes
        """
        return self.words(-(-count // 8)).astype("<u8").tobytes()[:count]


Rng: TypeAlias = int | np.random.Generator | RandomSource | None
"""What every `rng=` argument takes: None for real protection, else a seed or a source."""


def random_source(rng: Rng = None) -> RandomSource:
    """Return the source that an ``rng`` argument means.

    Parameters
    ----------
    rng : int, numpy.random.Generator, RandomSource or None
        None is the process-wide `SecureSource`; an int or a generator is for simulation only; a
        source is returned as it is.

    Returns
    -------
    RandomSource
        Its ``simulated`` is False if releases drawn from it protect.

    Raises
    ------
    ParameterError
        If ``rng`` is anything else.

    Examples
    --------
    >>> random_source().simulated, random_source(1).simulated
    (False, True)
    """
    if rng is None:
        return _SYSTEM
    if isinstance(rng, np.random.Generator):
        return SimulatedSource(rng)
    if isinstance(rng, int | np.integer) and not isinstance(rng, bool):
        return SimulatedSource(int(rng))
    if not isinstance(rng, RandomSource) or isinstance(rng, type):
        rule = "be None, an int, a numpy.random.Generator or a RandomSource"
        refuse("rng", rule, rng, "pass None for noise that protects")
    return rng
