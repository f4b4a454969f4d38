"""Oblivious pseudorandom functions of RFC 9497, with P-256 and SHA-256: a server's key, a client's input.

The client learns the function's value at its input; the server learns nothing of the input or the value. In
the verifiable mode a proof shows that the server used the key whose public half the client knows.

>>> key = OprfKey.derived(bytes(32), b"example")
>>> blinding = blind(b"a value")
>>> answer, proof = key.evaluate([blinding.element])
>>> outputs = finalize([blinding], answer, proof, key.public)
>>> outputs == [key.output(b"a value")]
True

Guarantee: a pseudorandom function while the one-more gap Diffie-Hellman problem is hard in the group, in the
random oracle model (RFC 9497, section 7.2). Products with secret scalars are computed by the library
``cryptography`` in constant time. Who holds the key can evaluate the function at all inputs.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, final

from sfumato import _check
from sfumato.crypto.p256 import (
    GENERATOR,
    ORDER,
    Point,
    add,
    decoded,
    encoded,
    hash_to_curve,
    hash_to_scalar,
    multiply,
)

__all__ = ["BlindedInput", "OprfKey", "blind", "finalize"]

_CONTEXT: Final = b"OPRFV1-\x01-P256-SHA256"
_BYTES: Final = 32
_LONGEST: Final = (1 << 16) - 1
_REMEDY: Final = "ask the server again; one that fails is not the one whose key you know"


@final
@dataclass(frozen=True, slots=True)
class BlindedInput:
    """An input with the secret that blinds it.

    Parameters
    ----------
    value : bytes
    scalar : int
        The secret; used once.
    element : bytes
        What the server gets: 33 bytes.

    Examples
    --------
    >>> len(blind(b"a value").element)
    33
    """

    value: bytes = field(repr=False)
    scalar: int = field(repr=False)
    element: bytes


@final
@dataclass(frozen=True, slots=True)
class OprfKey:
    """The server's secret key.

    Parameters
    ----------
    scalar : int
        From 1 to below the order of the group.

    Examples
    --------
    >>> len(OprfKey.generate().public)
    33
    """

    scalar: int = field(repr=False)

    def __post_init__(self) -> None:
        if not 0 < self.scalar < ORDER:
            found, remedy = "it is not", "use OprfKey.generate"
            _check.refuse_state("scalar", "be from 1 to below the order", found, remedy)

    @classmethod
    def generate(cls) -> OprfKey:
        """Return a new key from the operating system's randomness.

        Returns
        -------
        OprfKey
        """
        return cls(1 + secrets.randbelow(ORDER - 1))

    @classmethod
    def derived(cls, seed: bytes, info: bytes) -> OprfKey:
        """Return the key that a secret seed and a public text name (RFC 9497, section 3.2.1).

        Parameters
        ----------
        seed : bytes
            32 bytes.
        info : bytes

        Returns
        -------
        OprfKey
        """
        given: object = seed
        if not isinstance(given, bytes) or len(given) != _BYTES:
            _check.refuse_type("seed", f"be {_BYTES} bytes", seed, "draw them at random")
        text = seed + _prefixed(info)
        for counter in range(256):
            found = hash_to_scalar(text + bytes([counter]), b"DeriveKeyPair" + _CONTEXT)
            if found:
                return cls(found)
        raise AssertionError("256 hashes modulo a prime were 0")  # pragma: no cover

    @property
    def public(self) -> bytes:
        """The public key, 33 bytes."""
        return encoded(multiply(self.scalar, GENERATOR))

    def evaluate(
        self, elements: Sequence[bytes], *, randomness: int | None = None
    ) -> tuple[list[bytes], bytes]:
        """Return the server's answer to blinded elements, and the proof for all of them.

        Parameters
        ----------
        elements : sequence of bytes
            At least one.
        randomness : int, optional
            Of the proof; drawn unless given. Only test vectors give it: twice the same reveals the key.

        Returns
        -------
        list of bytes
            In the order of the elements.
        bytes
            The proof, 64 bytes.

        Raises
        ------
        ParameterError
            If an element is not a point of the group.
        """
        points = _points("elements", elements)
        answers = [multiply(self.scalar, point) for point in points]
        public = multiply(self.scalar, GENERATOR)
        combined = _combined(public, points, answers)
        product = multiply(self.scalar, combined)
        nonce = 1 + secrets.randbelow(ORDER - 1) if randomness is None else randomness
        challenge = _challenge(
            public, combined, product, multiply(nonce, GENERATOR), multiply(nonce, combined)
        )
        response = (nonce - challenge * self.scalar) % ORDER
        proof = challenge.to_bytes(_BYTES, "big") + response.to_bytes(_BYTES, "big")
        return [encoded(answer) for answer in answers], proof

    def output(self, value: bytes) -> bytes:
        """Return the function's value at an input, as who holds the key computes it.

        Parameters
        ----------
        value : bytes

        Returns
        -------
        bytes
            32 bytes.
        """
        return _output(value, multiply(self.scalar, _hashed(value)))


def blind(value: bytes, *, scalar: int | None = None) -> BlindedInput:
    """Return a client's blinded input.

    Parameters
    ----------
    value : bytes
        At most 65535 bytes.
    scalar : int, optional
        Drawn unless given; only test vectors give it.

    Returns
    -------
    BlindedInput

    Examples
    --------
    >>> blind(b"a value").element != blind(b"a value").element
    True
    """
    secret = 1 + secrets.randbelow(ORDER - 1) if scalar is None else scalar
    return BlindedInput(value, secret, encoded(multiply(secret, _hashed(value))))


def finalize(
    inputs: Sequence[BlindedInput], answers: Sequence[bytes], proof: bytes, public: bytes
) -> list[bytes]:
    """Return the function's values, after the server's proof has been verified.

    Parameters
    ----------
    inputs : sequence of BlindedInput
    answers : sequence of bytes
        Of `OprfKey.evaluate`, in the same order.
    proof : bytes
    public : bytes
        The server's public key, from a place that is not this server's answer.

    Returns
    -------
    list of bytes
        32 bytes for each input.

    Raises
    ------
    ParameterError
        If the proof fails, or an element is not a point of the group.

    Examples
    --------
    >>> key, blinding = OprfKey.generate(), blind(b"a value")
    >>> answers, proof = key.evaluate([blinding.element])
    >>> len(finalize([blinding], answers, proof, key.public)[0])
    32
    """
    if len(inputs) != len(answers) or not inputs:
        found = f"there are {len(answers)} for {len(inputs)} inputs"
        _check.refuse_state("answers", "be one for each input", found, _REMEDY)
    blinded = [decoded(each.element) for each in inputs]
    points = _points("answers", answers)
    _verify(_points("public", [public])[0], blinded, points, proof)
    return [
        _output(each.value, multiply(pow(each.scalar, -1, ORDER), point))
        for each, point in zip(inputs, points, strict=True)
    ]


def _verify(public: Point, blinded: Sequence[Point], answers: Sequence[Point], proof: bytes) -> None:
    given: object = proof
    if not isinstance(given, bytes) or len(given) != 2 * _BYTES:
        _check.refuse_type("proof", f"be {2 * _BYTES} bytes", given, _REMEDY)
    challenge, response = (int.from_bytes(part, "big") for part in (proof[:_BYTES], proof[_BYTES:]))
    with suppress(ValueError):  # a number is no scalar, or a sum is infinity: in no honest proof
        combined = _combined(public, blinded, answers)
        product = _weighted(_weights(public, blinded, answers), answers)
        first = add(multiply(response, GENERATOR), multiply(challenge, public))
        second = add(multiply(response, combined), multiply(challenge, product))
        if _challenge(public, combined, product, first, second) == challenge:  # both are public
            return
    _check.refuse_state("proof", "be that of the public key", "it is not", _REMEDY)


def _points(name: str, elements: Sequence[bytes]) -> list[Point]:
    if not elements:
        _check.refuse_state(name, "hold at least one element", "it is empty", "pass one")
    try:
        return [decoded(element) for element in elements]
    except (TypeError, ValueError):
        _check.refuse_state(name, "be points of P-256 in 33 bytes", "one is not", _REMEDY)


def _hashed(value: bytes) -> Point:
    given: object = value
    if not isinstance(given, bytes) or len(given) > _LONGEST:
        _check.refuse_type("value", f"be at most {_LONGEST} bytes", value, "hash it first")
    return hash_to_curve(value, b"HashToGroup-" + _CONTEXT)


def _output(value: bytes, point: Point) -> bytes:
    return hashlib.sha256(_prefixed(value) + _prefixed(encoded(point)) + b"Finalize").digest()


def _prefixed(part: bytes) -> bytes:
    return len(part).to_bytes(2, "big") + part


def _weights(public: Point, blinded: Sequence[Point], answers: Sequence[Point]) -> list[int]:
    name = b"Seed-" + _CONTEXT
    seed = hashlib.sha256(_prefixed(encoded(public)) + _prefixed(name)).digest()
    return [
        hash_to_scalar(
            _prefixed(seed)
            + number.to_bytes(2, "big")
            + _prefixed(encoded(one))
            + _prefixed(encoded(other))
            + b"Composite",
            b"HashToScalar-" + _CONTEXT,
        )
        for number, (one, other) in enumerate(zip(blinded, answers, strict=True))
    ]


def _weighted(weights: Sequence[int], points: Sequence[Point]) -> Point:
    total = multiply(weights[0], points[0])
    for weight, point in zip(weights[1:], points[1:], strict=True):
        total = add(total, multiply(weight, point))
    return total


def _combined(public: Point, blinded: Sequence[Point], answers: Sequence[Point]) -> Point:
    return _weighted(_weights(public, blinded, answers), blinded)


def _challenge(*points: Point) -> int:
    text = b"".join(_prefixed(encoded(point)) for point in points) + b"Challenge"
    return hash_to_scalar(text, b"HashToScalar-" + _CONTEXT)
