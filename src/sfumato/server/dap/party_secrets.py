"""What each party of a task draws by itself, the half of it that the others get, and the party it becomes."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, final

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF, HKDFExpand

from sfumato import _check
from sfumato._wire import Format
from sfumato.crypto.hpke_base import full_order, public_point
from sfumato.federated.dap.hpke_config import HpkeConfig
from sfumato.federated.dap.sealing import HpkeKey
from sfumato.federated.dap.task import DapTask, base64url
from sfumato.federated.dap.version import Role
from sfumato.server.dap.party import DapParty
from sfumato.server.dap.party_files import read_public, read_secret, write_secret

__all__ = ["PartySecrets", "PublicPart", "agreement_number"]

_SECRETS: Final = Format("sfumato.dap-secrets")
_PART: Final = Format("sfumato.dap-part")
_SIZE: Final = 32
_ROLES: Final = {role.name.lower(): role for role in (Role.LEADER, Role.HELPER, Role.COLLECTOR)}
_NEEDED: Final = {
    Role.LEADER: (Role.HELPER, Role.COLLECTOR),
    Role.HELPER: (Role.LEADER,),
    Role.COLLECTOR: (),
}
_REMEDY: Final = "pass what `sfumato dap keygen` printed"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PublicPart:
    """What one party gives to the others.

    Parameters
    ----------
    role : Role
        Leader, helper or collector.
    key : HpkeConfig
        For what is sealed for this party.
    agreement : bytes
        An X25519 public key, 32 bytes, with which the aggregators agree on their common secret.
    token : bytes
        SHA-256 of the token that this party shows.

    Raises
    ------
    ParameterError
        If a key is a point of small order, or a part has another length.

    Notes
    -----
    All of it is public. It must come from the party itself: who can exchange it on the way takes the party's
    place.

    Examples
    --------
    >>> part = PartySecrets(Role.COLLECTOR, bytes(32)).public
    >>> PublicPart.from_specification(part.specification()) == part
    True
    """

    role: Role
    key: HpkeConfig
    agreement: bytes
    token: bytes

    def __post_init__(self) -> None:
        if self.role not in _NEEDED:
            _check.refuse("role", f"be one of {', '.join(_ROLES)}", self.role.name.lower(), _REMEDY)
        if not self.key.usable or not 0 <= self.key.id < 256 or not full_order(self.agreement):
            rule, found = "have two usable keys", "one is not, or has a small order"
            _check.refuse_state("a party's public part", rule, found, _REMEDY)
        if len(self.token) != _SIZE:
            _check.refuse_type("token", f"be a digest of {_SIZE} bytes", self.token, _REMEDY)

    def specification(self) -> dict[str, Any]:
        """Return the part as a JSON document.

        Returns
        -------
        dict
        """
        return _PART.wrap(
            {
                "role": self.role.name.lower(),
                "key": {"id": self.key.id, "public_key": self.key.public_key.hex()},
                "agreement": self.agreement.hex(),
                "token": self.token.hex(),
            }
        )

    @staticmethod
    def from_specification(document: object) -> PublicPart:
        """Return the part that `specification` described.

        Parameters
        ----------
        document : object
            Of JSON.

        Returns
        -------
        PublicPart

        Raises
        ------
        ParameterError
            If it is no such document.
        """
        _, fields = _PART.unwrap("part", document)
        try:
            role, number, point = _ROLES[fields["role"]], fields["key"]["id"], fields["key"]["public_key"]
            key = HpkeConfig(_check.integer("id", number), bytes.fromhex(point))
            agreement, token = bytes.fromhex(fields["agreement"]), bytes.fromhex(fields["token"])
        except (KeyError, TypeError, ValueError):
            rule = "hold a role, two keys and a token's digest"
            _check.refuse_state("a party's public part", rule, "it holds something else", _REMEDY)
        return PublicPart(role=role, key=key, agreement=agreement, token=token)

    @staticmethod
    def from_file(path: Path) -> PublicPart:
        """Return the part of a file of JSON.

        Parameters
        ----------
        path : Path

        Returns
        -------
        PublicPart

        Raises
        ------
        SourceError
            If the file cannot be read.
        ParameterError
            If it is no part.
        """
        return PublicPart.from_specification(read_public(path, "part"))


@final
@dataclass(frozen=True, slots=True)
class PartySecrets:
    """What one party draws before there is a task, and shows nobody.

    Parameters
    ----------
    role : Role
        Leader, helper or collector.
    seed : bytes
        32 random bytes, from which all of its keys and its token follow (HKDF-Expand, RFC 5869).

    Notes
    -----
    The aggregators' common verify key is HKDF of the X25519 secret of their two agreement keys, with the
    task's id as salt: neither sends it, and whoever has only public parts cannot compute it under the
    computational Diffie-Hellman assumption, with HKDF as a random oracle. A task has another one than the
    next. The same secrets may serve several tasks of the same aggregators, not of others: who takes a token
    has seen it, and could show it to the others.

    Examples
    --------
    >>> leader, helper, collector = (PartySecrets.generate(role) for role in
    ...                              (Role.LEADER, Role.HELPER, Role.COLLECTOR))
    >>> task = DapTask(
    ...     task_id=bytes(32), leader="http://127.0.0.1:8421", helper="http://127.0.0.1:8422",
    ...     vdaf={"type": "Prio3Count"}, collector=collector.public.key, min_batch_size=100,
    ... )
    >>> one = leader.joined(task, [helper.public, collector.public])
    >>> other = helper.joined(task, [leader.public])
    >>> one.verify_key == other.verify_key, other.accepts(one.sends)
    (True, True)
    """

    role: Role
    seed: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if self.role not in _NEEDED:
            _check.refuse("role", f"be one of {', '.join(_ROLES)}", self.role.name.lower(), "choose one")
        if len(self.seed) != _SIZE:
            _check.refuse_type("seed", f"be {_SIZE} bytes", self.seed, "use PartySecrets.generate(role)")

    @staticmethod
    def generate(role: Role) -> PartySecrets:
        """Return new secrets, drawn from the operating system's entropy.

        Parameters
        ----------
        role : Role
            Leader, helper or collector.

        Returns
        -------
        PartySecrets
        """
        return PartySecrets(role, os.urandom(_SIZE))

    def _derived(self, use: bytes) -> bytes:
        info = b"sfumato dap 1 " + self.role.name.lower().encode() + b" " + use
        return HKDFExpand(SHA256(), _SIZE, info).derive(self.seed)

    @property
    def key(self) -> HpkeKey:
        """The key of what is sealed for this party."""
        return HpkeKey(self._derived(b"hpke"))

    @property
    def token(self) -> str:
        """What this party shows to who asks who it is."""
        return base64url(self._derived(b"token"))

    @property
    def public(self) -> PublicPart:
        """What the others get."""
        return PublicPart(
            role=self.role,
            key=self.key.config,
            agreement=public_point(self._derived(b"agreement")),
            token=hashlib.sha256(self.token.encode()).digest(),
        )

    def joined(self, task: DapTask, parts: Iterable[PublicPart] = ()) -> DapParty:
        """Return this party of a task.

        Parameters
        ----------
        task : DapTask
            With the collector's key.
        parts : iterable of PublicPart
            The leader needs those of helper and collector, the helper that of the leader.

        Returns
        -------
        DapParty

        Raises
        ------
        ParameterError
            If a part is missing, or is not one that this party needs, or the task is another collector's.
        """
        given = list(parts)
        needed = _NEEDED[self.role]
        if sorted(part.role for part in given) != sorted(needed):
            rule = f"be those of {' and '.join(role.name.lower() for role in needed) or 'nobody'}"
            found = " and ".join(part.role.name.lower() for part in given) or "none"
            _check.refuse_state("the public parts", rule, f"they are those of {found}", _REMEDY)
        known = {part.role: part for part in (*given, self.public)}
        collector = known.get(Role.COLLECTOR)
        if collector is not None and collector.key != task.collector:
            rule, found = "hold the key of this collector", "it is another's"
            _check.refuse_state("task", rule, found, "make the task with this collector's part")
        if self.role == Role.COLLECTOR:
            return DapParty(role=self.role, task=task, key=self.key, sends=self.token)
        leads = self.role == Role.LEADER
        return DapParty(
            role=self.role,
            task=task,
            key=self.key,
            verify_key=self._agreed(task, known[Role.LEADER], known[Role.HELPER]),
            sends=self.token if leads else None,
            takes=known[Role.COLLECTOR if leads else Role.LEADER].token,
        )

    def _agreed(self, task: DapTask, leader: PublicPart, helper: PublicPart) -> bytes:
        other = helper if self.role == Role.LEADER else leader
        secret = X25519PrivateKey.from_private_bytes(self._derived(b"agreement"))
        shared = secret.exchange(X25519PublicKey.from_public_bytes(other.agreement))
        info = b"sfumato dap 1 verify key" + leader.agreement + helper.agreement
        return HKDF(SHA256(), _SIZE, task.task_id, info).derive(shared)

    def to_file(self, path: Path) -> None:
        """Write the secrets to a new file that its owner alone may read.

        Parameters
        ----------
        path : Path

        Raises
        ------
        ParameterError
            If the file exists already, or cannot be made.
        """
        write_secret(path, _SECRETS.wrap({"role": self.role.name.lower(), "seed": self.seed.hex()}))

    @staticmethod
    def from_file(path: Path) -> PartySecrets:
        """Return the secrets of a file, which nobody but its owner may read.

        Parameters
        ----------
        path : Path

        Returns
        -------
        PartySecrets

        Raises
        ------
        SourceError
            If the file cannot be read.
        ParameterError
            If others may read it, or it holds no such secrets; the message shows nothing of it.
        """
        _, fields = _SECRETS.unwrap("secrets", read_secret(path))
        try:
            role, seed = _ROLES[fields["role"]], bytes.fromhex(fields["seed"])
        except (KeyError, TypeError, ValueError):
            role, seed = None, b""
        if role is None or len(seed) != _SIZE:
            rule, found = "hold a role and a seed", "it holds something else"
            _check.refuse_state("the party's file", rule, found, "make new secrets")
        return PartySecrets(role, seed)


def agreement_number(verify_key: bytes) -> str:
    """Return a number by which both aggregators see that they agreed on one secret, which it does not show.

    Parameters
    ----------
    verify_key : bytes
        32 bytes.

    Returns
    -------
    str

    Examples
    --------
    >>> agreement_number(bytes(32)) == agreement_number(bytes(32)) != agreement_number(bytes(31) + b"x")
    True
    """
    return hashlib.sha256(b"sfumato dap 1 agreement number" + verify_key).hexdigest()[:32]
