"""Encryption and authentication for the packages that send or store secrets.

`hpke` seals a message for a public key (RFC 9180), `secret_key` opens it and is stored in a file that only
its owner can read, and `sealed_file` holds a small encrypted file that is replaced as a whole.
`secret_sharing` cuts a secret into shares (Shamir) over the field of `prime_field`, and `mask_stream` expands
a seed to the mask of a vector. All ciphers, hashes and curves are those of the library ``cryptography``, but
for TurboSHAKE128 in `xof`, which it does not have: that is compiled here with the fields of `fields`.

>>> from sfumato.crypto import SecretKey
>>> key = SecretKey.generate("analyst")
>>> key.opened(key.public.seal(b"yes", b"context"), b"context")
b'yes'
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato._lazy import attach

if TYPE_CHECKING:
    from sfumato.crypto.hpke import PublicKey
    from sfumato.crypto.sealed_file import SealedFile
    from sfumato.crypto.secret_key import SecretKey

__all__ = ["PublicKey", "SealedFile", "SecretKey"]

__getattr__, __dir__ = attach(
    __name__,
    {
        "PublicKey": "sfumato.crypto.hpke",
        "SealedFile": "sfumato.crypto.sealed_file",
        "SecretKey": "sfumato.crypto.secret_key",
    },
)
