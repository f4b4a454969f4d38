"""STAR: a server reads the values that at least k clients report, and not the rarer ones.

>>> from sfumato.crypto.oprf import OprfKey, blind, finalize
>>> plan = Star(threshold=3, epoch=b"2026-11", value_bytes=16)
>>> key = OprfKey.generate()
>>> def report(value: bytes) -> bytes:
...     blinding = blind(plan.oprf_input(value))
...     answers, proof = key.evaluate([blinding.element])
...     return plan.report(value, randomness=finalize([blinding], answers, proof, key.public)[0])
>>> found = plan.aggregate([report(value) for value in [b"red"] * 4 + [b"blue"] * 2])
>>> {value: revealed.count for value, revealed in found.revealed.items()}, found.hidden
({b'red': 4}, (2,))

This is threshold reporting (k-anonymity of values), **not** differential privacy: there is no privacy loss to
charge. One client more may turn a hidden value into a shown one, and counts are exact.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, final

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESSIV
from numpy.typing import NDArray

from sfumato import _check
from sfumato.crypto.prime_field import PRIME, multiply, reduced
from sfumato.crypto.secret_sharing import combine, limbs

__all__ = ["RevealedValue", "Star", "StarResult"]

_SEED: Final = 16
_TAG: Final = 16
_LIMBS: Final = limbs(_SEED)
_HEAD: Final = 1 + 8 + _TAG + 4 + 8 * _LIMBS
_LARGEST: Final = 1 << 16
_ATTEMPTS: Final = 64
"""Sets of shares of one tag that are tried before its reports are refused."""
_Words = NDArray[np.uint64]


@final
@dataclass(frozen=True, slots=True)
class RevealedValue:
    """A value that reached the threshold.

    Parameters
    ----------
    count : int
        Valid reports.
    data : tuple of bytes
        What came with them, in the order of the reports.

    Examples
    --------
    >>> RevealedValue(2, (b"", b"")).count
    2
    """

    count: int
    data: tuple[bytes, ...]


@final
@dataclass(frozen=True, slots=True)
class StarResult:
    """What the server learns of a batch of reports.

    Parameters
    ----------
    revealed : dict of bytes to RevealedValue
        Most frequent first.
    hidden : tuple of int
        The number of reports under each tag that was not opened, falling: this the server sees too.
    refused : dict of str to int
        How many reports were refused, by reason.

    Examples
    --------
    >>> StarResult({}, (2, 1), {}).hidden
    (2, 1)
    """

    revealed: dict[bytes, RevealedValue]
    hidden: tuple[int, ...]
    refused: dict[str, int]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Star:
    """The public parameters of a collection, a client's report and the server's aggregation.

    Parameters
    ----------
    threshold : int
        How many reports of one value open it, from 2 to 65536.
    epoch : bytes
        Names the collection; reports of another are refused, and their tags are unrelated.
    value_bytes : int
        The longest value; all are padded to it.
    data_bytes : int
        The longest data that comes with a value, padded likewise.

    Notes
    -----
    Guarantee, in the random oracle model: the reports of fewer than ``threshold`` clients with one value show
    that they have the same value, and nothing else of it, to whoever cannot guess the value's randomness.
    The share of each is a value of one polynomial, whose coefficients are hashes of the secret; any fewer
    than ``threshold`` of them are uniform.

    *Who can guess.* With the randomness of an oblivious pseudorandom function a guess costs a question to its
    key holder: that server must not collude with the aggregator, answers once for each client, and replaces
    its key after each epoch. With `local_randomness` anybody can try all likely values: it protects
    only values that nobody can list, and never words, numbers or addresses.

    *What is seen anyway.* The server sees the size of each group of equal hidden values. Nothing hides how
    many reports came; who sent a report is up to the channel. A group of colluders that report a value opens
    it with so many fewer honest reports.

    References
    ----------
    Davidson, Snyder, Quirk, Genereux, Livshits, Haddadi (2022), "STAR: secret sharing for private threshold
    aggregation reporting". Here secret, tag and coefficients all follow from one seed, so that the server
    verifies every share once a value is open; data is encrypted by AES-SIV, which no repeated key breaks.

    Examples
    --------
    >>> plan = Star(threshold=2, epoch=b"1", value_bytes=8)
    >>> report = plan.report(b"a", randomness=plan.local_randomness(b"a"))
    >>> plan.aggregate([report]).hidden
    (1,)
    """

    threshold: int
    epoch: bytes
    value_bytes: int
    data_bytes: int = 0

    def __post_init__(self) -> None:
        if _check.integer("threshold", self.threshold, minimum=2) > _LARGEST:
            _check.refuse("threshold", f"be at most {_LARGEST}", self.threshold, "a lower one hides enough")
        given: object = self.epoch
        if not isinstance(given, bytes) or len(given) > 255:
            _check.refuse_type("epoch", "be at most 255 bytes", given, "hash it first")
        for name, least in (("value_bytes", 1), ("data_bytes", 0)):
            if _check.integer(name, getattr(self, name), minimum=least) > _LARGEST - 1:
                _check.refuse(name, f"be below {_LARGEST}", getattr(self, name), "report a hash")

    @property
    def report_bytes(self) -> int:
        """How many bytes each report has."""
        return _HEAD + 16 + 4 + self.value_bytes + self.data_bytes

    def oprf_input(self, value: bytes) -> bytes:
        """Return what the client asks the oblivious pseudorandom function for.

        Parameters
        ----------
        value : bytes
            The client's.

        Returns
        -------
        bytes
        """
        return bytes([len(self.epoch)]) + self.epoch + self._fitting("value", value, self.value_bytes)

    def local_randomness(self, value: bytes) -> bytes:
        """Return randomness from the value alone: whoever guesses the value reads every report of it.

        Parameters
        ----------
        value : bytes

        Returns
        -------
        bytes
            32 bytes.
        """
        return hashlib.sha256(b"sfumato.star.local" + self.oprf_input(value)).digest()

    def report(self, value: bytes, *, randomness: bytes, data: bytes = b"") -> bytes:
        """Return a client's report.

        Parameters
        ----------
        value : bytes
        randomness : bytes
            32 bytes: the output of the oblivious pseudorandom function at `oprf_input`, or of
            `local_randomness`. Equal for equal values, or they are not counted together.
        data : bytes
            What the server reads too if it opens the value.

        Returns
        -------
        bytes
        """
        given: object = randomness
        if not isinstance(given, bytes) or len(given) != 32:
            _check.refuse_type("randomness", "be 32 bytes", given, "pass the function's output")
        seed = self._derived(b"seed", randomness, _SEED)
        point = 1 + secrets.randbelow(1 << 32)
        share = self._share(seed, point)
        parts = (
            self._fitting("value", value, self.value_bytes),
            self._fitting("data", data, self.data_bytes),
        )
        sizes = (self.value_bytes, self.data_bytes)
        plain = b"".join(
            len(part).to_bytes(2, "big") + part.ljust(size, b"\0")
            for part, size in zip(parts, sizes, strict=True)
        )
        head = b"\1" + self._digest() + self._derived(b"tag", seed, _TAG)
        sealed = self._cipher(seed).encrypt(plain, [head])
        return b"".join([head, (point - 1).to_bytes(4, "big"), share.astype(">u8").tobytes(), sealed])

    def aggregate(self, reports: Iterable[bytes]) -> StarResult:
        """Open the values that at least ``threshold`` valid reports have.

        Parameters
        ----------
        reports : iterable of bytes
            One of each client; the channel keeps a client from sending more.

        Returns
        -------
        StarResult

        Notes
        -----
        A malformed or forged report is refused with its reason, and never stops the others. Where forged
        shares stand under the tag of an honest value, several sets of shares are tried.
        """
        refused: Counter[str] = Counter()
        groups: defaultdict[bytes, list[bytes]] = defaultdict(list)
        start = b"\1" + self._digest()
        received: Iterable[object] = reports
        for report in received:
            if not isinstance(report, bytes) or len(report) != self.report_bytes:
                refused["it is not bytes of the plan's length"] += 1
            elif not report.startswith(start):
                refused["it is of another plan"] += 1
            else:
                groups[report[9 : 9 + _TAG]].append(report)
        hidden: list[int] = []
        revealed: dict[bytes, RevealedValue] = {}
        for tag, seed, members in self._opened(groups):
            found = self._read(tag, seed, members, refused) if seed else None
            if found is None:
                hidden.append(len(members))
            else:
                revealed[found[0]] = found[1]
        ordered = sorted(revealed.items(), key=lambda item: -item[1].count)
        return StarResult(dict(ordered), tuple(sorted(hidden, reverse=True)), dict(refused))

    def _opened(self, groups: dict[bytes, list[bytes]]) -> Iterable[tuple[bytes, bytes | None, list[bytes]]]:
        """Return each group with its seed; those whose first shares fit are combined all at once."""
        known = {tag: self._distinct(members) for tag, members in groups.items()}
        large = [tag for tag, (points, _) in known.items() if len(points) >= self.threshold]
        first = [(known[tag][0][: self.threshold], known[tag][1][: self.threshold]) for tag in large]
        seeds: dict[bytes, bytes | None] = dict.fromkeys(groups)
        if large:
            points, shares = (np.stack(parts) for parts in zip(*first, strict=True))
            for tag, seed in zip(large, combine(points, shares, width=_SEED), strict=True):
                fits = self._derived(b"tag", seed, _TAG) == tag
                seeds[tag] = seed if fits else self._searched(tag, *known[tag])
        return [(tag, seeds[tag], members) for tag, members in groups.items()]

    def _searched(self, tag: bytes, points: _Words, shares: _Words) -> bytes | None:
        """Return the seed from another set of shares, if one of so many random ones fits."""
        chooser = secrets.SystemRandom()
        for _ in range(_ATTEMPTS):
            chosen = chooser.sample(range(len(points)), self.threshold)
            (seed,) = combine(points[chosen][None], shares[chosen][None], width=_SEED)
            if self._derived(b"tag", seed, _TAG) == tag:
                return seed
        return None

    @staticmethod
    def _distinct(members: Sequence[bytes]) -> tuple[_Words, _Words]:
        """Return the points and shares of a group, one for each point; no share that is out of the field."""
        points, shares = _parts(members)
        usable = np.flatnonzero((shares < PRIME).all(axis=1))
        _, index = np.unique(points[usable], return_index=True)
        chosen = usable[np.sort(index)]
        return points[chosen], shares[chosen]

    def _read(
        self, tag: bytes, seed: bytes, members: Sequence[bytes], refused: Counter[str]
    ) -> tuple[bytes, RevealedValue] | None:
        """Return an open group's value and data, or None if too few of its reports are valid."""
        points, shares = _parts(members)
        fits = (self._shares(seed, points) == shares).all(axis=1)
        cipher, head = self._cipher(seed), b"\1" + self._digest() + tag
        read: defaultdict[bytes, list[bytes]] = defaultdict(list)
        for member, right in zip(members, fits.tolist(), strict=True):
            if not right:
                refused["its share is forged"] += 1
                continue
            try:
                value, data = self._parsed(cipher.decrypt(member[_HEAD:], [head]))
            except (InvalidTag, ValueError):
                refused["its ciphertext is forged"] += 1
                continue
            read[value].append(data)
        if not read:
            return None
        value, data_of = max(read.items(), key=lambda item: len(item[1]))
        others = sum(map(len, read.values())) - len(data_of)
        if others:
            refused["its value is not that of its tag"] += others
        return (
            (value, RevealedValue(len(data_of), tuple(data_of))) if len(data_of) >= self.threshold else None
        )

    def _parsed(self, plain: bytes) -> tuple[bytes, bytes]:
        found, at = [], 0
        for size in (self.value_bytes, self.data_bytes):
            length = int.from_bytes(plain[at : at + 2], "big")
            part, padding = plain[at + 2 : at + 2 + length], plain[at + 2 + length : at + 2 + size]
            if length > size or any(padding):
                raise ValueError("the padding is not zero")
            found.append(part)
            at += 2 + size
        return found[0], found[1]

    def _shares(self, seed: bytes, points: _Words) -> _Words:
        """Return the values at the points of the polynomials whose value at 0 is the seed."""
        *coefficients, secret = np.array(self._polynomials(seed), np.uint64)
        total = np.zeros((len(points), _LIMBS), np.uint64)
        for row in coefficients:
            total = multiply(reduced(total + row), points[:, None])
        return reduced(total + secret)

    def _share(self, seed: bytes, point: int) -> _Words:
        """Return the values at one point, which plain integers compute faster than arrays of one."""
        total = [0] * _LIMBS
        for row in self._polynomials(seed):
            total = [(value * point + number) % PRIME for value, number in zip(total, row, strict=True)]
        return np.array(total, np.uint64)

    def _polynomials(self, seed: bytes) -> list[list[int]]:
        """Return the coefficients of each limb's polynomial, that of the highest power first."""
        stream = hashlib.shake_256(b"sfumato.star.shares" + self._digest() + seed)
        # 128 bits modulo the prime: a coefficient is uniform but for 2^-67.
        long = stream.digest(16 * _LIMBS * (self.threshold - 1))
        numbers = [int.from_bytes(long[at : at + 16], "big") % PRIME for at in range(0, len(long), 16)]
        secret = [int.from_bytes(seed[at : at + 7], "little") for at in range(0, _SEED, 7)]
        return [*(numbers[at : at + _LIMBS] for at in range(0, len(numbers), _LIMBS)), secret]

    def _cipher(self, seed: bytes) -> AESSIV:
        return AESSIV(self._derived(b"key", seed, 32))

    def _derived(self, purpose: bytes, secret: bytes, length: int) -> bytes:
        return hmac.digest(secret, b"sfumato.star." + purpose + self._digest(), "sha256")[:length]

    def _digest(self) -> bytes:
        sizes = (self.threshold, self.value_bytes, self.data_bytes)
        text = b"".join(size.to_bytes(4, "big") for size in sizes) + self.epoch
        return hashlib.sha256(b"sfumato.star.1" + text).digest()[:8]

    @staticmethod
    def _fitting(name: str, value: bytes, longest: int) -> bytes:
        given: object = value
        if not isinstance(given, bytes) or len(given) > longest:
            _check.refuse_type(
                name, f"be at most {longest} bytes", given, "raise the plan's size, or hash it"
            )
        return value


def _parts(members: Sequence[bytes]) -> tuple[_Words, _Words]:
    """Return the points and the shares of reports."""
    heads = np.frombuffer(b"".join(member[9 + _TAG : _HEAD] for member in members), np.uint8)
    rows = heads.reshape(len(members), 4 + 8 * _LIMBS)
    points = np.ascontiguousarray(rows[:, :4]).view(">u4")[:, 0].astype(np.uint64) + np.uint64(1)
    return points, np.ascontiguousarray(rows[:, 4:]).view(">u8").astype(np.uint64)
