"""The oblivious pseudorandom function: vectors of RFC 9497, appendix A.3.2, and forgeries."""

from __future__ import annotations

import random
from typing import Any, Final

import pytest

from sfumato.crypto import p256
from sfumato.crypto.oprf import BlindedInput, OprfKey, blind, finalize
from sfumato.crypto.p256 import GENERATOR, ORDER, add, decoded, encoded, hash_to_curve, multiply
from sfumato.errors import ParameterError
from tests.cases import cases

SECRET: Final = "ca5d94c8807817669a51b196c34c1b7f8442fde4334a7121ae4736364312fca6"
PUBLIC: Final = "03e17e70604bcabe198882c0a1f27a92441e774224ed9c702e51dd17038b102462"
BLIND: Final = "3338fa65ec36e0290022b48eb562889d89dbfa691d1cde91517fa222ed7ad364"
OTHER: Final = "f9db001266677f62c095021db018cd8cbb55941d4073698ce45c405d1348b7b1"
VECTORS: Final[list[dict[str, Any]]] = [
    {
        "input": ["00"],
        "blind": [BLIND],
        "blinded": ["02dd05901038bb31a6fae01828fd8d0e49e35a486b5c5d4b4994013648c01277da"],
        "evaluated": ["0209f33cab60cf8fe69239b0afbcfcd261af4c1c5632624f2e9ba29b90ae83e4a2"],
        "proof": "e7c2b3c5c954c035949f1f74e6bce2ed539a3be267d1481e9ddb178533df4c26"
        "64f69d065c604a4fd953e100b856ad83804eb3845189babfa5a702090d6fc5fa",
        "random": OTHER,
        "output": ["0412e8f78b02c415ab3a288e228978376f99927767ff37c5718d420010a645a1"],
    },
    {
        "input": ["5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a"],
        "blind": [BLIND],
        "blinded": ["03cd0f033e791c4d79dfa9c6ed750f2ac009ec46cd4195ca6fd3800d1e9b887dbd"],
        "evaluated": ["030d2985865c693bf7af47ba4d3a3813176576383d19aff003ef7b0784a0d83cf1"],
        "proof": "2787d729c57e3d9512d3aa9e8708ad226bc48e0f1750b0767aaff73482c44b8d"
        "2873d74ec88aebd3504961acea16790a05c542d9fbff4fe269a77510db00abab",
        "random": OTHER,
        "output": ["771e10dcd6bcd3664e23b8f2a710cfaaa8357747c4a8cbba03133967b5c24f18"],
    },
    {
        "input": ["00", "5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a"],
        "blind": [BLIND, OTHER],
        "blinded": [
            "02dd05901038bb31a6fae01828fd8d0e49e35a486b5c5d4b4994013648c01277da",
            "03462e9ae64cae5b83ba98a6b360d942266389ac369b923eb3d557213b1922f8ab",
        ],
        "evaluated": [
            "0209f33cab60cf8fe69239b0afbcfcd261af4c1c5632624f2e9ba29b90ae83e4a2",
            "02bb24f4d838414aef052a8f044a6771230ca69c0a5677540fff738dd31bb69771",
        ],
        "proof": "bdcc351707d02a72ce49511c7db990566d29d6153ad6f8982fad2b435d6ce4d6"
        "0da1e6b3fa740811bde34dd4fe0aa1b5fe6600d0440c9ddee95ea7fad7a60cf2",
        "random": "350e8040f828bf6ceca27405420cdf3d63cb3aef005f40ba51943c8026877963",
        "output": [
            "0412e8f78b02c415ab3a288e228978376f99927767ff37c5718d420010a645a1",
            "771e10dcd6bcd3664e23b8f2a710cfaaa8357747c4a8cbba03133967b5c24f18",
        ],
    },
]


@pytest.mark.parametrize("vector", VECTORS, ids=("one", "long", "batch"))
def test_the_vectors_of_the_standard_are_met(vector: dict[str, Any]) -> None:
    key = OprfKey.derived(bytes([0xA3]) * 32, b"test key")
    assert (f"{key.scalar:064x}", key.public.hex()) == (SECRET, PUBLIC)
    values = [bytes.fromhex(each) for each in vector["input"]]
    blinds = [int(each, 16) for each in vector["blind"]]
    inputs = [blind(value, scalar=scalar) for value, scalar in zip(values, blinds, strict=True)]
    assert [each.element.hex() for each in inputs] == vector["blinded"]
    nonce = int(vector["random"], 16)
    answers, proof = key.evaluate([each.element for each in inputs], randomness=nonce)
    assert [answer.hex() for answer in answers] == vector["evaluated"]
    assert proof.hex() == vector["proof"]
    outputs = finalize(inputs, answers, proof, key.public)
    assert [output.hex() for output in outputs] == vector["output"]
    assert outputs == [key.output(value) for value in values]


def test_products_agree_with_sums() -> None:
    total = GENERATOR
    for scalar in range(2, 9):
        total = add(total, GENERATOR)
        assert multiply(scalar, GENERATOR) == total
        assert decoded(encoded(total)) == total
    assert multiply(1, total) == total
    assert multiply(ORDER - 1, total) == (total[0], 2**256 - 2**224 + 2**192 + 2**96 - 1 - total[1])
    assert add(multiply(ORDER - 2, total), total) == multiply(ORDER - 1, total)
    with pytest.raises(ValueError, match="infinity"):
        add(total, multiply(ORDER - 1, total))
    for scalar in (-1, 0, ORDER, ORDER + 1, 1 << 256):
        with pytest.raises(ValueError, match="a scalar is from 1 to below the order"):
            multiply(scalar, total)


def asked() -> tuple[OprfKey, BlindedInput, list[bytes], bytes]:
    key, blinding = OprfKey.generate(), blind(b"a value")
    answers, proof = key.evaluate([blinding.element])
    return key, blinding, answers, proof


def test_another_key_or_a_changed_byte_is_refused() -> None:
    key, blinding, answers, proof = asked()
    other = OprfKey.generate()
    with pytest.raises(ParameterError, match="proof must be that of the public key"):
        finalize([blinding], answers, proof, other.public)
    with pytest.raises(ParameterError, match="proof must be that of the public key"):
        finalize([blinding], other.evaluate([blinding.element])[0], proof, key.public)
    rng = random.Random(1)
    for _ in range(40):
        changed = bytearray(proof)
        changed[rng.randrange(64)] ^= 1 << rng.randrange(8)
        with pytest.raises(ParameterError, match="proof must be that of the public key"):
            finalize([blinding], answers, bytes(changed), key.public)
        twisted = bytearray(answers[0])
        twisted[rng.randrange(33)] ^= 1 << rng.randrange(8)
        with pytest.raises(ParameterError, match=r"(points of P-256|proof must be)"):
            finalize([blinding], [bytes(twisted)], proof, key.public)


def test_no_proof_is_that_of_another_number_modulo_the_order() -> None:
    key, blinding, answers, proof = asked()
    none, order = bytes(32), ORDER.to_bytes(32, "big")
    # The last one's sum of points is the point at infinity: a server that knows its key can ask for that.
    infinite = (5).to_bytes(32, "big") + (-5 * key.scalar % ORDER).to_bytes(32, "big")
    ends = [end + proof[32:] for end in (none, order)] + [proof[:32] + end for end in (none, order)]
    for forged in (*ends, infinite):
        with pytest.raises(ParameterError, match="proof must be that of the public key"):
            finalize([blinding], answers, forged, key.public)


@cases("highest", [False, True])
def test_secret_scalars_are_drawn_from_1_to_below_the_order(
    monkeypatch: pytest.MonkeyPatch, *, highest: bool
) -> None:
    drawn = []

    def randbelow(bound: int) -> int:
        drawn.append(bound)
        return bound - 1 if highest else 0

    monkeypatch.setattr("secrets.randbelow", randbelow)
    scalar = ORDER - 1 if highest else 1
    blinding = blind(b"a value")
    assert (OprfKey.generate().scalar, blinding.scalar) == (scalar, scalar)
    key = OprfKey(77)
    answers, proof = key.evaluate([blinding.element])
    assert proof == key.evaluate([blinding.element], randomness=scalar)[1]
    assert finalize([blinding], answers, proof, key.public) == [key.output(b"a value")]
    assert drawn == [ORDER - 1] * 3


def test_coordinates_are_below_the_prime() -> None:
    prime = 2**256 - 2**224 + 2**192 + 2**96 - 1
    for x in (0, 5):
        point = decoded(b"\3" + x.to_bytes(32, "big"))
        assert point[0] == x
        assert point[1] % 2 == 1
        for lead in (b"\2", b"\3"):
            with pytest.raises(ValueError, match="no point of P-256"):
                decoded(lead + (x + prime).to_bytes(32, "big"))
    with pytest.raises(ValueError, match="33 bytes"):
        decoded(b"\2" + bytes(33))


def test_a_hash_is_mapped_where_the_map_has_no_denominator(monkeypatch: pytest.MonkeyPatch) -> None:
    # RFC 9380, section 6.6.2: x = B / (Z A) for u = 0, with the even root.
    prime = 2**256 - 2**224 + 2**192 + 2**96 - 1
    x = 0x5AC635D8AA3A93E7B3EBBD55769886BC651D06B0CC53B0F63BCE3C3E27D2604B * pow(30, -1, prime) % prime
    monkeypatch.setattr(p256, "_expanded", lambda *_: bytes(96))
    assert hash_to_curve(b"", b"") == multiply(2, decoded(b"\2" + x.to_bytes(32, "big")))


def test_malformed_parts_are_refused() -> None:
    key, blinding, answers, proof = asked()
    for act, words in (
        (lambda: key.evaluate([]), "at least one"),
        (lambda: key.evaluate([b"\4" + bytes(32)]), "points of P-256"),
        (lambda: key.evaluate([b"\2" + b"\xff" * 32]), "points of P-256"),
        (lambda: finalize([blinding], [], proof, key.public), "one for each input"),
        (lambda: finalize([blinding], answers, proof[1:], key.public), "64 bytes"),
        (lambda: finalize([blinding], answers, bytes(64), key.public), "that of the public key"),
        (lambda: finalize([], [], proof, key.public), "one for each input"),
        (lambda: finalize([blinding], answers, proof + b"0", key.public), "64 bytes"),
        (lambda: finalize([blinding], answers, "p" * 64, key.public), "64 bytes"),  # type: ignore[arg-type]
        (lambda: finalize([blinding], answers, proof, b""), "public must be points of P-256"),
        (lambda: blind(bytes(1 << 16)), "at most 65535 bytes"),
        (lambda: blind("text"), "at most 65535 bytes"),  # type: ignore[arg-type]
        (lambda: OprfKey(0), "from 1 to below the order"),
        (lambda: OprfKey(ORDER), "from 1 to below the order"),
        (lambda: OprfKey.derived(b"short", b""), "32 bytes"),
    ):
        with pytest.raises(ParameterError, match=words):
            act()
    assert len(blind(bytes((1 << 16) - 1)).element) == 33
    assert repr(key) == "OprfKey()"
    assert repr(blinding) == f"BlindedInput(element={blinding.element!r})"
