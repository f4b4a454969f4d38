"""Memoised places: a device that comes back to a place repeats what it reported there."""

from __future__ import annotations

import hashlib
import os
import threading
from pathlib import Path

import numpy as np

from sfumato import _check
from sfumato.crypto.sealed_file import SealedFile, key_from
from sfumato.errors import SourceError
from sfumato.location.guarantee.geo_indistinguishability import GeoIndistinguishability
from sfumato.location.places.place_mechanism import PlaceMechanism
from sfumato.numerics import Rng

__all__ = ["MemoizedPlaces"]


class MemoizedPlaces:
    """The memory of one device: one report for each declared place, drawn once.

    Parameters
    ----------
    mechanism : PlaceMechanism
        How a place is reported for the first time.
    max_places : int
        Most places that are ever reported; later ones are answered by -1.

    Raises
    ------
    ParameterError
        If a parameter breaks its rule.

    Notes
    -----
    Guarantee: `guarantee`, for two traces that come back to places at the same times (``x_i = x_j`` where
    ``y_i = y_j``) and the distance ``max_i d(x_i, y_i)``. However long the traces are, at most
    ``max_places`` reports are drawn. That a device is at a place again, and how many it visits, is not
    hidden. Memos are keyed by declared place, and never by coordinates: two coordinates of one place have
    one report.

    The guarantee lasts as long as the memory does. What the constructor makes is gone with its process: the
    next one draws anew, and its reports cost as much again. `create` keeps the memory in an encrypted file,
    where a memo is on the disk before its report leaves, and `open` goes on with it, one process at a time.
    A device reports in the process that made it only, and cannot be pickled: a copy would draw for itself.

    Examples
    --------
    >>> from sfumato.location import PlaceMetric, exponential_mechanism
    >>> mechanism = exponential_mechanism(PlaceMetric.grid(3, 3, cell=100.0), epsilon=0.01)
    >>> device = MemoizedPlaces(mechanism, max_places=2)
    >>> device.report(4) == device.report(4), round(device.guarantee.epsilon, 3)
    (True, 0.02)
    """

    def __init__(self, mechanism: PlaceMechanism, *, max_places: int) -> None:
        _check.instance("mechanism", mechanism, PlaceMechanism, "pass exponential_mechanism(...)")
        self._mechanism = mechanism
        self._max_places = _check.integer("max_places", max_places, minimum=1, remedy="pass how many")
        self._memos: dict[int, int] = {}
        self._file: SealedFile | None = None
        self._process = os.getpid()
        self._lock = threading.Lock()

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        key: bytes | str | os.PathLike[str],
        mechanism: PlaceMechanism,
        *,
        max_places: int,
    ) -> MemoizedPlaces:
        """Return a device whose memory is in a new file; a file that is there is refused.

        Parameters
        ----------
        path : path
            Of the file; its folder must exist.
        key : bytes or path
            32 secret bytes, or a file to store them in, made if it is missing.
        mechanism : PlaceMechanism
        max_places : int

        Returns
        -------
        MemoizedPlaces

        Raises
        ------
        ParameterError
            If a parameter breaks its rule.
        SourceError
            If there is a file already, none can be written, or another process holds it.

        Examples
        --------
        >>> import tempfile
        >>> from sfumato.location import PlaceMetric, exponential_mechanism
        >>> mechanism = exponential_mechanism(PlaceMetric.grid(3, 3, cell=100.0), epsilon=0.01)
        >>> path, key = Path(tempfile.mkdtemp()) / "places", os.urandom(32)
        >>> device = MemoizedPlaces.create(path, key, mechanism, max_places=2)
        >>> monday = device.report(4)
        >>> device.close()
        >>> MemoizedPlaces.open(path, key, mechanism, max_places=2).report(4) == monday
        True
        """
        device = cls(mechanism, max_places=max_places)
        file = SealedFile(Path(path), key_from(key, create=True))
        if file.exists:
            file.close()
            raise SourceError(f"path must be new, got {str(path)!r}, which is there; use MemoizedPlaces.open")
        device._file = file
        device._save({})
        return device

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        key: bytes | str | os.PathLike[str],
        mechanism: PlaceMechanism,
        *,
        max_places: int,
    ) -> MemoizedPlaces:
        """Return the device whose memory a file holds.

        Parameters
        ----------
        path, key, mechanism, max_places
            As in `create`.

        Returns
        -------
        MemoizedPlaces

        Raises
        ------
        ParameterError
            If a parameter breaks its rule.
        SourceError
            If there is no file, it was altered, is of another key, mechanism or cap, or another process holds
            it.
        """
        device = cls(mechanism, max_places=max_places)
        file = SealedFile(Path(path), key_from(key, create=False))
        try:
            public, secret = file.read()
        except BaseException:
            file.close()
            raise
        if public != device._digest():
            file.close()
            raise SourceError(
                "the file must be of this mechanism and max_places, but it is of others; pass the same"
            )
        rows = np.frombuffer(secret, "<i8").reshape(-1, 2).tolist()
        device._memos = {place: report for place, report in rows if place >= 0}
        device._file = file
        return device

    @property
    def guarantee(self) -> GeoIndistinguishability:
        """What all reports of this device satisfy together."""
        return self._mechanism.guarantee * self._max_places

    def report(self, place: int, rng: Rng = None) -> int:
        """Return the report of a place, the same one each time.

        Parameters
        ----------
        place : int
            Index of a place.
        rng : None, int, numpy Generator or RandomSource
            None for noise that protects; anything else simulates, without a file only.

        Returns
        -------
        int
            Index of a report; -1 if ``max_places`` others were reported before.

        Raises
        ------
        ParameterError
            If the index is none of a place, or this is not the process that made the device.
        SourceError
            If the file cannot be written; then nothing is reported.
        """
        place = _check.integer("place", place, remedy="pass an index")
        if place >= self._mechanism.metric.size:
            rule = f"be an index below {self._mechanism.metric.size}"
            _check.refuse_type("place", rule, place, "pass PlaceMetric.nearest(points)")
        if os.getpid() != self._process:
            remedy = "make it here, or close it there and open its file here"
            _check.refuse_state("device", "report in the process that made it", "this is another", remedy)
        if rng is not None and self._file is not None:
            _check.refuse_type("rng", "be None for a memory in a file", rng, "simulate without a file")
        with self._lock:
            if place not in self._memos:
                if len(self._memos) == self._max_places:
                    return -1
                memos = self._memos | {place: int(self._mechanism.release([place], rng)[0])}
                self._save(memos)
                self._memos = memos
            return self._memos[place]

    def close(self) -> None:
        """Let another process have the file; calling it again does nothing."""
        if self._file is not None:
            self._file.close()

    def _digest(self) -> bytes:
        metric = self._mechanism.metric
        content = hashlib.sha256(repr((metric.name, metric.unit, metric.digest, self._max_places)).encode())
        content.update(self._mechanism.weights.astype("<i8").tobytes())
        return content.digest()

    def _save(self, memos: dict[int, int]) -> None:
        """Write memos to the file, if there is one; its length does not show how many they are."""
        if self._file is None:
            return
        rows = np.full((self._max_places, 2), -1, "<i8")
        rows[: len(memos)] = np.array(list(memos.items()), "<i8").reshape(-1, 2)
        self._file.write(self._digest(), rows.tobytes())
