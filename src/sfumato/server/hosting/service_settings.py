"""Settings of a service, each from the first place that states it: option, environment, file, default.

>>> found = service_settings({"port": 0}, {"SFUMATO_SERVE_RATE": "50"}, default_port=8420)
>>> found.listening(print).port, found.listening(print).limits.rate, found.folder
(0, 50.0, None)
>>> service_settings({}, {"SFUMATO_SERVE_RATE": "fast"}, default_port=8420)
Traceback (most recent call last):
...
sfumato.errors.ParameterError: SFUMATO_SERVE_RATE must be positive and finite, got 'fast'; write a number ...
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, final

from sfumato import _check
from sfumato.server.cross_origin import checked_origins
from sfumato.server.hosting.toml_table import (
    Table,
    flag,
    from_text,
    number_above_zero,
    port,
    positive_integer,
    rate,
    refuse_unknown,
    text,
    under,
)
from sfumato.server.limits import Limits
from sfumato.server.listening import Listening

__all__ = ["PREFIX", "SETTINGS", "ServiceSettings", "service_settings"]

PREFIX: Final = "SFUMATO_SERVE_"
"""Of variables of the environment."""


def origins(where: str, value: object) -> tuple[str, ...]:
    """Return the origins of pages that may report."""
    with under(where):
        return checked_origins(value)


SETTINGS: Final[Mapping[str, tuple[Callable[[str, object], Any], Any]]] = {
    "folder": (text, None),
    "host": (text, "127.0.0.1"),
    "port": (port, None),
    "rate": (rate, float("inf")),
    "connections": (positive_integer, 16_384),
    "per-address": (positive_integer, 256),
    "total-rate": (rate, float("inf")),
    "rate-per-address": (number_above_zero, None),
    "total-waiting": (positive_integer, 1 << 28),
    "total-stored": (positive_integer, None),
    "proxy": (flag, False),
    "timeout": (number_above_zero, 30.0),
    "metrics-host": (text, "127.0.0.1"),
    "metrics-port": (port, None),
    "json-log": (flag, False),
    "origins": (origins, ()),
    "certificate": (text, None),
    "certificate-key": (text, None),
    "default": (text, None),
}
"""Each with what checks it and its default."""

_PATHS: Final = ("folder", "certificate", "certificate-key")


@final
@dataclass(frozen=True, slots=True)
class ServiceSettings:
    """What a service does, beside its collections.

    Parameters
    ----------
    values : mapping
        Of all `SETTINGS`.
    """

    values: Mapping[str, Any]

    @property
    def folder(self) -> Path | None:
        """Where the collections' folders are."""
        found: Path | None = self.values["folder"]
        return found

    @property
    def default(self) -> str | None:
        """The name of the collection that is also served without a name before its paths."""
        found: str | None = self.values["default"]
        return found

    def listening(self, say: Callable[[str], None]) -> Listening:
        """Return where the service listens."""
        get = self.values.__getitem__
        pair = (get("certificate"), get("certificate-key"))
        return Listening(
            host=get("host"),
            port=get("port"),
            limits=Limits(
                rate=get("rate"),
                connections=get("connections"),
                per_address=None if get("proxy") else get("per-address"),
                total_rate=get("total-rate"),
                sender_rate=get("rate-per-address"),
                total_waiting=get("total-waiting"),
                total_stored=get("total-stored"),
                seconds=get("timeout"),
            ),
            certificate=None if pair[0] is None else pair,
            metrics=None if get("metrics-port") is None else (get("metrics-host"), get("metrics-port")),
            say=say,
            structured_log=get("json-log"),
            origins=get("origins"),
        )


def service_settings(
    options: Mapping[str, object],
    environment: Mapping[str, str],
    file: Table | None = None,
    *,
    default_port: int,
) -> ServiceSettings:
    """Return the settings, each from the first place that states it.

    Parameters
    ----------
    options : mapping
        From the command line, by the names of `SETTINGS`; None is not stated.
    environment : mapping
        Such as ``os.environ``; an empty text is not stated.
    file : Table, optional
    default_port : int

    Raises
    ------
    ParameterError
        If one breaks its rule, or the environment sets one of `PREFIX` that is not known.
    """
    variables = {f"{PREFIX}{name.replace('-', '_').upper()}": name for name in SETTINGS}
    for variable in environment:
        if variable.startswith(PREFIX) and variable not in variables:
            refuse_unknown("the environment", variable, tuple(variables))
    named = {name: variable for variable, name in variables.items()}
    values: dict[str, Any] = {}
    where: dict[str, str] = {}
    for name, (read, default) in SETTINGS.items():
        place, value = _stated(name, named[name], options, environment, file, textual=read is text)
        where[name] = place
        values[name] = default if value is None else read(place, value)
        if name in _PATHS and values[name] is not None:
            base = file.file.parent if file is not None and place == file.where(name) else Path()
            values[name] = base / values[name]
    if values["port"] is None:
        values["port"] = default_port
    if values["proxy"] and values["rate-per-address"] is not None:
        rule, found = "be left out with proxy", "all clients have the proxy's address"
        _check.refuse_state(where["rate-per-address"], rule, found, "limit them in the proxy")
    for one, other in (("certificate", "certificate-key"), ("certificate-key", "certificate")):
        if values[one] is not None and values[other] is None:
            _check.refuse_state(
                where[one], f"come with {other}", "it comes alone", "set both, or a proxy with TLS"
            )
    return ServiceSettings(values)


def _stated(
    name: str,
    variable: str,
    options: Mapping[str, object],
    environment: Mapping[str, str],
    file: Table | None,
    *,
    textual: bool,
) -> tuple[str, object]:
    """Return the first place that states a setting, and what it states; None if none does."""
    if options.get(name) is not None:
        value = options[name]
        return f"--{name}", str(value) if textual else value
    if environment.get(variable):
        return variable, environment[variable] if textual else from_text(environment[variable])
    if file is not None and name in file.values:
        return file.where(name), file.values[name]
    return name, None
