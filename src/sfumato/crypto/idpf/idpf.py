"""The incremental distributed point function of the VDAF draft, generated for batches of reports.

IdpfBBCGGI21 (Boneh, Boyle, Corrigan-Gibbs, Gilboa and Ishai, "Lightweight techniques for private heavy
hitters", IEEE S&P 2021, section 6). A client chooses a path from the root to a leaf of a binary tree, and a
value for each of its nodes; two keys and a public share let two parties compute, at every node, shares of the
node's value, which is zero off the path. One key and the public share show nothing of path and values, under
the assumptions on fixed-key AES that `XofFixedKeyAes128` states.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.crypto.fields.field import FIELD255, Elements, PrimeField
from sfumato.crypto.fields.ntt_field import FIELD64
from sfumato.crypto.idpf.tree_steps import (
    KEY_SIZE,
    Bits,
    Bytes,
    TreeSteps,
    Words,
    correct_level,
    correct_value,
    pack_words,
    unpack_words,
)

__all__ = ["CorrectionWords", "Idpf"]


@final
@dataclass(frozen=True, slots=True, eq=False)
class CorrectionWords:
    """A batch of public shares, decoded.

    Parameters
    ----------
    seeds : numpy.ndarray
        Of shape ``(rows, bits, 2)``, in words.
    control : numpy.ndarray
        Bits of shape ``(rows, bits, 2)``.
    inner : numpy.ndarray
        Elements of Field64, of shape ``(rows, bits - 1, value_length, 1)``.
    leaf : numpy.ndarray
        Elements of Field255, of shape ``(rows, value_length, 4)``.
    sound : numpy.ndarray
        False for reports whose public share is malformed.

    Examples
    --------
    >>> import numpy as np
    >>> words = Idpf(bits=4, value_length=2).decoded(np.zeros((3, 177), np.uint8))
    >>> words.inner.shape, words.sound.tolist()
    ((3, 3, 2, 1), [True, True, True])
    """

    seeds: Words
    control: Bits
    inner: Elements
    leaf: Elements
    sound: NDArray[np.bool_]


@final
@dataclass(frozen=True, slots=True)
class Idpf:
    """A point function over strings of bits; both parties and the client hold equal ones.

    Parameters
    ----------
    bits : int
        How long the strings are, at least 1.
    value_length : int
        Elements of a value, at least 1.
    context : bytes, optional
        The application's name.
    version : int, optional
        The first byte of domain separation tags, which differs by draft.

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato.crypto.idpf.prefix_tree import PrefixTree
    >>> idpf, nonces = Idpf(bits=3, value_length=1), np.zeros((1, 16), np.uint8)
    >>> keys = np.arange(32, dtype=np.uint8).reshape(1, 2, 16)
    >>> inner, leaf = FIELD64.small(np.array([[[7], [8]]], np.uint64)), FIELD255.vector([9])[None]
    >>> public = idpf.generate(np.array([[1, 0, 1]], np.uint8), inner, leaf, nonces, keys)
    >>> trees = [PrefixTree(idpf, j, nonces, public, keys[:, j]) for j in range(2)]
    >>> shares = [tree.values(np.array([[0, 0], [1, 0]], np.uint8)) for tree in trees]
    >>> FIELD64.integers(FIELD64.added(*shares)[0, :, 0])
    [0, 8]
    """

    bits: int
    value_length: int
    context: bytes = b""
    version: int = 18

    def __post_init__(self) -> None:
        _check.integer("bits", self.bits, minimum=1)
        _check.integer("value_length", self.value_length, minimum=1)

    @property
    def public_share_size(self) -> int:
        """Bytes of an encoded public share."""
        inner = FIELD64.size * self.value_length + KEY_SIZE
        return -(-self.bits // 4) + self.bits * inner + (FIELD255.size - FIELD64.size) * self.value_length

    def field(self, level: int) -> PrimeField:
        """Return the field of a level's values: Field255 at the leaves, Field64 above.

        Parameters
        ----------
        level : int
            From 0, the root's children.

        Returns
        -------
        PrimeField
        """
        return FIELD64 if level < self.bits - 1 else FIELD255

    def steps(self, nonces: Bytes) -> TreeSteps:
        """Return the functions of a level, for reports with these nonces.

        Parameters
        ----------
        nonces : numpy.ndarray
            Of shape ``(rows, 16)``.

        Returns
        -------
        TreeSteps
        """
        return TreeSteps(self.bits, self.value_length, self.context, self.version, nonces)

    def generate(self, paths: Bits, inner: Elements, leaf: Elements, nonces: Bytes, keys: Bytes) -> Bytes:
        """Return the public shares that go with random keys.

        Parameters
        ----------
        paths : numpy.ndarray
            Bits of shape ``(rows, bits)``.
        inner : numpy.ndarray
            Values above the leaves: elements of shape ``(rows, bits - 1, value_length, 1)``.
        leaf : numpy.ndarray
            Values of the leaves: elements of shape ``(rows, value_length, 4)``.
        nonces : numpy.ndarray
            Of shape ``(rows, 16)``, random.
        keys : numpy.ndarray
            Of shape ``(rows, 2, 16)``, random; the first party's, and the second's.

        Returns
        -------
        numpy.ndarray
            Of shape ``(rows, public_share_size)``.
        """
        steps = self.steps(nonces)
        seeds = np.ascontiguousarray(keys).view(np.uint64)
        control: Bits = np.broadcast_to(np.array([0, 1], np.uint8), (len(paths), 2))
        seed_words = np.empty((len(paths), self.bits, 2), np.uint64)
        control_words = np.empty((len(paths), self.bits, 2), np.uint8)
        payloads = []
        for level in range(self.bits):
            children, bits = steps.extend(level, seeds)
            seed_words[:, level], control_words[:, level], chosen, control = correct_level(
                children, bits, paths[:, level], control
            )
            seeds, values = steps.convert(level, chosen)
            wanted = inner[:, level] if level < self.bits - 1 else leaf
            payloads.append(correct_value(self.field(level), wanted, values, control))
        encoded = [self.field(level).encoded(word) for level, word in enumerate(payloads)]
        return np.concatenate([*pack_words(control_words, seed_words), *encoded], axis=1)

    def decoded(self, public_shares: Bytes) -> CorrectionWords:
        """Return public shares as correction words.

        Parameters
        ----------
        public_shares : numpy.ndarray
            Of shape ``(rows, public_share_size)``.

        Returns
        -------
        CorrectionWords
        """
        control, seeds, padded, rest = unpack_words(public_shares, self.bits)
        last = -FIELD255.size * self.value_length
        inner, good = FIELD64.decoded(rest[:, :last])
        leaf, fine = FIELD255.decoded(rest[:, last:])
        shape = len(public_shares), self.bits - 1, self.value_length, 1
        return CorrectionWords(seeds, control, inner.reshape(shape), leaf, np.asarray(padded & good & fine))
