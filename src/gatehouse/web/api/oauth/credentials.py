"""Reads the credentials of a request: those of the client, or an access token."""

import re
from base64 import b64decode
from typing import Final
from urllib.parse import unquote_plus

import msgspec
from starlette.requests import Request

from gatehouse.oauth.client_auth import ClientCredentialFields, ClientCredentials
from gatehouse.oauth.errors import InvalidClient, InvalidRequest
from gatehouse.tokens.claims import InvalidToken
from gatehouse.web.http.client_address import caller_address_of
from gatehouse.web.http.context import origin_of
from gatehouse.web.http.parse import BodyKind, content_type, query_pairs, raw_body, read_body
from gatehouse.web.http.request_headers import bearer_token, header_values

BASIC: Final = re.compile(r"basic +([A-Za-z0-9+/]+={0,2})", re.ASCII | re.IGNORECASE)
FORM_ONLY: Final = frozenset({BodyKind.FORM})


class AccessTokenForm(msgspec.Struct, frozen=True, kw_only=True):
    access_token: str = ""


def credentials_of(request: Request, asked: ClientCredentialFields) -> ClientCredentials:
    """Read the client's credentials.

    Raises InvalidClient for a header that is repeated or cannot be read (checklist TK-24).
    """
    caller = caller_address_of(request.scope)
    headers = header_values(request.scope, b"authorization")
    if len(headers) > 1:
        raise InvalidClient("duplicate Authorization header")
    header = headers[0] if headers else ""
    proof = bearer_token(header)
    basic_id, basic_secrets = ("", ()) if proof or not header else read_basic(header)
    return ClientCredentials(
        proof=proof,
        basic_id=basic_id,
        basic_secrets=basic_secrets,
        client_id=asked.client_id,
        client_secret=asked.client_secret,
        assertion_type=asked.client_assertion_type,
        assertion=asked.client_assertion,
        source=caller.source,
        address=caller.address if caller.proven else None,
        origin=origin_of(request, "client"),
    )


def read_basic(header: str) -> tuple[str, tuple[str, ...]]:
    """Return id and password; not every client encodes them first, as RFC 6749 §2.3.1 requires."""
    match = BASIC.fullmatch(header)
    try:
        text = b64decode(match[1], validate=True).decode() if match else ""
    except ValueError:
        text = ""
    client_id, colon, secret = text.partition(":")
    if not client_id or not colon:
        raise InvalidClient("the Authorization header is neither Bearer nor Basic")
    return decode_plus(client_id), tuple(dict.fromkeys((secret, decode_plus(secret))))


def decode_plus(text: str) -> str:
    return unquote_plus(text) if "%" in text or "+" in text else text


def refuse_query(request: Request, into: type[msgspec.Struct]) -> None:
    """Refuse body parameters in the query, because addresses are logged (checklist TK-22, UI-03)."""
    if not request.scope["query_string"]:
        return
    if any(name in into.__struct_encode_fields__ for name, _ in query_pairs(request)):
        raise InvalidRequest("a parameter is in the query")


def bearer_of(request: Request) -> str:
    """Return the Bearer token; empty without one.

    Raises InvalidToken for a header that is repeated or of another scheme.
    """
    headers = header_values(request.scope, b"authorization")
    if not headers:
        return ""
    token = bearer_token(headers[0])
    if not token or len(headers) > 1:
        raise InvalidToken("the Authorization header is duplicated or not a Bearer token")
    return token


async def access_token_of(request: Request) -> str:
    """Return the access token from the header, or by POST from a form (RFC 6750 §2).

    Never from the query, and not from both.
    """
    refuse_query(request, AccessTokenForm)
    in_header, in_body = bearer_of(request), await access_token_in_form(request)
    if in_header and in_body:
        raise InvalidRequest("the access token was sent twice")
    if not in_header and not in_body:
        raise InvalidToken("access token is missing")
    return in_header or in_body


async def access_token_in_form(request: Request) -> str:
    if request.scope["method"] != "POST" or not await raw_body(request) or not is_form(request):
        return ""
    return (await read_body(request, AccessTokenForm, kinds=FORM_ONLY)).access_token


def is_form(request: Request) -> bool:
    media_type = request.headers.get("content-type", "")
    return media_type.partition(";")[0].strip().lower() == BodyKind.FORM.value and bool(
        content_type(request, FORM_ONLY)
    )
