"""Reads who is calling off the wire: headers first, then the deprecated fields of the body (interface §4.1, R6).

Never off the query or a cookie: those end up in logs and histories (checklist AK-11).
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec
from starlette.requests import Request

from gatehouse.permissions.callers.credentials import Credentials, Signed
from gatehouse.tokens.errors import InvalidToken
from gatehouse.web.middleware.client_address import caller_of
from gatehouse.web.parse import query_pairs, raw_body

BEARER: Final = re.compile(r"bearer +([^\s,]+)", re.ASCII | re.IGNORECASE)
SHOWN: Final = frozenset(
    {b"authorization", b"factor", b"service-jwt", b"signature", b"application-id", b"request-sign"}
)
TIMESTAMP: Final = re.compile(r"[1-9][0-9]{0,14}", re.ASCII)


class Asked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the body of every permission endpoint may carry beside its own fields."""

    jwt: str = ""  # this and the next two are deprecated: headers are better
    factor: str = ""
    service_jwt: str = ""
    ip: str = ""  # this and the next: what a Signature is about
    ts: int | str = 0


async def credentials_of(request: Request, asked: Asked) -> Credentials:
    """Raise InvalidToken for a header that is doubled or cannot be read.

    A header that is there wins, even an empty one: what is checked is never a mixture (checklist PA-03).
    """
    caller = caller_of(request.scope)
    body = await raw_body(request)
    given = shown_in(request.scope["headers"])
    return Credentials(
        bearer=bearer_of(given.get(b"authorization")),
        jwt=asked.jwt,
        factor=given.get(b"factor", asked.factor),
        service_jwt=given.get(b"service-jwt", asked.service_jwt),
        signed=signed_of(request, given, asked, body) if b"signature" in given else None,
        request_sign=given.get(b"request-sign", ""),
        body=body,
        address=caller.address if caller.proven else None,
        source=caller.source,
    )


def shown_in(headers: Iterable[tuple[bytes, bytes]]) -> Mapping[bytes, str]:
    """What the request shows in its headers, in one pass over them."""
    found: dict[bytes, str] = {}
    for name, value in headers:
        if name in SHOWN:
            if name in found:
                raise InvalidToken(f"duplicate header {name.decode()}")
            found[name] = as_text(value)
    return found


def bearer_of(given: str | None) -> str:
    if given is None:
        return ""
    found = BEARER.fullmatch(given)
    if found is None:
        raise InvalidToken("the Authorization header is not a Bearer token")
    return found[1]


def as_text(header: bytes) -> str:
    """What a client wrote, as UTF-8 or as Latin-1."""
    try:
        return header.decode()
    except UnicodeDecodeError:
        return header.decode("latin-1")


def signed_of(request: Request, given: Mapping[bytes, str], asked: Asked, body: bytes) -> Signed:
    query = query_pairs(request)
    return Signed(
        signature=given[b"signature"],
        application_id=given.get(b"application-id", ""),
        method=request.method,
        path=request.scope["raw_path"],
        query=request.scope["query_string"],
        body=body,
        ip=the_one([value for name, value in query if name == "ip"] + [asked.ip] * bool(asked.ip)),
        ts=seconds([value for name, value in query if name == "ts"] + [str(asked.ts)] * bool(asked.ts)),
    )


def the_one(given: list[str]) -> str:
    """The query or the body says it, not both in two ways."""
    if len(set(given)) != 1:
        raise InvalidToken("a Signature needs exactly one ip and one ts")
    return given[0]


def seconds(given: list[str]) -> int:
    text = the_one(given)
    if TIMESTAMP.fullmatch(text) is None:
        raise InvalidToken("ts must be a Unix time")
    return int(text)
