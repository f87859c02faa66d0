"""POST /proxy/oauth/token (interface §4.2, R3)."""

from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.oauth.issue import TokenSet
from gatehouse.oauth.token_endpoint import TokenEndpoint, TokenRequest
from gatehouse.oauth.vocabulary import TOKEN_PATH
from gatehouse.web.dialects import Dialect
from gatehouse.web.oauth.credentials import ClientCredentialFields, credentials_of, refuse_query
from gatehouse.web.parse import JSON_OR_FORM, read_body
from gatehouse.web.responses import json_response
from gatehouse.web.routes.table import Cors, Endpoint, RateClass, RequiredAuth

PRAGMA_NO_CACHE: Final = {"Pragma": "no-cache"}  # beside no-store (RFC 6749 §5.1)


class TokenFields(ClientCredentialFields, frozen=True, kw_only=True):
    grant_type: str = ""
    code: str = ""
    redirect_uri: str = ""
    code_verifier: str = ""
    refresh_token: str = ""
    scope: str = ""
    device_code: str = ""


class TokenResponse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    access_token: str
    id_token: str
    token_type: str
    expires_in: int
    refresh_token: str | None = None
    scope: str | None = None


class TokenHttpEndpoint:
    def __init__(self, tokens: TokenEndpoint) -> None:
        self._tokens = tokens

    async def issue_tokens(self, request: Request) -> Response:
        refuse_query(request, TokenFields)
        asked = await read_body(request, TokenFields, kinds=JSON_OR_FORM)
        credentials = credentials_of(request, asked)
        given = await self._tokens.issue_tokens(
            TokenRequest(
                grant_type=asked.grant_type,
                code=asked.code,
                redirect_uri=asked.redirect_uri,
                code_verifier=asked.code_verifier,
                refresh_token=asked.refresh_token,
                scope=asked.scope,
                device_code=asked.device_code,
                credentials=credentials,
                origin=credentials.origin,
            )
        )
        return json_response(token_response(given), headers=PRAGMA_NO_CACHE)

    def endpoint(self) -> Endpoint:
        return Endpoint(
            name="oauth.token",
            path=TOKEN_PATH,
            methods=("POST",),
            handler=self.issue_tokens,
            dialect=Dialect.OAUTH,
            rate_class=RateClass.TOKEN,
            section="interface §4.2",
            summary="Exchange a code, refresh token or device code for tokens",
            request=TokenFields,
            accepts=JSON_OR_FORM,
            answers={200: TokenResponse},
            auth=RequiredAuth.CLIENT,
            cors=Cors.CLIENTS,
        )


def token_response(given: TokenSet) -> TokenResponse:
    return TokenResponse(
        access_token=given.access_token,
        id_token=given.id_token,
        token_type="Bearer",  # noqa: S106 - always (interface §4.2)
        expires_in=given.expires_in,
        refresh_token=given.refresh_token,
        scope=given.scope,
    )
