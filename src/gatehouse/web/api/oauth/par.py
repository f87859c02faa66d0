"""POST /proxy/oauth/par: a client pushes its authorization request (RFC 9126, R11)."""

from typing import Final

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.fields.derive import with_members
from gatehouse.oauth.authorize.pushed import PUSHED_SECONDS, PushedRequests
from gatehouse.oauth.authorize.request import AuthorizeParameters
from gatehouse.oauth.authorize.service import AuthorizeService, check_redirect
from gatehouse.oauth.client_auth import ClientAuthenticator, ClientCredentialFields, ClientCredentials
from gatehouse.oauth.errors import InvalidClient, InvalidRequest, NoPushedRequests, NotRedirected
from gatehouse.oauth.metadata_clients import DocumentCaller
from gatehouse.oauth.model import Client, ClientProfile
from gatehouse.oauth.redirects import document_host
from gatehouse.oauth.vocabulary import PAR_PATH
from gatehouse.web.api.oauth.authorize import AuthorizeFields
from gatehouse.web.api.oauth.credentials import FORM_ONLY, credentials_of, refuse_query
from gatehouse.web.http import parse_form
from gatehouse.web.http.errors import Dialect
from gatehouse.web.http.parse import content_type, raw_body
from gatehouse.web.http.responses import json_response
from gatehouse.web.http.routing import Cors, Endpoint, RateClass, RequiredAuth

BODY_LIMIT: Final = 8 * 1024  # bytes (R11)
CREATED: Final = 201


@with_members(
    lambda: (
        (field.name, field.type, field.default)
        for field in msgspec.structs.fields(AuthorizeFields)
        if field.name != "request_uri"
    )
)
class PushedFields(ClientCredentialFields, frozen=True, kw_only=True):
    """The parameters of an authorization request, with the client's credentials."""


class PushedResponse(msgspec.Struct, frozen=True, kw_only=True):
    request_uri: str
    expires_in: int = PUSHED_SECONDS


class PushedRequestEndpoint(Struct, kw_only=True, eq=False):
    authentication: ClientAuthenticator
    authorize: AuthorizeService
    pushed_requests: PushedRequests

    async def push(self, request: Request) -> Response:
        refuse_query(request, PushedFields)
        content_type(request, FORM_ONLY)
        asked = AuthorizeParameters(parse_form.parse_urlencoded(await raw_body(request)), is_pushed=True)
        if asked.repeated:
            raise InvalidRequest("a parameter is given more than once")
        if asked["request_uri"]:
            raise InvalidRequest("request_uri in a pushed request")
        credentials = credentials_of(request, credential_fields(asked))
        client = await self._authenticate(credentials)
        try:
            check_redirect(client, asked["redirect_uri"])
        except NotRedirected as error:
            raise InvalidRequest(error.detail) from None
        wanted = await self.authorize.read_request(asked, client)
        request_uri = await self.pushed_requests.add(client, wanted, source=credentials.source)
        return json_response(PushedResponse(request_uri=request_uri), status=CREATED)

    async def _authenticate(self, credentials: ClientCredentials) -> Client:
        """Authenticate as at the token endpoint; here a client may be seen for the first time, with its document."""
        name = self.authentication.client_id_in(credentials)
        if document_host(name):
            try:
                caller = DocumentCaller(source=credentials.source, origin=credentials.origin)
                await self.authorize.find_client(name, caller)
            except NotRedirected as error:
                raise InvalidClient(error.detail) from None
        client = await self.authentication.authenticate_by_secret(credentials)
        if client.profile is ClientProfile.NATIVE:
            raise NoPushedRequests
        return client

    def endpoint(self) -> Endpoint:
        return Endpoint(
            name="oauth.par",
            path=PAR_PATH,
            methods=("POST",),
            handler=self.push,
            dialect=Dialect.OAUTH,
            rate_class=RateClass.TOKEN,
            section="interface R11",
            summary="Push an authorization request (RFC 9126)",
            request=PushedFields,
            accepts=FORM_ONLY,
            answers={CREATED: PushedResponse},
            auth=RequiredAuth.CLIENT,
            body_limit=BODY_LIMIT,
            cors=Cors.CLIENTS,
        )


def credential_fields(asked: AuthorizeParameters) -> ClientCredentialFields:
    return ClientCredentialFields(
        client_id=asked["client_id"],
        client_secret=asked["client_secret"],
        client_assertion_type=asked["client_assertion_type"],
        client_assertion=asked["client_assertion"],
    )
