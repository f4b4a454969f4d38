"""The process that `tests.forks` forks: it imports what it is asked to, and becomes what each request says.

``python fork_server.py SOCKET``; it ends with the process that started it. It imports nothing of its own, so
that a fork finds no package but those that were asked for.
"""

from __future__ import annotations

import gc
import json
import os
import socket
import sys
from typing import Any

LONGEST = 1 << 20
"""Bytes of a request, at most."""


def _request(listening: socket.socket) -> dict[str, Any] | None:
    """Fork for each request; return the request in the process that is to do it, and None at the end."""
    done: set[str] = set()
    while True:
        message, outputs, _, _ = socket.recv_fds(listening, LONGEST, 2)
        if not message:
            return None
        request: dict[str, Any] = json.loads(message)
        if request["imports"] not in done:
            exec(request["imports"], {})
            done.add(request["imports"])
            gc.freeze()
        reading, writing = os.pipe()
        between = os.fork()
        if not between:
            child = os.fork()
            if child:
                os.write(writing, str(child).encode())
                os._exit(0)
            for number, output in enumerate(outputs, 1):
                os.dup2(output, number)
        for held in (writing, *outputs):
            os.close(held)
        if not between:
            os.close(reading)
            return request
        os.waitpid(between, 0)  # from here on the child is the one's who asked
        listening.send(os.read(reading, 100))
        os.close(reading)


def main() -> None:
    """Serve, and run a request's code as the rest of this program."""
    del sys.path[0]  # this folder
    with socket.socket(fileno=int(sys.argv[1])) as listening:
        request = _request(listening)
    if request is None:
        return
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    sys.path[:0] = request["path"]
    sys.argv = request["words"]
    exec(request["code"], {"__name__": "__main__"})


if __name__ == "__main__":
    main()
