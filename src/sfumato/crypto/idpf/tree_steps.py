"""One level of the tree of an incremental point function: seeds to two seeds, and a seed to a value."""

from __future__ import annotations

from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from sfumato.crypto.fields.field import FIELD255, Elements, PrimeField
from sfumato.crypto.fields.ntt_field import FIELD64
from sfumato.crypto.xof.fixed_key_aes import XofFixedKeyAes128
from sfumato.crypto.xof.turboshake import XofTurboShake128

__all__ = [
    "KEY_SIZE",
    "Bits",
    "Bytes",
    "TreeSteps",
    "Words",
    "child_seeds",
    "correct_level",
    "correct_value",
    "pack_words",
    "unpack_words",
]

KEY_SIZE: Final = 16
"""Bytes of a key, and of every node's seed."""

Bytes = NDArray[np.uint8]
"""Rows of bytes, one report each."""

Bits = NDArray[np.uint8]
"""Zeros and ones."""

Words = NDArray[np.uint64]
"""Seeds as two words, so that they are combined at once."""

_EXTEND, _CONVERT = 0, 1
_FUNCTION_CLASS: Final = 1


@final
class TreeSteps:
    """The two functions of a level, for reports with given nonces.

    Parameters
    ----------
    bits : int
        How many levels the tree has.
    value_length : int
        Elements of a value.
    context : bytes
        The application's name.
    version : int
        The first byte of domain separation tags.
    nonces : numpy.ndarray
        Of shape ``(rows, 16)``.

    Examples
    --------
    >>> import numpy as np
    >>> steps = TreeSteps(4, 2, b"", 18, np.zeros((3, 16), np.uint8))
    >>> seeds, bits = steps.extend(0, np.zeros((3, 1, 2), np.uint64))
    >>> seeds.shape, bits.shape
    ((3, 1, 2, 2), (3, 1, 2))
    """

    def __init__(self, bits: int, value_length: int, context: bytes, version: int, nonces: Bytes) -> None:
        self._leaf, self._length, self._nonces = bits - 1, value_length, nonces
        head = bytes([version, _FUNCTION_CLASS, 0, 0, 0, 0])
        self._tags = [head + usage.to_bytes(2, "big") + context for usage in (_EXTEND, _CONVERT)]
        self._hashes = [XofFixedKeyAes128(tag, nonces) for tag in self._tags]

    def part(self, rows: slice) -> TreeSteps:
        """Return the functions for some of the reports.

        Parameters
        ----------
        rows : slice
            Which.

        Returns
        -------
        TreeSteps
        """
        chosen = object.__new__(TreeSteps)
        chosen._leaf, chosen._length, chosen._tags = self._leaf, self._length, self._tags
        chosen._nonces, chosen._hashes = self._nonces[rows], [each.part(rows) for each in self._hashes]
        return chosen

    def extend(self, level: int, seeds: Words) -> tuple[Words, Bits]:
        """Return the seeds and control bits of both children, before correction.

        Parameters
        ----------
        level : int
            The children's, from 0.
        seeds : numpy.ndarray
            Of shape ``(rows, nodes, 2)``.

        Returns
        -------
        tuple of numpy.ndarray
            Seeds of shape ``(rows, nodes, 2, 2)``, and bits of shape ``(rows, nodes, 2)``.
        """
        out = self._stream(_EXTEND, level, seeds, 2 * KEY_SIZE)
        return child_seeds(out)

    def next_seeds(self, level: int, seeds: Words) -> Words:
        """Return the seeds that corrected ones become, above the leaves, where no value is asked for.

        Parameters
        ----------
        level : int
            Their level.
        seeds : numpy.ndarray
            Of shape ``(rows, nodes, 2)``.

        Returns
        -------
        numpy.ndarray
            Of the same shape.
        """
        return np.ascontiguousarray(self._stream(_CONVERT, level, seeds, KEY_SIZE)).view(np.uint64)

    def convert(self, level: int, seeds: Words) -> tuple[Words, Elements]:
        """Return the seeds that corrected ones become, and their values before correction.

        Parameters
        ----------
        level : int
            Their level.
        seeds : numpy.ndarray
            Of shape ``(rows, nodes, 2)``.

        Returns
        -------
        tuple of numpy.ndarray
            Seeds of the same shape, and elements of shape ``(rows, nodes, value_length, limbs)``.
        """
        if level < self._leaf:
            fresh, values = self._hashes[_CONVERT].elements(_as_bytes(seeds), FIELD64, self._length)
            return np.ascontiguousarray(fresh).view(np.uint64), values
        out = self._stream(_CONVERT, level, seeds, KEY_SIZE + self._length * FIELD255.size)
        encoded = out[..., KEY_SIZE:].reshape(-1, FIELD255.size).copy()
        encoded[:, -1] &= 127
        values, _ = FIELD255.decoded(encoded)  # one of 2**250 would be passed over
        return seeds, values.reshape(*seeds.shape[:2], self._length, FIELD255.limbs)

    def _stream(self, usage: int, level: int, seeds: Words, length: int) -> Bytes:
        if level < self._leaf:
            return self._hashes[usage].stream(_as_bytes(seeds), length)
        rows, nodes = seeds.shape[:2]
        flat = np.ascontiguousarray(seeds).view(np.uint8).reshape(rows * nodes, KEY_SIZE)
        xof = XofTurboShake128(flat, self._tags[usage], self._nonces.repeat(nodes, axis=0))
        return xof.stream(length).reshape(rows, nodes, length)


def child_seeds(stream: Bytes) -> tuple[Words, Bits]:
    """Return the two seeds that a node's output holds, and control bits: the lowest bit of each.

    Parameters
    ----------
    stream : numpy.ndarray
        Of shape ``(rows, nodes, 32)``.

    Returns
    -------
    tuple of numpy.ndarray
        Seeds of shape ``(rows, nodes, 2, 2)``, and bits of shape ``(rows, nodes, 2)``.
    """
    out = np.ascontiguousarray(stream).reshape(*stream.shape[:2], 2, KEY_SIZE)
    bits: Bits = out[..., 0] & np.uint8(1)
    out[..., 0] &= 0xFE
    return out.view(np.uint64), bits


def correct_level(children: Words, bits: Bits, keep: Bits, control: Bits) -> tuple[Words, Bits, Words, Bits]:
    """Return a level's correction word, and both parties' corrected seeds and control bits on the path.

    Parameters
    ----------
    children : numpy.ndarray
        What the parties' seeds became, of shape ``(rows, 2, 2, 2)``.
    bits : numpy.ndarray
        Their control bits, of shape ``(rows, 2, 2)``.
    keep : numpy.ndarray
        The path's bit of each report.
    control : numpy.ndarray
        The parties' control bits at the parent, of shape ``(rows, 2)``.

    Returns
    -------
    tuple of numpy.ndarray
        The word's seeds of shape ``(rows, 2)`` and bits of shape ``(rows, 2)``; seeds of shape
        ``(rows, 2, 2)`` and bits of shape ``(rows, 2)``.
    """
    rows = np.arange(len(keep))
    lost = children[rows, :, 1 - keep]
    seed_word = lost[:, 0] ^ lost[:, 1]
    control_word = bits[:, 0] ^ bits[:, 1]
    control_word[:, 0] ^= keep ^ 1
    control_word[:, 1] ^= keep
    corrected = control.astype(np.uint64)[..., None] * seed_word[:, None]
    chosen = children[rows, :, keep] ^ corrected
    return (
        seed_word,
        control_word,
        chosen,
        bits[rows, :, keep] ^ control * control_word[rows, keep][:, None],
    )


def correct_value(field: PrimeField, wanted: Elements, values: Elements, control: Bits) -> Elements:
    """Return what one party adds so that both parties' values share the wanted ones.

    Parameters
    ----------
    field : PrimeField
        Of the values.
    wanted : numpy.ndarray
        Of shape ``(rows, value_length, limbs)``.
    values : numpy.ndarray
        Both parties', of shape ``(rows, 2, value_length, limbs)``.
    control : numpy.ndarray
        The parties' control bits, of shape ``(rows, 2)``: the party whose bit is set adds.

    Returns
    -------
    numpy.ndarray
        Of shape ``(rows, value_length, limbs)``.
    """
    word = field.added(field.subtracted(wanted, values[:, 0]), values[:, 1])
    negative = control[:, 1, None, None] == 1
    return np.where(negative, field.subtracted(field.zeros(1), word), word)


def pack_words(control: Bits, seeds: Words) -> list[Bytes]:
    """Return a tree's control bits and seeds as public shares begin with them.

    Parameters
    ----------
    control : numpy.ndarray
        Of shape ``(rows, bits, 2)``.
    seeds : numpy.ndarray
        Of shape ``(rows, bits, 2)``.

    Returns
    -------
    list of numpy.ndarray
        Rows of bytes.
    """
    packed = np.packbits(control.reshape(len(control), -1), axis=1, bitorder="little")
    return [packed, seeds.view(np.uint8).reshape(len(seeds), -1)]


def unpack_words(public: Bytes, bits: int) -> tuple[Bits, Words, NDArray[np.bool_], Bytes]:
    """Return the control bits and seeds that public shares begin with, and what follows them.

    Parameters
    ----------
    public : numpy.ndarray
        Public shares.
    bits : int
        How many levels the tree has.

    Returns
    -------
    tuple of numpy.ndarray
        Control bits and seeds, a flag for each report that is false where the padding is not zero, and the
        rest of the bytes.
    """
    rows, packed = len(public), -(-bits // 4)
    after = packed + KEY_SIZE * bits
    unpacked = np.unpackbits(public[:, :packed], axis=1, bitorder="little")
    seeds = np.ascontiguousarray(public[:, packed:after]).view(np.uint64)
    sound = np.asarray(~unpacked[:, 2 * bits :].any(axis=1))
    control = unpacked[:, : 2 * bits].reshape(rows, bits, 2)
    return control, seeds.reshape(rows, bits, 2), sound, public[:, after:]


def _as_bytes(seeds: Words) -> Bytes:
    return np.ascontiguousarray(seeds).view(np.uint8)
