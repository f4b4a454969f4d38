"""The verifiable incremental point function of Mastic's draft, generated for batches of reports.

VIDPF (Mouris, Sarkar and Tsoutsos, "PLASMA: private, lightweight aggregated statistics against malicious
adversaries", PoPETs 2024; de Castro and Polychroniadou, EUROCRYPT 2022), as draft-mouris-cfrg-mastic has it.
A client shares one value along the path to a leaf of a binary tree; off the path the value is zero. Each node
has a proof besides, a hash of its seed: off the path both parties have the same seed, so the same proof; on
the path a correction word makes their proofs equal. A client that gives two nodes of a level different seeds
cannot correct both with one word, unless it finds a collision of the hash. A word of zeros is refused, which
an honest client has with a probability of 2^-256: it would leave the proofs equal where both parties have the
same seed but different control bits, so that values could differ at many nodes. One key and the public share
show nothing of path and value, under the assumptions on fixed-key AES that `XofFixedKeyAes128` states.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.crypto.fields.field import Elements
from sfumato.crypto.fields.ntt_field import NttField
from sfumato.crypto.idpf.tree_steps import (
    KEY_SIZE,
    Bits,
    Bytes,
    Words,
    correct_level,
    correct_value,
    pack_words,
    unpack_words,
)
from sfumato.crypto.vidpf.vidpf_steps import PROOF_SIZE, VidpfSteps

__all__ = ["Vidpf", "VidpfWords"]


@final
@dataclass(frozen=True, slots=True, eq=False)
class VidpfWords:
    """A batch of public shares, decoded.

    Parameters
    ----------
    seeds : numpy.ndarray
        Of shape ``(rows, bits, 2)``, in words.
    control : numpy.ndarray
        Bits of shape ``(rows, bits, 2)``.
    values : numpy.ndarray
        Elements of shape ``(rows, bits, value_length, limbs)``.
    proofs : numpy.ndarray
        Bytes of shape ``(rows, bits, 32)``.
    sound : numpy.ndarray
        False for reports whose public share is malformed, or corrects no proof at some level.

    Examples
    --------
    >>> from sfumato.crypto.fields.ntt_field import FIELD64
    >>> words = Vidpf(bits=4, field=FIELD64, value_length=2).decoded(np.ones((3, 257), np.uint8))
    >>> words.values.shape, words.sound.tolist()
    ((3, 4, 2, 1), [True, True, True])
    """

    seeds: Words
    control: Bits
    values: Elements
    proofs: Bytes
    sound: NDArray[np.bool_]


@final
@dataclass(frozen=True, slots=True)
class Vidpf:
    """A verifiable point function over strings of bits; both parties and the client hold equal ones.

    Parameters
    ----------
    bits : int
        How long the strings are, from 1 to 65,535.
    field : NttField
        Of the values, at every level.
    value_length : int
        Elements of a value, at least 1.
    context : bytes, optional
        The application's name.
    version : int, optional
        The draft's version byte.

    Examples
    --------
    >>> from sfumato.crypto.fields.ntt_field import FIELD64
    >>> from sfumato.crypto.vidpf.verifiable_tree import VerifiableTree
    >>> vidpf, nonces = Vidpf(bits=3, field=FIELD64, value_length=1), np.zeros((1, 16), np.uint8)
    >>> keys, path = np.arange(32, dtype=np.uint8).reshape(1, 2, 16), np.array([[1, 0, 1]], np.uint8)
    >>> public = vidpf.generate(path, FIELD64.vector([7])[None], nonces, keys)
    >>> trees = [VerifiableTree(vidpf, j, nonces, public, keys[:, j]) for j in range(2)]
    >>> shares = [tree.values(np.array([[0, 0], [1, 0]], np.uint8)) for tree in trees]
    >>> FIELD64.integers(FIELD64.added(*shares)[0, :, 0])
    [0, 7]
    >>> bool((trees[0].proofs() == trees[1].proofs()).all())
    True
    """

    bits: int
    field: NttField
    value_length: int
    context: bytes = b""
    version: int = 0

    def __post_init__(self) -> None:
        if _check.integer("bits", self.bits, minimum=1) >= 1 << 16:
            _check.refuse("bits", "be at most 65,535", self.bits, "use shorter strings, or hash them")
        _check.integer("value_length", self.value_length, minimum=1)

    @property
    def public_share_size(self) -> int:
        """Bytes of an encoded public share."""
        level = KEY_SIZE + self.field.size * self.value_length + PROOF_SIZE
        return -(-self.bits // 4) + self.bits * level

    def steps(self, nonces: Bytes) -> VidpfSteps:
        """Return the functions of a level, for reports with these nonces.

        Parameters
        ----------
        nonces : numpy.ndarray
            Of shape ``(rows, 16)``.

        Returns
        -------
        VidpfSteps
        """
        return VidpfSteps(
            self.bits,
            self.field,
            self.value_length,
            context=self.context,
            version=self.version,
            nonces=nonces,
        )

    def generate(self, paths: Bits, values: Elements, nonces: Bytes, keys: Bytes) -> Bytes:
        """Return the public shares that go with random keys.

        Parameters
        ----------
        paths : numpy.ndarray
            Bits of shape ``(rows, bits)``.
        values : numpy.ndarray
            On the path: elements of shape ``(rows, value_length, limbs)``.
        nonces : numpy.ndarray
            Of shape ``(rows, 16)``, random.
        keys : numpy.ndarray
            Of shape ``(rows, 2, 16)``, random; the first party's, and the second's.

        Returns
        -------
        numpy.ndarray
            Of shape ``(rows, public_share_size)``.
        """
        steps, rows = self.steps(nonces), len(paths)
        seeds = np.ascontiguousarray(keys).view(np.uint64)
        control: Bits = np.broadcast_to(np.array([0, 1], np.uint8), (rows, 2))
        seed_words = np.empty((rows, self.bits, 2), np.uint64)
        control_words = np.empty((rows, self.bits, 2), np.uint8)
        proofs = np.empty((rows, self.bits, PROOF_SIZE), np.uint8)
        payloads = []
        for level in range(self.bits):
            children, bits = steps.extend(seeds)
            seed_words[:, level], control_words[:, level], chosen, control = correct_level(
                children, bits, paths[:, level], control
            )
            seeds, shared = steps.convert(chosen)
            payloads.append(self.field.encoded(correct_value(self.field, values, shared, control)))
            both = steps.proofs(seeds, paths[:, None, : level + 1])
            proofs[:, level] = both[:, 0] ^ both[:, 1]
        words = pack_words(control_words, seed_words)
        return np.concatenate([*words, *payloads, proofs.reshape(rows, -1)], axis=1)

    def decoded(self, public_shares: Bytes) -> VidpfWords:
        """Return public shares as correction words.

        Parameters
        ----------
        public_shares : numpy.ndarray
            Of shape ``(rows, public_share_size)``.

        Returns
        -------
        VidpfWords
        """
        rows, proofs = len(public_shares), PROOF_SIZE * self.bits
        control, seeds, padded, rest = unpack_words(public_shares, self.bits)
        values, good = self.field.decoded(rest[:, :-proofs])
        corrections = rest[:, -proofs:].reshape(rows, self.bits, PROOF_SIZE)
        corrected = (corrections != 0).any(axis=2).all(axis=1)
        return VidpfWords(
            seeds,
            control,
            values.reshape(rows, self.bits, self.value_length, self.field.limbs),
            corrections,
            np.asarray(padded & good & corrected),
        )
