"""Checkpoints that may be published: a run without its secrets, and where it stands on its ledger."""

from __future__ import annotations

import hmac
import io
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, final

import torch
from torch import nn
from torch.optim import Optimizer

from sfumato._durable import write_whole
from sfumato._wire import (
    BOOLEAN,
    INTEGER,
    NUMBER,
    TEXT,
    Codec,
    Field,
    Format,
    Record,
    canonical,
    optional,
    parse,
)
from sfumato.errors import LedgerCorrupt, LedgerMismatch, LedgerUnavailable, ParameterError
from sfumato.learning.reports.card import shown
from sfumato.learning.training.checkpoint.authentication import tag_of
from sfumato.learning.training.checkpoint.sealing import RunSecrets, seal, unseal
from sfumato.learning.training.distributed.shards import cut_module, cut_optimizer

__all__ = ["Checkpoint", "LedgerPosition", "RunIdentity", "read_secrets", "secrets_of", "write_secrets"]

FORMAT: Final = Format("sfumato.training-checkpoint", 1)
RUN: Final = "sfumato"
"""Under which the run's document lies in the file; the other entries are torch's and the caller's own."""
TAG: Final = "sfumato_tag"
"""Under which the keyed hash of all other entries lies."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RunIdentity:
    """What must be the same when a run goes on: what its loss follows from.

    Attributes
    ----------
    noise_multiplier : float
    clipping, sampler, noise : mapping
        Their kinds and public parameters, without secrets. A step that is computed again must not have noise
        of another kind.
    simulated : bool
    """

    noise_multiplier: float
    clipping: Mapping[str, Any]
    sampler: Mapping[str, Any]
    simulated: bool
    noise: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        """Return the plain values of a checkpoint's document."""
        document: dict[str, Any] = _IDENTITY.encode(self)
        return document

    def require(self, other: RunIdentity) -> None:
        """Refuse to go on as another run."""
        given = other.to_json()
        for name, saved in self.to_json().items():
            if saved != given[name]:
                raise LedgerMismatch(
                    f"{name} must be the one that the run began with, {shown(saved)}, got "
                    f"{shown(given[name])}; pass that one, or begin another run"
                )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerPosition:
    """Where a run stands on its ledger.

    Attributes
    ----------
    ledger : str
        Its id.
    run : int
        The number of the charge that reserved the steps.
    charge : str
        That charge's hash.
    claimed : int
        How many steps were claimed.
    head : tuple of (int, str) or None
        The last event's position and hash, which the ledger must still hold; None in an analyst's.
    claims : str
        `Run.record` of the claimed steps: a hash of how they were claimed.
    """

    ledger: str
    run: int
    charge: str
    claimed: int
    head: tuple[int, str] | None
    claims: str

    @property
    def run_name(self) -> str:
        """What secrets are sealed for: one run of one ledger."""
        return f"{self.ledger} {self.run} {self.charge}"


def _checked_document(name: str, written: Any) -> dict[str, Any]:
    if not isinstance(written, dict) or not isinstance(written.get("kind"), str):
        raise LedgerCorrupt(f"{name} must be an object with a kind; pass what save_checkpoint wrote")
    return written


def _read_head(name: str, written: Any) -> tuple[int, str]:
    head = _HEAD.decode(name, written)
    return head["position"], head["hash"]


_DOCUMENT: Final[Codec[Mapping[str, Any]]] = Codec(dict, _checked_document)
_IDENTITY: Final = Record(
    "the identity of a run",
    RunIdentity,
    {
        "noise_multiplier": NUMBER,
        "clipping": _DOCUMENT,
        "sampler": _DOCUMENT,
        "simulated": BOOLEAN,
        "noise": _DOCUMENT,
    },
)
_HEAD: Final[Record[dict[str, Any]]] = Record("a position", dict, {"position": INTEGER, "hash": TEXT})
_POSITION: Final = Record(
    "a position on a ledger",
    LedgerPosition,
    {
        "ledger": TEXT,
        "run": INTEGER,
        "charge": TEXT,
        "claimed": INTEGER,
        "head": optional(Codec(lambda head: {"position": head[0], "hash": head[1]}, _read_head)),
        "claims": TEXT,
    },
)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """All that a run goes on from, but its secrets."""

    identity: RunIdentity
    cursor: int
    foreign_steps: int
    position: LedgerPosition | None
    module: dict[str, Any]
    optimizer: dict[str, Any] | None
    random_state: torch.Tensor
    extra: dict[str, Any]
    clip_norm: float | None = None
    """Of the next step, where clipping adapts."""
    tag: str | None = None
    """`tag_of` its entries, as the file has it; None in a file without a key, or of an earlier version."""

    def write(self, path: str | os.PathLike[str], *, key: bytes | None = None, **options: Any) -> None:
        """Write the file, whole or not at all, with a tag by the key if there is one."""
        buffer = io.BytesIO()
        content = self._entries()
        if key is not None:
            content[TAG] = tag_of(key, content)
        torch.save(content, buffer, **options)
        write_whole(Path(path), buffer.getvalue())

    def require_authentic(self, key: bytes) -> None:
        """Refuse what was not written with this key, or was altered since.

        Raises
        ------
        LedgerCorrupt
            With the remedy.
        """
        if self.tag is None or not hmac.compare_digest(self.tag, tag_of(key, self._entries())):
            raise LedgerCorrupt(
                "checkpoint must be as it was written, by a run on this ledger, got an altered or another "
                "one; restore the file, or begin another run"
            )

    def _entries(self) -> dict[str, Any]:
        return {
            **self.extra,
            RUN: self.run_to_json(),
            "module_state_dict": self.module,
            "optimizer_state_dict": self.optimizer,
            "random_state": self.random_state,
        }

    def run_to_json(self) -> str:
        """Return the document of the run: all but tensors and what the caller added."""
        fields: dict[str, object] = _RUN.encode(self)
        if self.clip_norm is not None:
            fields["clip_norm"] = NUMBER.encode(self.clip_norm)
        return canonical(FORMAT.wrap(fields))

    def restore(self, module: nn.Module, optimizer: Optimizer | None) -> None:
        """Put the weights and the optimizer's state back, cut up where the module is."""
        self.require_shapes(module, optimizer)
        module.load_state_dict(cut_module(module, self._named_as(module)))
        if optimizer is not None and self.optimizer is not None:
            parameters = [p for group in optimizer.param_groups for p in group["params"]]
            optimizer.load_state_dict(cut_optimizer(parameters, self.optimizer))

    def require_shapes(self, module: nn.Module, optimizer: Optimizer | None) -> None:
        """Refuse a module or an optimizer of other parameters than were saved, before either is changed.

        Raises
        ------
        LedgerMismatch
            With the remedy.
        """
        saved, now = _shapes(self._named_as(module)), _shapes(module.state_dict(keep_vars=True))
        if saved != now:
            raise LedgerMismatch(
                "module must have the parameters and buffers that the run began with, got other names or "
                "shapes; make it as it was"
            )
        if optimizer is None or self.optimizer is None:
            return
        groups = [len(group["params"]) for group in self.optimizer["param_groups"]]
        if groups != [len(group["params"]) for group in optimizer.param_groups]:
            raise LedgerMismatch(
                f"optimizer must have groups of as many parameters as the run began with, {groups}, got "
                "others; make it as it was"
            )

    def _named_as(self, module: nn.Module) -> dict[str, Any]:
        """Return the weights by the module's names: wrapped for several processes it calls itself a part."""
        names, prefix = module.state_dict(keep_vars=True).keys(), "module."
        if self.module.keys() == names:
            return self.module
        if all(name.startswith(prefix) for name in names):
            return {prefix + name: value for name, value in self.module.items()}
        return {name.removeprefix(prefix): value for name, value in self.module.items()}

    @classmethod
    def read(cls, path: str | os.PathLike[str], **torch_load_kwargs: Any) -> Checkpoint:
        """Read the file; nothing in it is run.

        Raises
        ------
        LedgerUnavailable
            It cannot be read, or is of a later version.
        LedgerCorrupt
            It is no checkpoint of this library.
        """
        try:
            options: dict[str, Any] = {"weights_only": True, "map_location": "cpu"} | torch_load_kwargs
            content = torch.load(path, **options)
            run = parse("checkpoint", content.pop(RUN))
            if run["format"] != FORMAT.name:
                raise ValueError("another format")  # noqa: TRY301
        except OSError as error:
            raise LedgerUnavailable(
                f"checkpoint must be a readable file, got {os.fspath(path)!r}; check the path"
            ) from error
        except Exception as error:
            raise LedgerCorrupt(
                f"checkpoint must be one that save_checkpoint wrote, got {os.fspath(path)!r}; pass its path"
            ) from error
        try:
            _, fields = FORMAT.unwrap("checkpoint", run)
        except ParameterError as error:
            raise LedgerUnavailable(str(error)) from error
        adapted, tag = fields.pop("clip_norm", None), content.pop(TAG, None)
        try:
            decoded = _RUN.decode("checkpoint", fields)
            clip_norm = None if adapted is None else NUMBER.decode("clip_norm", adapted)
        except ParameterError as error:
            raise LedgerCorrupt(str(error)) from error
        return cls(
            **decoded,
            module=content.pop("module_state_dict"),
            optimizer=content.pop("optimizer_state_dict"),
            random_state=content.pop("random_state"),
            extra=content,
            clip_norm=clip_norm,
            tag=tag if isinstance(tag, str) else None,
        )


def secrets_of(path: str | os.PathLike[str]) -> Path:
    """Return where the secrets of a checkpoint lie."""
    return Path(f"{os.fspath(path)}.secrets")


def write_secrets(
    path: str | os.PathLike[str], key: bytes, position: LedgerPosition, *, noise: bytes, seed: bytes
) -> None:
    """Seal the noise key and the sampler's seed beside a checkpoint, readable for the owner only."""
    sealed = seal(key, position.run_name, RunSecrets(noise_key=noise, sampling_seed=seed))
    write_whole(secrets_of(path), sealed, mode=0o600)


def read_secrets(path: str | os.PathLike[str], key: bytes, position: LedgerPosition) -> tuple[bytes, bytes]:
    """Return the noise key and the sampler's seed that were sealed with a checkpoint."""
    try:
        data = secrets_of(path).read_bytes()
    except OSError as error:
        raise LedgerUnavailable(
            f"secrets must lie beside the checkpoint, got none at {str(secrets_of(path))!r}; they are not in "
            "the checkpoint, which may be published"
        ) from error
    opened = unseal(key, position.run_name, data)
    return opened.noise_key, opened.sampling_seed


_RUN: Final[Record[Any]] = Record(
    "a training checkpoint",
    dict,
    {
        "identity": _IDENTITY,
        "steps": Field("cursor", INTEGER),
        "foreign_steps": INTEGER,
        "ledger": Field("position", optional(_POSITION)),
    },
)


def _shapes(state: dict[str, Any]) -> dict[str, Any]:
    return {name: getattr(value, "shape", None) for name, value in state.items()}
