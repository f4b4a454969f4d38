"""``collector.toml``: many collections and the settings of the service that takes their reports."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from sfumato import _check
from sfumato.cli.configuring.settings_text import helps_of, setting_text
from sfumato.cli.process.service_options import service_options
from sfumato.server.hosting.collection_settings import BATCH_SIZE
from sfumato.server.hosting.service_settings import PREFIX, SETTINGS

__all__ = ["local_file", "shuffle_file"]

_EXAMPLES: Final = {
    "folder": "store",
    "metrics-port": 9090,
    "rate-per-address": 20.0,
    "total-stored": 1 << 36,
    "origins": ["https://example.org"],
    "certificate": "server.pem",
    "certificate-key": "server.key",
}
_OPTIONS: Final = {"origins": "origin"}
_WITHOUT_OPTION: Final = {
    "default": "Name of the collection that is served without a name before its paths as well.",
    "total-rate": "Maximum of reports a second, of all collections together.",
    "rate-per-address": "Maximum of reports a second from one address; no limit unless set.",
    "total-waiting": "Maximum of bytes that wait to be stored, of all collections together.",
    "total-stored": "Bytes on the disk from which on reports are refused; no limit unless set.",
}
"""Settings that are none of the command line."""
_TITLE: Final = """\
# {file}: settings of sfumato {command} serve --config, read again on SIGHUP.
# Take away the # before a line to set it. An option on the command line comes first, then the environment
# ({prefix}PORT and so on), then this file. Paths are from this file's folder.
"""


def local_file(output: Path, protocols: Sequence[Path], port: int) -> str:
    """Return the text of a file for ``sfumato local serve``.

    Parameters
    ----------
    output : Path
        Where it will be.
    protocols : sequence of Path
        What each collection asks.
    port : int
        That of the service by default.
    """
    parts = [_service(output, "local", port, protocols)]
    for name, path in _named(protocols).items():
        parts.append(
            f"[collections.{name}]\n"
            + setting_text("file", "The protocol's file, of plan or protocol.", _from(output, path), on=True)
        )
        parts += [
            setting_text("name", "Tells collections apart, such as two weeks.", name, default=name),
            setting_text(
                "batch-size",
                "Devices whose reports are written out together.",
                BATCH_SIZE,
                default=BATCH_SIZE,
            ),
            *_limits(),
        ]
    return "\n".join(parts)


def shuffle_file(output: Path, collections: Sequence[Path], key: Path, port: int) -> str:
    """Return the text of a file for ``sfumato shuffle serve``.

    Parameters
    ----------
    output : Path
        Where it will be.
    collections : sequence of Path
        What each collection asks.
    key : Path
        The shuffler's secret key.
    port : int
        That of the service by default.
    """
    parts = [_service(output, "shuffle", port, collections)]
    for name, path in _named(collections).items():
        parts.append(
            f"[collections.{name}]\n"
            + setting_text("file", "The collection's file.", _from(output, path), on=True)
        )
        keys = (
            "The file of the shuffler's secret key; tables [[collections.NAME.keys]] list several, and "
            "[[collections.NAME.analyst-keys]] the analyst's, as docs/shuffler.md shows."
        )
        parts += [setting_text("key", keys, _from(output, key), on=True), *_limits()]
    return "\n".join(parts)


def _service(output: Path, command: str, port: int, files: Sequence[Path]) -> str:
    helps = helps_of(service_options)
    parts = [_TITLE.format(file=output.name, command=command, prefix=PREFIX)]
    for name, (_, default) in SETTINGS.items():
        help_ = _WITHOUT_OPTION.get(name) or helps[_OPTIONS.get(name, name)][0]
        known: Any = port if name == "port" else default or None
        value = _EXAMPLES.get(name, next(iter(_named(files))) if name == "default" else known)
        shown = default if isinstance(default, bool) else known
        value = default if value is None else value
        help_ = re.sub(r" \(\S+\)\.$", ".", help_)  # the default, which is stated here anyhow
        parts.append(setting_text(name, help_, value, default=shown, on=name == "folder"))
    return "\n".join(parts)


def _limits() -> list[str]:
    times = "of reports; a time with its offset"
    begin, end = (dt.datetime(2026, month, 1, tzinfo=dt.UTC).isoformat() for month in (1, 2))
    return [
        f"# Begin {times}. Default: at once\n#not-before = {begin}\n",
        f"# End {times}. Default: never\n#expires = {end}\n",
        setting_text("rate", "Maximum of reports a second; of the service unless set.", 200.0),
    ]


def _named(files: Sequence[Path]) -> dict[str, Path]:
    """Return the files by the names of their collections, which stand in URLs."""
    found: dict[str, Path] = {}
    for path in files:
        name = re.sub("[^a-z0-9-]+", "-", path.stem.lower()).strip("-")[:64]
        if not name or name in found:
            rule = "have names of their own, of a-z and 0-9"
            _check.refuse("the files", rule, str(path), "name the collections in the file")
        found[name] = path
    return found


def _from(output: Path, path: Path) -> Path:
    """Return a path as it is written in the file."""
    base, target = output.absolute().parent, path.absolute()
    return target.relative_to(base) if target.is_relative_to(base) else target
