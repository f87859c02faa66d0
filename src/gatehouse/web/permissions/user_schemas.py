"""POST /api/permissions/meta/data: what a user holds in an application (interface §4.5, R5, R6)."""

from typing import Literal

import msgspec
from msgspec import UNSET
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.kernel.clock import Clock
from gatehouse.permissions.callers.credentials import RECORD_GET, RECORD_SAVE, ROLES_OF_RECORD_GET
from gatehouse.permissions.callers.desk import Desk
from gatehouse.permissions.commands.user_schemas import RecordDraft, UserSchemas, target_of
from gatehouse.permissions.documents.ends import parse_expired
from gatehouse.permissions.documents.spelling import ApplicationId
from gatehouse.permissions.errors import Malformed
from gatehouse.permissions.questions.asked import project_named, read_prefix
from gatehouse.permissions.questions.user_schemas import NARROWER, View, ViewOptions, Views, ViewType, saved_view
from gatehouse.web.parse import read_json
from gatehouse.web.permissions.app_schemas import id_of
from gatehouse.web.permissions.credentials import Asked, credentials_of
from gatehouse.web.permissions.envelope import post, weighed_tagged
from gatehouse.web.permissions.front_desk import actor_of
from gatehouse.web.responses import json_answer
from gatehouse.web.routes.table import SCHEMA_BODY, Endpoint


class RecordOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    project_id: str | None = None
    hide_project_access: bool = False
    with_exp: bool = False
    with_roles: bool = False
    with_apps_data: bool = False
    prefix: str | None = None  # lists: only rules that begin so; a section alone, or in front of a path


class RecordRequest(Asked, frozen=True, kw_only=True):
    action: Literal["get", "save"]
    application_id: ApplicationId | None = None
    data: RecordDraft
    options: RecordOptions = RecordOptions()
    expired: int = 0


class RecordAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """`data`: a list of strings, an object with rules, roles, projects, apps, or the tree."""

    status: str
    data: object
    user_id: str
    expired: int  # the earliest end of anything in it, 0 for none
    max_age: int  # seconds it may be kept before asking again with If-None-Match
    version: int


class RecordEndpoint:
    def __init__(self, *, views: Views, schemas: UserSchemas, desk: Desk, clock: Clock, max_age: int) -> None:
        self._views = views
        self._schemas = schemas
        self._desk = desk
        self._clock = clock
        self._max_age = max_age

    async def act(self, request: Request) -> Response:
        ask = await read_json(request, RecordRequest)
        return await (self._get(request, ask) if ask.action == "get" else self._save(request, ask))

    async def _get(self, request: Request, ask: RecordRequest) -> Response:
        kind = type_of(ask.data)
        need = ROLES_OF_RECORD_GET if kind is ViewType.ROLES else RECORD_GET
        caller = await self._desk.caller(
            await credentials_of(request, ask), need, application_id=id_of(ask.application_id)
        )
        user_id = target_of(ask.data, caller.user_id)
        view = await self._views.view(caller, user_id, kind, options_of(ask.options))
        return await weighed_tagged(request, view.work, self._answer(view), narrower=NARROWER)

    async def _save(self, request: Request, ask: RecordRequest) -> Response:
        visit = await self._desk.receive(
            await credentials_of(request, ask), RECORD_SAVE, application_id=id_of(ask.application_id)
        )
        model = visit.application()
        expired = parse_expired(ask.expired, "expired")
        user_id = target_of(ask.data, visit.caller.user_id)
        saved = await self._schemas.save(actor_of(request, visit), model, user_id, ask.data, expired)
        return json_answer(self._answer(saved_view(visit, saved, model, self._clock.now())))

    def _answer(self, view: View) -> RecordAnswer:
        return RecordAnswer(
            status="OK",
            data=view.data,
            user_id=view.user_id,
            expired=view.expired,
            max_age=self._max_age,
            version=view.version,
        )

    def endpoints(self) -> list[Endpoint]:
        return [
            post(
                "meta/data",
                self.act,
                name="record",
                request=RecordRequest,
                section="interface §4.5",
                summary="Permissions of a user in an application: get (tree, list, list_short, roles), save",
                answers=RecordAnswer,
                has_tag=True,
                body_limit=SCHEMA_BODY,
            )
        ]


def type_of(data: RecordDraft) -> ViewType:
    """Absent it is `list` (R5)."""
    if data.type is UNSET:
        return ViewType.LIST
    try:
        return ViewType(data.type)
    except ValueError:
        raise Malformed(f"data.type: must be one of {', '.join(ViewType)}") from None


def options_of(given: RecordOptions) -> ViewOptions:
    return ViewOptions(
        project=None if given.project_id is None else project_named(given.project_id),
        hide_project_access=given.hide_project_access,
        with_exp=given.with_exp,
        with_roles=given.with_roles,
        with_apps_data=given.with_apps_data,
        prefix=None if given.prefix is None else read_prefix(given.prefix, "options.prefix"),
    )
