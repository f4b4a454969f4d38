"""The extendable output function of fixed-key AES that incremental point functions use."""

from __future__ import annotations

from typing import Final

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from sfumato import _check
from sfumato.crypto.xof.turboshake import turboshake128

__all__ = ["XofFixedKeyAes128"]

_KEY_DOMAIN: Final = 2
_BLOCK: Final = 16


class XofFixedKeyAes128:
    """The function XofFixedKeyAes128 of the VDAF draft, on a batch of seeds with one tag and binder.

    The key is public: it is derived from the tag and the binder, and block i of a seed's output is AES of
    sigma(seed xor i), xor sigma(seed xor i), with sigma(low, high) = (high, high xor low) (Guo, Katz, Wang,
    Weng and Yu, 2020). It is a correlation-robust hash where AES with this key is an ideal permutation; the
    binder must be a random nonce.

    Parameters
    ----------
    tag : bytes
        The domain separation tag, below 65,536 bytes.
    binder : bytes
        The nonce of a report.

    Examples
    --------
    >>> import numpy as np
    >>> XofFixedKeyAes128(b"tag", b"nonce").stream(np.zeros((2, 16), np.uint8), 20).shape
    (2, 20)
    """

    def __init__(self, tag: bytes, binder: bytes) -> None:
        if len(tag) >= 1 << 16:
            _check.refuse("len(tag)", "be below 65,536", len(tag), "use a shorter context")
        key = turboshake128(len(tag).to_bytes(2, "little") + tag + binder, _KEY_DOMAIN, _BLOCK)
        self._cipher = Cipher(algorithms.AES(key), modes.ECB())  # noqa: S305 - single blocks, hashed, not encrypted

    def stream(self, seeds: NDArray[np.uint8], length: int) -> NDArray[np.uint8]:
        """Return the first bytes of each seed's output.

        Parameters
        ----------
        seeds : numpy.ndarray
            Of shape ``(rows, 16)``.
        length : int
            Bytes of each, at least 1.

        Returns
        -------
        numpy.ndarray
            Of shape ``(rows, length)``.
        """
        if seeds.ndim != 2 or seeds.shape[1] != _BLOCK:
            _check.refuse_type("seeds", "be rows of 16 bytes", seeds, "use an array of shape (rows, 16)")
        blocks = -(-_check.integer("length", length, minimum=1) // _BLOCK)
        counters = np.zeros((blocks, 2), "<u8")
        counters[:, 0] = np.arange(blocks)
        words = np.ascontiguousarray(seeds).view("<u8")[:, None, :] ^ counters
        mixed = np.stack([words[..., 1], words[..., 1] ^ words[..., 0]], axis=-1).astype("<u8")
        encryptor = self._cipher.encryptor()
        encrypted = np.frombuffer(encryptor.update(mixed.tobytes()) + encryptor.finalize(), "<u8")
        hashed = encrypted.reshape(mixed.shape) ^ mixed
        out: NDArray[np.uint8] = hashed.view(np.uint8).reshape(len(seeds), -1)[:, :length]
        return out
