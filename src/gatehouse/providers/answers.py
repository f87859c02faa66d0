"""Calls to providers: bounded answers, and errors without secrets."""

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlencode

import msgspec

from gatehouse.outbound.client import OutboundClient
from gatehouse.outbound.model import CallFailed, CallLimits, OutboundRequest, OutboundResponse
from gatehouse.providers.model import ProviderUnavailable

PROVIDER_LIMITS: Final = CallLimits(connect_seconds=5, total_seconds=8, body_bytes=262_144, max_concurrent=32)
FORM_TYPE: Final = "application/x-www-form-urlencoded"


class ProviderCalls:
    def __init__(self, outbound: OutboundClient) -> None:
        self._outbound = outbound

    async def get_object(self, url: str, *, token: str = "") -> dict[str, object]:
        """Return a JSON object. Raises ProviderUnavailable."""
        return object_in(await self._success(OutboundRequest(url=url, body=None, headers=bearer(token))), url)

    async def get_list(self, url: str, *, token: str = "") -> list[object]:
        """Return a JSON list. Raises ProviderUnavailable."""
        answer = await self._success(OutboundRequest(url=url, body=None, headers=bearer(token)))
        value = decode_json_body(answer.body, url)
        if not isinstance(value, list):
            raise ProviderUnavailable(f"{url} answered something else than a list")
        return value

    async def get_response(self, url: str, *, headers: Mapping[str, str]) -> OutboundResponse:
        """Return the answer, whatever its status. Raises ProviderUnavailable."""
        return await self._send(OutboundRequest(url=url, body=None, headers=headers))

    async def post_form(
        self, url: str, fields: Mapping[str, str], *, headers: Mapping[str, str] | None = None
    ) -> OutboundResponse:
        """Return the answer, whatever its status. Raises ProviderUnavailable."""
        body = urlencode(fields).encode()
        request = OutboundRequest(url=url, body=body, headers={"Content-Type": FORM_TYPE, **(headers or {})})
        return await self._send(request)

    async def _success(self, request: OutboundRequest) -> OutboundResponse:
        answer = await self._send(request)
        if not answer.is_success:
            raise ProviderUnavailable(f"{without_query(request.url)} answered {answer.status}")
        return answer

    async def _send(self, request: OutboundRequest) -> OutboundResponse:
        try:
            return await self._outbound.post(request)
        except (CallFailed, ValueError) as error:
            raise ProviderUnavailable(f"{without_query(request.url)}: {error}") from None


def without_query(url: str) -> str:
    """Return the address as the log may have it: a query can hold a ticket."""
    return url.partition("?")[0]


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"} if token else {}


def object_in(answer: OutboundResponse, url: str) -> dict[str, object]:
    value = decode_json_body(answer.body, url)
    if not isinstance(value, dict):
        raise ProviderUnavailable(f"{url} answered something else than an object")
    return value


def decode_json_body(body: bytes, url: str) -> object:
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, ValueError, RecursionError):
        raise ProviderUnavailable(f"{url} answered something else than JSON") from None


def text_in(values: Mapping[str, object], name: str, *, most: int = 255) -> str:
    """Return a member if it is a text of at most so many characters, else ""."""
    value = values.get(name)
    return value if isinstance(value, str) and len(value) <= most else ""


def flag_in(values: Mapping[str, object], name: str) -> bool:
    """Return whether a member is true; Apple writes it as text."""
    return values.get(name) in (True, "true")
