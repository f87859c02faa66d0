"""POST /api/permissions/application and application/tags (interface §4.4, R6)."""

from typing import Literal

import msgspec
from msgspec import UNSET
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.permissions.callers.credentials import ABOUT_APPLICATION, DEFAULT_POLICY
from gatehouse.permissions.commands.applications import ApplicationCommands, ApplicationDraft
from gatehouse.permissions.commands.tags import TagsDraft
from gatehouse.permissions.documents import grammar
from gatehouse.permissions.documents.spelling import ApplicationId
from gatehouse.permissions.errors import Malformed
from gatehouse.permissions.model.application import Application
from gatehouse.web.parse import read_json
from gatehouse.web.permissions.credentials import CredentialFields
from gatehouse.web.permissions.envelope import data_response, ok_response, permission_endpoint, require_field
from gatehouse.web.permissions.front_desk import RequestAuthenticator, actor_of
from gatehouse.web.routes.table import Endpoint


class ApplicationOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    full: bool = False  # with settings and service_meta


class ApplicationRequest(CredentialFields, frozen=True, kw_only=True):
    action: Literal["get", "save", "delete"]
    data: ApplicationDraft
    options: ApplicationOptions = ApplicationOptions()


class ApplicationTagsRequest(CredentialFields, frozen=True, kw_only=True):
    application_id: ApplicationId | None = None  # else the one that the service JWT is of
    data: TagsDraft


class ApplicationRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    application_id: int
    name: str
    removed: bool
    version: int
    description: str = ""
    project_id: str | None = None
    settings: object = UNSET
    service_meta: object = UNSET


class ApplicationResponse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    status: str
    data: ApplicationRecord | None = None


class ApplicationEndpoints:
    def __init__(self, *, applications: ApplicationCommands, authenticator: RequestAuthenticator) -> None:
        self._applications = applications
        self._authenticator = authenticator

    async def handle(self, request: Request) -> Response:
        ask = await read_json(request, ApplicationRequest)
        named = draft_application_id(ask.data)
        if named is None and ask.action != "save":
            raise Malformed("data.application_id: required")
        need = ABOUT_APPLICATION if ask.action == "get" else DEFAULT_POLICY
        actor = await self._authenticator.authenticate_actor(request, ask, need, application_id=named)
        match ask.action:
            case "get":
                found = await self._applications.get(actor, named or 0)
                return data_response(application_record(found, full=ask.options.full))
            case "save":
                return data_response(
                    application_record(await self._applications.save(actor, ask.data), full=ask.options.full)
                )
            case "delete":
                await self._applications.delete(actor, named or 0, ask.data.version)
                return ok_response()

    async def save_tags(self, request: Request) -> Response:
        ask = await read_json(request, ApplicationTagsRequest)
        named = None if ask.application_id is None else grammar.parse_application_id(ask.application_id)
        visit = await self._authenticator.authenticate(request, ask, DEFAULT_POLICY, application_id=named)
        application_id = require_field(visit.application_id, "application_id")
        saved = await self._applications.save_tags(actor_of(request, visit), application_id, ask.data)
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


def application_record(application: Application, *, full: bool) -> ApplicationRecord:
    """Never with private_key (R6)."""
    return ApplicationRecord(
        application_id=application.application_id,
        name=application.name,
        removed=application.removed,
        version=application.version,
        description=application.description,
        project_id=application.project_id,
        settings=application.settings if full else UNSET,
        service_meta=application.service_meta if full else UNSET,
    )
