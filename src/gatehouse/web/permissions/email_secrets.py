"""POST /api/permissions/emailSecret: which `with_email` secrets an application has (interface §4.14, R1)."""

from typing import Literal

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.permissions.callers.credentials import DEFAULT_POLICY
from gatehouse.permissions.commands.service_tokens import EmailSecretCommands
from gatehouse.permissions.documents.spelling import ApplicationId
from gatehouse.permissions.model.service_token import EmailSecret
from gatehouse.web.parse import read_json
from gatehouse.web.permissions.app_schemas import parse_optional_application_id
from gatehouse.web.permissions.credentials import CredentialFields
from gatehouse.web.permissions.envelope import data_response, permission_endpoint, require_field
from gatehouse.web.permissions.front_desk import RequestAuthenticator, actor_of
from gatehouse.web.permissions.moments import iso8601
from gatehouse.web.routes.table import Endpoint


class EmailSecretRequest(CredentialFields, frozen=True, kw_only=True):
    action: Literal["get"]
    application_id: ApplicationId | None = None


class EmailSecretEntry(msgspec.Struct, frozen=True, kw_only=True):
    """Identifier and age of a secret, without its value."""

    ref: str
    created: str


class EmailSecretResponse(msgspec.Struct, frozen=True, kw_only=True):
    status: str
    data: tuple[EmailSecretEntry, ...]


class EmailSecretEndpoint:
    def __init__(self, *, secrets: EmailSecretCommands, authenticator: RequestAuthenticator) -> None:
        self._secrets = secrets
        self._authenticator = authenticator

    async def handle(self, request: Request) -> Response:
        ask = await read_json(request, EmailSecretRequest)
        visit = await self._authenticator.authenticate(
            request, ask, DEFAULT_POLICY, application_id=parse_optional_application_id(ask.application_id)
        )
        listed = await self._secrets.list(
            actor_of(request, visit), require_field(visit.application_id, "application_id")
        )
        return data_response(tuple(map(email_secret_entry, listed)))

    def endpoint(self) -> Endpoint:
        return permission_endpoint(
            "emailSecret",
            self.handle,
            name="email_secret",
            request=EmailSecretRequest,
            section="interface §4.14",
            summary="List the `with_email` secrets of an application, without values: get",
            answers=EmailSecretResponse,
        )


def email_secret_entry(secret: EmailSecret) -> EmailSecretEntry:
    return EmailSecretEntry(ref=secret.ref, created=iso8601(secret.created_at))
