"""The public keys that aggregators and collectors publish."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

from sfumato.crypto.hpke_base import AES_128_GCM, CHACHA20_POLY1305, full_order
from sfumato.federated.dap.tls_syntax import MalformedMessage, Reader, decoded, opaque, uint

__all__ = ["HpkeConfig", "decoded_configs", "encoded_configs"]

_X25519: Final = 0x0020
_HKDF_SHA256: Final = 0x0001


@final
@dataclass(frozen=True, slots=True)
class HpkeConfig:
    """One public key, and the algorithms that it is for.

    Parameters
    ----------
    id : int
        What ciphertexts call it, from 0 to 255.
    public_key : bytes
        An X25519 key, 32 bytes, if the algorithms are known ones.
    kem, kdf, aead : int, optional
        Registered numbers; DHKEM(X25519, HKDF-SHA256), HKDF-SHA256 and AES-128-GCM by default.

    Examples
    --------
    >>> HpkeConfig(7, bytes(range(32))).usable, HpkeConfig(7, bytes(32)).usable
    (True, False)
    """

    id: int
    public_key: bytes
    kem: int = _X25519
    kdf: int = _HKDF_SHA256
    aead: int = AES_128_GCM

    @property
    def usable(self) -> bool:
        """Whether its algorithms are known here, and it is no point of small order."""
        known = self.kem == _X25519 and self.kdf == _HKDF_SHA256
        sealing = known and self.aead in (AES_128_GCM, CHACHA20_POLY1305)
        return sealing and full_order(self.public_key)

    def to_bytes(self) -> bytes:
        """Return the encoding."""
        algorithms = uint(self.kem, 2) + uint(self.kdf, 2) + uint(self.aead, 2)
        return uint(self.id, 1) + algorithms + opaque(self.public_key, 2)

    @staticmethod
    def read(reader: Reader) -> HpkeConfig:
        """Read a configuration."""
        number, kem, kdf, aead = reader.uint(1), reader.uint(2), reader.uint(2), reader.uint(2)
        return HpkeConfig(number, reader.opaque(2, minimum=1), kem, kdf, aead)


def encoded_configs(*configs: HpkeConfig) -> bytes:
    """Return a list of configurations, the preferred one first.

    Examples
    --------
    >>> decoded_configs(encoded_configs(HpkeConfig(7, bytes(32))))[0].id
    7
    """
    return opaque(b"".join(one.to_bytes() for one in configs), 2)


def decoded_configs(data: bytes) -> tuple[HpkeConfig, ...]:
    """Return the configurations of a list, which is not empty and has no id twice.

    Examples
    --------
    >>> decoded_configs(bytes(2))
    Traceback (most recent call last):
    ...
    sfumato.federated.dap.tls_syntax.MalformedMessage: a list of keys is empty
    """
    found = decoded(data, lambda reader: reader.vector(2, HpkeConfig.read))
    if not found:
        raise MalformedMessage("a list of keys is empty")
    if len({one.id for one in found}) < len(found):
        raise MalformedMessage("two keys have one id")
    return found
