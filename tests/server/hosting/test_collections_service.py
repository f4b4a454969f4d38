"""Many collections in one real process: a change of keys, times and collections while it runs, and a kill."""

from __future__ import annotations

import http.client
import json
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from sfumato.errors import ParameterError, SourceError
from sfumato.local import device
from sfumato.local.shuffle import Collection, SecretKey
from sfumato.server import Shuffler, Visitor, serve_collections
from sfumato.server.hosting.collection_settings import SHUFFLED
from sfumato.server.hosting.configuration import Configuration
from tests.forks import server_fork
from tests.server.setting import ANALYST, IMPORTS, SHUFFLER, collection, memory_folder, values_in

LATER = SecretKey("shuffler", b"l" * 32)
WEEKS = {name: collection(4, name=name) for name in ("week-7", "week-8", "week-9")}
PAST, FUTURE = "2020-01-01T00:00:00Z", "2120-01-01T00:00:00Z"
HEAD = 'folder = "store"\nport = 0\nmetrics-port = 0\njson-log = true\ndefault = "week-7"\n'
OLD = '[[collections.week-7.keys]]\nfile = "old.key"\n'
NEW = '[[collections.week-7.keys]]\nfile = "new.key"\n'
SERVE = """
import sys
from pathlib import Path
from sfumato.server import serve_collections
from sfumato.server.hosting.collection_settings import SHUFFLED
from sfumato.server.hosting.configuration import Configuration
where = Configuration(file=Path(sys.argv[1]), kind=SHUFFLED, options={}, environment={}, default_port=1)
serve_collections(where, lambda line: print(line, flush=True))
"""


def table(name: str, *lines: str) -> str:
    return "\n".join([f"[collections.{name}]", f'file = "{name}.json"', *lines, ""])


def write(folder: Path, *tables: str, head: str = HEAD) -> Path:
    """The file with these tables; also the files that it names, if they are missing."""
    for name, made in WEEKS.items():
        if not (folder / f"{name}.json").exists():
            (folder / f"{name}.json").write_text(json.dumps(made.specification()))
    for name, key in (("old.key", SHUFFLER), ("new.key", LATER)):
        if not (folder / name).exists():
            key.to_file(folder / name)
    (folder / "collector.toml").write_text(head + "".join(tables))
    return folder / "collector.toml"


class Running:
    """The process, and the lines that it printed, read one by one."""

    def __init__(self, popen: Any) -> None:
        self.popen = popen
        self.url = self.line("started")["url"]

    def line(self, event: str) -> dict[str, Any]:
        """The next line of an event."""
        while text := self.popen.stdout.readline():
            found: dict[str, Any] = json.loads(text)
            if found["event"] == event:
                return found
        raise AssertionError(self.popen.stderr.read())

    def reload(self) -> None:
        self.popen.send_signal(signal.SIGHUP)


@contextmanager
def running(file: Path) -> Iterator[Running]:
    with server_fork(SERVE, str(file), imports=IMPORTS) as popen:
        yield Running(popen)


def sent(made: Collection, client: int, key: SecretKey = SHUFFLER) -> bytes:
    return made.device.envelope(client, client.to_bytes(16, "big"), key=key.public)


def ask(connection: http.client.HTTPConnection, path: str, body: bytes | None = None) -> tuple[int, Any]:
    connection.request("GET" if body is None else "POST", path, body=body)
    response = connection.getresponse()
    content = response.read()
    return response.status, content.decode() if path == "/metrics" else json.loads(content)


@pytest.mark.parametrize("killed", [False, True])
def test_it_goes_on_with_other_keys_times_and_collections(killed: bool) -> None:
    seven, eight = WEEKS["week-7"], WEEKS["week-8"]
    taken = (200, {"taken": 1, "refused": 0})
    refused = (422, {"taken": 0, "refused": 1})
    with memory_folder() as folder:
        file = write(folder, table("week-7"), OLD, table("week-8", 'key = "old.key"'))
        with running(file) as process:
            place, _, port = process.url.removeprefix("http://").partition(":")
            one = http.client.HTTPConnection(place, int(port), timeout=60)
            one.connect()
            held = one.sock  # the same connection all the time
            numbers = process.line("metrics")["url"].split("/")[2].split(":")
            operator = http.client.HTTPConnection(numbers[0], int(numbers[1]), timeout=60)

            listed = ask(one, "/v1/collections")[1]["collections"]
            assert [each["name"] for each in listed] == ["week-7", "week-8"]
            assert listed[1]["collection"] == eight.device.id.hex()
            assert ask(one, "/week-7/v1/reports", sent(seven, 0)) == taken
            assert ask(one, "/v1/reports", sent(seven, 1)) == taken  # the default one
            assert ask(one, "/week-8/v1/reports", sent(eight, 0)) == taken
            assert ask(one, "/week-7/v1/keys")[1]["offered"] == SHUFFLER.public.id
            assert ask(one, "/healthz") == (200, {"status": "ok"})

            # A new key is offered, and the old one opens until its date; a week begins, another has begun.
            write(
                folder,
                table("week-7"), OLD, f"until = {FUTURE}\n", NEW,
                table("week-8", 'key = "old.key"', f"expires = {PAST}"),
                table("week-9", 'key = "old.key"', f"not-before = {FUTURE}"),
            )  # fmt: skip
            process.reload()
            assert process.line("reloaded")["opened"] == ["week-9"]
            assert ask(one, "/v1/keys")[1]["offered"] == LATER.public.id
            assert ask(one, "/v1/reports", sent(seven, 2, LATER)) == taken
            assert ask(one, "/v1/reports", sent(seven, 3)) == taken
            assert ask(one, "/week-7/v1/status")[1]["batches"] == 1
            assert ask(one, "/week-8/v1/status")[1]["expires"].startswith("2020")
            assert one.sock is held
            assert ask(one, "/week-8/v1/reports", sent(eight, 1))[0] == 410
            assert ask(one, "/week-9/v1/reports", sent(WEEKS["week-9"], 1))[0] == 403

            # The old key's date is over; a week is left out.
            write(folder, table("week-7"), OLD, f"until = {PAST}\n", NEW, table("week-8", 'key = "old.key"'))
            process.reload()
            assert process.line("reloaded")["closed"] == ["week-9"]
            assert ask(one, "/v1/reports", sent(seven, 4)) == refused
            assert ask(one, "/v1/reports", sent(seven, 4, LATER)) == taken
            assert ask(one, "/week-8/v1/reports", sent(eight, 1)) == taken
            assert ask(one, "/week-9/v1/status")[0] == 404

            page = ask(operator, "/metrics")[1]
            for sample in (
                'sfumato_reports_taken_total{collection="week-7"} 5',
                'sfumato_batches_total{collection="week-7"} 1',
                'sfumato_envelopes_refused_total{collection="week-7",reason="seal"} 1',
                'sfumato_requests_refused_total{collection="week-8",reason="expired"} 1',
                'sfumato_connections_refused_total{reason="late"} 0',
            ):
                assert f"{sample}\n" in page
            assert ask(operator, "/v1/collections")[0] == ask(operator, "/week-7/v1/status")[0] == 404

            # What breaks a rule changes nothing; what takes a restart is said.
            write(folder, table("week-7"), NEW, 'until = "soon"\n')
            process.reload()
            error = process.line("reload-failed")
            assert "collections.week-7.keys[0].until must be a time" in error["message"]
            (folder / "week-8.json").write_text(json.dumps(WEEKS["week-9"].specification()))
            write(folder, table("week-7"), OLD, table("week-8", 'key = "old.key"'))
            process.reload()
            assert (
                "collections.week-8 must stay the same collection" in process.line("reload-failed")["message"]
            )
            (folder / "week-8.json").unlink()
            (folder / "later.json").write_text(json.dumps(eight.specification()))
            write(folder, table("week-7"), OLD, table("later", 'key = "old.key"'))
            process.reload()  # under another name its devices would count again
            assert "must stay week-8, got 'later'" in process.line("reload-failed")["message"]
            assert ask(one, "/week-8/v1/reports", sent(eight, 1)) == taken
            changed = HEAD.replace("port = 0\n", "port = 1\n", 1)
            slower = table("week-8", 'key = "old.key"', "rate = 9", f"expires = {FUTURE}")
            write(folder, table("week-7"), NEW, OLD, slower, head=changed)
            process.reload()
            assert process.line("reloaded")["times"] == ["week-8"]
            assert process.line("restart-needed")["settings"] == ["port", "collections.week-8.rate"]
            one.close()
            operator.close()
            if not killed:
                process.popen.terminate()
                out, err = process.popen.communicate(timeout=60)
                assert err == ""
                assert [json.loads(line)["batches"] for line in out.splitlines()] == [1, 0]
                return
            process.popen.kill()

        write(folder, table("week-7"), OLD, NEW, table("week-8", 'key = "old.key"'))
        with running(file) as process:  # after the kill: nothing is lost, and nobody counts twice
            with Visitor(f"{process.url}/week-7") as visitor:
                offered = device.offered_key(seven.device, visitor.keys(), [LATER.public.id])
                assert offered == LATER.public
                assert visitor.send([sent(seven, client, LATER) for client in range(8)])["taken"] == 8
                batches = [visitor.batch(number, ANALYST) for number in (1, 2)]
                assert visitor.status()["batches"] == 2
            assert [values_in(seven, data) for data in batches] == [Counter(range(4)), Counter(range(4, 8))]
            process.popen.terminate()
            out, err = process.popen.communicate(timeout=60)
    stopped = [json.loads(line) for line in out.splitlines() if '"stopped"' in line]
    assert [(each["name"], each["batches"]) for each in stopped] == [("week-7", 2), ("week-8", 0)]
    assert err == ""


def test_the_analyst_changes_its_key_and_a_kill_loses_no_report() -> None:
    made, key = WEEKS["week-7"], 'key = "old.key"'
    second = SecretKey("analyst", b"m" * 32)

    def listed(until: str) -> str:
        each = '[[collections.week-7.analyst-keys]]\npublic = "{}"\n'
        lines = [each.format(key.public.to_text()) for key in (ANALYST, second)]
        return f"until = {until}\n".join(lines)

    def report(client: int, analyst: device.PublicKey | None = None) -> bytes:
        return made.device.envelope(client, client.to_bytes(16, "big"), analyst=analyst)

    with memory_folder() as folder:
        with running(write(folder, table("week-7", key))) as process:
            with Visitor(process.url) as visitor:
                assert device.offered_analyst_key(made.device, visitor.keys()) == ANALYST.public
                assert visitor.send([report(0), report(1)]) == {"taken": 2, "refused": 0}
                assert visitor.send([report(9, second.public)]) == {"taken": 0, "refused": 1}
                write(folder, table("week-7", key), listed(FUTURE))
                process.reload()
                line = process.line("reloaded")
                times, added = f"analyst {ANALYST.public.id}", f"analyst {second.public.id}"
                assert line["keys"] == {"week-7": {"added": [added], "changed": [times]}}
                short = [text[: len("analyst ") + 16] for text in (added, times)]
                what = f"keys added of week-7: {short[0]}; keys changed of week-7: {short[1]}"
                assert line["message"] == f"collections: week-7; {what}"
                with pytest.raises(ParameterError, match="offer must be of a key that is pinned"):
                    device.offered_analyst_key(made.device, visitor.keys())
                new = device.offered_analyst_key(made.device, visitor.keys(), [second.public.id])
                sent = [report(n, new if n % 2 else None) for n in range(2, 7)]
                assert visitor.send(sent) == {"taken": 5, "refused": 0}
                assert visitor.status()["batches"] == 1  # 0, 1, 2 and 4; the others wait for their own
            process.popen.kill()
        write(folder, table("week-7", key), listed(PAST))
        with running(folder / "collector.toml") as process, Visitor(process.url, attempts=1) as visitor:
            assert visitor.send([report(8)]) == {"taken": 0, "refused": 1}  # the old key's time is over
            again = [report(n, new) for n in (0, 3, 5, 7, 9)]
            assert visitor.send(again) == {"taken": 5, "refused": 0}
            with pytest.raises(SourceError, match="got status 401"):
                visitor.batch(1, ANALYST)  # nor is its word good any more
            with made.opening([ANALYST, second]) as opening:
                opening.add_batches([visitor.batch(number, second) for number in (1, 2)])
    assert opening.estimate().reports == 8
    assert (opening.refused["seal"], opening.exposed) == (0, ())


def from_address(url: str, last: int, path: str, body: bytes) -> int:
    """The status that an address of this machine is answered."""
    place, _, port = url.removeprefix("http://").partition(":")
    source = (f"127.0.0.{last}", 0)
    connection = http.client.HTTPConnection(place, int(port), timeout=60, source_address=source)
    try:
        return ask(connection, path, body)[0]
    finally:
        connection.close()


@contextmanager
def limited(folder: Path, *lines: str) -> Iterator[tuple[Running, Any]]:
    """Two collections with limits in common, and what sends to them from an address."""
    tables = table("week-7", 'key = "old.key"'), table("week-8", 'key = "old.key"')
    with running(write(folder, *tables, head=HEAD + "\n".join([*lines, ""]))) as process:
        yield process, partial(from_address, process.url)


def samples(process: Running) -> str:
    place = process.line("metrics")["url"].split("/")[2].split(":")
    operator = http.client.HTTPConnection(place[0], int(place[1]), timeout=60)
    page = str(ask(operator, "/metrics")[1])
    operator.close()
    return page


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere 127.0.0.2 is no address of this machine")
def test_an_address_and_the_disk_have_limits_across_collections() -> None:
    seven, eight = WEEKS["week-7"], WEEKS["week-8"]
    with memory_folder() as folder:
        size = 0
        for made in (seven, eight):
            with Shuffler(made.device, SHUFFLER, folder / "store" / made.name) as shuffler:
                size += shuffler.stored_bytes
        many = [sent(eight, client) for client in range(40)]
        with limited(folder, "rate-per-address = 0.001", f"total-stored = {size + 60_000}") as (
            process,
            send,
        ):
            assert send(2, "/week-7/v1/reports", sent(seven, 0)) == 200
            assert send(2, "/week-8/v1/reports", sent(eight, 0)) == 429  # the same address, whatever it asks
            for last in range(3, 60):
                body = b"".join(sent(eight, 40 * last + client) for client in range(len(many)))
                if send(last, "/week-8/v1/reports", body) != 200:
                    break
            assert send(60, "/week-8/v1/reports", many[0]) == send(61, "/week-7/v1/reports", many[1]) == 503
            for batch in (folder / "store" / "week-8" / "batches").iterdir():
                batch.unlink()  # as who moves them away does
            with Visitor(f"{process.url}/week-7") as visitor:  # which tries again until there is room
                assert visitor.send([sent(seven, 1)]) == {"taken": 1, "refused": 0}
            page = samples(process)
    for name, reason, least in (("week-8", "sender", 1), ("week-7", "full", 1), ("week-8", "full", 2)):
        at = f'sfumato_requests_refused_total{{collection="{name}",reason="{reason}"}} '
        assert int(page.partition(at)[2].partition("\n")[0]) >= least


@pytest.mark.exhaustive
def test_a_rate_is_of_all_collections_together() -> None:
    seven, eight = WEEKS["week-7"], WEEKS["week-8"]
    with memory_folder() as folder, limited(folder, "total-rate = 0.001") as (process, send):
        assert send(2, "/week-7/v1/reports", sent(seven, 0)) == 200
        assert send(3, "/week-8/v1/reports", sent(eight, 0)) == 429
        assert 'requests_refused_total{collection="week-8",reason="total"} 1\n' in samples(process)


def test_what_cannot_be_opened_is_refused_and_lets_go_of_the_rest(tmp_path: Path) -> None:
    file = write(tmp_path, table("week-7"), OLD, table("week-8", 'key = "old.key"'))

    def configuration(**options: object) -> Configuration:
        return Configuration(file=file, kind=SHUFFLED, options=options, environment={}, default_port=0)

    (tmp_path / "store" / "week-8").mkdir(parents=True)
    (tmp_path / "store" / "week-8" / "counters").write_bytes(b"junk")
    for options, told in (
        ({}, "'counters' must hold a collector's counters"),
        ({"host": "192.0.2.1"}, "host and port must be free on this machine"),
        ({"folder": "/dev/null/x"}, "folder must be one that can be written to"),
    ):
        for _ in range(2):  # week-7 was closed: it is not "open in one shuffler only"
            with pytest.raises(ParameterError, match=told):
                serve_collections(configuration(**options), pytest.fail)
