"""The file of a protocol: for the server, which counts, and for devices, which report."""

from __future__ import annotations

from typing import Any, Final

from sfumato._wire import Format
from sfumato.errors import ParameterError
from sfumato.local.base.protocol import LocalProtocol
from sfumato.local.base.specifications import protocol_from_specification, protocol_specification
from sfumato.local.shuffle.protocol import ShuffleProtocol

__all__ = ["protocol_from_document", "protocol_to_document"]

_FORMAT: Final = Format("sfumato.local-protocol")


def protocol_to_document(made: LocalProtocol[Any, Any]) -> dict[str, object]:
    """Return a protocol as a document, with the specification for devices under ``device``.

    >>> from sfumato import local
    >>> oracle = local.RandomizedResponse(epsilon=1.0, domain=local.Domain(["no", "yes"]))
    >>> protocol_from_document("file", protocol_to_document(oracle)) == oracle
    True
    """
    return _FORMAT.wrap({"protocol": protocol_specification(made), "device": made.device.specification()})


def protocol_from_document(name: str, document: object) -> LocalProtocol[Any, Any]:
    """Return the protocol of a document; its reports are private without a shuffler.

    Parameters
    ----------
    name : str
        What messages call the document.
    document : object
        What `protocol_to_document` returned, perhaps by way of JSON.

    Raises
    ------
    ParameterError
        If it is another document, or of a protocol that needs a shuffler.
    """
    _, fields = _FORMAT.unwrap(name, document)
    found = protocol_from_specification(fields.get("protocol"))
    if not isinstance(found, LocalProtocol) or isinstance(found, ShuffleProtocol):
        raise ParameterError(f"{name} must be of a protocol without a shuffler; use sfumato shuffle")
    return found
