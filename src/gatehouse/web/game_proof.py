"""Reads off the wire what a game proves itself with (interface §4.3, R4): headers, query and body."""

import re
from collections.abc import Mapping
from typing import Final, Protocol
from urllib.parse import parse_qsl

from starlette.requests import HTTPConnection, Request

from gatehouse.gamesessions.proof import Presented
from gatehouse.kernel.addresses import Address, parse_address, source_of
from gatehouse.kernel.errors import BadInput
from gatehouse.web.middleware.client_address import Caller, caller_of
from gatehouse.web.parse import query_pairs, raw_body

# `Authorization: Location <v>` and a header of that name say the same.
SCHEME: Final = re.compile(r"(ip|sign|location) +(\S+)", re.ASCII | re.IGNORECASE)
NAMES: Final = ("authorization", "location", "ip", "sign", "request-sign", "public-key")


class AccessKeySignatures(Protocol):
    async def address(self, request: Request) -> Address | None:
        """The client's address on the word of an application that signed the request; None without a Signature.

        Raises InvalidToken for one that is wrong.
        """


async def presented_by(request: Request, keys: AccessKeySignatures, *, public_key: str = "") -> Presented:
    """`public_key`: the one in the body."""
    given = shown_in(request)
    caller = caller_of(request.scope)
    signed_for = await keys.address(request)
    address, proven = address_of(caller, given.get("ip"), signed_for)
    return Presented(
        address=address,
        source=source_of(address),
        proven=proven,
        location=location_in(request, given),
        signature=given.get("request-sign", given.get("sign", "")),
        public_key=given.get("public-key", public_key),
        message=await raw_body(request),
    )


def shown_in(request: HTTPConnection) -> Mapping[str, str]:
    """Each header at most once, whichever of its two forms it has."""
    found: dict[str, str] = {}
    for name in NAMES:
        for value in request.headers.getlist(name):
            named, text = scheme_of(value) if name == "authorization" else (name, value.strip())
            if named in found:
                raise BadInput(f"two {named} headers")
            if named:
                found[named] = text
    return found


def scheme_of(authorization: str) -> tuple[str, str]:
    match = SCHEME.fullmatch(authorization.strip())
    return (match[1].lower(), match[2]) if match else ("", "")


def location_in(request: HTTPConnection, given: Mapping[str, str]) -> str | None:
    """The opaque value, or the whole text of the header that getGsid answered with."""
    in_query = [value for name, value in query_pairs(request) if name == "location"]
    if len(in_query) > 1:
        raise BadInput("two location parameters")
    text = in_query[0] if in_query else given.get("location")
    if text is None:
        return None
    inside = dict(parse_qsl(text.partition("?")[2])) if "?" in text else {}
    return inside.get("location", text)


def address_of(caller: Caller, claimed: str | None, signed_for: Address | None) -> tuple[Address, bool]:
    """`Ip` is believed from one of our proxies, or where an access key vouches for it (R4); else it says nothing."""
    if signed_for is not None:
        return signed_for, True
    address = parse_address(claimed) if claimed and caller.by_proxy else None
    return (address, True) if address is not None else (caller.address, caller.proven)
