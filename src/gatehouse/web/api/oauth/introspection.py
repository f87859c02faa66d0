"""POST /proxy/oauth/introspect (RFC 7662, R3)."""

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.oauth.client_auth import ClientCredentialFields
from gatehouse.oauth.introspection import Introspection
from gatehouse.web.api.oauth.credentials import credentials_of, refuse_query
from gatehouse.web.http.errors import Dialect
from gatehouse.web.http.parse import JSON_OR_FORM, read_body
from gatehouse.web.http.responses import json_response
from gatehouse.web.http.routing import Endpoint, RateClass, RequiredAuth


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
