"""What one party of a task knows, and the file that it keeps it in."""

from __future__ import annotations

import hashlib
import hmac
import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, final

from sfumato import _check
from sfumato._wire import Format
from sfumato.errors import ParameterError
from sfumato.federated.dap.hpke_config import HpkeConfig
from sfumato.federated.dap.sealing import HpkeKey
from sfumato.federated.dap.task import DapTask, base64url
from sfumato.federated.dap.version import Role
from sfumato.server.dap.party_files import read_public, read_secret, write_secret

__all__ = ["DapParty", "new_parties", "read_task"]

_FORMAT: Final = Format("sfumato.dap-party")
_FIELDS: Final = {"role", "task", "key_id", "key", "verify_key", "sends", "takes"}
_ROLES: Final = {role.name.lower(): role for role in Role if role != Role.CLIENT}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DapParty:
    """One aggregator or the collector of a task, with its secrets.

    Parameters
    ----------
    role : Role
        Not that of clients, who have no secrets.
    task : DapTask
    key : HpkeKey
        For what is sealed for this party.
    verify_key : bytes, optional
        The aggregators' common secret, 32 bytes.
    sends : str, optional
        The token by which the leader is known to the helper, or the collector to the leader.
    takes : bytes, optional
        SHA-256 of the token that this aggregator accepts.

    Examples
    --------
    >>> parties = new_parties(vdaf={"type": "Prio3Count"}, min_batch_size=10)
    >>> leader, helper, collector = (parties[role] for role in (Role.LEADER, Role.HELPER, Role.COLLECTOR))
    >>> helper.accepts(leader.sends), leader.accepts(collector.sends), leader.accepts(leader.sends)
    (True, True, False)
    >>> leader.sends in repr(leader) or repr(leader.verify_key) in repr(leader)
    False
    """

    role: Role
    task: DapTask
    key: HpkeKey
    verify_key: bytes | None = field(default=None, repr=False)
    sends: str | None = field(default=None, repr=False)
    takes: bytes | None = None

    def __post_init__(self) -> None:
        aggregator = self.role in (Role.LEADER, Role.HELPER)
        if self.role == Role.CLIENT:
            _check.refuse(
                "role", "be leader, helper or collector", self.role.name.lower(), "clients need none"
            )
        if len(self.key.secret) != 32 or not 0 <= self.key.id < 256:
            _check.refuse_type("key", "be 32 bytes with an id of one byte", self.key, "make a new party")
        if aggregator and (len(self.verify_key or b"") != 32 or len(self.takes or b"") != 32):
            rule, found = "have a verify key and a token's digest", "one is missing"
            _check.refuse_state("an aggregator", rule, found, "make a new party")
        if self.role != Role.HELPER and not self.sends:
            _check.refuse_state("leader and collector", "have a token", "it is missing", "make a new party")

    def accepts(self, token: str | None) -> bool:
        """Report whether a token is the one of who may ask this aggregator.

        Parameters
        ----------
        token : str or None
            What was presented.

        Returns
        -------
        bool
        """
        digest = hashlib.sha256((token or "").encode("utf-8", "replace")).digest()
        return self.takes is not None and hmac.compare_digest(digest, self.takes)

    def to_file(self, path: Path) -> None:
        """Write the party to a new file that its owner alone may read.

        Parameters
        ----------
        path : Path

        Raises
        ------
        ParameterError
            If the file exists already, or cannot be made.
        """
        document = _FORMAT.wrap(
            {
                "role": self.role.name.lower(),
                "task": self.task.specification(),
                "key_id": self.key.id,
                "key": self.key.secret.hex(),
                "verify_key": None if self.verify_key is None else self.verify_key.hex(),
                "sends": self.sends,
                "takes": None if self.takes is None else self.takes.hex(),
            }
        )
        write_secret(path, document)

    @staticmethod
    def from_file(path: Path) -> DapParty:
        """Return the party of a file, which nobody but its owner may read.

        Parameters
        ----------
        path : Path

        Returns
        -------
        DapParty

        Raises
        ------
        SourceError
            If the file cannot be read.
        ParameterError
            If others may read it, or it is no party's.
        """
        _, fields = _FORMAT.unwrap("party", read_secret(path))
        try:
            return _party(fields)
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, ParameterError):
                raise
            rule = "hold the secrets of one party"
            _check.refuse_state("the party's file", rule, "it holds something else", "make a new party")


def _party(fields: dict[str, Any]) -> DapParty:
    if set(fields) != _FIELDS:
        raise KeyError
    parts = {
        name: bytes.fromhex(fields[name]) for name in ("verify_key", "takes") if fields[name] is not None
    }
    if not isinstance(fields["key_id"], int) or not isinstance(fields["sends"], str | None):
        raise TypeError
    return DapParty(
        role=_ROLES[fields["role"]],
        task=DapTask.from_specification(fields["task"]),
        key=HpkeKey(bytes.fromhex(fields["key"]), fields["key_id"]),
        sends=fields["sends"],
        **parts,
    )


def read_task(path: Path) -> DapTask:
    """Return the task of a file of JSON, which is public.

    Parameters
    ----------
    path : Path

    Returns
    -------
    DapTask

    Raises
    ------
    SourceError
        If the file cannot be read.
    ParameterError
        If it is no task.
    """
    return DapTask.from_specification(read_public(path, "task"))


def new_parties(**parameters: Any) -> dict[Role, DapParty]:
    """Return leader, helper and collector of a new task, with new keys and tokens.

    Parameters
    ----------
    **parameters
        Of `sfumato.federated.dap.task.DapTask`, without its id and the collector's key; the URLs are those
        of two ports of this machine unless given.

    Returns
    -------
    dict of DapParty
        By role. Whoever calls this knows all secrets: in earnest each party draws its own, as
        `sfumato.server.dap.party_secrets.PartySecrets`.

    Raises
    ------
    ParameterError
        If a parameter breaks its rule.
    """
    key = HpkeKey(os.urandom(32))
    urls = {"leader": "http://127.0.0.1:8421", "helper": "http://127.0.0.1:8422"}
    collector = HpkeConfig(key.id, key.config.public_key)
    task = DapTask(task_id=os.urandom(32), collector=collector, **{**urls, **parameters})
    tokens = {role: base64url(os.urandom(32)) for role in (Role.LEADER, Role.COLLECTOR)}
    takes = {role: hashlib.sha256(token.encode()).digest() for role, token in tokens.items()}
    leader = DapParty(
        role=Role.LEADER,
        task=task,
        key=HpkeKey(os.urandom(32)),
        verify_key=os.urandom(32),
        sends=tokens[Role.LEADER],
        takes=takes[Role.COLLECTOR],
    )
    helper = replace(
        leader, role=Role.HELPER, key=HpkeKey(os.urandom(32)), sends=None, takes=takes[Role.LEADER]
    )
    collecting = DapParty(role=Role.COLLECTOR, task=task, key=key, sends=tokens[Role.COLLECTOR])
    return {Role.LEADER: leader, Role.HELPER: helper, Role.COLLECTOR: collecting}
