"""POST /api/permissions/serviceToken: the static service JWTs of an application (interface §4.14, R2)."""

from typing import Annotated, TypeAlias

import msgspec
from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.fields.secrets import SecretRecord, SecretText
from gatehouse.kernel.times import iso8601
from gatehouse.permissions.authentication.authenticator import Authenticator
from gatehouse.permissions.authentication.credentials import DEFAULT_POLICY
from gatehouse.permissions.commands.service_tokens import ServiceTokenCommands
from gatehouse.permissions.documents.grammar import ApplicationId
from gatehouse.permissions.model.service_token import ServiceToken
from gatehouse.web.api.permissions.authentication import CredentialFields, NoData, actor_of, credentials_of
from gatehouse.web.api.permissions.envelope import data_response, ok_response, permission_endpoint, require_field
from gatehouse.web.api.permissions.schemas import parse_optional_application_id
from gatehouse.web.http.parse import read_action
from gatehouse.web.http.routing import Endpoint


class NewServiceTokenData(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    comment: Annotated[str, Meta(max_length=200)] = ""
    days: Annotated[int, Meta(ge=1, le=365)] | None = None


class ServiceTokenData(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    jti: str = ""


class ListServiceTokens(CredentialFields, frozen=True, kw_only=True, tag_field="action", tag="get"):
    application_id: ApplicationId | None = None
    data: NoData = NoData()


class CreateServiceToken(CredentialFields, frozen=True, kw_only=True, tag_field="action", tag="create"):
    application_id: ApplicationId | None = None
    data: NewServiceTokenData = NewServiceTokenData()


class DeleteServiceToken(CredentialFields, frozen=True, kw_only=True, tag_field="action", tag="delete"):
    application_id: ApplicationId | None = None
    data: ServiceTokenData = ServiceTokenData()


ServiceTokenRequest: TypeAlias = ListServiceTokens | CreateServiceToken | DeleteServiceToken


class ServiceTokenEntry(SecretRecord, frozen=True, kw_only=True):
    jti: str
    application_id: int
    comment: str
    created: str
    ends: str
    revoked: bool


class NewServiceTokenEntry(ServiceTokenEntry, frozen=True, kw_only=True):
    jwt: SecretText  # never shown again


class ServiceTokenResponse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    status: str
    data: tuple[ServiceTokenEntry, ...] | NewServiceTokenEntry | None = None  # none for delete


class ServiceTokenEndpoint(Struct, kw_only=True, eq=False):
    tokens: ServiceTokenCommands
    authenticator: Authenticator

    async def handle(self, request: Request) -> Response:
        body: ServiceTokenRequest = await read_action(request, ServiceTokenRequest)
        authenticated = await self.authenticator.authenticate(
            credentials_of(request, body),
            DEFAULT_POLICY,
            application_id=parse_optional_application_id(body.application_id),
        )
        actor, application_id = (
            actor_of(request, authenticated),
            require_field(authenticated.application_id, "application_id"),
        )
        match body:
            case ListServiceTokens():
                return data_response(tuple(map(service_token_entry, await self.tokens.list(actor, application_id))))
            case CreateServiceToken():
                issued = await self.tokens.issue(
                    actor, application_id, days=body.data.days, comment=body.data.comment.strip()
                )
                entry = msgspec.structs.asdict(service_token_entry(issued.token))
                return data_response(NewServiceTokenEntry(**entry, jwt=issued.jwt))
            case DeleteServiceToken():
                await self.tokens.revoke(actor, application_id, body.data.jti)
                return ok_response()

    def endpoint(self) -> Endpoint:
        return permission_endpoint(
            "serviceToken",
            self.handle,
            name="service_token",
            request=ServiceTokenRequest,
            section="interface §4.14",
            summary="Static service JWTs of an application: get, create, delete",
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
