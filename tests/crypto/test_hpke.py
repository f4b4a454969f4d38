"""Seals: the RFC's own vector, an independent implementation of it, and every way to be refused."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305

from sfumato.crypto.hpke import CIPHERS, SEAL, PublicKey, unsealed
from sfumato.crypto.secret_key import SecretKey
from sfumato.errors import ParameterError
from tests.cases import cases

# RFC 9180, A.2.1 and A.2.1.1, sequence number 0: base mode, X25519, HKDF-SHA256, ChaCha20-Poly1305.
SECRET = bytes.fromhex("8057991eef8f1f1af18f4a9491d16a1ce333f695d4db8e38da75975c4478e0fb")
EPHEMERAL = bytes.fromhex("f4ec9b33b792c372c1d2c2063507b684ef925b8c75a42dbcbf57d63ccd381600")
INFO = bytes.fromhex("4f6465206f6e2061204772656369616e2055726e")
AAD = bytes.fromhex("436f756e742d30")
PLAIN = bytes.fromhex("4265617574792069732074727574682c20747275746820626561757479")
ENC = bytes.fromhex("1afa08d3dec047a643885163f1180476fa7ddb54c6a8029ea33f95796bf2ac4a")
SHARED = bytes.fromhex("0bbe78490412b4bbea4812666f7916932b828bba79942424abb65244930d69a7")
CIPHER = bytes.fromhex(
    "1c5250d8034ec2b784ba2cfd69dbdb8af406cfe3ff938e131f0def8c8b60b4db21993c62ce81883d2dd1b51a28"
)

KEM = b"KEM" + (0x20).to_bytes(2, "big")
SUITE = b"HPKE" + b"".join(number.to_bytes(2, "big") for number in (0x20, 1, 3))


Kind = type[AESGCM] | type[ChaCha20Poly1305]


def extract(suite: bytes, salt: bytes, label: bytes, key: bytes) -> bytes:
    return hmac.new(salt or bytes(32), b"HPKE-v1" + suite + label + key, hashlib.sha256).digest()


def expand(suite: bytes, key: bytes, label: bytes, info: bytes, size: int) -> bytes:
    told = size.to_bytes(2, "big") + b"HPKE-v1" + suite + label + info
    return hmac.new(key, told + b"\x01", hashlib.sha256).digest()[:size]


def shared_secret(exchanged: bytes, enc: bytes, public: bytes) -> bytes:
    return expand(KEM, extract(KEM, b"", b"eae_prk", exchanged), b"shared_secret", enc + public, 32)


def cipher_of(
    shared: bytes, info: bytes, kind: Kind, suite: bytes
) -> tuple[AESGCM | ChaCha20Poly1305, bytes]:
    context = b"\x00" + extract(suite, b"", b"psk_id_hash", b"") + extract(suite, b"", b"info_hash", info)
    secret = extract(suite, shared, b"secret", b"")
    nonce = expand(suite, secret, b"base_nonce", context, 12)
    return kind(expand(suite, secret, b"key", context, 32)), nonce


def sealed_by_hand(
    plain: bytes,
    public: bytes,
    info: bytes,
    ephemeral: bytes,
    aad: bytes = b"",
    *,
    kind: Kind = ChaCha20Poly1305,
    suite: bytes = SUITE,
) -> bytes:
    own = X25519PrivateKey.from_private_bytes(ephemeral)
    enc = own.public_key().public_bytes_raw()
    exchanged = own.exchange(X25519PublicKey.from_public_bytes(public))
    cipher, nonce = cipher_of(shared_secret(exchanged, enc, public), info, kind, suite)
    return enc + cipher.encrypt(nonce, plain, aad)


def opened_by_hand(
    sealed: bytes,
    key: X25519PrivateKey,
    info: bytes,
    kind: Kind = ChaCha20Poly1305,
    suite: bytes = SUITE,
) -> bytes:
    enc = sealed[:32]
    exchanged = key.exchange(X25519PublicKey.from_public_bytes(enc))
    shared = shared_secret(exchanged, enc, key.public_key().public_bytes_raw())
    cipher, nonce = cipher_of(shared, info, kind, suite)
    return cipher.decrypt(nonce, sealed[32:], b"")


@pytest.fixture
def secret() -> X25519PrivateKey:
    return X25519PrivateKey.from_private_bytes(SECRET)


@pytest.fixture
def public(secret: X25519PrivateKey) -> PublicKey:
    return PublicKey("analyst", secret.public_key().public_bytes_raw(), hashlib.sha256(b"word").digest())


def test_the_implementation_by_hand_meets_the_published_vector(public: PublicKey) -> None:
    own = X25519PrivateKey.from_private_bytes(EPHEMERAL)
    exchanged = own.exchange(X25519PublicKey.from_public_bytes(public.point))
    assert shared_secret(exchanged, ENC, public.point) == SHARED
    assert sealed_by_hand(PLAIN, public.point, INFO, EPHEMERAL, AAD) == ENC + CIPHER


def test_what_is_sealed_here_opens_by_hand_and_the_other_way_round(
    secret: X25519PrivateKey, public: PublicKey
) -> None:
    for size in (0, 1, 17, 1000):
        message, info = os.urandom(size), os.urandom(size % 50)
        sealed = public.seal(message, info)
        assert len(sealed) == size + SEAL
        assert opened_by_hand(sealed, secret, info) == message
        assert unsealed(sealed_by_hand(message, public.point, info, os.urandom(32)), secret, info) == message


def test_every_altered_byte_and_context_is_refused(secret: X25519PrivateKey, public: PublicKey) -> None:
    sealed = public.seal(b"yes", b"context")
    assert unsealed(sealed, secret, b"context") == b"yes"
    for place in range(len(sealed)):
        altered = bytearray(sealed)
        altered[place] ^= 1
        assert unsealed(bytes(altered), secret, b"context") is None
    for other in (b"", b"contexts", b"Context"):
        assert unsealed(sealed, secret, other) is None
    for cut in (b"", sealed[:31], sealed[:32], sealed[:-1], sealed + b"\x00", bytes(100)):
        assert unsealed(cut, secret, b"context") is None
    assert unsealed(sealed, X25519PrivateKey.generate(), b"context") is None


def test_two_seals_of_the_same_have_nothing_in_common(public: PublicKey) -> None:
    sealed = [public.seal(bytes(64), b"") for _ in range(200)]
    assert len({one[start : start + 8] for one in sealed for start in range(0, len(one), 8)}) == 200 * 14


def test_a_public_key_is_told_as_a_line(public: PublicKey) -> None:
    line = public.to_text()
    assert PublicKey.from_text(line, "analyst") == public
    assert PublicKey.from_text(line + "\n", "analyst") == public
    assert public.known_by(b"word")
    assert not public.known_by(b"wort")
    for text in (line[:-4], line[:-8] + "AAAAAA==", line + "AAAA"):
        with pytest.raises(ParameterError, match=r"analyst must be the (public key|whole line of a key)"):
            PublicKey.from_text(text, "analyst")
    for text in (line.replace("analyst", "shuffler"), "", "x", line[:-1] + "é"):
        with pytest.raises(ParameterError, match="analyst must be the public key"):
            PublicKey.from_text(text, "analyst")
    with pytest.raises(ParameterError, match="shuffler must be the public key"):
        PublicKey.from_text(line, "shuffler")


def test_every_typo_in_a_key_is_refused(public: PublicKey, tmp_path: Path) -> None:
    # With no checksum any of these sealed a collection to nobody, as every 32 bytes are a point of X25519.
    line = public.to_text()
    start = line.index(":") + 1
    for at in range(start, len(line)):
        other = "A" if line[at] != "A" else "B"
        with pytest.raises(ParameterError, match="analyst must be"):
            PublicKey.from_text(line[:at] + other + line[at + 1 :], "analyst")
    for at in range(start, len(line) - 5):
        if line[at] != line[at + 1]:
            swapped = line[:at] + line[at + 1] + line[at] + line[at + 2 :]
            with pytest.raises(ParameterError, match="without a typo"):
                PublicKey.from_text(swapped, "analyst")
    path = tmp_path / "key"
    SecretKey("analyst", b"s" * 32).to_file(path)
    written = path.read_text()
    path.write_text(written[:50] + ("A" if written[50] != "A" else "B") + written[51:])
    with pytest.raises(ParameterError, match="without a typo") as caught:
        SecretKey.from_file(path, "analyst")
    assert written[30:] not in str(caught.value)


def test_keys_name_their_algorithms(tmp_path: Path) -> None:
    for cipher, number in CIPHERS.items():
        key = SecretKey("analyst", b"s" * 32, cipher)
        written = base64.b64decode(key.public.to_text().partition(":")[2])
        assert written[:6] == b"".join(part.to_bytes(2, "big") for part in (0x20, 1, number))
        assert PublicKey.from_text(key.public.to_text(), "analyst") == key.public
        path = tmp_path / cipher
        key.to_file(path)
        again = SecretKey.from_file(path, "analyst")
        assert (again.cipher, again.public) == (cipher, key.public)
        assert again.opened(key.public.seal(b"yes", b"context"), b"context") == b"yes"
    one, other = (SecretKey("analyst", b"s" * 32, cipher) for cipher in CIPHERS)
    assert other.opened(one.public.seal(b"yes", b"context"), b"context") is None
    prefix = "sfumato-analyst-public-2:"
    content = (0x20).to_bytes(2, "big") + b"\x00\x01\x00\x01" + one.public.point + one.public.token
    checksum = hashlib.sha256(prefix.encode() + content).digest()[:4]
    with pytest.raises(ParameterError, match="name algorithms that are known here, but it names 32, 1 and 1"):
        PublicKey.from_text(prefix + base64.b64encode(content + checksum).decode(), "analyst")
    with pytest.raises(ParameterError, match="cipher must be one of chacha20-poly1305, aes-256-gcm"):
        SecretKey.generate("analyst", "rot13")


def test_aes_seals_open_by_hand_and_the_other_way_round(secret: X25519PrivateKey) -> None:
    public = PublicKey("analyst", secret.public_key().public_bytes_raw(), bytes(32), "aes-256-gcm")
    suite = SUITE[:-1] + b"\x02"
    for size in (0, 1, 17, 1000):
        message, info = os.urandom(size), os.urandom(size % 50)
        sealed = public.seal(message, info)
        assert len(sealed) == size + SEAL
        assert opened_by_hand(sealed, secret, info, AESGCM, suite) == message
        by_hand = sealed_by_hand(message, public.point, info, os.urandom(32), kind=AESGCM, suite=suite)
        assert unsealed(by_hand, secret, info, "aes-256-gcm") == message
        assert unsealed(by_hand, secret, info) is None


@cases(
    ("role", "point", "token", "rule"),
    [
        ("clerk", bytes(32), bytes(32), "role must be one of"),
        ("analyst", bytes(31), bytes(32), "point must be 32 bytes"),
        ("analyst", b"\x09" + bytes(31), bytes(33), "token must be 32 bytes"),
        ("analyst", bytes(32), bytes(32), "point must be a key"),  # of order 1: everybody shares its secret
        ("analyst", b"\x01" + bytes(31), bytes(32), "point must be a key"),
    ],
)
def test_what_is_no_key_is_refused(role: str, point: bytes, token: bytes, rule: str) -> None:
    with pytest.raises(ParameterError, match=rule):
        PublicKey(role, point, token)
