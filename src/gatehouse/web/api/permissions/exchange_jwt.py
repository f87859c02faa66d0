"""POST /api/permissions/exchangeJwt (interface §4.8, R6)."""

from typing import Literal

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.fields.secrets import SecretRecord, SecretText
from gatehouse.permissions.authentication.jwt_exchange import JwtExchange
from gatehouse.web.api.permissions.authentication import CredentialFields, credentials_of
from gatehouse.web.http.errors import Dialect
from gatehouse.web.http.parse import read_json
from gatehouse.web.http.responses import json_response
from gatehouse.web.http.routing import Endpoint, RateClass, RequiredAuth


class ExchangeJwtRequest(CredentialFields, frozen=True, kw_only=True):
    """User JWT in `jwt`, with its factor if the new JWT needs `fac` too."""


class ExchangeJwtResponse(SecretRecord, frozen=True, kw_only=True):
    status: Literal["OK"] = "OK"
    jwt: SecretText


class ExchangeJwtEndpoint(Struct, eq=False):
    exchange: JwtExchange

    async def handle(self, request: Request) -> Response:
        body = await read_json(request, ExchangeJwtRequest)
        jwt = await self.exchange.exchange(credentials_of(request, body))
        return json_response(ExchangeJwtResponse(jwt=jwt))

    def endpoint(self) -> Endpoint:
        return Endpoint(
            name="permissions.exchange_jwt",
            path="/api/permissions/exchangeJwt",
            methods=("POST",),
            handler=self.handle,
            dialect=Dialect.PERMISSIONS,
            rate_class=RateClass.TOKEN,
            section="interface §4.8",
            summary="Exchange a user JWT for one that is valid only for the access key's application",
            request=ExchangeJwtRequest,
            answers={200: ExchangeJwtResponse},
            auth=RequiredAuth.ACCESS_KEY,
        )
