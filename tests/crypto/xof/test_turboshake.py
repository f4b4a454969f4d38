"""TurboSHAKE128 against RFC 9861's vectors, a plain sponge of its own, and the draft's vector."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from sfumato.crypto.fields.field import FIELD255, PseudoMersenneField
from sfumato.crypto.fields.ntt_field import FIELD64, FIELD128
from sfumato.crypto.xof.turboshake import XofTurboShake128, turboshake128
from sfumato.errors import ParameterError
from tests.cases import cases

DATA = Path(__file__).parent / "data"
WORD = (1 << 64) - 1


def row(text: str) -> np.ndarray:
    return np.frombuffer(bytes.fromhex(text), np.uint8)[None]


def plain_permutation(state: list[int]) -> list[int]:
    """Keccak-p[1600, 12] by the steps of FIPS 202, with the round constants from its shift register."""

    def turned(x: int, by: int) -> int:
        return (x << by % 64 | x >> (64 - by % 64)) & WORD

    a = {(x, y): state[x + 5 * y] for x in range(5) for y in range(5)}
    register, constants = 1, []
    for _ in range(24):
        constant = 0
        for j in range(7):
            constant |= (register & 1) << (1 << j) - 1
            register = (register << 1) ^ (0x171 if register >> 7 else 0)
        constants.append(constant)
    for constant in constants[12:]:
        c = [a[x, 0] ^ a[x, 1] ^ a[x, 2] ^ a[x, 3] ^ a[x, 4] for x in range(5)]
        a = {(x, y): lane ^ c[x - 1] ^ turned(c[(x + 1) % 5], 1) for (x, y), lane in a.items()}
        x, y, b = 1, 0, {(0, 0): a[0, 0]}
        for t in range(24):
            b[y, (2 * x + 3 * y) % 5] = turned(a[x, y], (t + 1) * (t + 2) // 2)
            x, y = y, (2 * x + 3 * y) % 5
        a = {(x, y): b[x, y] ^ ~b[(x + 1) % 5, y] & b[(x + 2) % 5, y] for x, y in b}
        a[0, 0] ^= constant
    return [a[x, y] for y in range(5) for x in range(5)]


def plain_turboshake(message: bytes, domain: int, length: int) -> bytes:
    padded = bytearray(message + bytes([domain]))
    padded += bytes(-len(padded) % 168)
    padded[-1] ^= 0x80
    state = [0] * 25
    for start in range(0, len(padded), 168):
        for lane in range(21):
            state[lane] ^= int.from_bytes(padded[start + 8 * lane : start + 8 * lane + 8], "little")
        state = plain_permutation(state)
    out = b""
    while len(out) < length:
        out += b"".join(lane.to_bytes(8, "little") for lane in state[:21])
        state = plain_permutation(state)
    return out[:length]


def test_first_vector_of_the_rfc() -> None:
    told = "1e415f1c5983aff2169217277d17bb538cd945a397ddec541f1ce41af2c1b74c"
    assert turboshake128(b"", 0x1F, 32).hex() == told


@cases("size", [0, 1, 166, 167, 168, 169, 335, 336, 500])
def test_every_border_of_a_block(size: int) -> None:
    message = bytes(i * 7 % 256 for i in range(size))
    for length in (1, 8, 167, 168, 169, 400):
        assert turboshake128(message, 3, length) == plain_turboshake(message, 3, length)


def test_the_drafts_vector() -> None:
    told = json.loads((DATA / "XofTurboShake128.json").read_text())
    xof = XofTurboShake128(row(told["seed"]), bytes.fromhex(told["dst"]), row(told["binder"]))
    assert xof.stream(32).tobytes().hex() == told["derived_seed"]
    vector = xof.elements(FIELD128, told["length"])
    assert FIELD128.encoded(vector).tobytes().hex() == told["expanded_vec_field128"]


def test_rows_are_independent_and_one_seed_serves_all() -> None:
    binders = np.arange(15, dtype=np.uint8).reshape(5, 3)
    seeds = np.arange(32, dtype=np.uint8)[None]
    whole = XofTurboShake128(seeds, b"t", binders)
    for i in range(5):
        one = XofTurboShake128(seeds, b"t", binders[i : i + 1])
        assert (whole.stream(50)[i] == one.stream(50)[0]).all()
        assert (whole.elements(FIELD64, 30)[i] == one.elements(FIELD64, 30)[0]).all()


def test_words_above_the_modulus_are_passed_over() -> None:
    # Field64 rejects one word in 2**32: too rare to meet, so the words are compared with those below it.
    xof = XofTurboShake128(np.zeros((1, 32), np.uint8), b"", np.zeros((1, 1), np.uint8))
    words = xof.stream(8 * 5000).view("<u8")[0]
    kept = words[words < FIELD64.modulus]
    assert (xof.elements(FIELD64, len(kept))[0, :, 0] == kept).all()


@cases("domain", [0, 128, -1])
def test_domains_that_the_rfc_lacks(domain: int) -> None:
    with pytest.raises(ParameterError, match="domain"):
        turboshake128(b"", domain, 1)


def test_overlong_tags_and_seeds() -> None:
    empty = np.zeros((1, 0), np.uint8)
    with pytest.raises(ParameterError, match="65,536"):
        XofTurboShake128(empty, bytes(1 << 16), empty)
    with pytest.raises(ParameterError, match="256"):
        XofTurboShake128(np.zeros((1, 256), np.uint8), b"", empty)


def test_runs_of_several_fields_continue_one_output() -> None:
    # Of Field64 one word in 2**32 is passed over, too rare to meet: in this field it is every second.
    small = PseudoMersenneField((1 << 63) + 29, 1)
    binders = np.arange(6, dtype=np.uint8)[:, None]
    xof = XofTurboShake128(np.zeros((1, 32), np.uint8), b"t", binders)
    lengths = [(small, 5), (FIELD255, 2), (small, 40), (FIELD64, 3)]
    runs, stream = xof.runs(lengths), xof.stream(4000)
    for row in range(6):
        data, at = stream[row].tobytes(), 0
        for (field, count), run in zip(lengths, runs, strict=True):
            found: list[int] = []
            while len(found) < count:
                value = int.from_bytes(data[at : at + field.size], "little")
                value &= (1 << field.modulus.bit_length()) - 1
                at += field.size
                if value < field.modulus:
                    found.append(value)
            assert field.integers(run[row]) == found
