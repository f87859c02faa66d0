"""POST /proxy/oauth/token (interface §4.2, R3)."""

from typing import Final

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.oauth.token_endpoint import TokenEndpoint, TokenRequest
from gatehouse.oauth.token_issuer import TokenResponse
from gatehouse.oauth.vocabulary import TOKEN_PATH
from gatehouse.web.api.oauth.credentials import credentials_of, refuse_query
from gatehouse.web.http.errors import Dialect
from gatehouse.web.http.parse import JSON_OR_FORM, read_body
from gatehouse.web.http.responses import json_response
from gatehouse.web.http.routing import Cors, Endpoint, RateClass, RequiredAuth

PRAGMA_NO_CACHE: Final = {"Pragma": "no-cache"}  # beside no-store (RFC 6749 §5.1)


class TokenHttpEndpoint(Struct, eq=False):
    tokens: TokenEndpoint

    async def issue_tokens(self, request: Request) -> Response:
        refuse_query(request, TokenRequest)
        token_request = await read_body(request, TokenRequest, kinds=JSON_OR_FORM)
        response = await self.tokens.issue_tokens(token_request, credentials_of(request, token_request))
        return json_response(response, headers=PRAGMA_NO_CACHE)

    def endpoint(self) -> Endpoint:
        return Endpoint(
            name="oauth.token",
            path=TOKEN_PATH,
            methods=("POST",),
            handler=self.issue_tokens,
            dialect=Dialect.OAUTH,
            rate_class=RateClass.TOKEN,
            section="interface §4.2",
            summary="Get tokens for a code, refresh token or device code, or for the client itself",
            request=TokenRequest,
            accepts=JSON_OR_FORM,
            answers={200: TokenResponse},
            auth=RequiredAuth.CLIENT,
            cors=Cors.CLIENTS,
        )
