"""One party's side of a batch of verifiable point functions: values at prefixes, and what proves them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.crypto.fields.field import Elements
from sfumato.crypto.idpf.tree_steps import Bits, Bytes, Words
from sfumato.crypto.vidpf.vidpf import Vidpf
from sfumato.crypto.vidpf.vidpf_steps import PROOF_SIZE, VidpfSteps

__all__ = ["VerifiableTree"]

_BLOCK_BYTES: Final = 1 << 18


@final
@dataclass(slots=True, eq=False)
class _Level:
    """The children of some nodes, of all reports: both of each, in lexicographic order."""

    paths: Bits
    proofs: Bytes
    checks: Elements

    @property
    def places(self) -> dict[bytes, int]:
        return {path.tobytes(): i for i, path in enumerate(self.paths)}


@final
class VerifiableTree:
    """What one party computes from its keys; the nodes above the prefixes asked for last are remembered.

    Asking for longer prefixes of strings whose prefixes were asked for last costs the levels between only.
    What is remembered is the proofs of all nodes above, 32 bytes each.

    Parameters
    ----------
    vidpf : Vidpf
        The function.
    party : int
        0 or 1.
    nonces, public_shares : numpy.ndarray
        The reports'.
    keys : numpy.ndarray
        This party's, of shape ``(rows, 16)``.

    Examples
    --------
    >>> from sfumato.crypto.fields.ntt_field import FIELD64
    >>> vidpf, zeros = Vidpf(bits=4, field=FIELD64, value_length=2), np.zeros((3, 16), np.uint8)
    >>> tree = VerifiableTree(vidpf, 0, zeros, np.zeros((3, 257), np.uint8), zeros)
    >>> tree.values(np.array([[0, 1], [1, 1]], np.uint8)).shape
    (3, 2, 2, 1)
    """

    def __init__(self, vidpf: Vidpf, party: int, nonces: Bytes, public_shares: Bytes, keys: Bytes) -> None:
        if party not in (0, 1):
            _check.refuse("party", "be 0 or 1", party, "count parties from 0")
        self._vidpf, self._party, self._rows = vidpf, party, len(nonces)
        self._words, self._steps = vidpf.decoded(public_shares), vidpf.steps(nonces)
        self._keys = np.ascontiguousarray(keys).view(np.uint64)[:, None]
        self._total: Elements | None = None
        self._forget()

    def _forget(self) -> None:
        self._levels: list[_Level] = []
        self._seeds = self._keys
        self._control: Bits = np.full((self._rows, 1), self._party, np.uint8)
        self._values = self._vidpf.field.zeros(self._rows, 1, self._vidpf.value_length)

    @property
    def sound(self) -> NDArray[np.bool_]:
        """False for reports whose public share is malformed."""
        return self._words.sound

    def root_values(self) -> Elements:
        """Return the sums of both values below the root, which are this party's share of the path's value.

        Returns
        -------
        numpy.ndarray
            Of shape ``(rows, value_length, limbs)``; the second party's are not negated.
        """
        if self._total is None:
            self.values(np.array([[0], [1]], np.uint8))
        assert self._total is not None  # noqa: S101 - values has set it
        return self._total

    def values(self, prefixes: Bits) -> Elements:
        """Return this party's shares of the values at prefixes, and remember what proves them.

        Parameters
        ----------
        prefixes : numpy.ndarray
            Different strings of bits in lexicographic order, of shape ``(count, length)``, at least one, with
            a length of at least 1.

        Returns
        -------
        numpy.ndarray
            Of shape ``(rows, count, value_length, limbs)``.
        """
        count, length = prefixes.shape
        if not 1 <= length <= self._vidpf.bits:
            _check.refuse("prefixes.shape[1]", f"be from 1 to {self._vidpf.bits}", length, "use shorter ones")
        if not count:
            _check.refuse("prefixes.shape[0]", "be at least 1", count, "ask for a prefix")
        parents = [_distinct(prefixes, depth) for depth in range(length)]
        if not self._keep(parents):
            self._forget()
            self._keep(parents)
        for depth in range(len(self._levels), length):
            self._grow(parents[depth])
        known = self._levels[-1].places
        chosen = self._values.take([known[prefix.tobytes()] for prefix in prefixes], axis=1)
        field = self._vidpf.field
        return field.subtracted(field.zeros(1), chosen) if self._party else chosen

    def proofs(self, part: slice = slice(None)) -> Bytes:
        """Return the proofs of all nodes above the prefixes asked for last, and of their siblings.

        Parameters
        ----------
        part : slice, optional
            Which reports.

        Returns
        -------
        numpy.ndarray
            Rows of bytes: level by level, in lexicographic order. Both parties have the same.
        """
        found = [level.proofs[part] for level in self._levels]
        return np.concatenate([each.reshape(len(each), PROOF_SIZE * each.shape[1]) for each in found], axis=1)

    def checks(self, part: slice = slice(None)) -> Bytes:
        """Return what each value is above the sum of its children's: zero, or the same for both parties.

        Parameters
        ----------
        part : slice, optional
            Which reports.

        Returns
        -------
        numpy.ndarray
            Rows of encoded elements, for the nodes above the prefixes asked for last, level by level.
        """
        field, length = self._vidpf.field, self._vidpf.value_length
        found = [level.checks[part] for level in self._levels[:-1]]
        encoded = [
            field.encoded(each.reshape(len(each), each.shape[1] * length, field.limbs)) for each in found
        ]
        return np.concatenate([np.zeros((len(self._keys[part]), 0), np.uint8), *encoded], axis=1)

    def blocks(self) -> Iterator[slice]:
        """Return slices of reports whose proofs and checks are hashed at once.

        Returns
        -------
        iterator of slice
        """
        return _blocks(self._rows, sum(len(level.paths) for level in self._levels) // 16)

    def _keep(self, parents: list[Bits]) -> bool:
        """Leave out what is not above the prefixes; return whether all else that is needed is known."""
        if len(self._levels) >= len(parents):
            return False
        for depth, level in enumerate(self._levels):
            known = level.places
            wanted = [
                known.get(parent.tobytes() + bytes([bit])) for parent in parents[depth] for bit in (0, 1)
            ]
            places = [place for place in wanted if place is not None]
            if len(places) != len(wanted):
                return False
            last = depth + 1 == len(self._levels)
            if not last:
                inner = {path[:-1].tobytes(): i for i, path in enumerate(self._levels[depth + 1].paths[::2])}
                left = [inner[node.tobytes()] for node in parents[depth + 1] if node.tobytes() in inner]
                if len(left) < len(inner):
                    level.checks = level.checks.take(left, axis=1)
            if len(places) == len(level.paths):
                continue
            if last:
                self._seeds, self._control = self._seeds.take(places, 1), self._control.take(places, 1)
                self._values = self._values.take(places, 1)
            level.paths, level.proofs = level.paths[places], level.proofs.take(places, 1)
        return True

    def _grow(self, parents: Bits) -> None:
        """Evaluate both children of some nodes of the last level."""
        depth, field, length = parents.shape[1], self._vidpf.field, self._vidpf.value_length
        known = self._levels[-1].places if self._levels else {b"": 0}
        places = [known[parent.tobytes()] for parent in parents]
        nodes = 2 * len(places)
        paths = np.concatenate([parents.repeat(2, 0), np.tile([[0], [1]], (len(places), 1))], axis=1).astype(
            np.uint8
        )
        seeds, control = np.empty((self._rows, nodes, 2), np.uint64), np.empty((self._rows, nodes), np.uint8)
        values = field.zeros(self._rows, nodes, length)
        proofs = np.empty((self._rows, nodes, PROOF_SIZE), np.uint8)
        for part in _blocks(self._rows, nodes):
            steps = self._steps.part(part)
            chosen, bits = self._children(steps, depth, part, places)
            fresh, shared = steps.convert(chosen)
            seeds[part], control[part] = fresh, bits
            values[part] = self._corrected(shared, depth, part, bits)
            proofs[part] = steps.proofs(fresh, paths[None])
            proofs[part] ^= self._words.proofs[part, depth][:, None] * bits[..., None]
        pairs = values.reshape(self._rows, len(places), 2, length, field.limbs)
        total = field.added(pairs[:, :, 0], pairs[:, :, 1])
        if self._levels:
            self._levels[-1].checks = field.subtracted(self._values.take(places, 1), total)
        elif self._total is None:
            self._total = total[:, 0]
        self._levels.append(_Level(paths, proofs, field.zeros(self._rows, 0, length)))
        self._seeds, self._control, self._values = seeds, control, values

    def _children(self, steps: VidpfSteps, depth: int, part: slice, places: list[int]) -> tuple[Words, Bits]:
        """Return the corrected seeds and control bits of both children of each node."""
        before = self._control[part].take(places, axis=1)
        children, bits = steps.extend(self._seeds[part].take(places, axis=1))
        mask = (-before.astype(np.int64)).view(np.uint64)[..., None, None]
        children ^= self._words.seeds[part, depth][:, None, None] & mask
        bits ^= self._words.control[part, depth][:, None] & before[..., None]
        return children.reshape(len(before), -1, 2), bits.reshape(len(before), -1)

    def _corrected(self, values: Elements, depth: int, part: slice, control: Bits) -> Elements:
        mask = (-control.astype(np.int64)).view(np.uint64)[..., None, None]
        return self._vidpf.field.added(values, self._words.values[part, depth][:, None] & mask)


def _distinct(prefixes: Bits, depth: int) -> Bits:
    """Return the different beginnings of strings that are in lexicographic order."""
    new = (prefixes[1:, :depth] != prefixes[:-1, :depth]).any(axis=1)
    return prefixes[np.concatenate([[True], new]), :depth]


def _blocks(rows: int, nodes: int) -> Iterator[slice]:
    size = max(1, _BLOCK_BYTES // (64 * max(1, nodes)))
    return (slice(start, min(start + size, rows)) for start in range(0, rows, size))
