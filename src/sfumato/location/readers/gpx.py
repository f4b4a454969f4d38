"""Tracks in GPX, read without entities: a file cannot make the reader expand or fetch anything."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from xml.parsers import expat

import numpy as np

from sfumato import _check
from sfumato.errors import ParameterError, SourceError
from sfumato.location.metrics.coordinates import as_degrees
from sfumato.location.readers.positions import Positions

__all__ = ["read_gpx"]

_POINTS = {"trkpt", "wpt", "rtept"}


class _Reader:
    """The handlers of one file."""

    def __init__(self) -> None:
        self.points: list[tuple[float, float]] = []
        self.times: list[datetime | None] = []
        self._inside = False
        self._text: list[str] | None = None

    def start(self, name: str, attributes: dict[str, str]) -> None:
        local = name.rpartition(":")[2]
        if local in _POINTS:
            self._inside = True
            self.points.append(
                (_degrees(attributes.get("lat", "nan")), _degrees(attributes.get("lon", "nan")))
            )
            self.times.append(None)
        elif local == "time" and self._inside:
            self._text = []

    def end(self, name: str) -> None:
        local = name.rpartition(":")[2]
        if local in _POINTS:
            self._inside = False
        elif local == "time" and self._text is not None:
            self.times[-1] = _time("".join(self._text))
            self._text = None

    def text(self, part: str) -> None:
        if self._text is not None:
            self._text.append(part)


def _degrees(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")


def _time(text: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(text.strip())
        return found if found.tzinfo is None else found.astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        return None


def _no_document_type(*_: object) -> None:
    _check.refuse_state(
        "file", "have no document type", "it declares one", "remove its DOCTYPE and its entities"
    )


def read_gpx(file: str | Path) -> Positions:
    """Return the points of a GPX file: of tracks, routes and waypoints.

    Parameters
    ----------
    file : str or Path
        Path of the file.

    Returns
    -------
    Positions
        With times, where each point has one.

    Raises
    ------
    SourceError
        If the file cannot be read, or is no XML.
    ParameterError
        If it declares a document type, or a coordinate is missing or out of range.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "walk.gpx"
    ...     _ = path.write_text('<gpx><trk><trkseg><trkpt lat="52.5" lon="13.4"/></trkseg></trk></gpx>')
    ...     read_gpx(path).latitude
    array([52.5])
    """
    reader = _Reader()
    parser = expat.ParserCreate()
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.text
    refused: Callable[..., None] = _no_document_type
    parser.StartDoctypeDeclHandler = refused
    parser.EntityDeclHandler = refused
    try:
        content = Path(file).read_bytes()
    except OSError as error:
        raise SourceError("the GPX file cannot be read; check its path and rights") from error
    try:
        parser.Parse(content, True)
    except ParameterError:
        raise
    except (expat.ExpatError, LookupError, ValueError):  # the latter two: an encoding that is not known
        raise SourceError("the file is no XML; pass a GPX file") from None
    points = np.array(reader.points, float).reshape(-1, 2)
    latitude, longitude = as_degrees(points[:, 0], points[:, 1])
    timed = bool(reader.times) and None not in reader.times
    return Positions(latitude, longitude, np.array(reader.times, "datetime64[ms]") if timed else None)
