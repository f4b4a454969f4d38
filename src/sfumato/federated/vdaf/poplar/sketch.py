"""The sketch by which two aggregators check that a report has one prefix at most among those asked for.

With x the shares of the data (one on the path, else zero), x* = k x those of the authenticated data, and
random r that clients do not know, let z = <x, r>, z' = <x, r^2> and z* = <x*, r>. The aggregators open them
masked by shares of random a, b and c that the client supplied; with the client's shares of A = k - 2 a and
B = a^2 + b - k a + c they then open z^2 - z' + k z - z*, in which the masks cancel. It is a polynomial of
degree two in r, which is zero for unit vectors and the zero vector alone; else it is zero at random r with
probability at most 2 over the field's size (Boneh et al., 2021, appendix C.4).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from sfumato.crypto.fields.field import FIELD255, Elements
from sfumato.crypto.fields.ntt_field import FIELD64
from sfumato.crypto.idpf.idpf import Idpf
from sfumato.crypto.idpf.prefix_tree import PrefixTree
from sfumato.crypto.idpf.tree_steps import KEY_SIZE
from sfumato.crypto.xof.turboshake import SEED_SIZE, XofTurboShake128
from sfumato.federated.vdaf.prefixes.aggregation_parameter import AggregationParameter
from sfumato.federated.vdaf.seed_expansion import Rows

__all__ = ["PoplarUsage", "SketchState", "SketchedReports"]

_OFFSETS: Final = 3


class PoplarUsage(IntEnum):
    """What a seed of Poplar1 is expanded to."""

    SHARD_RANDOMNESS = 1
    INNER_OFFSETS = 2
    LEAF_OFFSETS = 3
    VERIFY_RANDOMNESS = 4

    def tag(self, version: int, context: bytes) -> bytes:
        """Return the domain separation tag of this use.

        Parameters
        ----------
        version : int
            Its first byte.
        context : bytes
            The application's name.

        Returns
        -------
        bytes
        """
        return bytes([version, 0, 0, 0, 0, 6]) + self.to_bytes(2, "big") + context


@final
@dataclass(frozen=True, slots=True, eq=False)
class SketchState:
    """What one aggregator keeps of a batch between the two rounds.

    Parameters
    ----------
    parameter : AggregationParameter
        What was asked.
    aggregator : int
        Whose state it is.
    corrections : numpy.ndarray
        Its shares of A and B, of shape ``(rows, 2, limbs)``.
    output_shares : numpy.ndarray
        Its shares of what is counted, of shape ``(rows, prefixes, limbs)``.
    sound : numpy.ndarray
        False for reports whose messages are malformed: they are never accepted.

    Examples
    --------
    >>> from sfumato.federated import AggregationParameter, Poplar1
    >>> poplar, asked = Poplar1(bits=4), AggregationParameter.of("01", "11")
    >>> reports = poplar.shard(["0110", "1111"])
    >>> batch = poplar.reports(0, reports.nonces, reports.public_shares, reports.input_shares[0])
    >>> state, _ = poplar.verify_init(bytes(32), asked, batch)
    >>> state.output_shares.shape, state.sound.tolist()
    ((2, 2, 1), [True, True])
    """

    parameter: AggregationParameter
    aggregator: int
    corrections: Elements
    output_shares: Elements
    sound: NDArray[np.bool_]


@final
class SketchedReports:
    """One aggregator's batch of reports, with what it remembers from one parameter to the next.

    Parameters
    ----------
    idpf : Idpf
        The point function of values of two elements.
    aggregator : int
        0, the leader, or 1.
    nonces, public_shares, input_shares : numpy.ndarray
        The clients' messages.

    Examples
    --------
    >>> from sfumato.federated import AggregationParameter, Poplar1
    >>> poplar = Poplar1(bits=4)
    >>> made = poplar.shard(["0110", "1111"])
    >>> reports = poplar.reports(1, made.nonces, made.public_shares, made.input_shares[1])
    >>> [reports.sketch(bytes(32), AggregationParameter.of(asked))[1].shape for asked in ("01", "011")]
    [(2, 24), (2, 24)]
    """

    def __init__(
        self, idpf: Idpf, aggregator: int, nonces: Rows, public_shares: Rows, input_shares: Rows
    ) -> None:
        self._idpf, self._aggregator, self._nonces = idpf, aggregator, nonces
        self._tree = PrefixTree(idpf, aggregator, nonces, public_shares, input_shares[:, :KEY_SIZE])
        inner, leaf = KEY_SIZE + SEED_SIZE, input_shares.shape[1] - 2 * FIELD255.size
        self._seeds = np.ascontiguousarray(input_shares[:, KEY_SIZE:inner])
        self._inner, good = FIELD64.decoded(input_shares[:, inner:leaf])
        self._leaf, fine = FIELD255.decoded(input_shares[:, leaf:])
        self.sound = self._tree.sound & good & fine
        self._offsets = FIELD64.zeros(len(nonces), 0)

    def sketch(self, verify_key: bytes, parameter: AggregationParameter) -> tuple[SketchState, Rows]:
        """Return the state for the second round, and encoded shares of the masked sketch.

        Parameters
        ----------
        verify_key : bytes
            The aggregators' common secret.
        parameter : AggregationParameter
            What is asked, at a level of the point function.

        Returns
        -------
        tuple of SketchState and numpy.ndarray
        """
        level, count, rows = parameter.level, len(parameter.prefixes), len(self._nonces)
        field = self._idpf.field(level)
        tail = np.frombuffer(level.to_bytes(2, "big"), np.uint8)[None].repeat(rows, axis=0)
        tag = PoplarUsage.VERIFY_RANDOMNESS.tag(self._idpf.version, self._idpf.context)
        key = np.frombuffer(verify_key, np.uint8)[None]
        binders = np.concatenate([self._nonces, tail], axis=1)
        random = XofTurboShake128(key, tag, binders).elements(field, count)
        values = self._tree.values(parameter.bits)
        outputs = np.ascontiguousarray(values[:, :, 0])
        weighted = field.multiplied(outputs, random)
        shares = np.stack(
            [
                field.summed(weighted),
                field.dots(weighted[:, None], random)[:, 0],
                field.dots(values[:, None, :, 1], random)[:, 0],
            ],
            axis=1,
        )
        corrections = self._leaf
        if level < self._idpf.bits - 1:
            corrections = self._inner[:, 2 * level : 2 * level + 2]
        state = SketchState(parameter, self._aggregator, corrections, outputs, self.sound)
        return state, field.encoded(field.added(shares, self._masks(level)))

    def _masks(self, level: int) -> Elements:
        """Return this aggregator's shares of a, b and c, of which those above the leaves are remembered."""
        if level == self._idpf.bits - 1:
            return offsets(self._idpf, self._seeds, self._aggregator, self._nonces)
        needed = _OFFSETS * (level + 1)
        if needed > self._offsets.shape[1]:
            whole = _OFFSETS * (self._idpf.bits - 1)
            length = min(max(needed, 2 * self._offsets.shape[1]), whole)
            self._offsets = offsets(self._idpf, self._seeds, self._aggregator, self._nonces, length)
        return self._offsets[:, needed - _OFFSETS : needed]


def offsets(idpf: Idpf, seeds: Rows, aggregator: int, nonces: Rows, inner: int | None = None) -> Elements:
    """Return an aggregator's shares of what masks sketches: the first ``inner`` of them, or the leaves'."""
    usage = PoplarUsage.LEAF_OFFSETS if inner is None else PoplarUsage.INNER_OFFSETS
    number = np.full((len(nonces), 1), aggregator, np.uint8)
    xof = XofTurboShake128(
        seeds, usage.tag(idpf.version, idpf.context), np.concatenate([number, nonces], axis=1)
    )
    return xof.elements(FIELD255, _OFFSETS) if inner is None else xof.elements(FIELD64, inner)
