"""A client of secure aggregation: a state machine that answers each message of the server once."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from typing import Final, final

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from numpy.typing import ArrayLike, NDArray

from sfumato import _check
from sfumato.crypto.mask_stream import SEED, MaskStream, word_type
from sfumato.crypto.secret_sharing import split
from sfumato.federated.secure_aggregation.active_roster import (
    ActiveRoster,
    check_survivors,
    delivered_sharers,
    key_context,
    read_evidence,
    read_roster,
    roster_sizes,
)
from sfumato.federated.secure_aggregation.bit_packing import packed
from sfumato.federated.secure_aggregation.identities import (
    advertised,
    agreed_list,
    check_identities,
    shared_list,
    verify_signature,
)
from sfumato.federated.secure_aggregation.masking import channel_key, mask_vector, pair_seed
from sfumato.federated.secure_aggregation.messages import (
    ENVELOPE,
    KEY,
    SERVER,
    SHARE,
    SIGNATURE,
    Message,
    bitmap,
    members,
)
from sfumato.federated.secure_aggregation.parameters import SecureAggregation
from sfumato.numerics.randomness.source import SecureSource

__all__ = ["SecureAggregationClient"]

_NONCE: Final = bytes(12)
"""Each key seals one envelope only."""
_START, _ADVERTISED, _SHARED, _MASKED, _CONSENTED, _DONE = range(6)

_REMEDY: Final = "end this round"


@final
class SecureAggregationClient:
    """One client in one round; its keys are made new for it and used in no other.

    Parameters
    ----------
    plan : SecureAggregation
        What all agreed on. A client must see to it that no round number comes twice.
    client : int
        Its number, from 0.
    identity : Ed25519PrivateKey or None, default None
        In the active mode, what it signs with.
    identities : mapping of int to bytes, or None, default None
        In the active mode, the Ed25519 public key of every client, from a register that is not the server.

    Raises
    ------
    ParameterError
        If the number is out of range, or identities are missing or not needed.

    Notes
    -----
    The server sends, in order: ``roster``, ``delivery``, ``survivors`` and, in the active mode, ``evidence``.
    The client answers each once and refuses what is malformed, out of order, or of another round; a refused
    message changes nothing. It reveals for each neighbor either the share of its self-mask, or that of its
    key and the seed that the two agreed on, in one answer to one list of survivors, and none if fewer than
    the minimum survive.

    Examples
    --------
    >>> plan = SecureAggregation(clients=3, length=1, bounds=(0, 9), bits=6, minimum_survivors=2)
    >>> client = SecureAggregationClient(plan, 0)
    >>> message = client.advertise()
    """

    __slots__ = (
        "_channel",
        "_context",
        "_held",
        "_identities",
        "_identity",
        "_key",
        "_keys",
        "_pair_seeds",
        "_phase",
        "_roster",
        "_seed",
        "_sharers",
        "_survivors",
        "client",
        "plan",
    )

    def __init__(
        self,
        plan: SecureAggregation,
        client: int,
        *,
        identity: Ed25519PrivateKey | None = None,
        identities: Mapping[int, bytes] | None = None,
    ) -> None:
        _check.instance("plan", plan, SecureAggregation, "state the round first")
        if _check.integer("client", client) >= plan.clients:
            _check.refuse("client", f"be below {plan.clients}", client, "number the clients from 0")
        if plan.active != isinstance(identity, Ed25519PrivateKey):
            rule = "be an Ed25519 private key in the active mode, and None in the other"
            _check.refuse_type("identity", rule, identity, "pass the key that the register knows")
        self.plan, self.client = plan, client
        self._identity, self._identities = identity, check_identities(plan, identities)
        self._key, self._channel = X25519PrivateKey.generate(), X25519PrivateKey.generate()
        self._seed = os.urandom(SEED)
        self._keys: dict[int, tuple[X25519PublicKey, X25519PublicKey]] = {}
        self._held: dict[int, bytes] = {}
        self._pair_seeds: dict[int, bytes] = {}
        self._sharers, self._survivors = np.zeros(plan.clients, bool), np.zeros(plan.clients, bool)
        self._roster: ActiveRoster | None = None
        self._context = plan.digest
        self._phase = _START

    def _read(self, data: bytes, kind: str, phase: int, sizes: tuple[int, int, int]) -> Message:
        if self._phase != phase:
            rule = f"come once, in the order of the round, for {kind} to be answered"
            _check.refuse_state("a message", rule, "it came twice, early or late", "end this round")
        message = Message.from_bytes(data, kind, self.plan.digest, sizes)
        if message.client not in (SERVER, self.client):
            _check.refuse_state("a message", "be for this client", "it is for another", "send it there")
        return message

    def _message(self, kind: str, body: bytes) -> bytes:
        return Message(kind, self.client, self.plan.digest, body).to_bytes()

    def advertise(self) -> bytes:
        """Return the client's public keys, the first message of a round.

        Returns
        -------
        bytes

        Raises
        ------
        ParameterError
            If it was called before.
        """
        if self._phase != _START:
            _check.refuse_state("advertise", "be called once", "it was called before", "make a new client")
        self._phase = _ADVERTISED
        return self._message("keys", self._advertisement())

    def _advertisement(self) -> bytes:
        keys = self._key.public_key().public_bytes_raw() + self._channel.public_key().public_bytes_raw()
        if self._identity is None:
            return keys
        return keys + self._identity.sign(advertised(self.plan, self.client, keys))

    def share(self, roster: bytes) -> bytes:
        """Return sealed shares of the client's secrets for the neighbors in a roster.

        Parameters
        ----------
        roster : bytes
            From the server: the neighbors that advertised keys.

        Returns
        -------
        bytes

        Raises
        ------
        ParameterError
            If the roster is malformed, has fewer neighbors than the threshold, repeats a key, or lacks a
            signature in the active mode.
        """
        plan = self.plan
        each = 4 + 2 * KEY
        sizes = roster_sizes(plan) if plan.active else (0, each, each * plan.neighbors)
        message = self._read(roster, "roster", _ADVERTISED, sizes)
        own = self._key.public_key().public_bytes_raw(), self._channel.public_key().public_bytes_raw()
        if plan.active:
            read = read_roster(plan, self.client, b"".join(own), bytes(message.body))
            keys, context = read.neighbors, key_context(plan, read.transcript)
            self._check_neighbors(list(keys), len(keys))
        else:
            read, context = None, plan.digest
            rows = [bytes(message.body[at : at + each]) for at in range(0, len(message.body), each)]
            keys = {int.from_bytes(row[:4], "big"): row[4:] for row in rows}
            self._check_neighbors(list(keys), len(rows))
        points = [row[at : at + KEY] for row in keys.values() for at in (0, KEY)]
        if len({*points, *own}) != len(points) + 2:
            _check.refuse_state("the roster", "have distinct keys", "a key repeats", "end this round")
        if plan.active:
            for neighbor, row in keys.items():
                verify_signature(
                    self._identities,
                    neighbor,
                    row[2 * KEY :],
                    advertised(plan, neighbor, row[: 2 * KEY]),
                    remedy="end this round",
                )
        loaded = {
            neighbor: (
                X25519PublicKey.from_public_bytes(row[:KEY]),
                X25519PublicKey.from_public_bytes(row[KEY : 2 * KEY]),
            )
            for neighbor, row in keys.items()
        }
        sealed = self._sealed(loaded, context)
        self._keys, self._phase, self._roster, self._context = loaded, _SHARED, read, context
        return self._message("shares", hashlib.sha256(self._seed).digest() + sealed)

    def _check_neighbors(self, neighbors: list[int], rows: int) -> None:
        ascending = len(neighbors) == rows and neighbors == sorted(neighbors)
        if not ascending or self.client in neighbors or any(n >= self.plan.clients for n in neighbors):
            rule = "list other clients once, in ascending order"
            _check.refuse_state("neighbors", rule, "the list is another", "end this round")
        if rows < self.plan.shares:
            rule = f"be at least {self.plan.shares}"
            _check.refuse("the number of neighbors", rule, rows, "end this round")

    def _sealed(self, keys: Mapping[int, tuple[X25519PublicKey, X25519PublicKey]], context: bytes) -> bytes:
        points = np.array([neighbor + 1 for neighbor in keys])
        secrets = [self._seed, self._key.private_bytes_raw()]
        shares = split(secrets, threshold=self.plan.shares, points=points, source=SecureSource())
        rows = np.ascontiguousarray(shares.astype("<u8").transpose(1, 0, 2))
        sealed = []
        for (neighbor, (_, point)), row in zip(keys.items(), rows, strict=True):
            key = channel_key(self._channel, point, context, self.client, neighbor)
            sealed.append(ChaCha20Poly1305(key).encrypt(_NONCE, row.tobytes(), None))
        return b"".join(sealed)

    def mask(self, delivery: bytes, vector: ArrayLike) -> bytes:
        """Return the client's masked vector.

        Parameters
        ----------
        delivery : bytes
            From the server: the sealed shares of the neighbors that are still there.
        vector : array_like of int, shape (length,)
            Clipped to the plan's bounds.

        Returns
        -------
        bytes

        Raises
        ------
        ParameterError
            If the vector has another shape, or the delivery is malformed, not from neighbors, or below the
            threshold.
        """
        plan, each = self.plan, 4 + ENVELOPE
        values = plan.encoded(vector)
        start = -(-plan.clients // 8) if plan.active else 0
        message = self._read(delivery, "delivery", _SHARED, (start, each, start + each * plan.neighbors))
        rows = [bytes(message.body[at : at + each]) for at in range(start, len(message.body), each)]
        sealed = {int.from_bytes(row[:4], "big"): row[4:] for row in rows}
        self._check_neighbors(list(sealed), len(rows))
        if not sealed.keys() <= self._keys.keys():
            _check.refuse_state("neighbors", "be in the roster", "one is not", "end this round")
        if self._roster is not None:
            self._sharers = delivered_sharers(self._roster, self.client, message.body[:start], list(sealed))
        held = {sender: self._opened(sender, envelope) for sender, envelope in sealed.items()}
        kind = word_type(plan.bits)
        residues = (values & ((1 << plan.bits) - 1)).astype(kind)
        seeds = {n: pair_seed(self._key, self._keys[n][0], self._context, self.client, n) for n in held}
        stream = MaskStream(plan.length, bits=plan.bits)
        masked = mask_vector(stream, residues, self.client, self._seed, seeds.items())
        self._held, self._pair_seeds, self._phase = held, seeds, _MASKED
        return self._message("vector", packed(masked, plan.bits) + self._signed_sharers())

    def _signed_sharers(self) -> bytes:
        if self._identity is None or self._roster is None:
            return b""
        return self._identity.sign(shared_list(self.plan, self._roster.transcript, bitmap(self._sharers)))

    def _opened(self, sender: int, envelope: bytes) -> bytes:
        key = channel_key(self._channel, self._keys[sender][1], self._context, sender, self.client)
        try:
            return ChaCha20Poly1305(key).decrypt(_NONCE, envelope, None)
        except InvalidTag:
            rule = "be sealed with the sender's key"
            _check.refuse_state("an envelope", rule, "it is not", "end this round")

    def consent(self, survivors: bytes) -> bytes:
        """Return the client's signature of a list of survivors; active mode only.

        Parameters
        ----------
        survivors : bytes
            From the server. The client signs no other list in this round.

        Returns
        -------
        bytes

        Raises
        ------
        ParameterError
            If the list is refused as by `unmask`, or the mode is the other one.
        """
        if self._identity is None:
            _check.refuse_state("consent", "be asked in the active mode", "this is the other", "call unmask")
        chosen = self._acceptable(survivors)
        self._survivors, self._phase = chosen, _CONSENTED
        return self._message("consent", self._identity.sign(self._list(chosen)))

    def _list(self, chosen: NDArray[np.bool_]) -> bytes:
        digest = self._roster.transcript if self._roster else b""
        return agreed_list(self.plan, digest, bitmap(self._sharers), bitmap(chosen))

    def _acceptable(self, survivors: bytes) -> NDArray[np.bool_]:
        """Return a list of survivors that this client may answer."""
        plan = self.plan
        size = -(-plan.clients // 8)
        largest = size + (SIGNATURE * plan.clients if plan.active else 0)
        each = SIGNATURE if plan.active else 0
        message = self._read(survivors, "survivors", _MASKED, (size, each, largest))
        chosen = members(message.body[:size], plan.clients)
        surviving = [neighbor for neighbor in self._keys if chosen[neighbor]]
        if not chosen[self.client] or any(neighbor not in self._held for neighbor in surviving):
            rule = "have this client, and only neighbors whose shares it holds"
            _check.refuse_state("the survivors", rule, "they have not", "end this round")
        if int(chosen.sum()) < plan.minimum_survivors or len(surviving) < plan.shares:
            rule = f"be at least {plan.minimum_survivors}, and {plan.shares} of the neighbors"
            _check.refuse_state("the survivors", rule, "they are fewer", "end this round")
        if self._roster is not None:
            check_survivors(plan, self._roster, self._sharers, chosen, message.body[size:])
            signed = shared_list(plan, self._roster.transcript, bitmap(self._sharers))
            for neighbor in surviving:
                at = size + SIGNATURE * int(chosen[:neighbor].sum())
                signature = bytes(message.body[at : at + SIGNATURE])
                verify_signature(self._identities, neighbor, signature, signed, remedy=_REMEDY)
        return chosen

    def unmask(self, request: bytes) -> bytes:
        """Return a share for each neighbor: of its self-mask if it survived, of its key if it did not.

        For the second kind, the seed of the pair's mask follows, which the key would give: the server needs
        the key, and an exchange, only for those who do not answer.

        Parameters
        ----------
        request : bytes
            From the server: the list of survivors; in the active mode the evidence that enough clients signed
            the list that this one signed.

        Returns
        -------
        bytes

        Raises
        ------
        ParameterError
            If the list lacks this client, has a neighbor whose shares it never got, is below the minimum, or
            is not signed by enough others; or if a request was answered before.
        """
        chosen = self._evident(request) if self.plan.active else self._acceptable(request)
        parts = [share[:SHARE] if chosen[owner] else share[SHARE:] for owner, share in self._held.items()]
        parts += [seed for owner, seed in self._pair_seeds.items() if not chosen[owner]]
        self._phase = _DONE
        self._held, self._keys, self._pair_seeds, self._seed = {}, {}, {}, b""
        del self._key, self._channel
        return self._message("unmask", b"".join(parts))

    def _evident(self, evidence: bytes) -> NDArray[np.bool_]:
        plan = self.plan
        size = -(-plan.clients // 8)
        largest = size + SIGNATURE * plan.clients
        message = self._read(evidence, "evidence", _CONSENTED, (size, SIGNATURE, largest))
        signatures = read_evidence(plan, self.client, self._survivors, bytes(message.body))
        signed = self._list(self._survivors)
        for signer, signature in signatures.items():
            verify_signature(self._identities, signer, signature, signed, remedy=_REMEDY)
        return self._survivors
