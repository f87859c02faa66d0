"""The origins whose pages browsers let use the passkeys of this host (WebAuthn §5.11, Related Origin Requests)."""

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.accounts.second_factors.passkeys import Passkeys
from gatehouse.accounts.second_factors.webauthn import RELATED_ORIGINS_PATH
from gatehouse.web.http.errors import Dialect
from gatehouse.web.http.responses import cacheable_response
from gatehouse.web.http.routing import Endpoint, RateClass

CACHE_CONTROL = "public, max-age=300"


def passkey_origins_endpoint(passkeys: Passkeys) -> Endpoint:
    async def show(request: Request) -> Response:
        origins = passkeys.related_origins
        if not origins:
            raise HTTPException(404)
        body = msgspec.json.encode({"origins": origins})
        return cacheable_response(request, body, media_type="application/json", cache_control=CACHE_CONTROL)

    return Endpoint(
        name="passkey_origins",
        path=RELATED_ORIGINS_PATH,
        methods=("GET",),
        handler=show,
        dialect=Dialect.PLAIN,
        rate_class=RateClass.PUBLIC,
        section="operations",
        summary="Origins related to the host of the passkeys (WebAuthn)",
        hidden=True,
    )
