"""Reads the proof of a game from headers, query and body (interface §4.3, R4)."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final
from urllib.parse import parse_qsl

import msgspec
from msgspec import Struct
from starlette.requests import HTTPConnection, Request

from gatehouse.gamesessions.proof import GameClientProof, VouchedAddress
from gatehouse.kernel.addresses import Address, parse_address, source_of
from gatehouse.kernel.errors import BadInput
from gatehouse.keys.model import BadPublicKey
from gatehouse.keys.rsa_public_keys import parse_rsa_public_key
from gatehouse.permissions.authentication.access_keys import AccessKeyVerifier
from gatehouse.web.api.permissions.authentication import CredentialFields as SignedFields
from gatehouse.web.api.permissions.authentication import read_credential_headers, signed_request_of
from gatehouse.web.http.client_address import CallerAddress, caller_address_of
from gatehouse.web.http.parse import query_pairs, raw_body

# `Authorization: Location <v>` and a header of that name say the same.
AUTHORIZATION_SCHEME: Final = re.compile(r"(ip|sign|location) +(\S+)", re.ASCII | re.IGNORECASE)
PROOF_HEADERS: Final = {
    "location": "location",
    "ip": "ip",
    "sign": "signature",
    "request-sign": "signature",
    "public-key": "public_key",
}


class ProofFields(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of a proof that the body may contain."""

    public_key: str = ""
    ip: str = ""  # this and the next field: what a Signature covers (R6)
    ts: int | str = 0


class AccessKeySignatureVerifier(Struct, eq=False):
    """Verifies `Signature` of a game session request.

    An application vouches for its client's address (interface §4.8).
    """

    keys: AccessKeyVerifier

    async def verify_signature(self, request: Request, ip: str, ts: int | str) -> VouchedAddress | None:
        """Verify the Signature; None without one. Raises InvalidToken."""
        if "signature" not in request.headers:
            return None
        credential_headers = read_credential_headers(request.scope["headers"])
        signed = signed_request_of(request, credential_headers, SignedFields(ip=ip, ts=ts), await raw_body(request))
        by = await self.keys.verify_signature(signed, source=caller_address_of(request.scope).source)
        await self.keys.record_use(by.key)
        return VouchedAddress(application_id=by.key.application_id, address=by.address)


async def read_proof(request: Request, keys: AccessKeySignatureVerifier, asked: ProofFields) -> GameClientProof:
    """Read the proof. Raises InvalidToken, and BadInput for a proof with two different values."""
    message = await raw_body(request)
    vouched = await keys.verify_signature(request, asked.ip, asked.ts)
    return proof_from(request, message, public_key=asked.public_key, vouched=vouched)


def proof_from(
    connection: HTTPConnection, message: bytes, *, public_key: str = "", vouched: VouchedAddress | None = None
) -> GameClientProof:
    proof_values = read_proof_values(connection, public_key)
    address, proven = resolve_address(caller_address_of(connection.scope), proof_values.get("ip"))
    return GameClientProof(
        address=address,
        source=source_of(address),
        proven=proven,
        vouched=vouched,
        location=proof_values.get("location"),
        signature=proof_values.get("signature", ""),
        public_key=proof_values.get("public_key", ""),
        message=message,
    )


def address_only_proof(connection: HTTPConnection) -> GameClientProof:
    """Return a proof with only the connection's address, for requests that addresses of the operator may make."""
    caller = caller_address_of(connection.scope)
    return GameClientProof(address=caller.address, source=caller.source, proven=caller.proven)


def read_proof_values(connection: HTTPConnection, public_key: str = "") -> Mapping[str, str]:
    """Return each value from any of its places; several places must have the same value."""
    values: dict[str, str] = {}
    for name, value in (*iter_proof_values(connection), *((("public_key", public_key),) if public_key else ())):
        if not is_same_value(name, values.setdefault(name, value), value):
            raise BadInput(f"two different values of {name}")
    return values


def is_same_value(name: str, first: str, other: str) -> bool:
    """Whether two values are equal.

    A key has several spellings (R4), because PEM with line breaks does not fit into a header.
    """
    if first == other or name != "public_key":
        return first == other
    try:
        return parse_rsa_public_key(first) == parse_rsa_public_key(other)
    except BadPublicKey:
        return False


def iter_proof_values(connection: HTTPConnection) -> Iterator[tuple[str, str]]:
    for value in connection.headers.getlist("authorization"):
        if match := AUTHORIZATION_SCHEME.fullmatch(value.strip()):
            yield from named_values(match[1].lower(), [match[2]])
    for header in PROOF_HEADERS:
        yield from named_values(header, connection.headers.getlist(header))
    yield from named_values("location", [value for name, value in query_pairs(connection) if name == "location"])


def named_values(form: str, values: Iterable[str]) -> Iterator[tuple[str, str]]:
    for value in values:
        yield PROOF_HEADERS[form], location_value(value.strip()) if form == "location" else value.strip()


def location_value(location: str) -> str:
    """Return the value from the header text that getGsid returned; the value may also be sent alone."""
    inside = dict(parse_qsl(location.partition("?")[2])) if "?" in location else {}
    return inside.get("location", location)


def resolve_address(caller: CallerAddress, claimed: str | None) -> tuple[Address, bool]:
    """Return the client's address; `Ip` is trusted from a trusted proxy that does not name its client otherwise (R4).

    A proxy that names its client in the chain may forward an `Ip` that the client wrote.
    """
    is_proxys_word = caller.by_proxy and not caller.proven
    address = parse_address(claimed) if claimed and is_proxys_word else None
    return (address, True) if address is not None else (caller.address, caller.proven)
