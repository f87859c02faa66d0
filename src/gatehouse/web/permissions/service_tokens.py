"""POST /api/permissions/serviceToken: which static service JWTs an application has (interface §4.14, R2)."""

from typing import Literal

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.permissions.callers.credentials import DEFAULT_POLICY
from gatehouse.permissions.commands.service_tokens import ServiceTokenCommands
from gatehouse.permissions.documents.spelling import ApplicationId
from gatehouse.permissions.model.service_token import ServiceToken
from gatehouse.web.parse import read_json
from gatehouse.web.permissions.app_schemas import parse_optional_application_id
from gatehouse.web.permissions.credentials import CredentialFields
from gatehouse.web.permissions.envelope import data_response, permission_endpoint, require_field
from gatehouse.web.permissions.front_desk import RequestAuthenticator, actor_of
from gatehouse.web.permissions.moments import iso8601
from gatehouse.web.routes.table import Endpoint


class ServiceTokenRequest(CredentialFields, frozen=True, kw_only=True):
    action: Literal["get"]
    application_id: ApplicationId | None = None


class ServiceTokenEntry(msgspec.Struct, frozen=True, kw_only=True):
    jti: str
    application_id: int
    comment: str
    created: str
    ends: str
    revoked: bool


class ServiceTokenResponse(msgspec.Struct, frozen=True, kw_only=True):
    status: str
    data: tuple[ServiceTokenEntry, ...]


class ServiceTokenEndpoint:
    def __init__(self, *, tokens: ServiceTokenCommands, authenticator: RequestAuthenticator) -> None:
        self._tokens = tokens
        self._authenticator = authenticator

    async def handle(self, request: Request) -> Response:
        ask = await read_json(request, ServiceTokenRequest)
        visit = await self._authenticator.authenticate(
            request, ask, DEFAULT_POLICY, application_id=parse_optional_application_id(ask.application_id)
        )
        listed = await self._tokens.list(
            actor_of(request, visit), require_field(visit.application_id, "application_id")
        )
        return data_response(tuple(map(service_token_entry, listed)))

    def endpoint(self) -> Endpoint:
        return permission_endpoint(
            "serviceToken",
            self.handle,
            name="service_token",
            request=ServiceTokenRequest,
            section="interface §4.14",
            summary="List the static service JWTs of an application, without values: get",
            answers=ServiceTokenResponse,
        )


def service_token_entry(token: ServiceToken) -> ServiceTokenEntry:
    return ServiceTokenEntry(
        jti=token.jti,
        application_id=token.application_id,
        comment=token.comment,
        created=iso8601(token.created_at),
        ends=iso8601(token.ends_at),
        revoked=token.revoked,
    )
