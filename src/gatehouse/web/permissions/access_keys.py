"""POST /api/permissions/accessKey (interface §4.8)."""

from typing import Literal

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.permissions.callers.credentials import ORDINARY
from gatehouse.permissions.commands.access_keys import AccessKeys
from gatehouse.permissions.documents.spelling import ApplicationId
from gatehouse.permissions.model.access_key import AccessKey
from gatehouse.web.parse import read_json
from gatehouse.web.permissions.app_schemas import id_of
from gatehouse.web.permissions.credentials import Asked
from gatehouse.web.permissions.envelope import answer, done, needed, post
from gatehouse.web.permissions.front_desk import FrontDesk, actor_of
from gatehouse.web.permissions.moments import moment
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


class AccessKeyRequest(Asked, frozen=True, kw_only=True):
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


class AccessKeyAnswer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    status: str
    data: tuple[AccessKeyEntry, ...] | AccessKeyEntry | None = None  # a list for get, the new key for save


class AccessKeyEndpoint:
    def __init__(self, *, keys: AccessKeys, desk: FrontDesk) -> None:
        self._keys = keys
        self._desk = desk

    async def act(self, request: Request) -> Response:
        ask = await read_json(request, AccessKeyRequest)
        visit = await self._desk.visit(request, ask, ORDINARY, application_id=id_of(ask.application_id))
        actor, application_id = actor_of(request, visit), needed(visit.application_id, "application_id")
        match ask.action:
            case "get":
                return answer(tuple(entry(key) for key in await self._keys.list(actor, application_id)))
            case "save":
                new = await self._keys.create(actor, application_id, needed(ask.data, "data").comment or "")
                return answer(entry(new.key, value=new.value))
            case "delete":
                await self._keys.delete(actor, application_id, needed(needed(ask.data, "data").id, "data.id"))
                return done()

    def endpoint(self) -> Endpoint:
        return post(
            "accessKey",
            self.act,
            name="access_key",
            request=AccessKeyRequest,
            section="interface §4.8",
            summary="Access keys of an application: get, save, delete",
            answers=AccessKeyAnswer,
        )


def entry(key: AccessKey, *, value: str = "") -> AccessKeyEntry:
    return AccessKeyEntry(
        id=key.key_id,
        application_id=key.application_id,
        comment=key.comment,
        created=moment(key.created_at),
        modified=moment(key.modified_at),
        last_used=moment(key.last_used),
        hash=value,
    )
