"""POST /api/permissions/accessKey (interface §4.8)."""

from typing import Literal

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.kernel.times import iso8601
from gatehouse.permissions.authentication.authenticator import Authenticator
from gatehouse.permissions.authentication.credentials import DEFAULT_POLICY
from gatehouse.permissions.commands.access_keys import AccessKeyCommands
from gatehouse.permissions.documents.grammar import ApplicationId
from gatehouse.permissions.model.access_key import AccessKey
from gatehouse.web.api.permissions.authentication import CredentialFields, actor_of, credentials_of
from gatehouse.web.api.permissions.envelope import data_response, ok_response, permission_endpoint, require_field
from gatehouse.web.api.permissions.schemas import parse_optional_application_id
from gatehouse.web.http.parse import read_json
from gatehouse.web.http.routing import Endpoint


class AccessKeyData(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Save needs `comment`, delete needs `id`; other fields of a key record are ignored (R6)."""

    id: str | None = None
    comment: str | None = ""
    application_id: object = None
    hash: object = None
    created: object = None
    modified: object = None
    last_used: object = None


class AccessKeyRequest(CredentialFields, frozen=True, kw_only=True):
    action: Literal["get", "save", "delete"]
    application_id: ApplicationId | None = None  # else the one that the service JWT is of
    data: AccessKeyData | None = None


class AccessKeyEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    id: str
    application_id: int
    comment: str
    created: str
    modified: str
    last_used: str = ""  # left out when it was never used
    hash: str = ""  # in the answer to its creation only


class AccessKeyResponse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    status: str
    data: tuple[AccessKeyEntry, ...] | AccessKeyEntry | None = None  # a list for get, the new key for save


class AccessKeyEndpoint(Struct, kw_only=True, eq=False):
    keys: AccessKeyCommands
    authenticator: Authenticator

    async def handle(self, request: Request) -> Response:
        body = await read_json(request, AccessKeyRequest)
        authenticated = await self.authenticator.authenticate(
            credentials_of(request, body),
            DEFAULT_POLICY,
            application_id=parse_optional_application_id(body.application_id),
        )
        actor, application_id = (
            actor_of(request, authenticated),
            require_field(authenticated.application_id, "application_id"),
        )
        match body.action:
            case "get":
                return data_response(
                    tuple(access_key_entry(key) for key in await self.keys.list(actor, application_id))
                )
            case "save":
                new = await self.keys.create(actor, application_id, require_field(body.data, "data").comment or "")
                return data_response(access_key_entry(new.key, value=new.value))
            case "delete":
                await self.keys.delete(
                    actor, application_id, require_field(require_field(body.data, "data").id, "data.id")
                )
                return ok_response()

    def endpoint(self) -> Endpoint:
        return permission_endpoint(
            "accessKey",
            self.handle,
            name="access_key",
            request=AccessKeyRequest,
            section="interface §4.8",
            summary="Access keys of an application: get, save, delete",
            answers=AccessKeyResponse,
        )


def access_key_entry(key: AccessKey, *, value: str = "") -> AccessKeyEntry:
    return AccessKeyEntry(
        id=key.key_id,
        application_id=key.application_id,
        comment=key.comment,
        created=iso8601(key.created_at),
        modified=iso8601(key.modified_at),
        last_used=iso8601(key.last_used),
        hash=value,
    )
