"""POST /api/permissions/emailSecret: the `with_email` secrets of an application (interface §4.14, R1)."""

from typing import TypeAlias

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.kernel.times import iso8601
from gatehouse.permissions.authentication.authenticator import Authenticator
from gatehouse.permissions.authentication.credentials import DEFAULT_POLICY
from gatehouse.permissions.commands.service_tokens import EmailSecretCommands
from gatehouse.permissions.documents.grammar import ApplicationId
from gatehouse.permissions.model.service_token import EmailSecret
from gatehouse.web.api.permissions.authentication import CredentialFields, NoData, actor_of, credentials_of
from gatehouse.web.api.permissions.envelope import data_response, ok_response, permission_endpoint, require_field
from gatehouse.web.api.permissions.schemas import parse_optional_application_id
from gatehouse.web.http.parse import read_action
from gatehouse.web.http.routing import Endpoint


class EmailSecretData(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    ref: str = ""


class ListEmailSecrets(CredentialFields, frozen=True, kw_only=True, tag_field="action", tag="get"):
    application_id: ApplicationId | None = None
    data: NoData = NoData()


class CreateEmailSecret(CredentialFields, frozen=True, kw_only=True, tag_field="action", tag="create"):
    application_id: ApplicationId | None = None
    data: NoData = NoData()


class DeleteEmailSecret(CredentialFields, frozen=True, kw_only=True, tag_field="action", tag="delete"):
    application_id: ApplicationId | None = None
    data: EmailSecretData = EmailSecretData()


EmailSecretRequest: TypeAlias = ListEmailSecrets | CreateEmailSecret | DeleteEmailSecret


class EmailSecretEntry(msgspec.Struct, frozen=True, kw_only=True):
    """Identifier and age of a secret, without its value."""

    ref: str
    created: str


class NewEmailSecretEntry(msgspec.Struct, frozen=True, kw_only=True):
    secret: str  # never shown again


class EmailSecretResponse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    status: str
    data: tuple[EmailSecretEntry, ...] | NewEmailSecretEntry | None = None  # none for delete


class EmailSecretEndpoint:
    def __init__(self, *, secrets: EmailSecretCommands, authenticator: Authenticator) -> None:
        self._secrets = secrets
        self._authenticator = authenticator

    async def handle(self, request: Request) -> Response:
        body: EmailSecretRequest = await read_action(request, EmailSecretRequest)
        authenticated = await self._authenticator.authenticate(
            credentials_of(request, body),
            DEFAULT_POLICY,
            application_id=parse_optional_application_id(body.application_id),
        )
        actor, application_id = (
            actor_of(request, authenticated),
            require_field(authenticated.application_id, "application_id"),
        )
        match body:
            case ListEmailSecrets():
                return data_response(tuple(map(email_secret_entry, await self._secrets.list(actor, application_id))))
            case CreateEmailSecret():
                return data_response(NewEmailSecretEntry(secret=await self._secrets.create(actor, application_id)))
            case DeleteEmailSecret():
                await self._secrets.revoke(actor, application_id, body.data.ref)
                return ok_response()

    def endpoint(self) -> Endpoint:
        return permission_endpoint(
            "emailSecret",
            self.handle,
            name="email_secret",
            request=EmailSecretRequest,
            section="interface §4.14",
            summary="The `with_email` secrets of an application: get, create, delete",
            answers=EmailSecretResponse,
        )


def email_secret_entry(secret: EmailSecret) -> EmailSecretEntry:
    return EmailSecretEntry(ref=secret.ref, created=iso8601(secret.created_at))
