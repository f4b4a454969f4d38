"""Keys of noise: fresh, given, or made of a seed for simulation."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field
from typing import Self, final

from sfumato import _check
from sfumato.numerics.randomness.keyed_normal import KEY_BYTES

__all__ = ["NoiseKey"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseKey:
    """A secret of 32 bytes, or what stands for one in a simulation.

    Parameters
    ----------
    secret : bytes
        Not shown.
    seed : int or None
        The seed that the secret was made of, which then is none.
    """

    secret: bytes = field(repr=False)
    seed: int | None = None

    @classmethod
    def of(cls, key: bytes | None, seed: int | None = None) -> Self:
        """Return the key that a noise's arguments mean: fresh from the operating system without either."""
        if seed is not None:
            if key is not None:
                _check.refuse("seed", "be left out beside a key", seed, "a seed marks simulation")
            made = hashlib.sha256(b"sfumato simulated noise\0%d" % _check.integer("seed", seed)).digest()
            return cls(secret=made, seed=seed)
        secret: object = os.urandom(KEY_BYTES) if key is None else key
        if not isinstance(secret, bytes) or len(secret) != KEY_BYTES:
            _check.refuse_type("key", f"be {KEY_BYTES} bytes", secret, "leave it out for a fresh one")
        return cls(secret=secret)

    @property
    def simulated(self) -> bool:
        """Whether a seed was given."""
        return self.seed is not None

    def subkey(self, purpose: str) -> bytes:
        """Return a key for one purpose, by SHA-256 of the secret and the purpose.

        Notes
        -----
        Different purposes have independent keys against whoever cannot distinguish SHA-256, keyed in its
        first block, from random functions.
        """
        return hashlib.sha256(self.secret + b"\0sfumato noise: " + purpose.encode()).digest()
