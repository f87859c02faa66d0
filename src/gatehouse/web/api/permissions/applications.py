"""POST /api/permissions/application and application/tags (interface §4.4, R6)."""

from collections.abc import Mapping
from typing import Final, Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.fields.derive import entry_values, optional_members, with_members
from gatehouse.images.model import image_url
from gatehouse.permissions.authentication.authenticator import Authenticator
from gatehouse.permissions.authentication.credentials import ABOUT_APPLICATION, DEFAULT_POLICY
from gatehouse.permissions.commands.applications import ApplicationCommands, ApplicationDraft
from gatehouse.permissions.commands.drafts import TagsDraft
from gatehouse.permissions.documents import grammar
from gatehouse.permissions.documents.grammar import ApplicationId
from gatehouse.permissions.errors import Malformed
from gatehouse.permissions.model.application import APPLICATION_FIELDS, Application
from gatehouse.web.api.permissions.authentication import CredentialFields, actor_of, credentials_of
from gatehouse.web.api.permissions.envelope import data_response, ok_response, permission_endpoint, require_field
from gatehouse.web.http.parse import read_json
from gatehouse.web.http.routing import SCHEMA_BODY_LIMIT, Endpoint


class ApplicationOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    full: bool = False  # with settings, service_meta, protected_sites and api


FULL_MEMBERS: Final = frozenset({"settings", "service_meta", "protected_sites", "api"})


class ApplicationRequest(CredentialFields, frozen=True, kw_only=True):
    action: Literal["get", "save", "delete"]
    data: ApplicationDraft
    options: ApplicationOptions = ApplicationOptions()


class ApplicationTagsRequest(CredentialFields, frozen=True, kw_only=True):
    application_id: ApplicationId | None = None  # else the one that the service JWT is of
    data: TagsDraft


@with_members(lambda: optional_members(APPLICATION_FIELDS))
class ApplicationRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    application_id: int
    name: str
    removed: bool
    version: int
    description: str = ""
    project_id: str | None = None
    settings: object = UNSET
    service_meta: object = UNSET
    protected_sites: Mapping[str, str] | UnsetType = UNSET  # rules by origin
    api: object = UNSET
    logo_uri: str = ""  # of the image at this installation


class ApplicationResponse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    status: str
    data: ApplicationRecord | None = None
    warnings: tuple[str, ...] = ()


class ApplicationEndpoints(Struct, kw_only=True, eq=False):
    applications: ApplicationCommands
    authenticator: Authenticator
    base_url: str

    async def handle(self, request: Request) -> Response:
        body = await read_json(request, ApplicationRequest)
        named = draft_application_id(body.data)
        if named is None and body.action != "save":
            raise Malformed("data.application_id: required")
        need = ABOUT_APPLICATION if body.action == "get" else DEFAULT_POLICY
        actor = actor_of(
            request, await self.authenticator.authenticate(credentials_of(request, body), need, application_id=named)
        )
        warnings: tuple[str, ...] = ()
        match body.action:
            case "get":
                application = await self.applications.get(actor, named or 0)
            case "save":
                saved = await self.applications.save(actor, body.data)
                application, warnings = saved.application, saved.warnings
            case "delete":
                await self.applications.delete(actor, named or 0, body.data.version)
                return ok_response()
        record = application_record(application, self.base_url, full=body.options.full)
        return data_response(record, warnings=warnings)

    async def save_tags(self, request: Request) -> Response:
        body = await read_json(request, ApplicationTagsRequest)
        named = None if body.application_id is None else grammar.parse_application_id(body.application_id)
        authenticated = await self.authenticator.authenticate(
            credentials_of(request, body), DEFAULT_POLICY, application_id=named
        )
        application_id = require_field(authenticated.application_id, "application_id")
        saved = await self.applications.save_tags(actor_of(request, authenticated), application_id, body.data)
        return data_response(
            {"application_id": saved.application_id, "tags": saved.service_meta["tags"], "version": saved.version}
        )

    def endpoints(self) -> list[Endpoint]:
        return [
            permission_endpoint(
                "application",
                self.handle,
                name="application",
                request=ApplicationRequest,
                section="interface §4.4",
                summary="Application: get, save (create without application_id), delete",
                answers=ApplicationResponse,
                body_limit=SCHEMA_BODY_LIMIT,  # a logo
            ),
            permission_endpoint(
                "application/tags",
                self.save_tags,
                name="application_tags",
                request=ApplicationTagsRequest,
                section="interface §4.4",
                summary="Replace the tags of an application",
            ),
        ]


def draft_application_id(draft: ApplicationDraft) -> int | None:
    if draft.application_id is UNSET or draft.application_id is None:
        return None
    return grammar.parse_application_id(draft.application_id, "data.application_id")


def application_record(application: Application, base_url: str, *, full: bool) -> ApplicationRecord:
    """Return the record of an application, never with private_key (R6)."""
    values = entry_values(application, APPLICATION_FIELDS)
    if application.api is None:
        del values["api"]
    if not full:
        values = {name: value for name, value in values.items() if name not in FULL_MEMBERS}
    return ApplicationRecord(**values, logo_uri=image_url(base_url, application.logo))
