"""The file from which an interrupted training of a table's classifier goes on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, final

from sfumato import _check
from sfumato._wire import INTEGER, Format, canonical, parse
from sfumato.errors import LedgerCorrupt, SourceError
from sfumato.learning.reports.card import shown
from sfumato.learning.training.checkpoint.checkpoint import Checkpoint, secrets_of
from sfumato.learning.training.checkpoint.reservation import sealing_key
from sfumato.learning.training.privacy_engine import PrivacyEngine
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.view import LedgerView

__all__ = ["SavedTraining", "TableCheckpoint", "remove"]

FORMAT: Final = Format("sfumato.table-training", 1)
ENTRY: Final = "sfumato_table"
"""Under which settings and progress lie, beside what `PrivacyEngine.save_checkpoint` writes."""
SAVES: Final = 100
"""How often a run is saved, if it has as many steps."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SavedTraining:
    """Where a training goes on.

    Attributes
    ----------
    noise_multiplier : float
        What the run was charged with.
    taken : int
        How many steps the weights have taken.
    """

    noise_multiplier: float
    taken: int


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TableCheckpoint:
    """A file of a run on a ledger, and the settings that it began with.

    Parameters
    ----------
    path : Path
        The secrets lie beside it, sealed.
    ledger : Ledger or LedgerView or None
    key_file : Path or None
        Where the key lies that seals the secrets; beside the ledger's file if None.
    settings : mapping
        Plain values by the names of the parameters.

    Notes
    -----
    Guarantee: a run that goes on is within the loss that was charged when it began, whatever was lost. Steps
    are claimed on the ledger before their noise is drawn, and the number of a step determines its batch and
    its noise, so no noise is ever drawn for two sums. Steps that were claimed and are not in the weights of
    the file stay charged and are not taken again: something of them may have left the process.
    """

    path: Path
    ledger: Ledger | LedgerView | None
    key_file: Path | None
    settings: Mapping[str, Any]

    def found(self) -> SavedTraining | None:
        """Return what an earlier process saved; None where there is no file, and a run may begin.

        Raises
        ------
        ParameterError
            No ledger counts the steps, or the run began with other settings.
        LedgerCorrupt
            It is no such file, of another ledger, or altered.
        LedgerUnavailable
            It cannot be read, or the key of its secrets is gone.
        """
        if self.ledger is None:
            rule, remedy = "be given with a checkpoint", "pass the ledger that counts its steps"
            _check.refuse("ledger", rule, None, remedy)
        if not self.path.exists():
            sealing_key(self.key_file, self.ledger, make=True)  # now, as it is too late after the charge
            return None
        try:
            saved = Checkpoint.read(self.path)
            document = parse("checkpoint", saved.extra[ENTRY])
            fields = FORMAT.unwrap("checkpoint", document)[1]
            settings, taken = dict(fields["settings"]), INTEGER.decode("taken", fields["taken"])
        except (LedgerCorrupt, KeyError, TypeError, ValueError) as error:
            raise LedgerCorrupt(
                f"checkpoint must be a file of an interrupted training of a table, got {str(self.path)!r}; "
                "name another file"
            ) from error
        if saved.position is None or saved.position.ledger != self.ledger.ledger_id:
            rule = "be the one that charged the run of this checkpoint"
            _check.refuse("ledger", rule, self.ledger.ledger_id, "name that one, or another checkpoint")
        saved.require_authentic(sealing_key(self.key_file, self.ledger, make=False))
        self._require(settings)
        return SavedTraining(noise_multiplier=saved.identity.noise_multiplier, taken=taken)

    def _require(self, began: Mapping[str, Any]) -> None:
        """Refuse to go on with other settings than the run began with."""
        for name, given in parse("settings", canonical(self.settings)).items():
            if began.get(name) != given:
                rule = f"be as the run of this checkpoint began, {shown(began.get(name))}"
                _check.refuse(name, rule, given, "pass that, or name another checkpoint to begin a run")

    def save(self, engine: PrivacyEngine, *, taken: int) -> None:
        """Write the run as it stands, whole or not at all.

        Raises
        ------
        SourceError
            The file cannot be written.
        """
        document = FORMAT.wrap({"settings": dict(self.settings), "taken": taken})
        try:
            engine.save_checkpoint(path=self.path, checkpoint_dict={ENTRY: canonical(document)})
        except OSError as error:
            raise SourceError(
                f"checkpoint must be a file that can be written, got {str(self.path)!r} ({error.strerror}); "
                "the run is charged all the same: make room, and run the same again, which goes on from the "
                "file if it is there"
            ) from error


def remove(path: Path) -> None:
    """Remove a checkpoint and its secrets; what is not there is not missed.

    Parameters
    ----------
    path : Path
    """
    path.unlink(missing_ok=True)
    secrets_of(path).unlink(missing_ok=True)
