from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sfumato.errors import ParameterError, SourceError
from sfumato.location import read_gpx

GPX = """<?xml version="1.0"?><gpx xmlns="http://www.topografix.com/GPX/1/1"><metadata>
<time>2020-01-01T00:00:00Z</time>
</metadata>
<wpt lat="1" lon="2"><time>2024-05-01T12:00:00Z</time></wpt>
<trk><trkseg>
<trkpt lat="52.5" lon="13.4"><ele>30</ele><time>2024-05-01T14:00:01+02:00</time></trkpt>
</trkseg></trk></gpx>"""


def _written(folder: Path, text: str) -> Path:
    path = folder / "walk.gpx"
    path.write_text(text, encoding="utf-8")
    return path


def test_points_and_their_times_in_utc(tmp_path: Path) -> None:
    found = read_gpx(_written(tmp_path, GPX))
    assert found.latitude.tolist() == [1, 52.5]
    assert found.longitude.tolist() == [2, 13.4]
    assert found.time is not None
    assert found.time.tolist() == np.array(["2024-05-01T12:00", "2024-05-01T12:00:01"], "M8[ms]").tolist()
    assert read_gpx(_written(tmp_path, GPX.replace("2024-05-01T12:00:00Z", "noon"))).time is None
    assert read_gpx(_written(tmp_path, "<gpx/>")).latitude.size == 0


def test_entities_are_never_expanded(tmp_path: Path) -> None:
    for kind in ('<!ENTITY a "1"><!ENTITY b "&a;&a;&a;">', '<!ENTITY a SYSTEM "file:///etc/hostname">', ""):
        text = f'<!DOCTYPE gpx [{kind}]><gpx><wpt lat="1" lon="2"><time>&a;</time></wpt></gpx>'
        with pytest.raises(ParameterError, match="file must have no document type"):
            read_gpx(_written(tmp_path, text))


def test_what_is_no_gpx(tmp_path: Path) -> None:
    for text in (
        '<gpx><wpt lat="91" lon="0"/></gpx>',
        '<gpx><wpt lon="0"/></gpx>',
        '<gpx><wpt lat="x" lon="0"/></gpx>',
    ):
        with pytest.raises(
            ParameterError, match="latitude must be degrees from -90 to 90, but a coordinate is missing"
        ):
            read_gpx(_written(tmp_path, text))
    with pytest.raises(SourceError, match="no XML"):
        read_gpx(_written(tmp_path, "<gpx>"))
    with pytest.raises(SourceError, match="cannot be read"):
        read_gpx(tmp_path / "none.gpx")


def test_a_time_beyond_the_calendar_is_none(tmp_path: Path) -> None:
    for time in ("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"):
        assert read_gpx(_written(tmp_path, GPX.replace("2024-05-01T12:00:00Z", time))).time is None


def test_an_unknown_encoding_is_no_xml(tmp_path: Path) -> None:
    for encoding in ("shift_jis", "nonsense", "hex", "utf-7"):
        text = GPX.replace('version="1.0"', f'version="1.0" encoding="{encoding}"')
        with pytest.raises(SourceError, match="no XML"):
            read_gpx(_written(tmp_path, text))
