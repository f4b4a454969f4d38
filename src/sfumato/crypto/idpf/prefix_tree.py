"""One party's side of a batch of point functions: shares of the values at prefixes, level by level."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.crypto.fields.field import Elements
from sfumato.crypto.idpf.idpf import Idpf
from sfumato.crypto.idpf.tree_steps import Bits, Bytes, TreeSteps, Words

__all__ = ["PrefixTree"]

_BLOCK_BYTES: Final = 1 << 18


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Nodes:
    """The nodes at some prefixes of one length, of all reports."""

    prefixes: Bits
    seeds: Words
    control: Bits

    def places(self) -> dict[bytes, int]:
        return {prefix.tobytes(): i for i, prefix in enumerate(self.prefixes)}


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Step:
    """From one level's nodes to the next one's: which have wanted children, and which children those are."""

    level: int
    parents: NDArray[np.int64]
    children: NDArray[np.int64]


@final
class PrefixTree:
    """What one party computes from its keys; the nodes asked for last are remembered.

    Asking for longer prefixes of strings whose prefixes were asked for last costs the levels between only.

    Parameters
    ----------
    idpf : Idpf
        The function.
    party : int
        0 or 1.
    nonces, public_shares : numpy.ndarray
        The reports'.
    keys : numpy.ndarray
        This party's, of shape ``(rows, 16)``.

    Examples
    --------
    >>> import numpy as np
    >>> idpf, zeros = Idpf(bits=4, value_length=2), np.zeros((3, 16), np.uint8)
    >>> tree = PrefixTree(idpf, 0, zeros, np.zeros((3, 177), np.uint8), zeros)
    >>> tree.values(np.array([[0, 1], [1, 1]], np.uint8)).shape
    (3, 2, 2, 1)
    """

    def __init__(self, idpf: Idpf, party: int, nonces: Bytes, public_shares: Bytes, keys: Bytes) -> None:
        if party not in (0, 1):
            _check.refuse("party", "be 0 or 1", party, "count parties from 0")
        self._idpf, self._party = idpf, party
        self._words, self._steps = idpf.decoded(public_shares), idpf.steps(nonces)
        control = np.full((len(nonces), 1), party, np.uint8)
        seeds = np.ascontiguousarray(keys).view(np.uint64)[:, None]
        self._root = self._last = _Nodes(np.zeros((1, 0), np.uint8), seeds, control)

    @property
    def sound(self) -> NDArray[np.bool_]:
        """False for reports whose public share is malformed."""
        return self._words.sound

    def values(self, prefixes: Bits) -> Elements:
        """Return this party's shares of the values at prefixes.

        Parameters
        ----------
        prefixes : numpy.ndarray
            Different strings of bits, of shape ``(count, length)``, with a length of at least 1.

        Returns
        -------
        numpy.ndarray
            Of shape ``(rows, count, value_length, limbs)``.
        """
        count, length = prefixes.shape
        if not 1 <= length <= self._idpf.bits:
            _check.refuse("prefixes.shape[1]", f"be from 1 to {self._idpf.bits}", length, "use shorter ones")
        start = self._start(prefixes)
        steps, rows = list(_path(start, prefixes)), len(start.seeds)
        field = self._idpf.field(length - 1)
        seeds, control = np.empty((rows, count, 2), np.uint64), np.empty((rows, count), np.uint8)
        out = field.zeros(rows, count, self._idpf.value_length)
        for part in _blocks(rows, count):
            at, bits = start.seeds[part], start.control[part]
            functions = self._steps.part(part)
            for step in steps:
                at, bits = self._children(functions, step, part, at, bits)
                if step.level < length - 1:
                    at = functions.next_seeds(step.level, at)
            seeds[part], values = functions.convert(length - 1, at)
            control[part] = bits
            mask = (-bits.astype(np.int64)).view(np.uint64)[..., None, None]
            total = field.added(values, self._payload(length - 1, part)[:, None] & mask)
            out[part] = field.subtracted(field.zeros(1), total) if self._party else total
        self._last = _Nodes(prefixes.copy(), seeds, control)
        return out

    def _start(self, prefixes: Bits) -> _Nodes:
        """Return the nodes from which all prefixes can be reached."""
        length = self._last.prefixes.shape[1]
        known = self._last.places()
        if length < prefixes.shape[1] and all(prefix.tobytes() in known for prefix in prefixes[:, :length]):
            return self._last
        return self._root

    def _payload(self, level: int, part: slice) -> Elements:
        words = self._words
        return words.inner[part, level] if level < self._idpf.bits - 1 else words.leaf[part]

    def _children(
        self, functions: TreeSteps, step: _Step, part: slice, seeds: Words, control: Bits
    ) -> tuple[Words, Bits]:
        """Return the wanted children's corrected seeds and control bits."""
        control = control[:, step.parents]
        children, bits = functions.extend(step.level, seeds[:, step.parents])
        mask = (-control.astype(np.int64)).view(np.uint64)[..., None, None]
        children ^= self._words.seeds[part, step.level][:, None, None] & mask
        bits ^= self._words.control[part, step.level][:, None] & control[..., None]
        rows, nodes = control.shape
        chosen = children.reshape(rows, 2 * nodes, 2)[:, step.children]
        return chosen, bits.reshape(rows, 2 * nodes)[:, step.children]


def _blocks(rows: int, nodes: int) -> Iterator[slice]:
    size = max(1, _BLOCK_BYTES // (32 * max(1, nodes)))
    return (slice(start, min(start + size, rows)) for start in range(0, rows, size))


def _path(start: _Nodes, prefixes: Bits) -> Iterator[_Step]:
    """Return the steps from nodes to prefixes below them, which are reached in their order."""
    known = start.places()
    for length in range(start.prefixes.shape[1] + 1, prefixes.shape[1] + 1):
        last = length == prefixes.shape[1]
        wanted = prefixes if last else np.unique(prefixes[:, :length], axis=0)
        parents = {prefix[:-1].tobytes(): 0 for prefix in wanted}
        places = np.array([known[parent] for parent in parents], np.int64)
        parents = {parent: i for i, parent in enumerate(parents)}
        children = [2 * parents[prefix[:-1].tobytes()] + int(prefix[-1]) for prefix in wanted]
        yield _Step(length - 1, places, np.array(children, np.int64))
        known = {prefix.tobytes(): i for i, prefix in enumerate(wanted)}
