"""HPKE with associated data: RFC 9180's vector, and the library ``cryptography`` as the other end."""

from __future__ import annotations

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite

from sfumato.crypto.hpke_base import (
    AES_128_GCM,
    CHACHA20_POLY1305,
    TAG,
    full_order,
    open_base,
    public_point,
    seal_base,
)

SECRET = bytes.fromhex("4612c550263fc8ad58375df3f557aac531d26850903e55a9f23f21d8534e8ac8")
SUITES = {AES_128_GCM: AEAD.AES_128_GCM, CHACHA20_POLY1305: AEAD.CHACHA20_POLY1305}


def test_the_vector_of_rfc_9180_a1() -> None:
    assert public_point(SECRET).hex() == "3948cfe0ad1ddb695d780e59077195da6c56506b027329794ab02bca80815c4d"
    opened = open_base(
        SECRET,
        bytes.fromhex("37fda3567bdbd628e88668c3c8d7e97d1d1253b6d4ea6d44c150f741f1bf4431"),
        bytes.fromhex("4f6465206f6e2061204772656369616e2055726e"),
        bytes.fromhex("436f756e742d30"),
        bytes.fromhex(
            "f938558b5d72f1a23810b4be2ab4f84331acc02fc97babc53a52ae8218a355a96d8770ac83d07bea87e13c512a"
        ),
    )
    assert opened == b"Beauty is truth, truth beauty"


@pytest.mark.parametrize("cipher", SUITES)
def test_another_implementation_is_the_other_end(cipher: int) -> None:
    suite = Suite(KEM.X25519, KDF.HKDF_SHA256, SUITES[cipher])
    key, point = X25519PrivateKey.from_private_bytes(SECRET), public_point(SECRET)
    enc, sealed = seal_base(point, b"info", b"", b"message", cipher=cipher)
    assert len(sealed) == len(b"message") + TAG
    assert suite.decrypt(enc + sealed, key, info=b"info") == b"message"
    theirs = suite.encrypt(b"message", X25519PublicKey.from_public_bytes(point), info=b"info")
    assert open_base(SECRET, theirs[:32], b"info", b"", theirs[32:], cipher=cipher) == b"message"


def test_what_differs_in_any_part_does_not_open() -> None:
    enc, sealed = seal_base(public_point(SECRET), b"info", b"data", b"message")
    assert open_base(SECRET, enc, b"info", b"data", sealed) == b"message"
    others = [
        (bytes(range(32)), enc, b"info", b"data", sealed),
        (SECRET, enc[:-1] + bytes([enc[-1] ^ 1]), b"info", b"data", sealed),
        (SECRET, enc[:-1], b"info", b"data", sealed),
        (SECRET, enc, b"inf", b"data", sealed),
        (SECRET, enc, b"info", b"dat", sealed),
        (SECRET, enc, b"info", b"data", sealed[:-1]),
        (SECRET, enc, b"info", b"data", b""),
        (SECRET, bytes(32), b"info", b"data", sealed),
    ]
    for secret, key, info, data, text in others:
        assert open_base(secret, key, info, data, text) is None
    assert open_base(SECRET, enc, b"info", b"data", sealed, cipher=CHACHA20_POLY1305) is None


@pytest.mark.parametrize("point", [bytes(32), b"\x01" + bytes(31)])
def test_a_point_of_small_order_is_no_key(point: bytes) -> None:
    with pytest.raises(ValueError, match="Error computing shared key"):
        seal_base(point, b"", b"", b"")
    assert not full_order(point)
