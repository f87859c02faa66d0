"""Public keys of applications, for everyone; and custom keys, for who manages them (interface §4.4, R6)."""

from typing import Final, Literal

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.permissions.callers.credentials import ORDINARY
from gatehouse.permissions.commands.custom_keys import CustomKeys
from gatehouse.permissions.documents import grammar
from gatehouse.permissions.documents.spelling import ApplicationId
from gatehouse.permissions.errors import KeyNotFound, Malformed
from gatehouse.permissions.keys.files import PublishedKey
from gatehouse.permissions.keys.published import ApplicationKeys
from gatehouse.web.dialects import Dialect
from gatehouse.web.parse import read_json
from gatehouse.web.permissions.app_schemas import id_of
from gatehouse.web.permissions.credentials import Asked
from gatehouse.web.permissions.envelope import answer, done, needed, post
from gatehouse.web.permissions.front_desk import FrontDesk, actor_of
from gatehouse.web.responses import NOT_MODIFIED, cacheable
from gatehouse.web.routes.table import Cors, Endpoint, RateClass

CACHE_CONTROL: Final = "public, max-age=300"
SECTION: Final = "interface §4.4"


class KeyEntry(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    data: str  # PEM


class KeysAnswer(msgspec.Struct, frozen=True, kw_only=True):
    status: Literal["OK"] = "OK"
    keys: tuple[KeyEntry, ...]


class KeyAnswer(msgspec.Struct, frozen=True, kw_only=True):
    status: Literal["OK"] = "OK"
    key: KeyEntry


class CustomKeyData(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Save needs `public_key`, delete needs `id`; other fields of a key entry are ignored."""

    id: str | None = None
    public_key: str = ""
    data: str = ""  # the same, under the name the list answers it by
    created: object = None


class CustomKeysRequest(Asked, frozen=True, kw_only=True):
    action: Literal["get", "save", "delete"]
    application_id: ApplicationId | None = None  # else the one that the service JWT is of
    data: CustomKeyData = CustomKeyData()


class CustomKeysAnswer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    status: str
    data: tuple[KeyEntry, ...] | KeyEntry | None = None  # a list for get, the new key for save


class PublicKeyEndpoints:
    def __init__(self, keys: ApplicationKeys) -> None:
        self._keys = keys

    async def of_application(self, request: Request) -> Response:
        try:
            application_id = grammar.parse_application_id(request.path_params["appID"])
        except Malformed:
            raise KeyNotFound("unknown application") from None
        published = await self._keys.published(application_id)
        return public(request, KeysAnswer(keys=tuple(entry(key) for key in published)))

    async def one(self, request: Request) -> Response:
        key = await self._keys.published_key(request.path_params["keyID"])
        return public(request, KeyAnswer(key=entry(key)))

    def endpoints(self) -> list[Endpoint]:
        return [
            Endpoint(
                name="permissions.application.public_keys",
                path="/api/permissions/application/publicKeys/{appID}",
                methods=("GET",),
                handler=self.of_application,
                dialect=Dialect.PERMISSIONS,
                rate_class=RateClass.KEYS,
                section=SECTION,
                summary="Public keys of an application",
                answers={200: KeysAnswer, NOT_MODIFIED: None},
                cors=Cors.ANYONE,
            ),
            Endpoint(
                name="permissions.application.public_key",
                path="/api/permissions/application/publicKey/{keyID}",
                methods=("GET",),
                handler=self.one,
                dialect=Dialect.PERMISSIONS,
                rate_class=RateClass.KEYS,
                section=SECTION,
                summary="Public key by its key ID (kid)",
                answers={200: KeyAnswer, NOT_MODIFIED: None},
                cors=Cors.ANYONE,
            ),
        ]


class CustomKeyEndpoint:
    def __init__(self, *, keys: CustomKeys, desk: FrontDesk) -> None:
        self._keys = keys
        self._desk = desk

    async def act(self, request: Request) -> Response:
        ask = await read_json(request, CustomKeysRequest)
        visit = await self._desk.visit(request, ask, ORDINARY, application_id=id_of(ask.application_id))
        actor, application_id = actor_of(request, visit), needed(visit.application_id, "application_id")
        match ask.action:
            case "get":
                keys = await self._keys.list(actor, application_id)
                return answer(tuple(KeyEntry(id=key.kid, data=key.pem) for key in keys))
            case "save":
                key = await self._keys.add(actor, application_id, ask.data.public_key or ask.data.data)
                return answer(KeyEntry(id=key.kid, data=key.pem))
            case "delete":
                await self._keys.remove(actor, application_id, needed(ask.data.id, "data.id"))
                return done()

    def endpoint(self) -> Endpoint:
        return post(
            "application/keys",
            self.act,
            name="application_keys",
            request=CustomKeysRequest,
            section=SECTION,
            summary="Custom public keys of an application: get, save, delete",
            answers=CustomKeysAnswer,
        )


def entry(key: PublishedKey) -> KeyEntry:
    return KeyEntry(id=key.key_id, data=key.pem)


def public(request: Request, answer: msgspec.Struct) -> Response:
    body = msgspec.json.encode(answer)
    return cacheable(request, body, media_type="application/json", cache_control=CACHE_CONTROL)
