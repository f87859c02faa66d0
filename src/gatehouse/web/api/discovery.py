"""The two addresses of the metadata document (interface §4.2, R3)."""

from collections.abc import Callable
from typing import Final

import msgspec
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.oauth.discovery import Metadata
from gatehouse.web.http.errors import Dialect
from gatehouse.web.http.responses import NOT_MODIFIED, cacheable_response
from gatehouse.web.http.routing import Cors, Endpoint, RateClass

METADATA_CACHE_CONTROL: Final = "public, max-age=3600"


class DiscoveryEndpoints:
    def __init__(self, document: Callable[[], Metadata]) -> None:
        """`document`: as it is now; a setting may change it."""
        self._document = document

    async def show(self, request: Request) -> Response:
        return cacheable_response(
            request,
            msgspec.json.encode(self._document()),
            media_type="application/json",
            cache_control=METADATA_CACHE_CONTROL,
        )

    def endpoints(self) -> list[Endpoint]:
        openid = Endpoint(
            name="oauth.discovery",
            path="/.well-known/openid-configuration",
            methods=("GET",),
            handler=self.show,
            dialect=Dialect.PLAIN,
            rate_class=RateClass.KEYS,
            section="interface §4.2",
            summary="OpenID Connect configuration",
            answers={200: Metadata, NOT_MODIFIED: None},
            cors=Cors.ANYONE,
        )
        plain = replace(
            openid,
            name="oauth.metadata",
            path="/.well-known/oauth-authorization-server",
            section="interface R3",
            summary="Authorization server metadata (RFC 8414)",
        )
        return [openid, plain]
