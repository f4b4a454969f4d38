"""The secret that batches are drawn from: one stream of random words for each purpose and step."""

from __future__ import annotations

import hashlib
import hmac
import os
from typing import NoReturn, TypeAlias, final

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from sfumato import _check

__all__ = ["KeyedStream", "Seed", "SeedLike"]

_BYTES = 32
_PIECE = 1 << 20
_ZEROS = memoryview(bytes(_PIECE))
_MAX_STEPS = 1 << 63


class KeyedStream:
    """Random words that follow from a key and a step: AES-256 in counter mode.

    Parameters
    ----------
    key : bytes of length 32
    step : int
        From 0 to 2^63 - 1; each step has 2^64 blocks of its own.
    simulated : bool
        Whether the key follows from a number.

    Notes
    -----
    If AES-256 is a pseudo-random permutation, what tells N blocks from uniform bits is worth an advantage of
    at most N^2 / 2^129.
    """

    __slots__ = ("_encryptor", "simulated")

    def __init__(self, key: bytes, step: int, *, simulated: bool) -> None:
        start = step.to_bytes(8, "big") + bytes(8)
        self._encryptor = Cipher(algorithms.AES(key), modes.CTR(start)).encryptor()
        self.simulated = simulated

    def bytes(self, count: int) -> bytes:
        """Return the next ``count`` bytes."""
        pieces = [
            self._encryptor.update(_ZEROS[: min(_PIECE, count - at)])
            for at in range(0, _check.integer("count", count), _PIECE)
        ]
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def words(self, count: int) -> NDArray[np.uint64]:
        """Return the next ``count`` uniform 64-bit words."""
        return np.frombuffer(self.bytes(8 * count), "<u8").astype(np.uint64)


@final
class Seed:
    """The secret that all batches of a run are drawn from.

    It is never shown and never pickled with what holds it: whoever knows it knows the batches, and no
    sampling hides anyone from them. `reveal` gives it to whoever seals it apart.

    Parameters
    ----------
    secret : bytes of length 32, optional
        Drawn from the operating system's entropy if left out.

    Examples
    --------
    >>> Seed()
    Seed(<sealed>)
    >>> Seed.of(7), Seed.of(7).simulated
    (Seed(<simulated>), True)
    """

    __slots__ = ("_secret", "_simulated")

    def __init__(self, secret: bytes | None = None) -> None:
        self._secret = os.urandom(_BYTES) if secret is None else bytes(secret)
        if len(self._secret) != _BYTES:
            remedy = "pass what Seed.reveal() returned, or leave it out"
            _check.refuse_state("secret", f"have {_BYTES} bytes", f"it has {len(self._secret)}", remedy)
        self._simulated = False

    @classmethod
    def of(cls, seed: SeedLike) -> Seed:
        """Return the seed that an argument means: None is a fresh secret, an int is for simulation only.

        Parameters
        ----------
        seed : Seed, int or None
            None draws 32 bytes from the operating system.

        Returns
        -------
        Seed
        """
        if isinstance(seed, Seed):
            return seed
        if seed is None or isinstance(seed, bytes):
            return cls(seed)
        number = _check.integer("seed", seed, remedy="pass None for batches that protect")
        made = cls(hashlib.sha256(f"sfumato simulated batches {number}".encode()).digest())
        made._simulated = True
        return made

    @property
    def simulated(self) -> bool:
        """Whether the secret follows from a number, so that it protects nobody."""
        return self._simulated

    def reveal(self) -> bytes:
        """Return the secret, to be sealed apart from anything that is published.

        Returns
        -------
        bytes of length 32
        """
        return self._secret

    def stream(self, purpose: str, step: int) -> KeyedStream:
        """Return the random words for one purpose at one step; always the same, from their beginning.

        Parameters
        ----------
        purpose : str
            What the words are for: each purpose has a stream of its own.
        step : int
            The step that the words are for.

        Returns
        -------
        KeyedStream
        """
        if not 0 <= step < _MAX_STEPS:
            _check.refuse("step", "be from 0 to 2^63 - 1", step, "count the steps from 0")
        key = hmac.digest(self._secret, purpose.encode(), "sha256")
        return KeyedStream(key, step, simulated=self._simulated)

    def __repr__(self) -> str:
        return f"Seed(<{'simulated' if self._simulated else 'sealed'}>)"

    def __copy__(self) -> Seed:
        return self

    def __deepcopy__(self, memo: object) -> Seed:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Seed is not pickled with what holds it; seal Seed.reveal() apart")


SeedLike: TypeAlias = Seed | bytes | int | None
"""What ``seed=`` takes: None for batches that protect, 32 secret bytes to resume, an int to simulate."""
