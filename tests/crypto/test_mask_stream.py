"""Masks against NIST's vector of AES-256 in counter mode, and the arithmetic modulo 2^bits."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from sfumato.crypto import mask_stream
from sfumato.crypto.fields import _kernel
from sfumato.crypto.mask_stream import MaskStream, word_type
from sfumato.errors import ParameterError


def keystream(seed: bytes, count: int) -> bytes:
    return (
        Cipher(algorithms.AES(seed), modes.ECB())
        .encryptor()
        .update(b"".join(block.to_bytes(16, "big") for block in range(-(-count // 16))))[:count]
    )


@pytest.fixture(params=["this processor's instructions", "the library"], autouse=True)
def either(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "the library":
        monkeypatch.setattr(mask_stream, "_HAS_AES", False)


@pytest.mark.parametrize(("bits", "width"), [(1, 4), (20, 4), (32, 4), (33, 8), (63, 8), (64, 8)])
def test_a_mask_is_the_encrypted_counter(bits: int, width: int) -> None:
    length = 100_003  # more than a piece, and no whole number of blocks
    seed = bytes(range(32))
    expected = np.frombuffer(keystream(seed, width * length), f"<u{width}") & ((1 << bits) - 1)
    assert np.array_equal(MaskStream(length, bits=bits).mask(seed), expected)


def test_a_mask_is_added_and_taken_away() -> None:
    stream = MaskStream(70_000, bits=17)
    values = np.arange(70_000, dtype=np.uint32)
    total = values.copy()
    stream.add(total, b"a" * 32)
    stream.subtract(total, b"b" * 32)
    apart = stream.mask(b"a" * 32) - stream.mask(b"b" * 32)
    assert np.array_equal(stream.reduce(total.copy()), stream.reduce(values + apart))
    stream.add(total, b"b" * 32)
    stream.subtract(total, b"a" * 32)
    assert np.array_equal(total, values)


@pytest.mark.skipif(not _kernel.has_aes(), reason="a processor without instructions for AES")
@pytest.mark.parametrize("width", [4, 8])
@pytest.mark.parametrize("less", [False, True])
@pytest.mark.parametrize("narrow", [False, True])
def test_the_kernel_adds_the_encrypted_counter_to_totals_of_every_length(
    width: int, less: bool, narrow: bool
) -> None:
    seed, longest = bytes(range(32, 64)), 4 * 512 // width + 3
    mask = np.frombuffer(keystream(seed, width * longest), f"<u{width}")
    before = np.arange(longest, dtype=mask.dtype) * mask.dtype.type(0x9E3779B9)
    expected = before - mask if less else before + mask
    for length in range(1, longest + 1):
        whole = before.copy()
        _kernel.add_keystream(width, less, narrow, seed, whole[:length])
        assert np.array_equal(whole[:length], expected[:length])
        assert np.array_equal(whole[length:], before[length:])  # nothing behind it is touched


@pytest.mark.parametrize(
    ("width", "key", "size"), [(2, 32, 8), (4, 31, 8), (4, 33, 8), (4, 64, 8), (8, 32, 12)]
)
def test_the_kernel_refuses_other_sizes(width: int, key: int, size: int) -> None:
    with pytest.raises(ValueError, match="the key must have 32 bytes"):
        _kernel.add_keystream(width, False, False, bytes(key), np.zeros(size, np.uint8))


def test_compilers_are_asked_only_for_what_all_of_them_know_by_name() -> None:
    """GCC 10 and Clang 17 know no "vaes": with it, the extension would not compile there."""
    folder = Path(__file__).parents[2] / "src" / "sfumato" / "crypto" / "fields"
    sources = [path.read_text() for path in sorted(folder.glob("*.[ch]"))]
    asked = {name for text in sources for name in re.findall(r'__builtin_cpu_supports\("(\w+)"\)', text)}
    assert asked == {"aes", "avx512f", "avx512bw"}


def test_what_is_refused() -> None:
    for bits in (0, 65, 2.0):
        with pytest.raises(ParameterError, match=r"^bits must be"):
            word_type(bits)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match=r"^length must be"):
        MaskStream(0, bits=8)
