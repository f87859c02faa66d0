"""A proxy between a node and PostgreSQL that understands enough of the protocol to fail at a chosen message.

It forwards every message unless told otherwise: `cut_commit_of` drops the response to one commit and the connection;
`deaf` drops notifications; `silent` drops everything the server sends; `away` refuses connections.
"""

import asyncio
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

from tests.support.postgres import database_name
from tests.support.processes import LOOPBACK
from tests.support.service import RunningService, running_service

SSL_REQUEST: Final = 80877103
LENGTH: Final = 4  # bytes
NOTIFICATION: Final = b"A"


class PostgresProxy:
    def __init__(self, server_port: int) -> None:
        self.port = 0
        self.cuts = 0
        self.drops_notices = False
        self.drops_responses = False
        self.refuses_connections = False
        self._server_port = server_port
        self._statement_part = ""  # part of the statement whose commit is cut
        self._early = False
        self._then_refuse = False
        self._links: set[ProxiedConnection] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    def cut_commit_of(self, part_of_statement: str, *, early: bool = False, then_refuse: bool = False) -> None:
        """Forward the next matching commit, then close the connection instead of forwarding the response.

        `early`: close the connection as soon as the commit is sent, so that it may still be running. `stays_away`:
        refuse connections after that.
        """
        self._statement_part, self._early, self._then_refuse = part_of_statement, early, then_refuse

    def cut_all(self) -> None:
        for link in tuple(self._links):
            link.close()

    async def handle_connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.refuses_connections:
            writer.close()
            return
        there_reader, there_writer = await asyncio.open_connection(LOOPBACK, self._server_port)
        link = ProxiedConnection(self, client=writer, server=there_writer)
        self._links.add(link)
        for carrying in (link.forward_to_server(reader), link.forward_to_client(there_reader)):
            self._tasks.add(asyncio.create_task(carrying))

    def matches(self, sql: str) -> bool:
        return bool(self._statement_part) and self._statement_part in sql

    def on_commit_sent(self, link: "ProxiedConnection") -> None:
        link.is_cut = True
        self._statement_part = ""
        self.cuts += 1
        if self._then_refuse:
            self.refuses_connections = True
        if self._early:
            link.close_client()

    def on_connection_closed(self, link: "ProxiedConnection") -> None:
        self._links.discard(link)
        if link.is_cut and self.refuses_connections:
            self.cut_all()

    async def close(self) -> None:
        self.cut_all()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


class ProxiedConnection:
    """One connection of a node."""

    def __init__(self, proxy: PostgresProxy, *, client: asyncio.StreamWriter, server: asyncio.StreamWriter) -> None:
        self.is_cut = False
        self._proxy = proxy
        self._client = client
        self._server = server
        self._statements: dict[bytes, str] = {}
        self._in_transaction = False
        self._holds_wanted = False
        self._is_committing = False

    async def forward_to_server(self, reader: asyncio.StreamReader) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            await self._forward_startup(reader)
            while True:
                kind, body = await read_message(reader)
                sql = self._statement(kind, body)
                self._server.write(kind + struct.pack("!I", len(body) + LENGTH) + body)
                if sql and self._commits_wanted(sql):
                    self._is_committing = True
                if self._is_committing and kind in (b"Q", b"S"):  # Sync commits a statement outside of a transaction
                    await self._server.drain()
                    self._is_committing = False
                    self._proxy.on_commit_sent(self)
        if not self.is_cut:
            self._server.close()

    async def _forward_startup(self, reader: asyncio.StreamReader) -> None:
        """Forward the messages without a type byte; the first may request TLS, which the server declines."""
        while True:
            head = await reader.readexactly(LENGTH)
            body = await reader.readexactly(struct.unpack("!I", head)[0] - LENGTH)
            self._server.write(head + body)
            if struct.unpack("!I", body[:LENGTH])[0] != SSL_REQUEST:
                return

    def _statement(self, kind: bytes, body: bytes) -> str:
        match kind:
            case b"Q":
                return body.rstrip(b"\0").decode()
            case b"P":
                name, sql, _ = body.split(b"\0", 2)
                self._statements[name] = sql.decode()
            case b"B":
                _, name, _ = body.split(b"\0", 2)
                return self._statements.get(name, "")
        return ""

    def _commits_wanted(self, sql: str) -> bool:
        if sql.startswith("BEGIN"):
            self._in_transaction, self._holds_wanted = True, False
            return False
        if sql.startswith(("COMMIT", "ROLLBACK")):
            self._in_transaction = False
            return self._holds_wanted and sql.startswith("COMMIT")
        if self._proxy.matches(sql):
            self._holds_wanted = True
            return not self._in_transaction
        return False

    async def forward_to_client(self, reader: asyncio.StreamReader) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            first = await reader.readexactly(1)
            if first == b"N":  # no TLS
                self._client.write(first)
                first = await reader.readexactly(1)
            while True:
                body = await reader.readexactly(struct.unpack("!I", await reader.readexactly(LENGTH))[0] - LENGTH)
                if self.is_cut:
                    break  # the server has responded: the transaction is committed
                if not (self._proxy.drops_responses or (self._proxy.drops_notices and first == NOTIFICATION)):
                    self._client.write(first + struct.pack("!I", len(body) + LENGTH) + body)
                first = await reader.readexactly(1)
        self.close()

    def close_client(self) -> None:
        self._client.close()

    def close(self) -> None:
        self._client.close()
        self._server.close()
        self._proxy.on_connection_closed(self)


async def read_message(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    kind = await reader.readexactly(1)
    return kind, await reader.readexactly(struct.unpack("!I", await reader.readexactly(LENGTH))[0] - LENGTH)


@asynccontextmanager
async def postgres_proxy(server_port: int) -> AsyncIterator[PostgresProxy]:
    proxy = PostgresProxy(server_port)
    server = await asyncio.start_server(proxy.handle_connection, LOOPBACK, 0)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        server.close()
        await proxy.close()


@asynccontextmanager
async def service_behind(
    proxy: PostgresProxy, url: str, data: Path, **settings: str
) -> AsyncIterator[RunningService]:
    """A service whose statements go through the proxy; its notices do not."""
    through = f"postgresql://postgres@{LOOPBACK}:{proxy.port}/{database_name(url)}"
    environment = {"GATEHOUSE__DATABASE__LISTEN_URL": url, **settings}
    async with running_service(through, data, environment=environment) as running:
        yield running
