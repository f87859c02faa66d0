"""Reads who is calling off the wire: headers first, then the deprecated fields of the body (interface §4.1, R6).

Never off the query or a cookie: those end up in logs and histories (checklist AK-11).
"""

import re
from typing import Final

import msgspec
from starlette.requests import Request

from gatehouse.permissions.callers.credentials import Credentials, Signed
from gatehouse.tokens.errors import InvalidToken
from gatehouse.web.middleware.client_address import caller_of
from gatehouse.web.parse import query_pairs, raw_body

BEARER: Final = re.compile(r"bearer +([^\s,]+)", re.ASCII | re.IGNORECASE)
TIMESTAMP: Final = re.compile(r"[1-9][0-9]{0,14}", re.ASCII)


class Asked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the body of every permission endpoint may carry beside its own fields."""

    jwt: str = ""  # this and the next two are deprecated: headers are better
    factor: str = ""
    service_jwt: str = ""
    ip: str = ""  # this and the next: what a Signature is about
    ts: int | str = 0


async def credentials_of(request: Request, asked: Asked) -> Credentials:
    """Raise InvalidToken for a header that is doubled or cannot be read."""
    caller = caller_of(request.scope)
    body = await raw_body(request)
    return Credentials(
        bearer=bearer_of(request),
        jwt=asked.jwt,
        factor=header_or(request, "factor", asked.factor),
        service_jwt=header_or(request, "service-jwt", asked.service_jwt),
        signed=signed_of(request, asked, body),
        request_sign=header_or(request, "request-sign", ""),
        body=body,
        address=caller.address if caller.proven else None,
        source=caller.source,
    )


def bearer_of(request: Request) -> str:
    given = header_of(request, "authorization")
    if given is None:
        return ""
    found = BEARER.fullmatch(given)
    if found is None:
        raise InvalidToken("an Authorization header that is no Bearer")
    return found[1]


def header_or(request: Request, name: str, otherwise: str) -> str:
    """A header that is there wins, even an empty one: what is checked is never a mixture (checklist PA-03)."""
    given = header_of(request, name)
    return otherwise if given is None else given


def header_of(request: Request, name: str) -> str | None:
    given = request.headers.getlist(name)
    if len(given) > 1:
        raise InvalidToken(f"two {name} headers")
    return as_text(given[0]) if given else None


def as_text(header: str) -> str:
    """What a client wrote as UTF-8; the server hands headers over as Latin-1."""
    try:
        return header.encode("latin-1").decode()
    except UnicodeDecodeError:
        return header


def signed_of(request: Request, asked: Asked, body: bytes) -> Signed | None:
    signature = header_of(request, "signature")
    if signature is None:
        return None
    query = query_pairs(request)
    return Signed(
        signature=signature,
        application_id=header_of(request, "application-id") or "",
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
        raise InvalidToken("a Signature needs one ip and one ts")
    return given[0]


def seconds(given: list[str]) -> int:
    text = the_one(given)
    if TIMESTAMP.fullmatch(text) is None:
        raise InvalidToken("ts is no Unix time")
    return int(text)
