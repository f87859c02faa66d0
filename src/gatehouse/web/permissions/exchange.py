"""POST /api/permissions/exchangeJwt (interface §4.8, R6)."""

from typing import Literal

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.permissions.callers.exchange import JwtExchange
from gatehouse.web.dialects import Dialect
from gatehouse.web.parse import read_json
from gatehouse.web.permissions.credentials import CredentialFields, credentials_of
from gatehouse.web.responses import json_response
from gatehouse.web.routes.table import Endpoint, RateClass, RequiredAuth


class ExchangeJwtRequest(CredentialFields, frozen=True, kw_only=True):
    """User JWT in `jwt`, with its factor if the new JWT needs `fac` too."""


class ExchangeJwtResponse(msgspec.Struct, frozen=True, kw_only=True):
    status: Literal["OK"] = "OK"
    jwt: str


class ExchangeJwtEndpoint:
    def __init__(self, exchange: JwtExchange) -> None:
        self._exchange = exchange

    async def handle(self, request: Request) -> Response:
        ask = await read_json(request, ExchangeJwtRequest)
        jwt = await self._exchange.exchange(await credentials_of(request, ask))
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
