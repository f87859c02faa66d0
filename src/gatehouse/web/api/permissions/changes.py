"""GET /api/permissions/changes: server-sent events from the sealed audit log (interface §4.14)."""

from contextlib import aclosing
from typing import Final

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from gatehouse.fields.derive import copy_as
from gatehouse.kernel.times import iso8601
from gatehouse.permissions.changes.model import StreamChange, StreamChangeKind
from gatehouse.permissions.changes.readers import ChangeReader, ChangeReaders
from gatehouse.permissions.changes.streams import BadEventId, ChangeStream, ChangeStreams, StreamEvent
from gatehouse.permissions.documents.grammar import ApplicationDigits
from gatehouse.web.api.permissions.authentication import CredentialFields, credentials_of
from gatehouse.web.api.permissions.schemas import parse_optional_application_id
from gatehouse.web.http.errors import Dialect
from gatehouse.web.http.parse import raw_body, read_query
from gatehouse.web.http.request_headers import header_values
from gatehouse.web.http.routing import Endpoint, RateClass, RequiredAuth
from gatehouse.web.server.protocol import CONNECTION_KEY

HEADERS: Final = {
    "Content-Type": "text/event-stream",
    "Cache-Control": "no-store, no-transform",
    "X-Accel-Buffering": "no",  # nginx would otherwise hold events back
}
RETRY_LINE: Final = b"retry: 2000\n"  # milliseconds until a browser's EventSource connects again
EXAMPLE: Final = (
    "id: AdE2pxK8\n"
    'data: {"kind":"record","event":"user_schema.saved","at":"2026-05-04T09:30:00Z","application_id":50001,'
    '"user_id":"1000000001"}\n\n'
)
NO_FIELDS: Final = CredentialFields()


class ChangesQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    application_id: ApplicationDigits | None = None
    kind: tuple[StreamChangeKind, ...] = ()


class ChangeEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The data of one event. A field is left out when it does not apply or the caller may not see it."""

    kind: StreamChangeKind
    event: str = ""  # of the audit log
    at: str = ""
    application_id: int = 0
    project_id: str = ""
    group_id: str = ""
    client_id: str = ""
    user_id: str = ""
    user_bucket: str = ""  # the first three hex digits of SHA-256 of the user_id


class EventStreamResponse(Response):
    """Sends the events of a stream until it ends or its client leaves.

    A client that does not read pauses it, and after a minute the server closes the connection (S-19).
    """

    def __init__(self, stream: ChangeStream) -> None:
        super().__init__(None, 200, HEADERS)
        del self.headers["Content-Length"]
        self._stream = stream

    async def __call__(self, scope: Scope, _receive: Receive, send: Send) -> None:
        scope[CONNECTION_KEY].when_lost(self._stream.end)
        begin = RETRY_LINE
        async with aclosing(self._stream.batches()) as batches:
            async for events in batches:
                if begin:  # only now: until the stream is open, an error is a response of its own
                    await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
                body = begin + b"".join(map(event_lines, events))
                await send({"type": "http.response.body", "body": body, "more_body": True})
                begin = b""
        await send({"type": "http.response.body", "body": b"", "more_body": False})


class ChangesEndpoint(Struct, kw_only=True, eq=False):
    streams: ChangeStreams
    readers: ChangeReaders

    async def handle(self, request: Request) -> Response:
        query = read_query(request, ChangesQuery)
        application_id = parse_optional_application_id(query.application_id)
        kinds = frozenset(query.kind)
        await raw_body(request)
        credentials = credentials_of(request, NO_FIELDS)

        async def authorize() -> ChangeReader:
            return await self.readers.authorize(credentials, application_id, kinds)

        stream = await self.streams.prepare(authorize, last_event_id_of(request))
        return Response(None, 200, HEADERS) if request.method == "HEAD" else EventStreamResponse(stream)

    def endpoint(self) -> Endpoint:
        return Endpoint(
            name="permissions.changes",
            path="/api/permissions/changes",
            methods=("GET",),
            handler=self.handle,
            dialect=Dialect.PERMISSIONS,
            rate_class=RateClass.ADMIN,
            section="interface §4.14",
            summary="Changes as server-sent events; continues after Last-Event-ID",
            request=ChangesQuery,
            answers={200: ChangeEntry},
            event_stream=EXAMPLE,
            auth=RequiredAuth.USER_OR_APPLICATION,
        )


def last_event_id_of(request: Request) -> str | None:
    headers = header_values(request.scope, b"last-event-id")
    if len(headers) > 1:
        raise BadEventId("Last-Event-ID: sent twice")
    return headers[0] if headers and headers[0] else None


def event_lines(event: StreamEvent) -> bytes:
    """Return the lines of one event; those of a heartbeat have only the id, which clients remember."""
    data = b"" if event.change is None else b"data: " + msgspec.json.encode(change_entry(event.change)) + b"\n"
    return b"id: " + event.event_id.encode() + b"\n" + data + b"\n"


def change_entry(change: StreamChange) -> ChangeEntry:
    return copy_as(ChangeEntry, change, at=iso8601(change.at))
