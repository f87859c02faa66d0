"""Public keys of applications, for everyone, and custom keys, for those who manage them (interface §4.4, R6)."""

from typing import Final, Literal

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.permissions.authentication.application_keys import ApplicationKeyDirectory, PublishedKey
from gatehouse.permissions.authentication.authenticator import Authenticator
from gatehouse.permissions.authentication.credentials import DEFAULT_POLICY
from gatehouse.permissions.commands.application_credentials import CustomKeyCommands
from gatehouse.permissions.documents import grammar
from gatehouse.permissions.documents.grammar import ApplicationId
from gatehouse.permissions.errors import KeyNotFound, Malformed
from gatehouse.web.api.permissions.authentication import CredentialFields, actor_of, credentials_of
from gatehouse.web.api.permissions.envelope import data_response, ok_response, permission_endpoint, require_field
from gatehouse.web.api.permissions.schemas import parse_optional_application_id
from gatehouse.web.http.errors import Dialect
from gatehouse.web.http.parse import read_json
from gatehouse.web.http.responses import NOT_MODIFIED, cacheable_response
from gatehouse.web.http.routing import Cors, Endpoint, RateClass

CACHE_CONTROL: Final = "public, max-age=300"
SECTION: Final = "interface §4.4"


class PublicKeyEntry(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    data: str  # PEM


class PublicKeysResponse(msgspec.Struct, frozen=True, kw_only=True):
    status: Literal["OK"] = "OK"
    keys: tuple[PublicKeyEntry, ...]


class PublicKeyResponse(msgspec.Struct, frozen=True, kw_only=True):
    status: Literal["OK"] = "OK"
    key: PublicKeyEntry


class CustomKeyData(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Save needs `public_key`, delete needs `id`; other fields of a key entry are ignored."""

    id: str | None = None
    public_key: str = ""
    data: str = ""  # the same, under its name in the list
    created: object = None


class CustomKeysRequest(CredentialFields, frozen=True, kw_only=True):
    action: Literal["get", "save", "delete"]
    application_id: ApplicationId | None = None  # else the one that the service JWT is of
    data: CustomKeyData = CustomKeyData()


class CustomKeysResponse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    status: str
    data: tuple[PublicKeyEntry, ...] | PublicKeyEntry | None = None  # a list for get, the new key for save


class PublicKeyEndpoints(Struct, eq=False):
    keys: ApplicationKeyDirectory

    async def list_application_keys(self, request: Request) -> Response:
        try:
            application_id = grammar.parse_application_id(request.path_params["appID"])
        except Malformed:
            raise KeyNotFound("unknown application") from None
        published = await self.keys.list_published(application_id)
        return public_response(request, PublicKeysResponse(keys=tuple(public_key_entry(key) for key in published)))

    async def get_key(self, request: Request) -> Response:
        key = await self.keys.get_published_key(request.path_params["keyID"])
        return public_response(request, PublicKeyResponse(key=public_key_entry(key)))

    def endpoints(self) -> list[Endpoint]:
        return [
            Endpoint(
                name="permissions.application.public_keys",
                path="/api/permissions/application/publicKeys/{appID}",
                methods=("GET",),
                handler=self.list_application_keys,
                dialect=Dialect.PERMISSIONS,
                rate_class=RateClass.KEYS,
                section=SECTION,
                summary="Public keys of an application",
                answers={200: PublicKeysResponse, NOT_MODIFIED: None},
                cors=Cors.ANYONE,
            ),
            Endpoint(
                name="permissions.application.public_key",
                path="/api/permissions/application/publicKey/{keyID}",
                methods=("GET",),
                handler=self.get_key,
                dialect=Dialect.PERMISSIONS,
                rate_class=RateClass.KEYS,
                section=SECTION,
                summary="Public key by its key ID (kid)",
                answers={200: PublicKeyResponse, NOT_MODIFIED: None},
                cors=Cors.ANYONE,
            ),
        ]


class CustomKeyEndpoint(Struct, kw_only=True, eq=False):
    keys: CustomKeyCommands
    authenticator: Authenticator

    async def handle(self, request: Request) -> Response:
        body = await read_json(request, CustomKeysRequest)
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
                keys = await self.keys.list(actor, application_id)
                return data_response(tuple(PublicKeyEntry(id=key.kid, data=key.pem) for key in keys))
            case "save":
                key = await self.keys.add(actor, application_id, body.data.public_key or body.data.data)
                return data_response(PublicKeyEntry(id=key.kid, data=key.pem))
            case "delete":
                await self.keys.remove(actor, application_id, require_field(body.data.id, "data.id"))
                return ok_response()

    def endpoint(self) -> Endpoint:
        return permission_endpoint(
            "application/keys",
            self.handle,
            name="application_keys",
            request=CustomKeysRequest,
            section=SECTION,
            summary="Custom public keys of an application: get, save, delete",
            answers=CustomKeysResponse,
        )


def public_key_entry(key: PublishedKey) -> PublicKeyEntry:
    return PublicKeyEntry(id=key.key_id, data=key.pem)


def public_response(request: Request, answer: msgspec.Struct) -> Response:
    body = msgspec.json.encode(answer)
    return cacheable_response(request, body, media_type="application/json", cache_control=CACHE_CONTROL)
