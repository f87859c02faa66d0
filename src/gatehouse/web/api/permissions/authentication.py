"""Reads the credentials of a request: headers first, then the deprecated fields of the body (interface §4.1, R6).

Credentials are never read from the query or a cookie, which end up in logs and histories (checklist AK-11).
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct
from starlette.requests import Request

from gatehouse.fields.secrets import SecretRecord, SecretText
from gatehouse.permissions.authentication.authenticator import AuthenticatedRequest
from gatehouse.permissions.authentication.credentials import KeySignature, RequestCredentials
from gatehouse.permissions.rights.actor import Actor
from gatehouse.tokens.claims import InvalidToken
from gatehouse.web.http.client_address import caller_address_of
from gatehouse.web.http.context import origin_of
from gatehouse.web.http.parse import query_pairs, received_body
from gatehouse.web.http.request_headers import bearer_token

CREDENTIAL_HEADERS: Final = frozenset(
    {b"authorization", b"factor", b"service-jwt", b"signature", b"application-id", b"request-sign"}
)
TIMESTAMP: Final = re.compile(r"[1-9][0-9]{0,14}", re.ASCII)


class CredentialFields(SecretRecord, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The credential fields that the body of every permission endpoint may contain."""

    jwt: SecretText = ""  # this and the next two are deprecated: headers are better
    factor: str = ""
    service_jwt: SecretText = ""
    ip: str = ""  # this and the next field: what a Signature covers
    ts: int | str = 0


class NoData(Struct, frozen=True, forbid_unknown_fields=True):
    """The `data` of an action that needs none."""


def credentials_of(request: Request, asked: CredentialFields) -> RequestCredentials:
    """Read the credentials of a request whose body was received.

    Raises InvalidToken for a header that is repeated or cannot be read. A present header wins, even an empty one, so
    header and body are never mixed (checklist PA-03).
    """
    caller = caller_address_of(request.scope)
    body = received_body(request)
    credential_headers = read_credential_headers(request.scope["headers"])
    return RequestCredentials(
        bearer=parse_bearer(credential_headers.get(b"authorization")),
        jwt=asked.jwt,
        factor=credential_headers.get(b"factor", asked.factor),
        service_jwt=credential_headers.get(b"service-jwt", asked.service_jwt),
        signed=signed_request_of(request, credential_headers, asked, body)
        if b"signature" in credential_headers
        else None,
        request_sign=credential_headers.get(b"request-sign", ""),
        body=body,
        address=caller.address if caller.proven else None,
        source=caller.source,
    )


def read_credential_headers(headers: Iterable[tuple[bytes, bytes]]) -> Mapping[bytes, str]:
    """Read the credential headers of a request in one pass."""
    values: dict[bytes, str] = {}
    for name, value in headers:
        if name in CREDENTIAL_HEADERS:
            if name in values:
                raise InvalidToken(f"duplicate header {name.decode()}")
            values[name] = decode_header(value)
    return values


def parse_bearer(header: str | None) -> str:
    if header is None:
        return ""
    token = bearer_token(header)
    if not token:
        raise InvalidToken("the Authorization header is not a Bearer token")
    return token


def decode_header(header: bytes) -> str:
    """Decode a header as UTF-8, or else as Latin-1."""
    try:
        return header.decode()
    except UnicodeDecodeError:
        return header.decode("latin-1")


def signed_request_of(
    request: Request, credential_headers: Mapping[bytes, str], asked: CredentialFields, body: bytes
) -> KeySignature:
    query = query_pairs(request)
    return KeySignature(
        signature=credential_headers[b"signature"],
        application_id=credential_headers.get(b"application-id", ""),
        method=request.method,
        path=request.scope["raw_path"],
        query=request.scope["query_string"],
        body=body,
        ip=single_value([value for name, value in query if name == "ip"] + [asked.ip] * bool(asked.ip)),
        ts=parse_timestamp([value for name, value in query if name == "ts"] + [str(asked.ts)] * bool(asked.ts)),
    )


def single_value(values: list[str]) -> str:
    """Return the value from the query or the body; two different values are refused."""
    if len(set(values)) != 1:
        raise InvalidToken("a Signature needs exactly one ip and one ts")
    return values[0]


def parse_timestamp(values: list[str]) -> int:
    text = single_value(values)
    if TIMESTAMP.fullmatch(text) is None:
        raise InvalidToken("ts must be a Unix time")
    return int(text)


def actor_of(request: Request, authenticated: AuthenticatedRequest) -> Actor:
    return authenticated.actor(origin_of(request, authenticated.caller.name))
