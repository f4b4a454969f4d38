"""What a client of Poplar1 computes: keys of the point function, and masks of the sketch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.crypto.fields.field import FIELD255, Elements, PrimeField
from sfumato.crypto.fields.ntt_field import FIELD64
from sfumato.crypto.idpf.idpf import Idpf
from sfumato.crypto.idpf.tree_steps import KEY_SIZE
from sfumato.crypto.xof.turboshake import SEED_SIZE, XofTurboShake128
from sfumato.federated.vdaf.poplar.sketch import PoplarUsage, offsets
from sfumato.federated.vdaf.seed_expansion import Rows

__all__ = ["bit_rows", "sharded"]


def bit_rows(measurements: Sequence[str] | NDArray[Any], bits: int) -> Rows:
    """Return strings as rows of zeros and ones.

    Parameters
    ----------
    measurements : sequence of str or numpy.ndarray
        Strings of the characters 0 and 1, or an array of zeros and ones.
    bits : int
        How long they must be.

    Returns
    -------
    numpy.ndarray
        Of shape ``(rows, bits)``.

    Raises
    ------
    ParameterError
        If a string has another length or other characters.

    Examples
    --------
    >>> bit_rows(["01", "11"], 2).tolist()
    [[0, 1], [1, 1]]
    """
    rows: Rows | None = None
    if isinstance(measurements, np.ndarray) and measurements.dtype.kind in "iub":
        rows = measurements if ((measurements == 0) | (measurements == 1)).all() else None
    elif all(_is_bits(text, bits) for text in measurements):
        text = "".join(map(str, measurements)).encode()
        rows = (np.frombuffer(text, np.uint8) - np.uint8(ord("0"))).reshape(-1, bits)
    if rows is None or rows.shape[1:] != (bits,):
        rule = f"be strings of {bits} characters 0 and 1, or rows of as many zeros and ones"
        _check.refuse_type("measurements", rule, measurements, "encode what is measured as bits")
    return rows.astype(np.uint8)


def sharded(idpf: Idpf, paths: Rows, nonces: Rows, rand: Rows) -> tuple[Rows, Rows, Rows]:
    """Return public shares, and the input shares of both aggregators.

    Parameters
    ----------
    idpf : Idpf
        The point function.
    paths : numpy.ndarray
        The strings, as rows of zeros and ones.
    nonces, rand : numpy.ndarray
        Of shape ``(rows, 16)`` and ``(rows, 128)``.

    Returns
    -------
    tuple of numpy.ndarray

    Examples
    --------
    >>> zeros = np.zeros((1, 128), np.uint8)
    >>> [part.shape for part in sharded(Idpf(4, 2), zeros[:, :4], zeros[:, :16], zeros)]
    [(1, 177), (1, 160), (1, 160)]
    """
    keys = np.ascontiguousarray(rand[:, : 2 * KEY_SIZE]).reshape(-1, 2, KEY_SIZE)
    seeds = np.ascontiguousarray(rand[:, 2 * KEY_SIZE :]).reshape(-1, 3, SEED_SIZE)
    inner = idpf.bits - 1
    tag = PoplarUsage.SHARD_RANDOMNESS.tag(idpf.version, idpf.context)
    runs: list[tuple[PrimeField, int]] = [
        (FIELD64, inner),
        (FIELD255, 1),
        (FIELD64, 2 * inner),
        (FIELD255, 2),
    ]
    drawn = XofTurboShake128(seeds[:, 2], tag, nonces).runs(runs)
    public = idpf.generate(
        paths, _with_ones(FIELD64, drawn[0]), _with_ones(FIELD255, drawn[1])[:, 0], nonces, keys
    )
    parts: tuple[list[Rows], list[Rows]] = ([], [])
    kinds: list[tuple[PrimeField, int | None]] = [(FIELD64, 3 * inner), (FIELD255, None)]
    for (field, count), k, second in zip(kinds, drawn[:2], drawn[2:], strict=True):
        masks = [offsets(idpf, seeds[:, j], j, nonces, count) for j in range(2)]
        total = field.added(masks[0], masks[1]).reshape(*k.shape[:2], 3, field.limbs)
        parts[0].append(field.encoded(field.subtracted(_corrections(field, k, total), second)))
        parts[1].append(field.encoded(second))
    inputs = [np.concatenate([keys[:, j], seeds[:, j], *parts[j]], axis=1) for j in range(2)]
    return public, inputs[0], inputs[1]


def _is_bits(text: object, bits: int) -> bool:
    return isinstance(text, str) and len(text) == bits and not set(text) - {"0", "1"}


def _with_ones(field: PrimeField, authenticators: Elements) -> Elements:
    ones = np.broadcast_to(field.vector([1]), authenticators.shape)
    return np.stack([ones, authenticators], axis=2)


def _corrections(field: PrimeField, k: Elements, masks: Elements) -> Elements:
    """Return A = k - 2 a and B = a^2 + b - k a + c, side by side for each level."""
    a, b, c = masks[:, :, 0], masks[:, :, 1], masks[:, :, 2]
    first = field.subtracted(k, field.added(a, a))
    square = field.multiplied(a, field.subtracted(a, k))
    second = field.added(field.added(square, b), c)
    return np.stack([first, second], axis=2).reshape(len(k), -1, field.limbs)
