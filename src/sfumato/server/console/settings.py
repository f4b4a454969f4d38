"""What a console serves: its ledger, its data, where it listens, and how long answers take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, final
from urllib.parse import urlsplit

from sfumato import _check
from sfumato._durable import private_content
from sfumato.ledger import Renewal
from sfumato.server.console.access.oidc_settings import OidcSettings
from sfumato.server.console.asking.job_store import JobLimits
from sfumato.server.console.asking.time_grid import TimeGrid
from sfumato.server.console.guard.hosts import own_origins
from sfumato.server.hosting.toml_table import (
    Table,
    number_above_zero,
    port,
    positive_integer,
    read_toml,
    text,
    under,
)
from sfumato.synthetic import TableDomain

__all__ = ["OIDC_BACK", "SETTINGS", "ConsoleSettings", "read_settings"]

DEFAULT_PORT: Final = 8460

_OWN: Final = ("127.0.0.1", "::1", "localhost")
_TABLES: Final = ("dataset", "listening", "answers", "sign-in")
_DATASET: Final = (
    "source", "privacy-unit", "epsilon", "delta", "rho", "mu", "policy", "renewal", "period", "public",
    "types", "defaults", "columns", "threads", "memory-limit", "statement-timeout", "domains",
)  # fmt: skip
_LISTENING: Final = ("host", "port", "origins", "certificate", "certificate-key", "proxies")
_ANSWERS: Final = ("step", "first", "doublings", "per-analyst", "total")
_SIGN_IN: Final = ("hours", "proxy-header", "proxy-secret-file", "oidc")
_OIDC: Final = (
    "issuer", "client-id", "client-secret-file", "redirect-uri", "claim", "members", "ask-for",
)  # fmt: skip
SETTINGS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "": ("ledger", "folder", "title"),
        "dataset": _DATASET,
        "listening": _LISTENING,
        "answers": _ANSWERS,
        "sign-in": tuple(name for name in _SIGN_IN if name != "oidc"),
        "sign-in.oidc": _OIDC,
    }
)
"""What may be set, by the tables of the file."""
OIDC_BACK: Final = "/sign-in/oidc/back"
"""Where browsers come back from the provider."""
_LONGEST_SECRET: Final = 1 << 16


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleSettings:
    """What a console serves and how; `read_settings` reads it from a file.

    Parameters
    ----------
    ledger : str
        A file, or the address of a PostgreSQL database.
    folder : Path
        Of tokens and jobs; readable by the console alone.
    title : str
        What the pages call the dataset.
    dataset : mapping
        What `sfumato.connect` is called with, beside the ledger and the analyst; empty for a console
        that only shows what the ledger holds.
    domains : mapping of str to TableDomain
        What is public of the values of private tables, by table: dry runs are made of it.
    host : str
    port : int
        0 for any that is free.
    origins : tuple of str
        At which browsers reach it, such as ``"https://console.example"``; empty for this machine's own.
    certificate : tuple of two paths, optional
    proxies : tuple of str
        Addresses of proxies whose header is believed.
    proxy_header : str
        Of the header that names who signed in at a proxy; "" believes none.
    proxy_secret : bytes, optional
        Which that proxy sends along, where others can connect from its address.
    oidc : OidcSettings, optional
        An OpenID Connect provider that signs members in.
    hours : float
        After which who signed in has to do so again.
    grid : TimeGrid
        When answers leave.
    jobs : JobLimits
        How many questions may wait and run.
    """

    ledger: str
    folder: Path
    title: str = "data"
    dataset: Mapping[str, Any] = field(default_factory=dict)
    domains: Mapping[str, TableDomain] = field(default_factory=dict)
    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    origins: tuple[str, ...] = ()
    certificate: tuple[Path, Path] | None = None
    proxies: tuple[str, ...] = ("127.0.0.1", "::1")
    proxy_header: str = ""
    proxy_secret: bytes | None = field(default=None, repr=False)
    oidc: OidcSettings | None = None
    hours: float = 8.0
    grid: TimeGrid = field(default_factory=TimeGrid)
    jobs: JobLimits = field(default_factory=JobLimits)

    def __post_init__(self) -> None:
        if not self.origins and self.host not in _OWN:
            found = f"there are none for {self.host}"
            _check.refuse_state("origins", "be stated", found, 'such as ["https://console.example"]')

        if self.proxy_secret is not None and not self.proxy_header:
            found = "there is a secret without one"
            _check.refuse_state("proxy_header", "be stated with proxy_secret", found, "name the header")

    @property
    def behind_proxy(self) -> bool:
        """Whether all browsers come from a proxy's address: one that signs them in, or that has the TLS."""
        no_own_tls = self.certificate is None
        return bool(self.proxy_header) or (
            no_own_tls and any(one.startswith("https:") for one in self.origins)
        )

    @property
    def tokens(self) -> Path:
        """The file of the members' tokens."""
        return self.folder / "tokens"


def read_settings(file: Path, *, port: int | None = None) -> ConsoleSettings:
    """Read the settings from a file of TOML; paths in it start from its folder.

    Parameters
    ----------
    file : Path
    port : int, optional
        Instead of the file's.

    Raises
    ------
    ParameterError
        If it cannot be read, or one setting breaks its rule; the error names the file and the key.
    """
    whole = read_toml(Path(file), (*SETTINGS[""], *_TABLES))
    address = whole.required("ledger", text, "name a file, or postgresql://...")
    listening, answers, sign_in = (
        whole.table(name, known) if name in whole.values else Table(whole.file, name, {}, known)
        for name, known in (("listening", _LISTENING), ("answers", _ANSWERS), ("sign-in", _SIGN_IN))
    )
    pair = (listening.place("certificate"), listening.place("certificate-key"))
    if (pair[0] is None) is not (pair[1] is None):
        found = "one of certificate and certificate-key comes alone"
        _check.refuse_state(listening.where(), "set both or none", found, "set both, or a proxy with TLS")
    origins = listening.get("origins", _origins, ())
    proxy_secret = sign_in.place("proxy-secret-file")
    default = ConsoleSettings(ledger=address, folder=Path())
    grid = {
        "step": answers.get("step", number_above_zero, default.grid.step),
        "first": answers.get("first", positive_integer, default.grid.first),
        "doublings": answers.get("doublings", positive_integer, default.grid.doublings),
    }
    jobs = JobLimits(
        per_analyst=answers.get("per-analyst", positive_integer, default.jobs.per_analyst),
        total=answers.get("total", positive_integer, default.jobs.total),
    )
    with under(whole.where("answers")):
        times = TimeGrid(**grid)
    stated: dict[str, Any] = {
        "ledger": _address(whole, address),
        "folder": whole.place("folder") or whole.file.parent / "console",
        "title": whole.get("title", text, default.title),
        "dataset": _dataset(whole),
        "domains": _domains(whole),
        "host": listening.get("host", text, default.host),
        "port": listening.get("port", _port, default.port) if port is None else port,
        "origins": origins,
        "certificate": None if pair[0] is None or pair[1] is None else (pair[0], pair[1]),
        "proxies": listening.get("proxies", _texts, default.proxies),
        "proxy_header": sign_in.get("proxy-header", text, ""),
        "proxy_secret": None
        if proxy_secret is None
        else _secret(sign_in.where("proxy-secret-file"), proxy_secret).encode(),
        "oidc": _oidc(sign_in, origins),
        "hours": sign_in.get("hours", number_above_zero, default.hours),
    }
    with under(listening.where()):
        return ConsoleSettings(**stated, grid=times, jobs=jobs)


_port = port
"""The check, where the parameter has its name."""


def _address(whole: Table, given: str) -> str:
    """Return a ledger's address; a file's is from the settings' folder."""
    return given if "://" in given else str(whole.file.parent / given)


def _dataset(whole: Table) -> Mapping[str, Any]:
    """Return what a session is opened with."""
    if "dataset" not in whole.values:
        return {}
    table = whole.table("dataset", _DATASET)
    table.required("source", lambda where, value: value, "name a file, a table of files, or postgresql://...")
    found = {name.replace("-", "_"): value for name, value in table.values.items() if name != "domains"}
    found["source"] = _source(table, table.where("source"), found["source"])
    if "public" in found:
        found["public"] = _source(table, table.where("public"), found["public"])
    if "policy" in found:
        found["policy"] = str(table.place("policy"))
    if "renewal" in found:
        renewal = table.table("renewal", ("every", "column"))
        with under(renewal.where()):
            found["renewal"] = Renewal(
                every=renewal.required("every", text, 'such as "month"'),
                column=renewal.required("column", text, "name the column of the rows' time"),
            )
    if isinstance(found.get("privacy_unit"), list):
        found["privacy_unit"] = tuple(found["privacy_unit"])
    return found


def _domains(whole: Table) -> Mapping[str, TableDomain]:
    """Return the declared domains, each from a file of TOML or JSON."""
    if "domains" not in whole.values.get("dataset", {}):
        return {}
    table = whole.table("dataset", _DATASET).table("domains", tuple(whole.values["dataset"]["domains"]))
    found = {}
    for name in table.known:
        path, where = table.place(name), table.where(name)
        if path is None or path.suffix not in {".toml", ".json"}:
            _check.refuse(where, "be a file of TOML or JSON", str(path), "name it .toml or .json")
        with under(where):
            try:
                found[name] = (
                    TableDomain.from_toml(path)
                    if path.suffix == ".toml"
                    else TableDomain.from_json(path.read_text(encoding="utf-8"))
                )
            except OSError:
                _check.refuse("domain", "be a file that can be read", str(path), "check the path")
    return found


def _source(table: Table, where: str, given: object) -> object:
    """Return where tables lie: paths are from the settings' folder."""
    if isinstance(given, dict):
        return {name: _source(table, f"{where}.{name}", one) for name, one in given.items()}
    stated = text(where, given)
    return stated if "://" in stated else str(table.file.parent / stated)


def _texts(where: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        _check.refuse_type(where, "be a list of texts", value, 'write ["...", "..."]')
    return tuple(text(where, one) for one in value)


def _origins(where: str, value: object) -> tuple[str, ...]:
    with under(where):
        return own_origins(value)


def _oidc(sign_in: Table, origins: tuple[str, ...]) -> OidcSettings | None:
    """Return the provider; browsers come back to the first origin unless it says where."""
    if "oidc" not in sign_in.values:
        return None
    table = sign_in.table("oidc", _OIDC)
    back = table.get("redirect-uri", text, f"{origins[0]}{OIDC_BACK}" if origins else None)
    if back is None or urlsplit(back).path != OIDC_BACK:
        rule = f"be an address of this console with the path {OIDC_BACK}"
        _check.refuse(table.where("redirect-uri"), rule, back, "or state listening.origins and leave it out")
    secret = table.place("client-secret-file")
    members = table.table("members", tuple(table.values["members"])) if "members" in table.values else None
    stated: dict[str, Any] = {
        "issuer": table.required("issuer", text, "name the provider's URL"),
        "client_id": table.required("client-id", text, "the provider states it"),
        "client_secret": None if secret is None else _secret(table.where("client-secret-file"), secret),
        "redirect_uri": back,
        "claim": table.get("claim", text, "sub"),
        "members": None if members is None else {name: members.get(name, text) for name in members.known},
        "ask_for": table.get("ask-for", _texts, ("openid",)),
    }
    with under(table.where()):
        return OidcSettings(**stated)


def _secret(where: str, path: Path) -> str:
    """Return a secret from its file, which its owner alone can read."""
    try:
        content = private_content(path, _LONGEST_SECRET)
        if content is None:
            _check.refuse_state(
                where, "be a file that its owner alone can read", "others can", "chmod 600 it"
            )
        return content.decode().strip()
    except (OSError, UnicodeDecodeError):
        _check.refuse(where, "be a file that can be read", str(path), "check the path")
