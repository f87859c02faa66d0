"""The public key set, at both of its addresses (interface §4.2 and §4.4)."""

from typing import Final

from msgspec import Struct
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.keys.jwks import JwkSet, KeySetPublisher
from gatehouse.web.http.errors import Dialect
from gatehouse.web.http.responses import NOT_MODIFIED, cacheable_response
from gatehouse.web.http.routing import Cors, Endpoint, RateClass

# Far below the time a key is published before it signs (S-06), so that caches have it in time.
KEYS_CACHE_CONTROL: Final = "public, max-age=300"


class KeySetEndpoints(Struct, eq=False):
    publisher: KeySetPublisher

    async def show(self, request: Request) -> Response:
        await self.publisher.refresh()
        body = self.publisher.document().body
        return cacheable_response(request, body, media_type="application/json", cache_control=KEYS_CACHE_CONTROL)

    def endpoints(self) -> list[Endpoint]:
        oauth = Endpoint(
            name="oauth.keys",
            path="/proxy/oauth/keys",
            methods=("GET",),
            handler=self.show,
            dialect=Dialect.OAUTH,
            rate_class=RateClass.KEYS,
            section="interface §4.2",
            summary="Public signing keys (JWKS)",
            answers={200: JwkSet, NOT_MODIFIED: None},
            cors=Cors.ANYONE,
        )
        permissions = replace(
            oauth,
            name="permissions.keys",
            path="/api/permissions/keys",
            dialect=Dialect.PERMISSIONS,
            section="interface §4.4",
            summary="Public signing keys for user JWTs (JWKS)",
        )
        return [oauth, permissions]
