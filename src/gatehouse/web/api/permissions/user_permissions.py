"""POST /api/permissions/meta/data: what a user holds in an application (interface §4.5, R5, R6)."""

from typing import Literal

import msgspec
from msgspec import UNSET, Struct
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.kernel.clock import Clock
from gatehouse.permissions.authentication.authenticator import Authenticator
from gatehouse.permissions.authentication.credentials import RECORD_GET, RECORD_SAVE, ROLES_OF_RECORD_GET
from gatehouse.permissions.commands.user_schemas import RecordDraft, UserRecordCommands, record_user_id
from gatehouse.permissions.documents.ends import parse_expired
from gatehouse.permissions.documents.grammar import ApplicationId
from gatehouse.permissions.errors import Malformed
from gatehouse.permissions.questions.parsing import read_prefix, searchable_project_name
from gatehouse.permissions.questions.user_record_views import (
    NARROWER_QUESTION,
    UserRecordView,
    UserRecordViews,
    ViewOptions,
    ViewType,
    saved_view,
)
from gatehouse.web.api.permissions.authentication import CredentialFields, actor_of, credentials_of
from gatehouse.web.api.permissions.envelope import etag_response_off_loop, permission_endpoint
from gatehouse.web.api.permissions.schemas import parse_optional_application_id
from gatehouse.web.http.parse import read_json
from gatehouse.web.http.responses import json_response
from gatehouse.web.http.routing import SCHEMA_BODY_LIMIT, Endpoint


class UserRecordOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    project_id: str | None = None
    hide_project_access: bool = False
    with_exp: bool = False
    with_roles: bool = False
    with_apps_data: bool = False
    prefix: str | None = None  # lists: only rules that begin with it: a section alone, or a section and a path


class UserRecordRequest(CredentialFields, frozen=True, kw_only=True):
    action: Literal["get", "save"]
    application_id: ApplicationId | None = None
    data: RecordDraft
    options: UserRecordOptions = UserRecordOptions()
    expired: int = 0


class UserRecordResponse(msgspec.Struct, frozen=True, kw_only=True):
    """`data`: a list of strings, an object with rules, roles, projects, apps, or the tree."""

    status: str
    data: object
    user_id: str
    expired: int  # the earliest end of anything in it, 0 for none
    max_age: int  # seconds it may be cached before revalidation with If-None-Match
    version: int


class UserRecordEndpoint(Struct, kw_only=True, eq=False):
    views: UserRecordViews
    schemas: UserRecordCommands
    authenticator: Authenticator
    clock: Clock
    max_age: int

    async def handle(self, request: Request) -> Response:
        body = await read_json(request, UserRecordRequest)
        return await (self._get(request, body) if body.action == "get" else self._save(request, body))

    async def _get(self, request: Request, body: UserRecordRequest) -> Response:
        kind = view_type_of(body.data)
        need = ROLES_OF_RECORD_GET if kind is ViewType.ROLES else RECORD_GET
        caller = await self.authenticator.identify(
            credentials_of(request, body), need, application_id=parse_optional_application_id(body.application_id)
        )
        user_id = record_user_id(body.data, caller.user_id)
        view = await self.views.view(caller, user_id, kind, view_options_of(body.options))
        return await etag_response_off_loop(request, view.work, self._response(view), narrower=NARROWER_QUESTION)

    async def _save(self, request: Request, body: UserRecordRequest) -> Response:
        authenticated = await self.authenticator.authenticate(
            credentials_of(request, body),
            RECORD_SAVE,
            application_id=parse_optional_application_id(body.application_id),
        )
        model = authenticated.named_application()
        expired = parse_expired(body.expired, "expired")
        user_id = record_user_id(body.data, authenticated.caller.user_id)
        saved = await self.schemas.save(actor_of(request, authenticated), model, user_id, body.data, expired)
        return json_response(self._response(saved_view(authenticated, saved, model, self.clock.now())))

    def _response(self, view: UserRecordView) -> UserRecordResponse:
        return UserRecordResponse(
            status="OK",
            data=view.data,
            user_id=view.user_id,
            expired=view.expired,
            max_age=self.max_age,
            version=view.version,
        )

    def endpoints(self) -> list[Endpoint]:
        return [
            permission_endpoint(
                "meta/data",
                self.handle,
                name="record",
                request=UserRecordRequest,
                section="interface §4.5",
                summary="Permissions of a user in an application: get (tree, list, list_short, roles), save",
                answers=UserRecordResponse,
                has_tag=True,
                body_limit=SCHEMA_BODY_LIMIT,
            )
        ]


def view_type_of(data: RecordDraft) -> ViewType:
    """Return the requested view; the default is `list` (R5)."""
    if data.type is UNSET:
        return ViewType.LIST
    try:
        return ViewType(data.type)
    except ValueError:
        raise Malformed(f"data.type: must be one of {', '.join(ViewType)}") from None


def view_options_of(options: UserRecordOptions) -> ViewOptions:
    return ViewOptions(
        project=None if options.project_id is None else searchable_project_name(options.project_id),
        hide_project_access=options.hide_project_access,
        with_exp=options.with_exp,
        with_roles=options.with_roles,
        with_apps_data=options.with_apps_data,
        prefix=None if options.prefix is None else read_prefix(options.prefix, "options.prefix"),
    )
