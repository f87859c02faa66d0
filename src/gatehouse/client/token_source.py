"""Tokens for calling such an API: the client credentials grant."""

import asyncio
from base64 import b64encode
from collections.abc import Iterable
from typing import Final
from urllib.parse import quote, urlencode

import msgspec

from gatehouse.client.clock import Clock, SystemClock
from gatehouse.client.errors import Unavailable
from gatehouse.client.transport import Request, StandardTransport, Transport, parse_base_url
from gatehouse.client.verification import NonEmpty, Seconds

TOKEN_PATH: Final = "/proxy/oauth/token"  # noqa: S105 - a path
OK: Final = 200
RENEW_SECONDS_BEFORE: Final = 30


class TokenReply(msgspec.Struct, frozen=True, kw_only=True):
    access_token: NonEmpty
    expires_in: Seconds


class TokenSource:
    """Gets access tokens for one API, and keeps each until shortly before its end. Make one per API.

    `client_id` and `secret` are those of a confidential client, or the user ID and JWT of a service account.
    """

    def __init__(
        self,
        base_url: str,
        *,
        client_id: str,
        secret: str,
        resource: str = "",
        scopes: Iterable[str] = (),
        transport: Transport | None = None,
        clock: Clock | None = None,
    ) -> None:
        parse_base_url(base_url)
        pair = f"{quote(client_id, safe='')}:{quote(secret, safe='')}"
        self._headers = {
            "Authorization": "Basic " + b64encode(pair.encode()).decode(),
            "Content-Type": "application/x-www-form-urlencoded",
        }
        fields = {"grant_type": "client_credentials", "resource": resource, "scope": " ".join(scopes)}
        self._body = urlencode(fields).encode()
        self._transport = transport or StandardTransport(base_url)
        self._clock = clock or SystemClock()
        self._lock = asyncio.Lock()
        self._token = ""
        self._renew_at = 0.0

    async def token(self) -> str:
        """Return a valid access token. Raises Unavailable, also when the service refuses the credentials."""
        async with self._lock:  # one request at a time, for any number of callers
            if not self._token or self._clock.monotonic() >= self._renew_at:
                await self._renew()
            return self._token

    async def _renew(self) -> None:
        asked_at = self._clock.monotonic()
        request = Request(method="POST", path=TOKEN_PATH, headers=self._headers, body=self._body)
        reply = await self._transport.send(request)
        if reply.status != OK:
            raise Unavailable(f"{TOKEN_PATH} answered {reply.status}: {reply.body[:200]!r}")
        try:
            given = msgspec.json.decode(reply.body, type=TokenReply)
        except ValueError as error:
            raise Unavailable(f"{TOKEN_PATH}: {error}") from None
        self._token = given.access_token
        self._renew_at = asked_at + given.expires_in - RENEW_SECONDS_BEFORE

    async def close(self) -> None:
        await self._transport.close()
