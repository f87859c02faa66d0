"""POST /api/permissions/client: OAuth clients of an application (interface §4.14, R3)."""

from typing import Literal

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.admin.application_clients import ApplicationClients
from gatehouse.admin.clients import ClientDraft, client_problems_in_request
from gatehouse.fields.secrets import SecretText
from gatehouse.images.model import image_url
from gatehouse.kernel.times import iso8601
from gatehouse.oauth.client_document import ClientRecord, record_values
from gatehouse.oauth.model import Client, ClientSecret
from gatehouse.permissions.authentication.authenticator import Authenticator
from gatehouse.permissions.authentication.credentials import DEFAULT_POLICY
from gatehouse.permissions.documents.grammar import ApplicationId
from gatehouse.permissions.rights.actor import Actor
from gatehouse.web.api.permissions.authentication import CredentialFields, actor_of, credentials_of
from gatehouse.web.api.permissions.envelope import data_response, ok_response, permission_endpoint
from gatehouse.web.api.permissions.schemas import parse_optional_application_id
from gatehouse.web.http.parse import read_json
from gatehouse.web.http.responses import json_response
from gatehouse.web.http.routing import SCHEMA_BODY_LIMIT, Endpoint


class ClientRequest(CredentialFields, frozen=True, kw_only=True):
    """Only `create` creates a client, with an ID chosen by the caller; save never does."""

    action: Literal["get", "create", "save", "delete", "rotate", "revoke"]
    application_id: ApplicationId | None = None  # defaults to that of the service JWT, else every client
    data: ClientDraft = ClientDraft()


class ClientSecretEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    created: str
    ends: str = ""  # of the secret before the newest


class ClientEntry(ClientRecord, frozen=True, kw_only=True, omit_defaults=True):
    created: str
    version: int
    secrets: tuple[ClientSecretEntry, ...]
    client_secret: SecretText = ""  # in the answers to create and rotate only
    logo_uri: str = ""  # of the image at this installation


class ClientResponse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`data` is a list for get without client_id, otherwise the client; `revoked` counts revoked sign-ins."""

    status: str
    data: tuple[ClientEntry, ...] | ClientEntry | None = None
    revoked: int | None = None


class ClientEndpoint(Struct, kw_only=True, eq=False):
    clients: ApplicationClients
    authenticator: Authenticator
    base_url: str

    async def handle(self, request: Request) -> Response:
        body = await read_json(request, ClientRequest)
        authenticated = await self.authenticator.authenticate(
            credentials_of(request, body),
            DEFAULT_POLICY,
            application_id=parse_optional_application_id(body.application_id),
        )
        with client_problems_in_request():
            return await self._answer(actor_of(request, authenticated), authenticated.application_id, body)

    async def _answer(self, actor: Actor, application_id: int | None, body: ClientRequest) -> Response:
        draft = body.data
        of_client = actor, application_id, draft.client_id
        secret: str | None = None
        match body.action:
            case "get":
                if not draft.client_id:
                    clients = await self.clients.list(actor, application_id)
                    return data_response(tuple(client_entry(client, self.base_url) for client in clients))
            case "create":
                secret = await self.clients.create_from_draft(actor, application_id, draft)
            case "rotate":
                secret = await self.clients.rotate_secret(*of_client)
            case "save":
                await self.clients.save_draft(actor, application_id, draft)
            case "delete":
                await self.clients.remove(*of_client, draft.version)
                return ok_response()
            case "revoke":
                revoked = await self.clients.revoke_tokens(*of_client)
                return json_response(ClientResponse(status="OK", revoked=revoked))
        client = await self.clients.get(*of_client)
        return data_response(client_entry(client, self.base_url, secret=secret or ""))

    def endpoint(self) -> Endpoint:
        return permission_endpoint(
            "client",
            self.handle,
            name="client",
            request=ClientRequest,
            section="interface §4.14",
            summary="OAuth clients of an application: get, create, save, delete, rotate, revoke",
            answers=ClientResponse,
            body_limit=SCHEMA_BODY_LIMIT,  # a logo
        )


def client_entry(client: Client, base_url: str, *, secret: str = "") -> ClientEntry:
    return ClientEntry(
        **record_values(client),
        created=iso8601(client.created_at),
        version=client.version,
        secrets=tuple(
            map(client_secret_entry, sorted(client.secrets, key=lambda each: (each.created_at, not each.expires_at)))
        ),
        client_secret=secret,
        logo_uri=image_url(base_url, client.logo),
    )


def client_secret_entry(secret: ClientSecret) -> ClientSecretEntry:
    return ClientSecretEntry(created=iso8601(secret.created_at), ends=iso8601(secret.expires_at))
