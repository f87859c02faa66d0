"""POST /proxy/oauth/token (interface §4.2, R3)."""

from typing import Final

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.fields.derive import copy_as
from gatehouse.oauth.token_endpoint import TokenEndpoint, TokenRequest
from gatehouse.oauth.token_issuer import TokenSet
from gatehouse.oauth.vocabulary import TOKEN_PATH
from gatehouse.web.api.oauth.credentials import ClientCredentialFields, credentials_of, refuse_query
from gatehouse.web.http.errors import Dialect
from gatehouse.web.http.parse import JSON_OR_FORM, read_body
from gatehouse.web.http.responses import json_response
from gatehouse.web.http.routing import Cors, Endpoint, RateClass, RequiredAuth

PRAGMA_NO_CACHE: Final = {"Pragma": "no-cache"}  # beside no-store (RFC 6749 §5.1)


class TokenFields(ClientCredentialFields, frozen=True, kw_only=True):
    grant_type: str = ""
    code: str = ""
    redirect_uri: str = ""
    code_verifier: str = ""
    refresh_token: str = ""
    scope: str = ""
    device_code: str = ""
    resource: str = ""
    subject_token: str = ""
    subject_token_type: str = ""
    requested_token_type: str = ""
    actor_token: str = ""
    actor_token_type: str = ""
    audience: str = ""


class TokenResponse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    access_token: str
    id_token: str | None = None
    token_type: str
    expires_in: int
    refresh_token: str | None = None
    scope: str | None = None
    issued_token_type: str | None = None


class TokenHttpEndpoint(Struct, eq=False):
    tokens: TokenEndpoint

    async def issue_tokens(self, request: Request) -> Response:
        refuse_query(request, TokenFields)
        body = await read_body(request, TokenFields, kinds=JSON_OR_FORM)
        credentials = credentials_of(request, body)
        given = await self.tokens.issue_tokens(
            TokenRequest(
                grant_type=body.grant_type,
                code=body.code,
                redirect_uri=body.redirect_uri,
                code_verifier=body.code_verifier,
                refresh_token=body.refresh_token,
                scope=body.scope,
                device_code=body.device_code,
                resource=body.resource,
                subject_token=body.subject_token,
                subject_token_type=body.subject_token_type,
                requested_token_type=body.requested_token_type,
                actor_token=body.actor_token,
                actor_token_type=body.actor_token_type,
                audience=body.audience,
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
            summary="Get tokens for a code, refresh token or device code, or for the client itself",
            request=TokenFields,
            accepts=JSON_OR_FORM,
            answers={200: TokenResponse},
            auth=RequiredAuth.CLIENT,
            cors=Cors.CLIENTS,
        )


def token_response(given: TokenSet) -> TokenResponse:
    return copy_as(TokenResponse, given)
