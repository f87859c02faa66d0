"""Pushed authorization requests: the client sends the request, and the browser brings a reference (RFC 9126)."""

from typing import Final

import msgspec
from msgspec import Struct

from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import sha256
from gatehouse.kernel.errors import TooMany
from gatehouse.kernel.ids import new_secret
from gatehouse.oauth.authorize.request import AuthorizationRequest
from gatehouse.oauth.errors import NotRedirected
from gatehouse.oauth.model import Client, PushedRequest
from gatehouse.oauth.store import PushedRequestStore
from gatehouse.oauth.vocabulary import REQUEST_URI_PREFIX

PUSHED_SECONDS: Final = 60  # R11
MAX_OPEN: Final = 100  # requests of one client and address that no browser has brought yet (R11)


class PushedRequests(Struct, kw_only=True, eq=False):
    store: PushedRequestStore
    clock: Clock

    async def add(self, client: Client, request: AuthorizationRequest, *, source: str) -> str:
        """Store a checked request; return its request_uri. Raises TooMany."""
        request_uri = f"{REQUEST_URI_PREFIX}{new_secret()}"
        now = self.clock.now()
        pushed = PushedRequest(
            digest=sha256(request_uri),
            client_id=client.client_id,
            source=source,
            request=request.encode(),
            created_at=now,
            ends_at=now + PUSHED_SECONDS,
        )
        if wait := await self.store.add_pushed_request(pushed, most=MAX_OPEN):
            raise TooMany(wait, f"pushed requests of {client.client_id} from one source")
        return request_uri

    async def find(self, client: Client, request_uri: str, *, take: bool) -> AuthorizationRequest:
        """Return the request of this client; with `take` no one gets it again. Raises NotRedirected."""
        use = self.store.take_pushed_request if take else self.store.find_pushed_request
        pushed = await use(sha256(request_uri), client.client_id, self.clock.now())
        if pushed is None:
            raise NotRedirected(
                "request_uri is unknown, has expired, was used before, or is another client's", client=client
            )
        return msgspec.json.decode(pushed.request, type=AuthorizationRequest)
