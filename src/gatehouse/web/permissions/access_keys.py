"""POST /api/permissions/accessKey (interface §4.8)."""

from typing import Literal

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.permissions.callers.credentials import DEFAULT_POLICY
from gatehouse.permissions.commands.access_keys import AccessKeyCommands
from gatehouse.permissions.documents.spelling import ApplicationId
from gatehouse.permissions.model.access_key import AccessKey
from gatehouse.web.parse import read_json
from gatehouse.web.permissions.app_schemas import parse_optional_application_id
from gatehouse.web.permissions.credentials import CredentialFields
from gatehouse.web.permissions.envelope import data_response, ok_response, permission_endpoint, require_field
from gatehouse.web.permissions.front_desk import RequestAuthenticator, actor_of
from gatehouse.web.permissions.moments import iso8601
from gatehouse.web.routes.table import Endpoint


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


class AccessKeyEndpoint:
    def __init__(self, *, keys: AccessKeyCommands, authenticator: RequestAuthenticator) -> None:
        self._keys = keys
        self._authenticator = authenticator

    async def handle(self, request: Request) -> Response:
        ask = await read_json(request, AccessKeyRequest)
        visit = await self._authenticator.authenticate(
            request, ask, DEFAULT_POLICY, application_id=parse_optional_application_id(ask.application_id)
        )
        actor, application_id = actor_of(request, visit), require_field(visit.application_id, "application_id")
        match ask.action:
            case "get":
                return data_response(
                    tuple(access_key_entry(key) for key in await self._keys.list(actor, application_id))
                )
            case "save":
                new = await self._keys.create(actor, application_id, require_field(ask.data, "data").comment or "")
                return data_response(access_key_entry(new.key, value=new.value))
            case "delete":
                await self._keys.delete(
                    actor, application_id, require_field(require_field(ask.data, "data").id, "data.id")
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
