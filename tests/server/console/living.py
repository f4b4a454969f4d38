"""A console that listens on loopback in a thread, and a way to it on which connections break."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn

from sfumato.ledger import Renewal
from tests.server.console.office import Office

__all__ = ["broken_way", "living_office"]


@contextmanager
def living_office(
    folder: Path, *, clock: Callable[[], float] = time.time, renewal: Renewal | None = None
) -> Iterator[tuple[Office, str]]:
    """Serve a console with data until the end of the block; its address comes with it."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = f"http://127.0.0.1:{listening.getsockname()[1]}"
        office = Office(folder, data=True, origin=address, clock=clock, renewal=renewal)
        office.console.start()
        config = uvicorn.Config(office.app, lifespan="off", log_config=None, ws="none", loop="asyncio")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        try:
            while not server.started:
                time.sleep(0.005)
            yield office, address
        finally:
            server.should_exit = True
            thread.join(30)
            office.console.close()
    assert set(office.failures) <= {"a run failed with QueryCancelled"}


@contextmanager
def broken_way(port: int, answers_lost: int) -> Iterator[int]:
    """Pass requests on to a port; the first answers to POST are lost: the connection ends before them."""
    lost = [answers_lost]
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def passed(client: socket.socket) -> None:
            with client, socket.create_connection(("127.0.0.1", port)) as server:
                while request := client.recv(1 << 16):
                    server.sendall(request)
                    answer = server.recv(1 << 16)
                    if request.startswith(b"POST") and lost[0] > 0:
                        lost[0] -= 1
                        return
                    client.sendall(answer)
                    server.settimeout(0.05)
                    try:
                        while more := server.recv(1 << 16):
                            client.sendall(more)
                    except TimeoutError:
                        server.settimeout(None)

        def accepting() -> None:
            while True:
                try:
                    client, _ = listening.accept()
                except OSError:
                    return
                threading.Thread(target=passed, args=(client,), daemon=True).start()

        thread = threading.Thread(target=accepting, daemon=True)
        thread.start()
        yield listening.getsockname()[1]
        assert lost == [0]
        listening.shutdown(socket.SHUT_RDWR)
        thread.join(30)
