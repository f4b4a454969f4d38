"""The extendable output function of fixed-key AES that incremental point functions use, in batches."""

from __future__ import annotations

from typing import Final

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from sfumato import _check
from sfumato.crypto.fields import _kernel
from sfumato.crypto.fields.field import Elements, PrimeField

__all__ = ["XofFixedKeyAes128"]

_KEY_DOMAIN: Final = 2
_BLOCK: Final = 16


class XofFixedKeyAes128:
    """The function XofFixedKeyAes128 of the VDAF draft, on batches of seeds, with a binder for each batch.

    A key is public: it is derived from the tag and the binder, and block i of a seed's output is AES of
    sigma(seed xor i), xor sigma(seed xor i), with sigma(low, high) = (high, high xor low) (Guo, Katz, Wang,
    Weng and Yu, 2020). It is a correlation-robust hash where AES with this key is an ideal permutation; the
    binder must be a random nonce. The processor's instructions for AES compute it, or ``cryptography`` where
    there are none.

    Parameters
    ----------
    tag : bytes
        The domain separation tag, below 65,536 bytes.
    binders : numpy.ndarray
        Rows of bytes: the nonce of each report.

    Examples
    --------
    >>> import numpy as np
    >>> xof = XofFixedKeyAes128(b"tag", np.zeros((3, 16), np.uint8))
    >>> xof.stream(np.zeros((3, 2, 16), np.uint8), 20).shape
    (3, 2, 20)
    """

    __slots__ = ("_keys",)

    def __init__(self, tag: bytes, binders: NDArray[np.uint8]) -> None:
        if len(tag) >= 1 << 16:
            _check.refuse("len(tag)", "be below 65,536", len(tag), "use a shorter context")
        head = np.frombuffer(len(tag).to_bytes(2, "little") + tag, np.uint8)
        rows = len(binders)
        messages = np.concatenate([np.broadcast_to(head, (rows, len(head))), binders], axis=1)
        self._keys = np.empty((rows, _BLOCK), np.uint8)
        if rows:
            _kernel.turboshake(0, _KEY_DOMAIN, rows, np.ascontiguousarray(messages), self._keys)

    def part(self, rows: slice) -> XofFixedKeyAes128:
        """Return the function for some of the binders.

        Parameters
        ----------
        rows : slice
            Which.

        Returns
        -------
        XofFixedKeyAes128
        """
        chosen = object.__new__(XofFixedKeyAes128)
        chosen._keys = self._keys[rows]
        return chosen

    def stream(self, seeds: NDArray[np.uint8], length: int) -> NDArray[np.uint8]:
        """Return the first bytes of each seed's output.

        Parameters
        ----------
        seeds : numpy.ndarray
            Of shape ``(rows, seeds, 16)``, a row for each binder.
        length : int
            Bytes of each, at least 1.

        Returns
        -------
        numpy.ndarray
            Of shape ``(rows, seeds, length)``.
        """
        if seeds.ndim != 3 or len(seeds) != len(self._keys) or seeds.shape[2] != _BLOCK:
            rule = "hold a row of seeds of 16 bytes for each binder"
            _check.refuse_type("seeds", rule, seeds, "use an array of shape (rows, seeds, 16)")
        blocks = -(-_check.integer("length", length, minimum=1) // _BLOCK)
        out = np.empty((*seeds.shape[:2], blocks * _BLOCK), np.uint8)
        if out.size:
            hashed = _by_instructions if _kernel.has_aes() else _by_library
            hashed(self._keys, np.ascontiguousarray(seeds), out)
        return out[..., :length]

    def elements(
        self, seeds: NDArray[np.uint8], field: PrimeField, count: int
    ) -> tuple[NDArray[np.uint8], Elements]:
        """Return of each seed's output a new seed, and after it uniform elements of a field.

        Parameters
        ----------
        seeds : numpy.ndarray
            Of shape ``(rows, seeds, 16)``.
        field : PrimeField
            Whose modulus fills its words; what is not below the modulus is passed over.
        count : int
            How many elements.

        Returns
        -------
        tuple of numpy.ndarray
            Of shapes ``(rows, seeds, 16)`` and ``(rows, seeds, count, limbs)``.
        """
        spare, limbs = 0, field.limbs
        while True:
            out = self.stream(seeds, _BLOCK + field.size * (count + spare))
            words = np.ascontiguousarray(out[..., _BLOCK:]).view("<u8").astype(np.uint64, copy=False)
            elements = words.reshape(*words.shape[:-1], count + spare, limbs)
            high = ~field.below(elements)
            if not high[..., :count].any():
                return out[..., :_BLOCK], elements[..., :count, :]
            if ((~high).sum(axis=-1) >= count).all():
                order = np.argsort(high, axis=-1, kind="stable")[..., :count, None]
                return out[..., :_BLOCK], np.take_along_axis(elements, order, axis=-2)
            spare += 4 + spare


def _by_instructions(keys: NDArray[np.uint8], seeds: NDArray[np.uint8], out: NDArray[np.uint8]) -> None:
    blocks = out.shape[2] // _BLOCK
    _kernel.fixed_key_aes(len(keys), blocks, np.ascontiguousarray(keys), seeds, out)


def _by_library(keys: NDArray[np.uint8], seeds: NDArray[np.uint8], out: NDArray[np.uint8]) -> None:
    counters = np.zeros((out.shape[2] // _BLOCK, 2), "<u8")
    counters[:, 0] = np.arange(len(counters))
    for key, row, target in zip(keys, seeds, out, strict=True):
        words = row.view("<u8")[:, None, :] ^ counters
        mixed = np.stack([words[..., 1], words[..., 1] ^ words[..., 0]], axis=-1)
        cipher = Cipher(algorithms.AES(key.tobytes()), modes.ECB())  # noqa: S305 - single blocks, hashed, not encrypted
        encrypted = np.frombuffer(cipher.encryptor().update(mixed.tobytes()), np.uint8)
        target[...] = encrypted.reshape(target.shape) ^ mixed.view(np.uint8).reshape(target.shape)
