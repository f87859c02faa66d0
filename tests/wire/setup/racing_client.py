"""Clients in a separate process: they connect, all send at a signal, and print the responses.

test_race.py runs it as a program, with the standard library alone, so that it starts quickly.
"""

import json
import socket
import sys
from http.client import HTTPResponse
from typing import Final

LOOPBACK: Final = "127.0.0.1"
TIMEOUT: Final = 30  # seconds


def main() -> None:
    """Standard input: a JSON list of [port, request], then an empty line as the signal to send."""
    connections = [(connect(port), request.encode()) for port, request in json.loads(sys.stdin.readline())]
    print("ready", flush=True)  # noqa: T201
    sys.stdin.readline()
    for connection, request in connections:
        connection.sendall(request)
    print(json.dumps([read_status(connection) for connection, _ in connections]))  # noqa: T201


def connect(port: int) -> socket.socket:
    connection = socket.create_connection((LOOPBACK, port), timeout=TIMEOUT)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def read_status(connection: socket.socket) -> int:
    with connection:
        response = HTTPResponse(connection)
        response.begin()
        return response.status


if __name__ == "__main__":
    main()
