"""Fixed-key AES against the draft's vector, by the processor's instructions and by the library."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from sfumato.crypto.fields import _kernel
from sfumato.crypto.fields.field import PseudoMersenneField
from sfumato.crypto.fields.ntt_field import FIELD64
from sfumato.crypto.xof.fixed_key_aes import XofFixedKeyAes128
from sfumato.errors import ParameterError
from tests.cases import cases

DATA = Path(__file__).parent / "data"


def rows(text: str) -> np.ndarray:
    return np.frombuffer(bytes.fromhex(text), np.uint8)[None]


@cases("instructions", [True, False])
def test_the_drafts_vector(instructions: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not instructions:
        monkeypatch.setattr(_kernel, "has_aes", lambda: False)
    told = json.loads((DATA / "XofFixedKeyAes128.json").read_text())
    seed = rows(told["seed"])[0]
    binders = np.concatenate([rows(told["binder"]), rows(told["binder"]) ^ 1])
    xof = XofFixedKeyAes128(bytes.fromhex(told["dst"]), binders)
    seeds = np.stack([[seed, seed[::-1]], [seed[::-1], seed]])
    out = xof.stream(seeds, 16 * told["length"])
    assert out[0, 0].tobytes().hex() == told["expanded_vec_field128"]  # no element of it is rejected
    assert out[0, 0, :16].tobytes().hex() == told["derived_seed"]
    assert (out[0, 0] != out[1, 1]).any()
    for row in range(2):
        for column in range(2):
            one = xof.part(slice(row, row + 1)).stream(seeds[row : row + 1, column : column + 1], 21)
            assert (one[0, 0] == out[row, column, :21]).all()


@pytest.mark.skipif(not _kernel.has_aes(), reason="this processor has no instructions for AES")
def test_instructions_and_library_agree_at_every_size(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    xof = XofFixedKeyAes128(b"t", rng.integers(0, 256, (3, 16), np.uint8))
    told = {}
    for count in (0, 1, 2, 7, 8, 9, 17):
        seeds = rng.integers(0, 256, (3, count, 16), np.uint8)
        told[count] = (seeds, [xof.stream(seeds, length) for length in (1, 16, 33, 80)])
    monkeypatch.setattr(_kernel, "has_aes", lambda: False)
    for seeds, outputs in told.values():
        for out in outputs:
            assert (xof.stream(seeds, out.shape[2]) == out).all()


def test_elements_are_the_words_below_the_modulus() -> None:
    xof = XofFixedKeyAes128(b"", np.zeros((2, 16), np.uint8))
    seeds = np.arange(2 * 50 * 16, dtype=np.uint8).reshape(2, 50, 16)
    small = PseudoMersenneField(
        (1 << 63) + 29, 1
    )  # of Field64 one word in 2**32 is passed over; here every second
    words = xof.stream(seeds, 16 + 8 * 64)[..., 16:].copy().view("<u8")
    early = words[..., :2]
    equal = PseudoMersenneField(int(early[early > 1 << 63].min()), 1)  # a word that is the modulus itself
    for field, count in ((FIELD64, 3), (small, 5), (equal, 5)):
        fresh, elements = xof.elements(seeds, field, count)
        assert (fresh == xof.stream(seeds, 16)).all()
        for row in range(2):
            for i in range(50):
                below = [int(word) for word in words[row, i] if word < field.modulus]
                assert elements[row, i, :, 0].tolist() == below[:count]


def test_no_reports_at_all() -> None:
    xof = XofFixedKeyAes128(b"t", np.zeros((0, 16), np.uint8))
    assert xof.stream(np.zeros((0, 3, 16), np.uint8), 32).shape == (0, 3, 32)


def test_refusals() -> None:
    nonces = np.zeros((1, 16), np.uint8)
    with pytest.raises(ParameterError, match="65,536"):
        XofFixedKeyAes128(bytes(1 << 16), nonces)
    for shape in ((1, 1, 15), (1, 16), (2, 1, 16)):
        with pytest.raises(ParameterError, match="16 bytes"):
            XofFixedKeyAes128(b"", nonces).stream(np.zeros(shape, np.uint8), 1)
    for wrong in ((0, 1, 16, 16), (1, 0, 16, 16), (1, 1, 15, 16), (1, 2, 16, 16), (1, 1, 16, 17)):
        with pytest.raises(ValueError, match="must"):
            _kernel.fixed_key_aes(
                wrong[0], wrong[1], *(np.zeros(size, np.uint8) for size in (16, wrong[2], wrong[3]))
            )
    # Sizes whose product with 16 leaves the range of the machine's integers are no zero.
    for rows in (1 << 60, (1 << 60) + 1):
        with pytest.raises(ValueError, match="must"):
            _kernel.fixed_key_aes(rows, 1, *(np.zeros(size, np.uint8) for size in (16 * (rows & 1), 0, 0)))
