"""One level of the tree of a verifiable point function: seeds to two seeds, to a value, and to a proof."""

from __future__ import annotations

from enum import IntEnum
from typing import Final, final

import numpy as np

from sfumato.crypto.fields.field import Elements
from sfumato.crypto.fields.ntt_field import NttField
from sfumato.crypto.idpf.tree_steps import KEY_SIZE, Bits, Bytes, Words, child_seeds
from sfumato.crypto.xof.fixed_key_aes import XofFixedKeyAes128
from sfumato.crypto.xof.turboshake import XofTurboShake128

__all__ = ["PROOF_SIZE", "VidpfSteps", "VidpfUsage"]

PROOF_SIZE: Final = 32
"""Bytes of a node's proof."""


class VidpfUsage(IntEnum):
    """What a seed of the tree is expanded to."""

    NODE_PROOF = 9
    EXTEND = 10
    CONVERT = 11

    def tag(self, version: int, context: bytes) -> bytes:
        """Return the domain separation tag of this use.

        Parameters
        ----------
        version : int
            The draft's version byte.
        context : bytes
            The application's name.

        Returns
        -------
        bytes
        """
        return b"mastic" + bytes([version, self]) + context


@final
class VidpfSteps:
    """The three functions of a level, for reports with given nonces.

    Parameters
    ----------
    bits : int
        How many levels the tree has.
    field : NttField
        Of the values, at every level.
    value_length : int
        Elements of a value.
    context : bytes
        The application's name.
    version : int
        The draft's version byte.
    nonces : numpy.ndarray
        Of shape ``(rows, 16)``.

    Examples
    --------
    >>> from sfumato.crypto.fields.ntt_field import FIELD64
    >>> nonces = np.zeros((3, 16), np.uint8)
    >>> steps = VidpfSteps(4, FIELD64, 2, context=b"", version=0, nonces=nonces)
    >>> seeds, values = steps.convert(np.zeros((3, 1, 2), np.uint64))
    >>> seeds.shape, values.shape, steps.proofs(seeds, np.zeros((1, 1, 2), np.uint8)).shape
    ((3, 1, 2), (3, 1, 2, 1), (3, 1, 32))
    """

    def __init__(
        self, bits: int, field: NttField, value_length: int, *, context: bytes, version: int, nonces: Bytes
    ) -> None:
        self._bits, self._field, self._length = bits, field, value_length
        self._proof_tag = VidpfUsage.NODE_PROOF.tag(version, context)
        self._extend = XofFixedKeyAes128(VidpfUsage.EXTEND.tag(version, context), nonces)
        self._convert = XofFixedKeyAes128(VidpfUsage.CONVERT.tag(version, context), nonces)

    def part(self, rows: slice) -> VidpfSteps:
        """Return the functions for some of the reports.

        Parameters
        ----------
        rows : slice
            Which.

        Returns
        -------
        VidpfSteps
        """
        chosen = object.__new__(VidpfSteps)
        chosen._bits, chosen._field, chosen._length = self._bits, self._field, self._length
        chosen._proof_tag = self._proof_tag
        chosen._extend, chosen._convert = self._extend.part(rows), self._convert.part(rows)
        return chosen

    def extend(self, seeds: Words) -> tuple[Words, Bits]:
        """Return the seeds and control bits of both children, before correction.

        Parameters
        ----------
        seeds : numpy.ndarray
            Of shape ``(rows, nodes, 2)``.

        Returns
        -------
        tuple of numpy.ndarray
            Seeds of shape ``(rows, nodes, 2, 2)``, and bits of shape ``(rows, nodes, 2)``.
        """
        return child_seeds(self._extend.stream(_as_bytes(seeds), 2 * KEY_SIZE))

    def convert(self, seeds: Words) -> tuple[Words, Elements]:
        """Return the seeds that corrected ones become, and their values before correction.

        Parameters
        ----------
        seeds : numpy.ndarray
            Of shape ``(rows, nodes, 2)``.

        Returns
        -------
        tuple of numpy.ndarray
            Seeds of the same shape, and elements of shape ``(rows, nodes, value_length, limbs)``.
        """
        fresh, values = self._convert.elements(_as_bytes(seeds), self._field, self._length)
        return np.ascontiguousarray(fresh).view(np.uint64), values

    def proofs(self, seeds: Words, paths: Bits) -> Bytes:
        """Return the proofs of nodes, before correction: hashes of the seed and of where the node is.

        Parameters
        ----------
        seeds : numpy.ndarray
            What `convert` returned, of shape ``(rows, nodes, 2)``.
        paths : numpy.ndarray
            From the root to each node, of shape ``(rows, nodes, level + 1)``; one row may serve for all.

        Returns
        -------
        numpy.ndarray
            Of shape ``(rows, nodes, 32)``.
        """
        rows, nodes = seeds.shape[:2]
        level = paths.shape[2] - 1
        head = self._bits.to_bytes(2, "little") + level.to_bytes(2, "little")
        packed = np.packbits(paths, axis=2)
        place = np.empty((rows, nodes, len(head) + packed.shape[2]), np.uint8)
        place[..., : len(head)] = np.frombuffer(head, np.uint8)
        place[..., len(head) :] = packed
        flat = _as_bytes(seeds).reshape(rows * nodes, KEY_SIZE)
        xof = XofTurboShake128(flat, self._proof_tag, place.reshape(rows * nodes, -1))
        return xof.stream(PROOF_SIZE).reshape(rows, nodes, PROOF_SIZE)


def _as_bytes(seeds: Words) -> Bytes:
    return np.ascontiguousarray(seeds).view(np.uint8)
