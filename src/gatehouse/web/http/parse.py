"""Parses the bytes of a request into a frozen typed request, so that no package ever gets a dict from the wire.

Request types forbid unknown fields where the interface wants that (docs/interface.md R6); an error names the field.
The bytes stay readable through `raw_body`, for signatures over them.
"""

import re
from enum import Enum
from functools import lru_cache
from types import UnionType
from typing import Any, Final, TypeVar

import msgspec
from starlette.requests import ClientDisconnect, HTTPConnection, Request
from starlette.types import Message

from gatehouse.kernel.background import run_off_loop
from gatehouse.kernel.errors import BadInput
from gatehouse.web.http import parse_form, parse_json
from gatehouse.web.http.errors import UnsupportedMediaType
from gatehouse.web.http.request_headers import header_values

BODY_KEY: Final = "gatehouse.body"  # the scope key of the body that was read
MAX_CONTENT_TYPE_LENGTH: Final = 256  # characters; a longer one is not passed to the library parsers
CONTENT_TYPE_CACHE_SIZE: Final = 64  # clients send the same few values again and again
BYTES_PER_WEIGHT: Final = 10  # bytes that are parsed per unit of weight
MAX_MESSAGE_LENGTH: Final = 256  # characters of the caller's input that an error may repeat

UNKNOWN_TAG: Final = "invalid value"
UNKNOWN_CHOICE: Final = "invalid enum value"

HTTP_TOKEN: Final = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"  # noqa: S105 - RFC 9110's word for a name
# A parameter may be empty: `application/json;` (RFC 9110 §5.6.6).
MEDIA_TYPE: Final = re.compile(
    rf"({HTTP_TOKEN}/{HTTP_TOKEN})((?:[ \t]*;[ \t]*(?:{HTTP_TOKEN}=(?:{HTTP_TOKEN}|\"[^\"\\]*\"))?)*+)[ \t]*"
)
PARAMETER: Final = re.compile(rf"({HTTP_TOKEN})=(?:({HTTP_TOKEN})|\"([^\"\\]*)\")")

StructT = TypeVar("StructT", bound=msgspec.Struct)


class BodyKind(Enum):
    """What a request body may be; the values are the media types."""

    JSON = "application/json"
    FORM = "application/x-www-form-urlencoded"
    MULTIPART = "multipart/form-data"


KINDS_BY_MEDIA_TYPE: Final = {kind.value: kind for kind in BodyKind}
JSON_ONLY: Final = frozenset({BodyKind.JSON})
FORMS: Final = frozenset({BodyKind.FORM, BodyKind.MULTIPART})
JSON_OR_FORM: Final = frozenset({BodyKind.JSON, BodyKind.FORM})  # interface §4.2, token and revoke
ANY_BODY: Final = frozenset(BodyKind)


class ContentType(msgspec.Struct, frozen=True):
    kind: BodyKind
    boundary: str = ""


async def raw_body(request: Request) -> bytes:
    """Return the body as received, before or after it was parsed: Request-Sign and Signature cover it."""
    body: bytes | None = request.scope.get(BODY_KEY)
    if body is None:
        message = await receive_part(request)
        parts = [message.get("body", b"")]
        while message.get("more_body"):
            message = await receive_part(request)
            parts.append(message.get("body", b""))
        body = request.scope[BODY_KEY] = b"".join(parts)
    return body


def received_body(request: Request) -> bytes:
    """Return the body that `raw_body` has received; never an empty one in its place."""
    body: bytes = request.scope[BODY_KEY]
    return body


async def receive_part(request: Request) -> Message:
    message = await request.receive()
    if message["type"] == "http.disconnect":
        raise ClientDisconnect
    return message


async def read_json(request: Request, into: type[StructT], *, may_be_empty: bool = False) -> StructT:
    return await read_body(request, into, kinds=JSON_ONLY, may_be_empty=may_be_empty)


async def read_action(request: Request, actions: UnionType) -> Any:  # noqa: ANN401 - one of the union
    """Read a body as the type of its `action`; the union of types is tagged with it."""
    body = await raw_body(request)
    content_type(request, JSON_ONLY)
    found = await run_off_loop(len(body) // BYTES_PER_WEIGHT, parse_json.decode_json, body)
    return convert_to_any(found, actions)


async def read_json_object(request: Request) -> dict[str, Any]:
    """Read the members of a body whose type depends on one of them; its handler reads it once more, typed."""
    body = await raw_body(request)
    content_type(request, JSON_ONLY)
    found = await run_off_loop(len(body) // BYTES_PER_WEIGHT, parse_json.decode_json, body)
    if not isinstance(found, dict):
        raise BadInput("the body must be a JSON object")
    return found


async def read_form(request: Request, into: type[StructT]) -> StructT:
    return await read_body(request, into, kinds=FORMS)


async def read_upload(request: Request, into: type[StructT], file_field: str) -> tuple[StructT, bytes]:
    """Read a form with one file; without it the content is empty."""
    body = await raw_body(request)
    boundary = content_type(request, frozenset({BodyKind.MULTIPART})).boundary
    weight = len(body) // BYTES_PER_WEIGHT
    pairs, content = await run_off_loop(weight, parse_form.parse_upload, body, boundary, file_field)
    return convert(parse_form.collect_fields(pairs, into), into), content


async def read_json_or_form(request: Request, into: type[StructT]) -> StructT:
    """Read what a game client sends: JSON, either kind of form, or no body at all (R4)."""
    return await read_body(request, into, kinds=ANY_BODY, may_be_empty=True)


async def read_body(
    request: Request, into: type[StructT], *, kinds: frozenset[BodyKind], may_be_empty: bool = False
) -> StructT:
    body = await raw_body(request)
    if may_be_empty and not body:
        return convert({}, into)
    content = content_type(request, kinds)
    return await run_off_loop(len(body) // BYTES_PER_WEIGHT, parse_body, body, content, into)


def parse_body(body: bytes, content: ContentType, into: type[StructT]) -> StructT:
    if content.kind is BodyKind.JSON:
        return convert(parse_json.decode_json(body), into)
    if content.kind is BodyKind.FORM:
        return convert(parse_form.collect_fields(parse_form.parse_urlencoded(body), into), into)
    return convert(parse_form.collect_fields(parse_form.parse_multipart(body, content.boundary), into), into)


def read_query(request: Request, into: type[StructT]) -> StructT:
    return convert(parse_form.collect_fields(query_pairs(request), into), into)


def query_pairs(request: HTTPConnection) -> parse_form.Pairs:
    """Return the query with repeated names, for authorize, which treats each repeated name differently (AZ-10)."""
    query: bytes = request.scope["query_string"]
    return parse_form.parse_urlencoded(query)


def content_type(request: Request, kinds: frozenset[BodyKind]) -> ContentType:
    """Read the single Content-Type strictly; a kind that is not expected raises UnsupportedMediaType."""
    given = header_values(request.scope, b"content-type")
    parsed = _parse_content_type(given[0]) if len(given) == 1 and len(given[0]) <= MAX_CONTENT_TYPE_LENGTH else None
    if parsed is None or parsed.kind not in kinds:
        wanted = " or ".join(sorted(kind.value for kind in kinds))
        raise UnsupportedMediaType(f"the Content-Type must be {wanted}")
    return parsed


@lru_cache(maxsize=CONTENT_TYPE_CACHE_SIZE)
def _parse_content_type(text: str) -> ContentType | None:
    match = MEDIA_TYPE.fullmatch(text)
    kind = KINDS_BY_MEDIA_TYPE.get(match[1].lower()) if match else None
    if match is None or kind is None:
        return None
    found = [(name.lower(), plain or quoted) for name, plain, quoted in PARAMETER.findall(match[2])]
    parameters = dict(found)
    boundary = parameters.get("boundary", "")
    sound = len(found) == len(parameters) and parameters.get("charset", "utf-8").lower() == "utf-8"
    if not sound or (kind is BodyKind.MULTIPART and not boundary):
        return None
    return ContentType(kind, boundary)


def convert(value: object, into: type[StructT]) -> StructT:
    converted: StructT = convert_to_any(value, into)
    return converted


def convert_to_any(value: object, into: type | UnionType) -> Any:  # noqa: ANN401 - what `into` says
    try:
        return msgspec.convert(value, into, strict=True)
    except msgspec.ValidationError as error:
        raise BadInput(validation_message(str(error))) from error


def validation_message(text: str) -> str:
    """Return the converter's error in our words: `data.roles[2]: expected str, got int`."""
    what, _, where = text.partition(" - at `$")
    said = what[:1].lower() + what[1:]
    if said.startswith(UNKNOWN_TAG):  # of a tagged union: the same words as for any other closed choice
        said = UNKNOWN_CHOICE + said.removeprefix(UNKNOWN_TAG)
    path = where.removesuffix("`").removeprefix(".")
    return (f"{path}: {said}" if path else said).replace("`", "")[:MAX_MESSAGE_LENGTH]
