"""JSON of permission responses: limited in size, and encoded in slices if it is large.

One call that encodes 8 MB blocks the interpreter and the event loop for 20 ms, in any thread.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from types import UnionType
from typing import Final, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.kernel.background import MAX_INLINE_WEIGHT, OFF_LOOP_WEIGHT, run_off_loop
from gatehouse.permissions.errors import MAX_ANSWER_BYTES, AnswerTooLarge, Malformed
from gatehouse.web.http.errors import Dialect
from gatehouse.web.http.responses import NO_STORE, NOT_MODIFIED, entity_tag, json_response
from gatehouse.web.http.routing import DEFAULT_BODY_LIMIT, Endpoint, Handler, RateClass, RequiredAuth

NARROWER_HINT: Final = "ask for less at a time"
LIST_SLICE: Final = 5_000  # plain items of a list that are encoded by one call
CHUNK_BYTES: Final = 2**18  # bytes of a file that are sent at a time
MAX_SPLIT_DEPTH: Final = 6  # levels that are split; below them is one role, one section or one person


def encode_bounded(value: object, *, weight: int = 0, narrower: str = NARROWER_HINT) -> bytes:
    """Encode a response of limited size. Raises AnswerTooLarge with the narrower request to make instead."""
    body = (
        msgspec.json.encode(value)
        if weight <= MAX_INLINE_WEIGHT
        else b"".join(limit_size(iter_json_pieces(value), narrower))
    )
    if len(body) > MAX_ANSWER_BYTES:
        raise AnswerTooLarge(narrower)
    return body


async def iter_json_chunks(make: Callable[[], object]) -> AsyncIterator[bytes]:
    """Yield the JSON of what `make` returns, a few hundred kilobytes at a time, all of it off the event loop."""
    pieces = iter_json_pieces(await run_off_loop(OFF_LOOP_WEIGHT, make))
    while chunk := await run_off_loop(OFF_LOOP_WEIGHT, next_chunk, pieces):
        yield chunk


def next_chunk(pieces: Iterator[bytes]) -> bytes:
    chunk = bytearray()
    for piece in pieces:
        chunk += piece
        if len(chunk) > CHUNK_BYTES:
            break
    return bytes(chunk)


def limit_size(pieces: Iterable[bytes], narrower: str) -> Iterator[bytes]:
    """Pass the pieces on and stop early when the response exceeds the limit."""
    length = 0
    for piece in pieces:
        length += len(piece)
        if length > MAX_ANSWER_BYTES:
            raise AnswerTooLarge(narrower)
        yield piece


def iter_json_pieces(value: object, depth: int = 0) -> Iterator[bytes]:
    """Yield the output of `msgspec.json.encode` in pieces."""
    if depth < MAX_SPLIT_DEPTH and isinstance(value, msgspec.Struct):
        yield from iter_object_pieces(struct_members(value), depth)
    elif depth < MAX_SPLIT_DEPTH and isinstance(value, Mapping):
        yield from iter_object_pieces(value.items(), depth)
    elif depth < MAX_SPLIT_DEPTH and isinstance(value, list | tuple) and value and is_container(value[0]):
        yield from join_pieces((iter_json_pieces(item, depth + 1) for item in value), b"[", b"]")
    elif isinstance(value, list | tuple) and len(value) > LIST_SLICE:
        parts = (value[start : start + LIST_SLICE] for start in range(0, len(value), LIST_SLICE))
        yield from join_pieces(((msgspec.json.encode(part)[1:-1],) for part in parts), b"[", b"]")
    else:
        yield msgspec.json.encode(value)


def iter_object_pieces(members: Iterable[tuple[str, object]], depth: int) -> Iterator[bytes]:
    def member(name: str, value: object) -> Iterator[bytes]:
        yield msgspec.json.encode(name) + b":"
        yield from iter_json_pieces(value, depth + 1)

    yield from join_pieces((member(name, value) for name, value in members), b"{", b"}")


def join_pieces(items: Iterable[Iterable[bytes]], begin: bytes, end: bytes) -> Iterator[bytes]:
    yield begin
    for number, item in enumerate(items):
        if number:
            yield b","
        yield from item
    yield end


def struct_members(value: msgspec.Struct) -> Iterator[tuple[str, object]]:
    config = value.__struct_config__
    if config.tag is not None and config.tag_field is not None:
        yield config.tag_field, config.tag
    for field in msgspec.structs.fields(value):
        member = getattr(value, field.name)
        if member is not msgspec.UNSET and not (config.omit_defaults and is_default(member, field)):
            yield field.encode_name, member


def is_default(member: object, field: msgspec.structs.FieldInfo) -> bool:
    return member == field.default or (field.default_factory in (list, dict, set) and not member)


def is_container(item: object) -> bool:
    return isinstance(item, msgspec.Struct | Mapping | list | tuple)


# The envelope of every response (interface §4.1), and what all endpoints of this package share.


PRIVATE_CACHE_CONTROL: Final = "private, no-cache"  # may be cached, and is revalidated each time with its ETag

JSON: Final = "application/json"
T = TypeVar("T")


class OkResponse(msgspec.Struct, frozen=True, kw_only=True):
    status: str


class DataResponse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`data` depends on the endpoint; `warnings` lists ignored fields and what else to know."""

    status: str
    data: object = None
    warnings: tuple[str, ...] = ()


def ok_response() -> Response:
    return json_response(OkResponse(status="OK"))


def data_response(data: object, *, warnings: tuple[str, ...] = ()) -> Response:
    return untagged_response(DataResponse(status="OK", data=data, warnings=warnings))


async def data_response_off_loop(
    weight: int, data: object, *, narrower: str = NARROWER_HINT, warnings: tuple[str, ...] = ()
) -> Response:
    """The same, encoded off the loop where it is heavy; `narrower`: what to ask for when it is too large."""
    value = DataResponse(status="OK", data=data, warnings=warnings)
    return await run_off_loop(weight, untagged_response, value, weight=weight, narrower=narrower)


def untagged_response(value: object, *, weight: int = 0, narrower: str = NARROWER_HINT) -> Response:
    return Response(encode_bounded(value, weight=weight, narrower=narrower), 200, NO_STORE, media_type=JSON)


def etag_response(request: Request, value: object) -> Response:
    """Return a response that a caller may cache and revalidate with If-None-Match."""
    return or_not_modified(request, make_etag_response(value))


async def etag_response_off_loop(
    request: Request, weight: int, value: object, *, narrower: str = NARROWER_HINT
) -> Response:
    """The same, encoded off the loop where it is heavy; `narrower`: what to ask for when it is too large."""
    made = await run_off_loop(weight, make_etag_response, value, weight=weight, narrower=narrower)
    return or_not_modified(request, made)


def make_etag_response(value: object, *, weight: int = 0, narrower: str = NARROWER_HINT) -> Response:
    body = encode_bounded(value, weight=weight, narrower=narrower)
    headers = {"Cache-Control": PRIVATE_CACHE_CONTROL, "ETag": entity_tag(body), "Vary": "Authorization"}
    return Response(body, 200, headers, media_type=JSON)


def or_not_modified(request: Request, answer: Response) -> Response:
    known = request.headers.get("if-none-match")
    if known is None or answer.headers["ETag"] not in known:
        return answer
    return Response(None, NOT_MODIFIED, {name: answer.headers[name] for name in ("Cache-Control", "ETag", "Vary")})


def require_field(value: T | None, place: str) -> T:
    if value is None:
        raise Malformed(f"{place}: required")
    return value


def permission_endpoint(
    path: str,
    handler: Handler,
    *,
    name: str,
    request: type[msgspec.Struct] | UnionType,
    section: str,
    summary: str,
    answers: type = DataResponse,
    body_limit: int = DEFAULT_BODY_LIMIT,
    has_tag: bool = False,
    also_as: str = "",
) -> Endpoint:
    """Build one endpoint of the permissions interface."""
    return Endpoint(
        name=f"permissions.{name}",
        path=f"/api/permissions/{path}",
        methods=("POST",),
        handler=handler,
        dialect=Dialect.PERMISSIONS,
        rate_class=RateClass.ADMIN,
        section=section,
        summary=summary,
        request=request,
        answers={200: answers, NOT_MODIFIED: None} if has_tag else {200: answers},
        auth=RequiredAuth.USER_JWT_AND_FACTOR,
        body_limit=body_limit,
        also_as=also_as,
    )
