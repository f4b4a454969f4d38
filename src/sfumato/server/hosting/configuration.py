"""Where the settings of a service are, which may be read again and again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import final

from sfumato import _check
from sfumato.server.hosting.collection_settings import CollectionKind, CollectionSettings, read_collections
from sfumato.server.hosting.service_settings import SETTINGS, ServiceSettings, service_settings
from sfumato.server.hosting.toml_table import read_toml, refuse_unknown

__all__ = ["Configuration"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """Where the settings of a service are.

    Parameters
    ----------
    file : Path
        TOML.
    kind : CollectionKind
        What its collections are.
    options : mapping
        Those of the command line, which come first, by the names of settings.
    environment : mapping
        Which comes before the file.
    default_port : int
    """

    file: Path
    kind: CollectionKind
    options: Mapping[str, object]
    environment: Mapping[str, str]
    default_port: int

    def read(self) -> tuple[ServiceSettings, dict[str, CollectionSettings]]:
        """Return the service's settings and its collections.

        Raises
        ------
        ParameterError
            If one of them breaks its rule; the message names the place of the setting.
        """
        table = read_toml(self.file, (*SETTINGS, "collections"))
        service = service_settings(self.options, self.environment, table, default_port=self.default_port)
        if service.folder is None:
            remedy = "name a folder for all collections"
            _check.refuse_state(table.where("folder"), "be set", "it is not", remedy)
        collections = read_collections(table, self.kind)
        if service.default is not None and service.default not in collections:
            refuse_unknown(table.where("default"), service.default, tuple(collections))
        return service, collections
