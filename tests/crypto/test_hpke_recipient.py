"""Opening many messages of one context: what `hpke` opens and refuses, one by one, and nothing else."""

from __future__ import annotations

import os

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from sfumato.crypto.hpke import unsealed
from sfumato.crypto.hpke_recipient import Recipient
from sfumato.crypto.secret_key import SecretKey
from tests.cases import cases

ORDERS = ("00" * 32, "01" + "00" * 31, "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800")
"""Points of small order, whose shared secret everybody knows (RFC 7748, section 6.1)."""


@cases("cipher", ["chacha20-poly1305", "aes-256-gcm"])
def test_it_opens_what_one_by_one_opens(cipher: str) -> None:
    owner = SecretKey.generate("analyst", cipher)
    for size in (0, 1, 8, 500):
        context, message = os.urandom(size), os.urandom(size)
        recipient = owner.recipient(context)
        sealed = owner.public.seal(message, context)
        assert recipient.opened(sealed) == owner.opened(sealed, context) == message
        # It can be used again, also after a message that was refused.
        assert recipient.opened(b"") is None
        assert recipient.opened(owner.public.seal(b"again", context)) == b"again"


@cases("cipher", ["chacha20-poly1305", "aes-256-gcm"])
def test_it_refuses_what_one_by_one_refuses(cipher: str) -> None:
    owner, other = SecretKey.generate("analyst", cipher), SecretKey.generate("analyst", cipher)
    recipient, sealed = owner.recipient(b"context"), owner.public.seal(b"yes", b"context")
    strange = [sealed[:cut] for cut in (0, 31, 32, 47, len(sealed) - 1)]
    strange += [sealed + b"\x00", bytes(100), other.public.seal(b"yes", b"context")]
    strange += [owner.public.seal(b"yes", b"contexts")]
    strange += [bytes.fromhex(point) + sealed[32:] for point in ORDERS]
    for place in range(len(sealed)):
        altered = bytearray(sealed)
        altered[place] ^= 1
        strange.append(bytes(altered))
    for one in strange:
        assert recipient.opened(one) is None
        assert owner.opened(one, b"context") is None


def test_keys_with_every_byte_are_combined_with_the_pads() -> None:
    key = X25519PrivateKey.from_private_bytes(bytes(range(32)))
    owner, recipient = SecretKey("analyst", b"s" * 32), Recipient(key, b"")
    for _ in range(20):
        sealed = owner.public.seal(b"", b"")
        assert recipient.opened(sealed) == unsealed(sealed, key, b"") is None
        assert owner.recipient(b"").opened(sealed) == b""
