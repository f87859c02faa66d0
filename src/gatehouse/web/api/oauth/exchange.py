"""POST /proxy/oauth/exchange and /proxy/oauth/exchangeToken (interface §4.2, R2)."""

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.oauth.exchange import IdTokenExchange, UserJwtExchange
from gatehouse.tokens.claims import InvalidToken
from gatehouse.web.api.oauth.credentials import bearer_of
from gatehouse.web.http.client_address import caller_address_of
from gatehouse.web.http.errors import Dialect
from gatehouse.web.http.responses import json_response
from gatehouse.web.http.routing import Endpoint, RateClass, RequiredAuth


class IdTokenResponse(msgspec.Struct, frozen=True, kw_only=True):
    id_token: str
    expires_in: int


class UserJwtResponse(msgspec.Struct, frozen=True, kw_only=True):
    token: str


class ExchangeEndpoints(Struct, kw_only=True, eq=False):
    id_tokens: IdTokenExchange
    user_jwts: UserJwtExchange

    async def exchange(self, request: Request) -> Response:
        caller = caller_address_of(request.scope)
        token = await self.id_tokens.exchange(required_bearer(request), caller.address if caller.proven else None)
        return json_response(IdTokenResponse(id_token=token.id_token, expires_in=token.expires_in))

    async def exchange_token(self, request: Request) -> Response:
        return json_response(UserJwtResponse(token=await self.user_jwts.exchange(required_bearer(request))))

    def endpoints(self) -> list[Endpoint]:
        return [
            Endpoint(
                name="oauth.exchange",
                path="/proxy/oauth/exchange",
                methods=("POST",),
                handler=self.exchange,
                dialect=Dialect.OAUTH,
                rate_class=RateClass.TOKEN,
                section="interface §4.2",
                summary="Exchange a user JWT for an ID token",
                answers={200: IdTokenResponse},
                auth=RequiredAuth.USER_JWT,
            ),
            Endpoint(
                name="oauth.exchange_token",
                path="/proxy/oauth/exchangeToken",
                methods=("POST",),
                handler=self.exchange_token,
                dialect=Dialect.OAUTH,
                rate_class=RateClass.TOKEN,
                section="interface §4.2",
                summary="Exchange an access token for a user JWT",
                answers={200: UserJwtResponse},
                auth=RequiredAuth.ACCESS_TOKEN,
            ),
        ]


def required_bearer(request: Request) -> str:
    """Return the Bearer token; a token in the body is ignored (checklist UI-08)."""
    shown = bearer_of(request)
    if not shown:
        raise InvalidToken("Bearer token is missing")
    return shown
