"""POST /proxy/oauth/token/revoke (interface §4.2) and /proxy/oauth/revoke (RFC 7009)."""

from typing import Literal

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.oauth.client_auth import ClientCredentialFields
from gatehouse.oauth.errors import InvalidRequest
from gatehouse.oauth.revocation import Revocation
from gatehouse.web.api.oauth.credentials import credentials_of, refuse_query
from gatehouse.web.http.context import origin_of
from gatehouse.web.http.errors import Dialect, OAuthFailure
from gatehouse.web.http.parse import JSON_OR_FORM, read_body
from gatehouse.web.http.responses import NO_STORE, json_response
from gatehouse.web.http.routing import Cors, Endpoint, RateClass, RequiredAuth


class RefreshTokenFields(ClientCredentialFields, frozen=True, kw_only=True):
    refresh_token: str = ""
    token: str = ""  # the same under its RFC 7009 name (R3)


class RevocationFields(ClientCredentialFields, frozen=True, kw_only=True):
    token: str = ""
    token_type_hint: str = ""  # accepted and ignored


class RevocationResponse(msgspec.Struct, frozen=True, kw_only=True):
    status: Literal["ok"] = "ok"


class RevocationEndpoints(Struct, eq=False):
    revocation: Revocation

    async def revoke_refresh_token(self, request: Request) -> Response:
        refuse_query(request, RefreshTokenFields)
        body = await read_body(request, RefreshTokenFields, kinds=JSON_OR_FORM)
        if body.refresh_token and body.token:
            raise InvalidRequest("two tokens in one request")
        await self.revocation.revoke_refresh_token(
            credentials_of(request, body), body.refresh_token or body.token, origin_of(request, "client")
        )
        return json_response(RevocationResponse())

    async def revoke(self, request: Request) -> Response:
        refuse_query(request, RevocationFields)
        body = await read_body(request, RevocationFields, kinds=JSON_OR_FORM)
        await self.revocation.revoke(credentials_of(request, body), body.token, origin_of(request, "client"))
        return Response(None, 200, NO_STORE)

    def endpoints(self) -> list[Endpoint]:
        return [
            Endpoint(
                name="oauth.token_revoke",
                path="/proxy/oauth/token/revoke",
                methods=("POST",),
                handler=self.revoke_refresh_token,
                dialect=Dialect.OAUTH,
                rate_class=RateClass.TOKEN,
                section="interface §4.2",
                summary="Revoke a sign-in by its refresh token",
                request=RefreshTokenFields,
                accepts=JSON_OR_FORM,
                answers={200: RevocationResponse, 401: OAuthFailure},
                cors=Cors.CLIENTS,
            ),
            Endpoint(
                name="oauth.revoke",
                path="/proxy/oauth/revoke",
                methods=("POST",),
                handler=self.revoke,
                dialect=Dialect.OAUTH,
                rate_class=RateClass.TOKEN,
                section="interface R3",
                summary="Revoke a sign-in by any of its tokens (RFC 7009)",
                request=RevocationFields,
                accepts=JSON_OR_FORM,
                answers={200: None},
                auth=RequiredAuth.CLIENT,
                cors=Cors.CLIENTS,
            ),
        ]
