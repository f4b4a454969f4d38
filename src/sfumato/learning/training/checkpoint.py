"""Checkpoints that may be published: a run without its secrets, and where it stands on its ledger."""

from __future__ import annotations

import io
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, final

import torch
from torch import nn
from torch.optim import Optimizer

from sfumato import _check
from sfumato._durable import write_whole
from sfumato.errors import LedgerCorrupt, LedgerMismatch, LedgerUnavailable
from sfumato.learning.training.sealing import sealed, unsealed
from sfumato.learning.training.shards import cut_module, cut_optimizer

__all__ = ["Checkpoint", "Place", "Plan", "read_secrets", "secrets_of", "write_secrets"]

FORMAT = 1
RUN = "sfumato"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What must be the same when a run goes on: what its loss follows from.

    Attributes
    ----------
    noise_multiplier : float
    clipping, sampler : str
        As they show themselves, without secrets.
    simulated : bool
    noise : str
        Its kind: a step that is computed again must not have noise of another.
    """

    noise_multiplier: float
    clipping: str
    sampler: str
    simulated: bool
    noise: str = "KeyedNoise"

    def require(self, other: Plan) -> None:
        """Refuse to go on with another plan."""
        for name, kept in asdict(self).items():
            given = asdict(other)[name]
            if kept != given:
                raise LedgerMismatch(
                    f"{name} must be the one that the run began with, {kept}, got {given}; pass that one, or "
                    "begin another run"
                )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a run stands on its ledger.

    Attributes
    ----------
    ledger : str
        Its id.
    run : int
        The number of the charge that reserved the steps.
    digest : str
        That charge's hash.
    claimed : int
        How many steps were claimed.
    head : tuple of (int, str) or None
        The last event's position and hash, which the ledger must still hold; None in an analyst's.
    record : str
        `Run.record` of the claimed steps; "" in checkpoints of before there was one.
    """

    ledger: str
    run: int
    digest: str
    claimed: int
    head: tuple[int, str] | None
    record: str = ""

    @property
    def name(self) -> str:
        """What secrets are sealed for."""
        return f"{self.ledger} {self.run} {self.digest}"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """All that a run goes on from, but its secrets."""

    plan: Plan
    cursor: int
    foreign_steps: int
    place: Place | None
    module: dict[str, Any]
    optimizer: dict[str, Any] | None
    random_state: torch.Tensor
    extra: dict[str, Any]

    def write(self, path: str | os.PathLike[str], **torch_save_kwargs: Any) -> None:
        """Write the file, whole or not at all."""
        run = {
            "format": FORMAT,
            "plan": asdict(self.plan),
            "cursor": self.cursor,
            "foreign_steps": self.foreign_steps,
            "place": None if self.place is None else asdict(self.place),
        }
        buffer = io.BytesIO()
        content = {
            **self.extra,
            RUN: json.dumps(run),
            "module_state_dict": self.module,
            "optimizer_state_dict": self.optimizer,
            "random_state": self.random_state,
        }
        torch.save(content, buffer, **torch_save_kwargs)
        write_whole(Path(path), buffer.getvalue())

    def restore(self, module: nn.Module, optimizer: Optimizer | None) -> None:
        """Put the weights and the optimizer's state into place, cut up where the module is."""
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
            run = json.loads(content.pop(RUN))
        except OSError as error:
            raise LedgerUnavailable(
                f"checkpoint must be a readable file, got {os.fspath(path)!r}; check the path"
            ) from error
        except Exception as error:
            raise LedgerCorrupt(
                f"checkpoint must be one that save_checkpoint wrote, got {os.fspath(path)!r}; pass its path"
            ) from error
        if run["format"] > FORMAT:
            raise LedgerUnavailable(
                f"checkpoint must have a format up to {FORMAT}, got {run['format']}; upgrade"
            )
        place = run["place"]
        if place is not None:
            place = Place(**place | {"head": place["head"] and tuple(place["head"])})
        return cls(
            plan=Plan(**run["plan"]),
            cursor=run["cursor"],
            foreign_steps=run["foreign_steps"],
            place=place,
            module=content.pop("module_state_dict"),
            optimizer=content.pop("optimizer_state_dict"),
            random_state=content.pop("random_state"),
            extra=content,
        )


def secrets_of(path: str | os.PathLike[str]) -> Path:
    """Return where the secrets of a checkpoint lie."""
    return Path(f"{os.fspath(path)}.secrets")


def write_secrets(
    path: str | os.PathLike[str], key: bytes, place: Place, *, noise: bytes, seed: bytes
) -> None:
    """Seal the noise key and the sampler's seed beside a checkpoint, readable for the owner only."""
    content = {"noise": noise.hex(), "seed": seed.hex()}
    write_whole(secrets_of(path), sealed(key, place.name, content), mode=0o600)


def read_secrets(path: str | os.PathLike[str], key: bytes, place: Place) -> tuple[bytes, bytes]:
    """Return the noise key and the sampler's seed that were sealed with a checkpoint."""
    try:
        data = secrets_of(path).read_bytes()
    except OSError as error:
        raise LedgerUnavailable(
            f"secrets must lie beside the checkpoint, got none at {str(secrets_of(path))!r}; they are not in "
            "the checkpoint, which may be published"
        ) from error
    content = unsealed(key, place.name, data)
    if content.keys() != {"noise", "seed"}:
        _check.refuse("secrets", "be those of a run", "others")
    return bytes.fromhex(content["noise"]), bytes.fromhex(content["seed"])


def _shapes(state: dict[str, Any]) -> dict[str, Any]:
    return {name: getattr(value, "shape", None) for name, value in state.items()}
