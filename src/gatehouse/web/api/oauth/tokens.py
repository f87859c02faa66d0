"""POST /proxy/oauth/token (interface §4.2, R3)."""

from typing import Final, Literal

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.accounts.model import CLAIM_FIELDS
from gatehouse.fields.derive import copy_as, with_members
from gatehouse.oauth.errors import InvalidRequest
from gatehouse.oauth.exchange import IdTokenExchange, UserJwtExchange
from gatehouse.oauth.introspection import Introspection
from gatehouse.oauth.revocation import Revocation
from gatehouse.oauth.token_endpoint import TokenEndpoint, TokenRequest
from gatehouse.oauth.tokens import TokenSet
from gatehouse.oauth.userinfo import UserInfo
from gatehouse.oauth.vocabulary import TOKEN_PATH
from gatehouse.tokens.claims import InvalidToken
from gatehouse.web.api.oauth.credentials import (
    ClientCredentialFields,
    access_token_of,
    bearer_of,
    credentials_of,
    refuse_query,
)
from gatehouse.web.http.client_address import caller_address_of
from gatehouse.web.http.context import origin_of
from gatehouse.web.http.errors import Dialect, OAuthFailure
from gatehouse.web.http.parse import JSON_OR_FORM, read_body
from gatehouse.web.http.responses import NO_STORE, json_response
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


# POST /proxy/oauth/exchange and /proxy/oauth/exchangeToken (interface §4.2, R2).


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
        given = await self.id_tokens.exchange(required_bearer(request), caller.address if caller.proven else None)
        return json_response(IdTokenResponse(id_token=given.id_token, expires_in=given.expires_in))

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


# POST /proxy/oauth/introspect (RFC 7662, R3).


class IntrospectionFields(ClientCredentialFields, frozen=True, kw_only=True):
    token: str = ""
    token_type_hint: str = ""


class IntrospectionResponse(msgspec.Struct, frozen=True, kw_only=True):
    active: bool
    iss: str = ""
    sub: str = ""
    client_id: str = ""
    aud: tuple[str, ...] = ()
    scope: str = ""
    token_type: str = ""
    exp: int = 0
    jti: str = ""


class IntrospectionEndpoint(Struct, eq=False):
    introspection: Introspection

    async def introspect(self, request: Request) -> Response:
        refuse_query(request, IntrospectionFields)
        body = await read_body(request, IntrospectionFields, kinds=JSON_OR_FORM)
        return json_response(await self.introspection.introspect(credentials_of(request, body), body.token))

    def endpoint(self) -> Endpoint:
        return Endpoint(
            name="oauth.introspect",
            path="/proxy/oauth/introspect",
            methods=("POST",),
            handler=self.introspect,
            dialect=Dialect.OAUTH,
            rate_class=RateClass.TOKEN,
            section="interface R3",
            summary="Check a token of the client or a login token of its application (RFC 7662)",
            request=IntrospectionFields,
            accepts=JSON_OR_FORM,
            answers={200: IntrospectionResponse},
            auth=RequiredAuth.CLIENT,
        )


# POST /proxy/oauth/token/revoke (interface §4.2) and /proxy/oauth/revoke (RFC 7009).


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


# GET and POST /proxy/oauth/userinfo (interface §4.2).


@with_members(lambda: ((one.field.claim, str, "") for one in CLAIM_FIELDS))
class UserInfoResponse(msgspec.Struct, frozen=True, kw_only=True):
    """Claims by scope, plus the client's mapped claims. Claims that are too long are named in claims_omitted."""

    status: Literal["ok"]
    sub: str
    email: str = ""
    email_verified: bool = False
    name: str = ""
    nickname: str = ""
    preferred_username: str = ""
    picture: str = ""
    locale: str = ""
    updated_at: int = 0
    phone_verified: bool = False
    groups: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    permissions: tuple[str, ...] = ()
    claims_omitted: tuple[str, ...] = ()


class UserInfoEndpoint(Struct, eq=False):
    userinfo: UserInfo

    async def show(self, request: Request) -> Response:
        return json_response(await self.userinfo.claims_for(await access_token_of(request)))

    def endpoint(self) -> Endpoint:
        return Endpoint(
            name="oauth.userinfo",
            path="/proxy/oauth/userinfo",
            methods=("GET", "POST"),
            handler=self.show,
            dialect=Dialect.OAUTH,
            rate_class=RateClass.TOKEN,
            section="interface §4.2",
            summary="Claims about the owner of the access token",
            answers={200: UserInfoResponse},
            auth=RequiredAuth.ACCESS_TOKEN,
            cors=Cors.CLIENTS,
        )
